"""Tests of a prox that the caller wrote: inequalities that every proximal operator satisfies.

Let x = prox(v, t) and s = (v - x)/t, and likewise x', s' for other v', t'. Then s is a subgradient of p at x, so that

    <s - s', x - x'> >= 0,        p(x') >= p(x) + <s, x' - x>,        p(x) >= p(x') + <s', x - x'>.

For t = t' the first one says that prox is firmly nonexpansive: |x - x'|^2 <= <x - x', v - v'>. And because s belongs to
x whatever t is, prox(x + t' s, t') = x for every t' > 0, which shows errors of all sizes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from saddlepoint.ground.arrays import Array, all_finite, copied, eps_of, is_array, space_of, to_host
from saddlepoint.ground.linalg import inner, norm
from saddlepoint.parts.simple.base import Simple
from saddlepoint.parts.simple.bounds import wide

COARSE = 1e-5  # largest error of a value, relative to its terms, that arithmetic in float32 explains
INEXACT = 1e-3  # largest error of a prox, relative to its argument, that iterations which ended early explain
FALSE = 0.1  # error of a prox, relative to its argument, from which it is called wrong and not inexact
ALLOWED = 64.0  # largest errors of a prox and of a value that count as rounding, in units of eps
OTHER_T = 2.7, 0.3  # steps t' at which a subgradient is tried again, in units of t
SAFETY = 4.0  # largest error that a prox is assumed to have, in units of the measured one
SHORTER = 0.1, 8  # factor by which t is made shorter while an entry is the same in all results, and how often


class ProxStep(NamedTuple):
    """One call of a prox: x = prox(v, t), with the value of the function at x; NaN if it has none."""

    v: Array
    t: float
    x: Array
    value: float = math.nan

    @property
    def slope(self) -> Array:
        """(v - x)/t, a subgradient at x."""
        return (wide(self.v) - wide(self.x)) * (1.0 / self.t)


def refuted_prox(p: Simple, points: Sequence[Array], steps: Sequence[float] = (0.1, 1.0, 10.0)) -> str | None:
    """A sentence that says why ``p.prox`` is not the prox of a convex function, or not that of ``p.value``.

    None if nothing contradicts it at these points: a prox that passes may still be wrong elsewhere.

    Args:
        p: the function.
        points: vectors at which the prox is taken.
        steps: the values of t.

    Example:
        >>> import numpy as np, saddlepoint as sp
        >>> from saddlepoint.parts.simple.prox_inequalities import refuted_prox
        >>> points = [np.array([2.0, -1.0]), np.array([0.5, 3.0])]
        >>> refuted_prox(sp.L1(1.0), points) is None
        True
        >>> print(refuted_prox(sp.Simple(lambda v, t: 2.0 * v), points))
        prox is not the prox of a convex function: (v - x)/t is a subgradient at x = prox(v, t) for t = 0.1, but ...
    """
    seen: list[ProxStep] = []
    pairs = [(v, t) for v in points for t in steps]
    for _ in range(1 + SHORTER[1]):
        for v, t in pairs:
            wrong = _refuted_step(p, v, t, seen)
            if wrong:
                return wrong
        if not _has_constant_entry(seen):
            break
        least = SHORTER[0] * min(step.t for step in seen)
        pairs = [(v, least) for v in points[1:3]]
    return refuted_by_steps(seen, p.beyond_rounding) or _refuted_diameter(p, seen)


def _refuted_step(p: Simple, v: Array, t: float, seen: list[ProxStep]) -> str | None:
    """Take the prox at v, add it to those that were seen, and say what is wrong with it alone."""
    before = copied(v)
    x = p.prox(v, t)
    wrong = wrong_array(v, before, x)
    if wrong:
        return wrong
    step = ProxStep(before, t, x, _value(p, x))
    seen.append(step)
    if p.has_value and not math.isfinite(step.value):
        return f"value is {step.value} at a result of prox; expected a finite number: it is in the domain"
    return (
        _refuted_by_another_t(p, step, OTHER_T[len(seen) % 2])
        or _refuted_by_value(p, step)
        or _refuted_by_projection(p, step)
    )


def _has_constant_entry(seen: Sequence[ProxStep]) -> bool:
    """Whether an entry is the same in all results, as with steps so long that a norm brings every point to zero."""
    first, *others = (to_host(space_of(step.x).collected(step.x)) for step in seen)
    return bool(np.logical_and.reduce([other == first for other in others]).any())


def _refuted_by_another_t(p: Simple, step: ProxStep, factor: float) -> str | None:
    """Compare prox(x + t' s, t') with x, for t' = factor t; a small difference becomes a part of ``p.inexact``.

    If the two answers have errors e and e', then the argument has the error |1 - factor| e, and a prox makes no
    difference larger: the answers differ by at most (1 + |1 - factor|) e + e'.
    """
    if p.structured:
        return None
    t = factor * step.t
    v = step.x + factor * (step.v - step.x)
    if not (0.0 < t < math.inf and all_finite(v)):
        return None
    x = p.prox(copied(v), t)
    size = norm(step.v) + norm(step.x) + norm(v)
    off = norm(wide(x) - wide(step.x))
    if not off > (3.0 + factor) * max(ALLOWED * eps_of(x), p.beyond_rounding) * size:
        return None
    if not math.isnan(p.accuracy):
        return (
            f"accuracy is {p.accuracy:g}, but prox is less accurate, or not the prox of a convex function: (v - x)/t "
            f"is a subgradient at x = prox(v, t) for t = {step.t:g}, and with it prox for t = {t:g} returns a point "
            f"{off:.3g} away from x, where the lengths of arguments and answers add up to {size:.3g}"
        )
    if off > INEXACT * size:
        wrong = "not" if off > FALSE * size else "too inexact for a proof, or not"
        return (
            f"prox is {wrong} the prox of a convex function: (v - x)/t is a subgradient at x = prox(v, t) for t = "
            f"{step.t:g}, but with it prox for t = {t:g} returns a point {off:.3g} away from x; look at how it depends "
            f"on t: prox(v, t) minimises t p(u) + |u - v|^2/2"
        )
    p.inexact = max(p.inexact, SAFETY * off / size)
    return None


def _refuted_diameter(p: Simple, steps: Sequence[ProxStep]) -> str | None:
    """Results of prox are in the domain, so that no two of them are further apart than its diameter."""
    most = p.diameter_in(int(steps[0].x.shape[0]))
    if p.structured or most == math.inf:
        return None
    for one, two in combinations(steps, 2):
        apart = norm(wide(one.x) - wide(two.x))
        if apart > most + ALLOWED * eps_of(one.x) * (norm(one.x) + norm(two.x) + most):
            return f"diameter is {most:g}, but two results of prox are {apart:.6g} apart; expected a larger diameter"
    return None


def refuted_by_steps(steps: Sequence[ProxStep], inexact: float = 0.0) -> str | None:
    """What ``refuted_prox`` says about calls of a prox that were made before.

    Args:
        steps: the calls.
        inexact: a bound on the errors of the results beyond rounding, relative to argument and result.
    """
    for one, two in combinations(steps, 2):
        wrong = _refuted_pair(one, two, inexact)
        if wrong:
            return wrong
    return None


def _refuted_by_value(p: Simple, step: ProxStep) -> str | None:
    """Compare the value at v with what the step promises there: p(v) >= p(x) + |v - x|^2/t."""
    if not p.has_value or p.structured:
        return None
    there, moved, size = p.value(copied(step.v)), norm(wide(step.v) - wide(step.x)), norm(step.v) + norm(step.x)
    rise = moved * moved / step.t
    rounded = (ALLOWED * max(eps_of(step.x), eps_of(step.v)) + p.beyond_rounding) * size
    rounding = 4.0 * rounded * (moved + rounded) / step.t
    rounding += ALLOWED * eps_of(step.x) * (abs(step.value) + abs(there) + rise)
    if step.value + rise - there > rounding:
        is_coarse = step.value + rise - there <= COARSE * (abs(step.value) + abs(there) + moved * size / step.t)
        return (
            f"prox and value {_wrong_pair(is_coarse)}: by the step with t = {step.t:g}, value is at least "
            f"{step.value + rise:.10g} at the point where the prox was taken, but there it is {there:.10g}"
        )
    return None


def _wrong_pair(is_coarse: bool) -> str:
    """The middle of a sentence about a prox and a value that contradict each other."""
    if is_coarse:
        return "are too inexact for a proof, or do not belong to one convex function"
    return "do not belong to one convex function"


def _refuted_by_projection(p: Simple, step: ProxStep) -> str | None:
    """A result of prox is in the domain, so that ``project`` leaves it where it is."""
    if p.structured:
        return None
    moved = norm(wide(p.project(copied(step.x))) - wide(step.x))
    if moved > (ALLOWED * eps_of(step.x) + p.beyond_rounding) * (norm(step.x) + norm(step.v)):
        return f"project moves a result of prox by {moved:.3g}; expected that it stays, because it is in the domain"
    return None


def wrong_array(v: Array, before: Array, x: Any, what: str = "prox") -> str | None:
    """What is wrong with x, the answer of a function called ``what`` at v, which was ``before``; None if nothing."""
    if not is_array(x) or x.shape != v.shape:
        found = f"an array of shape {tuple(x.shape)}" if is_array(x) else f"a {type(x).__name__}"
        return f"{what} returned {found}; expected an array of shape {tuple(v.shape)}, as its argument"
    if type(x) is not type(v) or x.dtype != v.dtype:
        return f"{what} returned {type(x).__name__} of dtype {x.dtype}; expected {type(v).__name__} of dtype {v.dtype}"
    if not np.array_equal(to_host(v), to_host(before), equal_nan=True):
        return f"{what} changed its argument; expected that it returns a new array: copy the argument first"
    if all_finite(v) and not all_finite(x):
        return f"{what} returned NaN or infinity at a finite point; expected a finite point"
    return None


def _value(p: Simple, x: Array) -> float:
    return p.value(x) if p.has_value else math.nan


def _refuted_pair(one: ProxStep, two: ProxStep, inexact: float) -> str | None:
    """What two calls prove together: that slopes are not monotone, or that values do not belong to the slopes."""
    errors = PairErrors.of(one, two, inexact)
    return _refuted_slopes(one, two, errors) or _refuted_values(one, two, errors)


class PairErrors(NamedTuple):
    """Bounds on the errors of two calls of a prox.

    Attributes:
        size: the lengths of the two arguments and of the two results, added up.
        eps: the machine epsilon of the results.
        result: the error of a result.
        slope: the error of the difference of the two slopes.
    """

    size: float
    eps: float
    result: float
    slope: float

    @classmethod
    def of(cls, one: ProxStep, two: ProxStep, inexact: float) -> PairErrors:
        """The bounds, for results that may be wrong beyond rounding by ``inexact`` times these lengths."""
        size = sum(norm(step.v) + norm(step.x) for step in (one, two))
        eps = max(eps_of(one.x), eps_of(two.x))
        result = (ALLOWED * eps + inexact) * size
        return cls(size, eps, result, result * (1.0 / one.t + 1.0 / two.t))


def _refuted_slopes(one: ProxStep, two: ProxStep, errors: PairErrors) -> str | None:
    """Compare the slopes: <s - s', x - x'> is not negative."""
    d, slopes = wide(one.x) - wide(two.x), one.slope - two.slope
    product, apart = inner(slopes, d), norm(d)
    if not product < -errors.slope * apart - (norm(slopes) + errors.slope) * errors.result:
        return None
    if -product <= INEXACT * errors.size * norm(slopes):
        return (
            f"prox is too inexact for a proof, or not the prox of a convex function: <s - s', x - x'> = "
            f"{product:.3g} < 0 with s = (v - x)/t, for t = {one.t:g} and {two.t:g}; compute it in the precision "
            "of its argument, and if it is computed by iterations, let them go on to the last digits"
        )
    if one.t == two.t:
        far = inner(d, wide(one.v) - wide(two.v)) / apart
        return (
            f"prox is not the prox of a convex function: two of its results are {apart:.3g} apart, but can only be "
            f"{max(far, 0.0):.3g} apart (t = {one.t:g}), because a prox is firmly nonexpansive"
        )
    return (
        f"prox is not the prox of a convex function: its results for t = {one.t:g} and t = {two.t:g} contradict "
        f"each other, <s - s', x - x'> = {product:.3g} < 0 with s = (v - x)/t; look at how it depends on t: "
        f"prox(v, t) minimises t p(u) + |u - v|^2/2"
    )


def _refuted_values(one: ProxStep, two: ProxStep, errors: PairErrors) -> str | None:
    """Compare the values with the slopes: p(x') is at least p(x) + <s, x' - x>, in both directions."""
    apart = norm(wide(one.x) - wide(two.x))
    for here, there in ((one, two), (two, one)):
        rise = inner(here.slope, wide(there.x) - wide(here.x))
        below = here.value + rise - there.value
        rounding = errors.slope * (apart + errors.result) + norm(here.slope) * errors.result
        rounding += ALLOWED * errors.eps * (abs(here.value) + abs(there.value) + abs(rise))
        if below > rounding:
            is_coarse = below <= COARSE * (abs(here.value) + abs(there.value) + norm(here.slope) * errors.size)
            return (
                f"prox and value {_wrong_pair(is_coarse)}: by the step with t = {here.t:g}, value is at "
                f"least {here.value + rise:.10g} at another result of prox, but there it is {there.value:.10g}"
            )
    return None
