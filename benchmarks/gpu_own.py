"""Whole solves on one GPU with gradients written by hand: wall-clock time, memory speed, and waits for the GPU.

`python benchmarks/gpu_own.py [--quick] [FILE.md]` needs PyTorch and an NVIDIA GPU; with JAX and jaxopt there are rows
for them. Problems are drawn afresh at every run of this page: g and h are mu/2 |x|^2 + b'x + a log-cosh(x), given as
`sp.Smooth` with a gradient in PyTorch, |A| is about 1. Every call gets new objects, so that nothing is known from an
earlier one, and all of it is timed: the estimate of |A|, certificates, CUDA graphs, and the examination of the
functions. Kernels are compiled in a first call, which is not timed.

- *at memory speed* is the time in which the method's passes over A could be read at the speed of a large copy, divided
  by the wall-clock time of the call.
- *waits* counts how often the call asks for numbers on the GPU.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np
from gpu_timing import copy_bandwidth, fastest

import saddlepoint as sp

torch: Any = import_module("torch")

# The condition number of both functions, |A|/sqrt(mu_x mu_y), and the certified distance over an estimate of |x*|.
KAPPA, COUPLING, ACCURACY = 10.0, 30.0, 1e-4
READERS = ("__float__", "__bool__", "__int__", "__index__", "item", "tolist", "cpu")  # methods of a tensor that wait
Problem = Callable[[], sp.Saddle]


def log_cosh(mu: float, a: float, b: Any, tanh: Callable[[Any], Any]) -> sp.Smooth:
    """The function mu/2 |x|^2 + b'x + a log-cosh(x), as a user would write it."""
    return sp.Smooth(lambda x: mu * x + b + a * tanh(x), mu=mu, L=mu + a)


def drawn(m: int, n: int, dtype: Any, seed: int) -> tuple[Any, Any, Any]:
    """A Gaussian A of norm about 1, b and c, on the GPU."""
    random = torch.Generator("cuda").manual_seed(seed)
    A = torch.randn(m, n, device="cuda", dtype=dtype, generator=random)
    A /= float(m**0.5 + n**0.5)
    b, c = (torch.randn(k, device="cuda", dtype=dtype, generator=random) for k in (m, n))
    return A, b, c


def problem(A: Any, b: Any, c: Any, tanh: Callable[[Any], Any]) -> sp.Saddle:
    """A problem of new objects around these arrays."""
    mu = 1.0 / COUPLING
    a = mu * (KAPPA - 1.0)
    return sp.Saddle(log_cosh(mu, a, b, tanh), log_cosh(mu, a, c, tanh), A)


def waits(run: Callable[[], Any]) -> int:
    """How often a run reads a number or an array from the GPU."""
    count, before = 0, {name: getattr(torch.Tensor, name) for name in READERS}

    def counting(reader: Callable[..., Any]) -> Callable[..., Any]:
        def read(*arguments: Any, **options: Any) -> Any:
            nonlocal count
            count += 1
            return reader(*arguments, **options)

        return read

    for name, reader in before.items():
        setattr(torch.Tensor, name, counting(reader))
    try:
        run()
    finally:
        for name, reader in before.items():
            setattr(torch.Tensor, name, reader)
    return count


def solves(m: int, n: int, dtype: Any, seed: int, bandwidth: float) -> Iterator[str]:
    """Methods on one problem in PyTorch."""
    A, b, c = drawn(m, n, dtype, seed)
    tol = ACCURACY * COUPLING * float(torch.linalg.norm(b))
    for name in ("auto", "lpd-gs", "anderson-condat-vu"):

        def run(name: str = name) -> sp.Result:
            return sp.solve(problem(A, b, c, torch.tanh), method=name, tol=tol, max_seconds=30.0)

        seconds, result = fastest(run)
        asked = name if name == result.method else f"{name}: {result.method}"
        share = result.passes * A.numel() * A.element_size() / bandwidth / seconds
        yield (
            f"| {m} x {n}, {str(dtype).rpartition('.')[2]} | {asked} "
            f"| {result.status} | {result.iterations} | {result.passes} | {len(result.history)} | {1e3 * seconds:.0f} "
            f"| {1e3 * result.method_seconds:.0f} | {seconds / result.method_seconds:.2f} | {100 * share:.0f} % "
            f"| {waits(run)} |"
        )


