"""Certificates of a run: when they are taken, the best point, the history, and whether the run has stalled.

Certificates do not change the steps of a run. They are taken on the problem itself, each where the certified distance
is expected to be at most tol or, where that is far away, to have fallen by a factor. Their calls and seconds are
counted apart from the method's: a run knows its wall-clock time and the method's part of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from saddlepoint.ground.arrays import Array, frozen_copy, to_host
from saddlepoint.problems.audit import Audit
from saddlepoint.problems.saddle import Saddle
from saddlepoint.solving.clock import RunClock
from saddlepoint.solving.progress import Progress
from saddlepoint.solving.result import Record, Result, Status
from saddlepoint.solving.schedule import RunProgress
from saddlepoint.solving.state import Point, RunState
from saddlepoint.solving.target import Target
from saddlepoint.theory.certificate import NO_CERTIFICATE, Certificate

CHECK_LEAST = 24  # calls and steps between two certificates, at least: a certificate is four calls itself
CHECK_KNOWN = 96  # CHECK_LEAST where the residual of the method says when the target seems to be reached
CHECK_GROWTH = 0.05  # calls and steps between two certificates, as a share of all of them, in a long run
CHECK_EARLY = 1.5, 1280  # calls and steps between two certificates in a short run: as a share of all, and at most
CHECK_RACING = 0.5, 640  # CHECK_EARLY where methods take turns, which end at certificates
FALL = 1e4  # factor by which the certified distance is to fall from one certificate to the next, at most
FALL_RACING = 100.0  # FALL where methods take turns
AIM = 0.85  # share of tol that the certified distance is to have reached, if it goes on falling as it did
BELOW = 0.7  # share of tol that the certified distance is to have reached, if it falls as the method's residual does
FROM_START = 0.3  # usual factor by which the certified distance falls more than the method's residual, in a whole run
STALL_CHECKS = 8  # certificates without progress, at the precision of the arithmetic, that make a stall
AT_FLOOR = 10.0  # certified distance up to which the arithmetic allows no more, in units of its precision
NEAR_FLOOR = 100.0  # certified distance up to which the arithmetic hardly allows more, in units of its precision
NEAR_CHECKS = 24  # STALL_CHECKS below NEAR_FLOOR, and where methods take turns
WORTH_DIAGNOSING = 2000  # calls without progress after which the problem is examined for wrong assumptions
LONG_STALL = 40, 1_000_000  # certificates and calls without any progress that make a stall anywhere
LONG_TIMES = 100  # how many times as many calls a stall anywhere takes as had been made at the last progress
PROGRESS = 0.9  # factor by which the certified distance falls if a certificate shows progress

EXAMINATIONS = SOLVED, STALLED = "solved", "stalled"  # before a run is called solved; when it makes no more progress


class Reached(NamedTuple):
    """The certified number that was asked for, at the best point and at the last one that was certified."""

    best: float = math.inf
    present: float = math.inf
    estimate: float = math.inf  # at the present point, for predictions: see ``Target.estimate``


class StoppedByCallback(Exception):  # noqa: N818 - a signal within the run, not an error
    """The callback has raised StopIteration."""


def latest_check(work: int, least: int = CHECK_LEAST, racing: bool = False) -> int:
    """The calls and steps at which the next certificate is taken at the latest, after one at ``work``."""
    share, most = CHECK_RACING if racing else CHECK_EARLY
    return work + math.ceil(max(least, CHECK_GROWTH * work, min(share * work, most)))


def next_check(work: int, records: list[Record], target: Target, missing: float, racing: bool = False) -> int:
    """The calls and steps at which the next certificate is taken, after one at ``work``.

    It is where the certified distance or gap will be below the target, or will have fallen by the factor ``FALL``, if
    it goes on falling as it fell between the last two records, but not later than ``latest_check``.

    Args:
        work: calls and steps so far.
        records: one for each certificate so far.
        target: what the run is to prove.
        missing: the factor by which the certified number has to fall to the target.
        racing: whether methods take turns.
    """
    before, now = [target.recorded(record) for record in records[-2:]] if len(records) > 1 else (math.inf, math.inf)
    if not 0.0 < now < before < math.inf:
        return work + math.ceil(max(CHECK_LEAST, CHECK_GROWTH * work))
    fall = min(max(missing / AIM, 1.0), FALL_RACING if racing else FALL)
    ahead = (_work(records[-1]) - _work(records[-2])) * math.log(fall) / math.log(before / now)
    return work + math.ceil(max(CHECK_LEAST, min(ahead, latest_check(work, racing=racing) - work)))


def _work(record: Record) -> int:
    return record.grad_g + record.grad_h + record.A + record.At + record.iteration


class Monitor:
    """Takes the certificates of a run.

    Args:
        audit: the problem, with the checks of what its certificates rest on.
        state: the run, in which the best point and all counts are kept.
        bar: shows the progress.
        report: makes a result of the run, for the callback.
        callback: what the user wants to be called at every certificate.
        began: time.perf_counter() at which the call of ``solve`` began.
    """

    def __init__(
        self,
        audit: Audit,
        state: RunState,
        bar: Progress,
        report: Callable[[Status], Result],
        callback: Callable[[Result], object] | None,
        began: float,
    ) -> None:
        self.audit, self.state, self.bar, self.report, self.callback = audit, state, bar, report, callback
        self.certificate: Certificate = NO_CERTIFICATE  # of the best point
        self.reached = Reached()
        self.host_best: tuple[Point, Certificate] | None = None  # a copy here, where parts of the problem can be lost
        self.examined = set() if audit.needed else set(EXAMINATIONS)  # which ones were made in this session
        self.floor: tuple[Certificate, float] | None = None  # precision at the best point, where it was needed
        self.at_rounding_floor = False  # the accuracy reached is that of the arithmetic
        self.clock = RunClock(state, began)

    @property
    def f(self) -> Saddle:
        """The problem, with the constants as they were corrected."""
        return self.audit.f

    @property
    def mu_known(self) -> bool:
        """Whether a distance can be certified."""
        return not math.isnan(self.f.mu_x + self.f.mu_y)

    @property
    def success(self) -> Status:
        """The status of a run that reached its tolerance."""
        return Status.SOLVED if self.mu_known and not self.audit.is_estimated else Status.UNCERTIFIED

    def measure_reached(self, certificate: Certificate, point: Point) -> float:
        """What is to fall below tol: the certified number that was asked for, or the residual where mu is unknown."""
        return self.state.target.reached(certificate, *point) if self.mu_known else certificate.residual

    @property
    def progress(self) -> RunProgress:
        """What is certified so far, for the choice of methods."""
        distance = self.state.target.as_distance(self.f, *self.state.best)
        return RunProgress(self.certificate, self.reached.best, self.reached.estimate, distance)

    def expects_success(self, residual: float) -> bool:
        """Whether the target is likely to be reached, if what is certified falls as the residual of the method does."""
        return self.state.monitor.scale * residual <= BELOW * self.state.tol

    def begin_with(self, residual: float) -> None:
        """Expect success by the residual of the method at its start, of which the certificate is known.

        It is called after each step and does something after the first one.
        """
        state, estimate = self.state.monitor, self.reached.estimate
        if state.checks == 1 and state.scale == math.inf and self._compares(residual):
            state.scale = FROM_START * estimate / residual
            state.next_check = latest_check(0, CHECK_KNOWN, len(self.state.schedule.race) > 1)

    def _compares(self, residual: float) -> bool:
        """Whether what is certified can be compared with the residual of the method."""
        return self.state.target.argument != "gap" and 0.0 < residual < math.inf and self.reached.estimate < math.inf

    def check(self, x: Array, y: Array, residual: float = math.inf) -> Status | None:
        """Take a certificate, call the callback, and return the status of the run if it is over.

        The residual is that of the method's state, if it has one.
        """
        certificate = self.certify(x, y)
        state, work = self.state.monitor, self.state.work
        racing, missing = len(self.state.schedule.race) > 1, self.reached.estimate / self.state.tol
        state.next_check = next_check(work, state.records, self.state.target, missing, racing)
        state.scale = math.inf
        if self._compares(residual):
            state.scale = self.reached.estimate / residual
            state.next_check = latest_check(work, CHECK_KNOWN, racing)
        if self.callback is not None:
            try:
                with self.clock:
                    self.callback(self.report(Status.RUNNING))
            except StopIteration:  # of the callback only: in a gradient it is an error like any other
                raise StoppedByCallback from None
        if self.reached.present <= self.state.tol and self.confirmed():
            return self.success
        if not math.isfinite(certificate.residual):
            return Status.DIVERGED
        return Status.STALLED if self.stalled() else None

    def certify(self, x: Array, y: Array) -> Certificate:
        """Take the certificate of (x, y), record it, and keep the point if it is the best."""
        space = self.f.space
        space.wait(x)  # until here the time is that of the steps
        with self.clock:
            x, y = self.f.project(space.of_x.cast(x), space.of_y.cast(y))
            point, certificate = self.certified((x, y))
            best, present = self.reached.best, self.measure_reached(certificate, point)
            estimate = self.state.target.estimate(certificate, *point) if self.mu_known else present
            self.state.monitor.checks += 1
            if present < PROGRESS * best:
                self.note_progress()
            closer = present == best == math.inf and certificate.distance < self.certificate.distance
            better = present < best or closer or self.certificate is NO_CERTIFICATE
            self.reached = Reached(present if better else best, present, estimate)
            if better:
                self.state.best, self.certificate = point, certificate
                self.audit.keep(another=True)
                if self.f.A.runtime.fragile:
                    self.host_best = (to_host(point[0]), point[1]), certificate
            self.record(certificate)
        return certificate

    def certified(self, point: Point) -> tuple[Point, Certificate]:
        """The point as it will be returned, and its certificate.

        With a simple term that the caller wrote, it is the point after one prox step if more is proven about that.
        """
        found = frozen_copy(point[0]), frozen_copy(point[1])
        certificate = self.certificate_of(found)
        if self.audit.has_own_terms and self.measure_reached(certificate, found) > self.state.tol:
            queried = self.audit.queried
            after, other = self.audit.after_prox_step(*found)
            if self.measure_reached(other, after) < self.measure_reached(certificate, found):
                return (frozen_copy(after[0]), frozen_copy(after[1])), other
            self.audit.queried = queried
        return found, certificate

    def certificate_of(self, point: Point) -> Certificate:
        """The certificate of a point, with care about rounding where that decides about the target."""
        return self.audit.certificate(point[0], point[1], **self._compared_with(point))

    def _compared_with(self, point: Point) -> dict[str, float]:
        """What the certified distance or gap of a point is compared with."""
        target = self.state.target
        return {"gap": target.most} if target.argument == "gap" else {"tol": target.as_distance(self.f, *point)}

    def certify_best(self) -> None:
        """Take the certificate of the best point anew: it came from a file, or the constants are others now."""
        with self.clock:
            self.state.best, self.certificate = self.certified(self.state.best)
            best = self.measure_reached(self.certificate, self.state.best)
            self.reached = self.reached._replace(best=best)
            self.audit.keep()

    @property
    def checks_without_progress(self) -> int:
        """Certificates since the last progress, if methods take turns; ``stalled`` counts those of one turn."""
        if len(self.state.schedule.race) < 2:
            return 0
        found = [self.state.target.recorded(record) for record in self.state.monitor.records]
        near = min(found, default=math.inf) / PROGRESS
        first = next((k for k, number in enumerate(found) if number <= near < math.inf), len(found) - 1)
        return len(found) - 1 - first

    def note_progress(self) -> None:
        """Progress was made, or a new method begins: a stall counts from here."""
        self.state.monitor.improved = self.state.monitor.checks, self.state.counts.total

    def record(self, certificate: Certificate) -> None:
        """Enter a certificate into the history and show it."""
        calls = self.state.counts.calls
        record = Record(
            self.state.iterations,
            calls["grad_g"],
            calls["grad_h"],
            calls["A"],
            calls["At"],
            self.state.counts.passes,
            self.clock.seconds,
            certificate.distance,
            certificate.gap,
        )
        self.state.monitor.records.append(record)
        self.bar.update(record._replace(distance=self.reached.present))

    def confirmed(self) -> bool:
        """Whether the best point is still within tol after what its certificate rests on was examined.

        Once in a session, everything is examined. Later on, the noise is measured, which may be another one elsewhere.
        """
        if SOLVED not in self.examined:
            self.examine()
            self.examined.add(SOLVED)
        self.measure()
        return self.reached.best <= self.state.tol

    def diagnose(self) -> None:
        """Once, for a run without progress: raise AssumptionError if something that was only claimed is to blame."""
        if STALLED not in self.examined:
            self.examined.add(STALLED)
            self.examine(thoroughly=True)

    def examine(self, thoroughly: bool = False) -> None:
        """Examine the problem at the best point, and certify that again if the gradients prove noisy."""
        with self.clock:
            if self.certificate is not NO_CERTIFICATE:
                self.audit.examine(*self.state.best, thoroughly)
                self.certify_if_stale()

    def measure(self) -> None:
        """Measure the noise at the best point, unless that was done, and certify the point again if there is some."""
        with self.clock:
            if self.certificate is not NO_CERTIFICATE and not self.audit.noise.is_complete:
                self.audit.noise.measure(*self.state.best)
                self.certify_if_stale()

    def certify_if_stale(self) -> None:
        """Certify the best point again if its certificate does not allow for what was found there."""
        if not self.audit.noise.stale:
            return
        certificate = self.audit.with_noise(**self._compared_with(self.state.best))
        if certificate is None:
            self.state.monitor.checks += 1
            self.certify_best()
        else:
            self.certificate = certificate
            self.reached = self.reached._replace(best=self.measure_reached(certificate, self.state.best))

    def stalled(self) -> bool:
        """Whether there was no progress for a while at the precision of the arithmetic, or for longer elsewhere."""
        state, certificate = self.state.monitor, self.certificate
        check, calls = state.improved
        waited = state.checks - check
        near_floor, of_gap = False, self.state.target.argument == "gap"
        if waited >= STALL_CHECKS or self.checks_without_progress >= NEAR_CHECKS:
            if self.floor is None or self.floor[0] is not certificate:
                with self.clock:
                    floor = self.audit.floor(*self.state.best, certificate, of_gap)
                    self.floor = certificate, max(floor, math.ulp(0.0))
            floors = (certificate.gap if of_gap else certificate.distance) / self.floor[1]
            self.at_rounding_floor = self.mu_known and floors <= AT_FLOOR
            near_floor = self.mu_known and floors <= NEAR_FLOOR and waited >= NEAR_CHECKS
            if self.at_rounding_floor or near_floor or self.state.counts.total - calls >= WORTH_DIAGNOSING:
                self.diagnose()
        checks, most = LONG_STALL
        for_long = waited >= checks and self.state.counts.total > LONG_TIMES * calls + most
        return self.at_rounding_floor or near_floor or for_long
