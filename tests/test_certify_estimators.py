"""Fitted models of scikit-learn are certified: the bound is above the true distance, and near it."""

import math

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.sparse import csr_array
from sklearn.linear_model import ElasticNet, Lasso, LinearRegression, LogisticRegression, Ridge
from sklearn.svm import SVC, LinearSVC

import saddlepoint as sp
from saddlepoint.theory import logistic_distance

RNG = np.random.default_rng(8)
X = RNG.standard_normal((40, 4)) + np.array([0.0, 1.0, 0.0, 3.0])
T = X @ [1.0, -2.0, 0.0, 0.5] + 0.3 * RNG.standard_normal(40) + 2.0
LABELS = np.where(T + RNG.standard_normal(40) > np.median(T), "yes", "no")
REGRESSIONS = [
    Ridge(0.7),
    Ridge(0.7, fit_intercept=False),
    LinearRegression(),
    Lasso(0.2, tol=1e-12),
    ElasticNet(0.2, tol=1e-12),
    ElasticNet(0.2, tol=1e-12, positive=True, fit_intercept=False),
]
CLASSIFIERS = [
    LogisticRegression(tol=1e-12, max_iter=10000),
    LogisticRegression(tol=1e-12, C=5.0, fit_intercept=False, max_iter=10000),
    LogisticRegression(tol=1e-12, solver="liblinear", max_iter=10000, intercept_scaling=2.0),
    LinearSVC(tol=1e-12, max_iter=200000, intercept_scaling=2.0, random_state=0),
]


@pytest.mark.parametrize("model", [*REGRESSIONS, *CLASSIFIERS], ids=str)
def test_how_far_coefficients_are_off_is_bounded(model):
    """The bound of the fitted model is small, and that of coefficients that are moved is the move, or a little more."""
    t = LABELS if model in CLASSIFIERS else T
    model.fit(X, t)
    exact = sp.certify(model, X, t)
    assert exact.distance < 1e-3
    model.coef_ = model.coef_ + 0.01
    moved = sp.certify(model, X, t)
    assert 0.02 - exact.distance <= moved.distance < math.inf
    assert moved.intercept is None or np.isclose(moved.intercept, exact.intercept)
    assert any("float64" in sentence for sentence in moved.assumes)


def test_data_may_be_sparse():
    model = Ridge(0.7).fit(X, T)
    assert sp.certify(model, csr_array(X), T).distance == pytest.approx(sp.certify(model, X, T).distance, abs=1e-12)


def test_the_hinge_loss_is_certified_by_solving():
    model = LinearSVC(loss="hinge", tol=1e-9, max_iter=500000, random_state=0).fit(X, LABELS)
    found = sp.certify(model, X, LABELS)
    assert found.distance < 0.01
    assert found.proof.answer is not None


def test_logistic_distance_is_above_the_true_one():
    """A one-dimensional logistic regression without any penalty, whose minimiser is known."""
    D, s = np.array([[1.0], [1.0], [1.0]]), np.array([1.0, 1.0, -1.0])

    def value(v):
        return float(np.log1p(np.exp(-s * (D @ v))).sum())

    best = math.log(2.0)
    assert minimize(value, [0.0]).x[0] == pytest.approx(best, abs=1e-4)
    for v in (best - 0.3, best - 0.01, best + 1e-6, best + 0.2):
        p = 1.0 / (1.0 + np.exp(s * v))
        gradient, curvature = abs(float(-(s * p).sum())), float((p * (1.0 - p)).sum())
        bound = logistic_distance(gradient, curvature, 1.0)
        assert abs(v - best) <= bound < 2.0 * abs(v - best) + 1e-12
    assert logistic_distance(1.0, 0.5, 1.0) == math.inf
    assert logistic_distance(1.0, 0.5, 0.0) == pytest.approx(2.0)


def test_what_cannot_be_certified_is_refused():
    wide = RNG.standard_normal((3, 4))
    cases = [
        (SVC(), X, LABELS, "the estimator is a SVC; expected one of ElasticNet, Lasso"),
        (Ridge().fit(X, np.stack([T, T], 1)), X, T, "expected one target, or two classes"),
        (Ridge().fit(X, T), X[:, :3], T, "expected 4 columns, one for each coefficient"),
        (Ridge().fit(X, T), X, T[:5], "t"),
        (LinearRegression().fit(wide, T[:3]), wide, T[:3], "is not strongly convex, or cannot be proven to be"),
        (LogisticRegression(class_weight="balanced").fit(X, LABELS), X, LABELS, "has class weights"),
        (LogisticRegression().fit(X, LABELS), X, np.full(40, "maybe"), "classes that the LogisticRegression does not"),
        (LinearSVC(penalty="l1").fit(X, LABELS), X, LABELS, "penalty 'l1'; expected 'l2'"),
        (
            LogisticRegression(l1_ratio=0.5, solver="saga", max_iter=20000).fit(X, LABELS),
            X,
            LABELS,
            "l1 penalty and an",
        ),
    ]
    for model, data, t, sentence in cases:
        with pytest.raises(sp.ProblemError, match=sentence):
            sp.certify(model, data, t)
    with pytest.raises(sp.ProblemError, match="is not fitted"):
        sp.certify(Ridge(), X, T)
    with pytest.raises(sp.ProblemError, match="expected a Saddle"):
        sp.certify(3.0, X, T)
    x = sp.model.minimiser(1, "x")
    with pytest.raises(sp.ProblemError, match="values of all variables in one dictionary"):
        sp.certify(sp.model.Problem(sp.model.sum_squares(x)), {"x": [0.0]}, [1.0])
