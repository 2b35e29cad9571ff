"""Where a run stands between two steps, and how a new one comes to stand there."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from saddlepoint.ground.arrays import Array
from saddlepoint.ground.errors import ProblemError
from saddlepoint.methods.base import Method
from saddlepoint.parts.coupling import Coupling
from saddlepoint.problems.oracle import Meter, MeteredCoupling
from saddlepoint.problems.transforms import Units
from saddlepoint.solving.auto import Guard
from saddlepoint.solving.checkpoint import LoadedRun
from saddlepoint.solving.result import History
from saddlepoint.theory.certificate import NO_CERTIFICATE

if TYPE_CHECKING:
    from saddlepoint.solving.run import Run

NOTHING = NO_CERTIFICATE


class Correction(NamedTuple):
    """A constant that the run has replaced."""

    function: str  # "g", "h" or "A"
    constant: str  # "mu", "L" or "norm"
    given: float
    used: float


class Standing(NamedTuple):
    """Where a run stands between two steps: with the state of its method, all that it needs to go on."""

    methods: tuple[Method, ...]  # of auto: the present one and those to come; empty if one was asked for
    why: str
    tol: float
    corrections: tuple[Correction, ...]
    start: tuple[Array, Array]  # where the present method, or its round on a copy of A, began
    units: Units  # in which it runs
    parameters: dict[str, float]
    calls: dict[str, int]
    examined: dict[str, int]
    passes: int
    iterations: int
    looks: int
    next_look: int
    improved: tuple[int, int]
    floor: bool
    sound: bool
    explained: bool
    noise: dict[str, float]
    best: tuple[Array, Array]
    guard: tuple[float, float, int]
    stored: tuple[float, float, int] | None
    watches: dict[str, dict[str, Any]]
    audits: dict[str, dict[str, Any]]
    factors: tuple[float | None, float | None]  # of A and of its transpose, that the coupling keeps
    records: int  # of the history
    elapsed: float
    looking: float
    setup: tuple[int, int]
    resumed: int


def standing_of(run: Run) -> Standing:
    """Where the run stands."""
    assert run.counted is not None
    x, y, _ = run.best
    A = run.counted.A
    return Standing(
        methods=(run.method, *run.others) if run.auto else (),
        why=run.why,
        tol=run.tol,
        corrections=tuple(run.corrections.values()),
        start=run.start,
        units=run.units,
        parameters=run.parameters,
        calls=dict(run.meter.calls),
        examined=dict(run.meter.examined),
        passes=run.meter.passes,
        iterations=run.iterations,
        looks=run.looks,
        next_look=run.next_look,
        improved=run.improved,
        floor=run.floor,
        sound=run.sound,
        explained=run.explained,
        noise=dict(run.audit.noise),
        best=(x, y),
        guard=run.guard.marks,
        stored=None if run.stored is None else run.stored.marks,
        watches={name: _remembered(watch) for name, watch in run.meter.watches.items()},
        audits={name: _remembered(watch) for name, watch in run.audit.all_watches.items()},
        factors=(A.factored, A.T.factored),
        records=len(run.history),
        elapsed=time.perf_counter() - run.started,
        looking=run.looking,
        setup=run.setup,
        resumed=run.resumed,
    )


def restore(run: Run, saved: LoadedRun) -> None:
    """Stand where an earlier run stood. The best point is certified again: no proof is taken from a file."""
    was = _fitting(run, saved.standing)
    run.history = History.of(saved.history)
    if was.methods:
        run.method, *run.others = was.methods
    run.why, run.parameters, run.floor, run.improved = was.why, was.parameters, was.floor, was.improved
    for correction in was.corrections:
        run.corrections[correction[:2]] = correction
        run.apply(correction)
    if was.corrections:
        run.guard = Guard(run.f, run.tol)
    budget, mark, marked = was.guard
    run.guard.marks = (budget if was.tol == run.tol else math.inf), mark, marked
    if was.stored is None:
        run.stored = None
    elif run.stored is not None:
        run.stored.marks = was.stored
    run.meter.calls |= was.calls
    run.meter.examined |= was.examined
    run.meter.passes = was.passes
    run.iterations, run.looks, run.next_look = was.iterations, was.looks, was.next_look
    run.setup, run.resumed = was.setup, was.resumed + 1
    (x, y), of_x = was.start, run.f.space.of_x  # a copy that was saved when the shards were lost goes back to them
    run.start, run.units = (of_x.cast(x), y), was.units
    run.sound, run.explained, run.audit.noise = was.sound, was.explained, dict(was.noise)
    x, y = of_x.cast(was.best[0]), was.best[1]
    run.best = x, y, run.audit.certificate(x, y) if was.looks else NOTHING
    for name, watch in run.audit.all_watches.items():
        vars(watch).update(was.audits.get(name, {}))
    run.looking = was.looking
    run.started = time.perf_counter() - was.elapsed
    if run.meter.deadline is not None:
        run.meter.deadline -= was.elapsed


def _fitting(run: Run, was: Any) -> Standing:
    """What was read, if it can be where this run stood."""
    if isinstance(was, Standing) and was.calls.keys() == run.meter.calls.keys():
        points = (*was.start, *was.best)
        if [getattr(point, "shape", None) for point in points] == [(n,) for n in 2 * run.f.shape]:
            return was
    raise ProblemError("the checkpoint does not say where the run stands; delete it to begin anew")


def recall(run: Run, saved: LoadedRun | None, fresh: Callable[[], Any]) -> Any:
    """The state that was saved, and what the problem remembered with it; None if there is none."""
    if saved is None or run.keeper is None:
        return None
    state = run.keeper.state(saved, fresh)
    if state is None:
        return None
    was = saved.standing
    assert run.counted is not None
    for name, watch in run.meter.watches.items():
        vars(watch).update(was.watches.get(name, {}))
    for A, factor in zip((run.counted.A, run.counted.A.T), was.factors, strict=True):
        _refactor(A, factor)
    run.noted = was, state
    return state


def _refactor(A: Coupling, factor: float | None) -> None:
    """Let a counted coupling keep the factorisation that it had, which is paid for."""
    if factor is None or not isinstance(A, MeteredCoupling):
        return
    meter, A.meter = A.meter, Meter()
    A.normal_solver(factor)
    A.meter = meter


def _remembered(watch: Any) -> dict[str, Any]:
    """What a watch has seen: everything that it holds but functions and the problem itself."""
    return {
        name: dict(value) if isinstance(value, dict) else value
        for name, value in vars(watch).items()
        if not callable(value) and not isinstance(value, Coupling)
    }
