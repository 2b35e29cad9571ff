"""Sums of Euclidean norms of groups of coordinates, alone and together with an l1 norm."""

from __future__ import annotations

import math
from copy import copy
from typing import Any

import numpy as np

from saddlepoint.ground.arrays import Array, eps_of, namespace, space_of
from saddlepoint.ground.elementwise import choose
from saddlepoint.ground.errors import ProblemError
from saddlepoint.parts.simple.base import Pairing, Simple, Structured, Support, on_host
from saddlepoint.parts.simple.bounds import EPS, norm_bound, raised, wide
from saddlepoint.parts.simple.l1_box import UP, L1Box, limited
from saddlepoint.parts.simple.partition import Partition
from saddlepoint.parts.simple.spheres import Spheres


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
        self.balls = Spheres(partition, weight, f"weight of {name}", float(np.finfo(np.float64).max), 0.0)
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
        """The gap of a vector on the spheres, where s is on them up to rounding."""
        s = self.balls.shrunk(s, exactly=False)
        gap, off = self.balls.gap(wide(x), wide(s), True)
        return Pairing(s, 0.0, off, gap, gap)

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

    def _times(self, c: float) -> Groups:
        found = copy(self)
        found.balls = self.balls.times(c)
        return found

    def _plus(self, other: Simple) -> Simple | None:
        """The sum with an l1 norm: its prox is the prox of the norms, applied to the prox of the l1 norm."""
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
        """What is beyond the weights of the l1 norm is shortened, and a little more, because the sum is rounded."""
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
        """The gap with the part of the groups on the spheres, where it is on them up to rounding."""
        u = wide(self.other.dual_point(s))
        part = self.groups.pairing(self.other.project(wide(x)), wide(s) - u)
        whole = space_of(s).cast(u + part.s)
        off = norm_bound(wide(whole) - (u + part.s)) + EPS * norm_bound(whole)
        gap = raised(self.other.fenchel_gap(x, u) + part.gap, 2)
        return Pairing(whole, self.outside(x), raised(part.off_s + off, 4), gap, gap)

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

    def _times(self, c: float) -> Simple:
        return GroupsL1(self.groups._times(c), self.other._times(c))

    def _plus(self, other: Simple) -> Simple | None:
        """The l1 norms are added."""
        both = self.other._plus(other)
        return None if both is None else self.groups._plus(both)

    def __repr__(self) -> str:
        return f"{self.groups!r} + {self.other!r}"
