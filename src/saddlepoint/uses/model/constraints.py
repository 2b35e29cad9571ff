"""Constraints: equations and inequalities of affine expressions, and norms that are at most a number."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from saddlepoint.ground.errors import ProblemError
from saddlepoint.ground.validation import short_repr

if TYPE_CHECKING:
    from saddlepoint.uses.model.expressions import Affine, Objective

NORMS = ("norm1", "norm2", "norm_inf", "sum_squares")  # functions that a constraint may bound


@dataclass(frozen=True, eq=False)
class Constraint:
    """A condition on variables: expression == 0, expression <= 0 for all entries, or a norm that has a bound.

    Attributes:
        kind: "==", "<=", or the name of a norm.
        of: the affine expression.
        bound: the largest value of the norm; 0 for the others.
        text: what it is called in messages.
    """

    kind: str
    of: Affine
    text: str
    bound: float = 0.0

    def __bool__(self) -> bool:
        raise ProblemError(
            f"{self.text} is a constraint and neither true nor false; put it in the list of constraints, and write "
            "0 <= x <= 1 as two constraints"
        )

    def __repr__(self) -> str:
        return self.text


def compared(left: Affine, right: Any, sign: str) -> Any:
    """The constraint that compares two affine expressions, or an affine expression with a norm.

    Args:
        left: an affine expression.
        right: an affine expression or an objective; anything else is refused.
        sign: "<=", ">=" or "==".
    """
    if hasattr(right, "terms"):  # an objective
        return right == left if sign == "==" else right >= left if sign == "<=" else right <= left
    if not hasattr(right, "maps"):
        raise ProblemError(f"{left.text} {sign} {short_repr(right)}: expected numbers or affine expressions to compare")
    text = f"{left.text} {sign} {right.text}"
    difference = left - right if sign != ">=" else right - left
    if not difference.maps:
        raise ProblemError(f"{text} has no variable in it; expected a constraint on variables")
    return Constraint("==" if sign == "==" else "<=", difference, text)


def at_most(objective: Objective, bound: Any, text: str) -> Constraint:
    """The constraint that a norm is at most a number.

    Args:
        objective: an objective, which has to be a multiple of a norm or of a sum of squares plus a number.
        bound: an affine expression, which has to be a number.
        text: what the constraint is called in messages.
    """
    plain = len(objective.terms) == 1 and not objective.pairs and not objective.linear.maps
    number = hasattr(bound, "maps") and not bound.maps and bound.size == 1
    if not plain or objective.terms[0].kind not in NORMS or not number:
        raise ProblemError(
            f"{text} is no constraint of the class; expected affine expressions that are equal or ordered, or a norm "
            f"({', '.join(NORMS[:-1])}) or sum_squares that is at most a number"
        )
    (term,) = objective.terms
    most = float(bound.constant[0]) - float(objective.linear.constant[0])
    if term.factor <= 0.0:
        raise ProblemError(f"{text}: a norm that is at least a number makes no convex set; expected at most")
    most /= term.factor
    if term.kind == "sum_squares":
        most = math.sqrt(most) if most >= 0.0 else most
    if not most > 0.0:
        raise ProblemError(f"{text} leaves at most one point; expected a norm that is at most a positive number")
    return Constraint("norm2" if term.kind == "sum_squares" else term.kind, term.of, text, most)
