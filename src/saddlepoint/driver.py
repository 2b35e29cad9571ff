"""The one driver: it owns the loop, the stopping rule, the history and the progress bar.

Looking does not change the run: certificates are taken on the raw problem, on a geometric grid of the method's calls,
and neither their calls nor their time are the method's.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from saddlepoint.arrays import all_finite, common_space, copied, is_array, namespace
from saddlepoint.auto import Guard, Plan, choose
from saddlepoint.compiled import Steps, compiled
from saddlepoint.errors import AssumptionError, ProblemError, SingularError
from saddlepoint.methods.base import Method, make_method
from saddlepoint.oracle import ORACLES, PROXES, Meter, MeteredCoupling, NotFinite, OutOfCalls, OutOfTime, metered
from saddlepoint.problem import Certificate, Saddle
from saddlepoint.progress import Progress, make_progress
from saddlepoint.result import History, Record, Result, Status
from saddlepoint.stored import Stored
from saddlepoint.vectors import Array, as_vector

GROWTH = 1.05  # a certificate is taken when the method's calls have grown by this factor,
MEASURABLE = 2e-2  # seconds of two gradients from which products are timed too
STRIDE = 16  # and by this number: a certificate is four calls itself
PATIENCE = 8  # certificates without progress, at the precision of the arithmetic, that make a stall


def solve(
    f: Saddle,
    x0: Any = None,
    y0: Any = None,
    *,
    method: str | Method = "auto",
    tol: float = 1e-6,
    costs: Mapping[str, float] | None = None,
    max_calls: int | Mapping[str, int] | None = None,
    max_seconds: float | None = None,
    callback: Callable[[Result], object] | None = None,
    progress: bool = False,
    history: bool = True,
    storage: str | None = None,
) -> Result:
    """Find the saddle point of ``f`` and prove how close the answer is.

    Args:
        f: the problem.
        x0, y0: the starting point; zero if left out. It is not modified.
        method: a registered name (``sp.methods()`` lists them), a ``Method`` object, or ``"auto"``.
        tol: the run is solved when the certified |x-x*| + |y-y*| is at most this. Where mu is not known, nothing can be
            certified, and the run ends when the residual |F| is at most this.
        costs: what a call of ``grad_g``, ``grad_h``, ``A``, ``At`` costs, in any unit, for ``auto`` to choose by;
            measured if left out.
        max_calls: a number caps each of the four oracles; a dict caps them by name (grad_g, grad_h, A, At).
        max_seconds: wall-clock limit, kept inside nested loops too.
        callback: called with a ``Result`` at every certificate; raise StopIteration to end the run.
        progress: show a progress bar.
        history: keep a record of every certificate.
        storage: "float32" or "bfloat16" to let the method read a copy of A in that precision. Certificates are taken
            with A itself, and so are corrections of the copy's errors; where they no longer help, A takes over.

    Returns:
        A ``Result`` with the best certified point, whatever ended the run: solved, out of calls or time, Ctrl-C, or a
        stall at the precision of the arithmetic.

    Raises:
        ProblemError: something is wrong with the input.
        AssumptionError: the run proved mu or L of g or h wrong.

    Example:
        >>> import numpy as np, saddlepoint as sp
        >>> f = sp.Saddle(sp.Quadratic([1.0, 3.0], [1.0, 1.0]), sp.Quadratic(2.0), [[1.0, 2.0], [0.0, 1.0]])
        >>> result = sp.solve(f, tol=1e-9)
        >>> result.solved, result.x.round(6)
        (True, array([-0.222222, -0.222222]))
    """
    if not isinstance(f, Saddle):
        raise ProblemError(f"f is a {type(f).__name__}; expected a Saddle(g, h, A)")
    tol = _positive(tol, "tol")
    if max_seconds is not None:
        max_seconds = _positive(max_seconds, "max_seconds")
    x, y = _start(f, x0, y0)
    seconds = _check_oracle(f, x, y)
    timed = method == "auto" and costs is None and seconds >= MEASURABLE
    if timed:
        costs = _measured_costs(f, x, y, seconds)
    plan = choose(f, costs) if method == "auto" else Plan((_as_method(method),), "")
    _check_method(f, plan.methods[0])
    with make_progress(progress, tol, plan.methods[0].label) as bar:
        meter = Meter(max_calls, max_seconds, bar.tick)
        stored = None if storage is None else Stored(f, storage)
        return _Run(f, plan, x, y, tol, meter, callback, bar, history, int(timed), stored).go()


class _Lagging(Exception):  # noqa: N818 - a signal within the driver, not an error
    """The method does worse than the next one of the plan would."""


class _RoundOver(Exception):  # noqa: N818 - likewise
    """The copy of A has done what it can from the last correction on."""


class _Run:
    """One solve in progress."""

    def __init__(
        self,
        f: Saddle,
        plan: Plan,
        x: Array,
        y: Array,
        tol: float,
        meter: Meter,
        callback: Callable[[Result], object] | None,
        bar: Progress,
        keep_history: bool,
        timed: int,
        stored: Stored | None,
    ) -> None:
        self.f, self.why, self.tol, self.meter = f, plan.message, tol, meter
        self.method, *self.others = plan.methods
        self.guard = Guard(f, tol)
        self.stored = stored
        self.certain = not math.isnan(f.mu_x + f.mu_y)
        self.callback, self.bar, self.keep_history = callback, bar, keep_history
        self.timed = timed  # products each way that were made to time them
        self.history = History()
        self.iterations = self.looks = 0
        self.looking = 0.0  # seconds spent on certificates
        self.started = time.perf_counter()
        self.best = (x, y, Certificate(math.inf, math.inf, math.inf, math.inf, math.inf))
        self.improved_look = self.improved_calls = 0
        self.floor = False  # the accuracy reached is that of the arithmetic
        self.parameters: dict[str, float] = {}

    def go(self) -> Result:
        """Run to the end; but where the run refutes an L that was only estimated, correct that and go on.

        With a plan, the next method goes on from the best point when one lags behind or breaks down.
        """
        while True:
            try:
                result = self.attempt(*self.best[:2])
                if not (self.others and result.status in (Status.DIVERGED, Status.STALLED) and not self.floor):
                    return result
                self.change("broke down")
            except _Lagging:
                self.change("fell behind")
            except _RoundOver:
                assert self.stored is not None
                if self.stored.stalled:
                    note = f"A in {self.stored.storage} gained no more, then A itself"
                    self.why = f"{self.why}; {note}" if self.why else note
                    self.stored = None
            except AssumptionError as error:
                if error.constant != "L" or error.function not in self.f.estimated:
                    error.result = self.result(Status.DIVERGED)
                    raise
                self.f = self.f.with_estimate(error.function, 2.0 * error.observed)

    def change(self, reason: str) -> None:
        """Take the next method of the plan."""
        before, self.method = self.method.label, self.others.pop(0)
        self.why += f"; {before} {reason}, then {self.method.label}"
        self.guard.begin(self.busiest)
        self.improved_look, self.improved_calls = self.looks, self.meter.total

    def attempt(self, x: Array, y: Array) -> Result:
        """Run until solved, out of budget, stalled or stopped, and return the best certified point."""
        raw, counted = self.f, metered(self.f, self.meter)
        if self.stored is not None:
            S = self.stored.S
            self.stored.begin(x, y)
            raw = self.stored.problem(raw, S)
            counted = self.stored.problem(counted, MeteredCoupling(S, self.meter))
        view = self.method.normal(counted)

        def back(state: Any) -> tuple[Array, Array]:
            u, v = view.back(state.x, state.y)
            return (u, v) if self.stored is None else (x + u, y + v)

        latest: Any = None
        status: Status | None
        try:
            status = self.look(x, y)
            if status is None:
                start = (x, y) if self.stored is None else (0.0 * x, 0.0 * y)
                state = self.method.init(view.problem, *view.to(*start))
                self.parameters = self.method.parameters(view.problem)
            many, tried = None, self.f.space.is_numpy
            while status is None:
                with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # what comes of it is noticed
                    before, state = state, self.method.step(view.problem, state)
                latest = state
                self.iterations += 1
                if not tried:
                    tried = True
                    many = compiled(self.method, self.method.normal(raw).problem, before, state)
                if many is not None:
                    state = latest = self.stride(many, state, self.method.cost(view.problem) or {})
                if self.work >= self.next_look:
                    latest = None
                    status = self.look(*back(state))
        except OutOfCalls as signal:
            status = Status.OUT_OF_CALLS
            self.spent = str(signal)
        except OutOfTime:
            status = Status.OUT_OF_TIME
        except (NotFinite, SingularError):
            status = Status.DIVERGED
        except KeyboardInterrupt:
            status = Status.INTERRUPTED
        except StopIteration:
            status = Status.STOPPED
        if latest is not None and self.merit(self.certify(*back(latest))) <= self.tol:
            status = self.success
        return self.result(status)

    def stride(self, many: Steps, state: Any, cost: dict[str, int]) -> Any:
        """Steps up to the next look, or as many as the budget allows, in one go; they are charged together."""
        meter, step = self.meter, sum(cost.values()) + 1
        count = math.ceil((self.next_look - self.work) / step)
        allowed = [(meter.limits[name] - meter.calls[name]) // calls for name, calls in cost.items() if calls]
        count = int(min([count, *allowed]))
        if count <= 0:
            return state
        for name, calls in cost.items():
            meter.charge(name, count * calls)
        products = cost.get("A", 0) + cost.get("At", 0)
        meter.passes += count * (products // 2 if self.f.A.fused else products)
        self.iterations += count
        return many(state, count)

    def look(self, x: Array, y: Array) -> Status | None:
        """Take a certificate, tell whoever watches, and say whether the run is over."""
        certificate = self.certify(x, y)
        self.next_look = max(self.work + STRIDE, math.ceil(GROWTH * self.work))
        if self.callback is not None:
            began = time.perf_counter()
            self.callback(self.result(Status.RUNNING))
            self.looking += time.perf_counter() - began
        if self.merit(certificate) <= self.tol:
            return self.success
        if not math.isfinite(self.merit(certificate)):
            return Status.DIVERGED
        if self.stalled():
            if self.stored is None:
                return Status.STALLED
            self.stored.stalled, self.floor = True, False
            raise _RoundOver
        if self.stored is not None and self.stored.over(certificate.distance, self.busiest):
            raise _RoundOver
        if self.certain:
            ahead = math.ceil(self.busiest + self.next_look - self.work)
            if self.guard.lagging(self.best[2], self.busiest, ahead, len(self.others)):
                raise _Lagging
        return None

    def merit(self, certificate: Certificate) -> float:
        """What is to fall below tol: the certified distance, or the residual where mu is not known."""
        return certificate.distance if self.certain else certificate.residual

    @property
    def success(self) -> Status:
        """The status of a run that came to its end."""
        return Status.SOLVED if self.certain else Status.UNCERTIFIED

    @property
    def busiest(self) -> int:
        """Calls of the oracle that was called most."""
        return max(self.meter.calls[name] for name in ORACLES)

    def certify(self, x: Array, y: Array) -> Certificate:
        """The certificate of (x, y), entered into the history and compared with the best."""
        if not self.f.space.on_host:
            float(x[0])  # the steps are under way still, and theirs is the time until here
        began = time.perf_counter()
        x, y = self.f.space.cast(x), self.f.space.cast(y)  # what will be returned
        certificate = self.f.certificate(x, y)
        self.looks += 1
        if self.merit(certificate) < 0.9 * self.merit(self.best[2]):
            self.improved_look, self.improved_calls = self.looks, self.meter.total
        if self.merit(certificate) < self.merit(self.best[2]):
            self.best = (x, y, certificate)
        self.looking += time.perf_counter() - began
        calls = self.meter.calls
        record = Record(
            self.iterations,
            calls["grad_g"],
            calls["grad_h"],
            calls["A"],
            calls["At"],
            self.meter.passes,
            self.seconds,
            certificate.distance,
            certificate.gap,
        )
        if self.keep_history:
            self.history.append(record)
        self.bar.update(record)
        return certificate

    def stalled(self) -> bool:
        """No progress for a while, at the precision of the arithmetic; or none at all for very long."""
        waited = self.looks - self.improved_look
        unit = self.f.space.eps / self.f.space.wide.eps
        certificate = self.best[2]
        if self.certain and waited >= PATIENCE and certificate.distance <= 100.0 * unit * certificate.rounding:
            self.floor = True
        return self.floor or (waited >= 40 and self.meter.total > 100 * self.improved_calls + 1_000_000)

    @property
    def work(self) -> int:
        """Calls and steps so far: what spaces the certificates."""
        return self.meter.total + self.iterations

    @property
    def seconds(self) -> float:
        """Time of the method alone."""
        return time.perf_counter() - self.started - self.looking

    def result(self, status: Status) -> Result:
        """The best certified point so far, with the bill."""
        x, y, certificate = self.best
        calls = {name: count for name, count in self.meter.calls.items() if count or name not in PROXES}
        products = self.f.A.norm_estimate.products + self.f.A.probes + self.timed
        gradients = {f"grad_{name}": 1 + self.f.estimated.get(name, 0) for name in ("g", "h")}  # 1 at the door
        return Result(
            x=x,
            y=y,
            status=status,
            message=self.message(status, certificate),
            certificate=certificate,
            calls=calls,
            passes=self.meter.passes,
            iterations=self.iterations,
            seconds=self.seconds,
            method=self.method.label,
            parameters=self.parameters,
            history=self.history,
            monitor_calls=self.looks,
            setup_calls=gradients | {"A": products, "At": products},
        )

    def obstacle(self) -> str:
        """Why a run stalled, and what to try."""
        if not self.floor:
            return "there was no progress for long; try another method (sp.predict compares them)"
        advice = "use float64" if self.f.space.eps > self.f.space.wide.eps else "raise tol"
        return f"the precision of {str(self.f.dtype).rpartition('.')[2]} allows no more; {advice}"

    def message(self, status: Status, certificate: Certificate) -> str:
        """One sentence that says what happened and, if it is not solved, what to try."""
        distance, residual = certificate.distance, certificate.residual
        where = f"at a certified distance of {distance:.3g}" if self.certain else f"at a residual of {residual:.3g}"
        if status is Status.OUT_OF_CALLS:
            limit = self.meter.limits[self.spent]
            sentence = f"{where} the {limit:.0f} calls of {self.spent} are spent; raise max_calls or go on from x, y"
        else:
            sentence = {
                Status.SOLVED: f"certified distance {distance:.3g} <= tol {self.tol:.3g}",
                Status.UNCERTIFIED: f"residual {residual:.3g} <= tol {self.tol:.3g}, but no distance is certified: "
                "mu is unknown; give mu to Smooth to have a proof",
                Status.OUT_OF_TIME: f"{where} the time is up; raise max_seconds or go on from x, y",
                Status.INTERRUPTED: f"{where}; go on from x, y by passing them as x0, y0",
                Status.STOPPED: where,
                Status.STALLED: f"{where} {self.obstacle()}",
                Status.DIVERGED: f"{where} the iterates left the finite numbers; check mu, L and the gradients",
                Status.RUNNING: where,
            }[status]
        return f"{sentence} ({self.why})" if self.why else sentence


def _as_method(method: str | Method) -> Method:
    if isinstance(method, Method):
        return method
    if isinstance(method, type) and issubclass(method, Method):
        raise ProblemError(f"method is the class {method.__name__}; give an object, {method.__name__}()")
    if not isinstance(method, str):
        raise ProblemError(f"method is {method!r}; expected a name or a Method object")
    return make_method(method)


def _start(f: Saddle, x0: Any, y0: Any) -> tuple[Array, Array]:
    m, n = f.shape
    starts = [None if given is None else as_vector(given, name, size) for given, name, size in
              ((x0, "x0", m), (y0, "y0", n))]  # fmt: skip
    for name, start in zip(("x0", "y0"), starts, strict=True):
        common_space({"the problem": f.space, name: start})
    x, y = (f.space.zeros(size) if start is None else f.space.cast(copied(start))
            for start, size in zip(starts, (m, n), strict=True))  # fmt: skip
    return x, y


def _check_oracle(f: Saddle, x: Array, y: Array) -> float:
    """One call of each gradient at the start, so that a wrong shape is an error at the door and not deep inside.

    Returns the seconds that they took.
    """
    seconds = 0.0
    for name, function, point in (("g", f.g, x), ("h", f.h, y)):
        began = time.perf_counter()
        gradient = function.grad(copied(point))
        seconds += time.perf_counter() - began
        if not is_array(gradient) or gradient.shape != point.shape:
            raise ProblemError(
                f"the gradient of {name} returned {_describe(gradient)} for a point of shape {point.shape}; "
                "expected an array of the same shape"
            )
        common_space({"the problem": f.space, f"the gradient of {name}": gradient})
        if not namespace(gradient).isdtype(gradient.dtype, "real floating"):
            raise ProblemError(f"the gradient of {name} has dtype {gradient.dtype}; expected float32 or float64")
        if not all_finite(gradient):
            raise ProblemError(f"the gradient of {name} is not finite at the start; start elsewhere or correct it")
    return seconds


def _measured_costs(f: Saddle, x: Array, y: Array, gradients: float) -> dict[str, float]:
    """What a gradient and a product cost, in seconds."""
    began = time.perf_counter()
    f.A.both(x, y)
    products = max(time.perf_counter() - began, 1e-6)
    return {"grad_g": gradients, "grad_h": gradients, "A": products, "At": products}


def _check_method(f: Saddle, method: Method) -> None:
    if method.needs_mu and math.isnan(f.mu_x + f.mu_y):
        name = "g" if math.isnan(f.mu_x) else "h"
        raise ProblemError(
            f"{method.label} needs mu of {name}, which is unknown; give mu to Smooth, or use auto, rapd or agraal, "
            "which do without but certify no distance"
        )
    for name, function in (("g", f.g), ("h", f.h)):
        if method.uses_prox(name) and not function.has_prox:
            raise ProblemError(
                f"{method.label} needs the prox of {name}, and {type(function).__name__} has none; "
                "give prox= to Smooth or use a gradient method such as dippa"
            )


def _positive(value: Any, name: str) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise ProblemError(f"{name} is {value!r}; expected a positive number") from None
    if not (number > 0.0 and math.isfinite(number)):
        raise ProblemError(f"{name} is {number}; expected a positive number")
    return number


def _describe(value: Any) -> str:
    return f"an array of shape {tuple(value.shape)}" if is_array(value) else f"a {type(value).__name__}"
