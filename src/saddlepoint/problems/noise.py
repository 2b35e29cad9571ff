"""Errors of gradients and products beyond rounding, as they are measured at the best point of a run.

A certificate allows for these errors. They are measured before a run is reported as solved, and where a run ends
unsolved. Functions and matrices that are correct by construction are not measured.
"""

from __future__ import annotations

import math
from contextlib import suppress
from itertools import combinations

import numpy as np

from saddlepoint.ground.arrays import Array, copied, eps_of, space_of
from saddlepoint.ground.errors import AssumptionError
from saddlepoint.ground.linalg import norm
from saddlepoint.parts.coupling.adjoint import PAIRS, additivity_error, adjoint_errors
from saddlepoint.parts.functions.difference_quotients import seem_quotients
from saddlepoint.parts.functions.gradient_noise import NOISE, Noise, noise_level
from saddlepoint.parts.functions.plateaus import plateau
from saddlepoint.parts.functions.probes import (
    ASIDE,
    Unexaminable,
    changed_argument,
    differ,
    gradient_or_none,
    keeping_directions,
    length_scale,
    pair_from,
)
from saddlepoint.parts.functions.smooth import Smooth
from saddlepoint.problems.examined_points import Examined
from saddlepoint.problems.gradient_check import GradientCheck, stated_error
from saddlepoint.problems.oracle import Meter
from saddlepoint.problems.saddle import Saddle
from saddlepoint.theory.certificate import NOTHING_PROVEN

# What to do about gradients that seem to be differences of values; and why noise cannot be measured: parts of messages.
EXACT = "give value= to have them measured, say what they are at most with accuracy=, or give an exact gradient"
UNEXAMINED = "the gradient is not finite around the point, or raises an exception there"
AGAIN = 6  # further gradients at a point where two of them differ: errors may depend on the number of calls
SPLITS = 0.5637, 0.8719  # shares of a vector that is split to measure the errors of products
NEARBY = 1.0, 1.0 / 32.0, 1.0 / 1024.0  # distances at which coarse rounding is looked for, in units of ASIDE


