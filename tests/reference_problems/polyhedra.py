"""Problems over polyhedra, handed to ``ConstrainedGame``."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array, eye_array, hstack, vstack

import saddlepoint as sp
from reference_problems.entry import Found


class Polyhedron(NamedTuple):
    """x = low + (the first n of v), E v = e, v >= 0: the form that ``ConstrainedGame`` takes."""

    low: np.ndarray
    E: csr_array
    e: np.ndarray

    @property
    def lift(self) -> csr_array:
        """T with x = T v + low."""
        n, N = self.low.size, self.E.shape[1]
        return csr_array(eye_array(n, N))

    def inside(self, cost: sp.Smooth | None) -> sp.Smooth | None:
        """v -> cost(T v + low)."""
        if cost is None:
            return None
        T, low, H = self.lift, self.low, cost.hessian
        return sp.Smooth(
            lambda v: T.T @ cost.grad(T @ v + low),
            mu=0.0,
            L=cost.L,
            value=lambda v: cost(T @ v + low),
            hessian=None if H is None else lambda v: csr_array(T.T @ csr_array(H(T @ v + low)) @ T),
        )


def polyhedron(low, high, rows=None, lower=None, upper=None) -> Polyhedron:
    """low <= x <= high and lower <= rows x <= upper; low is finite, the others need not be."""
    low, high = np.atleast_1d(np.asarray(low, float)), np.atleast_1d(np.asarray(high, float))
    n = low.size
    rows = csr_array(np.zeros((0, n)) if rows is None else rows)
    lower = np.zeros(0) if lower is None else np.broadcast_to(np.asarray(lower, float), rows.shape[0])
    upper = np.zeros(0) if upper is None else np.broadcast_to(np.asarray(upper, float), rows.shape[0])
    bounded, equal = np.isfinite(high), lower == upper
    above, below = np.isfinite(upper) & ~equal, np.isfinite(lower) & ~equal
    shift = rows @ low
    stack = vstack([csr_array(eye_array(n))[bounded], rows[above], -rows[below], rows[equal]], format="csr")
    e = np.concatenate([(high - low)[bounded], (upper - shift)[above], (shift - lower)[below], (upper - shift)[equal]])
    slacks = csr_array(eye_array(e.size, e.size - equal.sum()))  # the equations come last and have none
    return Polyhedron(low, hstack([stack, slacks], format="csr"), e)


ONE = polyhedron(1.0, 1.0)  # the only strategy of a player who has no choice


def game(A, X: Polyhedron, Y: Polyhedron, p=None, q=None, tol=1e-8, feasibility=1e-9, **options) -> Found:
    """min_x max_y p(x) + <x, A y> - q(y) over x in X and y in Y."""
    A = csr_array(np.atleast_2d(A)) if isinstance(A, np.ndarray | list | float) else csr_array(A)
    S, T = X.lift, Y.lift
    # <S v + a, A (T w + b)> = <v, S'A T w> + <S'A b, v> + <T'A'a, w> + <a, A b>
    on_x, on_y = sp.Quadratic(0.0, A @ Y.low), sp.Quadratic(0.0, -(A.T @ X.low))
    cost_x, cost_y = (on if cost is None else on + cost for on, cost in ((on_x, p), (on_y, q)))
    play = sp.apps.ConstrainedGame(S.T @ A @ T, (X.E, X.e), (Y.E, Y.e), X.inside(cost_x), Y.inside(cost_y))
    found = play.solve(tol=tol, feasibility=feasibility, **options)
    x, y = S @ found.x + X.low, T @ found.y + Y.low
    value = float(x @ (A @ y)) + (0.0 if p is None else p(x)) - (0.0 if q is None else q(y))
    return Found(x, y, value, found.solved)


def minimum(p: sp.Smooth, X: Polyhedron, tol=1e-8, **options) -> Found:
    """min p(x) over x in X: a game whose other player has no choice, with payoffs in units of the slopes of p."""
    scale = max(p.L, float(np.abs(p.grad(X.low)).max()))
    found = game(np.zeros((X.low.size, 1)), X, ONE, (1.0 / scale) * p, tol=tol / scale, **options)
    return found._replace(value=p(found.x))
