"""A on disk: the same products as in memory, one pass for both, the memory limit, and one-line errors."""

import os
import pickle
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

import saddlepoint as sp
from saddlepoint.commands import run as cli
from saddlepoint.ground.spectrum import lanczos_steps, largest_of_starts
from saddlepoint.parts import coupling
from saddlepoint.parts.coupling.streamed import RawStore, Reading, StreamedCoupling, as_bytes, budget, format_bytes
from saddlepoint.problems.files import load_problem
from saddlepoint.solving import progress

pytestmark = pytest.mark.slow  # `make check` leaves matrices on disk out

m, n = 600, 40
FORMATS = [
    "npy",
    "npy by columns",
    "memmap",
    "zarr",
    "h5",
    "h5 in chunks",
    "npy folder",
    "parquet",
    "mtx",
    "sparse mtx",
]
FORMATS += ["sparse parquet"]


def matrix(kind="f8", seed=0, some=1.0):
    rng = np.random.default_rng(seed)
    return (rng.standard_normal((m, n)) * (rng.random((m, n)) <= some)).astype(kind)


def write(folder, how, A):
    """A in a store of this format; what `stream` takes for it."""
    if how in ("npy", "memmap", "npy by columns"):
        np.save(folder / "A.npy", np.asfortranarray(A) if "columns" in how else A)
        return np.load(folder / "A.npy", mmap_mode="r") if how == "memmap" else folder / "A.npy"
    if how == "zarr":
        zarr = pytest.importorskip("zarr")
        array = zarr.open(str(folder / "A.zarr"), mode="w", shape=A.shape, chunks=(70, 30), dtype=A.dtype)
        array[:] = A
        return folder / "A.zarr"
    if how.startswith("h5"):
        h5py = pytest.importorskip("h5py")
        with h5py.File(folder / "A.h5", "w") as file:
            chunks = {"chunks": (70, 30), "compression": "gzip"} if "chunks" in how else {}
            file.create_dataset("some/A", data=A, **chunks)
            file["b"] = np.ones(3)
        return f"{folder / 'A.h5'}:some/A"
    blocks = folder / "blocks"
    blocks.mkdir()
    for k, block in enumerate(np.array_split(A, 11)):  # 9, 10, 11: not in the order of letters
        write_block(blocks / f"block{k + 1}", how, block)
    (blocks / "_SUCCESS").touch()
    return blocks


def write_block(path, how, block):
    entries = sparse.coo_array(block)
    if how == "npy folder":
        np.save(path.with_suffix(".npy"), block)
    elif "parquet" in how:
        pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        if "sparse" in how:
            table = pa.table({"row": entries.row, "column": entries.col, "value": entries.data})
            table = table.replace_schema_metadata({"shape": f"{block.shape[0]} {block.shape[1]}"})
        else:
            table = pa.table({f"c{j}": block[:, j] for j in range(block.shape[1])})
        pq.write_table(table, path.with_suffix(".parquet"), row_group_size=7)
    else:
        lines = [
            f"{i + 1} {j + 1} {v!r}" for i, j, v in zip(entries.row, entries.col, entries.data.tolist(), strict=True)
        ]
        if "sparse" not in how:
            lines = [repr(v) for v in block.T.ravel().tolist()]
        kind, size = ("coordinate", f" {entries.nnz}") if "sparse" in how else ("array", "")
        head = f"%%MatrixMarket matrix {kind} real general\n{block.shape[0]} {block.shape[1]}{size}\n"
        path.with_suffix(".mtx").write_text(head + "\n".join(lines) + "\n")


def inner(A):
    return A if isinstance(A, StreamedCoupling) else A.T


def without_memory(A):
    """A with a plan in which no block stays in memory."""
    inner(A).plan = inner(A).plan._replace(keep=frozenset())
    return A


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(budget, "BLOCK", 8192)
    monkeypatch.setattr(coupling.streamed.coupling, "FUSE_BYTES", 0)


