"""The classes of which the list of other projects' problems consists."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import saddlepoint as sp

DIRECT = "`solve`"
GAME = "`ConstrainedGame`"
PROXIMAL = "`proximal_point`"


class Found(NamedTuple):
    """An answer in the problem's own variables."""

    x: np.ndarray
    y: np.ndarray
    value: float
    solved: bool


class Case(NamedTuple):
    """A problem that fits.

    Attributes:
        source: whose, and the name it has there.
        problem: in one line.
        through: what it is handed to.
        change: what was changed on the way; empty for nothing.
        ours: solves it.
        theirs: the optimal value.
        origin: where that is from.
        x: their x; None where it is not unique or not given.
        tol: allowed difference of the values, relative to 1 + |theirs|; of x, its square root.
    """

    source: str
    problem: str
    through: str
    change: str
    ours: Callable[[], Found]
    theirs: Callable[[], float]
    origin: str
    x: Any = None
    tol: float = 1e-6


class Outside(NamedTuple):
    """A problem that does not fit, and why."""

    source: str
    problem: str
    why: str


def direct(g: sp.Smooth, h: sp.Smooth, A: Any, start: Any = None) -> Found:
    """Solve the problem by ``solve`` itself."""
    result = sp.solve(sp.Saddle(g, h, A), start, tol=1e-8)
    x, y = result.x, result.y
    return Found(x, y, g(x) + float(x @ (np.asarray(A) @ y)) - h(y), result.solved)


def alone(g: sp.Smooth, start: np.ndarray) -> Found:
    """min g by ``solve``: A = 0, and the other player minimises y^2/2."""
    return direct(g, sp.Quadratic(1.0), np.zeros((start.size, 1)), start)


def continued(value: Any, slope: Any, curvature: Any, low: float, high: float) -> sp.Smooth:
    """x -> sum_i value(x_i), beyond [low, high] the parabolas that touch it there; curvature is monotone between."""
    ends = curvature(np.array([low, high]))
    inside = lambda x: np.clip(x, low, high)  # noqa: E731

    def whole(x: np.ndarray) -> float:
        t = inside(x)
        return float(np.sum(value(t) + slope(t) * (x - t) + 0.5 * curvature(t) * (x - t) ** 2))

    return sp.Smooth(
        lambda x: slope(inside(x)) + curvature(inside(x)) * (x - inside(x)),
        mu=float(ends.min()),
        L=float(ends.max()),
        value=whole,
        hessian=lambda x: np.diag(curvature(inside(x))),
    )
