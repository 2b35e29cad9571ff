"""Both products with a sparse A in one pass over its memory, by compiled loops for compressed rows.

The loops read a row, or a block of rows that fits the cache, multiply it with y, and add its multiples to A' x. Sums
are computed in the dtype of the vectors, whatever the dtype of A. Parts of A are added up in a fixed order: the same
input gives the same bits with a given number of threads.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from saddlepoint.ground.arrays import Array
from saddlepoint.parts.coupling.compiled_loops import compiled, read_only, run_parts

BLOCK = 1 << 12  # entries of a block of compressed rows, which must fit the cache, since it is read twice


class Rows(NamedTuple):
    """A sparse matrix in compressed rows: row i has the entries from start[i] to start[i + 1]."""

    start: Array
    column: Array
    value: Array

    @classmethod
    def of(cls, A: Any) -> Rows:
        """The rows of a SciPy array in compressed rows, whose memory is shared."""
        entries = A.indptr[-1]
        return cls(read_only(A.indptr), read_only(A.indices[:entries]), read_only(A.data[:entries]))


class Windows(NamedTuple):
    """Parts of a sparse matrix with about equally many entries.

    Attributes:
        cuts: the first row of each part, and the number of rows at the end.
        left, right: the first column of each part, and the column after its last.
    """

    cuts: Array
    left: Array
    right: Array

    @property
    def width(self) -> int:
        """The number of columns of all parts together."""
        return int((self.right - self.left).sum())


def windows(A: Rows, parts: int) -> Windows:
    """The rows of A in ``parts`` parts, or fewer where single rows are very long."""
    entries = A.start[-1]
    cuts = np.unique(np.searchsorted(A.start, np.arange(parts) * (entries / parts), side="right") - 1)
    cuts[0] = 0  # with the empty rows before the first entry
    left = np.minimum.reduceat(A.column, A.start[cuts])
    right = np.maximum.reduceat(A.column, A.start[cuts]) + 1
    return Windows(np.append(cuts, len(A.start) - 1), left.astype(np.int64), right.astype(np.int64))


def both(A: Rows, parts: Windows, short: bool, x: Array, y: Array) -> tuple[Array, Array]:
    """(A y, A' x) for compressed rows and vectors of one dtype; ``short`` rows are taken one by one."""
    return _sparse(A, parts, short, y, x, 0.0, False)


def through(A: Rows, parts: Windows, short: bool, y: Array, s: float, e: Array | None) -> tuple[Array, Array]:
    """(t, A'(s t + e)) with t = A y, for compressed rows and vectors of one dtype."""
    return _sparse(A, parts, short, y, np.empty(0, y.dtype) if e is None else e, float(s), True)


def _sparse(A: Rows, parts: Windows, short: bool, y: Array, e: Array, s: float, dependent: bool) -> tuple[Array, Array]:
    t, u = np.empty(len(A.start) - 1, y.dtype), np.zeros(len(y), y.dtype)
    cuts, left, right = parts
    if len(left) == 1:
        pieces, left = [u], np.zeros_like(left)
    else:
        pieces = [np.zeros(b - a, y.dtype) for a, b in zip(left, right, strict=True)]

    def part(k: int) -> None:
        block = (left[k], cuts[k], cuts[k + 1])
        if short:
            _short_rows(*A, y, e, s, dependent, t, pieces[k], *block)
        else:
            _long_rows(*A, y, e, s, dependent, t, pieces[k], *block, BLOCK)

    run_parts(part, len(pieces))
    if len(pieces) > 1:
        for piece, a, b in zip(pieces, left, right, strict=True):
            u[a:b] += piece
    return t, u


# Unsigned indices spare Numba's test for negative ones. The comparison of j with the size is always true, but it keeps
# the compiler from unrolling the loop, which would double the time where the columns are far apart.


@compiled
def _short_rows(
    start: Array,
    column: Array,
    value: Array,
    y: Array,
    e: Array,
    s: float,
    dependent: bool,
    t: Array,
    u: Array,
    left: int,
    top: int,
    bottom: int,
) -> None:
    """t = A y and u += A' w for the rows from top to bottom, where w = s t + e, or e if not dependent.

    u begins at the column ``left``. An empty e is zero.
    """
    T = t.dtype.type
    one, first, size, n = np.uint64(1), np.uint64(left), np.uint64(u.shape[0]), np.uint64(y.shape[0])
    i, end = np.uint64(top), np.uint64(bottom)
    while i < end:
        begin, stop = np.uint64(start[i]), np.uint64(start[i + one])
        total = T(0)
        k = begin
        while k < stop:
            j = np.uint64(column[k])
            if j >= n:
                break
            total += T(value[k]) * y[j]
            k += one
        t[i] = total
        w = e[i] if e.shape[0] > 0 else T(0)
        if dependent:
            w += T(s * total)
        k = begin
        while k < stop:
            j = np.uint64(column[k]) - first
            if j >= size:
                break
            u[j] += T(value[k]) * w
            k += one
        i += one


@compiled
def _long_rows(
    start: Array,
    column: Array,
    value: Array,
    y: Array,
    e: Array,
    s: float,
    dependent: bool,
    t: Array,
    u: Array,
    left: int,
    top: int,
    bottom: int,
    block: int,
) -> None:
    """What ``_short_rows`` does, with as many rows together as have ``block`` entries."""
    T = t.dtype.type
    one, first, size = np.uint64(1), np.uint64(left), np.uint64(u.shape[0])
    i, end = np.uint64(top), np.uint64(bottom)
    while i < end:
        above, full = i, np.uint64(start[i]) + np.uint64(block)
        while i < end and (i == above or np.uint64(start[i + one]) <= full):
            k, stop = np.uint64(start[i]), np.uint64(start[i + one])
            total = T(0)
            while k < stop:
                total += T(value[k]) * y[np.uint64(column[k])]
                k += one
            t[i] = total
            i += one
        row = above
        while row < i:
            k, stop = np.uint64(start[row]), np.uint64(start[row + one])
            w = e[row] if e.shape[0] > 0 else T(0)
            if dependent:
                w += T(s * t[row])
            while k < stop:
                j = np.uint64(column[k]) - first
                if j >= size:
                    break
                u[j] += T(value[k]) * w
                k += one
            row += one
