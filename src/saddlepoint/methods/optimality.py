"""The field together with subgradients of the simple terms, which is small near the solution only.

Methods with proven inner accuracies compute their bounds from it, as certificates do.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from saddlepoint.ground.arrays import Array
from saddlepoint.ground.linalg import norm
from saddlepoint.problems.saddle import Saddle
from saddlepoint.problems.terms import term_at
from saddlepoint.theory.certificate import weighted_bound


class Optimality(NamedTuple):
    """The residuals Fx + s and Fy + r with subgradients s and r, and what the simple terms add to the duality gap.

    The excess is 0 without simple terms. It is not known of a term of one's own that has no value, and then it is 0,
    too: inner accuracies are not proven in this case. Certificates of results do not use it.
    """

    Rx: Array
    Ry: Array
    excess: float

    def gap(self, f: Saddle) -> float:
        """A bound on the duality gap."""
        return 0.5 * self.weighted(f)

    def weighted(self, f: Saddle) -> float:
        """A bound on mu_x |x - x*|^2 + mu_y |y - y*|^2."""
        return weighted_bound(f.mu_x, f.mu_y, norm(self.Rx), norm(self.Ry)) + 2.0 * self.excess

    def squared(self, f: Saddle) -> float:
        """A bound on |x - x*|^2 + |y - y*|^2; it serves as C_0, which the paper's schedules need."""
        return self.weighted(f) / min(f.mu_x, f.mu_y)


def optimality(f: Saddle, x: Array, y: Array, Fx: Array, Fy: Array) -> Optimality:
    """The conditions of optimality at (x, y), where the field is (Fx, Fy)."""
    if not f.has_simple:
        return Optimality(Fx, Fy, 0.0)
    of_x, of_y = term_at(f.g, x, Fx), term_at(f.h, y, Fy)
    Rx = Fx if of_x.slope is None else Fx + of_x.slope
    Ry = Fy if of_y.slope is None else Fy + of_y.slope
    excess = of_x.excess + of_y.excess
    return Optimality(Rx, Ry, excess if math.isfinite(excess) else 0.0)
