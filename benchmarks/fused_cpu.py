"""One pass over A against two products: `python benchmarks/fused_cpu.py [--quick]`, on as many threads as BLAS has.

Set OPENBLAS_NUM_THREADS to choose the number of threads; SciPy's sparse products always use one thread. Each row is the
best of interleaved repetitions, in CPU time where there is one thread, since others may share the machine. The last
column says whether the library uses one pass for such an A, which depends on A alone. Such a best case is not what a
user waits for: `python benchmarks/fused_cpu.py --wall` prints quartiles of the wall-clock ratios of neighbouring
repetitions instead, with one thread, with all, and with all and OPENBLAS_THREAD_TIMEOUT=4, with which threads of
OpenBLAS sleep as soon as a product is done, instead of keeping a core busy for about 20 ms.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import numpy as np
from scipy import sparse as scipy_sparse

import saddlepoint as sp
from saddlepoint.ground.arrays import Array
from saddlepoint.parts.coupling import Coupling, compiled_loops, dense, sparse

DENSE = [  # rows, columns, type of A, type of the vectors, order
    (20_000, 5_000, "f8", "f8", "C"),
    (20_000, 5_000, "f4", "f4", "C"),
    (20_000, 5_000, "f4", "f8", "C"),
    (8_000, 4_000, "f8", "f8", "C"),
    (4_000, 8_000, "f8", "f8", "C"),
    (4_096, 2_048, "f8", "f8", "C"),
    (2_048, 2_048, "f8", "f8", "C"),
    (1_000, 1_000, "f8", "f8", "C"),
    (500, 500, "f8", "f8", "C"),
    (1_000, 100_000, "f8", "f8", "C"),
    (400, 250_000, "f8", "f8", "C"),
    (100, 1_000_000, "f8", "f8", "C"),
    (300_000, 300, "f8", "f8", "C"),
    (2_000_000, 40, "f8", "f8", "C"),
    (2_000_000, 16, "f8", "f8", "C"),
    (4_000_000, 8, "f8", "f8", "C"),
    (2_000_000, 16, "f8", "f8", "F"),
    (300_000, 300, "f8", "f8", "F"),
    (80_000, 1_000, "f8", "f8", "F"),
    (40_000, 2_000, "f8", "f8", "F"),
    (40_000, 2_000, "f4", "f4", "F"),
    (20_000, 4_000, "f8", "f8", "F"),
    (8_000, 8_000, "f8", "f8", "F"),
]


def scattered(m: int, n: int, row: int, spread: float = 1.0) -> scipy_sparse.csr_array:
    """A random sparse matrix with ``row`` entries in a row; a spread above 1 puts more of them in the first columns."""
    rng = np.random.default_rng(0)
    columns = np.sort((rng.random((m, row)) ** spread * n).astype(np.int32), axis=1)
    return _csr(columns.ravel(), np.full(m, row), n)


def banded(n: int, row: int) -> scipy_sparse.csr_array:
    """A band along the diagonal."""
    columns = np.clip(np.arange(n)[:, None] + np.arange(row) - row // 2, 0, n - 1)
    return _csr(columns.ravel().astype(np.int32), np.full(n, row), n)


def heavy_rows(m: int, n: int) -> scipy_sparse.csr_array:
    """Rows whose lengths follow a power law."""
    rng = np.random.default_rng(0)
    lengths = np.minimum((4.0 * rng.pareto(1.2, m) + 1.0).astype(np.int64), n)
    return _csr(rng.integers(0, n, lengths.sum()).astype(np.int32), lengths, n)


def _csr(columns: Array, lengths: Array, n: int) -> scipy_sparse.csr_array:
    start = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    values = np.random.default_rng(1).standard_normal(len(columns))
    A = scipy_sparse.csr_array((values, columns, start), shape=(len(lengths), n))
    A.sum_duplicates()
    return A


SPARSE: dict[str, Callable[[], scipy_sparse.csr_array]] = {
    "random 200k x 50k, 15 a row": lambda: scattered(200_000, 50_000, 15),
    "random 50k x 200k, 60 a row": lambda: scattered(50_000, 200_000, 60),
    "random 1M x 200k, 8 a row": lambda: scattered(1_000_000, 200_000, 8),
    "random 2M x 500k, 10 a row": lambda: scattered(2_000_000, 500_000, 10),
    "random 500k x 2M, 10 a row": lambda: scattered(500_000, 2_000_000, 10),
    "crowded columns 200k x 50k": lambda: scattered(200_000, 50_000, 15, 3.0),
    "power-law rows 200k x 50k": lambda: heavy_rows(200_000, 50_000),
    "band of 11, 300k": lambda: banded(300_000, 11),
    "band of 11, 2M": lambda: banded(2_000_000, 11),
    "diagonal, 2M": lambda: banded(2_000_000, 1),
    "tall 2M x 100, 5 a row": lambda: scattered(2_000_000, 100, 5),
    "wide 500 x 1M, 8000 a row": lambda: scattered(500, 1_000_000, 8_000),
    "full rows 2000 x 2000": lambda: scipy_sparse.csr_array(np.random.default_rng(0).standard_normal((2000, 2000))),
    "random 20k x 5k, 10 a row": lambda: scattered(20_000, 5_000, 10),
}


@contextmanager
def everywhere(one_pass: bool) -> Iterator[None]:
    """Makes all couplings use one pass, or two products, for any size and shape."""
    least = [(dense, "FUSE_BYTES"), (dense, "FUSE_SIDE_BYTES"), (sparse, "FUSE_ENTRIES")]
    most = [(dense, "FUSE_ROW_BYTES"), (dense, "FUSE_COLUMNS"), (sparse, "FUSE_WINDOW")]
    kept = [(module, name, getattr(module, name)) for module, name in least + most]
    for module, name, _ in kept:
        setattr(module, name, 1 if one_pass == ((module, name) in least) else sys.maxsize)
    try:
        yield
    finally:
        for module, name, value in kept:
            setattr(module, name, value)


def coupling(A: Array | scipy_sparse.csr_array, one_pass: bool) -> Coupling:
    """A as a coupling, and its transpose."""
    with everywhere(one_pass):
        C = sp.as_coupling(A)
        assert C.T.shape == C.shape[::-1]
    return C


def fastest(tasks: dict[str, Callable[[], object]], seconds: float) -> dict[str, float]:
    """The shortest time of each task; the tasks are called in turn for some seconds, at least three times each."""
    best = dict.fromkeys(tasks, float("inf"))
    for task in tasks.values():
        task()  # the first call compiles
    clock = time.process_time if compiled_loops.threads() == 1 else time.perf_counter
    end, rounds = time.perf_counter() + seconds, 0
    while rounds < 3 or time.perf_counter() < end:
        for name, task in tasks.items():
            began = clock()
            task()
            best[name] = min(best[name], clock() - began)
        rounds += 1
    return best


def products(one: Coupling, two: Coupling, x: Array, y: Array) -> dict[str, Callable[[], object]]:
    """The two fused products, by one pass and by two products."""
    return {
        "both, two": lambda: two.both(x, y),
        "both, one": lambda: one.both(x, y),
        "through, two": lambda: two.through(y, 0.5, x),
        "through, one": lambda: one.through(y, 0.5, x),
    }


def reading(A: Array) -> Callable[[], object]:
    """A task that reads A once, on all threads."""
    parts = np.array_split(A.reshape(-1, order="A"), compiled_loops.threads())
    pool = ThreadPoolExecutor(len(parts))
    return lambda: list(pool.map(np.max, parts)) if len(parts) > 1 else np.max(A)


def dense_rows(quick: bool) -> Iterator[str]:
    """The table of dense matrices."""
    yield "| A | product | two products (ms) | one pass (ms) | ratio | of read bandwidth | taken |"
    yield "|---|---|---|---|---|---|---|"
    rng = np.random.default_rng(0)
    for m, n, kind, vectors, order in DENSE:
        if quick and m * n > 10**7:
            continue
        A = rng.standard_normal((n, m) if order == "F" else (m, n), dtype=np.float32).astype(kind)
        A = A.T if order == "F" else A
        one, two, chosen = coupling(A, True), coupling(A, False), sp.as_coupling(A)
        x, y = rng.standard_normal(m).astype(vectors), rng.standard_normal(n).astype(vectors)
        best = fastest({"read": reading(A), **products(one, two, x, y)}, 0.5 if quick else 3.0)
        name = f"{m} x {n} {A.dtype}" + (", by columns" if order == "F" else "")
        name += ", float64 vectors" if vectors != kind else ""
        for product in ("both", "through"):
            before, after = best[f"{product}, two"], best[f"{product}, one"]
            taken = chosen.fused if product == "through" else chosen._fuses_both  # type: ignore[attr-defined]
            yield (
                f"| {name} | {product} | {1e3 * before:.2f} | {1e3 * after:.2f} | {before / after:.2f} | "
                f"{100 * best['read'] / after:.0f} % | {'yes' if taken else 'no'} |"
            )


def sparse_rows(quick: bool) -> Iterator[str]:
    """The table of sparse matrices."""
    yield "| A | entries | product | two products (ms) | one pass (ms) | ratio | taken |"
    yield "|---|---|---|---|---|---|---|"
    rng = np.random.default_rng(0)
    for name, make in SPARSE.items():
        A = make()
        if quick and A.nnz > 4 * 10**6:
            continue
        one, two, chosen = coupling(A, True), coupling(A, False), sp.as_coupling(A)
        x, y = rng.standard_normal(A.shape[0]), rng.standard_normal(A.shape[1])
        best = fastest(products(one, two, x, y), 0.5 if quick else 3.0)
        for product in ("both", "through"):
            before, after = best[f"{product}, two"], best[f"{product}, one"]
            yield (
                f"| {name} | {A.nnz / 1e6:.1f}M | {product} | {1e3 * before:.2f} | {1e3 * after:.2f} | "
                f"{before / after:.2f} | {'yes' if chosen.fused else 'no'} |"
            )


def solve_rows(quick: bool) -> Iterator[str]:
    """The table of whole solves."""
    yield "| whole solve | method | steps | passes, two products | one | s, two products | one | ratio | apart |"
    yield "|---|---|---|---|---|---|---|---|---|"
    m, n = (2_500, 2_000) if quick else (8_000, 4_000)
    A = np.random.default_rng(0).standard_normal((m, n)) / np.sqrt(m)
    g, h = sp.Quadratic(1.0, np.ones(m)), sp.Quadratic(1.0, -np.ones(n))
    problems = {way: sp.Saddle(g, h, coupling(10.0 * A, way == "one")) for way in ("two", "one")}
    for f in problems.values():
        assert f.norm > 0.0  # the norm is estimated once, before the clock starts
    for method in ("condat-vu", sp.make_method("dippa", coupling="cg")):
        results = {}
        seconds = dict.fromkeys(problems, float("inf"))
        for _ in range(2 if quick else 3):
            for way, f in problems.items():
                results[way] = sp.solve(f, method=method, tol=1e-8)
                seconds[way] = min(seconds[way], results[way].method_seconds)
        one, two = results["one"], results["two"]
        yield (
            f"| {m} x {n} | {one.method} | {one.iterations} | {two.passes} | {one.passes} | {seconds['two']:.2f} | "
            f"{seconds['one']:.2f} | {seconds['two'] / seconds['one']:.2f} | {abs(one.x - two.x).max():.0e} |"
        )


WALL = [(16_000, 4_500, "f8"), (16_000, 4_500, "f4")]  # rows, columns and type of A in the table of wall-clock ratios
WALL_HEAD = (
    "| A | threads | product | two products, median ms | one pass, median ms "
    "| ratio: lower quartile | median | upper quartile | of the best | of CPU times |"
)


def wall_rows(repetitions: int = 25) -> Iterator[str]:
    """Two products and one pass in turn, as NumPy and the library compute them, by the wall clock."""
    rng, timeout = np.random.default_rng(0), os.environ.get("OPENBLAS_THREAD_TIMEOUT")
    threads = f"{compiled_loops.threads()}" + ("" if timeout is None else f", timeout {timeout}")
    for m, n, kind in WALL:
        A = rng.standard_normal((m, n), dtype=np.float32).astype(kind)
        C, x, y = sp.as_coupling(A), rng.standard_normal(m).astype(kind), rng.standard_normal(n).astype(kind)
        tasks: dict[str, Callable[[], object]] = {
            "both, two": lambda A=A, x=x, y=y: (A @ y, A.T @ x),  # type: ignore[misc]
            "both, one": lambda C=C, x=x, y=y: C.both(x, y),  # type: ignore[misc]
            "through, two": lambda A=A, x=x, y=y: A.T @ (0.5 * (A @ y) + x),  # type: ignore[misc]
            "through, one": lambda C=C, x=x, y=y: C.through(y, 0.5, x),  # type: ignore[misc]
        }
        found: dict[str, list[tuple[float, float]]] = {name: [] for name in tasks}
        for _ in range(repetitions + 1):
            for name, task in tasks.items():
                wall, cpu = time.perf_counter(), time.process_time()
                task()
                found[name].append((time.perf_counter() - wall, time.process_time() - cpu))
        for product in ("both", "through"):
            two, one = (np.array(found[f"{product}, {way}"][1:]) for way in ("two", "one"))  # the first call compiles
            low, middle, high = np.percentile(two[:, 0] / one[:, 0], [25, 50, 75])
            best = two[:, 0].min() / one[:, 0].min()
            cpu_ratio = np.median(two[:, 1]) / np.median(one[:, 1])
            yield (
                f"| {m} x {n} {A.dtype} | {threads} | {product} | {1e3 * np.median(two[:, 0]):.1f} "
                f"| {1e3 * np.median(one[:, 0]):.1f} | {low:.2f} | {middle:.2f} | {high:.2f} "
                f"| {best:.2f} | {cpu_ratio:.2f} |"
            )


def wall() -> None:
    """Print the table of wall-clock ratios: with one thread, with all, and with threads of BLAS that do not spin."""
    print(
        f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores\n\n{WALL_HEAD}\n|" + "---|" * 10, flush=True
    )
    cores = os.cpu_count() or 1
    for threads, timeout in ((1, None), (cores, None), (cores, "4")) if cores > 1 else ((1, None),):
        settings = os.environ | {"OPENBLAS_NUM_THREADS": str(threads)}  # read when NumPy is loaded
        if timeout is not None:
            settings["OPENBLAS_THREAD_TIMEOUT"] = timeout
        subprocess.run([sys.executable, __file__, "--wall-rows"], env=settings, check=True)


def main(quick: bool = False) -> str:
    """The tables, as Markdown."""
    A = np.ones(10**8 // (8 if quick else 1))
    best = fastest({"read": reading(A)}, 2.0)
    lines = [f"threads: {compiled_loops.threads()}; read bandwidth: {A.nbytes / best['read'] / 1e9:.0f} GB/s", ""]
    del A
    for table in (dense_rows, sparse_rows, solve_rows):
        for line in table(quick):
            lines.append(line)
            print(line, file=sys.stderr, flush=True)
        lines.append("")
    return "\n".join(lines)


if __name__ == "__main__":
    if "--wall" in sys.argv:
        wall()
    elif "--wall-rows" in sys.argv:
        for line in wall_rows():
            print(line, flush=True)
    else:
        print(main("--quick" in sys.argv))