def others(m: int, n: int, seed: int) -> Iterator[str]:
    """The same problem by this package in JAX, and by jaxopt's Anderson acceleration of a primal-dual step."""
    try:
        jax: Any = import_module("jax")
    except ImportError:
        return
    jax.config.update("jax_enable_x64", True)
    jnp = jax.numpy
    ours = drawn(m, n, torch.float64, seed)
    A, b, c = (jnp.asarray(v.cpu().numpy()) for v in ours)
    tol = ACCURACY * COUPLING * float(jnp.linalg.norm(b))
    first = 0.0
    for library, arrays, tanh in (("PyTorch", ours, torch.tanh), ("JAX", (A, b, c), jnp.tanh)):
        for name in ("auto", "lpd-gs"):
            f = problem(*arrays, tanh)
            seconds, result = fastest(partial(sp.solve, f, method=name, tol=tol, max_seconds=30.0))
            first = first or seconds
            reached = result.certificate.distance / tol
            yield (
                f"| {name}, {library} | {result.iterations} | {reached:.2f} | {1e3 * seconds:.0f} "
                f"| {seconds / first:.2f} |"
            )
    try:
        Anderson = import_module("jaxopt").AndersonAcceleration
    except ImportError:
        return
    f = problem(A, b, c, jnp.tanh)
    t = 1.0 / (f.L + f.norm)

    def step(z: Any, A: Any) -> Any:
        x, y = z
        u = x - t * (f.g.grad(x) + A @ y)
        return u, y - t * (f.h.grad(y) - (2.0 * u - x) @ A)

    asked = 1e-2
    while asked > 1e-6:
        run = jax.jit(Anderson(step, maxiter=5000, tol=t * asked, history_size=10, ridge=1e-8).run)
        seconds, ((x, y), state) = fastest(lambda: jax.block_until_ready(run((jnp.zeros(m), jnp.zeros(n)), A)))  # noqa: B023
        reached = f.certificate(x, y).distance / tol
        yield (
            f"| jaxopt's Anderson, its own tolerance {asked:g} | {int(state.iter_num)} | {reached:.2f} "
            f"| {1e3 * seconds:.0f} | {seconds / first:.2f} |"
        )
        if reached <= 1.0:
            return
        asked *= 0.3


def certificates(m: int, n: int, dtype: Any) -> str:
    """What a certificate costs in ordinary arithmetic and with products in about twice the digits."""
    A, b, c = drawn(m, n, dtype, 0)
    f = sp.Saddle(sp.Quadratic(1.0, b), sp.Quadratic(1.0, c), A)
    found = sp.solve(f, tol=1e-300, max_calls=3000, max_seconds=10.0)  # where rounding decides
    plain, ordinary = fastest(partial(f.certificate, found.x, found.y, np.inf), 20)
    twice, compensated = fastest(partial(f.certificate, found.x, found.y, 0.0), 20)
    shape = f"{m} x {n}, {str(dtype).rpartition('.')[2]}"
    return (
        f"| {shape} | {1e3 * plain:.2f} | {1e3 * twice:.2f} | {twice / plain:.1f} | {ordinary.distance:.1e} "
        f"| {compensated.distance:.1e} |"
    )


def main(quick: bool) -> str:
    """The tables, as Markdown."""
    seed, bandwidth = time.time_ns() % 2**31, copy_bandwidth()
    lines: list[str] = []

    def add(*rows: str) -> None:
        lines.extend(rows)
        print(*rows, sep="\n", file=sys.stderr, flush=True)

    add(f"{torch.cuda.get_device_name()}, copy bandwidth {bandwidth / 1e12:.2f} TB/s.", "")
    add("Whole calls of `solve` in PyTorch (milliseconds):", "")
    add(
        "| A | method | status | steps | passes | certificates | call | steps of the method | call / steps "
        "| at memory speed | waits |",
        "|" + "---|" * 11,
    )
    double, single = torch.float64, torch.float32
    cases = [(4096, 2048, double), (4096, 2048, single)]
    if not quick:
        cases = [(16384, 8192, double), (40000, 10000, double), (40000, 10000, single), (65536, 32768, double)]
    for m, n, dtype in cases:
        for row in solves(m, n, dtype, seed, bandwidth):
            add(row)
        torch.cuda.empty_cache()
    m, n, _ = cases[0]
    add(
        "",
        f"{m} x {n}, float64, in other libraries (milliseconds); here a problem is solved again with its objects:",
        "",
    )
    add("| solver | steps | certified / tol | call | times auto's, PyTorch |", "|" + "---|" * 5)
    for row in others(m, n, seed):
        add(row)
    add("", "A certificate, and one with products in about twice the digits (milliseconds):", "")
    add(
        "| A | ordinary | twice the digits | ratio | distance proven | with twice the digits |",
        "|" + "---|" * 6,
    )
    for m, n, dtype in ((40000, 4000, double), (40000, 4000, single), (16384, 8192, double)):
        add(certificates(m // 4 if quick else m, n // 4 if quick else n, dtype))
    return "\n".join(lines) + f"\n\nSeed of this run: {seed}.\n"


if __name__ == "__main__":
    page = main("--quick" in sys.argv)
    print(page)
    if sys.argv[-1].endswith(".md"):
        with open(sys.argv[-1], "w") as file:
            file.write(page)
