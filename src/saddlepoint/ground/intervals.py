"""Interval arithmetic for vectors: every result holds all values that the exact operation could have.

Each operation is done in float64 and rounded outwards by one floating-point number; sums are rounded once, by
``math.fsum``. Zero times infinity is zero: an infinite end stands for "no bound is known", not for a number.

Reference: A. Neumaier, Interval Methods for Systems of Equations, Cambridge University Press 1990.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import issparse

from saddlepoint.ground.arrays import Array
from saddlepoint.ground.compensated import EPS, Sum, dense_product, sparse_product
from saddlepoint.ground.rounding import gamma

TINY = 2.0**-1000  # more than underflow costs in the sums of this file


class Interval(NamedTuple):
    """All vectors v with lo <= v <= hi."""

    lo: Array
    hi: Array

    @property
    def centre(self) -> Array:
        """A point about halfway between the ends, which are finite."""
        return 0.5 * self.lo + 0.5 * self.hi

    def radius(self, centre: Array) -> Array:
        """The largest distance of its points to a centre, in each coordinate."""
        with np.errstate(all="ignore"):
            return np.maximum(_up(self.hi - centre), _up(centre - self.lo))

    def take(self, where: Array | slice) -> Interval:
        """Some of the coordinates."""
        return Interval(self.lo[where], self.hi[where])


def _down(v: Array) -> Array:
    return np.asarray(np.nextafter(v, -np.inf))


def _up(v: Array) -> Array:
    return np.asarray(np.nextafter(v, np.inf))


def exactly(v: Array) -> Interval:
    """The interval that holds one vector."""
    return Interval(v, v)


def around(centre: Array, radius: Array) -> Interval:
    """All vectors that differ from the centre by at most the radius."""
    return Interval(_down(centre - radius), _up(centre + radius))


def plus(a: Interval, b: Interval) -> Interval:
    """The sum a + b.

    Example:
        >>> import numpy as np
        >>> from saddlepoint.ground.intervals import exactly, plus
        >>> s = plus(exactly(np.array([1.0])), exactly(np.array([1e-30])))
        >>> bool(s.lo[0] <= 1.0 < s.hi[0])
        True
    """
    with np.errstate(all="ignore"):
        lo, hi = _down(a.lo + b.lo), _up(a.hi + b.hi)
    return Interval(np.where(np.isnan(lo), -np.inf, lo), np.where(np.isnan(hi), np.inf, hi))


def minus(a: Interval, b: Interval) -> Interval:
    """The difference a - b."""
    return plus(a, Interval(-b.hi, -b.lo))


def times(a: Interval, b: Interval) -> Interval:
    """The product a b, coordinate by coordinate."""
    with np.errstate(all="ignore"):
        corners = np.stack([a.lo * b.lo, a.lo * b.hi, a.hi * b.lo, a.hi * b.hi])
    corners = np.where(np.isnan(corners), 0.0, corners)
    lo, hi = corners.min(axis=0), corners.max(axis=0)
    zero = ((a.lo == 0.0) & (a.hi == 0.0)) | ((b.lo == 0.0) & (b.hi == 0.0))
    return Interval(np.where(zero, 0.0, _down(lo)), np.where(zero, 0.0, _up(hi)))


def total(a: Interval) -> tuple[float, float]:
    """The sum of all coordinates, as its two ends.

    Example:
        >>> import numpy as np
        >>> from saddlepoint.ground.intervals import exactly, total
        >>> low, high = total(exactly(np.array([1e16, 1.0, -1e16])))
        >>> low < 1.0 < high < 1.0 + 1e-15
        True
    """
    return _sum_down(a.lo), -_sum_down(-a.hi)


def _sum_down(v: Array) -> float:
    if np.isnan(v).any() or (v == -np.inf).any():
        return -math.inf
    try:
        return math.nextafter(math.fsum(v[v != np.inf].tolist()), -math.inf) if np.isfinite(v).any() else 0.0
    except OverflowError:
        return -math.inf


def product(A: Any, v: Interval | Array) -> Interval:
    """A v for a NumPy matrix or a SciPy sparse array in rows, and a vector or an interval with finite ends."""
    centre = v.centre if isinstance(v, Interval) else v
    if 0 in A.shape:
        return exactly(np.zeros(A.shape[0]))
    with np.errstate(all="ignore"):
        found: Sum = sparse_product(A, centre) if issparse(A) else dense_product(A, centre)
        error = found.error
        if isinstance(v, Interval):
            spread = abs(A) @ v.radius(centre)
            error = error + (1.0 + 2.0 * gamma(A.shape[1] + 4, EPS)) * spread + A.shape[1] * TINY
            error = _up(error)
        lo, hi = _down(found.hi + _down(found.lo - error)), _up(found.hi + _up(found.lo + error))
    unknown = ~np.isfinite(error)
    return Interval(
        np.where(unknown | np.isnan(lo), -np.inf, lo),
        np.where(unknown | np.isnan(hi), np.inf, hi),
    )
