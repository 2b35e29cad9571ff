"""Sums, products and quotients of two numbers, rounded down."""

from __future__ import annotations

import math
import sys
from fractions import Fraction

from saddlepoint.ground.recording import is_recording


def add_down(a: float, b: float) -> float:
    """The sum a + b, or the next number below if the computed sum is above it; NaN if one of them is.

    Example:
        >>> from saddlepoint.ground.directed import add_down
        >>> add_down(1.0, 2.0), add_down(1.0, -1e-30) < 1.0
        (3.0, True)
    """
    if is_recording():  # the numbers may be symbols
        return a + b
    a, b = float(a), float(b)
    s = a + b
    if not math.isfinite(s):
        return _finite(s, a, b)
    t = s - a
    error = (a - (s - t)) + (b - t)  # a + b - s exactly, by Knuth, unless something overflows
    if not math.isfinite(error):
        error = float(Fraction(a) + Fraction(b) - Fraction(s))
    return math.nextafter(s, -math.inf) if error < 0.0 else s


def mul_down(a: float, b: float) -> float:
    """The product a b, or the next number below if the computed product is above it; NaN if one of them is.

    Example:
        >>> from saddlepoint.ground.directed import mul_down
        >>> mul_down(2.0, 0.1) == 0.2, mul_down(3.0, 0.1) < 3.0 * 0.1
        (True, True)
    """
    if is_recording():
        return a * b
    a, b = float(a), float(b)
    p = a * b
    if not math.isfinite(p):
        return _finite(p, a, b)
    return math.nextafter(p, -math.inf) if _product_compared(a, b, p) < 0 else p


def div_down(a: float, b: float) -> float:
    """The quotient a/b for b > 0, or the next number below if the computed quotient is above it.

    Example:
        >>> from saddlepoint.ground.directed import div_down
        >>> div_down(1.0, 4.0), div_down(1.0, 10.0) < 0.1
        (0.25, True)
    """
    if is_recording():
        return a / b
    a, b = float(a), float(b)
    q = a / b
    if not (math.isfinite(q) and math.isfinite(b)):
        return _finite(q, a, b)
    return math.nextafter(q, -math.inf) if _product_compared(q, b, a) > 0 else q


def _product_compared(a: float, b: float, c: float) -> int:
    """A number with the sign of a b - c, exactly; in integers, because ``Fraction`` would reduce every result."""
    (m, of_m), (n, of_n), (k, of_k) = a.as_integer_ratio(), b.as_integer_ratio(), c.as_integer_ratio()
    return m * n * of_k - k * of_m * of_n


def _finite(result: float, a: float, b: float) -> float:
    """The result, or the largest number if two finite numbers have led beyond it."""
    overflowed = result == math.inf and math.isfinite(a) and math.isfinite(b)
    return sys.float_info.max if overflowed else result
