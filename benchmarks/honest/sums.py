"""Sums of functions: of functions of single coordinates, and weighted sums of parts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

import numpy as np

import saddlepoint as sp

from .functions import Hessian, NoValueError, Part
from .numbers import Array, Decimals, apply, clip, decimals


@dataclass
class Separable(Part):
    """A sum of functions of single coordinates, by their slopes, curvatures and values, and a linear function."""

    smooth: sp.Smooth
    slope: Callable[[Decimal], Decimal]
    second_derivative: Callable[[Decimal], Decimal]
    antiderivative: Callable[[Decimal], Decimal] | None
    linear: Decimals
    mu: float
    L: float

    def grad(self, x: Decimals) -> Decimals:
        """The slopes, and the linear part."""
        return apply(self.slope, x) + self.linear

    def value(self, x: Decimals) -> Decimal:
        """The value."""
        if self.antiderivative is None:
            raise NoValueError
        return Decimal(sum(apply(self.antiderivative, x)) + self.linear @ x)

    def hessian(self, x: Decimals) -> Hessian:
        """The curvatures."""
        second_derivatives = apply(self.second_derivative, x)
        most = max(second_derivatives)
        return [(most, np.diag((second_derivatives / most).astype(float)))]

    def floats(self, x: Array) -> Array:
        """The gradient that the library has."""
        return self.smooth.grad(x)


def entropy(n: int, low: float, high: float) -> Part:
    """The sum of x log x within [low, high], continued by parabolas on both sides."""
    a, b = Decimal(low), Decimal(high)

    def slope(x: Decimal) -> Decimal:
        t = clip(x, a, b)
        return 1 + t.ln() + (x - t) / t

    def value(x: Decimal) -> Decimal:
        t = clip(x, a, b)
        return t * t.ln() + (1 + t.ln()) * (x - t) + (x - t) ** 2 / (2 * t)

    def second_derivative(x: Decimal) -> Decimal:
        return 1 / clip(x, a, b)

    return Separable(
        sp.Entropy(low, high), slope, second_derivative, value, decimals(np.zeros(n)), 0.999 / high, 1.001 / low
    )


@dataclass
class Total(Part):
    """A weighted sum of parts."""

    weights: Sequence[float]
    parts: Sequence[Part]
    smooth: sp.Smooth = field(init=False)

    def __post_init__(self) -> None:
        pairs = list(zip(self.weights, self.parts, strict=True))
        total = None
        for weight, part in pairs:
            term = part.smooth if weight == 1.0 else weight * part.smooth
            total = term if total is None else total + term
        assert total is not None
        self.smooth = total
        self.mu = sum(weight * part.mu for weight, part in pairs)
        self.L = sum(weight * part.L for weight, part in pairs)

    def grad(self, x: Decimals) -> Decimals:
        """The weighted sum of the gradients."""
        return sum(Decimal(w) * part.grad(x) for w, part in zip(self.weights, self.parts, strict=True))

    def value(self, x: Decimals) -> Decimal:
        """The weighted sum of the values."""
        return Decimal(sum(Decimal(w) * part.value(x) for w, part in zip(self.weights, self.parts, strict=True)))

    def hessian(self, x: Decimals) -> Hessian:
        """The weighted sum of the Hessians."""
        pairs = zip(self.weights, self.parts, strict=True)
        return [(Decimal(w) * c, M) for w, part in pairs for c, M in part.hessian(x)]

    def curvature(self, x: Decimals) -> Decimals:
        """The weighted sum of the Hessians."""
        return sum(Decimal(w) * part.curvature(x) for w, part in zip(self.weights, self.parts, strict=True))

    def floats(self, x: Array) -> Array:
        """The weighted sum of the gradients."""
        return sum(w * part.floats(x) for w, part in zip(self.weights, self.parts, strict=True))
