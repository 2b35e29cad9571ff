"""Simple functions from objects of other libraries."""

from __future__ import annotations

from typing import Any

from saddlepoint.ground.errors import ProblemError
from saddlepoint.ground.validation import short_repr
from saddlepoint.parts.simple.base import Simple


def as_simple(function: Any, name: str = "the simple function") -> Simple:
    """``function`` itself if it is a Simple, or a Simple with its prox if it has one, as operators of pyproximal have.

    Only ``prox(x, tau)`` is taken. The value of such an object is left out, because those of pyproximal return for a
    constraint whether x satisfies it, and not 0 or infinity. Where values are right, give them:
    ``sp.Simple(prox=op.prox, value=op)``.

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
            "method prox(x, tau)"
        )
    return Simple(prox=prox)