class MeasuredNoise:
    """The errors of gradients and products that were measured in a run.

    Attributes:
        gradients: bounds on the errors of gradients of g and of h, as far as they were measured; in a batch, for any
            block.
        products: bounds on the errors of A y and of A'x beyond rounding, as far as they were measured.
        noisy: the functions of which this noise is clearly larger than rounding.
        quotients: the functions whose gradients seem to be computed from differences of values. The errors of such
            gradients cannot be measured by gradients.
        is_complete: whether the noise was measured at the best point, as far as it could be.
        unmeasured: for each function whose noise could not be measured, why.
        kept: the gradients that the certificate of the best point was made from, of functions that are not trusted.
        stale: whether that certificate has to be made again, because the noise is larger than was known or a gradient
            is another one now.
        differs: whether the latter is so, or a gradient could not be evaluated again.
    """

    def __init__(self, meter: Meter) -> None:
        self.meter = meter
        self.gradients = {"g": 0.0, "h": 0.0}
        self.products: tuple[float, ...] = (0.0, 0.0)
        self.noisy: set[str] = set()
        self.quotients: set[str] = set()
        self.is_complete = False
        self.unmeasured: dict[str, str] = {}
        self.kept: dict[str, Array] = {}
        self.stale = self.differs = False

    def of(self, f: Saddle, checks: dict[str, GradientCheck]) -> None:
        """Measure the problem ``f`` from now on, whose functions with a check are not trusted."""
        self.f, self.checks, self.quotients = f, checks, set()
        for name in checks:
            memory: Examined | None = getattr(f, name).examined
            if memory is not None:  # noise that earlier examinations of the function have measured
                self.gradients[name] = max(self.gradients[name], memory.noise)
                if memory.is_noisy:
                    self.noisy.add(name)

    @property
    def allowance(self) -> tuple[float, float]:
        """What certificates have to allow for in the residuals of x and of y."""
        return self.gradients["g"] + self.products[0], self.gradients["h"] + self.products[1]

    @property
    def words(self) -> str:
        """Which gradients are noisy, in words; empty if none is."""
        parts = [f"of {name} (about {self.gradients[name] / NOISE:.1g})" for name in sorted(self.noisy)]
        return f"the gradient {' and '.join(parts)} seems noisy" if parts else ""

    @property
    def doubts(self) -> tuple[str, ...]:
        """A sentence for each function whose gradients seem to be computed from differences of values."""
        return tuple(
            f"the gradient of {name} seems to be computed from differences of values, or of other large numbers, "
            f"because it is rounded as they are; gradients alone do not show the errors of such differences, so that "
            f"{NOTHING_PROVEN}: {EXACT}"
            for name in sorted(self.quotients)
        )

    def sentences(self, name: str) -> list[str]:
        """What a certificate assumes about the noise of one function."""
        said = []
        if self.gradients[name] > 0.0:
            said.append(
                f"The errors of the gradient of {name} are at most {self.gradients[name]:.2g}, "
                f"which is {NOISE:g} times the noise that was measured."
            )
        why = self.unmeasured.get(name, "") if self.is_complete else "the run had not come to its end"
        if why and math.isnan(getattr(self.f, name).accuracy):
            said.append(f"The noise of the gradient of {name} at the point was not measured: {why}.")
        return said

    def keep(self, queried: dict[str, Array], another: bool) -> None:
        """Remember the gradients of the certificate of the best point, which is perhaps another point now."""
        self.kept, self.stale, self.differs = dict(queried), False, False
        self.is_complete = self.is_complete and not another

    def measure(self, x: Array, y: Array) -> None:
        """Measure the noise of gradients and products at (x, y)."""
        with np.errstate(all="ignore"), keeping_directions():
            x, y = self.in_full_precision(x, y)
            for name, point in (("g", x), ("h", y)):
                memory: Examined | None = getattr(self.f, name).examined
                if name in self.checks and not (memory is not None and memory.covers(point)):
                    p = self.gradient(name, point)
                    noise = None if p is None else self.level(name, point, p)
                    if p is not None and noise is not None:
                        flat = self.plateau(name, point, p, noise)
                        self.allow(name, noise, max(flat, self._coarse(name, point, p, noise)))
            self.measure_products(x, y)
        self.is_complete = True

    def in_full_precision(self, x: Array, y: Array) -> tuple[Array, Array]:
        """The point in the precision of a certificate."""
        wide = self.f.space.wide
        return (wide.of_x.cast(x), wide.of_y.cast(y)) if self.f.space.is_numpy else (x, y)

    def gradient(self, name: str, x: Array) -> Array | None:
        """The gradient at x: that of the last certificate if it was taken there, a new one if not; None for NaN."""
        p = self.checks[name].known(x)
        if p is None:
            given = copied(x)  # the point of a run is read-only, and some gradients need an array to write into
            p = gradient_or_none(getattr(self.f, name).grad, given)
            self.meter.note(f"grad_{name}", 1)
            if differ(given, x):
                raise changed_argument(name)
        return p

    def level(self, name: str, x: Array, p: Array, refuse: bool = False, seen: Noise | None = None) -> Noise | None:
        """Measure the noise of the gradient around x, where it is p, unless it was ``seen``; None if that fails.

        Differences along lines do not show errors that depend on the number of calls, as those of a gradient that
        remembers something. Such errors show where a point is asked for again: this point after the lines, the same
        point as its certificate was made, and the first point of the run. If ``refuse`` is set and the last of these
        cannot be noise, an AssumptionError is raised.
        """
        f: Smooth = getattr(self.f, name)
        sizes, length = self.f.block_norms, length_scale(x, p, f.L)
        try:
            noise = seen or noise_level(f.grad, x, p, length, f.L, sizes=sizes)
        except Unexaminable:
            self.unmeasured[name] = UNEXAMINED
            return None
        self.unmeasured.pop(name, None)
        if f.value is None and math.isnan(f.accuracy):
            seem, calls = seem_quotients(f.grad, x, p, length, f.L, noise)
            self.meter.note(f"grad_{name}", calls)
            if seem:
                self.quotients.add(name)
        self.meter.note(f"grad_{name}", noise.calls)
        apart = self._answers_apart(name, x, p, refuse)
        if not apart:
            return noise
        level = np.maximum.reduce([noise.level, *(size / math.sqrt(2.0) for size in sizes([a - b for a, b in apart]))])
        return noise._replace(level=level if np.ndim(level) else float(level))

    def _answers_apart(self, name: str, x: Array, p: Array, refuse: bool) -> list[tuple[Array, Array]]:
        """Pairs of different gradients at one point: at x, where the last answer is p, and where the run began.

        If there are some, the gradient is asked for at x a few times more.
        """
        grad, check = getattr(self.f, name).grad, self.checks[name]
        again, first = gradient_or_none(grad, copied(x)), check.first_again()
        self.meter.note(f"grad_{name}", 1)
        kept = self.kept.get(name, p)
        self.differs = self.differs or again is None or differ(again, kept)
        self.stale = self.stale or self.differs
        if refuse and first is not None and _may_differ(*first):
            check.refuse_two_answers(*first)
        twice = [(again, p), (again, kept), *([] if first is None else [first])]
        apart = [(a, b) for a, b in twice if a is not None and _may_differ(a, b)]
        if any(differ(a, b) for a, b in apart):
            found = (gradient_or_none(grad, copied(x)) for _ in range(AGAIN))
            answers = [answer for answer in found if answer is not None]
            self.meter.note(f"grad_{name}", AGAIN)
            apart += [*combinations(answers, 2), *((answer, kept) for answer in answers)]
        return apart

    def plateau(self, name: str, x: Array, p: Array, noise: Noise) -> float:
        """The errors of a gradient, p at x, that does not change at all in a region around x; 0 if it does change."""
        found = plateau(getattr(self.f, name), x, p, noise.total)
        self.meter.note(f"grad_{name}", found.calls)
        return found.error

    def _coarse(self, name: str, x: Array, p: Array, noise: Noise) -> float:
        """The errors of a gradient, p at x, that is rounded coarsely: a line can be on one step of such a staircase.

        They are 0 if a few gradients at different distances from x show none.
        """
        f: Smooth = getattr(self.f, name)
        check = GradientCheck(name, f.mu, f.L, f.grad, self.meter.note, stated_error(f))
        check.noise = quiet = NOISE * noise.total
        step = space_of(x).cast(np.random.default_rng(0).standard_normal(x.shape[0]))
        step = step * (ASIDE * length_scale(x, p, f.L) / norm(step))
        for closer in NEARBY:
            pair = pair_from(f.grad, x, p, closer * step)
            self.meter.note(f"grad_{name}", 1)
            with suppress(AssumptionError):  # a wrong constant matters only if the run is to be reported as solved
                if pair is not None:
                    check.compare(*pair)
        return check.noise if check.noise > quiet else 0.0

    def allow(self, name: str, noise: Noise, coarse: float = 0.0) -> None:
        """Let certificates allow for this noise, and for errors of the size ``coarse``."""
        most = max(self.gradients[name], noise.allowance, coarse)
        self.stale = self.stale or most > self.gradients[name]
        self.gradients[name] = most
        check = self.checks[name]
        check.noise = max(check.noise, NOISE * noise.total)
        if noise.is_noisy or coarse:
            self.noisy.add(name)

    def measure_products(self, x: Array, y: Array) -> None:
        """Measure the errors of A y and of A'x where the entries of A are not known.

        What exceeds the rounding that certificates assume of such products becomes part of the noise.
        """
        A = self.f.A
        if A.has_entries:
            return
        Ay, Atx = A.both(x, y)
        errors = additivity_error(A.mul, y, Ay, SPLITS), additivity_error(A.tmul, x, Atx, SPLITS)
        taken = 1 + 2 * len(SPLITS)
        if not A.trusted:
            apart = adjoint_errors(A.both, x, y, Ay, Atx)
            errors, taken = (max(errors[0], apart[0]), max(errors[1], apart[1])), taken + PAIRS + 2
        for name in ("A", "At"):
            self.meter.note(name, taken)
        assumed = A.product_error(y, eps_of(Ay)), A.T.product_error(x, eps_of(Atx))
        before = self.products
        self.products = tuple(
            max(old, NOISE * error if NOISE * error > most else 0.0)
            for old, error, most in zip(before, errors, assumed, strict=True)
        )
        self.stale = self.stale or self.products != before


def _may_differ(a: Array, b: Array) -> bool:
    """Whether two vectors differ, or cannot be compared entry by entry, as those over shards."""
    return differ(a, b) or not hasattr(a, "__setitem__")
