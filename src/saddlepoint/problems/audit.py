"""Examines a problem before a run on it is reported as solved, and when a run makes no progress.

A certificate depends on claims: that the gradients are gradients and exact, that mu is right, that A' is the transpose.
During a run the claims are compared with the gradients and products that the method evaluates. Here they are examined
at the point that is about to be returned: around it, along the field F there, along the last steps of the run, and
along the flattest direction that the run has seen. Parts of the problem that are correct by construction are not
examined. Where a run ends unsolved, only the noise of its gradients and products is measured, so that its certificate
allows for that.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import suppress

import numpy as np

from saddlepoint.ground.arrays import Array, copied, eps_of, space_of
from saddlepoint.ground.errors import AssumptionError
from saddlepoint.ground.linalg import inner, norm
from saddlepoint.parts.coupling.adjoint import additivity_error
from saddlepoint.parts.functions.probes import (
    ASIDE,
    NOISE,
    Curvature,
    Noise,
    Unexaminable,
    changed_argument,
    curvature,
    differ,
    gradient_or_none,
    length_scale,
    noise_level,
    pair_from,
    slope_difference,
)
from saddlepoint.parts.functions.smooth import Smooth
from saddlepoint.problems.assumptions import SLACK, AdjointCheck, GradientCheck, larger_norm, stated_error
from saddlepoint.problems.examined import Examined
from saddlepoint.problems.oracle import Meter, MeteredCoupling
from saddlepoint.problems.refutations import other_slope
from saddlepoint.problems.saddle import Saddle, assumed_of_arithmetic, given_mu
from saddlepoint.problems.terms import subgradient
from saddlepoint.theory.certificate import Certificate, distance_bound

STEPS = 10  # least number of steps of the search for curvatures
SHARE = 0.05  # most steps of that search, as a share of the calls that the run has made
MEMORY = 3_000_000  # most numbers that the search keeps in memory
UNEXAMINED = "the gradient is not finite around the point, or raises an exception there"
SPLITS = 0.5637, 0.8719  # shares of a vector that is split to measure the errors of products
ALIKE = 0.999  # cosine from which two directions count as one
NEARBY = 1.0, 1.0 / 32.0, 1.0 / 1024.0  # distances at which coarse rounding is looked for, in units of ASIDE
DIFFERENT = 1e-3  # relative error from which a gradient is not that of the given values
PAIRS = 2  # number of random pairs of vectors on which A' is compared with A


class Audit:
    """The checks of a problem while it is being solved, and the noise that they measured.

    Attributes:
        noise: bounds on the errors of gradients of g and of h, as far as they were measured; in a batch, for any block.
        product_noise: bounds on the errors of A y and of A'x beyond rounding, as far as they were measured.
        loud: the functions of which this noise is clearly larger than rounding.
        outcome: for each function that was examined, why that could not be done; empty if it could.
        measured: whether the noise was measured at the best point, as far as it could be.
        unmeasured: for each function whose noise could not be measured, why.
        asked: how many gradients of g and h certificates have evaluated.
        queried: the gradients that the last certificate was made from, of functions that are not trusted.
        kept: the same of the certificate of the best point.
        stale: whether that certificate has to be made again, because the noise is larger than was known or a gradient
            is another one now.
    """

    def __init__(self, f: Saddle, meter: Meter) -> None:
        self.meter = meter
        self.noise = {"g": 0.0, "h": 0.0}
        self.product_noise: tuple[float, ...] = (0.0, 0.0)
        self.loud: set[str] = set()
        self.outcome: dict[str, str] = {}
        self.measured = False
        self.unmeasured: dict[str, str] = {}
        self.asked = {"g": 0, "h": 0}
        self.queried: dict[str, Array] = {}
        self.kept: dict[str, Array] = {}
        self.stale = False
        self.of(f)

    def of(self, f: Saddle) -> None:
        """Use the problem ``f`` from now on, whose constants may have been corrected."""
        self.f = f
        self.outcome = {}
        self.gradient_checks = {
            name: GradientCheck(name, function.mu, function.L, function.grad, self.meter.note, stated_error(function))
            for name, function in (("g", f.g), ("h", f.h))
            if not function.trusted
        }
        self.products = None if f.A.trusted else AdjointCheck(f.A, self.meter.note)
        A = f.A if self.products is None else MeteredCoupling(f.A, Meter(), check=self.products)
        for name in self.gradient_checks:
            memory: Examined | None = getattr(f, name).examined
            if memory is not None:
                self._recall(name, memory)
        self.seen = f.replace(g=self._checked(f.g, "g"), h=self._checked(f.h, "h"), A=A)

    @property
    def needed(self) -> bool:
        """Whether the problem has parts that are claimed and not correct by construction."""
        return bool(self.gradient_checks) or self.products is not None

    @property
    def noisy(self) -> str:
        """Which gradients are noisy, in words; empty if none is."""
        parts = [f"of {name} (about {self.noise[name] / NOISE:.1g})" for name in sorted(self.loud)]
        return f"the gradient {' and '.join(parts)} seems noisy" if parts else ""

    @property
    def doubts(self) -> tuple[str, ...]:
        """What seems to be wrong and could not be proven, one sentence each."""
        return tuple(check.seems for check in self.gradient_checks.values() if check.seems)

    def keep(self, another: bool = False) -> None:
        """Remember the gradients of the last certificate, which is that of the best point; perhaps another point."""
        self.kept, self.stale = dict(self.queried), False
        self.measured = self.measured and not another

    def assumes(self) -> tuple[str, ...]:
        """What the certificate of the best point rests on and nothing proves, one sentence each."""
        said = []
        for name in self.gradient_checks:
            if name not in self.outcome:
                outcome = "it was not examined"
            elif self.outcome[name]:
                outcome = f"it could not be examined: {self.outcome[name]}"
            else:
                outcome = "the gradients that were examined around the point agree with it"
            said.append(f"{given_mu(name, getattr(self.f, name))}; {outcome}.")
            if self.noise[name] > 0.0:
                said.append(
                    f"The errors of the gradient of {name} are at most {self.noise[name]:.2g}, "
                    f"which is {NOISE:g} times the noise that was measured."
                )
            why = self.unmeasured.get(name, "") if self.measured else "the run had not come to its end"
            if why and math.isnan(getattr(self.f, name).accuracy):
                said.append(f"The noise of the gradient of {name} at the point was not measured: {why}.")
        if self.products is not None:
            said.append("A.T is the transpose of A, as far as products with random vectors show.")
        doubts = (f"{doubt[:1].upper()}{doubt[1:]}." for doubt in self.doubts)
        return (*said, *assumed_of_arithmetic(self.f.g, self.f.h, self.f.A), *doubts)

    @property
    def checks(self) -> dict[str, GradientCheck | AdjointCheck]:
        """The checks of the gradients and products of certificates, by the names g, h and A."""
        products = {} if self.products is None else {"A": self.products}
        return {**self.gradient_checks, **products}

    def certificate(self, x: Array, y: Array, tol: float | None = None) -> Certificate:
        """The certificate of (x, y), which allows for the noise; its gradients and products are checked."""
        self.seen.noise = self.noise["g"] + self.product_noise[0], self.noise["h"] + self.product_noise[1]
        self.queried, before = {}, dict(self.asked)
        certificate = self.seen.certificate(x, y, tol)
        for name, calls in self.asked.items():  # the first gradient is part of every certificate
            self.meter.note(f"grad_{name}", max(calls - before[name] - 1, 0))
        return certificate

    def floor(self, x: Array, y: Array, certificate: Certificate) -> float:
        """An estimate of the part of a certified distance that is due to the arithmetic of the steps, and to noise."""
        f = self.f
        for oracle in ("grad_g", "grad_h", "A", "At"):
            self.meter.note(oracle, 1)
        noise = distance_bound(f.mu_x, f.mu_y, certificate.noise_x, certificate.noise_y)
        answers = [check.p for check in self.gradient_checks.values() if check.p is not None]
        narrow = max([f.space.wide.eps, *map(eps_of, answers)])  # a certificate counts this unit of rounding already
        return noise + max(f.space.eps / narrow, 1.0) * f.precision(x, y)

    def examine(self, x: Array, y: Array, thoroughly: bool = False) -> None:
        """Examine what a certificate at (x, y) depends on; thoroughly, also what only the speed of a run depends on.

        Raises AssumptionError if something is wrong.
        """
        with np.errstate(all="ignore"):
            if self.gradient_checks:
                x, y = self._in_full_precision(x, y)
                Ay, Atx = self.f.A.both(x, y)
                for name in ("A", "At"):
                    self.meter.note(name, 1)
                for name, point, product in (("g", x, Ay), ("h", y, -1.0 * Atx)):
                    if name in self.gradient_checks:
                        memory: Examined | None = getattr(self.f, name).examined
                        if memory is not None and memory.covers(point) and not thoroughly:
                            self.outcome[name] = ""
                        else:
                            self.outcome[name] = self._function(name, point, product, thoroughly)
            if self.products is not None:
                self._coupling(self.products, thoroughly)
            if thoroughly and self.f.A.norm_estimate.is_quick:
                self._check_estimate()
            self._measure_products(x, y)
        self.measured = True

    def measure(self, x: Array, y: Array) -> None:
        """Measure the noise of gradients and products at (x, y), and nothing else."""
        with np.errstate(all="ignore"):
            x, y = self._in_full_precision(x, y)
            for name, point in (("g", x), ("h", y)):
                memory: Examined | None = getattr(self.f, name).examined
                if name in self.gradient_checks and not (memory is not None and memory.covers(point)):
                    p = self._gradient(name, point)
                    noise = None if p is None else self._noise(name, point, p)
                    if p is not None and noise is not None:
                        self._allow(name, noise, self._coarse(name, point, p, noise))
            self._measure_products(x, y)
        self.measured = True

    def _in_full_precision(self, x: Array, y: Array) -> tuple[Array, Array]:
        """The point in the precision of a certificate."""
        wide = self.f.space.wide
        return (wide.of_x.cast(x), wide.of_y.cast(y)) if self.f.space.is_numpy else (x, y)

    def _gradient(self, name: str, x: Array) -> Array | None:
        """The gradient at x: that of the last certificate if it was taken there, a new one if not; None for NaN."""
        p = self.gradient_checks[name].known(x)
        if p is None:
            given = copied(x)  # the point of a run is read-only, and some gradients need an array to write into
            p = gradient_or_none(getattr(self.f, name).grad, given)
            self.meter.note(f"grad_{name}", 1)
            if differ(given, x):
                raise changed_argument(name)
        return p

    def _noise(self, name: str, x: Array, p: Array, refuse: bool = False) -> Noise | None:
        """Measure the noise of the gradient around x, where it is p; None if that cannot be done.

        Differences along lines do not show errors that depend on the number of calls, as those of a gradient that
        remembers something. Such errors show where a point is asked for again: this point after the lines, the same
        point as its certificate was made, and the first point of the run. If ``refuse`` is set and the last of these
        cannot be noise, an AssumptionError is raised.
        """
        f: Smooth = getattr(self.f, name)
        sizes, check = self.f.block_norms, self.gradient_checks[name]
        try:
            noise = noise_level(f.grad, x, p, length_scale(x, p, f.L), f.L, sizes=sizes)
        except Unexaminable:
            self.unmeasured[name] = UNEXAMINED
            return None
        self.unmeasured.pop(name, None)
        again, first = gradient_or_none(f.grad, copied(x)), check.first_again()
        self.meter.note(f"grad_{name}", 1 + noise.calls)
        if refuse and first is not None:
            check.refuse_two_answers(*first)
        kept = self.kept.get(name, p)
        self.stale = self.stale or again is None or differ(again, kept)
        pairs = [(again, p), (again, kept), first or (None, None)]
        apart = [sizes(a - b) / math.sqrt(2.0) for a, b in pairs if a is not None and b is not None]
        level = np.maximum.reduce([noise.level, *apart])
        return noise._replace(level=level if np.ndim(level) else float(level))

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

    def _allow(self, name: str, noise: Noise, coarse: float = 0.0) -> None:
        """Let certificates allow for this noise, and for errors of the size ``coarse``."""
        most = max(self.noise[name], noise.allowance, coarse)
        self.stale = self.stale or most > self.noise[name]
        self.noise[name] = most
        check = self.gradient_checks[name]
        check.noise = max(check.noise, NOISE * noise.total)
        if noise.is_loud or coarse:
            self.loud.add(name)

    def _function(self, name: str, kept: Array, product: Array, thoroughly: bool) -> str:
        """Examine one function at a point, where its field is the gradient plus ``product``.

        Returns why that could not be done; nothing if it could.
        """
        f: Smooth = getattr(self.f, name)
        grad, oracle = f.grad, f"grad_{name}"
        x = copied(kept)  # the point of a run is read-only, and some gradients need an array that can be written into
        p = self._gradient(name, x)
        if p is None:
            return "the gradient cannot be evaluated at the point"
        length = length_scale(x, p, f.L)
        F = p + product
        F = F + subgradient(f, x, F)
        share = int(SHARE * max(self.meter.calls.values()))
        steps = max(STEPS, min(share, MEMORY // x.shape[0]))
        noise = self._noise(name, x, p, refuse=True)
        if noise is None:
            return UNEXAMINED
        try:
            local = curvature(grad, x, length, steps, noise.total, towards=F, L=f.L, p=p)
        except Unexaminable:
            return UNEXAMINED
        self.meter.note(oracle, local.calls)
        check = GradientCheck(
            name, f.mu, f.L, grad, self.meter.note, stated_error(f)
        )  # which knows nothing of noise elsewhere
        check.noise = quiet = NOISE * noise.total
        check.refuse_skew(x, p, length, noise.total, local)
        usual = length * max(ASIDE, min(math.sqrt(noise.total / (norm(p) + f.L * length)), 0.1))
        certified = max(norm(F) / f.mu, 1e-3 * usual) if f.mu > 0.0 else math.nan
        blind = ""
        for direction, step in self._directions(name, x, F, local, usual, certified, thoroughly):
            downhill = -1.0 if inner(direction, F) > 0.0 else 1.0  # the solution is on this side
            pair = pair_from(grad, x, p, (2.0 * downhill * step) * direction)
            self.meter.note(oracle, 1)
            if pair is None:
                blind = UNEXAMINED
            else:
                check.compare(*pair)
        coarse = check.noise if check.noise > quiet else 0.0  # with longer waves than those that were measured
        known = self.gradient_checks[name]
        known.noise, known.seems = max(known.noise, check.noise), check.seems
        self._allow(name, noise, max(coarse, self._slope_errors(name, f, x, length)))
        if f.examined is not None and not blind and not check.seems:
            f.examined.add(x, length, self.noise[name], name in self.loud)
        return blind

    def _recall(self, name: str, memory: Examined) -> None:
        """Allow for the noise that earlier examinations of a function have measured."""
        self.noise[name] = max(self.noise[name], memory.noise)
        if memory.is_loud:
            self.loud.add(name)

    def _directions(
        self, name: str, x: Array, F: Array, local: Curvature, usual: float, certified: float, thoroughly: bool
    ) -> Iterator[tuple[Array, float]]:
        """Directions of length 1 in which a wrong mu may show, and lengths of steps along them.

        If a certificate is false because of mu, the line from the point to the solution shows that mu is wrong. It is
        not known, but the field points along it where the slowest part of a method's error is left; so do its steps.
        """
        for closer in NEARBY:  # coarse rounding can look right from one distance
            yield local.flat, closer * usual
        yield local.unit, usual
        if thoroughly:
            yield local.steep, usual
        seen = self.gradient_checks[name], self.meter.checks.get(name)
        moves = [move for check in seen if isinstance(check, GradientCheck) for move in (check.move, check.flat)]
        taken: list[Array] = []
        for move in (F, *moves):
            size = math.nan if move is None else norm(move)
            if move is not None and 0.0 < size < math.inf:
                direction = space_of(x).cast(move) * (1.0 / size)
                if all(abs(inner(direction, other)) < ALIKE for other in taken):
                    taken.append(direction)
                    yield direction, usual
        if 0.0 < certified < math.inf and norm(F) > 0.0:
            yield F * (1.0 / norm(F)), certified

    def _slope_errors(self, name: str, f: Smooth, x: Array, length: float) -> float:
        """The errors of the gradient around x that the values show on lines of different length; 0 if they show none.

        Forward differences of values, for example, are all wrong in the same way, which only the values tell. Raises
        AssumptionError if the gradient is another one than that of the values.
        """
        if f.value is None:
            return 0.0
        least = share = math.inf
        for seed, closer in enumerate(NEARBY):
            try:
                wrong, error, size = slope_difference(f.grad, f.value, x, closer * length, seed)
            except Exception:  # outside the domain of the function
                return 0.0
            self.meter.note(f"grad_{name}", 1)
            if not wrong > 10.0 * error:
                return 0.0
            least, share = min(least, wrong), min(share, wrong / size)
        if share > DIFFERENT:
            raise other_slope(name, share)
        return NOISE * math.sqrt(x.shape[0]) * least  # an error along a random line is a part of the whole error

    def _coupling(self, check: AdjointCheck, thoroughly: bool) -> None:
        m, n = self.f.shape
        rng = np.random.default_rng(0)
        for _ in range(PAIRS):
            x, y = (self.f.space.cast(rng.standard_normal(size)) for size in (m, n))
            Ay, Atx = self.f.A.both(x, y)
            check.compare(y, Ay, x, Atx)
        for name in ("A", "At"):
            self.meter.note(name, PAIRS)
        if thoroughly and check.claimed:
            check.check_norm()

    def _check_estimate(self) -> None:
        """Raise AssumptionError if |A|, on which the speed of a run depends, is larger than its quick estimate."""
        careful = self.f.A.estimated_norm()
        for name in ("A", "At"):
            self.meter.note(name, careful.products)
        if careful.lower > SLACK * self.f.A.norm:
            raise larger_norm(self.f.A, careful.lower, self.meter.note)

    def _measure_products(self, x: Array, y: Array) -> None:
        """Measure the errors of A y and of A'x where the entries of A are not known.

        What exceeds the rounding that certificates assume of such products becomes part of the noise.
        """
        A = self.f.A
        if A.has_entries:
            return
        Ay, Atx = A.both(x, y)
        errors = additivity_error(A.mul, y, Ay, SPLITS), additivity_error(A.tmul, x, Atx, SPLITS)
        for name in ("A", "At"):
            self.meter.note(name, 1 + 2 * len(SPLITS))
        assumed = A.product_error(y, eps_of(Ay)), A.T.product_error(x, eps_of(Atx))
        before = self.product_noise
        self.product_noise = tuple(
            max(old, NOISE * error if NOISE * error > most else 0.0)
            for old, error, most in zip(before, errors, assumed, strict=True)
        )
        self.stale = self.stale or self.product_noise != before

    def _checked(self, f: Smooth, name: str) -> Smooth:
        if name not in self.gradient_checks:
            return f
        check = self.gradient_checks[name]

        def grad(x: Array) -> Array:
            p = check.gradient(x)
            check.see(x, p)
            self.asked[name] += 1
            self.queried.setdefault(name, p)
            return p

        return f.replace(grad=grad, trusted=f.trusted, **f.arithmetic)
