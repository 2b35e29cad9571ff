"""Fair classification, group DRO and Wasserstein DRO: beside Clarabel, certified, and bad input."""

import warnings
from fractions import Fraction

import cvxpy as cp
import numpy as np
import pytest
from estimators import assert_estimator
from scipy import sparse
from sklearn.datasets import load_breast_cancer
from sklearn.utils.validation import _num_samples

import saddlepoint as sp
from saddlepoint.apps import (
    FairClassifier,
    GroupDROClassifier,
    GroupDRORegressor,
    RiskClassifier,
    WassersteinClassifier,
    group_dro,
)
from saddlepoint.theory.worst_case import worst_case_certificate


def drawn(seed=0, N=80, n=4):
    """Features, labels and targets, an attribute of two values, and three groups."""
    rng = np.random.default_rng(seed)
    z, group = rng.integers(0, 2, N), rng.integers(0, 3, N)
    X = rng.standard_normal((N, n)) + 0.7 * z[:, None] * rng.standard_normal(n) + 3.0
    t = (X - 3.0) @ rng.standard_normal(n) + (0.5 + group) * rng.standard_normal(N)
    return X, (t > np.median(t)).astype(int), t, z, group


def clarabel(value, w, constraints=()):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Clarabel says that it is not sure of the last digit
        program = cp.Problem(cp.Minimize(value), list(constraints))
        program.solve(solver="CLARABEL", tol_gap_abs=1e-13, tol_gap_rel=1e-13, tol_feas=1e-12)
    return w.value


def losses(loss, margin):
    return cp.logistic(-margin) if loss == "logistic" else cp.pos(1 - margin)


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["logistic", "hinge"])
@pytest.mark.parametrize("l1", [0.0, 0.02])
def test_fair_is_that_of_clarabel(loss, l1):
    X, y, _, z, _ = drawn()
    model = FairClassifier(loss, 0.05, 0.02, l1=l1).fit(X, y, z)
    assert model.result_.solved
    assert abs(model.covariance_).max() == pytest.approx(0.05)
    w, b, N = cp.Variable(4), cp.Variable(), len(y)
    margin = cp.multiply(np.where(y == 1, 1.0, -1.0), X @ w + b)
    value = cp.sum(losses(loss, margin)) / N + 0.01 * (cp.sum_squares(w) + b**2) + l1 * cp.norm1(w)
    a = np.cov(X.T, z, bias=True)[:-1, -1]
    np.testing.assert_allclose(model.coef_[0], clarabel(value, w, [cp.abs(a @ w) <= 0.05]), atol=2e-6)
    thin = FairClassifier(loss, 0.05, 0.02, l1=l1).fit(sparse.csr_array(X), y, z.astype(str))
    np.testing.assert_allclose(thin.coef_, model.coef_, atol=1e-6)
    free = FairClassifier(loss, 1e3, 0.02, l1=l1).fit(X, y, z)
    np.testing.assert_allclose(free.coef_, RiskClassifier(loss, 0.02, l1=l1).fit(X, y).coef_, atol=1e-6)


