"""Risk minimisation: scikit-learn's own checks, constants, agreement with independent solvers, structures, errors."""

import pickle
import warnings

import numpy as np
import pytest
from estimators import assert_estimator
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.image import grid_to_graph
from sklearn.linear_model import ElasticNet, LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.preprocessing import StandardScaler

import saddlepoint as sp
from saddlepoint.apps.risk import RiskClassifier, RiskRegressor
from saddlepoint.apps.structure import Graph, Groups, Norms, Squares
from saddlepoint.parts.functions.risk import gram_bounds

pytestmark = pytest.mark.slow  # `make check` runs the examples in the docstrings of the applications
RNG = np.random.default_rng(0)
CHAIN = np.array([(i, i + 1) for i in range(9)])
OVERLAP = [[0, 1, 2, 3], [2, 3, 4, 5], [5, 6], [6, 7, 8, 9, 0]]
SECOND = np.diff(np.eye(10), 2, axis=0)
STRUCTURES = {
    "none": None,
    "graph": Graph(CHAIN, 0.3),
    "groups": Groups(OVERLAP, 0.3, 0.2),
    "squares": Squares(SECOND, 0.5),
    "trend": Norms(SECOND, 0.1, 0.05),
    "norms of rows": Norms(SECOND, 0.1, 0.05, labels=[0, 0, 1, 1, 2, 2, 3, 3]),
}
LOSSES = ["logistic", "smoothed_hinge", "squared", "huber"]


def standard(load):
    X, y = load(return_X_y=True)
    return StandardScaler().fit_transform(X), y


def estimator(loss, structure=None, **options):
    if loss in ("logistic", "smoothed_hinge"):
        return RiskClassifier(loss, structure=structure, **({"width": 0.5} | options))
    return RiskRegressor(loss, structure=structure, **({"delta": 0.5} | options))


def data(loss):
    """Ten features of one of scikit-learn's own data sets, and targets of about 1."""
    if loss in ("logistic", "smoothed_hinge"):
        X, y = standard(load_breast_cancer)
        return X[:200, :10], y[:200]
    X, t = standard(load_diabetes)
    return X[:200], t[:200] / 77.0


@pytest.mark.parametrize("model", [RiskClassifier("hinge", 0.1), RiskRegressor()], ids=str)
def test_scikit_learn_accepts_it(model):
    assert_estimator(model)


# -- constants -------------------------------------------------------------------------------------------------------


def hessian(function, x, step=1e-4):
    columns = [(function.grad(x + step * e) - function.grad(x - step * e)) / (2 * step) for e in np.eye(x.size)]
    return np.array(columns)


@pytest.mark.parametrize("structure", STRUCTURES)
@pytest.mark.parametrize("loss", LOSSES)
def test_mu_and_L_bound_the_curvature(loss, structure):
    f = estimator(loss, STRUCTURES[structure]).problem(*data(loss))
    rng = np.random.default_rng(1)
    for function, size, mu, L in ((f.g, f.shape[0], f.mu_x, f.L_x), (f.h, f.shape[1], f.mu_y, f.L_y)):
        for scale in (0.01, 0.1, 1.0):
            H = hessian(function, scale * rng.standard_normal(size))
            values = np.linalg.eigvalsh((H + H.T) / 2)
            assert values[0] >= mu * (1 - 1e-6)
            assert values[-1] <= L * (1 + 1e-6)


