"""What people see: Rich tables on the terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

if TYPE_CHECKING:
    from saddlepoint.bench.measure import Measurement
    from saddlepoint.bench.table import Table as MeasuredTable
    from saddlepoint.methods.base import MethodTable
    from saddlepoint.prediction import Prediction
    from saddlepoint.problem import Saddle
    from saddlepoint.result import Result

REGIMES = {
    "weak": "weak coupling: the bounds of Wang and Li and of Catalyst-AIPFB are the smaller ones",
    "intermediate": "intermediate coupling: DIPPA's bound is the smallest, and a gap to the lower bound remains",
    "strong": "strong coupling: DIPPA's bound meets the lower bound",
}


def _table(*columns: str, title: str | None = None) -> Table:
    """A table whose first column is never cut."""
    table = Table(title=title)
    for i, name in enumerate(columns):
        table.add_column(name, no_wrap=i == 0)
    return table


def problem(f: Saddle) -> None:
    """One line on the problem."""
    m, n = f.shape
    Console().print(
        f"min_x max_y g(x) + <x, A y> - h(y):  {m} x {n}, kappa_x = {f.kappa_x:.3g}, kappa_y = {f.kappa_y:.3g}, "
        f"|A|/sqrt(mu_x mu_y) = {f.coupling:.3g}",
        highlight=False,
    )


def comparison(results: Mapping[str, Result]) -> None:
    """The methods side by side, then the best one's certificate."""
    table = _table("method", "status", "certified", "grad g", "grad h", "A", "A'", "seconds")
    for column in table.columns[2:]:
        column.justify = "right"
    for name, result in results.items():
        calls = [str(result.calls[key]) for key in ("grad_g", "grad_h", "A", "At")]
        table.add_row(name, result.status, f"{result.certificate.distance:.2e}", *calls, f"{result.seconds:.2f}")
    console = Console()
    console.print(table)
    best = min(results.values(), key=lambda result: (not result.solved, sum(result.calls.values())))
    certificate = best.certificate
    console.print(
        f"certificate ({best.method}): |x-x*| + |y-y*| <= {certificate.distance:.3g} and duality gap <= "
        f"{certificate.gap:.3g}, proven by one query at the returned point",
        highlight=False,
    )


def prediction(p: Prediction) -> None:
    """The promises of Table 1."""
    table = _table("method", "proved by", "calls without logarithms", f"calls to {p.tol:g}", "with all constants")
    for column in table.columns[3:]:
        column.justify = "right"
    for row in p.rows:
        worst = "" if row.worst_case is None else f"{max(row.worst_case.values()):.3g}"
        table.add_row(row.method, row.title, row.formula, f"{row.calls:.3g}", worst)
    console = Console()
    console.print(f"kx = {p.kx:g}, ky = {p.ky:g}, |A|/sqrt(mu_x mu_y) = {p.coupling:g}", highlight=False)
    console.print(REGIMES[p.regime], highlight=False)
    console.print(table)
    console.print(f"recommended: {p.recommended}", highlight=False)


def methods(infos: MethodTable) -> None:
    """The table of methods."""
    table = _table("method", "oracle", "complexity (without logarithms)", "reference")
    for info in infos:
        table.add_row(*info)
    Console().print(table)


def table(measured: MeasuredTable) -> None:
    """Exponents, measured and by theory."""
    view = _table(
        "method", *measured.sweeps, title=f"growth exponents of the calls to relative accuracy {measured.tol:g}"
    )
    for row in measured.rows:
        cells = [
            f"{'–' if found is None else format(found, '.2f')} ({theory:.2f})"
            for found, theory in zip(row.measured, row.theory, strict=True)
        ]
        view.add_row(row.method, *cells)
    Console().print(view)
    Console().print("measured (theory, fitted on the same points); – is not run", highlight=False)


@contextmanager
def running(title: str, silent: bool) -> Iterator[Callable[[Measurement], None]]:
    """A line on stderr that tells what is being measured."""
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
