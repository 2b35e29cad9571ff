"""Losses that are not smooth: hinge, absolute, quantile and epsilon-insensitive, exactly and with a proof."""

import warnings
from fractions import Fraction

import cvxpy as cp
import numpy as np
import pytest
from estimators import assert_estimator
from exact import centred_columns, distance, exact
from exact_losses import exact_weights
from scipy import sparse
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import QuantileRegressor
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

import saddlepoint as sp
from saddlepoint.apps import RiskClassifier, RiskRegressor, WassersteinClassifier
from saddlepoint.apps.piecewise_linear import PiecewiseLinear
from saddlepoint.apps.structure import Fused, Graph, Groups, Norms
from saddlepoint.problems.distance_on_face import distance_on_face

EXACT = ["hinge", "absolute", "quantile", "epsilon_insensitive"]


def drawn(rng):
    """A model and data of a few samples, on all scales."""
    loss = str(rng.choice(EXACT))
    N, n = int(rng.integers(4, 14)), int(rng.integers(1, 5))
    X = rng.standard_normal((N, n)) * 10.0 ** rng.uniform(-1, 1) + rng.choice([0.0, 10.0])
    options = {
        "l2": 10.0 ** rng.uniform(-3, 0),
        "l1": float(rng.choice([0.0, 10.0 ** rng.uniform(-3, -1)])),
        "fit_intercept": bool(rng.random() < 0.5),
        "intercept_scaling": 2.0,
        "tol": 10.0 ** rng.uniform(-8, -3),
    }
    if loss == "hinge":
        y = rng.integers(0, 2, N)
        y[:2] = 0, 1
        return RiskClassifier(loss, **options), X, y
    scales = {"quantile": float(rng.uniform(0.1, 0.9)), "epsilon": 10.0 ** rng.uniform(-2, 0)}
    return RiskRegressor(loss, **options, **scales), X, X[:, 0] + rng.standard_normal(N) + 3.0


def true_distance(model, X, y):
    """|w - w*| of the fitted model in fractions; None if the faces near its point are not those of the solution."""
    result, D, epsilon = model.result_, exact(X), 0.0
    if model.loss == "hinge":
        signs = np.where(y == 1, 1.0, -1.0)
        t, lower, upper = (
            [Fraction(int(s)) for s in signs],
            np.where(signs > 0, -1.0, 0.0),
            np.where(signs > 0, 0.0, 1.0),
        )
    else:
        t = exact(y)
        if model.fit_intercept:
            D, t = centred_columns(D), [row[0] for row in centred_columns([[v] for v in t])]
        q = model.quantile if model.loss == "quantile" else None
        lower, upper = np.full(len(y), -1.0 if q is None else -q), np.full(len(y), 1.0 if q is None else 1.0 - q)
        epsilon = model.epsilon if model.loss == "epsilon_insensitive" else 0.0
    if model.fit_intercept:
        D = [[*row, Fraction(2)] for row in D]
    truth = exact_weights(D, t, lower, upper, epsilon, model.l2, model.l1, {X.shape[1]}, result.x, result.y)
    return None if truth is None else distance(result.x, truth)


def compare(seed):
    """The true distance of a drawn model, or None, after it was compared with the certified one."""
    model, X, y = drawn(np.random.default_rng(seed))
    model.fit(X, y)
    assert model.result_.solved, model.result_.message
    true = true_distance(model, X, y)
    if true is not None:
        assert true <= model.certificate_.distance_x
    return true


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_distance_is_below_the_certified_one_in_fractions():
    true = [compare(seed) for seed in range(40)]
    assert sum(found is not None for found in true) > 30


