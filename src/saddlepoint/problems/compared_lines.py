"""The gradient at a point compared with gradients on lines from it: which lines, and the comparisons."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np

from saddlepoint.ground.arrays import Array, namespace, read_numbers, space_of
from saddlepoint.ground.linalg import inner, inners, lengths, may_be_on_gpu
from saddlepoint.parts.functions.curvature_estimate import Curvature
from saddlepoint.parts.functions.probes import pair_from
from saddlepoint.problems.gradient_check import GradientCheck
from saddlepoint.problems.noise import NEARBY

ALIKE = 0.999  # cosine from which two directions count as one

Line = tuple[Array, float]  # a direction of length 1, and the length of a step along it


def lines_from(
    x: Array,
    field: tuple[Array, float],
    local: Curvature,
    usual: float,
    certified: float,
    moves: Sequence[Array],
    thoroughly: bool,
) -> Iterator[Line]:
    """Lines on which a wrong mu may show.

    If a certificate is false because of mu, the line from the point to the solution shows that mu is wrong. It is
    not known, but the field points along it where the slowest part of a method's error is left; so do its steps.

    Args:
        x: the point.
        field: the field at x, and its length.
        local: the curvatures around x.
        usual: the usual length of a step.
        certified: the distance of the solution that the field at x proves; NaN if it proves none.
        moves: steps of the run.
        thoroughly: whether what only the speed of a run depends on is examined as well.
    """
    near, nearer, nearest = (closer * usual for closer in NEARBY)
    yield local.flat, near
    yield local.flat, nearest
    yield local.unit, nearer  # at one distance, coarse rounding may show no contradiction
    if thoroughly:
        yield local.steep, usual
    F, size = field
    sizes = [size, *(lengths(moves) if moves else ())]
    for direction in _different(
        space_of(x).cast(move) * (1.0 / length)
        for move, length in zip((F, *moves), sizes, strict=True)
        if 0.0 < length < math.inf
    ):
        yield direction, usual
    if 0.0 < certified < math.inf and size > 0.0:
        yield F * (1.0 / size), certified


def _different(directions: Iterator[Array]) -> Iterator[Array]:
    """The directions without those that are like an earlier one."""
    taken: list[Array] = []
    for direction in directions:
        if may_be_on_gpu(direction):
            yield from _different_on_device([direction, *directions])
        elif all(abs(inner(direction, other)) < ALIKE for other in taken):
            taken.append(direction)
            yield direction


def _different_on_device(directions: list[Array]) -> Iterator[Array]:
    """The same on a GPU, where the products of all of them are asked for together."""
    products = np.abs(inners(directions))
    taken: list[int] = []
    for k, direction in enumerate(directions):
        if all(products[k, j] < ALIKE for j in taken):
            taken.append(k)
            yield direction


def compare_along(
    check: GradientCheck, x: Array, p: Array, F: Array, lines: Iterable[Line], note: Callable[[], None]
) -> bool:
    """Compare the gradient p at x, where the field is F, with gradients on lines from x; False if one cannot be taken.

    Steps go downhill, because the solution is on this side. ``note`` is called for each gradient. Raises
    AssumptionError if gradients refute mu or L.
    """
    if may_be_on_gpu(x):
        return _compare_on_device(check, x, p, F, list(lines), note)
    examined = True
    for direction, step in lines:
        downhill = -1.0 if inner(direction, F) > 0.0 else 1.0
        examined = _compare_one(check, x, p, (2.0 * downhill * step) * direction, note) and examined
    return examined


def _compare_one(check: GradientCheck, x: Array, p: Array, step: Array, note: Callable[[], None]) -> bool:
    pair = pair_from(check.grad, x, p, step)
    note()
    if pair is not None:
        check.compare(*pair)
    return pair is not None


def _compare_on_device(
    check: GradientCheck, x: Array, p: Array, F: Array, lines: list[Line], note: Callable[[], None]
) -> bool:
    """The same on a GPU: all gradients are evaluated first, and what they show is asked for together."""
    along = inners([F, *(direction for direction, _ in lines)])[0, 1:]
    steps = [(2.0 * step * (-1.0 if part > 0.0 else 1.0)) * d for (d, step), part in zip(lines, along, strict=True)]
    ends = [x + step for step in steps]
    try:
        slopes = [check.grad(end) for end in ends]
        numbers = read_numbers(_numbers(x, p, ends, slopes))
    except Exception:  # a gradient raises outside its domain, or is no vector like x
        numbers = np.full((5, len(lines)), math.nan)
    examined = True
    for k, step in enumerate(steps):
        if not np.isfinite(numbers[:, k]).all():  # shorter steps, or those to the other side, are tried one by one
            examined = _compare_one(check, x, p, step, note) and examined
            continue
        note()
        if not check.agrees_by(ends[k] - x, slopes[k], numbers[:, k].tolist()):
            check.compare(ends[k], slopes[k], x, p)
    return examined


def _numbers(x: Array, p: Array, ends: list[Array], slopes: list[Array]) -> Array:
    """Rows of products in float64: dx'dx, dx'dp and dp'dp for the differences from x and p, x'x and p'p at the ends."""
    xp = namespace(x)
    at, of = (xp.astype(xp.stack(vectors), xp.float64) for vectors in (ends, slopes))
    dx, dp = (v - xp.astype(origin, xp.float64) for v, origin in ((at, x), (of, p)))
    products: Array = xp.stack([xp.sum(a * b, axis=1) for a, b in ((dx, dx), (dx, dp), (dp, dp), (at, at), (of, of))])
    return products
