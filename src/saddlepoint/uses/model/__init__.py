"""Saddle problems written down with variables: ``sp.model``.

A problem is a sum of convex terms of the minimiser's variables, concave terms of the maximiser's, and bilinear terms of
both, with constraints. It is checked term by term, brought into the form min_x max_y g(x) + <x, A y> - h(y) with proven
constants, solved, and answered by the names of the variables.
"""

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
from saddlepoint.uses.model.expressions import Affine, Constraint, Objective, Variable, inner
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
