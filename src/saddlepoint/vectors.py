"""The checks made on arrays at the door, and the vector operations that a method may use besides ``+ - *``."""

from __future__ import annotations

from typing import Any

import numpy as np

from saddlepoint.arrays import Array, all_finite, inner, is_foreign, namespace, norm, space_of
from saddlepoint.errors import ProblemError

__all__ = ["Array", "Rows", "as_float_array", "as_vector", "finite", "inner", "norm"]


def as_float_array(value: Any, name: str) -> Array:
    """``value`` as a real floating-point array (integers and booleans become float64), or a ProblemError."""
    if is_foreign(value):
        return _as_foreign(value, name)
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


def _as_foreign(value: Any, name: str) -> Array:
    xp = namespace(value)
    if value.dtype not in (xp.float32, xp.float64):
        raise ProblemError(f"{name} has dtype {value.dtype}; expected float32 or float64")
    if not hasattr(xp, "float64") or xp.zeros(1, dtype=xp.float64).dtype != xp.float64:
        raise ProblemError(
            f"{name} is of a library without float64, in which certificates are taken; for JAX call "
            'jax.config.update("jax_enable_x64", True) first'
        )
    array: Array = value
    return array


def finite(array: Array, name: str) -> Array:
    """``array`` itself, or a ProblemError that points at its first NaN or infinity."""
    if is_foreign(array):
        if not all_finite(array):
            raise ProblemError(f"{name} has a NaN or an infinity; all entries must be finite")
    elif not np.isfinite(array).all():
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
        """No rows yet, and ``most`` at most; they will have the length, dtype and library of ``like``."""
        space = space_of(like)
        where = {} if space.device is None else {"device": space.device}
        return cls(space.xp.zeros((most, like.shape[0]), dtype=space.dtype, **where))

    @property
    def matrix(self) -> Array:
        """The rows, oldest first."""
        return self.buffer[: self.count, :]

    @property
    def full(self) -> bool:
        """Whether there is no room for another row."""
        return bool(self.count == self.buffer.shape[0])

    def append(self, row: Array) -> Rows:
        """One row more."""
        if hasattr(self.buffer, "at"):  # JAX's arrays do not change
            return Rows(self.buffer.at[self.count, :].set(row), self.count + 1)
        self.buffer[self.count, :] = row
        return Rows(self.buffer, self.count + 1)
