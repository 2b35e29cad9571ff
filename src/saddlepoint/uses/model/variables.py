"""Variables of the two players, one by one or as trees of them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.sparse.linalg import LinearOperator, aslinearoperator

from saddlepoint.ground.errors import ProblemError
from saddlepoint.ground.validation import short_repr
from saddlepoint.parts.simple.base import Simple
from saddlepoint.uses.model.expressions import Affine, Variable
from saddlepoint.uses.model.terms import inside


def minimiser(shape: Any, name: str, within: Simple | None = None) -> Any:
    """A variable over which the objective is minimised.

    Args:
        shape: a number of entries, a shape, or a dictionary, list or tuple of such (a tree of variables, which are
            named after their places in it). A tuple of whole numbers is a shape.
        name: what it is called in messages and answers.
        within: a simple function of its entries, such as ``sp.Simplex()``, ``sp.Box(0, 1)`` or ``sp.L1(0.1)``.

    Example:
        >>> import saddlepoint as sp
        >>> sp.model.minimiser((2, 3), "X", sp.NonNegative())
        X (variable of the minimiser, shape (2, 3), within NonNegative())
        >>> sorted(sp.model.minimiser({"weights": (2, 3), "bias": 2}, "net"))
        ['bias', 'weights']
    """
    return _variables(shape, name, "minimiser", within)


def maximiser(shape: Any, name: str, within: Simple | None = None) -> Any:
    """A variable over which the objective is maximised; the arguments are those of ``minimiser``.

    Example:
        >>> import saddlepoint as sp
        >>> sp.model.maximiser(3, "y")
        y (variable of the maximiser, shape (3,))
    """
    return _variables(shape, name, "maximiser", within)


def linear_map(K: Any, expression: Affine) -> Affine:
    """The expression K e for an operator K that has products only, such as a LinearOperator of SciPy or PyLops.

    Example:
        >>> import numpy as np, saddlepoint as sp
        >>> from scipy.sparse.linalg import aslinearoperator
        >>> sp.model.linear_map(aslinearoperator(np.ones((2, 3))), sp.model.minimiser(3, "x")).shape
        (2,)
    """
    operator = K if isinstance(K, LinearOperator) else aslinearoperator(K)
    if np.issubdtype(operator.dtype, np.complexfloating):
        raise ProblemError("the operator is complex; expected a real one: sp.real_view(K) makes it real")
    if operator.shape[1] != expression.size:
        raise ProblemError(
            f"the operator takes {operator.shape[1]} numbers, but {expression.text} has {expression.size}"
        )
    return expression.mapped(operator, (operator.shape[0],), f"operator @ {inside(expression.text)}")


def _variables(shape: Any, name: Any, player: str, within: Any) -> Any:
    if not isinstance(name, str) or not name:
        raise ProblemError(f"the name of a variable is {short_repr(name)}; expected a word, such as 'x'")
    if within is not None and not isinstance(within, Simple):
        raise ProblemError(
            f"within of {name} is {short_repr(within)}; expected a simple function, such as sp.Simplex()"
        )
    if isinstance(shape, Mapping):
        return {key: _variables(part, f"{name}.{key}", player, within) for key, part in shape.items()}
    whole = [shape] if isinstance(shape, int | np.integer) else shape
    numbers = isinstance(whole, tuple | list) and all(isinstance(n, int | np.integer) for n in whole)
    if isinstance(shape, list) or (isinstance(shape, tuple) and not numbers):
        return type(shape)(_variables(part, f"{name}.{i}", player, within) for i, part in enumerate(shape))
    if not numbers or len(whole) > 2 or not all(n > 0 for n in whole):
        raise ProblemError(
            f"the shape of {name} is {short_repr(shape)}; expected a positive number of entries, a pair of rows and "
            "columns, or a dictionary or list of such"
        )
    sides = tuple(int(n) for n in whole)
    if within is not None:
        within.validate(math.prod(sides), name)
    return Variable(sides, name, player, within)
