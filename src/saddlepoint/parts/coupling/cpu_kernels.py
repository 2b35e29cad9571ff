"""Both products with A in one pass over its memory: compiled loops for row-major arrays and for compressed rows.

A product with a large A takes as long as reading A, and two products read it twice. The loops here read a few rows at a
time, multiply them with y, and add their multiples to A' x while the rows are still in the cache.

The loops are compiled by Numba, an optional dependency; without it ``AVAILABLE`` is False and the loops are not used.
They release the interpreter's lock and run in a few Python threads, and calls from several threads are independent.
Sums are computed in the dtype of the vectors, whatever the dtype of A. Parts of A are added up in a fixed order: the
same input gives the same bits, for an array with any number of threads, and for compressed rows with a given number.

Importing this module imports Numba, so ``dense`` and ``sparse`` import it only for an A that is large enough.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np

from saddlepoint.ground.arrays import Array


def _njit() -> Any:
    try:
        from numba import njit
    except ImportError:  # not installed, or not for this NumPy
        return None
    return njit


NJIT = _njit()
AVAILABLE = NJIT is not None

# Measured with `python benchmarks/fused_cpu.py`, whose tables name the shapes.
NARROW = 1 << 12  # bytes of a row up to which rows are handled one by one; longer rows by eight
STRIP = 1 << 21  # bytes of a strip of columns, which must fit the cache, since it is read twice
BLOCK = 1 << 12  # entries of a block of compressed rows, which must fit the cache, since it is read twice
PARTS = 64  # largest number of parts of an array
PART_BYTES, PART_ROWS, PART_COLUMNS = 1 << 22, 32, 4096  # least bytes, rows and columns of a part

Loop = TypeVar("Loop", bound=Callable[..., Any])


def _compiled(loop: Loop) -> Loop:
    """The loop as machine code, which is compiled at the first call and cached on disk if a folder can be written."""
    if not AVAILABLE:
        return loop
    # Sums may be reordered and fused; NaN and infinity keep their meaning.
    options = {"nogil": True, "error_model": "numpy", "fastmath": {"contract", "reassoc", "nsz"}}
    try:
        return cast(Loop, NJIT(cache=True, **options)(loop))
    except RuntimeError:  # no folder can be written
        return cast(Loop, NJIT(**options)(loop))


# -- threads ---------------------------------------------------------------------------------------------------------


def threads() -> int:
    """The number of threads to use: the setting of Numba, BLAS or OpenMP in the environment, or one for each core."""
    try:
        cores = len(os.sched_getaffinity(0))
    except AttributeError:  # not on Linux
        cores = os.cpu_count() or 1
    for name in ("NUMBA_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"):
        setting = os.environ.get(name, "").partition(",")[0].strip()
        if setting.isdecimal() and int(setting) > 0:
            return min(int(setting), cores)
    return cores


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(os.cpu_count(), thread_name_prefix="saddlepoint")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.cache_clear)  # threads do not survive a fork


def _run_parts(part: Callable[[int], None], parts: int) -> None:
    """Call ``part(0)``, ``part(1)``, ... on all threads, this one included; each free thread takes the next number."""
    todo = deque(range(parts))

    def work() -> None:
        while True:
            try:
                k = todo.popleft()
            except IndexError:
                return
            part(k)

    futures = [_pool().submit(work) for _ in range(min(threads(), parts) - 1)]
    try:
        work()
    finally:
        for future in futures:
            if not future.cancel():  # a thread that has not started has nothing left to do
                future.result()


def _cuts(size: int, least: int, across: int) -> list[int]:
    """The bounds of parts of ``size`` rows or columns of ``across`` bytes; a part has about ``least`` of them or more.

    The number of parts is a power of two, and each begins at a multiple of eight.
    """
    most = min(PARTS, size // max(least, PART_BYTES // across))
    parts = 1 << (max(1, most).bit_length() - 1)
    return [k * size // parts // 8 * 8 for k in range(parts)] + [size]


def matching_vectors(dtype: np.dtype[Any], *vectors: tuple[Array | None, int]) -> list[Any] | None:
    """The vectors in one dtype, float32 or float64, as the loops need them; None if a vector has not the given size."""
    given = [(v, size) for v, size in vectors if v is not None]
    common = np.result_type(dtype, *(v.dtype for v, _ in given))
    if common not in (np.float32, np.float64) or any(v.shape != (size,) for v, size in given):
        return None
    return [None if v is None else np.require(v, common, ["C", "A", "W", "E"]) for v, _ in vectors]


def read_only(array: Array) -> Array:
    """A read-only view of the array, so that Numba compiles one version for writeable and read-only arrays."""
    view = np.asarray(array).view(np.ndarray)
    view.flags.writeable = False
    return view


# -- row-major arrays ------------------------------------------------------------------------------------------------


def both(A: Array, x: Array, y: Array) -> tuple[Array, Array]:
    """(A y, A' x) for an array with contiguous rows and vectors of one dtype."""
    A, (m, n) = read_only(A), A.shape
    by_columns = m < n and m < 16 * PART_ROWS  # too few rows for all threads
    cuts = _cuts(n, PART_COLUMNS, m * A.itemsize) if by_columns else _cuts(m, PART_ROWS, n * A.itemsize)
    parts = len(cuts) - 1
    t, u = np.zeros((parts if by_columns else 1, m), y.dtype), np.zeros((1 if by_columns else parts, n), y.dtype)
    step = _step(A)
    if by_columns:
        _run_parts(lambda k: _both(A, x, y, t[k], u[0], 0, m, cuts[k], cuts[k + 1], step), parts)
    else:
        _run_parts(lambda k: _both(A, x, y, t[0], u[k], cuts[k], cuts[k + 1], 0, n, step), parts)
    return _total(t), _total(u)


def _step(A: Array) -> int:
    """The number of rows to handle at a time."""
    return 1 if A.shape[1] * A.itemsize <= NARROW else 8


def _total(pieces: Array) -> Array:
    """The sum of the rows, added in their order."""
    return np.asarray(pieces[0] if len(pieces) == 1 else np.add.reduce(pieces))


def through(A: Array, y: Array, s: float, e: Array | None) -> tuple[Array, Array]:
    """(t, A'(s t + e)) with t = A y, for an array with contiguous rows and vectors of one dtype."""
    A, (m, n) = read_only(A), A.shape
    cuts = _cuts(m, PART_ROWS, n * A.itemsize)
    t, u = np.zeros(m, y.dtype), np.zeros((len(cuts) - 1, n), y.dtype)
    w = np.zeros(m, y.dtype) if e is None else e.copy()
    step = _step(A)
    _run_parts(lambda k: _through(A, y, float(s), t, w, u[k], cuts[k], cuts[k + 1], 0, n, step), len(u))
    return t, _total(u)


def through_transposed(A: Array, x: Array, s: float, e: Array | None) -> tuple[Array, Array]:
    """(t, A(s t + e)) with t = A' x, for an array with few and contiguous rows: by strips of its columns."""
    A, (m, n) = read_only(A), A.shape
    width = max(16, STRIP // (m * A.itemsize) // 16 * 16)
    cuts = _cuts(n, width, m * A.itemsize)
    t, u = np.zeros(n, x.dtype), np.zeros((len(cuts) - 1, m), x.dtype)
    w = np.zeros(n, x.dtype) if e is None else e.copy()
    _run_parts(lambda k: _through_transposed(A, x, float(s), t, w, u[k], 0, m, cuts[k], cuts[k + 1], width), len(u))
    return t, _total(u)


@_compiled
def _multiply(A: Array, y: Array, t: Array, top: int, bottom: int, left: int, right: int) -> None:
    """t += A y on the block of A from top to bottom and left to right."""
    T = t.dtype.type
    y = y[left:right]
    i = top
    while i + 8 <= bottom:
        a0, a1, a2, a3 = A[i, left:right], A[i + 1, left:right], A[i + 2, left:right], A[i + 3, left:right]
        a4, a5, a6, a7 = A[i + 4, left:right], A[i + 5, left:right], A[i + 6, left:right], A[i + 7, left:right]
        t0 = t1 = t2 = t3 = t4 = t5 = t6 = t7 = T(0)
        for j in range(right - left):
            v = y[j]
            t0 += T(a0[j]) * v
            t1 += T(a1[j]) * v
            t2 += T(a2[j]) * v
            t3 += T(a3[j]) * v
            t4 += T(a4[j]) * v
            t5 += T(a5[j]) * v
            t6 += T(a6[j]) * v
            t7 += T(a7[j]) * v
        t[i] += t0
        t[i + 1] += t1
        t[i + 2] += t2
        t[i + 3] += t3
        t[i + 4] += t4
        t[i + 5] += t5
        t[i + 6] += t6
        t[i + 7] += t7
        i += 8
    while i < bottom:
        a0, t0 = A[i, left:right], T(0)
        for j in range(right - left):
            t0 += T(a0[j]) * y[j]
        t[i] += t0
        i += 1


@_compiled
def _add(A: Array, x: Array, u: Array, top: int, bottom: int, left: int, right: int) -> None:
    """u += A' x on the block of A from top to bottom and left to right."""
    T = u.dtype.type
    u = u[left:right]
    i = top
    while i + 8 <= bottom:
        a0, a1, a2, a3 = A[i, left:right], A[i + 1, left:right], A[i + 2, left:right], A[i + 3, left:right]
        a4, a5, a6, a7 = A[i + 4, left:right], A[i + 5, left:right], A[i + 6, left:right], A[i + 7, left:right]
        x0, x1, x2, x3, x4, x5, x6, x7 = x[i], x[i + 1], x[i + 2], x[i + 3], x[i + 4], x[i + 5], x[i + 6], x[i + 7]
        for j in range(right - left):
            upper = T(a0[j]) * x0 + T(a1[j]) * x1 + T(a2[j]) * x2 + T(a3[j]) * x3
            lower = T(a4[j]) * x4 + T(a5[j]) * x5 + T(a6[j]) * x6 + T(a7[j]) * x7
            u[j] += upper + lower
        i += 8
    while i < bottom:
        a0, x0 = A[i, left:right], x[i]
        for j in range(right - left):
            u[j] += T(a0[j]) * x0
        i += 1


@_compiled
def _both(
    A: Array, x: Array, y: Array, t: Array, u: Array, top: int, bottom: int, left: int, right: int, step: int
) -> None:
    """t += A y and u += A' x on the block of A, one row or eight at a time."""
    T = t.dtype.type
    y, u = y[left:right], u[left:right]
    i = top
    while step == 8 and i + 8 <= bottom:
        a0, a1, a2, a3 = A[i, left:right], A[i + 1, left:right], A[i + 2, left:right], A[i + 3, left:right]
        a4, a5, a6, a7 = A[i + 4, left:right], A[i + 5, left:right], A[i + 6, left:right], A[i + 7, left:right]
        x0, x1, x2, x3, x4, x5, x6, x7 = x[i], x[i + 1], x[i + 2], x[i + 3], x[i + 4], x[i + 5], x[i + 6], x[i + 7]
        t0 = t1 = t2 = t3 = t4 = t5 = t6 = t7 = T(0)
        for j in range(right - left):
            v = y[j]
            b0, b1, b2, b3 = T(a0[j]), T(a1[j]), T(a2[j]), T(a3[j])
            b4, b5, b6, b7 = T(a4[j]), T(a5[j]), T(a6[j]), T(a7[j])
            t0 += b0 * v
            t1 += b1 * v
            t2 += b2 * v
            t3 += b3 * v
            t4 += b4 * v
            t5 += b5 * v
            t6 += b6 * v
            t7 += b7 * v
            u[j] += (b0 * x0 + b1 * x1 + b2 * x2 + b3 * x3) + (b4 * x4 + b5 * x5 + b6 * x6 + b7 * x7)
        t[i] += t0
        t[i + 1] += t1
        t[i + 2] += t2
        t[i + 3] += t3
        t[i + 4] += t4
        t[i + 5] += t5
        t[i + 6] += t6
        t[i + 7] += t7
        i += 8
    while i < bottom:
        a0, x0, t0 = A[i, left:right], x[i], T(0)
        for j in range(right - left):
            b0 = T(a0[j])
            t0 += b0 * y[j]
            u[j] += b0 * x0
        t[i] += t0
        i += 1


@_compiled
def _multiply_and_add(A: Array, y: Array, t: Array, w: Array, u: Array, i: int, left: int, right: int) -> None:
    """t += A y on the eight rows from i on, and u += A' w on the eight rows before them, in one loop."""
    T = t.dtype.type
    y, u = y[left:right], u[left:right]
    a0, a1, a2, a3 = A[i, left:right], A[i + 1, left:right], A[i + 2, left:right], A[i + 3, left:right]
    a4, a5, a6, a7 = A[i + 4, left:right], A[i + 5, left:right], A[i + 6, left:right], A[i + 7, left:right]
    b0, b1, b2, b3 = A[i - 8, left:right], A[i - 7, left:right], A[i - 6, left:right], A[i - 5, left:right]
    b4, b5, b6, b7 = A[i - 4, left:right], A[i - 3, left:right], A[i - 2, left:right], A[i - 1, left:right]
    w0, w1, w2, w3, w4, w5, w6, w7 = w[i - 8], w[i - 7], w[i - 6], w[i - 5], w[i - 4], w[i - 3], w[i - 2], w[i - 1]
    t0 = t1 = t2 = t3 = t4 = t5 = t6 = t7 = T(0)
    for j in range(right - left):
        v = y[j]
        t0 += T(a0[j]) * v
        t1 += T(a1[j]) * v
        t2 += T(a2[j]) * v
        t3 += T(a3[j]) * v
        t4 += T(a4[j]) * v
        t5 += T(a5[j]) * v
        t6 += T(a6[j]) * v
        t7 += T(a7[j]) * v
        upper = T(b0[j]) * w0 + T(b1[j]) * w1 + T(b2[j]) * w2 + T(b3[j]) * w3
        lower = T(b4[j]) * w4 + T(b5[j]) * w5 + T(b6[j]) * w6 + T(b7[j]) * w7
        u[j] += upper + lower
    t[i] += t0
    t[i + 1] += t1
    t[i + 2] += t2
    t[i + 3] += t3
    t[i + 4] += t4
    t[i + 5] += t5
    t[i + 6] += t6
    t[i + 7] += t7


@_compiled
def _through(
    A: Array, y: Array, s: float, t: Array, w: Array, u: Array, top: int, bottom: int, left: int, right: int, step: int
) -> None:
    """t += A y, w += s t and u += A' w on the block of A, one row or eight at a time.

    While eight rows come from memory and are multiplied with y, the multiples of the eight rows before them, which are
    still in the cache, are added to u. If that were done apart, nothing would be read from memory in the meantime.
    """
    T = t.dtype.type
    i = top
    while step == 8 and i + 8 <= bottom:
        if i == top:
            _multiply(A, y, t, i, i + 8, left, right)
        else:
            _multiply_and_add(A, y, t, w, u, i, left, right)
        for k in range(i, i + 8):
            w[k] += s * t[k]
        i += 8
    if i > top:
        _add(A, w, u, i - 8, i, left, right)
    y, u = y[left:right], u[left:right]
    while i < bottom:
        a, total = A[i, left:right], T(0)
        for j in range(right - left):
            total += T(a[j]) * y[j]
        t[i] += total
        w[i] += s * t[i]
        for j in range(right - left):
            u[j] += T(a[j]) * w[i]
        i += 1


@_compiled
def _through_transposed(
    A: Array, x: Array, s: float, t: Array, w: Array, u: Array, top: int, bottom: int, left: int, right: int, width: int
) -> None:
    """t += A' x, w += s t and u += A w on the block of A, ``width`` columns at a time."""
    for j in range(left, right, width):
        end = min(j + width, right)
        _add(A, x, t, top, bottom, j, end)
        for k in range(j, end):
            w[k] += s * t[k]
        _multiply(A, w, u, top, bottom, j, end)


# -- compressed rows -------------------------------------------------------------------------------------------------


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


def sparse_both(A: Rows, parts: Windows, short: bool, x: Array, y: Array) -> tuple[Array, Array]:
    """(A y, A' x) for compressed rows and vectors of one dtype; ``short`` rows are taken one by one."""
    return _sparse(A, parts, short, y, x, 0.0, False)


def sparse_through(A: Rows, parts: Windows, short: bool, y: Array, s: float, e: Array | None) -> tuple[Array, Array]:
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

    _run_parts(part, len(pieces))
    if len(pieces) > 1:
        for piece, a, b in zip(pieces, left, right, strict=True):
            u[a:b] += piece
    return t, u


# Unsigned indices spare Numba's test for negative ones. The comparison of j with the size is always true, but it keeps
# the compiler from unrolling the loop, which would double the time where the columns are far apart.


@_compiled
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


@_compiled
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
