"""Constrained Huber regression and robust least squares: agreement with other solvers, and their certificates."""

import pickle
import warnings
from fractions import Fraction

import numpy as np
import pytest
from exact import solved
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from scipy.optimize import brentq, check_grad

import saddlepoint as sp

pytest.importorskip("sklearn")
cp = pytest.importorskip("cvxpy")
from estimators import assert_estimator  # noqa: E402
from sklearn.base import clone  # noqa: E402
from sklearn.datasets import load_diabetes  # noqa: E402
from sklearn.exceptions import ConvergenceWarning  # noqa: E402
from sklearn.linear_model import LinearRegression, Ridge  # noqa: E402

from saddlepoint.apps.constrained_huber import (  # noqa: E402
    ConstrainedHuber,
    certify,
    read_equations,
    whitened_problem,
)
from saddlepoint.apps.huber_objective import Objective, balance  # noqa: E402
from saddlepoint.apps.robust_least_squares import (  # noqa: E402
    THETA,
    Data,
    RobustLeastSquares,
    Smoothing,
    bounds,
)
from saddlepoint.methods import make_method  # noqa: E402

pytestmark = pytest.mark.slow  # `make check` runs the examples in the docstrings of the applications
TIGHT = dict.fromkeys(("tol_gap_abs", "tol_gap_rel", "tol_feas", "tol_ktratio"), 1e-12)


def diabetes():
    X, y = load_diabetes(return_X_y=True)
    return X / X.std(axis=0), y


