"""A simple function in another unit of its variable: u -> weight p(scale u)."""

from __future__ import annotations

from typing import Any

from saddlepoint.ground.arrays import Array, eps_of
from saddlepoint.ground.linalg import norm
from saddlepoint.ground.rounding import flushed
from saddlepoint.parts.simple.base import Pairing, Simple, Support, on_host
from saddlepoint.parts.simple.bounds import EPS, norm_bound, not_nan, wide

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

    def validate(self, n: int, name: str = "x") -> None:
        """Raise a ProblemError if p is no function of n coordinates."""
        self.p.validate(n, name)

    def restrict(self, rows: slice) -> Simple:
        """The function of some coordinates, if p is a sum over coordinates."""
        return Rescaled(self.p.restrict(rows), self.scale, self.weight)

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

    def pairing(self, u: Array, s: Array) -> Pairing:
        """The proof of p about scale u and s/(weight scale)."""
        return self._in_units(u, self.p.pairing(self.scale * u, self._slope_of_p(s)))

    def pairing_at(self, u: Array, uh: Array, s: Array) -> Pairing:
        """The same with the subgradient at uh. Rounding it in the units of u would make the gap of the order eps."""
        return self._in_units(u, self.p.pairing_at(self.scale * u, self.scale * uh, self._slope_of_p(s)))

    def _slope_of_p(self, s: Array) -> Array:
        """The vector s in the units of p."""
        return (1.0 / (self.weight * self.scale)) * s

    def _in_units(self, u: Array, pair: Pairing) -> Pairing:
        """A proof about p at x = scale u and r, as one about this function at u and weight scale r."""
        slope = self.weight * self.scale
        s = slope * pair.s
        off_s = UP * abs(slope) * pair.off_s + 4.0 * eps_of(s) * norm_bound(wide(s)) + flushed(s) * int(s.shape[0])
        off_u = UP * (pair.off_x / abs(self.scale) + (0.0 if self.scale == 1.0 else 2.0 * EPS * norm(u)))
        gap, gap_at_u = (UP * self.weight * bound for bound in (pair.gap, pair.gap_at_x))
        return Pairing(s, not_nan(off_u), not_nan(off_s), not_nan(gap), not_nan(gap_at_u))

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
