"""The measured Table 1: how the calls of each method grow with kappa and with |A|, compared with theory."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from saddlepoint.methods.registry import promised_rows
from saddlepoint.theory.complexity import Complexity, Order
from saddlepoint.theory.table1 import LOWER_BOUND, Row
from saddlepoint.uses.bench.measure import Measurement, Point, chain_methods, forced_on_chain, measure_along


class Sweep(NamedTuple):
    """A sequence of problems along which one number grows."""

    name: str
    points: tuple[Point, ...]
    variable: tuple[float, ...]  # the number that grows, at each point


def sweeps(quick: bool = False) -> list[Sweep]:
    """kappa at weak coupling, kappa_x alone, and |A| at fixed kappa in the intermediate regime and beyond |A| = L."""
    kappas = (30.0, 100.0, 300.0) if quick else (100.0, 300.0, 1000.0, 3000.0, 10000.0)
    k = 30.0 if quick else 200.0
    between = tuple(float(c) for c in np.geomspace(math.sqrt(2.0 * k), math.pow(2.0 * k**3, 0.25), 3 if quick else 5))
    beyond = (k, 2.0 * k) if quick else (k, 2.0 * k, 4.0 * k)
    return [
        Sweep("kappa, kx = ky, weak coupling", tuple((value, value, 1.0) for value in kappas), kappas),
        Sweep("kx, ky = 10, weak coupling", tuple((value, 10.0, 1.0) for value in kappas), kappas),
        Sweep(f"|A|, kx = ky = {k:g}, intermediate", tuple((k, k, c) for c in between), between),
        Sweep(f"|A|, kx = ky = {k:g}, |A| >= L", tuple((k, k, c) for c in beyond), beyond),
    ]


class TableRow(NamedTuple):
    """A method's exponents along every sweep, measured and by theory on the same points.

    ``points`` is the number of points of each sweep at which the method was solved in time; with fewer than three,
    unless the sweep has no more, there is no exponent. ``ratios`` are the least and the largest number of calls divided
    by the rounds that the chain forces on any method.
    """

    method: str
    title: str
    measured: tuple[float | None, ...]
    theory: tuple[float | None, ...]  # None where no order is known
    points: tuple[int, ...]
    ratios: tuple[float, float] | None = None


class Table(NamedTuple):
    """The whole table, with the runs from which it is computed."""

    sweeps: tuple[str, ...]
    sizes: tuple[int, ...]  # the number of points of each sweep
    rows: tuple[TableRow, ...]
    runs: tuple[Measurement, ...]
    tol: float

    def to_dict(self) -> dict[str, Any]:
        """The table as plain values, as ``--json`` prints them."""
        return {
            "tol": self.tol,
            "sweeps": list(self.sweeps),
            "sizes": list(self.sizes),
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
    max_seconds: float | None = None,
    tell: Callable[[Measurement], None] = lambda _: None,
) -> Table:
    """Run every method along every sweep and fit the exponents.

    Args:
        methods: registered names; if left out, all that run on the chain, and rows of Table 1 that have no method.
        tol: accuracy relative to the norm of the solution.
        quick: fewer and smaller problems.
        max_seconds: limit for one run; a run that needs longer ends its sweep. It is 10 if left out, and 1 if quick.
        tell: a function that is called with every measurement.
    """
    names = chain_methods() if methods is None else list(methods)
    *known, lower = promised_rows()
    every = {row.key: row for row in known}
    unknown = Complexity("", _unknown)
    rows = [*known, *(Row(name, "", unknown) for name in names if name not in every)]
    limit = (1.0 if quick else 10.0) if max_seconds is None else max_seconds
    lines = sweeps(quick)
    table: list[TableRow] = []
    runs: list[Measurement] = []
    for row in rows:
        if methods is not None and row.key not in names:
            continue
        found = [measure_along(row.key, line.points, tol, limit, tell) if row.key in names else [] for line in lines]
        runs += [run for along in found for run in along]
        solved = [[run for run in along if run.solved] for along in found]
        ratios = [run.calls / run.forced for along in solved for run in along]
        extent = (min(ratios), max(ratios)) if ratios else None
        table.append(_fitted(row.key, row.title, row.order, lines, [[run.calls for run in a] for a in solved], extent))
        if row.complexity.grad_g is not None:
            counts = [[run.gradients for run in along] for along in solved]
            table.append(_fitted(f"{row.key}, gradients", row.title, row.complexity.grad_g, lines, counts))
    forced = [[forced_on_chain(*point, tol) for point in line.points] for line in lines]
    table.append(_fitted(LOWER_BOUND, lower.title, lower.order, lines, forced, (1.0, 1.0)))
    titles = tuple(line.name for line in lines)
    sizes = tuple(len(line.points) for line in lines)
    return Table(titles, sizes, tuple(table), tuple(runs), tol)


def _fitted(
    method: str,
    title: str,
    order: Order,
    lines: Sequence[Sweep],
    counts: Sequence[Sequence[int]],
    ratios: tuple[float, float] | None = None,
) -> TableRow:
    """The exponents of the counts along the sweeps, each of which may have ended early."""
    measured: list[float | None] = []
    theory: list[float | None] = []
    for line, count in zip(lines, counts, strict=True):
        enough = len(count) >= min(3, len(line.points))
        used = len(count) if enough else len(line.points)
        promised = [order(*point) for point in line.points[:used]]
        measured.append(exponent(line.variable[:used], count) if enough else None)
        theory.append(None if math.isnan(sum(promised)) else exponent(line.variable[:used], promised))
    return TableRow(method, title, tuple(measured), tuple(theory), tuple(map(len, counts)), ratios)


def _unknown(kx: float, ky: float, c: float) -> float:
    return math.nan
