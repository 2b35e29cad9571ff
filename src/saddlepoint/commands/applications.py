"""The commands for games and for linear and quadratic programs."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Annotated

import typer

from saddlepoint.commands import show
from saddlepoint.commands.options import (
    Checkpoint,
    CheckpointEvery,
    Json,
    MaxSeconds,
    MemoryLimit,
    Plot,
    Progress,
    Resume,
    shows_progress,
    with_options,
)
from saddlepoint.commands.output_files import check_checkpoint, check_output_file, check_picture
from saddlepoint.ground.errors import ProblemError
from saddlepoint.ground.plain_json import json_text
from saddlepoint.parts.coupling.streamed import as_bytes


def add_to(app: typer.Typer) -> None:
    """Add these commands to the command line."""
    app.command()(game)
    app.command()(program)


def game(
    name: Annotated[str, typer.Argument(help="kuhn, leduc, or a game file (.json, or Gambit's .efg).", metavar="GAME")],
    tol: Annotated[float, typer.Option(help="Exploitability to reach, in units of the payoff.")] = 1e-6,
    method: Annotated[
        str | None,
        typer.Option(help="interior-point, cfr, or a method for the subproblems of an augmented Lagrangian."),
    ] = None,
    max_steps: Annotated[int | None, typer.Option(help="Limit on the steps of the method.")] = None,
    max_calls: Annotated[
        int | None, typer.Option(help="Limit on the products with A, and on those with A', that the method makes.")
    ] = None,
    max_seconds: MaxSeconds = None,
    checkpoint: Checkpoint = None,
    checkpoint_every: CheckpointEvery = 60.0,
    resume: Resume = False,
    strategies: Annotated[bool, typer.Option("--strategies", help="Print both players' strategies.")] = False,
    plot: Plot = None,
    progress: Progress = None,
    as_json: Json = False,
) -> None:
    """Solve a two-player zero-sum game in extensive form.

    The exit code is 0 only if its exploitability is within TOL, 130 after Ctrl-C and, with a checkpoint, 143 after
    SIGTERM.
    """
    from saddlepoint.apps import ExtensiveGame

    check_picture(plot)
    check_checkpoint(checkpoint, resume)
    played = ExtensiveGame.load(name)
    with show.warnings_in_one_line():
        found = played.solve(
            tol=tol,
            method=method,
            max_steps=max_steps,
            max_calls=max_calls,
            max_seconds=max_seconds,
            progress=shows_progress(progress, as_json),
            checkpoint=checkpoint,
            checkpoint_every=checkpoint_every,
        )
    if plot is not None:
        from saddlepoint.apps.game_plot import plot_exploitability

        plot_exploitability({name: found}, plot)
    first, second = played.behaviour("y", found.y), played.behaviour("x", found.x)
    if as_json:
        summary = found.to_dict() | {"game": played.title, "shape": list(played.shape)}
        typer.echo(json_text(summary | ({"first": first, "second": second} if strategies else {})))
    else:
        typer.echo(f"{played.title}: {played.shape[0]} x {played.shape[1]} sequences\n{found!r}")
        if strategies:
            show.strategies({"first player": first, "second player": second})
    show.checkpoint_left(checkpoint, found.solved)
    raise typer.Exit(128 + signal.Signals[found.interrupted] if found.interrupted else 0 if found.solved else 1)


def program(
    file: Annotated[Path, typer.Argument(help='A file with kind = "program" (docs/problem-file.md).', metavar="FILE")],
    gap: Annotated[float | None, typer.Option(help="Length of the interval to prove.")] = None,
    rtol: Annotated[float | None, typer.Option(help="The same, relative to the optimal value.")] = None,
    method: Annotated[str | None, typer.Option(help="interior, first-order or auto.")] = None,
    max_seconds: MaxSeconds = None,
    out: Annotated[Path | None, typer.Option(help="Write x, y and the interval to this .npz file.")] = None,
    memory_limit: MemoryLimit = "4GiB",
    as_json: Json = False,
) -> None:
    """Solve a linear or quadratic program, with a proven interval for its optimal value.

    The exit code is 0 only if it is proven to be optimal, infeasible or unbounded.
    """
    from saddlepoint.apps import QuadraticProgram
    from saddlepoint.problems.files.program_file import load_program

    if out is not None and out.suffix.lower() != ".npz":
        raise ProblemError(f"{out} has an unknown ending; expected .npz")
    check_output_file(out)
    data, settings = load_program(file, as_bytes(memory_limit, "--memory-limit"))
    settings = with_options(settings, {"gap": gap, "rtol": rtol}, ("gap", "rtol"))
    settings = with_options(settings, {"method": method, "max_seconds": max_seconds})
    try:
        found = QuadraticProgram(**data).solve(**settings)
    except ProblemError as error:
        raise ProblemError(f"{file}: {error}") from None
    if out is not None:
        found.save(out)
    typer.echo(json_text(found.to_dict()) if as_json else repr(found))
    raise typer.Exit(0 if found.solved else 1)
