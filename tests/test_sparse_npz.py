"""Sparse matrices that scipy.sparse.save_npz wrote: every format, and a one-line error for damaged files."""

import pickle

import numpy as np
import pytest
from file_bytes import Bomb
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import saddlepoint as sp
from saddlepoint.problems.files import load_problem
from saddlepoint.problems.files.arrays import read_array

RNG = np.random.default_rng(0)
A = np.where(RNG.random((6, 4)) < 0.5, RNG.standard_normal((6, 4)), 0.0)
FORMATS = {
    "csr": sparse.csr_array(A),
    "csc": sparse.csc_array(A),
    "coo": sparse.coo_array(A),
    "bsr": sparse.bsr_array(A, blocksize=(3, 2)),
    "dia": sparse.dia_array(A),
    "csr_matrix": sparse.csr_matrix(A),
    "coo_matrix": sparse.coo_matrix(A),
}
LIMIT = 1 << 24  # bytes of memory for every file below
CSR = {
    "format": np.array(b"csr"),
    "shape": np.array([2, 3]),
    "data": np.array([1.0, 2.0, 3.0]),
    "indices": np.array([0, 2, 1]),
    "indptr": np.array([0, 2, 3]),
}
COO = {
    "format": np.array(b"coo"),
    "shape": np.array([2, 3]),
    "data": np.array([1.0, 2.0, 3.0]),
    "row": np.array([0, 0, 1]),
    "col": np.array([0, 2, 1]),
}
BSR = CSR | {
    "format": np.array(b"bsr"),
    "shape": np.array([4, 6]),
    "data": np.arange(12.0).reshape(3, 2, 2),
}
DIA = {
    "format": np.array(b"dia"),
    "shape": np.array([2, 3]),
    "data": np.arange(6.0).reshape(2, 3),
    "offsets": np.array([0, 1]),
}


def saved(folder, arrays, pack=np.savez_compressed):
    pack(folder / "A.npz", **arrays)
    return read_array("A.npz", folder, LIMIT)


@pytest.mark.parametrize("compressed", [True, False])
@pytest.mark.parametrize("matrix", FORMATS.values(), ids=FORMATS)
def test_every_format_is_read(matrix, compressed, tmp_path):
    sparse.save_npz(tmp_path / "A.npz", matrix, compressed=compressed)
    found = read_array("A.npz", tmp_path, LIMIT)
    assert isinstance(found, sparse.csr_array)
    assert found.dtype == np.float64
    np.testing.assert_array_equal(found.toarray(), A)


@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.uint16, bool])
def test_every_real_dtype_is_read(dtype, tmp_path):
    matrix = sparse.csr_array(np.eye(3, dtype=dtype))
    sparse.save_npz(tmp_path / "A.npz", matrix)
    found = read_array("A.npz", tmp_path, LIMIT)
    assert found.dtype == dtype
    np.testing.assert_array_equal(sp.as_coupling(found).matrix().toarray(), np.eye(3))


def test_a_problem_may_have_sparse_files_as_A_and_as_data(tmp_path):
    sparse.save_npz(tmp_path / "A.npz", FORMATS["coo"])
    sparse.save_npz(tmp_path / "D.npz", FORMATS["csc"].T)
    np.save(tmp_path / "t.npy", np.ones(4))
    (tmp_path / "problem.toml").write_text(
        'A = "A.npz"\n[g]\nkind = "least-squares"\nD = "D.npz"\nt = "t.npy"\nl2 = 1.0\n'
        '[h]\nkind = "quadratic"\nP = 1.0\n'
    )
    f = load_problem(tmp_path / "problem.toml").problem
    assert isinstance(f.A, type(sp.as_coupling(FORMATS["csr"])))
    dense = sp.Saddle(sp.LeastSquares(A.T, np.ones(4), l2=1.0), sp.Quadratic(1.0), A)
    np.testing.assert_allclose(sp.solve(f, tol=1e-9).x, sp.solve(dense, tol=1e-9).x, atol=1e-8)


def test_one_of_its_arrays_can_be_named(tmp_path):
    np.savez(tmp_path / "A.npz", **CSR)
    np.testing.assert_array_equal(read_array("A.npz:indices", tmp_path, LIMIT), CSR["indices"])


def test_arrays_that_only_look_like_a_sparse_file_are_several_arrays(tmp_path):
    np.savez(tmp_path / "A.npz", data=np.ones((2, 2)), shape=np.ones(2))
    with pytest.raises(sp.ProblemError, match="holds several arrays; name one as FILE:NAME; it has data, shape"):
        read_array("A.npz", tmp_path, LIMIT)


def test_entries_beyond_the_last_pointer_are_spare_room(tmp_path):
    """SciPy saves the arrays of a matrix as they are, which may be longer than what is used of them."""
    longer = CSR | {"data": np.append(CSR["data"], 9.0), "indices": np.append(CSR["indices"], 0)}
    np.testing.assert_array_equal(saved(tmp_path, longer).toarray(), [[1, 0, 2], [0, 3, 0]])


def without(arrays, name):
    return {key: value for key, value in arrays.items() if key != name}


