"""Writing files as a whole or not at all: whoever reads a file finds what was there before, or all that is new."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO


@contextmanager
def replacing(path: str | Path, keep: Path | None = None) -> Iterator[IO[bytes]]:
    """A new file to write to, which takes the place of ``path`` when the context ends without an exception.

    The new file has a random name in the same folder until then. If anything fails it is removed, and the file that was
    there before is as it was. A link is followed to its file, and the permissions of a file are kept. What is not a
    regular file (a device such as ``/dev/stdout``, a pipe) cannot be replaced and is written to directly.

    Args:
        path: the file.
        keep: the name under which the file that was there before is kept; it replaces what has that name.
    """
    target = Path(os.path.realpath(path))
    mode = _mode(target)
    if mode is not None and not stat.S_ISREG(mode):
        with open(target, "wb") as file:
            yield file
        return
    if mode is not None and not os.access(target, os.W_OK):
        raise PermissionError(13, "Permission denied", str(path))
    new = target.with_name(f".saddlepoint-{secrets.token_hex(8)}.tmp")
    handle = os.open(new, os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)
    try:
        with os.fdopen(handle, "w+b") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if mode is not None:
            with contextlib.suppress(OSError):
                os.chmod(new, stat.S_IMODE(mode))
        _move_into_place(new, target, keep if mode is not None else None)
    except BaseException:
        with contextlib.suppress(OSError):
            new.unlink(missing_ok=True)
        raise
    _sync_folder(target.parent)


def write_text(path: str | Path, text: str) -> None:
    """Replace a file by a text in UTF-8, as a whole or not at all."""
    with replacing(path) as file:
        file.write(text.encode("utf-8"))


def _mode(path: Path) -> int | None:
    """The type and the permissions of a file; None if there is none."""
    try:
        return path.stat().st_mode
    except FileNotFoundError:
        return None


def _move_into_place(new: Path, path: Path, keep: Path | None) -> None:
    if keep is None:
        os.replace(new, path)
        return
    os.replace(path, keep)
    try:
        os.replace(new, path)
    except OSError:
        os.replace(keep, path)
        raise


def _sync_folder(folder: Path) -> None:
    """Bring the renaming to the disk too, where folders can be opened."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