# -- products ----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["f4", "f8"])
@pytest.mark.parametrize("how", FORMATS)
def test_products_are_those_in_memory(how, kind, tmp_path, small_blocks):
    if "mtx" in how and kind == "f4":
        pytest.skip("the numbers of a text are read in float64")
    A = matrix(kind, some=0.2 if "sparse" in how else 1.0)
    source = write(tmp_path, how, A)
    rng = np.random.default_rng(1)
    for vectors in ("f4", "f8"):
        x, e, y = (rng.standard_normal(size).astype(vectors) for size in (m, m, n))
        C = sp.stream(source, "64MB")
        assert (C.shape, C.dtype) == (A.shape, A.dtype)
        assert len(inner(C).plan.blocks) > 3
        wide = A.astype("f8")
        t, v = wide @ y, wide.T @ x
        tolerance = 300 * np.finfo(np.result_type(kind, vectors)).eps * np.sqrt(m) * 10
        for _ in range(2):  # the first products read the disk, the second ones what has stayed in memory
            found = [C.mul(y), C.tmul(x), *C.both(x, y), *C.through(y, 0.5, e), *C.T.through(x), *C.T.both(y, x)]
            true = [t, v, t, v, t, wide.T @ (0.5 * t + e), v, wide @ v, v, t]
            for a, b in zip(found, true, strict=True):
                assert a.dtype == np.result_type(kind, vectors)
                np.testing.assert_allclose(a, b, atol=tolerance * np.abs(b).max())
        again = without_memory(sp.stream(source, "64MB"))
        for a, b in zip(
            found, [again.mul(y), again.tmul(x), *again.both(x, y), *again.through(y, 0.5, e)], strict=False
        ):
            np.testing.assert_array_equal(a, b)  # blocks that are read again give the same bits as blocks in memory


@pytest.mark.parametrize("how", FORMATS)
def test_both_products_take_one_pass(how, tmp_path, small_blocks):
    C = without_memory(sp.stream(write(tmp_path, how, matrix(some=0.2 if "sparse" in how else 1.0)), "64MB"))
    by_rows = inner(C)
    x, y = np.ones(m), np.ones(n)
    C.mul(y)
    one = C.runtime.reading.bytes
    transposed = by_rows.T
    calls = [(lambda: C.tmul(x), 1), (lambda: C.both(x, y), 1), (lambda: C.T.both(y, x), 1)]
    calls += [
        (lambda: by_rows.through(np.ones(by_rows.shape[1])), 1),
        (lambda: transposed.through(np.ones(transposed.shape[1])), 2),
    ]
    for call, passes in calls:
        before = C.runtime.reading.passes, C.runtime.reading.bytes
        call()
        assert C.runtime.reading.passes - before[0] == passes
        assert C.runtime.reading.bytes - before[1] == passes * one
    assert (by_rows.fused, transposed.fused) == (True, False)


def test_what_fits_stays_in_memory(tmp_path, small_blocks):
    np.save(tmp_path / "A.npy", matrix())
    C = sp.stream(tmp_path / "A.npy", "64MB")
    C.mul(np.ones(n))
    size = m * n * 8
    assert C.runtime.reading.bytes == size
    C.mul(np.ones(n))
    assert C.runtime.reading.bytes == size
    least = budget.vector_bytes((m, n)) + 4 * 8192 + size // 2
    half = sp.stream(tmp_path / "A.npy", least)
    half.mul(np.ones(n))
    assert 0 < len(half.plan.keep) < len(half.plan.blocks)
    half.mul(np.ones(n))
    assert size < half.runtime.reading.bytes < 2 * size


def test_a_solve_takes_one_pass_a_step(tmp_path, small_blocks):
    A = 0.1 * matrix()
    np.save(tmp_path / "A.npy", A)
    C = without_memory(sp.stream(tmp_path / "A.npy"))
    g, h = sp.Quadratic(1.0, np.ones(m)), sp.Huber(l2=1.0)
    result = sp.solve(sp.Saddle(g, h, C), method="lpd-gs", tol=1e-8)
    assert result.solved
    assert result.passes <= result.iterations + 1
    steps = lanczos_steps(n, 0.1, 1e-8 ** (1 / 8))
    assert C.norm_estimate.products == 8 * steps
    assert C.runtime.reading.passes == result.passes + result.monitor_calls + 1 + steps  # one more checks the numbers
    twin = sp.solve(sp.Saddle(g, h, A), method="lpd-gs", tol=1e-8)
    np.testing.assert_allclose(result.x, twin.x, atol=2e-8)


@pytest.mark.slow
def test_every_method_reads_from_disk(tmp_path, small_blocks):
    rng = np.random.default_rng(0)
    np.save(tmp_path / "A.npy", rng.standard_normal((80, 20)))
    g, h = sp.Quadratic(2.0, np.ones(80)), sp.Quadratic(1.0, np.ones(20))
    C = sp.stream(tmp_path / "A.npy", "64MB")
    answers = []
    for info in sp.methods():
        result = sp.solve(sp.Saddle(g, h, C), method=info.name, tol=1e-5, max_calls=100_000)
        assert result.status.name in ("SOLVED", "UNCERTIFIED"), info.name
        answers.append(result.x)
    assert np.ptp(answers, axis=0).max() < 1e-3


def test_it_goes_to_another_process(tmp_path, small_blocks):
    A = matrix()
    np.save(tmp_path / "A.npy", A)
    C = sp.stream(tmp_path / "A.npy")
    first = C.mul(np.ones(n))
    there = pickle.dumps(C)
    assert len(there) < 50_000
    np.testing.assert_array_equal(pickle.loads(there).mul(np.ones(n)), first)


