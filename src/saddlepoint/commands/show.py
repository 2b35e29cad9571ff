"""Tables and sentences for people, printed on the terminal with Rich."""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table

if TYPE_CHECKING:
    from saddlepoint.methods.registry import MethodTable
    from saddlepoint.problems.findings import Report
    from saddlepoint.problems.saddle import Saddle
    from saddlepoint.solving.result import Result
    from saddlepoint.uses.bench.measure import Measurement
    from saddlepoint.uses.bench.table import Table as MeasuredTable
    from saddlepoint.uses.prediction import Prediction

REGIMES = {
    "weak": "weak coupling: of the paper's bounds those of Wang and Li and of Catalyst-AIPFB are the smaller ones",
    "intermediate": "intermediate coupling: of the paper's bounds DIPPA's is the smallest; later methods close the gap "
    "to the lower bound",
    "strong": "strong coupling: DIPPA's bound meets the lower bound",
}


def _table(*columns: str, title: str | None = None) -> Table:
    """A table whose first column is never cut."""
    table = Table(title=title)
    for i, name in enumerate(columns):
        table.add_column(name, no_wrap=i == 0)
    return table


def _compact(*columns: str, title: str | None = None) -> Table:
    """A table for many rows and narrow terminals: no vertical lines; all but the first column may be broken."""
    table = Table(title=title, box=SIMPLE_HEAD, padding=0)
    for i, name in enumerate(columns):
        table.add_column(name, no_wrap=i == 0)
    return table


def problem(f: Saddle) -> None:
    """Print one line about the problem."""
    m, n = f.shape
    Console().print(
        f"min_x max_y g(x) + <x, A y> - h(y):  {m} x {n}, kappa_x = {f.kappa_x:.3g}, kappa_y = {f.kappa_y:.3g}, "
        f"|A|/sqrt(mu_x mu_y) = {f.coupling:.3g}",
        highlight=False,
    )


def comparison(results: Mapping[str, Result]) -> None:
    """Print a table of the methods, then the certificate of the best one."""
    table = _compact("method", "status", "certified", "grad g", "grad h", "A", "A'", "seconds")
    for column in table.columns[2:]:
        column.justify = "right"
    for name, result in results.items():
        calls = [str(result.calls[key]) for key in ("grad_g", "grad_h", "A", "At")]
        table.add_row(name, result.status, f"{result.certificate.distance:.2e}", *calls, f"{result.seconds:.2f}")
    console = Console()
    console.print(table)
    best = min(results.values(), key=lambda result: (not result.solved, sum(result.calls.values())))
    console.print(
        f"certificate ({best.method}): {best.certificate.words()}, proven by one query at the returned point",
        highlight=False,
        soft_wrap=True,
    )


def prediction(p: Prediction) -> None:
    """Print the promised calls of every method, and the lower bound."""
    console = Console()
    table = _compact("method", "calls without logarithms", "grad g", "grad h", "products", "all\nconstants")
    for column in table.columns[2:]:
        column.justify = "right"
    if console.width >= 120:
        table.add_column("proved by")
    nats = math.log(1.0 / p.tol)
    for row in p.rows[:-1]:
        worst = "" if row.worst_case is None else f"{max(row.worst_case.values()):.3g}"
        calls = (*(f"{nats * count:.3g}" for count in (row.grad_g, row.grad_h, row.products)), worst)
        table.add_row(row.method, row.formula, *calls, *([row.title] if console.width >= 120 else []))
    low = p.rows[-1]
    table.add_section()
    table.add_row(low.method, low.formula, *[f"{low.calls:.0f}"] * 4)
    console.print(
        f"kx = {p.kx:g}, ky = {p.ky:g}, k = max(kx, ky), c = |A|/sqrt(mu_x mu_y) = {p.coupling:g}", highlight=False
    )
    console.print(REGIMES[p.regime], highlight=False)
    console.print(
        f"N = {p.N:.4g}: to shrink the distance by {p.tol:g}, the hardest such problem forces {p.forced_rounds} rounds "
        "of all four oracles",
        highlight=False,
    )
    console.print(table)
    console.print(f"recommended: {p.recommended}, because {p.why}", highlight=False)


