"""Checks during a run: gradients are compared with mu and L, products with A' and |A|.

A comparison costs a few dot products; it is made at each of the first 64 calls and at every eighth call after that.
Suspected violations are tested again with a few more gradients before an error is raised.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import numpy as np

from saddlepoint.ground.arrays import Array, copied, eps_of, namespace
from saddlepoint.ground.errors import AssumptionError, ProblemError
from saddlepoint.ground.linalg import inner, norm
from saddlepoint.parts.coupling import Coupling, Norm
from saddlepoint.parts.coupling.adjoint import PRODUCTS, wrong_transpose
from saddlepoint.parts.functions.probes import (
    Curvature,
    changed_argument,
    curvature,
    differ,
    length_scale,
    noise_level,
    writes_into_argument,
)
from saddlepoint.parts.functions.smooth import Gradient
from saddlepoint.theory.smoothness import observed_L, observed_mu, smooth_lemma

ALL = 64  # number of calls at the start of a run of which each one is compared
EVERY = 8  # after these, number of calls from one comparison to the next
COPIED = 4  # number of first calls in which a copy of the argument shows whether the gradient changes it
STEPS = 12  # steps of the search for curvatures, after two gradients have contradicted mu and L
SKEW = 1e-4  # largest asymmetry of a Jacobian that counts as symmetric, in units of the largest curvature
LENGTHS = 0.5, 1e2, 1e4  # factors of the length at which a Jacobian that seems not to be symmetric is examined again
ADJOINT = 1e3  # largest accepted difference of <x, A y> and <A'x, y>, in units of rounding
NOISE = 4.0  # largest error that gradients are assumed to have, in units of the measured noise level

Note = Callable[[str, int], None]  # (oracle, calls): counts gradients and products that a test took


class GradientCheck:
    """Compares the gradients of one function with Lemma `smooth`.

    Attributes:
        noise: bound on the error of a gradient, as far as it was measured.
    """

    def __init__(self, name: str, mu: float, L: float, grad: Gradient, note: Note) -> None:
        self.name, self.mu, self.L = name, 0.0 if math.isnan(mu) else mu, L
        self.grad, self.note = grad, note
        self.noise = 0.0
        self.seen = 0
        self.x: Array | None = None
        self.p: Array | None = None

    def gradient(self, x: Array) -> Array:
        """The gradient at x; raise ProblemError if one of the first gradients changes its argument.

        Points that a run keeps are read-only. A gradient that fails on one is given a copy: it may need an array that
        can be written into (a buffer of compiled code, for example) without changing it.
        """
        if self.seen >= COPIED:
            try:
                return self.grad(x)
            except ValueError:
                if not isinstance(x, np.ndarray) or x.flags.writeable:
                    raise
        given = copied(x)
        p = self.grad(given)
        if differ(given, x):
            raise changed_argument(self.name)
        return p

    def see(self, x: Array, p: Array) -> None:
        """Note the gradient p at x, and raise AssumptionError if it refutes mu or L."""
        self.seen += 1
        if self.seen > ALL and self.seen % EVERY:
            return
        if p is self.p:
            raise ProblemError(f"the gradient of {self.name} returned the same array twice; return a new one each time")
        if self.x is not None and self.p is not None:
            self.compare(x, p, self.x, self.p)
        self.x, self.p = x, p

    def memory(self) -> dict[str, Any]:
        """How many gradients were seen and where the last comparison was made, for a checkpoint."""
        return {"seen": {"x": self.seen}, "last": {} if self.x is None else {"x": self.x}}

    def restore(self, memory: Mapping[str, Any]) -> None:
        """Take over the memory of an earlier session. A file proves nothing, so the gradient is computed again."""
        self.seen = memory["seen"]["x"]
        for x in memory["last"].values():
            with suppress(Exception):  # a gradient that is not defined there says nothing
                self.x, self.p = x, self.gradient(x)
                self.note(f"grad_{self.name}", 1)

    def compare(self, x: Array, p: Array, x0: Array, p0: Array) -> None:
        """Raise AssumptionError if these two gradients, with their errors, refute mu or L."""
        mu, L = self.mu, self.L
        dx, dp = x - x0, p - p0
        cross, dx2, dp2 = inner(dp, dx), inner(dx, dx), inner(dp, dp)
        slack = smooth_lemma(cross, dx2, dp2, mu, L)
        if slack >= 0.0 or not math.isfinite(slack) or _underflows(dx, dx2) or _underflows(dp, dp2):
            return
        # Gradients and points are rounded, so only a violation that is larger than the rounding errors is a proof.
        rounding = 32 * eps_of(p) * (norm(p) + norm(p0) + L * (norm(x) + norm(x0)))

        def error(noise: float) -> float:
            dp_error = rounding + 2.0 * noise
            return dp_error * (math.sqrt(dx2) + 2.0 * (math.sqrt(dp2) + dp_error) / (L + mu))

        if slack >= -error(self.noise):
            return
        if writes_into_argument(self.grad, x):
            raise changed_argument(self.name)
        length = length_scale(x, p, L)
        noise, calls = noise_level(self.grad, x, p, length, L)
        self.note(f"grad_{self.name}", 1 + calls)
        if slack >= -error(NOISE * noise):
            self.noise = max(self.noise, NOISE * noise)
            return
        if dx2 == 0.0:
            raise two_answers(self.name, norm(dp))
        local = curvature(self.grad, x, length, STEPS, noise)
        self.note(f"grad_{self.name}", local.calls)
        self.refuse_skew(x, length, noise, local)
        raise self._refutation(cross, dx2, dp2, local)

    def refuse_skew(self, x: Array, length: float, noise: float, local: Curvature) -> None:
        """Raise AssumptionError if the Jacobian is not symmetric around x, at several lengths.

        One length proves nothing: differences over a short one may be rounding errors of terms that are far larger than
        the gradient itself, and those over a long one may cross a jump of the Hessian.
        """
        if not _skew(local, noise):
            return
        for seed, factor in enumerate(LENGTHS, start=1):
            again = curvature(self.grad, x, factor * length, STEPS, noise, seed)
            self.note(f"grad_{self.name}", again.calls)
            if not _skew(again, noise):
                return
        raise no_gradient(self.name, max(local.skew, again.skew), max(local.high, again.high))

    def _refutation(self, cross: float, dx2: float, dp2: float, local: Curvature) -> AssumptionError:
        """The error that names what is wrong: convexity, mu if the pair shows a smaller one, L if it shows a larger.

        If the pair only shows that mu and L cannot both hold, the curvatures decide which of them is wrong.
        """
        mu, L = self.mu, self.L
        seen = max(math.sqrt(dp2 / dx2), dp2 / cross if cross > 0.0 else 0.0)
        if local.low + local.error < 0.0:
            return mu_too_large(self.name, mu, min(local.low, cross / dx2), local.low)
        if cross < mu * dx2:
            return mu_too_large(self.name, mu, cross / dx2, local.low)
        if seen > L:
            return L_too_small(self.name, L, seen, local.high)
        if local.low + local.error < mu:
            return mu_too_large(self.name, mu, local.low, local.low)
        if local.high - local.error > L:
            return L_too_small(self.name, L, local.high, local.high)
        seen, largest = observed_L(cross, dx2, dp2, mu), observed_mu(cross, dx2, dp2, L)
        return AssumptionError(
            self.name,
            "L",
            L,
            seen,
            f"mu = {mu:.6g} and L = {L:.6g} of {self.name} cannot both hold: two gradients show L >= {seen:.6g}, "
            f"or else mu <= {largest:.6g}; give a larger L or a smaller mu",
            2.0 * seen,
        )


class AdjointCheck:
    """Compares products with A and with A': <x, A y> = <A'x, y>, and |A y| <= |A| |y| where |A| was given."""

    def __init__(self, A: Coupling, note: Note) -> None:
        self.A, self.note = A, note
        kind = type(A)
        self.claimed = kind.norm_estimate is not Coupling.norm_estimate or kind.norm is not Coupling.norm
        self.seen = {"A": 0, "At": 0}
        self.last: dict[str, tuple[Array, Array]] = {}

    def see(self, name: str, v: Array, product: Array) -> None:
        """Note a product of A ("A") or A' ("At") with v, and raise AssumptionError if something is wrong with it."""
        self.seen[name] += 1
        if self.seen[name] > ALL and self.seen[name] % EVERY:
            return
        if name in self.last and product is self.last[name][1]:
            raise ProblemError(f"{_side(name)} returned the same array twice; return a new one each time")
        other = self.last.get("At" if name == "A" else "A")
        if other is not None:
            self.compare(*((v, product, *other) if name == "A" else (*other, v, product)))
        if self.claimed and norm(product) > (1.0 + ADJOINT * eps_of(product)) * self.A.norm * norm(v):
            raise self.small_norm(norm(product) / norm(v), self.estimate())
        self.last[name] = v, product

    def memory(self) -> dict[str, Any]:
        """How many products were seen and the vectors of the last ones, for a checkpoint."""
        return {"seen": dict(self.seen), "last": {name: v for name, (v, _) in self.last.items()}}

    def restore(self, memory: Mapping[str, Any]) -> None:
        """Take over the memory of an earlier session. A file proves nothing, so the products are computed again."""
        self.seen = dict(memory["seen"])
        for name, v in memory["last"].items():
            with suppress(Exception):
                self.last[name] = v, self.A.mul(v) if name == "A" else self.A.tmul(v)
                self.note(name, 1)

    def compare(self, y: Array, Ay: Array, x: Array, Atx: Array) -> None:
        """Raise AssumptionError unless <x, A y> = <A'x, y>, up to the rounding that products with A and A' show."""
        left, right = inner(x, Ay), inner(Atx, y)
        size = max(self.A.norm * norm(y) * norm(x), norm(Ay) * norm(x), norm(Atx) * norm(y))
        eps = max(map(eps_of, (y, Ay, x, Atx)))
        if not (abs(left - right) > ADJOINT * eps * size and math.isfinite(size)):
            return
        for name in ("A", "At"):
            self.note(name, PRODUCTS)
        wrong = wrong_transpose(self.A.mul, self.A.tmul, y, Ay, x, Atx, self.A.norm)
        if wrong:
            raise AssumptionError("A", "transpose", left, right, wrong)

    def check_norm(self) -> None:
        """Raise AssumptionError if |A| is larger than the norm that was given."""
        estimate = self.estimate()
        if estimate.lower > (1.0 + ADJOINT * self.A.space.eps) * self.A.norm:
            raise self.small_norm(estimate.lower, estimate)

    def estimate(self) -> Norm:
        """An estimate of |A| from products, which does not use the norm that was given."""
        estimate = self.A.estimated_norm()
        for name in ("A", "At"):
            self.note(name, estimate.products)
        return estimate

    def small_norm(self, seen: float, estimate: Norm) -> AssumptionError:
        """The error for a norm of A that was given too small: |A| is at least ``seen``."""
        given = self.A.norm
        return AssumptionError(
            "A",
            "norm",
            given,
            seen,
            f"|A| is too small: {given:.6g} was given, but products show |A| >= {seen:.6g}; "
            f"give {estimate.upper:.6g}, an upper estimate, or leave it out to have it estimated",
            estimate.upper,
        )


