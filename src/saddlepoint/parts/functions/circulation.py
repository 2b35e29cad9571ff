"""Sums of a gradient around closed polygons, which prove that it is not the gradient of any convex function.

Differences of gradients at single points prove nothing about the symmetry of the Jacobian, because the curvature of the
function may change in between. Around a closed polygon, however, the work of a gradient is zero, and Theorem
``circulation_bound`` says how large the sum over the corners can be for a function with the constants mu and L,
whatever it does between the corners.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from saddlepoint.ground.arrays import Array
from saddlepoint.ground.linalg import inners
from saddlepoint.parts.functions.probes import gradient_or_none
from saddlepoint.parts.functions.smooth import Gradient
from saddlepoint.theory.smoothness import circulation_bound, smooth_lemma


class Circulation(NamedTuple):
    """The sum of a gradient around one polygon.

    Attributes:
        skew: the sum divided by the area: |<J u, v> - <u, J v>| if the Jacobian J is constant.
        bound: the largest skew that a function with the constants mu and L can have.
        error: by how much errors of the gradients can change the difference of the two.
    """

    skew: float
    bound: float
    error: float

    @property
    def is_proof(self) -> bool:
        """Whether no function with these constants can have these gradients."""
        return self.skew > self.bound + self.error


def circulation(
    grad: Gradient,
    centre: Array,
    plane: tuple[Array, Array],
    radius: float,
    corners: int,
    constants: tuple[float, float],
    wrong: float,
) -> Circulation | None:
    """The sum around a regular polygon in a plane; None if the gradient cannot be evaluated at one of the corners.

    Args:
        grad: the gradient.
        centre: the centre of the polygon.
        plane: two orthogonal vectors of length 1.
        radius: the distance of the corners from the centre.
        corners: their number, which is also that of the calls, besides one at the centre.
        constants: mu and L.
        wrong: a bound on the error of one gradient.
    """
    u, v = plane
    mu, L = constants
    base = gradient_or_none(grad, centre)
    if base is None:
        return None
    total = slack = error = 0.0
    off = 2.0 * wrong / radius  # the error of the difference of two slopes
    first: tuple[Array, Array] | None = None
    last: tuple[Array, Array] | None = None
    for k in range(corners + 1):
        if k == corners:
            here = first
        else:
            angle = 2.0 * math.pi * k / corners
            point = (radius * math.cos(angle)) * u + (radius * math.sin(angle)) * v + centre
            slope = gradient_or_none(grad, point)
            if slope is None:
                return None
            # All lengths are in units of the radius, so that no square overflows or underflows. A constant does not
            # change the sum, but its rounding errors would.
            here = (point - centre) * (1.0 / radius), (slope - base) * (1.0 / radius)
        if first is None:
            first = here
        if last is not None and here is not None:
            side, change = here[0] - last[0], here[1] - last[1]
            products = inners([side, change, here[1] + last[1]])
            length, size = math.sqrt(products[0, 0]), math.sqrt(products[1, 1])
            total += 0.5 * float(products[0, 2])
            slack += smooth_lemma(float(products[0, 1]), length * length, size * size, mu, L)
            error += 0.5 * off * length
            error += circulation_bound(off * (length + (2.0 * size + off) / (L + mu)), mu, L)
        last = here
    area = 0.5 * corners * math.sin(2.0 * math.pi / corners)
    return Circulation(abs(total) / area, max(circulation_bound(slack, mu, L), 0.0) / area, error / area)
