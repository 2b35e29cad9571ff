"""Both products with a dense A in one pass over its memory, by compiled loops for arrays with contiguous rows.

A product with a large A takes as long as reading A, and two products read it twice. The loops here read a few rows at a
time, multiply them with y, and add their multiples to A' x while the rows are still in the cache. Sums are computed in
the dtype of the vectors, whatever the dtype of A. Parts of A are added up in a fixed order: the same input gives the
same bits with any number of threads.
"""

from __future__ import annotations

import numpy as np

from saddlepoint.ground.arrays import Array
from saddlepoint.parts.coupling.compiled_loops import compiled, read_only, run_parts

# Measured with `python benchmarks/fused_cpu.py`, whose tables name the shapes.
NARROW = 1 << 12  # bytes of a row up to which rows are handled one by one; longer rows by eight
STRIP = 1 << 21  # bytes of a strip of columns, which must fit the cache, since it is read twice
PARTS = 64  # largest number of parts of an array
PART_BYTES, PART_ROWS, PART_COLUMNS = 1 << 22, 32, 4096  # least bytes, rows and columns of a part


def both(A: Array, x: Array, y: Array) -> tuple[Array, Array]:
    """(A y, A' x) for an array with contiguous rows and vectors of one dtype."""
    A, (m, n) = read_only(A), A.shape
    by_columns = m < n and m < 16 * PART_ROWS  # too few rows for all threads
    cuts = _cuts(n, PART_COLUMNS, m * A.itemsize) if by_columns else _cuts(m, PART_ROWS, n * A.itemsize)
    parts = len(cuts) - 1
    t, u = np.zeros((parts if by_columns else 1, m), y.dtype), np.zeros((1 if by_columns else parts, n), y.dtype)
    step = _step(A)
    if by_columns:
        run_parts(lambda k: _both(A, x, y, t[k], u[0], 0, m, cuts[k], cuts[k + 1], step), parts)
    else:
        run_parts(lambda k: _both(A, x, y, t[0], u[k], cuts[k], cuts[k + 1], 0, n, step), parts)
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
    run_parts(lambda k: _through(A, y, float(s), t, w, u[k], cuts[k], cuts[k + 1], 0, n, step), len(u))
    return t, _total(u)


def through_transposed(A: Array, x: Array, s: float, e: Array | None) -> tuple[Array, Array]:
    """(t, A(s t + e)) with t = A' x, for an array with few and contiguous rows: by strips of its columns."""
    A, (m, n) = read_only(A), A.shape
    width = max(16, STRIP // (m * A.itemsize) // 16 * 16)
    cuts = _cuts(n, width, m * A.itemsize)
    t, u = np.zeros(n, x.dtype), np.zeros((len(cuts) - 1, m), x.dtype)
    w = np.zeros(n, x.dtype) if e is None else e.copy()
    run_parts(lambda k: _through_transposed(A, x, float(s), t, w, u[k], 0, m, cuts[k], cuts[k + 1], width), len(u))
    return t, _total(u)


@compiled
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


@compiled
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


@compiled
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


@compiled
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


@compiled
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


@compiled
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


def _cuts(size: int, least: int, across: int) -> list[int]:
    """The bounds of parts of ``size`` rows or columns of ``across`` bytes; a part has about ``least`` of them or more.

    The number of parts is a power of two, and each begins at a multiple of eight.
    """
    most = min(PARTS, size // max(least, PART_BYTES // across))
    parts = 1 << (max(1, most).bit_length() - 1)
    return [k * size // parts // 8 * 8 for k in range(parts)] + [size]
