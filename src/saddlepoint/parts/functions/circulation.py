"""Sums of a gradient around closed polygons, which prove that it is not the gradient of any convex function.

Differences of gradients at single points prove nothing about the symmetry of the Jacobian, because the curvature of the
function may change in between. Around a closed polygon, however, the work of a gradient is zero, and Theorem
``circulation_bound`` says how large the sum over the corners can be for a function with the constants mu and L,
whatever it does between the corners.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import NamedTuple

from saddlepoint.ground.arrays import Array, namespace, read_numbers
from saddlepoint.ground.linalg import inners, may_be_on_gpu
from saddlepoint.parts.functions.probes import gradient_or_none
from saddlepoint.parts.functions.smooth import Gradient
from saddlepoint.theory.smoothness import circulation_bound, smooth_lemma

TOGETHER = 16  # most corners at which gradients are kept on a GPU at the same time


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
    mu, L = constants
    base = gradient_or_none(grad, centre)
    if base is None:
        return None
    total = slack = error = 0.0
    off = 2.0 * wrong / radius  # the error of the difference of two slopes
    around = ((math.cos(angle), math.sin(angle)) for angle in (2.0 * math.pi * k / corners for k in range(corners)))
    points = ((radius * x) * plane[0] + (radius * y) * plane[1] + centre for x, y in around)
    sides = _sides_on_device if may_be_on_gpu(centre) and corners <= TOGETHER else _sides
    for side in sides(grad, points, (centre, base), 1.0 / radius):
        if side is None:
            return None
        length, size = math.sqrt(side.length2), math.sqrt(side.change2)
        total += 0.5 * side.work
        slack += smooth_lemma(side.along, length * length, size * size, mu, L)
        error += 0.5 * off * length
        error += circulation_bound(off * (length + (2.0 * size + off) / (L + mu)), mu, L)
    area = 0.5 * corners * math.sin(2.0 * math.pi / corners)
    return Circulation(abs(total) / area, max(circulation_bound(slack, mu, L), 0.0) / area, error / area)


class Side(NamedTuple):
    """Numbers of a side of a polygon, in units of the radius, so that no square overflows or underflows.

    Attributes:
        work: the product of the side and the sum of the slopes at its ends. The slope at the centre is subtracted from
            slopes: a constant does not change the sum of all, but its rounding errors would.
        along: the product of the side and the difference of the two slopes.
        length2, change2: the squares of the lengths of the side and of this difference.
    """

    work: float
    along: float
    length2: float
    change2: float


def _sides(grad: Gradient, points: Iterable[Array], origin: tuple[Array, Array], unit: float) -> Iterator[Side | None]:
    """The sides between the points, the last one back to the first; None where the gradient cannot be evaluated."""
    first: tuple[Array, Array] | None = None
    last: tuple[Array, Array] | None = None
    for point in chain(points, [None]):
        if point is None:
            here = first
        else:
            slope = gradient_or_none(grad, point)
            if slope is None:
                yield None
                return
            here = (point - origin[0]) * unit, (slope - origin[1]) * unit
        first = first or here
        if last is not None and here is not None:
            side, change = here[0] - last[0], here[1] - last[1]
            products = inners([side, change, here[1] + last[1]]).tolist()
            yield Side(products[0][2], products[0][1], products[0][0], products[1][1])
        last = here


def _sides_on_device(
    grad: Gradient, points: Iterable[Array], origin: tuple[Array, Array], unit: float
) -> Iterator[Side | None]:
    """The same on a GPU, where all gradients are evaluated first, and all numbers are asked for together."""
    corners = list(points)
    try:
        slopes = [grad(point) for point in corners]
        numbers = read_numbers(_products_of_sides(corners, slopes, origin, unit))
    except Exception:  # whatever a gradient raises outside its domain
        yield None
        return
    for column in numbers.T.tolist():
        yield Side(*column) if all(map(math.isfinite, column)) else None


def _products_of_sides(corners: list[Array], slopes: list[Array], origin: tuple[Array, Array], unit: float) -> Array:
    xp = namespace(origin[0])
    x, p = (
        (xp.astype(xp.stack(vectors), xp.float64) - xp.astype(zero, xp.float64)) * unit
        for vectors, zero in ((corners, origin[0]), (slopes, origin[1]))
    )
    next_x, next_p = (xp.roll(v, -1, axis=0) for v in (x, p))
    side, change = next_x - x, next_p - p
    pairs = (side, next_p + p), (side, change), (side, side), (change, change)
    products: Array = xp.stack([xp.sum(a * b, axis=1) for a, b in pairs])
    return products
