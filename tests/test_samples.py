"""Samples that need no conversion are checked as scikit-learn checks others, and errors are those of scikit-learn."""

import numpy as np
import pytest
from sklearn.utils.validation import validate_data

from saddlepoint.apps import RiskClassifier, RiskRegressor
from saddlepoint.apps.class_labels import classes_of
from saddlepoint.apps.samples import CHECKS, samples

X, y = np.array([[1.0, 2.0], [3.0, 4.0], [0.5, 1.0]]), np.array([0.0, 1.0, 2.0])


@pytest.mark.parametrize(
    ("data", "targets"),
    [
        (X, y),
        (np.asfortranarray(X), y.astype(int)),
        (X, y > 0.0),
        (X.astype(np.float32), y),
        (X[::2], y[::2]),
        (X.astype(int), y.tolist()),
        (X.tolist(), y),
        (X, y[:, None]),
        (X, np.array(["a", "b", "a"])),
    ],
)
@pytest.mark.filterwarnings("ignore:A column-vector y")
def test_they_are_those_of_scikit_learn(data, targets):
    model, other = RiskClassifier(), RiskClassifier()
    other.feature_names_in_ = np.array(["of", "earlier"])
    found = samples(other, data, targets)
    expected = validate_data(model, data, targets, **CHECKS)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_array_equal(a, b)
        assert a.dtype == b.dtype
    assert other.n_features_in_ == model.n_features_in_ == 2
    assert not hasattr(other, "feature_names_in_")


@pytest.mark.parametrize(
    ("data", "targets", "message"),
    [
        (np.where(X == 4.0, np.nan, X), y, "Input X contains NaN"),
        (np.where(X == 4.0, np.inf, X), y, "Input X contains infinity"),
        (X, np.where(y == 1.0, np.inf, y), "Input y contains infinity"),
        (X, y[:2], "inconsistent numbers of samples"),
        (X[:0], y[:0], "0 sample"),
        (X[:, :0], y, "0 feature"),
        (X[0], y, "Expected 2D array"),
        (X.astype(complex), y, "Complex data not supported"),
        (X, None, "requires y to be passed"),
    ],
)
def test_what_is_wrong_is_said_by_scikit_learn(data, targets, message):
    with pytest.raises(ValueError, match=message):
        samples(RiskRegressor(), data, targets, y_numeric=True)


def test_sums_that_overflow_are_no_infinite_entries():
    found, _ = samples(RiskRegressor(), np.full((3, 2), 1e308), y)
    assert np.isfinite(found).all()


def test_truth_values_are_two_classes():
    np.testing.assert_array_equal(classes_of(np.array([True, False, True])), [False, True])
    for one in (np.ones(3, bool), np.zeros(3, bool)):
        with pytest.raises(ValueError, match="y holds one class only"):
            classes_of(one)
