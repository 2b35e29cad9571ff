"""Solve many problems in one call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from saddlepoint.ground.errors import ProblemError
from saddlepoint.ground.time_limit import TimeLimit
from saddlepoint.ground.validation import as_flag
from saddlepoint.methods.base import Method
from saddlepoint.methods.direct import Direct
from saddlepoint.methods.needs import missing
from saddlepoint.methods.registry import method_or_auto
from saddlepoint.problems.saddle import Saddle
from saddlepoint.solving.auto import choose
from saddlepoint.solving.options import as_costs
from saddlepoint.solving.result import Result, Status
from saddlepoint.solving.solve import solve
from saddlepoint.solving.target import Target
from saddlepoint.theory.certificate import Certificate
from saddlepoint.uses.batch import direct
from saddlepoint.uses.batch.batch import Batch
from saddlepoint.uses.batch.groups import groups


def solve_many(
    problems: Sequence[Saddle] | Batch,
    *,
    tol: float | None = None,
    rtol: float | None = None,
    gap: float | None = None,
    method: str | Method = "auto",
    costs: Mapping[str, float] | None = None,
    max_calls: int | Mapping[str, int] | None = None,
    max_seconds: float | None = None,
    progress: bool = False,
    history: bool = False,
) -> list[Result]:
    """Solve many independent problems in one call, each with its own certificate.

    Problems of equal shape, library, dtype and device are solved together, as one ``Batch`` with a block-diagonal
    coupling, if every A is a dense array and all g are of one kind, and so are all h: ``Quadratic``, ``LeastSquares``,
    ``Logistic``, ``SmoothedHinge``, ``Huber``, ``LogCosh``, ``LogSumExp`` or ``Entropy``, with data of equal shape and
    the same delta, width, low and high. In NumPy, groups of them are, with similar condition numbers and matrices that
    fit the cache together. Others are solved one by one: sums and multiples of functions, black boxes (make a ``Batch``
    of them yourself), sparse matrices. Quadratic problems in NumPy of up to 500 variables a side are solved by one
    batched factorisation, if the method is "auto" or "direct". With any other method that factorises matrices, or that
    needs a prox which the batch does not have, all problems are solved one by one.

    Args:
        problems: a list of ``Saddle``, or a ``Batch``.
        tol: every problem is solved when its own certified |x-x*| + |y-y*| is at most this; 1e-6 if nothing is asked
            for.
        rtol, gap: ask for a relative distance, or for a duality gap, of every problem instead, as in ``solve``.
            Problems with mu = 0 need ``gap``.
        method, costs, max_calls, progress, history: as in ``solve``.
        max_seconds: wall-clock limit for all problems together.

    Returns:
        One ``Result`` for each problem, in their order. For problems solved together, the calls, iterations, seconds
        and history are those of the one run, and the message says so. At its end, a run examines gradients that you
        gave. If it ends before all problems are within tol, those within tol therefore count as solved only if g and h
        are functions of this library.

    Example:
        >>> import numpy as np, saddlepoint as sp
        >>> from saddlepoint.uses.batch import solve_many
        >>> problems = [sp.Saddle(sp.Quadratic(mu, [1.0, 1.0]), sp.Quadratic(1.0), np.eye(2)) for mu in (1.0, 3.0)]
        >>> [(result.solved, result.x.round(3).tolist()) for result in solve_many(problems)]
        [(True, [-0.5, -0.5]), (True, [-0.25, -0.25])]
    """
    target = Target.checked(tol, rtol, gap)
    flags = {"progress": as_flag(progress, "progress"), "history": as_flag(history, "history")}
    costs = None if costs is None else as_costs(costs)
    options: dict[str, Any] = {"costs": costs, "max_calls": max_calls, **flags}
    limit = TimeLimit(max_seconds)
    method_or_auto(method)
    if isinstance(problems, Batch):
        if rtol is not None:
            raise ProblemError("rtol was given with a Batch, whose problems have one certificate; give tol or gap")
        return _solve_batch(problems, target, method=method, max_seconds=limit.left, **options)
    problems = _checked(problems, target)
    for f in problems:
        f.refuse_changes()
    asked: dict[str, Any] = {target.argument: target.most}
    if target.argument == "tol" and len(problems) > 1 and max_calls is None and _factorises(method, costs, problems):
        together = Batch.of(problems)
        directly = (target.most, history, limit.left)
        found = None if together is None else direct.solve_directly(together, problems, *directly)
        return _one_by_one(problems, found, **asked, method=method, max_seconds=limit.left, **options)
    made = _made(method, problems[0], costs)
    if len(problems) == 1 or target.argument == "rtol" or made.needs.matrix:
        return _one_by_one(problems, **asked, method=method, max_seconds=limit.left, **options)
    results: dict[int, Result] = {}
    for group in groups(problems):
        some = [problems[k] for k in group]
        batch = Batch.of(some)
        if batch is not None and not missing(made, batch.problem):
            answers = _solve_batch(batch, target, method=method, max_seconds=limit.left, **options)
        else:
            answers = _one_by_one(some, **asked, method=method, max_seconds=limit.left, **options)
        results.update(zip(group, answers, strict=True))
    return [results[k] for k in range(len(problems))]


def _one_by_one(
    problems: Sequence[Saddle],
    found: Sequence[Result | None] | None = None,
    *,
    max_seconds: float | None,
    **options: Any,
) -> list[Result]:
    """The results of all problems; those that were found already are taken over."""
    results, limit = [], TimeLimit(max_seconds)
    for b, f in enumerate(problems):
        known = None if found is None else found[b]
        results.append(solve(f, max_seconds=limit.left, **options) if known is None else known)
    return results


def _solve_batch(batch: Batch, target: Target, **options: Any) -> list[Result]:
    run = solve(batch.problem, **options | {target.argument: target.most})
    x, y = batch.back(run.x, run.y)
    noise, assumes = (run.certificate.noise_x, run.certificate.noise_y), run.certificate.assumes
    tol = target.most if target.argument == "tol" else None
    certificates = [proof._replace(assumes=assumes) for proof in batch.certificates(x, y, noise, tol)]
    if run.certificate.is_estimated:
        certificates = [proof.without_bounds for proof in certificates]
    f = batch.problem
    # A run examines gradients that the caller gave just before it reports "solved", so it may have ended before that.
    examined = run.solved or (f.g.trusted and f.h.trusted)
    return [
        _part(run, batch.size, target, examined, *part)
        for part in zip(batch.split(x), batch.split(y), certificates, strict=True)
    ]


def _part(run: Result, blocks: int, target: Target, examined: bool, x: Any, y: Any, certificate: Certificate) -> Result:
    """The result of one block."""
    proven, what = target.reached(certificate, x, y), target.what
    near = proven <= target.most
    status = Status.SOLVED if near and examined else run.status
    words = f"certified {what} {proven:.3g} <= {target.argument} {target.most:.3g}" if near else f"{what} {proven:.3g}"
    if near and not examined:
        words += ", but the gradients have not been examined"
    message = f"{words}; the worst of {blocks} solved together: {run.message}"
    return replace(run, x=x, y=y, status=status, message=message, certificate=certificate)


def _factorises(method: str | Method, costs: Mapping[str, float] | None, problems: Sequence[Saddle]) -> bool:
    """Whether the problems are factorised together; by auto they are, unless it is told what calls cost."""
    given = method_or_auto(method)
    wanted = costs is None if given is None else isinstance(given, Direct)
    return wanted and direct.fits(problems)


def _made(method: str | Method, first: Saddle, costs: Mapping[str, float] | None) -> Method:
    """The method as an object; for auto, the first one without matrices that auto would try on one problem."""
    given = method_or_auto(method)
    if given is not None:
        return given
    methods = choose(first, costs).methods
    return next((one for one in methods if not one.needs.matrix), methods[0])


def _checked(problems: Any, target: Target) -> list[Saddle]:
    try:
        found = list(problems)
    except TypeError:
        raise ProblemError(f"problems is a {type(problems).__name__}; expected a list of Saddle, or a Batch") from None
    if not found:
        raise ProblemError("problems is empty; expected at least one Saddle(g, h, A)")
    for i, f in enumerate(found):
        if not isinstance(f, Saddle):
            raise ProblemError(f"problem {i} is a {type(f).__name__}; expected a Saddle(g, h, A)")
        target.check(f)
    return found
