"""One pass over A on an NVIDIA GPU against two products by the library: `python benchmarks/fused_gpu.py [TABLE.md]`.

Each line compares `both` or `through` with torch.mv(A, y) and torch.mv(A.T, x), in the same run and on the same data:

- cold: GPU time with the caches flushed before each call, the median;
- loop: wall-clock time of a call in a loop that never waits, so the launches by the host count;
- graph: the same calls captured in a CUDA graph and replayed.

`FUSE_BYTES` in saddlepoint/parts/coupling/triton_plans.py is set so that no chosen line loses more than 5 % in the
loop. For A in bfloat16 the library is given vectors in bfloat16, and one pass vectors in float32: the library has no
such product, so size is no reason there to choose two.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from gpu_timing import copy_bandwidth
from triton.testing import do_bench

from saddlepoint.parts.coupling import triton_products

Call = Callable[[], Any]
TALL = 65536  # rows of tall matrices
TYPES = {"float32": torch.float32, "float64": torch.float64, "bfloat16": torch.bfloat16}


def cases() -> Iterator[tuple[str, int, int, str, str]]:
    """The cases: type, rows, columns, the order in which A is stored, and the product."""
    for kind in ("both", "through"):
        for type_ in TYPES:
            for n in (4096, 8192, 16384):
                yield type_, TALL, n, "rows", kind
        for n in (1024, 2048, 4096, 6000, 8192, 16384):
            yield "float32", n, n, "rows", kind
        for n in (1024, 2048, 4096, 5000, 8192):
            yield "float64", n, n, "rows", kind
        for n in (4096, 8192, 16384):
            yield "bfloat16", n, n, "rows", kind
        for m, n in ((1 << 22, 64), (1 << 20, 256), (1 << 18, 1024), (1024, 1 << 18), (128, 1 << 20)):
            yield "float32", m, n, "rows", kind
        for m, n in ((1 << 20, 256), (1024, 1 << 18)):
            yield "float64", m, n, "rows", kind
        for type_ in TYPES:
            for n in (8191, 20000, 40000):
                yield type_, TALL // 2, n, "rows", kind
    for type_ in TYPES:
        for m, n in ((4 * TALL, 256), (4 * TALL, 1024), (16384, 4096), (16384, 16384), (16384, TALL)):
            yield type_, m, n, "columns", "through"


def cold(call: Call) -> float:
    """Seconds of GPU time of a call with empty caches."""
    return 1e-3 * float(do_bench(call, warmup=5, rep=40, return_mode="median"))


def loop(call: Call) -> float:
    """Seconds of one call in a loop, launches included."""
    call()
    torch.cuda.synchronize()
    began = time.perf_counter()
    call()
    torch.cuda.synchronize()
    repeats = max(5, min(200, int(0.01 / (time.perf_counter() - began))))
    found = []
    for _ in range(5):
        began = time.perf_counter()
        for _ in range(repeats):
            call()
        torch.cuda.synchronize()
        found.append((time.perf_counter() - began) / repeats)
    return statistics.median(found)


def graph(call: Call) -> float:
    """Seconds of one call in a replayed CUDA graph of ten calls."""
    call()
    torch.cuda.synchronize()
    captured = torch.cuda.CUDAGraph()
    with torch.cuda.graph(captured):
        for _ in range(10):
            call()
    return loop(captured.replay) / 10


def compare(type_: str, m: int, n: int, place: str, kind: str, copy: float) -> str:
    """A row of the table."""
    A = torch.randn(*((m, n) if place == "rows" else (n, m)), device="cuda", dtype=TYPES[type_])
    if place == "columns":
        A = A.T
    dtype = torch.float64 if type_ == "float64" else torch.float32
    x, y = (torch.randn(k, device="cuda", dtype=dtype) for k in (m, n))
    out = torch.empty_like(x), torch.empty_like(y)
    narrow = [v.to(A.dtype) for v in (x, y, *out)]

    def two() -> None:
        torch.mv(A, narrow[1], out=narrow[2])
        torch.mv(A.T, narrow[0], out=narrow[3])

    def one() -> None:
        if kind == "both":
            triton_products.both(A, x, y, out=out, fuse=True)
        else:
            triton_products.through(A, y, 0.5, x, out=out, fuse=True)

    times = [(measure(two), measure(one)) for measure in (cold, loop, graph)]
    (two_cold, one_cold), (two_loop, one_loop), (two_graph, one_graph) = times
    rate = A.numel() * A.element_size() / one_cold
    cells = [
        *(kind, type_, f"{m} x {n}", place, f"{1e6 * two_cold:.0f}", f"{1e6 * one_cold:.0f}"),
        *(f"{two_cold / one_cold:.2f}", f"{1e-12 * rate:.2f}", f"{100 * rate / copy:.0f} %"),
        *(f"{1e6 * two_loop:.0f}", f"{1e6 * one_loop:.0f}", f"{two_loop / one_loop:.2f}"),
        *(f"{two_graph / one_graph:.2f}", "one pass" if triton_products.fuses(A, kind) else "two products"),  # type: ignore[arg-type]
    ]
    return "| " + " | ".join(cells) + " |"


def main() -> str:
    """The table, as Markdown."""
    copy = copy_bandwidth()
    heads = [
        *("product", "type", "shape", "stored by", "two, cold (us)", "one, cold (us)", "ratio", "TB/s", "of copy"),
        *("two, loop (us)", "one, loop (us)", "ratio", "ratio in a graph", "chosen"),
    ]
    lines = [
        f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}, copy {1e-12 * copy:.2f} TB/s",
        "",
        "| " + " | ".join(heads) + " |",
        "|" + "---|" * len(heads),
    ]
    for case in cases():
        lines.append(compare(*case, copy))
        print(lines[-1], file=sys.stderr, flush=True)
        torch.cuda.empty_cache()
    return "\n".join(lines)


if __name__ == "__main__":
    table = main()
    print(table)
    for path in sys.argv[1:]:
        Path(path).write_text(table + "\n")
