"""Compiled loops for products in compensated arithmetic: dense rows and columns, compressed rows and columns.

Every product a y is replaced by the pair p = fl(a y), e = a y - p, which a fused multiply-add computes exactly; the p
are added up with the error of each addition, and all errors are added up beside them (T. Ogita, S. M. Rump and S.
Oishi, Accurate sum and dot product, SIAM J. Sci. Comput. 2005). A sum of n terms is then hi + lo with an error of at
most gamma_k^2 times the sum of the |a y|, where k is the number of additions; that sum is computed too.

Numba compiles the loops without any freedom to reorder. ``saddlepoint.ground.compensated`` computes the same products
in any array library.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from saddlepoint.ground.arrays import Array
from saddlepoint.ground.compensated import EPS, UP, Sum, two_sum
from saddlepoint.ground.rounding import gamma
from saddlepoint.parts.coupling.compiled_loops import AVAILABLE, compiled_as_written, read_only

LANES = 32  # number of sums of a row that are computed side by side
LEAST = 2.0**-1074  # smallest positive number: the most that underflow changes in one operation


def _fused_multiply_add() -> Any:
    """(a, b, c) -> a b + c with one rounding, for compiled loops; None without Numba."""
    if not AVAILABLE:
        return None
    from numba import types
    from numba.extending import intrinsic

    def fma(typing: Any, a: Any, b: Any, c: Any) -> Any:
        double = types.float64
        return double(double, double, double), lambda context, builder, signature, args: builder.fma(*args)

    return intrinsic(fma)


_fma: Any = _fused_multiply_add()


def dense(A: Array, y: Array) -> Sum:
    """A y for a contiguous array of float32 or float64 in rows or columns, and a vector of float64."""
    m, n = A.shape
    y = read_only(np.ascontiguousarray(y))
    hi, lo, size = np.zeros((3, m))
    if A.flags.c_contiguous:
        _rows(read_only(A), y, hi, lo, size)
    else:
        _columns(read_only(A.T), y, hi, lo, size)
    return _sum(hi, lo, size, n)


def sparse(A: Any, y: Array) -> Sum:
    """A y for a SciPy sparse array in compressed rows or columns, and a vector of float64."""
    y = read_only(np.ascontiguousarray(y))
    hi, lo, size = np.zeros((3, A.shape[0]))
    loop = _compressed_rows if A.format == "csr" else _compressed_columns
    loop(read_only(A.data), read_only(A.indices), read_only(A.indptr), y, hi, lo, size)
    longest = np.diff(A.indptr).max(initial=0) if A.format == "csr" else A.shape[1]
    return _sum(hi, lo, size, int(longest))


def _sum(hi: Array, lo: Array, size: Array, terms: int) -> Sum:
    additions = 2 * (terms + LANES) + 4
    hi, lo = two_sum(hi, lo)
    return Sum(hi, lo, UP * gamma(additions, EPS) ** 2 * size + additions * LEAST * (size > 0.0))


@compiled_as_written
def _added(a: float, b: float, s: float, c: float, w: float) -> tuple[float, float, float]:
    """The sum s, its errors c and the sum w of absolute values, after the product a b was added."""
    p = a * b
    t = s + p
    z = t - s
    return t, c + (_fma(a, b, -p) + ((s - (t - z)) + (p - z))), w + abs(p)


@compiled_as_written
def _rows(A: Array, y: Array, hi: Array, lo: Array, size: Array) -> None:
    m, n = A.shape
    s, c, w = np.zeros(LANES), np.zeros(LANES), np.zeros(LANES)
    whole = n - n % LANES
    for i in range(m):
        s[:] = 0.0
        c[:] = 0.0
        w[:] = 0.0
        for j in range(0, whole, LANES):
            for k in range(LANES):
                s[k], c[k], w[k] = _added(np.float64(A[i, j + k]), y[j + k], s[k], c[k], w[k])
        for k in range(n - whole):
            s[k], c[k], w[k] = _added(np.float64(A[i, whole + k]), y[whole + k], s[k], c[k], w[k])
        for k in range(LANES):
            hi[i], lo[i], size[i] = _added(s[k], 1.0, hi[i], lo[i] + c[k], size[i])
        size[i] = w.sum()


@compiled_as_written
def _columns(A: Array, y: Array, hi: Array, lo: Array, size: Array) -> None:
    """A' y, row by row of A."""
    m, n = A.shape
    for i in range(m):
        for j in range(n):
            hi[j], lo[j], size[j] = _added(np.float64(A[i, j]), y[i], hi[j], lo[j], size[j])


@compiled_as_written
def _compressed_rows(data: Array, indices: Array, indptr: Array, y: Array, hi: Array, lo: Array, size: Array) -> None:
    for i in range(len(hi)):
        s, c, w = 0.0, 0.0, 0.0
        for k in range(indptr[i], indptr[i + 1]):
            s, c, w = _added(np.float64(data[k]), y[indices[k]], s, c, w)
        hi[i], lo[i], size[i] = s, c, w


@compiled_as_written
def _compressed_columns(
    data: Array, indices: Array, indptr: Array, y: Array, hi: Array, lo: Array, size: Array
) -> None:
    for j in range(len(y)):
        for k in range(indptr[j], indptr[j + 1]):
            i = indices[k]
            hi[i], lo[i], size[i] = _added(np.float64(data[k]), y[j], hi[i], lo[i], size[i])
