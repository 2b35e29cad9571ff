"""What a run is: one dataclass, which a checkpoint writes down and a later run takes over.

It holds nothing that a certificate rests on, because a file proves nothing: which examinations were made, and what
they have seen, is known to one session only, and the next one examines the problem again.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any, NamedTuple

from saddlepoint.ground.arrays import Array, Space
from saddlepoint.methods.base import Method
from saddlepoint.problems.oracle import CallCounts
from saddlepoint.problems.transforms import Units
from saddlepoint.solving.result import Record
from saddlepoint.solving.target import Target

Point = tuple[Array, Array]
Factors = tuple[float | None, float | None]  # steps a whose factorisations of I + a^2 A'A and I + a^2 AA' are kept


class Correction(NamedTuple):
    """A constant that the run has replaced, because gradients or products refuted it."""

    function: str  # "g", "h" or "A"
    constant: str  # "mu", "L" or "norm"
    given: float
    used: float


@dataclass
class MonitorState:
    """What the certificates of a run have shown so far."""

    checks: int = 0  # certificates taken
    next_check: int = 0  # calls and steps after which the next one is taken
    scale: float = math.inf  # what was certified last over the residual of the method there; infinite if not known
    improved: tuple[int, int] = (0, 0)  # checks and calls at the last progress
    seconds: float = 0.0  # spent on anything but steps: before them, and on certificates, callbacks and checkpoints
    records: list[Record] = field(default_factory=list)  # one for each certificate


class Mark(NamedTuple):
    """A certificate of a method that races."""

    work: float  # of this method until then
    distance: float  # the smallest certified distance of this method until then


class Racer(NamedTuple):
    """A method that takes turns with others: what it has done, and where it goes on."""

    method: Method
    units: Units = Units()  # in which it computes
    state: Any = None  # None before its first step, and during its turn
    work: float = 0.0  # done in its turns
    turn_end: float = 0.0  # work since its first certificate after which its turn may end
    deadline: float = float("inf")  # such work after which its turn is over, whatever is predicted
    marks: tuple[Mark, ...] = ()
    promise: float = float("inf")  # calls promised at its start, if it is the method with a guarantee
    rate: float = 1.0  # its work for one round of calls: below 1 where its calls count for matrices that are at hand


@dataclass
class ScheduleState:
    """Which method is running, which ones take turns with it or follow, and how far the present one may go."""

    methods: tuple[Method, ...]  # the present one and its fallbacks
    notes: list[str] = field(default_factory=list)  # why they were chosen and replaced
    budget: float = float("inf")  # calls by which the fallback with a guarantee must take over
    mark: float = float("inf")  # certified distance when it had last fallen by a factor e
    marked: int = 0  # calls made until then
    race: list[Racer] = field(default_factory=list)  # the methods that take turns; none if there is only one
    turn: int = 0  # which of them is running
    others: float = 0.0  # work of all the others
    prices: dict[str, float] = field(default_factory=dict)  # what calls cost, by oracle; 1 where nothing is said


@dataclass
class Learned:
    """What the run has found out about the problem."""

    corrections: dict[str, Correction] = field(default_factory=dict)
    noise: dict[str, float] = field(default_factory=dict)  # errors of the gradients of g and h, as far as measured
    method_checks: dict[str, Any] = field(default_factory=dict)  # where the checks of the method's calls compared last
    audit_checks: dict[str, Any] = field(default_factory=dict)  # where the checks of certificates compared last
    factors: Factors = (None, None)


@dataclass
class Session:
    """How often and how long the run was going on, and what was called before its first step."""

    began: float  # time.time() of the first start
    elapsed: float = 0.0  # wall-clock seconds since the call began, with those of earlier sessions
    resumed: int = 0
    timed_calls: int = 0  # calls of each oracle, made to measure their cost
    identity_calls: int = 0  # calls of each oracle, made to recognise the problem of a checkpoint


@dataclass
class RunState:
    """A run between two steps. Nothing else is needed to go on with it."""

    target: Target
    best: Point  # the point with the best certificate
    start: Point  # where the present method began
    schedule: ScheduleState
    session: Session
    units: Units = field(default_factory=Units)  # in which the method computes
    method_state: Any = None  # None before its first step
    parameters: dict[str, float] = field(default_factory=dict)  # constants that theory chose for it
    iterations: int = 0
    counts: CallCounts = field(default_factory=CallCounts)
    monitor: MonitorState = field(default_factory=MonitorState)
    learned: Learned = field(default_factory=Learned)

    @property
    def tol(self) -> float:
        """What the certified number that was asked for may be at most."""
        return self.target.most

    @property
    def work(self) -> int:
        """Calls and steps so far; certificates are spaced by it."""
        return self.counts.total + self.iterations

    def snapshot(self, **changes: Any) -> RunState:
        """A copy that later steps do not change. Arrays are shared, because no step writes into one."""
        copy: RunState = _copied(replace(self, **changes))
        return copy


def _copied(value: Any) -> Any:
    """``value`` with copies of the dataclasses, lists and dicts in it; methods, which are frozen, are shared."""
    if is_dataclass(value) and not isinstance(value, type | Method):
        return replace(value, **{part.name: _copied(getattr(value, part.name)) for part in fields(value)})
    if isinstance(value, dict):
        return {key: _copied(item) for key, item in value.items()}
    return list(value) if isinstance(value, list) else value


def in_space(checks: dict[str, Any], space: Space) -> dict[str, Any]:
    """The memory of checks with its vectors in a dtype; in a narrower one, gradients would be less accurate."""
    sides = {"g": {"x": space.of_x}, "h": {"x": space.of_y}, "A": {"A": space.of_y, "At": space.of_x}}
    return {
        name: memory | {"last": {key: sides[name][key].cast(vector) for key, vector in memory["last"].items()}}
        for name, memory in checks.items()
    }
