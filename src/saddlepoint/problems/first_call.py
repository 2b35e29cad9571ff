"""Checks of the first gradient of a function, at the point where a run starts, before anything else is computed."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from saddlepoint.ground.arrays import Array, Space, all_finite, common_space, copied, is_array, namespace
from saddlepoint.ground.errors import ProblemError
from saddlepoint.ground.validation import refuse_masked, short_repr
from saddlepoint.parts.functions.probes import changed_argument, differ
from saddlepoint.parts.functions.smooth import Smooth, Value


def check_gradient(name: str, function: Smooth, point: Array, space: Space) -> float:
    """Call the gradient once; raise ProblemError if its answer is not as expected or if it changes its argument.

    Args:
        name: "g" or "h".
        function: the function.
        point: where the gradient is taken; the function is given a copy.
        space: library, dtype and device of the vectors of this variable.

    Returns:
        The seconds that the call took.
    """
    given = copied(point)
    began = time.perf_counter()
    gradient = function.grad(given)
    seconds = time.perf_counter() - began
    check_shape(name, gradient, point)
    if differ(given, point):
        raise changed_argument(name)
    common_space({"the problem": space, f"the gradient of {name}": gradient})
    if not namespace(gradient).isdtype(gradient.dtype, "real floating"):
        raise ProblemError(f"the gradient of {name} has dtype {gradient.dtype}; expected float32 or float64")
    if not all_finite(gradient):
        raise ProblemError(f"the gradient of {name} is not finite at the start; start elsewhere or correct it")
    return seconds


def check_shape(name: str, gradient: Any, point: Array) -> None:
    """Raise ProblemError unless the gradient is an array of the shape of the point."""
    if type(gradient) is not np.ndarray:
        refuse_masked(gradient, f"the gradient of {name}")
    known = type(gradient) is np.ndarray or is_array(gradient)
    if not known or gradient.shape != point.shape:
        raise ProblemError(
            f"the gradient of {name} returned {_describe(gradient)} for a point of shape {tuple(point.shape)}; "
            "expected an array of the same shape"
        )


def check_value(name: str, value: Value, point: Array) -> None:
    """Raise ProblemError unless the value at the point is a number or, outside the domain, an exception."""
    try:
        given = value(copied(point))
    except Exception:
        return
    try:
        float(given)
    except (TypeError, ValueError) as error:
        raise ProblemError(f"value of {name} returned {short_repr(given)}; expected a number") from error


def _describe(value: Any) -> str:
    return f"an array of shape {tuple(value.shape)}" if is_array(value) else f"a {type(value).__name__}"
