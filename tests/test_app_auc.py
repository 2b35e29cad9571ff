"""AUC maximisation: the saddle form, its constants, and its answers against other solvers.

The example of the gallery, examples/applications/auc.py, compares the scores on held-out data and asserts what it says.
"""

import tracemalloc

import cvxpy as cp
import numpy as np
import pytest
from estimators import assert_estimator
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import roc_auc_score

import saddlepoint as sp
from saddlepoint.apps import AUCClassifier, auc_pairs

pytestmark = pytest.mark.slow  # `make check` runs the examples in the docstrings of the applications


def data(N=60, d=5, share=0.3, offset=0.0, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((N, d)) * rng.uniform(0.3, 2.0, d) + offset
    positive = np.zeros(N, dtype=bool)
    positive[: max(1, min(N - 1, round(share * N)))] = True
    X[positive] += rng.standard_normal(d)
    order = rng.permutation(N)
    return X[order], positive[order]


def pairwise(X, positive, l2):
    """The minimiser of p q mean (1 - w'(x+ - x-))^2 + l2/2 |w|^2, all pairs formed."""
    D = (X[positive][:, None, :] - X[~positive][None, :, :]).reshape(-1, X.shape[1])
    pq = positive.mean() * (1.0 - positive.mean())
    return np.linalg.solve(2.0 * pq * D.T @ D / len(D) + l2 * np.eye(X.shape[1]), 2.0 * pq * D.mean(axis=0))


def mean_F(X, positive, l2, w, a, b, alpha):
    """The mean of Ying, Wen and Lyu's F, term by term."""
    p, s = positive.mean(), X @ w
    F = np.where(positive, (1 - p) * (s - a) ** 2, p * (s - b) ** 2)
    F = F + 2 * (1 + alpha) * np.where(positive, -(1 - p) * s, p * s) - p * (1 - p) * alpha**2
    return F.mean() + 0.5 * l2 * w @ w


def matrix_of(g):
    return np.stack([g.grad(e) - g.grad(0 * e) for e in np.eye(g.dim)], axis=1)


@pytest.fixture
def streamed(monkeypatch):
    """Every problem counts as large, so that gradients are passes over the rows."""
    monkeypatch.setattr(auc_pairs, "SMALL", 0)


# -- the saddle form -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("small", [0, 1000], ids=["streamed", "matrix"])
@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def test_the_problem_is_the_mean_of_F(make, small, monkeypatch):
    monkeypatch.setattr(auc_pairs, "SMALL", small)
    X, positive = data(offset=2.0)
    f = AUCClassifier(l2=0.3).problem(make(X), positive)
    pairs = auc_pairs.Pairs(X, positive, 0.3, 7)
    rng = np.random.default_rng(1)
    for _ in range(5):
        w, a, b, alpha = rng.standard_normal(5), *rng.standard_normal(3)
        shift = pairs.centre @ w
        x, y = np.append(w, [(a - shift) / pairs.unit, (b - shift) / pairs.unit]), np.array([alpha])
        value = f.g(x) + x @ f.A.mul(y) - f.h(y)
        assert value == pytest.approx(mean_F(X, positive, 0.3, w, a, b, alpha), rel=1e-12)


def test_the_saddle_value_is_the_loss_over_pairs():
    X, positive = data()
    l2, pq = 0.3, positive.mean() * (1.0 - positive.mean())
    model = AUCClassifier(l2).fit(X, positive)
    w = model.coef_[0]
    D = (X[positive][:, None, :] - X[~positive][None, :, :]).reshape(-1, 5)
    loss = pq * ((1.0 - D @ w) ** 2).mean() + 0.5 * l2 * w @ w
    assert mean_F(X, positive, l2, w, model.a_, model.b_, model.alpha_) + pq == pytest.approx(loss, rel=1e-10)


CASES = st.tuples(
    st.integers(2, 40),
    st.integers(1, 8),
    st.floats(0.0, 1.0),
    st.sampled_from([0.0, 1.0, 100.0]),
    st.floats(-6.0, 3.0),
    st.integers(0, 10_000),
)


@pytest.mark.parametrize("small", [0, 1000], ids=["streamed", "matrix"])
@settings(max_examples=60, deadline=None)
@given(CASES)
def test_mu_and_L_bound_the_eigenvalues(small, case):
    N, d, share, offset, exponent, seed = case
    l2 = 10.0**exponent
    X, positive = data(N, d, share, offset, seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(auc_pairs, "SMALL", small)
        f = AUCClassifier(l2).problem(X, positive)
    values = np.linalg.eigvalsh(matrix_of(f.g))
    slack = 1e-12 * f.L_x + 1e-10 * f.mu_x
    assert f.mu_x <= values[0] + slack
    assert values[-1] <= f.L_x + slack
    assert l2 / 2 * (1 - 1e-6) <= f.mu_x <= l2
    assert np.linalg.eigvalsh(matrix_of(f.g)[:d, :d])[-1] * 2.0 >= values[-1] - slack  # Lambda + k <= 2 Lambda
    assert f.L_y == pytest.approx(2 * positive.mean() * (1 - positive.mean()), rel=1e-15)
    assert f.mu_y == pytest.approx(f.L_y, rel=1e-15)
    assert f.mu_y < f.L_y  # they differ because the quotient of counts is rounded


def test_mu_is_exact_where_the_classes_have_no_variance():
    X = np.array([[1.0, 2.0, -1.0], [1.0, 2.0, -1.0], [0.0, -1.0, 0.5]])
    f = AUCClassifier(l2=0.05).problem(X, [1, 1, 0])
    assert f.mu_x == pytest.approx(np.linalg.eigvalsh(matrix_of(f.g))[0], rel=1e-12)


# -- the answer ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("l2", [1e-4, 1e-2, 1.0])
@pytest.mark.parametrize("share", [0.03, 0.5, 0.9])
def test_it_solves_the_problem_over_pairs(l2, share):
    X, positive = data(80, 6, share, offset=5.0)
    model = AUCClassifier(l2, tol=1e-9).fit(X, positive)
    assert model.result_.solved
    np.testing.assert_allclose(model.coef_[0], pairwise(X, positive, l2), atol=1e-8)


def test_it_solves_the_linear_system_of_the_saddle_point():
    X, positive = data(40, 4)
    l2, p = 0.1, positive.mean()
    c = np.where(positive, 2 * (1 - p), 2 * p) / len(X)
    one, other = c * positive, c * ~positive
    K = np.zeros((7, 7))  # the gradient of the mean of F in (w, a, b, alpha), computed directly
    K[:4, :4] = X.T @ (c[:, None] * X) + l2 * np.eye(4)
    K[:4, 4] = K[4, :4] = -X.T @ one
    K[:4, 5] = K[5, :4] = -X.T @ other
    K[4, 4], K[5, 5], K[6, 6] = one.sum(), other.sum(), -2 * p * (1 - p)
    K[:4, 6] = K[6, :4] = X.T @ (other - one)
    solution = np.linalg.solve(K, np.concatenate((X.T @ (one - other), np.zeros(3))))
    model = AUCClassifier(l2, tol=1e-9).fit(X, positive)
    np.testing.assert_allclose(np.append(model.coef_[0], [model.a_, model.b_, model.alpha_]), solution, atol=1e-8)


def test_it_agrees_with_clarabel():
    X, positive = data(50, 4)
    l2, pq = 0.02, positive.mean() * (1.0 - positive.mean())
    D = (X[positive][:, None, :] - X[~positive][None, :, :]).reshape(-1, 4)
    w = cp.Variable(4)
    loss = pq * cp.sum_squares(1.0 - D @ w) / len(D) + l2 / 2 * cp.sum_squares(w)
    cp.Problem(cp.Minimize(loss)).solve(cp.CLARABEL, tol_gap_abs=1e-12, tol_gap_rel=1e-12, tol_feas=1e-12)
    np.testing.assert_allclose(AUCClassifier(l2).fit(X, positive).coef_[0], w.value, atol=1e-6)


@pytest.mark.parametrize("method", ["dippa", "krylov", "direct", "anderson-condat-vu", "lpd-gs", sp.APDG()])
def test_any_method_solves_the_problem(method):
    X, positive = data()
    f = AUCClassifier(0.1).problem(X, positive)
    result = sp.solve(f, method=method, tol=1e-8)
    assert result.solved
    np.testing.assert_allclose(result.x[:-2], pairwise(X, positive, 0.1), atol=1e-8)
    model = AUCClassifier(0.1, method=method, tol=1e-8).fit(X, positive)
    assert model.result_.method == result.method
    np.testing.assert_allclose(model.coef_[0], result.x[:-2], atol=1e-8)


def test_a_is_the_mean_score_and_the_threshold_lies_half_way():
    X, positive = data(offset=3.0)
    y = np.where(positive, "sick", "healthy")  # the second in order, sick, is the positive
    model = AUCClassifier(0.1, tol=1e-10).fit(X, y)
    scores = X @ model.coef_[0]
    assert model.classes_.tolist() == ["healthy", "sick"]
    assert model.a_ == pytest.approx(scores[positive].mean(), abs=1e-9)
    assert model.b_ == pytest.approx(scores[~positive].mean(), abs=1e-9)
    assert model.alpha_ == pytest.approx(model.b_ - model.a_, abs=1e-9)
    np.testing.assert_allclose(model.decision_function(X), scores - (model.a_ + model.b_) / 2, atol=1e-12)
    nearer = abs(scores - model.a_) < abs(scores - model.b_)
    assert (model.predict(X) == np.where(nearer, "sick", "healthy")).all()
    assert model.certificate_ is model.result_.certificate
    assert model.n_iter_ == model.result_.iterations


@pytest.mark.parametrize("small", [0, 1000], ids=["streamed", "matrix"])
def test_moving_the_features_changes_nothing(small, monkeypatch):
    monkeypatch.setattr(auc_pairs, "SMALL", small)
    X, positive = data(200)
    here, there = (AUCClassifier(0.1, tol=1e-7).fit(X + c, positive) for c in (0.0, 1e4))
    np.testing.assert_allclose(here.coef_, there.coef_, atol=1e-7)
    np.testing.assert_allclose(here.decision_function(X), there.decision_function(X + 1e4), atol=1e-5)


# -- large data ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("block_rows", [None, 1, 7, 1000])
@pytest.mark.parametrize("small", [0, 1000], ids=["streamed", "matrix"])
@pytest.mark.parametrize("make", [np.asarray, np.asfortranarray, sparse.csr_array, sparse.csc_array, np.float32])
def test_storage_and_blocks_do_not_matter(make, small, block_rows, monkeypatch):
    monkeypatch.setattr(auc_pairs, "SMALL", small)
    X, positive = data(60, 4, offset=1.0)
    X = np.float32(X).astype(np.float64)  # so that float32 holds the same numbers
    model = AUCClassifier(0.1, tol=1e-9, block_rows=block_rows).fit(make(X), positive)
    np.testing.assert_allclose(model.coef_[0], pairwise(X, positive, 0.1), atol=1e-8)
    np.testing.assert_allclose(model.decision_function(make(X)), X @ model.coef_[0] + model.intercept_[0], atol=1e-9)


def peak_of(work):
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(("N", "d", "method"), [(60_000, 40, "direct"), (4000, 1100, "krylov")])
def test_neither_the_pairs_nor_a_copy_of_X_is_ever_in_memory(N, d, method, tmp_path):
    rng = np.random.default_rng(0)
    X = np.lib.format.open_memmap(tmp_path / "X.npy", "w+", np.float64, (N, d))
    X[:] = rng.standard_normal((N, d))
    positive = rng.random(N) < 0.1
    X[positive, :3] += 1.0
    X.flush()
    X = np.load(tmp_path / "X.npy", mmap_mode="r")
    model = AUCClassifier(0.1)
    peak = peak_of(lambda: model.fit(X, positive).decision_function(X))
    assert model.result_.method == method
    assert model.result_.solved
    assert peak < X.nbytes / 2
    assert peak < 1e-3 * 8 * d * positive.sum() * (~positive).sum()  # the differences of all pairs


def test_a_gradient_holds_one_block(streamed):
    X, positive = data(30_000, 60)
    f = AUCClassifier(0.1, block_rows=100).problem(X, positive)
    x = np.ones(62)
    f.g.grad(x)
    assert peak_of(lambda: f.g.grad(x)) < 4 * 8 * 100 * 60


def test_wide_sparse_data_are_solved_by_products_alone():
    rng = np.random.default_rng(0)
    X = sparse.random_array((400, 3000), density=0.01, rng=rng, format="csr")
    positive = X @ rng.standard_normal(3000) > 0.3
    model = AUCClassifier(1e-3, tol=1e-8).fit(X, positive)
    assert model.result_.method == "krylov"
    np.testing.assert_allclose(model.coef_[0], by_moments(X.toarray(), positive, 1e-3), atol=1e-8)


def by_moments(X, positive, l2):
    """The same minimiser from class means and covariances, in the dual of the rows since they are few."""
    p = positive.mean()
    one, other = X[positive], X[~positive]
    gap = one.mean(axis=0) - other.mean(axis=0)
    rows = np.vstack(
        ((one - one.mean(axis=0)) / len(one) ** 0.5, (other - other.mean(axis=0)) / len(other) ** 0.5, gap)
    )
    scale = l2 / (2 * p * (1 - p))
    return rows.T @ np.linalg.solve(rows @ rows.T + scale * np.eye(len(rows)), np.eye(len(rows))[-1])


# -- the estimator ---------------------------------------------------------------------------------------------------


def test_scikit_learn_accepts_it():
    assert_estimator(AUCClassifier())


BAD = [
    ({}, np.nan, None, "contains NaN"),
    ({}, np.inf, None, "contains infinity"),
    ({}, None, np.ones(60), "one class only, (np.float64\\()?1.0\\)?; expected samples of two classes"),
    ({}, None, np.arange(60) % 3, "Only binary classification is supported. The type of the target is multiclass"),
    ({}, None, np.linspace(0, 1, 60), "Unknown label type"),
    ({"l2": 0.0}, None, None, "l2 of AUCClassifier is 0.0; expected a positive number"),
    ({"l2": -1}, None, None, "l2 of AUCClassifier is -1.0; expected a positive number"),
    ({"l2": np.inf}, None, None, "l2 of AUCClassifier is inf; expected a positive number"),
    ({"l2": "small"}, None, None, "l2 of AUCClassifier is 'small'; expected a positive number"),
    ({"block_rows": 0}, None, None, "block_rows of AUCClassifier is 0; expected a whole number from 1"),
    ({"block_rows": 2.5}, None, None, "block_rows of AUCClassifier is 2.5; expected a whole number from 1"),
    ({"block_rows": True}, None, None, "block_rows of AUCClassifier is True; expected a whole number from 1"),
    ({"tol": 0.0}, None, None, "tol is 0.0; expected a positive number"),
    ({"max_seconds": -1.0}, None, None, "max_seconds is -1.0; expected a positive number"),
    ({"method": "magic"}, None, None, "magic"),
]


@pytest.mark.parametrize(("options", "entry", "labels", "sentence"), BAD, ids=[bad[-1] for bad in BAD])
def test_bad_input_is_refused_in_a_sentence(options, entry, labels, sentence):
    X, positive = data()
    if entry is not None:
        X[3, 2] = entry
    with pytest.raises(ValueError, match=sentence):
        AUCClassifier(**options).fit(X, positive if labels is None else labels)
    if not {"tol", "max_seconds", "method"} & set(options):
        with pytest.raises(ValueError, match=sentence):
            AUCClassifier(**options).problem(X, positive if labels is None else labels)


def test_a_run_that_ends_early_warns(streamed):
    X, positive = data()
    with pytest.warns(ConvergenceWarning, match="the time is up"):
        model = AUCClassifier(1e-6, max_seconds=1e-9).fit(X, positive)
    assert not model.result_.solved
    assert model.certificate_.distance > model.tol


@pytest.mark.parametrize(("scale", "method"), [(1e2, "direct"), (1e4, "krylov")])
def test_a_fit_that_float64_cannot_certify_warns_and_still_ranks(scale, method):
    X, positive = data(200)
    X = scale * np.hstack((X, X))  # copied features: only l2 separates their weights
    with pytest.warns(ConvergenceWarning, match="the precision of float64 allows no more"):
        model = AUCClassifier(1e-6, tol=1e-8).fit(X, positive)
    assert model.result_.method == method
    assert roc_auc_score(positive, model.decision_function(X)) > 0.75


def test_an_l2_lost_in_rounding_is_refused():
    X, positive = data()
    with pytest.raises(
        sp.ProblemError, match=r"l2 = 1e-06 is lost in rounding, because squares of the features .* standardise"
    ):
        AUCClassifier(1e-6).fit(1e6 * X, positive)
