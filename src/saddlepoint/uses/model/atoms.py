"""Functions of affine expressions: each makes an objective with one term.

Every function here is convex except ``entropy``, which is concave. ``CONVEX`` says of each kind of term how it is
evaluated; how it enters a problem is decided in ``smooth_terms`` and ``lifting``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
from scipy.sparse import issparse

from saddlepoint.ground.arrays import Array
from saddlepoint.ground.elementwise import softplus
from saddlepoint.ground.errors import ProblemError
from saddlepoint.ground.validation import positive, short_repr
from saddlepoint.parts.functions import Entropy, Huber, LogCosh, LogSumExp
from saddlepoint.parts.functions.smooth import Smooth
from saddlepoint.uses.model.expressions import Affine, Objective, Variable, as_affine
from saddlepoint.uses.model.terms import Term


def sum_squares(e: Any) -> Objective:
    """The sum of the squares of the entries.

    Example:
        >>> import numpy as np, saddlepoint as sp
        >>> sp.model.sum_squares(np.eye(2) @ sp.model.minimiser(2, "x") - [1.0, 2.0])
        sum_squares(matrix @ x - array)
    """
    return _atom("sum_squares", e)


def quad_form(e: Any, P: Any) -> Objective:
    """The quadratic form e'Pe with a symmetric positive semidefinite matrix P, which is proven when it is used."""
    found = _as_expression(e, "quad_form")
    matrix = P if issparse(P) else np.asarray(P, dtype=np.float64)
    if matrix.shape != (found.size, found.size):
        raise ProblemError(
            f"P of quad_form has the shape {matrix.shape}, but {found.text} has {found.size} entries; expected a "
            f"{found.size} x {found.size} matrix"
        )
    return _atom("quad_form", found.ravel(), P=matrix)


def logistic(e: Any) -> Objective:
    """The sum of log(1 + exp(e_i)). A logistic regression has e = -labels * (D @ x)."""
    return _atom("logistic", e)


def huber(e: Any, delta: float = 1.0) -> Objective:
    """The sum of e_i^2/2 where |e_i| <= delta, and of delta |e_i| - delta^2/2 elsewhere."""
    return _atom("huber", e, delta=positive(delta, "delta of huber"))


def log_cosh(e: Any) -> Objective:
    """The sum of log cosh(e_i), a smooth absolute value."""
    return _atom("log_cosh", e)


def log_sum_exp(e: Any) -> Objective:
    """log sum_i exp(e_i), a smooth maximum."""
    return _atom("log_sum_exp", e)


def entropy(e: Any, low: float = 1e-3, high: float = 1.0) -> Objective:
    """The entropy -sum_i e_i log(e_i) of a whole variable, which is concave.

    Below ``low`` and above ``high`` the function t log t is continued by parabolas, as in ``sp.Entropy``, so that it is
    smooth: it is not the entropy there. A small ``low`` makes it steep, with L = 1/low, and runs long.
    """
    return -1.0 * _atom("negative_entropy", e, low=low, high=high)


def norm1(e: Any) -> Objective:
    """The sum of the absolute values."""
    return _atom("norm1", e)


def norm2(e: Any) -> Objective:
    """The Euclidean norm of all entries."""
    return _atom("norm2", e)


def norm_inf(e: Any) -> Objective:
    """The largest absolute value."""
    return _atom("norm_inf", e)


def norm_rows(e: Any) -> Objective:
    """The sum of the Euclidean norms of the rows of a matrix."""
    found = _as_expression(e, "norm_rows")
    if len(found.shape) != 2:
        raise ProblemError(f"norm_rows of {found.text}, which has the shape {found.shape}; expected rows and columns")
    return _atom("norm_rows", found)


def max_entry(e: Any) -> Objective:
    """The largest entry."""
    return _atom("max_entry", e)


def positive_part(e: Any) -> Objective:
    """The sum of max(e_i, 0); the hinge loss of a classifier is positive_part(1 - labels * (D @ x))."""
    return _atom("positive_part", e)


def function(f: Smooth, e: Any) -> Objective:
    """A smooth convex function of one's own, ``sp.Smooth(grad, mu=..., L=..., value=...)``, of an expression.

    Example:
        >>> import numpy as np, saddlepoint as sp
        >>> f = sp.Smooth(lambda x: x + np.tanh(x), mu=1.0, L=2.0)
        >>> sp.model.function(f, sp.model.minimiser(2, "x"))
        function(x)
    """
    if not isinstance(f, Smooth):
        raise ProblemError(f"function was given {short_repr(f)}; expected sp.Smooth(grad, mu=..., L=...)")
    found = _as_expression(e, "function")
    if f.simple is not None:
        raise ProblemError("the Smooth of function has a simple term; give that term to the variable: within=...")
    if f.dim is not None and f.dim != found.size:
        raise ProblemError(f"the Smooth of function has {f.dim} variables, but {found.text} has {found.size} entries")
    return _atom("function", found.ravel(), f=f)


CONVEX: dict[str, Callable[[Array, Mapping[str, Any]], float]] = {  # the value of each kind of term
    "sum_squares": lambda e, data: float(e.ravel() @ e.ravel()),
    "quad_form": lambda e, data: float(e @ (data["P"] @ e)),
    "logistic": lambda e, data: float(np.sum(softplus(e.ravel()))),
    "huber": lambda e, data: Huber(delta=data["delta"])(e.ravel()),
    "log_cosh": lambda e, data: LogCosh()(e.ravel()),
    "log_sum_exp": lambda e, data: LogSumExp()(e.ravel()),
    "negative_entropy": lambda e, data: Entropy(data["low"], data["high"])(e.ravel()),
    "norm1": lambda e, data: float(np.sum(np.abs(e))),
    "norm2": lambda e, data: float(np.linalg.norm(e.ravel())),
    "norm_inf": lambda e, data: float(np.max(np.abs(e))),
    "norm_rows": lambda e, data: float(np.sum(np.linalg.norm(e, axis=1))),
    "max_entry": lambda e, data: float(np.max(e)),
    "positive_part": lambda e, data: float(np.sum(np.maximum(e, 0.0))),
    "function": lambda e, data: float(data["f"](e)),
}


def value_of(objective: Objective, variables: Iterable[Variable], values: Mapping[Variable, Array]) -> float:
    """The objective and the simple functions of the variables for these values; NaN if one of them has no value."""
    total = float(objective.linear.value(values))
    for v in variables:
        if v.within is not None:
            sign = 1.0 if v.player == "minimiser" else -1.0
            total += sign * v.within(values[v].ravel()) if v.within.has_value else float("nan")
    for pair in objective.pairs:
        total += float(pair.left.value(values).ravel() @ pair.right.value(values).ravel())
    for term in objective.terms:
        known = term.kind != "function" or term.data["f"].value is not None
        total += term.factor * CONVEX[term.kind](term.of.value(values), term.data) if known else float("nan")
    return total


def _atom(kind: str, e: Any, **data: Any) -> Objective:
    return Objective([Term(1.0, kind, _as_expression(e, kind), data)])


def _as_expression(e: Any, kind: str) -> Affine:
    found = as_affine(e)
    if not isinstance(found, Affine):
        raise ProblemError(
            f"{kind} was given {getattr(found, 'text', short_repr(e))}; expected an affine expression of variables, "
            "such as D @ x - t: functions of functions are not of the class"
        )
    return found
