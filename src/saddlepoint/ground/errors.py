"""What can be wrong: the problem as given, or an assumption about it that the run refutes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from saddlepoint.ground.arrays import Array
    from saddlepoint.solving.result import Result


class ProblemError(ValueError):
    """Something is wrong at the door: the message says what was given, what was expected and what to do."""


class InfeasibleError(ProblemError):
    """Constraints E v = e, v >= 0 without a solution.

    Attributes:
        certificate: a vector w with E'w <= 0 < e'w, up to rounding: no v >= 0 can have E v = e, since then
            0 < w'e = (E'w)'v <= 0.
    """

    def __init__(self, message: str, certificate: Array) -> None:
        super().__init__(message)
        self.certificate = certificate

    def __reduce__(self) -> Any:
        return type(self), (str(self), self.certificate)


class SingularError(ArithmeticError):
    """A matrix that should be positive definite is not, to working precision: the method cannot go on."""


class Terminated(BaseException):
    """SIGTERM came, to this process or to another that runs the same solve."""


class AssumptionError(RuntimeError):
    """The run proved something wrong that was said of the problem.

    Attributes:
        function: ``"g"``, ``"h"`` or ``"A"``.
        constant: what is refuted: ``"mu"``, ``"L"`` or ``"gradient"`` (it is none) of a function, ``"norm"`` or
            ``"transpose"`` of A.
        given: its given value.
        observed: what the data show: a lower bound on the true ``L``, or an upper bound on the true ``mu``.
        suggested: a corrected constant to go on with, or None where no constant can mend it.
        result: the best certified point before the contradiction. A certificate rests on mu (never on L): a refuted
            mu makes it void.
    """

    def __init__(
        self,
        function: str,
        constant: str,
        given: float,
        observed: float,
        message: str,
        suggested: float | None = None,
    ) -> None:
        super().__init__(message)
        self.function = function
        self.constant = constant
        self.given = given
        self.observed = observed
        self.suggested = suggested
        self.result: Result | None = None

    def __reduce__(self) -> Any:
        parts = self.function, self.constant, self.given, self.observed, str(self), self.suggested
        return type(self), parts, {"result": self.result}
