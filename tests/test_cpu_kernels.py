"""One pass over A gives the same products as two passes, up to rounding."""

import os
import pickle
import subprocess
import sys
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

import saddlepoint as sp
from saddlepoint.parts.coupling import (
    DenseCoupling,
    SparseCoupling,
    compiled_loops,
    dense,
    dense_kernels,
    sparse_kernels,
)
from saddlepoint.parts.coupling import sparse as sparse_coupling
from saddlepoint.problems.oracle import Meter, metered

pytestmark = pytest.mark.skipif(not compiled_loops.AVAILABLE, reason="needs Numba")

STORED = {
    "rows": np.ascontiguousarray,
    "columns": np.asfortranarray,
    "csr": sparse.csr_array,
    "csc": sparse.csc_array,
    "csr, long indices": lambda A: _long(sparse.csr_array(A)),
}
TYPES = {"double": ("f8", "f8"), "single": ("f4", "f4"), "mixed": ("f4", "f8")}  # dtypes of A and of the vectors


def _long(A):
    A.indices, A.indptr = A.indices.astype(np.int64), A.indptr.astype(np.int64)
    return A


@pytest.fixture
def anywhere(monkeypatch):
    """One pass for A of any size, in small parts, strips and blocks."""
    _one_pass_anywhere(monkeypatch)


def _one_pass_anywhere(monkeypatch, step=8):
    monkeypatch.setattr(dense, "FUSE_BYTES", 1)
    monkeypatch.setattr(dense, "FUSE_SIDE_BYTES", 1)
    monkeypatch.setattr(dense, "FUSE_COLUMNS", 10**6)
    monkeypatch.setattr(sparse_coupling, "FUSE_ENTRIES", 1)
    for name, value in {"PART_BYTES": 1, "PART_ROWS": 8, "PART_COLUMNS": 16, "STRIP": 1 << 10}.items():
        monkeypatch.setattr(dense_kernels, name, value)
    monkeypatch.setattr(dense_kernels, "NARROW", 0 if step == 8 else 1 << 12)
    monkeypatch.setattr(sparse_kernels, "BLOCK", 8)


def use_threads(monkeypatch, number):
    monkeypatch.setenv("NUMBA_NUM_THREADS", str(number))
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: range(64), raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 64)


def coupling(kind, A):
    """A coupling with A in this kind of storage; it reads A once wherever the kind allows it."""
    stored = STORED[kind](A)
    C = SparseCoupling(stored) if sparse.issparse(stored) else DenseCoupling(stored)
    assert C.fused == (kind != "csc")
    return C


# -- slow reference implementations: one entry after the other -------------------------------------------------------


def slow_both(A, x, y):
    m, n = A.shape
    Ay, Atx = [0] * m, [0] * n
    for i in range(m):
        for j in range(n):
            Ay[i] += A[i, j] * y[j]
            Atx[j] += A[i, j] * x[i]
    return np.array(Ay), np.array(Atx)


def slow_through(A, y, s, e):
    t = slow_both(A, np.zeros(len(A)), y)[0]
    return t, slow_both(A, s * t + e, np.zeros(A.shape[1]))[1]


@pytest.mark.slow
@pytest.mark.parametrize("kind", STORED)
@pytest.mark.parametrize("types", TYPES)
@given(
    st.integers(1, 45),
    st.integers(1, 45),
    st.floats(0.02, 1.0),
    st.sampled_from([1, 8]),
    st.integers(1, 3),
    st.integers(0, 10**6),
)
def test_whole_numbers_come_out_exactly(kind, types, m, n, density, step, threads, seed):
    """Sums of whole numbers are exact in any order, so that every entry must be right to the last bit."""
    of_A, of_vectors = TYPES[types]
    rng = np.random.default_rng(seed)
    A = rng.integers(-3, 4, (m, n)) * (rng.random((m, n)) < density)
    A[-1, 0] = 2  # some entry
    x, e, y = (rng.integers(-3, 4, k) for k in (m, m, n))
    with pytest.MonkeyPatch.context() as patch:
        _one_pass_anywhere(patch, step)
        use_threads(patch, threads)
        C = coupling(kind, A.astype(of_A))
        for M, D, a, b, c in ((A, C, x, y, e), (A.T, C.T, y, x, rng.integers(-3, 4, n))):
            wide = [v.astype(of_vectors) for v in (a, b, c)]
            Ay, Atx = D.both(*wide[:2])
            assert Ay.dtype == Atx.dtype == of_vectors
            for fast, slow in zip((Ay, Atx), slow_both(M, a, b), strict=True):
                np.testing.assert_array_equal(fast, slow)
            for s, shift in ((1.0, None), (-2.0, c), (0.0, c), (3, None)):
                t, u = D.through(wide[1], s, None if shift is None else wide[2])
                assert t.dtype == u.dtype == of_vectors
                for fast, slow in zip((t, u), slow_through(M, b, s, 0 if shift is None else c), strict=True):
                    np.testing.assert_array_equal(fast, slow)


