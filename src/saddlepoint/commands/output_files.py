"""Checks of the files that a command will write, made before its work begins."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path

from saddlepoint.ground.errors import ProblemError
from saddlepoint.solving.checkpoint import older

ANSWERS = (".npz", ".json", ".csv")  # endings of the names of files with an answer
PICTURES = (".png", ".svg", ".pdf", ".jpg")  # endings of the names of pictures


def check_output_file(path: Path | None) -> None:
    """Raise an error if the file cannot be written; missing folders are created."""
    if path is None:
        return
    if path.is_dir():
        raise ProblemError(f"{path} is a folder; expected a file name")
    if path.is_fifo():
        raise ProblemError(f"{path} is a pipe; expected a file name")
    parent = path.parent
    if parent.exists() and not parent.is_dir():
        raise ProblemError(f"{parent} is not a folder")
    parent.mkdir(parents=True, exist_ok=True)
    if not os.access(path if path.exists() else parent, os.W_OK):
        raise ProblemError(f"{path} cannot be written: there is no permission")


def check_answer(path: Path | None) -> None:
    """Raise an error if the answer cannot be written; the ending of its name sets the format."""
    if path is not None and not path.is_dir() and path.suffix.lower() not in (*ANSWERS, ""):
        raise ProblemError(f"{path} has an unknown ending; expected {', '.join(ANSWERS)}, or - to print x and y as CSV")
    check_output_file(path)


def check_picture(path: Path | None) -> None:
    """Raise an error if the picture cannot be written; the ending of its name sets the format."""
    if path is None:
        return
    if path.suffix.lower() not in PICTURES:
        raise ProblemError(f"{path} has an unknown ending; expected {', '.join(PICTURES)}")
    if find_spec("matplotlib") is None:
        raise ProblemError("a picture needs matplotlib: pip install 'saddlepoint[plot]'")
    check_output_file(path)


def check_checkpoint(checkpoint: Path | None, resume: bool) -> None:
    """Raise an error if an earlier run would be overwritten, or if --resume has no file to continue from."""
    if checkpoint is None:
        if resume:
            raise ProblemError("--resume needs a file to go on from; add --checkpoint FILE")
        return
    check_output_file(checkpoint)
    there = [path for path in (checkpoint, older(checkpoint)) if path.exists()]
    if there and not resume:
        raise ProblemError(f"{there[0]} exists already; add --resume to go on from it, or delete it to begin anew")
