"""Losses of one number in decimal arithmetic, and their slopes in floats."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal

import numpy as np

from .numbers import ONE, TWO, Array, clip, sigmoid, softplus, tanh


@dataclass(frozen=True)
class Loss:
    """A convex function of one number r, and perhaps a label s: value, slope and curvature, and the slope in floats."""

    value: Callable[[Decimal, Decimal], Decimal]
    slope: Callable[[Decimal, Decimal], Decimal]
    second_derivative: Callable[[Decimal, Decimal], Decimal]
    floats: Callable[[Array, Array], Array]  # the slope as anyone would write it with NumPy
    most: float  # largest curvature


def _float_sigmoid(r: Array) -> Array:
    e = np.exp(-np.abs(r))
    return np.where(r >= 0.0, 1.0 / (1.0 + e), e / (1.0 + e))


SQUARE = Loss(lambda r, s: r * r / 2, lambda r, s: r, lambda r, s: ONE, lambda r, s: r, 1.0)
LOGISTIC = Loss(
    lambda r, s: softplus(-s * r),
    lambda r, s: -s * sigmoid(-s * r),
    lambda r, s: sigmoid(r) * sigmoid(-r),
    lambda r, s: -s * _float_sigmoid(-s * r),
    0.25,
)
LOGCOSH = Loss(
    lambda r, s: abs(r) + softplus(-2 * abs(r)) - TWO.ln(),
    lambda r, s: tanh(r),
    lambda r, s: 1 - tanh(r) ** 2,
    lambda r, s: np.tanh(r),
    1.0,
)


def huber(delta: float) -> Loss:
    """The Huber loss."""
    d = Decimal(delta)
    return Loss(
        lambda r, s: r * r / 2 if abs(r) <= d else d * abs(r) - d * d / 2,
        lambda r, s: clip(r, -d, d),
        lambda r, s: ONE if abs(r) <= d else Decimal(0),
        lambda r, s: np.clip(r, -delta, delta),
        1.0,
    )


def hinge(width: float) -> Loss:
    """The hinge loss, rounded over a width."""
    w = Decimal(width)

    def value(r: Decimal, s: Decimal) -> Decimal:
        short = max(1 - s * r, Decimal(0))
        return short * short / (2 * w) if short <= w else short - w / 2

    return Loss(
        value,
        lambda r, s: -s * clip((1 - s * r) / w, Decimal(0), ONE),
        lambda r, s: 1 / w if 0 < 1 - s * r < w else Decimal(0),
        lambda r, s: -s * np.clip((1.0 - s * r) / width, 0.0, 1.0),
        1.0 / width,
    )
