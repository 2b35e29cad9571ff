"""This library beside a peer on one task: the first of the peer's tolerances that is accurate enough counts."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
from timing import Seconds, fastest

Array = np.ndarray
RUNS = 3  # the fastest of this many runs counts
QUICK, MANY = 0.01, 30  # wall-clock seconds below which it is the fastest of this many more
LONG = 10.0  # CPU seconds after which a peer is not asked for more accuracy
STEPS = [100, 300, 1000, 3000, 10_000]  # of primal-dual methods, which have no tolerance
SMALLER = [10.0**-k for k in range(4, 13)]  # tolerances of other peers, of which the first that suffices counts


class Row(NamedTuple):
    """One solver on one task."""

    task: str
    solver: str
    seconds: float
    cpu: float
    error: float
    proven: float | None
    short: bool


def beside(
    task: str,
    goal: float,
    exact: Array,
    ours: Callable[[], tuple[Array, float]],
    peers: dict[str, tuple[Callable[[float], Array], list[float]]],
    error: Callable[[Array, Array], float],
) -> Iterator[Row]:
    """This library, then each peer with the first of its tolerances that is accurate enough."""
    proofs = []

    def run() -> Array:
        x, proof = ours()
        proofs.append(proof)
        return x

    (wall, cpu), x = measured(run)
    yield Row(task, "saddlepoint", wall, cpu, error(x, exact), proofs[-1], proofs[-1] > goal)
    for name, (solver, tolerances) in peers.items():
        for tol in tolerances:
            began = time.process_time()
            solver(tol)  # compiles
            (wall, cpu), x = measured(partial(solver, tol), RUNS if time.process_time() - began < 5.0 else 1)
            reached = error(x, exact)
            if reached <= goal or cpu > LONG:
                break
        yield Row(task, name, wall, cpu, reached, None, reached > goal)


def measured(call: Callable[[], Array], runs: int = RUNS) -> tuple[Seconds, Array]:
    """The seconds of the fastest run, and its answer."""
    spent, x = fastest(call, runs)
    if spent.wall >= QUICK:
        return spent, x
    again, x = fastest(call, MANY)
    return min(spent, again), x


def relative(x: Array, exact: Array) -> float:
    """The distance over the length of the exact answer."""
    return float(np.linalg.norm(x - exact) / np.linalg.norm(exact))


def rms(x: Array, exact: Array) -> float:
    """The root mean square of the difference."""
    return float(np.sqrt(np.mean((x - exact) ** 2)))


def optional(name: str) -> Any:
    """A module, or None if it is not installed."""
    try:
        return import_module(name)
    except ImportError:
        return None


def clarabel(problem: Any, x: Any) -> Callable[[float], Array]:
    """A solver of a program of CVXPY."""

    def solve(tol: float) -> Array:
        problem.solve(solver="CLARABEL", tol_gap_abs=tol, tol_gap_rel=tol, tol_feas=tol)
        return np.asarray(x.value)

    return solve
