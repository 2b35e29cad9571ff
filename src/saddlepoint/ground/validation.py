"""Checks of numbers, counts and arrays that a caller gave; each raises a ProblemError that says what was expected."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any

import numpy as np

from saddlepoint.ground.arrays import Array, all_finite, detached, is_foreign, namespace
from saddlepoint.ground.device_mesh import with_automatic_axes
from saddlepoint.ground.errors import ProblemError
from saddlepoint.ground.recording import is_live, is_recording

SHOWN = 60  # most characters of a value in an error message
LARGEST = 2.0**53  # the number up to which float64 holds all integers


def short_repr(value: Any) -> str:
    """The text of any ``value`` for an error message: one line of at most ``SHOWN`` characters."""
    try:
        text = " ".join(repr(value).split())
    except Exception:  # repr fails for deep nesting, for integers of very many digits, and for objects with faults
        return f"a {type(value).__name__}"
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 3]}..."


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """The end of an error message about an unknown word: a known word that is near it, or nothing if none is."""
    near = get_close_matches(word, list(known), 1)
    return f"; did you mean {near[0]!r}?" if near else ""


def as_number(value: Any, name: str, expected: str = "a number") -> float:
    """``value`` as a float, or a ProblemError. Texts, booleans and complex numbers are refused."""
    if type(value) is float:
        return value
    if is_recording() and is_live(value) and not value.shape:
        return value  # type: ignore[no-any-return]
    value = detached(value)
    try:
        array = value if is_foreign(value) else np.asarray(value)
        real = not array.shape and (is_foreign(value) or array.dtype.kind in "fiuO")
        number = float(value) if real and not isinstance(value, str | bytes | bool) else None
    except Exception:  # __float__ and __array__ of an object may raise anything
        number = None
    if number is None:
        raise ProblemError(f"{name} is {short_repr(value)}; expected {expected}")
    return number


def positive(value: Any, name: str) -> float:
    """``value`` as a finite number above 0, or a ProblemError."""
    refuse_differentiation(value, name)
    number = as_number(value, name, "a positive number")
    if not 0.0 < number < math.inf:
        raise ProblemError(f"{name} is {number}; expected a positive number")
    return number


def refuse_differentiation(value: Any, name: str) -> None:
    """Raise a ProblemError if ``value``, on which no solution depends, is a tensor to be differentiated."""
    if is_recording() and is_live(value):
        raise ProblemError(
            f"{name} is a tensor to be differentiated, but the solution does not depend on it; use a number or a "
            "detached tensor"
        )


def as_count(value: Any, name: str, least: int = 1) -> int:
    """``value`` as an integer that is not below ``least``, or a ProblemError."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or not least <= value <= sys.maxsize:
        raise ProblemError(f"{name} is {short_repr(value)}; expected a whole number from {least} to {sys.maxsize}")
    return int(value)


def as_flag(value: Any, name: str) -> bool:
    """``value`` as True or False, or a ProblemError: texts such as "no" would count as True."""
    if not isinstance(value, bool | np.bool_):
        raise ProblemError(f"{name} is {short_repr(value)}; expected True or False")
    return bool(value)


def as_callback(value: Any, what: str) -> Any:
    """``value`` as a function of ``what`` that a run calls, or None; a ProblemError for anything else."""
    if value is not None and not callable(value):
        raise ProblemError(f"callback is {short_repr(value)}; expected a function of {what}")
    return value


def as_pair(value: Any, name: str) -> tuple[Any, Any]:
    """``value`` as two things, or a ProblemError."""
    try:
        first, second = value
    except (TypeError, ValueError):
        raise ProblemError(f"{name} is {short_repr(value)}; expected a pair") from None
    return first, second


def as_float_array(value: Any, name: str) -> Array:
    """``value`` as a real floating-point array, or a ProblemError.

    Integers and booleans become float64; integers that float64 would round are refused, as answers are proven for the
    numbers that were given.
    """
    if is_foreign(value):
        return _as_foreign(value, name)
    try:
        array = np.asarray(value)
    except Exception as error:  # ragged or endless lists; __array__ of an object may raise anything
        raise ProblemError(f"{name} is not an array of numbers: {' '.join(str(error).split())}") from None
    refuse_masked(value, name)
    if array.dtype.kind in "biu":
        return _as_float64(array, name)
    if array.dtype.kind != "f":
        raise ProblemError(f"{name} {_describe_dtype(array)}; expected real numbers (float32 or float64)")
    if array.dtype not in (np.float32, np.float64):  # half and extended precision, and the other order of bytes
        with np.errstate(over="ignore"):
            array = array.astype(np.float32 if array.dtype.itemsize <= 4 else np.float64)
    return array


