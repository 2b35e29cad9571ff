r"""Norms of linear maps and constraints, written with further variables.

A norm is the largest inner product with the vectors u of a ball: c |e|_1 = max <u, e> over |u_i| <= c, and so on for
the others. So a norm of a linear map of x, whose prox is not cheap, becomes a bilinear term with a variable u of the
other player. An equation E x = b becomes the bilinear term <u, E x - b> with a multiplier u, and an inequality the same
with u >= 0. A multiplier has a bound M, which the caller gives: for |u_i| <= M the term is the exact penalty
M |E x - b|_1, and the solutions are those of the constrained problem if its multipliers are not above M.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse

from saddlepoint.ground.arrays import Array, dense
from saddlepoint.ground.errors import ProblemError
from saddlepoint.parts.simple.ball import Ball
from saddlepoint.parts.simple.base import Simple
from saddlepoint.parts.simple.group_balls import GroupBalls
from saddlepoint.parts.simple.groups import Groups, Norm2
from saddlepoint.parts.simple.l1_box import L1, Box, L1Box
from saddlepoint.parts.simple.simplex import Simplex
from saddlepoint.uses.model.constraints import Constraint
from saddlepoint.uses.model.expressions import Affine, Objective, Variable
from saddlepoint.uses.model.maps import is_identity
from saddlepoint.uses.model.rules import variables_of
from saddlepoint.uses.model.smooth_terms import SMOOTH
from saddlepoint.uses.model.terms import Bilinear, Term

OTHER = {"minimiser": "maximiser", "maximiser": "minimiser"}
NORMS: dict[str, Any] = {"norm1": 1, "norm2": 2, "norm_inf": "inf"}  # of the balls that constraints make


class NothingProvenError(ProblemError):
    """The problem is of the class, but it lacks bounds without which nothing can be proven about its solution."""


@dataclass
class Lifted:
    """A problem with smooth terms, bilinear terms and simple functions of whole variables only.

    Attributes:
        variables: those of the caller and the further ones.
        within: the simple function of each variable; None if it is free.
        terms: the smooth terms.
        pairs: the bilinear terms.
        linear: the affine expression of the objective.
        multipliers: of each constraint that became a bilinear term, its variable.
        caller: the number of variables that are the caller's; they are the first ones.
    """

    variables: list[Variable]
    within: dict[Variable, Simple | None]
    terms: list[Term] = field(default_factory=list)
    pairs: list[Bilinear] = field(default_factory=list)
    linear: Affine = field(default_factory=lambda: Affine((), {}, np.zeros(1), "0"))
    multipliers: list[tuple[Constraint, Variable]] = field(default_factory=list)
    caller: int = 0

    def new(self, size: int, player: str, name: str, within: Simple | None) -> Variable:
        """A further variable."""
        u = Variable((size,), name, player)
        self.variables.append(u)
        self.within[u] = within
        return u


def lifted(
    objective: Objective,
    constraints: Sequence[Constraint],
    multiplier_bound: float | Mapping[str, float] | None,
    plain_norms: bool = True,
) -> Lifted:
    """The problem with further variables for norms and constraints.

    Args:
        objective, constraints: the problem, checked.
        multiplier_bound: the bound on multipliers, one for all constraints or by their texts; None if there is none.
        plain_norms: whether a Euclidean norm of a whole variable stays a simple function of it.
    """
    variables = variables_of(objective, constraints)
    draft = Lifted(variables, {v: v.within for v in variables}, caller=len(variables))
    draft.linear, draft.pairs = objective.linear, list(objective.pairs)
    rest = _simple_constraints(draft, constraints)
    for term in objective.terms:
        if term.factor != 0.0 and term.of.maps:
            _add_term(draft, term, plain_norms)
    for condition in rest:
        bound = multiplier_bound.get(condition.text) if isinstance(multiplier_bound, Mapping) else multiplier_bound
        _add_constraint(draft, condition, bound)
    return draft


def split_constraints(
    objective: Objective, constraints: Sequence[Constraint]
) -> tuple[list[Constraint], list[Constraint]]:
    """The constraints that are simple functions of variables, and those that need multipliers."""
    variables = variables_of(objective, constraints)
    rest = _simple_constraints(Lifted(variables, {v: v.within for v in variables}), constraints)
    return [condition for condition in constraints if condition not in rest], rest


# -- terms -------------------------------------------------------------------------------------------------------------


def _add_term(draft: Lifted, term: Term, plain_norms: bool) -> None:
    if term.kind in SMOOTH:
        if term.kind in ("sum_squares", "huber") and _has_operator(term.of):
            _conjugate_square(draft, term)
        else:
            draft.terms.append(term)
        return
    c, v = abs(term.factor), term.of.bare
    if v is not None:
        simple = _simple_norm(term, c, plain_norms)
        total = None if simple is None else _added(draft.within[v], simple)
        if total is not None:
            draft.within[v] = total
            return
    _add_dual(draft, term, _dual_set(term, c))


def _simple_norm(term: Term, c: float, plain_norms: bool) -> Simple | None:
    """The norm of a whole variable as a simple function, where there is one."""
    if term.kind == "norm1":
        return L1(c)
    if not plain_norms:
        return None
    if term.kind == "norm2":
        return Norm2(c)
    return Groups(_row_labels(term.of), c) if term.kind == "norm_rows" else None


def _dual_set(term: Term, c: float) -> Simple:
    """The set of the vectors u with |factor| norm(e) = max <u, e>."""
    if term.kind == "norm1":
        return Box(-c, c)
    if term.kind == "positive_part":
        return Box(0.0, c)
    if term.kind == "norm_rows":
        return GroupBalls(_row_labels(term.of), c)
    return Simplex(c) if term.kind == "max_entry" else Ball(c, norm=2 if term.kind == "norm2" else 1)


def _add_dual(draft: Lifted, term: Term, within: Simple | None) -> Variable:
    """A new variable of the other player, and the bilinear term of it and the expression of the term."""
    e = term.of.ravel()
    owner = next(iter(e.maps)).player
    u = draft.new(e.size, OTHER[owner], f"dual of {term.text}", within)
    # The maximiser's term is -max <u, e> = min <u, -e>.
    draft.pairs.append(Bilinear(e, u) if owner == "minimiser" else Bilinear(u, -e))
    return u


def _conjugate_square(draft: Lifted, term: Term) -> None:
    """Write c |e|^2 as max <u, e> - |u|^2/(4c), for operators; for Huber's loss, u is in a box as well."""
    c = abs(term.factor)
    within, factor = None, 0.25 / c
    if term.kind == "huber":
        within, factor = Box(-c * term.data["delta"], c * term.data["delta"]), 0.5 / c
    u = _add_dual(draft, term, within)
    draft.terms.append(Term(-factor if term.factor > 0.0 else factor, "sum_squares", u))


