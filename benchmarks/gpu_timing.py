"""The time that calls take on one NVIDIA GPU with PyTorch, its memory speed, and extragradient written by hand."""

from __future__ import annotations

import time
from collections.abc import Callable
from importlib import import_module
from typing import Any, TypeVar

import saddlepoint as sp

torch: Any = import_module("torch")
Answer = TypeVar("Answer")
STRIDE = 50  # steps of extragradient by hand between two residuals


def once(run: Callable[[], Answer]) -> tuple[float, Answer]:
    """Wall-clock seconds until the GPU has done its work, and what the run returns."""
    torch.cuda.synchronize()
    began = time.perf_counter()
    answer = run()
    torch.cuda.synchronize()
    return time.perf_counter() - began, answer


def fastest(run: Callable[[], Answer], times: int = 3) -> tuple[float, Answer]:
    """Wall-clock seconds of the fastest of some runs, after one that is not timed, and its answer."""
    run()
    return min((once(run) for _ in range(times)), key=lambda timed: timed[0])


def device_seconds(run: Callable[[], Any], times: int) -> float:
    """Seconds of one run by the clock of the device, the median of several."""
    run()
    found = []
    for _ in range(times):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        run()
        end.record()
        torch.cuda.synchronize()
        found.append(start.elapsed_time(end) * 1e-3)
    return float(sorted(found)[len(found) // 2])


def seconds_in_graph(call: Callable[[], Any], times: int = 20) -> float:
    """Seconds of one call within a CUDA graph of several, as in a compiled run, without work on the host."""
    call()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(times):
            call()
    return device_seconds(graph.replay, 9) / times


def copy_bandwidth() -> float:
    """Bytes a second of a large copy on the device, read and written."""
    a = torch.empty(1 << 30, device="cuda", dtype=torch.float32)
    b = torch.empty_like(a)
    return float(2.0 * a.numel() * a.element_size()) / device_seconds(lambda: b.copy_(a), 10)


def extragradient(f: sp.Saddle, residual: float, limit: int) -> tuple[Any, Any, int]:
    """Extragradient as one writes it in PyTorch, until |F| is at most ``residual``: x, y and the number of steps."""
    A: Any = f.A.matrix()
    x, y = f.space.zeros(f.shape[0]), f.space.zeros(f.shape[1])
    t = 0.5 / max(f.L_x, f.L_y, f.norm)
    for k in range(limit):
        Fx, Fy = f.g.grad(x) + A @ y, f.h.grad(y) - A.T @ x
        if k % STRIDE == 0 and float(torch.sqrt(Fx @ Fx + Fy @ Fy)) <= residual:
            break
        u, v = x - t * Fx, y - t * Fy
        x, y = x - t * (f.g.grad(u) + A @ v), y - t * (f.h.grad(v) - A.T @ u)
    return x, y, k
