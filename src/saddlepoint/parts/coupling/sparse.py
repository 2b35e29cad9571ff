"""A as a SciPy sparse array."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from saddlepoint.ground.arrays import Array
from saddlepoint.ground.compensated import UP, Sum, sparse_product
from saddlepoint.ground.errors import ProblemError
from saddlepoint.ground.linalg import norm, power_of_two
from saddlepoint.ground.probing import products_needed
from saddlepoint.ground.validation import in_floats
from saddlepoint.parts.coupling.base import Coupling, raised_lengths
from saddlepoint.parts.coupling.dense import uses_kernels

# When one pass over A is faster than two products, as measured by `python benchmarks/fused_cpu.py`:
FUSE_ENTRIES = 1 << 24  # least number of entries; for fewer, loading Numba takes longer than a run saves
STRETCH = 1 << 16  # number of consecutive entries whose columns are compared
FUSE_WINDOW = 1 << 18  # most columns that a stretch of entries spans on average, so that its part of y is cached
SHORT_ROW = 6  # mean entries of a row up to which rows are handled one by one
SHORT_NEAR_ROW, NEAR = 16, 1 << 15  # SHORT_ROW where the entries of a stretch span at most NEAR columns

SAFE = 1e-10, 1e150  # largest entries between which squares of entries lose no more than `_lost` says


class SparseCoupling(Coupling):
    """A sparse m x n matrix in compressed rows. Its transpose is in compressed columns and shares the data.

    With Numba, ``both`` and ``through`` read a large matrix in compressed rows once, unless the columns of neighbouring
    entries are far apart. For compressed columns, only ``both`` does.
    """

    trusted = True
    has_entries = True

    def __init__(self, A: Any, shared: dict[str, Any] | None = None) -> None:
        self._shared = {} if shared is None else shared  # what A and its transpose have in common
        self.A = A if A.format in ("csr", "csc") else A.tocsr()
        self.shape = (A.shape[0], A.shape[1])
        self.dtype = A.dtype
        window = _window(self.A) if self.A.format == "csr" and self.A.nnz >= FUSE_ENTRIES else math.inf
        self._fuses = self.fused = window <= FUSE_WINDOW
        self._short = self.A.nnz <= (SHORT_NEAR_ROW if window <= NEAR else SHORT_ROW) * self.shape[0]
        self._products: int | None = None  # products with A that determine its entries; None before they are counted
        self._parts: dict[int, Any] = {}  # by the number of threads that share them

    @property
    def arrays(self) -> tuple[Any, ...]:
        """The entries, their indices, and where each row begins."""
        return self.A.data, self.A.indices, self.A.indptr

    def mul(self, y: Array) -> Array:
        """A y."""
        return np.asarray(self.A @ y)

    def tmul(self, x: Array) -> Array:
        """A' x."""
        return self.T.mul(x)

    def _transpose(self) -> Coupling:
        return SparseCoupling(self.A.T, self._shared)

    def products_for_matrix(self) -> int:
        """The number of products with A that determine its entries, where it is known which of them are not zero."""
        if self._products is None:
            self._products = products_needed(self.A)
        return self._products

    def both(self, x: Array, y: Array) -> tuple[Array, Array]:
        """(A y, A' x)."""
        if self.A.format == "csc":
            Atx, Ay = self.T.both(y, x)
            return Ay, Atx
        if self._fuses:
            from saddlepoint.parts.coupling import sparse_kernels as kernels
            from saddlepoint.parts.coupling.compiled_loops import matching_vectors

            vectors = matching_vectors(self.dtype, (x, self.shape[0]), (y, self.shape[1]))
            if vectors is not None:
                return kernels.both(kernels.Rows.of(self.A), self._windows(), self._short, *vectors)
        return super().both(x, y)

    def through(self, y: Array, s: float = 1.0, e: Array | None = None) -> tuple[Array, Array]:
        """(t, A'(s t + e)) with t = A y."""
        if self._fuses:
            from saddlepoint.parts.coupling import sparse_kernels as kernels
            from saddlepoint.parts.coupling.compiled_loops import matching_vectors

            vectors = matching_vectors(self.dtype, (y, self.shape[1]), (e, self.shape[0]))
            if vectors is not None:
                y, e = vectors
                return kernels.through(kernels.Rows.of(self.A), self._windows(), self._short, y, s, e)
        return super().through(y, s, e)

    def _windows(self) -> Any:
        """The parts of A for all threads, or fewer parts if their columns overlap so much that it would cost time."""
        from saddlepoint.parts.coupling import compiled_loops
        from saddlepoint.parts.coupling import sparse_kernels as kernels

        threads = compiled_loops.threads()
        if threads not in self._parts:
            rows, parts = kernels.Rows.of(self.A), threads
            windows = kernels.windows(rows, parts)
            while parts > 1 and windows.width > self.A.nnz // 4:
                parts //= 2
                windows = kernels.windows(rows, parts)
            self._parts[threads] = windows
        return self._parts[threads]

    def matrix(self) -> Any:
        """A itself."""
        return self.A

    def gram(self) -> Any:
        """A'A, sparse."""
        return self.A.T @ self.A

    @property
    def column_norms(self) -> Array:
        """The Euclidean norms of the columns of A."""
        norms: Array = self._sizes[f"norms of columns, {self.A.format}"]
        return norms

    def rounding_scale(self, y: Array) -> float:
        """From the norms c of the columns of A, or from its largest sums of absolute values in rows and in columns.

        The norm of |A||y| is at most the sum of the c_j |y_j|, and at most sqrt(rows columns) |y| for these two sums.
        """
        size = norm(y)
        by_columns = math.sqrt(self.shape[1]) * norm(self.column_norms * y) + self._lost * size
        return UP * min(by_columns, self._mean_sum * size)

    def row_lengths(self) -> Array:
        """The lengths of the rows, rounded up."""
        return raised_lengths(self.T.column_norms, self.shape[1]) + self._lost  # type: ignore[attr-defined]

    @property
    def _mean_sum(self) -> float:
        """The geometric mean of the largest row sum and the largest column sum of |A|, which bounds the norm of |A|."""
        mean: float = self._sizes["mean_sum"]
        return mean

    @property
    def _sizes(self) -> dict[str, Any]:
        """Sums and norms of rows and columns, computed together: each alone would take a copy of all entries."""
        if "mean_sum" not in self._shared:
            sizes = np.abs(self._entries).astype(np.float64, copy=False)
            rows, columns = (float(self._sums(sizes, axis).max(initial=0.0)) for axis in (1, 0))
            unit = 1.0 if SAFE[0] < self._largest < SAFE[1] or self._largest == 0.0 else power_of_two(self._largest)
            if unit != 1.0:
                sizes *= 1.0 / unit
            sizes *= sizes
            for axis, A in ((0, self.A), (1, self.A.T)):
                self._shared[f"norms of columns, {A.format}"] = unit * np.sqrt(self._sums(sizes, axis))
            self._shared["mean_sum"] = math.sqrt(rows) * math.sqrt(columns)
        return self._shared

    @property
    def _lost(self) -> float:
        """A bound on the length of the entries of a column, or of a row, whose squares underflow in its norm.

        Such an entry is below 1e-150 times the largest one, because squares are taken in units of about that one.
        """
        return 1e-150 * self._largest * math.sqrt(self.A.nnz)

    @property
    def _largest(self) -> float:
        """The largest absolute value of an entry."""
        if "largest" not in self._shared:
            entries = self._entries
            self._shared["largest"] = float(max(entries.max(initial=0.0), -entries.min(initial=0.0)))
        largest: float = self._shared["largest"]
        return largest

    @property
    def _entries(self) -> Array:
        """The stored entries of A."""
        return np.asarray(self.A.data[: self.A.indptr[-1]])

    def _sums(self, entries: Array, axis: int) -> Array:
        """The sums along an axis of the matrix that has these entries in the places of those of A."""
        other = type(self.A)((entries, self.A.indices[: len(entries)], self.A.indptr), shape=self.shape)
        return np.asarray(other.T @ np.ones(self.shape[0]) if axis == 0 else other @ np.ones(self.shape[1]))

    @cached_property
    def sum_length(self) -> int:
        """The largest number of entries of a row."""
        counts = np.diff(self.A.indptr) if self.A.format == "csr" else np.bincount(self.A.indices)
        return int(counts.max(initial=0)) + 1

    def compensated_mul(self, y: Array) -> Sum:
        """A y in about twice the digits, by compiled loops for a large A."""
        if uses_kernels(self, self.A.nnz):
            from saddlepoint.parts.coupling import dot2_kernels

            return dot2_kernels.sparse(self.A, y)
        return sparse_product(self.A, y)

    def norm_ceiling(self) -> float:
        """The Frobenius norm, rounded up."""
        return norm(self.column_norms) * (1.0 + 1e-14 * math.sqrt(self.A.nnz))  # Frobenius; exact for rank one


