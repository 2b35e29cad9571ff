r"""Products of matrices with vectors in more digits than float64 has, with a proven bound on their error.

The entries of the matrix and of the vector are split into slices of so few bits that products of two slices, and sums
of as many of them as a row has terms, are floating-point numbers. An ordinary matrix product of slices is then exact,
in any order of summation and in every array library (K. Ozaki, T. Ogita, S. Oishi and S. M. Rump, Error-free
transformations of matrix multiplication, Numerical Algorithms 2012). The exact products are added up as pairs hi + lo
(T. Ogita, S. M. Rump and S. Oishi, Accurate sum and dot product, SIAM J. Sci. Comput. 2005).

With entries scaled to at most 1 and K slices of b bits, what is left out of a term is at most (K+1) 2^(-K b). Adding up
T numbers v as pairs errs by at most gamma_T^2 times the sum of the |v|. Both are part of the bound.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from saddlepoint.ground.arrays import Array, namespace, smallest_of, space_of, to_host
from saddlepoint.ground.device_mesh import blocks_of, is_on_mesh, put, side_of
from saddlepoint.ground.rounding import gamma

TERMS = 1024  # most terms of one sum of products of slices in a dense matrix; longer rows are added up in parts
TILE = 1 << 17  # entries of a dense matrix that are split at a time, so that their slices fit the cache
DEVICE_TILE = 1 << 24  # entries that are split at a time on a GPU
REST = 2.0**-54  # most that may be left out of a sum, in units of the largest product of two entries
SPLIT = 2.0**27 + 1.0  # multiplying by it separates the upper half of the bits of a float64 number
EPS = 2.0**-52  # spacing of the float64 numbers from 1 on
UP = 1.0 + 2.0**-20  # factor that exceeds the relative rounding of the bounds themselves
EXPONENT = 1000  # largest exponent of the powers of two by which numbers are scaled


class Sum(NamedTuple):
    """A vector ``hi + lo``, whose entries differ from the true ones by at most those of ``error``."""

    hi: Array
    lo: Array
    error: Array


def two_sum(a: Array, b: Array) -> tuple[Array, Array]:
    """The pair (s, e) with s = fl(a + b) and s + e = a + b exactly, by Knuth."""
    s = a + b
    t = s - a
    return s, (a - (s - t)) + (b - t)


def halves(a: Any) -> tuple[Any, Any]:
    """Numbers with at most 26 bits whose sum is a (Veltkamp), unless they overflow; their products are exact."""
    scaled = SPLIT * a
    high = scaled - (scaled - a)
    return high, a - high


def exact_product(a: Any, b: Any) -> tuple[Any, Any]:
    """The pair (p, e) with p = fl(a b) and p + e = a b exactly, unless they overflow or underflow (Dekker, Veltkamp).

    Example:
        >>> import numpy as np
        >>> from saddlepoint.ground.compensated import exact_product
        >>> p, e = exact_product(np.array([1.0 + 2.0**-30]), np.array([1.0 + 2.0**-30]))
        >>> float(p[0]) == 1.0 + 2.0**-29, float(e[0]) == 2.0**-60
        (True, True)
    """
    p = a * b
    (a_high, a_low), (b_high, b_low) = halves(a), halves(b)
    return p, ((a_high * b_high - p) + a_high * b_low + a_low * b_high) + a_low * b_low


def added(a: Array, b: Array) -> Array:
    """The sum of two sums, each as an array with the rows hi, lo and error."""
    s, e = two_sum(a[0], b[0])
    lo = (a[1] + b[1]) + e
    return np.stack([s, lo, UP * (a[2] + b[2] + EPS * (abs(a[1]) + abs(b[1]) + abs(e)))])


class Accumulator:
    """Adds up vectors as pairs hi + lo and bounds the error of the sum."""

    def __init__(self, zero: Array) -> None:
        self.hi, self.lo, self.size, self.error = zero, zero, zero, zero
        self.count = 0

    def add(self, vector: Array, error: Array | float = 0.0) -> None:
        """Add a vector, which may be wrong by ``error``."""
        self.hi, lost = two_sum(self.hi, vector)
        self.lo = self.lo + lost
        self.size = self.size + abs(vector)
        self.error = self.error + error
        self.count += 1

    def add_sum(self, part: Sum) -> None:
        """Add a vector that is itself a sum."""
        self.add(part.hi, part.error)
        self.add(part.lo)

    def total(self) -> Sum:
        """The sum of all vectors that were added."""
        hi, lo = two_sum(self.hi, self.lo)
        return Sum(hi, lo, UP * (self.error + gamma(self.count + 2, EPS) ** 2 * self.size))


def dense_product(A: Array, y: Array) -> Sum:
    """A y for a matrix of float32 or float64, of any library, and a vector of float64.

    A may have further axes in front, for many matrices and as many vectors. Arrays of other libraries on the CPU, and
    vectors on a mesh of devices, are multiplied by NumPy, because JAX would compile for seconds.
    """
    if not isinstance(y, np.ndarray) and (space_of(y).on_host or is_on_mesh(y)):
        return Sum(*map(space_of(y).cast, dense_product(to_host(A), to_host(y))))
    xp, space = namespace(A), space_of(y)
    *_, m, n = A.shape
    columns = max(1, min(n, TERMS))
    rows = max(1, (TILE if space.on_host else DEVICE_TILE) // columns)
    down, up = _powers(y)
    slices = Slices(columns)
    parts = slices.of(y * down)
    sums = []
    for i in range(0, m, rows):
        total = Accumulator(0.0 * _row_like(A, y, i, rows))
        for j in range(0, n, columns):
            tile = xp.astype(A[..., i : min(i + rows, m), j : min(j + columns, n)], y.dtype)
            tile_down, tile_up = _powers(tile)
            vectors = xp.stack([part[..., j : min(j + columns, n)] for part in parts], axis=-1)
            slices.add_products(total, tile * tile_down, vectors, up * tile_up[..., 0], _matmul)
        sums.append(total.total())
    if len(sums) == 1:
        return sums[0]
    return Sum(*(xp.concat(list(parts), axis=-1) for parts in zip(*sums, strict=True)))


def mesh_product(A: Any, y: Array, transposed: bool = False) -> Sum:
    """A y or A'y for an array of JAX that is split over a mesh: its blocks are multiplied by NumPy, one by one."""
    side = 1 if transposed else 0
    host, total = to_host(y), np.zeros((3, A.shape[side]))
    for where, block in blocks_of(A):
        matrix = to_host(block).T if transposed else to_host(block)
        found, of_y = where[side], where[1 - side]
        total[:, found] = added(total[:, found], np.stack(dense_product(matrix, host[of_y])))
    return Sum(*(put(part, side_of(A, side)) for part in total))


