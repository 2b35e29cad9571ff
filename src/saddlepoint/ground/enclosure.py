"""Proven enclosures of the solutions of square linear systems.

Let R be an approximate inverse of M and v an approximate solution of M z = b. Since
z - v = R (b - M v) + (I - R M)(z - v), a bound a < 1 of the norm of I - R M proves that M is regular, and

    |z - v|  <=  |R (b - M v)| + |I - R M| e,    e = |R (b - M v)|_max/(1 - a),

coordinate by coordinate, where a is the largest row sum of |I - R M|.

Reference: S. M. Rump, Verification methods: Rigorous results using floating-point arithmetic, Acta Numerica 2010.
"""

from __future__ import annotations

import numpy as np

from saddlepoint.ground.arrays import Array
from saddlepoint.ground.compensated import EPS, UP
from saddlepoint.ground.intervals import TINY, Interval, around, minus, product
from saddlepoint.ground.rounding import gamma

LARGEST = 2000  # most equations of a system that is inverted
CLOSE = 0.01  # largest norm of I - R M that is taken as a proof


def solution_enclosure(M: Array, b: Interval) -> Interval | None:
    """An interval that holds the solution z of M z = c for every c of b; None if M is not proven to be regular.

    Example:
        >>> import numpy as np
        >>> from saddlepoint.ground.enclosure import solution_enclosure
        >>> from saddlepoint.ground.intervals import exactly
        >>> z = solution_enclosure(np.array([[3.0, 1.0], [0.0, 1.0]]), exactly(np.array([1.0, 0.0])))
        >>> bool(z.lo[0] <= 1 / 3 <= z.hi[0]) and bool((z.hi - z.lo < 1e-15).all())
        True
    """
    n = M.shape[0]
    if n == 0:
        return Interval(np.zeros(0), np.zeros(0))
    if n > LARGEST or not (np.isfinite(b.lo).all() and np.isfinite(b.hi).all()):
        return None
    with np.errstate(all="ignore"):
        try:
            R = np.linalg.inv(M)
        except np.linalg.LinAlgError:
            return None
        growth = gamma(n + 4, EPS)
        size = np.abs(R)
        off = np.abs(np.eye(n) - R @ M) + 2.0 * growth * (size @ np.abs(M)) + n * TINY
        rows = UP * off.sum(axis=1)
        a = float(rows.max())
        if not a < CLOSE:
            return None
        v = R @ b.centre
        v = v + R @ minus(b, product(M, v)).centre
        rest = minus(b, product(M, v))
        centre = rest.centre
        moved = np.abs(R @ centre) + growth * (size @ np.abs(centre)) + size @ rest.radius(centre) * (1.0 + growth)
        moved = UP * moved + n * TINY
        e = UP * float(moved.max()) / (1.0 - a)
        radius = UP * (moved + rows * e) + TINY
    return around(v, radius) if np.isfinite(radius).all() else None