# -- constraints -------------------------------------------------------------------------------------------------------


def _simple_constraints(draft: Lifted, constraints: Sequence[Constraint]) -> list[Constraint]:
    """Give variables the constraints that are simple functions of them; the other constraints are returned."""
    rest = []
    for condition in constraints:
        if not _take_bounds(draft, condition) and not _take_ball(draft, condition):
            rest.append(condition)
    return [condition for condition in rest if not _take_simplex(draft, condition)]


def _take_bounds(draft: Lifted, condition: Constraint) -> bool:
    """An inequality or an equation of single entries of a variable bounds these entries."""
    found = _single_entries(condition.of)
    if condition.kind not in ("<=", "==") or found is None:
        return False
    v, entries, scale, constant = found
    # scale x + constant <= 0, or == 0
    bounds = -constant / scale
    lower, upper = np.full(v.size, -np.inf), np.full(v.size, np.inf)
    is_lower = scale < 0.0 if condition.kind == "<=" else np.ones(entries.size, dtype=bool)
    is_upper = scale > 0.0 if condition.kind == "<=" else is_lower
    np.maximum.at(lower, entries[is_lower], bounds[is_lower])
    np.minimum.at(upper, entries[is_upper], bounds[is_upper])
    old = draft.within[v]
    weight: Any = 0.0
    if isinstance(old, L1Box):
        lower = np.maximum(lower, old.lower.everywhere(v.size))
        upper = np.minimum(upper, old.upper.everywhere(v.size))
        weight = old.weight.everywhere(v.size)
    elif old is not None:
        return False
    if (lower > upper).any():
        i = int(np.argmax(lower > upper))
        raise ProblemError(
            f"the constraint {condition.text} leaves no value for entry {i} of {v.name}: it would have to be at least "
            f"{lower[i] + 0.0:g} and at most {upper[i] + 0.0:g}"
        )
    draft.within[v] = L1Box(weight, lower, upper)
    return True