def mu_too_large(name: str, mu: float, seen: float, low: float) -> AssumptionError:
    """The error for a mu that gradients refute: it is at most ``seen``, and perhaps no more than ``low``."""
    least = low if 0.0 < low < seen else seen
    if seen <= 0.0:
        text = f"{name} is not convex: mu = {mu:.6g} was given, but two gradients show mu <= {seen:.6g}; "
        return AssumptionError(
            name, "mu", mu, seen, f"{text}check the gradient of {name} (sp.check examines the problem)"
        )
    safe = 0.5 * least
    text = f"mu of {name} is too large: mu = {mu:.6g} was given, but two gradients show mu <= {seen:.6g}; "
    return AssumptionError(name, "mu", mu, seen, f"{text}give mu <= {least:.6g}, and {safe:.3g} to be safe", safe)


def L_too_small(name: str, L: float, seen: float, high: float) -> AssumptionError:
    """The error for an L that gradients refute: it is at least ``seen``, and perhaps no less than ``high``."""
    safe = 2.0 * max(seen, high)
    return AssumptionError(
        name,
        "L",
        L,
        seen,
        f"L of {name} is too small: L = {L:.6g} was given, but two gradients show L >= {seen:.6g}; "
        f"give a larger L (at least {max(seen, high):.6g}, and {safe:.3g} to be safe), "
        "or leave L out to have it estimated",
        safe,
    )


