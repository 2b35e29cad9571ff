"""Stores, which read the rows of a matrix from disk: the base class, and plain numbers in a file."""

from __future__ import annotations

import math
import os
import stat
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from saddlepoint.ground.arrays import Array
from saddlepoint.ground.errors import ProblemError
from saddlepoint.ground.validation import short_repr


class Block(NamedTuple):
    """Rows of A that are read together."""

    first: int
    last: int  # the row after the last one
    bytes: int  # bytes on disk
    memory: int  # bytes of memory while the rows are read, including the rows themselves
    held: int  # bytes of the rows in memory
    source: Any = None  # where the rows are, in a form that only the store uses

    @property
    def rows(self) -> slice:
        """The rows of A."""
        return slice(self.first, self.last)


Read = Callable[[Block, "Array | None"], Any]  # (block, memory to read it into, or None) -> its rows


class Store(ABC):
    """The rows of an m x n matrix on disk. It holds no open file, so it can be pickled.

    Attributes:
        name: the file or folder, for error messages.
        shape, dtype: of the matrix.
        reuses: whether it can read into memory of the caller.
        expansion: approximate bytes of memory for each byte of rows while they are read.
    """

    reuses, expansion = False, 1
    name: str
    shape: tuple[int, int]
    dtype: np.dtype[Any]

    @abstractmethod
    def blocks(self, size: int) -> list[Block]:
        """All rows in blocks, each of which takes about ``size`` bytes to read if the store allows it."""

    @abstractmethod
    def opened(self) -> Any:
        """A context in which the store is open, and whose value is a ``Read``."""

    @property
    def row_bytes(self) -> int:
        """Bytes of a row in memory."""
        return self.shape[1] * self.dtype.itemsize


class State(NamedTuple):
    """Size and time of the last change of a file, to detect that it was changed."""

    size: int
    changed: int

    @classmethod
    def of(cls, file: str | Path | int) -> State:
        """The state of a path, or of an open file."""
        try:
            status = os.stat(file)
        except OSError as error:
            raise ProblemError(f"{file} cannot be read: {error.strerror or error}") from None
        if not stat.S_ISREG(status.st_mode):
            raise ProblemError(f"{file} is not a regular file; expected one, not a folder, a pipe or a device")
        return cls(status.st_size, status.st_mtime_ns)

    def check(self, file: str | Path | int, name: str) -> None:
        """Raise a ProblemError if the file has changed."""
        now = State.of(file)
        if now.size != self.size:
            raise ProblemError(
                f"{name} has changed while it was in use: it had {self.size} bytes and now has {now.size}; "
                "leave it alone until the run is over"
            )
        if now != self:
            raise ProblemError(f"{name} was written to while it was in use; leave it alone until the run is over")


class RawStore(Store):
    """Numbers stored in a file row by row, from ``offset`` on.

    They are read into buffers and not mapped: mapped pages count as memory of the process, and a file that is cut short
    while it is mapped would end the process.
    """

    reuses = True

    def __init__(self, path: Path, offset: int, shape: tuple[int, int], dtype: np.dtype[Any], name: str = "") -> None:
        self.path, self.offset, self.shape, self.dtype = path, offset, shape, np.dtype(dtype)
        self.name = name or str(path)
        self.state = State.of(path)
        if self.state.size < offset + math.prod(shape) * self.dtype.itemsize:
            raise ProblemError(
                f"{self.name} is cut short: {shape[0]} x {shape[1]} numbers of {self.dtype} need "
                f"{offset + math.prod(shape) * self.dtype.itemsize} bytes, and it has {self.state.size}"
            )

    def blocks(self, size: int) -> list[Block]:
        """Blocks of equal size, except the last one."""
        m, row = self.shape[0], self.row_bytes
        rows = max(1, size // row)
        ends = [(i, min(i + rows, m)) for i in range(0, m, rows)]
        return [Block(i, j, *3 * ((j - i) * row,)) for i, j in ends]

    @contextmanager
    def opened(self) -> Iterator[Read]:
        """Open the file, and check before and after that it has not changed."""
        self.state.check(self.path, self.name)  # a pipe in its place would block the call that opens it
        try:
            file = open(self.path, "rb", buffering=0)  # noqa: SIM115 - closed below
        except OSError as error:
            raise ProblemError(f"{self.name} cannot be read: {error.strerror or error}") from None
        with file:
            self.state.check(file.fileno(), self.name)
            yield partial(self._read, file)
            self.state.check(file.fileno(), self.name)

    def _read(self, file: Any, block: Block, into: Array | None) -> Array:
        rows, columns = block.last - block.first, self.shape[1]
        flat = np.empty(rows * columns, self.dtype) if into is None else into[: rows * columns]
        left = memoryview(flat.view(np.uint8))  # type: ignore[arg-type]
        try:
            file.seek(self.offset + block.first * self.row_bytes)
            while len(left):
                count = file.readinto(left)
                if not count:
                    raise ProblemError(
                        f"{self.name} has become shorter while it was in use: rows {block.first} to {block.last - 1} "
                        "are not there any more"
                    )
                left = left[count:]
        except OSError as error:
            raise ProblemError(f"{self.name} cannot be read: {error.strerror or error}") from None
        return flat.reshape(rows, columns)


def check_dtype(dtype: Any, name: str) -> np.dtype[Any]:
    """The dtype of a matrix on disk; a ProblemError unless it is float32 or float64, which need no conversion."""
    try:
        found: np.dtype[Any] = np.dtype(dtype)
    except TypeError:
        raise ProblemError(f"{name} has dtype {short_repr(str(dtype))}; expected float32 or float64") from None
    if found.hasobject:
        raise ProblemError(f"{name} holds Python objects, which are never loaded; save plain numbers instead")
    if found not in (np.float32, np.float64):
        raise ProblemError(
            f"{name} has dtype {found}; expected float32 or float64 in this machine's order of bytes: convert it once"
        )
    return found


def check_shape(shape: Any, name: str) -> tuple[int, int]:
    """The shape of a matrix on disk; a ProblemError unless it has rows and columns."""
    if len(shape) != 2 or min(shape) < 1:
        raise ProblemError(f"{name} has shape {short_repr(tuple(shape))}; expected a matrix that is not empty")
    return int(shape[0]), int(shape[1])
