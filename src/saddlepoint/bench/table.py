"""Table 1, measured: how the calls of each method grow with kappa and with |A|, beside what theory says."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from saddlepoint.bench.measure import Measurement, gradient_methods, measure
from saddlepoint.theory.table1 import BALANCED, TABLE1


class Sweep(NamedTuple):
    """A line through the space of problems, along which one number grows."""

    name: str
    points: tuple[tuple[float, float, float], ...]  # (kx, ky, coupling)
    variable: tuple[float, ...]  # what the exponent refers to, at each point


def sweeps(quick: bool = False) -> list[Sweep]:
    """kappa at weak coupling, kappa_x alone, and |A| at fixed kappa in the intermediate regime and beyond |A| = L."""
    kappas = (100.0, 300.0, 1000.0) if quick else (100.0, 300.0, 1000.0, 3000.0, 10000.0)
    k = 100.0 if quick else 1000.0
    between = tuple(float(c) for c in np.geomspace(math.sqrt(2.0 * k), math.pow(2.0 * k**3, 0.25), 3 if quick else 5))
    beyond = (k, 2.0 * k) if quick else (k, 2.0 * k, 4.0 * k)
    return [
        Sweep("kappa, kx = ky, weak coupling", tuple((value, value, 1.0) for value in kappas), kappas),
        Sweep("kx, ky = 10, weak coupling", tuple((value, 10.0, 1.0) for value in kappas), kappas),
        Sweep(f"|A|, kx = ky = {k:g}, intermediate", tuple((k, k, c) for c in between), between),
        Sweep(f"|A|, kx = ky = {k:g}, |A| >= L", tuple((k, k, c) for c in beyond), beyond),
    ]


class TableRow(NamedTuple):
    """A method's exponents along every sweep, measured and by theory on the same points."""

    method: str
    title: str
    measured: tuple[float | None, ...]
    theory: tuple[float, ...]


class Table(NamedTuple):
    """The whole table, with the runs it comes from."""

    sweeps: tuple[str, ...]
    rows: tuple[TableRow, ...]
    runs: tuple[Measurement, ...]
    tol: float

    def to_dict(self) -> dict[str, Any]:
        """Plain values, as ``--json`` prints them."""
        return {
            "tol": self.tol,
            "sweeps": list(self.sweeps),
            "rows": [row._asdict() for row in self.rows],
            "runs": [run._asdict() for run in self.runs],
        }


def exponent(variable: Sequence[float], calls: Sequence[float]) -> float:
    """The slope of log(calls) against log(variable), by least squares."""
    return float(np.polyfit(np.log(variable), np.log(calls), 1)[0])


def measured_table(
    methods: Iterable[str] | None = None,
    tol: float = 1e-6,
    quick: bool = False,
    max_seconds: float = 60.0,
    tell: Callable[[Measurement], None] = lambda _: None,
) -> Table:
    """Run every method along every sweep and fit the exponents.

    Args:
        methods: registered names; all gradient methods if left out.
        tol: accuracy relative to the norm of the solution.
        quick: fewer and smaller problems.
        max_seconds: for one run; one that needs longer leaves its sweep without an exponent.
        tell: called with every measurement.
    """
    names = list(methods) if methods is not None else gradient_methods()
    lines = sweeps(quick)
    runs: list[Measurement] = []
    measured: dict[str, list[float | None]] = {name: [] for name in names}
    for name in names:
        for line in lines:
            calls = []
            for kx, ky, c in line.points:
                runs.append(measure(name, kx, ky, c, tol, max_seconds))
                tell(runs[-1])
                calls.append(float(runs[-1].calls) if runs[-1].solved else math.nan)
            measured[name].append(None if any(map(math.isnan, calls)) else exponent(line.variable, calls))
    rows = []
    for row in (*TABLE1[:-1], *BALANCED, TABLE1[-1]):
        theory = tuple(exponent(line.variable, [row.order(*point) for point in line.points]) for line in lines)
        found = tuple(measured.get(row.key, [None] * len(lines)))
        rows.append(TableRow(row.key, row.title, found, theory))
    return Table(tuple(line.name for line in lines), tuple(rows), tuple(runs), tol)
