r"""Points of a program from a first-order method, which needs products with A and no factorisation.

Saddle:     min_x max_y 1/2 x'Px + q'x + <A x, y> - sum_i max(l_i y_i, u_i y_i) over the bounds of x. The prox of the
            last term with step t is v - t p, where p is the point of [l, u] nearest to v/t.
Method:     Halpern's iteration over PDHG with restarts, on the program with rows and columns scaled by Ruiz's method.
Reference:  D. Applegate et al., Practical large-scale linear programming using primal-dual hybrid gradient, NeurIPS
            2021; H. Lu and J. Yang, Restarted Halpern PDHG for linear programming, arXiv 2407.16144, 2024.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from saddlepoint.apps.programs.data import Data
from saddlepoint.apps.programs.interior import Proposal
from saddlepoint.apps.programs.scaling import scaled
from saddlepoint.ground.arrays import Array
from saddlepoint.methods.pdhg import PDHG
from saddlepoint.methods.wrappers.halpern import Halpern
from saddlepoint.parts.functions import Quadratic
from saddlepoint.parts.simple import L1Box, Simple
from saddlepoint.problems.saddle import Saddle

FIRST = 200  # steps before the first proposal
GROWTH = 1.5  # growth of the number of steps between proposals


def first_order(given: Data, late: Callable[[], bool]) -> Iterator[Proposal]:
    """Better and better points, without end; the present one is proposed at once when it is ``late``."""
    form = scaled(given)
    data = form.data
    m, n = data.shape
    f = saddle(data)
    method = Halpern(PDHG())
    state = method.init(f, np.clip(np.zeros(n), data.x_lower, data.x_upper), np.zeros(m))
    steps, until = 0, FIRST
    while True:
        state = method.step(f, state)
        steps += 1
        if steps >= until or late():
            until = max(until, int(GROWTH * steps))
            yield Proposal(*form.back(state.x, state.y), _gap(data, state.x, state.y) / form.objective)


def saddle(data: Data) -> Saddle:
    """The saddle problem of a program that has one row at least."""
    lower, upper = data.lower, data.upper

    def prox(v: Array, t: float) -> Array:
        return v - t * np.clip(v / t, lower, upper)

    def value(v: Array) -> float:
        with np.errstate(all="ignore"):
            sides = np.where(v > 0.0, v * upper, v * lower)
        return float(np.where(v == 0.0, 0.0, sides).sum())

    P = 0.0 if data.P is None else data.P
    g = Quadratic(P, data.q, mu=0.0) + L1Box(0.0, data.x_lower, data.x_upper)
    return Saddle(g, Simple(prox=prox, value=value), data.At)


def _gap(data: Data, x: Array, y: Array) -> float:
    """An estimate of the duality gap, with the violations of rows and of reduced costs."""
    inside = data.A @ x
    outside = inside - np.clip(inside, data.lower, data.upper)
    r = data.q + data.At @ y + (0.0 if data.P is None else data.P @ x)
    with np.errstate(all="ignore"):
        ends = np.where(r > 0.0, data.x_lower, data.x_upper)
        wrong = np.where(np.isfinite(ends), 0.0, np.abs(r))
        reduced = np.where(np.isfinite(ends), r * (x - ends), 0.0)
        sides = np.where(y > 0.0, data.upper, data.lower)
        slack = np.where(y == 0.0, 0.0, y * (sides - inside))
    known = float(np.where(np.isfinite(slack), slack, 0.0).sum() + reduced.sum())
    return abs(known) + float(np.abs(outside) @ np.abs(y)) + float(wrong @ np.abs(x))
