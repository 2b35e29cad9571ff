"""``sp.from_cvxpy``: problems of CVXPY as problems of ``sp.model``.

The objective is read term by term, as it was written. Affine expressions are exact: their matrices are the derivatives
that CVXPY computes for them. CVXPY itself is not imported here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.sparse import csc_array, csr_array

from saddlepoint.ground.errors import ProblemError
from saddlepoint.ground.validation import short_repr
from saddlepoint.uses.model import atoms
from saddlepoint.uses.model.constraints import Constraint
from saddlepoint.uses.model.expressions import Affine, Objective, Variable, as_objective
from saddlepoint.uses.model.problem import Problem

IGNORED = ("nonneg", "nonpos", "bounds")  # attributes of variables that become constraints

SCALAR: dict[str, Callable[[Affine], Objective]] = {  # functions of all entries that both libraries have
    "norm1": atoms.norm1,
    "norm_inf": atoms.norm_inf,
    "max": atoms.max_entry,
    "log_sum_exp": atoms.log_sum_exp,
}
ENTRYWISE: dict[str, Callable[[Affine], Objective]] = {  # functions of each entry, summed
    "abs": atoms.norm1,
    "logistic": atoms.logistic,
}


def from_cvxpy(problem: Any, *, multiplier_bound: float | None = None) -> Problem:
    """A problem of CVXPY as a problem of ``sp.model``: quadratic and linear programs, norms, and smooth terms.

    Args:
        problem: a ``cvxpy.Problem`` with an objective to be minimised or maximised. Its objective is a sum of multiples
            of sum_squares, quad_form, logistic, huber, log_sum_exp, norms, max, sums of abs, square and pos (also with
            weights), and affine terms; its constraints are linear equations and inequalities and norms with bounds.
        multiplier_bound: as in ``sp.model.Problem``; equations need it, and inequalities whose multipliers
            cannot be bounded, unless the problem is a linear or quadratic program.

    Returns:
        The problem, with variables of the same names and shapes. A maximum becomes the minimum of the negative.

    Raises:
        ProblemError: a term or a constraint is not of the class; it is named.
    """
    if not type(problem).__module__.startswith("cvxpy") or not hasattr(problem, "objective"):
        raise ProblemError(f"from_cvxpy was given {short_repr(problem)}; expected a cvxpy.Problem")
    for parameter in problem.parameters():
        if parameter.value is None:
            raise ProblemError(f"the parameter {parameter.name()} has no value; give it one first")
    reader = _Reader(problem.variables())
    try:
        objective = as_objective(reader.read(problem.objective.expr, "the objective"))
        assert objective is not None
        if type(problem.objective).__name__ == "Maximize":
            objective = -objective
        conditions = [c for given in problem.constraints for c in reader.constraints(given)]
        conditions += reader.attributes()
    finally:
        reader.restore()
    return Problem(objective, conditions, multiplier_bound=multiplier_bound)


class _Reader:
    """Reads expressions of CVXPY. While it reads, the variables have the value 0, which ``restore`` undoes."""

    def __init__(self, variables: list[Any]) -> None:
        self.given = {v.id: (v, v.value) for v in variables}
        names = [v.name() for v in variables]
        self.own: dict[int, Variable] = {}
        for v, name in zip(variables, names, strict=True):
            wrong = [key for key, set_ in v.attributes.items() if key not in IGNORED and set_]
            if wrong:
                raise ProblemError(
                    f"the variable {name} has the attribute {wrong[0]}; expected plain variables, or nonneg, nonpos "
                    "and bounds"
                )
            if len(v.shape) > 2:
                raise ProblemError(f"the variable {name} has the shape {v.shape}; expected a vector or a matrix")
            self.own[v.id] = Variable(tuple(v.shape), name, "minimiser")
        for v in variables:
            v.save_value(np.zeros(v.shape))

    def restore(self) -> None:
        """Give the variables their values back."""
        for v, value in self.given.values():
            v.save_value(value)

    def affine(self, e: Any) -> Affine:
        """An affine expression, as a vector in the order of CVXPY."""
        maps: dict[Variable, Any] = {}
        constant = _flat(e.value)
        for v, derivative in (e.grad if e.variables() else {}).items():
            own = self.own[v.id]
            M = csc_array(np.atleast_2d(derivative) if np.isscalar(derivative) else derivative).T.tocoo()
            # CVXPY counts entries by columns, and sp.model by rows.
            place = np.arange(own.size).reshape(own.shape).ravel(order="F")
            maps[own] = csr_array((M.data, (M.coords[0], place[M.coords[1]])), shape=(constant.size, own.size))
        return Affine((constant.size,), maps, constant, _text(e))

    def read(self, e: Any, where: str) -> Any:
        """An expression with one entry as an objective."""
        if e.is_affine():
            return self.affine(e).sum()
        kind, args = type(e).__name__.removesuffix("Approx"), e.args
        if kind == "AddExpression":
            return sum((self.read(part, where) for part in args), start=0.0)
        if kind == "NegExpression":
            return -self.read(args[0], where)
        if kind in ("multiply", "MulExpression", "DivExpression"):
            factor, part = _factor(e)
            if factor is not None and factor.size == 1 and part.size == 1:
                number = float(np.asarray(factor.value).ravel()[0])
                return self.read(part, where) * (1.0 / number if kind == "DivExpression" else number)
            if kind == "MulExpression" and factor is not None and factor.shape == part.shape:
                return self._weighted(_flat(factor.value), part, where)
        if kind == "Sum" and args[0].is_affine() is False and e.get_data()[0] is None:
            return self._entrywise(args[0], where)
        found = self._scalar(kind, e)
        if found is None and e.size == 1:
            found = self._entrywise(e, where)
        return self._refuse(e, where) if found is None else found

    def _scalar(self, kind: str, e: Any) -> Objective | None:
        """A function of all entries of an affine expression."""
        inside = e.args[0] if e.args else None
        if inside is None or not inside.is_affine() or e.size != 1 or getattr(e, "axis", None) is not None:
            return None
        if kind == "quad_over_lin" and e.args[1].is_constant():
            return atoms.sum_squares(self.affine(inside)) * (1.0 / float(e.args[1].value))
        if kind == "QuadForm" and e.args[1].is_constant():
            P = e.args[1].value
            return atoms.quad_form(self.affine(inside), 0.5 * (P + P.T))
        if kind == "Pnorm" and e.p == 2:
            return atoms.norm2(self.affine(inside))
        if kind == "min":
            return -atoms.max_entry(-self.affine(inside))
        if kind in SCALAR:
            return SCALAR[kind](self.affine(inside))
        return None

    def _entrywise(self, e: Any, where: str) -> Any:
        """The sum over the entries of a function of each entry."""
        kind = type(e).__name__.removesuffix("Approx")
        if kind == "AddExpression" and all(part.shape == e.shape for part in e.args):
            return sum((self._sum_of(part, where) for part in e.args), start=0.0)
        if kind == "NegExpression":
            return -self._sum_of(e.args[0], where)
        if kind in ("multiply", "DivExpression"):
            factor, part = _factor(e)
            if factor is not None and part.shape == e.shape:
                weights = np.broadcast_to(_flat(factor.value), part.size)
                return self._weighted(1.0 / weights if kind == "DivExpression" else weights, part, where)
        inside = e.args[0] if e.args else None
        if inside is None or not inside.is_affine():
            return self._refuse(e, where)
        if kind in ENTRYWISE:
            return ENTRYWISE[kind](self.affine(inside))
        if kind.lower() == "power" and float(getattr(e.p, "value", e.p)) == 2.0:
            return atoms.sum_squares(self.affine(inside))
        if kind == "huber":
            return 2.0 * atoms.huber(self.affine(inside), float(e.M.value))
        above = self._above(e)
        if above is not None:
            return atoms.positive_part(above[0]) + float(above[1].sum())
        return self._refuse(e, where)

    def _above(self, e: Any) -> tuple[Affine, Any] | None:
        """The affine expression less a level, and the level, of which e is the maximum entry by entry."""
        if type(e).__name__ != "maximum" or len(e.args) != 2:
            return None
        constants = [a for a in e.args if a.is_constant()]
        others = [a for a in e.args if not a.is_constant()]
        if len(constants) != 1 or not others[0].is_affine() or others[0].shape != e.shape:
            return None
        level = _flat(np.broadcast_to(np.asarray(constants[0].value), e.shape))
        return self.affine(others[0]) - level, level

    def _weighted(self, weights: Any, e: Any, where: str) -> Any:
        """The sum over the entries of weights times a function of each entry."""
        if e.is_affine():
            return (self.affine(e) * weights).sum()
        if (weights == weights[0]).all():
            return self._sum_of(e, where) * float(weights[0])
        if (weights <= 0.0).all():
            return -self._weighted(-weights, e, where)
        kind, inside = type(e).__name__.removesuffix("Approx"), e.args[0]
        if (weights >= 0.0).all() and inside.is_affine():
            above = self._above(e)
            if kind == "abs":
                return atoms.norm1(self.affine(inside) * weights)
            if kind.lower() == "power" and float(getattr(e.p, "value", e.p)) == 2.0:
                return atoms.sum_squares(self.affine(inside) * np.sqrt(weights))
            if above is not None:
                return atoms.positive_part(above[0] * weights) + float(weights @ above[1])
        return self._refuse(e, where)

    def _sum_of(self, e: Any, where: str) -> Any:
        return self.affine(e).sum() if e.is_affine() else self._entrywise(e, where)

    def constraints(self, given: Any) -> list[Constraint]:
        """A constraint of CVXPY as constraints of ``sp.model``."""
        kind = type(given).__name__
        if kind in ("Equality", "Zero", "Inequality", "NonPos", "NonNeg"):
            e = given.expr
            if e.is_affine():
                found = self.affine(e)
                if not found.maps:
                    raise ProblemError(f"the constraint {given} has no variable in it")
                if kind in ("Equality", "Zero"):
                    return [Constraint("==", found, str(given))]
                return [Constraint("<=", -found if kind == "NonNeg" else found, str(given))]
            if kind == "Inequality":
                small, large = given.args
                if type(small).__name__ == "abs" and small.args[0].is_affine() and large.is_constant():
                    inside, most = self.affine(small.args[0]), _flat(np.broadcast_to(large.value, small.shape))
                    return [
                        Constraint("<=", inside - most, str(given)),
                        Constraint("<=", -inside - most, str(given)),
                    ]
                if small.size == 1 and large.is_constant() and large.size == 1:
                    norm = as_objective(self.read(small, f"the constraint {given}"))
                    assert norm is not None
                    condition = norm <= float(np.asarray(large.value).ravel()[0])
                    return [Constraint(condition.kind, condition.of, str(given), condition.bound)]
        raise ProblemError(
            f"the constraint {given} is not of the class; expected linear equations and inequalities, and norms that "
            "are at most a number"
        )

    def attributes(self) -> list[Constraint]:
        """The bounds that variables have as attributes."""
        found = []
        for v, _ in self.given.values():
            own, name = self.own[v.id], v.name()
            if v.attributes["nonneg"]:
                found.append(own >= 0.0)
            if v.attributes["nonpos"]:
                found.append(own <= 0.0)
            bounds = v.attributes.get("bounds")
            for bound, sign in zip(bounds or (), (-1.0, 1.0), strict=False):
                numbers = np.broadcast_to(np.asarray(getattr(bound, "value", bound), dtype=np.float64), v.shape).ravel()
                kept = np.isfinite(numbers)
                if kept.all():
                    found.append(Constraint("<=", sign * (own.ravel() - numbers), f"the bounds of {name}"))
                elif kept.any():
                    e = sign * (own.ravel()[kept] - numbers[kept])
                    found.append(Constraint("<=", e, f"the bounds of {name}"))
        return found

    def _refuse(self, e: Any, where: str) -> Any:
        raise ProblemError(
            f"the term {_text(e)} of {where} is not of the class; expected sums of multiples of sum_squares, "
            "quad_form, logistic, huber, log_sum_exp, norm1, norm2, norm_inf, max, and sums of abs, square and pos, of "
            "affine expressions"
        )


def _factor(e: Any) -> tuple[Any, Any]:
    """The constant factor of a product or a quotient, or None, and the other one."""
    first, second = e.args
    if first.is_constant() and type(e).__name__ != "DivExpression":
        return first, second
    return (second, first) if second.is_constant() else (None, first)


def _flat(value: Any) -> Any:
    dense = value.toarray() if hasattr(value, "toarray") else np.asarray(value, dtype=np.float64)
    return np.asarray(dense, dtype=np.float64).ravel(order="F")


def _text(e: Any) -> str:
    text = " ".join(str(e).split())
    return text if len(text) <= 60 else f"{text[:57]}..."
