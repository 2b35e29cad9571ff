"""A simple function with a unit for each coordinate: u -> weight p(scale * u) with a vector of scales.

The prox of such a function does not follow from that of p. It is known where p is a sum over coordinates, for the
simplex, and for blocks of these.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from saddlepoint.ground.arrays import Array, namespace
from saddlepoint.ground.errors import ProblemError
from saddlepoint.parts.simple.base import Pairing, Simple, Support
from saddlepoint.parts.simple.blocks import Blocks
from saddlepoint.parts.simple.bounds import wide
from saddlepoint.parts.simple.coordinates import Coordinates
from saddlepoint.parts.simple.l1_box import L1Box, limited
from saddlepoint.parts.simple.rescaled import UP, Rescaled
from saddlepoint.parts.simple.simplex import Simplex


def has_one_scale(p: Simple | None) -> bool:
    """Whether all coordinates have one unit, because p joins them and its prox in others is not known."""
    return p is not None and not isinstance(p, L1Box | Simplex | Blocks)


def diagonal_scales(p: Simple | None, scales: Array) -> Array:
    """Scales near the given ones with which the prox of p is known: one for all coordinates that p joins."""
    if has_one_scale(p):
        return np.full(len(scales), np.exp2(np.round(np.log2(scales).mean())))
    if isinstance(p, Blocks):
        return np.concatenate([diagonal_scales(part, scales[rows]) for rows, part in p.parts(len(scales))])
    return scales


def diagonal_simple(p: Simple, scales: Any, weight: float) -> Simple:
    """The function u -> weight p(scales * u), for a vector of positive scales from ``diagonal_scales``."""
    numbers = Coordinates(scales, "scales")
    d = numbers.everywhere(0)
    if isinstance(p, L1Box):
        n = len(d)
        box = p.lower.everywhere(n) / d, p.upper.everywhere(n) / d
        return L1Box(weight * d * p.weight.everywhere(n), *box)
    if isinstance(p, Blocks):
        parts = [(range(rows.start, rows.stop), rows, part) for rows, part in p.parts(len(d))]
        return Blocks([(key, diagonal_simple(part, d[rows], weight)) for key, rows, part in parts])
    if isinstance(p, Simplex):
        return WeightedSimplex(p, numbers)
    if d.min() == d.max():
        return Rescaled(p, float(d[0]), weight)
    raise ProblemError(
        f"the coordinates of {p!r} cannot have units of their own, because its prox in such units is not known; give "
        "one scale to all of them"
    )


class WeightedSimplex(Rescaled):
    """The constraint u >= 0, sum_i scale_i u_i = total: a simplex with a unit for each coordinate.

    The nearest point to v is max(v - theta scale, 0), where theta is the largest of
    (sum scale_i v_i - total)/(sum scale_i^2) over the k largest entries of v/scale, k = 1, ..., n.
    """

    def __init__(self, p: Simplex, scales: Coordinates) -> None:
        super().__init__(p, 1.0, 1.0)
        self.total, self.scales = p.total, scales
        self.dim = scales.size

    def value(self, u: Array) -> float:
        """0.0 in the set, infinite outside."""
        return self.p.value(self.scales.like(u) * u)

    def prox(self, v: Array, t: float) -> Array:
        """The nearest point of the set, whatever t is."""
        return self.project(v)

    def project(self, u: Array) -> Array:
        """The nearest point of the set, computed in float64."""
        v = wide(u)
        a, xp = self.scales.like(v), namespace(v)
        order = xp.argsort(v / a, descending=True) if xp is not np else np.argsort(-(v / a))
        ranked, weights = xp.take(v, order), xp.take(a + 0.0 * v, order)
        sums = _cumulative(xp, weights * ranked) - self.total
        theta = xp.max(sums / _cumulative(xp, weights * weights))
        found = limited(v - theta * a, 0.0, None)
        inside = xp.astype(found > 0.0, found.dtype) if xp is not np else (found > 0.0).astype(np.float64)
        off = (xp.sum(a * found) - self.total) / xp.sum(inside * a * a)  # corrects the rounding of theta
        found = limited(found - off * inside * a, 0.0, None)
        return xp.astype(found, u.dtype) if xp is not np else np.asarray(found, dtype=u.dtype)

    def outside(self, u: Array) -> float:
        """A bound on the distance from u to the set."""
        return UP * self.p.outside(self.scales.like(u) * u) / self.scales.least

    def is_inside(self, u: Array) -> bool:
        """Whether u is in the set up to rounding."""
        return self.p.is_inside(self.scales.like(u) * u)

    def diameter_in(self, n: int | None) -> float:
        """A bound on the distance of two corners."""
        return UP * self.p.diameter_in(n) / self.scales.least

    def conjugate(self, s: Array) -> float:
        """The total times the largest entry of s/scale."""
        return self.p.conjugate(s / self.scales.like(s))

    def dual_point(self, s: Array) -> Array:
        """The vector s itself: the conjugate is finite everywhere."""
        return s

    def subgradient(self, uh: Array, s: Array) -> Array:
        """The subgradient at uh that is nearest to s, up to the units."""
        d = self.scales.like(s)
        found: Array = d * self.p.subgradient(d * uh, s / d)
        return found

    def fenchel_gap(self, u: Array, s: Array) -> float:
        """The Fenchel gap of the simplex at scale u and s/scale."""
        d = self.scales.like(u)
        return UP * self.p.fenchel_gap(d * u, s / d)

    def pairing(self, u: Array, s: Array) -> Pairing:
        """The Fenchel gap of u and s."""
        return Simple.pairing(self, u, s)

    def pairing_at(self, u: Array, uh: Array, s: Array) -> Pairing:
        """The same with the subgradient at uh."""
        return self.pairing(u, self.subgradient(uh, s))

    def validate(self, n: int, name: str = "x") -> None:
        """Raise a ProblemError if there are not as many units as coordinates."""
        Simple.validate(self, n, name)

    def bregman(self, u: Array, uh: Array, s: Array) -> float:
        """The bound of the simplex at scale u."""
        d = self.scales.like(u)
        return UP * self.p.bregman(d * u, d * uh, s / d)

    def faces(self, u: Array) -> Array:
        """1.0 where u is zero."""
        return self.p.faces(u)

    def along_face(self, u: Array, moves: Array) -> Array:
        """The entries where u is positive, less a multiple of their scales, so that the weighted sum stays."""
        xp = namespace(moves)
        normal = self.scales.like(u) * xp.astype(u > 0.0, moves.dtype)
        kept = moves * xp.astype(u > 0.0, moves.dtype)
        off = xp.sum(kept * normal, axis=-1, keepdims=True) / xp.sum(normal * normal)
        found: Array = kept - off * normal
        return found

    def support(self, u: Array, w: Array, reach_u: float, reach_w: Any) -> Array:
        """Undecided: supports are proven in the variables of the problem."""
        return np.full(int(u.shape[0]), Support.UNDECIDED, dtype=np.int8)

    def __repr__(self) -> str:
        return f"{self.p!r} in other units"


def _cumulative(xp: Any, v: Array) -> Array:
    found: Array = np.cumsum(v) if xp is np else xp.cumulative_sum(v)
    return found
