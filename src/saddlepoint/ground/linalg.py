"""Inner products, norms and growing matrices: the operations on vectors that methods need besides ``+ - *``."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np
from scipy.linalg.blas import dgemv, sgemv

from saddlepoint.ground.arrays import FLOAT64, Array, namespace, numbers_on_host, rows_like, space_of

GEMV = {np.dtype(np.float64): dgemv, np.dtype(np.float32): sgemv}  # products that are added to a vector in its place


def inner(a: Array, b: Array) -> float:
    """<a, b> as a Python float, so that arrays which are multiplied by it keep their dtype."""
    if isinstance(a, np.ndarray):
        return float(a.dot(b))  # half the overhead of a @ b on short vectors
    return float(a @ b)


def norm(a: Array) -> float:
    """|a|, the Euclidean norm; it is right even if its square overflows or underflows."""
    square = float(a.dot(a)) if type(a) is np.ndarray else inner(a, a)
    least = 1e-280 if getattr(a, "dtype", None) is FLOAT64 else 1e-30  # smaller squares may have lost digits
    return math.sqrt(square) if least < square < math.inf else _careful_norm(a, square)


def _careful_norm(a: Array, square: float) -> float:
    space = space_of(a)
    if 1e-280 < square < math.inf and space.eps < 1e-15:
        return math.sqrt(square)
    largest = max_abs(a) if a.shape[0] else 0.0
    if largest == 0.0 or not math.isfinite(largest):
        return largest
    unit = power_of_two(largest)
    scaled = space.wide.cast(a) * (1.0 / unit)
    return unit * math.sqrt(inner(scaled, scaled))


def host_norm(a: Any) -> float:
    """|a| of a tame NumPy vector without BLAS, whose threads take milliseconds to wake up beside work for a GPU."""
    return math.sqrt(float(np.sum(a * a)))


def asked_together(a: Array) -> bool:
    """Whether numbers that are computed from this array should be asked for together.

    That is so for libraries whose arrays may be on a GPU: there, every number that the host reads is a wait.
    """
    return not isinstance(a, np.ndarray) and namespace(a).__name__ not in ("sharded", "stacked")


def inners(vectors: Sequence[Array]) -> Array:
    """The inner products of some vectors of one length with one another, in float64, as a NumPy matrix.

    They are asked for together (see ``asked_together``).

    Example:
        >>> import numpy as np
        >>> from saddlepoint.ground.linalg import inners
        >>> inners([np.array([1.0, 2.0]), np.array([3.0, 4.0])])
        array([[ 5., 11.],
               [11., 25.]])
    """
    first = vectors[0]
    if isinstance(first, np.ndarray):
        V = np.stack(vectors).astype(FLOAT64)
        return np.asarray(V @ V.T)
    if not asked_together(first):
        return np.array([[inner(a, b) for b in vectors] for a in vectors])
    xp = namespace(first)
    compute = jax_program(_gram, 0) if xp.__name__.startswith("jax") else _gram
    return numbers_on_host(compute(xp, tuple(vectors)))


def lengths(vectors: Sequence[Array]) -> list[float]:
    """The norms of some vectors, which may differ in length; they are asked for together (see ``asked_together``)."""
    if not asked_together(vectors[0]):
        return list(map(norm, vectors))
    xp = namespace(vectors[0])
    alike: dict[Any, list[int]] = {}  # the places of the vectors of one size and dtype
    for k, vector in enumerate(vectors):
        alike.setdefault((vector.shape[0], vector.dtype), []).append(k)
    compute = jax_program(_lengths, 0) if xp.__name__.startswith("jax") else _lengths
    found = numbers_on_host(compute(xp, tuple(tuple(vectors[k] for k in places) for places in alike.values())))
    known = dict(zip((k for places in alike.values() for k in places), found.tolist(), strict=True))
    return [
        known[k] if 1e-140 < known[k] < math.inf else norm(vector)  # of others, digits or all may be lost
        for k, vector in enumerate(vectors)
    ]


def _gram(xp: Any, vectors: tuple[Array, ...]) -> Array:
    V = _wide(xp, xp.stack(vectors))
    product: Array = V @ V.T
    return product


def _lengths(xp: Any, groups: tuple[tuple[Array, ...], ...]) -> Array:
    """The norms, in float64, of some groups of vectors; those of a group have one size and dtype."""
    found = [xp.linalg.vector_norm(_wide(xp, xp.stack(vectors)), axis=1) for vectors in groups]
    joined: Array = found[0] if len(found) == 1 else xp.concat(found)
    return joined


def _wide(xp: Any, array: Array) -> Array:
    wide: Array = array if array.dtype == xp.float64 else xp.astype(array, xp.float64)
    return wide


@cache
def jax_program(function: Callable[..., Any], *static: int) -> Callable[..., Any]:
    """The function as one program of JAX: each operation by itself would take longer to start than to compute.

    Arguments at the places ``static`` are compiled in.
    """
    program: Callable[..., Any] = import_module("jax").jit(function, static_argnums=static)
    return program


def norms(a: Array, axis: int) -> Array:
    """The Euclidean norms of the vectors along an axis; they are right even if their squares overflow or underflow."""
    xp = namespace(a)
    info = xp.finfo(a.dtype)
    least = float(info.smallest_normal)
    largest = xp.max(xp.abs(a), axis=axis, keepdims=True)
    unit = xp.where((largest >= least) & (largest <= float(info.max)), largest, xp.full_like(largest, least))
    with np.errstate(over="ignore", invalid="ignore"):  # entries may be infinite or NaN
        scaled = a / unit
        lengths: Array = xp.squeeze(unit, axis=axis) * xp.sqrt(xp.sum(scaled * scaled, axis=axis))
    return lengths


def matrix_norms(A: Array, axis: int) -> Array:
    """The Euclidean norms of the columns (axis 0) or rows (axis 1) of a matrix of any scale.

    No copy of the matrix is made unless the squares of its largest entries could overflow or underflow. Norms far below
    the largest one may be returned as zero.
    """
    xp = namespace(A)
    largest = max(abs(float(xp.max(A))), abs(float(xp.min(A))))
    limit = math.sqrt(float(xp.finfo(A.dtype).max)) ** 0.5
    if 1.0 / limit < largest < limit or largest == 0.0 or not math.isfinite(largest):
        plain: Array = xp.linalg.vector_norm(A, axis=axis)
        return plain
    return norms(A, axis)


def squared_together(*vectors: Array) -> None:
    """Announce that all norms of these vectors are needed: sharded ones compute them in one communication round."""
    square = getattr(vectors[0], "squared_together", None)
    if square is not None:
        square(vectors)


def max_abs(a: Array) -> float:
    """The largest absolute value among the entries; NaN if an entry is NaN."""
    if isinstance(a, np.ndarray):
        return float(np.maximum.reduce(np.abs(a), axis=None))
    xp = namespace(a)
    return float(xp.max(xp.abs(a)))


def power_of_two(size: float, most: int = 1000) -> float:
    """The power of two just above a positive ``size``, limited to the range from 2^-most to 2^most."""
    return 2.0 ** min(max(math.frexp(size)[1], -most), most)


class Rows:
    """A matrix to which rows are appended one by one, up to a given number.

    ``append`` returns a new object and leaves the old one unchanged. Both share a buffer, in which the old object does
    not read the new row.
    """

    def __init__(self, buffer: Array, count: int = 0) -> None:
        self.buffer, self.count = buffer, count

    @classmethod
    def empty(cls, most: int, like: Array) -> Rows:
        """A matrix without rows that can take ``most`` of them, with the length, dtype and library of ``like``."""
        return cls(rows_like(like, most))

    def emptied(self, like: Array) -> Rows:
        """A matrix without rows that can take as many; with NumPy in the same buffer, so these rows are lost."""
        return Rows(self.buffer) if isinstance(self.buffer, np.ndarray) else Rows.empty(self.most, like)

    @property
    def matrix(self) -> Array:
        """The rows, oldest first."""
        return self.buffer[: self.count, :]

    @property
    def most(self) -> int:
        """The number of rows for which there is room."""
        return int(self.buffer.shape[0])

    @property
    def full(self) -> bool:
        """Whether there is no room for another row."""
        return self.count == self.most

    def combined(self, weights: Array, like: Array) -> Array:
        """The sum of the rows with these weights, a NumPy array; ``like`` is a vector of the library of the rows.

        JAX would compile a program for each number of rows, so there the weights are filled up with zeros.
        """
        if type(self.buffer) is np.ndarray and self.buffer.dtype is FLOAT64 and weights.dtype is FLOAT64:
            return np.asarray(weights @ self.buffer[: self.count])
        jax = hasattr(self.buffer, "at")
        filled = np.concatenate([weights, np.zeros(self.most - self.count)]) if jax else weights
        total: Array = space_of(like).cast(filled) @ (self.buffer if jax else self.matrix)
        return total

    def latest(self, count: int, like: Array) -> Rows:
        """The last ``count`` rows in a buffer of their own; ``like`` is a vector of the library of the rows."""
        first = self.count - count
        if hasattr(self.buffer, "at"):  # arrays of JAX are immutable
            return Rows(self.buffer.at[:count, :].set(self.buffer[first : self.count, :]), count)
        if not hasattr(self.buffer, "dtype"):  # rows over shards
            stacked: Any = self.buffer[first : self.count, :]
            return Rows(stacked.buffer(self.most), count)
        rows = Rows.empty(self.most, like)
        rows.buffer[:count, :] = self.buffer[first : self.count, :]
        return Rows(rows.buffer, count)

    def subtracted(self, weights: Array, a: Array) -> Array:
        """The vector a minus the sum of the rows with these weights; a is overwritten where its library allows that."""
        if not self.count:
            return a
        if isinstance(self.buffer, np.ndarray) and a.dtype == self.buffer.dtype and a.dtype in GEMV:
            gemv = GEMV[a.dtype]
            done: Array = gemv(-1.0, self.matrix.T, weights, beta=1.0, y=a, overwrite_y=1)  # without another vector
            return done
        a -= self.combined(weights, a)
        return a

    def start_row(self, new: Array, old: Array) -> Array:
        """The difference of two vectors to compute the next row in; with NumPy it is where ``append`` leaves it."""
        if not isinstance(self.buffer, np.ndarray):
            return new - old
        started: Array = self.buffer[self.count]
        return np.subtract(new, old, out=started)

    def append(self, row: Array) -> Rows:
        """The matrix with one more row."""
        if getattr(row, "base", None) is self.buffer:  # it was computed in its place
            return Rows(self.buffer, self.count + 1)
        if hasattr(self.buffer, "at"):  # arrays of JAX are immutable
            return Rows(self.buffer.at[self.count, :].set(row), self.count + 1)
        self.buffer[self.count, :] = row
        return Rows(self.buffer, self.count + 1)
