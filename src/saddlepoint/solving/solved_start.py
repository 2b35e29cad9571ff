"""The result of ``solve`` where the start is good enough: one certificate, and no run.

Applications often begin with a point that a fast special method has found. A run from it chooses methods, estimates
|A| and prepares for steps that it then does not take, which for a small problem takes longer than finding the point.
"""

from __future__ import annotations

import time
from functools import partial
from typing import Any

import numpy as np

from saddlepoint.ground.arrays import Array
from saddlepoint.problems.audit import is_correct_by_construction
from saddlepoint.problems.oracle import ORACLES
from saddlepoint.problems.residuals import Lengths, Query
from saddlepoint.problems.saddle import Saddle
from saddlepoint.problems.support import support_by_query
from saddlepoint.solving.auto import choose
from saddlepoint.solving.derivatives import Differentiable
from saddlepoint.solving.lazy_result import LazyResult
from saddlepoint.solving.messages import Ending, Worth, sentence
from saddlepoint.solving.provenance import provenance
from saddlepoint.solving.result import History, Record, Result, Status
from saddlepoint.solving.solve import solve
from saddlepoint.solving.target import Target
from saddlepoint.theory.certificate import Certificate

NOTE = "the start is good enough: no step was taken"


def solved_start(f: Saddle, x: Array, y: Array, tol: float) -> Result | None:
    """The result if the distance at (x, y) is certified to be at most tol; None if it is not, or a run has to say.

    A run has to say where something about the problem is claimed, because it examines claims before it calls a problem
    solved.

    Args:
        f: the problem, in arrays of NumPy.
        x, y: a point in the domains of the simple terms; the result holds these arrays.
        tol: the distance.
    """
    if not is_correct_by_construction(f):
        return None
    began = time.perf_counter()
    with np.errstate(all="ignore"):
        query = f.query(x, y)
        residuals = f.residuals(query)
        certificate = f.proven(query, tol=tol, residuals=residuals)
    if not certificate.distance <= tol:
        return None
    return result_of_start(f, query, residuals, certificate, Target("tol", tol), began)


def result_of_start(
    f: Saddle,
    query: Query,
    residuals: Lengths,
    certificate: Certificate,
    target: Target,
    began: float,
    message: str = "",
) -> Result:
    """The result at the point of a query whose certificate reaches the target.

    Args:
        f: the problem.
        query, residuals: those of the point.
        certificate: its certificate.
        target: what was asked for.
        began: time.perf_counter() at the beginning of the call.
        message: how the run ended; by default, what is certified beside the target.
    """
    with np.errstate(all="ignore"):
        support = support_by_query(f, query, residuals, certificate) if f.has_simple else (None, None)
    given: dict[str, Any] = {
        "x": query.x,
        "y": query.y,
        "status": Status.SOLVED,
        "certificate": certificate,
        "calls": dict.fromkeys(ORACLES, 0),
        "passes": 0,
        "iterations": 0,
        "seconds": time.perf_counter() - began,
        "method_seconds": 0.0,
        "monitor_calls": 1,
        "setup_calls": dict.fromkeys(ORACLES, 0),
        "parameters": {},
        "support_x": support[0],
        "support_y": support[1],
        "_derivatives": Differentiable(f, solve),
    }
    return LazyResult.of(given, partial(_the_rest, f, given, target, time.time(), message))


def _the_rest(f: Saddle, given: dict[str, Any], target: Target, begun: float, message: str) -> dict[str, Any]:
    """The attributes that take longer to make: the method that a run would begin with, sentences, provenance."""
    certificate: Certificate = given["certificate"]
    reached = target.reached(certificate, given["x"], given["y"])
    plan = choose(f)
    ending = Ending(
        certificate=certificate,
        worth=Worth.PROVEN,
        target=target,
        reached=reached,
        space=f.space,
        notes=(NOTE,),
    )
    record = Record(0, 0, 0, 0, 0, 0, given["seconds"], certificate.distance, certificate.gap)
    return {
        "method": plan.methods[0].label,
        "message": message or sentence(Status.SOLVED, ending),
        "history": History([record]),
        "provenance": provenance(f, plan.methods[0], parameters={}, target=target, begun=begun),
    }
