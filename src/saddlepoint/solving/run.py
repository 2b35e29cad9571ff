"""One solve in progress: the loop, the stopping rule, the history.

Looking does not change the run: certificates are taken on the raw problem, on a geometric grid of the method's calls,
and neither their calls nor their time are the method's.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from saddlepoint.ground.arrays import Array, to_host
from saddlepoint.ground.errors import AssumptionError, ProblemError, SingularError, Terminated
from saddlepoint.ground.linalg import norm
from saddlepoint.parts.sharded.engine import ShardsLost
from saddlepoint.problems.audit import Audit
from saddlepoint.problems.corrections import corrected
from saddlepoint.problems.oracle import (
    ORACLES,
    PROXES,
    Meter,
    MeteredCoupling,
    NotFinite,
    OutOfCalls,
    OutOfTime,
    metered,
)
from saddlepoint.problems.saddle import Saddle
from saddlepoint.problems.transforms import Units, View, in_units, tame_units
from saddlepoint.solving.auto import Guard, Plan
from saddlepoint.solving.checkpoint import Checkpointer, LoadedRun
from saddlepoint.solving.compiled import Steps, compiled
from saddlepoint.solving.messages import Ending, sentence
from saddlepoint.solving.progress import Progress
from saddlepoint.solving.provenance import provenance
from saddlepoint.solving.refinement import Stored
from saddlepoint.solving.result import History, Record, Result, Status
from saddlepoint.solving.state import NOTHING, Correction, Standing, recall, restore, standing_of
from saddlepoint.theory.certificate import Certificate

GROWTH = 1.05  # a certificate is taken when the method's calls have grown by this factor,
STRIDE = 16  # and by this number: a certificate is four calls itself
EXPLAINED = 400  # calls after which a run that was not given more is worth an explanation
PATIENCE = 8  # certificates without progress, at the precision of the arithmetic, that make a stall


@dataclass(frozen=True)
class SolveOptions:
    """What the caller asked for."""

    tol: float
    callback: Callable[[Result], object] | None = None
    history: bool = True
    adapt: bool = False  # correct a constant that the run refutes


class _Lagging(Exception):  # noqa: N818 - a signal within the run, not an error
    """The method does worse than the next one of the plan would."""


class _RoundOver(Exception):  # noqa: N818 - likewise
    """The copy of A has done what it can from the last correction on."""


class Run:
    """One solve in progress.

    Args:
        f: the problem.
        plan: the methods in the order in which they are tried.
        x, y: the start.
        wishes: what the caller asked for.
        meter: counts the calls and keeps to the budget.
        bar: shows the progress.
        stored: lets the method read a copy of A.
        timed: products each way that were made to time them.
        keeper: writes the run to disk.
    """

    def __init__(
        self,
        f: Saddle,
        plan: Plan,
        x: Array,
        y: Array,
        wishes: SolveOptions,
        meter: Meter,
        bar: Progress,
        stored: Stored | None = None,
        timed: int = 0,
        keeper: Checkpointer | None = None,
    ) -> None:
        self.f, self.why, self.tol, self.meter = f, plan.message, wishes.tol, meter
        self.method, *self.others = plan.methods
        self.auto = bool(plan.why)
        self.guard = Guard(f, wishes.tol)
        self.stored = stored
        self.certain = not math.isnan(f.mu_x + f.mu_y)
        self.wishes, self.bar, self.keeper = wishes, bar, keeper
        self.setup = (timed, int(keeper is not None))  # products to time them, and queries to know the problem again
        self.history = History()
        self.iterations = self.looks = self.next_look = 0
        self.looking = 0.0  # seconds spent on certificates
        self.started = time.perf_counter()
        self.begun = time.time()
        self.best = (x, y, NOTHING)
        self.improved = (0, 0)  # certificates and calls until the last progress
        self.floor = False  # the accuracy reached is that of the arithmetic
        self.audit = Audit(f, meter)
        self.sound = self.explained = not self.audit.needed  # what a certificate rests on, and what a failure may show
        self.parameters: dict[str, float] = {}
        self.corrections: dict[tuple[str, str], Correction] = {}
        self.spent, self.signal, self.resumed = "", "", 0
        self.start, self.units = (x, y), Units()
        self.fragile = f.A.engine is not None and f.A.engine.fragile
        self.safe = self.best  # what is left of it when shards are lost
        self.counted: Saddle | None = None
        self.noted: tuple[Standing, Any] | None = None  # between two steps, with the state of the method

    # -- the loop ------------------------------------------------------------------------------------------------------

    def go(self, saved: LoadedRun | None = None) -> Result:
        """Run to the end; where the run refutes a constant that may be corrected, do so and go on.

        With a plan, the next method goes on from the best point when one lags behind or breaks down. An exception that
        is not the run's own (of a gradient, the callback or a constant that is wrong) takes the best point along.
        """
        try:
            if saved is not None:
                restore(self, saved)
            with self.f.space.exact_products():
                return self.attempts(saved)
        except (KeyboardInterrupt, Terminated) as signal:
            return self.end(signal)
        except ShardsLost as lost:
            return self.end_without_shards(lost)
        except BaseException as error:
            with suppress(Exception):
                self.keep()
            self.hand_over(error)
            raise

    def attempts(self, saved: LoadedRun | None) -> Result:
        """One method after the other."""
        start = self.start
        while True:
            try:
                result = self.attempt(*start, saved)
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
                    self.improved = self.looks, self.meter.total
            except AssumptionError as error:
                self.correct(error)
            start, saved = self.best[:2], None

    def change(self, reason: str) -> None:
        """Take the next method of the plan."""
        before, self.method = self.method.label, self.others.pop(0)
        self.why += f"; {before} {reason}, then {self.method.label}"
        self.guard.begin(self.busiest)
        self.improved = self.looks, self.meter.total

    def attempt(self, x: Array, y: Array, saved: LoadedRun | None = None) -> Result:
        """Run until solved, out of budget, stalled or stopped, and return the best certified point."""
        self.start = x, y
        raw, counted = self.f, metered(self.f, self.meter)
        if self.stored is not None:
            S = self.stored.S
            self.stored.begin(x, y)
            raw = self.stored.problem(raw, S)
            counted = self.stored.problem(counted, MeteredCoupling(S, self.meter))
        self.counted = counted
        origin = (x, y) if self.stored is None else (0.0 * x, 0.0 * y)

        def seen(problem: Saddle) -> View:
            units = in_units(problem, self.units)
            return units.then(self.method.normal_form(units.problem))

        def back(state: Any) -> tuple[Array, Array]:
            u, v = view.back(state.x, state.y)
            return (u, v) if self.stored is None else (x + u, y + v)

        def fresh() -> Any:
            plain = seen(raw)
            return self.method.init(plain.problem, *plain.to(*origin))

        status: Status | None = None
        state = latest = recall(self, saved, fresh)
        resumed = state is not None
        view = seen(counted) if resumed else View(counted)
        try:
            if not resumed:
                self.note(None)
                status = self.look(x, y)
            if status is None and not resumed:
                self.units = tame_units(counted, norm(origin[0]), norm(origin[1]), self.best[2].Fx, self.best[2].Fy)
                view = seen(counted)
                state = self.method.init(view.problem, *view.to(*origin))
                self.parameters = self.method.parameters(view.problem)
            many, tried = None, self.f.space.is_numpy
            while status is None:
                if not resumed:
                    before, state = state, self.method.step(view.problem, state)
                    latest = state
                    self.iterations += 1
                    if not tried:
                        tried = True
                        many = compiled(self.method, in_units(raw, self.units).problem, before, state)
                    if many is not None:
                        state = latest = self.stride(many, state, self.method.cost(view.problem) or {})
                    if self.keeper is not None:
                        self.note(state)
                resumed = False
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
        except (KeyboardInterrupt, Terminated) as signal:
            status = Status.INTERRUPTED
            self.signal = _name(signal)
        except StopIteration:
            status = Status.STOPPED
        self.keep()
        if status is Status.INTERRUPTED and self.f.A.reading is not None:
            latest = None  # a certificate would be another pass over the disk, and who interrupts does not want to wait
        if latest is not None and self.merit(self.certify(*back(latest))) <= self.tol and self.holds():
            status = self.success
        worth = status is Status.OUT_OF_CALLS and self.meter.total >= EXPLAINED
        if worth or status in (Status.DIVERGED, Status.STALLED):
            self.explain()
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
        A = self.f.A if self.stored is None else self.stored.S
        meter.passes += count * (products // 2 if A.fused_compiled else products)
        self.iterations += count
        return many(state, count)

    # -- looking -------------------------------------------------------------------------------------------------------

    def look(self, x: Array, y: Array) -> Status | None:
        """Take a certificate, tell whoever watches, and say whether the run is over."""
        certificate = self.certify(x, y)
        self.next_look = max(self.work + STRIDE, math.ceil(GROWTH * self.work))
        if self.wishes.callback is not None:
            began = time.perf_counter()
            self.wishes.callback(self.result(Status.RUNNING))
            self.looking += time.perf_counter() - began
        if self.merit(certificate) <= self.tol and self.holds():
            return self.success
        if not math.isfinite(self.merit(certificate)):
            return Status.DIVERGED
        if self.stalled():
            if self.stored is None:
                return Status.STALLED
            self.stored.stalled, self.floor = True, False
            raise _RoundOver
        if self.stored is not None and self.stored.over(x, y, certificate.distance, self.busiest):
            raise _RoundOver
        if self.certain:
            ahead = math.ceil(self.busiest + self.next_look - self.work)
            if self.guard.lagging(self.best[2], self.busiest, ahead, len(self.others)):
                raise _Lagging
        return None

    def holds(self) -> bool:
        """Whether the best point is within tol still when what its certificate rests on has been examined."""
        if not self.sound:
            self.examine()
            self.sound = True
        return self.merit(self.best[2]) <= self.tol

    def explain(self) -> None:
        """Once, when a run gets nowhere: find out whether something that was only claimed is to blame."""
        if self.explained:
            return
        self.explained = True
        self.examine(thoroughly=True)

    def examine(self, thoroughly: bool = False) -> None:
        """Examine the problem at the best point, and certify that again if the gradients prove noisy."""
        began = time.perf_counter()
        x, y, before = self.best
        if before is not NOTHING and self.audit.examine(x, y, thoroughly):
            self.looks += 1
            self.best = x, y, self.audit.certificate(x, y)
        self.looking += time.perf_counter() - began

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
        x, y = self.f.space.of_x.cast(x), self.f.space.of_y.cast(y)  # what will be returned
        certificate = self.audit.certificate(x, y)
        self.looks += 1
        if self.merit(certificate) < 0.9 * self.merit(self.best[2]):
            self.improved = self.looks, self.meter.total
        if self.merit(certificate) < self.merit(self.best[2]):
            self.best = (x, y, certificate)
            if self.fragile:
                self.safe = (to_host(x), y, certificate)
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
        if self.wishes.history:
            self.history.append(record)
        self.bar.update(record)
        return certificate

    def stalled(self) -> bool:
        """No progress for a while, at the precision of the arithmetic; or none at all for very long."""
        look, calls = self.improved
        waited = self.looks - look
        if waited >= PATIENCE:
            self.explain()
        certificate = self.best[2]
        if self.certain and waited >= PATIENCE and certificate.distance <= 100.0 * self.audit.floor(certificate):
            self.floor = True
        return self.floor or (waited >= 40 and self.meter.total > 100 * calls + 1_000_000)

    @property
    def work(self) -> int:
        """Calls and steps so far: what spaces the certificates."""
        return self.meter.total + self.iterations

    @property
    def seconds(self) -> float:
        """Time of the method alone."""
        return time.perf_counter() - self.started - self.looking

    # -- constants that prove wrong ------------------------------------------------------------------------------------

    def correct(self, error: AssumptionError) -> None:
        """Go on with another constant in the place of a refuted one, if that is wished or it was only estimated."""
        estimated = error.constant == "L" and error.function in self.f.estimated
        value = error.suggested
        own_proof = type(self.f).certificate is not Saddle.certificate  # which knows its own mu
        if value is None or not (estimated or self.wishes.adapt) or (error.constant == "mu" and own_proof):
            raise error
        key = error.function, error.constant
        first = self.corrections.get(key)
        self.corrections[key] = Correction(*key, error.given if first is None else first.given, value)
        if error.constant == "mu":  # what was proven before holds with larger numbers
            self.history.worsen(error.given / value)
        self.apply(self.corrections[key])
        self.guard = Guard(self.f, self.tol)
        self.guard.begin(self.busiest)
        x, y, before = self.best
        if before is not NOTHING:
            self.best = x, y, self.audit.certificate(x, y)
            self.improved = self.looks, self.meter.total

    def apply(self, correction: Correction) -> None:
        """Put the constant into the problem."""
        function, constant, _, used = correction
        self.f = corrected(self.f, function, constant, used)
        self.audit.of(self.f)

    # -- going on after an interruption --------------------------------------------------------------------------------

    def note(self, state: Any) -> None:
        """Remember where the run stands, with the state of its method (None before the first step); perhaps save it."""
        if self.keeper is None:
            return
        if state is not None and (self.noted is None or self.noted[1] is None):
            self.keeper.check(state)
        self.noted = standing_of(self), state
        if self.keeper.due:
            self.keep()

    def keep(self) -> None:
        """Write to disk where the run stood last."""
        if self.keeper is None or self.noted is None:
            return
        began = time.perf_counter()
        standing, state = self.noted
        self.keeper.write(standing, state, self.history.array[: standing.records])
        self.looking += time.perf_counter() - began

    # -- the end -------------------------------------------------------------------------------------------------------

    def end(self, signal: BaseException) -> Result:
        """The best point, when a signal came between two methods."""
        self.signal = _name(signal)
        self.keep()
        return self.result(Status.INTERRUPTED)

    def end_without_shards(self, lost: ShardsLost) -> Result:
        """The last point of which there is a copy here, from which the checkpoint goes on."""
        if self.safe[2] is NOTHING:
            raise lost
        self.best, self.start, self.units = self.safe, self.safe[:2], Units()
        self.why = f"{self.why}; {lost}" if self.why else str(lost)
        if self.keeper is not None:
            self.noted = standing_of(self), None
            self.keep()
        return self.result(Status.INTERRUPTED)

    def hand_over(self, error: BaseException) -> None:
        """Give the best point to an exception on its way out, unless nothing is known yet."""
        refuted = isinstance(error, AssumptionError)
        if self.best[2] is NOTHING or (isinstance(error, ProblemError) and not self.iterations):
            return
        if getattr(error, "result", None) is not None:
            return
        with suppress(Exception):  # some exceptions take no attributes
            error.result = self.result(Status.DIVERGED if refuted else Status.INTERRUPTED)  # type: ignore[attr-defined]
            error.add_note("saddlepoint: the best certified point so far is in the attribute `result` of this error")

    def result(self, status: Status) -> Result:
        """The best certified point so far, with the bill."""
        x, y, certificate = self.best
        if self.f.space.of_x.is_sharded and status is not Status.RUNNING:
            x = to_host(x)
        timed, known_again = self.setup
        calls = {name: count for name, count in self.meter.calls.items() if count or name not in PROXES}
        products = self.f.A.norm_estimate.products + self.f.A.probes + timed
        gradients = {f"grad_{name}": 1 + self.f.estimated.get(name, 0) for name in ("g", "h")}  # 1 at the door
        setup = gradients | {"A": products, "At": products}
        return Result(
            x=x,
            y=y,
            status=status,
            message=sentence(status, self.ending()),
            certificate=certificate,
            calls=calls,
            passes=self.meter.passes,
            iterations=self.iterations,
            seconds=self.seconds,
            method=self.method.label,
            parameters=self.parameters,
            history=self.history,
            monitor_calls=self.looks,
            setup_calls={name: n + self.meter.examined[name] + known_again for name, n in setup.items()},
            provenance=provenance(
                self.f,
                self.method,
                parameters=self.parameters,
                tol=self.tol,
                storage=None if self.stored is None else self.stored.storage,
                corrections=[correction._asdict() for correction in self.corrections.values()],
                begun=self.begun,
                resumed=self.resumed,
                signal=self.signal,
            ),
        )

    def ending(self) -> Ending:
        """What the last sentence is about."""
        notes = [self.why]
        for function, constant, given, used in self.corrections.values():
            if constant != "L" or function not in self.f.estimated:
                what = "|A|" if constant == "norm" else f"{constant} of {function}"
                notes.append(f"{what} = {given:.6g} was refuted, and {used:.6g} used")
        if self.keeper is not None and self.keeper.lost:
            notes.append(f"the last checkpoint was lost: {self.keeper.lost}")
        return Ending(
            certificate=self.best[2],
            certain=self.certain,
            tol=self.tol,
            space=self.f.space,
            spent=(self.spent, self.meter.limits.get(self.spent, math.inf)),
            floor=self.floor,
            noise=self.audit.noisy,
            signal=self.signal,
            file="" if self.keeper is None else str(self.keeper.path),
            notes=tuple(notes),
        )


def _name(signal: BaseException) -> str:
    return "SIGTERM" if isinstance(signal, Terminated) else ""
