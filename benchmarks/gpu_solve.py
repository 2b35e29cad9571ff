"""Whole solves on a GPU: one pass against two products, the share of the memory bandwidth, and a hand-written loop.

`python benchmarks/gpu_solve.py [--quick]` needs PyTorch and an NVIDIA GPU. All runs start at zero and end with the same
certificate, taken in float64 with the true A. Seconds are those of `solve` as a whole, by the wall clock, with
certificates and the graph.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import partial
from importlib import import_module
from itertools import product
from typing import Any

from gpu_timing import copy_bandwidth, device_seconds, extragradient, fastest, once, seconds_in_graph

import saddlepoint as sp
from saddlepoint.parts.coupling import ArrayCoupling, as_coupling
from saddlepoint.solving.compiled import compiled

torch: Any = import_module("torch")
LIMIT = 20_000  # most steps of extragradient by hand


def problem(m: int, n: int, dtype: Any, kappa: float, coupling: float, fused: bool = True) -> sp.Saddle:
    """Diagonal quadratics plus log-cosh, and a Gaussian A of a known norm."""
    torch.manual_seed(0)
    A = torch.randn(m, n, device="cuda", dtype=dtype)
    A /= float(m**0.5 + n**0.5)  # |A| is about 1
    b, c = (torch.randn(k, device="cuda", dtype=dtype) for k in (m, n))
    mu = 1.0 / coupling
    g = sp.Quadratic(mu, b) + (mu * (kappa - 1.0)) * sp.LogCosh()
    h = sp.Quadratic(mu, c) + (mu * (kappa - 1.0)) * sp.LogCosh()
    return sp.Saddle(g, h, as_coupling(A) if fused else ArrayCoupling(A))


def steps(m: int, n: int, dtype: Any, bandwidth: float) -> Iterator[str]:
    """The time of a step beyond its products, measured between two certificates."""
    f = problem(m, n, dtype, 10.0, 100.0)
    A: Any = f.A
    x, y = f.space.zeros(m) + 1.0, f.space.zeros(n) + 1.0
    products = {kind: seconds_in_graph(call) for kind, call in
                (("both", partial(A.both, x, y)), ("through", partial(A.through, y)))}  # fmt: skip
    gradients = seconds_in_graph(lambda: (f.g.grad(x), f.h.grad(y)))
    for name, kind in (("condat-vu", "through"), ("lpd-gs", "through"), ("lpd", "both"), ("ogda", "both")):
        method = sp.make_method(name)
        view = method.normal_form(f)
        before = method.init(view.problem, *view.to(x, y))
        state = method.step(view.problem, before)
        many = compiled(method, view.problem, before, state)
        if many is None:
            yield f"| {m} x {n} | {name} | not compiled | | | | | |"
            continue
        step = device_seconds(partial(many, state, 200), 9) / 200
        oracle = products[kind] + gradients
        floor = A.A.numel() * A.A.element_size() / bandwidth
        passes = "one" if A.fused else "two"
        yield (
            f"| {m} x {n} | {str(dtype).rpartition('.')[2]} | {name} | {passes} | {1e6 * step:.1f} "
            f"| {1e6 * products[kind]:.1f} | {1e6 * gradients:.1f} | {100 * (step / oracle - 1):.0f} % "
            f"| {100 * floor / step:.0f} % |"
        )


def size_of_solution(f: sp.Saddle) -> float:
    """An estimate of |x*| + |y*|."""
    return float(torch.linalg.norm(f.g.grad(f.space.zeros(f.shape[0]))) / f.mu_x)


def whole(m: int, n: int, dtype: Any, tol: float, bandwidth: float) -> Iterator[str]:
    """The same method on one pass and on two products, and extragradient by hand."""
    shape = f"{m} x {n}, {str(dtype).rpartition('.')[2]}"
    f = problem(m, n, dtype, 10.0, 30.0)
    coupling: Any = f.A
    size = coupling.A.numel() * coupling.A.element_size()
    tol *= size_of_solution(f)
    plain = sp.Saddle(f.g, f.h, ArrayCoupling(coupling.A))
    for name in ("condat-vu", "lpd-gs", "auto"):
        fast, one = fastest(partial(sp.solve, f, method=name, tol=tol, max_seconds=15), 1)
        slow, two = fastest(partial(sp.solve, plain, method=name, tol=tol, max_seconds=15), 1)
        share = one.passes * size / bandwidth / fast
        steps = two.method_seconds / one.method_seconds
        yield (
            f"| {shape} | {one.method} | {one.status}, {one.certificate.distance / tol:.2f} tol | {one.iterations} "
            f"| {fast:.3f} | {slow:.3f} | {slow / fast:.2f} | {steps:.2f} | {100 * share:.0f} % |"
        )
        assert two.solved == one.solved
    took, (_, _, k) = once(partial(extragradient, f, tol * f.mu / 2.0**0.5, LIMIT))
    yield f"| {shape} | extragradient by hand | residual | {k} | {took:.3f} | | | | |"


def stored(m: int, n: int, tol: float) -> Iterator[str]:
    """Solves in float64 with float32 copies of A, and in float32 with bfloat16 copies, at mild and strong coupling."""
    for dtype, storage, c in product((torch.float64, torch.float32), ("float32", "bfloat16"), (30.0, 300.0)):
        if storage == str(dtype).rpartition(".")[2]:
            continue
        f = problem(m, n, dtype, 10.0, c)
        accuracy = tol * size_of_solution(f)
        plain, first = fastest(partial(sp.solve, f, method="lpd-gs", tol=accuracy, max_seconds=15), 1)
        low, result = fastest(partial(sp.solve, f, method="lpd-gs", tol=accuracy, storage=storage, max_seconds=15), 1)
        yield (
            f"| {m} x {n}, {str(dtype).rpartition('.')[2]} | {c:.0f} | {storage} | {plain:.3f} | {low:.3f} "
            f"| {plain / low:.2f} | {first.iterations}, {result.iterations} | {result.message} |"
        )


def main(quick: bool) -> str:
    """The tables, as Markdown."""
    bandwidth = copy_bandwidth()
    lines = [f"{torch.cuda.get_device_name()}, copy bandwidth {bandwidth / 1e12:.2f} TB/s.", ""]

    def add(*rows: str) -> None:
        lines.extend(rows)
        print(*rows, sep="\n", file=sys.stderr, flush=True)

    add("Steps between certificates (microseconds):", "")
    add(
        "| A | dtype | method | passes a step | step | products | gradients | overhead | of the copy bandwidth |",
        "|" + "---|" * 9,
    )
    for dtype in (torch.float32, torch.float64):
        for row in steps(8192, 8192, dtype, bandwidth):
            add(row)
    add("", "Whole solves (seconds) to the same certificate:", "")
    add(
        "| A | method | reached | steps | one pass | two products | ratio | without certificates | at memory speed |",
        "|" + "---|" * 9,
    )
    sizes = [(16384, 8192)] if quick else [(65536, 16384)]
    for m, n in sizes:
        for row in whole(m, n, torch.float32, 1e-4, bandwidth):
            add(row)
    add("", "A copy of A in a lower precision (lpd-gs, seconds):", "")
    add("| A | coupling | storage | without | with | ratio | steps | |", "|" + "---|" * 8)
    for row in stored(16384 if quick else 32768, 8192 if quick else 16384, 1e-4):
        add(row)
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    with torch.no_grad():
        page = main("--quick" in sys.argv)
    print(page)
    if len(sys.argv) > 1 and sys.argv[-1].endswith(".md"):
        with open(sys.argv[-1], "w") as file:
            file.write(page)
