"""The slope of a function's values along a line, compared with its gradient."""

from __future__ import annotations

import math

import numpy as np

from saddlepoint.ground.arrays import Array, eps_of
from saddlepoint.ground.linalg import inner, norm
from saddlepoint.parts.functions.gradient_noise import eps_of_entries
from saddlepoint.parts.functions.probes import ASIDE, random_directions
from saddlepoint.parts.functions.smooth import Gradient, Value


def slope_error(grad: Gradient, value: Value, x: Array, length: float, seed: int = 0) -> tuple[float, float]:
    """Compare the slope of the values along a random line with the gradient; return the difference and its uncertainty.

    Both are relative to the gradient.
    """
    wrong, error, size = slope_difference(grad, value, x, length, seed)
    return wrong / size, error / size


def slope_difference(
    grad: Gradient, value: Value, x: Array, length: float, seed: int = 0
) -> tuple[float, float, float]:
    """The difference of ``slope_error``, its uncertainty, and the length of the gradient.

    Values that are all numbers of float32 are taken to have the rounding errors of float32.
    """
    offset, u = random_directions(x, seed)
    z = x + (ASIDE * length) * offset
    p = grad(z)
    d = length * eps_of(x) ** 0.25
    values = [float(value(z + t * u)) for t in (-2.0 * d, -d, 0.0, d, 2.0 * d)]
    wide, narrow = (values[4] - values[0]) / (4.0 * d), (values[3] - values[1]) / (2.0 * d)
    slope = (4.0 * narrow - wide) / 3.0
    rounding = 8.0 * max(eps_of(x), eps_of_entries(np.array(values))) * abs(values[2]) / d
    return abs(slope - inner(p, u)), abs(wide - narrow) + rounding, max(norm(p), math.ulp(0.0))
