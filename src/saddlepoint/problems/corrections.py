"""The same problem with a constant that a run has corrected."""

from __future__ import annotations

from saddlepoint.parts.coupling import Coupling, Norm
from saddlepoint.parts.coupling.forwarding import ForwardingCoupling
from saddlepoint.parts.functions.smooth import Smooth
from saddlepoint.problems.saddle import Saddle, with_smoothness


def corrected(f: Saddle, function: str, constant: str, value: float) -> Saddle:
    """The problem f with another "mu" or "L" of ``function`` ("g" or "h"), or another "norm" of A."""
    if constant == "norm":
        return f.replace(A=WithNorm(f.A, value))
    old: Smooth = getattr(f, function)
    new = old.replace(mu=value) if constant == "mu" else with_smoothness(old, value)
    return f.replace(g=new) if function == "g" else f.replace(h=new)


class WithNorm(ForwardingCoupling):
    """A with another bound on its norm."""

    def __init__(self, A: Coupling, upper: float) -> None:
        super().__init__(A)
        self.upper = upper

    @property
    def norm_estimate(self) -> Norm:
        """The norm estimate of A with the other upper bound."""
        return self.A.norm_estimate._replace(upper=self.upper)

    def _transpose(self) -> Coupling:
        return WithNorm(self.A.T, self.upper)
