"""Matrix Market files, dense and sparse.

SciPy's reader is not used, because a file with a zero byte among its numbers can make it crash.

Reference: R. Boisvert, R. Pozo, K. Remington, The Matrix Market exchange formats: initial design, NISTIR 5935, 1996.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from saddlepoint.ground.arrays import Array
from saddlepoint.ground.errors import ProblemError
from saddlepoint.ground.validation import short_repr
from saddlepoint.problems.files.reading import Memory

LAYOUTS = ("coordinate", "array")
FIELDS = ("real", "double", "integer", "unsigned-integer", "pattern")
SYMMETRIES = ("general", "symmetric", "skew-symmetric")
SPARSE_ENTRY, DENSE_ENTRY = 48, 9  # bytes of memory for an entry; if a sparse matrix is symmetric, three times as many
BLOCK = 1 << 20  # bytes of text that are converted at a time
LINE = 1 << 16  # most bytes of a line before the numbers


class Header(NamedTuple):
    """The information in the first lines of a file."""

    layout: str
    field: str
    symmetry: str
    rows: int
    columns: int
    entries: int  # number of entries that the file lists

    @property
    def width(self) -> int:
        """How many numbers the line of an entry has."""
        return 1 if self.layout == "array" else 2 if self.field == "pattern" else 3


def read_matrix_market(path: Path, size: int, memory: Memory) -> Any:
    """The array, or sparse array, in a file of ``size`` bytes; a ProblemError says what is wrong with it."""
    with path.open("rb") as file:
        try:
            header = _header(file)
            _check_size(header, size, f"{path} of shape ({header.rows}, {header.columns})", memory)
            return (_dense if header.layout == "array" else _sparse)(header, _blocks(file, header))
        except _Invalid as error:
            raise ProblemError(f"{path} is not a valid Matrix Market file: {error}") from None


def matrix_market_header(path: Path) -> Header:
    """The information in the first lines of a file."""
    try:
        with path.open("rb") as file:
            return _header(file)
    except OSError as error:
        raise ProblemError(f"{path} cannot be read: {error.strerror or error}") from None
    except _Invalid as error:
        raise ProblemError(f"{path} is not a valid Matrix Market file: {error}") from None


def matrix_market_bytes(header: Header) -> int:
    """Bytes of memory that reading a file takes."""
    if header.layout == "array":
        return DENSE_ENTRY * header.rows * header.columns
    folded = 1 if header.symmetry == "general" else 3
    return SPARSE_ENTRY * folded * header.entries + 16 * (header.rows + header.columns)


class _Invalid(Exception):  # noqa: N818 - a signal within this file
    """An error of the file; the caller adds the name of the file."""


def _header(file: IO[bytes]) -> Header:
    words = _line(file).lower().split()
    if len(words) != 5 or words[:2] != ["%%matrixmarket", "matrix"]:
        raise _Invalid("expected '%%MatrixMarket matrix' and three words more in its first line")
    for word, known in zip(words[2:], (LAYOUTS, FIELDS, SYMMETRIES), strict=True):
        if word not in known:
            what = "complex numbers; expected real ones" if word == "complex" else f"the word {short_repr(word)}"
            raise _Invalid(f"it has {what}; expected one of {', '.join(known)}")
    layout, field, symmetry = words[2:]
    text = _line(file)
    while not text.strip() or text.startswith("%"):
        text = _line(file)
    sizes = text.split()
    if len(sizes) != (2 if layout == "array" else 3) or not all(n.isascii() and n.isdigit() for n in sizes):
        expected = "rows and columns" if layout == "array" else "rows, columns and entries"
        raise _Invalid(f"its sizes are {short_repr(text.strip())}; expected {expected}")
    if max(map(len, sizes)) > 18:
        raise _Invalid(f"its sizes are {short_repr(text.strip())}; expected numbers of 18 digits at most")
    rows, columns, *listed = map(int, sizes)
    if symmetry != "general" and rows != columns:
        raise _Invalid(f"it is {symmetry} and {rows} x {columns}; expected a square matrix")
    if layout == "array" and field == "pattern":
        raise _Invalid("it is an array without numbers; expected real or integer")
    half = rows * (rows + 1 if symmetry == "symmetric" else rows - 1) // 2
    entries = listed[0] if listed else rows * columns if symmetry == "general" else half
    return Header(layout, field, symmetry, rows, columns, entries)


def _line(file: IO[bytes]) -> str:
    line = file.readline(LINE)
    if not line.endswith(b"\n"):
        raise _Invalid("it ends, or has a very long line, before its numbers")
    return line.decode("utf-8", "replace")


def _check_size(header: Header, size: int, what: str, memory: Memory) -> None:
    """Raise if the matrix is too large, or has more entries than the file can hold at two bytes for each number."""
    entries = "" if header.layout == "array" else f" with {header.entries} entries"
    memory.take(matrix_market_bytes(header), f"{what}{entries}")
    if 2 * header.width * header.entries > size:
        raise _Invalid(f"it declares {header.entries} entries, more than its {size} bytes can hold")


def _blocks(file: IO[bytes], header: Header) -> Iterator[Array]:
    """The entries, some at a time, as rows of numbers; raises unless there are as many as declared."""
    width, seen = header.width, 0
    rest, left = b"", np.zeros(0)
    while block := file.read(BLOCK):
        text = rest + block
        cut = max(text.rfind(b" "), text.rfind(b"\n"), text.rfind(b"\t")) + 1
        rest = text[cut:]
        if len(rest) > LINE:
            raise _Invalid(f"a number after entry {seen} is very long")
        left = np.concatenate([left, _numbers(text[:cut], seen)])
        whole = len(left) // width
        seen += whole
        if seen > header.entries:
            break
        yield left[: whole * width].reshape(whole, width)
        left = left[whole * width :]
    left = np.concatenate([left, _numbers(rest, seen)])
    if left.size % width or seen + len(left) // width != header.entries:
        raise _Invalid(f"it declares {header.entries} entries of {width} numbers, and holds others than these")
    yield left.reshape(-1, width)


def _numbers(text: bytes, seen: int) -> Array:
    if b"\0" in text:
        raise _Invalid(f"it has a zero byte after entry {seen}; expected a text")
    if not text.strip():
        return np.zeros(0)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # NumPy only warns of a text that is not a number
            return np.fromstring(text, dtype=np.float64, sep=" ")
    except (ValueError, DeprecationWarning):
        raise _Invalid(f"it has something else than a number after entry {seen}") from None


def _dense(header: Header, blocks: Iterator[Array]) -> Array:
    """A dense matrix by columns; of a symmetric one from the diagonal down, of a skew-symmetric one below it."""
    m, n = header.rows, header.columns
    flat, at = np.zeros(header.entries), 0
    for block in blocks:
        flat[at : at + len(block)] = block[:, 0]
        at += len(block)
    if header.symmetry == "general":
        return flat.reshape((m, n), order="F")
    sign, first = (1.0, 0) if header.symmetry == "symmetric" else (-1.0, 1)
    matrix, at = np.zeros((m, n)), 0
    for j in range(n):
        column = flat[at : at + m - j - first]
        matrix[j, j + first :] = sign * column
        matrix[j + first :, j] = column
        at += len(column)
    return matrix


def _sparse(header: Header, blocks: Iterator[Array]) -> Any:
    m, n, count = header.rows, header.columns, header.entries
    kind = np.int32 if max(m, n) < 2**31 else np.int64
    i, j, values, at = np.zeros(count, kind), np.zeros(count, kind), np.ones(count), 0
    for block in blocks:
        here = slice(at, at + len(block))
        places = block[:, :2]
        if len(block) and not ((places >= 1.0) & (places <= (m, n)) & (places == np.floor(places))).all():
            raise _Invalid(f"an entry after entry {at} has no place within {m} x {n}; expected 'row column value'")
        i[here], j[here] = places[:, 0] - 1.0, places[:, 1] - 1.0
        if header.width == 3:
            values[here] = block[:, 2]
        at += len(block)
    if header.symmetry != "general":
        sign = 1.0 if header.symmetry == "symmetric" else -1.0
        off = i != j
        i, j, values = (
            np.concatenate([i, j[off]]),
            np.concatenate([j, i[off]]),
            np.concatenate([values, sign * values[off]]),
        )
    with np.errstate(over="ignore"):  # sums of several entries at one position may overflow
        return csr_array((values, (i, j)), shape=(m, n))
