"""The best bounds on the optimal value that several points and multipliers have proven together."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from saddlepoint.apps.programs.certificate import feasible_box, lower_bound, point_in
from saddlepoint.apps.programs.data import Data
from saddlepoint.apps.programs.exact import Exact, ExactPoint, is_small, rounded
from saddlepoint.apps.programs.result import interval_width
from saddlepoint.ground.arrays import Array

# Rows and variables that are so close to an end, relative to their sizes, are moved to it; tried in this order.
NEAR = (1e-10, 1e-8, 1e-6)


class Evidence:
    """An interval for the optimal value that only shrinks, and the points that prove its ends.

    ``given`` is a program with the same objective of which every point satisfies this one, if this one is relaxed. When
    it is ``late``, a point is tried once, and not again after it was moved.

    Attributes:
        lower, upper: the ends.
        x: a floating-point vector close to a point that satisfies the program; None if none is proven to exist.
        y: the multipliers that prove the lower end; None if none do.
        why_lower, why_upper: why an end is infinite.
    """

    def __init__(self, data: Data, given: Data | None = None, late: Callable[[], bool] = lambda: False) -> None:
        self.data, self.late = data, late
        self.given = None if given is data else given
        self.lower, self.upper = -math.inf, math.inf
        self.x: Array | None = None
        self.y: Array | None = None
        self.why_lower = self.why_upper = "nothing was examined"
        self._exact: Exact | None = None

    @property
    def width(self) -> float:
        """The length of the interval, rounded up; infinite if an end is."""
        return interval_width(self.lower, self.upper)

    def add(self, x: Array, y: Array) -> None:
        """Examine a point and multipliers with rounded arithmetic."""
        self.add_point(x)
        self.add_multipliers(x, y)

    def add_point(self, x: Array) -> None:
        """Examine a point."""
        for data in (self.data, *([] if self.given is None else [self.given])):
            for near in (0.0, *NEAR):
                found = feasible_box(data, x, near)
                if found.box is not None:
                    if found.value < self.upper:
                        self.upper, self.x, self.why_upper = found.value, point_in(found.box, data), ""
                    return
                if self.x is None:
                    self.why_upper = found.reason
                if self.late():
                    return

    def add_multipliers(self, x: Array, y: Array) -> None:
        """Examine multipliers, with the objective linearised at x."""
        found = lower_bound(self.data, x, y, self.upper)
        self._add_lower(found.value, y)
        if self.y is None:
            self.why_lower = found.reason

    def add_exactly(self, x: Array, y: Array) -> None:
        """Examine both in rational arithmetic, if the program is small."""
        if not is_small(self.data) or not (np.isfinite(x).all() and np.isfinite(y).all()):
            return
        found = self.exact.point(x)
        if found is not None:
            self._add_exact_point(found)
        self._add_lower(self.exact.lower(x, y), y)

    def add_fractions(self, x: list[Fraction], y: list[Fraction]) -> None:
        """Examine a point and multipliers that are fractions, in rational arithmetic."""
        if self.exact.satisfied(x):
            self._add_exact_point(ExactPoint(x, self.exact.value(x)))
        if bool((self.data.curvature >= 0.0).all()):
            self._add_lower(self.exact.bound(x, y), rounded(y))

    @property
    def exact(self) -> Exact:
        """The program in fractions."""
        self._exact = self._exact or Exact(self.data)
        return self._exact

    def _add_exact_point(self, found: ExactPoint) -> None:
        if found.upper < self.upper:
            self.upper, self.why_upper = found.upper, ""
            self.x = np.clip(rounded(found.x), self.data.x_lower, self.data.x_upper)

    def _add_lower(self, lower: float, y: Array) -> None:
        if lower > self.lower:
            self.lower, self.y, self.why_lower = lower, y, ""
