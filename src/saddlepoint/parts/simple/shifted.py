r"""A constraint around another center: x - center is in the domain of p.

The difference x - center is rounded, so that everything that is proven about p at the computed difference holds for a
point that is at most eps |x - center| from x.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from saddlepoint.ground.arrays import Array, eps_of, space_of
from saddlepoint.ground.linalg import inner, norm
from saddlepoint.parts.simple.base import INSIDE, Pairing, Structured, Support
from saddlepoint.parts.simple.bounds import EPS, norm_bound, raised, wide
from saddlepoint.parts.simple.coordinates import Coordinates


class Shifted(Structured):
    """The constraint x -> p(x - center), for a ready-made constraint p.

    Args:
        p: a ready-made constraint, 0 inside and infinite outside.
        center: a number for all coordinates, or one for each.
    """

    def __init__(self, p: Structured, center: Coordinates) -> None:
        self.p, self.center = p, center
        super().__init__(center.size if p.dim is None else p.dim)

    def _from_center(self, x: Array) -> Array:
        """x - center in float64."""
        x = wide(x)
        difference: Array = x - self.center.like(x)
        return difference

    def _back(self, z: Array, x: Array) -> Array:
        """center + z in the dtype of x."""
        return space_of(x).cast(z + self.center.like(z))

    def _error(self, z: Array) -> float:
        """A bound on the rounding of z = x - center."""
        return EPS * norm_bound(z)

    def value(self, x: Array) -> float:
        """0.0 in the domain, infinite outside."""
        return 0.0 if self.is_inside(x) else math.inf

    def prox(self, v: Array, t: float) -> Array:
        """The center plus the prox of p at v - center."""
        return self._back(self.p.prox(self._from_center(v), t), v)

    def project(self, x: Array) -> Array:
        """The center plus the nearest point to x - center."""
        return self._back(self.p.project(self._from_center(x)), x)

    def conjugate(self, s: Array) -> float:
        """p*(s) + <center, s>."""
        s = wide(s)
        return self.p.conjugate(s) + inner(self.center.like(s) + 0.0 * s, s)

    def outside(self, x: Array) -> float:
        """A bound on the distance of x - center to the domain of p."""
        z = self._from_center(x)
        return raised(self.p.outside(z) + self._error(z), 2)

    def is_inside(self, x: Array) -> bool:
        """Whether x is in the domain up to the rounding of its entries and of the center."""
        n = int(x.shape[0])
        size = norm(x) + float(np.linalg.norm(self.center.everywhere(n)))
        return self.outside(x) <= INSIDE * eps_of(x) * math.sqrt(n) * size

    def diameter_in(self, n: int | None) -> float:
        """The diameter of the domain of p."""
        return self.p.diameter_in(n)

    def dual_point(self, s: Array) -> Array:
        """The dual point of p: a shift changes no subgradient."""
        return self.p.dual_point(s)

    def subgradient(self, xh: Array, s: Array) -> Array:
        """The subgradient of p at xh - center."""
        return self.p.subgradient(space_of(xh).cast(self._from_center(xh)), s)

    def fenchel_gap(self, x: Array, s: Array) -> float:
        """The gap of p at x - center, plus what the rounding of the difference may change."""
        z = self._from_center(x)
        return raised(self.p.fenchel_gap(z, s) + self._error(z) * norm_bound(wide(s)), 3)

    def pairing(self, x: Array, s: Array) -> Pairing:
        """The proof of p at x - center, for a point that is farther from x by the rounding of the difference."""
        z = self._from_center(x)
        pair = self.p.pairing(z, s)
        error = self._error(z)
        gap = raised(pair.gap_at_x + error * norm_bound(wide(s)), 3)
        return Pairing(pair.s, raised(pair.off_x + error, 2), pair.off_s, pair.gap, gap)

    def faces(self, x: Array) -> Array:
        """The faces of p at x - center."""
        return self.p.faces(space_of(x).cast(self._from_center(x)))

    def along_face(self, x: Array, moves: Array) -> Array:
        """The moves that leave x - center on the kinks and bounds of p."""
        return self.p.along_face(space_of(x).cast(self._from_center(x)), moves)

    def support(self, x: Array, w: Array, reach_x: float, reach_w: Any) -> Array:
        """What is proven about x - center; an entry that is proven to be at its center is zero only if that is zero."""
        z = self._from_center(x)
        found = self.p.support(z, w, raised(reach_x + self._error(z), 2), reach_w)
        elsewhere = (found == Support.ZERO) & (self.center.everywhere(int(x.shape[0])) != 0.0)
        return np.where(elsewhere, Support.UNDECIDED, found).astype(np.int8)

    def __repr__(self) -> str:
        return f"{self.p!r} around {self.center}"
