"""What a file may say about a run. Everything is compared with the problem of the caller, and nothing is believed.

A certificate rests on mu, L, |A| and the noise of the gradients. The constants are the caller's. A run may have
replaced some of them, always by values that make certificates weaker: a smaller mu, a larger L or |A|. A file that
replaces one in the other direction was not written by a run. Counts, times and the history prove nothing; they are only
kept within what a run can have, so that no number of a file makes a later computation fail.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from saddlepoint.ground.arrays import Array, is_array, to_host
from saddlepoint.methods.base import Method
from saddlepoint.methods.needs import check_needs
from saddlepoint.problems.saddle import Saddle
from saddlepoint.problems.transforms import Units
from saddlepoint.solving.monitor import CHECK_KNOWN, latest_check
from saddlepoint.solving.result import Record
from saddlepoint.solving.state import Correction, Mark, Racer, RunState

MOST = 1 << 53  # largest count that is accepted; a float holds it exactly
FASTEST = 1e9  # calls and steps in a second, more than any machine makes
CONSTANTS = {"g": ("mu", "L"), "h": ("mu", "L"), "A": ("norm",)}  # constants that a run may replace, by part
LATEST = 1e11  # seconds since 1970, about the year 5000
LONGEST_NOTE = 2000  # characters of a note


def check_claims(run: RunState, fresh: RunState, f: Saddle) -> None:
    """Raise ValueError if a run that was read from a file says what no run on ``f`` can have written.

    Args:
        run: what was read; its structure is that of a run.
        fresh: the run that would begin if there were no file.
        f: the problem of the caller.
    """
    for name, point in (("best", run.best), ("start", run.start)):
        if not all(np.isfinite(to_host(vector)).all() for vector in point):
            raise ValueError(f"its {name} point has a NaN or an infinity")
    _check_counts(run, fresh)
    _check_clock(run)
    _check_schedule(run, f)
    _check_units(run.units, f)
    _check_corrections(run, f)
    for name, level in run.learned.noise.items():
        if name not in ("g", "h") or not (type(level) is float and 0.0 <= level < math.inf):
            raise ValueError(f"it has the noise {level!r} of the gradient of {name}")
    factors = run.learned.factors
    if len(factors) != 2 or not all(a is None or (type(a) is float and 0.0 < a < math.inf) for a in factors):
        raise ValueError(f"it has factorisations for the steps {factors}")
    for checks in (run.learned.method_checks, run.learned.audit_checks):
        _check_memory(checks, f)


def _check_counts(run: RunState, fresh: RunState) -> None:
    counts, monitor, session = run.counts, run.monitor, run.session
    for name in ("calls", "examined"):
        if getattr(counts, name).keys() != getattr(fresh.counts, name).keys():
            raise ValueError(f"it counts {name} of other oracles")
    checks, calls = monitor.improved if len(monitor.improved) == 2 else (-1, -1)
    numbers = (
        *counts.calls.values(), *counts.examined.values(), counts.passes, run.iterations, monitor.checks,
        monitor.next_check, checks, calls, session.resumed, session.timed_calls, session.identity_calls,
        run.schedule.marked,
    )  # fmt: skip
    if not all(type(number) is int and 0 <= number < MOST for number in numbers):
        raise ValueError("it has counts that are not whole numbers, or too large")
    if checks > monitor.checks or calls > counts.total or run.schedule.marked > counts.busiest:
        raise ValueError("it has made progress after more calls than it has made")
    if monitor.next_check > latest_check(run.work, CHECK_KNOWN):
        raise ValueError(f"its next certificate would be after {monitor.next_check} calls and steps, now {run.work}")
    if not (isinstance(monitor.scale, float) and monitor.scale >= 0.0):
        raise ValueError("it has a scale of residuals that is negative or no number")
    if not all(type(record) is Record for record in monitor.records):
        raise ValueError("its history has rows that are no records")


def _check_clock(run: RunState) -> None:
    session, seconds = run.session, run.monitor.seconds
    if not (0.0 <= session.began <= LATEST and 0.0 <= session.elapsed < math.inf and 0.0 <= seconds <= session.elapsed):
        raise ValueError("it has a time that is negative, or that no run can have")
    if run.work > FASTEST * (1.0 + session.elapsed):
        raise ValueError(f"it has made {run.work} calls and steps in {session.elapsed:.3g} seconds")


def _check_schedule(run: RunState, f: Saddle) -> None:
    schedule = run.schedule
    if not schedule.methods or not all(isinstance(method, Method) for method in schedule.methods):
        raise ValueError("it names no method")
    for method in schedule.methods:
        check_needs(method, f)
    if not all(type(note) is str and len(note) <= LONGEST_NOTE and note.isprintable() for note in schedule.notes):
        raise ValueError("it has notes that are no lines of text")
    for racer in schedule.race:
        _check_racer(racer, f)
    present = len(schedule.race) == 0 or schedule.race[schedule.turn : schedule.turn + 1]
    if not present or not (type(schedule.turn) is int and schedule.turn >= 0 and 0.0 <= schedule.others < MOST):
        raise ValueError("its race has no present method")
    if schedule.race and schedule.race[schedule.turn].method != schedule.methods[0]:
        raise ValueError("the present method is not the one whose turn it is")
    if not all(type(price) is float and 0.0 < price < math.inf for price in schedule.prices.values()):
        raise ValueError("it has prices that are no positive numbers")
    if not (schedule.budget > 0.0 and schedule.mark >= 0.0):
        raise ValueError(f"it allows a method {schedule.budget} calls, down to a distance of {schedule.mark}")


def _check_racer(racer: Any, f: Saddle) -> None:
    """A method that takes turns must have certificates in order, and numbers that a run can have."""
    if type(racer) is not Racer or not isinstance(racer.method, Method):
        raise ValueError("its race has an entry that is no method")
    check_needs(racer.method, f)
    if type(racer.units) is not Units:
        raise ValueError("a method of its race has no units")
    _check_units(racer.units, f)
    marks = racer.marks
    if type(marks) is not tuple or not all(type(mark) is Mark for mark in marks):
        raise ValueError("a method of its race has marks of another type")
    works = [0.0, *(mark.work for mark in marks), racer.work]
    distances = [mark.distance for mark in marks]
    numbers = (*works, *distances, racer.turn_end, racer.deadline, racer.promise, racer.rate)
    if not all(type(number) is float and number >= 0.0 for number in numbers) or not racer.work < MOST:
        raise ValueError("a method of its race has a number that is negative, NaN or too large")
    if works != sorted(works) or distances != sorted(distances, reverse=True):
        raise ValueError("the marks of a method of its race are not in order")
    if not 0.0 < racer.rate <= 1.0:
        raise ValueError(f"a method of its race does {racer.rate} work in a round")


def _check_units(units: Units, f: Saddle) -> None:
    a, b, t = units
    limit = f.space.exponent
    if not (max(abs(a), abs(b)) <= limit // 2 + 1 and abs(t) <= limit - max(abs(a), abs(b))):
        raise ValueError(f"its units are 2^{a}, 2^{b} and 2^{t}")


def _check_corrections(run: RunState, f: Saddle) -> None:
    """Replaced constants must make certificates weaker, and be of parts that a run examines."""
    for key, correction in run.learned.corrections.items():
        if not isinstance(correction, Correction) or correction.constant not in CONSTANTS.get(correction.function, ()):
            raise ValueError("it replaces something that is no constant")
        function, constant, _, used = correction
        part: Any = getattr(f, function)
        given = f.norm if function == "A" else getattr(part, constant)
        weaker = type(used) is float and (0.0 < used < given if constant == "mu" else given < used < math.inf)
        own_proof = constant == "mu" and type(f).certificate is not Saddle.certificate
        name = "|A|" if function == "A" else f"{constant} of {function}"
        estimated = constant == "norm" and f.A.norm_estimate.is_quick
        trusted = part.trusted and not estimated
        if key != f"{function}.{constant}" or not weaker or trusted or own_proof:
            raise ValueError(f"it replaces {name} = {given:.6g} by {used!r}, which no run does")
        run.learned.corrections[key] = correction._replace(given=given)


def _check_memory(checks: Mapping[str, Any], f: Saddle) -> None:
    """The memory of a check must be a count and a vector for each oracle that is checked."""
    m, n = f.shape
    sizes = {"g": {"x": m}, "h": {"x": n}, "A": {"A": n, "At": m}}
    for name, memory in checks.items():
        fits = isinstance(memory, dict) and memory.keys() == {"seen", "last"} and name in sizes
        if not fits or not all(isinstance(part, dict) for part in memory.values()):
            raise ValueError("the memory of its checks is not built of counts and points")
        seen, last = memory["seen"], memory["last"]
        if seen.keys() != sizes[name].keys() or not last.keys() <= seen.keys():
            raise ValueError("its checks are of other oracles")
        if not _counted(seen.values()) or not all(_is_point(last[key], sizes[name][key]) for key in last):
            raise ValueError("its checks have a wrong count or point")


def _counted(numbers: Iterable[Any]) -> bool:
    return all(type(number) is int and 0 <= number < MOST for number in numbers)


def _is_point(vector: Any, size: int) -> bool:
    found: Array = vector
    return is_array(vector) and tuple(found.shape) == (size,) and bool(np.isfinite(to_host(found)).all())
