"""Large matrix games on one GPU, to a proven exploitability, beside MPAX.

    python benchmarks/gpu_games.py [--sizes 20000x20000,100000x30000] [--seconds 10] [--device cuda] [--write]

Payoffs are drawn uniformly from [-1, 1] on the device, in float64 and in float32. `solve(gap=)` runs until the
exploitability is proven to be at most 1e-4 of the largest payoff, and then on to 1e-6; a run is ended after so many
seconds by the wall clock. MPAX (restarted Halpern PDHG, `r2HPDHG`) solves the linear program of the minimising player
in float64, with as many steps as take about that time by a measurement of products with A; it is left out where it, or
JAX, is not installed. All strategies are measured in the same way, by exact best responses, with products in float64 of
the matrix as it is stored. A second run is timed, so that nothing is compiled in it; of `solve` only if the first one
took less than half of the time.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import saddlepoint as sp

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # PyTorch needs memory as well
torch: Any = import_module("torch")

PAGE = Path(__file__).parent / "results" / "gpu_games.md"
GOALS = 1e-4, 1e-6  # exploitability, relative to the largest payoff
SIZES = "20000x20000,100000x30000"
ROWS = 4096  # rows of A that are converted to float64 at a time
SLOWER = 1.5  # time of a step of MPAX in units of the time of two products, about
REPEATS = 5  # products by which their time is measured


def drawn(m: int, n: int, dtype: Any, device: str) -> Any:
    """Payoffs that are uniform in [-1, 1]; x minimises x'Ay."""
    generator = torch.Generator(device=device).manual_seed(m + n)
    A = torch.rand((m, n), generator=generator, dtype=dtype, device=device)
    return A.mul_(2.0).sub_(1.0)


def exploitability(A: Any, x: Any, y: Any) -> float:
    """What best responses to the probabilities x and y gain together, with products in float64."""
    x, y = (probabilities(z.to(torch.float64)) for z in (x, y))
    best, columns = float("inf"), torch.zeros(A.shape[1], dtype=torch.float64, device=A.device)
    for first in range(0, A.shape[0], ROWS):
        block = A[first : first + ROWS].to(torch.float64)
        best = min(best, float((block @ y).min()))
        columns += x[first : first + ROWS] @ block
    return float(float(columns.max()) - best)


def probabilities(z: Any) -> Any:
    """The vector without negative entries, with the sum 1."""
    z = z.clamp(min=0.0)
    return z / z.sum()


def waited(call: Callable[[], Any], device: str) -> tuple[float, Any]:
    """Wall-clock seconds of a call until the device has done its work, and what it returned."""
    began = time.perf_counter()
    found = call()
    if device == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - began, found


def ours(A: Any, seconds: float, device: str) -> Iterator[str]:
    """Rows of `solve`."""
    m, n = A.shape
    size, name = float(A.abs().max()), str(A.dtype).rpartition(".")[2]
    f = sp.Saddle(sp.Simplex(), sp.Simplex(), A)
    start = [torch.full((k,), 1.0 / k, dtype=A.dtype, device=A.device) for k in (m, n)]
    for goal in GOALS:
        call = partial(sp.solve, f, *start, gap=goal * size, max_seconds=seconds, history=False)
        spent, found = waited(call, device)
        if spent < 0.5 * seconds:
            spent, found = waited(call, device)
        proven = found.certificate.gap / size
        exact = exploitability(A, found.x, found.y) / size
        rounds = max(found.calls.values())
        yield f"| {m} x {n}, {name} | {found.method} | {goal:g} | {spent:.2f} | {rounds} | {proven:.1e} | {exact:.1e} |"


def time_of_products(A: Any) -> float:
    """Seconds of A y and A'x."""
    x, y = (torch.ones(k, dtype=A.dtype, device=A.device) for k in A.shape)
    for repeats in (1, REPEATS):
        began = time.perf_counter()
        for _ in range(repeats):
            float((A @ y)[0] + (x @ A)[0])
    return (time.perf_counter() - began) / REPEATS


