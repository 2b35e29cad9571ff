"""Simple functions from objects of other libraries."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

from saddlepoint.ground.arrays import Array
from saddlepoint.ground.errors import ProblemError
from saddlepoint.ground.validation import short_repr
from saddlepoint.parts.simple.base import Simple


@runtime_checkable
class HasProx(Protocol):
    """An object with a method prox(x, tau), such as the operators of pyproximal."""

    def prox(self, x: Array, tau: float, /) -> Array:
        """The point argmin_u tau p(u) + |u - x|^2 / 2."""


def as_simple(function: Any, name: str = "the simple function") -> Simple:
    """``function`` itself if it is a Simple, or a Simple with its prox if it has one, as operators of pyproximal have.

    ``Smooth + operator``, ``Smooth(..., simple=operator)`` and ``Saddle(operator, ...)`` do the same. Only
    ``prox(x, tau)`` is taken. The value of such an object is left out, because those of pyproximal return for a
    constraint whether x satisfies it, and not 0 or infinity. Where values are right, give them:
    ``sp.Simple(prox=op.prox, value=op)``. A prox that is computed by iterations must be exact to the last digits;
    ``pyproximal.Simplex(n, 1.0, xtol=1e-16)`` is, and its default of 1e-8 is not. How accurate another one is can be
    said: ``sp.Simple(prox=op.prox, accuracy=1e-7)``.

    Args:
        function: a Simple, or an object with a method ``prox``.
        name: what it is called in an error.

    Example:
        >>> import numpy as np, saddlepoint as sp
        >>> class Halved:
        ...     def prox(self, x, tau):
        ...         return x / (1.0 + tau)
        >>> sp.as_simple(Halved()).prox(np.array([3.0]), 2.0).tolist()
        [1.0]
    """
    if isinstance(function, Simple):
        return function
    prox = getattr(function, "prox", None)
    if not callable(prox) or isinstance(function, type):
        raise ProblemError(
            f"{name} is {short_repr(function)}; expected a simple function such as sp.L1(0.1), or an object with a "
            "method prox(x, tau), such as an operator of pyproximal"
        )
    return FromOperator(function)


class FromOperator(Simple):
    """A simple function whose prox is that of an object of another library."""

    def __init__(self, operator: HasProx) -> None:
        super().__init__(prox=operator.prox)
        self.operator = operator

    def __repr__(self) -> str:
        kind = type(self.operator)
        return f"{kind.__name__} of {kind.__module__.partition('.')[0]}"
