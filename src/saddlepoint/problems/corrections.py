"""The same problem with a constant that a run has corrected."""

from __future__ import annotations

from saddlepoint.ground.spectrum import FAILURE
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
    new.has_observed_mu = constant == "mu" or old.has_observed_mu
    return f.replace(g=new) if function == "g" else f.replace(h=new)


def was_estimated(f: Saddle, function: str, constant: str) -> bool:
    """Whether a constant that ``corrected`` has replaced was an estimate, and no claim of the caller."""
    if constant != "norm":
        return constant == "L" and function in f.estimated
    A = f.A
    while isinstance(A, WithNorm):
        A = A.A
    return A.norm_estimate.is_quick


class WithNorm(ForwardingCoupling):
    """A with another bound on its norm."""

    def __init__(self, A: Coupling, upper: float) -> None:
        super().__init__(A)
        self.upper = upper

    def bound_from_sum(self, total: float) -> float:
        """The bound of A."""
        return self.A.bound_from_sum(total)

    @property
    def norm_estimate(self) -> Norm:
        """The norm estimate of A with the other upper bound, which is no quick estimate any more."""
        found = self.A.norm_estimate
        return found._replace(upper=self.upper, failure=min(found.failure, FAILURE))

    def _transpose(self) -> Coupling:
        return WithNorm(self.A.T, self.upper)
