"""Gradients in about twice the digits of float64, as sums hi + lo with bounds on the errors of their entries.

The products D x, which are long sums, are those of ``Coupling.compensated_mul``. A product of two numbers is a sum of
two numbers without error (T. J. Dekker, A floating-point technique for extending the available precision, Numer. Math.
1971).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from saddlepoint.ground.arrays import Array, is_float64, namespace, space_of
from saddlepoint.ground.compensated import EPS, Accumulator, Sum, exact_product
from saddlepoint.ground.rounding import underflow
from saddlepoint.parts.coupling import Coupling
from saddlepoint.parts.functions.accuracy import CompensatedGradient, SumRounding
from saddlepoint.parts.functions.product_rounding import absolute

if TYPE_CHECKING:
    from saddlepoint.parts.functions.smooth import Smooth


def widened(x: Array) -> Array | None:
    """The point in float64; None if its library computes in float32 only, as JAX does by default."""
    wide = space_of(x).wide.cast(x)
    return wide if is_float64(wide) else None


def exactly(x: Array) -> Sum:
    """The vector x as a sum without error."""
    zero = 0.0 * x
    return Sum(x, zero, zero)


def total(*parts: Sum | None) -> Sum:
    """The sum of some sums; None stands for zero."""
    some = [part for part in parts if part is not None]
    if len(some) == 1:
        return some[0]
    sums = Accumulator(0.0 * some[0].hi)
    for part in some:
        sums.add_sum(part)
    return sums.total()


def two_product(a: Array, b: Any) -> Sum:
    """The product a b of vectors, or of a vector and a number: exact unless it underflows."""
    return Sum(*exact_product(a, b), (1.0 + abs(b)) * underflow(a, 8))


def times(s: Sum, factor: Any, rest: Any = 0.0) -> Sum:
    """The sum s multiplied by factor + rest, where ``rest`` is far smaller than ``factor``; both may be vectors."""
    low = s.lo * factor + s.hi * rest
    error = abs(factor) * (1.0 + 4.0 * EPS) * s.error
    error = error + 2.0 * EPS * (abs(s.lo * factor) + abs(s.hi * rest)) + abs(rest) * (abs(s.lo) + s.error)
    return total(two_product(s.hi, factor), Sum(low, 0.0 * low, error))


def divided(s: Sum, number: Any) -> Sum:
    """The sum s divided by a number, or by one for each entry."""
    inverse = 1.0 / number
    parts: Any = two_product(np.array([inverse]) if isinstance(number, float) else inverse, number)
    high, low = (float(part[0]) if isinstance(number, float) else part for part in parts[:2])
    rest = ((1.0 - high) - low) / number  # 1/number = inverse + rest up to eps rest
    found = times(s, inverse, rest)
    return found._replace(error=found.error + 4.0 * EPS * abs(rest) * abs(s.hi))


def product(D: Coupling, s: Sum) -> Sum | None:
    """D s; None if D has no products in about twice the digits."""
    high = D.compensated_mul(s.hi)
    if high is None:
        return None
    if float(namespace(s.lo).max(abs(s.lo) + s.error)) == 0.0:
        return high
    low = D.mul(s.lo)
    return total(high, Sum(low, 0.0 * low, absolute(D).errors(s.lo, s.error)))


def compensated_of_sum(f: Smooth, g: Smooth) -> CompensatedGradient | None:
    """The gradient of f + g in more digits, if that of f or g has more and the errors of both are bounded."""
    bounded = f.accuracy == 0.0 and g.accuracy == 0.0
    return CompensatedSum(f, g) if bounded and (f.compensated is not None or g.compensated is not None) else None


class CompensatedSum:
    """grad f + grad g in about twice the digits; ordinary gradients are taken with their bounds."""

    def __init__(self, f: Smooth, g: Smooth) -> None:
        self.f, self.g = f, g

    def __call__(self, x: Array) -> Sum:
        """The sum at x."""
        if widened(x) is None:
            p = self.f.grad(x) + self.g.grad(x)
            return Sum(p, 0.0 * p, SumRounding(self.f, self.g)(x))
        return total(compensated_gradient(self.f, x), compensated_gradient(self.g, x))


def compensated_gradient(f: Smooth, x: Array) -> Sum:
    """The gradient of f at x, in about twice the digits if f has them."""
    if f.compensated is not None:
        return Sum(*f.compensated(x))
    p = f.grad(x)
    return Sum(p, 0.0 * p, 0.0 * p if f.rounding is None else f.rounding(x))


def rounded(s: Sum) -> tuple[Array, Array]:
    """The sum as one vector, and bounds on its errors."""
    return s.hi, abs(s.lo) + s.error