@pytest.mark.slow
@pytest.mark.parametrize("kind", STORED)
@pytest.mark.parametrize("types", TYPES)
@pytest.mark.parametrize("shape", [(700, 90), (90, 700), (40, 2000)])
def test_errors_stay_within_the_bound_of_rounding(anywhere, kind, types, shape):
    """|error| <= gamma_n |A| |y| entry by entry (Higham, Accuracy and Stability, (3.11)), for any order of the sum."""
    of_A, of_vectors = TYPES[types]
    rng = np.random.default_rng(3)
    A = (rng.standard_normal(shape) * 10.0 ** rng.integers(-3, 4, shape)).astype(of_A)
    x, y, e = (rng.standard_normal(k).astype(of_vectors) for k in (*shape, shape[0]))
    unit = np.finfo(of_vectors).eps / 2

    def gamma(k):
        # The factor allows for the error of the reference in extended precision.
        return k * unit / (1 - k * unit) * (1 + 1e-3)

    M, xl, yl, el = (v.astype(np.longdouble) for v in (A, x, y, e))
    m, n = shape
    C = coupling(kind, A)
    Ay, Atx = C.both(x, y)
    assert (abs(Ay - M @ yl) <= gamma(n + 1) * (abs(M) @ abs(yl))).all()
    assert (abs(Atx - M.T @ xl) <= gamma(m + 1) * (abs(M.T) @ abs(xl))).all()
    s = -0.7
    t, u = C.through(y, s, e)
    w = s * t.astype(np.longdouble) + el  # from the t that was returned
    assert (abs(t - M @ yl) <= gamma(n + 1) * (abs(M) @ abs(yl))).all()
    assert (abs(u - M.T @ w) <= gamma(m + 4) * (abs(M.T) @ (abs(s * t) + abs(el)))).all()


@pytest.mark.parametrize("kind", STORED)
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_comes_out_as_in_two_products(anywhere, kind, bad):
    rng = np.random.default_rng(0)
    A = rng.standard_normal((50, 30))
    C = coupling(kind, A)
    x, y, e = rng.standard_normal(50), rng.standard_normal(30), rng.standard_normal(50)
    for where in ("x", "y", "e"):
        v = {"x": x.copy(), "y": y.copy(), "e": e.copy()}
        v[where][7] = bad
        with np.errstate(invalid="ignore"):
            pair, wanted = C.both(v["x"], v["y"]), (A @ v["y"], A.T @ v["x"])
            pair += C.through(v["y"], 0.5, v["e"])
            wanted += (A @ v["y"], A.T @ (0.5 * (A @ v["y"]) + v["e"]))
        for a, b in zip(pair, wanted, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-9)


# -- sparse patterns -------------------------------------------------------------------------------------------------


def _patterns():
    rng = np.random.default_rng(5)
    one_long_row = np.zeros((30, 60))
    one_long_row[17] = rng.integers(1, 5, 60)
    gaps = np.zeros((40, 20))
    gaps[[3, 4, 5, 30]] = rng.integers(-4, 5, (4, 20))
    band = np.triu(np.tril(rng.integers(1, 9, (50, 50)), 2), -2)
    doubled = sparse.csr_array(([1.0, 2.0, 4.0, 8.0], [2, 2, 0, 2], [0, 3, 3, 4]), shape=(3, 3))
    loose = sparse.csr_array(band.astype(float))
    loose.data, loose.indices = np.r_[loose.data, [9.0, 9.0]], np.r_[loose.indices, [0, 0]].astype(np.int32)
    return {
        "one long row": sparse.csr_array(one_long_row),
        "empty rows": sparse.csr_array(gaps),
        "band": sparse.csr_array(band.astype(float)),
        "diagonal": sparse.csr_array(sparse.diags_array(np.arange(1.0, 81.0))),
        "one entry": sparse.csr_array(([3.0], [4], [0, 0, 0, 1, 1]), shape=(4, 6)),
        "repeated and unsorted columns": doubled,
        "memory beyond the last entry": loose,
    }