DAMAGED = {
    "format unknown": (CSR | {"format": np.array("lil")}, "has the sparse format 'lil'; expected one of csr, csc, bsr"),
    "format a number": (CSR | {"format": np.array(3)}, "A.npz:format is of int64 and shape .*; expected a short text"),
    "format long": (CSR | {"format": np.array("c" * 99)}, "A.npz:format is of <U99 .*; expected a short text"),
    "shape of three": (
        CSR | {"shape": np.array([2, 3, 1])},
        r"has the shape \[2, 3, 1\]; expected two positive integers",
    ),
    "shape negative": (CSR | {"shape": np.array([2, -3])}, r"has the shape \[2, -3\]; expected two positive integers"),
    "shape empty": (CSR | {"shape": np.array([0, 3])}, "expected two positive integers"),
    "shape of fractions": (CSR | {"shape": np.array([2.0, 3.0])}, "expected two positive integers"),
    "shape huge": (
        CSR | {"shape": np.array([2, 1 << 62])},
        "of shape .* needs .* GiB, above the memory limit of 16 MiB",
    ),
    "shape too small": (CSR | {"shape": np.array([2, 2])}, "has 0 to 2 in the array 'indices'; expected 0 to 1"),
    "other rows": (CSR | {"shape": np.array([5, 3])}, "damaged array 'indptr'; expected 6 integers from 0 on"),
    "index too large": (CSR | {"indices": np.array([0, 3, 1])}, "has 0 to 3 in the array 'indices'; expected 0 to 2"),
    "index that wraps": (
        CSR | {"indices": np.array([0, (1 << 32) + 1, 1])},
        "has 0 to 4294967297 in the array 'indices'",
    ),
    "index negative": (CSR | {"indices": np.array([0, -1, 1])}, "has -1 to 1 in the array 'indices'; expected 0 to 2"),
    "index fractional": (
        CSR | {"indices": np.array([0.0, 2.0, 1.0])},
        "an array 'indices' of float64 .*; expected a vector",
    ),
    "indices of two dimensions": (
        CSR | {"indices": np.array([[0, 2, 1]])},
        r"shape \(1, 3\); expected a vector of integers",
    ),
    "too few indices": (CSR | {"indices": np.array([0, 2])}, "has 3 entries, 2 indices, and points to 3 of them"),
    "pointers beyond": (CSR | {"indptr": np.array([0, 2, 9])}, "has 3 entries, 3 indices, and points to 9 of them"),
    "pointers that fall": (CSR | {"indptr": np.array([0, 4, 3])}, "damaged array 'indptr'"),
    "pointers that fall, unsigned": (CSR | {"indptr": np.array([0, 4, 3], np.uint64)}, "damaged array 'indptr'"),
    "pointers not from 0": (
        CSR | {"indptr": np.array([1, 2, 3])},
        "damaged array 'indptr'; expected 3 integers from 0 on",
    ),
    "no pointers": (CSR | {"indptr": np.array([], int)}, "damaged array 'indptr'"),
    "no indices": (without(CSR, "indices"), "has no array 'indices'; it has format, shape, data, indptr"),
    "data of two dimensions": (CSR | {"data": np.ones((3, 1))}, r"has data of shape \(3, 1\); expected a vector"),
    "data complex": (CSR | {"data": np.ones(3, complex)}, "A.npz:data has dtype complex128; expected real numbers"),
    "data of objects": (
        CSR | {"data": np.array([None])},
        "A.npz:data holds pickled Python objects, which are never loaded",
    ),
    "coo, row too large": (COO | {"row": np.array([0, 0, 2])}, "has 0 to 2 in the array 'row'; expected 0 to 1"),
    "coo, column negative": (COO | {"col": np.array([0, -2, 1])}, "has -2 to 1 in the array 'col'; expected 0 to 2"),
    "coo, other lengths": (
        COO | {"col": np.array([0, 1])},
        "has 3 entries in 3 rows and 2 columns; expected as many of each",
    ),
    "coo, no rows": (without(COO, "row"), "has no array 'row'"),
    "bsr, blocks that do not fit": (
        BSR | {"shape": np.array([4, 5])},
        r"has blocks of shape \(2, 2\); expected .* divide \(4, 5\)",
    ),
    "bsr, empty blocks": (BSR | {"data": np.ones((3, 0, 2))}, "has blocks of shape"),
    "bsr, flat data": (BSR | {"data": np.ones(3)}, "has blocks of shape"),
    "bsr, index too large": (
        BSR | {"indices": np.array([0, 3, 1])},
        "has 0 to 3 in the array 'indices'; expected 0 to 2",
    ),
    "dia, an offset twice": (DIA | {"offsets": np.array([1, 1])}, "expected one diagonal for each of several distinct"),
    "dia, an offset outside": (
        DIA | {"offsets": np.array([0, 3])},
        "has 0 to 3 in the array 'offsets'; expected -1 to 2",
    ),
    "dia, an offset missing": (DIA | {"offsets": np.array([0])}, "expected one diagonal for each of several distinct"),
}


