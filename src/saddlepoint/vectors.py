"""The few vector operations a method may use besides ``+ - *``, and the checks made on arrays at the door."""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from saddlepoint.errors import ProblemError

Array: TypeAlias = npt.NDArray[Any]


def inner(a: Array, b: Array) -> float:
    """<a, b> as a Python float, which leaves the dtype of the arrays it later multiplies alone."""
    return float(a.dot(b))  # half the overhead of a @ b on short vectors


def norm(a: Array) -> float:
    """|a|, the Euclidean norm."""
    return math.sqrt(float(a.dot(a)))


def as_float_array(value: Any, name: str) -> Array:
    """``value`` as a real floating-point array (integers and booleans become float64), or a ProblemError."""
    try:
        array = np.asarray(value)
    except (ValueError, TypeError) as error:
        raise ProblemError(f"{name} is not an array of numbers: {error}") from None
    if array.dtype.kind in "biu":
        return array.astype(np.float64)
    if array.dtype.kind != "f":
        raise ProblemError(f"{name} has dtype {array.dtype}; expected real numbers (float32 or float64)")
    if array.dtype not in (np.float32, np.float64):
        array = array.astype(np.float32 if array.dtype == np.float16 else np.float64)
    return array


def finite(array: Array, name: str) -> Array:
    """``array`` itself, or a ProblemError that points at its first NaN or infinity."""
    if not np.isfinite(array).all():
        where = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        position = where[0] if len(where) == 1 else where
        raise ProblemError(f"{name} has a {array[where]} at index {position}; all entries must be finite")
    return array


def as_vector(value: Any, name: str, size: int | None = None) -> Array:
    """``value`` as a finite one-dimensional array of ``size`` entries, or a ProblemError."""
    vector = as_float_array(value, name)
    if vector.ndim != 1:
        raise ProblemError(f"{name} has shape {vector.shape}; expected a vector (one dimension)")
    if size is not None and vector.shape[0] != size:
        raise ProblemError(f"{name} has {vector.shape[0]} entries; expected {size}")
    return finite(vector, name)


class Rows:
    """The rows of a matrix that grows up to a given number of them.

    ``append`` returns a new object and leaves the old one as it was: both share a buffer, of which the old one does not
    read the row that is new.
    """

    def __init__(self, buffer: Array, count: int = 0) -> None:
        self.buffer, self.count = buffer, count

    @classmethod
    def empty(cls, most: int, like: Array) -> Rows:
        """No rows yet, and ``most`` at most; they will have the length and dtype of ``like``."""
        return cls(np.empty((most, like.shape[0]), like.dtype))

    @property
    def matrix(self) -> Array:
        """The rows, oldest first."""
        return self.buffer[: self.count]

    @property
    def full(self) -> bool:
        """Whether there is no room for another row."""
        return self.count == len(self.buffer)

    def append(self, row: Array) -> Rows:
        """One row more."""
        self.buffer[self.count] = row
        return Rows(self.buffer, self.count + 1)
