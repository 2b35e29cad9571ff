"""Upper bounds of sums and norms of arrays of float64, with the rounding of the computation included."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from saddlepoint.ground.arrays import Array, namespace, smallest_of, space_of
from saddlepoint.ground.compensated import two_sum
from saddlepoint.ground.elementwise import choose
from saddlepoint.ground.linalg import inner, norm, numbers_of
from saddlepoint.ground.rounding import flushed, gamma

EPS = 2.0**-52  # spacing of the float64 numbers from 1 on


def wide(a: Array) -> Array:
    """The array in float64, in its own library and on its own device."""
    if isinstance(a, np.ndarray):
        return a if a.dtype == np.float64 else a.astype(np.float64)
    return space_of(a).wide.cast(a)


def not_nan(bound: float) -> float:
    """The bound; infinity if it is NaN, because then nothing is known."""
    return bound if bound == bound else math.inf


def raised(bound: float, operations: int) -> float:
    """An upper bound of a number that is not negative and was computed with this many rounded operations."""
    return not_nan(bound * (1.0 + gamma(operations + 2, EPS)))


def sum_of_products(pairs: Iterable[tuple[Array, Array]], operations: int = 2) -> float:
    """An upper bound of the sum over all pairs (a, b) and coordinates i of a_i b_i.

    Args:
        pairs: arrays whose entries are not negative. A product of zero and infinity counts as zero, and with NaN the
            bound is infinite.
        operations: how many rounded operations have made a_i and b_i together.
    """
    total, count, lost = 0.0, 0, 0.0
    for a, b in pairs:
        total += _products(a, b)
        count += 1
        if flushed(a) > 0.0:  # differences of nearly equal tiny numbers may have been replaced by zero
            lost += flushed(a) * (1.0 + _finite_sum(a) + _finite_sum(b))
    n = 0 if count == 0 else int(a.shape[0])
    return not_nan(raised(total, n + count + operations + 1) + lost)


def _products(a: Array, b: Array) -> float:
    """The sum of the products a_i b_i, plus what is lost by underflow."""
    xp = namespace(a)
    if math.isfinite(float(xp.sum(a)) + float(xp.sum(b))):
        found = inner(a, b)
        if found > 0.0:
            return found + smallest_of(a) * int(a.shape[0])
        return found if not bool(xp.any((a > 0.0) & (b > 0.0))) else smallest_of(a) * int(a.shape[0])
    if not bool(xp.all((a == a) & (b == b))):
        return math.inf
    both, nothing = (a > 0.0) & (b > 0.0), xp.zeros_like(a)
    products = choose(both, a, nothing) * choose(both, b, nothing)
    return float(xp.sum(choose(both, products + smallest_of(a), nothing)))


def _finite_sum(a: Array) -> float:
    xp = namespace(a)
    return float(xp.sum(choose(xp.isfinite(a), xp.abs(a), xp.zeros_like(a))))


def norm_bound(a: Array, operations: int = 0) -> float:
    """An upper bound of |a|, where each entry was computed with this many rounded operations; infinity if it is NaN."""
    size = norm(a)
    return 0.0 if size == 0.0 else raised(size, int(a.shape[0]) + operations + 4) + flushed(a) * int(a.shape[0])


def at_distance(gap: float, distance: float, s: Array) -> float:
    """A bound on the Fenchel gap of s and a point of a set, from that of another point of the set at this distance.

    It changes by the product of s and the difference of the two points.
    """
    return gap if distance == 0.0 else raised(gap + norm_bound(wide(s)) * distance, 2)


def sum_error(a: Array, total: float) -> float:
    """An upper bound of |sum(a) - total|."""
    difference, error = sum_difference(a, total)
    return raised(abs(difference) + error, 2)


def sum_difference(a: Array, total: float) -> tuple[float, float]:
    """The difference sum(a) - total and a bound on its error.

    The numbers are added up in pairs, whose rounding errors are known exactly and added up too.
    """
    n = int(a.shape[0])
    lows: list[Any] = []
    sizes: list[Any] = []
    factors: list[float] = []
    xp, rest = namespace(a), a
    while int(rest.shape[0]) > 1:
        half = int(rest.shape[0]) // 2
        s, e = two_sum(rest[:half], rest[half : 2 * half])
        if int(rest.shape[0]) % 2:
            lows.append(rest[2 * half])
        lows.append(xp.sum(e))
        sizes.append(xp.sum(xp.abs(e)))
        factors.append(gamma(half, EPS))
        rest = s
    lows.append(rest[0])
    numbers = numbers_of([*lows, *sizes])
    lows, sizes = [-total, *numbers[: len(lows)]], numbers[len(lows) :]
    slack = sum(factor * size for factor, size in zip(factors, sizes, strict=True))
    if not all(map(math.isfinite, lows)):
        return math.inf, math.inf
    difference = math.fsum(lows)
    return difference, raised(slack + EPS * abs(difference), 4) + 4.0 * n * flushed(a)
