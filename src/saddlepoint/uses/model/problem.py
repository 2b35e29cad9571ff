"""A saddle problem that was written down with variables, and its answer by name."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from saddlepoint.apps.programs.program import ProgramResult
from saddlepoint.ground.arrays import Array
from saddlepoint.ground.errors import ProblemError
from saddlepoint.ground.validation import as_float_array, positive, short_repr
from saddlepoint.problems.certify import CertifiedPoint, certify_point
from saddlepoint.problems.saddle import Saddle
from saddlepoint.solving.result import Result
from saddlepoint.solving.solve import solve
from saddlepoint.theory.certificate import Certificate
from saddlepoint.uses.model.atoms import value_of
from saddlepoint.uses.model.expressions import Constraint, Objective, Variable
from saddlepoint.uses.model.lifting import Lifted, NothingProvenError, lifted
from saddlepoint.uses.model.program import Program, as_program, violation
from saddlepoint.uses.model.rules import checked, variables_of
from saddlepoint.uses.model.standard_form import StandardForm, UnboundedNormError, standard_form

DEFAULT = 1e-6  # certified distance or gap of a solution that is asked for nothing else
COMPUTED = "Products of matrices of the model were computed in float64, and the certificate is about the results."
UP = 1.0 + 1e-12  # factor that exceeds the rounding of the bounds here


class Problem:
    """min over the variables of the minimiser, max over those of the maximiser, of an objective with constraints.

    Args:
        objective: a sum of convex terms of the minimiser's variables, concave ones of the maximiser's, bilinear and
            affine terms. What is not of this class is refused with the name of the term.
        constraints: a list of linear equations and inequalities, and of norms with bounds; each is about variables of
            one player.
        multiplier_bound: a number that the multipliers of the solution do not exceed. Constraints that are no simple
            functions of one variable need it: each violation costs this number times its size.

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
    def _forms(self) -> tuple[Lifted, StandardForm]:
        draft = lifted(self.objective, self.constraints, self.multiplier_bound)
        try:
            return draft, standard_form(draft)
        except UnboundedNormError:
            draft = lifted(self.objective, self.constraints, self.multiplier_bound, plain_norms=False)
            return draft, standard_form(draft)

    @property
    def form(self) -> StandardForm:
        """The standard form, and where each variable is in it."""
        return self._forms[1]

    @property
    def saddle(self) -> Saddle:
        """The problem in standard form, a ``Saddle`` with vectors x and y."""
        return self._forms[1].saddle

    @property
    def assumes(self) -> tuple[str, ...]:
        """What certificates of this problem rest on beside those of the standard form, in sentences."""
        draft, form = self._forms
        found = []
        if draft.multipliers:
            names = "; ".join(condition.text for condition, _ in draft.multipliers)
            found.append(
                f"The multipliers of the constraints are at most {self.multiplier_bound:g} at the solution ({names})."
            )
        if form.computed:
            found.append(COMPUTED)
        return tuple(found)

    def value(self, values: Mapping[Any, Any]) -> float:
        """The objective for these values of the variables, given by name or by variable."""
        return value_of(self.objective, self._values(values))

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
        try:
            f = self.saddle
        except NothingProvenError:
            program = None if self.multiplier_bound else as_program(self.objective, self.constraints, self.variables)
            if program is None:
                raise
            return _solved_program(self, program, options)
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
        draft, form = self._forms
        given = self._values(values, some=True)
        if not given:
            raise ProblemError("there are no values to certify; expected those of one variable at least")
        if len(given) == len(draft.variables):
            point = certify_point(form.saddle, *self._point(values))
            return CertifiedAnswer(self, given, _with(point.certificate, self.assumes), point, None)
        answer = self.solve(given, **options)
        if isinstance(answer, ProgramAnswer):
            raise ProblemError("no distance is proven without a bound on the multipliers; give multiplier_bound=")
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


class Answer:
    """The solution of a ``Problem`` by the names of its variables, with its certificate.

    Attributes:
        problem: the problem.
        result: the ``Result`` of the run on the standard form.
    """

    def __init__(self, problem: Problem, result: Result) -> None:
        self.problem, self.result = problem, result
        self._found = problem.form.split(result.x, result.y)

    def __getitem__(self, key: Any) -> Any:
        """The value of a variable, by its name or by itself, or of each variable of a tree of them."""
        return _looked_up(key, {v: self._found[v] for v in self.problem.variables})

    @property
    def values(self) -> dict[str, Array]:
        """The values of all variables by their names."""
        return {v.name: self._found[v] for v in self.problem.variables}

    @property
    def multipliers(self) -> dict[str, Array]:
        """The multipliers of the constraints that have some, by the texts of the constraints."""
        draft = self.problem._forms[0]
        return {condition.text: self._found[u].reshape(condition.of.shape) for condition, u in draft.multipliers}

    @property
    def value(self) -> float:
        """The objective at the answer. Without constraints that have multipliers, it differs from the value of the
        problem by at most the certified gap.
        """
        return value_of(self.problem.objective, self._found)

    @property
    def violations(self) -> dict[str, float]:
        """By how much each constraint is violated at most, by the texts of the constraints."""
        return {condition.text: violation(condition, self._found) for condition in self.problem.constraints}

    @property
    def solved(self) -> bool:
        """Whether the certificate that was asked for has been reached."""
        return self.result.solved

    @property
    def message(self) -> str:
        """How the run ended."""
        return self.result.message

    @property
    def certificate(self) -> Certificate:
        """The certificate of the point (x, y) of the standard form."""
        return _with(self.result.certificate, self.problem.assumes)

    @property
    def gap(self) -> float:
        """The certified duality gap."""
        return self.result.certificate.gap

    def distance(self, key: Any) -> float:
        """A bound on the distance of the value of a variable from the solution; infinite if nothing is proven.

        Beside the certified distance of all variables of the player, sqrt(2 gap/mu) is a bound, with the mu of the
        terms in which the variable is.
        """
        v = _looked_up(key, {u: u for u in self.problem.variables})
        proof, form = self.result.certificate, self.problem.form
        whole = proof.distance_x if v.player == "minimiser" else proof.distance_y
        mu = form.strength(v)
        return min(whole, UP * math.sqrt(2.0 * proof.gap / mu) if mu > 0.0 else math.inf)

    def __repr__(self) -> str:
        sizes = ", ".join(f"{v.name} {v.shape}" for v in self.problem.variables)
        return f"Answer({self.message.split('(')[0].strip()}; value {self.value:.6g}; {sizes})"


