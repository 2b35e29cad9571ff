"""What the caller gives to a function, checked: callables, mu, L, weights and dtypes; an unknown constant is NaN."""

from __future__ import annotations

import math
from contextlib import suppress
from typing import Any

import numpy as np

from saddlepoint.ground.errors import ProblemError
from saddlepoint.ground.recording import is_recording
from saddlepoint.ground.validation import as_number, short_repr

UNKNOWN = ", or None if it is unknown"  # end of the sentence in an error about mu or L


def known(constant: float) -> float | None:
    """The constant in the form that ``Smooth`` takes: None if it is unknown (NaN)."""
    return None if isinstance(constant, float) and math.isnan(constant) else constant


def refuse_other_than_functions(name: str, **given: Any) -> None:
    """Raise a ProblemError if an argument of the class ``name`` is there, but no function."""
    for what, function in given.items():
        if function is not None and not callable(function):
            raise ProblemError(f"{what} of {name} is {short_repr(function)}; expected a function")


def as_convexity(value: Any, L: float, name: str) -> float:
    """The constant mu; a negative one is accepted if it is small beside L."""
    number = as_number(value, name, f"a number{UNKNOWN}")
    if is_recording():
        return number
    return number if -1e-3 * L <= number < 0.0 else as_nonnegative(number, name, UNKNOWN)


def as_nonnegative(value: Any, name: str, otherwise: str = "") -> float:
    """The value as a finite number that is not negative; the error ends with ``otherwise``."""
    number = as_number(value, name, f"a number{otherwise}")
    if is_recording():
        return number
    if not math.isfinite(number) or number < 0.0:
        raise ProblemError(f"{name} is {number:.6g}; expected a finite number that is not negative{otherwise}")
    return number


def as_lipschitz(value: Any, name: str) -> Any:
    """A constant that is not negative, or a function that takes its place; None if nothing is known."""
    return value if value is None or callable(value) else as_nonnegative(value, name, UNKNOWN)


def as_dtype(dtype: Any, name: str) -> np.dtype[Any]:
    """The dtype of the data of a function, or a ProblemError."""
    with suppress(TypeError, ValueError):
        known: np.dtype[Any] = np.dtype(dtype)
        if known in (np.float32, np.float64):
            return known
    raise ProblemError(f"dtype of {name} is {short_repr(dtype)}; expected float32 or float64")
