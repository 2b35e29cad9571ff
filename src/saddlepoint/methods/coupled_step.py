"""The step of x with the product A y, followed by the product A' x that the next step begins with."""

from __future__ import annotations

from saddlepoint.ground.arrays import Array
from saddlepoint.problems.saddle import Saddle


def coupled_step(f: Saddle, v: Array, t: float, y: Array) -> tuple[Array, Array]:
    """The point x = prox_{t p}(v - t A y) and the product A' x, where p is the simple term of x.

    Without such a term x is v - t A y, and the two products are one call of ``through``.
    """
    if f.g.simple is None:
        Ay, Atx = f.A.through(y, -t, v)
        return v - t * Ay, Atx
    x = f.g.simple.prox(v - t * f.A.mul(y), t)
    return x, f.A.tmul(x)
