"""Tests of a gradient by a few calls around a point: its noise, its curvature, and whether it is a gradient at all.

Claimed constants are not used for conclusions. Points are moved by small random amounts, so that a kink at the point
itself (the solution of a piecewise quadratic problem is often at one) does not disturb the measurement. Where a
gradient cannot be evaluated, because a point is outside its domain, the same test is made closer to the point.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from saddlepoint.ground.arrays import (
    Array,
    all_finite,
    copied,
    eps_of,
    is_array,
    namespace,
    smallest_of,
    space_of,
    to_host,
)
from saddlepoint.ground.errors import ProblemError
from saddlepoint.ground.linalg import (
    Rows,
    asked_together,
    host_norm,
    inner,
    jax_program,
    lengths,
    max_abs,
    norm,
    power_of_two,
)
from saddlepoint.parts.functions.smooth import Gradient, Value

LINE = 6  # number of points on a line from which noise is estimated
FINER = 8.0  # factor by which the points of a line come closer to each other, from one line to the next
LINES = 5  # most lines on which noise is estimated
FALLS = 0.25  # factor by which an estimate of noise falls, from a line to a finer one, if it is bending and not noise
ROUNDING = 1e3  # largest error, in units of rounding, of a gradient that does not count as noisy
UNITS = 32.0  # errors of a gradient that are put down to rounding, in units of rounding of |gradient| + L |x|
COARSE = 2.0**-23, 2.0**-10, 2.0**-7  # the machine epsilons of float32, float16 and bfloat16
BASIS = 16  # programs of JAX are compiled for bases of so many vectors, and multiples
FEW = 4  # entries of a gradient that are looked at first
SAMPLE = 64  # entries that are looked at first of an array on a GPU
SHORTEST = 1e-300  # length of a step below which differences are not divided by it
NOISE = 4.0  # largest error that gradients are assumed to have, in units of the measured noise level
KEPT = 4096  # most entries of random directions that are kept for the next call
ASIDE = 1e-4  # distance by which points are moved before curvatures are measured, in units of ``length_scale``
SYMMETRIC = 10.0  # asymmetry of a Jacobian up to which it counts as symmetric, in units of its error
FURTHER = 0.03  # distance by which points are moved before noise is measured, along longer lines
CLOSER = tuple(8.0**-k for k in range(8))  # factors of these distances, where the gradient cannot be evaluated further


class Unexaminable(ArithmeticError):  # noqa: N818 - a signal to the caller, who says what it means
    """The gradient raises or is not finite at all points around a point that were tried."""


class Noise(NamedTuple):
    """Errors of gradients around a point.

    Attributes:
        level: an estimate of the norm of the errors; of a batch, one for each block.
        rounding: one unit of rounding of a gradient there.
        calls: number of gradients that were evaluated.
    """

    level: Any
    rounding: Any
    calls: int

    @property
    def total(self) -> float:
        """The norm of the errors of all blocks together."""
        return self.level if isinstance(self.level, float) else float(np.linalg.norm(self.level))

    @property
    def is_loud(self) -> bool:
        """Whether the errors are clearly larger than those of rounding."""
        if isinstance(self.level, float):
            return bool(self.level > ROUNDING * self.rounding)
        return bool(np.any(np.asarray(self.level) > ROUNDING * np.asarray(self.rounding)))

    @property
    def allowance(self) -> float:
        """What a certificate has to allow for besides two units of rounding, in any block."""
        if isinstance(self.level, float):
            return NOISE * self.level if NOISE * self.level > 2.0 * self.rounding else 0.0
        most = NOISE * np.asarray(self.level)
        return float(np.max(np.where(most > 2.0 * np.asarray(self.rounding), most, 0.0)))


class Curvature(NamedTuple):
    """Curvatures of a function around a point, along the directions of a Krylov space.

    Attributes:
        low, high: the smallest and the largest curvature found; the true extremes may be smaller and larger.
        flat, steep: the directions, of length 1, in which they were found.
        unit: the coordinate direction that seems to be the flattest; a wrong sign in one entry may show only there.
        skew: the largest |<J u, v> - <u, J v>| of the pairs of orthogonal unit vectors u, v, where J is the Jacobian of
            the gradient, or an upper bound of it if that is within SYMMETRIC times ``error``. It is zero if the
            gradient is that of a function.
        plane: the vectors u and v, if ``skew`` is larger than that.
        centre: the point at which J was taken.
        error: an estimate of the error of each of these numbers.
        calls: number of gradients that were evaluated.
    """

    low: float
    high: float
    flat: Array
    steep: Array
    unit: Array
    skew: float
    plane: tuple[Array, Array]
    centre: Array
    error: float
    calls: int


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


def gradient_or_none(grad: Gradient, x: Array) -> Array | None:
    """The gradient at x, or None if it raises an exception or is not a finite vector: x is outside its domain."""
    try:
        p = grad(x)
        if not is_array(p) or p.shape != x.shape:
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


def noise_level(
    grad: Gradient,
    x: Array,
    p: Array,
    length: float,
    L: float,
    seed: int = 0,
    sizes: Callable[[Sequence[Array]], Sequence[Any]] = lengths,
) -> Noise:
    """Estimate the norm of the errors of gradients near x, where the gradient is p.

    The estimate comes from high-order differences along a line of nearby points: smooth variation cancels, noise does
    not (J. More and S. Wild, Estimating computational noise, SIAM J. Sci. Comput. 2011). An estimate above rounding is
    repeated on finer and finer lines as long as it falls: what falls is bending of the function. With few variables
    some differences are small by chance, so the result is the largest estimate of the last two lines that is not far
    from the smallest.

    A gradient in float64 whose entries are all numbers of float32 was computed in float32 (or an even lower precision),
    and has at least its errors: where it is flat, they are steps that are too long for a line to show.

    Where ``sizes`` returns the norms of the blocks of vectors instead of their norms, the result is the noise of each
    block. Raises Unexaminable where the gradient cannot be evaluated around x.
    """
    eps = max(eps_of(x), eps_of(p))
    size, of_x = sizes([p, x])
    # The points of the line are up to about ``length`` away, and each of n blocks has about 1/sqrt(n) of that.
    rounding = eps * (size + L * np.maximum(of_x, length / math.sqrt(np.size(size))))
    rounding = rounding + smallest_of(p) * x.shape[0] * (1.0 + L)  # by underflow
    step = length * eps ** (1.0 / 3.0)
    calls = 0
    last: Array | None = None
    for k in range(LINES):
        table, taken = _line(grad, x, length, step * FINER**-k, seed + k)
        levels = _levels(table, sizes)
        coarse = _eps_of_all(table)
        if coarse > eps and L > 0.0:  # a constant gradient of few digits says nothing about the code
            levels = np.maximum(levels, 0.3 * coarse * size)
        calls += taken
        least = np.min(levels, axis=0)
        both = levels if last is None else np.concatenate([last, levels])
        if np.all(NOISE * least <= 2.0 * rounding):
            return Noise(np.zeros(np.shape(size)) if np.ndim(size) else 0.0, rounding, calls)
        falls = last is None or bool(np.any(least < FALLS * np.min(last, axis=0)))
        last = levels
        if not falls:
            break
    least = np.min(both, axis=0)
    noise = np.max(np.where(both <= 10.0 * least, both, 0.0), axis=0)
    return Noise(noise if noise.ndim else float(noise), rounding, calls)


def eps_of_entries(p: Array) -> float:
    """The machine epsilon of the lowest precision of which all entries of p are numbers; at least that of its dtype."""
    own = eps_of(p)
    if isinstance(p, np.ndarray) and own < COARSE[0] / 8.0 and any(map(_has_many_digits, p[:FEW].tolist())):
        return own
    if asked_together(p) and p.shape[0] > SAMPLE and eps_of_entries(to_host(p[:SAMPLE])) == own:
        return own
    size = max_abs(p)
    if not 0.0 < size < math.inf:
        return COARSE[-1] if size == 0.0 else own
    q = p * (1.0 / power_of_two(size))
    found = own
    for eps in COARSE:
        large = (eps / own + 1.0) * q  # large - (large - q) is q in the lower precision (T. J. Dekker 1971)
        if eps <= own or max_abs((large - (large - q)) - q) != 0.0:
            break
        found = eps
    return found


def _has_many_digits(value: float) -> bool:
    """Whether a number has clearly more digits than one of float32, whatever its exponent."""
    return math.isfinite(value) and not (math.frexp(value)[0] * 2.0**26).is_integer()


def _eps_of_all(table: list[Array]) -> float:
    """The least ``eps_of_entries`` of these vectors; most often, the first one tells it."""
    least = math.inf
    for p in table:
        least = min(least, eps_of_entries(p))
        if least == eps_of(p):
            break
    return least


def eps_of_code(grad: Gradient, x: Array, p: Array) -> float:
    """The machine epsilon of the precision in which a gradient seems to be computed; p is the gradient at x.

    Its entries tell if they are numbers of a lower precision than their dtype, here and at a point nearby: at one point
    alone, integers for example do not tell. This takes a further gradient only if those at x are such numbers.
    """
    coarse = eps_of_entries(p)
    if coarse == eps_of(p):
        return coarse
    offset, _ = _directions(x, 0)
    away = (FURTHER * max(norm(x), 1.0)) * offset
    nearby = (gradient_or_none(grad, x + sign * away) for sign in (1.0, -1.0))
    found = next((q for q in nearby if q is not None), None)
    return eps_of(p) if found is None else min(coarse, eps_of_entries(found))


def _line(grad: Gradient, x: Array, length: float, step: float, seed: int) -> tuple[list[Array], int]:
    """Gradients along a line near x, and the calls they took."""
    offset, direction = _directions(x, seed)
    calls = 0
    for closer in CLOSER:
        for sign in (1.0, -1.0):
            start = x + (sign * closer * FURTHER * length) * offset
            table = []
            for k in range(LINE):
                calls += 1
                p = gradient_or_none(grad, start + (k * closer * step) * direction)
                if p is None:
                    break
                table.append(p)
            else:
                return table, calls
    raise Unexaminable


def _levels(table: list[Array], sizes: Callable[[Sequence[Array]], Sequence[Any]]) -> Array:
    """Estimates of the noise, one row for each order of differences from the third on."""
    differences: dict[int, list[Array]] = {}
    for order in range(1, LINE):
        table = [b - a for a, b in pairwise(table)]
        if order >= 3:
            differences[order] = table
    all_lengths = list(sizes([d for some in differences.values() for d in some]))
    levels = []
    for order, some in differences.items():
        found, all_lengths = np.array(all_lengths[: len(some)]), all_lengths[len(some) :]
        largest = found.max(axis=0)
        unit = np.where(largest > 0.0, largest, 1.0)  # squares of tiny differences could underflow without it
        mean = ((found / unit) ** 2).sum(axis=0) / len(some)
        levels.append(unit * np.sqrt(mean / math.comb(2 * order, order)))
    return np.array(levels)


def curvature(
    grad: Gradient,
    x: Array,
    length: float,
    steps: int,
    noise: float = 0.0,
    seed: int = 0,
    towards: Array | None = None,
    L: float = 0.0,
    p: Array | None = None,
) -> Curvature:
    """Arnoldi's method on differences of gradients around x, from a random start or from one that leans ``towards``.

    The gradient at x is p; without it, it is evaluated.

    Its Hessenberg matrix is symmetric up to ``error`` if the gradients are those of a function; the eigenvalues of its
    symmetric part are curvatures. Raises Unexaminable where the gradient cannot be evaluated around x. Where there is
    noise, ``L`` helps to choose the length of the differences.
    """
    offset, q = _directions(x, seed)
    length_towards = 0.0 if towards is None else norm(towards)
    if towards is not None and 0.0 < length_towards < math.inf:
        leaning = q + towards * (1.0 / length_towards)
        length_leaning = norm(leaning)
        q = leaning * (1.0 / length_leaning) if length_leaning > 0.1 else q
    calls = 0
    if p is None:
        p, calls = gradient_or_none(grad, x), 1
        if p is None:
            raise Unexaminable
    size = norm(p)
    relative = max(eps_of(p), noise / (size + L * length) if noise > 0.0 else 0.0)
    for closer in CLOSER:
        for sign in (1.0, -1.0):
            reach = closer * length
            step = reach * min(math.sqrt(relative), 0.1)
            z = x + (sign * max(ASIDE * reach, min(10.0 * step, 0.1 * reach))) * offset
            found = _arnoldi(grad, z, q, step, steps, eps_of(p) * size + noise, math.sqrt(relative))
            calls += found.calls
            if len(found.basis):
                return _curvature(found, z, calls)
    raise Unexaminable


class _Arnoldi(NamedTuple):
    basis: Sequence[Array]  # the rows of one array, or a list
    H: Array
    diagonal: Array | None
    error: float
    calls: int


def _arnoldi(grad: Gradient, z: Array, q: Array, step: float, steps: int, wrong: float, relative: float) -> _Arnoldi:
    """Arnoldi's method on (grad(z + step q) - grad(z))/step, or the difference to the other side.

    The gradients have errors up to ``wrong``, and curvatures relative errors up to ``relative``. The basis is empty if
    the gradient cannot be evaluated, or if the step is too short to divide by.
    """
    base = gradient_or_none(grad, z)
    calls = 1
    basis: list[Array] = []
    steps = min(steps, z.shape[0])
    H = np.zeros((steps, steps))
    rows = Rows.empty(steps, z) if isinstance(z, np.ndarray) and z.dtype == np.float64 else None
    if base is None or step < SHORTEST:
        return _Arnoldi([], H, None, math.inf, calls)
    diagonal, weight = 0.0 * base, 0.0 * base  # Bekas, Kokiopoulou and Saad 2007: sums of q * J q and of q * q
    error = math.inf
    for k in range(steps):
        for side in (step, -step):
            calls += 1
            p = gradient_or_none(grad, z + side * q)
            if p is not None:
                break
        if p is None:
            return _Arnoldi([], H, None, math.inf, calls)
        w = (p - base) * (1.0 / side)
        diagonal += q * w
        weight += q * q
        if rows is None:
            basis.append(q)
            w, beta = _orthogonal(w, basis, H[:, k])
        else:
            rows = rows.append(q)
            w = _orthogonal_to_rows(w, rows, H[: k + 1, k])
            beta = norm(w)
        if not math.isfinite(beta):
            return _Arnoldi([], H, None, math.inf, calls)
        largest = float(np.abs(H[: k + 1, : k + 1]).max())
        error = wrong / step + relative * largest
        if k + 1 == steps or not beta > 10.0 * error:
            break
        H[k + 1, k] = beta
        q = w * (1.0 / beta)
    found_basis: Any = basis if rows is None else rows.matrix
    found = len(found_basis)
    ratio = to_host(diagonal) / np.maximum(to_host(weight), 1e-300)
    return _Arnoldi(found_basis, H[:found, :found], ratio, error, calls)


def _orthogonal(w: Array, basis: list[Array], parts: Array) -> tuple[Array, float]:
    """The vector w minus its parts in the basis, which are added to ``parts``, and the length of what is left.

    This is done twice, because of rounding.
    """
    if asked_together(w):
        w, found = _orthogonal_on_device(w, basis)
        parts[: len(basis)] += found[:-1]
        return w, math.sqrt(found[-1]) if 1e-280 < found[-1] < math.inf else norm(w)
    for _ in range(2):
        for i, b in enumerate(basis):
            part = inner(b, w)
            parts[i] += part
            w = w - part * b
    return w, norm(w)


def _orthogonal_on_device(w: Array, basis: list[Array]) -> tuple[Array, Array]:
    """The vector w minus its parts in the basis; and, asked for together, these parts and the square of what is left.

    The sums are computed in float64. The basis is filled up with zeros to one of few sizes, so that JAX compiles few
    programs.
    """
    xp = namespace(w)
    jax = xp.__name__.startswith("jax")
    compute = jax_program(_projected, 0) if jax else _projected
    more = -len(basis) % BASIS if jax else 0
    w, found = compute(xp, w, (*basis, *[0.0 * basis[0]] * more))
    numbers = to_host(found)
    return w, np.concatenate([numbers[: len(basis)], numbers[-1:]])


def _projected(xp: Any, w: Array, basis: tuple[Array, ...]) -> tuple[Array, Array]:
    dtype = w.dtype
    Q, w = xp.astype(xp.stack(basis), xp.float64), xp.astype(w, xp.float64)
    first = Q @ w
    w = w - first @ Q
    second = Q @ w
    w = w - second @ Q
    return xp.astype(w, dtype), xp.concat([first + second, xp.reshape(w @ w, (1,))])


def _orthogonal_to_rows(w: Array, Q: Rows, parts: Array) -> Array:
    """The same where the basis are the rows of a matrix; w is overwritten."""
    for _ in range(2):
        found = Q.matrix @ w
        parts += found
        w = Q.subtracted(found, w)
    return w


def _curvature(found: _Arnoldi, z: Array, calls: int) -> Curvature:
    basis, H = found.basis, found.H
    values, vectors = np.linalg.eigh(0.5 * (H + H.T))
    flat, steep = (_combined(basis, vectors[:, i]) for i in (0, -1))
    skew, plane = norm((H - H.T).ravel()), (flat, steep)  # the Frobenius norm is not smaller than the spectral one
    if skew > SYMMETRIC * found.error:
        left, sizes, right = np.linalg.svd(H - H.T)
        skew, plane = float(sizes[0]), (_combined(basis, left[:, 0]), _combined(basis, right[0]))
    unit = np.zeros(z.shape[0])
    assert found.diagonal is not None
    unit[int(np.argmin(found.diagonal))] = 1.0
    return Curvature(
        low=float(values[0]),
        high=float(values[-1]),
        flat=flat,
        steep=steep,
        unit=space_of(z).cast(unit),
        skew=skew if len(basis) > 1 else 0.0,
        plane=plane,
        centre=z,
        error=found.error,
        calls=calls,
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

    Values that are all numbers of float32 have its rounding errors.
    """
    offset, u = _directions(x, seed)
    z = x + (ASIDE * length) * offset
    p = grad(z)
    d = length * eps_of(x) ** 0.25
    values = [float(value(z + t * u)) for t in (-2.0 * d, -d, 0.0, d, 2.0 * d)]
    wide, narrow = (values[4] - values[0]) / (4.0 * d), (values[3] - values[1]) / (2.0 * d)
    slope = (4.0 * narrow - wide) / 3.0
    rounding = 8.0 * max(eps_of(x), eps_of_entries(np.array(values))) * abs(values[2]) / d
    return abs(slope - inner(p, u)), abs(wide - narrow) + rounding, max(norm(p), math.ulp(0.0))