def test_constants_are_those_of_the_docstring():
    X, t = data("squared")
    D = X - X.mean(axis=0)
    values = np.linalg.eigvalsh(D.T @ D) / len(D)
    f = RiskRegressor(l2=0.1, structure=Graph(CHAIN, 4.0)).problem(X, t)
    assert (f.mu_x, f.L_x) == pytest.approx((values[0] + 0.1, values[-1] + 0.1))
    assert (f.mu_y, f.L_y) == (0.25, 0.25)
    f = RiskRegressor(l2=0.1, structure=Groups(OVERLAP, 0.2, 0.05)).problem(X, t)
    s = 0.1 / (2 * 2)  # |K|_oo = 1, and |K|_1 = 2, since no feature is in more than two groups
    assert (f.mu_x, f.L_x) == pytest.approx((values[0] + 0.05, values[-1] + 0.1))
    assert (f.mu_y, f.L_y) == pytest.approx((1 / (s + 0.2 / 0.05), 1 / s))
    labels = RNG.integers(0, 2, len(D))
    for loss, curvature in (("logistic", 0.25), ("smoothed_hinge", 2.0)):
        f = RiskClassifier(loss, l2=0.1, width=0.5, fit_intercept=False).problem(D, labels)
        assert (f.mu_x, f.L_x) == pytest.approx((0.1, 0.1 + curvature * values[-1]))


@pytest.mark.parametrize("structure", ["groups", "trend", "norms of rows"])
def test_moving_a_part_of_the_ridge_leaves_the_model_alone(structure):
    X, t = data("squared")
    s = STRUCTURES[structure]
    f = RiskRegressor(l2=0.1, structure=s, fit_intercept=False).problem(X, t)
    K = s.matrix(10).toarray()
    labels = s._row_labels(len(K))
    for scale in (0.01, 1.0):
        w = scale * RNG.standard_normal(10)
        z = K @ w
        norms = np.array([np.linalg.norm(z[labels == g]) for g in np.unique(labels)])
        huber = np.where(norms <= s.width, norms**2 / (2 * s.width), norms - s.width / 2)
        model = ((X @ w - t) ** 2).mean() / 2 + 0.05 * w @ w + s.strength * huber.sum()
        assert f.g(w) + f.h.of(z) == pytest.approx(model, rel=1e-12)
        y = f.h.of.grad(z)  # where the maximum over y is attained
        assert f.g(w) + z @ y - f.h(y) == pytest.approx(model, rel=1e-12)


# -- sparse weights ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_agrees_with_the_elastic_net(fit_intercept, positive):
    X, t = standard(load_diabetes)
    ours = RiskRegressor(l1=5.0, l2=0.1, positive=positive, fit_intercept=fit_intercept, tol=1e-9).fit(X + 3.0, t)
    theirs = ElasticNet(5.1, l1_ratio=5.0 / 5.1, positive=positive, fit_intercept=fit_intercept, tol=1e-14)
    theirs.set_params(max_iter=100_000).fit(X + 3.0, t)
    assert 0 < np.count_nonzero(theirs.coef_) < 10
    np.testing.assert_array_equal(ours.coef_ == 0.0, theirs.coef_ == 0.0)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-6)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-5)


def test_agrees_with_sparse_logistic_regression():
    X, y = standard(load_breast_cancer)
    ours = RiskClassifier(l1=0.02, l2=0.01, fit_intercept=False, tol=1e-8).fit(X, y)
    C, ratio = 1 / (len(X) * 0.03), 2 / 3
    theirs = LogisticRegression(C=C, l1_ratio=ratio, solver="saga", fit_intercept=False, tol=1e-10, max_iter=20_000)
    theirs.fit(X, y)
    assert 0 < np.count_nonzero(theirs.coef_) < 30
    np.testing.assert_array_equal(ours.coef_ == 0.0, theirs.coef_ == 0.0)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-6)


