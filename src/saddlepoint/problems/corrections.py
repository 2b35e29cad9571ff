"""The same problem with a constant that a run has corrected."""

from __future__ import annotations

from copy import copy

from saddlepoint.parts.coupling import Coupling, Norm
from saddlepoint.parts.coupling.forwarding import ForwardingCoupling
from saddlepoint.parts.functions.smooth import Smooth
from saddlepoint.problems.saddle import Saddle


def corrected(f: Saddle, function: str, constant: str, value: float) -> Saddle:
    """f with another "mu" or "L" of ``function`` ("g" or "h"), or another "norm" of A."""
    other = copy(f)
    g, h, A = f.g, f.h, f.A
    if constant == "norm":
        A = WithNorm(A, value)
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


class WithNorm(ForwardingCoupling):
    """A with another bound on its norm."""

    def __init__(self, A: Coupling, upper: float) -> None:
        super().__init__(A)
        self.upper = upper

    @property
    def norm_estimate(self) -> Norm:
        """That of A, but for the bound."""
        return self.A.norm_estimate._replace(upper=self.upper)

    def _transpose(self) -> Coupling:
        return WithNorm(self.A.T, self.upper)