def by_mpax(A: Any, seconds: float) -> Iterator[str]:
    """The row of MPAX on min s with A'x <= s, x >= 0 and sum x = 1; y is the dual solution of the inequalities."""
    mpax: Any = import_module("mpax")
    jax: Any = import_module("jax")
    jax.config.update("jax_enable_x64", True)
    jnp, (m, n), size = jax.numpy, A.shape, float(A.abs().max())
    step = SLOWER * time_of_products(A)
    payoff = jnp.from_dlpack(A.to(torch.float64).contiguous())
    rows = jnp.concatenate([-payoff.T, jnp.ones((n, 1))], axis=1)  # rows @ (x, s) >= 0
    del payoff
    equation = jnp.concatenate([jnp.ones((1, m)), jnp.zeros((1, 1))], axis=1)
    lower = jnp.concatenate([jnp.zeros(m), jnp.full(1, -jnp.inf)])
    cost, upper = jnp.zeros(m + 1).at[m].set(1.0), jnp.full(m + 1, jnp.inf)
    program = mpax.create_lp(cost, equation, jnp.ones(1), rows, jnp.zeros(n), lower, upper, use_sparse_matrix=False)

    solver = mpax.r2HPDHG(eps_abs=1e-9, eps_rel=1e-9, iteration_limit=max(int(seconds / step), 1))
    for _ in range(2):  # the first run compiles
        began = time.perf_counter()
        found = solver.optimize(program)
        jax.block_until_ready(found.primal_solution)
        spent = time.perf_counter() - began
    x, y = (
        torch.tensor(jax.device_get(z).tolist(), dtype=torch.float64, device=A.device)
        for z in (found.primal_solution[:m], found.dual_solution[1:])
    )  # the first dual is that of sum x = 1
    exact = exploitability(A, x, y) / size
    steps = int(found.iteration_count)
    yield f"| {m} x {n}, float64 | MPAX, r2HPDHG | | {spent:.2f} | {steps} | | {exact:.1e} |"


def rows(shape: str, seconds: float, device: str) -> Iterator[str]:
    """All rows of one game."""
    m, n = map(int, shape.split("x"))
    for dtype in (torch.float32, torch.float64):
        try:
            yield from ours(drawn(m, n, dtype, device), seconds, device)
        except Exception as error:  # the game may not fit
            yield failed(f"{m} x {n}, {str(dtype).rpartition('.')[2]}", "solve", error)
    if find_spec("mpax") is None or find_spec("jax") is None:
        yield f"| {m} x {n}, float64 | MPAX | | | | | not installed |"
        return
    try:
        yield from by_mpax(drawn(m, n, torch.float64, device), seconds)
    except Exception as error:  # a peer may run out of memory
        yield failed(f"{m} x {n}, float64", "MPAX, r2HPDHG", error)


def failed(game: str, who: str, error: Exception) -> str:
    """The row of a solver that raised an error."""
    message = " ".join(str(error).split())[:90].replace("|", "/")
    return f"| {game} | {who} | | | | | {type(error).__name__}: {message} |"


def main() -> None:
    """Print the page row by row, and write it if asked to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default=SIZES, help="rows x columns, separated by commas")
    parser.add_argument("--seconds", type=float, default=10.0, help="the limit of each run")
    parser.add_argument("--device", default="cuda", choices=("cuda", "cpu"))
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    machine = torch.cuda.get_device_name() if given.device == "cuda" else "the CPU"
    lines = [
        "# Matrix games on a GPU",
        "",
        f"By `python benchmarks/gpu_games.py --sizes {given.sizes} --seconds {given.seconds:g} --write`, on {machine}.",
        "Seconds are wall-clock.",
        "Payoffs are uniform in [-1, 1]. The proven exploitability is that of `solve(gap=)`, and the other one is",
        "computed by best responses with products in float64; both are relative to the largest payoff. MPAX has as",
        "many steps as take about the limit of seconds.",
        "",
        "| game | solver | goal | seconds | rounds or steps | proven | by best responses |",
        "|---|---|---|---|---|---|---|",
    ]
    print(*lines, sep="\n", flush=True)
    for shape in given.sizes.split(","):
        for row in rows(shape, given.seconds, given.device):
            print(row, flush=True)
            lines.append(row)
    if given.write:
        PAGE.write_text("\n".join([*lines, ""]))


if __name__ == "__main__":
    main()
