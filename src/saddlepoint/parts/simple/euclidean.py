r"""Euclidean norms of groups of coordinates, and Euclidean balls: each is the conjugate of the other.

A norm w |x| has the conjugate 0 for |s| <= w, and the ball |x| <= w has the support function w |s|. In both cases the
gap is w |a| - <a, b> for a vector a and a vector b of length at most w. With d = w a/|a| - b,

    w |a| - <a, b>  =  |a| ((w - |b|)(w + |b|) + |d|^2) / (2 w),

where the first product vanishes if b is on the sphere, and d is known up to eps w. Written in this way nothing cancels.
Stored digits are hardly ever on a sphere exactly, and a vector b that is eps inside of it has a gap of w |a| eps. So
``pairing`` takes w b/|b| for a vector b whose length is w up to rounding, and says how far away that is.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from saddlepoint.ground.arrays import Array, eps_of, namespace, space_of
from saddlepoint.ground.elementwise import choose
from saddlepoint.ground.errors import ProblemError
from saddlepoint.parts.simple.base import Pairing, Simple, Structured, Support, on_host
from saddlepoint.parts.simple.bounds import EPS, norm_bound, raised, wide
from saddlepoint.parts.simple.data import Coordinates
from saddlepoint.parts.simple.l1_box import UP, L1Box, limited
from saddlepoint.parts.simple.partition import Partition

LEAST = 1e-140  # balls of smaller radius are treated as points, because squares of such numbers underflow


class Spheres:
    """The arithmetic of a product of balls, one for each group of coordinates.

    Args:
        partition: the groups.
        radii: one number for each group in the order of the user, or one for all; not negative, possibly infinite.
        name: what the radii are called in an error.
    """

    def __init__(self, partition: Partition, radii: Any, name: str, most: float) -> None:
        given = Coordinates(radii, name)
        named = partition.count - partition.rest
        if given.size not in (None, named):
            raise ProblemError(f"{name} has {given.size} entries; expected one for each of the {named} groups, or one")
        numbers = given.everywhere(named)
        wrong = ~((numbers >= 0.0) & (numbers <= most))
        if wrong.any():
            i = int(np.argmax(wrong))
            where = "" if given.size is None else f" at index {i}"
            finite = "" if most == math.inf else "finite "
            raise ProblemError(f"{name} is {numbers[i]:g}{where}; expected {finite}numbers that are not negative")
        self.partition, self.given = partition, given
        self.radii = given

    def fill(self, rest: float) -> Spheres:
        """The same, with a radius for the coordinates that no group names, and radii in the order of the groups."""
        partition = self.partition
        if partition.rest or self.given.size is not None:
            numbers = self.given.everywhere(partition.count - partition.rest)
            whole = np.append(numbers, rest) if partition.rest else numbers
            self.radii = Coordinates(partition.ordered(whole), "radius")
        return self

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


class Groups(Structured):
    r"""sum_G weight_G |x_G| over disjoint groups G of coordinates, with Euclidean norms: the group lasso.

    Args:
        groups: a label for every coordinate, equal within a group; or a list of lists of coordinates, of which those
            that no group names are free.
        weight: a number, or one for each group in the order of the list or of the sorted labels; not negative.
        shape, axis: instead of ``groups``: the coordinates are the entries of an array of this shape, in C order, and
            the groups run along the axis. With ``shape=(2, pixels)`` the norms of a discrete gradient make the
            isotropic total variation.

    Example:
        >>> import numpy as np, saddlepoint as sp
        >>> p = sp.Groups([0, 0, 1], weight=2.0)
        >>> p(np.array([3.0, 4.0, 1.0])), p.prox(np.array([3.0, 4.0, 1.0]), 1.0).round(12).tolist()
        (12.0, [1.8, 2.4, 0.0])
        >>> sp.Groups([[0, 1], [2]], [2.0, 0.5]) + sp.L1(0.1)  # the sparse group lasso
        Groups(2 groups) + L1(0.1)
    """

    def __init__(self, groups: Any = None, weight: Any = 1.0, *, shape: Any = None, axis: int = 0) -> None:
        name = type(self).__name__
        if groups is None and shape is None and name == "Groups":
            raise ProblemError("Groups was given neither groups nor shape; for the norm of all coordinates use Norm2")
        partition = Partition(groups, shape, axis, name)
        self.balls = Spheres(partition, weight, f"weight of {name}", float(np.finfo(np.float64).max)).fill(0.0)
        super().__init__(partition.dim)
        self.partition = partition

    def value(self, x: Array) -> float:
        """The weighted sum of the norms of the groups."""
        sizes = self.partition.norms(x)
        return float(namespace(sizes).sum(self.balls.radii.like(sizes) * sizes))

    def prox(self, v: Array, t: float) -> Array:
        """Every group is shortened by t weight, or becomes zero."""
        sizes = self.partition.sizes(v)
        left = sizes - t * self.balls.radii.like(sizes)
        one = namespace(sizes).ones_like(sizes)
        factor = limited(left, 0.0, None) / choose(left > 0.0, sizes, one)
        return self.partition.scaled(v, factor)

    def conjugate(self, s: Array) -> float:
        """0.0 if every group of s is at most as long as its weight, infinite otherwise."""
        return 0.0 if self.balls.excess(s) <= self._tolerance(s) else math.inf

    def _tolerance(self, s: Array) -> float:
        return 4.0 * self.partition.rounding(s) * norm_bound(wide(s))

    def project(self, x: Array) -> Array:
        """The point itself: the function is finite everywhere."""
        return x

    def outside(self, x: Array) -> float:
        """0.0: the function is finite everywhere."""
        return 0.0

    def dual_point(self, s: Array) -> Array:
        """Groups that are longer than their weights are shortened."""
        return self.balls.shrunk(s, exactly=True)

    def subgradient(self, xh: Array, s: Array) -> Array:
        """The gradient weight xh/|xh| for groups that are not zero; the vector s for the others."""
        sizes = self.partition.norms(xh)
        there, nothing = sizes > 0.0, namespace(sizes).zeros_like(sizes)
        factor = (self.balls.radii.like(sizes) + nothing) / choose(there, sizes, nothing + 1.0)
        curved = wide(xh) * self.partition.spread(factor, xh)
        on_curve = self.partition.spread(there, xh) & (curved == curved)
        return space_of(s).cast(choose(on_curve, curved, wide(s)))

    def fenchel_gap(self, x: Array, s: Array) -> float:
        """sum_G weight |x_G| - <x_G, s_G>."""
        s = wide(s)
        return self.balls.gap(wide(x), s, False)[0] if self.balls.excess(s) == 0.0 else math.inf

    def pairing(self, x: Array, s: Array) -> Pairing:
        """The same for a vector on the spheres, where s is on them up to rounding."""
        s = self.balls.shrunk(s, exactly=False)
        gap, off = self.balls.gap(wide(x), wide(s), True)
        return Pairing(s, 0.0, off, gap)

    def support(self, x: Array, w: Array, reach_x: float, reach_w: Any) -> Array:
        """A group is zero if w is shorter there than the weight beyond its error; it is not zero if x is far from it.

        Coordinates of a group of weight zero have no kink and are off it.
        """
        x, w = on_host(x), on_host(w)
        n = int(x.shape[0])
        reach, up = np.broadcast_to(on_host(reach_w), n).copy(), 1.0 + 4.0 * self.partition.rounding(x)
        weight = self.balls.radii.everywhere(self.partition.count)
        found = np.full(self.partition.count, Support.UNDECIDED, dtype=np.int8)
        found[(self.partition.norms(x) > UP * up * reach_x) | (weight == 0.0)] = Support.OFF
        found[(self.partition.norms(w) + self.partition.norms(reach)) * up * UP < weight] = Support.ZERO
        return self.partition.on_coordinates(found, n)

    def _plus(self, other: Simple) -> Simple | None:
        """The prox of the sum with a positively homogeneous function, as l1, is that of the norms after that of it."""
        cones = (0.0, -math.inf), (0.0, math.inf)
        if not isinstance(other, L1Box):
            return None
        ends = zip((other.lower, other.upper), cones, strict=True)
        if not all(np.isin(end.value, allowed).all() for end, allowed in ends):
            return None
        return GroupsL1(self, other)

    def __repr__(self) -> str:
        return f"Groups({self.partition.count - self.partition.rest} groups)"


class Norm2(Groups):
    r"""The Euclidean norm weight |x|, of all coordinates together.

    Args:
        weight: a number that is not negative.

    Example:
        >>> import numpy as np, saddlepoint as sp
        >>> p = sp.Norm2(2.0)
        >>> p(np.array([3.0, 4.0])), p.prox(np.array([3.0, 4.0]), 1.0).round(12).tolist()
        (10.0, [1.8, 2.4])
    """

    def __init__(self, weight: float = 1.0) -> None:
        super().__init__(None, weight)

    def __repr__(self) -> str:
        return f"Norm2({self.balls.radii})"


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
        self.balls = Spheres(partition, radius, f"radius of {name}", math.inf).fill(math.inf)
        super().__init__(partition.dim)
        self.partition = partition

    def value(self, x: Array) -> float:
        """0.0 in the balls, infinite outside."""
        return 0.0 if self._is_inside(x) else math.inf

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
        inside = sizes < radii * (1.0 - 1e-12)
        usual = (sizes >= LEAST) & (sizes < math.inf)
        outward = limited(self.partition.products(xh, s), 0.0, None) / choose(usual, sizes * sizes, 0.0 * sizes + 1.0)
        found = wide(xh) * self.partition.spread(choose(inside, 0.0 * outward, outward), xh)
        replaced = self.partition.spread(inside | usual, s) & (s == s) & (found == found)
        return space_of(s).cast(choose(replaced, found, wide(s)))

    def fenchel_gap(self, x: Array, s: Array) -> float:
        """sum_G radius |s_G| - <x_G, s_G>."""
        return self.balls.gap(wide(s), wide(x), False)[0]

    def pairing(self, x: Array, s: Array) -> Pairing:
        """The same for a vector on the spheres, where x is on them up to rounding."""
        s = self.dual_point(s)
        gap, off = self.balls.gap(wide(s), wide(x), True)
        return Pairing(s, off, 0.0, gap)

    def support(self, x: Array, w: Array, reach_x: float, reach_w: Any) -> Array:
        """A group is off its sphere if x is inside by more than its error."""
        x = on_host(x)
        most = self.partition.norms(x) * (1.0 + 4.0 * self.partition.rounding(x)) + UP * reach_x
        off = most * UP < self.balls.radii.everywhere(self.partition.count)
        found = np.where(off, Support.OFF, Support.UNDECIDED).astype(np.int8)
        return self.partition.on_coordinates(found, int(x.shape[0]))

    def __repr__(self) -> str:
        return f"GroupBalls({self.partition.count - self.partition.rest} groups)"


class GroupsL1(Structured):
    """sum_G weight_G |x_G| plus an l1 norm, possibly with x >= 0: the sparse group lasso.

    The vector s is in the domain of the conjugate if s = u + r with u in that of the l1 norm and r in that of the
    groups. The smallest r has the entries of s beyond the weights of the l1 norm.
    """

    def __init__(self, groups: Groups, other: L1Box) -> None:
        self.groups, self.other = groups, other
        if groups.dim is not None and other.dim is not None and groups.dim != other.dim:
            raise ProblemError(f"cannot add {groups!r} of {groups.dim} coordinates and {other!r} of {other.dim}")
        super().__init__(other.dim if groups.dim is None else groups.dim)

    def value(self, x: Array) -> float:
        """The sum of the two."""
        return self.groups.value(x) + self.other.value(x)

    def prox(self, v: Array, t: float) -> Array:
        """The prox of the groups after that of the l1 norm."""
        return self.groups.prox(self.other.prox(v, t), t)

    def conjugate(self, s: Array) -> float:
        """0.0 or infinite, as for the groups, of the entries beyond the weights of the l1 norm."""
        return self.groups.conjugate(self._rest(wide(s)))

    def project(self, x: Array) -> Array:
        """The nearest point of the domain."""
        return self.other.project(x)

    def outside(self, x: Array) -> float:
        """The distance to the domain."""
        return self.other.outside(x)

    def dual_point(self, s: Array) -> Array:
        """What is beyond the weights of the l1 norm is shortened; a little more than needed, for the sum is rounded."""
        if self.groups.balls.excess(self._rest(wide(s)) * (1.0 + 4.0 * EPS)) == 0.0:
            return s
        u = self.other.dual_point(s)
        return self._summed(u, self.groups.dual_point(wide(s) - wide(u)), s)

    def _rest(self, s: Array) -> Array:
        """What is beyond the weights of the l1 norm."""
        return s - self.other.dual_point(s)

    def _summed(self, u: Array, rest: Array, s: Array) -> Array:
        """A number of the dtype of s not beyond u + rest, where the two have the same sign."""
        xp, space = namespace(s), space_of(s)
        eps = 2.0 * eps_of(s)
        whole = (wide(u) + rest) * (1.0 - eps)
        size = xp.maximum(xp.abs(whole), xp.abs(wide(u)))
        return space.cast(choose(rest == 0.0, wide(u), choose(whole < 0.0, -size, size)))

    def subgradient(self, xh: Array, s: Array) -> Array:
        """The sum of a subgradient of the groups and one of the l1 norm."""
        if isinstance(xh, np.ndarray) and not xh.any():
            return s
        sizes = self.groups.partition.norms(xh)
        there = self.groups.partition.spread(sizes > 0.0, xh) & (s == s)
        curved = self.groups.subgradient(xh, 0.0 * s)
        return choose(there, curved + self.other.subgradient(xh, s - curved), s)

    def fenchel_gap(self, x: Array, s: Array) -> float:
        """The sum of the gaps of the two parts of s."""
        x, s = self.other.project(wide(x)), wide(s)
        u, rest = self.other.dual_point(s), self._rest(s)
        if self.groups.balls.excess(rest * (1.0 + 4.0 * EPS)) > 0.0:
            return math.inf
        gap, _ = self.groups.balls.gap(x, rest, False)
        lost = EPS * norm_bound(rest) * norm_bound(x)  # the subtraction that makes ``rest`` is rounded
        return raised(self.other.fenchel_gap(x, u) + gap + lost, 4)

    def pairing(self, x: Array, s: Array) -> Pairing:
        """The same with the part of the groups on the spheres, where it is on them up to rounding."""
        u = wide(self.other.dual_point(s))
        part = self.groups.pairing(self.other.project(wide(x)), wide(s) - u)
        whole = space_of(s).cast(u + part.s)
        off = norm_bound(wide(whole) - (u + part.s)) + EPS * norm_bound(whole)
        gap = self.other.fenchel_gap(x, u) + part.gap
        return Pairing(whole, self.outside(x), raised(part.off_s + off, 4), raised(gap, 2))

    def support(self, x: Array, w: Array, reach_x: float, reach_w: Any) -> Array:
        """A group is zero if w beyond the weights of the l1 norm is shorter than its weight; entries as for l1."""
        x, w = on_host(x), on_host(w)
        reach = np.broadcast_to(on_host(reach_w), x.shape[0])
        found = self.other.support(x, w, reach_x, reach)
        # Of all w within its errors, the one that is longest beyond the weights has the largest absolute entries.
        most = np.maximum(np.abs(self._rest(-w - reach)), np.abs(self._rest(-w + reach)))
        groups = self.groups.support(x, most, reach_x, (UP - 1.0) * (np.abs(w) + reach))
        off = (found == Support.OFF) & (groups == Support.OFF)
        zero = (found == Support.ZERO) | (groups == Support.ZERO)
        return np.where(zero, Support.ZERO, np.where(off, Support.OFF, Support.UNDECIDED)).astype(np.int8)

    def _plus(self, other: Simple) -> Simple | None:
        """The l1 norms are added."""
        both = self.other._plus(other)
        return None if both is None else self.groups._plus(both)

    def __repr__(self) -> str:
        return f"{self.groups!r} + {self.other!r}"
