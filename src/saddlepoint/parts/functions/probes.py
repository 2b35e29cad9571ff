"""Gradients at points around a point: whether they can be evaluated, and at which distances and directions.

Where a gradient cannot be evaluated, because a point is outside its domain, points closer to the first one are tried.
The tests of noise (``gradient_noise.py``), of curvatures (``curvature_estimate.py``) and of values (``value_slope.py``)
are made of these functions.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from typing import Any

import numpy as np

from saddlepoint.ground.arrays import Array, all_finite, copied, is_array, namespace, space_of
from saddlepoint.ground.errors import ProblemError
from saddlepoint.ground.linalg import host_norm, inner, lengths
from saddlepoint.parts.functions.smooth import Gradient

KEPT = 4096  # most entries of random directions that are kept for the next call
ASIDE = 1e-4  # distance by which points are moved before curvatures are measured, in units of ``length_scale``
CLOSER = tuple(8.0**-k for k in range(8))  # factors of distances, tried in turn where a gradient cannot be evaluated

# The last long random directions, by length, seed and space, within ``keeping_directions``.
_KEPT: ContextVar[dict[Any, tuple[Array, Array]] | None] = ContextVar("random directions", default=None)


class Unexaminable(ArithmeticError):  # noqa: N818 - the caller turns it into a sentence
    """The gradient raises or is not finite at all points around a point that were tried."""


def length_scale(x: Array, p: Array, L: float) -> float:
    """A length for steps around x, where the gradient is p: |x|, or the length of a gradient step if it is longer."""
    of_x, of_p = lengths([x, p])
    length = max(of_x, of_p / L if L > 0.0 else 0.0)
    return length if 0.0 < length < math.inf else 1.0


def differ(a: Array, b: Array) -> bool:
    """Whether two vectors of equal length differ; False for vectors that cannot be written into, as sharded ones.

    NaN is no difference to NaN.
    """
    if isinstance(a, np.ndarray):
        return bool((a != b).any()) and bool(((a != b) & ((a == a) | (b == b))).any())
    return hasattr(a, "__setitem__") and bool(namespace(a).any((a != b) & ((a == a) | (b == b))))


def is_reused(answer: Array, last: Array | None, x: Array) -> bool:
    """Whether an answer of a function at x is in the memory of its last answer, and not in that of x."""
    if not isinstance(answer, np.ndarray) or not isinstance(last, np.ndarray) or not answer.flags.writeable:
        return False
    is_view = answer is last or answer.base is not None
    return is_view and np.may_share_memory(answer, last) and not np.may_share_memory(answer, x)


def gradient_or_none(grad: Gradient, x: Array) -> Array | None:
    """The gradient at x, or None if it raises an exception or is not a finite vector: x is outside its domain."""
    try:
        p = grad(x)
        if type(p) is np.ndarray and p.shape == x.shape and math.isfinite(p.dot(p)):
            return p
        if not is_array(p) or p.shape != x.shape or (type(p) is not np.ndarray and np.ma.is_masked(p)):
            return None
        return p if math.isfinite(inner(p, p)) or all_finite(p) else None
    except Exception:  # whatever a gradient raises outside its domain
        return None


def writes_into_argument(grad: Gradient, x: Array) -> bool:
    """Whether grad changes the array that it is given; it is called once, with a copy of x."""
    given = copied(x)
    gradient_or_none(grad, given)
    return differ(given, x)


def changed_argument(name: str) -> ProblemError:
    """The error for a gradient that changes the array that it is given."""
    return ProblemError(
        f"the gradient of {name} changed the array it was given; it must leave its argument alone: work on a copy"
    )


def pair_around(grad: Gradient, x: Array, p: Array, step: Array) -> tuple[Array, Array, Array, Array] | None:
    """The points x + step and x - step, each followed by its gradient.

    Where one of them cannot be evaluated, x itself, where the gradient is p, takes its place; where neither can, the
    step is made shorter. None if no gradient on this line can be evaluated.
    """
    for closer in CLOSER:
        ends = [x + (sign * closer) * step for sign in (1.0, -1.0)]
        slopes = [gradient_or_none(grad, end) for end in ends]
        known = [(end, slope) for end, slope in zip(ends, slopes, strict=True) if slope is not None]
        if known:
            (a, pa), (b, pb) = known if len(known) == 2 else (known[0], (x, p))
            return a, pa, b, pb
    return None


def pair_from(grad: Gradient, x: Array, p: Array, step: Array) -> tuple[Array, Array, Array, Array] | None:
    """The points x + step and x, where the gradient is p, each followed by its gradient.

    Where the first one cannot be evaluated, x - step takes its place, or a shorter step. None if no gradient on this
    line can be evaluated.
    """
    for closer in CLOSER:
        for sign in (1.0, -1.0):
            end = x + (sign * closer) * step
            slope = gradient_or_none(grad, end)
            if slope is not None:
                return end, slope, x, p
    return None


@contextmanager
def keeping_directions() -> Iterator[None]:
    """Keep the last long random directions within this context: an examination asks for the same ones several times."""
    token = _KEPT.set({})
    try:
        yield
    finally:
        _KEPT.reset(token)


def random_directions(x: Array, seed: int) -> tuple[Array, Array]:
    """Two random directions of length 1, which must not be written into."""
    size, space, kept = x.shape[0], space_of(x), _KEPT.get()
    if size <= KEPT:
        first, second = _short_draws(size, seed)
        if not space.is_numpy:  # PyTorch would share the memory of what is kept
            first, second = first.copy(), second.copy()
        return space.cast(first), space.cast(second)
    if kept is not None and (size, seed, space) in kept:
        return kept[size, seed, space]
    first, second = map(space.cast, _draws(size, seed))
    if kept is not None:
        kept.clear()
        kept[size, seed, space] = first, second
    return first, second


def _draws(size: int, seed: int) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    first, second = (rng.standard_normal(size) for _ in range(2))
    return first / host_norm(first), second / host_norm(second)


@lru_cache(maxsize=16)
def _short_draws(size: int, seed: int) -> tuple[Array, Array]:
    """The vectors of ``_draws``, kept: drawing short ones takes longer than everything that is done with them."""
    first, second = _draws(size, seed)
    first.setflags(write=False)
    second.setflags(write=False)
    return first, second