def test_l1_and_nonnegativity_leave_the_intercept_alone():
    X, y = standard(load_breast_cancer)
    model = RiskClassifier(l1=0.05, positive=True, intercept_scaling=3.0, tol=1e-8).fit(-np.abs(X), y)
    w, b = model.coef_[0], model.intercept_[0] / 3.0
    margins = np.where(y == 1, 1.0, -1.0) * (-np.abs(X) @ w + 3.0 * b)
    slopes = -np.where(y == 1, 1.0, -1.0) / (1 + np.exp(margins)) / len(y)
    assert 3.0 * slopes.sum() + 1e-2 * b == pytest.approx(0.0, abs=1e-6)
    gradient = -np.abs(X).T @ slopes + 1e-2 * w + 0.05
    assert w.min() >= 0.0
    np.testing.assert_allclose(gradient[w > 0.0], 0.0, atol=1e-6)
    assert gradient.min() >= -1e-6


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_many_features_are_solved_by_few(loss, kind):
    """With more features than one takes at once: the optimality conditions, written out."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((80, 900)) * (rng.random((80, 900)) < 0.3)
    score = X[:, :5].sum(axis=1)
    t = score + 0.1 * rng.standard_normal(80) if loss in ("squared", "huber") else score > 0.0
    given = sparse.csr_array(X) if kind == "sparse" else X
    model = estimator(loss, l1=0.05, l2=0.01, fit_intercept=False, tol=1e-8).fit(given, t)
    w = np.ravel(model.coef_)
    f = model.problem(X, t)
    smooth = f.g.replace(simple=None).grad(w)
    assert 0 < np.count_nonzero(w) < 400
    np.testing.assert_allclose(smooth[w != 0.0], -0.05 * np.sign(w[w != 0.0]), atol=1e-7)
    assert np.abs(smooth).max() <= 0.05 + 1e-7
    assert model.result_.solved
    assert model.result_.iterations <= 5  # the start on few features is nearly the solution


def test_an_l1_norm_with_a_structure_is_optimal_in_both_parts():
    """Neighbours with similar weights, most of them zero: optimality in both parts."""
    X, t = data("squared")
    model = RiskRegressor(l1=0.1, l2=0.01, structure=Graph(CHAIN, 0.3), fit_intercept=False, tol=1e-9).fit(X, t)
    K = Graph(CHAIN).matrix(10).toarray()
    w = model.coef_
    smooth = X.T @ (X @ w - t) / len(X) + 0.01 * w + 0.3 * K.T @ (K @ w)
    assert 0 < np.count_nonzero(w) < 10
    np.testing.assert_allclose(smooth[w != 0.0], -0.1 * np.sign(w[w != 0.0]), atol=1e-7)
    assert np.abs(smooth).max() <= 0.1 + 1e-7


# -- agreement with other solvers ------------------------------------------------------------------------------------


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("l2", [1e-3, 1.0])
def test_agrees_with_ridge(l2, fit_intercept):
    X, t = standard(load_diabetes)
    ours = RiskRegressor(l2=l2, fit_intercept=fit_intercept, tol=1e-9).fit(X + 3.0, t)
    theirs = Ridge(alpha=len(X) * l2, fit_intercept=fit_intercept, solver="cholesky").fit(X + 3.0, t)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-6)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-6)


@pytest.mark.parametrize("load", [load_breast_cancer, load_digits])
def test_agrees_with_logistic_regression(load):
    X, y = standard(load)
    X, y = X[y < 2], y[y < 2]
    ours = RiskClassifier(l2=1e-2, fit_intercept=False, tol=1e-8).fit(X, y)
    for solver in ("lbfgs", "newton-cholesky"):
        C = 1 / (len(X) * 1e-2)
        theirs = LogisticRegression(C=C, fit_intercept=False, solver=solver, tol=1e-10, max_iter=10_000).fit(X, y)
        np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-6)
        np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-6)


@pytest.mark.parametrize("scaling", [1.0, 5.0])
def test_agrees_with_liblinear_and_its_penalised_intercept(scaling):
    X, y = standard(load_breast_cancer)
    ours = RiskClassifier(l2=1e-2, intercept_scaling=scaling, tol=1e-8).fit(X, y)
    theirs = LogisticRegression(
        C=1 / (len(X) * 1e-2), intercept_scaling=scaling, solver="liblinear", tol=1e-10, max_iter=10_000
    ).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-6)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-6)


def test_several_classes_are_one_problem_each():
    X, y = standard(load_wine)
    names = np.array(["barolo", "grignolino", "barbera"])[y]
    ours = RiskClassifier(l2=1e-2, tol=1e-8).fit(X, names)
    one = LogisticRegression(C=1 / (len(X) * 1e-2), solver="liblinear", tol=1e-10, max_iter=10_000)
    theirs = OneVsRestClassifier(one).fit(X, names)
    assert ours.classes_.tolist() == theirs.classes_.tolist() == sorted(set(names))
    np.testing.assert_allclose(ours.coef_, [e.coef_[0] for e in theirs.estimators_], atol=1e-6)
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-6)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-6)
    assert (ours.predict(X) == theirs.predict(X)).all()
    assert [r.certificate for r in ours.result_] == ours.certificate_
    assert len(ours.result_) == 3
    assert ours.n_iter_ == sum(r.iterations for r in ours.result_)
    for k, label in enumerate(ours.classes_):  # each class has a problem of its own
        w = sp.solve(ours.problem(X, names, label), tol=1e-9).x
        np.testing.assert_allclose(w, [*ours.coef_[k], ours.intercept_[k]], atol=1e-7)


def test_the_squared_loss_with_a_graph_has_its_closed_form():
    X, t = standard(load_diabetes)
    adjacency = sparse.random_array((10, 10), density=0.4, rng=np.random.default_rng(3))
    adjacency = (adjacency + adjacency.T).tocsr()
    laplacian = np.diag(adjacency.sum(axis=0)) - adjacency.toarray()
    model = RiskRegressor(l2=0.1, structure=Graph(adjacency, 2.0), tol=1e-9).fit(X - 7.0, t)
    N = len(X)
    w = np.linalg.solve(X.T @ X / N + 0.1 * np.eye(10) + 2.0 * laplacian, X.T @ (t - t.mean()) / N)
    np.testing.assert_allclose(model.coef_, w, atol=1e-6)
    np.testing.assert_allclose(model.predict(X - 7.0), X @ w + t.mean(), atol=1e-6)


def reference(loss, structure, X, y, l2, width):
    """(w, b) of the model by CVXPY and Clarabel, where a rounded function is written as an infimal convolution."""
    import cvxpy as cp

    w, b, extra = cp.Variable(X.shape[1]), cp.Variable(), cp.Variable(len(X))
    scores = X @ w + b
    ridge = l2 / 2 * cp.sum_squares(w)
    if loss in ("logistic", "smoothed_hinge"):
        margin = cp.multiply(2.0 * y - 1.0, scores)
        ridge += l2 / 2 * b**2
        if loss == "logistic":
            risk = cp.sum(cp.logistic(-margin))
        else:
            risk = cp.sum(cp.pos(extra)) + cp.sum_squares(1 - margin - extra) / (2 * width)
    elif loss == "squared":
        risk = cp.sum_squares(scores - y) / 2
    else:
        risk = cp.sum(cp.huber(scores - y, width)) / 2
        ridge += l2 / 2 * cp.square(b - y.mean() + X.mean(axis=0) @ w)
    objective = risk / len(X) + ridge
    if isinstance(structure, Graph | Squares):
        K = structure.matrix(X.shape[1]).toarray()
        objective += structure.strength / 2 * cp.sum_squares(K @ w)
    elif structure is not None:
        z = structure.matrix(X.shape[1]).toarray() @ w
        v, labels = cp.Variable(z.shape[0]), structure._row_labels(z.shape[0])
        tips = sum(cp.norm(v[np.flatnonzero(labels == g)]) for g in np.unique(labels))
        objective += structure.strength * (tips + cp.sum_squares(z - v) / (2 * structure.width))
    problem = cp.Problem(cp.Minimize(objective))
    for tol in (1e-12, 1e-11, 1e-10):  # the best that it can reach
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # "may be inaccurate"
            problem.solve(solver=cp.CLARABEL, **dict.fromkeys(("tol_gap_abs", "tol_gap_rel", "tol_feas"), tol))
        if problem.status == "optimal":
            break
    assert problem.status == "optimal"
    return w.value, b.value


@pytest.mark.parametrize("structure", STRUCTURES)
@pytest.mark.parametrize("loss", LOSSES)
def test_agrees_with_clarabel(loss, structure):
    X, y = data(loss)
    model = estimator(loss, STRUCTURES[structure], l2=0.05, tol=1e-8).fit(X, y)
    assert model.result_.solved
    w, b = reference(loss, STRUCTURES[structure], X, y, 0.05, 0.5)
    np.testing.assert_allclose(model.coef_.ravel(), w, atol=1e-6)
    np.testing.assert_allclose(model.intercept_, b, atol=1e-6)


@pytest.mark.parametrize("method", ["dippa", "lpd-gs", "apdg", sp.Anderson(sp.IMEX())])
def test_any_method_solves_the_problem(method):
    X, y = data("logistic")
    model = RiskClassifier(l2=0.1, structure=STRUCTURES["groups"], method=method, tol=1e-8).fit(X, y)
    expected = RiskClassifier(l2=0.1, structure=STRUCTURES["groups"], tol=1e-8).fit(X, y)
    np.testing.assert_allclose(model.coef_, expected.coef_, atol=1e-7)
    assert clone(model).get_params()["method"] == method


# -- data and accuracy -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("structure", ["none", "graph", "groups"])
@pytest.mark.parametrize("loss", LOSSES)
def test_sparse_is_dense(loss, structure, fit_intercept):
    X, y = data(loss)
    X = np.where(np.abs(X) > 0.7, X, 0.0)
    model = estimator(loss, STRUCTURES[structure], l2=0.1, fit_intercept=fit_intercept, tol=1e-9)
    dense = clone(model).fit(X, y)
    for kind in (sparse.csr_array, sparse.csc_matrix):
        other = clone(model).fit(kind(X), y)
        assert other.result_.solved
        np.testing.assert_allclose(other.coef_, dense.coef_, atol=1e-8)
        np.testing.assert_allclose(other.intercept_, dense.intercept_, atol=1e-8)
        np.testing.assert_allclose(other.predict(kind(X)), dense.predict(X), atol=1e-7)
    f, g = model.problem(X, y), model.problem(sparse.csr_array(X), y)
    w, v = RNG.standard_normal(f.shape[0]), RNG.standard_normal(f.shape[1])
    np.testing.assert_allclose(np.concatenate(g.field(w, v)), np.concatenate(f.field(w, v)), atol=1e-12)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("tol", [1e-2, 1e-5])
def test_tol_is_the_accuracy_of_the_fitted_values(loss, tol):
    X, y = data(loss)
    unit = 1.0
    if loss in ("squared", "huber"):
        y = 1e4 * y
        unit = y.std()
    model = estimator(loss, STRUCTURES["graph"], tol=tol, method="lpd-gs").fit(10.0 * X, y)
    exact = clone(model).set_params(method="auto", tol=1e-3 * tol).fit(10.0 * X, y)
    error = 10.0 * X @ (model.coef_ - exact.coef_).ravel() + (model.intercept_ - exact.intercept_)
    assert 0.0 < np.sqrt(np.mean(error**2)) <= tol * unit


@given(st.integers(0, 10**6), st.sampled_from(["squared", "huber"]))
def test_regression_does_not_depend_on_origins(seed, loss):
    rng = np.random.default_rng(seed)
    X, t = rng.standard_normal((20, 4)), rng.standard_normal(20)
    model = estimator(loss, Graph([(0, 1), (2, 3)]), l2=0.1, tol=1e-9)
    there, shift = 10.0 * rng.standard_normal(4), 10.0 * rng.standard_normal()
    here, moved = clone(model).fit(X, t), clone(model).fit(X + there, t + shift)
    np.testing.assert_allclose(moved.coef_, here.coef_, atol=1e-7)
    np.testing.assert_allclose(moved.predict(X + there) - shift, here.predict(X), atol=1e-6)


@pytest.mark.parametrize("loss", LOSSES)
def test_data_that_say_nothing_have_zero_weights(loss):
    X, y = np.zeros((6, 3)), np.array([0, 1, 0, 1, 0, 1])
    for fit_intercept in (True, False):
        model = estimator(loss, Graph([(0, 1)]), fit_intercept=fit_intercept).fit(X, y)
        assert model.result_.solved
        assert not model.coef_.any()
    if loss in ("squared", "huber"):
        X = RNG.standard_normal((6, 3))
        model = estimator(loss).fit(X, np.full(6, 3.7))
        np.testing.assert_allclose(model.predict(X), 3.7)


# -- structures ------------------------------------------------------------------------------------------------------


@given(st.integers(0, 10**6), st.integers(2, 8))
def test_a_graph_sums_squares_over_its_edges(seed, n):
    rng = np.random.default_rng(seed)
    pairs = np.array([(i, j) for i in range(n) for j in range(i) if rng.random() < 0.7] or [(0, 1)])
    weights = rng.random(len(pairs)) + 0.1
    w = rng.standard_normal(n)
    squares = (w[pairs[:, 0]] - w[pairs[:, 1]]) ** 2
    assert np.sum((Graph(pairs).matrix(n) @ w) ** 2) == pytest.approx(squares.sum())
    upper = sparse.coo_array((weights, pairs.T), shape=(n, n))
    adjacency = (upper + upper.T + sparse.eye_array(n)).tocsr()
    for kind in (sparse.csr_array, sparse.coo_matrix):
        assert np.sum((Graph(kind(adjacency)).matrix(n) @ w) ** 2) == pytest.approx((weights * squares).sum())


def test_a_grid_from_scikit_learn_makes_neighbouring_weights_alike():
    X, y = load_digits(n_class=2, return_X_y=True)
    plain, smooth = (RiskClassifier(structure=s).fit(X / 16, y) for s in (None, Graph(grid_to_graph(8, 8), 1.0)))
    rough = [np.abs(np.diff(m.coef_.reshape(8, 8), axis=0)).sum() / np.abs(m.coef_).sum() for m in (plain, smooth)]
    assert rough[1] < 0.5 * rough[0]


def test_the_intercept_takes_no_part_in_the_structure():
    X, y = data("logistic")
    f = RiskClassifier(structure=STRUCTURES["graph"]).problem(X, y)
    constant = np.eye(11)[10]
    assert f.shape == (11, 9)
    assert not f.A.tmul(constant).any()


def test_strong_groups_leave_features_out():
    X, t = data("squared")
    model = RiskRegressor(structure=Groups([[0, 1], [2, 3, 8], [4, 5, 6, 7, 9]], 0.3, 1e-3)).fit(X, t)
    norms = [np.linalg.norm(model.coef_[group]) for group in model.structure.groups]
    assert min(norms) < 1e-3 < 0.1 < max(norms)


def test_structures_are_parameters():
    model = RiskClassifier(structure=Groups(OVERLAP, 0.1))
    copy = clone(model)
    assert copy.structure is not model.structure
    assert copy.get_params()["structure__strength"] == 0.1
    assert "Groups" in repr(model)
    X, y = data("logistic")
    search = GridSearchCV(model, {"structure__strength": [1e-2, 1.0]}, cv=3).fit(X, y)
    assert search.best_params_ == {"structure__strength": 1e-2}
    again = pickle.loads(pickle.dumps(search.best_estimator_))
    assert (again.predict(X) == search.predict(X)).all()


def test_only_the_logistic_loss_has_probabilities():
    X, y = data("logistic")
    assert not hasattr(RiskClassifier("hinge").fit(X, y), "predict_proba")
    model = RiskClassifier().fit(X, y)
    p = model.predict_proba(1e4 * X)
    assert np.isfinite(p).all()
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    p = model.predict_proba(X)
    np.testing.assert_allclose(np.log(p[:, 1] / p[:, 0]), model.decision_function(X))


# -- errors ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", LOSSES)
def test_an_unsolved_problem_warns(loss):
    X, y = data(loss)
    model = estimator(loss, Groups(OVERLAP, 0.3, 1e-6), l2=1e-8, max_seconds=1e-3)
    with pytest.warns(ConvergenceWarning, match="is not solved: at a certified distance of .* the time is up"):
        model.fit(X, y)
    assert not model.result_.solved
    assert np.isfinite(model.coef_).all()


FEW = np.array([[0.0, 1.0, 2.0], [1.0, 0.0, 1.0], [2.0, 2.0, 0.0], [3.0, 1.0, 1.0]])
ASYMMETRIC = sparse.csr_array(([1.0], ([0], [1])), shape=(3, 3))


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (RiskClassifier("square"), "loss of RiskClassifier is 'square'; expected 'logistic', 'hinge' or"),
        (RiskRegressor("hinge"), "loss of RiskRegressor is 'hinge'; expected one of 'squared', 'huber', 'absolute'"),
        (RiskClassifier(l2=-1.0), "l2 is -1.0; expected a positive number"),
        (RiskClassifier(l2=0.0), "l2 is 0.0; expected a positive number"),
        (RiskRegressor(l2="much"), "l2 is 'much'; expected a positive number"),
        (RiskRegressor(l2="0.1"), "l2 is '0.1'; expected a positive number"),
        (RiskClassifier(l2=True), "l2 is True; expected a positive number"),
        (RiskRegressor(l2=np.nan), "l2 is nan; expected a positive number"),
        (RiskClassifier(tol=0.0), "tol is 0.0; expected a positive number"),
        (RiskClassifier(intercept_scaling=-2.0), "intercept_scaling is -2.0; expected a positive number"),
        (RiskClassifier("smoothed_hinge", width=0.0), "width of SmoothedHinge is 0; expected a positive number"),
        (RiskRegressor("huber", delta=-1.0), "delta of Huber is -1; expected"),
        (RiskRegressor(max_seconds=-1.0), "max_seconds is -1.0; expected a positive number"),
        (RiskRegressor(method="magic"), "magic"),
        (RiskRegressor(structure="graph"), "structure is 'graph'; expected None, Graph, Groups, Squares, Norms"),
        (RiskRegressor(structure=Graph([(0, 3)])), "edges of Graph holds 3; expected features from 0 to 2"),
        (RiskRegressor(structure=Graph([(-1, 2)])), "edges of Graph holds -1; expected features from 0 to 2"),
        (RiskRegressor(structure=Graph([(0, 1, 2)])), "edges of Graph has shape .1, 3.; expected two columns"),
        (RiskRegressor(structure=Graph([(0.0, 1.0)])), "edges of Graph holds float64; expected the numbers"),
        (RiskRegressor(structure=Graph([(0, 1), (2,)])), "edges of Graph is .*; expected an array of features"),
        (RiskRegressor(structure=Graph([])), "edges of Graph is empty; expected at least one edge, or structure=None"),
        (RiskRegressor(structure=Graph(sparse.eye_array(3))), "edges of Graph is empty"),
        (RiskRegressor(structure=Graph(sparse.eye_array(4))), "adjacency .* shape .4, 4.; expected .* 3 features"),
        (RiskRegressor(structure=Graph(ASYMMETRIC)), "edges of Graph is not symmetric; use edges.maximum.edges.T."),
        (RiskRegressor(structure=Graph(-1 * (ASYMMETRIC + ASYMMETRIC.T))), "holds a weight that is negative"),
        (RiskRegressor(structure=Graph([(0, 1)], 0.0)), "strength is 0.0; expected a positive number"),
        (RiskRegressor(structure=Groups([])), "groups of Groups is empty; expected one list of features at least"),
        (RiskRegressor(structure=Groups(3)), "groups of Groups is 3; expected lists of features"),
        (RiskRegressor(structure=Groups([0, 0, 1])), "group 0 of Groups is 0; expected a list of one feature or more"),
        (RiskRegressor(structure=Groups([[0], []])), "group 1 of Groups is ..; expected a list of one feature or more"),
        (RiskRegressor(structure=Groups([[0], [1, 3]])), "group 1 of Groups holds 3; expected features from 0 to 2"),
        (RiskRegressor(structure=Groups([[1, 1]])), "group 0 of Groups names a feature twice; expected each once"),
        (RiskRegressor(structure=Groups([["a"]])), "group 0 of Groups holds <U1; expected the numbers of features"),
        (RiskRegressor(structure=Groups([[0]], strength=-1)), "strength is -1.0; expected a positive number"),
        (RiskRegressor(structure=Squares(np.eye(2))), "K of the structure has 2 columns; expected .* feature, 3"),
        (RiskRegressor(structure=Squares([[np.nan, 0, 0]])), "K of the structure has a nan"),
        (RiskRegressor(structure=Norms(np.zeros((2, 3)))), "K of the structure is zero; expected a nonzero matrix"),
        (RiskRegressor(structure=Norms(np.eye(3), labels=[0, 1])), "labels of Norms has shape .2,.; expected one .* 3"),
    ],
)  # fmt: skip
def test_parameters_that_make_no_sense_are_refused(model, message):
    with pytest.raises(sp.ProblemError, match=message):
        model.fit(FEW, [0, 1, 0, 1])
    if not message.startswith(("tol", "max_seconds", "magic")):
        with pytest.raises(sp.ProblemError, match=message):
            model.problem(FEW, [0, 1, 0, 1])


def test_data_that_make_no_sense_are_refused():
    with pytest.raises(sp.ProblemError, match="y holds one class only, 1; expected samples of two classes or more"):
        RiskClassifier().fit(FEW, [1, 1, 1, 1])
    with pytest.raises(sp.ProblemError, match="label is 7; expected one of 0, 1"):
        RiskClassifier().problem(FEW, [0, 1, 0, 1], label=7)
    with pytest.raises(ValueError, match="Unknown label type"):
        RiskClassifier().fit(FEW, [0.5, 1.5, 0.1, 0.2])
    for model in (RiskClassifier(), RiskRegressor()):
        with pytest.raises(ValueError, match="NaN"):
            model.fit(np.where(FEW == 2.0, np.nan, FEW), [0, 1, 0, 1])
    with pytest.raises(ValueError, match="NaN"):
        RiskRegressor().fit(FEW, [0.0, np.nan, 1.0, 2.0])
    with pytest.raises(ValueError, match="3 features"):
        RiskRegressor().fit(FEW, [0, 1, 0, 1]).predict(FEW[:, :2])


def test_few_features_are_one_working_set_and_take_no_further_constants(monkeypatch):
    built = []
    first = sp.LeastSquares.__init__
    monkeypatch.setattr(sp.LeastSquares, "__init__", lambda self, *data: built.append(first(self, *data)))
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 8))
    model = RiskRegressor(l1=0.05, l2=0.01, fit_intercept=False).fit(X, X[:, 0] + 0.1 * rng.standard_normal(40))
    assert model.result_.solved
    assert len(built) == 1


def test_many_features_take_no_further_constants(monkeypatch):
    computed = []
    monkeypatch.setattr(
        "saddlepoint.parts.functions.risk.gram_bounds", lambda D: computed.append(D.shape) or gram_bounds(D)
    )
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 400))
    labels = X[:, :3].sum(axis=1) > 0.0
    model = RiskClassifier(l1=0.02, l2=0.002, fit_intercept=False).fit(X, labels)
    assert model.result_.solved
    assert model.result_.calls["grad_g"] < 10  # it starts from weights that Newton's method found on few features
    assert computed == [(80, 400)]
