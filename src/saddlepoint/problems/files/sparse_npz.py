"""Sparse matrices in the .npz files that ``scipy.sparse.save_npz`` writes.

Such a file holds plain arrays: ``format`` ("csr", "csc", "bsr", "coo" or "dia"), ``shape``, ``data``, and the arrays of
indices of that format. SciPy's own reader does not check the indices; here each index is compared with the shape.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import bsr_array, coo_array, csc_array, csr_array, dia_array

from saddlepoint.ground.arrays import Array
from saddlepoint.ground.errors import ProblemError
from saddlepoint.ground.validation import in_floats, short_repr
from saddlepoint.problems.files.reading import Memory

MARKS = {"format", "shape", "data"}  # arrays that every such file holds
INDICES = {
    "csr": ("indices", "indptr"),
    "csc": ("indices", "indptr"),
    "bsr": ("indices", "indptr"),
    "coo": ("row", "col"),
    "dia": ("offsets",),
}
ENTRY = 40  # bytes for an entry while it is converted to compressed rows: its indices and its value, twice
CSR_ENTRY = 8  # bytes for an entry that is in compressed rows already: its index may be converted
LINE = 16  # bytes for a row or a column of the matrix


class Compressed(NamedTuple):
    """How a compressed format stores its indices.

    Attributes:
        build: makes the sparse array.
        pointers: number of rows (or columns, or rows of blocks) that ``indptr`` points to.
        bound: ``indices`` are below this number.
    """

    build: Any
    pointers: int
    bound: int


def is_sparse_npz(names: Collection[str]) -> bool:
    """Whether a .npz file with arrays of these names was written by ``scipy.sparse.save_npz``."""
    return set(names) >= MARKS


def read_sparse_npz(what: str, kind: str, read: Callable[[str], Array], memory: Memory) -> csr_array:
    """The matrix in compressed rows; a ProblemError says what is wrong with the file.

    Args:
        what: the file, for error messages.
        kind: the text in its array ``format``.
        read: reads one of its arrays by name.
        memory: the limit against which the arrays and their conversion are counted.
    """
    if kind not in INDICES:
        raise ProblemError(f"{what} has the sparse format {short_repr(kind)}; expected one of {', '.join(INDICES)}")
    shape = _shape(what, read("shape"))
    memory.take(LINE * sum(shape), f"{what} of shape {shape}")
    data, indices = read("data"), [_integers(what, name, read(name)) for name in INDICES[kind]]
    memory.take((CSR_ENTRY if kind == "csr" else ENTRY) * data.size, f"{what} with {data.size} entries")
    try:
        if kind == "coo":
            return _coordinates(what, shape, data, *indices)
        if kind == "dia":
            return _diagonals(what, shape, data, *indices)
        return _compressed(what, kind, shape, data, *indices)
    except (ValueError, TypeError, IndexError, OverflowError) as error:  # SciPy raises these if lengths differ
        raise ProblemError(f"{what} is a damaged sparse matrix: {error}; save it again") from None


def _shape(what: str, shape: Array) -> tuple[int, int]:
    if shape.dtype.kind not in "iu" or shape.shape != (2,) or not (shape > 0).all():
        raise ProblemError(
            f"{what} has the shape {short_repr(shape.tolist())}; expected two positive integers, rows and columns"
        )
    return int(shape[0]), int(shape[1])


def _integers(what: str, name: str, array: Array) -> Array:
    if array.dtype.kind not in "iu" or array.ndim != 1:
        raise ProblemError(
            f"{what} has an array {name!r} of {array.dtype} and shape {array.shape}; expected a vector of integers"
        )
    return array


def _compressed(what: str, kind: str, shape: tuple[int, int], data: Array, indices: Array, indptr: Array) -> csr_array:
    rows, columns = shape
    if kind == "bsr":
        if data.ndim != 3 or 0 in data.shape[1:] or rows % data.shape[1] or columns % data.shape[2]:
            raise ProblemError(f"{what} has blocks of shape {data.shape[1:]}; expected blocks that divide {shape}")
        form = Compressed(bsr_array, rows // data.shape[1], columns // data.shape[2])
    elif data.ndim != 1:
        raise ProblemError(f"{what} has data of shape {data.shape}; expected a vector")
    else:
        form = Compressed(csr_array, rows, columns) if kind == "csr" else Compressed(csc_array, columns, rows)
    if len(indptr) != form.pointers + 1 or indptr[0] != 0 or (indptr[1:] < indptr[:-1]).any():
        raise ProblemError(
            f"{what} has a damaged array 'indptr'; expected {form.pointers + 1} integers from 0 on that do not fall"
        )
    if len(indices) != len(data) or int(indptr[-1]) > len(data):
        raise ProblemError(
            f"{what} has {len(data)} entries, {len(indices)} indices, and points to {indptr[-1]} of them; "
            "expected as many of each"
        )
    _check_range(what, "indices", indices, 0, form.bound)
    return csr_array(form.build((data, indices, indptr), shape=shape).tocsr())


def _coordinates(what: str, shape: tuple[int, int], data: Array, row: Array, col: Array) -> csr_array:
    if not data.shape == row.shape == col.shape:
        raise ProblemError(
            f"{what} has {data.size} entries in {len(row)} rows and {len(col)} columns; expected as many of each"
        )
    _check_range(what, "row", row, 0, shape[0])
    _check_range(what, "col", col, 0, shape[1])
    entries = coo_array((data, (row, col)), shape=shape)
    rows = entries.tocsr()
    return csr_array(rows if rows.nnz == entries.nnz else in_floats(entries).tocsr())


def _diagonals(what: str, shape: tuple[int, int], data: Array, offsets: Array) -> csr_array:
    if data.ndim != 2 or data.shape[0] != len(offsets) or len(np.unique(offsets)) < len(offsets):
        raise ProblemError(
            f"{what} has diagonals of shape {data.shape} and {len(offsets)} offsets; expected one diagonal for each of "
            "several distinct offsets"
        )
    _check_range(what, "offsets", offsets, 1 - shape[0], shape[1])
    return csr_array(dia_array((data, offsets), shape=shape).tocsr())


def _check_range(what: str, name: str, array: Array, low: int, high: int) -> None:
    if array.size and not (low <= int(array.min()) and int(array.max()) < high):
        raise ProblemError(
            f"{what} has {int(array.min())} to {int(array.max())} in the array {name!r}; expected {low} to {high - 1}"
        )
