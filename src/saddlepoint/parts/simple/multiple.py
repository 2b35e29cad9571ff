"""The prox, the value and the conjugate of a positive multiple of a simple function."""

from __future__ import annotations

from typing import TYPE_CHECKING

from saddlepoint.ground.arrays import Array

if TYPE_CHECKING:
    from saddlepoint.parts.simple.base import Simple


def prox(p: Simple, c: float, v: Array, t: float) -> Array:
    """The prox of c p."""
    return p.prox(v, c * t)


def value(p: Simple, c: float, x: Array) -> float:
    """The value of c p."""
    return c * p.value(x)


def conjugate(p: Simple, c: float, s: Array) -> float:
    """The conjugate of c p, c p*(s/c)."""
    return c * p.conjugate((1.0 / c) * s)
