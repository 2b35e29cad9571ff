r"""The gradient of the AUC problem in about twice the digits, from the rows of the data.

With r = D w - s u for positive rows and D w - s v for negative ones, and the weights W1 = 2 q/N, W0 = 2 p/N, it is

    along w:  l2 w + W1 D1'(r1 - 1) + W0 D0'(r0 + 1),    along u:  -s W1 sum r1,    along v:  -s W0 sum r0,

because 2 p q d = W1 D1'1 - W0 D0'1. Index 1 stands for positive rows and 0 for negative ones. D = X - 1 c' is a pair of
arrays, whose sum is exact.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from saddlepoint.apps.centred import column_sums
from saddlepoint.apps.data_errors import UP
from saddlepoint.ground.arrays import Array
from saddlepoint.ground.compensated import EPS, Accumulator, Sum, dense_product, sparse_product, two_sum
from saddlepoint.ground.rounding import gamma
from saddlepoint.parts.functions.compensated import exactly, two_product

if TYPE_CHECKING:
    from saddlepoint.apps.auc_pairs import Pairs

LEAST = 1e-290  # added to bounds: more than underflow can change


def compensated_gradient(pairs: Pairs, x: Array) -> Sum:
    """The gradient of g at x = (w, u, v), as a sum of two vectors with bounds on its errors."""
    n, w = x.shape[0] - 2, x[:-2]
    offsets = [times_number(_one(pairs.unit), float(u)) for u in (x[-1], x[-2])]
    shift = dense_product(pairs.shift[None, :], w)
    along_w = [Accumulator(np.zeros(n)) for _ in range(2)]
    totals = [Accumulator(np.zeros(1)) for _ in range(2)]
    for start in range(0, pairs.X.shape[0], pairs.block_rows):
        rows = slice(start, start + pairs.block_rows)
        high, low = two_sum(pairs.F[rows].astype(np.float64, copy=False), -pairs.centre[pairs.filled])
        sparse = None if pairs.S is None else pairs.S[rows].astype(np.float64, copy=False)
        for side, mask in enumerate((~pairs.positive[rows], pairs.positive[rows])):
            if mask.any():
                D, rest, S = high[mask], low[mask], None if sparse is None else sparse[mask]
                r = _residuals(pairs, D, rest, S, w, shift, offsets[side])
                totals[side].add_sum(sum_of_entries(r.total()))
                r.add(np.full(D.shape[0], -1.0 if side else 1.0))
                _add_transposed_product(along_w[side], pairs, D, rest, S, r.total())
    gradient = Accumulator(np.zeros(n + 2))
    gradient.add_sum(Sum(*(np.append(v, [0.0, 0.0]) for v in times_number(exactly(w), pairs.l2))))
    for side in range(2):
        weight = Fraction(2 * pairs.counts[1 - side], pairs.X.shape[0] ** 2)
        sums = times_number(totals[side].total(), -pairs.unit)
        parts = [
            np.append(v, [t[0], 0.0] if side else [0.0, t[0]]) for v, t in zip(along_w[side].total(), sums, strict=True)
        ]
        gradient.add_sum(times_fraction(Sum(*parts), weight))
    return gradient.total()


def _residuals(pairs: Pairs, D: Array, rest: Array, S: Any, w: Array, shift: Sum, offset: Sum) -> Accumulator:
    """r = D w - s u for rows of one class: D + rest are the dense columns, S the sparse ones or None."""
    r = Accumulator(np.zeros(D.shape[0]))
    add_product(r, D, rest, exactly(w), pairs.filled)
    if S is not None:
        r.add_sum(sparse_product(S, w))
        r.add_sum(_minus(shift))
    r.add_sum(_minus(offset))
    return r


def _add_transposed_product(total: Accumulator, pairs: Pairs, D: Array, rest: Array, S: Any, q: Sum) -> None:
    """Add D'q for the same rows."""
    n = pairs.X.shape[1]
    part = Accumulator(np.zeros(D.shape[1]))
    add_product(part, D.T, rest.T, q)
    places = np.arange(n)[pairs.filled]
    total.add_sum(Sum(*(_placed(v, places, n) for v in part.total())))
    if S is not None:
        total.add_sum(sparse_product(S.T, q.hi))
        total.add(S.T @ q.lo, UP * (abs(S).T @ (gamma(D.shape[0] + 2, EPS) * np.abs(q.lo) + q.error)))
        total.add_sum(_minus(times_sum(sum_of_entries(q), exactly(pairs.shift))))


def add_product(total: Accumulator, high: Array, low: Array, v: Sum, columns: Any = slice(None)) -> None:
    """Add (high + low) v, where low is about EPS times as large as high, and v.lo as v.hi."""
    hi, lo, error = v.hi[columns], v.lo[columns], v.error[columns]
    if not high.size:
        return
    total.add_sum(dense_product(np.ascontiguousarray(high), hi))
    size = np.abs(high) @ np.abs(lo) + np.abs(low) @ (np.abs(hi) + np.abs(lo))
    more = np.abs(high) @ error + np.abs(low) @ error
    total.add(high @ lo + low @ (hi + lo), UP * (gamma(2 * hi.size + 4, EPS) * size + more))


def sum_of_entries(v: Sum) -> Sum:
    """The sum of all entries, as a vector of one entry."""
    high, low = column_sums(v.hi[:, None]), column_sums(v.lo[:, None])
    total = Accumulator(np.zeros(1))
    total.add_sum(high)
    total.add_sum(low)
    total.add(np.zeros(1), UP * v.error.sum(keepdims=True))
    return total.total()


def times_fraction(v: Sum, number: Fraction) -> Sum:
    """The vector times a positive fraction."""
    hi = float(number)
    return times_sum(Sum(np.array([hi]), np.array([float(number - Fraction(hi))]), np.array([EPS * EPS * hi])), v)


def times_number(v: Sum, number: float) -> Sum:
    """The vector times a number."""
    return times_sum(_one(number), v)


def times_sum(factor: Sum, v: Sum) -> Sum:
    """A vector times a factor, which is a vector of one entry."""
    p, e, lost = two_product(v.hi, factor.hi)
    lo = e + (v.hi * factor.lo + v.lo * factor.hi)
    f = np.abs(factor.hi) + np.abs(factor.lo)
    size = np.abs(e) + np.abs(v.hi * factor.lo) + np.abs(v.lo * factor.hi) + np.abs(v.lo * factor.lo) / EPS
    error = (np.abs(v.hi) + np.abs(v.lo)) * factor.error + v.error * (f + factor.error) + 4.0 * EPS * size
    return Sum(p, lo, UP * error + lost + np.where(v.hi != 0.0, LEAST, 0.0))


def _one(number: float) -> Sum:
    """A number as a vector of one entry, without an error."""
    return exactly(np.array([number]))


def _minus(v: Sum) -> Sum:
    return Sum(-v.hi, -v.lo, v.error)


def _placed(values: Array, places: Array, n: int) -> Array:
    vector = np.zeros(n)
    vector[places] = values
    return vector