@pytest.mark.slow
def test_hinge_is_that_of_liblinear():
    X, y = load_breast_cancer(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    model = RiskClassifier("hinge", 1e-2).fit(X, y)
    peer = LinearSVC(loss="hinge", C=100.0 / len(y), tol=1e-10, max_iter=10**6).fit(X, y)
    np.testing.assert_allclose(model.coef_, peer.coef_, atol=1e-8)
    np.testing.assert_allclose(model.intercept_, peer.intercept_, atol=1e-8)
    assert model.certificate_.distance_x < 1e-9  # far below what the root of the gap proves
    assert np.sqrt(2 * model.certificate_.gap / (1e-2 * len(y))) > 1e-8
    dense, thin = RiskClassifier("hinge").fit(X, y), RiskClassifier("hinge").fit(sparse.csr_array(X), y)
    np.testing.assert_allclose(dense.coef_, thin.coef_, atol=1e-8)


@pytest.mark.slow
def test_quantile_regression_is_that_of_scikit_learn():
    X, t = load_diabetes(return_X_y=True)
    X, t = StandardScaler().fit_transform(X)[:150], t[:150] / 77.0
    peer = QuantileRegressor(quantile=0.8, alpha=0.01, fit_intercept=False, solver="highs").fit(X, t)
    model = RiskRegressor("quantile", 1e-9, l1=0.01, quantile=0.8, fit_intercept=False, tol=1e-4).fit(X, t)
    np.testing.assert_allclose(model.coef_, peer.coef_, atol=1e-6)


def by_clarabel(loss, X, y, l2, l1, groups, fused):
    w = cp.Variable(X.shape[1])
    r = y - X @ w
    risk = {
        "hinge": lambda: cp.pos(1 - cp.multiply(np.where(y == 1, 1.0, -1.0), X @ w)),
        "absolute": lambda: cp.abs(r),
        "quantile": lambda: cp.maximum(0.3 * r, -0.7 * r),
        "epsilon_insensitive": lambda: cp.pos(cp.abs(r) - 0.2),
        "squared": lambda: 0.5 * cp.square(r),
        "logistic": lambda: cp.logistic(cp.multiply(np.where(y == 1, -1.0, 1.0), X @ w)),
    }[loss]()
    value = cp.sum(risk) / len(y) + l2 / 2 * cp.sum_squares(w) + l1 * cp.norm1(w)
    value += sum(weight * cp.norm(w[part]) for part, weight in groups) + fused * cp.norm1(cp.diff(w))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Clarabel says that it is not sure of the last digit
        cp.Problem(cp.Minimize(value)).solve(solver="CLARABEL", tol_gap_abs=1e-13, tol_gap_rel=1e-13, tol_feas=1e-12)
    return w.value


def small(loss, N=40, n=6):
    rng = np.random.default_rng(3)
    X = rng.standard_normal((N, n))
    t = X @ rng.standard_normal(n) + 0.5 * rng.standard_normal(N)
    return X, (t > 0).astype(int) if loss in ("hinge", "logistic") else t


def model_of(loss, **options):
    options = {"fit_intercept": False} | options
    if loss in ("hinge", "logistic"):
        return RiskClassifier(loss, 0.05, **options)
    return RiskRegressor(loss, 0.05, quantile=0.3, epsilon=0.2, **options)


@pytest.mark.slow
@pytest.mark.parametrize("loss", [*EXACT, "squared", "logistic"])
@pytest.mark.parametrize("l1", [0.0, 0.05])
def test_groups_are_those_of_clarabel(loss, l1):
    X, y = small(loss)
    groups = [[0, 1], [2, 4]]
    model = model_of(loss, l1=l1, groups=groups, group_weight=[0.1, 0.2]).fit(X, y)
    assert model.result_.solved
    exact = by_clarabel(loss, X, y, 0.05, l1, [([0, 1], 0.1), ([2, 4], 0.2)], 0.0)
    np.testing.assert_allclose(model.coef_.ravel(), exact, atol=2e-6)
    labels = model_of(loss, l1=l1, groups=["b", "b", "c", "a", "c", "d"], group_weight=[0.0, 0.1, 0.2, 0.0]).fit(X, y)
    np.testing.assert_allclose(labels.coef_, model.coef_, atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["squared", "logistic"])
@pytest.mark.parametrize("l1", [0.0, 0.02])
def test_the_fused_lasso_is_that_of_clarabel(loss, l1):
    X, y = small(loss)
    model = model_of(loss, l1=l1, structure=Fused(0.05)).fit(X, y)
    assert model.result_.solved
    exact = by_clarabel(loss, X, y, 0.05, l1, [], 0.05)
    np.testing.assert_allclose(model.coef_.ravel(), exact, atol=2e-6)
    assert model.certificate_.distance_x >= np.linalg.norm(model.coef_ - exact) - 1e-6
    pairs = model_of(loss, l1=l1, structure=Fused(0.05, [(i, i + 1) for i in range(5)])).fit(X, y)
    np.testing.assert_array_equal(pairs.coef_, model.coef_)


@pytest.mark.slow
def test_overlapping_groups_are_exact_with_the_width_zero():
    X, y = small("squared")
    groups = [[0, 1, 2], [2, 3, 4]]
    model = model_of("squared", structure=Groups(groups, 0.3, width=0.0)).fit(X, y)
    exact = by_clarabel("squared", X, y, 0.05, 0.0, [(part, 0.3) for part in groups], 0.0)
    np.testing.assert_allclose(model.coef_, exact, atol=2e-6)
    rows = model_of("squared", structure=Norms(np.diff(np.eye(6), axis=0), 0.05, width=0.0)).fit(X, y)
    np.testing.assert_allclose(rows.coef_, model_of("squared", structure=Fused(0.05)).fit(X, y).coef_, atol=1e-6)


@pytest.mark.slow
def test_an_exact_loss_may_have_positive_weights_and_several_classes():
    X, _ = small("hinge")
    labels = np.digitize(X @ np.arange(6.0), [-3.0, 3.0])
    model = RiskClassifier("hinge", 0.05, positive=True).fit(X, labels)
    assert model.coef_.shape == (3, 6)
    assert (model.coef_ >= 0.0).all()
    assert not hasattr(model, "predict_proba")
    w = cp.Variable(7, nonneg=True)
    free = cp.Variable()
    margin = cp.multiply(np.where(labels == 0, 1.0, -1.0), X @ w[:6] + free)
    value = cp.sum(cp.pos(1 - margin)) / len(X) + 0.025 * (cp.sum_squares(w) + free**2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Clarabel says that it is not sure of the last digit
        cp.Problem(cp.Minimize(value)).solve(solver="CLARABEL", tol_gap_abs=1e-13, tol_gap_rel=1e-13, tol_feas=1e-12)
    np.testing.assert_allclose(model.coef_[0], w.value[:6], atol=1e-6)


@pytest.mark.slow
def test_scikit_learn_accepts_it():
    assert_estimator(RiskRegressor("epsilon_insensitive", 0.1))


def test_the_face_proves_what_the_gap_does_not():
    rng = np.random.default_rng(0)
    D = rng.standard_normal((20, 3))
    signs = np.sign(D[:, 0] + rng.standard_normal(20))
    f = sp.Saddle(sp.Quadratic(1e-3), sp.Quadratic(0.0, -np.ones(20)) + sp.Box(0.0, 1.0), -(D * signs[:, None]).T)
    x, y = PiecewiseLinear(f, 1e-3).start(1e-9)
    proof = f.certificate(x, y)
    assert distance_on_face(f, x, y, proof) < 1e-3 * proof.distance_x
    far = distance_on_face(f, x + 1.0, y, f.certificate(x + 1.0, y))
    assert np.sqrt(3.0) <= far + 1e-8 < np.inf
    free = np.flatnonzero((y > 0.0) & (y < 1.0))
    both = f.A.matrix()[:, free[:2]].mean(axis=1, keepdims=True)
    h = sp.Quadratic(0.0, -np.ones(21)) + sp.Box(0.0, 1.0)
    again = sp.Saddle(sp.Quadratic(1e-3), h, np.hstack((f.A.matrix(), both)))  # three columns are linearly dependent
    shared = np.append(y, 1e-3)
    shared[free[:2]] -= 0.5e-3
    loose = distance_on_face(again, x, shared, again.certificate(x, shared))
    assert 1e3 * distance_on_face(f, x, y, proof) < loose < 1e-2 * np.linalg.norm(x)  # only a root is proven
    smooth = sp.Saddle(sp.Quadratic(1.0), sp.Quadratic(1.0), np.eye(2))
    assert distance_on_face(smooth, np.zeros(2), np.zeros(2), smooth.certificate(np.zeros(2), np.zeros(2))) == np.inf


@pytest.mark.parametrize("moved", [0.0, 1e-10, 1e-9])
def test_samples_that_occur_several_times_leave_a_face_that_proves(moved):
    rng = np.random.default_rng(3)
    D = rng.standard_normal((20, 3))
    signs = np.sign(D[:, 0] + rng.standard_normal(20))

    def problem(D, signs):
        h = sp.Quadratic(0.0, -np.ones(len(signs))) + sp.Box(0.0, 1.0)
        return sp.Saddle(sp.Quadratic(1e-3), h, -(D * signs[:, None]).T)

    f = problem(D, signs)
    x, y = PiecewiseLinear(f, 1e-3).start(1e-9)
    free = np.flatnonzero((y > 0.0) & (y < 1.0))
    exact = distance_on_face(f, x, y, f.certificate(x, y))
    assert exact < 1e-10
    again = problem(np.vstack((D, D[free])), np.append(signs, signs[free]))  # every free column occurs twice
    shared = np.append(y, 0.25 * y[free])
    shared[free] *= 0.75
    point = x + moved * np.array([2.0, -1.0, 2.0]) / 3.0
    bound = distance_on_face(again, point, shared, again.certificate(point, shared))
    assert moved - exact <= bound <= 1e3 * (moved + exact)


@pytest.mark.parametrize("metric", ["euclidean", "max"])
@pytest.mark.parametrize("radius", [1.0, 3.0, 100.0])
def test_a_model_of_which_only_the_intercept_is_left_is_solved(metric, radius):
    """All samples of a class are then at the kink of the hinge loss, where the dual solution is not unique."""
    rng = np.random.default_rng(11)
    X = rng.standard_normal((60, 4))
    y = (X[:, 0] + 0.3 * rng.standard_normal(60) > 0.8).astype(int)
    model = WassersteinClassifier(radius, "hinge", metric=metric).fit(X, y)
    D = np.column_stack((X, np.ones(60)))
    assert not model.coef_.any()
    assert model.result_.solved
    assert model.certificate_.distance_x < 1e-2 * 1e-6 * np.sqrt(60) / np.linalg.norm(D, 2)
    assert abs(abs(model.intercept_[0]) - 1.0) <= model.certificate_.distance_x + 1e-15


FEW = np.array([[0.0, 1.0, 2.0], [1.0, 0.0, 1.0], [2.0, 2.0, 0.0], [3.0, 1.0, 1.0]])


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (RiskClassifier("hinge", structure=Graph([(0, 1)])), "the loss 'hinge' is not smooth; expected structure=None"),
        (RiskRegressor("quantile", quantile=1.0), "quantile is 1; expected a number between 0 and 1"),
        (RiskRegressor("quantile", quantile=0.0), "quantile is 0.0; expected a positive number"),
        (RiskRegressor("epsilon_insensitive", epsilon=-1.0), "epsilon is -1; expected a finite number that"),
        (RiskRegressor(groups=3), "groups is 3; expected a label for each feature, or lists of features"),
        (RiskRegressor(groups=[0, 1]), "groups has 2 labels; expected one for each of the 3 features"),
        (RiskRegressor(groups=[[0, 1], [1, 2]]), "a feature is in groups 0 and 1; expected groups without common"),
        (RiskRegressor(groups=[[0, 0]]), "a feature is in group 0 twice; expected groups without common"),
        (RiskRegressor(groups=[[0], [3]]), "group 1 of groups holds 3; expected features from 0 to 2"),
        (RiskRegressor(groups=[[0], []]), "group 1 of groups is ..; expected a list of one feature or more"),
        (RiskRegressor(groups=[[0]], positive=True), "positive=True with groups; expected one of the two"),
        (RiskRegressor(groups=[[0]], group_weight=-1.0), "group_weight is -1.0; expected a number that is not"),
        (RiskRegressor(groups=[[0]], group_weight=[1.0, 2.0]), "group_weight is .*; expected .* one for each of the 1"),
        (RiskRegressor(structure=Fused(0.0)), "strength is 0.0; expected a positive number"),
        (RiskRegressor(structure=Fused(1.0, [])), "Fused has no edges; expected at least one pair of features"),
        (RiskRegressor(structure=Fused(1.0, [(0, 3)])), "edges of Fused holds 3; expected features from 0 to 2"),
        (RiskRegressor(structure=Groups([[0]], width=-1.0)), "width of the structure is -1; expected a finite number"),
    ],
)  # fmt: skip
def test_parameters_that_make_no_sense_are_refused(model, message):
    with pytest.raises(sp.ProblemError, match=message):
        model.fit(FEW, [0, 1, 0, 1])


def test_an_unsolved_problem_warns():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 3))
    with pytest.warns(ConvergenceWarning, match="is not solved"):
        model = RiskClassifier("hinge", 1e-9, tol=1e-30, max_seconds=0.05).fit(X, X[:, 0] > 0)
    assert not model.result_.solved


@pytest.mark.parametrize(("seed", "weight"), [(1, 0.05), (2, 0.2), (4, 0.05)])
def test_the_hinge_loss_with_norms_of_groups_starts_at_the_solution(seed, weight):
    rng = np.random.default_rng(seed)
    D = rng.standard_normal((400, 24))
    labels = D[:, :8] @ rng.standard_normal(8) + 0.5 * rng.standard_normal(400) > 0.0
    groups = np.arange(24) // 4
    model = sp.apps.RiskClassifier("hinge", 1e-2, groups=groups, group_weight=weight, fit_intercept=False, tol=1e-5)
    model.fit(D, labels)
    assert model.result_.solved
    assert max(model.result_.calls.values()) == 0  # Newton's method has found it, and it was certified as it is
    used = np.add.reduceat(model.coef_[0] ** 2, np.arange(0, 24, 4)) > 0.0
    assert used[:2].all()
    if weight == 0.2:
        assert not used[2:].any()
