"""A saddle problem that was written down with variables, and its answer by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from saddlepoint.ground.arrays import Array
from saddlepoint.ground.errors import ProblemError
from saddlepoint.ground.validation import as_float_array, positive, short_repr
from saddlepoint.problems.certify import certify_point
from saddlepoint.problems.saddle import Saddle
from saddlepoint.solving.solve import solve
from saddlepoint.uses.model.answers import COMPUTED, Answer, CertifiedAnswer, ProgramAnswer, with_assumptions
from saddlepoint.uses.model.atoms import value_of
from saddlepoint.uses.model.constraints import Constraint
from saddlepoint.uses.model.expressions import Objective, Variable
from saddlepoint.uses.model.lifting import Lifted, NothingProvenError, lifted
from saddlepoint.uses.model.multiplier_bounds import multiplier_bounds
from saddlepoint.uses.model.program import Program, as_program
from saddlepoint.uses.model.rules import checked, variables_of
from saddlepoint.uses.model.standard_form import StandardForm, UnboundedNormError, standard_form

DEFAULT = 1e-6  # certified distance or gap of a solution that is asked for nothing else


class Problem:
    """min over the variables of the minimiser, max over those of the maximiser, of an objective with constraints.

    Args:
        objective: a sum of convex terms of the minimiser's variables, concave ones of the maximiser's, bilinear and
            affine terms. What is not of this class is refused with the name of the term.
        constraints: a list of linear equations and inequalities, and of norms with bounds; each is about variables of
            one player.
        multiplier_bound: a number that the multipliers of the solution do not exceed. Equations that are no simple
            functions of one variable need it, and inequalities for which none can be proven (see
            ``multiplier_bounds``): each violation costs this number times its size.

    Attributes:
        variables: all variables, in the order in which they appear.

    Example:
        >>> import numpy as np, saddlepoint as sp
        >>> x = sp.model.minimiser(2, "x", sp.Simplex())
        >>> y = sp.model.maximiser(2, "y", sp.Simplex())
        >>> answer = sp.model.Problem(x @ np.array([[1.0, 2.0], [3.0, 1.0]]) @ y).solve(gap=1e-9)
        >>> answer["x"].round(6).tolist(), round(answer.value, 6)
        ([0.666667, 0.333333], 1.666667)
    """

    def __init__(
        self, objective: Any, constraints: Sequence[Constraint] = (), *, multiplier_bound: float | None = None
    ) -> None:
        if isinstance(constraints, Constraint):
            raise ProblemError(
                f"constraints is {constraints.text}; expected a list of constraints: [{constraints.text}]"
            )
        self.objective: Objective
        self.objective, given = checked(objective, constraints)
        self.constraints = _with_different_names(given)
        self.multiplier_bound = (
            None if multiplier_bound is None else positive(multiplier_bound, "multiplier_bound of Problem")
        )
        self.variables = variables_of(self.objective, self.constraints)

    @cached_property
    def forms(self) -> tuple[Lifted, StandardForm]:
        """The problem with smooth objectives and simple terms, and the same as a ``Saddle``."""
        bounds: Any = self.multiplier_bound
        try:
            draft = lifted(self.objective, self.constraints, bounds)
        except NothingProvenError:
            if self._program is not None:
                raise
            bounds = multiplier_bounds(self.objective, self.constraints)
            draft = lifted(self.objective, self.constraints, bounds)
        try:
            return draft, standard_form(draft)
        except UnboundedNormError:
            draft = lifted(self.objective, self.constraints, bounds, plain_norms=False)
            return draft, standard_form(draft)

    @cached_property
    def _program(self) -> Program | None:
        """The linear or quadratic program that the problem is, if it is one and has no bound on multipliers."""
        return None if self.multiplier_bound else as_program(self.objective, self.constraints, self.variables)

    @property
    def form(self) -> StandardForm:
        """The standard form, and where each variable is in it."""
        return self.forms[1]

    @property
    def saddle(self) -> Saddle:
        """The problem in standard form, a ``Saddle`` with vectors x and y."""
        return self.forms[1].saddle

    @property
    def assumes(self) -> tuple[str, ...]:
        """What certificates of this problem rest on beside those of the standard form, in sentences."""
        draft, form = self.forms
        found = []
        if draft.multipliers and self.multiplier_bound is not None:
            names = "; ".join(condition.text for condition, _ in draft.multipliers)
            found.append(
                f"The multipliers of the constraints are at most {self.multiplier_bound:g} at the solution ({names})."
            )
        if form.computed:
            found.append(COMPUTED)
        return tuple(found)

    def value(self, values: Mapping[Any, Any]) -> float:
        """The objective for these values of the variables, given by name or by variable.

        The simple functions of the variables are counted: a norm adds to it, and outside a set it is infinite. The list
        of constraints is not.
        """
        return value_of(self.objective, self.variables, self._values(values))

    def solve(self, start: Mapping[Any, Any] | None = None, **options: Any) -> Answer | ProgramAnswer:
        """Solve the problem and prove how good the answer is.

        Args:
            start: values of some or all variables, by name or by variable, from which the run starts.
            options: those of ``sp.solve``. Without tol, rtol and gap, a distance of 1e-6 is asked for where it can be
                proven, and else a duality gap of 1e-6.

        Returns:
            An ``Answer``. A linear or quadratic program about which nothing could be proven this way, because it has
            constraints and no ``multiplier_bound``, is handed to ``sp.apps.QuadraticProgram``, and the answer is a
            ``ProgramAnswer`` with a proven interval for the value; the options are then gap, rtol, feasibility,
            method and max_seconds.
        """
        if "multiplier_bound" in options:
            raise ProblemError(
                "multiplier_bound is no option of solve, because the certificate rests on it; write "
                "Problem(objective, constraints, multiplier_bound=M).solve()"
            )
        try:
            f = self.saddle
        except NothingProvenError:
            if self._program is None:
                raise
            return _solved_program(self, self._program, options)
        if not {"tol", "rtol", "gap"} & options.keys():
            options["tol" if f.mu > 0.0 else "gap"] = DEFAULT
        x0, y0 = self._point({} if start is None else start)
        return Answer(self, solve(f, x0, y0, **options))

    def certify(self, values: Mapping[Any, Any], **options: Any) -> CertifiedAnswer:
        """What is proven about these values of the variables, whoever has computed them.

        If values of all variables of the standard form are given, and it has no further ones, they are certified as
        they are. Otherwise the problem is solved from there, and the distance to its solution is the certified one
        plus the distance between the two points.

        Args:
            values: by name or by variable; those of the minimiser or of the maximiser alone are enough.
            options: of ``solve``, if the problem is solved.
        """
        draft, form = self.forms
        given = self._values(values, some=True)
        if not given:
            raise ProblemError("there are no values to certify; expected those of one variable at least")
        if len(given) == len(draft.variables):
            point = certify_point(form.saddle, *self._point(values))
            return CertifiedAnswer(self, given, with_assumptions(point.certificate, self.assumes), point, None)
        answer = self.solve(given, **options)
        if isinstance(answer, ProgramAnswer):
            raise ProblemError(
                "no distance is proven without a bound on the multipliers; write Problem(..., multiplier_bound=M)"
            )
        return CertifiedAnswer(self, given, answer.certificate, None, answer)

    def _point(self, values: Mapping[Any, Any]) -> tuple[Array, Array]:
        """The vectors x and y with these values, and zero for the rest, projected onto the domain."""
        form, given = self.form, self._values(values, some=True)
        x, y = np.zeros(form.saddle.shape[0]), np.zeros(form.saddle.shape[1])
        for v, value in given.items():
            side, vector = (form.minimiser, x) if v in form.minimiser.rows else (form.maximiser, y)
            vector[side.rows[v]] = value.ravel()
        return x, y

    def _values(self, values: Mapping[Any, Any], some: bool = False) -> dict[Variable, Array]:
        if not isinstance(values, Mapping):
            raise ProblemError(f"the values are {short_repr(values)}; expected a dictionary by the names of variables")
        names = {v.name: v for v in self.variables}
        found = {}
        for key, value in values.items():
            v = key if isinstance(key, Variable) else names.get(key) if isinstance(key, str) else None
            if v is None or all(v is not own for own in self.variables):
                raise ProblemError(
                    f"{short_repr(key)} is no variable of the problem; expected one of {', '.join(names)}"
                )
            array = np.asarray(as_float_array(value, f"the value of {v.name}"), dtype=np.float64)
            if array.size != v.size or (array.shape != v.shape and array.ndim > 1):
                raise ProblemError(f"the value of {v.name} has the shape {array.shape}; expected {v.shape}")
            if not np.isfinite(array).all():
                raise ProblemError(f"the value of {v.name} contains nan or infinity; expected finite numbers")
            found[v] = array.reshape(v.shape)
        missing = [v.name for v in self.variables if v not in found]
        if missing and not some:
            raise ProblemError(f"values of {', '.join(missing)} are missing; expected those of all variables")
        return found

    def __repr__(self) -> str:
        conditions = f", {len(self.constraints)} constraints" if self.constraints else ""
        return f"Problem({self.objective.text}{conditions})"


def _with_different_names(constraints: Sequence[Constraint]) -> list[Constraint]:
    """The constraints; the second and later ones with one text have a number behind it."""
    found: list[Constraint] = []
    counts: dict[str, int] = {}
    for condition in constraints:
        counts[condition.text] = number = counts.get(condition.text, 0) + 1
        found.append(condition if number == 1 else replace(condition, text=f"{condition.text} ({number})"))
    return found


def _solved_program(problem: Problem, program: Program, options: dict[str, Any]) -> ProgramAnswer:
    unknown = options.keys() - {"gap", "rtol", "feasibility", "method", "max_seconds"}
    if unknown:
        raise ProblemError(
            f"{', '.join(sorted(unknown))} cannot be asked of a program that has no bound on its multipliers; expected "
            "gap, rtol, feasibility, method or max_seconds, or multiplier_bound= in the problem"
        )
    return ProgramAnswer(problem, program, program.program.solve(**options))
