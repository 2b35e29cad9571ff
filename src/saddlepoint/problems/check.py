"""``sp.check``, which examines a problem without solving it.

Gradients are compared with values, with each other and with Hessians, products with A and A' with each other, and the
constants with the curvatures that are found around a few points. What is reported as wrong is wrong. An error that
shows only at points that were not examined is not found.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import numpy as np

from saddlepoint.ground.arrays import Array, all_finite, copied, eps_of, is_array
from saddlepoint.ground.errors import AssumptionError, ProblemError
from saddlepoint.ground.linalg import inner, norm
from saddlepoint.ground.validation import as_count, as_vector
from saddlepoint.parts.coupling.adjoint import ADJOINT
from saddlepoint.parts.functions.curvature_estimate import Curvature, curvature
from saddlepoint.parts.functions.difference_quotients import seem_quotients
from saddlepoint.parts.functions.gradient_noise import NOISE, Noise, noise_level
from saddlepoint.parts.functions.plateaus import plateau
from saddlepoint.parts.functions.probes import (
    ASIDE,
    Unexaminable,
    changed_argument,
    differ,
    gradient_or_none,
    length_scale,
    pair_around,
)
from saddlepoint.parts.functions.smooth import Smooth
from saddlepoint.parts.functions.value_slope import slope_error
from saddlepoint.problems.adjoint_check import AdjointCheck
from saddlepoint.problems.findings import Finding, Report
from saddlepoint.problems.first_call import check_value
from saddlepoint.problems.gradient_check import GradientCheck, stated_error
from saddlepoint.problems.noise import EXACT
from saddlepoint.problems.prox_check import wrong_prox
from saddlepoint.problems.refutations import two_answers
from saddlepoint.problems.saddle import Saddle

STEPS = 50  # steps of the search for curvatures around a point
HESSIAN_SIZE = 3000  # most variables of a function whose Hessian, which may be a full matrix, is compared
STEPS_OF_DERIVATIVES = 1.0, 2.0**-4, 2.0**-8  # steps on which values and Hessians are compared, in units of the first
CLOSE = 1e-4  # relative difference up to which a prox, a Hessian or a slope agrees with the gradient
PROX_STEPS = 1e-3, 1.0, 1e3  # steps t with which a prox is compared with the gradient, in units of 1/L
PROX_REACH = 1e-2, 1.0, 1e2  # distances from the points at which a prox is examined, in units of their length
PROX_DRAWS = 64  # further random points and steps with which a prox is examined


def check(f: Saddle, x0: Any = None, y0: Any = None, *, points: int = 3, seed: int = 0) -> Report:
    """Examine a problem: gradients, constants, products.

    Args:
        f: the problem.
        x0, y0: the point around which the problem is examined; zero if left out. A point near the solution is best.
        points: the number of points that are examined: this one, and random ones around it.
        seed: the seed of the random numbers.

    Example:
        >>> import numpy as np, saddlepoint as sp
        >>> g = sp.Smooth(lambda x: np.array([4.0, 1.0]) * x - 1.0, mu=2.0, L=4.0)
        >>> report = sp.check(sp.Saddle(g, sp.Quadratic(1.0), np.eye(2)))
        >>> report.ok, report.problems[0].what
        (False, 'mu of g')
    """
    if not isinstance(f, Saddle):
        raise ProblemError(f"f is a {type(f).__name__}; expected a Saddle(g, h, A)")
    if f.space.of_x.is_sharded:
        raise ProblemError("check needs all of x in one place, but A is in shards; check a problem of fewer rows")
    points, seed = as_count(points, "points"), as_count(seed, "seed", 0)
    m, n = f.shape
    findings: list[Finding] = []
    seconds: dict[str, float] = {}
    for name, function, size, given in (("g", f.g, m, x0), ("h", f.h, n, y0)):
        start = f.space.zeros(size) if given is None else f.space.cast(as_vector(given, f"{'xy'[name == 'h']}0", size))
        start = function.inside(start)
        findings += _Examined(f, name, function, seed).at(start, points)
        seconds[f"grad_{name}"] = _timed(lambda grad=function.grad, x=start: grad(x))
    findings += _coupling(f, seed)
    x, y = f.space.full(m, 1.0), f.space.full(n, 1.0)
    seconds |= {"A": _timed(lambda: f.A.mul(y)), "At": _timed(lambda: f.A.tmul(x))}
    return Report(tuple(findings), seconds)


class _Examined:
    """The examination of one function."""

    def __init__(self, f: Saddle, name: str, function: Smooth, seed: int) -> None:
        self.f, self.name, self.function, self.seed = f, name, function, seed
        self.answers: list[tuple[Array, Array]] = []  # points with the first gradients that were found there
        self.quiet = 0.0  # bound on the errors of gradients that was measured along lines
        self.check = GradientCheck(
            name, function.mu, function.L, function.grad, lambda oracle, calls: None, stated_error(function)
        )

    def at(self, start: Array, count: int) -> Iterator[Finding]:
        """The findings around ``start`` and ``count - 1`` random points."""
        first = self._first_answers(start)
        yield first
        if first.ok:
            yield from self._around(start, count)
            yield self._same_answers()
            yield from self._term(start)

    def _term(self, x: Array) -> Iterator[Finding]:
        """Check the prox of a simple term, if the function has one that the caller wrote."""
        p = self.function.simple
        if p is None:
            return
        what, given = f"simple term of {self.name}", repr(p)
        if p.structured:
            yield Finding(what, given, "correct by construction", True)
            return
        try:
            wrong = wrong_prox(self.function, x, self.function.grad(x), self.seed)
        except Exception as error:  # of the caller's code
            wrong = f"prox raised {type(error).__name__}: {error}"
        found = "agrees with its values" if p.has_value else "a prox of some convex function"
        if p.inexact > 0.0:
            found += f", with errors of about {p.inexact:.1g} of the lengths of its argument and answer"
        yield Finding(what, given, found if wrong is None else "wrong", wrong is None, wrong or "")

    def _around(self, start: Array, count: int) -> Iterator[Finding]:
        """The findings after the first gradients were as expected."""
        grad, L = self.function.grad, self.function.L
        rng = np.random.default_rng(self.seed)
        length = length_scale(start, grad(start), L)
        draws = (rng.standard_normal(start.shape[0]) for _ in range(count - 1))
        steps = (self.f.space.cast(draw * (length / np.linalg.norm(draw))) for draw in draws)
        around = [start, *(self.function.inside(start + step) for step in steps)]
        found_there = [(x, gradient_or_none(grad, x)) for x in around]
        self.answers += [(x, p) for x, p in found_there if p is not None]
        points = [x for x, p in found_there if p is not None]  # within the domain of the gradient
        lengths = [length_scale(x, grad(x), L) for x in points]
        try:
            if not points:
                raise Unexaminable
            noises = [self._noise(*at) for at in zip(points, lengths, strict=True)]
            noise = max(noises, key=lambda measured: measured.total)
            found = [
                curvature(grad, x, s, STEPS, noise.total, self.seed, L=L) for x, s in zip(points, lengths, strict=True)
            ]
        except Unexaminable:
            if self.function.domain:
                yield Finding(f"curvature of {self.name}", "", "not measured: it is defined in its domain alone", True)
                return
            if len(points) == len(around):
                yield Finding(f"curvature of {self.name}", "", "not measured: the numbers are too small", True)
                return
            advice = "it cannot be evaluated around this point; give x0 and y0 inside its domain"
            yield Finding(f"domain of grad {self.name}", "everywhere", "this point alone", False, advice)
            return
        self.check.noise = self.quiet = NOISE * noise.total
        yield self._noise_finding(noise, max(norm(grad(x)) for x in points))
        yield from self._quotients(points, lengths, noises)
        yield self._symmetric(points, lengths, found, noise.total)
        yield from self._constants(points, lengths, found)
        yield from self._others(points, lengths)

    def _first_answers(self, x: Array) -> Finding:
        """Check the shape and the entries of a gradient, that it returns a new array, and that it does not change x."""
        what, given, grad = f"gradient of {self.name}", f"{x.shape[0]} numbers", self.function.grad
        away = x + length_scale(x, x, 1.0)
        points = [copied(x), copied(x), copied(away)]
        p, again = (grad(point) for point in points[:2])
        self.answers = [(x, p)]
        other = gradient_or_none(grad, points[2])  # None outside the domain of the gradient
        if not is_array(p) or p.shape != x.shape:
            shape = f"an array of shape {tuple(p.shape)}" if is_array(p) else f"a {type(p).__name__}"
            return Finding(what, given, shape, False, "return an array of the shape of the point")
        if not all_finite(p):
            return Finding(what, given, "NaN or infinity", False, "it must be finite everywhere")
        if any(differ(*pair) for pair in zip(points, (x, x, away), strict=True)):
            return Finding(what, given, "its argument changed", False, str(changed_argument(self.name)))
        if p is other or p is again or _same_memory(p, again) or _same_memory(p, other):
            return Finding(what, given, "the same array twice", False, "return a new array at each call")
        return Finding(what, given, f"{x.shape[0]} numbers, {str(p.dtype).rpartition('.')[2]}", True)

    def _noise(self, x: Array, length: float) -> Noise:
        f = self.function
        p = f.grad(x)
        noise = noise_level(f.grad, x, p, length, f.L, self.seed)
        return noise._replace(level=max(noise.total, plateau(f, x, p, noise.total).error / NOISE))

    def _same_answers(self) -> Finding:
        """Ask for the first gradients again, after all others: a gradient that remembers something shows there."""
        what, given, worst = f"answers of grad {self.name}", "one at a point", 0.0
        self.check.noise = self.quiet  # gradients that are rounded coarsely are the same at the same point
        for x, before in self.answers:
            p = gradient_or_none(self.function.grad, copied(x))
            apart = math.inf if p is None else norm(p - before)
            if apart > worst and (p is None or self.check.are_two_answers(x, p, before)):
                worst = apart
        if worst == 0.0:
            return Finding(what, given, "the same again", True)
        return Finding(what, given, f"{worst:.2g} apart", False, str(two_answers(self.name, worst)))

    def _noise_finding(self, noise: Noise, size: float) -> Finding:
        level = noise.total
        advice = (
            f"no certificate can be better than about {NOISE * level:.1g}/mu; make the gradient exact, or raise tol"
        )
        found = f"{level:.2g}, |gradient| {size:.2g}" if noise.is_noisy else "none beyond rounding"
        return Finding(f"noise of grad {self.name}", "none", found, not noise.is_noisy, advice)

    def _quotients(self, points: list[Array], lengths: list[float], noises: list[Noise]) -> Iterator[Finding]:
        """Whether the gradient seems to be computed from differences of values, which were not given."""
        f = self.function
        if f.value is not None or not math.isnan(f.accuracy):
            return
        for x, length, noise in zip(points, lengths, noises, strict=True):
            if seem_quotients(f.grad, x, f.grad(x), length, f.L, noise)[0]:
                advice = (
                    "it seems to be computed from differences of values, or of other large numbers, whose errors are "
                    f"unknown: {EXACT}"
                )
                yield Finding(f"gradient of {self.name}", "exact", "rounded as differences", False, advice)
                return

    def _symmetric(self, points: list[Array], lengths: list[float], found: list[Curvature], noise: float) -> Finding:
        what, worst = f"symmetry of {self.name}", max(found, key=lambda local: local.skew)
        try:
            for x, length, local in zip(points, lengths, found, strict=True):
                self.check.refuse_skew(x, self.function.grad(x), length, noise, local)
        except AssumptionError as error:
            return Finding(what, "a gradient", f"skew {error.observed:.2g} of {worst.high:.2g}", False, str(error))
        return Finding(what, "a gradient", f"skew {worst.skew:.1g} of {worst.high:.2g}", True)

    def _constants(self, points: list[Array], lengths: list[float], found: list[Curvature]) -> Iterator[Finding]:
        """Check mu and L; a contradiction must be proven by two gradients."""
        low, high = min(local.low for local in found), max(local.high for local in found)
        error = max(local.error for local in found)
        clear = {"mu": low + 10.0 * error < self.function.mu, "L": high - 10.0 * error > self.function.L}
        proven: dict[str, AssumptionError] = {}
        for x, length, local in zip(points, lengths, found, strict=True):
            for direction in (local.flat, local.unit, local.steep):
                step = (ASIDE * length) * direction
                pair = pair_around(self.function.grad, x, self.function.grad(x), step)
                try:
                    if pair is not None:
                        self.check.compare(*pair)
                except AssumptionError as refuted:
                    proven.setdefault(refuted.constant, refuted)
        for constant, value, seen in (
            ("mu", self.function.mu, f"<= {low:.6g}"),
            ("L", self.function.L, f">= {high:.6g}"),
        ):
            given = "unknown" if math.isnan(value) else f"{value:.6g}"
            if constant == "L" and self.name in self.f.estimated:
                given += " (estimated)"
            wrong = proven.get(constant) or (proven.get("gradient") if clear[constant] else None)
            yield Finding(f"{constant} of {self.name}", given, seen, wrong is None, "" if wrong is None else str(wrong))

    def _others(self, points: list[Array], lengths: list[float]) -> Iterator[Finding]:
        """Check everything else that was given: values, a prox, a Hessian, and that the function is quadratic."""
        f, name, at = self.function, self.name, list(zip(points, lengths, strict=True))
        tolerance = max(CLOSE, 10.0 * math.sqrt(eps_of(points[0])))
        if f.value is not None:
            yield self._value(at, tolerance)
        if f.has_prox:
            wrong = max(self._prox_errors(at))
            advice = "prox(v, t) must be the u with grad(u) + (u - v)/t = 0"
            yield Finding(f"prox of {name}", "its equation", f"{wrong:.1g} off", wrong <= tolerance, advice)
        if f.hessian is not None and self.f.space.is_numpy and points[0].shape[0] <= HESSIAN_SIZE:
            wrong = max(self._hessian_error(x, s) for x, s in at)
            advice = "the Hessian is not the derivative of the gradient"
            yield Finding(f"Hessian of {name}", "a derivative", f"{wrong:.1g} off", wrong <= tolerance, advice)
        if f.quadratic:
            wrong = max(self._nonlinearity(x, s) for x, s in at)
            yield Finding(f"{name} quadratic", "yes", f"{wrong:.1g} off", wrong <= tolerance, "give quadratic=False")

    def _value(self, at: list[tuple[Array, float]], tolerance: float) -> Finding:
        """Compare the slopes of values along random lines with the gradient."""
        f = self.function
        assert f.value is not None
        check_value(self.name, f.value, at[0][0])
        errors, wrong = [], 0.0
        for k, (x, s) in enumerate(at):
            for shorter in STEPS_OF_DERIVATIVES:  # the slope of a function can change on a long step
                with suppress(ArithmeticError, ValueError):  # outside the domain of the function
                    wrong, error = slope_error(f.grad, f.value, x, shorter * s, self.seed + k)
                    if not wrong > max(tolerance, 10.0 * error):
                        break
                    if shorter == STEPS_OF_DERIVATIVES[-1]:
                        errors.append(wrong)
        ok, wrong = not errors, max(errors, default=wrong)
        advice = "the gradient is not that of the value"
        return Finding(f"value of {self.name}", "its slope", f"{wrong:.1g} off", ok, advice)

    def _random(self, x: Array, length: float) -> Array:
        """A random vector of this length, which is the same in each call."""
        draw = np.random.default_rng(self.seed + 1).standard_normal(x.shape[0])
        return self.f.space.cast(draw * (length / np.linalg.norm(draw)))

    def _prox_errors(self, at: list[tuple[Array, float]]) -> Iterator[float]:
        """By how much grad(u) + (u - v)/t differs from 0 for u = prox(v, t), beside its terms, at many v and t."""
        L = self.function.L or 1.0  # 0 of a linear function
        for x, length in at:
            for reach in PROX_REACH:
                v = x + self._random(x, reach * length)
                for factor in PROX_STEPS:
                    yield self._prox_error(v, factor / L)
        rng = np.random.default_rng(self.seed + 2)
        x, length = at[0]
        for _ in range(PROX_DRAWS):  # each coordinate at another distance, to either side
            far = 10.0 ** rng.uniform(math.log10(PROX_REACH[0]), math.log10(10.0 * PROX_REACH[-1]), x.shape[0])
            step = rng.choice([-1.0, 1.0], x.shape[0]) * far * length
            t = 10.0 ** rng.uniform(math.log10(PROX_STEPS[0]), math.log10(PROX_STEPS[-1])) / L
            yield self._prox_error(x + self.f.space.cast(step), float(t))

    def _prox_error(self, v: Array, t: float) -> float:
        """By how much grad(u) + (u - v)/t differs from 0 for u = prox(v, t), beside its terms."""
        f = self.function
        u = f.prox(v, t)
        p = gradient_or_none(f.grad, u)
        if p is None:
            return math.inf
        wrong = norm(p + (u - v) * (1.0 / t)) - self.check.noise
        eps = eps_of(v) if f.space is None else max(eps_of(v), f.space.eps)  # of the data of f
        rounding = 32.0 * eps * (norm(u) + norm(v)) * (1.0 / t + f.L)
        return max(wrong - rounding, 0.0) / max(norm(p) + norm(u - v) / t, math.ulp(0.0))

    def _hessian_error(self, x: Array, length: float) -> float:
        """By how much the Hessian differs from the gradient's change, beside that; the least over several steps.

        A step can cross a jump of the Hessian, as those of Huber's function. All of them hardly can.
        """
        reach = length * max(eps_of(x) ** (1.0 / 3.0), ASIDE if self.check.noise else 0.0)
        return min(self._hessian_error_on(x, length, factor * reach) for factor in STEPS_OF_DERIVATIVES)

    def _hessian_error_on(self, x: Array, length: float, reach: float) -> float:
        """The same on one step of the length ``reach``."""
        assert self.function.hessian is not None
        z = x + self._random(x, ASIDE * length)
        step = self._random(z, reach)
        right, left = self.function.grad(z + step), self.function.grad(z - step)
        change = 0.5 * (right - left)
        expected = self.function.hessian(z) @ step
        rounding = 32.0 * eps_of(x) * (norm(right) + norm(left) + self.function.L * norm(z))
        wrong = max(norm(change - expected) - rounding - 2.0 * self.check.noise, 0.0)
        return wrong / max(norm(expected), math.ulp(0.0))

    def _nonlinearity(self, x: Array, length: float) -> float:
        """By how much the gradient changes differently on two equal steps, beside these changes; 0 if it is affine."""
        step, grad = self._random(x, length), self.function.grad
        rise, again = grad(x + step) - grad(x), grad(x + 2.0 * step) - grad(x + step)
        return norm(again - rise) / max(norm(rise), norm(again), math.ulp(0.0))


def _coupling(f: Saddle, seed: int) -> Iterator[Finding]:
    """Check that A' is the transpose of A, that products agree with each other, and that |A| is not too small."""
    m, n = f.shape
    rng = np.random.default_rng(seed)
    x, y = (f.space.cast(rng.standard_normal(size)) for size in (m, n))
    adjoint_check = AdjointCheck(f.A, lambda oracle, calls: None)
    Ay, Atx = f.A.mul(y), f.A.tmul(x)
    off = abs(inner(x, Ay) - inner(Atx, y)) / max(norm(x) * norm(Ay), norm(Atx) * norm(y), math.ulp(0.0))
    yield _finding("A' of A", "the transpose", f"{off:.1g} off", lambda: adjoint_check.compare(y, Ay, x, Atx))
    both, through = f.A.both(x, y), f.A.through(y)
    pairs = ((both[0], Ay), (both[1], Atx), (through[0], Ay), (through[1], f.A.tmul(Ay)))
    wrong = max(norm(a - b) / max(norm(b), math.ulp(0.0)) for a, b in pairs)
    ok = wrong <= ADJOINT * f.space.eps * f.A.norm * norm(y) / max(norm(Ay), math.ulp(0.0))
    yield Finding(
        "products together", "as one by one", f"{wrong:.1g} off", ok, "`both` and `through` differ from `mul`, `tmul`"
    )
    found = f.A.estimated_norm() if adjoint_check.claimed else f.A.norm_estimate
    test = adjoint_check.check_norm if adjoint_check.claimed else None
    yield _finding("|A|", f"{f.A.norm:.6g}", f">= {found.lower:.6g}", test)


def _finding(what: str, given: str, found: str, test: Any) -> Finding:
    """The finding of a test, which is wrong if the test raises an AssumptionError; None for a test is right."""
    try:
        if test is not None:
            test()
    except AssumptionError as error:
        return Finding(what, given, found, False, str(error))
    return Finding(what, given, found, True)


def _same_memory(p: Array, other: Array | None) -> bool:
    return isinstance(p, np.ndarray) and isinstance(other, np.ndarray) and bool(np.may_share_memory(p, other))


def _timed(call: Any) -> float:
    """The seconds that a call takes."""
    began = time.perf_counter()
    call()
    return time.perf_counter() - began
