"""The step of x with the product A y, followed by the product A' x that the next step begins with."""

from __future__ import annotations

import numpy as np

from saddlepoint.ground.arrays import Array
from saddlepoint.problems.saddle import Saddle


def coupled_step(f: Saddle, v: Array, t: float, y: Array) -> tuple[Array, Array]:
    """The point x = prox_{t p}(v - t A y) and the product A' x, where p is the simple term of x.

    Without such a term x is v - t A y, and the two products are one call of ``through`` where that reads A once.
    """
    if f.g.simple is None and (not isinstance(v, np.ndarray) or f.A.fused):
        Ay, Atx = f.A.through(y, -t, v)
        return v - t * Ay, Atx
    x = v - t * f.A.mul(y)
    if f.g.simple is not None:
        x = f.g.simple.prox(x, t)
    return x, f.A.tmul(x)
