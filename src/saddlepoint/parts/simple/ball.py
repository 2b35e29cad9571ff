r"""Balls |x| <= radius of the Euclidean norm, the l1 norm and the maximum norm.

The nearest point of the l1 ball to v outside of it has the signs of v, and its absolute values are the nearest point of
the simplex to |v|. For the gap with M = max |s|,

    radius M - <s, x>  =  sum_i |x_i| (M - sign(x_i) s_i)  +  M (radius - |x|_1),

and a point x whose norm is the radius up to rounding is replaced by radius x/|x|_1, for which the last term is zero.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from saddlepoint.ground.arrays import Array, namespace
from saddlepoint.ground.elementwise import choose
from saddlepoint.ground.errors import ProblemError
from saddlepoint.ground.rounding import gamma
from saddlepoint.ground.validation import short_repr
from saddlepoint.parts.simple.base import Pairing, Simple, Structured, Support, on_host
from saddlepoint.parts.simple.bounds import EPS, at_distance, raised, sum_difference, sum_error, sum_of_products, wide
from saddlepoint.parts.simple.coordinates import Coordinates, as_pair, positive_or_live
from saddlepoint.parts.simple.group_balls import INTERIOR, GroupBalls
from saddlepoint.parts.simple.l1_box import UP, L1Box, limited
from saddlepoint.parts.simple.shifted import Shifted
from saddlepoint.parts.simple.simplex import nearest_in_simplex


class EuclideanBall(GroupBalls):
    """The constraint |x| <= radius in the Euclidean norm, one group of ``GroupBalls``."""

    def __init__(self, radius: float) -> None:
        super().__init__(None, radius)

    def __repr__(self) -> str:
        return f"Ball({self.balls.radii})"


class L1Ball(Structured):
    """The constraint sum_i |x_i| <= radius."""

    def __init__(self, radius: float) -> None:
        super().__init__()
        self.radius = radius

    def value(self, x: Array) -> float:
        """0.0 in the ball, infinite outside."""
        return 0.0 if self.is_inside(x) else math.inf

    def prox(self, v: Array, t: float) -> Array:
        """The nearest point of the ball, whatever t is."""
        return self.project(v)

    def project(self, x: Array) -> Array:
        """The nearest point of the ball."""
        xp = namespace(x)
        sizes = xp.abs(x)
        inside = xp.sum(wide(sizes)) <= self.radius
        if isinstance(x, np.ndarray) and inside:
            return x
        near = nearest_in_simplex(sizes, self.radius)
        return choose(inside & (sizes == sizes), x, choose(x < 0.0, -near, near))

    def conjugate(self, s: Array) -> float:
        """The radius times the largest absolute entry."""
        return self.radius * float(namespace(s).max(namespace(s).abs(s)))

    def outside(self, x: Array) -> float:
        """The sum of the absolute values beyond the radius, which is at least the distance."""
        difference, error = sum_difference(namespace(x).abs(wide(x)), self.radius)
        return 0.0 if difference + error <= 0.0 else raised(max(difference, error) + error, 3)

    def diameter_in(self, n: int | None) -> float:
        """The distance of two opposite corners."""
        return 2.0 * self.radius

    def subgradient(self, xh: Array, s: Array) -> Array:
        """Zero in the interior; on the boundary one absolute value where xh is not zero, and at most this elsewhere."""
        xp = namespace(s)
        sizes, there = xp.abs(xh), xh != 0.0
        count = xp.sum(xp.astype(there, s.dtype))
        level = limited(xp.sum(choose(there, choose(xh < 0.0, -s, s), 0.0 * s)) / count, 0.0, None) + 0.0 * s
        level = choose(xp.sum(wide(sizes)) + 0.0 * s < self.radius * INTERIOR, 0.0 * s, level)
        return choose(there, choose(xh < 0.0, -level, level), limited(s, -level, level))

    def fenchel_gap(self, x: Array, s: Array) -> float:
        """The formula above. Outside of the ball it is that of radius x/|x|_1."""
        return self._gap(x, s, self.outside(x) > 0.0)[0]

    def pairing(self, x: Array, s: Array) -> Pairing:
        """The gap of a point on the boundary, where x is on it up to rounding."""
        near = sum_error(namespace(x).abs(wide(x)), self.radius) <= 64.0 * EPS * self.radius
        gap, off = self._gap(x, s, near or self.outside(x) > 0.0)
        return Pairing(s, off, 0.0, gap, at_distance(gap, off, s))

    def _gap(self, x: Array, s: Array, on_boundary: bool) -> tuple[float, float]:
        x, s = wide(x), wide(s)
        xp, n = namespace(x), int(x.shape[0])
        sizes = xp.abs(x)
        top, total, off = float(xp.max(xp.abs(s))), float(xp.sum(sizes)), sum_error(sizes, self.radius)
        if not 0.0 < total < math.inf:
            return (raised(self.radius * top, 2), 0.0) if total == 0.0 else (math.inf, math.inf)
        along = choose(x < 0.0, -s, s)
        gap = sum_of_products([(top - along, sizes)], 1)
        if on_boundary:
            return raised(gap * (self.radius / total), n + 3), off
        return raised(gap + top * off, 4), 0.0

    def support(self, x: Array, w: Array, reach_x: float, reach_w: Any) -> Array:
        """If x is inside by more than its error, there are no bounds; else an entry is zero if its w is not largest."""
        x, w, reach = on_host(x), on_host(w), on_host(reach_w)
        n = int(x.shape[0])
        if (np.abs(x).sum() + math.sqrt(n) * reach_x) * (UP + gamma(n, EPS)) < self.radius:
            return np.full(n, Support.OFF, dtype=np.int8)
        slack = (UP - 1.0) * (np.abs(w) + reach)
        zero = np.abs(w) + reach + slack < np.max(np.abs(w) - reach - slack)
        found = np.where(np.abs(x) > UP * reach_x, Support.OFF, Support.UNDECIDED)
        return np.where(zero, Support.ZERO, found).astype(np.int8)

    def __repr__(self) -> str:
        return f"Ball({self.radius:g}, norm=1)"


class Ball(Structured):
    r"""The constraint |x - center| <= radius.

    Args:
        radius: a positive number.
        norm: 2 for the Euclidean norm, 1 for the sum of absolute values, ``"inf"`` for the largest one.
        center: the center of the ball: a number for all coordinates, or one for each. With the largest absolute value
            as the norm, the ball is the box between center - radius and center + radius, rounded.

    Example:
        >>> import numpy as np, saddlepoint as sp
        >>> v = np.array([3.0, 4.0])
        >>> [sp.Ball(1.0, norm).prox(v, 1.0).round(12).tolist() for norm in (1, 2, "inf")]
        [[0.0, 1.0], [0.6, 0.8], [1.0, 1.0]]
        >>> [sp.Ball(1.0, norm).conjugate(v) for norm in (1, 2, "inf")]
        [4.0, 5.0, 7.0]
        >>> sp.Ball(1.0, center=[3.0, 0.0]).prox(v, 1.0).tolist()
        [3.0, 1.0]
    """

    def __init__(self, radius: float = 1.0, norm: Any = 2, center: Any = 0.0) -> None:
        self.radius = positive_or_live(radius, "radius of Ball")
        self.center = Coordinates(center, "center of Ball")
        if self.center.known and not -math.inf < self.center.least <= self.center.most < math.inf:
            raise ProblemError("center of Ball is infinite; expected finite numbers")
        self.ball: Structured
        if not isinstance(norm, str | int | float):
            raise ProblemError(f'norm of Ball is {short_repr(norm)}; expected 1, 2 or "inf"')
        if norm in ("inf", math.inf):
            center, radius = as_pair(self.center, Coordinates(self.radius, "radius of Ball"))
            self.ball = L1Box(0.0, center - radius, center + radius, "Ball")
        elif norm in (1, 2):
            around_zero = EuclideanBall(self.radius) if norm == 2 else L1Ball(self.radius)
            centered = self.center.live is None and self.center.least == self.center.most == 0.0
            self.ball = around_zero if centered else Shifted(around_zero, self.center)
        else:
            raise ProblemError(f'norm of Ball is {short_repr(norm)}; expected 1, 2 or "inf"')
        super().__init__(self.center.size, self.ball.separable)

    def value(self, x: Array) -> float:
        """0.0 in the ball, infinite outside."""
        return self.ball.value(x)

    def prox(self, v: Array, t: float) -> Array:
        """The nearest point of the ball, whatever t is."""
        return self.ball.prox(v, t)

    def conjugate(self, s: Array) -> float:
        """The radius times the dual norm of s, plus <center, s>."""
        return self.ball.conjugate(s)

    def project(self, x: Array) -> Array:
        """The nearest point of the ball."""
        return self.ball.project(x)

    def outside(self, x: Array) -> float:
        """The distance to the ball, rounded up."""
        return self.ball.outside(x)

    def is_inside(self, x: Array) -> bool:
        """Whether x is in the ball up to rounding."""
        return self.ball.is_inside(x)

    def diameter_in(self, n: int | None) -> float:
        """The diameter in n dimensions."""
        return self.ball.diameter_in(n)

    def restrict(self, rows: slice) -> Simple:
        """The ball of some coordinates, for the maximum norm."""
        return self.ball.restrict(rows)

    def dual_point(self, s: Array) -> Array:
        """The vector itself: the support function is finite everywhere."""
        return s

    def subgradient(self, xh: Array, s: Array) -> Array:
        """A vector near s that is a subgradient at xh, up to rounding."""
        return self.ball.subgradient(xh, s)

    def fenchel_gap(self, x: Array, s: Array) -> float:
        """The radius times the dual norm of s, minus <s, x - center>."""
        return self.ball.fenchel_gap(x, s)

    def pairing(self, x: Array, s: Array) -> Pairing:
        """The gap of a point on the boundary, where x is on it up to rounding."""
        return self.ball.pairing(x, s)

    def faces(self, x: Array) -> Array:
        """At which kink or bound each coordinate is."""
        return self.ball.faces(x)

    def along_face(self, x: Array, moves: Array) -> Array:
        """The moves that leave x on its kinks and bounds."""
        return self.ball.along_face(x, moves)

    def support(self, x: Array, w: Array, reach_x: float, reach_w: Any) -> Array:
        """What is proven about each coordinate."""
        return self.ball.support(x, w, reach_x, reach_w)

    def _plus(self, other: Simple) -> Simple | None:
        """A ball of the maximum norm is a box."""
        return self.ball._plus(other)

    def __repr__(self) -> str:
        if not isinstance(self.ball, L1Box):
            return f"{self.ball!r}"
        around = "" if self.center.least == self.center.most == 0.0 else f" around {self.center}"
        return f'Ball({self.radius:g}, "inf"){around}'
