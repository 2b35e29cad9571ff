"""A simple function in another unit of its variable: u -> weight p(scale u)."""

from __future__ import annotations

from typing import Any

from saddlepoint.ground.arrays import Array
from saddlepoint.ground.linalg import norm
from saddlepoint.parts.simple.base import Simple, Support, on_host

UP = 1.0 + 2.0**-40  # factor that exceeds the relative rounding of the few products below


def rescaled_simple(p: Simple, scale: float, weight: float) -> Simple:
    """The function u -> weight p(scale u), for a weight above 0 and a scale other than 0."""
    if isinstance(p, Rescaled):
        return rescaled_simple(p.p, p.scale * scale, p.weight * weight)
    given = isinstance(scale, float) and isinstance(weight, float)  # within ``recording()`` they may be tensors
    return p if given and scale == weight == 1.0 else Rescaled(p, scale, weight)


class Rescaled(Simple):
    """The function u -> weight p(scale u). Methods compute in such units; certificates are taken with p itself."""

    def __init__(self, p: Simple, scale: float, weight: float) -> None:
        self.p, self.scale, self.weight = p, scale, weight
        self.structured, self.separable, self.dim = p.structured, p.separable, p.dim
        self.accuracy = p.accuracy

    def diameter_in(self, n: int | None) -> float:
        """The diameter of the domain, in the unit of u."""
        return UP * self.p.diameter_in(n) / abs(self.scale)

    @property
    def has_value(self) -> bool:
        """Whether p has a value."""
        return self.p.has_value

    def value(self, u: Array) -> float:
        """The value weight p(scale u)."""
        return self.weight * self.p.value(self.scale * u)

    def prox(self, v: Array, t: float) -> Array:
        """The prox, from that of p at scale v with the step t weight scale^2."""
        return (1.0 / self.scale) * self.p.prox(self.scale * v, t * self.weight * self.scale * self.scale)

    def project(self, u: Array) -> Array:
        """The nearest point of the domain."""
        return (1.0 / self.scale) * self.p.project(self.scale * u)

    def outside(self, u: Array) -> float:
        """A bound on the distance from u to the domain."""
        return UP * self.p.outside(self.scale * u) / abs(self.scale)

    def is_inside(self, u: Array) -> bool:
        """Whether scale u is in the domain of p up to rounding."""
        return self.p.is_inside(self.scale * u)

    def dual_point(self, s: Array) -> Array:
        """A point near s where the conjugate is finite."""
        slope = self.weight * self.scale
        return slope * self.p.dual_point((1.0 / slope) * s)

    def subgradient(self, uh: Array, s: Array) -> Array:
        """The subgradient at uh that is nearest to s."""
        slope = self.weight * self.scale
        return slope * self.p.subgradient(self.scale * uh, (1.0 / slope) * s)

    def fenchel_gap(self, u: Array, s: Array) -> float:
        """The Fenchel gap weight (p(x) + p*(r) - <r, x>) at x = scale u, r = s/(weight scale)."""
        return UP * self.weight * self.p.fenchel_gap(self.scale * u, (1.0 / (self.weight * self.scale)) * s)

    def bregman(self, u: Array, uh: Array, s: Array) -> float:
        """The difference weight (p(x) - p(xh) - <r, x - xh>)."""
        slope = 1.0 / (self.weight * self.scale)
        return UP * self.weight * self.p.bregman(self.scale * u, self.scale * uh, slope * s)

    def conjugate(self, s: Array) -> float:
        """The conjugate weight p*(s/(weight scale))."""
        return self.weight * self.p.conjugate((1.0 / (self.weight * self.scale)) * s)

    def faces(self, u: Array) -> Array:
        """The kinks and bounds at which scale u is."""
        return self.p.faces(self.scale * u)

    def along_face(self, u: Array, moves: Array) -> Array:
        """The moves that leave scale u on its kinks and bounds."""
        return self.p.along_face(self.scale * u, moves)

    def support(self, u: Array, w: Array, reach_u: float, reach_w: Any) -> Array:
        """What is proven about x = scale u; lower and upper bounds are exchanged if the scale is negative."""
        slope = self.weight * self.scale
        reach_x, reach = UP * abs(self.scale) * reach_u, UP * reach_w / abs(slope)
        rounding = (UP - 1.0) / abs(slope) * abs(on_host(w))
        found = self.p.support(self.scale * u, (1.0 / slope) * w, reach_x + _rounding(u, self.scale), reach + rounding)
        if self.scale < 0.0:
            lower, upper = found == Support.LOWER, found == Support.UPPER
            found[lower], found[upper] = Support.UPPER, Support.LOWER
        return found

    def __repr__(self) -> str:
        return f"{self.weight:g} {self.p!r}" if self.scale == 1.0 else f"{self.p!r} in other units"


def _rounding(u: Array, scale: float) -> float:
    """A bound on the error of scale u."""
    return (UP - 1.0) * abs(scale) * norm(u)
