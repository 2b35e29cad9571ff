"""Files that a command is to write, looked at before the work and not after it."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path

from saddlepoint.ground.errors import ProblemError

PICTURES = (".png", ".svg", ".pdf", ".jpg")


def check_target(path: Path | None) -> None:
    """Complain about an unwritable target before the work, not after it."""
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


def check_picture(path: Path | None) -> None:
    """Likewise for a picture, whose format follows the ending."""
    if path is None:
        return
    if path.suffix.lower() not in PICTURES:
        raise ProblemError(f"{path} has an unknown ending; expected {', '.join(PICTURES)}")
    if find_spec("matplotlib") is None:
        raise ProblemError("a picture needs matplotlib: pip install 'saddlepoint[plot]'")
    check_target(path)
