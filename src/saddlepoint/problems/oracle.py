"""The metered problem, which counts oracle calls, enforces budgets, and checks the answers of oracles.

A method is given the metered problem and nothing else, so every call is counted, however deep its inner loops are.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.sparse import issparse

from saddlepoint.ground.arrays import Array, Space, all_finite
from saddlepoint.ground.errors import NotFinite, ProblemError
from saddlepoint.ground.linalg import inner
from saddlepoint.ground.probing import products_needed
from saddlepoint.parts.coupling import Coupling
from saddlepoint.parts.coupling.forwarding import ForwardingCoupling
from saddlepoint.parts.functions.smooth import Smooth
from saddlepoint.problems.adjoint_check import AdjointCheck, check_estimate
from saddlepoint.problems.gradient_check import GradientCheck, stated_error
from saddlepoint.problems.saddle import Saddle

ORACLES = ("grad_g", "grad_h", "A", "At")
PROXES = ("prox_g", "prox_h")
TOTAL = "total"  # the key of ``max_calls`` for all calls of an oracle, whoever made them
NORM_CHECK = 8  # number of products from one comparison of their length with the estimate of |A| to the next


class OutOfCalls(Exception):  # noqa: N818 - a signal within the run, not an error
    """The next call would exceed the budget of this oracle."""


class OutOfTime(Exception):  # noqa: N818
    """The time limit is reached."""


@dataclass
class CallCounts:
    """How often the oracle was called."""

    calls: dict[str, int] = field(default_factory=lambda: dict.fromkeys(ORACLES + PROXES, 0))  # by the method
    examined: dict[str, int] = field(default_factory=lambda: dict.fromkeys(ORACLES, 0))  # to examine the problem
    passes: int = 0  # number of times that the method read all of A

    @property
    def total(self) -> int:
        """All calls of the method."""
        return sum(self.calls.values())

    @property
    def busiest(self) -> int:
        """Calls of the oracle that the method called most."""
        return max(self.calls[name] for name in ORACLES)


class Meter:
    """Counts calls by oracle and passes over A; raises before a call that would exceed a budget.

    Args:
        limits: the calls that may be made, by oracle, and under "total" those of each oracle with the calls that the
            method did not make; None for no limit.
        max_seconds: the time until ``OutOfTime`` is raised, by ``clock``.
        tick: a function that is called at every oracle call.
        clock: a function that returns seconds.
        counts: the object in which the calls are counted.

    Attributes:
        beside: a function that returns the calls of an oracle that the method did not make.
        reserved: calls of each oracle that the end of the run takes: the last certificate, and one more for the support
            of simple terms.
        checks: the checks that compare gradients of g and h and products with A with the claimed constants.
    """

    def __init__(
        self,
        limits: Mapping[str, float] | None = None,
        max_seconds: float | None = None,
        tick: Callable[[], None] | None = None,
        clock: Callable[[], float] = time.perf_counter,
        counts: CallCounts | None = None,
    ) -> None:
        self.counts = CallCounts() if counts is None else counts
        self.calls = self.counts.calls
        self.checks: dict[str, GradientCheck | AdjointCheck] = {}
        self.limits = call_limits(None) if limits is None else dict(limits)
        self.total = self.limits.pop(TOTAL, math.inf)
        self.beside: Callable[[str], int] = self.counts.examined.__getitem__
        self.reserved = 1
        self.clock = clock
        self.deadline = None if max_seconds is None else clock() + max_seconds
        self.tick = tick

    def charge(self, name: str, times: int = 1) -> None:
        """Count ``times`` calls of an oracle."""
        count = self.calls[name] + times
        if count > self.limits[name] or (self.total < math.inf and self._exceeds_total(name, count)):
            raise OutOfCalls(name)
        self.check_time()
        self.calls[name] = count
        if self.tick is not None:
            self.tick()

    def check_time(self) -> None:
        """Raise OutOfTime if the time limit is reached."""
        if self.deadline is not None and self.clock() > self.deadline:
            raise OutOfTime

    def _exceeds_total(self, name: str, count: int) -> bool:
        """Whether this many calls of the method, what was called beside them and the end of the run are too many."""
        return name in ORACLES and count + self.beside(name) + self.reserved > self.total

    def note(self, name: str, times: int) -> None:
        """Count ``times`` calls that were made to examine the problem; no budget limits them."""
        self.counts.examined[name] += times


def metered(f: Saddle, meter: Meter) -> Saddle:
    """The same problem, counted by ``meter``; parts that are not trusted are checked."""
    check = None if f.A.trusted else AdjointCheck(f.A, meter.note)
    if check is not None:
        meter.checks["A"] = check
    A = MeteredCoupling(f.A, meter, check=check)
    g, h = _counted(f.g, "g", f.space.of_x, meter), _counted(f.h, "h", f.space.of_y, meter)
    return Saddle.of(g, h, A, f.space)


def _counted(f: Smooth, name: str, space: Space, meter: Meter, checked: bool = True) -> Smooth:
    """The same function, counted as ``name``; its gradients are compared with mu and L unless ``checked`` is False."""
    raw, oracle, charge, dtype = f.grad, f"grad_{name}", meter.charge, space.dtype
    test_finite = not space.is_sharded  # in shards the next A'x shows it without an extra round
    check = None if f.trusted or not checked else GradientCheck(name, f.mu, f.L, raw, meter.note, stated_error(f))
    if check is not None:
        meter.checks[name] = check
        raw = check.gradient

    def grad(x: Array) -> Array:
        charge(oracle)
        if f.domain:
            x = f.inside(x)
        p = raw(x)
        if p.dtype is not dtype:
            p = space.cast(p)
        agrees = None if check is None else check.agrees(x, p)
        if test_finite and not agrees and not math.isfinite(inner(p, p)) and not all_finite(p):
            raise NotFinite  # the cheap test came first; it can overflow
        if check is not None:
            check.see(x, p, agrees)
        return p

    def prox(v: Array, t: float) -> Array:
        charge(f"prox_{name}")
        return f.prox(v, t)

    def prox_of_sum(v: Array, t: float) -> Array:
        charge(f"prox_{name}")
        return f.whole_prox(v, t)

    def hessian(x: Array) -> Any:
        assert f.hessian is not None
        H = f.hessian(x)
        charge(oracle, products_needed(H) if issparse(H) else x.shape[0])
        return H

    def restrict(rows: slice) -> Smooth:
        assert f.restrict is not None
        return _counted(f.restrict(rows), name, space, meter, checked=False)

    return f.replace(
        grad=grad,
        prox=prox if f.has_prox else None,
        prox_of_sum=None if f.prox_of_sum is None else prox_of_sum,
        hessian=None if f.hessian is None else hessian,
        restrict=None if f.restrict is None else restrict,
        trusted=f.trusted,
        **f.arithmetic,
    )


class MeteredCoupling(ForwardingCoupling):
    """A coupling that counts its products and its passes over A, and has its products checked if A is not trusted."""

    def __init__(
        self, A: Coupling, meter: Meter, names: tuple[str, str] = ("A", "At"), check: AdjointCheck | None = None
    ) -> None:
        super().__init__(A)
        self.meter, self.names, self.check = meter, names, check

    def mul(self, y: Array) -> Array:
        """The product A y, counted."""
        self.meter.charge(self.names[0])
        self.meter.counts.passes += 1
        Ay = self.A.mul(y)
        self._see(self.names[0], y, Ay)
        return Ay

    def tmul(self, x: Array) -> Array:
        """The product A' x, counted."""
        self.meter.charge(self.names[1])
        self.meter.counts.passes += 1
        Atx = self.A.tmul(x)
        self._see(self.names[1], x, Atx)
        return Atx

    def _see(self, name: str, v: Array, product: Array) -> None:
        """Have a product of A ("A") or A' ("At") with v checked."""
        if self.check is not None:
            self.check.see(name, v, product)
        if self.meter.calls[name] % NORM_CHECK == 0 and self.norm_estimate.is_quick:
            check_estimate(self.A, v, product, self.meter.note)

    def _charge_pair(self, times: int = 1) -> None:
        for name in self.names:
            self.meter.charge(name, times)
        self.meter.counts.passes += times if self.A.fused else 2 * times

    def both(self, x: Array, y: Array) -> tuple[Array, Array]:
        """The products (A y, A' x): two products, and one pass if the coupling fuses them."""
        self._charge_pair()
        Ay, Atx = self.A.both(x, y)
        self._see(self.names[0], y, Ay)
        self._see(self.names[1], x, Atx)
        return Ay, Atx

    def through(self, y: Array, s: float = 1.0, e: Array | None = None) -> tuple[Array, Array]:
        """The pair (t, A'(s t + e)) with t = A y: two products, and one pass if the coupling fuses them."""
        self._charge_pair()
        t, u = self.A.through(y, s, e)
        self._see(self.names[0], y, t)
        if self.check is not None:
            self.check.see(self.names[1], s * t if e is None else s * t + e, u)
        return t, u

    def gram(self) -> Any:
        """The matrix A'A, counted as the n products each way that would compute it."""
        self._charge_pair(self.shape[1])
        return self.A.gram()

    def matrix(self) -> Any:
        """The matrix A, counted as the products with A or with A' that would compute it, whichever are fewer."""
        columns, rows = self.A.products_for_matrix(), self.A.T.products_for_matrix()
        self.meter.charge(*((self.names[0], columns) if columns <= rows else (self.names[1], rows)))
        self.meter.counts.passes += 1
        return self.A.matrix()

    def _transpose(self) -> Coupling:
        return MeteredCoupling(self.A.T, self.meter, (self.names[1], self.names[0]), self.check)


def call_limits(max_calls: int | Mapping[str, int] | None) -> dict[str, float]:
    """The calls that may be made, by oracle: ``max_calls`` is a number for each of the four, or a dict by name.

    The number under "total" is for each oracle, too, and counts the calls that the method did not make.
    """
    limits = dict.fromkeys(ORACLES + PROXES, math.inf)
    if max_calls is None:
        return limits
    given = max_calls if isinstance(max_calls, Mapping) else dict.fromkeys(ORACLES, max_calls)
    for name, number in given.items():
        if name not in (*limits, TOTAL):
            raise ProblemError(f"max_calls names the oracle {name!r}; expected one of {', '.join((*limits, TOTAL))}")
        if isinstance(number, bool) or not isinstance(number, int | np.integer) or number < 0:
            raise ProblemError(f"max_calls is {number!r}; expected a whole number >= 0, or a dict of such by oracle")
        limits[name] = int(number)
    return limits
