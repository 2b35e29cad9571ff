"""`solve`: check what was asked for, examine the problem once, and run."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from saddlepoint.ground.arrays import Array
from saddlepoint.methods.base import Method
from saddlepoint.methods.needs import check_needs
from saddlepoint.problems.first_call import check_gradient
from saddlepoint.problems.prox_check import check_first_prox, check_own_prox
from saddlepoint.problems.saddle import Saddle
from saddlepoint.solving.auto import choose
from saddlepoint.solving.blas_threads import LIMIT, has_small_matrices
from saddlepoint.solving.checkpoint import Checkpointer, NoCheckpoint, RunFile, sigterm_raises
from saddlepoint.solving.derivatives import Differentiable
from saddlepoint.solving.loop import Run
from saddlepoint.solving.options import SolveOptions, check_condition, starting_point
from saddlepoint.solving.plan import Plan
from saddlepoint.solving.progress import make_progress, show_reading
from saddlepoint.solving.race import starters
from saddlepoint.solving.result import Result
from saddlepoint.solving.state import Point, RunState, ScheduleState, Session
from saddlepoint.solving.target import Target

WORTH_TIMING = 2e-2  # seconds of two gradients from which all oracles are timed


@np.errstate(all="ignore")  # infinities and NaN are found by later checks
def solve(
    f: Saddle,
    x0: Any = None,
    y0: Any = None,
    *,
    method: str | Method = "auto",
    tol: float | None = None,
    rtol: float | None = None,
    gap: float | None = None,
    costs: Mapping[str, float] | None = None,
    max_calls: int | Mapping[str, int] | None = None,
    max_seconds: float | None = None,
    callback: Callable[[Result], object] | None = None,
    progress: bool = False,
    history: bool = True,
    storage: str | None = None,
    memory: int | None = None,
    on_violation: str = "raise",
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_every: float = 60.0,
) -> Result:
    """Find the saddle point of ``f`` and prove how close the answer is.

    Args:
        f: the problem.
        x0, y0: the starting point; zero if left out. It is not modified.
        method: a registered name (``sp.methods()`` lists them), a ``Method`` object, or ``"auto"``.
        tol: the run is solved when the certified |x-x*| + |y-y*| is at most this, 1e-6 if nothing is asked for. Where
            mu is not known, nothing can be certified, and the run ends when the residual |F| is at most this. One of
            the two mu may be 0 if there are no simple terms and A has independent columns (rows, for the mu of g).
        rtol: asks for a certified distance of at most this times |x*| + |y*| instead.
        gap: asks for a certified duality gap of at most this instead. That needs no strong convexity where the
            variables are bounded; the distance of a strongly convex side is then in ``certificate``.
        costs: what a call of ``grad_g``, ``grad_h``, ``A``, ``At`` costs, in any unit, for ``auto`` to choose by;
            measured if left out.
        max_calls: a number caps the calls that the method makes of each of the four oracles; a dict caps them by name
            (grad_g, grad_h, A, At), and under "total" all calls of each oracle, with those of certificates and of the
            examination of the problem. Before a run is called solved, it may exceed the total to examine the problem.
        max_seconds: wall-clock limit, kept inside nested loops too.
        callback: called with a ``Result`` at every certificate; raise StopIteration to end the run.
        progress: show a progress bar.
        history: keep a record of every certificate.
        storage: "float32" or "bfloat16" to let the method read a copy of A in that precision. Certificates are taken
            with A itself, and so are corrections of the copy's errors; where they no longer help, A takes over.
        memory: the most vectors of the size of (x, y) that the run may take beside A and what the gradients take; the
            windows of Anderson's mixing and of Krylov methods are made short enough. A run needs 48 beside these.
        on_violation: "raise" an AssumptionError when the run refutes a constant, or "adapt" it and go on.
        checkpoint: a file to which the run is written, and from which the same call goes on if it is there; x0 and y0
            are then not used, and budgets include what was spent before.
        checkpoint_every: seconds between two checkpoints, which are written between two steps; 0 for every step.

    Returns:
        A ``Result`` with the best certified point, whatever ended the run: solved, out of calls or time, Ctrl-C (with a
        checkpoint also SIGTERM), or a stall at the precision of the arithmetic.

    Raises:
        ProblemError: something is wrong with the input, or the checkpoint is of another run.
        AssumptionError: the run proved mu or L of g or h wrong, or another claim about the problem.

    An exception during the run, of a gradient or the callback, has the best point so far in ``error.result``.

    Example:
        >>> import numpy as np, saddlepoint as sp
        >>> f = sp.Saddle(sp.Quadratic([1.0, 3.0], [1.0, 1.0]), sp.Quadratic(2.0), [[1.0, 2.0], [0.0, 1.0]])
        >>> result = sp.solve(f, tol=1e-9)
        >>> result.solved, result.x.round(6)
        (True, array([-0.222222, -0.222222]))
    """
    options = SolveOptions.checked(
        f,
        target=Target.checked(tol, rtol, gap),
        method=method,
        costs=costs,
        max_calls=max_calls,
        max_seconds=max_seconds,
        callback=callback,
        progress=progress,
        history=history,
        storage=storage,
        memory=memory,
        on_violation=on_violation,
        checkpoint=checkpoint,
        checkpoint_every=checkpoint_every,
    )
    start = starting_point(f, x0, y0)
    options.target.check(f)
    if options.method is not None:
        check_needs(options.method, f)
    f.refuse_changes()
    with LIMIT.one_thread(has_small_matrices(f)):
        return run_from(f, *start, options)


def run_from(f: Saddle, x: Array, y: Array, options: SolveOptions) -> Result:
    """Examine the start, choose the methods, and run them to the end."""
    (x, y), seconds = examined_start(f, x, y)
    with show_reading(options.progress, f.A.runtime.reading, "estimating |A|"):
        check_condition(f)
    plan, timed = planned(f, options, x, y, seconds)
    check_first_method(f, plan.methods[0], x, y)
    checkpointer = checkpointer_of(f, options)
    state = checkpointer.load(RunState(options.target, (x, y), (x, y), schedule_of(plan), session_of(options, timed)))
    wanted = options.checkpoint is not None and f.A.runtime.alone  # several processes have to end together
    label = state.schedule.methods[0].label
    with (
        make_progress(options.progress, options.target.most, label, f.A.runtime.reading) as bar,
        sigterm_raises(wanted),
    ):
        run = Run(f, options, state, checkpointer, bar)
        try:
            result = run.to_end()
            f.refuse_changes()
            return replace(result, _derivatives=Differentiable(run.f, solve))
        finally:
            run.release()


def examined_start(f: Saddle, x: Array, y: Array) -> tuple[Point, tuple[float, float]]:
    """The start in the domains of the simple terms, and the seconds of the first gradients of g and of h.

    The first answers of functions that the caller wrote are checked: a gradient or a prox that is no vector, or that
    writes into its argument, ends in a ProblemError.
    """
    check_first_prox("g", f.g, x)
    check_first_prox("h", f.h, y)
    x, y = f.project(x, y)
    return (x, y), (check_gradient("g", f.g, x, f.space.of_x), check_gradient("h", f.h, y, f.space.of_y))


def check_first_method(f: Saddle, method: Method, x: Array, y: Array) -> None:
    """Refuse the first method of the plan if it needs what the problem does not have, or a prox that is wrong."""
    check_needs(method, f)
    if method.needs.prox_g:
        check_own_prox("g", f.g, x)
    if method.needs.prox_h:
        check_own_prox("h", f.h, y)


def checkpointer_of(f: Saddle, options: SolveOptions) -> Checkpointer:
    """Writes the run to the file that was asked for, or nothing."""
    if options.checkpoint is None:
        return NoCheckpoint()
    return RunFile(options.checkpoint, options.checkpoint_every, f, options.asked, options.storage.precision)


def schedule_of(plan: Plan) -> ScheduleState:
    """The methods of a plan before the first step."""
    race = starters(plan.racing, plan.rates, plan.first_turn, plan.late)
    return ScheduleState(plan.in_order, [plan.message] if plan.message else [], race=race, prices=dict(plan.prices))


def session_of(options: SolveOptions, timed: int) -> Session:
    """The first session of a run, which begins now; ``timed`` calls of each oracle have measured their cost."""
    return Session(time.time(), timed_calls=timed, identity_calls=int(options.checkpoint is not None))


def planned(f: Saddle, options: SolveOptions, x: Array, y: Array, seconds: tuple[float, float]) -> tuple[Plan, int]:
    """The methods to try, and how many calls of each oracle were made to measure their cost.

    Gradients that seem to be slow are timed again: the first call may have compiled something, or the system may have
    interrupted it.

    Args:
        f: the problem.
        options: what the caller asked for.
        x, y: the start.
        seconds: of the first gradient of g, and of the first one of h.
    """
    if options.method is not None:
        return Plan((options.method,), ""), 0
    costs, timed = options.costs, 0
    if costs is None and sum(seconds) >= WORTH_TIMING and f.A.runtime.measurable:
        grad_g, grad_h = min(seconds[0], _timed(f.g.grad, x)), min(seconds[1], _timed(f.h.grad, y))
        product, timed = _timed(f.A.both, x, y) / 2.0, 1
        if grad_g + grad_h >= WORTH_TIMING:
            taken = {"grad_g": grad_g, "grad_h": grad_h, "A": product, "At": product}
            costs = {name: max(value, 1e-6) for name, value in taken.items()}
    plan = choose(f, costs)
    methods = tuple(options.storage.applied(method) for method in plan.methods)
    turns = plan.turns if options.storage == (None, None) else 1  # methods that wait take memory, too
    return plan._replace(methods=methods, turns=turns), timed


def _timed(call: Callable[..., Any], *arguments: Array) -> float:
    """The seconds that a call takes."""
    began = time.perf_counter()
    call(*arguments)
    return time.perf_counter() - began
