"""Functions that all readers use: a memory limit, sizes of regular files, and texts."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path
from typing import Any

from saddlepoint.ground.errors import ProblemError
from saddlepoint.ground.validation import as_number, short_repr

MEMORY_LIMIT = 4 * 2**30  # default limit in bytes for a file and the arrays that it names
UTF16 = (b"\xff\xfe", b"\xfe\xff")  # byte order marks


class Memory:
    """Counts the bytes that a file and the arrays it names take together, up to a limit."""

    def __init__(self, limit: int = MEMORY_LIMIT) -> None:
        if not as_number(limit, "memory_limit", "a number of bytes") > 0.0:
            raise ProblemError(f"memory_limit is {short_repr(limit)}; expected a positive number of bytes")
        self.limit = limit
        self.taken = 0

    @property
    def room(self) -> int:
        """The number of bytes that are left."""
        return max(0, int(self.limit - self.taken))

    def take(self, count: int, what: str) -> None:
        """Take ``count`` bytes for ``what``, or raise a ProblemError."""
        if count > self.limit - self.taken:
            before = f" ({_size(self.taken)} of it is taken already)" if self.taken else ""
            raise ProblemError(
                f"{what} needs {_size(count)}, above the memory limit of {_size(self.limit)}{before}; "
                "raise the limit if that is intended"
            )
        self.taken += count


def as_path(path: Any) -> Path:
    """``path`` as a Path, or a ProblemError."""
    if not isinstance(path, str | os.PathLike):
        raise ProblemError(f"the path of a file is {short_repr(path)}; expected a text or a Path")
    return Path(path)


def file_size(path: Path) -> int:
    """The size of a regular file; a ProblemError for anything else, from which reading could take forever."""
    try:
        status = path.stat()
    except FileNotFoundError:
        raise ProblemError(f"file {path} does not exist") from None
    except OSError as error:
        raise ProblemError(f"{path} cannot be read: {error.strerror or error}") from None
    except ValueError as error:
        raise ProblemError(f"{path} is not a valid file name: {error}") from None
    if not stat.S_ISREG(status.st_mode):
        raise ProblemError(f"{path} is not a file; expected a regular one, not a folder, a pipe or a device")
    return status.st_size


def read_text(path: Path, memory: Memory, expansion: int) -> str:
    """The text of a file in UTF-8, with or without a byte order mark.

    Args:
        path: the file; "-" for the standard input.
        memory: the limit against which its bytes are counted.
        expansion: bytes of memory for a byte of the file after it has been parsed.
    """
    if str(path) == "-":
        content = sys.stdin.buffer.read(memory.room // expansion + 1)
        memory.take(expansion * len(content), "the standard input")
    else:
        content = _file_content(path, memory, expansion)
    if content.startswith(UTF16):
        raise ProblemError(f"{path} is not a text file in UTF-8, as is expected, but in UTF-16; save it again as UTF-8")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ProblemError(f"{path} is not a text file (UTF-8 is expected; byte {error.start} is not)") from None


def _file_content(path: Path, memory: Memory, expansion: int) -> bytes:
    size = file_size(path)
    memory.take(expansion * size, str(path))
    try:
        with path.open("rb") as file:
            return file.read(size)
    except OSError as error:
        raise ProblemError(f"{path} cannot be read: {error.strerror or error}") from None


def _size(count: float) -> str:
    unit = 2**30 if count >= 2**28 else 2**20 if count >= 2**18 else 2**10 if count >= 2**10 else 1
    name = {2**30: "GiB", 2**20: "MiB", 2**10: "KiB", 1: "bytes"}[unit]
    return f"{count / unit:.3g} {name}" if unit > 1 else f"{count:.0f} bytes"