class ProgramAnswer:
    """The answer to a linear or quadratic program by the names of its variables, with a proven interval.

    Attributes:
        problem: the problem.
        result: the ``ProgramResult``.
    """

    def __init__(self, problem: Problem, program: Program, result: ProgramResult) -> None:
        self.problem, self.result, self._program = problem, result, program
        self._found = program.values(result)

    def __getitem__(self, key: Any) -> Any:
        """The value of a variable, by its name or by itself, or of each variable of a tree of them."""
        return _looked_up(key, self._found)

    @property
    def values(self) -> dict[str, Array]:
        """The values of all variables by their names."""
        return {v.name: value for v, value in self._found.items()}

    @property
    def value(self) -> float:
        """The objective at the answer; inf if the program is proven infeasible, and -inf if it is proven unbounded."""
        if self.result.lower == self.result.upper and math.isinf(self.result.lower):
            return self.result.lower
        return value_of(self.problem.objective, self._found)

    @property
    def lower(self) -> float:
        """The value of the problem is at least this."""
        least = self.result.lower + (self._program.offset - self._program.slack)
        return least if math.isinf(least) else math.nextafter(least, -math.inf)

    @property
    def upper(self) -> float:
        """The value of the problem is at most this."""
        most = self.result.upper + (self._program.offset + self._program.slack)
        return most if math.isinf(most) else math.nextafter(most, math.inf)

    @property
    def gap(self) -> float:
        """The length of the proven interval."""
        return self.result.width

    @property
    def multipliers(self) -> dict[str, Array]:
        """The multipliers of the constraints by their texts."""
        return self._program.multipliers(self.result)

    @property
    def violations(self) -> dict[str, float]:
        """By how much each constraint is violated at most, by the texts of the constraints."""
        return {condition.text: violation(condition, self._found) for condition in self.problem.constraints}

    @property
    def solved(self) -> bool:
        """Whether the program is proven to be optimal, infeasible or unbounded."""
        return self.result.solved

    @property
    def status(self) -> str:
        """What is proven: "optimal", "infeasible", "unbounded" or "not proven"."""
        return str(self.result.status)

    @property
    def message(self) -> str:
        """What is proven, or what was not, in a sentence."""
        return self.result.message

    @property
    def assumes(self) -> tuple[str, ...]:
        """What the interval rests on, in sentences."""
        return (COMPUTED,) if self._program.computed else ()

    def __repr__(self) -> str:
        return f"ProgramAnswer({self.status}: {self.lower:.9g} <= value <= {self.upper:.9g})"


@dataclass(frozen=True)
class CertifiedAnswer:
    """What is proven about values that somebody has computed; ``Problem.certify`` and ``sp.certify`` make it.

    Attributes:
        problem: the problem.
        values: the values that were given.
        certificate: of the given point, or of the solution that was computed from it.
        point: the certified point, if the given values were certified as they are.
        answer: the solution that was computed, if they were not.
    """

    problem: Problem
    values: dict[Variable, Array]
    certificate: Certificate
    point: CertifiedPoint | None
    answer: Answer | None

    def distance(self, key: Any) -> float:
        """A bound on the distance of the given value of a variable from the solution."""
        v = _looked_up(key, {u: u for u in self.values})
        form = self.problem.form
        proof = self.certificate
        mu = form.strength(v)
        own = min(
            proof.distance_x if v.player == "minimiser" else proof.distance_y,
            UP * math.sqrt(2.0 * proof.gap / mu) if mu > 0.0 else math.inf,
        )
        if self.answer is not None:
            near = self.answer[v]
        else:
            assert self.point is not None
            near = form.split(self.point.x, self.point.y)[v]
        return own + UP * float(np.linalg.norm(self.values[v] - near))

    @property
    def gap(self) -> float:
        """The certified duality gap of the certified point."""
        return self.certificate.gap

    def __repr__(self) -> str:
        parts = [f"|{v.name} - {v.name}*| <= {self.distance(v):.3g}" for v in self.values]
        return f"CertifiedAnswer({', '.join(parts)})"


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


def _with(proof: Certificate, assumes: tuple[str, ...]) -> Certificate:
    return proof._replace(assumes=(*proof.assumes, *assumes))


def _looked_up(key: Any, values: Mapping[Variable, Any]) -> Any:
    if isinstance(key, Mapping):
        return {name: _looked_up(part, values) for name, part in key.items()}
    if isinstance(key, tuple | list):
        return type(key)(_looked_up(part, values) for part in key)
    for v, value in values.items():
        if v is key or (isinstance(key, str) and v.name == key):
            return value
    names = ", ".join(v.name for v in values)
    raise ProblemError(f"{short_repr(key)} is no variable of the problem; expected one of {names}")
