"""Functions that are defined in the domain of their simple term alone, and are called nowhere else."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from saddlepoint.ground.arrays import Array
from saddlepoint.ground.errors import ProblemError
from saddlepoint.parts.functions.smooth import Smooth
from saddlepoint.parts.simple.base import Simple


def guarded(f: Smooth, name: str) -> Smooth:
    """The function whose gradient and value raise an exception outside the domain of the simple term."""
    if f.simple is None:
        raise ProblemError(
            f"{name} has domain=True, which says that its gradient is defined in the domain of its simple term alone, "
            f"but it has no simple term; add one, such as {name} + Box(0, 1)"
        )
    if math.isnan(f.L):
        raise ProblemError(f"L of {name} is unknown, and cannot be estimated with domain=True; expected L")
    value = None if f.value is None else Guarded(f.value, f.simple)
    return f.replace(grad=Guarded(f.grad, f.simple), value=value, trusted=f.trusted, **f.arithmetic)


class Guarded:
    """A function that is called in the domain of a simple term alone."""

    def __init__(self, function: Callable[[Array], Any], term: Simple) -> None:
        self.function, self.term = function, term

    def __call__(self, x: Array) -> Any:
        """The answer of the function; ArithmeticError outside the domain."""
        if not self.term.is_inside(x):
            raise ArithmeticError("the point is outside the domain, where the function is not defined")
        return self.function(x if self.term.outside(x) == 0.0 else self.term.project(x))  # without rounding errors
