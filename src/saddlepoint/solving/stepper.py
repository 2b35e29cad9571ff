"""Steps of one method on one problem: one by one, or many at once where they can be compiled."""

from __future__ import annotations

import math
from typing import Any

from saddlepoint.ground.errors import ProblemError
from saddlepoint.ground.linalg import norm
from saddlepoint.ground.validation import short_repr
from saddlepoint.methods.base import InnerRun, Method
from saddlepoint.parts.coupling import Coupling
from saddlepoint.problems.oracle import Meter, MeteredCoupling
from saddlepoint.problems.saddle import Saddle
from saddlepoint.problems.transforms import Units, View, in_units, safe_units
from saddlepoint.solving.compiled import Loops, Steps, compiled
from saddlepoint.solving.state import Factors, Learned, Point, RunState, in_space
from saddlepoint.theory.certificate import Certificate


class Stepper:
    """Moves a run forward by steps of its present method.

    The method computes in its own coordinates (its normal form, in units that neither overflow nor underflow), on a
    problem that counts its calls. Where many steps can be compiled into one call, they run on the problem itself, and
    their calls are charged together.

    Args:
        f: the problem.
        counted: the same problem, counted by ``meter``.
        method: the present method.
        state: the run, which is moved forward.
        meter: counts the calls and keeps to the budget.

    Attributes:
        unchecked: whether steps were taken since the last certificate.
        start_residual: the residual of the method at its start, where it is known before the first step; else infinite.
    """

    def __init__(self, f: Saddle, counted: Saddle, method: Method, state: RunState, meter: Meter) -> None:
        self.f, self.counted, self.method, self.state, self.meter = f, counted, method, state, meter
        fresh = state.method_state is None  # the units, and with them the view, are chosen in `begin`
        self.view = View(self.counted) if fresh else self.own_view(self.counted)
        self.unchecked, self.start_residual = False, math.inf
        self.compiles = f.space.compiles
        self.many: Steps | None = None  # compiled steps
        self.raw: Saddle | None = None  # the problem in the method's coordinates, not counted
        self.origin: Any = object()  # of the inner run for which they were compiled

    def own_view(self, problem: Saddle) -> View:
        """The problem in the method's own coordinates."""
        return view_of(problem, self.method, self.state.units)

    def point(self) -> Point:
        """The present point, in the variables of the problem."""
        state = self.state.method_state
        return self.state.start if state is None else self.view.back(state.x, state.y)

    @property
    def residual(self) -> float:
        """The residual of the present state, as far as the method computes one; else infinite."""
        state = self.state.method_state
        return math.inf if state is None else self.method.state_residual(state)

    @property
    def first_residual(self) -> float:
        """The residual at the start. Anderson's mixing knows it after its first step, Newton's method before it."""
        return self.start_residual if self.start_residual < math.inf else self.residual

    def begin(self, certificate: Certificate) -> None:
        """Initialise the method at its start; the certificate there says in which units to compute."""
        x, y = self.state.start
        self.state.units = safe_units(self.counted, norm(x), norm(y), certificate.Fx, certificate.Fy)
        self.view, self.raw = self.own_view(self.counted), None
        self.state.method_state = self.checked("init", self.method.init(self.view.problem, *self.view.to(x, y)))
        self.state.parameters = self.method.parameters(self.view.problem)
        self.start_residual = self.residual

    def advance(self, certificate: Certificate) -> None:
        """Take one step; or, where steps can be compiled, as many as there are until the next certificate.

        Before its first step the method is initialised at its start, of which this is the certificate.
        """
        if self.state.method_state is None:
            self.begin(certificate)
        before = self.state.method_state
        self.state.method_state = self.checked("step", self.method.step(self.view.problem, before))
        self.state.iterations += 1
        self.meter.check_time()  # a step may have called no oracle
        self.unchecked = True
        if self.compiles:
            self.advance_compiled(before)

    def checked(self, name: str, state: Any) -> Any:
        """A state that ``init`` or ``step`` returned; a ProblemError if it has no x and y."""
        if not (hasattr(state, "x") and hasattr(state, "y")):
            raise ProblemError(
                f"{name} of the method {self.method.label} returned {short_repr(state)}; expected a state whose first "
                "fields are x and y, such as a NamedTuple"
            )
        return state

    def advance_compiled(self, before: Any) -> None:
        """Take the steps until the next certificate at once, or as many as are alike and the budget allows."""
        raw = self.raw = self.raw or self.own_view(self.f).problem
        run = self.method.inner_run(raw, self.state.method_state)
        if run.origin is not self.origin:
            earlier = self.method.inner_run(raw, before)
            if earlier.origin is not run.origin:  # wait for a second state of the same problem
                return
            own = run.origin is None and not any(self.state.units)  # neither a correction problem nor other units
            loops = self.f.__dict__.setdefault("_loops", Loops()) if own else None
            self.origin = run.origin
            self.many = compiled(run.method, run.problem, earlier.state, run.state, loops)
        if self.many is not None:
            count = self.charge(run)
            if count > 0:
                self.state.method_state = run.rebuild(self.many(run.state, count), count)
                self.state.iterations += count

    def charge(self, run: InnerRun) -> int:
        """Charge the calls of as many steps as are to be taken, and return how many these are."""
        cost, meter, state = run.method.cost(run.problem) or {}, self.meter, self.state
        wanted = math.ceil((state.monitor.next_check - state.work) / (sum(cost.values()) + 1))
        allowed = [(meter.limits[name] - meter.calls[name]) // calls for name, calls in cost.items() if calls]
        count = int(min([wanted, run.steps, *allowed]))
        if count > 0:
            for name, calls in cost.items():
                meter.charge(name, count * calls)
            products = cost.get("A", 0) + cost.get("At", 0)
            state.counts.passes += count * (products // 2 if run.problem.A.fused_compiled else products)
        return count

    # -- checkpoints ---------------------------------------------------------------------------------------------------

    @property
    def factors(self) -> Factors:
        """The steps whose factorisations A and A' keep."""
        A = self.counted.A
        return A.factored, A.T.factored

    def restore(self, learned: Learned) -> None:
        """Take over what an earlier session remembered, and make again what it had made and no file holds."""
        for name, memory in in_space(learned.method_checks, self.f.space).items():
            if name in self.meter.checks:
                self.meter.checks[name].restore(memory)
        for A, factor in zip((self.counted.A, self.counted.A.T), learned.factors, strict=True):
            _refactor(A, factor)


def view_of(problem: Saddle, method: Method, units: Units) -> View:
    """The problem in the coordinates of a method, in these units."""
    scaled = in_units(problem, units)
    return scaled.then(method.normal_form(scaled.problem))


def fresh_state(f: Saddle, method: Method, units: Units, start: Point) -> Any:
    """A state of a method as it is before its first step, made with calls that are not counted."""
    view = view_of(f, method, units)
    return method.init(view.problem, *view.to(*start))


def _refactor(A: Coupling, factor: float | None) -> None:
    """Factorise again what an earlier session had factorised and paid for."""
    if factor is None or not isinstance(A, MeteredCoupling):
        return
    meter, A.meter = A.meter, Meter()
    A.normal_solver(factor)
    A.meter = meter
