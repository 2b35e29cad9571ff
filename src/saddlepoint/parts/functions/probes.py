"""Tests of a gradient by a few calls around a point: its noise, its curvature, and whether it is a gradient at all.

Claimed constants are not used for conclusions. Points are moved by small random amounts, so that a kink at the point
itself (the solution of a piecewise quadratic problem is often at one) does not disturb the measurement.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import eigh

from saddlepoint.ground.arrays import Array, copied, eps_of, namespace, space_of, to_host
from saddlepoint.ground.errors import ProblemError
from saddlepoint.ground.linalg import inner, norm
from saddlepoint.parts.functions.smooth import Gradient, Value

LINE = 6  # number of points on a line from which noise is estimated
ROUNDING = 1e3  # largest error, in units of rounding, of a gradient that does not count as noisy
ASIDE = 1e-4  # distance by which points are moved before curvatures are measured, in units of ``length_scale``
FURTHER = 0.03  # the same distance where noise is measured; it is larger because the lines are longer


class Curvature(NamedTuple):
    """Curvatures of a function around a point, along the directions of a Krylov space.

    Attributes:
        low, high: the smallest and the largest curvature found; the true extremes may be smaller and larger.
        flat, steep: the directions, of length 1, in which they were found.
        unit: the coordinate direction that seems to be the flattest; a wrong sign in one entry may show only there.
        skew: the largest |<J u, v> - <u, J v>| of the pairs of unit vectors u, v that were tried, where J is the
            Jacobian of the gradient. It is zero if the gradient is that of a function.
        error: an estimate of the error of each of these numbers.
        calls: number of gradients that were evaluated.
    """

    low: float
    high: float
    flat: Array
    steep: Array
    unit: Array
    skew: float
    error: float
    calls: int


def length_scale(x: Array, p: Array, L: float) -> float:
    """A length for steps around x, where the gradient is p: |x|, or the length of a gradient step if it is longer."""
    step = norm(p) / L if L > 0.0 else 0.0
    length = max(norm(x), step)
    return length if 0.0 < length < math.inf else 1.0


def differ(a: Array, b: Array) -> bool:
    """Whether two vectors of equal length differ; False for vectors that cannot be written into, as sharded ones."""
    return hasattr(a, "__setitem__") and bool(namespace(a).any(a != b))


def writes_into_argument(grad: Gradient, x: Array) -> bool:
    """Whether grad changes the array that it is given; it is called once, with a copy of x."""
    given = copied(x)
    grad(given)
    return differ(given, x)


def changed_argument(name: str) -> ProblemError:
    """The error for a gradient that changes the array that it is given."""
    return ProblemError(
        f"the gradient of {name} changed the array it was given; it must leave its argument alone: work on a copy"
    )


def noise_level(
    grad: Gradient,
    x: Array,
    p: Array,
    length: float,
    L: float,
    seed: int = 0,
    sizes: Callable[[Array], Any] = norm,
) -> tuple[Any, int]:
    """Estimate the norm of the errors of gradients near x, where the gradient is p; return it and the calls it took.

    The estimate comes from high-order differences along a line of nearby points: smooth variation cancels, noise does
    not (J. More and S. Wild, Estimating computational noise, SIAM J. Sci. Comput. 2011). Noise above rounding must be
    confirmed by a second line; less counts as none. With few variables some differences are small by chance, so the
    result is the largest estimate that is not far from the smallest.

    Where ``sizes`` returns the norms of the blocks of a vector instead of its norm, the result is the noise of each
    block.
    """
    eps = max(eps_of(x), eps_of(p))
    size = sizes(p)
    # The points of the line are up to about ``length`` away, and each of n blocks has about 1/sqrt(n) of that.
    rounding = ROUNDING * eps * (size + L * np.maximum(sizes(x), length / math.sqrt(np.size(size))))
    step = length * eps ** (1.0 / 3.0)
    levels = _noise_on_a_line(grad, x, length, step, seed, sizes)
    if np.all(np.min(levels, axis=0) <= rounding):
        return (np.zeros(np.shape(size)) if np.ndim(size) else 0.0), LINE
    levels = np.concatenate([levels, _noise_on_a_line(grad, x, length, step, seed + 1, sizes)])
    least = np.min(levels, axis=0)
    noise = np.max(np.where(levels <= 10.0 * least, levels, 0.0), axis=0)
    noise = np.where(least <= rounding, 0.0, noise)
    return (noise if noise.ndim else float(noise)), 2 * LINE


def _noise_on_a_line(
    grad: Gradient, x: Array, length: float, step: float, seed: int, sizes: Callable[[Array], Any]
) -> Array:
    """Estimates of the noise, one row for each order of differences from the third on."""
    offset, direction = _directions(x, seed)
    start = x + (FURTHER * length) * offset
    table = [grad(start + (k * step) * direction) for k in range(LINE)]
    levels = []
    for order in range(1, LINE):
        table = [b - a for a, b in pairwise(table)]
        if order >= 3:
            lengths = np.array([sizes(d) for d in table])
            largest = np.max(lengths, axis=0)
            unit = np.where(largest > 0.0, largest, 1.0)  # squares of tiny differences could underflow without it
            mean = np.mean((lengths / unit) ** 2, axis=0)
            levels.append(unit * np.sqrt(mean / math.comb(2 * order, order)))
    return np.array(levels)


def curvature(grad: Gradient, x: Array, length: float, steps: int, noise: float = 0.0, seed: int = 0) -> Curvature:
    """Arnoldi's method on differences of gradients around x, from a random start.

    Its Hessenberg matrix is symmetric up to ``error`` if the gradients are those of a function; the eigenvalues of its
    symmetric part are curvatures. Raises FloatingPointError where gradients are not finite.
    """
    offset, q = _directions(x, seed)
    p = grad(x)
    size = max(norm(p), eps_of(p) * length)
    relative = max(eps_of(p), noise / size)
    step = length * min(math.sqrt(relative), 0.1)
    z = x + max(ASIDE * length, min(10.0 * step, 0.1 * length)) * offset
    base = grad(z)
    basis: list[Array] = []
    H = np.zeros((steps, steps))
    diagonal, weight = 0.0 * base, 0.0 * base  # Bekas, Kokiopoulou and Saad 2007: sums of q * J q and of q * q
    for k in range(min(steps, x.shape[0])):
        basis.append(q)
        w = (grad(z + step * q) - base) * (1.0 / step)
        diagonal, weight = diagonal + q * w, weight + q * q
        for _ in range(2):
            for i, b in enumerate(basis):
                part = inner(b, w)
                H[i, k] += part
                w = w - part * b
        beta = norm(w)
        if not math.isfinite(beta):
            raise FloatingPointError("the gradients around the point are not finite")
        largest = float(np.abs(H[: k + 1, : k + 1]).max())
        error = (size * relative + noise) / step + math.sqrt(relative) * largest
        if k + 1 == steps or not beta > 10.0 * error:
            break
        H[k + 1, k] = beta
        q = w * (1.0 / beta)
    found = len(basis)
    H = H[:found, :found]
    values, vectors = eigh(0.5 * (H + H.T))
    flat, steep = (_combined(basis, vectors[:, i]) for i in (0, -1))
    skew = float(np.abs(H - H.T).max())
    unit = np.zeros(x.shape[0])
    unit[int(np.argmin(to_host(diagonal) / np.maximum(to_host(weight), 1e-300)))] = 1.0
    return Curvature(float(values[0]), float(values[-1]), flat, steep, space_of(x).cast(unit), skew, error, found + 2)


def slope_error(grad: Gradient, value: Value, x: Array, length: float, seed: int = 0) -> tuple[float, float]:
    """Compare the slope of the values along a random line with the gradient; return the difference and its uncertainty.

    Both are relative to the gradient.
    """
    offset, u = _directions(x, seed)
    z = x + (ASIDE * length) * offset
    p = grad(z)
    d = length * eps_of(x) ** 0.25
    wide, narrow = ((value(z + t * u) - value(z - t * u)) / (2.0 * t) for t in (2.0 * d, d))
    slope = (4.0 * narrow - wide) / 3.0
    size = max(norm(p), math.ulp(0.0))
    rounding = 8.0 * eps_of(x) * abs(value(z)) / d
    return abs(slope - inner(p, u)) / size, (abs(wide - narrow) + rounding) / size


def _directions(x: Array, seed: int) -> tuple[Array, Array]:
    """Two random directions of length 1."""
    rng, space = np.random.default_rng(seed), space_of(x)
    draws = (rng.standard_normal(x.shape[0]) for _ in range(2))
    first, second = (space.cast(draw / np.linalg.norm(draw)) for draw in draws)
    return first, second


def _combined(basis: list[Array], weights: Array) -> Array:
    total = sum((float(w) * b for w, b in zip(weights[1:], basis[1:], strict=True)), float(weights[0]) * basis[0])
    return total * (1.0 / norm(total))
