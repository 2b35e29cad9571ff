"""Examines a problem before a run on it is reported as solved, and when a run makes no progress.

A certificate depends on claims: that the gradients are gradients and exact, that mu is right, that A' is the transpose.
During a run the claims are compared with the gradients and products that the method evaluates. Here they are examined
at the point that is about to be returned: around it, along the field F there, along the last steps of the run, and
along the flattest direction that the run has seen. Parts of the problem that are correct by construction are not
examined.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from saddlepoint.ground.arrays import Array, copied, eps_of, space_of
from saddlepoint.ground.linalg import inner, norm
from saddlepoint.parts.coupling.adjoint import additivity_error
from saddlepoint.parts.functions.probes import (
    ASIDE,
    NOISE,
    Curvature,
    Unexaminable,
    changed_argument,
    curvature,
    differ,
    gradient_or_none,
    length_scale,
    noise_level,
    pair_from,
    slope_error,
)
from saddlepoint.parts.functions.smooth import Smooth
from saddlepoint.problems.assumptions import SLACK, AdjointCheck, GradientCheck, larger_norm, stated_error
from saddlepoint.problems.examined import Examined
from saddlepoint.problems.oracle import Meter, MeteredCoupling
from saddlepoint.problems.refutations import other_slope
from saddlepoint.problems.saddle import Saddle, assumed_of_arithmetic, given_mu
from saddlepoint.theory.certificate import Certificate, distance_bound

STEPS = 10  # least number of steps of the search for curvatures
SHARE = 0.05  # most steps of that search, as a share of the calls that the run has made
MEMORY = 3_000_000  # most numbers that the search keeps in memory
UNEXAMINED = "the gradient is not finite around the point, or raises an exception there"
SPLITS = 0.5637, 0.8719  # shares of a vector that is split to measure the errors of products
ALIKE = 0.999  # cosine from which two directions count as one
PAIRS = 2  # number of random pairs of vectors on which A' is compared with A


class Audit:
    """The checks of a problem while it is being solved, and the noise that they measured.

    Attributes:
        noise: bounds on the errors of gradients of g and of h, as far as they were measured; in a batch, for any block.
        product_noise: bounds on the errors of A y and of A'x beyond rounding, as far as they were measured.
        loud: the functions of which this noise is clearly larger than rounding.
        outcome: for each function that was examined, why that could not be done; empty if it could.
    """

    def __init__(self, f: Saddle, meter: Meter) -> None:
        self.meter = meter
        self.noise = {"g": 0.0, "h": 0.0}
        self.product_noise: tuple[float, ...] = (0.0, 0.0)
        self.loud: set[str] = set()
        self.outcome: dict[str, str] = {}
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

    def assumes(self) -> tuple[str, ...]:
        """What certificates rest on and nothing proves, one sentence each."""
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
        return self.seen.certificate(x, y, tol)

    def floor(self, x: Array, y: Array, certificate: Certificate) -> float:
        """An estimate of the part of a certified distance that is due to the arithmetic of the steps, and to noise."""
        f = self.f
        for oracle in ("grad_g", "grad_h", "A", "At"):
            self.meter.note(oracle, 1)
        noise = distance_bound(f.mu_x, f.mu_y, certificate.noise_x, certificate.noise_y)
        answers = [check.p for check in self.gradient_checks.values() if check.p is not None]
        narrow = max([f.space.wide.eps, *map(eps_of, answers)])  # a certificate counts this unit of rounding already
        return noise + max(f.space.eps / narrow, 1.0) * f.precision(x, y)

    def examine(self, x: Array, y: Array, thoroughly: bool = False) -> bool:
        """Examine what a certificate at (x, y) depends on; thoroughly, also what only the speed of a run depends on.

        Raises AssumptionError if something is wrong. Returns whether the gradients are noisier than was known.
        """
        before = dict(self.noise)
        with np.errstate(all="ignore"):
            if self.gradient_checks:
                wide = self.f.space.wide
                if self.f.space.is_numpy:  # in the precision of a certificate
                    x, y = wide.of_x.cast(x), wide.of_y.cast(y)
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
            worse = self._measure_products(x, y)
        return worse or any(self.noise[name] > before[name] for name in before)

    def _function(self, name: str, kept: Array, product: Array, thoroughly: bool) -> str:
        """Examine one function at a point, where its field is the gradient plus ``product``.

        Returns why that could not be done; nothing if it could.
        """
        f: Smooth = getattr(self.f, name)
        grad, oracle = f.grad, f"grad_{name}"
        x = copied(kept)  # the point of a run is read-only, and some gradients need an array that can be written into
        p = self.gradient_checks[name].known(x)  # of the certificate
        if p is None:
            p = gradient_or_none(grad, x)
            self.meter.note(oracle, 1)
        if differ(x, kept):
            raise changed_argument(name)
        if p is None:
            return "the gradient cannot be evaluated at the point"
        length = length_scale(x, p, f.L)
        F = p + product
        share = int(SHARE * max(self.meter.calls.values()))
        steps = max(STEPS, min(share, MEMORY // x.shape[0]))
        try:
            noise = noise_level(grad, x, p, length, f.L, sizes=self.f.block_norms)
            local = curvature(grad, x, length, steps, noise.total, towards=F, L=f.L, p=p)
        except Unexaminable:
            return UNEXAMINED
        self.meter.note(oracle, noise.calls + local.calls)
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
        self.noise[name] = max(self.noise[name], noise.allowance, coarse)
        if noise.is_loud or coarse:
            self.loud.add(name)
        known = self.gradient_checks[name]
        known.noise, known.seems = max(known.noise, check.noise), check.seems
        known.ask_again()
        self._compare_values(name, f, x, length)
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
        yield local.flat, usual
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

    def _compare_values(self, name: str, f: Smooth, x: Array, length: float) -> None:
        """Raise AssumptionError if values change otherwise than the gradient says, on two lines of different length."""
        if f.value is None:
            return
        worst = math.inf
        for seed, reach in enumerate((length, length / 32.0)):
            try:
                wrong, error = slope_error(f.grad, f.value, x, reach, seed)
            except Exception:  # outside the domain of the function
                return
            self.meter.note(f"grad_{name}", 1)
            if not wrong > max(1e-3, 10.0 * error):
                return
            worst = min(worst, wrong)
        raise other_slope(name, worst)

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

    def _measure_products(self, x: Array, y: Array) -> bool:
        """Measure the errors of A y and of A'x where the entries of A are not known; return whether they have grown.

        What exceeds the rounding that certificates assume of such products becomes part of the noise.
        """
        A = self.f.A
        if A.has_entries:
            return False
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
        return self.product_noise != before

    def _checked(self, f: Smooth, name: str) -> Smooth:
        if name not in self.gradient_checks:
            return f
        check = self.gradient_checks[name]

        def grad(x: Array) -> Array:
            p = check.gradient(x)
            check.see(x, p)
            return p

        return f.replace(grad=grad, trusted=f.trusted, **f.arithmetic)
