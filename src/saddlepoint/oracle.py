"""The meter and the watch: a problem that counts its own calls, keeps to a budget and checks what it was told.

A method sees the metered problem and nothing else. However deep its inner loops, every call passes here.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from saddlepoint.arrays import Array, Space, all_finite, eps_of, inner, norm
from saddlepoint.coupling import Coupling, Norm
from saddlepoint.errors import AssumptionError, ProblemError
from saddlepoint.functions.smooth import Smooth
from saddlepoint.problem import Saddle
from saddlepoint.theory.smoothness import observed_L, observed_mu, smooth_lemma

ORACLES = ("grad_g", "grad_h", "A", "At")
PROXES = ("prox_g", "prox_h")


class OutOfCalls(Exception):  # noqa: N818 - a signal to the driver, not an error
    """The next call would exceed the budget of this oracle."""


class OutOfTime(Exception):  # noqa: N818
    """The time is up."""


class NotFinite(Exception):  # noqa: N818
    """A gradient has left the finite numbers."""


class Meter:
    """Counts calls by name and passes over A; raises when a budget is spent, before the call is made."""

    def __init__(
        self,
        max_calls: int | Mapping[str, int] | None = None,
        max_seconds: float | None = None,
        tick: Callable[[], None] | None = None,
    ) -> None:
        self.calls = dict.fromkeys(ORACLES + PROXES, 0)
        self.passes = 0
        self.limits = _limits(max_calls)
        self.deadline = None if max_seconds is None else time.perf_counter() + max_seconds
        self.tick = tick

    def charge(self, name: str, times: int = 1) -> None:
        """Count ``times`` calls of an oracle."""
        count = self.calls[name] + times
        if count > self.limits[name]:
            raise OutOfCalls(name)
        if self.deadline is not None and time.perf_counter() > self.deadline:
            raise OutOfTime
        self.calls[name] = count
        if self.tick is not None:
            self.tick()

    @property
    def total(self) -> int:
        """All calls so far."""
        return sum(self.calls.values())


def metered(f: Saddle, meter: Meter) -> Saddle:
    """The same problem, counted by ``meter``, with its gradients watched."""
    return Saddle.of(
        _counted(f.g, "g", f.space, meter), _counted(f.h, "h", f.space, meter), MeteredCoupling(f.A, meter), f.space
    )


def _counted(f: Smooth, name: str, space: Space, meter: Meter) -> Smooth:
    raw = f.grad
    oracle, watch = f"grad_{name}", Watch(name, f.mu, f.L)
    charge, dtype = meter.charge, space.dtype

    def grad(x: Array) -> Array:
        charge(oracle)
        p = raw(x)
        if p.dtype is not dtype:
            p = space.cast(p)
        if not math.isfinite(inner(p, p)) and not all_finite(p):  # the cheap test first; it can overflow
            raise NotFinite
        watch.see(x, p)
        return p

    def prox(v: Array, t: float) -> Array:
        charge(f"prox_{name}")
        return f.prox(v, t)

    def hessian(x: Array) -> Any:
        charge(oracle, x.shape[0])
        return f.hessian(x) if f.hessian is not None else None

    return Smooth(
        grad,
        mu=f.mu,
        L=f.L,
        value=f.value,
        prox=prox if f.has_prox else None,
        dim=f.dim,
        space=f.space,
        quadratic=f.quadratic,
        hessian=None if f.hessian is None else hessian,
    )


class MeteredCoupling(Coupling):
    """A coupling that counts its products and its passes over A."""

    def __init__(self, A: Coupling, meter: Meter, names: tuple[str, str] = ("A", "At")) -> None:
        self.A, self.meter, self.names = A, meter, names
        self.shape, self.dtype, self.fused = A.shape, A.dtype, A.fused

    @property
    def space(self) -> Space:
        """That of A."""
        return self.A.space

    def mul(self, y: Array) -> Array:
        """A y, counted."""
        self.meter.charge(self.names[0])
        self.meter.passes += 1
        return self.A.mul(y)

    def tmul(self, x: Array) -> Array:
        """A' x, counted."""
        self.meter.charge(self.names[1])
        self.meter.passes += 1
        return self.A.tmul(x)

    def _charge_pair(self, times: int = 1) -> None:
        for name in self.names:
            self.meter.charge(name, times)
        self.meter.passes += times if self.fused else 2 * times

    def both(self, x: Array, y: Array) -> tuple[Array, Array]:
        """(A y, A' x): two products, and one pass where the coupling fuses them."""
        self._charge_pair()
        return self.A.both(x, y)

    def through(self, y: Array, s: float = 1.0, e: Array | None = None) -> tuple[Array, Array]:
        """(t, A'(s t + e)) with t = A y: two products, and one pass where the coupling fuses them."""
        self._charge_pair()
        return self.A.through(y, s, e)

    def gram(self) -> Any:
        """A'A, counted as the n products each way that the oracle would need for it."""
        self._charge_pair(self.shape[1])
        return self.A.gram()

    def matrix(self) -> Any:
        """A, counted as the n products that the oracle would need for it."""
        self.meter.charge(self.names[0], self.shape[1])
        self.meter.passes += 1
        return self.A.matrix()

    def _transpose(self) -> Coupling:
        return MeteredCoupling(self.A.T, self.meter, (self.names[1], self.names[0]))

    @property
    def norm_estimate(self) -> Norm:
        """That of the coupling, made once for all runs; its products are reported apart, as ``Result.setup_calls``."""
        return self.A.norm_estimate


