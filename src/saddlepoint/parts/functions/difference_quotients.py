"""Gradients that are computed from differences of values: how they are recognised without the values.

A value v is a whole multiple of the unit in its last place, so that a quotient (v(x + h e) - v(x))/h is a multiple of
that unit over h. Near x, all quotients times h are multiples of the same number, which is much larger than their own
unit of rounding. High differences along a line cancel everything that is smooth; what they leave of such quotients are
small multiples of that number. If the step h depends on x in one of a few usual ways, this number is the same on all
lines. If it depends on x smoothly in any other way, or is another one for each entry, it hardly changes on a short
line, but differs from line to line.

The errors of such gradients are more than noise. Forward differences of a quadratic function, for example, are the
exact gradient of another one, whose minimiser is elsewhere, so that gradients alone do not show how wrong they are.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from saddlepoint.ground.arrays import Array, eps_of, space_of, to_host
from saddlepoint.ground.linalg import max_abs
from saddlepoint.parts.functions.gradient_noise import FINER, FURTHER, MANY, Noise, eps_of_entries, gradients_on_line
from saddlepoint.parts.functions.probes import Unexaminable
from saddlepoint.parts.functions.smooth import Gradient

NOISY = 30.0  # least noise, in units of rounding, at which a spacing can be seen
FINE = 2.0**-25  # largest spacing, relative to the entry: those of code in float32 are larger
ENTRIES = 64  # most entries of a gradient that are examined
DIVISORS = range(1, 9)  # the smallest multiple that is seen may be one of these numbers times the spacing
ROUNDING = 8.0  # bound on the rounding error of a third difference, in units of rounding of the largest entry
CLEARLY = 8.0  # a difference is not zero if it exceeds its rounding error this many times
ALIKE = 16.0  # largest ratio of the spacings of two entries: all have the same, seen with different divisors
SQUARE_ROOT, CUBE_ROOT = 2.0**-26, 2.0 ** (-52 / 3)  # of the machine epsilon: best for forward and central differences
CHANCE = 1e-6  # largest probability that other noise would look like this
# The usual steps, up to a factor, as functions of the entries of x. Code often divides by the step that is left after
# x + h was rounded. That is a multiple of h up to a relative error of eps x/h only, so that h has to be known: the last
# three are those that SciPy takes unless it is given others.
STEPS: tuple[Callable[[Array], Array], ...] = (
    np.ones_like,
    np.abs,
    lambda x: np.maximum(1.0, np.abs(x)),
    lambda x: 1.0 + np.abs(x),
    lambda x: (x + SQUARE_ROOT) - x,
    lambda x: (x + SQUARE_ROOT * np.copysign(np.maximum(1.0, np.abs(x)), x)) - x,
    lambda x: (x + CUBE_ROOT * np.maximum(1.0, np.abs(x))) - (x - CUBE_ROOT * np.maximum(1.0, np.abs(x))),
)


def seem_quotients(grad: Gradient, x: Array, p: Array, length: float, L: float, noise: Noise) -> tuple[bool, int]:
    """Whether the gradients near x are rounded as quotients of differences of values are.

    The second number is how many gradients were evaluated. None is where the noise is too small to show it, or so large
    that such gradients and those of code in a lower precision look the same.

    Args:
        grad: the gradient.
        x: the point.
        p: the gradient there.
        length: a length for steps around x.
        L: the smoothness of the function.
        noise: the noise of gradients there.
    """
    n = x.shape[0]
    if space_of(x).is_sharded or not noise.total > NOISY * float(np.linalg.norm(noise.rounding)):
        return False, 0
    if noise.total > FINE * math.sqrt(n) * (max_abs(p) + L * length):
        return False, 0
    points: list[Array] = []

    def recorded(point: Array) -> Array:
        points.append(point)
        return grad(point)

    step, seeds = length * eps_of(p) ** (1.0 / 3.0) * FINER**-3, range(2 if n >= MANY else 4)
    try:
        near = [_table(recorded, points, x, FURTHER * length, step, seed) for seed in seeds]
        far = _table(recorded, points, x, length, step, 0)
    except Unexaminable:
        return False, len(points)
    if min(map(eps_of_entries, far[1])) > eps_of(p):  # code in a lower precision
        return False, len(points)
    found = any(_are_quotients(near, far, usual, eps_of(p)) for usual in STEPS)
    return found or _are_quotients_on_each_line(near, far[1], eps_of(p)), len(points)


def _table(grad: Gradient, points: list[Array], x: Array, aside: float, step: float, seed: int) -> tuple[Array, Array]:
    """Points on a line and the gradients there, as the rows of two matrices; ``grad`` records its points."""
    slopes, _ = gradients_on_line(grad, x, aside, step, seed)
    rows = [np.stack([to_host(v[:ENTRIES]) for v in part]) for part in (points[-len(slopes) :], slopes)]
    return rows[0].astype(np.float64), rows[1].astype(np.float64)


def _are_quotients(
    near: list[tuple[Array, Array]], far: tuple[Array, Array], usual: Callable[[Array], Array], eps: float
) -> bool:
    """Whether gradients on lines are rounded as quotients of differences with one of the usual steps are."""
    spacings, sizes, chance = common_spacings([usual(at) * slopes for at, slopes in near], eps)
    if chance > math.log(CHANCE / len(STEPS)):
        return False
    return _are_fine(spacings, sizes) or _are_fine(*common_spacings([usual(far[0]) * far[1]], eps)[:2])


def _are_quotients_on_each_line(near: list[tuple[Array, Array]], far: Array, eps: float) -> bool:
    """The same for steps of any kind: each entry has a spacing of its own on each line.

    Powers of two are left out: a term that is computed in float32, or that cancels another one, has such spacings.
    """
    one_by_one = [common_spacings([slopes[:, [k]]], eps) for _, slopes in near for k in range(far.shape[1])]
    found = [(q, size, chance) for q, size, chance in one_by_one if chance < 0.0 and not _is_binary(q, size, eps)]
    if sum(chance for *_, chance in found) > math.log(CHANCE / len(STEPS)):
        return False
    distant = [common_spacings([far[:, [k]]], eps)[:2] for k in range(far.shape[1])]
    return any(_are_fine(q, size) for q, size in (*((q, size) for q, size, _ in found), *distant))


def _is_binary(spacing: Array, size: Array, eps: float) -> bool:
    """Whether a spacing is a small multiple of a power of two, up to the errors of the entry."""
    q, error = float(spacing[0]), ROUNDING * eps * float(size[0])
    power = math.ldexp(1.0, math.frexp(q)[1] - 4)  # q is 8 to 16 times as large
    return abs(q - round(q / power) * power) <= 2.0 * error


def _are_fine(spacings: Array, sizes: Array) -> bool:
    """Whether entries of these sizes are closer to each other than numbers of float32.

    Where a gradient is small, those are as close to each other, but not where it is large.
    """
    return bool(((spacings > 0.0) & (spacings <= FINE * sizes)).any())


def common_spacings(lines: list[Array], eps: float) -> tuple[Array, Array, float]:
    """For entries that are multiples of one number up to rounding and up to what is smooth, that number and their size.

    The third number is the logarithm of the chance that other noise would look like this.

    Args:
        lines: for each line, the vectors at points of equal distance on it, as the rows of a matrix.
        eps: the machine epsilon of the vectors.
    """
    thirds = np.abs(np.concatenate([np.diff(line, 3, axis=0) for line in lines]))
    sizes = np.max([np.abs(line).max(axis=0) for line in lines], axis=0)
    found: list[tuple[float, float]] = []
    total = 0.0
    for column, size in zip(thirds.T, sizes.tolist(), strict=True):
        q, chance = _spacing(np.sort(column), ROUNDING * eps * size)
        if chance < math.log(0.5):
            found.append((q, size))
            total += chance - math.log(0.5)  # it can be any part of the entries
    if not found or max(found)[0] > ALIKE * min(found)[0]:
        return np.zeros(0), np.zeros(0), 0.0
    return *np.array(found).T, total


def _spacing(sizes: Array, error: float) -> tuple[float, float]:
    """The number of which these sorted numbers are multiples up to errors, and the logarithm of the chance of that."""
    first = int(np.searchsorted(sizes, CLEARLY * error, side="right"))
    if first == len(sizes):
        return 0.0, 0.0
    for divisor in DIVISORS:
        q = float(sizes[first]) / divisor
        multiples = np.round(sizes / q)
        allowed = error * (1.0 + multiples / divisor)
        if (np.abs(sizes - multiples * q) <= allowed).all():
            chances = np.log(np.minimum(2.0 * allowed / q, 1.0))
            return q, min(float(chances.sum() - chances[first]) + math.log(len(DIVISORS)), 0.0)
    return 0.0, 0.0