def no_gradient(name: str, skew: float, high: float) -> AssumptionError:
    """The error for a gradient whose Jacobian is not symmetric."""
    return AssumptionError(
        name,
        "gradient",
        0.0,
        skew,
        f"the gradient of {name} is not the gradient of any function: its Jacobian J is not symmetric, "
        f"|<J u, v> - <u, J v>| = {skew:.3g} for two unit vectors, beside curvatures up to {high:.3g}; "
        f"check the gradient of {name}, for example the signs of its entries",
    )


def two_answers(name: str, difference: float) -> AssumptionError:
    """The error for two gradients at one point that differ by more than noise."""
    return AssumptionError(
        name,
        "gradient",
        0.0,
        difference,
        f"the gradient of {name} gave two answers at one point, {difference:.3g} apart; it must depend on the point "
        "alone, return a new array and leave its argument alone",
    )


def _underflows(v: Array, square: float) -> bool:
    """Whether |v|^2 is so small that terms of the sum may have underflowed; such a square proves nothing."""
    return square < float(namespace(v).finfo(v.dtype).smallest_normal) / eps_of(v) and norm(v) > 0.0


def _skew(local: Curvature, noise: float) -> bool:
    """Whether the Jacobian is clearly not symmetric; with noise, which is known only roughly, the margin is larger."""
    margin = 10.0 if noise == 0.0 else 100.0
    return local.skew > SKEW * max(abs(local.low), abs(local.high)) + margin * local.error


def _side(name: str) -> str:
    return "A @ y" if name == "A" else "A.T @ x"