def test_a_run_goes_on_from_a_checkpoint(tmp_path, small_blocks):
    np.save(tmp_path / "A.npy", 0.2 * matrix())
    g, h = sp.Quadratic(1.0, np.ones(m)), sp.Huber(l2=1.0)

    def solve(**options):
        f = sp.Saddle(g, h, sp.stream(tmp_path / "A.npy", "64MB"))
        return sp.solve(f, method="lpd-gs", tol=1e-8, **options)

    part = solve(max_calls=40, checkpoint=tmp_path / "run")
    assert not part.solved
    np.testing.assert_array_equal(solve(checkpoint=tmp_path / "run").x, solve().x)


# -- the norm ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [1.0, 1e-200, 1e200])
@pytest.mark.parametrize("how", ["npy", "npy by columns"])
def test_the_norm_is_bounded(how, scale, tmp_path, small_blocks):
    A = scale * matrix()
    C = sp.stream(write(tmp_path, how, A))
    true = scale * np.linalg.norm(A / scale, 2)
    lower, upper, failure, _ = C.norm_estimate
    assert lower * (1 - 1e-12) <= true <= upper <= true / np.sqrt(0.9) * 1.001
    assert failure <= 1e-8
    assert C.runtime.reading.passes <= 16
    assert C.T.norm_estimate == C.norm_estimate


def test_a_norm_that_is_given_takes_no_pass_and_is_checked(tmp_path, small_blocks):
    A = matrix()
    np.save(tmp_path / "A.npy", A)
    true = np.linalg.norm(A, 2)
    C = sp.stream(tmp_path / "A.npy", norm=1.01 * true)
    assert C.norm == C.T.norm == 1.01 * true
    assert C.runtime.reading.passes == 0
    g, h = sp.Quadratic(1.0, np.ones(m)), sp.Quadratic(1.0, np.ones(n))
    assert sp.solve(sp.Saddle(g, h, C), tol=1e-8).solved
    with pytest.raises(sp.AssumptionError, match=r"\|A\| is too small"):
        sp.solve(sp.Saddle(g, h, sp.stream(tmp_path / "A.npy", norm=0.1 * true)), method="lpd-gs", tol=1e-8)
    with pytest.raises(sp.ProblemError, match="norm is -1"):
        sp.stream(tmp_path / "A.npy", norm=-1.0)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("starts", [1, 3, 8])
def test_lanczos_from_several_starts_bounds_the_largest_eigenvalue(seed, starts):
    rng = np.random.default_rng(seed)
    size = 300
    B = rng.standard_normal((size, size)) * rng.random(size) ** 4
    G = B.T @ B
    found = largest_of_starts(lambda V: G @ V, size, starts, margin=0.1, seed=seed)
    true = np.linalg.eigvalsh(G)[-1]
    assert found.lower <= true * (1 + 1e-12)
    assert true <= found.upper <= 1.2 * true
    low = largest_of_starts(lambda V: np.outer(B[0], B[0] @ V), size, starts)  # exact after two steps
    assert low.products <= 3 * starts
    assert low.upper == pytest.approx(B[0] @ B[0], rel=1e-10)
    assert largest_of_starts(lambda V: 0.0 * V, size, starts).upper == 0.0