@pytest.mark.slow
def test_several_attributes_have_their_own_bounds():
    X, y, _, z, group = drawn()
    both = np.stack((z, group), axis=1)
    model = FairClassifier("logistic", [0.05, 0.01], 0.02).fit(X, y, both)
    assert (np.abs(model.covariance_) <= np.array([0.05, 0.01]) + 1e-9).all()
    assert model.result_.solved
    words = FairClassifier("logistic", 0.02, 0.02).fit(X, y, np.array(["a", "b", "c"])[group])
    assert words.covariance_.shape == (3,)
    assert words.problem(X, y, group).shape == (5, 1)


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["logistic", "hinge"])
@pytest.mark.parametrize("metric", ["euclidean", "max"])
def test_wasserstein_is_that_of_clarabel(loss, metric):
    X, y, *_ = drawn()
    X = X - 3.0
    model = WassersteinClassifier(0.1, loss, 0.01, metric=metric, fit_intercept=False).fit(X, y)
    assert model.result_.solved
    w = cp.Variable(4)
    margin = cp.multiply(np.where(y == 1, 1.0, -1.0), X @ w)
    size = cp.norm(w) if metric == "euclidean" else cp.norm1(w)
    value = cp.sum(losses(loss, margin)) / len(y) + 0.005 * cp.sum_squares(w) + 0.1 * size
    np.testing.assert_allclose(model.coef_[0], clarabel(value, w), atol=2e-6)
    nothing = WassersteinClassifier(10.0, loss, 0.01, metric=metric, fit_intercept=False).fit(X, y)
    np.testing.assert_allclose(nothing.coef_, 0.0, atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("squared", [False, True])
def test_group_dro_is_that_of_clarabel(squared):
    X, y, t, _, group = drawn()
    model = (GroupDRORegressor if squared else GroupDROClassifier)(0.05, tol=1e-4, fit_intercept=False)
    model.fit(X, t if squared else y, groups=group)
    w, signs = cp.Variable(4), np.where(y == 1, 1.0, -1.0)
    risks = []
    for g in range(3):
        D, on = X[group == g], group == g
        each = cp.square(D @ w - t[on]) / 2 if squared else cp.logistic(cp.multiply(-signs[on], D @ w))
        risks.append(cp.sum(each) / on.sum())
    exact = clarabel(cp.maximum(*risks) + 0.025 * cp.sum_squares(w), w)
    np.testing.assert_allclose(model.coef_, exact, atol=1e-5)
    assert model.solved_
    assert np.linalg.norm(model.coef_ - exact) <= model.certificate_.distance + 1e-6
    worst = model.group_risks_.max()
    assert model.group_weights_[model.group_risks_ < worst - 1e-3].sum() == 0.0
    thin = type(model)(0.05, tol=1e-4, fit_intercept=False).fit(sparse.csr_array(X), t if squared else y, groups=group)
    np.testing.assert_allclose(thin.coef_, model.coef_, atol=2e-4)


def test_the_largest_risk_has_its_closed_form():
    model = GroupDRORegressor(0.5, fit_intercept=False, tol=1e-6).fit([[1.0], [1.0]], [-1.0, 3.0], groups=[0, 1])
    # max((w + 1)^2, (w - 3)^2)/2 + w^2/4 has its minimum where both are equal, at w = 1
    assert abs(model.coef_[0] - 1.0) <= model.certificate_.distance <= 1e-5
    one = GroupDRORegressor(0.5, fit_intercept=False, tol=1e-6).fit([[1.0], [1.0]], [-1.0, 3.0])
    assert abs(one.coef_[0] - 2.0 / 3.0) <= one.certificate_.distance  # one group: ridge regression


@pytest.mark.parametrize("l2", [1e-2, 1e-3])
def test_group_dro_proves_its_default_accuracy(l2):
    """With scores in the digits of float64 alone, rounding would end the proof above the tolerance."""
    X, y = load_breast_cancer(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    assert GroupDROClassifier(l2).fit(X, y, groups=X[:, 0] > 0.0).solved_


@pytest.mark.parametrize("compensated", [False, True])
def test_the_slack_of_group_dro_is_above_the_exact_one(compensated):
    rng = np.random.default_rng(1)
    D, t, w = rng.standard_normal((20, 6)), rng.standard_normal(20), rng.standard_normal(6)
    groups = [group_dro.Group(D[i::2], t[i::2], sp.LeastSquares(D[i::2], t[i::2])) for i in range(2)]
    exact = []
    for group in groups:
        residuals = [
            sum(Fraction(a) * Fraction(b) for a, b in zip(row, w.tolist(), strict=True)) - Fraction(target)
            for row, target in zip(group.D.tolist(), group.t.tolist(), strict=True)
        ]
        exact.append(sum(r * r for r in residuals) / (2 * len(residuals)))
    for q in (np.array([1.0, 0.0]), np.array([0.25, 0.75])):
        true = max(exact) - sum(Fraction(float(a)) * b for a, b in zip(q, exact, strict=True))
        slack, rounding = group_dro._slack(groups, w, q, True, compensated)
        assert true <= Fraction(slack) <= true * (1 + Fraction(1, 10**9)) + Fraction(2.5 * rounding)
        assert 0.0 < rounding < (4e-14 if compensated else 4e-13)


def test_the_certificate_of_the_worst_case_is_the_formula_at_all_sizes():
    assert worst_case_certificate(1.0, 1.0, 0.0).distance == pytest.approx(1.0)
    assert worst_case_certificate(1.0, 0.0, 4.0)[:2] == pytest.approx((2.0, 4.0))
    assert worst_case_certificate(0.0, 1.0, 1.0).distance == np.inf
    assert worst_case_certificate(1.0, np.nan, 1.0).distance == np.inf
    assert worst_case_certificate(1.0, 1e200, 0.0)[:2] == (pytest.approx(1e200), np.inf)
    assert worst_case_certificate(1e-300, 1e-170, 0.0).gap == pytest.approx(5e-41)


class WithAttribute(FairClassifier):
    """Every other sample has the attribute, so that scikit-learn's checks can call fit."""

    def fit(self, X, y, sensitive_features=None):
        if sensitive_features is None:
            sensitive_features = np.arange(_num_samples(X)) % 2
        return super().fit(X, y, sensitive_features)


@pytest.mark.slow
@pytest.mark.parametrize(
    "model", [WithAttribute(covariance=0.1, l2=0.1), GroupDROClassifier(0.1), GroupDRORegressor(0.1, tol=1e-4)], ids=str
)
def test_scikit_learn_accepts_it(model):
    assert_estimator(model)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (FairClassifier(covariance=0.0), "covariance is 0.0; expected a positive number, or one for each of the 1"),
        (FairClassifier(covariance=[1.0, 2.0]), "covariance is .*; expected a positive number"),
        (FairClassifier("square"), "loss of FairClassifier is 'square'; expected 'logistic', 'hinge' or"),
        (GroupDROClassifier(l2=0.0), "l2 is 0.0; expected a positive number"),
        (GroupDROClassifier(max_seconds="soon"), "max_seconds is 'soon'; expected a positive number"),
        (GroupDROClassifier(tol=-1.0), "tol is -1.0; expected a positive number"),
    ],
)
def test_parameters_that_make_no_sense_are_refused(model, message):
    X, y, _, z, _ = drawn(N=10)
    with pytest.raises(sp.ProblemError, match=message):
        model.fit(X, y, z)


def test_data_that_make_no_sense_are_refused():
    X, y, _, z, _ = drawn(N=10)
    with pytest.raises(sp.ProblemError, match="sensitive_features is None; expected a number or a word"):
        FairClassifier().fit(X, y, None)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        FairClassifier().fit(X, y, z[:-1])
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        GroupDROClassifier().fit(X, y, z[:-1])
    with pytest.raises(sp.ProblemError, match="groups holds a number that is not finite"):
        GroupDROClassifier().fit(X, y, np.where(z == 0, np.nan, 1.0))
    with pytest.raises(sp.ProblemError, match="metric is 'city'; expected 'euclidean' or 'max'"):
        WassersteinClassifier(metric="city").fit(X, y)
    with pytest.raises(sp.ProblemError, match="radius is -1; expected a finite number that is not negative"):
        WassersteinClassifier(-1.0).fit(X, y)
