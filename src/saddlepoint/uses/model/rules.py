"""The rules of the class: convex in the variables of the minimiser, concave in those of the maximiser."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from saddlepoint.ground.errors import ProblemError
from saddlepoint.ground.validation import short_repr
from saddlepoint.uses.model.constraints import Constraint
from saddlepoint.uses.model.expressions import Affine, Objective, Variable, as_objective
from saddlepoint.uses.model.terms import Term


def checked(objective: Any, constraints: Sequence[Any]) -> tuple[Objective, list[Constraint]]:
    """The objective and the constraints, after every rule has been checked; the first broken one is an error."""
    found = as_objective(objective)
    if found is None:
        raise ProblemError(f"the objective is {short_repr(objective)}; expected a sum of terms, such as sum_squares(x)")
    for term in found.terms:
        _check_curvature(term)
    conditions = list(constraints)
    for i, condition in enumerate(conditions):
        if not isinstance(condition, Constraint):
            raise ProblemError(
                f"constraint {i} is {short_repr(condition)}; expected a comparison of expressions, such as x >= 0"
            )
        _one_player(condition.of, f"the constraint {condition.text}")
    _check_names(variables_of(found, conditions))
    return found, conditions


def variables_of(objective: Objective, constraints: Sequence[Constraint]) -> list[Variable]:
    """All variables, in the order in which they appear."""
    expressions: list[Affine] = [term.of for term in objective.terms]
    for pair in objective.pairs:
        expressions += [pair.left, pair.right]
    expressions += [objective.linear, *(condition.of for condition in constraints)]
    return list(dict.fromkeys(v for e in expressions for v in e.maps))


def _check_curvature(term: Term) -> None:
    if term.factor == 0.0 or not term.of.maps:
        return
    player = _one_player(term.of, f"the term {term.text}")
    curved, wanted = ("convex", "minimiser") if term.factor > 0.0 else ("concave", "maximiser")
    if player != wanted:
        names = ", ".join(v.name for v in term.of.maps)
        opposite = "concave" if curved == "convex" else "convex"
        raise ProblemError(
            f"the term {term.text} is {curved}, but {names} belongs to the {player}, in whose variables the objective "
            f"must be {opposite}; change the sign of the term, or make {names} a variable of the {wanted}"
        )


def _one_player(e: Affine, what: str) -> str:
    players = {v.player for v in e.maps}
    if len(players) > 1:
        owners = ", ".join(f"{v.name} belongs to the {v.player}" for v in e.maps)
        raise ProblemError(
            f"{what} mixes variables of both players: {owners}. Expected variables of one player; the two meet in "
            "bilinear terms x @ A @ y only"
        )
    return players.pop()


def _check_names(variables: Sequence[Variable]) -> None:
    if not variables:
        raise ProblemError("the objective and the constraints have no variables; expected one at least")
    names: dict[str, Variable] = {}
    for v in variables:
        if v.name in names:
            raise ProblemError(f"two variables are called {v.name!r}; expected names that differ")
        names[v.name] = v
