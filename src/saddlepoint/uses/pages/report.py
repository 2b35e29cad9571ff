"""The report on results: one HTML page with the convergence, certificate, work and provenance of each run."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from itertools import count
from typing import NamedTuple

from saddlepoint import __version__
from saddlepoint.ground.errors import ProblemError
from saddlepoint.solving.result import Result
from saddlepoint.uses.pages.page import page
from saddlepoint.uses.pages.report_data import ACROSS, lines
from saddlepoint.uses.pages.report_run import run_section, status
from saddlepoint.uses.pages.report_sentences import (
    ORACLES,
    calls,
    closest,
    constants,
    rounds,
    target,
    tolerance,
    verdict,
)
from saddlepoint.uses.pages.report_table import Cell, format_number, number, table, words

NAMES = {"tol": "tolerance", "rtol": "relative tolerance", "gap": "tolerance of the gap"}  # by the argument of solve


class Group(NamedTuple):
    """Runs of one problem, which share a chart and a table."""

    heading: str
    results: Mapping[str, Result]
    about: str = ""  # markup below the sentence on how the runs ended


def report_page(results: Mapping[str, Result], title: str = "", note: str = "") -> str:
    """One self-contained page about these results; runs of different problems are in separate groups.

    Args:
        results: the results by name.
        title: the title of the page; if left out, it says how many runs there are.
        note: a sentence under the title.

    Example:
        >>> import numpy as np, saddlepoint as sp
        >>> f = sp.Saddle(sp.Quadratic(1.0, [1.0]), sp.Quadratic(1.0), np.eye(1))
        >>> report_page({"mine": sp.solve(f)}).startswith("<!doctype html>")
        True
    """
    if not results:
        raise ProblemError("there is no result to report on; give at least one")
    groups = by_problem(results)
    names = list(results)
    title = title or (f"Report on {names[0]}" if len(names) == 1 else f"Report on {len(names)} runs")
    return assembled(title, groups, f'<p class="faint">{escape(note)}</p>' if note else "")


def by_problem(results: Mapping[str, Result]) -> list[Group]:
    """The runs in groups by problem; problems are distinguished by their sizes and their strong convexity."""
    found: dict[tuple[object, ...], dict[str, Result]] = {}
    for name, result in results.items():
        mu = (format_number(constants(result)[key]) for key in ("mu_x", "mu_y"))
        found.setdefault((result.x.size, result.y.size, *mu), {})[name] = result
    if len(found) == 1:
        return [Group("", results)]
    return [Group(f"Problem {k}: {_size(runs)}", runs) for k, runs in enumerate(found.values(), 1)]


def assembled(title: str, groups: Sequence[Group], about: str = "", more: str = "") -> str:
    """The page of these groups.

    Args:
        title: the heading of the page.
        groups: the groups, in the order of the page.
        about: markup under the heading.
        more: markup after the groups.
    """
    numbers = count(1)
    single = sum(len(group.results) for group in groups) == 1
    body = [
        f'<header class="top"><div><h1>{escape(title)}</h1></div><div id="theme" class="controls"></div></header>',
        "<main>",
        about,
        *(_group(k, group, [next(numbers) for _ in group.results], single) for k, group in enumerate(groups)),
        more,
        "</main>",
        f'<footer class="faint"><p>Written by saddlepoint {escape(__version__)}. The page holds all of its data and '
        "loads nothing from the network.</p></footer>",
    ]
    data = {"groups": [lines(group.results) for group in groups]}
    text = page(title, "\n".join(body), ["report.js"], data, ["report.css"])
    return text.encode("utf-8", "replace").decode("utf-8")  # a name may hold surrogates, which UTF-8 cannot encode


def _group(k: int, group: Group, numbers: Sequence[int], single: bool) -> str:
    results = group.results
    runs = zip(numbers, results.items(), strict=True)
    return "\n".join(
        [
            f'<section class="group" id="group-{k + 1}">',
            f"<h2>{escape(group.heading)}</h2>" if group.heading else "",
            f'<p class="verdict">{escape(verdict(results))}</p>',
            group.about,
            _cards(results),
            f'<p class="faint">{_problem(results)}</p>',
            _chart(k, results),
            "" if single else "<h2>Comparison</h2>" if not group.heading else "",
            _comparison(numbers, group),
            "<h2>The run</h2>" if single else "<h2>Each run</h2>" if not group.heading else "",
            *(run_section(place, name, result, single) for place, (name, result) in runs),
            "</section>",
        ]
    )


def _cards(results: Mapping[str, Result]) -> str:
    """The main numbers: the smallest distance and gap, the fewest rounds and the least time."""
    solved = {name: result for name, result in results.items() if result.solved}
    best, many = closest(results), len(results) > 1
    cards = []
    if math.isfinite(results[best].certificate.distance):
        distance, gap = ("Closest answer", "Its duality gap") if many else ("Distance", "Duality gap")
        cards.append((distance, f"≤ {format_number(results[best].certificate.distance)}", best))
        cards.append((gap, f"≤ {format_number(results[best].certificate.gap)}", best))
    elif math.isfinite(results[best].certificate.gap):
        name = "Smallest duality gap" if many else "Duality gap"
        cards.append((name, f"≤ {format_number(results[best].certificate.gap)}", best))
    if solved:
        few = min(solved, key=lambda name: rounds(solved[name]))
        quick = min(solved, key=lambda name: solved[name].seconds)
        fewest, least = ("Fewest rounds", "Least time") if len(solved) > 1 else ("Rounds", "Time")
        cards.append((fewest, str(rounds(solved[few])), few))
        cards.append((least, f"{format_number(solved[quick].seconds)} s", quick))
    items = (
        f"<div><dt>{what}</dt><dd><strong>{value}</strong>{f' <span>{escape(name)}</span>' if many else ''}</dd></div>"
        for what, value, name in cards
    )
    return f'<dl class="cards">{"".join(items)}</dl>' if cards else ""


def _problem(results: Mapping[str, Result]) -> str:
    """A sentence on the problem: its size, its condition numbers and the tolerance."""
    result = next(iter(results.values()))
    c = constants(result)
    parts = [f"min<sub>x</sub> max<sub>y</sub> g(x) + ⟨x, A y⟩ − h(y), {_size(results)} variables"]
    for name, top, bottom in (
        ("κ<sub>x</sub>", c["L_x"], c["mu_x"]),
        ("κ<sub>y</sub>", c["L_y"], c["mu_y"]),
        ("|A|/√(μ<sub>x</sub>μ<sub>y</sub>)", c["norm"], math.sqrt(max(c["mu_x"] * c["mu_y"], 0.0))),
    ):
        if bottom > 0.0 and math.isfinite(top / bottom):
            parts.append(f"{name} = {format_number(top / bottom)}")
    tols = {(NAMES[target(run)], format_number(tolerance(run))) for run in results.values() if tolerance(run) > 0.0}
    for name in NAMES.values():
        some = sorted(number for what, number in tols if what == name)
        if some:
            parts.append(f"{name} {' and '.join(some)}")
    return ", ".join(parts) + "."


def _size(results: Mapping[str, Result]) -> str:
    result = next(iter(results.values()))
    return f"{result.x.size} × {result.y.size}"


def _chart(k: int, results: Mapping[str, Result]) -> str:
    """The place where the script draws the chart, and radio buttons, which the keyboard can change."""
    if not any(len(result.history) for result in results.values()):
        return "<p>No history was kept, so there is no chart.</p>"
    across = "".join(
        f'<label><input type="radio" name="across-{k}" value="{name}"{" checked" if name == "rounds" else ""}>'
        f"<span>{name}</span></label>"
        for name in ACROSS
    )
    distances = any(math.isfinite(record.distance) for result in results.values() for record in result.history)
    first = "distance" if distances else "gap"
    of = "".join(
        f'<label><input type="radio" name="of-{k}" value="{name}"{" checked" if name == first else ""}>'
        f"<span>{name}</span></label>"
        for name in ("distance", "gap")
    )
    meaning = "; ".join(f"{name}: {meaning}" for name, meaning in ACROSS.items())
    return "\n".join(
        [
            f'<div class="convergence" data-group="{k}">',
            f'<div class="controls choices"><fieldset><legend>Certified</legend>{of}</fieldset>',
            f"<fieldset><legend>against</legend>{across}</fieldset>",
            '<label class="log"><input type="checkbox"> logarithmic</label></div>',
            '<figure class="screen"></figure>',
            '<p class="none faint" role="status"></p>',
            '<div class="paper"></div>',
            f'<p class="faint small">{meaning[0].upper()}{meaning[1:]}.</p>',
            "</div>",
        ]
    )


def _comparison(numbers: Sequence[int], group: Group) -> str:
    results = group.results
    if len(results) == 1:
        return ""
    named = all(name == result.method for name, result in results.items())  # then the method needs no column
    head = ["run", *([] if named else ["method"]), "status", "distance", "gap", "rounds", *ORACLES.values(), "passes"]
    head += ["steps", "seconds", "certificates"]
    rows = []
    for place, (name, result) in zip(numbers, results.items(), strict=True):
        certificate = result.certificate
        rows.append(
            [
                Cell(f'<a href="#run-{place}">{escape(name)}</a>'),
                *([] if named else [words(result.method)]),
                Cell(f'<span class="{"good" if result.solved else "bad"}">{status(result)}</span>'),
                number(certificate.distance, "none"),
                number(certificate.gap, "none"),
                number(rounds(result)),
                *(number(calls_of) for calls_of in calls(result).values()),
                number(result.passes),
                number(result.iterations),
                number(result.seconds),
                number(result.monitor_calls),
            ]
        )
    return table(f"The runs{f' of {group.heading}' if group.heading else ''}, compared", head, rows)
