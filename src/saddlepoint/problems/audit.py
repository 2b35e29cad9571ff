"""Examination of a problem before a run on it is reported as solved, and when a run makes no progress.

A certificate depends on claims: that the gradients are gradients and exact, that mu is right, that A' is the transpose.
During a run the claims are compared with the gradients and products that the method evaluates. Here they are examined
at the point that is about to be returned: around it, along the field F there, along the last steps of the run, and
along the flattest direction that the run has seen. Parts of the problem that are correct by construction are not
examined. Where a run ends unsolved, only the noise of its gradients and products is measured (``noise.py``), so that
its certificate allows for that.
"""

from __future__ import annotations

import math

import numpy as np

from saddlepoint.ground.arrays import Array, copied, eps_of
from saddlepoint.ground.linalg import norm
from saddlepoint.parts.functions.curvature_estimate import Curvature, curvature
from saddlepoint.parts.functions.gradient_noise import NOISE, seen_noise
from saddlepoint.parts.functions.probes import ASIDE, Unexaminable, keeping_directions, length_scale
from saddlepoint.parts.functions.smooth import Smooth
from saddlepoint.parts.functions.value_slope import slope_difference
from saddlepoint.problems.adjoint_check import SLACK, AdjointCheck, larger_norm
from saddlepoint.problems.assumed import TERMS_UNEXAMINED, assumed_of_arithmetic, given_mu
from saddlepoint.problems.compared_lines import compare_along, lines_from
from saddlepoint.problems.examined_points import Examined
from saddlepoint.problems.first_call import check_value
from saddlepoint.problems.gradient_check import GradientCheck, stated_error
from saddlepoint.problems.noise import NEARBY, UNEXAMINED, MeasuredNoise
from saddlepoint.problems.oracle import ORACLES, Meter, MeteredCoupling
from saddlepoint.problems.prox_check import examine_prox, has_own_term, inexact_terms
from saddlepoint.problems.prox_step import Point, certificate_after, prox_step
from saddlepoint.problems.refutations import other_slope
from saddlepoint.problems.residuals import Query
from saddlepoint.problems.saddle import Saddle
from saddlepoint.problems.terms import subgradient
from saddlepoint.theory.certificate import NOT_EXAMINED, Certificate

STEPS = 10, 30  # least number of steps of the search for curvatures, and that number where vectors are short
COMPLETE, SHORT = 50, 500  # variables up to which that search takes all directions, and up to which vectors are short
SHARE = 0.05  # most steps of that search, as a share of the calls that the run has made
MEMORY = 3_000_000  # most numbers that the search keeps in memory
DIFFERENT = 1e-3  # relative error from which a gradient is not that of the given values
OF_BOUND = 0.2  # share of the bounds on errors in a certificate that counts as the precision of the arithmetic
PAIRS = 2  # number of random pairs of vectors on which A' is compared with A


