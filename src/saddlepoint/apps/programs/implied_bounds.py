"""Bounds on variables that the rows of a program imply, proven with rounded arithmetic.

A row a'x <= u gives a_j x_j <= u - min over the other variables of sum_{k != j} a_k x_k. A few rounds over all rows
bound many variables for which no bound was given; they change neither the points that satisfy the program nor its
value. An interval that comes out empty proves that no point satisfies the program.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from saddlepoint.ground.arrays import Array
from saddlepoint.ground.compensated import EPS
from saddlepoint.ground.intervals import TINY, Interval
from saddlepoint.ground.rounding import gamma

ROUNDS = 10  # rounds over all rows at most


def implied_bounds(rows: Any, sides: Interval, box: Interval) -> Interval:
    """The box, with bounds from the rows (a sparse array) where it has none; lo > hi where it is proven to be empty.

    Finite bounds of the box remain as they are.

    Example:
        >>> import numpy as np
        >>> from scipy.sparse import csr_array
        >>> from saddlepoint.apps.programs.implied_bounds import implied_bounds
        >>> from saddlepoint.ground.intervals import Interval
        >>> sides, box = Interval(np.array([-np.inf]), np.array([1.0])), Interval(np.zeros(2), np.full(2, np.inf))
        >>> implied_bounds(csr_array([[1.0, 2.0]]), sides, box).hi.round(9)
        array([1. , 0.5])
    """
    if rows.nnz == 0:
        return box
    a, column = rows.data, rows.indices
    row = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
    growth = gamma(int(np.diff(rows.indptr).max()) + 4, EPS)
    for _ in range(ROUNDS):
        open_ends = np.count_nonzero(np.isinf(box.lo)) + np.count_nonzero(np.isinf(box.hi))
        if open_ends == 0:
            break
        box = _round(a, row, column, growth, rows.shape, sides, box)
        if (box.lo > box.hi).any():
            break
        if np.count_nonzero(np.isinf(box.lo)) + np.count_nonzero(np.isinf(box.hi)) == open_ends:
            break
    return box


def _round(
    a: Array, row: Array, column: Array, growth: float, shape: tuple[int, int], sides: Interval, box: Interval
) -> Interval:
    """The box after one round: ``a`` has the entries of the rows, in row ``row`` and column ``column``."""
    lo, hi = box.lo[column], box.hi[column]
    with np.errstate(all="ignore"):
        least = np.where(a > 0.0, a * lo, a * hi)  # the least of a_ij x_j
        most = np.where(a > 0.0, a * hi, a * lo)
        below, lack_below = _others(least, row, shape[0], growth)
        above, lack_above = _others(most, row, shape[0], growth)
        top = sides.hi[row] - (below - lack_below)  # a_ij x_j is at most this
        bottom = sides.lo[row] - (above + lack_above)
        top = top + 4.0 * EPS * (np.abs(sides.hi[row]) + np.abs(below)) + TINY
        bottom = bottom - 4.0 * EPS * (np.abs(sides.lo[row]) + np.abs(above)) - TINY
        first, second = top / a, bottom / a
        high = np.where(a > 0.0, first, second)
        low = np.where(a > 0.0, second, first)
        high = high + 4.0 * EPS * np.abs(high) + TINY
        low = low - 4.0 * EPS * np.abs(low) - TINY
    high, low = np.where(np.isnan(high), np.inf, high), np.where(np.isnan(low), -np.inf, low)
    new_hi, new_lo = np.full(shape[1], np.inf), np.full(shape[1], -np.inf)
    np.minimum.at(new_hi, column, high)
    np.maximum.at(new_lo, column, low)
    return Interval(np.where(np.isinf(box.lo), new_lo, box.lo), np.where(np.isinf(box.hi), new_hi, box.hi))


def _others(terms: Array, row: Array, rows: int, growth: float) -> tuple[Array, Array]:
    """For each entry, the sum of the other terms of its row, infinite if one of them is, and a bound on its error."""
    known = np.where(np.isfinite(terms), terms, 0.0)
    sums, sizes = np.bincount(row, known, rows)[row], np.bincount(row, np.abs(known), rows)[row]
    open_terms = np.bincount(row, ~np.isfinite(terms), rows)[row] - ~np.isfinite(terms)
    sign = np.where(terms == np.inf, 1.0, -1.0)
    infinite = np.bincount(row, np.where(np.isfinite(terms), 0.0, sign), rows)[row]
    others = np.where(open_terms > 0.0, np.inf * np.where(infinite == 0.0, 1.0, infinite), sums - known)
    return others, 2.0 * growth * sizes + TINY
