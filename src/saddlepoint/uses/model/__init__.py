"""Saddle problems written down with variables: ``sp.model``.

A problem is a sum of convex terms of the minimiser's variables, concave terms of the maximiser's, and bilinear terms of
both, with constraints. It is checked term by term, brought into the form min_x max_y g(x) + <x, A y> - h(y) with proven
constants, solved, and answered by the names of the variables.
"""

from typing import Any

from saddlepoint.ground.validation import did_you_mean
from saddlepoint.uses.model.answers import Answer, CertifiedAnswer, ProgramAnswer
from saddlepoint.uses.model.atoms import (
    entropy,
    function,
    huber,
    log_cosh,
    log_sum_exp,
    logistic,
    max_entry,
    norm1,
    norm2,
    norm_inf,
    norm_rows,
    positive_part,
    quad_form,
    sum_squares,
)
from saddlepoint.uses.model.concatenation import concatenate
from saddlepoint.uses.model.constraints import Constraint
from saddlepoint.uses.model.expressions import Affine, Objective, Variable, inner
from saddlepoint.uses.model.problem import Problem
from saddlepoint.uses.model.variables import linear_map, maximiser, minimiser

__all__ = [
    "Affine",
    "Answer",
    "CertifiedAnswer",
    "Constraint",
    "Objective",
    "Problem",
    "ProgramAnswer",
    "Variable",
    "concatenate",
    "entropy",
    "function",
    "huber",
    "inner",
    "linear_map",
    "log_cosh",
    "log_sum_exp",
    "logistic",
    "max_entry",
    "maximiser",
    "minimiser",
    "norm1",
    "norm2",
    "norm_inf",
    "norm_rows",
    "positive_part",
    "quad_form",
    "sum_squares",
]

OTHER_NAMES = {  # of other libraries, and what to write here
    "minimizer": "minimiser(shape, name)",
    "maximizer": "maximiser(shape, name)",
    "Minimize": "Problem(objective, constraints)",
    "Maximize": "Problem(objective, constraints)",
    "sum": "x.sum()",
    "max": "max_entry(x)",
    "maximum": "positive_part(x - c) + c.sum() for the sum of max(x_i, c_i)",
    "pos": "positive_part(x)",
    "abs": "norm1(x) for the sum of absolute values",
    "norm": "norm1(x), norm2(x), norm_inf(x) or norm_rows(X)",
    "square": "sum_squares(x)",
    "trace": "inner(numpy.eye(n), X)",
    "quad": "quad_form(x, P)",
    "norm_nuc": "minimiser(shape, name, sp.Nuclear(shape, weight))",
    "normNuc": "minimiser(shape, name, sp.Nuclear(shape, weight))",
    "nuclear": "minimiser(shape, name, sp.Nuclear(shape, weight))",
    "nuclear_norm": "minimiser(shape, name, sp.Nuclear(shape, weight))",
    "norm_nuclear": "minimiser(shape, name, sp.Nuclear(shape, weight))",
    "kl_div": "-entropy(x) - x @ numpy.log(q) for the divergence of x from q, both with sum 1",
    "rel_entr": "-entropy(x) - x @ numpy.log(q) for the sum of x_i log(x_i/q_i)",
    "entr": "entropy(x)",
    "hstack": "concatenate([e, ...]) for the entries of several expressions as one vector",
    "vstack": "concatenate([e, ...]) for the entries of several expressions as one vector",
    "stack": "concatenate([e, ...]) for the entries of several expressions as one vector",
    "Variable": "minimiser(shape, name) or maximiser(shape, name)",
    "exp": "log_sum_exp(x) for a smooth maximum; exp itself is not of the class",
    "log": "entropy(x); log itself is not of the class",
    "multiply": "c * x with numbers c",
    "power": "sum_squares(x) for squares; other powers are not of the class",
    "quad_over_lin": "sum_squares(x) / c with a number c",
    "vec": "X.ravel()",
    "reshape": "x.reshape(shape)",
    "diff": "x[1:] - x[:-1]",
    "tv": "norm1(x[1:] - x[:-1])",
    "saddle_inner": "x @ A @ y or inner(X, Y)",
    "quasidef_quad_form": "quad_form(x, P) + 2 * x @ S @ y - quad_form(y, -Q)",
    "saddle_quad_form": "quad_form(x, P) with numbers P; with a matrix of variables it is not bilinear",
    "weighted_norm2": "norm2(D @ x) with numbers D; with weights that are variables it is not bilinear",
    "weighted_log_sum_exp": "log_sum_exp(x + c) with numbers c; with weights that are variables it is not bilinear",
    "saddle_max": "maximiser(shape, name) for the variables of the maximum, in the same objective",
    "saddle_min": "minimiser(shape, name) for the variables of the minimum, in the same objective",
    "conjugate": "x @ y - f(y) with a variable y of the maximiser, whose maximum is the conjugate of f at x",
    "LocalVariable": "minimiser(shape, name) or maximiser(shape, name)",
    "MinimizeMaximize": "Problem(objective, constraints)",
    "SaddlePointProblem": "Problem(objective, constraints)",
}


def __getattr__(name: str) -> Any:
    instead = f"; write {OTHER_NAMES[name]}" if name in OTHER_NAMES else did_you_mean(name, __all__)
    raise AttributeError(f"sp.model has no {name!r}{instead}")
