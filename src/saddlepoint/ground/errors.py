"""The exceptions: for arguments that are not valid, and for assumptions about a problem that a run refutes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from saddlepoint.ground.arrays import Array
    from saddlepoint.solving.result import Result


class ProblemError(ValueError):
    """An argument or a problem is not valid: the message says what was given, what was expected and what to do."""


class InfeasibleError(ProblemError):
    """The constraints E v = e, v >= 0 have no solution.

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
    """SIGTERM was sent to this process or to another one that runs the same solve."""


SLIGHT = 1e-4  # largest relative error of a constant that is corrected without an error


class AssumptionError(RuntimeError):
    """The run proved that something the caller said about the problem is wrong.

    Attributes:
        function: ``"g"``, ``"h"`` or ``"A"``.
        constant: what is refuted: ``"mu"``, ``"L"``, ``"gradient"`` (it is not a gradient), ``"hessian"`` (its second
            derivatives, or how much they change) or ``"prox"`` (of its simple term) of a function, ``"norm"`` or
            ``"transpose"`` of A.
        given: the value that the caller gave.
        observed: what the data show: a lower bound on the true ``L``, or an upper bound on the true ``mu``.
        suggested: a corrected constant to go on with, or None where no constant can correct it.
        result: the best certified point before the contradiction. A certificate depends on mu (never on L), so that
            it is not valid if mu is refuted.
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

    @property
    def is_slight(self) -> bool:
        """Whether the constant is wrong by so little that runs go on with a safe one.

        Gradients by finite differences, whose steps depend on the point, show such errors of correct constants.
        """
        near = abs(self.given - self.observed) <= SLIGHT * min(abs(self.given), abs(self.observed))
        return near and self.suggested is not None and self.constant in ("mu", "L")

    def __reduce__(self) -> Any:
        parts = self.function, self.constant, self.given, self.observed, str(self), self.suggested
        return type(self), parts, {"result": self.result}


class NotFinite(Exception):  # noqa: N818
    """A gradient holds NaN or infinity."""


def first_line(error: BaseException) -> str:
    """The first line of the message of an error, or the name of its class if it has none."""
    return (str(error).splitlines() or [type(error).__name__])[0]
