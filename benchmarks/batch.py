"""Many small problems in one call, against a loop over them.

`python benchmarks/batch.py [--quick] [--numpy]` prints milliseconds for each of 1000 problems (200 with `--quick`) of
8 x 8 and 64 x 64 variables: all at once by `solve_many`, on NumPy, on JAX on the CPU (one compiled loop) where it is
installed, and on PyTorch on a GPU where there is one; and in a loop of `solve` on NumPy over 20 of them. With `--numpy`
it runs on NumPy only, and the milliseconds are CPU time, so that other programs do not count; set
OPENBLAS_NUM_THREADS=1 for that. Every problem ends with its own certificate within 1e-6. Where code is compiled, a
first run is not timed. Making the problems is not timed either. Without `--numpy` the milliseconds are wall-clock.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np

import saddlepoint as sp
from saddlepoint.uses.batch import solve_many

Move = Callable[[Any], Any]  # converts a NumPy array to an array of another library

SIZES = (8, 64)  # variables of each player
LOOP = 20  # number of problems that the loop solves
TOL = 1e-6  # certified distance
METHODS = ("auto", "lpd-gs", "condat-vu")


def problem(kind: str, n: int, seed: int, move: Move) -> sp.Saddle:
    """A random problem; mu is random too."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, n)) / (2.0 * n**0.5)  # |A| is about 1
    mu = 10.0 ** rng.uniform(-1.5, -0.5)
    b, c = rng.standard_normal((2, n))
    h = sp.Quadratic(move(np.geomspace(mu, 1.0, n)), move(c))
    if kind == "quadratic":
        return sp.Saddle(sp.Quadratic(move(np.geomspace(1.0, mu, n)), move(b)), h, move(A))
    D = rng.standard_normal((2 * n, n))
    labels = np.where(D @ b + rng.standard_normal(2 * n) > 0.0, 1.0, -1.0)
    return sp.Saddle(sp.Logistic(move(D), move(labels), mu), h, move(A))


def libraries() -> Iterator[tuple[str, Move]]:
    """The array libraries that are installed."""
    yield "NumPy", np.asarray
    if "--numpy" in sys.argv:
        return
    try:
        import_module("jax").config.update("jax_enable_x64", True)
        jax: Any = import_module("jax")
        cpu = jax.devices("cpu")[0]
        yield "JAX, CPU", lambda a: jax.device_put(a, cpu)
    except ImportError:
        pass
    try:
        torch: Any = import_module("torch")
        if torch.cuda.is_available():
            yield "PyTorch, CUDA", lambda a: torch.asarray(a, device="cuda")
    except ImportError:
        pass


def one_by_one(problems: list[sp.Saddle], method: str) -> list[sp.Result]:
    """Solve the problems in a loop, one by one."""
    return [sp.solve(f, method=method, tol=TOL, history=False) for f in problems]


def milliseconds(run: Callable[[], list[sp.Result]], count: int, warm: bool) -> tuple[float, str]:
    """Milliseconds for each problem; and the last method of the longest run, with its steps. All must be solved."""
    if warm:
        run()
    clock = time.process_time if "--numpy" in sys.argv else time.perf_counter
    began = clock()
    results = run()
    seconds = clock() - began
    unsolved = [result for result in results if not result.solved]
    if unsolved:
        raise SystemExit(f"{len(unsolved)} problems are not solved: {unsolved[0]}")
    longest = max(results, key=lambda result: result.iterations)
    return 1e3 * seconds / count, f"{longest.method}, {longest.iterations}"


def rows(kind: str, n: int, count: int) -> Iterator[list[str]]:
    """The rows of the table for one kind of problem."""
    loops = {}
    for library, move in libraries():
        problems = [problem(kind, n, seed, move) for seed in range(count)]
        for method in METHODS:
            if library == "NumPy":
                loops[method], how = milliseconds(partial(one_by_one, problems[:LOOP], method), LOOP, True)
                yield [method, "NumPy, one by one", how, f"{loops[method]:.3f}", "1.0"]
            run = partial(solve_many, problems, method=method, tol=TOL)
            each, how = milliseconds(run, count, library != "NumPy")
            yield [method, library, how, f"{each:.3f}", f"{loops[method] / each:.1f}"]


def main() -> None:
    """Print the table."""
    count = 200 if "--quick" in sys.argv else 1000
    print(f"{count} problems, tol {TOL:g}\n")
    print("| problem | size | method | where | ended with, steps | ms a problem | times faster than one by one |")
    print("|---|---|---|---|---|---:|---:|")
    for kind in ("quadratic", "logistic"):
        for n in SIZES:
            for row in rows(kind, n, count):
                print("| " + " | ".join([kind, f"{n} x {n}", *row]) + " |", flush=True)


if __name__ == "__main__":
    main()