def _take_ball(draft: Lifted, condition: Constraint) -> bool:
    """A norm of a whole variable minus a constant that has a bound makes a ball."""
    if condition.kind not in NORMS or len(condition.of.maps) != 1:
        return False
    (v, M) = next(iter(condition.of.maps.items()))
    if not is_identity(M) or draft.within[v] is not None:
        return False
    center = -condition.of.constant if condition.of.constant.any() else 0.0
    draft.within[v] = Ball(condition.bound, norm=NORMS[condition.kind], center=center)
    return True


def _take_simplex(draft: Lifted, condition: Constraint) -> bool:
    """sum(x) == total with x >= 0 is the simplex."""
    e = condition.of
    if condition.kind != "==" or e.size != 1 or len(e.maps) != 1:
        return False
    (v, M) = next(iter(e.maps.items()))
    if not isinstance(M, np.ndarray) and not issparse(M):
        return False
    row = dense(M).ravel()
    old = draft.within[v]
    if row[0] == 0.0 or (row != row[0]).any() or not isinstance(old, L1Box):
        return False
    total = float(-e.constant[0] / row[0])
    lower, upper = old.lower.everywhere(v.size), old.upper.everywhere(v.size)
    if (lower != 0.0).any() or (upper < total).any() or (old.weight.everywhere(v.size) != 0.0).any():
        return False
    if not total > 0.0:
        raise ProblemError(f"the constraint {condition.text} with {v.name} >= 0 leaves at most one point")
    draft.within[v] = Simplex(total)
    return True


def _add_constraint(draft: Lifted, condition: Constraint, bound: float | None) -> None:
    e = condition.of.ravel()
    owner = next(iter(e.maps)).player
    if bound is None:
        raise NothingProvenError(
            f"the constraint {condition.text} needs a multiplier, and nothing can be proven about multipliers without "
            "a bound on them; write Problem(objective, constraints, multiplier_bound=M) with a number M that the "
            "multipliers of the solution do not exceed: the penalty for a violation of 1"
        )
    if condition.kind in NORMS:
        ball = Ball(condition.bound, norm=NORMS[condition.kind])
        e = e - draft.new(e.size, owner, f"slack of {condition.text}", ball)
    lower = 0.0 if condition.kind == "<=" else -bound
    u = draft.new(e.size, OTHER[owner], f"multiplier of {condition.text}", Box(lower, bound))
    draft.pairs.append(Bilinear(e, u) if owner == "minimiser" else Bilinear(u, -e))
    draft.multipliers.append((condition, u))


# -- helpers -----------------------------------------------------------------------------------------------------------


def _added(old: Simple | None, new: Simple) -> Simple | None:
    """The sum of two simple functions, or None if its prox is not known."""
    if old is None:
        return new
    try:
        return old + new
    except ProblemError:
        return None


def _single_entries(e: Affine) -> tuple[Variable, Array, Array, Array] | None:
    """The variable, its entries, their factors and the constant, if each row is a multiple of one entry plus one."""
    if len(e.maps) != 1:
        return None
    (v, M) = next(iter(e.maps.items()))
    if not issparse(M):
        return None
    rows = csr_array(M)
    rows.eliminate_zeros()
    if (np.diff(rows.indptr) != 1).any():
        return None
    return v, rows.indices, rows.data, e.constant


def _has_operator(e: Affine) -> bool:
    return any(not issparse(M) and not isinstance(M, np.ndarray) for M in e.maps.values())


def _row_labels(e: Affine) -> Array:
    rows, columns = e.shape
    return np.repeat(np.arange(rows), columns)