class Audit:
    """The checks of a problem while it is being solved, and the noise that they measured.

    Attributes:
        noise: the errors of gradients and products that were measured.
        outcome: for each function that was examined, why that could not be done; empty if it could.
        terms_examined: whether the prox of simple terms that the caller wrote was examined.
        asked: how many gradients of g and h certificates have evaluated.
        queried: the gradients that the last certificate was made from, of functions that are not trusted.
        query: all that the last certificate was made from; None where the problem has a certificate of its own.
        kept: the same for the best point.
    """

    def __init__(self, f: Saddle, meter: Meter) -> None:
        self.meter = meter
        self.noise = MeasuredNoise(meter)
        self.outcome: dict[str, str] = {}
        self.asked = {"g": 0, "h": 0}
        self.queried: dict[str, Array] = {}
        self.of(f)

    def of(self, f: Saddle) -> None:
        """Use the problem ``f`` from now on, whose constants may have been corrected."""
        self.f = f
        self.outcome, self.terms_examined = {}, False
        self.query: Query | None = None
        self.kept: Query | None = None
        self.gradient_checks = {
            name: GradientCheck(name, function.mu, function.L, function.grad, self.meter.note, stated_error(function))
            for name, function in (("g", f.g), ("h", f.h))
            if not function.trusted
        }
        self.products = None if f.A.trusted else AdjointCheck(f.A, self.meter.note)
        A = f.A if self.products is None else MeteredCoupling(f.A, Meter(), check=self.products)
        self.noise.of(f, self.gradient_checks)
        self.seen = f.replace(g=self._checked(f.g, "g"), h=self._checked(f.h, "h"), A=A)

    @property
    def needed(self) -> bool:
        """Whether the problem has parts that are claimed and not correct by construction."""
        return bool(self.gradient_checks) or self.products is not None or self.has_own_terms

    @property
    def has_own_terms(self) -> bool:
        """Whether g or h has a simple term that the caller wrote."""
        return has_own_term(self.f.g) or has_own_term(self.f.h)

    @property
    def doubts(self) -> tuple[str, ...]:
        """What seems to be wrong and could not be proven, one sentence each."""
        seem = [check.seems for check in self.gradient_checks.values() if check.seems]
        return (*seem, *self.noise.doubts, *inexact_terms(self.f.g, self.f.h))

    @property
    def is_estimated(self) -> bool:
        """Whether certificates prove nothing: errors of a prox are estimated, or those of quotients unknown."""
        return bool(self.noise.quotients or inexact_terms(self.f.g, self.f.h))

    @property
    def is_examined(self) -> bool:
        """Whether everything that is claimed was examined, as far as that can be done."""
        return self.outcome.keys() >= self.gradient_checks.keys() and (self.terms_examined or not self.has_own_terms)

    def proof(self, certificate: Certificate) -> Certificate:
        """The certificate with what it assumes; without its bounds if they contain an estimate."""
        found = certificate.without_bounds if self.is_estimated else certificate
        return found._replace(assumes=self.assumes())

    def keep(self, another: bool = False) -> None:
        """Remember what the last certificate was made from, which is that of the best point; perhaps another point."""
        self.kept = self.query
        self.noise.keep(self.queried, another)

    def assumes(self) -> tuple[str, ...]:
        """What the certificate of the best point rests on and nothing proves, one sentence each."""
        said = []
        for name in self.gradient_checks:
            if name not in self.outcome:
                outcome = f"it was {NOT_EXAMINED}"
            elif self.outcome[name]:
                outcome = f"it could not be examined: {self.outcome[name]}"
            else:
                outcome = "the gradients that were examined around the point agree with it"
            said.append(f"{given_mu(name, getattr(self.f, name))}; {outcome}.")
            said += self.noise.sentences(name)
        if self.products is not None:
            said.append("A.T is the transpose of A, as far as products with random vectors show.")
        if self.has_own_terms and not self.terms_examined:
            said.append(TERMS_UNEXAMINED)
        doubts = (f"{doubt[:1].upper()}{doubt[1:]}." for doubt in self.doubts)
        of_sides = () if self.f.one_sided is None else self.f.one_sided.assumes
        return (*said, *assumed_of_arithmetic(self.f.g, self.f.h, self.f.A), *of_sides, *doubts)

    @property
    def checks(self) -> dict[str, GradientCheck | AdjointCheck]:
        """The checks of the gradients and products of certificates, by the names g, h and A."""
        products = {} if self.products is None else {"A": self.products}
        return {**self.gradient_checks, **products}

    def certificate(self, x: Array, y: Array, tol: float | None = None, gap: float | None = None) -> Certificate:
        """The certificate of (x, y), which allows for the noise; its gradients and products are checked."""
        self.seen.noise = self.noise.allowance
        self.queried, before = {}, dict(self.asked)
        if type(self.seen).certificate is Saddle.certificate:
            self.query = self.seen.query(x, y)
            certificate = self.seen.proven(self.query, tol, gap)
        else:
            self.query, certificate = None, self.seen.certificate(x, y, tol, gap)
        for name, calls in self.asked.items():  # the first gradient is part of every certificate
            self.meter.note(f"grad_{name}", max(calls - before[name] - 1, 0))
        return certificate

    def with_noise(self, tol: float | None = None, gap: float | None = None) -> Certificate | None:
        """The certificate of the best point with the noise that is known now; None where that takes another query."""
        if self.kept is None or self.noise.differs or self.has_own_terms:
            return None
        self.noise.stale, self.seen.noise = False, self.noise.allowance
        return self.seen.proven(self.kept, tol, gap)

    def after_prox_step(self, x: Array, y: Array) -> tuple[Point, Certificate]:
        """The point after one prox step from (x, y) and its certificate, which needs no value of a simple term."""
        self.seen.noise = self.noise.allowance
        for name in ORACLES:
            self.meter.note(name, 2)
        point, terms = prox_step(self.seen, x, y, self.f.space)
        self.queried, self.query = {}, None  # gradients of the new point follow
        return point, certificate_after(self.seen, point, terms)

    def floor(self, x: Array, y: Array, certificate: Certificate, of_gap: bool = False) -> float:
        """An estimate of the part of a certified distance that is due to the arithmetic of the steps, and to noise.

        If ``of_gap`` is set, the same for the certified duality gap; the noise is then left out. It is at least a share
        of the part that the bounds on rounding errors, and on errors of the data, have in the certificate.
        """
        f = self.f
        for oracle in ("grad_g", "grad_h", "A", "At"):
            self.meter.note(oracle, 1)
        answers = [check.p for check in self.gradient_checks.values() if check.p is not None]
        narrow = max([f.space.wide.eps, *map(eps_of, answers)])  # a certificate counts this unit of rounding already
        wider = max(f.space.eps / narrow, 1.0)
        x, y = copied(x), copied(y)  # those of a run are read-only, and some gradients write into their argument
        if of_gap:
            likely = wider * f.gap_precision(x, y)
            plain = type(f).certificate is Saddle.certificate
            return max(likely, OF_BOUND * f.gap_of_errors(self.query)) if plain and self.query is not None else likely
        noise = float(f.distance_of(certificate.noise_x, certificate.noise_y))
        proven = certificate.rounding if certificate.rounding < math.inf else 0.0
        return max(noise + wider * f.precision(x, y), OF_BOUND * proven)

    def examine(self, x: Array, y: Array, thoroughly: bool = False) -> None:
        """Examine what a certificate at (x, y) depends on; thoroughly, also what only the speed of a run depends on.

        Raises AssumptionError if something is wrong.
        """
        with np.errstate(all="ignore"), keeping_directions():
            if self.gradient_checks:
                x, y = self.noise.in_full_precision(x, y)
                Ay, Atx = self._products(x, y)
                for name, point, product in (("g", x, Ay), ("h", y, -1.0 * Atx)):
                    if name in self.gradient_checks:
                        memory: Examined | None = getattr(self.f, name).examined
                        if memory is not None and memory.covers(point) and not thoroughly:
                            self.outcome[name] = ""
                        else:
                            self.outcome[name] = self._function(name, point, product, thoroughly)
            self._terms(x, y)
            if self.products is not None:
                self._coupling(self.products, thoroughly)
            if thoroughly and self.f.A.norm_estimate.is_quick:
                self._check_estimate()
            self.noise.measure_products(x, y)
        self.noise.is_complete = True

    def _products(self, x: Array, y: Array) -> Point:
        """The products A y and A'x at the best point: those of its certificate, where their precision is the same."""
        if self.kept is not None and self.f.space.is_numpy:
            return self.kept.Ay, self.kept.Atx
        for name in ("A", "At"):
            self.meter.note(name, 1)
        return self.f.A.both(x, y)

    def _terms(self, x: Array, y: Array) -> None:
        """Examine the prox of simple terms that the caller wrote."""
        if not self.has_own_terms:
            return
        Ay, Atx = self._products(x, y)
        for name, f, point, product in (("g", self.f.g, x, Ay), ("h", self.f.h, y, -1.0 * Atx)):
            if has_own_term(f):
                self.meter.note(f"grad_{name}", 1)
                worse = examine_prox(name, f, copied(point), f.grad(copied(point)) + product)
                self.noise.stale = self.noise.stale or worse
        self.terms_examined = True

    def _function(self, name: str, kept: Array, product: Array, thoroughly: bool) -> str:
        """Examine one function at a point, where its field is the gradient plus ``product``.

        Returns why that could not be done; nothing if it could.
        """
        f: Smooth = getattr(self.f, name)
        grad, oracle = f.grad, f"grad_{name}"
        x = copied(kept)  # the point of a run is read-only, and some gradients need an array that can be written into
        p = self.noise.gradient(name, x)
        if p is None:
            return "the gradient cannot be evaluated at the point"
        length = length_scale(x, p, f.L)
        F = p + product
        F = F if f.simple is None else F + subgradient(f, x, F)
        share = int(SHARE * max(self.meter.calls.values()))
        n = x.shape[0]
        least = n if n <= COMPLETE else STEPS[n <= SHORT]
        steps = max(least, min(share, MEMORY // n))
        try:
            local = curvature(grad, x, length, steps, towards=F, L=f.L, p=p)
            self.meter.note(oracle, local.calls)
            seen = seen_noise(local, x, p, length, norm(F), f) if self.f.blocks == 1 else None
            noise = self.noise.level(name, x, p, refuse=True, seen=seen)
            if noise is not None and noise.total > 0.0 and seen is None:  # differences are to be longer
                local = curvature(grad, x, length, steps, noise.total, towards=F, L=f.L, p=p)
                self.meter.note(oracle, local.calls)
        except Unexaminable:
            self.noise.level(name, x, p, refuse=True)
            return UNEXAMINED
        if noise is None:
            return UNEXAMINED
        # A new check, without the noise that the run has found at other points.
        check = GradientCheck(name, f.mu, f.L, grad, self.meter.note, stated_error(f))
        flat = self.noise.plateau(name, x, p, noise)
        check.noise = quiet = max(NOISE * noise.total, flat)
        check.refuse_skew(x, p, length, noise.total, local)
        size = norm(p) + f.L * length  # 0 for the function 0
        usual = length * max(ASIDE, min(math.sqrt(noise.total / size), 0.1) if size > 0.0 else 0.0)
        unexamined = self._compare_along_directions(check, x, p, F, local, usual, thoroughly)
        coarse = check.noise if check.noise > quiet else flat  # noise of longer waves than those measured at first
        known = self.gradient_checks[name]
        known.noise, known.seems = max(known.noise, check.noise), check.seems
        self.noise.allow(name, noise, max(coarse, self._slope_errors(name, f, x, length)))
        if f.examined is not None and not unexamined and not check.seems and name not in self.noise.quotients:
            f.examined.add(x, length, self.noise.gradients[name], name in self.noise.noisy)
        return unexamined

    def _compare_along_directions(
        self, check: GradientCheck, x: Array, p: Array, F: Array, local: Curvature, usual: float, thoroughly: bool
    ) -> str:
        """Compare the gradient p at x with gradients at steps of about the length ``usual`` from x.

        Returns why that could not be done along a direction; nothing if it could along all of them.
        """
        size = norm(F)
        certified = max(size / check.mu, 1e-3 * usual) if check.mu > 0.0 else math.nan
        seen = self.gradient_checks[check.name], self.meter.checks.get(check.name)
        moves = [move for one in seen if isinstance(one, GradientCheck) for move in (one.move, one.flat)]
        known = [move for move in moves if move is not None]
        lines = lines_from(x, (F, size), local, usual, certified, known, thoroughly)
        examined = compare_along(check, x, p, F, lines, lambda: self.meter.note(f"grad_{check.name}", 1))
        return "" if examined else UNEXAMINED

    def _slope_errors(self, name: str, f: Smooth, x: Array, length: float) -> float:
        """The errors of the gradient around x that the values show on lines of different length; 0 if they show none.

        Forward differences of values, for example, are all wrong in the same way, which only the values show. Raises
        AssumptionError if the gradient is another one than that of the values.
        """
        if f.value is None:
            return 0.0
        check_value(name, f.value, x)
        found, share = [], math.inf
        for seed, closer in enumerate(NEARBY):
            try:
                wrong, error, size = slope_difference(f.grad, f.value, x, closer * length, seed)
            except Exception:  # outside the domain of the function
                return 0.0
            self.meter.note(f"grad_{name}", 1)
            if wrong > 10.0 * error:
                found.append(wrong)
                share = min(share, wrong / max(size, f.L * length))  # gradients at the minimiser itself are zero
        if len(found) < 2:
            return 0.0
        if share > DIFFERENT and len(found) == len(NEARBY):
            raise other_slope(name, share)
        return NOISE * math.sqrt(x.shape[0]) * max(found)  # an error along a random line is a part of the whole error

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
        estimate = self.f.A.estimated_norm()
        for name in ("A", "At"):
            self.meter.note(name, estimate.products)
        if estimate.lower > SLACK * self.f.A.norm:
            raise larger_norm(self.f.A, estimate.lower, self.meter.note)

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


def is_correct_by_construction(f: Saddle) -> bool:
    """Whether nothing about the problem is claimed by the caller, in arrays of NumPy that are all here."""
    terms = (p.structured for p in (f.g.simple, f.h.simple) if p is not None)
    ready = f.g.trusted and f.h.trusted and f.A.trusted and f.A.has_entries and all(terms)
    return ready and not f.estimated and f.space.is_numpy and type(f).certificate is Saddle.certificate