@pytest.mark.slow
@pytest.mark.parametrize("pattern", _patterns())
@pytest.mark.parametrize("threads", [1, 2, 5, 64])
@pytest.mark.parametrize("short", [0, 100])
def test_sparse_products_are_exact_for_every_pattern(anywhere, monkeypatch, pattern, threads, short):
    use_threads(monkeypatch, threads)
    monkeypatch.setattr(sparse_coupling, "SHORT_NEAR_ROW", short)  # one loop or the other
    A = _patterns()[pattern]
    C = SparseCoupling(A)
    assert C.fused
    rng = np.random.default_rng(0)
    x, y = rng.integers(-9, 9, A.shape[0]).astype(float), rng.integers(-9, 9, A.shape[1]).astype(float)
    M = A.toarray()
    for fast, slow in zip(
        C.both(x, y) + C.through(y, 2.0, x), slow_both(M, x, y) + slow_through(M, y, 2, x), strict=True
    ):
        np.testing.assert_array_equal(fast, slow)


@pytest.mark.parametrize("pattern", _patterns())
@pytest.mark.parametrize("parts", [1, 2, 7, 64])
def test_windows_cover_the_entries(pattern, parts):
    A = _patterns()[pattern]
    windows = sparse_kernels.windows(sparse_kernels.Rows.of(A), parts)
    cuts = windows.cuts.tolist()
    assert cuts[0] == 0
    assert cuts[-1] == A.shape[0]
    assert cuts == sorted(set(cuts))
    assert 1 <= len(windows.left) == len(cuts) - 1 <= parts
    for top, bottom, left, right in zip(cuts, cuts[1:], windows.left, windows.right, strict=False):
        columns = A.indices[A.indptr[top] : A.indptr[bottom]]
        assert left == columns.min()
        assert right == columns.max() + 1


def test_threads_share_sparse_rows_only_where_that_pays(anywhere, monkeypatch):
    """Each part has its own A' x as wide as its columns; together they must be few against the entries."""
    use_threads(monkeypatch, 4)
    rng = np.random.default_rng(0)
    tall = sparse.csr_array(rng.integers(1, 5, (400, 10)).astype(float))
    wide = sparse.csr_array((np.ones(60), rng.integers(0, 1000, 60), np.arange(61)), shape=(60, 1000))
    for A, parts in ((tall, 4), (wide, 1)):
        C = SparseCoupling(A)
        assert len(C._windows().left) == parts
        np.testing.assert_allclose(C.both(np.ones(A.shape[0]), np.ones(A.shape[1]))[1], A.sum(axis=0))


# -- where the library uses one pass ---------------------------------------------------------------------------------

LARGE = {  # an array, whether `both` reads it once, whether `through` does too
    "large": (lambda: np.zeros((2048, 4096)), True, True),
    "a little smaller": (lambda: np.zeros((2048, 4095)), False, False),
    "single precision": (lambda: np.zeros((4096, 4096), np.float32), True, True),
    "not contiguous": (lambda: np.zeros((2048, 8192))[:, ::2], False, False),
    "part of the columns": (lambda: np.zeros((2048, 8192))[:, :4096], False, False),
    "long rows": (lambda: np.zeros((40, 1 << 18)), True, True),
    "rows too long": (lambda: np.zeros((40, (1 << 18) + 1)), True, False),
    "a few columns": (lambda: np.zeros((1 << 19, 16)), True, True),
    "too few columns": (lambda: np.zeros((1 << 20, 15)), False, False),
    "by columns": (lambda: np.zeros((dense.FUSE_COLUMNS, 1 << 16)).T, True, True),
    "by too many columns": (lambda: np.zeros((dense.FUSE_COLUMNS + 1, 1 << 16)).T, True, False),
}


@pytest.mark.parametrize("case", LARGE)
def test_size_and_shape_decide(case):
    make, both, through = LARGE[case]
    C = DenseCoupling(make())
    assert C._fuses_both == both
    assert C.fused == through


