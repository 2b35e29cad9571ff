"""Regions in which a gradient does not change at all, although its function is strongly convex.

Gradients at two points differ by at least mu times the distance of the points. A gradient that is the same, to the last
bit, at points far enough apart is therefore wrong. Code that rounds its argument or its result coarsely computes such
gradients, and so does code that answers from a cache whose keys are rounded points. Differences of gradients around a
point do not show these errors if all of the points lie in one such region.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from saddlepoint.ground.arrays import Array, eps_of, space_of
from saddlepoint.ground.linalg import norm
from saddlepoint.parts.functions.curvature_estimate import SHORTEST
from saddlepoint.parts.functions.gradient_noise import NOISE, UNITS, eps_of_code
from saddlepoint.parts.functions.probes import gradient_or_none, length_scale, random_directions
from saddlepoint.parts.functions.smooth import Gradient, Smooth

AXES = 3  # number of coordinates along which the size of a region is searched for
FARTHER = 16  # powers of two by which a step is made longer as long as the gradient does not change
FARTHEST = 256  # powers of two from ``length_scale`` to the longest step
APART = 2.0  # factor by which the shortest step exceeds the one on which rounding could hide the change of a gradient


class Plateau(NamedTuple):
    """A region around a point in which a gradient does not change.

    Attributes:
        error: a bound on the error of the gradient at the point, if the region is a box; 0 if there is no region.
        calls: number of gradients that were evaluated.
    """

    error: float
    calls: int


def plateau(f: Smooth, x: Array, p: Array, noise: float) -> Plateau:
    """Search for a region around x in which the gradient of f, p at x, does not change.

    One gradient is evaluated close to x. If it is p as well, or if it jumps, the size of the region is measured along a
    few coordinates. The region is taken for a box: the error of a gradient that belongs to one of its points is at most
    L times its diagonal. Gradients of code in a lower precision do not change in tiny regions; they are no plateau if
    certificates assume errors of that size of such code.

    Args:
        f: the function.
        x: the point.
        p: the gradient there.
        noise: the norm of the errors of gradients around x, as ``noise_level`` has measured it.
    """
    grad, L, length = f.grad, f.L, length_scale(x, p, f.L)
    rounding = 2.0 * UNITS * eps_of(p) * (norm(p) + L * norm(x) or L * length) + 2.0 * NOISE * noise
    shortest = APART * rounding / f.mu if f.mu > 0.0 else math.inf
    if not shortest < length or f.mu * shortest < SHORTEST:
        return Plateau(0.0, 0)
    m, (aside, _) = x.shape[0], random_directions(x, 0)
    calls = 0
    for sign in (1.0, -1.0):
        calls += 1
        change, step = _change(grad, x, p, (sign * shortest) * aside)
        if not math.isnan(change):
            break
    jump, is_flat = change - L * step, change == 0.0 and f.mu * step > rounding
    if not (is_flat or rounding < jump < math.inf):
        return Plateau(0.0, calls)
    if change > 0.0:  # a change that falls with the step is no jump: L is too small
        calls += 1
        closer, _ = _change(grad, x, p, (sign * shortest / 16.0) * aside)
        if 0.0 < closer < 0.25 * change:
            return Plateau(0.0, calls)
    extent, count = step if is_flat else 0.0, math.ceil(math.log2(length / shortest))
    for axis in np.random.default_rng(0).permutation(m)[:AXES]:
        unit = np.zeros(m)
        unit[axis] = 1.0
        for sign in (1.0, -1.0):
            found, taken = _extent(grad, x, p, space_of(x).cast(sign * unit), shortest, count)
            extent, calls = max(extent, found), calls + taken
    error = NOISE * max(L * math.sqrt(m) * extent, jump)
    code = eps_of_code(grad, x, p) if math.isnan(f.accuracy) else 0.0
    return Plateau(error if error > 2.0 * NOISE * code * (norm(p) + L * norm(x)) else 0.0, calls + 1)


def _change(grad: Gradient, x: Array, p: Array, step: Array) -> tuple[float, float]:
    """The length of the change of the gradient on a step, and the length of the step; NaN outside the domain."""
    end = x + step
    q = gradient_or_none(grad, end)
    return (math.nan if q is None else norm(q - p)), norm(end - x)


def _extent(grad: Gradient, x: Array, p: Array, direction: Array, shortest: float, count: int) -> tuple[float, int]:
    """The longest step found on which the gradient does not change, and the gradients that were evaluated.

    Steps are ``shortest`` times powers of two, first the power ``count``. As long as nothing changes, the power is
    raised. After that the interval between a step with a change and one without is halved.
    """
    extent, calls, low, high = 0.0, 0, 0, count
    is_bounded = False  # whether a step with a change is known
    while low + 1 < high or not is_bounded:
        k = (low + high) // 2 if is_bounded else high
        change, step = _change(grad, x, p, math.ldexp(shortest, k) * direction)
        calls += 1
        if change == 0.0:
            extent, low = step, k
            if not is_bounded and k >= count + FARTHEST:
                break
            high = high if is_bounded else k + FARTHER
        else:
            is_bounded, high = True, k
    return extent, calls
