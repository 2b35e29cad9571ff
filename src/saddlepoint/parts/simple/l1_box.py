r"""L1 norms, boxes and their sums: sum_i weight_i |x_i| subject to lower <= x <= upper.

All formulas are those of one coordinate. The prox of the sum is the soft threshold, clipped to the interval, because a
convex function of one variable that is restricted to an interval has its minimum at the nearest point to the free one.

The gap p(x) + p*(s) - s x is what the concave function s u - weight |u| gains from x to its maximum:

    (s - weight)+ times the distance from x to upper,   (weight - s)+ times the distance from x to lower,  where u > 0,
    (s + weight)+ times the distance from x to upper,  (-s - weight)+ times the distance from x to lower,  where u < 0,

with distances counted only on that side of zero. All terms are positive, so that nothing cancels.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from saddlepoint.ground.arrays import Array, is_float64, namespace
from saddlepoint.ground.elementwise import choose
from saddlepoint.ground.errors import ProblemError
from saddlepoint.ground.recording import is_live
from saddlepoint.parts.simple.base import Pairing, Simple, Structured, Support, on_host
from saddlepoint.parts.simple.bounds import norm_bound, raised, sum_of_products, wide
from saddlepoint.parts.simple.coordinates import Coordinates, as_pair, common_size

UP = 1.0 + 2.0**-48  # factor that exceeds the relative rounding of a comparison in ``support``


class L1Box(Structured):
    """sum_i weight_i |x_i| subject to lower <= x <= upper: a sum of ``L1`` and ``Box``.

    Args:
        weight: a number or a vector, not negative.
        lower, upper: numbers or vectors; they may be infinite.

    Example:
        >>> import numpy as np, saddlepoint as sp
        >>> p = sp.L1(1.0) + sp.Box(-1.0, 2.0)
        >>> p
        L1(1) + Box(-1, 2)
        >>> p.prox(np.array([-5.0, 0.5, 2.5, 9.0]), 1.0).tolist()
        [-1.0, 0.0, 1.5, 2.0]
    """

    def __init__(self, weight: Any = 0.0, lower: Any = -math.inf, upper: Any = math.inf, name: str = "L1Box") -> None:
        self.weight = Coordinates(weight, f"weight of {name}")
        self.lower, self.upper = Coordinates(lower, f"lower of {name}"), Coordinates(upper, f"upper of {name}")
        super().__init__(common_size(name, self.weight, self.lower, self.upper), separable=True)
        if self.weight.known and not (self.weight.least >= 0.0 and self.weight.most < math.inf):
            raise ProblemError(
                f"{self.weight.name} is {_first(self.weight, lambda w: ~((w >= 0.0) & (w < math.inf)))}; expected "
                "finite numbers that are not negative: with others the function is not convex"
            )
        if self.lower.known and self.upper.known:
            self._check_bounds(name)
        self._normed = self.weight.live is not None or self.weight.most > 0.0
        self._low = self.lower.live is not None or self.lower.most > -math.inf
        self._high = self.upper.live is not None or self.upper.least < math.inf

    def _check_bounds(self, name: str) -> None:
        n = 1 if self.dim is None else self.dim
        low, high = self.lower.everywhere(n), self.upper.everywhere(n)
        empty = ~((low <= high) & (low < math.inf) & (high > -math.inf))
        if empty.any():
            i = int(np.argmax(empty))
            where = "" if self.dim is None else f" at index {i}"
            raise ProblemError(
                f"lower = {low[i]:g} and upper = {high[i]:g} of {name}{where}; expected lower <= upper with a number "
                "between them: the box is empty"
            )

    # -- the function --------------------------------------------------------------------------------------------------

    def value(self, x: Array) -> float:
        """sum_i weight_i |x_i|; infinite outside the box."""
        if (self._low or self._high) and not self.is_inside(x):
            return math.inf
        if not self._normed:
            return 0.0
        x = wide(x)
        return float(namespace(x).sum(self.weight.like(x) * namespace(x).abs(x)))

    def prox(self, v: Array, t: float) -> Array:
        """The soft threshold, clipped to the box."""
        if self._normed:
            a = t * self.weight.like(v)
            v = v - limited(v, -a, a)
        return self._clipped(v)

    def conjugate(self, s: Array) -> float:
        """s x - p(x) at the point x of the box that is nearest to zero, plus what can be gained from there."""
        s = wide(s)
        x, xp = self._clipped(0.0 * s), namespace(s)
        total = x * s - self.weight.like(s) * xp.abs(x)
        for slope, distance in self._gains(x, s):
            both = (slope > 0.0) & (distance > 0.0)
            total = total + choose(both, slope, 0.0 * s) * choose(both, distance, 0.0 * s)
        return float(xp.sum(total))

    # -- its domain ----------------------------------------------------------------------------------------------------

    def project(self, x: Array) -> Array:
        """The point of the box nearest to x."""
        return self._clipped(x)

    def outside(self, x: Array) -> float:
        """The length of x minus its projection, rounded up."""
        if not (self._low or self._high):
            return 0.0
        x = wide(x)
        return norm_bound(x - self._clipped(x), 1)

    def diameter_in(self, n: int | None) -> float:
        """The length of the diagonal."""
        if n is None:
            return 0.0 if self.lower.value == self.upper.value else math.inf
        return norm_bound(self.upper.everywhere(n) - self.lower.everywhere(n), 1)

    def restrict(self, rows: slice) -> Simple:
        """The function of some coordinates."""
        return L1Box(self.weight[rows], self.lower[rows], self.upper[rows])

    # -- what certificates need ----------------------------------------------------------------------------------------

    def dual_point(self, s: Array) -> Array:
        """Entries of s are limited by the weight from above where upper is infinite, and likewise from below."""
        if not self._low and not self._high:
            return limited(s, -self.weight.like(s, 0.0), self.weight.like(s, 0.0))
        weight, lower, upper = self.weight.like(s, 0.0), self.lower.like(s), self.upper.like(s)
        dual = s
        if not self.upper.most < math.inf:
            dual = choose((upper == math.inf) & (dual > weight), weight + 0.0 * s, dual)
        if not self.lower.least > -math.inf:
            dual = choose((lower == -math.inf) & (dual < -weight), -weight + 0.0 * s, dual)
        return dual

    def subgradient(self, xh: Array, s: Array) -> Array:
        """Entries of s, limited to the interval between the slopes of weight |x| to the left and to the right of xh.

        At a bound of the box the interval has no end on the side of the bound.
        """
        weight, lower, upper = self.weight.like(s, 0.0) + 0.0 * s, self.lower.like(s), self.upper.like(s)
        if not self._low and not self._high:
            return limited(s, choose(xh > 0.0, weight, -weight), choose(xh < 0.0, -weight, weight))
        left = choose(xh <= lower, 0.0 * s - math.inf, choose(xh > 0.0, weight, -weight))
        right = choose(xh >= upper, 0.0 * s + math.inf, choose(xh < 0.0, -weight, weight))
        return self.dual_point(limited(s, left, right))

    def fenchel_gap(self, x: Array, s: Array) -> float:
        """The four sums of products above."""
        s = wide(s)
        x = self._clipped(wide(x))
        return sum_of_products(self._gains(x, s))

    def pairing(self, x: Array, s: Array) -> Pairing:
        """The gap at the point whose entries are the bounds, where x has the float32 numbers next to them.

        A bound such as 0.1 is no float32 number. A point of float32 numbers that is at its bounds up to this rounding
        has a gap of the order of the rounding, which would limit the certified distance to the square root of that.
        """
        if not self._rounded:
            return super().pairing(x, s)
        dual, off = self.dual_point(s), self.outside(x)
        gap = self.fenchel_gap(x, dual)
        at = x = wide(x)
        for bound, near in self._rounded:
            exact, rounded = bound.like(x), near.like(x)
            beside = (x == rounded) & (x != exact)
            if bool(namespace(x).any(beside)):
                at = choose(beside, exact + 0.0 * x, at)
        if at is x:
            return Pairing(dual, off, 0.0, gap, gap)
        return Pairing(dual, raised(off + norm_bound(at - x, 1), 1), 0.0, self.fenchel_gap(at, dual), gap)

    def _gains(self, x: Array, s: Array) -> list[tuple[Array, Array]]:
        """The slopes of s u - weight |u| towards its maximum, and the distances from x in the box; both in float64."""
        weight, lower, upper = self.weight.like(x), self.lower.like(x), self.upper.like(x)
        if not self._normed:
            return [(_positive(s), upper - x), (_positive(-s), x - lower)]
        right, left = _positive(x), _positive(-x)  # |x| on the two sides of zero
        pairs = [
            (_positive(weight - s), right - _beyond_zero(lower)),
            (_positive(s + weight), left - _beyond_zero(-upper)),
        ]
        # Without a bound the distance is infinite, and in the domain of the conjugate the slope is zero there.
        if self._high or float(namespace(s).max(s - weight)) > 0.0:
            pairs.append((_positive(s - weight), _beyond_zero(upper) - right))
        if self._low or float(namespace(s).max(-s - weight)) > 0.0:
            pairs.append((_positive(-s - weight), _beyond_zero(-lower) - left))
        return pairs

    def faces(self, x: Array) -> Array:
        """1.0 at zero if there is a weight, 2.0 at the lower bound and 4.0 at the upper one, or their sums."""
        at_lower, at_upper = x <= self.lower.like(x), x >= self.upper.like(x)
        found: Array = 2.0 * namespace(x).astype(at_lower, x.dtype) + 4.0 * namespace(x).astype(at_upper, x.dtype)
        return found + super().faces(x) if self._normed else found

    def support(self, x: Array, w: Array, reach_x: float, reach_w: Any) -> Array:
        """At a bound or at zero by the sign of w beyond its error; off them by the distance of x."""
        x, w, reach = on_host(x), on_host(w), on_host(reach_w)
        n = int(x.shape[0])
        weight, lower, upper = (part.everywhere(n) for part in (self.weight, self.lower, self.upper))
        highest, lowest = w + reach, w - reach  # of w at the solution
        slack = (UP - 1.0) * (np.abs(w) + reach + weight)
        near = UP * reach_x
        found = np.full(n, Support.UNDECIDED, dtype=np.int8)
        off = (x - lower > near) & (upper - x > near) & ((weight == 0.0) | (np.abs(x) > near))
        found[off] = Support.OFF
        kink = (lower < 0.0) & (upper > 0.0) & (np.maximum(highest, -lowest) + slack < weight)
        at_lower = lowest - slack > np.where(lower < 0.0, weight, -weight)
        at_upper = highest + slack < np.where(upper > 0.0, -weight, weight)
        at_lower = (at_lower & (lower > -math.inf)) | (lower == upper)
        at_upper = at_upper & (upper < math.inf) & ~at_lower
        found[at_lower], found[at_upper] = Support.LOWER, Support.UPPER
        found[kink | (at_lower & (lower == 0.0)) | (at_upper & (upper == 0.0))] = Support.ZERO
        return found

    # -- sums ----------------------------------------------------------------------------------------------------------

    def _times(self, c: float) -> L1Box:
        return L1Box(c * self.weight.raw, self.lower.raw, self.upper.raw) if self._normed else self

    def _plus(self, other: Simple) -> Simple | None:
        """Weights are added, and boxes are intersected."""
        if not isinstance(other, L1Box):
            return None
        name = f"{self!r} + {other!r}"
        common_size(name, *(part for p in (self, other) for part in (p.weight, p.lower, p.upper)))
        weight, lower, upper = (
            as_pair(getattr(self, part), getattr(other, part)) for part in ("weight", "lower", "upper")
        )
        highest, lowest = (np if isinstance(pair[0], float) else namespace(pair[0]) for pair in (lower, upper))
        return L1Box(weight[0] + weight[1], highest.maximum(*lower), lowest.minimum(*upper), name=name)

    def _clipped(self, v: Array) -> Array:
        if not (self._low or self._high):
            return v
        live = self.lower.live is not None or self.upper.live is not None
        low, high = (self.lower, self.upper) if live or is_float64(v) else self._narrow
        return limited(v, low.like(v) if self._low else None, high.like(v) if self._high else None)

    @cached_property
    def _narrow(self) -> tuple[Coordinates, Coordinates]:
        """The largest interval of float32 numbers in the box; the nearest one if there is none."""
        n = 1 if self.dim is None else self.dim
        like = np.zeros(1, np.float32)
        low, high, near = self.lower.like(like, math.inf), self.upper.like(like, -math.inf), self.lower.like(like)
        if self.dim is None:
            return tuple(Coordinates(end if low <= high else near, "bound") for end in (low, high))  # type: ignore[return-value]
        ends = np.broadcast_to(low, n), np.broadcast_to(high, n)
        return tuple(Coordinates(np.where(ends[0] <= ends[1], end, near), "bound") for end in ends)  # type: ignore[return-value]

    @cached_property
    def _rounded(self) -> list[tuple[Coordinates, Coordinates]]:
        """The bounds that are no float32 numbers, each with the float32 numbers next to it in the box."""
        if all(_is_float32(bound.value) for bound in (self.lower, self.upper)):
            return []
        pairs = zip((self.lower, self.upper), self._narrow, strict=True)
        return [(bound, near) for bound, near in pairs if not np.array_equal(bound.value, near.value)]

    def __repr__(self) -> str:
        norm = f"L1({self.weight})" if self._normed else ""
        box = f"Box({self.lower}, {self.upper})" if self._low or self._high else ""
        if box == "Box(0, inf)":
            box = "NonNegative()"
        return " + ".join(filter(None, (norm, box))) or "L1(0)"


class L1(L1Box):
    r"""The l1 norm sum_i weight_i |x_i|, whose minima have many zeros.

    Args:
        weight: a number or one for each coordinate, not negative.

    Example:
        >>> import numpy as np, saddlepoint as sp
        >>> p = sp.L1(0.5)
        >>> p.prox(np.array([3.0, -0.2, -1.0]), 2.0).tolist(), p(np.array([3.0, -1.0]))
        ([2.0, 0.0, 0.0], 2.0)
        >>> sp.L1(0.1) + sp.NonNegative()
        L1(0.1) + NonNegative()
    """

    def __init__(self, weight: Any = 1.0) -> None:
        super().__init__(weight, name="L1")


class Box(L1Box):
    """The constraint lower <= x <= upper.

    Args:
        lower, upper: numbers, or one for each coordinate. They may be infinite, and they may be equal.

    Example:
        >>> import numpy as np, saddlepoint as sp
        >>> p = sp.Box(0.0, [1.0, 2.0])
        >>> p.prox(np.array([-3.0, 5.0]), 1.0).tolist(), p.conjugate(np.array([-3.0, 5.0]))
        ([0.0, 2.0], 10.0)
        >>> p.fenchel_gap(np.array([0.0, 2.0]), np.array([-3.0, 5.0]))
        0.0
    """

    def __init__(self, lower: Any = -math.inf, upper: Any = math.inf) -> None:
        super().__init__(0.0, lower, upper, name="Box")


class NonNegative(L1Box):
    """The constraint x >= 0.

    Example:
        >>> import numpy as np, saddlepoint as sp
        >>> sp.NonNegative().prox(np.array([-1.0, 2.0]), 1.0).tolist()
        [0.0, 2.0]
    """

    def __init__(self) -> None:
        super().__init__(0.0, 0.0, math.inf, name="NonNegative")


def limited(v: Array, low: Any, high: Any) -> Array:
    """The entries of v, limited to the range from ``low`` to ``high``: numbers, vectors, or None for no limit."""
    if isinstance(v, np.ndarray):
        if low is not None:
            v = np.maximum(v, low)
        return v if high is None else np.minimum(v, high)
    if is_live(low) and is_live(high):  # where they are equal, clip has no derivatives, or the means of both sides
        return choose(v < low, low, choose(v > high, high, v))
    array: Array = namespace(v).clip(v, low, high)
    return array


def _positive(a: Array) -> Array:
    return limited(a, 0.0, None)


def _beyond_zero(bound: float | Array) -> Any:
    return max(bound, 0.0) if isinstance(bound, float) else _positive(bound)


def _is_float32(numbers: float | Array) -> bool:
    """Whether the numbers are float32 numbers."""
    exact = np.asarray(numbers, dtype=np.float64)
    with np.errstate(over="ignore", under="ignore"):
        return bool((exact.astype(np.float32) == exact).all())


def _first(numbers: Coordinates, wrong: Callable[[Array], Array]) -> str:
    """The first of the numbers that is wrong, and where it is."""
    values = numbers.everywhere(1)
    i = int(np.argmax(wrong(values)))
    return f"{values[i]:g}" + ("" if numbers.size is None else f" at index {i}")
