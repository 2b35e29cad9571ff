"""The constraint that groups of coordinates are in Euclidean balls."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from saddlepoint.ground.arrays import Array, namespace, space_of
from saddlepoint.ground.elementwise import choose
from saddlepoint.ground.errors import ProblemError
from saddlepoint.parts.simple.base import Pairing, Structured, Support, on_host
from saddlepoint.parts.simple.bounds import at_distance, norm_bound, raised, wide
from saddlepoint.parts.simple.l1_box import UP, limited
from saddlepoint.parts.simple.partition import Partition
from saddlepoint.parts.simple.spheres import LEAST, Spheres

INTERIOR = 1.0 - 1e-12  # share of the radius below which a point is taken to be inside, where rounding decides nothing


class GroupBalls(Structured):
    r"""The constraint |x_G| <= radius_G for disjoint groups G of coordinates: a product of Euclidean balls.

    It is the conjugate of ``Groups``. As a function of y it makes the isotropic total variation of x, the sum over
    pixels of the norm of a discrete gradient: max <D x, y> subject to |y_pixel| <= weight is weight times that sum.

    Args:
        groups, shape, axis: as those of ``Groups``.
        radius: a number, or one for each group; not negative, and possibly infinite.

    Example:
        >>> import numpy as np, saddlepoint as sp
        >>> q = sp.GroupBalls(shape=(2, 3), radius=1.0)  # three entries of one direction, then three of the other
        >>> q.prox(np.array([3.0, 0.3, 0.0, 4.0, 0.4, 2.0]), 1.0).round(12).tolist()
        [0.6, 0.3, 0.0, 0.8, 0.4, 1.0]
    """

    def __init__(self, groups: Any = None, radius: Any = 1.0, *, shape: Any = None, axis: int = 0) -> None:
        name = type(self).__name__
        if groups is None and shape is None and name == "GroupBalls":
            raise ProblemError("GroupBalls was given neither groups nor shape; for all coordinates together use Ball")
        partition = Partition(groups, shape, axis, name)
        self.balls = Spheres(partition, radius, f"radius of {name}", math.inf, math.inf)
        super().__init__(partition.dim)
        self.partition = partition

    def value(self, x: Array) -> float:
        """0.0 in the balls, infinite outside."""
        return 0.0 if self.is_inside(x) else math.inf

    def prox(self, v: Array, t: float) -> Array:
        """The nearest point of the balls, whatever t is."""
        return self.project(v)

    def project(self, x: Array) -> Array:
        """Groups that are too long are shortened."""
        return self.balls.shrunk(x, exactly=False)

    def outside(self, x: Array) -> float:
        """The length of what the groups are too long by, rounded up."""
        return self.balls.excess(x)

    def conjugate(self, s: Array) -> float:
        """The sum of the norms of the groups of s, times their radii; infinite where a radius is."""
        sizes = self.partition.norms(s)
        there, nothing = sizes > 0.0, 0.0 * sizes
        radius = choose(there, self.balls.radii.like(sizes) + nothing, nothing)
        return float(namespace(sizes).sum(radius * sizes))

    def diameter_in(self, n: int | None) -> float:
        """Twice the length of the vector of all radii."""
        if self.partition.count == 1:
            return 2.0 * self.balls.radii.most
        return raised(2.0 * norm_bound(self.balls.radii.everywhere(self.partition.count)), 2)

    def dual_point(self, s: Array) -> Array:
        """The vector itself, with zeros where the radius is infinite."""
        if self.balls.radii.most < math.inf:
            return s
        sizes = self.partition.sizes(s)
        free = self.balls.radii.like(sizes) + 0.0 * sizes == math.inf
        return choose(self.partition.spread(free, s), 0.0 * s, s)

    def subgradient(self, xh: Array, s: Array) -> Array:
        """Zeros for groups in whose interior xh is, and for the others the outward part of s.

        On a sphere, s is a multiple of xh up to rounding. Where the multiple is about 0, rounding decides on the
        direction of s, and the Fenchel gap of x and s would be of the order eps.
        """
        sizes = self.partition.sizes(xh)
        radii = self.balls.radii.like(sizes)
        inside = sizes < radii * INTERIOR
        usual = (sizes >= LEAST) & (sizes < math.inf)
        outward = limited(self.partition.products(xh, s), 0.0, None) / choose(usual, sizes * sizes, 0.0 * sizes + 1.0)
        found = wide(xh) * self.partition.spread(choose(inside, 0.0 * outward, outward), xh)
        replaced = self.partition.spread(inside | usual, s) & (s == s) & (found == found)
        return space_of(s).cast(choose(replaced, found, wide(s)))

    def fenchel_gap(self, x: Array, s: Array) -> float:
        """sum_G radius |s_G| - <x_G, s_G>."""
        return self.balls.gap(wide(s), wide(x), False)[0]

    def pairing(self, x: Array, s: Array) -> Pairing:
        """The gap of a point on the spheres, where x is on them up to rounding."""
        s = self.dual_point(s)
        gap, off = self.balls.gap(wide(s), wide(x), True)
        return Pairing(s, off, 0.0, gap, at_distance(gap, off, s))

    def support(self, x: Array, w: Array, reach_x: float, reach_w: Any) -> Array:
        """A group is off its sphere if x is inside by more than its error."""
        x = on_host(x)
        most = self.partition.norms(x) * (1.0 + 4.0 * self.partition.rounding(x)) + UP * reach_x
        off = most * UP < self.balls.radii.everywhere(self.partition.count)
        found = np.where(off, Support.OFF, Support.UNDECIDED).astype(np.int8)
        return self.partition.on_coordinates(found, int(x.shape[0]))

    def __repr__(self) -> str:
        return f"GroupBalls({self.partition.count - self.partition.rest} groups)"
