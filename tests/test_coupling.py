"""Couplings: the same answers however A is stored, and a norm bound that holds."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from scipy.sparse.linalg import LinearOperator, aslinearoperator

import saddlepoint as sp
from saddlepoint.ground.arrays import to_host
from saddlepoint.ground.errors import SingularError
from saddlepoint.ground.factor import shifted_solver
from saddlepoint.ground.spectrum import lanczos_steps, largest_eigenvalue
from saddlepoint.parts.coupling import kinds, register_coupling
from saddlepoint.parts.coupling.adjoint import wrong_transpose
from saddlepoint.parts.coupling.dense import BLOCK
from saddlepoint.parts.sharded.coupling import ShardedCoupling
from saddlepoint.parts.sharded.local import LocalEngine
from saddlepoint.problems.adjoint_check import AdjointCheck
from saddlepoint.problems.transforms import scaled_coupling


class Duck:
    """An operator that has only ``@``, ``.T`` and ``.shape``."""

    def __init__(self, A):
        self._A, self.shape, self.T_calls = A, A.shape, 0

    def __matmul__(self, y):
        return self._A @ y

    @property
    def T(self):
        return Duck(self._A.T)


KINDS = {
    "array": lambda A: A,
    "fortran array": np.asfortranarray,
    "transposed view": lambda A: np.ascontiguousarray(A.T).T,
    "strided view": lambda A: np.repeat(A, 2, axis=1)[:, ::2],
    "read-only": lambda A: _read_only(A),
    "nested list": lambda A: A.tolist(),
    "csr": sparse.csr_array,
    "csc": sparse.csc_array,
    "coo": sparse.coo_array,
    "lil": sparse.lil_array,
    "csr matrix": sparse.csr_matrix,
    "operator": aslinearoperator,
    "duck": Duck,
    "coupling": sp.as_coupling,
}


class Repeated:
    """A column, ``times`` times: an object of another library, which has neither ``@`` nor ``.T``."""

    def __init__(self, column, times):
        self.column, self.times = column, times


@pytest.fixture
def repeated_columns(monkeypatch):
    monkeypatch.setattr(kinds, "_KINDS", dict(kinds._KINDS))
    register_coupling(
        "repeated column",
        lambda A: isinstance(A, Repeated),
        lambda A, name: sp.as_coupling(np.outer(A.column, np.ones(A.times)), name),
    )


def test_a_registered_kind_is_taken_as_A(repeated_columns):
    f = sp.Saddle(sp.Quadratic(1.0), sp.Quadratic(1.0), Repeated([1.0, 2.0, 3.0], 2))
    assert (f.A.matrix() == [[1, 1], [2, 2], [3, 3]]).all()
    with pytest.raises(sp.ProblemError, match="A has shape"):
        sp.Saddle(sp.Quadratic(1.0), sp.Quadratic(1.0), Repeated([1.0], 0))


def test_a_kind_is_registered_once(repeated_columns):
    with pytest.raises(sp.ProblemError, match="'repeated column' is registered already"):
        register_coupling("repeated column", lambda A: True, lambda A, name: sp.as_coupling([[1.0]]))


def _read_only(A):
    A = A.copy()
    A.flags.writeable = False
    return A


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(1, 1), (5, 3), (3, 5), (30, 2)])
def test_products_are_right_however_the_matrix_is_stored(kind, shape):
    rng = np.random.default_rng(1)
    A, x, y, e = rng.standard_normal(shape), *(rng.standard_normal(k) for k in (*shape, shape[0]))
    C = sp.as_coupling(KINDS[kind](A))
    _check_products(A, C, x, y, e)
    _check_products(A.T, C.T, y, x, rng.standard_normal(shape[1]))
    assert C.T.T is C


def _check_products(M, C, x, y, e):
    assert C.shape == M.shape
    np.testing.assert_allclose(C.mul(y), M @ y, atol=1e-13)
    np.testing.assert_allclose(C.tmul(x), M.T @ x, atol=1e-13)
    Ay, Atx = C.both(x, y)
    np.testing.assert_allclose(Ay, M @ y, atol=1e-13)
    np.testing.assert_allclose(Atx, M.T @ x, atol=1e-13)
    for s, shift in ((1.0, None), (-0.3, None), (2.0, e)):
        t, u = C.through(y, s, shift)
        np.testing.assert_allclose(t, M @ y, atol=1e-13)
        np.testing.assert_allclose(u, M.T @ (s * (M @ y) + (0 if shift is None else shift)), atol=1e-12)
    gram = C.gram()
    np.testing.assert_allclose(gram.toarray() if sparse.issparse(gram) else gram, M.T @ M, atol=1e-12)
    assert np.linalg.norm(M, 2) <= C.norm <= 1.03 * np.linalg.norm(M, 2)
    for c in (2.0, -0.5):
        S = scaled_coupling(scaled_coupling(C, 4.0), c / 4.0)
        np.testing.assert_allclose(S.mul(y), c * M @ y, atol=1e-13)
        np.testing.assert_allclose(S.through(y, 0.7, e)[1], c * M.T @ (0.7 * c * M @ y + e), atol=1e-12)
        np.testing.assert_allclose(S.T.mul(x), c * M.T @ x, atol=1e-13)
        assert S.norm == pytest.approx(abs(c) * C.norm)


def test_float32_products_stay_narrow_and_widen_on_demand():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((9, 7)).astype(np.float32)
    for kind in ("array", "csr", "operator"):
        C = sp.as_coupling(KINDS[kind](A))
        assert C.dtype == np.float32
        assert C.mul(np.ones(7, np.float32)).dtype == np.float32
        wide = C.mul(np.ones(7))
        assert wide.dtype == np.float64
        np.testing.assert_allclose(wide, A.astype(float) @ np.ones(7), rtol=1e-15)


def test_widening_goes_block_by_block():
    rows = BLOCK // 1000 * 2 + 5
    A = np.random.default_rng(0).standard_normal((rows, 1000)).astype(np.float32)
    y = np.random.default_rng(1).standard_normal(1000)
    np.testing.assert_allclose(sp.as_coupling(A).mul(y), A.astype(float) @ y, atol=1e-12)


@given(st.integers(1, 40), st.integers(1, 40), st.integers(0, 10**6), st.sampled_from(["flat", "steep", "clustered"]))
def test_norm_is_an_upper_bound(m, n, seed, spectrum):
    rng = np.random.default_rng(seed)
    k = min(m, n)
    values = {
        "flat": np.ones(k),
        "steep": 0.5 ** np.arange(k),
        "clustered": 1.0 - 1e-4 * np.arange(k) / k,
    }[spectrum]
    U, V = np.linalg.qr(rng.standard_normal((m, k)))[0], np.linalg.qr(rng.standard_normal((n, k)))[0]
    A = U * values @ V.T
    for kind in ("array", "csr", "operator"):
        coupling = sp.as_coupling(KINDS[kind](A))
        norm = coupling.estimated_norm()
        assert norm.lower <= 1 + 1e-9
        assert 1 - 1e-9 <= norm.upper <= 1.03
        assert norm.failure <= 1e-8
        assert coupling.norm_estimate.lower <= 1 + 1e-9
        assert 0.99 <= coupling.norm <= 1.03


def test_norm_is_estimated_once_and_its_products_are_known():
    calls = {"A": 0, "At": 0}
    A = np.random.default_rng(0).standard_normal((30, 300))

    def count(name, M):
        def product(v):
            calls[name] += 1
            return M @ v

        return product

    C = sp.as_coupling(LinearOperator(A.shape, matvec=count("A", A), rmatvec=count("At", A.T), dtype=float))
    probe = dict(calls)  # the first test of the transpose
    assert probe == {"A": 1, "At": 1}
    norm = C.norm_estimate
    assert calls["A"] - 1 == calls["At"] - 1 == norm.products <= lanczos_steps(30)
    assert C.T.norm_estimate is norm
    assert C.norm_estimate is norm
    assert calls["A"] - 1 == norm.products


def test_the_lanczos_margin_is_large_enough():
    """With few steps the Ritz value is often too small, and the margin has to cover what is missing."""
    n = 2000
    values = np.linspace(0.0, 1.0, n) ** 0.5
    short = 0
    for seed in range(20):
        found = largest_eigenvalue(lambda v: values * v, n, seed=seed, failure=1e-3, margin=0.3)
        assert found.lower <= 1.0 <= found.upper
        assert found.products == lanczos_steps(n, 0.3, 1e-3)
        short += found.lower < 0.99
    assert short > 0


@pytest.mark.parametrize("kind", ["random", "chain", "sparse", "decaying", "one large value"])
def test_a_few_products_estimate_the_norm(kind):
    rng = np.random.default_rng(0)
    U, V = (np.linalg.qr(rng.standard_normal((n, 200)))[0] for n in (300, 200))
    A = {
        "random": lambda: rng.standard_normal((300, 200)),
        "chain": lambda: np.eye(300, 200) - np.eye(300, 200, k=1),
        "sparse": lambda: (rng.random((300, 200)) < 0.02) * rng.standard_normal((300, 200)),
        "decaying": lambda: U * np.logspace(0, -3, 200) @ V.T,
        "one large value": lambda: U * np.r_[2.0, np.linspace(1.0, 0.5, 199)] @ V.T,
    }[kind]()
    found, exact = sp.as_coupling(A).norm_estimate, np.linalg.norm(A, 2)
    assert found.products <= 12 < lanczos_steps(200)
    assert found.lower <= exact * (1 + 1e-12)
    assert 0.99 * exact <= found.upper <= 1.03 * exact


def test_zero_and_rank_one_norms_are_exact():
    assert sp.as_coupling(np.zeros((4, 3))).norm == 0.0
    assert sp.as_coupling(sparse.csr_array((4, 3))).norm == 0.0
    u, v = np.arange(1.0, 5.0), np.arange(1.0, 4.0)
    assert sp.as_coupling(np.outer(u, v)).norm == pytest.approx(np.linalg.norm(u) * np.linalg.norm(v), rel=1e-12)


@pytest.mark.parametrize("kind", ["array", "csr", "operator"])
@pytest.mark.parametrize("shape", [(6, 4), (4, 6)])
def test_resolvent_factorises_once(kind, shape):
    rng = np.random.default_rng(0)
    A, p, q = rng.standard_normal(shape), rng.standard_normal(shape[0]), rng.standard_normal(shape[1])
    C = sp.as_coupling(KINDS[kind](A))
    for a in (0.5, 0.5, 2.0):
        x, y = C.resolvent(p, q, a)
        np.testing.assert_allclose(x + a * A @ y, p, atol=1e-12)
        np.testing.assert_allclose(y - a * A.T @ x, q, atol=1e-12)
    small = C if shape[0] >= shape[1] else C.T
    assert small.normal_solver(2.0) is small.normal_solver(2.0)


def test_resolvent_survives_a_strong_coupling():
    rng = np.random.default_rng(0)
    A, p, q = 1e6 * rng.standard_normal((8, 5)), rng.standard_normal(8), rng.standard_normal(5)
    x, y = sp.as_coupling(A).resolvent(p, q, 1.0)
    z = np.linalg.solve(np.block([[np.eye(8), A], [-A.T, np.eye(5)]]), np.r_[p, q])
    np.testing.assert_allclose(np.r_[x, y], z, atol=1e-9)


class WrongTranspose(Duck):
    @property
    def T(self):
        return Duck(2 * self._A.T)


class Misshapen(Duck):
    @property
    def T(self):
        return Duck(self._A)


BAD = [
    (np.zeros(3), r"A has shape \(3,\); expected a matrix"),
    (np.zeros((0, 3)), r"A has shape \(0, 3\); expected a matrix with at least one row"),
    (sparse.csr_array((3, 0)), r"A has shape \(3, 0\)"),
    (np.array([[1.0, math.nan]]), r"A has a nan at index \(0, 1\)"),
    (sparse.csr_array([[math.inf]]), "the data of A has a inf at index 0"),
    (np.array([[1j]]), "expected real numbers"),
    (np.array([["a"]]), "expected real numbers"),
    (np.array([[object()]]), "expected real numbers"),
    ([[1.0], [1.0, 2.0]], "not an array of numbers"),
    (WrongTranspose(np.ones((2, 2))), "A' is not the transpose of A: <x, A y> and <A' x, y> differ by"),
    (LinearOperator((2, 2), matvec=lambda v: v**3, rmatvec=lambda v: v), "products with A are not linear"),
    (Misshapen(np.ones((2, 3))), r"A.T @ x|not aligned|mismatch|size"),
    (LinearOperator((2, 2), matvec=lambda v: v), "give the LinearOperator an rmatvec"),
    (LinearOperator((2, 2), matvec=lambda v: v * math.nan, rmatvec=lambda v: v), "not a vector of finite real numbers"),
    (3.0, r"A has shape \(\)"),
    (None, "expected real numbers"),
]


@pytest.mark.parametrize(("bad", "sentence"), BAD, ids=[sentence for _, sentence in BAD])
def test_bad_couplings_are_refused_in_a_sentence(bad, sentence):
    with pytest.raises((sp.ProblemError, ValueError), match=sentence):
        sp.as_coupling(bad)


def test_integers_become_floats_before_they_overflow():
    C = sp.as_coupling(np.full((2, 2), 100, np.int8))
    np.testing.assert_array_equal(C.mul(np.ones(2)), [200.0, 200.0])
    assert C.dtype == np.float64


def centred_operator(mean: float, error: float = 0.0) -> LinearOperator:
    """Data minus their means by a subtraction of products, which rounds in units of the means."""
    X = sparse.csr_array(np.random.default_rng(0).standard_normal((200, 30)) + mean)
    c = np.asarray(X.mean(axis=0)).ravel()
    return LinearOperator(
        X.shape,
        matvec=lambda w: X @ w - c @ w,
        rmatvec=lambda u: (1.0 + error) * (X.T @ u - u.sum() * c),
        dtype=np.float64,
    )


@pytest.mark.parametrize("mean", [0.0, 1e4, 1e6, 1e10])
def test_an_operator_that_subtracts_large_terms_is_accepted(mean):
    f = sp.Saddle(sp.Quadratic(1.0), sp.Quadratic(1.0), centred_operator(mean))
    y, x = (np.random.default_rng(1).standard_normal(k) for k in (30, 200))
    for scale in (1.0, 1e-9):
        products = scale * y, f.A.mul(scale * y), x, f.A.tmul(x)
        AdjointCheck(f.A, lambda name, products: None).compare(*products)
        assert not wrong_transpose(f.A.mul, f.A.tmul, *products, f.A.norm)


@pytest.mark.parametrize(("mean", "error"), [(0.0, 1e-11), (1e4, 1e-4), (1e6, 1e-2)])
def test_a_wrong_transpose_is_distinguished_from_rounding_of_large_terms(mean, error):
    with pytest.raises(sp.ProblemError, match=r"A' is not the transpose of A: .* differ by"):
        sp.as_coupling(centred_operator(mean, error))


def test_products_that_are_nothing_but_rounding_are_refused_for_what_they_are():
    with pytest.raises(sp.ProblemError, match="products with A are not linear: A y changes by"):
        sp.as_coupling(centred_operator(1e15))


@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.csr_matrix, sparse.csc_array, sparse.coo_array])
@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("writeable", [True, False])
def test_a_sparse_matrix_of_the_caller_is_never_changed(kind, index, writeable):
    """A sparse matrix whose entries are not in order, with two entries at one place."""
    data, columns, starts = np.arange(1.0, 6.0), np.array([2, 0, 1, 1, 0], index), np.array([0, 2, 4, 5], index)
    rows = np.array([0, 0, 1, 1, 2], index)
    M = kind((data, (rows, columns)) if kind is sparse.coo_array else (data, columns, starts), shape=(3, 3))
    arrays = (M.data, M.row, M.col) if kind is sparse.coo_array else (M.data, M.indices, M.indptr)
    before = [array.copy() for array in arrays]
    for array in arrays:
        array.flags.writeable = writeable
    f = sp.Saddle(sp.Quadratic(1.0, np.ones(3)), sp.Quadratic(1.0), M)
    np.testing.assert_allclose(f.A.matrix().toarray(), M.toarray())
    for method in ("auto", "dippa", "direct"):
        assert sp.solve(f, method=method).solved
    now = (M.data, M.row, M.col) if kind is sparse.coo_array else (M.data, M.indices, M.indptr)
    for array, same, was in zip(arrays, now, before, strict=True):
        assert array is same
        np.testing.assert_array_equal(array, was)


def test_a_sparse_matrix_in_order_is_not_copied():
    M = sparse.csr_array(np.eye(3))
    M.data.flags.writeable = False
    A = sp.as_coupling(M)
    assert np.shares_memory(A.matrix().data, M.data)
    np.testing.assert_array_equal(A.mul(np.arange(3.0)), np.arange(3.0))


def test_an_operator_may_write_all_its_products_into_one_array():
    """SciPy hands out a view of that array, which the next product changes."""
    A, b = np.random.default_rng(0).standard_normal((4, 3)), np.array([1.0, -2.0, 0.5, 3.0])
    product, transposed = np.empty(4), np.empty(3)
    reused = LinearOperator(
        A.shape,
        matvec=lambda y: np.dot(A, np.ravel(y), out=product),
        rmatvec=lambda x: np.dot(A.T, np.ravel(x), out=transposed),
        dtype=float,
    )
    for method in ("auto", "ogda"):
        result = sp.solve(sp.Saddle(sp.Quadratic(1.0, b), sp.Quadratic(2.0), reused), tol=1e-9, method=method)
        x = np.linalg.solve(np.eye(4) + 0.5 * A @ A.T, -b)
        assert result.solved
        assert np.linalg.norm(result.x - x) <= result.certificate.distance + 1e-14


def test_a_sparse_matrix_that_is_singular_to_working_precision_ends_a_method_and_not_the_run():
    M = sparse.csr_array(np.full((2, 2), 1e20))
    with pytest.raises(SingularError, match="singular to working precision"):
        shifted_solver(M, 1.0)
    assert shifted_solver(sparse.csr_array(np.eye(2)), 1.0)(np.array([2.0, 4.0])).tolist() == [1.0, 2.0]


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, bool])
@pytest.mark.parametrize("form", ["coo", "csr", "csc"])
def test_whole_numbers_at_one_place_are_added_up_without_overflow(form, dtype):
    """SciPy adds them in their own dtype: 100 + 100 is -56 in int8."""
    values = np.array([100, 100, 3]).astype(dtype)
    rows, columns = np.array([0, 0, 1]), np.array([0, 0, 1])
    ends = np.array([0, 2, 3])
    A = {
        "coo": lambda: sparse.coo_array((values, (rows, columns)), shape=(2, 2)),
        "csr": lambda: sparse.csr_array((values, columns, ends), shape=(2, 2)),
        "csc": lambda: sparse.csc_array((values, rows, ends), shape=(2, 2)),
    }[form]()
    expected = [2.0 * float(values[0]), float(values[2])]
    np.testing.assert_array_equal(sp.as_coupling(A).mul(np.ones(2)), expected)
    engine = LocalEngine(A, 2)
    np.testing.assert_array_equal(to_host(ShardedCoupling(engine).mul(np.ones(2))), expected)
    engine.close()
    game = sp.apps.QuadraticProgram(q=np.ones(2), A=A, lower=expected, x_lower=0.0)
    assert game.solve(gap=1e-9).upper == pytest.approx(2.0)
