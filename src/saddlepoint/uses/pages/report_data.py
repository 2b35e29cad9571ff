"""Histories as the report's script needs them: as columns for the chart, and as CSV."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Mapping
from typing import Any

from saddlepoint.solving.result import History, Record, Result
from saddlepoint.uses.pages.report_sentences import target, tolerance

MOST = 500  # most points of a line, and most rows of a table
ACROSS = {  # the quantities on the horizontal axis of a chart, and what they mean
    "rounds": "calls of the busiest oracle",
    "gradients": "calls of ∇g and ∇h together",
    "products": "products with A and A′ together",
    "passes": "times that A was read from end to end",
    "seconds": "wall-clock time since the call, certificates included",
}


def unique(names: Iterable[str]) -> list[str]:
    """The names, with a number added to each that occurred before."""
    found: list[str] = []
    for name in names:
        tries = (name if k == 1 else f"{name} ({k})" for k in range(1, len(found) + 2))
        found.append(next(one for one in tries if one not in found))
    return found


def thinned(history: History, most: int = MOST) -> list[Record]:
    """At most ``most`` records, evenly spread, including the first, the last and the one of the smallest distance.

    Where no distance is certified, the one of the smallest gap is included.
    """
    size = len(history)
    if size <= most:
        return list(history)
    spread = {round(k * (size - 1) / (most - 2)) for k in range(most - 1)}
    best = min(
        range(size), key=lambda k: [math.inf if math.isnan(z) else z for z in (history[k].distance, history[k].gap)]
    )
    return [history[k] for k in sorted(spread | {best})]


def as_csv(history: History) -> str:
    """All records as CSV, with every digit."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(Record._fields)
    writer.writerows(history)
    return file.getvalue()


def line(name: str, result: Result) -> dict[str, Any]:
    """The data of one run for the chart."""
    records = thinned(result.history)
    return {
        "name": name,
        "csv": as_csv(result.history),
        "rounds": [max(r.grad_g, r.grad_h, r.A, r.At) for r in records],
        "gradients": [r.grad_g + r.grad_h for r in records],
        "products": [r.A + r.At for r in records],
        "passes": [r.passes for r in records],
        "seconds": [r.seconds for r in records],
        "distance": [r.distance for r in records],
        "gap": [r.gap for r in records],
    }


def lines(results: Mapping[str, Result]) -> dict[str, Any]:
    """The data of the runs of one problem, and their tolerances."""
    tols = {(target(result), tolerance(result)) for result in results.values()}
    return {
        "runs": [line(name, result) for name, result in results.items()],
        "tols": {
            of: sorted(tol for asked, tol in tols if asked == argument and 0.0 < tol < math.inf)
            for of, argument in (("distance", "tol"), ("gap", "gap"))
        },
    }
