"""Options that several commands have, and how they change the settings of a file."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

Json = Annotated[bool, typer.Option("--json", help="Print JSON for programs instead of text for people.")]
Tol = Annotated[float | None, typer.Option(help="Certified |x-x*| + |y-y*| to reach.")]
MaxSeconds = Annotated[float | None, typer.Option(help="Time limit in seconds.")]
MemoryLimit = Annotated[str, typer.Option(help="Limit on the memory for FILE and its arrays, such as 8GB.")]
Plot = Annotated[Path | None, typer.Option(help="Write a picture of the run to this .png or .svg file.")]
Progress = Annotated[bool | None, typer.Option(help="Show progress bars (default: on a terminal).")]
Checkpoint = Annotated[Path | None, typer.Option(help="Write the state of the run to this file, to continue from it.")]
CheckpointEvery = Annotated[float, typer.Option(help="Seconds between two checkpoints.")]
Resume = Annotated[bool, typer.Option("--resume", help="Continue from the checkpoint if it exists.")]

TARGETS = ("tol", "rtol", "gap")  # settings that say what is to be proven; one of them replaces the others


def shows_progress(asked: bool | None, as_json: bool) -> bool:
    """Whether to show progress bars: as asked for, or else on a terminal, unless JSON is printed."""
    return asked if asked is not None else sys.stderr.isatty() and not as_json


def with_options(settings: dict[str, Any], options: dict[str, Any], replaced: tuple[str, ...] = ()) -> dict[str, Any]:
    """The settings of a file with the options of the command line in their place.

    Args:
        settings: what the file asks for.
        options: what the command line asks for, by name; None where an option was left out.
        replaced: settings that are dropped if one of the options is given, because they ask for the same thing.
    """
    given = {name: value for name, value in options.items() if value is not None}
    kept = {name: value for name, value in settings.items() if not given or name not in replaced}
    return kept | given
