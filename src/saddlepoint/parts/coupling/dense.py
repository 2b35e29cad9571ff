"""A as a NumPy array."""

from __future__ import annotations

import math
import sys
from functools import cached_property
from typing import Any

import numpy as np

from saddlepoint.ground.arrays import Array, eps_of
from saddlepoint.ground.compensated import UP, Sum, dense_product
from saddlepoint.ground.linalg import norm
from saddlepoint.ground.rounding import gamma
from saddlepoint.ground.validation import as_count
from saddlepoint.parts.coupling.base import Coupling, raised_lengths, scale_from_columns

BLOCK = 1 << 18  # entries of A converted at a time for a product with a vector of a wider dtype

# When one pass over A is faster than two products, as measured by `python benchmarks/fused_cpu.py`:
FUSE_BYTES = 1 << 26  # least bytes of A; a smaller A may fit the cache, and loading Numba would take longer
FUSE_SIDE_BYTES = 1 << 7  # least bytes of the shorter side, over which the access to the longer vector is amortised
FUSE_ROW_BYTES = 1 << 21  # most bytes of a contiguous row: `through` needs eight rows in the cache at once
FUSE_COLUMNS = 1000  # most contiguous columns: `through` needs a strip of rows across all of them in the cache

LOADING = 1 << 24  # entries of A: products with so many, in about twice the digits, take as long as loading Numba


