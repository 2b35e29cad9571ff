"""The same problem with a constant that a run has corrected."""

from __future__ import annotations

from copy import copy
from typing import Any

from saddlepoint.arrays import Space
from saddlepoint.coupling import Coupling, Norm
from saddlepoint.functions.smooth import Smooth
from saddlepoint.problem import Saddle
from saddlepoint.vectors import Array


def corrected(f: Saddle, function: str, constant: str, value: float) -> Saddle:
    """f with another "mu" or "L" of ``function`` ("g" or "h"), or another "norm" of A."""
    other = copy(f)
    g, h, A = f.g, f.h, f.A
    if constant == "norm":
        A = Renormed(A, value)
    elif function == "g":
        g = _with(g, constant, value)
    else:
        h = _with(h, constant, value)
    other._set(g, h, A, f.space)
    return other


def _with(function: Smooth, constant: str, value: float) -> Smooth:
    other = copy(function)
    if constant == "mu":
        other.mu = value
    else:
        other.L = max(value, other.mu) if other.mu == other.mu else value
    return other


class Renormed(Coupling):
    """A with another bound on its norm."""

    def __init__(self, A: Coupling, upper: float) -> None:
        self.A, self.upper = A, upper
        self.shape, self.dtype, self.fused = A.shape, A.dtype, A.fused
        self.fused_compiled, self.probes, self.proven = A.fused_compiled, A.probes, A.proven

    @property
    def space(self) -> Space:
        """That of A."""
        return self.A.space

    @property
    def norm_estimate(self) -> Norm:
        """That of A, but for the bound."""
        return self.A.norm_estimate._replace(upper=self.upper)

    def mul(self, y: Array) -> Array:
        """A y."""
        return self.A.mul(y)

    def tmul(self, x: Array) -> Array:
        """A' x."""
        return self.A.tmul(x)

    def both(self, x: Array, y: Array) -> tuple[Array, Array]:
        """(A y, A' x)."""
        return self.A.both(x, y)

    def through(self, y: Array, s: float = 1.0, e: Array | None = None) -> tuple[Array, Array]:
        """(t, A'(s t + e)) with t = A y."""
        return self.A.through(y, s, e)

    def matrix(self) -> Any:
        """A itself."""
        return self.A.matrix()

    def gram(self) -> Any:
        """A'A."""
        return self.A.gram()

    def rounding_scale(self, y: Array) -> float:
        """That of A."""
        return self.A.rounding_scale(y)

    def _transpose(self) -> Coupling:
        return Renormed(self.A.T, self.upper)
