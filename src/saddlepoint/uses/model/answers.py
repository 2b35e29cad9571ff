"""Answers to problems with variables, by the names of the variables, with what is proven about them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from saddlepoint.apps.programs.result import ProgramResult
from saddlepoint.ground.arrays import Array
from saddlepoint.ground.errors import ProblemError
from saddlepoint.ground.validation import short_repr
from saddlepoint.problems.certify import CertifiedPoint
from saddlepoint.solving.result import Result
from saddlepoint.theory.certificate import Certificate, distance_from_gap
from saddlepoint.uses.model.atoms import value_of
from saddlepoint.uses.model.expressions import Variable
from saddlepoint.uses.model.program import Program, violation

if TYPE_CHECKING:
    from saddlepoint.uses.model.problem import Problem

COMPUTED = "Products of matrices of the model were computed in float64, and the certificate is about the results."
UP = 1.0 + 1e-12  # factor that exceeds the rounding of the bounds here


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
        return _value_of_key(key, {v: self._found[v] for v in self.problem.variables})

    @property
    def values(self) -> dict[str, Array]:
        """The values of all variables by their names."""
        return {v.name: self._found[v] for v in self.problem.variables}

    @property
    def multipliers(self) -> dict[str, Array]:
        """The multipliers of the constraints that have some, by the texts of the constraints."""
        draft = self.problem.forms[0]
        return {condition.text: self._found[u].reshape(condition.of.shape) for condition, u in draft.multipliers}

    @property
    def value(self) -> float:
        """The objective at the answer, with the simple functions of the variables (subtracted for the maximiser).

        Without constraints that have multipliers, it differs from the value of the problem by at most the certified
        gap.
        """
        return value_of(self.problem.objective, self.problem.variables, self._found)

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
        return with_assumptions(self.result.certificate, self.problem.assumes)

    @property
    def gap(self) -> float:
        """The certified duality gap."""
        return self.result.certificate.gap

    def distance(self, key: Any) -> float:
        """A bound on the distance of the value of a variable from the solution; infinite if nothing is proven.

        Beside the certified distance of all variables of the player, sqrt(2 gap/mu) is a bound, with the mu of the
        terms in which the variable is.
        """
        v = _value_of_key(key, {u: u for u in self.problem.variables})
        return _distance(v, self.result.certificate, self.problem.form.strength(v))

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
        return _value_of_key(key, self._found)

    @property
    def values(self) -> dict[str, Array]:
        """The values of all variables by their names."""
        return {v.name: value for v, value in self._found.items()}

    @property
    def value(self) -> float:
        """The objective at the answer; inf if the program is proven infeasible, and -inf if it is proven unbounded."""
        if self.result.lower == self.result.upper and math.isinf(self.result.lower):
            return self.result.lower
        return value_of(self.problem.objective, (), self._found)  # simple functions of programs are constraints

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
        if self.status == "optimal":
            return f"ProgramAnswer({self.status}: {self.lower:.9g} <= value <= {self.upper:.9g})"
        return f"ProgramAnswer({self.status}: {self.message})"


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
        v = _value_of_key(key, {u: u for u in self.values})
        form = self.problem.form
        own = _distance(v, self.certificate, form.strength(v))
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


def with_assumptions(proof: Certificate, assumes: tuple[str, ...]) -> Certificate:
    """The certificate, with further sentences about what it rests on."""
    return proof._replace(assumes=(*proof.assumes, *assumes))


def _distance(v: Variable, proof: Certificate, mu: float) -> float:
    """The certified distance of a variable: that of all variables of its player, or sqrt(2 gap/mu) if it is smaller."""
    whole = proof.distance_x if v.player == "minimiser" else proof.distance_y
    return min(whole, distance_from_gap(mu, proof.gap))


def _value_of_key(key: Any, values: Mapping[Variable, Any]) -> Any:
    """The value of a variable, by its name or by itself, or the values of a tuple, list or dictionary of variables."""
    if isinstance(key, Mapping):
        return {name: _value_of_key(part, values) for name, part in key.items()}
    if isinstance(key, tuple | list):
        return type(key)(_value_of_key(part, values) for part in key)
    for v, value in values.items():
        if v is key or (isinstance(key, str) and v.name == key):
            return value
    names = ", ".join(v.name for v in values)
    raise ProblemError(f"{short_repr(key)} is no variable of the problem; expected one of {names}")
