"""Matrices to which rows are appended one by one, for methods that store past iterates."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg.blas import dgemv, sgemv

from saddlepoint.ground.arrays import FLOAT64, Array, namespace, rows_like, space_of
from saddlepoint.ground.jax_program import jitted

GEMV = {np.dtype(np.float64): dgemv, np.dtype(np.float32): sgemv}  # products that are added to a vector in its place


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
    def stored(self) -> Array:
        """The rows, oldest first; with JAX all of the buffer, as programs are compiled for each number of rows."""
        return self.buffer if hasattr(self.buffer, "at") else self.matrix

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
            return Rows(jitted(_moved_up)(self.buffer, first), count)
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

    def multiple(self, factor: float, a: Array) -> Array:
        """The vector factor a, a row long; with NumPy in the place of the next row, which saves memory for a while."""
        if not isinstance(self.buffer, np.ndarray) or self.full or a.dtype != self.buffer.dtype:
            return factor * a
        place: Array = self.buffer[self.count]
        return np.multiply(factor, a, out=place)

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
            return Rows(jitted(_with_row)(self.buffer, self.count, row), self.count + 1)
        self.buffer[self.count, :] = row
        return Rows(self.buffer, self.count + 1)


def _moved_up(buffer: Any, places: Any) -> Any:
    return namespace(buffer).roll(buffer, -places, axis=0)


def _with_row(buffer: Any, place: Any, row: Any) -> Any:
    return buffer.at[place, :].set(row)
