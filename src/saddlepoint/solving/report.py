"""The result of a run: the best certified point with counts, history, message and provenance."""

from __future__ import annotations

import math
from contextlib import suppress
from typing import TYPE_CHECKING

from saddlepoint.ground.arrays import copied, frozen_copy
from saddlepoint.methods.wrappers.refined import Refined
from saddlepoint.problems.corrections import was_estimated
from saddlepoint.problems.oracle import ORACLES, PROXES
from saddlepoint.problems.support import Supports, proven_support
from saddlepoint.solving.messages import Ending, Worth, sentence
from saddlepoint.solving.provenance import provenance
from saddlepoint.solving.result import History, Result, Status
from saddlepoint.theory.certificate import NO_CERTIFICATE

if TYPE_CHECKING:
    from saddlepoint.solving.loop import Run
    from saddlepoint.solving.monitor import Monitor


def make_result(run: Run, status: Status) -> Result:
    """The best certified point of a run so far. Nothing that is done to the result changes the run.

    Its arrays are copies; while the run is going on, they are read-only where the library has such arrays.
    """
    state, f, method, method_seconds = run.state, run.f, run.schedule.method, run.monitor.clock.method_seconds
    x, y = state.best
    if status is not Status.RUNNING:
        x, y = copied(f.space.of_x.collected(x)), copied(y)
    else:
        x, y = frozen_copy(x), frozen_copy(y)
    support_x, support_y = (None, None) if status is Status.RUNNING else _supports(run)
    return Result(
        x=x,
        y=y,
        status=status,
        message=sentence(status, _ending(run)),
        certificate=run.monitor.audit.proof(run.monitor.certificate),
        calls={name: count for name, count in state.counts.calls.items() if count or name not in PROXES},
        passes=state.counts.passes,
        iterations=state.iterations,
        method=method.label,
        parameters=dict(state.parameters),
        history=History(state.monitor.records if run.options.history else ()),
        monitor_calls=state.monitor.checks,
        setup_calls=setup_calls(run),
        provenance=provenance(
            f,
            method,
            parameters=state.parameters,
            target=state.target,
            storage=method.storage if isinstance(method, Refined) else None,
            corrections=[correction._asdict() for correction in state.learned.corrections.values()],
            begun=state.session.began,
            resumed=state.session.resumed,
            signal=run.signal,
        ),
        support_x=support_x,
        support_y=support_y,
        seconds=run.monitor.clock.seconds,  # the last of the fields, because making the others takes time too
        method_seconds=method_seconds,
    )


def _supports(run: Run) -> Supports:
    """What is proven about the coordinates of the saddle point; nothing where the problem has become unusable."""
    f, proof = run.monitor.f, run.monitor.certificate
    if not f.has_simple or proof is NO_CERTIFICATE:
        return None, None
    if run.monitor.audit.is_estimated:
        proof = proof.without_bounds
    for name in ORACLES:
        run.meter.note(name, 1)
    with suppress(Exception), run.monitor.clock:  # a run may end because a gradient or a shard fails
        return proven_support(f, *run.state.best, proof)
    return None, None


def setup_calls(run: Run) -> dict[str, int]:
    """What was called before the first step and to examine the problem."""
    f, session = run.f, run.state.session
    products = f.A.norm_estimate.products + f.A.probes
    gradients = {f"grad_{name}": 1 + f.estimated.get(name, 0) for name in ("g", "h")}  # 1 to examine it at the start
    calls = gradients | {"A": products, "At": products}
    each = session.timed_calls + session.identity_calls
    return {name: n + run.state.counts.examined[name] + each for name, n in calls.items()}


def _worth(monitor: Monitor) -> Worth:
    """What the certified numbers are worth."""
    if not monitor.mu_known:
        return Worth.NOTHING
    if monitor.audit.is_estimated:
        return Worth.ESTIMATED
    return Worth.PROVEN if monitor.audit.is_examined else Worth.UNEXAMINED


def _ending(run: Run) -> Ending:
    """What the message is about."""
    state, monitor = run.state, run.monitor
    notes = [*state.schedule.notes, run.schedule.method.note(state.method_state)]
    for function, constant, given, used in state.learned.corrections.values():
        if not was_estimated(run.f, function, constant):
            what = "|A|" if constant == "norm" else f"{constant} of {function}"
            notes.append(f"{what} = {given:.6g} was refuted, and {used:.6g} used")
    notes += monitor.audit.doubts
    if run.checkpointer.lost:
        notes.append(f"the last checkpoint was lost: {run.checkpointer.lost}")
    return Ending(
        certificate=monitor.certificate,
        worth=_worth(monitor),
        target=state.target,
        reached=monitor.reached.best,
        space=run.f.space,
        exhausted=(run.exhausted, min(run.meter.limits.get(run.exhausted, math.inf), run.meter.total)),
        at_rounding_floor=monitor.at_rounding_floor,
        noise=monitor.audit.noise.words,
        signal=run.signal,
        file=run.checkpointer.name,
        has_gone_on=state.session.resumed > 0,
        notes=tuple(notes),
    )