class Watch:
    """Compares gradients seen along the way with Lemma `smooth`: the first 64 one by one, later every eighth."""

    def __init__(self, name: str, mu: float, L: float) -> None:
        self.name, self.mu, self.L = name, 0.0 if math.isnan(mu) else mu, L
        self.seen = 0
        self.x: Array | None = None
        self.p: Array | None = None

    def see(self, x: Array, p: Array) -> None:
        """Note the gradient p at x, and raise AssumptionError if it refutes mu or L."""
        self.seen += 1
        if self.seen > 64 and self.seen & 7:
            return
        if p is self.p:
            raise ProblemError(f"the gradient of {self.name} returned the same array twice; return a new one each time")
        if self.x is not None and self.p is not None:
            self._compare(x, p, self.x, self.p)
        self.x, self.p = x, p

    def _compare(self, x: Array, p: Array, x0: Array, p0: Array) -> None:
        mu, L = self.mu, self.L
        dx, dp = x - x0, p - p0
        cross, dx2, dp2 = inner(dp, dx), inner(dx, dx), inner(dp, dp)
        slack = smooth_lemma(cross, dx2, dp2, mu, L)
        if slack >= 0.0 or not math.isfinite(slack):
            return
        # The gradients and the points themselves are rounded; only a violation beyond that proves anything.
        eps = eps_of(p)
        dp_error = 32 * eps * (norm(p) + norm(p0) + L * (norm(x) + norm(x0)))
        error = dp_error * (math.sqrt(dx2) + 2.0 * (math.sqrt(dp2) + dp_error) / (L + mu))
        if slack < -error:
            raise self._refutation(cross, dx2, dp2)

    def _refutation(self, cross: float, dx2: float, dp2: float) -> AssumptionError:
        """Name the constant that this pair proves wrong: mu if convexity itself fails, else L, else either."""
        f, mu, L = self.name, self.mu, self.L
        if cross < mu * dx2:
            seen = cross / dx2
            nature = f"{f} is not convex" if seen < 0.0 else f"mu of {f} is too large"
            advice = f"check the gradient of {f}" if seen < 0.0 else f"give mu <= {seen:.6g}, and smaller to be safe"
            return AssumptionError(
                f,
                "mu",
                mu,
                seen,
                f"{nature}: mu = {mu:.6g} was given, but two gradients show mu <= {seen:.6g}; {advice}",
            )
        seen = max(math.sqrt(dp2 / dx2), dp2 / cross if cross > 0.0 else 0.0)
        if seen > L:
            return AssumptionError(
                f,
                "L",
                L,
                seen,
                f"L of {f} is too small: L = {L:.6g} was given, but two gradients show L >= {seen:.6g}; "
                f"give a larger L (at least {seen:.6g}), or leave L out to have it estimated",
            )
        seen, largest = observed_L(cross, dx2, dp2, mu), observed_mu(cross, dx2, dp2, L)
        return AssumptionError(
            f,
            "L",
            L,
            seen,
            f"mu = {mu:.6g} and L = {L:.6g} of {f} cannot both hold: two gradients show L >= {seen:.6g}, "
            f"or else mu <= {largest:.6g}; give a larger L or a smaller mu",
        )


def _limits(max_calls: int | Mapping[str, int] | None) -> dict[str, float]:
    limits = dict.fromkeys(ORACLES + PROXES, math.inf)
    if max_calls is None:
        return limits
    given = max_calls if isinstance(max_calls, Mapping) else dict.fromkeys(ORACLES, max_calls)
    for name, number in given.items():
        if name not in limits:
            raise ProblemError(f"max_calls names the oracle {name!r}; expected one of {', '.join(limits)}")
        if isinstance(number, bool) or not isinstance(number, int | np.integer) or number < 0:
            raise ProblemError(f"max_calls is {number!r}; expected a whole number >= 0, or a dict of such by oracle")
        limits[name] = int(number)
    return limits