class DenseCoupling(Coupling):
    """A dense m x n array, which is not copied.

    With Numba, ``both`` reads a large contiguous array once. So does ``through`` if the array is ``fused``, which it is
    not if its contiguous rows are very long or its contiguous columns are very many.

    Args:
        A: the array.
        least: bytes of A from which products are fused; FUSE_BYTES by default.
    """

    trusted = True
    has_entries = True

    def __init__(self, A: Array, least: int | None = None) -> None:
        self.A, self.least = A, FUSE_BYTES if least is None else as_count(least, "least", 0)
        self.shape = (A.shape[0], A.shape[1])
        self.dtype = A.dtype
        self._in_rows = A.flags.c_contiguous
        worth = A.nbytes >= self.least and min(A.shape) * A.itemsize >= FUSE_SIDE_BYTES
        plain = A.dtype in (np.float32, np.float64) and (self._in_rows or A.flags.f_contiguous)
        self._fuses_both = worth and plain and _compiled()
        fits = A.shape[1] * A.itemsize <= FUSE_ROW_BYTES if self._in_rows else A.shape[1] <= FUSE_COLUMNS
        self._fuses_through = self.fused = self._fuses_both and fits

    @property
    def arrays(self) -> tuple[Any, ...]:
        """A itself."""
        return (self.A,)

    def mul(self, y: Array) -> Array:
        """A y."""
        if y.dtype.itemsize > self.dtype.itemsize and y.shape == self.shape[1:]:
            return self._widened(y)
        product: Array = self.A.dot(y)  # half the overhead of A @ y where A is small
        return product

    def tmul(self, x: Array) -> Array:
        """A' x."""
        return self.T.mul(x)

    def _transpose(self) -> Coupling:
        return DenseCoupling(self.A.T, self.least)

    def _widened(self, y: Array) -> Array:
        """A y in the dtype of y, by blocks of A: the plain product would convert a copy of all of A."""
        m, n = self.shape
        pair = self._both(np.zeros(m, y.dtype), y)
        if pair is not None:
            return pair[0]
        if self.A.flags.f_contiguous:
            columns = max(1, BLOCK // m)
            product = np.zeros(m, y.dtype)
            for j in range(0, n, columns):
                product += self.A[:, j : j + columns].astype(y.dtype) @ y[j : j + columns]
            return product
        rows = max(1, BLOCK // n)
        return np.concatenate([self.A[i : i + rows].astype(y.dtype) @ y for i in range(0, m, rows)])

    def both(self, x: Array, y: Array) -> tuple[Array, Array]:
        """(A y, A' x)."""
        return self._both(x, y) or super().both(x, y)

    def _both(self, x: Array, y: Array) -> tuple[Array, Array] | None:
        """(A y, A' x) in one pass, if A and the vectors allow it."""
        if not self._fuses_both:
            return None
        from saddlepoint.parts.coupling import dense_kernels as kernels
        from saddlepoint.parts.coupling.compiled_loops import matching_vectors

        vectors = matching_vectors(self.dtype, (x, self.shape[0]), (y, self.shape[1]))
        if vectors is None:
            return None
        x, y = vectors
        if self._in_rows:
            return kernels.both(self.A, x, y)
        Atx, Ay = kernels.both(self.A.T, y, x)
        return Ay, Atx

    def through(self, y: Array, s: float = 1.0, e: Array | None = None) -> tuple[Array, Array]:
        """(t, A'(s t + e)) with t = A y."""
        return self._through(y, s, e) or super().through(y, s, e)

    def _through(self, y: Array, s: float, e: Array | None) -> tuple[Array, Array] | None:
        """(t, A'(s t + e)) in one pass, if A and the vectors allow it."""
        if not self._fuses_through:
            return None
        from saddlepoint.parts.coupling import dense_kernels as kernels
        from saddlepoint.parts.coupling.compiled_loops import matching_vectors

        vectors = matching_vectors(self.dtype, (y, self.shape[1]), (e, self.shape[0]))
        if vectors is None:
            return None
        y, e = vectors
        if self._in_rows:
            return kernels.through(self.A, y, s, e)
        return kernels.through_transposed(self.A.T, y, s, e)

    def matrix(self) -> Array:
        """A itself."""
        return self.A

    def gram(self) -> Array:
        """A'A."""
        return np.asarray(self.A.T @ self.A)

    @cached_property
    def column_norms(self) -> Array:
        """The Euclidean norms of the columns of A."""
        squares: Array = np.einsum("ij,ij->j", self.A, self.A, dtype=np.float64)
        norms = np.sqrt(squares)
        odd = np.flatnonzero(~((squares > 1e-280) & (squares < math.inf)))  # overflow, underflow or zero
        for j in odd[np.asarray(self.A.any(axis=0))[odd]] if len(odd) else odd:
            norms[j] = norm(self.A[:, j])
        return norms

    def rounding_scale(self, y: Array) -> float:
        """A bound from the norms of the columns of A."""
        return scale_from_columns(self.column_norms, y)

    def rough_scale(self, length: float) -> float:
        """The Frobenius norm times the length."""
        return self._frobenius * length

    @cached_property
    def _frobenius(self) -> float:
        """The Frobenius norm, rounded up; A is read as one vector where its entries have no gaps in memory."""
        if "_frobenius" in self.T.__dict__:
            known: float = self.T.__dict__["_frobenius"]
            return known
        if self.dtype == np.float64 and (self._in_rows or self.A.flags.f_contiguous):
            return norm(self.A.ravel(order="K")) * (1.0 + gamma(self.A.size + 4, eps_of(self.A)))
        return norm(self.column_norms) * (1.0 + gamma(sum(self.shape) + 8, eps_of(self.column_norms)))

    def bound_from_sum(self, total: float) -> float:
        """The length of the longest column times the sum."""
        return UP * self._longest_column * total

    def row_lengths(self) -> Array:
        """The lengths of the rows, rounded up."""
        return raised_lengths(self.T.column_norms, self.shape[1])  # type: ignore[attr-defined]

    def compensated_mul(self, y: Array) -> Sum:
        """A y in about twice the digits, by compiled loops for a large A."""
        if (self.A.flags.c_contiguous or self.A.flags.f_contiguous) and uses_kernels(self, self.A.size):
            from saddlepoint.parts.coupling import dot2_kernels

            return dot2_kernels.dense(self.A, y)
        return dense_product(self.A, y)

    def norm_ceiling(self) -> float:
        """The Frobenius norm, rounded up; of a matrix of rank one it is the norm."""
        return self._frobenius


def uses_kernels(A: Coupling, entries: int) -> bool:
    """Whether Numba computes the next product of A in about twice the digits.

    It does if it is loaded already, or once products without it have taken as long as loading it would take.
    """
    A.compensated_entries += entries
    return ("numba" in sys.modules or A.compensated_entries >= LOADING) and _compiled()


def _compiled() -> bool:
    """Whether the loops can be compiled. It is called only for a large A, since it imports Numba."""
    from saddlepoint.parts.coupling import compiled_loops

    return compiled_loops.AVAILABLE