@pytest.mark.parametrize(("arrays", "sentence"), DAMAGED.values(), ids=DAMAGED)
def test_damaged_files_are_refused_in_a_sentence(arrays, sentence, tmp_path):
    with pytest.raises(sp.ProblemError, match=sentence) as refused:
        saved(tmp_path, arrays)
    assert "A.npz" in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("kept", [0, 1, 60, 300, -40, -1])
def test_files_that_are_cut_off_are_refused(kept, tmp_path):
    np.savez_compressed(tmp_path / "whole.npz", **CSR)
    (tmp_path / "A.npz").write_bytes((tmp_path / "whole.npz").read_bytes()[:kept])
    with pytest.raises(sp.ProblemError, match=r"A.npz is not a valid .npz file, or damaged"):
        read_array("A.npz", tmp_path, LIMIT)


def test_a_small_file_that_unfolds_to_much_is_refused(tmp_path):
    many = 1 << 22
    zeros = {"data": np.zeros(many), "indices": np.zeros(many, int), "indptr": np.array([0, 0, many])}
    with pytest.raises(sp.ProblemError, match=r"A.npz:data of shape .* needs 32 MiB, above the memory limit of 16 MiB"):
        saved(tmp_path, CSR | zeros)
    assert (tmp_path / "A.npz").stat().st_size < 1 << 17


def test_the_conversion_to_rows_is_counted(tmp_path):
    many = 1 << 18  # 2 MiB of data, 4 MiB of places, and 10 MiB to sort them
    places = RNG.integers(0, 100, (2, many))
    arrays = COO | {"shape": np.array([100, 100]), "data": np.ones(many), "row": places[0], "col": places[1]}
    np.savez(tmp_path / "A.npz", **arrays)
    with pytest.raises(sp.ProblemError, match="with 262144 entries needs 10 MiB, above the memory limit of 12 MiB"):
        read_array("A.npz", tmp_path, 12 << 20)
    assert read_array("A.npz", tmp_path, 32 << 20).sum() == many


def test_nothing_is_unpickled(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    objects = np.array([Bomb(), Bomb(), Bomb()], dtype=object)
    for name in CSR:
        np.savez(tmp_path / "A.npz", **CSR | {name: objects})
        with pytest.raises(sp.ProblemError):
            read_array("A.npz", tmp_path, LIMIT)
    assert not (tmp_path / "the-pickle-ran").exists()
    pickle.loads(pickle.dumps(Bomb())).close()
    assert (tmp_path / "the-pickle-ran").exists()


small = st.integers(-2, 5)
vectors = st.lists(small, max_size=5)


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(
    kind=st.sampled_from(["csr", "csc", "coo"]),
    shape=st.tuples(small, small),
    entries=st.integers(0, 5),
    places=st.tuples(vectors, vectors),
    dtype=st.sampled_from(["int32", "int64"]),
)
def test_forged_arrays_give_their_matrix_or_are_refused(tmp_path_factory, kind, shape, entries, places, dtype):
    """The matrix is compared entry by entry, because SciPy would read outside its arrays where indices are wrong."""
    data = np.arange(1.0, 1.0 + entries)
    first, second = (np.array(place, dtype) for place in places)
    names = ("row", "col") if kind == "coo" else ("indices", "indptr")
    arrays = {"format": np.array(kind), "shape": np.array(shape), "data": data, names[0]: first, names[1]: second}
    expected = entry_by_entry(kind, shape, data, places)
    folder = tmp_path_factory.mktemp("forged")
    if expected is None:
        with pytest.raises(sp.ProblemError):
            saved(folder, arrays, np.savez)
    else:
        np.testing.assert_array_equal(saved(folder, arrays, np.savez).toarray(), expected)


def entry_by_entry(kind, shape, data, places):
    """The dense matrix, or None if an entry has no place."""
    if min(shape) < 1 or len(data) != len(places[0]):
        return None
    if kind == "coo":
        if len(places[1]) != len(data):
            return None
        found = list(zip(*places, strict=True))
    else:
        indices, indptr = places
        lines = shape[0] if kind == "csr" else shape[1]
        if len(indptr) != lines + 1 or indptr[0] != 0 or sorted(indptr) != indptr or indptr[-1] > len(data):
            return None
        owners = np.repeat(np.arange(lines), np.diff(indptr))
        found = [(i, j) if kind == "csr" else (j, i) for i, j in zip(owners, indices[: indptr[-1]], strict=True)]
        if any(not 0 <= j < (shape[1] if kind == "csr" else shape[0]) for j in indices):
            return None  # also in the spare room
    if any(not (0 <= i < shape[0] and 0 <= j < shape[1]) for i, j in found):
        return None
    matrix = np.zeros(shape)
    for (i, j), value in zip(found, data[: len(found)], strict=True):
        matrix[i, j] += value
    return matrix


def test_whole_numbers_at_one_place_are_added_up_without_overflow(tmp_path):
    A = sparse.coo_array((np.array([100, 100, 3], dtype=np.int8), ([0, 0, 1], [0, 0, 1])), shape=(2, 2))
    sparse.save_npz(tmp_path / "A.npz", A)
    np.testing.assert_array_equal(read_array("A.npz", tmp_path).toarray(), [[200.0, 0.0], [0.0, 3.0]])
