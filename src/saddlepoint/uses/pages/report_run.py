"""One run of a report: its status, certificate, work, problem, method, provenance, citations and history."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

import numpy as np

from saddlepoint.ground.arrays import Array, to_host
from saddlepoint.parts.simple.base import Support
from saddlepoint.solving.result import Result, support_words
from saddlepoint.uses.pages.report_data import thinned
from saddlepoint.uses.pages.report_sentences import ORACLES, as_float, calls, constants, proof, rounds
from saddlepoint.uses.pages.report_table import Cell, facts, format_number, number, table, words

DEEP = 6  # most levels of nested tables of the provenance that are shown
ENTRIES = 200  # most numbers of x or of y that are shown
PROVEN = {  # what is proven about a coordinate, in words
    Support.UNDECIDED: "nothing",
    Support.ZERO: "it is zero",
    Support.LOWER: "it is at its lower bound",
    Support.UPPER: "it is at its upper bound",
    Support.OFF: "it is off zero and its bounds",
}
LONG = 400  # most characters of one value that are shown
# Keys of the provenance that have a table or a place of their own.
APART = ("citations", "versions", "method", "parameters", "constants", "shape", "dtype", "tol", "simple")


def run_section(number_in_page: int, name: str, result: Result, is_open: bool) -> str:
    """The markup of one run, folded unless ``is_open``."""
    mark = f'<span class="{"good" if result.solved else "bad"}">{status(result)}</span>'
    return "\n".join(
        [
            f'<details class="run" id="run-{number_in_page}"{" open" if is_open else ""}>',
            f"<summary><h3>{escape(name)}</h3> {mark} <span>{_digest(result)}</span></summary>",
            f"<p>{escape(result.message[:2000])}</p>",
            "<h4>Certificate</h4>",
            *proof(result),
            '<div class="beside">',
            facts("Work", _work(result)),
            facts("Problem", _problem(result)),
            facts("Proven support", _supports(result)),
            facts("Method", _method(result)),
            facts("Constants by theory", _flat(result.parameters)),
            facts("Versions and machine", _flat(_table(result, "versions"))),
            facts("Other provenance", _rest(result)),
            "</div>",
            *(_answer(name, point, found) for name, point, found in _points(result)),
            _citation(result),
            _history(name, result),
            "</details>",
        ]
    )


def status(result: Result) -> str:
    """The status of the run, as a sign and a word."""
    return f"{'✓' if result.solved else '✗'} {escape(str(result.status))}"


def _digest(result: Result) -> str:
    distance, gap = result.certificate.distance, result.certificate.gap
    if not min(distance, gap) < float("inf"):
        return ""
    proven = format_number(distance) if distance < float("inf") else f"gap {format_number(gap)}"
    return f"{proven} in {rounds(result)} rounds, {format_number(result.seconds)} s"


def _work(result: Result) -> Iterator[tuple[str, object]]:
    yield "iterations", result.iterations
    yield "seconds", result.seconds
    yield "seconds of the method's steps", result.method_seconds
    yield "rounds", rounds(result)
    for key, count in calls(result).items():
        yield f"calls of {ORACLES[key]}", count
    yield "passes over A", result.passes
    yield "certificates, not among the calls", result.monitor_calls
    setup = ", ".join(f"{ORACLES[key]} {result.setup_calls[key]}" for key in ORACLES if result.setup_calls.get(key))
    if setup:
        yield "calls to examine the problem", setup


def _problem(result: Result) -> Iterator[tuple[str, object]]:
    yield "variables of x", result.x.size
    yield "variables of y", result.y.size
    if "dtype" in result.provenance:
        yield "dtype", result.provenance["dtype"]
    names = {"mu_x": "μ of g", "L_x": "L of g", "mu_y": "μ of h", "L_y": "L of h", "norm": "|A| at most"}
    for key, value in constants(result).items():
        yield names[key], value
    for name, term in _table(result, "simple").items():
        yield f"simple term of {name}", _plain(term)
    if estimated := _table(result, "constants").get("estimated"):
        yield "estimated", _plain(estimated)


def _supports(result: Result) -> Iterator[tuple[str, object]]:
    for name, found in (("x", result.support_x), ("y", result.support_y)):
        if found is not None:
            yield f"coordinates of {name}", support_words(found)


def _points(result: Result) -> Iterator[tuple[str, Array, Array | None]]:
    yield "x", to_host(result.x), result.support_x
    yield "y", to_host(result.y), result.support_y


def _answer(name: str, point: Array, support: Array | None) -> str:
    """The numbers of x or y, folded: the largest ones if there are many, with what is proven about each."""
    shown = np.sort(np.argsort(-abs(point), kind="stable")[:ENTRIES])
    some = f"the {ENTRIES} largest of {point.size} numbers" if point.size > ENTRIES else f"{point.size} numbers"
    rows = []
    for index in shown.tolist():
        proven = [] if support is None else [words(PROVEN[Support(int(support[index]))])]
        rows.append([number(index), Cell(f"{float(point[index]):.9g}", float(point[index]), True), *proven])
    head = ["index", "value", *([] if support is None else ["proven about the saddle point"])]
    return "\n".join(
        [
            '<details class="answer">',
            f"<summary>The answer: {name}, {some}</summary>",
            table(f"Numbers of {name}", head, rows),
            "</details>",
        ]
    )


def _method(result: Result) -> Iterator[tuple[str, object]]:
    yield "name", result.method
    described = dict(_table(result, "method"))
    outermost = described.pop("name", result.method)
    if outermost != result.method:  # the registered name of an expression such as Anderson(CondatVu())
        yield "outermost wrapper", _plain(outermost)
    yield from _flat(described)
    if "tol" in result.provenance:
        yield "tolerance", as_float(result.provenance["tol"])


def _rest(result: Result) -> Iterator[tuple[str, object]]:
    rest = {key: value for key, value in result.provenance.items() if key not in APART}
    for name, value in _flat(rest):
        if value not in ("", "none"):
            yield name, value


def _table(result: Result, key: str) -> Mapping[str, Any]:
    found = result.provenance.get(key)
    return found if isinstance(found, Mapping) else {}


def _flat(values: Mapping[str, Any], before: str = "", depth: int = 0) -> Iterator[tuple[str, object]]:
    """Names and values; names in a nested table have the name of that table before them."""
    for key, value in values.items():
        name = f"{before}{str(key)[:LONG]}"
        if isinstance(value, Mapping) and depth < DEEP:
            yield from _flat(value, f"{name}: ", depth + 1)
        else:
            yield name, value if isinstance(value, float) else _plain(value)


def _plain(value: Any) -> str:
    if isinstance(value, list | tuple) and all(isinstance(item, str | int | float) for item in value):
        return ", ".join(map(str, value))[:LONG] or "none"
    return "none" if value is None else str(value)[:LONG]


def _citation(result: Result) -> str:
    works = _table(result, "citations").values()
    if not works:
        return ""
    entries = escape("\n\n".join(map(str, works)))
    return "\n".join(
        [
            "<h4>How to cite</h4>",
            f'<pre class="bibtex" tabindex="0">{entries}</pre>',
            '<p class="controls"><button type="button" class="copy">Copy BibTeX</button> '
            '<span class="said faint" role="status"></span></p>',
        ]
    )


def _history(name: str, result: Result) -> str:
    if not len(result.history):
        return "<p>No history was kept.</p>"
    records = thinned(result.history)
    head = ["iteration", *ORACLES.values(), "passes", "seconds", "distance", "gap"]
    rows = [[number(value, "none") for value in record] for record in records]
    count = len(result.history)
    some = f"{len(records)} of {count} records" if len(records) < count else f"{count} record{'s' if count > 1 else ''}"
    return "\n".join(
        [
            '<details class="history">',
            f"<summary>History, {some}</summary>",
            table(f"History of {name}", head, rows),
            "</details>",
            '<p class="controls"><button type="button" class="save">Save the history as CSV</button></p>',
        ]
    )
