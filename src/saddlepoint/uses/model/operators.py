"""Operators of Python and functions of NumPy that expressions refuse, with sentences about what to write instead."""

from __future__ import annotations

from typing import Any

import numpy as np

from saddlepoint.ground.errors import ProblemError
from saddlepoint.ground.validation import short_repr
from saddlepoint.uses.model.terms import inside

INSTEAD = "write D @ x for a product, x.sum() for a sum, and the functions of sp.model for others"
OPERATIONS: dict[Any, Any] = {  # of an array and an expression, in this order
    np.add: lambda array, e: e + array,
    np.subtract: lambda array, e: -e + array,
    np.multiply: lambda array, e: e * array,
    np.matmul: lambda array, e: e.__rmatmul__(array),
    np.less_equal: lambda array, e: e >= array,
    np.greater_equal: lambda array, e: e <= array,
    np.equal: lambda array, e: e == array,
}


class AffineOperators:
    """What affine expressions refuse, and what they do beside arrays of NumPy."""

    __pandas_priority__ = 5000  # makes a Series of pandas leave sums and products to the expression
    text: str

    def __array_ufunc__(self, ufunc: Any, kind: str, *inputs: Any, **options: Any) -> Any:
        """NumPy calls this for operations of arrays with expressions, and for its functions of expressions."""
        if ufunc in OPERATIONS and kind == "__call__" and isinstance(inputs[1], AffineOperators) and not options:
            return OPERATIONS[ufunc](*inputs)
        raise ProblemError(f"numpy.{ufunc.__name__} was given {self.text}, an expression; {INSTEAD}")

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        raise ProblemError(f"numpy.{function.__name__} was given {self.text}, an expression; {INSTEAD}")

    def __iter__(self) -> Any:
        raise ProblemError(f"{self.text} is no sequence; write {inside(self.text)}[i] for a part, and .sum() for a sum")

    def __lt__(self, other: Any) -> Any:
        raise ProblemError(
            f"{self.text} was compared by < or >; expected <=, >= or ==, because with a strict inequality there may be "
            "no minimum. Python's max and min compare as well: write max_entry(x), or positive_part(x) for the sum of "
            "max(x_i, 0)"
        )

    __gt__ = __lt__

    def __abs__(self) -> Any:
        raise ProblemError(f"abs({self.text}) is not affine; write norm1({self.text}) for the sum of absolute values")

    def __pow__(self, power: Any) -> Any:
        raise ProblemError(f"({self.text}) ** {short_repr(power)} is not affine; write sum_squares(...) for squares")

    def __rtruediv__(self, number: Any) -> Any:
        raise ProblemError(f"{short_repr(number)} / ({self.text}) is not affine; expressions can be divided by numbers")


class ObjectiveOperators:
    """What objectives refuse."""

    __array_ufunc__ = None  # makes NumPy leave products and sums with arrays to the objective

    @property
    def text(self) -> str:
        """What the objective is called in messages."""
        raise NotImplementedError

    def __eq__(self, other: Any) -> Any:
        raise ProblemError(
            f"{self.text} == {getattr(other, 'text', short_repr(other))}: a function that is equal to a number makes "
            "no convex set; expected a norm or sum_squares that is at most a number"
        )

    __hash__ = object.__hash__

    def __lt__(self, other: Any) -> Any:
        raise ProblemError(f"{self.text} was compared by < or >; expected <=")

    __gt__ = __lt__

    def __pow__(self, power: Any) -> Any:
        raise ProblemError(
            f"({self.text}) ** {short_repr(power)} is not of the class; the square of a norm is sum_squares(...)"
        )

    def __rtruediv__(self, number: Any) -> Any:
        raise ProblemError(f"{short_repr(number)} / ({self.text}) is not of the class; a function divides nothing")