# -- memory ------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.skipif(
    not Path("/proc/self/clear_refs").exists(), reason="the peak of a process is read from Linux's /proc"
)
@pytest.mark.parametrize("how", ["npy", "h5", "zarr"])
def test_memory_stays_within_the_limit(how, tmp_path):
    rows, columns, limit = (6000, 5000, 48) if how == "npy" else (4000, 2100, 28)
    large, small = (f"{tmp_path / name}.{how}" for name in ("large", "small"))
    for path, shape in ((large, (rows, columns)), (small, (500, 20))):
        if how == "npy":
            array = np.lib.format.open_memmap(path, "w+", np.float64, shape)
        elif how == "h5":
            array = pytest.importorskip("h5py").File(path, "w").create_dataset("A", shape, "f8", chunks=(100, shape[1]))
        else:
            zarr = pytest.importorskip("zarr")
            array = zarr.create_array(path, shape=shape, chunks=(100, shape[1]), dtype="f8", compressors=None)
        rng = np.random.default_rng(0)
        for i in range(0, shape[0], 500):
            array[i : i + 500] = rng.random((min(500, shape[0] - i), shape[1]))
        if how == "h5":
            array.file.close()
    size = 8 * rows * columns
    assert size >= 2.2e6 * limit
    script = Path(__file__).parent / "streaming.py"
    done = subprocess.run(
        [sys.executable, script, large, f"{limit}MB", small], capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stderr
    growth, passes, read = map(int, done.stdout.split())
    assert growth <= 1e6 * limit
    assert read >= 0.7 * passes * size  # the others stayed in memory


@pytest.mark.parametrize(
    ("text", "size"), [("2GB", 2 * 10**9), ("1.5 MiB", 1572864), ("64mb", 64 * 10**6), (1000, 1000), ("7", 7)]
)
def test_texts_of_sizes_are_understood(text, size):
    assert as_bytes(text) == size


@pytest.mark.parametrize("text", ["", "2 apples", "-1GB", 0, -5, float("nan"), None, True, "1e3"])
def test_texts_that_are_no_sizes_are_refused(text):
    with pytest.raises(sp.ProblemError, match="memory_limit is"):
        as_bytes(text)


def test_sizes_are_shown_with_units():
    assert [format_bytes(b) for b in (0, 999, 1500, 2.5e6, 9.999e8, 3e12)] == [
        "0 bytes", "999 bytes", "1.5 kB", "2.5 MB", "1 GB", "3 TB"]  # fmt: skip


def test_a_limit_that_is_too_small_is_refused_and_a_sufficient_one_is_named(tmp_path):
    np.save(tmp_path / "A.npy", matrix())
    with pytest.raises(
        sp.ProblemError, match=r"the vectors and factors of a problem of 600 x 40 alone may take 1.19 MB; give 1.48"
    ):
        sp.stream(tmp_path / "A.npy", "1MB")
    assert sp.stream(tmp_path / "A.npy", "1.49MB").shape == (m, n)
    zarr = pytest.importorskip("zarr")
    zarr.create_array(tmp_path / "A.zarr", shape=(100_000, 10), chunks=(100_000, 10), dtype="f8")
    with pytest.raises(
        sp.ProblemError, match=r"two blocks of .*A.zarr being read, of 24 MB \(rows 0 to 99999\), do not"
    ):
        sp.stream(tmp_path / "A.zarr", "90MB")


def test_a_matrix_that_does_not_fit_is_refused(tmp_path):
    np.save(tmp_path / "A.npy", np.ones((2100, 2200)))
    C = sp.stream(tmp_path / "A.npy", "15MB")
    for call in (C.matrix, C.gram, C.T.gram, C.T.matrix):
        with pytest.raises(sp.ProblemError, match="choose a method that needs products only"):
            call()


# -- mapped arrays -----------------------------------------------------------------------------------------------------


def test_a_large_map_is_streamed_by_itself(tmp_path, monkeypatch, small_blocks):
    A = matrix()
    np.save(tmp_path / "A.npy", A)
    mapped = np.load(tmp_path / "A.npy", mmap_mode="r")
    assert isinstance(sp.as_coupling(mapped), coupling.DenseCoupling)
    monkeypatch.setattr(coupling, "MEMORY_LIMIT", 1000)
    C = sp.as_coupling(mapped)
    assert isinstance(C, StreamedCoupling)
    f = sp.Saddle(sp.Quadratic(1.0), sp.Quadratic(1.0), mapped)
    assert isinstance(f.A, StreamedCoupling)
    for part in (mapped[100:], mapped[7:400], mapped.T, mapped[3:].T):
        C = sp.as_coupling(part)
        assert C.runtime.reading is not None
        np.testing.assert_allclose(C.mul(np.ones(part.shape[1])), part @ np.ones(part.shape[1]), atol=1e-12)
    for other in (mapped[:, 3:], np.load(tmp_path / "A.npy", mmap_mode="c")):  # not as they are in the file
        assert isinstance(sp.as_coupling(other), coupling.DenseCoupling)
        with pytest.raises(sp.ProblemError, match="not a whole matrix"):
            sp.stream(other)


@pytest.mark.parametrize("offset", [0, 24, 5000])
def test_a_memory_map_with_an_offset_is_read_at_its_place(offset, tmp_path, small_blocks):
    A = matrix()
    (tmp_path / "raw").write_bytes(bytes(offset) + A.tobytes())
    mapped = np.memmap(tmp_path / "raw", "f8", "r", offset, (m, n))
    np.testing.assert_array_equal(sp.stream(mapped).mul(np.ones(n)), sp.stream(mapped[:]).mul(np.ones(n)))
    np.testing.assert_allclose(sp.stream(mapped[5:]).mul(np.ones(n)), A[5:] @ np.ones(n))


def test_arrays_of_zarr_and_h5py_are_taken(tmp_path, small_blocks):
    zarr, h5py = pytest.importorskip("zarr"), pytest.importorskip("h5py")
    A = matrix()
    write(tmp_path, "zarr", A)
    array = zarr.open_array(tmp_path / "A.zarr", mode="r")
    np.testing.assert_allclose(sp.stream(array).mul(np.ones(n)), A @ np.ones(n))
    with h5py.File(tmp_path / "B.h5", "w") as file:
        file["A"] = A
        np.testing.assert_allclose(sp.stream(file["A"]).mul(np.ones(n)), A @ np.ones(n))


# -- invalid files -----------------------------------------------------------------------------------------------------


def text(folder, name, content):
    (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder / name


def blocks(folder, **files):
    (folder / "blocks").mkdir()
    for name, array in files.items():
        np.save(folder / "blocks" / f"{name}.npy", array)
    return folder / "blocks"


def saved(folder, array):
    np.save(folder / "A.npy", array, allow_pickle=True)
    return folder / "A.npy"


def truncated(folder):
    path = saved(folder, matrix())
    os.truncate(path, path.stat().st_size - 100)
    return path


def table(folder, columns, **metadata):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    pq.write_table(pa.table(columns).replace_schema_metadata(metadata), folder / "A.parquet")
    return folder / "A.parquet"


def group(folder):
    pytest.importorskip("zarr").open_group(str(folder / "A.zarr"), mode="w").create_array("a", shape=(3, 3), dtype="f8")
    return folder / "A.zarr"


ONE = np.ones((5, 3))
INVALID = {
    "no file": (lambda p: p / "A.npy", "file .*A.npy does not exist"),
    "no folder": (lambda p: p / "A.zarr", "folder .*A.zarr does not exist"),
    "no such part": (lambda p: f"{saved(p, ONE)}:A", "holds one array; drop ':A'"),
    "an odd ending": (lambda p: text(p, "A.txt", "1 2"), r"A.txt cannot be streamed; expected .npy, .zarr"),
    "rubbish": (lambda p: text(p, "A.npy", "rubbish"), "is not a valid .npy file"),
    "a vector": (lambda p: saved(p, np.ones(3)), r"has shape \(3,\); expected a matrix"),
    "an empty matrix": (lambda p: saved(p, np.ones((0, 3))), r"has shape \(0, 3\); expected a matrix"),
    "integers": (lambda p: saved(p, np.ones((3, 3), int)), "dtype int64; expected float32 or float64"),
    "the other order": (lambda p: saved(p, ONE.astype(">f8")), "dtype >f8; expected float32 or float64"),
    "objects": (lambda p: saved(p, np.array([[print]])), "holds Python objects, which are never loaded"),
    "cut short": (truncated, r"A.npy declares 192000 bytes of data \(shape \(600, 40\)\) but holds 191900"),
    "an empty folder": (lambda p: blocks(p), "is empty; expected files with some rows"),
    "a missing block": (lambda p: blocks(p, b1=ONE, b2=ONE, b4=ONE), r"has b4.npy but not b3.npy: a block is missing"),
    "the first blocks": (lambda p: blocks(p, b02=ONE, b03=ONE), r"has b03.npy but not b01.npy: a block is missing"),
    "widths": (lambda p: blocks(p, b1=ONE, b2=ONE[:, :2]), r"b2.npy has 2 columns, and .*b1.npy has 3"),
    "dtypes": (lambda p: blocks(p, b1=ONE, b2=ONE.astype("f4")), r"b2.npy is of float32, and .*b1.npy of float64"),
    "columns": (lambda p: blocks(p, b1=np.asfortranarray(ONE)), r"b1.npy is stored by columns; expected rows"),
    "kinds": (lambda p: text(blocks(p, b1=ONE), "b2.mtx", "").parent, "files that end in .mtx, .npy; expected blocks"),
    "no HDF5": (lambda p: text(p, "A.h5", "rubbish"), "is not an HDF5 file that can be read"),
    "no Zarr": (lambda p: (p / "A.zarr").mkdir() or p / "A.zarr", "is not a Zarr array"),
    "a Zarr group": (group, "is a Zarr group; name one of its arrays: a"),
    "no Parquet": (lambda p: text(p, "A.parquet", "rubbish"), "is not a Parquet file that can be read"),
    "words": (lambda p: table(p, {"a": ["x"], "b": ["y"]}), "dtype 'string'; expected float32 or float64"),
    "mixed columns": (lambda p: table(p, {"a": [1.0], "b": [1]}), "columns of different types, double, int64"),
    "entries alone": (
        lambda p: table(p, {"row": [0], "column": [0], "value": [1.0]}),
        "expected their matrix's shape in the metadata",
    ),
    "no Matrix Market": (lambda p: text(p, "A.mtx", "rubbish\n"), "is not a valid Matrix Market file"),
    "a number": (lambda p: 3.0, "the source is 3.0; expected a file, a folder"),
    "a coupling": (lambda p: sp.as_coupling(ONE), "the source is a coupling already"),
    "a fifo": (lambda p: os.mkfifo(p / "A.npy") or p / "A.npy", "is not a file; expected a regular one"),
}


@pytest.mark.parametrize("what", INVALID)
def test_bad_files_are_refused(what, tmp_path):
    make, sentence = INVALID[what]
    for library, name in (("h5py", "HDF5"), ("zarr", "Zarr"), ("pyarrow", "Parquet")):
        if name in what:
            pytest.importorskip(library)
    with pytest.raises(sp.ProblemError, match=sentence):
        sp.stream(make(tmp_path))


def test_a_dataset_is_named(tmp_path):
    pytest.importorskip("h5py")
    source = write(tmp_path, "h5", matrix())
    for wrong, sentence in ((source[:-7], "holds several datasets; name one as FILE:NAME; it has b, some/A"),
                            (source + "a", "has no dataset 'some/Aa'; .*did you mean 'some/A'")):  # fmt: skip
        with pytest.raises(sp.ProblemError, match=sentence):
            sp.stream(wrong)


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("how", ["npy", "sparse mtx", "h5 in chunks"])
def test_nan_is_found_in_the_first_pass(how, value, tmp_path, small_blocks):
    A = matrix(some=0.1 if "sparse" in how else 1.0)
    A[457, 13] = value
    if how == "sparse mtx" and np.isinf(value):
        A[457, 13] = 1e308
        A[458:, 13] = 1e308  # this matrix is valid, although its norm overflows
        assert np.isfinite(sp.stream(write(tmp_path, how, A)).mul(np.zeros(n))).all()
        return
    with pytest.raises(sp.ProblemError, match=f"has a {value} in row 457, column 13; all entries must be finite"):
        sp.stream(write(tmp_path, how, A)).mul(np.ones(n))


@pytest.mark.slow
@pytest.mark.parametrize("change", ["cut", "longer", "touched", "gone"])
@pytest.mark.parametrize("how", ["npy", "npy folder", "h5 in chunks", "parquet", "mtx"])
def test_a_file_that_changes_during_the_run_ends_it_in_a_sentence(how, change, tmp_path, small_blocks):
    source = write(tmp_path, how, matrix())
    C = without_memory(sp.stream(source))
    f = sp.Saddle(sp.Quadratic(1.0, np.ones(m)), sp.Huber(l2=1.0), C)
    file = max(tmp_path.rglob("*.*"), key=lambda path: (path.is_file(), path.name))
    seen = []

    def disturb(result):
        seen.append(result)
        if len(seen) == 3 and change == "gone":
            file.unlink()
        elif len(seen) == 3:
            size = file.stat().st_size
            os.truncate(file, size // 2 if change == "cut" else size + 8 if change == "longer" else size)
            os.utime(file, ns=(1, 1))

    sentence = "cannot be read: No such file" if change == "gone" else "while it was in use"
    with pytest.raises(sp.ProblemError, match=sentence) as caught:
        sp.solve(f, method="lpd-gs", tol=1e-12, callback=disturb)
    assert caught.value.result.certificate.distance <= seen[-1].certificate.distance
    assert not [thread for thread in threading.enumerate() if "reader" in thread.name]


def test_a_file_that_becomes_shorter_within_a_pass_is_noticed(tmp_path, small_blocks):
    np.save(tmp_path / "A.npy", matrix())
    store = RawStore(tmp_path / "A.npy", 128, (m, n), np.dtype("f8"))
    block = store.blocks(20 * n * 8)[25]
    sentence = "has become shorter while it was in use: rows 500 to 519"
    with store.opened() as read:
        os.truncate(tmp_path / "A.npy", 128 + 510 * n * 8)
        with pytest.raises(sp.ProblemError, match=sentence):
            read(block, None)
        os.truncate(tmp_path / "A.npy", 128 + m * n * 8)
        os.utime(tmp_path / "A.npy", ns=(store.state.changed, store.state.changed))


def test_a_damaged_chunk_is_named(tmp_path, small_blocks):
    pytest.importorskip("zarr")
    write(tmp_path, "zarr", matrix())
    next(path for path in (tmp_path / "A.zarr").rglob("*") if path.is_file() and "json" not in path.name).write_bytes(
        b"x"
    )
    with pytest.raises(sp.ProblemError, match=r"rows .* of .*A.zarr cannot be read"):
        sp.stream(tmp_path / "A.zarr").mul(np.ones(n))


@pytest.mark.parametrize("place", ["filters", "compressors"])
def test_nothing_is_unpickled(place, tmp_path):
    zarr, numcodecs = pytest.importorskip("zarr"), pytest.importorskip("numcodecs")
    path = tmp_path / "A.zarr"
    codecs = {"filters": None, "compressors": None, place: [numcodecs.Pickle()]}
    zarr.create_array(path, shape=(4, 3), dtype="f8", zarr_format=2, **codecs)
    with pytest.raises(
        sp.ProblemError, match=r"is stored by pickle, which is never loaded|is not a Zarr array: .*pickle"
    ):
        sp.stream(path)


def test_entries_that_are_missing_or_outside_are_refused(tmp_path):
    path = table(tmp_path, {"a": [1.0, None], "b": [1.0, 2.0]})
    with pytest.raises(sp.ProblemError, match="has entries that are missing"):
        sp.stream(path).mul(np.ones(2))
    path = table(tmp_path, {"row": [0, 5], "column": [0, 0], "value": [1.0, 2.0]}, shape="3 2")
    with pytest.raises(sp.ProblemError, match=r"an entry outside its shape \(3, 2\) in its column 'row'"):
        sp.stream(path).mul(np.ones(2))


@pytest.mark.parametrize("library", ["zarr", "h5py", "pyarrow.parquet"])
def test_without_the_library_the_error_says_how_to_install_it(library, tmp_path, monkeypatch):
    how = {"zarr": "zarr", "h5py": "h5", "pyarrow.parquet": "parquet"}[library]
    source = write(tmp_path, how, matrix())
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(sp.ProblemError, match=r"pip install 'saddlepoint\[data\]'"):
        sp.stream(source)


def test_vectors_of_another_length_are_refused(tmp_path):
    np.save(tmp_path / "A.npy", matrix())
    C = sp.stream(tmp_path / "A.npy")
    for call in (lambda: C.mul(np.ones(m)), lambda: C.tmul(np.ones(n)), lambda: C.through(np.ones(n), 1.0, np.ones(3))):
        with pytest.raises(ValueError, match="a vector of shape"):
            call()


# -- interruption and progress -----------------------------------------------------------------------------------------


def test_ctrl_c_ends_between_two_blocks_with_the_best_point(tmp_path, small_blocks, monkeypatch):
    np.save(tmp_path / "A.npy", matrix())
    C = without_memory(sp.stream(tmp_path / "A.npy"))
    assert C.norm > 0
    advance, blocks_done = Reading.advance, []

    def then_signal(self, block, kept):
        advance(self, block, kept)
        blocks_done.append(block)
        if len(blocks_done) == 700:
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(Reading, "advance", then_signal)
    result = sp.solve(sp.Saddle(sp.Quadratic(1.0, np.ones(m)), sp.Huber(l2=1.0), C), method="lpd-gs", tol=1e-13)
    assert result.status is sp.Status.INTERRUPTED
    assert result.certificate.distance < np.inf
    assert len(blocks_done) == 700  # no block is read after the signal
    assert 0.0 < C.runtime.reading.share < 1.0
    assert not [thread for thread in threading.enumerate() if "reader" in thread.name]


def test_the_share_grows_within_a_pass_and_the_rate_is_measured(tmp_path, small_blocks):
    np.save(tmp_path / "A.npy", matrix())
    C = without_memory(sp.stream(tmp_path / "A.npy"))
    assert C.lengths.rows.shape == (m,)
    shares = []
    C._pass(lambda rows, A: shares.append(C.runtime.reading.share))
    assert shares == sorted(shares)
    assert shares[0] == 0.0
    assert shares[-1] < C.runtime.reading.share == 1.0
    assert C.runtime.reading.rate > 0.0
    reading = Reading()
    reading.passes, reading.share, reading.rate = 7, 0.357, 1.234e9
    assert progress.format_reading(reading) == "pass 7, 35 %, 1.23 GB/s"
    reading.rate = 0.0
    assert progress.format_reading(reading) == "pass 7, 35 %, in memory"


@pytest.mark.slow
@pytest.mark.parametrize("rich", [True, False])
def test_progress_shows_the_rate(rich, tmp_path, small_blocks, capsys, monkeypatch):
    if rich:
        pytest.importorskip("rich")
        monkeypatch.setenv("COLUMNS", "120")
    else:
        monkeypatch.setitem(sys.modules, "rich.progress", None)
        monkeypatch.setattr(progress, "QUIET", 1e-3)
    np.save(tmp_path / "A.npy", 0.3 * matrix())
    C = without_memory(sp.stream(tmp_path / "A.npy"))
    sp.solve(sp.Saddle(sp.Quadratic(1.0, np.ones(m)), sp.Huber(l2=1.0), C), method="lpd-gs", tol=1e-8, progress=True)
    shown = capsys.readouterr().err
    assert "estimating |A|" in shown
    assert all(word in shown for word in ("B/s", "pass ", " %"))
    assert (
        not [thread for thread in threading.enumerate() if "progress" in thread.name and thread.is_alive()] or not rich
    )


# -- problem files -----------------------------------------------------------------------------------------------------

FILE = """
A = {A}

[g]
kind = "quadratic"
P = 1.0
b = "b.npy"

[h]
kind = "huber"
l2 = 1.0
"""


@pytest.mark.parametrize("how", FORMATS)
def test_a_problem_file_names_it(how, tmp_path, small_blocks):
    A = matrix(some=0.2 if "sparse" in how else 1.0)
    source = write(tmp_path, how, A)
    np.save(tmp_path / "b.npy", np.ones(m))
    name = Path("A.npy" if how == "memmap" else source).name if "h5" not in how else "A.h5:some/A"
    references = [f'{{ stream = "{name}", norm = 1e3 }}'] + ([f'"{name}"'] if "npy" not in name else [])
    for reference in references:
        (tmp_path / "problem.toml").write_text(FILE.format(A=reference))
        f = load_problem(tmp_path / "problem.toml").problem
        assert f.A.runtime.reading is not None
        assert (f.norm == 1e3) == ("norm" in reference)
        np.testing.assert_allclose(f.A.mul(np.ones(n)), A @ np.ones(n), atol=1e-10)


@pytest.mark.slow
def test_a_file_beyond_the_memory_limit_stays_on_disk(tmp_path, capsys, monkeypatch):
    np.save(tmp_path / "A.npy", np.random.default_rng(0).standard_normal((5000, 600)))
    np.save(tmp_path / "b.npy", np.ones(5000))
    (tmp_path / "problem.toml").write_text(FILE.format(A='"A.npy"'))
    assert load_problem(tmp_path / "problem.toml").problem.A.runtime.reading is None
    assert load_problem(tmp_path / "problem.toml", 21_000_000).problem.A.runtime.reading is not None
    monkeypatch.setattr(sys, "argv", ["saddlepoint", "solve", str(tmp_path / "problem.toml"), "--memory-limit", "21MB"])
    assert cli.run() == 0
    assert "solved" in capsys.readouterr().out
    with pytest.raises(sp.ProblemError, match=r"problem.toml: key 'A': memory_limit is .* alone may take"):
        load_problem(tmp_path / "problem.toml", 15_000_000)


@pytest.mark.parametrize(
    ("A", "sentence"),
    [
        ("{ stream = 3 }", "key 'A.stream' is 3; expected the name"),
        ("{ norm = 3.0 }", "key 'A.stream' is None; expected the name"),
        ('{ stream = "A.npy", nrm = 1.0 }', "key 'A.nrm' is unknown; .*did you mean 'norm'"),
        ('{ stream = "A.npy", norm = "x" }', "key 'A.norm' is 'x'"),
        ('{ stream = "none.npy" }', "key 'A': file .*none.npy does not exist"),
    ],
)
def test_a_problem_file_that_is_wrong_is_refused(A, sentence, tmp_path):
    np.save(tmp_path / "A.npy", matrix())
    np.save(tmp_path / "b.npy", np.ones(m))
    (tmp_path / "problem.toml").write_text(FILE.format(A=A))
    with pytest.raises(sp.ProblemError, match=sentence):
        load_problem(tmp_path / "problem.toml")


@pytest.mark.parametrize("how", ["npy", "npy by columns", "sparse mtx"])
def test_the_matrices_that_methods_factorise_are_those_in_memory(how, tmp_path, small_blocks):
    A = matrix(some=0.2 if "sparse" in how else 1.0)[:200]
    limit = budget.vector_bytes(A.shape) + 8 * 3 * 200**2 + 100_000 + 4 * A.nbytes * (how == "sparse mtx")
    C = sp.stream(write(tmp_path, how, A), limit)
    inner(C).plan = inner(C).plan._replace(keep=frozenset())
    np.testing.assert_allclose(C.gram(), A.T @ A, atol=1e-11)
    np.testing.assert_allclose(C.T.gram(), A @ A.T, atol=1e-11)
    x, y = C.resolvent(np.ones(200), np.ones(n), 0.7)
    np.testing.assert_allclose(x + 0.7 * A @ y, np.ones(200), atol=1e-9)
    whole = C.matrix()
    np.testing.assert_array_equal(whole.toarray() if sparse.issparse(whole) else whole, A)


def test_the_page_runs(tmp_path, monkeypatch):
    page = Path(__file__).parent.parent / "docs/scaling/streamed.md"
    monkeypatch.chdir(tmp_path)
    (block,) = re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)
    exec(compile(block, page.name, "exec"), {})
    for link in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
        assert (page.parent / link).exists(), link
