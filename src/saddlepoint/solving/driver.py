"""The one driver: `solve` checks what it was given, and starts a run or goes on with one."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from saddlepoint.ground.errors import ProblemError
from saddlepoint.ground.validation import positive
from saddlepoint.methods.base import Method
from saddlepoint.methods.registry import as_method
from saddlepoint.problems.oracle import Meter
from saddlepoint.problems.saddle import Saddle
from saddlepoint.solving import door
from saddlepoint.solving.auto import Plan, choose
from saddlepoint.solving.checkpoint import Checkpointer, sigterm_raises
from saddlepoint.solving.progress import make_progress, show_reading
from saddlepoint.solving.refinement import Stored
from saddlepoint.solving.result import Result
from saddlepoint.solving.run import Run, SolveOptions

MEASURABLE = 2e-2  # seconds of two gradients from which products are timed too


@np.errstate(all="ignore")  # what comes of an overflow is noticed
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
    on_violation: str = "raise",
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_every: float = 60.0,
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
    if not isinstance(f, Saddle):
        raise ProblemError(f"f is a {type(f).__name__}; expected a Saddle(g, h, A)")
    door.check_callback(callback)
    wishes = SolveOptions(positive(tol, "tol"), callback, history, door.check_reaction(on_violation))
    if max_seconds is not None:
        max_seconds = positive(max_seconds, "max_seconds")
    auto = isinstance(method, str) and method == "auto"
    asked = "auto" if auto else as_method(method)
    x, y = door.start(f, x0, y0)
    seconds = door.check_oracle(f, x, y)
    with show_reading(progress, f.A.reading, "estimating |A|"):
        door.check_numbers(f)
    engine = f.A.engine
    timed = auto and costs is None and seconds >= MEASURABLE and engine is None
    if timed:
        costs = door.measured_costs(f, x, y, seconds)
    plan = choose(f, costs) if isinstance(asked, str) else Plan((asked,), "")
    door.check_method(f, plan.methods[0])
    stored = None if storage is None else Stored(f, storage)
    keeper = None
    if checkpoint is not None:
        every = door.as_seconds(checkpoint_every, "checkpoint_every")
        keeper = Checkpointer(door.as_path(checkpoint, "checkpoint"), every, f, asked, storage)
    saved = None if keeper is None else keeper.find()
    wanted = keeper is not None and (engine is None or engine.alone)  # an engine of several processes has its own way
    with make_progress(progress, wishes.tol, plan.methods[0].label, f.A.reading) as bar, sigterm_raises(wanted):
        meter = Meter(max_calls, max_seconds, bar.tick, f.clock)
        return Run(f, plan, x, y, wishes, meter, bar, stored, int(timed), keeper).go(saved)
