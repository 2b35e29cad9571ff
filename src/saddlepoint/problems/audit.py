"""Examines a problem before a run on it is reported as solved, and when a run makes no progress.

A certificate depends on claims: that the gradients are gradients and exact, that mu is right, that A' is the transpose.
During a run the claims are compared with the gradients and products that the method evaluates. Here they are examined
at the point that is about to be returned. Parts of the problem that are correct by construction are not examined.
"""

from __future__ import annotations

import math

import numpy as np

from saddlepoint.ground.arrays import Array, copied, eps_of
from saddlepoint.ground.errors import AssumptionError, ProblemError
from saddlepoint.ground.linalg import norm
from saddlepoint.parts.functions.probes import (
    ASIDE,
    changed_argument,
    curvature,
    differ,
    length_scale,
    noise_level,
    slope_error,
)
from saddlepoint.parts.functions.smooth import Smooth
from saddlepoint.problems.assumptions import NOISE, AdjointCheck, GradientCheck
from saddlepoint.problems.oracle import Meter, MeteredCoupling
from saddlepoint.problems.saddle import Saddle
from saddlepoint.theory.certificate import Certificate, distance_bound

STEPS = 10  # least number of steps of the search for curvatures
SHARE = 0.05  # most steps of that search, as a share of the calls that the run has made
MEMORY = 3_000_000  # most numbers that the search keeps in memory
PAIRS = 2  # number of random pairs of vectors on which A' is compared with A


class Audit:
    """The checks of a problem while it is being solved, and the noise that they measured.

    Attributes:
        noise: bounds on the errors of gradients of g and of h, as far as they were measured; in a batch, for any block.
    """

    def __init__(self, f: Saddle, meter: Meter) -> None:
        self.meter = meter
        self.noise = {"g": 0.0, "h": 0.0}
        self.of(f)

    def of(self, f: Saddle) -> None:
        """Use the problem ``f`` from now on, whose constants may have been corrected."""
        self.f = f
        self.gradient_checks = {
            name: GradientCheck(name, function.mu, function.L, function.grad, self.meter.note)
            for name, function in (("g", f.g), ("h", f.h))
            if not function.trusted
        }
        self.products = None if f.A.trusted else AdjointCheck(f.A, self.meter.note)
        A = f.A if self.products is None else MeteredCoupling(f.A, Meter(), check=self.products)
        self.seen = f.replace(g=self._checked(f.g, "g"), h=self._checked(f.h, "h"), A=A)

    @property
    def needed(self) -> bool:
        """Whether the problem has parts that are claimed and not correct by construction."""
        return bool(self.gradient_checks) or self.products is not None

    @property
    def noisy(self) -> str:
        """Which gradients are noisy, in words; empty if none is."""
        parts = [f"of {name} (about {level / NOISE:.1g})" for name, level in self.noise.items() if level > 0.0]
        return f"the gradient {' and '.join(parts)} seems noisy" if parts else ""

    @property
    def checks(self) -> dict[str, GradientCheck | AdjointCheck]:
        """The checks of the gradients and products of certificates, by the names g, h and A."""
        products = {} if self.products is None else {"A": self.products}
        return {**self.gradient_checks, **products}

    def certificate(self, x: Array, y: Array, tol: float | None = None) -> Certificate:
        """The certificate of (x, y), which allows for the noise; its gradients and products are checked."""
        self.seen.noise = self.noise["g"], self.noise["h"]
        return self.seen.certificate(x, y, tol)

    def floor(self, x: Array, y: Array, certificate: Certificate) -> float:
        """An estimate of the part of a certified distance that is due to the arithmetic of the steps, and to noise."""
        f = self.f
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
            for name, check in self.gradient_checks.items():
                point, wide = (x, self.f.space.wide.of_x) if name == "g" else (y, self.f.space.wide.of_y)
                point = wide.cast(point) if self.f.space.is_numpy else point  # in the precision of a certificate
                try:
                    self._function(check, getattr(self.f, name), point, thoroughly)
                except (AssumptionError, ProblemError):
                    raise
                except Exception:  # a gradient that fails nearby says nothing about the point
                    continue
            if self.products is not None:
                self._coupling(self.products, thoroughly)
        return any(self.noise[name] > before[name] for name in before)

    def _function(self, check: GradientCheck, f: Smooth, x: Array, thoroughly: bool) -> None:
        name, grad, L = check.name, f.grad, check.L
        oracle, kept = f"grad_{check.name}", x
        x = copied(kept)  # the point of a run is read-only, and some gradients need an array that can be written into
        p = grad(x)
        if differ(x, kept):
            raise changed_argument(name)
        length = length_scale(x, p, L)
        levels, calls = noise_level(grad, x, p, length, L, sizes=self.f.block_norms)
        noise = float(np.linalg.norm(levels))
        share = int(SHARE * max(self.meter.calls.values()))
        steps = max(STEPS, min(share, MEMORY // x.shape[0]))
        local = curvature(grad, x, length, steps, noise)
        self.meter.note(oracle, 1 + calls + local.calls)
        self.noise[name] = max(self.noise[name], NOISE * float(np.max(levels)))
        check.noise = max(check.noise, NOISE * noise)
        check.refuse_skew(x, length, noise, local)
        for direction in (local.flat, local.unit, *([local.steep] if thoroughly else [])):
            step = length * max(ASIDE, min(math.sqrt(noise / (norm(p) + L * length)), 0.1)) * direction
            ends = x + step, x - step
            self.meter.note(oracle, 2)
            slopes = grad(ends[0]), grad(ends[1])
            check.compare(ends[0], slopes[0], ends[1], slopes[1])
        if f.value is not None:
            wrong, error = slope_error(grad, f.value, x, length)
            self.meter.note(oracle, 1)
            if wrong > max(1e-3, 10.0 * error):
                raise other_slope(name, wrong)

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

    def _checked(self, f: Smooth, name: str) -> Smooth:
        if name not in self.gradient_checks:
            return f
        check = self.gradient_checks[name]

        def grad(x: Array) -> Array:
            p = check.gradient(x)
            check.see(x, p)
            return p

        return f.replace(grad=grad, trusted=f.trusted, **f.arithmetic)


def other_slope(name: str, wrong: float) -> AssumptionError:
    """The error for a function whose values do not change as its gradient says."""
    return AssumptionError(
        name,
        "gradient",
        0.0,
        wrong,
        f"the gradient of {name} is not that of its value: along a random line they differ by {wrong:.2g} of the "
        f"gradient; check both (sp.check examines the problem)",
    )