def sparse_product(A: Any, y: Array) -> Sum:
    """A y for a SciPy sparse array in compressed rows or columns, and a NumPy vector of float64."""
    down, up = _powers(y)
    counts = np.diff(A.indptr) if A.format == "csr" else np.bincount(A.indices, minlength=A.shape[0])
    slices = Slices(int(counts.max(initial=1)))
    data = A.data.astype(y.dtype)
    data_down, data_up = _powers(data)
    vectors = np.stack(slices.of(y * down), axis=-1)
    total = Accumulator(np.zeros(A.shape[0]))

    def multiply(entries: Array, vectors: Array) -> Array:
        return np.asarray(type(A)((entries, A.indices, A.indptr), shape=A.shape) @ vectors)

    slices.add_products(total, data * data_down, vectors, up * data_up, multiply)
    found = total.total()
    return found._replace(error=np.where(counts > 0, found.error, 0.0))


class Slices:
    """Numbers of at most 1 as sums of slices, such that sums of ``terms`` products of two slices are exact."""

    def __init__(self, terms: int) -> None:
        self.terms = max(terms, 1)
        self.bits = (55 - math.ceil(math.log2(self.terms))) // 2  # terms 2^(2 bits - 2) <= 2^53
        self.count = 1
        while self.rest > REST:
            self.count += 1

    @property
    def rest(self) -> float:
        """A bound on what is left out of a sum."""
        return self.terms * (self.count + 1) * 2.0 ** (-self.count * self.bits)

    def sigma(self, k: int) -> float:
        """Adding and subtracting this number rounds numbers up to 2^(-k bits) to multiples of 2^(1 - (k+1) bits)."""
        return float(1.5 * 2.0 ** (53 - (k + 1) * self.bits))

    def of(self, y: Array) -> list[Array]:
        """The slices of a vector."""
        pieces = []
        for k in range(self.count):
            piece = (y + self.sigma(k)) - self.sigma(k)
            pieces.append(piece)
            y = y - piece
        return pieces

    def add_products(
        self, total: Accumulator, rest: Array, vectors: Array, up: Any, multiply: Callable[[Array, Array], Array]
    ) -> None:
        """Add ``up`` times the product of a matrix with a vector, whose slices are the columns of ``vectors``.

        ``rest`` holds the entries of the matrix; ``multiply`` multiplies a matrix of such entries with columns. The
        array ``rest`` is changed where the library allows it.
        """
        buffer = np.empty_like(rest) if isinstance(rest, np.ndarray) else None
        for k in range(self.count):
            sigma = self.sigma(k)
            piece = rest + sigma if buffer is None else np.add(rest, sigma, out=buffer)
            piece -= sigma
            rest -= piece
            products = multiply(piece, vectors[..., : self.count - k])
            for j in range(self.count - k):
                total.add(products[..., j] * up)
        lost = smallest_of(rest) * self.count * (self.count + 1)  # by underflow, where a product is multiplied by up
        total.error = total.error + (self.rest * up + lost)


def _matmul(A: Array, vectors: Array) -> Array:
    product: Array = A @ vectors
    return product


def _row_like(A: Array, y: Array, first: int, rows: int) -> Array:
    """A vector with an entry for each of some rows of A, in the dtype of y."""
    column: Array = namespace(A).astype(A[..., first : min(first + rows, A.shape[-2]), 0], y.dtype)
    return column


def _powers(a: Array) -> tuple[Array, Array]:
    """Powers of two that scale the rows of an array to at most 1, and their reciprocals, both with a last axis of 1."""
    xp, space = namespace(a), space_of(a)
    largest = to_host(xp.max(xp.abs(a), axis=-1, keepdims=True)) if a.shape[-1] else np.zeros((*a.shape[:-1], 1))
    exponents = np.clip(np.where(largest > 0.0, np.frexp(largest)[1], 0), -EXPONENT, EXPONENT)
    down, up = np.ldexp(1.0, -exponents), np.ldexp(1.0, exponents)
    # Numbers beyond 2^EXPONENT would not be scaled to 1; nothing is proven about them.
    up = np.where(largest < 2.0**EXPONENT, up, math.inf)
    return space.cast(down), space.cast(up)
