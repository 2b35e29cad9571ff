"""The result of a direct solution outside of a run; its sentences and records are made when they are first read."""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import partial
from typing import Any

from saddlepoint.ground.arrays import Array
from saddlepoint.methods.direct import Direct
from saddlepoint.parts.coupling import Coupling
from saddlepoint.parts.functions.quadratic import Quadratic
from saddlepoint.problems.oracle import ORACLES
from saddlepoint.problems.saddle import Saddle
from saddlepoint.solving.lazy_result import LazyResult
from saddlepoint.solving.messages import Ending, Worth, sentence
from saddlepoint.solving.provenance import provenance
from saddlepoint.solving.result import History, Record, Result, Status
from saddlepoint.solving.target import Target
from saddlepoint.theory.certificate import Certificate


def matrix_calls(g: Quadratic, h: Quadratic, shape: tuple[int, int]) -> dict[str, int]:
    """The calls for which the matrices of a factorisation count, as in the method ``direct``."""
    m, n = shape
    of_g, of_h = (k if isinstance(f.P, Coupling) else 1 for f, k in ((g, m), (h, n)))
    return {"grad_g": of_g, "grad_h": of_h} | ({"A": n} if n <= m else {"At": m})


def direct_result(
    f: Saddle,
    x: Array,
    y: Array,
    certificate: Certificate,
    *,
    steps: int,
    factorised: Mapping[str, int],
    began: float,
    method_seconds: float,
    tol: float,
    history: bool,
    note: str,
) -> Result:
    """The result of a problem that was solved to tol by a factorisation.

    Args:
        f: the problem, or one that differs from it by linear terms.
        x, y: the point.
        certificate: what is proven about it, at most tol.
        steps: solves with the factorisation, each after one query, and followed by a certificate.
        factorised: the calls for which the factorised matrices count; nothing if they were counted before.
        began: time.perf_counter() at the beginning of the call.
        method_seconds: time of the steps, and of the factorisation if it was made now.
        tol: the tolerance.
        history: whether the certificate is recorded.
        note: a remark for the message.
    """
    calls = dict.fromkeys(ORACLES, steps)
    for name, count in factorised.items():
        calls[name] += count
    given: dict[str, Any] = {
        "x": x,
        "y": y,
        "status": Status.SOLVED,
        "certificate": certificate,
        "calls": calls,
        "passes": 2 * steps + bool(factorised),
        "iterations": steps,
        "seconds": time.perf_counter() - began,
        "method_seconds": method_seconds,
        "method": Direct.name,
        "monitor_calls": steps,
    }
    return LazyResult.of(given, partial(_the_rest, f, given, tol, history, note, time.time()))


def _the_rest(f: Saddle, given: dict[str, Any], tol: float, history: bool, note: str, begun: float) -> dict[str, Any]:
    """The attributes that take longer to make than a small problem to solve: sentences, records, provenance."""
    certificate: Certificate = given["certificate"]
    record = Record(
        iteration=given["iterations"],
        passes=given["passes"],
        seconds=given["seconds"],
        distance=certificate.distance,
        gap=certificate.gap,
        **given["calls"],
    )
    ending = Ending(
        certificate=certificate,
        worth=Worth.PROVEN,
        target=Target("tol", tol),
        reached=certificate.distance,
        space=f.space,
        notes=(note,),
    )
    return {
        "message": sentence(Status.SOLVED, ending),
        "parameters": {},
        "history": History([record] if history else ()),
        "setup_calls": dict.fromkeys(ORACLES, 0),
        "provenance": provenance(f, Direct(), parameters={}, target=Target("tol", tol), begun=begun),
    }
