"""Proven bounds on the multipliers of inequalities, from points that satisfy them strictly.

Let f be the objective, X and Y the domains of the variables, and e_i(x) <= 0 the constraints of the minimiser. Let
(x, y) be a point of X and Y that satisfies the constraints of both players, and e_i(x) <= -s_i with s_i > 0. Then there
are multipliers, and all of them satisfy

    sum_i s_i lambda_i <= max_{y' in Y} f(x, y') - min_{x' in X} f(x', y),

because the Lagrange function, at its smallest value over X, is at most its value at x. The right side is the duality
gap of the problem without the constraints, which its certificate bounds. The same holds for the maximiser. A norm that
has a bound r, |e(x)| <= r, has one multiplier, and this bounds the entries of the vector u of its term <u, e(x)>.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy.sparse import issparse

from saddlepoint.ground.arrays import Array
from saddlepoint.ground.errors import ProblemError
from saddlepoint.parts.coupling import DenseCoupling, SparseCoupling
from saddlepoint.problems.saddle import Saddle
from saddlepoint.solving.solve import solve
from saddlepoint.uses.model.atoms import CONVEX, max_entry, norm1, norm2, norm_inf, sum_squares
from saddlepoint.uses.model.concatenation import concatenate
from saddlepoint.uses.model.constraints import Constraint
from saddlepoint.uses.model.expressions import Objective, Variable
from saddlepoint.uses.model.lifting import Lifted, NothingProvenError, lifted, split_constraints
from saddlepoint.uses.model.standard_form import standard_form

SLACK = 1.01  # factor on proven bounds: with larger multipliers than those of the solution, all solutions are feasible
ROUNDING = 1e-9  # relative rounding error of an expression, far above that of its sums
PULLS = 0.0, 1.0, 1e-2, 1e-4  # factors of squares that are added, in turns, where the variables have no bounds
NORMS = {"norm1": norm1, "norm2": norm2, "norm_inf": norm_inf}
ACCURACIES = 1e-2, 1e-5, 1e-8  # relative accuracies to which the point with the most room is computed, in turns
SECONDS = 10.0  # longest time of one such computation


def multiplier_bounds(objective: Objective, constraints: Sequence[Constraint]) -> dict[str, float]:
    """Bounds on the multipliers by the texts of the constraints; empty if none are proven.

    Args:
        objective, constraints: the problem, checked.
    """
    simple, rest = split_constraints(objective, constraints)
    if any(condition.kind == "==" for condition in rest):
        return {}  # no point satisfies an equation strictly
    try:
        draft = lifted(objective, simple, None)
        form = standard_form(draft, may_add=False)
        values: dict[Variable, Array] = {}
        for player in ("minimiser", "maximiser"):
            own = [condition for condition in rest if next(iter(condition.of.maps)).player == player]
            if own:
                values |= _strict_point(own, [c for c in simple if next(iter(c.of.maps)).player == player])
    except ProblemError:
        return {}
    if _has_own_parts(draft, form.saddle):
        return {}  # they are examined by a run, and there is none here
    x, y = np.zeros(form.saddle.shape[0]), np.zeros(form.saddle.shape[1])
    for side, z in ((form.minimiser, x), (form.maximiser, y)):
        for v, rows in side.rows.items():
            z[rows] = values[v].ravel() if v in values else 0.0
    f = form.saddle
    x, y = f.project(x, y)
    gap = f.certificate(x, y, gap=0.0).gap
    found = values | form.split(x, y)  # variables that are in constraints alone keep their values
    slacks = {condition.text: _slack(condition, found) for condition in rest}
    if not (math.isfinite(gap) and all(slack > 0.0 for slack in slacks.values())):
        return {}
    least = ROUNDING * (1.0 + abs(gap))
    return {text: SLACK * (gap + least) / slack for text, slack in slacks.items()}


def _strict_point(constraints: Sequence[Constraint], simple: Sequence[Constraint]) -> dict[Variable, Array]:
    """Values of the variables of one player with which the constraints hold with room to spare, if there are any."""
    variables = list(dict.fromkeys(v for condition in constraints for v in condition.of.maps))
    sign = 1.0 if variables[0].player == "minimiser" else -1.0
    rows = [condition.of for condition in constraints if condition.kind == "<="]
    total = Objective([])
    if rows:
        total = total + max_entry(concatenate(rows))
    for condition in constraints:
        if condition.kind in NORMS:
            total = total + NORMS[condition.kind](condition.of)
    mentioned = [c for c in simple if set(c.of.maps) & set(variables)]
    for pull in PULLS:
        pulled = total
        if pull:
            for v in variables:
                pulled = pulled + pull * sum_squares(v)
        try:
            form = standard_form(lifted(sign * pulled, mentioned, None))
        except ProblemError:
            continue  # a variable has no bounds
        for accuracy in ACCURACIES:
            result = solve(form.saddle, gap=accuracy * max(1.0, form.saddle.norm), max_seconds=SECONDS)
            found = form.split(result.x, result.y)
            slack = min(_slack(condition, found) for condition in constraints)
            if slack > result.certificate.gap:  # the largest room is less than twice as large
                return {v: found[v] for v in variables}
    raise NothingProvenError("no point was found that satisfies the constraints strictly")


def _has_own_parts(draft: Lifted, f: Saddle) -> bool:
    """Whether a function, a prox or an operator is the caller's own, so that its properties are claims."""
    own_terms = any(term.kind == "function" for term in draft.terms)
    own_prox = any(p is not None and not p.structured for p in draft.within.values())
    return own_terms or own_prox or not isinstance(f.A, DenseCoupling | SparseCoupling)


def _slack(condition: Constraint, values: dict[Variable, Array]) -> float:
    """How far the constraint is from being violated, rounded down."""
    e = condition.of.ravel()
    size = np.abs(e.constant)
    for v, M in e.maps.items():
        if not (issparse(M) or isinstance(M, np.ndarray)):
            return -math.inf  # of an operator, no rounding is known
        size = size + abs(M) @ np.abs(values[v].ravel())
    most = e.value(values) + ROUNDING * size
    if condition.kind == "<=":
        return -float(most.max())
    reach = np.abs(e.value(values)) + ROUNDING * size
    return condition.bound * (1.0 - ROUNDING) - CONVEX[condition.kind](reach, {})