def with_outliers(rows=120, features=6, share=0.15, seed=0):
    """A linear model with normal noise, and gross errors in some targets."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((rows, features)) @ rng.standard_normal((features, features)) + 1.0
    y = X @ rng.standard_normal(features) + 3.0 + 0.3 * rng.standard_normal(rows)
    wrong = rng.random(rows) < share
    return X, y + np.where(wrong, 30.0 * rng.exponential(size=rows), 0.0)


def huber_by_clarabel(X, y, delta, l2, E, e, intercept):
    w, b = cp.Variable(X.shape[1]), cp.Variable()
    loss = cp.sum(cp.huber(X @ w + (b if intercept else 0.0) - y, delta)) / (2 * len(y))
    equations = [] if E is None else [E @ w == e]
    task = cp.Problem(cp.Minimize(loss + l2 / 2 * cp.sum_squares(w)), equations)
    task.solve(solver=cp.CLARABEL, **TIGHT)
    return w.value, float(b.value) if intercept else 0.0, equations[0].dual_value if equations else None, task.value


def robust_by_clarabel(X, y, radius, intercept):
    w, b = cp.Variable(X.shape[1]), cp.Variable()
    residual = X @ w + (b if intercept else 0.0) - y
    task = cp.Problem(cp.Minimize(cp.norm(residual) / np.sqrt(len(y)) + radius * cp.norm(w)))
    task.solve(solver=cp.CLARABEL)
    return task.value


def robust_by_ridge(X, y, radius):
    """w and the minimum of F without an intercept: a ridge regression, whose penalty is found by a search."""
    U, d, Vt = np.linalg.svd(X / np.sqrt(len(y)), full_matrices=False)
    s = y / np.sqrt(len(y))
    c = U.T @ s
    rest = np.linalg.norm(s - U @ c)

    def w(log_penalty):
        return d * c / (d * d + np.exp(log_penalty))

    def F(w):
        return np.hypot(rest, np.linalg.norm(d * w - c)) + radius * np.linalg.norm(w)

    def excess(log_penalty):  # zero where the penalty is radius |z|/|w|
        v = w(log_penalty)
        with np.errstate(divide="ignore"):  # a perfect fit
            return log_penalty - np.log(radius * np.hypot(rest, np.linalg.norm(d * v - c)) / np.linalg.norm(v))

    ends = -60.0, 60.0
    if excess(ends[0]) < 0.0 < excess(ends[1]):
        v = w(brentq(excess, *ends, xtol=1e-14, rtol=1e-14))
    else:
        v = min(w(ends[0]), np.zeros(len(d)), key=F)
    return Vt.T @ v, F(v)


CONSTRAINTS = {
    "none": lambda p: (None, None),
    "sum to one": lambda p: (np.ones((1, p)), [1.0]),
    "a contrast": lambda p: (np.eye(1, p, 2) - np.eye(1, p, 3), [2.0]),
    "three": lambda p: (np.vstack((np.ones(p), np.arange(p), np.eye(p)[1])), [1.0, -2.0, 0.5]),
    "all fixed but one": lambda p: (np.eye(p)[1:], np.linspace(-1.0, 1.0, p - 1)),
}


# -- constrained Huber -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("name", CONSTRAINTS)
@pytest.mark.parametrize(("data", "delta", "l2"), [(diabetes, 40.0, 1e-2), (with_outliers, 0.5, 1e-3)])
def test_huber_agrees_with_clarabel(data, delta, l2, name, intercept):
    X, y = data()
    y = y if intercept else y - np.median(y)
    E, e = CONSTRAINTS[name](X.shape[1])
    w, b, dual, value = huber_by_clarabel(X, y, delta, l2, E, e, intercept)
    model = ConstrainedHuber(None if E is None else (E, e), delta=delta, l2=l2, fit_intercept=intercept, tol=1e-8).fit(
        X, y
    )
    np.testing.assert_allclose(model.coef_, w, atol=1e-6 * max(1.0, np.abs(w).max()))
    assert model.intercept_ == pytest.approx(b, abs=1e-6 * max(1.0, abs(b)))
    residual = np.abs(model.predict(X) - y)
    loss = np.where(residual <= delta, residual**2 / 2, delta * residual - delta**2 / 2).mean()
    assert loss + l2 / 2 * model.coef_ @ model.coef_ <= value + 1e-9 * abs(value)
    assert model.result_.solved
    if E is None:
        assert model.multipliers_.shape == (0,)
    else:
        np.testing.assert_allclose(E @ model.coef_, e, atol=1e-12 * np.linalg.norm(model.coef_))
        np.testing.assert_allclose(model.multipliers_, dual, atol=1e-6 * max(1.0, np.abs(dual).max()))


def test_multipliers_are_the_prices_of_the_constraints():
    X, y = with_outliers()
    E = np.vstack((np.ones(6), np.eye(6)[0]))

    def value(e):
        w = ConstrainedHuber((E, e), delta=0.5, tol=1e-8).fit(X, y).coef_
        return Objective(X, y, 1e-4, 0.5, True)(w)

    e = np.array([1.0, 0.3])
    model = ConstrainedHuber((E, e), delta=0.5, tol=1e-8).fit(X, y)
    slopes = [(value(e + 1e-3 * t) - value(e - 1e-3 * t)) / 2e-3 for t in np.eye(2)]
    np.testing.assert_allclose(-model.multipliers_, slopes, rtol=1e-3)


@given(st.integers(0, 10**6), st.sampled_from([1e-6, 1e-3, 1.0, 100.0]), st.booleans())
def test_the_certificate_holds_everywhere(seed, scale, intercept):
    rng = np.random.default_rng(seed)
    rows, features, equations = rng.integers(3, 30), rng.integers(1, 8), rng.integers(1, 4)
    X, y = rng.standard_normal((rows, features)), 3.0 * rng.standard_cauchy(rows)
    E = rng.standard_normal((min(equations, features), features))
    constraints = (E, rng.standard_normal(len(E)))
    model = ConstrainedHuber(constraints, l2=0.01, delta=0.5, fit_intercept=intercept, tol=1e-9).fit(X, y)
    g, rows_of_E = Objective(X, y, 0.01, 0.5, intercept), read_equations(constraints, features)
    w = model.coef_ + scale * rng.standard_normal(features)
    y = np.asarray(model.multipliers_ * np.linalg.norm(E, axis=1))[rows_of_E.kept]
    y = y + scale * rng.standard_normal(len(y))
    error = np.linalg.norm(w - model.coef_)
    assert certify(g, rows_of_E, w, y).distance >= error - model.certificate_.distance


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("whitened", [True, False])
@given(st.integers(0, 10**6), st.sampled_from([0.1, 1.0, 10.0]))
def test_the_whitened_objective_has_the_same_values_and_its_constants_hold(whitened, container, intercept, seed, scale):
    rng = np.random.default_rng(seed)
    X, y = rng.standard_normal((25, 4)) * [1.0, 5.0, 0.1, 1.0] + rng.standard_normal(4), rng.standard_cauchy(25)
    g = Objective(container(X), y, 0.05, 0.7, intercept)
    assert g.mu == pytest.approx(0.05)
    assert 1.06 * (0.05 + np.linalg.norm(X - intercept * X.mean(0), 2) ** 2 / 25) >= g.L
    if not whitened:
        g.spectrum = None  # as if there were too many features
    f = whitened_problem(g, read_equations(None, 4))
    w = scale * rng.standard_normal(4)
    assert f.g(w) == pytest.approx(g(f.T @ w))
    np.testing.assert_allclose(f.g.grad(w), f.T @ g.grad(f.T @ w), atol=1e-12)
    assert f.g.mu == pytest.approx(g.mu / g.L)
    assert pytest.approx(1.0) == f.g.L
    for function in (g, f.g):
        assert check_grad(function, function.grad, w, epsilon=1e-6) <= 1e-4 * (1 + np.linalg.norm(function.grad(w)))
        step = 1e-6
        H = np.stack([(function.grad(w + step * t) - function.grad(w - step * t)) / (2 * step) for t in np.eye(4)])
        values = np.linalg.eigvalsh((H + H.T) / 2)
        assert function.mu <= values[0] + 1e-7
        assert values[-1] <= function.L + 1e-7
        if function.hessian is not None:
            np.testing.assert_allclose(function.hessian(w), H, atol=1e-6)


@given(st.integers(0, 10**6), st.integers(1, 40), st.sampled_from([1e-3, 0.3, 3.0, 1e4]))
def test_the_intercept_balances_the_residuals(seed, rows, delta):
    r = np.random.default_rng(seed).standard_cauchy(rows).round(1)  # with ties
    b = balance(r, delta)
    assert abs(np.clip(b - r, -delta, delta).sum()) <= 1e-12 * (np.abs(r).sum() + rows * delta)


@pytest.mark.parametrize(("r", "centre"), [([2.0, 2.0, 2.0], 2.0), ([0.0, 10.0], 5.0), ([0.0, 10.0, 10.0], 9.5)])
def test_the_intercept_is_the_one_computed_by_hand(r, centre):
    assert balance(np.array(r), 1.0) == pytest.approx(centre)


def test_sparse_data_and_constraints_give_the_answer_of_dense_ones():
    X, y = with_outliers()
    X = np.where(np.abs(X) > 1.5, X, 0.0)
    E, e = CONSTRAINTS["three"](6)
    dense = ConstrainedHuber((E, e), delta=0.5, tol=1e-8).fit(X, y)
    model = ConstrainedHuber((sparse.coo_array(E), e), delta=0.5, tol=1e-8).fit(sparse.csc_array(X), y)
    np.testing.assert_allclose(model.coef_, dense.coef_, atol=1e-7)
    np.testing.assert_allclose(model.multipliers_, dense.multipliers_, atol=1e-7)
    np.testing.assert_allclose(model.predict(sparse.csr_array(X)), dense.predict(X), atol=1e-6)


def test_many_sparse_features_are_solved_without_whitening():
    rng = np.random.default_rng(0)
    X = sparse.random_array((300, 1600), density=0.01, rng=rng, format="csr")
    y = X @ rng.standard_normal(1600) + 0.1 * rng.standard_normal(300)
    model = ConstrainedHuber((sparse.csr_array(np.ones((1, 1600))), [1.0]), l2=1e-3, delta=0.1, tol=1e-8).fit(X, y)
    assert model.coef_.sum() == pytest.approx(1.0)
    g = Objective(X, y, 1e-3, 0.1, True)
    assert g.spectrum is None
    np.testing.assert_allclose(g.grad(model.coef_), -model.multipliers_[0], atol=1e-8)


def test_redundant_equations_are_left_out():
    X, y = with_outliers()
    E = np.vstack((np.ones(6), np.eye(6)[2], 3.0 * np.ones(6), np.zeros(6), np.ones(6) + np.eye(6)[2]))
    one = ConstrainedHuber((E[:2], [1.0, 0.5]), delta=0.5, tol=1e-8).fit(X, y)
    model = ConstrainedHuber((E, [1.0, 0.5, 3.0, 0.0, 1.5]), delta=0.5, tol=1e-8).fit(X, y)
    np.testing.assert_allclose(model.coef_, one.coef_, atol=1e-8)
    assert len(model.independent_) == 2
    gone = np.setdiff1d(np.arange(5), model.independent_)
    np.testing.assert_array_equal(model.multipliers_[gone], 0.0)
    np.testing.assert_allclose(E.T @ model.multipliers_, E[:2].T @ one.multipliers_, atol=1e-8)


def test_equations_without_coefficients_change_nothing():
    X, y = with_outliers()
    model = ConstrainedHuber((np.zeros((2, 6)), np.zeros(2)), delta=0.5).fit(X, y)
    np.testing.assert_allclose(model.coef_, ConstrainedHuber(delta=0.5).fit(X, y).coef_, atol=1e-6)
    assert model.multipliers_.tolist() == [0.0, 0.0]


def test_the_sizes_of_equations_do_not_matter():
    X, y = with_outliers()
    E = np.vstack((np.ones(6), np.eye(6)[2]))
    one = ConstrainedHuber((E, [1.0, 0.5]), delta=0.5, tol=1e-8).fit(X, y)
    model = ConstrainedHuber(([[1e6], [1e-6]] * E, [1e6, 0.5e-6]), delta=0.5, tol=1e-8).fit(X, y)
    np.testing.assert_allclose(model.coef_, one.coef_, atol=1e-8)
    np.testing.assert_allclose(model.multipliers_ * [1e6, 1e-6], one.multipliers_, atol=1e-8)


def test_the_units_of_y_do_not_matter():
    X, y = with_outliers()
    small = ConstrainedHuber(delta=0.5, tol=1e-8).fit(X, y)
    large = ConstrainedHuber(delta=0.5e8, tol=1e-9).fit(X, 1e8 * y)
    assert large.result_.solved
    np.testing.assert_allclose(large.coef_, 1e8 * small.coef_, rtol=1e-7)


def test_a_wide_delta_is_ridge_regression():
    X, y = with_outliers()
    model = ConstrainedHuber(delta=1e6, l2=0.01, tol=1e-10).fit(X, y)
    ridge = Ridge(alpha=0.01 * len(y)).fit(X, y)
    np.testing.assert_allclose(model.coef_, ridge.coef_, atol=1e-8)
    assert model.intercept_ == pytest.approx(ridge.intercept_)


def test_outliers_do_not_matter_much():
    X, y = with_outliers(share=0.0)
    _, spoilt = with_outliers(share=0.15)
    clean, model = ConstrainedHuber(delta=0.5).fit(X, y).coef_, ConstrainedHuber(delta=0.5).fit(X, spoilt).coef_
    least_squares = LinearRegression().fit(X, spoilt).coef_
    assert np.linalg.norm(model - clean) < 0.1 * np.linalg.norm(least_squares - clean)


@pytest.mark.parametrize("method", ["auto", "anderson-condat-vu", "newton", "dippa", "lpd-gs"])
def test_the_problem_of_huber_regression_is_solved_by_any_method(method):
    X, y = with_outliers()
    model = ConstrainedHuber(CONSTRAINTS["three"](6), delta=0.5, l2=0.1, tol=1e-9).fit(X, y)
    result = sp.solve(model.problem(X, y), method=method, tol=1e-6)
    assert result.solved
    np.testing.assert_allclose(model.whitening_ @ result.x, model.coef_, atol=4e-6)


@pytest.mark.parametrize("method", ["auto", "newton", make_method("lpd-gs")])
def test_huber_regression_with_another_method_agrees_within_the_certificates(method):
    X, y = with_outliers()
    model = ConstrainedHuber(CONSTRAINTS["sum to one"](6), delta=0.5, l2=0.1, method=method).fit(X, y)
    other = ConstrainedHuber(CONSTRAINTS["sum to one"](6), delta=0.5, l2=0.1).fit(X, y)
    assert np.linalg.norm(model.coef_ - other.coef_) <= model.certificate_.distance + other.certificate_.distance


def test_the_problem_of_huber_regression_can_be_made_before_a_fit():
    X, y = with_outliers()
    f = ConstrainedHuber(CONSTRAINTS["three"](6), l2=0.1).problem(X, y)
    assert f.shape == (6, 3)
    assert f.norm == pytest.approx(1.0, rel=0.06)
    assert f.L_x == pytest.approx(1.0)
    assert f.mu_y == f.L_y == pytest.approx(1e-3)
    assert sp.solve(f, method="anderson-imex").solved


BAD_HUBER = {
    "delta": ({"delta": 0.0}, "delta of ConstrainedHuber is 0.0; expected a positive number"),
    "negative delta": ({"delta": -1.0}, "delta"),
    "l2": ({"l2": 0.0}, "l2 of ConstrainedHuber"),
    "tol": ({"tol": np.inf}, "tol of ConstrainedHuber"),
    "text": ({"delta": "one"}, "delta of ConstrainedHuber is 'one'"),
    "time": ({"max_seconds": -1.0}, "max_seconds"),
    "method": ({"method": "magic"}, "unknown method"),
    "no pair": ({"constraints": np.ones(6)}, "expected a pair"),
    "a number": ({"constraints": 3}, "constraints is a int; expected a pair"),
    "columns": ({"constraints": (np.ones((1, 5)), [1.0])}, r"shape \(1, 5\); expected .* 6 columns"),
    "a vector": ({"constraints": (np.ones(6), [1.0])}, r"E of constraints has shape \(6,\)"),
    "no rows": ({"constraints": (np.ones((0, 6)), [])}, r"E of constraints has shape \(0, 6\)"),
    "right-hand side": ({"constraints": (np.ones((1, 6)), [1.0, 2.0])}, "e of constraints has 2 entries; expected 1"),
    "NaN": ({"constraints": (np.full((1, 6), np.nan), [1.0])}, "E of constraints has a nan at index"),
    "contradiction": (
        {"constraints": (np.vstack((np.ones(6), np.ones(6))), [1.0, 2.0])},
        r"contradict each other: no w brings \|E w - e\| below 0.707, and the w that .* misses equation . by 0.5",
    ),
    "impossible": ({"constraints": (np.zeros((1, 6)), [1.0])}, "contradict each other: no w brings .* below 1"),
}


@pytest.mark.parametrize("name", BAD_HUBER)
def test_huber_refuses_invalid_input_in_a_sentence(name):
    options, message = BAD_HUBER[name]
    with pytest.raises(sp.ProblemError, match=message):
        ConstrainedHuber(**options).fit(*with_outliers())


# -- robust least squares --------------------------------------------------------------------------------------------


def critical_radius(X, y):
    """The smallest radius for which w = 0 is the solution."""
    X, y = X - X.mean(axis=0), y - y.mean()
    return np.linalg.norm(X.T @ y) / np.linalg.norm(y) / np.sqrt(len(y))


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("radius", [1e-3, 0.05, 0.5, 2.0])
@pytest.mark.parametrize("data", [diabetes, with_outliers])
def test_robust_agrees_with_clarabel(data, radius, intercept):
    X, y = data()
    value = robust_by_clarabel(X, y, radius, intercept)
    w, exact = robust_by_ridge(*((X - X.mean(axis=0), y - y.mean()) if intercept else (X, y)), radius)
    model = RobustLeastSquares(radius, fit_intercept=intercept, tol=1e-10).fit(X, y)
    lower, upper = model.interval_
    assert lower <= exact * (1 + 1e-12)
    assert exact * (1 - 1e-12) <= upper
    assert upper - lower <= 1e-10 * upper
    assert value == pytest.approx(upper, rel=1e-7)  # that solver's own accuracy
    np.testing.assert_allclose(model.coef_, w, atol=1e-6 * max(1.0, np.abs(w).max()))
    error = np.sqrt(np.mean((model.predict(X) - y) ** 2))
    assert error + radius * np.linalg.norm(model.coef_) == pytest.approx(upper, rel=1e-12)


@given(
    st.integers(0, 10**6),
    st.sampled_from([(30, 4), (4, 30), (12, 12), (1, 3), (3, 1)]),
    st.sampled_from([1e-3, 0.1, 1.0, 10.0]),
    st.sampled_from([1e-2, 1e-6]),
)
def test_the_interval_holds_the_optimum(seed, shape, radius, tol):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal(shape) * rng.lognormal(size=shape[1])
    y = X @ rng.standard_normal(shape[1]) + rng.choice([0.0, 0.3]) * rng.standard_normal(shape[0])
    model = RobustLeastSquares(radius, fit_intercept=False, tol=tol).fit(X, y)
    lower, upper = model.interval_
    assert upper - lower <= tol * upper
    exact = robust_by_ridge(X, y, radius)[1]
    assert lower * (1 - 1e-12) <= exact
    assert exact <= upper * (1 + 1e-9)


@pytest.mark.parametrize("factor", [0.9, 0.99, 0.9999, 1.0, 1.0001, 1.5, 100.0])
def test_coefficients_vanish_from_the_critical_radius_on(factor):
    X, y = diabetes()
    model = RobustLeastSquares(factor * critical_radius(X, y)).fit(X, y)
    assert (np.linalg.norm(model.coef_) == 0.0) == (factor > 1.0) or factor == 1.0
    assert model.interval_.width <= 1e-8
    if factor > 1.0:
        assert model.interval_.upper == pytest.approx(y.std())


@pytest.mark.parametrize("radius", [0.01, 0.3, 1.0])
def test_the_interval_of_a_round_is_as_short_as_the_page_says(radius):
    """The ends of a solved round differ by at most max(theta |z|/Z, theta |w|/W) F, if no norm is below its width."""
    X, y = diabetes()
    data = Data.of(X, y, True)
    smoothing = Smoothing.first(data)._replace(width_z=0.1, width_w=0.01)
    result = sp.solve(smoothing.saddle(data, radius), tol=1e-9)
    z, w = np.linalg.norm(data.residual(result.x)), np.linalg.norm(result.x)
    assert z >= smoothing.width_z
    assert w >= smoothing.width_w
    lower, upper = bounds(data, radius, result.x, result.y)
    assert upper == pytest.approx(z + radius * w)
    assert 0.0 < upper - lower <= THETA * max(z / smoothing.Z, w / smoothing.W) * upper + 1e-8


@pytest.mark.parametrize("fitted", [True, False])
def test_the_robust_problem_has_the_constants_of_its_smoothing(fitted):
    X, y = diabetes()
    model = RobustLeastSquares(0.2)
    f = (model.fit(X[:30], y[:30]) if fitted else model).problem(X[:30], y[:30])
    Z, W, width_z, width_w, _ = model.smoothing_ if fitted else Smoothing.first(Data.of(X[:30], y[:30], True))
    assert f.mu_x == pytest.approx(0.2 * THETA / W)
    assert f.L_x == pytest.approx(0.2 * (THETA / W + 1 / width_w))
    assert f.mu_y == pytest.approx(1 / (THETA / Z + 1 / width_z))
    assert f.L_y == pytest.approx(Z / THETA)
    assert f.kappa_x == pytest.approx(1 + 2 / THETA)
    assert f.kappa_y == pytest.approx(1 + 2 / THETA)
    rng = np.random.default_rng(0)
    for function, size, scale in ((f.g, 10, W), (f.h, 30, 1.0)):
        for _ in range(20):
            x, d = scale * rng.exponential() * rng.standard_normal(size) / size**0.5, rng.standard_normal(size)
            step = 1e-5 * scale * d / np.linalg.norm(d)
            quotient = (function.grad(x + step) - function.grad(x - step)) @ step / (2 * step @ step)
            assert function.mu * (1 - 1e-6) <= quotient <= function.L * (1 + 1e-6)


@pytest.mark.parametrize("radius", [0.01, 0.3, 1.0, 5.0])
def test_the_adversary_attains_the_upper_end(radius):
    X, y = diabetes()
    model = RobustLeastSquares(radius).fit(X, y)
    moved = model.worst_case(X)
    assert np.sqrt(np.mean((model.predict(moved) - y) ** 2)) == pytest.approx(model.interval_.upper, rel=1e-12)
    assert np.sqrt(np.mean(((moved - X) ** 2).sum(axis=1))) == pytest.approx(radius)
    assert np.linalg.norm(model.adversary_) == pytest.approx(1.0)


@given(st.integers(0, 10**6))
def test_no_other_move_is_worse(seed):
    X, y = diabetes()
    model = RobustLeastSquares(0.3, tol=1e-4).fit(X, y)
    rng = np.random.default_rng(seed)
    moves = rng.standard_normal(X.shape) * rng.lognormal(sigma=2.0, size=(len(y), 1))
    moves *= 0.3 / np.sqrt(np.mean((moves**2).sum(axis=1)))
    assert np.sqrt(np.mean((model.predict(X + moves) - y) ** 2)) <= model.interval_.upper
    w, b = model.coef_ * rng.lognormal(sigma=0.3, size=10), model.intercept_ + rng.standard_normal()
    other = np.sqrt(np.mean((X @ w + b - y) ** 2)) + 0.3 * np.linalg.norm(w)
    assert other >= model.interval_.lower  # nor is any other choice of w and b better


@pytest.mark.parametrize("intercept", [True, False])
def test_robust_regression_of_sparse_data_is_that_of_dense_data(intercept):
    X, y = with_outliers()
    X = np.where(np.abs(X) > 1.5, X, 0.0)
    dense = RobustLeastSquares(0.2, fit_intercept=intercept, tol=1e-10).fit(X, y)
    model = RobustLeastSquares(0.2, fit_intercept=intercept, tol=1e-10).fit(sparse.csr_array(X), y)
    np.testing.assert_allclose(model.coef_, dense.coef_, atol=1e-7)
    assert model.interval_ == pytest.approx(dense.interval_)
    np.testing.assert_allclose(model.worst_case(sparse.csr_array(X)), dense.worst_case(X), atol=1e-6)


def test_a_perfect_fit_has_the_error_of_its_moves_alone():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((8, 20))
    y = rng.standard_normal(8)
    model = RobustLeastSquares(1e-3, fit_intercept=False).fit(X, y)
    np.testing.assert_allclose(model.predict(X), y, atol=1e-7)
    np.testing.assert_allclose(model.coef_, np.linalg.pinv(X) @ y, atol=1e-6)
    assert model.interval_.upper == pytest.approx(1e-3 * np.linalg.norm(model.coef_))


@pytest.mark.parametrize("y", [np.zeros(5), np.full(5, 3.0)])
def test_a_constant_target_has_zero_coefficients(y):
    X = np.arange(10.0).reshape(5, 2)
    model = RobustLeastSquares().fit(X, y)
    assert model.coef_.tolist() == [0.0, 0.0]
    assert model.predict(X) == pytest.approx(y)
    assert model.interval_ == (0.0, 0.0)
    assert ConstrainedHuber().fit(X, y).predict(X) == pytest.approx(y)


def test_constant_features_have_zero_coefficients():
    model = RobustLeastSquares().fit(np.ones((4, 2)), [1.0, 2.0, 3.0, 4.0])
    assert model.coef_.tolist() == [0.0, 0.0]
    assert model.interval_.upper == pytest.approx(np.std([1.0, 2.0, 3.0, 4.0]))


def test_a_small_radius_is_least_squares():
    X, y = diabetes()
    model = RobustLeastSquares(1e-7, tol=1e-6).fit(X, y)  # the data are rounded by 1e-16 |B|, 1e-9 of the radius
    np.testing.assert_allclose(model.coef_, LinearRegression().fit(X, y).coef_, atol=1e-3)


def test_a_radius_too_small_for_float64_warns_or_is_refused():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((20, 50))  # centred rows that depend on each other, and a perfect fit
    y = X[:, :5].sum(axis=1)
    with pytest.warns(ConvergenceWarning, match="is not solved"):
        model = RobustLeastSquares(1e-7).fit(X, y)
    assert 0.0 < model.interval_.lower < model.interval_.upper < 1.00001 * model.interval_.lower
    with pytest.raises(sp.ProblemError, match="radius 1e-20 is too small for double precision"):
        RobustLeastSquares(1e-20).fit(X, y)


@pytest.mark.parametrize("method", ["auto", "anderson-condat-vu", "dippa", "lpd-gs"])
def test_the_robust_problem_is_solved_by_any_method(method):
    X, y = diabetes()
    model = RobustLeastSquares(0.3, tol=1e-9).fit(X, y)
    result = sp.solve(model.problem(X, y), method=method, tol=1e-6)
    assert result.solved
    np.testing.assert_allclose(result.x * y.std(), model.coef_, atol=1e-3)
    np.testing.assert_allclose(RobustLeastSquares(0.3, method=method).fit(X, y).coef_, model.coef_, atol=1e-4)


BAD_ROBUST = {
    "radius": (
        {"radius": 0.0},
        "radius of RobustLeastSquares is 0; expected a positive number: for 0 use LinearRegression",
    ),
    "negative radius": ({"radius": -0.1}, "radius"),
    "NaN": ({"radius": np.nan}, "radius"),
    "tol": ({"tol": 0}, "tol of RobustLeastSquares"),
    "time": ({"max_seconds": 0.0}, "max_seconds"),
    "method": ({"method": "magic"}, "unknown method"),
}


@pytest.mark.parametrize("name", BAD_ROBUST)
def test_robust_least_squares_refuses_invalid_input_in_a_sentence(name):
    options, message = BAD_ROBUST[name]
    with pytest.raises(sp.ProblemError, match=message):
        RobustLeastSquares(**options).fit(*with_outliers())


def test_worst_case_refuses_other_samples_than_those_of_the_fit():
    X, y = with_outliers()
    with pytest.raises(sp.ProblemError, match="X has 3 samples; expected the 120 samples"):
        RobustLeastSquares().fit(X, y).worst_case(X[:3])


# -- both ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", [ConstrainedHuber(delta=20.0), RobustLeastSquares()], ids=["huber", "robust"])
class TestBoth:
    def test_scikit_learn_accepts_it(self, model):
        assert_estimator(model)

    @pytest.mark.parametrize("bad", [np.nan, np.inf])
    def test_bad_data_are_refused(self, model, bad):
        X, y = with_outliers()
        X[3, 2] = bad
        with pytest.raises(ValueError, match=r"NaN|infinity"):
            clone(model).fit(X, y)
        with pytest.raises(ValueError, match=r"NaN|infinity"):
            clone(model).problem(X, y)
        with pytest.raises(ValueError, match="inconsistent numbers of samples"):
            clone(model).fit(X[4:], y)

    def test_too_short_a_time_warns_and_leaves_finite_coefficients(self, model):
        X, y = diabetes()
        model = clone(model).set_params(max_seconds=1e-6)
        with pytest.warns(ConvergenceWarning, match="is not solved"):
            model.fit(X, y)
        assert np.isfinite(model.coef_).all()

    def test_a_tolerance_below_rounding_warns(self, model):
        X, y = diabetes()
        with pytest.warns(ConvergenceWarning, match="is not solved"):
            clone(model).set_params(tol=1e-18).fit(X, y)

    def test_it_survives_pickling(self, model):
        X, y = diabetes()
        model = clone(model).fit(X, y)
        again = pickle.loads(pickle.dumps(model))
        np.testing.assert_array_equal(again.predict(X), model.predict(X))
        assert again.certificate_ == model.certificate_


# -- exact arithmetic ------------------------------------------------------------------------------------------------


def exact_huber(X, y, E, e, l2, delta, guess):
    """The exact optimum w, in fractions: the conditions are linear once it is known which residuals are small."""
    rows = [[Fraction(float(a)) for a in row] for row in X]
    t, l2, delta = [Fraction(float(a)) for a in y], Fraction(l2), Fraction(delta)
    E, e = [[Fraction(float(a)) for a in row] for row in E], [Fraction(float(a)) for a in e]
    N, n, k = len(rows), len(rows[0]), len(E)
    r = [sum(a * b for a, b in zip(row, guess[0], strict=True)) + guess[1] - c for row, c in zip(rows, t, strict=True)]
    for _ in range(20):
        side = [0 if abs(a) <= delta else 1 if a > 0 else -1 for a in r]
        M = [[Fraction(0)] * (n + 1 + k) + [Fraction(0)] for _ in range(n + 1 + k)]
        for row, c, s in zip(rows, t, side, strict=True):
            wide = [*row, Fraction(1)]
            for i in range(n + 1):
                for j in range(n + 1):
                    M[i][j] += wide[i] * wide[j] / N * (s == 0)
                M[i][-1] += wide[i] / N * (c if s == 0 else -s * delta)
        for i in range(n):
            M[i][i] += l2
            for j in range(k):
                M[i][n + 1 + j] = M[n + 1 + j][i] = E[j][i]
        for j in range(k):
            M[n + 1 + j][-1] = e[j]
        u = solved([row[:-1] for row in M], [row[-1] for row in M])
        r = [sum(a * b for a, b in zip([*row, 1], u[: n + 1], strict=True)) - c for row, c in zip(rows, t, strict=True)]
        if side == [0 if abs(a) <= delta else 1 if a > 0 else -1 for a in r]:
            return u[:n]
    raise AssertionError("the pattern of residuals did not settle")


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("mean", [0.0, 1e4, 1e7])
@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_the_certificate_of_huber_regression_holds_exactly(kind, mean, scale):
    rng = np.random.default_rng(0)
    X, E, e = (
        scale * (rng.standard_normal((9, 3)) + mean),
        np.array([[1.0, 2.0, 3.0], [1.0, 2.0, 3.0 + 1e-6]]),
        [1.0, 0.9],
    )
    y = X @ np.array([0.2, 0.1, 0.3]) / scale + rng.standard_normal(9)
    l2 = 0.1 * scale**2
    model = ConstrainedHuber((E, np.array(e) / scale), delta=0.8, l2=l2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(kind(X), y)
    guess = [Fraction(float(a)) for a in model.coef_], Fraction(float(model.intercept_))
    truth = exact_huber(X, y, E, np.array(e) / scale, l2, 0.8, guess)
    square = sum((Fraction(float(a)) - b) ** 2 for a, b in zip(model.coef_, truth, strict=True))
    assert square <= Fraction(model.certificate_.distance) ** 2


def test_equations_that_are_nearly_dependent_are_an_assumption():
    X, y = with_outliers()
    first = np.eye(2, X.shape[1])
    exact = ConstrainedHuber((np.vstack((first, first.sum(axis=0))), [1.0, 2.0, 3.0])).fit(X, y)
    assert exact.certificate_.assumes == ()
    near = np.vstack((first, first[0] + 1e-11 * first[1]))
    found = ConstrainedHuber((near, [1.0, 2.0, 1.0])).fit(X, y)
    assert len(found.independent_) == 2
    assert "the equations 2 of E w = e follow from the others" in found.certificate_.assumes[0]
