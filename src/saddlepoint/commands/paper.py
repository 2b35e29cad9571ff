"""The commands that measure the paper's Table 1 and draw its Figure 1."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from saddlepoint.commands import show
from saddlepoint.commands.options import Json
from saddlepoint.commands.output_files import check_picture
from saddlepoint.ground.plain_json import json_text
from saddlepoint.methods.registry import make_method
from saddlepoint.uses.prediction import predict as make_prediction

Methods = Annotated[
    list[str] | None, typer.Option("--method", "--methods", help="Only these methods (may be repeated), or all.")
]


def add_to(app: typer.Typer) -> None:
    """Add these commands to the command line."""
    app.command()(table)
    app.command()(figure)


def table(
    quick: Annotated[bool, typer.Option("--quick", help="Fewer and smaller problems.")] = False,
    method: Methods = None,
    tol: Annotated[float, typer.Option(help="Relative accuracy.")] = 1e-6,
    max_seconds: Annotated[
        float | None, typer.Option(help="Time limit of one run in seconds (10, or 1 if quick).", show_default=False)
    ] = None,
    as_json: Json = False,
) -> None:
    """Measure the paper's Table 1 for every method: exponents of the calls in kappa and |A|, beside those of theory.

    It takes about ten minutes, and half a minute with --quick.
    """
    from saddlepoint.uses.bench.table import measured_table

    names = _known(method)
    make_prediction(kx=1.0, ky=1.0, coupling=1.0, tol=tol)  # raises an error if tol is not valid
    with show.running("Table 1", as_json) as tell:
        measured = measured_table(names, tol, quick, max_seconds, tell)
    if as_json:
        typer.echo(json_text(measured.to_dict()))
    else:
        show.table(measured)


def figure(
    out: Annotated[list[Path] | None, typer.Option(help="Files to write (.png, .svg); may be repeated.")] = None,
    kx: Annotated[float, typer.Option(help="L_x/mu_x.")] = 1000.0,
    ky: Annotated[float, typer.Option(help="L_y/mu_y.")] = 30.0,
    tol: Annotated[float, typer.Option(help="Relative accuracy.")] = 1e-6,
    points: Annotated[
        int, typer.Option(min=0, help="Couplings at which the methods are run; 0 for the bounds alone.")
    ] = 8,
    method: Methods = None,
    max_seconds: Annotated[float, typer.Option(help="Time limit of one run in seconds.")] = 10.0,
    as_json: Json = False,
) -> None:
    """Draw the paper's Figure 1: bounds against |A|, with the measured calls."""
    from saddlepoint.uses.bench.figure import figure_data
    from saddlepoint.uses.plots.figure1 import plot_figure1

    names = _known(method)
    targets = out or [Path("figure1.png"), Path("figure1.svg")]
    for target in targets:
        check_picture(target)
    make_prediction(kx=kx, ky=ky, coupling=1.0, tol=tol)  # raises an error if a number is not valid
    with show.running("Figure 1", as_json) as tell:
        data = figure_data(kx, ky, tol, names, points, max_seconds, tell)
    plot_figure1(data, targets)
    typer.echo(json_text(data.to_dict()) if as_json else "written: " + ", ".join(map(str, targets)))


def _known(names: list[str] | None) -> list[str] | None:
    """The names, after a check that every one is registered; for "all", those that run on the chain."""
    from saddlepoint.uses.bench.measure import chain_methods

    if names == ["all"]:
        return chain_methods()
    for name in names or []:
        make_method(name)
    return names
