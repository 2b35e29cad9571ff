"""The errors of a gradient, estimated from gradients at a few points near a point.

No claimed constant is used for a conclusion. The points are moved aside by a small random amount first, so that a kink
at the point itself (the solution of a piecewise quadratic problem is often at one) does not disturb the estimate. Where
a gradient cannot be evaluated, because a point is outside its domain, the same is done closer to the point.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from saddlepoint.ground.arrays import Array, eps_of, smallest_of, to_host
from saddlepoint.ground.linalg import lengths, max_abs, may_be_on_gpu, norm, power_of_two
from saddlepoint.parts.functions.curvature_estimate import Curvature
from saddlepoint.parts.functions.probes import CLOSER, Unexaminable, gradient_or_none, random_directions
from saddlepoint.parts.functions.smooth import Gradient, Smooth

LINE = 6  # number of points on a line from which noise is estimated
FINER = 8.0  # factor by which the points of a line come closer to each other, from one line to the next
LINES = 5  # most lines on which noise is estimated
FALLS = 0.25  # factor by which an estimate falls from a line to a finer one if it comes from curvature and not noise
AGREE = 2.0  # largest ratio of two estimates of noise that agree, from different orders of differences
ROUNDING = 1e3  # largest error, in units of rounding, of a gradient that does not count as noisy
UNITS = 32.0  # largest errors of a gradient that count as rounding, in units of rounding of |gradient| + L |x|
COARSE = 2.0**-23, 2.0**-10, 2.0**-7  # the machine epsilons of float32, float16 and bfloat16
MANY = 8  # number of variables from which on a small estimate of noise is hardly small by chance
FEW = 4  # number of entries of a gradient that are examined first
SAMPLE = 64  # number of entries that are examined first, of an array on a GPU
NOISE = 4.0  # largest error that gradients are assumed to have, in units of the measured noise level
SHORT = 4096  # most entries of vectors that are copied into one matrix, which saves time for short vectors
LITTLE = 0.01  # largest noise, as a share of the residual, that is not measured more accurately
FURTHER = 0.03  # distance by which points are moved before noise is measured, along longer lines


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
    def is_noisy(self) -> bool:
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
    repeated on finer and finer lines as long as it falls: what falls comes from changes of the curvature. Estimates of
    different orders of differences differ there too, so that one line is enough where all orders agree on a few units
    of rounding. Some estimates are small by chance, so the result is the largest one of the last two lines that is not
    far from the smallest. With few variables all of them can be small by chance. Then there are two lines at least, and
    the result is the largest estimate of all orders, times a factor.

    A gradient in float64 whose entries are all numbers of float32 was computed in float32 (or an even lower precision),
    and has at least its errors: where it is flat, they are steps that are too long for a line to show.

    Where ``sizes`` returns the norms of the blocks of vectors instead of their norms, the result is the noise of each
    block. Raises Unexaminable where the gradient cannot be evaluated around x.
    """
    eps = max(eps_of(x), eps_of(p))
    size, of_x = sizes([p, x])
    # The points of the line are up to about ``length`` away, and each of n blocks has about 1/sqrt(n) of that.
    rounding = _rounding_unit(x, p, size, np.maximum(of_x, length / math.sqrt(np.size(size))), L)
    step = length * eps ** (1.0 / 3.0)
    calls = 0
    chance = math.sqrt(max(MANY * np.size(size) / x.shape[0], 1.0))
    many = chance == 1.0
    last: Array | None = None
    for k in range(LINES):
        table, taken = gradients_on_line(grad, x, FURTHER * length, step * FINER**-k, seed + k)
        levels = _levels(table, sizes)
        coarse = _eps_of_all(table)
        if coarse > eps and L > 0.0:  # a constant gradient of few digits says nothing about the code
            levels = np.maximum(levels, 0.3 * coarse * size)
        calls += taken
        if not many:
            levels = chance * levels.max(axis=0, keepdims=True)
        least = levels.min(axis=0)
        both = levels if last is None else np.concatenate([last, levels])
        if np.all(NOISE * (least if many else both.max(axis=0)) <= 2.0 * rounding) and (many or last is not None):
            return Noise(np.zeros(np.shape(size)) if np.ndim(size) else 0.0, rounding, calls)
        if (
            many
            and last is None
            and np.all((levels.max(axis=0) <= AGREE * least) & (NOISE * least <= UNITS * rounding))
        ):
            break
        falls = last is None or bool(np.any(least < FALLS * last.min(axis=0)))
        last = levels
        if not falls:
            break
    least = both.min(axis=0)
    near = both <= 10.0 * least if many or falls else both >= 0.0
    noise = np.max(np.where(near, both, 0.0), axis=0)
    return Noise(noise if noise.ndim else float(noise), rounding, calls)


