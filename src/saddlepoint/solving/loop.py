"""The run itself: step, check, until a certificate or a limit ends it."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import replace
from typing import Any

from saddlepoint.ground.errors import AssumptionError, NotFinite, ProblemError, SingularError, Terminated, first_line
from saddlepoint.methods.base import Method
from saddlepoint.parts.sharded.engine import ShardsLost
from saddlepoint.problems.audit import Audit
from saddlepoint.problems.corrections import corrected
from saddlepoint.problems.oracle import Meter, OutOfCalls, OutOfTime, metered
from saddlepoint.problems.saddle import Saddle
from saddlepoint.problems.transforms import Units
from saddlepoint.solving.checkpoint import Checkpointer, Packed, is_caused_by_file
from saddlepoint.solving.monitor import SOLVED, Monitor, StoppedByCallback
from saddlepoint.solving.options import SolveOptions
from saddlepoint.solving.progress import Progress
from saddlepoint.solving.report import make_result, setup_calls
from saddlepoint.solving.result import Result, Status
from saddlepoint.solving.schedule import Schedule, SwitchMethod, TurnOver
from saddlepoint.solving.state import Correction, Factors, Racer, RunState, in_space
from saddlepoint.solving.stepper import Stepper, fresh_state
from saddlepoint.theory.certificate import NO_CERTIFICATE

DIAGNOSED_FROM = 400  # calls from which a run that is out of calls is examined for wrong assumptions
ENDINGS: dict[type[BaseException], Status] = {  # what ends a method, and the status of the run
    OutOfCalls: Status.OUT_OF_CALLS,
    OutOfTime: Status.OUT_OF_TIME,
    NotFinite: Status.DIVERGED,
    SingularError: Status.DIVERGED,
    KeyboardInterrupt: Status.INTERRUPTED,
    Terminated: Status.INTERRUPTED,
    StoppedByCallback: Status.STOPPED,
}


class Run:
    """One solve.

    Args:
        f: the problem.
        options: what the caller asked for.
        state: where the run begins.
        checkpointer: writes the run to disk, if that is wanted.
        bar: shows the progress.
    """

    def __init__(
        self, f: Saddle, options: SolveOptions, state: RunState, checkpointer: Checkpointer, bar: Progress
    ) -> None:
        self.f, self.options, self.state, self.checkpointer, self.bar = f, options, state, checkpointer, bar
        began, deadline = options.times
        seconds = None if deadline is None else deadline - f.clock() - state.session.elapsed
        self.meter = Meter(options.limits, seconds, bar.tick, f.clock, state.counts)
        self.meter.beside = lambda name: setup_calls(self)[name] + state.monitor.checks
        self.meter.reserved = 2 if f.has_simple else 1
        self.monitor = Monitor(Audit(f, self.meter), state, bar, self.result, options.callback, began)
        self.schedule = Schedule(f, options.target.most, state.schedule)
        self.counted = metered(f, self.meter)  # the problem as methods see it
        self.exhausted = ""  # the oracle whose calls are used up
        self.signal = ""  # the signal that ended the run

    # -- the loop ------------------------------------------------------------------------------------------------------

    def run_method(self) -> Status:
        """Take steps of the present method until the run is over; the status says why it is."""
        with self.monitor.clock:
            stepper, status = self.start_method(), None
        try:
            self.save(stepper)
            while status is None:
                if self.state.work >= self.state.monitor.next_check or self.seems_solved(stepper):
                    status = self.check(stepper)
                else:
                    stepper.advance(self.monitor.certificate)
                    self.monitor.begin_with(stepper.first_residual)
                    self.save(stepper)
        except tuple(ENDINGS) as signal:
            status = self.ended_by(signal)
        return self.last_check(stepper, status)

    def run_methods(self) -> Status:
        """Take one method after the other, until one of them ends the run."""
        while True:
            try:
                status = self.run_method()
                if self.monitor.at_rounding_floor or not self.schedule.can_replace(status):
                    if status is not Status.INTERRUPTED:
                        self.monitor.measure()
                    return status
                self.switch("broke down")
            except TurnOver:
                self.go_on_with(self.schedule.next_turn(self.state, self.monitor.progress))
            except SwitchMethod:
                self.switch("fell behind")
            except AssumptionError as error:
                self.correct(error)

    def to_end(self) -> Result:
        """Run, and return the best certified point, whatever ends the run.

        An exception that is not the run's own (of a gradient, of the callback, or about a wrong constant) leaves with
        the best point in its attribute ``result``.
        """
        try:
            with self.f.space.exact_products():
                with self.monitor.clock:
                    try:
                        self.restore()
                    except AssumptionError as error:  # of a file that leaves out what was corrected
                        self.correct(error)
                return self.result(self.run_methods())
        except (KeyboardInterrupt, Terminated) as signal:  # between two methods
            status = self.ended_by(signal)
            self.checkpointer.write()
            return self.result(status)
        except ShardsLost as lost:
            return self.end_without_shards(lost)
        except BaseException as error:
            with suppress(Exception):
                self.checkpointer.write()
            self.attach_result(error)
            self.explain_file_error(error)
            raise

    # -- its parts -----------------------------------------------------------------------------------------------------

    def start_method(self) -> Stepper:
        """The present method at its start, or where its last turn or an earlier session left it."""
        method, state = self.schedule.method, self.state
        loaded = isinstance(state.method_state, Packed)
        if loaded:
            state.method_state = self.unpacked(method, state.units, state.method_state)
        stepper = Stepper(self.f, self.counted, method, state, self.meter)
        if loaded:
            stepper.restore(state.learned)
            stepper.unchecked = True  # a run is written after a step and before the certificate
        if state.method_state is not None:
            state.parameters = method.parameters(stepper.view.problem)
        elif self.monitor.certificate is NO_CERTIFICATE:
            state.monitor.next_check = 0  # the start is certified first
        return stepper

    def check(self, stepper: Stepper) -> Status | None:
        """Certify the present point; the status if the run is over, SwitchMethod if the method should be replaced."""
        stepper.unchecked = False
        status = self.monitor.check(*stepper.point(), stepper.residual)
        if status is None:
            counts, monitor = self.state.counts, self.state.monitor
            ahead = math.ceil(counts.busiest + monitor.next_check - self.state.work)
            self.schedule.check_progress(self.monitor.progress, counts, ahead)
        return status

    def seems_solved(self, stepper: Stepper) -> bool:
        """Whether the residual of the method says that a certificate of the present point is worth its calls."""
        known = self.state.monitor.scale < math.inf and stepper.unchecked
        return known and self.monitor.expects_success(stepper.residual)

    def last_check(self, stepper: Stepper, status: Status) -> Status:
        """Certify the last point if that was not done, and examine the problem if the run got nowhere."""
        with self.monitor.clock:
            self.checkpointer.write()
        in_a_hurry = status is Status.INTERRUPTED and self.f.A.runtime.reading  # reading A once more takes long
        if stepper.unchecked and not in_a_hurry:
            self.monitor.certify(*stepper.point())
            if self.monitor.reached.present <= self.state.tol and self.monitor.confirmed():
                return self.monitor.success
        if status in (Status.DIVERGED, Status.STALLED) or (
            status is Status.OUT_OF_CALLS and self.state.counts.total >= DIAGNOSED_FROM
        ):
            self.monitor.diagnose()
        return status

    def ended_by(self, signal: BaseException) -> Status:
        """The status of a run that an exception has ended."""
        if isinstance(signal, OutOfCalls):
            self.exhausted = str(signal)
        if isinstance(signal, Terminated):
            self.signal = "SIGTERM"
        return next(status for kind, status in ENDINGS.items() if isinstance(signal, kind))

    def switch(self, reason: str) -> None:
        """Go on with the next method of the schedule."""
        self.note(self.schedule.method.note(self.state.method_state))
        self.go_on_with(self.schedule.switch(reason, self.state.counts, self.monitor.progress))

    def go_on_with(self, racer: Racer) -> None:
        """Let a method go on where it was, or begin at the best point."""
        self.state.units, self.state.method_state = racer.units, racer.state
        if racer.state is None:
            self.state.start = self.state.best
        self.state.monitor.scale = math.inf
        self.monitor.note_progress()
        self.bar.show_method(racer.method.label)

    def note(self, text: str) -> None:
        """Remember a remark for the final message."""
        if text:
            self.state.schedule.notes.append(text)

    # -- constants that prove wrong ------------------------------------------------------------------------------------

    def correct(self, error: AssumptionError) -> None:
        """Go on with another constant in the place of a refuted one.

        That is done where it is wished, and where the constant was only estimated or is wrong by very little.
        """
        estimated = error.constant == "L" and error.function in self.f.estimated
        estimated = estimated or (error.constant == "norm" and self.f.A.norm_estimate.is_quick)
        value = error.suggested
        own_proof = type(self.f).certificate is not Saddle.certificate  # another class may know mu otherwise
        of_another_run = error.result is not None  # a callback or a gradient that solves a problem itself
        wanted = (estimated or self.options.adapt or error.is_slight) and not of_another_run
        if value is None or not wanted or (error.constant == "mu" and own_proof):
            raise error
        key = f"{error.function}.{error.constant}"
        first = self.state.learned.corrections.get(key)
        given = error.given if first is None else first.given
        self.state.learned.corrections[key] = Correction(error.function, error.constant, given, value)
        if error.constant == "mu":  # what was certified before holds with larger numbers
            factor = error.given / value
            records = self.state.monitor.records
            records[:] = [r._replace(distance=factor * r.distance, gap=factor * r.gap) for r in records]
        self.apply(self.state.learned.corrections[key])
        self.schedule.begin_with(self.f, self.state.counts)
        if self.monitor.certificate is not NO_CERTIFICATE:
            self.monitor.certify_best()
        self.go_on_with(Racer(self.schedule.method))

    def apply(self, correction: Correction) -> None:
        """Put a corrected constant into the problem."""
        self.f = corrected(self.f, correction.function, correction.constant, correction.used)
        self.counted = metered(self.f, self.meter)
        self.monitor.audit.of(self.f)
        if self.monitor.audit.needed:  # the problem with the other constant is examined again
            self.monitor.examined.discard(SOLVED)

    # -- checkpoints ---------------------------------------------------------------------------------------------------

    def save(self, stepper: Stepper) -> None:
        """Remember the run between two steps; perhaps write it to disk. The time is not the method's."""
        if self.checkpointer.name:
            with self.monitor.clock:
                self.checkpointer.note(lambda: self.snapshot(stepper.factors))

    def snapshot(self, factors: Factors = (None, None)) -> RunState:
        """A copy of the run as it is now."""
        audit = self.monitor.audit
        learned = replace(
            self.state.learned,
            noise=dict(audit.noise.gradients),
            method_checks={name: check.memory() for name, check in self.meter.checks.items()},
            audit_checks={name: check.memory() for name, check in audit.checks.items()},
            factors=factors,
        )
        session = replace(self.state.session, elapsed=self.monitor.clock.seconds)
        return self.state.snapshot(learned=learned, session=session)

    def restore(self) -> None:
        """Take over what the state of an earlier session says. Its best point is certified anew.

        Only what makes certificates weaker is taken over: a smaller mu, a larger L or norm, and noise. ``check_claims``
        has refused anything else.
        """
        audit, state, space = self.monitor.audit, self.state, self.f.space
        state.best, state.start = ((space.of_x.cast(x), space.of_y.cast(y)) for x, y in (state.best, state.start))
        for correction in state.learned.corrections.values():
            self.apply(correction)
        self.schedule.f = self.f
        noise, before = audit.noise.gradients, state.learned.noise
        noise.update({name: max(level, before.get(name, 0.0)) for name, level in noise.items()})
        for name, memory in in_space(state.learned.audit_checks, self.f.space.wide).items():
            if name in audit.checks:
                audit.checks[name].restore(memory)
        for k, racer in enumerate(state.schedule.race):
            if isinstance(racer.state, Packed):
                unpacked = self.unpacked(racer.method, racer.units, racer.state)
                state.schedule.race[k] = racer._replace(state=unpacked)
        if state.monitor.checks:
            self.monitor.certify_best()

    def unpacked(self, method: Method, units: Units, packed: Packed) -> Any:
        """The state of a method that a file holds."""
        return self.checkpointer.method_state(packed, lambda: fresh_state(self.f, method, units, self.state.start))

    def explain_file_error(self, error: BaseException) -> None:
        """Raise a ProblemError in the place of an exception that the numbers of a checkpoint have caused."""
        expected = isinstance(error, ProblemError | AssumptionError | MemoryError)
        if self.state.session.resumed and isinstance(error, Exception) and not expected and is_caused_by_file(error):
            raise ProblemError(
                f"the run cannot go on from {self.checkpointer.name}: {type(error).__name__}: {first_line(error)}; "
                "delete it to begin anew, or name another file"
            ) from error

    # -- the end -------------------------------------------------------------------------------------------------------

    def result(self, status: Status) -> Result:
        """The best certified point so far, with all that is known about it."""
        return make_result(self, status)

    def release(self) -> None:
        """Let go of everything, so that vectors are freed now: the parts of a run refer to each other."""
        for part in (self.monitor.audit, self.monitor, self.meter, self):
            vars(part).clear()

    def end_without_shards(self, lost: ShardsLost) -> Result:
        """The last point of which there is a copy in this process, and from which the checkpoint goes on."""
        if self.monitor.host_best is None:
            raise lost
        self.state.best, self.monitor.certificate = self.monitor.host_best
        self.state.start, self.state.units, self.state.method_state = self.state.best, Units(), None
        self.note(str(lost))
        self.checkpointer.note(self.snapshot)
        self.checkpointer.write()
        return self.result(Status.INTERRUPTED)

    def attach_result(self, error: BaseException) -> None:
        """Put the best point into an exception on its way out, unless nothing is certified yet."""
        unstarted = isinstance(error, ProblemError) and not self.state.iterations
        if self.monitor.certificate is NO_CERTIFICATE or unstarted or getattr(error, "result", None) is not None:
            return
        refuted = isinstance(error, AssumptionError)
        with suppress(Exception):  # some exceptions take no attributes
            error.result = self.result(Status.DIVERGED if refuted else Status.INTERRUPTED)  # type: ignore[attr-defined]
            error.add_note("saddlepoint: the best certified point so far is in the attribute `result` of this error")
