r"""Products of matrices with vectors in about twice the digits of float64, with a proven bound on their error.

A product of two numbers is replaced by a pair p + e that equals it (T. J. Dekker, A floating-point technique for
extending the available precision, Numer. Math. 1971). The p of a row are added up in pairs, the pairs of sums in pairs,
and so on; the rounding error of each addition is computed too and added to the e (T. Ogita, S. M. Rump and S. Oishi,
Accurate sum and dot product, SIAM J. Sci. Comput. 2005). All steps are operations on whole arrays, so that every array
library can take them. ``saddlepoint.parts.coupling.dot2_kernels`` has the same arithmetic as compiled loops.

The bound: let w be the sum of the |a_j y_j| of a row, and D the most additions in which a term takes part. The rounding
errors of products and additions are together at most (D + 1) u (1 + u)^D w with u = 2^-53. They are added up by at most
3 D + 3 additions for each of them. So hi + lo differs from the true sum by at most gamma_(3D+3)^2 w and by what is lost
where numbers underflow. Here D grows with the logarithm of the number of terms.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from saddlepoint.ground.arrays import Array, namespace, smallest_of, space_of, to_host
from saddlepoint.ground.device_mesh import blocks_of, is_on_mesh, put, side_of
from saddlepoint.ground.rounding import gamma

COLUMNS = 1024  # columns of a dense matrix that are multiplied at a time, or more where the rows are few
TILE = 1 << 15  # entries that are multiplied at a time, so that they fit the cache
DEVICE_TILE = 1 << 22  # entries that are multiplied at a time on a GPU
SPLIT = 2.0**27 + 1.0  # multiplying by it separates the upper half of the bits of a float64 number
EPS = 2.0**-52  # spacing of the float64 numbers from 1 on
UP = 1.0 + 2.0**-20  # factor that exceeds the relative rounding of the bounds themselves
RANGE = 200  # vectors whose largest number is from 2^-RANGE to 2^RANGE are multiplied as they are; others are scaled
LOST = 2.0**-870  # most that underflow changes in a product of numbers of two scaled vectors, and in its error
ZERO = -(1 << 13)  # exponent of vectors of zeros: nothing is lost in products with them


class Sum(NamedTuple):
    """A vector ``hi + lo``, whose entries differ from the true ones by at most those of ``error``.

    Products and totals have the nearest floating-point vector as ``hi``, so that ``lo`` is smaller than its spacing.
    """

    hi: Array
    lo: Array
    error: Array

    def times_power(self, exponents: Array) -> Sum:
        """The sum times powers of two."""
        if not exponents.any():
            return self
        hi, lo, error = (_times_power(part, exponents) for part in self)
        underflow = np.where(exponents > ZERO // 2, 4.0 * smallest_of(hi), 0.0)
        lost = space_of(hi).cast(underflow)
        return Sum(hi, lo, error + lost)


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
    tile = TILE if space.on_host else DEVICE_TILE
    columns = max(1, min(n, max(COLUMNS, tile // max(1, m))))
    rows = max(1, tile // columns)
    exponent = _exponents(xp.max(abs(y), axis=-1) if n else 0.0)
    vector = Factor(_times_power(y, -exponent[..., None])[..., None, :])
    sums = []
    for i in range(0, m, rows):
        parts = []
        for j in range(0, n, columns):
            block = xp.astype(A[..., i : min(i + rows, m), j : min(j + columns, n)], y.dtype)
            exponents, scaled = _in_range(block)
            p, e = vector.part(slice(j, min(j + columns, n))).times(scaled)
            parts.append(_sums_of_columns(p, e).times_power(exponents + exponent[..., None]))
        sums.append(_joined(parts))
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
    rows = A if A.format == "csr" else A.tocsr()
    starts, counts = rows.indptr, np.diff(rows.indptr)
    exponent = _exponents(abs(y).max(initial=0.0))
    y = _times_power(y, -exponent)
    parts, first = [np.zeros((3, 0))], 0
    while first < len(counts):
        end = max(first + 1, int(np.searchsorted(starts, starts[first] + TILE, side="right")) - 1)
        some, entries = counts[first:end], slice(starts[first], starts[end])
        data = rows.data[entries].astype(y.dtype)
        exponents = _exponents_of_rows(abs(data), some)
        data = _times_power(data, -np.repeat(exponents, some)) if exponents.any() else data
        found = _sums_of_rows(*Factor(y[rows.indices[entries]]).times(data), some)
        parts.append(np.stack(found.times_power(exponents + exponent)))
        first = end
    return Sum(*np.concatenate(parts, axis=1))


class Factor:
    """A vector with the halves of its numbers, by which arrays are multiplied entry by entry without error."""

    def __init__(self, y: Array, parts: tuple[Array, Array] | None = None) -> None:
        self.y = y
        high, low = halves(y) if parts is None else parts
        self.high: Array = high
        self.low: Array = low

    def part(self, where: slice) -> Factor:
        """A part of the vector."""
        return Factor(self.y[..., where], (self.high[..., where], self.low[..., where]))

    def times(self, a: Array) -> tuple[Array, Array]:
        """The pair (p, e) of ``exact_product`` of a and the vector, with few temporary arrays."""
        p = a * self.y
        high, low = halves(a)
        e = high * self.high
        e -= p
        high *= self.low
        e += high
        e += low * self.high
        low *= self.low
        e += low
        return p, e


def _sums_of_columns(p: Array, e: Array) -> Sum:
    """The sums of the rows of an array of pairs p + e."""
    columns, sizes = p.shape[-1], abs(p)
    size = np.einsum("...i->...", sizes) if isinstance(sizes, np.ndarray) else namespace(p).sum(sizes, axis=-1)
    hi = lo = 0.0 * p[..., 0]
    while n := p.shape[-1]:
        half = n // 2
        if n % 2:
            hi, lost = two_sum(hi, p[..., n - 1])
            lo = lo + (lost + e[..., n - 1])
        p, e = _added_pairs(p[..., :half], p[..., half : 2 * half], e[..., :half], e[..., half : 2 * half])
    return _bounded(hi, lo, size, columns, columns)


def _sums_of_rows(p: Array, e: Array, counts: Array) -> Sum:
    """Sums of some pairs p + e: of the first ``counts[0]``, of the next ``counts[1]``, and so on."""
    hi, lo = np.zeros((2, len(counts)))
    size = np.bincount(np.repeat(np.arange(len(counts)), counts), abs(p), len(counts))
    left = counts
    while len(p):
        odd = np.flatnonzero(left & 1)
        if len(odd):
            last = np.cumsum(left)[odd] - 1
            hi[odd], lost = two_sum(hi[odd], p[last])
            lo[odd] += lost + e[last]
            kept = np.ones(len(p), bool)
            kept[last] = False
            p, e = p[kept], e[kept]
        left = left >> 1
        p, e = _added_pairs(p[0::2], p[1::2], e[0::2], e[1::2])
    return _bounded(hi, lo, size, int(counts.max(initial=0)), counts)


def _added_pairs(a: Array, b: Array, e: Array, f: Array) -> tuple[Array, Array]:
    """The sum s of a and b, and that of e, f and the rounding error of s."""
    s = a + b
    t = s - a
    b = b - t
    t -= s
    t += a
    t += b
    t += e
    t += f
    return s, t


def _bounded(hi: Array, lo: Array, size: Array, longest: int, terms: Any) -> Sum:
    """The sum with its bound, where ``size`` is the sum of the absolute values of its terms; hi is hi + lo, rounded.

    In each round a term is added to another one or left over, and terms that are left over are added one by one.
    """
    additions = 2 * longest.bit_length() + 2
    hi, lo = two_sum(hi, lo)
    return Sum(hi, lo, UP * gamma(3 * additions + 3, EPS) ** 2 * size + terms * LOST)


def _joined(parts: list[Sum]) -> Sum:
    """The sum of some sums."""
    if len(parts) == 1:
        return parts[0]
    total = Accumulator(0.0 * parts[0].hi)
    for part in parts:
        total.add_sum(part)
    return total.total()


def _exponents(largest: Any) -> Array:
    """Exponents e such that 2^-e brings vectors with these largest numbers into RANGE; NumPy integers."""
    largest = np.asarray(to_host(largest), np.float64)
    exponents = np.frexp(np.where(largest < math.inf, largest, 1.0))[1]
    return np.where(largest == 0.0, ZERO, np.where(abs(exponents) > RANGE, exponents, 0))


def _in_range(block: Array) -> tuple[Array, Array]:
    """Exponents for the rows of a matrix, and the rows times these powers of 1/2; most matrices need no scaling."""
    sizes = abs(block)
    if isinstance(sizes, np.ndarray) and sizes.size and 2.0**-RANGE < sizes.min() <= sizes.max() < 2.0**RANGE:
        return np.zeros(block.shape[:-1], dtype=int), block
    exponents = _exponents(namespace(block).max(sizes, axis=-1))
    return exponents, _times_power(block, -exponents[..., None])


def _exponents_of_rows(sizes: Array, counts: Array) -> Array:
    """Such exponents for the rows of a sparse matrix, of which the absolute values and their counts are given."""
    largest = np.ones(len(counts))
    if not (sizes.max(initial=1.0) < 2.0**RANGE and sizes.min(initial=1.0) > 2.0**-RANGE):
        filled = counts > 0
        largest[filled] = np.maximum.reduceat(sizes, (np.cumsum(counts) - counts)[filled])
    return _exponents(largest)


def _times_power(a: Array, exponents: Array) -> Array:
    """The array times powers of two, in two steps because 2^-e may be too large for float64; zeros stay zeros."""
    if not exponents.any():
        return a
    for half in (exponents // 2, exponents - exponents // 2):
        a = a * space_of(a).cast(np.ldexp(1.0, np.minimum(half, 1000)))
    return a
