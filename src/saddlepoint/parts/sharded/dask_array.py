"""Checks of Dask arrays that serve as A or as data: a matrix of float32 or float64 whose chunks are whole rows."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Sequence
from importlib import import_module
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.sparse import issparse

from saddlepoint.ground.arrays import Array
from saddlepoint.ground.errors import ProblemError
from saddlepoint.ground.validation import in_floats
from saddlepoint.parts.sharded.dask_cluster import import_distributed

RECHUNK_LIMIT = 2**30  # bytes of an array up to which chunks that cut columns are joined into whole rows

log = logging.getLogger("saddlepoint")


def check_dask_array(A: Any, name: str) -> Any:
    """The array with chunks of whole rows; a ProblemError unless it is a matrix of known chunks and a real dtype."""
    if not hasattr(A, "chunks") or not hasattr(A, "blocks"):
        raise ProblemError(
            f"{name} is a {type(A).__module__}.{type(A).__name__}; expected a Dask array: a data frame becomes one by "
            ".to_dask_array(lengths=True)"
        )
    if A.ndim != 2:
        raise ProblemError(f"{name} is a Dask array of {A.ndim} dimensions; expected a matrix")
    if any(math.isnan(size) for sizes in A.chunks for size in sizes):
        raise ProblemError(f"{name} has chunks of unknown sizes; call {name}.compute_chunk_sizes() first")
    if 0 in A.shape:
        raise ProblemError(f"{name} has shape {A.shape}; expected a matrix with at least one row and one column")
    if A.dtype not in (np.float32, np.float64):
        raise ProblemError(f'{name} has dtype {A.dtype}; expected float32 or float64: {name}.astype("float64")')
    pieces = len(A.chunks[1])
    if pieces > 1:
        if A.nbytes > RECHUNK_LIMIT:
            raise ProblemError(
                f"{name} is cut into {pieces} pieces by columns, and joining its {A.nbytes / 2**30:.3g} GiB into "
                f"whole rows would move nearly all of it; expected chunks of whole rows: load it so, or call "
                f"{name}.rechunk({{1: -1}}) yourself"
            )
        log.warning("%s is cut into %d pieces by columns; they are joined into whole rows", name, pieces)
        A = A.rechunk({1: -1})
    if 0 in A.chunks[0]:
        A = A.rechunk({0: tuple(size for size in A.chunks[0] if size)})
    return A


def row_bounds(A: Any) -> list[int]:
    """The first row of each chunk of an array, and the number of rows at the end."""
    return [0, *(int(end) for end in np.cumsum(A.chunks[0]))]


def rows_from(read: Callable[[int, int], Array], bounds: Sequence[int], columns: int, dtype: Any) -> Any:
    """A Dask array whose workers call ``read(start, stop)`` for the rows that they will hold.

    Args:
        read: a function that the workers can import or unpickle, and that can reach the data from there.
        bounds: the first row of each shard, and the number of rows at the end.
        columns: the length of a row.
        dtype: the dtype of what is read.
    """
    import_distributed()
    delayed, da = import_module("dask").delayed, import_module("dask.array")
    later = delayed(read, pure=True)
    blocks = [
        da.from_delayed(later(start, stop), shape=(stop - start, columns), dtype=dtype)
        for start, stop in pairwise(bounds)
    ]
    return da.concatenate(blocks, axis=0)


def rows_of(matrix: Any, bounds: Sequence[int]) -> Any:
    """A Dask array of the rows of a matrix that is here, NumPy's or SciPy's; each worker is sent those it will hold.

    Args:
        matrix: the matrix.
        bounds: the first row of each shard, and the number of rows at the end.
    """
    import_distributed()
    delayed, da = import_module("dask").delayed, import_module("dask.array")
    rows = in_floats(matrix).tocsr() if issparse(matrix) else matrix
    parts = [rows[start:stop] for start, stop in pairwise(bounds)]
    meta = rows[:0]
    return da.concatenate([da.from_delayed(delayed(part), shape=part.shape, meta=meta) for part in parts], axis=0)
