r"""The arithmetic of products of Euclidean balls, which norms of groups and constraints on groups have in common.

A norm w |x| has the conjugate 0 for |s| <= w, and the ball |x| <= w has the support function w |s|. In both cases the
gap is w |a| - <a, b> for a vector a and a vector b of length at most w. With d = w a/|a| - b,

    w |a| - <a, b>  =  |a| ((w - |b|)(w + |b|) + |d|^2) / (2 w),

where the first product vanishes if b is on the sphere, and d is known up to eps w. Written in this way nothing cancels.
Stored digits are hardly ever on a sphere exactly, and a vector b that is eps inside of it has a gap of w |a| eps. So
``Simple.pairing`` takes w b/|b| for a vector b whose length is w up to rounding, and says how far away that is.
"""

from __future__ import annotations

import math
from copy import copy
from typing import Any

import numpy as np

from saddlepoint.ground.arrays import Array, concat, eps_of, namespace
from saddlepoint.ground.elementwise import choose
from saddlepoint.ground.errors import ProblemError
from saddlepoint.parts.simple.bounds import EPS, norm_bound, raised
from saddlepoint.parts.simple.coordinates import Coordinates
from saddlepoint.parts.simple.l1_box import limited
from saddlepoint.parts.simple.partition import Partition

LEAST = 1e-140  # balls of smaller radius are treated as points, because squares of such numbers underflow


class Spheres:
    """The arithmetic of a product of balls, one for each group of coordinates.

    Args:
        partition: the groups.
        radii: one number for each group in the order of the user, or one for all; not negative.
        name: what the radii are called in an error.
        most: the largest radius that is accepted; infinity if radii may be infinite.
        rest: the radius of the coordinates that no group names.

    Attributes:
        radii: the radii in the order of ``Partition.norms``.
    """

    def __init__(self, partition: Partition, radii: Any, name: str, most: float, rest: float) -> None:
        given = Coordinates(radii, name)
        named = partition.count - partition.rest
        if given.size not in (None, named):
            raise ProblemError(f"{name} has {given.size} entries; expected one for each of the {named} groups, or one")
        numbers = given.everywhere(named)
        wrong = ~((numbers >= 0.0) & (numbers <= most))
        if given.known and wrong.any():
            i = int(np.argmax(wrong))
            where = "" if given.size is None else f" at index {i}"
            finite = "" if most == math.inf else "finite "
            raise ProblemError(f"{name} is {numbers[i]:g}{where}; expected {finite}numbers that are not negative")
        self.partition = partition
        self.radii = self._in_order(given, named, rest) if partition.rest or given.size is not None else given

    def _in_order(self, given: Coordinates, named: int, rest: float) -> Coordinates:
        """The radii of the named groups, and that of the rest if there is one, in the order of ``Partition.norms``."""
        whole: Any = given.everywhere(named)
        if given.live is None:
            whole = np.append(whole, rest) if self.partition.rest else whole
        else:
            xp = namespace(given.live)
            whole = given.live + xp.zeros(named, dtype=given.live.dtype)
            whole = concat([whole, xp.full_like(whole[:1], rest)]) if self.partition.rest else whole
        return Coordinates(self.partition.ordered(whole), "radius")

    def times(self, c: float) -> Spheres:
        """The same with radii that are c times as large."""
        found = copy(self)
        found.radii = Coordinates(c * self.radii.raw, self.radii.name)
        return found

    def shrunk(self, b: Array, exactly: bool) -> Array:
        """The nearest vector whose groups are in the balls: up to rounding, or for the stored digits exactly."""
        sizes = self.partition.norms(b) if exactly else self.partition.sizes(b)
        radius = self.radii.like(sizes)
        if not exactly and self.radii.least >= LEAST and self.radii.most < math.inf:
            return self.partition.scaled(b, radius / limited(sizes, radius, None))
        slack = 4.0 * self.partition.rounding(b) + 2.0 * eps_of(b) if exactly else 0.0
        outside = ~(sizes * (1.0 + slack) <= radius)
        one = namespace(sizes).ones_like(sizes)
        factor = choose(outside, radius * (1.0 - slack) / choose(outside, sizes, one), one)
        if self.radii.least < LEAST:
            factor = choose((radius < LEAST) & outside, 0.0 * one, factor)
        return self.partition.scaled(b, factor)

    def excess(self, b: Array) -> float:
        """A bound on the distance from b to the product of the balls; 0.0 if b is in it."""
        length, relative = self.partition.norms(b), self._relative(b)
        high, nothing = length * (1.0 + relative), namespace(length).zeros_like(length)
        radius = self.radii.like(length) + nothing
        over = choose(high > radius, high - choose(high > radius, radius, high) + 2.0 * relative * high, nothing)
        over = choose(high == high, over, high)
        return norm_bound(over, 4)

    def _relative(self, b: Array) -> float:
        return self.partition.rounding(b) + 2.0 * EPS

    def gap(self, a: Array, b: Array, on_sphere: bool) -> tuple[float, float]:
        """Bounds on sum_G w |a_G| - <a_G, b'_G> and on |b' - b|, for a vector b' near b that is in the balls.

        Args:
            a: a vector of float64.
            b: another one. Groups of it that are not known to be inside of their balls are moved onto the spheres.
            on_sphere: whether groups that are inside, but on the sphere up to rounding, are moved onto it as well.
        """
        part, xp, relative = self.partition, namespace(a), self._relative(a)
        r, length = part.norms(a), part.norms(b)
        if not bool(xp.all((r < math.inf) & (length < math.inf))):  # NaN included
            return math.inf, math.inf
        high, low, nothing = length * (1.0 + relative), length * (1.0 - relative), xp.zeros_like(r)
        w = self.radii.like(r) + nothing
        usual = (r > 0.0) & (w >= LEAST) & (w < math.inf)
        radius, r_safe = choose(usual, w, 1.0 + nothing), choose(usual, r, 1.0 + nothing)
        direction = part.spread(radius, a) * (a / part.spread(r_safe, a))
        d = part.norms(direction - b) * (1.0 + relative) + radius * (relative + 4.0 * EPS)
        moved = high > (w * (1.0 - 4.0 * relative) if on_sphere else w)
        away = xp.abs(choose(moved, length, nothing) - choose(moved, w, nothing))
        off = choose(moved, away * (1.0 + 4.0 * EPS) + 2.0 * relative * high, nothing)
        inward = choose(moved, nothing, limited(radius - low, 0.0, None) * (radius + high))
        gaps = r * (1.0 + relative) * (inward + (d + off) * (d + off)) / (2.0 * radius)
        rest = (r > 0.0) & (w > 0.0) & ~usual
        gaps = choose(usual, gaps, 2.0 * choose(rest, w, nothing) * choose(rest, r, nothing))
        return raised(float(xp.sum(gaps)), int(gaps.shape[0]) + 12), norm_bound(off, 4)