def report(found: Report) -> None:
    """Print what was examined, and what to do about what is wrong."""
    table = _table("what", "given", "found", "")
    for finding in found.findings:
        table.add_row(finding.what, finding.given, finding.found, "ok" if finding.ok else "[bold red]wrong[/]")
    console = Console()
    console.print(table)
    for finding in found.problems:
        console.print(f"{finding.what}: {finding.advice}", highlight=False, markup=False)
    times = ", ".join(f"{name} {seconds:.2g} s" for name, seconds in found.seconds.items())
    console.print(f"one call takes: {times}", highlight=False)


def methods(infos: MethodTable) -> None:
    """Print the table of methods."""
    table = _table("method", "oracle", "complexity (without logarithms)", "reference")
    for info in infos:
        table.add_row(*info)
    Console().print(table)


def table(measured: MeasuredTable) -> None:
    """Print the table of exponents, measured and by theory."""
    title = f"growth exponents of the calls that bring the distance to {measured.tol:g} of its start"
    view = _compact("method", *measured.sweeps, "calls per forced round", title=title)
    for column in view.columns[1:-1]:
        column.min_width = 12  # "1.00* (1.00)"
    for row in measured.rows:
        stars = ["*" if done < size else "" for done, size in zip(row.points, measured.sizes, strict=True)]
        beside = [
            f"{_exponent(found, star)} ({_exponent(theory)})"
            for found, star, theory in zip(row.measured, stars, row.theory, strict=True)
        ]
        ratio = "" if row.ratios is None else "–".join(dict.fromkeys(map(_ratio, row.ratios)))
        name = "  gradients" if row.method.endswith(", gradients") else row.method
        view.add_row(name, *beside, ratio)
    console = Console()
    console.print(view)
    console.print(
        "measured (theory, fitted on the same points); –: not run, or solved in time at too few points; *: fitted on "
        "the points solved in time; the lower bound is the number of rounds that the chains force on every method",
        highlight=False,
    )


def _exponent(value: float | None, star: str = "") -> str:
    return "–" if value is None else f"{round(value, 2) + 0.0:.2f}{star}"


def _ratio(value: float) -> str:
    return f"{value:.1f}" if value < 9.95 else f"{value:.0f}"


@contextmanager
def running(title: str, silent: bool) -> Iterator[Callable[[Measurement], None]]:
    """Show on stderr what is being measured."""
    console = Console(stderr=True, quiet=silent)
    with console.status(f"{title}: measuring ..."):

        def tell(run: Measurement) -> None:
            end = "" if run.solved else " (not solved)"
            console.log(
                f"{run.method}: kx {run.kx:g}, ky {run.ky:g}, coupling {run.coupling:.3g}: {run.calls} calls, "
                f"{run.seconds:.2f} s{end}",
                highlight=False,
            )

        yield tell


@contextmanager
def warnings_in_one_line() -> Iterator[None]:
    """Print warnings on stderr without the place in the code that raised them."""
    with warnings.catch_warnings():
        warnings.showwarning = lambda message, *_: print(f"warning: {message}", file=sys.stderr)
        yield


def checkpoint_left(checkpoint: Path | None, solved: bool) -> None:
    """Say on stderr how to continue a run that was not solved, if it was written to a file."""
    if checkpoint is not None and not solved:
        print(f"the run is in {checkpoint}; the same command with --resume goes on from there", file=sys.stderr)


def strategies(players: Mapping[str, Mapping[str, Mapping[str, float]]]) -> None:
    """Print the probabilities of each player's actions at each information set."""
    for player, behaviour in players.items():
        table = _compact("information set", "actions", title=player)
        for place, chances in behaviour.items():
            table.add_row(
                escape(place), ", ".join(f"{escape(action)} {chance:.4f}" for action, chance in chances.items())
            )
        Console().print(table)
