r"""The simplex: vectors that are not negative and have a given sum, such as probabilities.

The nearest point to v is max(v - theta, 0), where theta is the largest of (sum of the k largest entries - total)/k over
k = 1, ..., n. Entries are taken relative to the largest one, and theta is corrected once by what the sum is off, so
that the sum of the result is within a few roundings of the total.

A stored x is hardly ever in the simplex exactly. Bounds are therefore about max(x, 0) total/S, where S is the sum of
max(x, 0): its distance to max(x, 0) is at most |S - total|, and its gap is that of max(x, 0) times total/S.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from saddlepoint.ground.arrays import Array, namespace
from saddlepoint.ground.elementwise import choose
from saddlepoint.parts.simple.base import Pairing, Structured, Support, on_host
from saddlepoint.parts.simple.bounds import norm_bound, raised, sum_error, sum_of_products, wide
from saddlepoint.parts.simple.coordinates import positive_or_live
from saddlepoint.parts.simple.l1_box import UP, limited

SHORT = 1024  # vectors up to this length are sorted as a whole
COUNTS = np.arange(1.0, SHORT + 1.0)  # the numbers k by which sums of the k largest entries are divided


class Simplex(Structured):
    """The constraint x >= 0, sum(x) = total; probabilities if total is 1.

    Args:
        total: the sum, a positive number.

    Example:
        >>> import numpy as np, saddlepoint as sp
        >>> p = sp.Simplex()
        >>> p.prox(np.array([0.5, 1.0, -3.0]), 1.0).tolist(), p.conjugate(np.array([0.5, 1.0, -3.0]))
        ([0.25, 0.75, 0.0], 1.0)
    """

    def __init__(self, total: float = 1.0) -> None:
        super().__init__()
        self.total = positive_or_live(total, "total of Simplex")

    def value(self, x: Array) -> float:
        """0.0 in the simplex, infinite outside."""
        return 0.0 if self.is_inside(x) else math.inf

    def prox(self, v: Array, t: float) -> Array:
        """The nearest point of the simplex, whatever t is."""
        return self.project(v)

    def project(self, x: Array) -> Array:
        """The nearest point of the simplex."""
        return nearest_in_simplex(x, self.total)

    def conjugate(self, s: Array) -> float:
        """The total times the largest entry of s."""
        return self.total * float(namespace(s).max(s))

    def outside(self, x: Array) -> float:
        """The length of the negative part of x, plus what the sum of the positive part is off the total."""
        return self._outside(wide(x))[0]

    def _outside(self, x: Array) -> tuple[float, float]:
        """Bounds on the length of x' - x and on the sum of its absolute values, where x' is max(x, 0) total/S."""
        below, off = limited(-x, 0.0, None), sum_error(limited(x, 0.0, None), self.total)
        size = norm_bound(below)
        return size + off, off if size == 0.0 else raised(math.sqrt(int(x.shape[0])) * size + off, 3)

    def diameter_in(self, n: int | None) -> float:
        """The distance of two corners."""
        return 0.0 if n == 1 else raised(math.sqrt(2.0) * self.total, 2)

    def subgradient(self, xh: Array, s: Array) -> Array:
        """One number where xh is positive, the mean of s there, and at most this number elsewhere."""
        xp = namespace(s)
        positive = xp.astype(xh > 0.0, s.dtype)
        level = xp.sum(positive * s) / xp.sum(positive) + 0.0 * s
        return choose((xh > 0.0) | (s > level), level, s)

    def fenchel_gap(self, x: Array, s: Array) -> float:
        """sum_i (max s - s_i) x_i."""
        x, s = limited(wide(x), 0.0, None), wide(s)
        total = float(namespace(x).sum(x))
        if not 0.0 < total < math.inf:
            return math.inf
        gap = sum_of_products([(float(namespace(s).max(s)) - s, x)], 1)
        return raised(gap * (self.total / total), int(x.shape[0]) + 3)

    def pairing(self, x: Array, s: Array) -> Pairing:
        """The usual proof, with a bound on the sum of what the entries of x are off."""
        dual = self.dual_point(s)
        gap, (off, total) = self.fenchel_gap(x, dual), self._outside(wide(x))
        return Pairing(dual, off, 0.0, gap, gap, total)

    def along_face(self, x: Array, moves: Array) -> Array:
        """The entries where x is positive, less their mean, so that the sum stays."""
        xp = namespace(moves)
        positive = xp.astype(x > 0.0, moves.dtype)
        kept = moves * positive
        found: Array = kept - positive * (xp.sum(kept, axis=-1, keepdims=True) / xp.sum(positive))
        return found

    def support(self, x: Array, w: Array, reach_x: float, reach_w: Any) -> Array:
        """An entry is zero if its w is above the smallest one beyond the errors."""
        x, w, reach = on_host(x), on_host(w), on_host(reach_w)
        slack = (UP - 1.0) * (np.abs(w) + reach)
        found = np.full(int(x.shape[0]), Support.UNDECIDED, dtype=np.int8)
        found[x > UP * reach_x] = Support.OFF
        found[w - reach - slack > np.min(w + reach + slack)] = Support.ZERO
        return found

    def __repr__(self) -> str:
        return "Simplex()" if self.total == 1.0 else f"Simplex({self.total:g})"


def nearest_in_simplex(v: Array, total: float) -> Array:
    """The vector x >= 0 with the sum ``total`` that is nearest to v, computed in float64."""
    if isinstance(v, np.ndarray):
        return _nearest_with_numpy(v, total)
    xp = namespace(v)
    u = wide(v - xp.max(v))
    ranked = xp.sort(u, descending=True)
    means = (xp.cumulative_sum(ranked) - total) / xp.cumulative_sum(xp.ones_like(ranked))
    x = limited(u - xp.max(means), 0.0, None)
    off = (xp.sum(x) - total) / xp.sum(xp.astype(x > 0.0, x.dtype))
    found: Array = xp.astype(limited(xp.where(x > 0.0, x - off, x), 0.0, None), v.dtype)
    return found


def _nearest_with_numpy(v: Array, total: float) -> Array:
    u = wide(v - v.max())
    near = u if u.shape[0] <= SHORT else u[u > -total]  # smaller entries become zero
    means = np.sort(near)[::-1].cumsum()
    means -= total
    means /= COUNTS[: means.shape[0]] if means.shape[0] <= SHORT else np.arange(1.0, means.shape[0] + 1.0)
    x = np.maximum(u - means.max(initial=-math.inf), 0.0)
    positive = x > 0.0
    off = (x.sum() - total) / max(np.count_nonzero(positive), 1)
    np.subtract(x, off, out=x, where=positive)
    np.maximum(x, 0.0, out=x)
    return np.asarray(x, dtype=v.dtype)
