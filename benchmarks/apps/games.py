"""Games: time to an exploitability, compared with HiGHS on the linear program and with OpenSpiel's CFR+."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np
from highs_games import solve_matrix_game, solve_tree
from timing import cpu_seconds

import saddlepoint as sp
from saddlepoint.apps import ConstrainedGame, CoupledCosts, ExtensiveGame, MatrixGame
from saddlepoint.ground.arrays import Array

cp: Any = import_module("cvxpy")
MATRIX, POKER, COSTS = "matrix games", "extensive games", "games with costs"


def rows(quick: bool) -> Iterator[list[str]]:
    """Application, task, solver, seconds, accuracy."""
    for n in (20,) if quick else (20, 100):
        yield from matrix_game(n)
    for name, goals in (("kuhn", (1e-3, 1e-6)), ("leduc", (1e-2,) if quick else (1e-3, 1e-4, 1e-6))):
        game = ExtensiveGame.load(name)
        for tol in goals:
            yield poker(game, "saddlepoint", tol)
            if name == "kuhn" or tol >= 1e-4:
                yield poker(game, "saddlepoint, gradients only (anderson-condat-vu)", tol, "anderson-condat-vu")
        seconds, program = cpu_seconds(partial(solve_tree, game))
        yield [POKER, name, "HiGHS on the linear program", f"{seconds:.3g}", f"value {program.fun:.8f}"]
        yield from cfr(name, game, 100 if quick else 1000)
    yield from with_costs(100 if quick else 400)


def matrix_game(n: int) -> Iterator[list[str]]:
    """Random payoffs; HiGHS solves max v subject to A'x >= v over probabilities x."""
    A = np.random.default_rng(0).standard_normal((n, n))
    task = f"normal payoffs, {n} x {n}"
    for tol in (1e-3, 1e-6):
        seconds, found = cpu_seconds(partial(MatrixGame(A).solve, tol=tol))
        reached = f"exploitability {found.exploitability:.1e} (asked {tol:.0e}), value {found.value:.8f}"
        yield [MATRIX, task, "saddlepoint", f"{seconds:.3g}", reached]
    seconds, best = cpu_seconds(partial(solve_matrix_game, A))
    yield [MATRIX, task, "HiGHS on the linear program", f"{seconds:.3g}", f"value {-best.fun:.8f}"]


def poker(game: ExtensiveGame, solver: str, tol: float, method: str | None = None) -> list[str]:
    """One run of this library."""
    seconds, found = cpu_seconds(partial(game.solve, tol=tol, method=method), 1 if game.shape[0] > 100 else 3)
    task = "leduc" if game.shape[0] > 100 else "kuhn"
    reached = f"exploitability {found.exploitability:.1e} (asked {tol:.0e}), value {found.value:.8f}"
    return [POKER, task, solver, f"{seconds:.3g}", reached]


def cfr(name: str, game: ExtensiveGame, steps: int) -> Iterator[list[str]]:
    """OpenSpiel's CFR+, in C++, on the same game."""
    try:
        pyspiel: Any = import_module("pyspiel")
    except ImportError:
        return
    played = pyspiel.load_game(game.title)
    if name == "kuhn":
        steps *= 10

    def run() -> Any:
        solver = pyspiel.CFRPlusSolver(played)
        for _ in range(steps):
            solver.evaluate_and_update_policy()
        return solver

    seconds, solver = cpu_seconds(run, 1)
    gap = pyspiel.nash_conv(played, solver.average_policy())
    yield [POKER, name, f"OpenSpiel's CFR+, {steps} steps", f"{seconds:.3g}", f"exploitability {gap:.1e}"]


def with_costs(n: int) -> Iterator[list[str]]:
    """Huber costs, and probabilities with quadratic costs, against Clarabel on the dual."""
    rng = np.random.default_rng(0)
    A = rng.standard_normal((n, n)) / np.sqrt(n)
    b = rng.standard_normal(n)

    def clarabel(problem: Any, x: Any) -> Array:
        problem.solve(solver="CLARABEL", tol_gap_abs=1e-9, tol_gap_rel=1e-9, tol_feas=1e-9)
        return np.asarray(x.value)

    x = cp.Variable(n)
    # max_y (A'x)'y - 1/4 |y|^2 = |A'x|^2
    value = 0.5 * cp.sum(cp.huber(x - b, 0.5)) + 0.05 * cp.sum_squares(x) + cp.sum_squares(A.T @ x)
    free = cp.Problem(cp.Minimize(value))
    game = CoupledCosts(A, sp.Huber(t=b, l2=0.1, delta=0.5), 0.5)
    yield from beside(f"Huber and quadratic, {n} x {n}", lambda: game.solve(tol=1e-7), lambda: clarabel(free, x))
    # and over probabilities y: the largest entry of A'x, smoothed
    u = cp.Variable(n)
    held = cp.Problem(
        cp.Minimize(0.5 * cp.sum_squares(x) + b @ x + 0.5 * cp.sum_squares(A.T @ x - u) + cp.max(u)),
        [cp.sum(x) == 1, x >= 0],
    )
    mixed = ConstrainedGame.mixed(A, sp.Quadratic(1.0, b), sp.Quadratic(1.0))
    task = f"quadratic on probabilities, {n} x {n}"
    yield from beside(task, lambda: mixed.solve(tol=1e-9), lambda: clarabel(held, x))


def beside(task: str, ours: Callable[[], Any], theirs: Callable[[], Array]) -> Iterator[list[str]]:
    """The rows of both runs, with the distance of their answers."""
    seconds, found = cpu_seconds(ours)
    proof = f"exploitability <= {found.exploitability:.1e}"
    yield [COSTS, task, "saddlepoint", f"{seconds:.3g}", proof]
    seconds, x = cpu_seconds(theirs)
    apart = np.linalg.norm(x - found.x)
    yield [COSTS, task, "Clarabel (CVXPY)", f"{seconds:.3g}", f"{apart:.0e} from ours"]
