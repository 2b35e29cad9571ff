"""The same problems solved on one GPU by other libraries: hand-written extragradient in PyTorch, jaxopt, MPAX.

`python benchmarks/gpu_peers.py [--quick] [FILE.md]` needs PyTorch, JAX, jaxopt, MPAX and an NVIDIA GPU. All
runs are in float64 and start at zero. A peer's own tolerance is lowered tenfold until its answer meets the certificate
of this package; the run that first meets it is timed a second time, so that nothing is compiled in it. `auto` is timed
the same way, certificates included. All seconds are wall-clock.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np
from gpu_timing import extragradient

import saddlepoint as sp

torch: Any = import_module("torch")
jax: Any = import_module("jax")
jax.config.update("jax_enable_x64", True)
jnp: Any = jax.numpy

# The condition number of both functions, |A|/sqrt(mu_x mu_y), and the certified distance over an estimate of |x*|.
KAPPA, COUPLING, ACCURACY = 10.0, 30.0, 1e-4
LIMIT = 20_000  # most steps of a peer
Run = Callable[[float], tuple[Any, Any, int]]  # maps a peer's tolerance to x, y and the number of steps


def data(m: int, n: int) -> dict[str, Any]:
    """A Gaussian A of norm about 1, b and c."""
    rng = np.random.default_rng(0)
    A = rng.standard_normal((m, n)) / (math.sqrt(m) + math.sqrt(n))
    return {"A": A, "b": rng.standard_normal(m), "c": rng.standard_normal(n)}


def problem(kind: str, A: Any, b: Any, c: Any) -> sp.Saddle:
    """A problem with quadratic g and h, to which log-cosh is added unless ``kind`` is "quadratic"."""
    mu = 1.0 / COUPLING
    if kind == "quadratic":
        spread = [np.geomspace(mu, KAPPA * mu, v.shape[0]) for v in (b, c)]
        move = jnp.asarray if isinstance(b, jax.Array) else partial(torch.asarray, device="cuda")
        return sp.Saddle(sp.Quadratic(move(spread[0]), b), sp.Quadratic(move(spread[1]), c), A)
    top = (mu * (KAPPA - 1.0)) * sp.LogCosh()
    return sp.Saddle(sp.Quadratic(mu, b) + top, sp.Quadratic(mu, c) + top, A)


def wait(result: Any) -> Any:
    """The result, after the GPU has computed it."""
    torch.cuda.synchronize()
    return jax.block_until_ready(result) if isinstance(result, jax.Array) else result


def timed(run: Callable[[], Any]) -> tuple[float, Any]:
    """Wall-clock seconds of a second run, and its answer."""
    for _ in range(2):
        began = time.perf_counter()
        answer = run()
        wait(answer[0] if isinstance(answer, tuple) else answer.x)
    return time.perf_counter() - began, answer


def row(kind: str, shape: str, who: str, seconds: float, ours: float, steps: int, reached: float, note: str) -> str:
    """A row of the table."""
    ratio = f"{seconds / ours:.1f}" if math.isfinite(seconds) else ""
    spent = f"{seconds:.3f}" if math.isfinite(seconds) else "never"
    return f"| {shape} {kind} | {who} | {steps} | {reached:.2f} | {spent} | {ratio} | {note} |"


def peers(kind: str, f: sp.Saddle, g: sp.Saddle) -> Iterator[tuple[str, sp.Saddle, Run]]:
    """The peers, each with the problem in its own library: f in PyTorch, g in JAX."""
    yield "extragradient by hand, PyTorch", f, lambda tol: extragradient(f, tol, LIMIT)
    yield "jaxopt, AndersonAcceleration", g, partial(by_jaxopt, g, "AndersonAcceleration")
    yield "jaxopt, FixedPointIteration", g, partial(by_jaxopt, g, "FixedPointIteration")
    if kind == "quadratic":
        yield "MPAX, raPDHG", g, partial(by_mpax, g)


def by_jaxopt(f: sp.Saddle, name: str, tol: float) -> tuple[Any, Any, int]:
    """jaxopt on the fixed point of one primal-dual step (Condat-Vu), its most contractive simple form."""
    A, (m, n) = f.A.matrix(), f.shape
    t = 1.0 / (max(f.L_x, f.L_y) + f.norm)

    def T(z: Any, A: Any) -> Any:
        x, y = z
        u = x - t * (f.g.grad(x) + A @ y)
        return u, y - t * (f.h.grad(y) - (2.0 * u - x) @ A)

    options = {"history_size": 10, "ridge": 1e-8} if name == "AndersonAcceleration" else {}
    key = (name, tol, id(f))
    if key not in SOLVERS:
        SOLVERS[key] = jax.jit(import_module("jaxopt").__dict__[name](T, maxiter=LIMIT, tol=t * tol, **options).run)
    (x, y), state = SOLVERS[key]((jnp.zeros(m), jnp.zeros(n)), A)
    return x, y, int(state.iter_num)


SOLVERS: dict[tuple[str, float, int], Any] = {}


def by_mpax(f: sp.Saddle, tol: float) -> tuple[Any, Any, int]:
    """MPAX on min p/2 |x|^2 + b'x + |w|^2/(2 q) with w = A'x - c, which is what the maximum over y leaves."""
    mpax, (m, n) = import_module("mpax"), f.shape
    key = ("mpax", 0.0, id(f))
    b, c = f.g.grad(jnp.zeros(m)), f.h.grad(jnp.zeros(n))
    p, q = f.g.grad(jnp.ones(m)) - b, f.h.grad(jnp.ones(n)) - c
    if key not in SOLVERS:
        diagonal, rows = jnp.concatenate([p, 1.0 / q]), jnp.concatenate([f.A.matrix().T, -jnp.eye(n)], axis=1)
        zero, free = jnp.zeros((0, m + n)), jnp.full(m + n, jnp.inf)
        linear = jnp.concatenate([b, jnp.zeros(n)])
        SOLVERS[key] = mpax.create_qp(
            jnp.diag(diagonal), linear, rows, c, zero, jnp.zeros(0), -free, free, use_sparse_matrix=False
        )
    solver = mpax.raPDHG(eps_abs=tol, eps_rel=tol, iteration_limit=LIMIT)
    found = solver.optimize(SOLVERS[key])
    x = found.primal_solution[:m]
    return x, (f.A.tmul(x) - c) / q, int(found.iteration_count)


def rows(kind: str, m: int, n: int) -> Iterator[str]:
    """All solvers on one problem."""
    shape, numbers = f"{m} x {n}", data(m, n)
    f = problem(kind, **{name: torch.asarray(v, device="cuda") for name, v in numbers.items()})
    g = problem(kind, **{name: jnp.asarray(v) for name, v in numbers.items()})
    size = float(torch.linalg.norm(f.g.grad(f.space.zeros(m)))) / f.mu_x
    tol = ACCURACY * size
    first = math.nan
    for library, h in (("PyTorch", f), ("JAX", g)):
        for name in ("auto", "lpd-gs"):
            seconds, result = timed(partial(sp.solve, h, method=name, tol=tol, max_seconds=60.0))
            first = seconds if math.isnan(first) else first
            note = f"{result.status}, passes {result.passes}"
            reached = result.certificate.distance / tol
            yield row(kind, shape, f"{name}, {library}", seconds, first, result.iterations, reached, note)
    for who, h, run in peers(kind, f, g):
        try:
            yield peer(kind, shape, who, h, run, tol, first)
        except Exception as error:  # a peer may not be able to solve this kind of problem
            message = " ".join(str(error).split())[:90]
            yield f"| {shape} {kind} | {who} | | | fails | | {type(error).__name__}: {message} |"


def peer(kind: str, shape: str, who: str, f: sp.Saddle, run: Run, tol: float, ours: float) -> str:
    """A peer at the first of its own tolerances that meets the certificate."""
    asked = 1e-2
    while True:
        seconds, (x, y, steps) = timed(partial(run, asked))
        reached = f.certificate(x, y).distance / tol
        if reached <= 1.0:
            return row(kind, shape, who, seconds, ours, steps, reached, f"its own tolerance {asked:g}")
        if asked < 1e-8 or not math.isfinite(reached) or seconds > 60.0:
            return row(kind, shape, who, math.inf, ours, steps, reached, f"stops short at its tolerance {asked:g}")
        asked *= 0.1


def main(quick: bool) -> str:
    """The table, as Markdown."""
    lines = [f"{torch.cuda.get_device_name()}, float64, |A|/sqrt(mu_x mu_y) = {COUPLING:g}, kappa = {KAPPA:g}.", ""]
    lines.append("| problem | solver | steps | certified / tol | s | times auto's, PyTorch | |")
    lines.append("|" + "---|" * 7)
    m, n = (2048, 1024) if quick else (16384, 8192)
    for kind in ("quadratic", "log-cosh"):
        for line in rows(kind, m, n):
            print(line, file=sys.stderr, flush=True)
            lines.append(line)
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    page = main("--quick" in sys.argv)
    print(page)
    if sys.argv[-1].endswith(".md"):
        with open(sys.argv[-1], "w") as file:
            file.write(page)