def _window(A: Any) -> float:
    """The mean number of columns that STRETCH consecutive entries span; infinite without Numba."""
    from saddlepoint.parts.coupling import compiled_loops
    from saddlepoint.parts.coupling import sparse_kernels as kernels

    if not compiled_loops.AVAILABLE or A.dtype not in (np.float32, np.float64):
        return math.inf
    windows = kernels.windows(kernels.Rows.of(A), max(1, A.nnz // STRETCH))
    return windows.width / len(windows.left)


def own_rows(A: Any, name: str) -> csr_array:
    """``A`` in compressed rows, with sorted columns and one entry for each place, in an object of its own.

    SciPy sorts and sums entries in place, in many operations that one would expect to leave a matrix alone. The arrays
    of the caller are shared where they are in order already, and copied otherwise, so that they are never written to.
    A ProblemError says which index lies outside of the shape; products would read and write outside of arrays there.
    """
    rows = in_floats(A).tocsr()
    try:
        own = csr_array((rows.data, rows.indices, rows.indptr), shape=rows.shape)
        own.check_format(full_check=True)
    except (ValueError, IndexError) as error:
        raise ProblemError(f"{name} is a damaged sparse array: {error}; expected indices within its shape") from None
    if not own.has_canonical_format:
        own = own.copy()
        own.sum_duplicates()
    return own