def seen_noise(local: Curvature, x: Array, p: Array, length: float, residual: float, f: Smooth) -> Noise | None:
    """The noise of gradients of f around x that the search for curvatures shows; None if it has to be measured.

    It need not be measured if three conditions hold: it is a few units of rounding and small beside the residual, to
    which a certificate adds it; the curvatures agree with mu; and the gradient p at x has all digits of its dtype. A
    gradient that is rounded coarsely may not change at all on such short differences.
    """
    size, of_x = lengths([p, x])
    rounding = _rounding_unit(x, p, size, max(of_x, length), f.L)
    most, few = NOISE * local.wrong, 2.0 * rounding
    if not most <= max(few, min(UNITS * rounding, LITTLE * residual)):
        return None
    if not local.low > 0.5 * f.mu or eps_of_entries(p) > eps_of(p):
        return None
    return Noise(local.wrong if most > few else 0.0, rounding, 0)


def _rounding_unit(x: Array, p: Array, size: Any, reach: Any, L: float) -> Any:
    """One unit of rounding of a gradient like p of this size, at points like x of a length up to ``reach``."""
    underflow = smallest_of(p) * x.shape[0] * (1.0 + L)
    return max(eps_of(x), eps_of(p)) * (size + L * reach) + underflow


def eps_of_entries(p: Array) -> float:
    """The machine epsilon of the lowest precision of which all entries of p are numbers; at least that of its dtype."""
    own = eps_of(p)
    if isinstance(p, np.ndarray) and own < COARSE[0] / 8.0 and any(map(_has_many_digits, p[:FEW].tolist())):
        return own
    if may_be_on_gpu(p) and p.shape[0] > SAMPLE and eps_of_entries(to_host(p[:SAMPLE])) == own:
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
    """The least ``eps_of_entries`` of these vectors; most often it is that of the first one."""
    least = math.inf
    for p in table:
        least = min(least, eps_of_entries(p))
        if least == eps_of(p):
            break
    return least


def eps_of_code(grad: Gradient, x: Array, p: Array) -> float:
    """The machine epsilon of the precision in which a gradient seems to be computed; p is the gradient at x.

    It is a lower precision than that of the dtype if all entries are numbers of the lower precision, at x and at a
    point nearby: at one point alone, they could be integers, for example. The gradient at the other point is evaluated
    only if the entries at x are such numbers.
    """
    coarse = eps_of_entries(p)
    if coarse == eps_of(p):
        return coarse
    offset, _ = random_directions(x, 0)
    away = (FURTHER * max(norm(x), 1.0)) * offset
    nearby = (gradient_or_none(grad, x + sign * away) for sign in (1.0, -1.0))
    found = next((q for q in nearby if q is not None), None)
    return eps_of(p) if found is None else min(coarse, eps_of_entries(found))


def gradients_on_line(grad: Gradient, x: Array, aside: float, step: float, seed: int) -> tuple[list[Array], int]:
    """Gradients on a line at the distance ``aside`` from x, at points that are ``step`` apart, and the calls they took.

    Raises Unexaminable where the gradient cannot be evaluated around x.
    """
    offset, direction = random_directions(x, seed)
    calls = 0
    for closer in CLOSER:
        for sign in (1.0, -1.0):
            start = x + (sign * closer * aside) * offset
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
    rows: Any = np.stack(table) if isinstance(table[0], np.ndarray) and len(table[0]) <= SHORT else table
    differences: list[Array] = []
    for order in range(1, LINE):
        rows = rows[1:] - rows[:-1] if isinstance(rows, np.ndarray) else [b - a for a, b in pairwise(rows)]
        if order >= 3:
            differences += list(rows)
    found = np.array(sizes(differences))
    largest = found.max(axis=0)
    unit = np.where(largest > 0.0, largest, 1.0)  # squares of tiny differences could underflow without it
    squares, levels, start = (found / unit) ** 2, [], 0
    for order in range(3, LINE):
        count = LINE - order
        levels.append(squares[start : start + count].sum(axis=0) / (count * math.comb(2 * order, order)))
        start += count
    found_levels: Array = unit * np.sqrt(levels)
    return found_levels
