"""Lower and upper ends of a vector, and what their barriers contribute to a step of the interior-point method."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from saddlepoint.ground.arrays import Array

START = 1e-2  # least multiplier to begin with


class Ends:
    """Lower and upper ends of a vector, and what the barrier of each contributes to a step."""

    def __init__(self, low: Array, high: Array, free: Array) -> None:
        self.ends = low, high
        self.has = np.isfinite(low) & free, np.isfinite(high) & free
        self.count = int(self.has[0].sum() + self.has[1].sum())

    def inside(self, v: Array, margin: float = 1.0) -> Array:
        """A vector close to v whose distance to the ends is a margin, or a quarter of the way between them."""
        low, high = self.ends
        with np.errstate(all="ignore"):
            room = np.where(np.isfinite(high - low), np.minimum(margin, 0.25 * (high - low)), margin)
            v = np.where(self.has[0], np.maximum(v, low + room), v)
            return np.where(self.has[1], np.minimum(v, high - room), v)

    def well_inside(self, v: Array) -> Array:
        """The same with a margin that grows with the distance from v to the ends, where it is outside."""
        low, high = self.ends
        with np.errstate(all="ignore"):
            outside = np.maximum(np.where(self.has[0], low - v, 0.0), np.where(self.has[1], v - high, 0.0))
        return self.inside(v, max(1.0, 1.5 * float(np.max(outside, initial=0.0))))

    def start(self, v: Array, slope: Array) -> list[Array]:
        """Positive multipliers of the ends whose difference is about the slope of the objective.

        Their products with the distances from v to the ends are of similar sizes between two ends, however close.
        """
        one = self.has[0] ^ self.has[1]
        wrong = np.where(one, np.where(self.has[0], -slope, slope), 0.0)
        used = np.abs(slope)[self.has[0] | self.has[1]]
        least = max(1.5 * float(np.max(wrong, initial=0.0)), 0.5 * float(used.mean()) if used.size else 0.0, START)
        gaps = self.gaps(v)
        z = [np.where(has, np.maximum(w, 0.0) + least, 0.0) for has, w in zip(self.has, (slope, -slope), strict=True)]
        mu = self.product(gaps, z) / max(1, self.count)
        between = self.has[0] & self.has[1]
        return [np.where(between, a + mu / gap, a) for a, gap in zip(z, gaps, strict=True)]

    def gaps(self, v: Array) -> list[Array]:
        """The distances to the two ends, 1 where there is none."""
        low, high = self.ends
        with np.errstate(all="ignore"):
            return [np.where(self.has[0], v - low, 1.0), np.where(self.has[1], high - v, 1.0)]

    def product(self, gaps: list[Array], z: list[Array]) -> float:
        """The sum of the products of distances and multipliers."""
        return float(gaps[0] @ z[0] + gaps[1] @ z[1])

    def weights(self, gaps: list[Array], z: list[Array]) -> Array:
        """What the barriers add to the diagonal of the linear system."""
        return z[0] / gaps[0] + z[1] / gaps[1]

    def push(self, gaps: list[Array], z: list[Array], c: Any) -> Array:
        """What the barriers add to the right-hand side, for the wanted products c of gaps and multipliers."""
        low = np.where(self.has[0], c[0] / gaps[0] - z[0], 0.0)
        return low - np.where(self.has[1], c[1] / gaps[1] - z[1], 0.0)

    def duals(self, gaps: list[Array], z: list[Array], d: Array, c: Any) -> list[Array]:
        """The steps of the multipliers for a step d."""
        return [
            np.where(self.has[0], (c[0] - z[0] * d) / gaps[0] - z[0], 0.0),
            np.where(self.has[1], (c[1] + z[1] * d) / gaps[1] - z[1], 0.0),
        ]

    def second(self, target: float, d: Array, dz: list[Array]) -> tuple[Any, Any]:
        """The products to aim at: the target, less the second-order terms of a step."""
        return target - d * dz[0], target + d * dz[1]

    def longest(self, gaps: list[Array], d: Array) -> float:
        """The longest step along d that stays inside the ends."""
        return min(_longest(gaps[0], np.where(self.has[0], d, 0.0)), _longest(gaps[1], np.where(self.has[1], -d, 0.0)))

    def longest_dual(self, z: list[Array], dz: list[Array]) -> float:
        """The longest step of the multipliers for which they stay positive."""
        return min(_longest(z[0], dz[0]), _longest(z[1], dz[1]))

    def after(self, gaps: list[Array], z: list[Array], d: Array, dz: list[Array], primal: float, dual: float) -> float:
        """The sum of the products after steps of these lengths."""
        low = np.where(self.has[0], (gaps[0] + primal * d) * (z[0] + dual * dz[0]), 0.0)
        high = np.where(self.has[1], (gaps[1] - primal * d) * (z[1] + dual * dz[1]), 0.0)
        return float(low.sum() + high.sum())


def _longest(v: Array, d: Array) -> float:
    """The longest step along d for which v stays positive."""
    falls = d < 0.0
    return float(np.min(v[falls] / -d[falls])) if falls.any() else math.inf