def _directions(x: Array, seed: int) -> tuple[Array, Array]:
    """Two random directions of length 1."""
    first, second = _short_draws(x.shape[0], seed) if x.shape[0] <= KEPT else _draws(x.shape[0], seed)
    space = space_of(x)
    if not space.is_numpy:  # PyTorch would share the memory of what is kept
        first, second = first.copy(), second.copy()
    return space.cast(first), space.cast(second)


def _draws(size: int, seed: int) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    first, second = (rng.standard_normal(size) for _ in range(2))
    return first / host_norm(first), second / host_norm(second)


@lru_cache(maxsize=16)
def _short_draws(size: int, seed: int) -> tuple[Array, Array]:
    """The same, kept for the next call: to draw short vectors takes longer than all that is done with them."""
    first, second = _draws(size, seed)
    first.setflags(write=False)
    second.setflags(write=False)
    return first, second


def _combined(basis: Sequence[Array], weights: Array) -> Array:
    if isinstance(basis[0], np.ndarray) and basis[0].dtype == np.float64:
        mixed: Array = weights @ np.asarray(basis)
        return mixed * (1.0 / norm(mixed))
    if asked_together(basis[0]):
        total: Array = space_of(basis[0]).cast(np.asarray(weights)) @ namespace(basis[0]).stack(basis)
    else:
        total = sum((float(w) * b for w, b in zip(weights[1:], basis[1:], strict=True)), float(weights[0]) * basis[0])
    return total * (1.0 / norm(total))
