r"""The proximal point method on top of ``solve``, for functions that are convex but not strongly convex.

Problem:    min_x max_y g(x) + <x, A y> - h(y), mu_x = 0 or mu_y = 0.
Recursion:  (x_{k+1}, y_{k+1}) is the saddle point of g(x) + a/2 |x - x_k|^2 + <x, A y> - h(y) - b/2 |y - y_k|^2, up to
            a certified distance of ``share`` times the last move. After each step, a and b are multiplied by
            ``shrink``.
Guarantee:  it converges if there is a saddle point, linearly where the field grows linearly away from the solutions.
            Smaller a and b need fewer steps. With h linear it is the method of multipliers.
Reference:  R. T. Rockafellar, Monotone operators and the proximal point algorithm, SIAM J. Control Optim. 1976.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from saddlepoint.ground.arrays import Array
from saddlepoint.ground.errors import ProblemError
from saddlepoint.ground.linalg import norm
from saddlepoint.ground.time_limit import TimeLimit
from saddlepoint.methods import Method
from saddlepoint.parts.coupling import as_coupling
from saddlepoint.parts.functions.anchored import anchored
from saddlepoint.parts.functions.smooth import Smooth
from saddlepoint.problems.saddle import Saddle
from saddlepoint.solving.interruption import uninterrupted
from saddlepoint.solving.solve import solve

LEAST = 1e-6  # least proximal weight, relative to that of the first step


@dataclass
class Outcome:
    """The point that the method reached, the residual |F(x, y)| there, and the cost of the run."""

    x: Array
    y: Array
    residual: float
    solved: bool
    message: str
    steps: int = 0
    calls: dict[str, int] = field(default_factory=dict)
    seconds: float = 0.0


def proximal_point(
    g: Smooth,
    h: Smooth,
    A: Any,
    *,
    tol: float = 1e-8,
    weights: tuple[float, float] = (0.0, 0.0),
    shrink: float = 0.5,
    share: float = 0.1,
    method: str | Method = "auto",
    max_steps: int = 60,
    max_seconds: float | None = None,
) -> Outcome:
    """A point with residual |(grad g(x) + A y, grad h(y) - A'x)| <= tol.

    Args:
        g, h, A: the problem; mu of g and h may be 0.
        tol: the residual to reach.
        weights: a and b at the first step; positive where mu is 0.
        shrink: a and b are multiplied by this after each step, down to ``LEAST`` of their first values.
        share: the certified error of a step, relative to the length of the one before.
        method: the method for the subproblems.
        max_steps: outer steps at most.
        max_seconds: wall-clock limit.

    Raises:
        KeyboardInterrupt: Ctrl-C ended a step.
    """
    coupling = as_coupling(A)
    _check_function("g", g, weights[0])
    _check_function("h", h, weights[1])
    limit = TimeLimit(max_seconds)
    x, y = np.zeros(coupling.shape[0]), np.zeros(coupling.shape[1])
    calls: Counter[str] = Counter()
    move, size, residual, steps = math.inf, 1.0, math.inf, 0
    while steps < max_steps:
        a, b = (size * weight for weight in weights)
        f = Saddle(anchored(g, a, x) if a else g, anchored(h, b, y) if b else h, coupling)
        if limit.is_over:
            break
        accuracy = share * min(move, 1.0 + norm(x) + norm(y))
        # The residual of the whole problem is at most that of the step plus a and b times the move.
        floor = 0.1 * tol / (f.L + f.norm)
        options: dict[str, Any] = {"method": method, "max_seconds": limit.left, "history": False}
        result = uninterrupted(solve(f, x, y, tol=max(accuracy, floor), **options))
        calls.update(result.calls)
        steps += 1
        move = norm(result.x - x) + norm(result.y - y)
        x, y = result.x, result.y
        residual = math.hypot(norm(g.grad(x) + coupling.mul(y)), norm(h.grad(y) - coupling.tmul(x)))
        if residual <= tol:
            break
        size = max(shrink * size, LEAST)
    solved = residual <= tol
    message = f"residual {residual:.3g} after {steps} proximal steps" + ("" if solved else f", {tol:.3g} was asked for")
    return Outcome(x, y, residual, solved, message, steps, dict(calls), limit.spent)


def _check_function(name: str, function: Smooth, weight: float) -> None:
    """Raise a ProblemError for a function with a simple term, or one that the weight does not make strongly convex."""
    if function.simple is not None:
        raise ProblemError(
            f"{name} has the simple term {function.simple!r}, with which the residual is another one; expected a "
            "function without one. sp.solve takes simple terms"
        )
    if not function.mu + weight > 0.0:
        raise ProblemError(f"{name} is not strongly convex; expected a positive proximal weight for it")
