"""A on disk: `python benchmarks/streamed.py [--quick]` writes files of some GB to a temporary folder and removes them.

A pass is compared with a plain read of the file in the same blocks (cold: the file was dropped from the system's cache
before; warm: it is in there) and with the products of an array in memory. Rates are bytes of A as float64 or float32 a
second, the best of some repetitions, in wall-clock time, with BLAS on one thread; nothing of A stays in memory. A whole
solve takes one pass a step, or two products, with a limit on the memory that A may take. The columns are measured one
after the other, and others may share the machine and its disk: ratios vary by a factor of two.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

import saddlepoint as sp
from saddlepoint.ground.arrays import Array
from saddlepoint.parts.coupling.streamed import StreamedCoupling

BLOCK = 1 << 22  # bytes of a plain read


def main() -> None:
    """Print the tables."""
    quick = "--quick" in sys.argv
    with tempfile.TemporaryDirectory() as folder:
        for rows in (raw(Path(folder), quick), formats(Path(folder), quick), solves(Path(folder), quick)):
            for line in rows:
                print(line, flush=True)
            print()


def write(path: Path, m: int, n: int, kind: str) -> None:
    """Write a random m x n matrix to a .npy file."""
    A = np.lib.format.open_memmap(path, "w+", np.dtype(kind), (m, n))
    rng = np.random.default_rng(0)
    for i in range(0, m, 1000):
        A[i : i + 1000] = rng.standard_normal((min(1000, m - i), n), dtype=np.float32) / np.sqrt(m)
    A.flush()


def drop(path: Path) -> None:
    """Drop a file from the cache of the operating system."""
    for file in [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]:
        descriptor = os.open(file, os.O_RDONLY)
        os.fsync(descriptor)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(descriptor)


def plain_read(path: Path) -> None:
    """Read a file in blocks, and do nothing with them."""
    buffer = bytearray(BLOCK)
    with open(path, "rb", buffering=0) as file:
        while file.readinto(buffer):
            pass


def best(task: Callable[[], object], times: int, before: Callable[[], object] | None = None) -> float:
    """The least seconds of a task, which is repeated; ``before`` is called before each time, off the clock."""
    seconds = float("inf")
    for _ in range(times):
        if before is not None:
            before()
        began = time.perf_counter()
        task()
        seconds = min(seconds, time.perf_counter() - began)
    return seconds


def on_disk(source: Any) -> StreamedCoupling:
    """A coupling on disk that keeps nothing in memory."""
    A = sp.stream(source, "2GB")
    assert isinstance(A, StreamedCoupling)
    A.plan = A.plan._replace(keep=frozenset())
    return A


def raw(folder: Path, quick: bool) -> Iterator[str]:
    """The table of .npy files: cold, warm and in memory."""
    yield "| .npy | | plain read (GB/s) | mul | tmul | both | through | both / read | two products / both |"
    yield "|---|---|---|---|---|---|---|---|---|"
    path = folder / "A.npy"
    for m, n, kind in [(8_000 if quick else 50_000, 5_000, "f8"), (8_000 if quick else 100_000, 5_000, "f4")]:
        write(path, m, n, kind)
        size = m * n * np.dtype(kind).itemsize / 1e9
        for state in ("cold", "warm", "memory"):
            C = sp.as_coupling(np.load(path)) if state == "memory" else on_disk(path)
            took = timed(C, path, state)
            read = "" if state == "memory" else f"{size / took['read']:.2f}"
            rates = " | ".join(f"{size / took[name]:.2f}" for name in ("mul", "tmul", "both", "through"))
            share = "" if state == "memory" else f"{100 * took['read'] / took['both']:.0f} %"
            ratio = (took["mul"] + took["tmul"]) / took["both"]
            yield f"| {m} x {n} {np.dtype(kind)}, {size:.1f} GB | {state} | {read} | {rates} | {share} | {ratio:.2f} |"
        path.unlink()


def timed(C: sp.Coupling, path: Path, state: str) -> dict[str, float]:
    """Seconds of a plain read and of each product."""
    x, y = np.ones(C.shape[0], C.dtype), np.ones(C.shape[1], C.dtype)
    tasks: dict[str, Callable[[], object]] = {
        "read": lambda: plain_read(path),
        "mul": lambda: C.mul(y),
        "tmul": lambda: C.tmul(x),
        "both": lambda: C.both(x, y),
        "through": lambda: C.through(y, 0.5, x),
    }
    C.both(x, y)  # the first pass checks the numbers, and compiles
    C.through(y)
    return {name: best(task, 3, (lambda: drop(path)) if state == "cold" else None) for name, task in tasks.items()}


def formats(folder: Path, quick: bool) -> Iterator[str]:
    """The table of formats."""
    yield "| store, 250k x 100 float64 | on disk (MB) | block (MB) | both, cold (MB/s) | warm |"
    yield "|---|---|---|---|---|"
    m, n = (50_000, 100) if quick else (250_000, 100)
    A = np.random.default_rng(0).standard_normal((m, n)).round(4)
    for name, source in stores(folder, A):
        path = Path(str(source).partition(":")[0])
        files = [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]
        C = on_disk(source)
        cold, warm = product_times(C, path)
        stored = sum(file.stat().st_size for file in files) / 1e6
        rates = " | ".join(f"{A.nbytes / 1e6 / seconds:.0f}" for seconds in (cold, warm))
        yield f"| {name} | {stored:.0f} | {C.plan.blocks[0].held / 1e6:.1f} | {rates} |"


def product_times(C: sp.Coupling, path: Path) -> tuple[float, float]:
    """Seconds of both products, cold and warm."""
    x, y = np.ones(C.shape[0]), np.ones(C.shape[1])
    C.both(x, y)
    return best(lambda: C.both(x, y), 2, lambda: drop(path)), best(lambda: C.both(x, y), 2)


def stores(folder: Path, A: Array) -> Iterator[tuple[str, Any]]:
    """A in every format, one after the other: its name, and what `sp.stream` takes."""
    h5py, zarr, pa, pq = map(import_module, ("h5py", "zarr", "pyarrow", "pyarrow.parquet"))
    np.save(folder / "B.npy", A)
    yield ".npy", folder / "B.npy"
    with h5py.File(folder / "A.h5", "w") as file:
        file["plain"] = A
    yield "HDF5", f"{folder / 'A.h5'}:plain"
    with h5py.File(folder / "C.h5", "w") as file:
        file.create_dataset("A", data=A, chunks=(5_000, A.shape[1]), compression="gzip", compression_opts=1)
    yield "HDF5, gzip", f"{folder / 'C.h5'}:A"
    for name, how in (("Zarr", {"compressors": None}), ("Zarr, zstd", {})):
        array = zarr.create_array(folder / f"{name}.zarr", shape=A.shape, chunks=(5_000, A.shape[1]), dtype="f8", **how)
        array[:] = A
        yield name, folder / f"{name}.zarr"
    (folder / "parquet").mkdir()
    (folder / "mtx").mkdir()
    for k, block in enumerate(np.array_split(A, 10)):
        table = pa.table({f"c{j}": block[:, j] for j in range(A.shape[1])})
        pq.write_table(table, folder / "parquet" / f"part-{k}.parquet", row_group_size=5_000)
        head = f"%%MatrixMarket matrix array real general\n{block.shape[0]} {block.shape[1]}\n"
        (folder / "mtx" / f"part-{k}.mtx").write_text(head + "\n".join(map(repr, block.T.ravel().tolist())))
    yield "ten Parquet files", folder / "parquet"
    yield "ten Matrix Market files", folder / "mtx"


def solves(folder: Path, quick: bool) -> Iterator[str]:
    """The table of whole solves."""
    yield "| whole solve, lpd-gs | A | steps | passes | certificates | s | s a pass | read (GB) |"
    yield "|---|---|---|---|---|---|---|---|"
    m, n = (8_000, 2_500) if quick else (40_000, 5_000)
    path = folder / "D.npy"
    write(path, m, n, "f8")
    g, h = sp.Quadratic(1.0, np.ones(m)), sp.Huber(l2=1.0)
    ways: dict[str, tuple[str | None, bool]] = {
        "in memory": (None, True),
        "on disk, 300 MB": ("300MB", True),
        "on disk, 300 MB, two products": ("300MB", False),
        "on disk, half in memory": (f"{m * n * 4 // 10**6 + 100}MB", True),
    }
    for way, (limit, fused) in ways.items():
        A = sp.as_coupling(np.load(path)) if limit is None else sp.stream(path, limit)
        f = sp.Saddle(g, h, A if fused else TwoProducts(A))
        assert f.norm > 0.0
        before = 0 if A.runtime.reading is None else A.runtime.reading.bytes
        result = sp.solve(f, method="lpd-gs", tol=1e-6)
        assert result.solved
        read = 0.0 if A.runtime.reading is None else (A.runtime.reading.bytes - before) / 1e9
        yield (
            f"| {way} | {m * n * 8 / 1e9:.1f} GB | {result.iterations} | {result.passes} | {result.monitor_calls} | "
            f"{result.method_seconds:.1f} | {result.method_seconds / result.passes:.3f} | {read:.1f} |"
        )


class TwoProducts(sp.Coupling):
    """The same A, one product at a time."""

    trusted = True

    def __init__(self, A: sp.Coupling) -> None:
        self.A, self.shape, self.dtype, self.runtime = A, A.shape, A.dtype, A.runtime

    def mul(self, y: Array) -> Array:
        return self.A.mul(y)

    def tmul(self, x: Array) -> Array:
        return self.A.tmul(x)

    def rounding_scale(self, y: Array) -> float:
        return self.A.rounding_scale(y)

    @property
    def norm_estimate(self) -> Any:
        return self.A.norm_estimate

    def _transpose(self) -> sp.Coupling:
        return TwoProducts(self.A.T)


if __name__ == "__main__":
    main()