def test_sparse_size_and_columns_decide(monkeypatch):
    monkeypatch.setattr(sparse_coupling, "FUSE_ENTRIES", 1 << 20)
    entries, start = 1 << 20, np.arange(0, (1 << 20) + 1, 8)
    rng = np.random.default_rng(0)

    def fused(columns, n, m=None):
        return SparseCoupling(
            sparse.csr_array((np.ones(len(columns)), columns, start[:m]), shape=(len(start[:m]) - 1, n))
        )

    near = np.repeat(np.arange(entries // 8), 8)
    assert fused(near, 1 << 20).fused  # local columns, however many there are
    assert not fused(near, 1 << 20).T.fused
    assert not fused(near[:-8], 1 << 20, -1).fused  # too few entries
    assert fused(rng.integers(0, 1 << 18, entries), 1 << 18).fused
    assert not fused(rng.integers(0, 1 << 19, entries), 1 << 19).fused  # the columns of a row are far apart


def test_without_numba_products_are_plain(anywhere, monkeypatch):
    monkeypatch.setattr(compiled_loops, "AVAILABLE", False)
    A = np.random.default_rng(0).standard_normal((30, 20))
    for C in (DenseCoupling(A), SparseCoupling(sparse.csr_array(A))):
        assert not C.fused
        np.testing.assert_array_equal(C.both(np.ones(30), np.ones(20))[0], C.mul(np.ones(20)))


@pytest.mark.slow
def test_passes_are_counted_as_they_are_made(anywhere):
    A = np.random.default_rng(0).standard_normal((30, 20))
    for kind, passes in (("rows", 2), ("columns", 2), ("csr", 2), ("csc", 4)):
        meter = Meter()
        seen = metered(sp.Saddle(sp.Quadratic(1.0), sp.Quadratic(1.0), coupling(kind, A)), meter)
        seen.A.both(np.ones(30), np.ones(20)), seen.A.through(np.ones(20))
        assert meter.counts.passes == passes
        assert meter.calls["A"] == meter.calls["At"] == 2


@pytest.mark.slow
@pytest.mark.parametrize("method", ["condat-vu", "dippa", "ogda"])
@pytest.mark.parametrize("kind", ["rows", "columns", "csr"])
def test_a_solve_in_one_pass_is_the_same_solve(monkeypatch, method, kind):
    rng = np.random.default_rng(0)
    A = 3.0 * rng.standard_normal((60, 40))
    g, h = sp.Quadratic(1.0, rng.standard_normal(60)), sp.Quadratic(1.0, rng.standard_normal(40))
    plain = sp.solve(sp.Saddle(g, h, STORED[kind](A)), method=method, tol=1e-9)
    _one_pass_anywhere(monkeypatch)
    fused = sp.solve(sp.Saddle(g, h, coupling(kind, A)), method=method, tol=1e-9)
    assert fused.solved
    assert fused.iterations == plain.iterations
    np.testing.assert_allclose(fused.x, plain.x, atol=1e-10)
    assert fused.passes < plain.passes
    if method == "condat-vu":
        assert fused.passes == fused.iterations + 1


# -- vectors of other dtypes and strides -----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["rows", "columns", "csr"])
def test_vectors_of_any_layout_and_type_are_taken(anywhere, kind):
    A = np.random.default_rng(0).integers(-4, 5, (30, 20)).astype(float)
    C = coupling(kind, A)
    x, y = np.arange(30.0), np.arange(20.0)
    frozen = y.copy()
    frozen.flags.writeable = False
    sorts = [frozen, np.repeat(y, 2)[::2], y.astype(np.int64), y.astype(np.float32), y.astype(np.longdouble)]
    for v in sorts:
        for fast, slow in zip(
            C.both(x, v) + C.through(v, 2.0, x), slow_both(A, x, y) + slow_through(A, y, 2.0, x), strict=True
        ):
            np.testing.assert_array_equal(fast, slow)
    np.testing.assert_array_equal(x, np.arange(30.0))  # neither x nor e is written to
    for wrong in (np.ones(21), np.ones(19)):
        with pytest.raises(ValueError, match=r"mismatch|shape|size"):
            C.both(x, wrong)
        with pytest.raises(ValueError, match=r"mismatch|shape|size"):
            C.through(wrong)
    with pytest.raises(ValueError, match=r"broadcast"):
        C.through(y, 1.0, np.ones(31))


def test_read_only_mapped_and_pickled_arrays_are_taken(anywhere, tmp_path):
    """Arrays may be read-only, in a file, or a copy that was pickled, because the loops only read them."""
    A = np.random.default_rng(0).integers(-4, 5, (30, 20)).astype(float)
    np.save(tmp_path / "A.npy", A)
    frozen = A.copy()
    frozen.flags.writeable = False
    for M in (frozen, np.load(tmp_path / "A.npy", mmap_mode="r")):
        C = DenseCoupling(M)
        assert C.fused
        for D in (C, pickle.loads(pickle.dumps(C))):
            assert D.fused
            np.testing.assert_array_equal(D.both(np.ones(30), np.ones(20))[0], A.sum(axis=1))
    S = pickle.loads(pickle.dumps(coupling("csr", A)))
    np.testing.assert_array_equal(S.both(np.ones(30), np.ones(20))[0], A.sum(axis=1))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["rows", "columns"])
@pytest.mark.parametrize("one_pass", [True, False])
def test_narrow_A_and_wide_vectors_need_no_copy_of_A(monkeypatch, kind, one_pass):
    if not one_pass:
        monkeypatch.setattr(dense, "FUSE_BYTES", 1 << 40)
    A = STORED[kind](np.random.default_rng(0).standard_normal((7000, 2500), np.float32))
    x, y = np.random.default_rng(1).standard_normal(7000), np.random.default_rng(2).standard_normal(2500)
    C = DenseCoupling(A)
    assert C._fuses_both == one_pass
    C.both(x, y), C.mul(y), C.tmul(x)  # compiled and loaded
    tracemalloc.start()
    try:
        Ay, Atx = C.both(x, y)
        again = C.mul(y), C.tmul(x)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < A.nbytes / 8
    wide = A.astype(np.float64)
    for products in ((Ay, Atx), again):
        np.testing.assert_allclose(products[0], wide @ y, rtol=0, atol=1e-11)
        np.testing.assert_allclose(products[1], wide.T @ x, rtol=0, atol=1e-11)
        assert products[0].dtype == products[1].dtype == np.float64
    for wrong in (np.ones(2499), np.ones(2501)):
        with pytest.raises(ValueError, match=r"aligned|mismatch"):
            C.mul(wrong)


# -- threads ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("environment", "number"),
    [
        ({}, 6),
        ({"OMP_NUM_THREADS": "3"}, 3),
        ({"OMP_NUM_THREADS": "4,2"}, 4),
        ({"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "3"}, 1),
        ({"MKL_NUM_THREADS": "2"}, 2),
        ({"NUMBA_NUM_THREADS": "5", "OPENBLAS_NUM_THREADS": "1"}, 5),
        ({"OMP_NUM_THREADS": "99"}, 6),
        ({"OMP_NUM_THREADS": "many"}, 6),
        ({"OMP_NUM_THREADS": "0"}, 6),
    ],
)
def test_the_environment_says_how_many_threads(monkeypatch, environment, number):
    for name in ("NUMBA_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: range(6), raising=False)
    assert compiled_loops.threads() == number


def _bits(C, threads):
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal(C.shape[0]), rng.standard_normal(C.shape[1])
    with pytest.MonkeyPatch.context() as patch:
        use_threads(patch, threads)
        return b"".join(v.tobytes() for v in C.both(x, y) + C.through(y, 0.3, x))


@pytest.mark.parametrize("kind", STORED)
@pytest.mark.parametrize("shape", [(300, 70), (30, 900)])
def test_same_input_same_bits(anywhere, kind, shape):
    """Products of arrays have the same bits with any number of threads, those of sparse arrays with a given number."""
    C = coupling(kind, np.random.default_rng(1).standard_normal(shape))
    for threads in (1, 2, 3, 5):
        bits = {_bits(C, threads) for _ in range(5)}
        assert len(bits) == 1
        if kind in ("rows", "columns"):
            assert bits == {_bits(C, 1)}


@pytest.mark.parametrize("kind", STORED)
def test_calls_from_many_threads_do_not_disturb_each_other(anywhere, monkeypatch, kind):
    C = coupling(kind, np.random.default_rng(1).standard_normal((400, 150)))
    use_threads(monkeypatch, 3)
    rng = np.random.default_rng(2)
    vectors = [(rng.standard_normal(400), rng.standard_normal(150)) for _ in range(24)]

    def products(pair):
        return C.both(*pair) + C.through(pair[1], 0.3, pair[0])

    alone = [products(pair) for pair in vectors]
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(products, vectors))
    for a, b in zip(alone, together, strict=True):
        for u, v in zip(a, b, strict=True):
            np.testing.assert_array_equal(u, v)


def test_an_error_in_a_helping_thread_is_raised(monkeypatch):
    use_threads(monkeypatch, 4)

    def part(k):
        if k == 11:
            raise ZeroDivisionError(k)

    with pytest.raises(ZeroDivisionError):
        compiled_loops.run_parts(part, 12)


# -- loading and compiling -------------------------------------------------------------------------------------------


def run_python(program):
    done = subprocess.run([sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""


@pytest.mark.slow
def test_numba_is_loaded_for_large_A_only():
    run_python(
        "import sys, numpy as np, saddlepoint as sp\n"
        "sp.solve(sp.Saddle(sp.Quadratic(1.0), sp.Quadratic(1.0), np.eye(30)))\n"
        "assert 'numba' not in sys.modules\n"
        "C = sp.as_coupling(np.ones((2048, 4096)))\n"
        "assert C.fused and 'numba' in sys.modules\n"
    )


@pytest.mark.slow
def test_whether_a_sparse_A_is_read_once_depends_on_A_alone():
    """Products that changed during a run, or with what was imported before, would change the bits of its answer."""
    run_python(
        "import sys, numpy as np, saddlepoint as sp\n"
        "from scipy.sparse import diags_array\n"
        "from saddlepoint.parts.coupling import sparse\n"
        "A = diags_array([[2.0] * 1000, [1.0] * 999], offsets=[0, 1]).tocsr()\n"
        "C, y = sp.as_coupling(A), np.ones(1000)\n"
        "assert not C.fused and 'numba' not in sys.modules\n"
        "import numba\n"
        "assert not sp.as_coupling(A).fused\n"
        "sparse.FUSE_ENTRIES = A.nnz\n"
        "assert sp.as_coupling(A).fused and not C.fused\n"
    )


def test_the_measured_table_names_the_sparse_matrices_that_are_read_once():
    page = (Path(__file__).parent.parent / "benchmarks" / "results" / "fused_cpu.md").read_text("utf-8")
    table = page[page.index("| A | entries |") :].partition("\n\n")[0].splitlines()[2:]
    rows = [[cell.strip() for cell in row.strip("|").split("|")] for row in table]
    taken = {name for name, *_, choice in rows if choice == "yes"}
    enough = {
        name for name, entries, *_ in rows if 1e6 * float(entries.removesuffix("M")) >= sparse_coupling.FUSE_ENTRIES
    }
    assert taken
    assert taken < enough  # the others that are large enough have entries far apart


@pytest.mark.slow
def test_everything_works_without_numba():
    run_python(
        "import sys, numpy as np\n"
        "sys.modules['numba'] = None\n"  # importing it raises
        "import saddlepoint as sp\n"
        "C = sp.as_coupling(np.ones((4096, 2048)))\n"
        "assert not C.fused and C.both(np.ones(4096), np.ones(2048))[1][0] == 4096.0\n"
        "assert C.through(np.ones(2048), 0.5)[1][0] == 4096.0 * 1024.0\n"
    )


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_makes_its_own_threads():
    run_python(
        "import os, warnings, numpy as np, saddlepoint as sp\n"
        "from saddlepoint.parts.coupling import compiled_loops\n"
        "compiled_loops.threads = lambda: 2\n"
        "C = sp.as_coupling(np.ones((2900, 2900)))\n"
        "ones = np.ones(2900)\n"
        "assert C.fused and C.both(ones, ones)[1][0] == 2900.0\n"
        "warnings.simplefilter('ignore')\n"  # Python 3.12 says that forking with threads is risky, which is the point
        "child = os.fork()\n"
        "if child == 0:\n"
        "    os._exit(0 if C.both(ones, ones)[0][0] == 2900.0 else 1)\n"
        "assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0\n"
    )


def test_without_a_folder_for_machine_code_loops_are_compiled_each_time(monkeypatch):
    asked = []

    def njit(**options):
        asked.append(options)
        if options.get("cache"):
            raise RuntimeError("cannot cache function: no locator available")
        return lambda loop: loop

    monkeypatch.setattr(compiled_loops, "NJIT", njit)
    assert compiled_loops.compiled(len) is len
    assert [options.get("cache", False) for options in asked] == [True, False]
    assert all(options["fastmath"] == {"contract", "reassoc", "nsz"} for options in asked)