def in_floats(matrix: Any) -> Any:
    """A SciPy sparse matrix with entries in floating point.

    SciPy adds entries at one place up in the dtype of the matrix: in one of integers the sum may overflow.
    """
    return matrix.astype(np.float64) if matrix.dtype.kind in "biu" else matrix


def _as_float64(integers: Array, name: str) -> Array:
    """Integers as float64, or a ProblemError that names the first one that would be rounded."""
    array = integers.astype(np.float64)
    if integers.dtype.itemsize >= 8 and array.size:
        for i in np.flatnonzero(np.abs(array) >= LARGEST):
            given, rounded = int(integers.flat[i]), int(array.flat[i])
            if given != rounded:
                raise ProblemError(
                    f"{name} holds the integer {given}, which float64 rounds to {rounded}; expected integers that "
                    "float64 holds, such as all up to 2**53: give floats if the rounded ones are meant"
                )
    return array


def refuse_masked(value: Any, name: str) -> None:
    """Raise a ProblemError if entries of an array are masked: they hold no numbers, and norms would leave them out."""
    if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
        raise ProblemError(f"{name} has masked entries; expected a number in every entry: fill them first")


def _describe_dtype(array: Array) -> str:
    """What is wrong with the dtype; for dtype object, the first entry that is no number or is too large an integer."""
    if array.dtype == object:
        for entry in array.flat:
            if isinstance(entry, bool) or not isinstance(entry, int | float):
                return f"has dtype object and holds {short_repr(entry)}"
            if isinstance(entry, int) and not -(2**63) <= entry < 2**64:
                return f"holds an integer of {entry.bit_length()} bits, which no array can"
    return f"has dtype {array.dtype}"


def _as_foreign(value: Any, name: str) -> Array:
    xp = namespace(value)
    if is_recording():
        return value  # type: ignore[no-any-return]
    if value.dtype not in (xp.float32, xp.float64):
        raise ProblemError(f"{name} has dtype {value.dtype}; expected float32 or float64")
    if not hasattr(xp, "float64") or xp.zeros(1, dtype=xp.float64).dtype != xp.float64:
        raise ProblemError(
            f"{name} is of a library without float64, in which certificates are computed; for JAX call "
            'jax.config.update("jax_enable_x64", True) first'
        )
    array: Array = with_automatic_axes(detached(value))
    return array


def finite(array: Array, name: str) -> Array:
    """``array`` itself, or a ProblemError that points at its first NaN or infinity."""
    if is_recording() and is_foreign(array):
        return array
    if is_foreign(array):
        if not all_finite(array):
            raise ProblemError(f"{name} has a NaN or an infinity; all entries must be finite")
        return array
    # The sum needs no memory, but it can overflow where all entries are finite.
    if not math.isfinite(_sum(array)) and not np.isfinite(array).all():
        where = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        position = where[0] if len(where) == 1 else where
        raise ProblemError(f"{name} has a {array[where]} at index {position}; all entries must be finite")
    return array


def _sum(array: Array) -> float:
    with np.errstate(all="ignore"):
        return float(array.sum())


def as_offset(value: Any, name: str, size: int | None = None) -> float | Array:
    """``value`` as a vector of ``size`` entries, or as a number, which stands for a vector of equal entries."""
    if not isinstance(value, int | float | np.number) or isinstance(value, bool):
        return as_vector(value, name, size)
    offset = as_number(value, name)
    if not math.isfinite(offset):
        raise ProblemError(f"{name} is {offset}; expected a finite number, or a vector")
    return offset


def as_vector(value: Any, name: str, size: int | None = None) -> Array:
    """``value`` as a finite one-dimensional array of ``size`` entries, or a ProblemError."""
    vector = as_float_array(value, name)
    if vector.ndim != 1:
        raise ProblemError(f"{name} has shape {vector.shape}; expected a vector (one dimension)")
    if size is not None and vector.shape[0] != size:
        raise ProblemError(f"{name} has {vector.shape[0]} entries; expected {size}")
    if vector.shape[0] == 0:
        raise ProblemError(f"{name} is empty; expected one entry at least")
    return finite(vector, name)
