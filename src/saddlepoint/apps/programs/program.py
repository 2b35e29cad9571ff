r"""Linear and quadratic programs whose answer is a proven interval for the optimal value.

Problem:    min 1/2 x'Px + q'x subject to lower <= A x <= upper and x_lower <= x <= x_upper, P >= 0.
Guarantee:  lower <= optimal value <= upper, for the very numbers that were given, with all rounding accounted for
            (``certificate.py`` has the proof). "optimal" is reported only if the interval is as short as was asked for.
            "infeasible" and "unbounded" are reported only with a ray that proves it (``rays.py``).
Method:     an interior-point method (``interior.py``) where factorisations are cheap, a first-order method
            (``first_order.py``) otherwise. Their points are proposals; claims are computed from them afterwards.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from saddlepoint.apps.programs.data import Data, read_program
from saddlepoint.apps.programs.evidence import Evidence
from saddlepoint.apps.programs.rays import proves_infeasible, proves_unbounded
from saddlepoint.apps.programs.result import ProgramCertificate, ProgramResult
from saddlepoint.apps.programs.search import ProofSearch
from saddlepoint.ground.arrays import Array
from saddlepoint.ground.errors import ProblemError
from saddlepoint.ground.time_limit import TimeLimit
from saddlepoint.ground.validation import as_vector, positive, short_repr
from saddlepoint.parts.functions.given_constants import as_nonnegative

RTOL = 1e-6  # length of the interval to prove if none is given, relative to the optimal value
METHODS = "auto", "interior", "first-order"


class QuadraticProgram:
    """min 1/2 x'Px + q'x subject to lower <= A x <= upper and x_lower <= x <= x_upper, P positive semidefinite.

    Without P it is a linear program. Equations are rows with lower = upper. The answer is a proven interval for the
    optimal value, whatever the method did to find it.

    Args:
        P: a symmetric matrix, dense or sparse; None for a linear program. That it is positive semidefinite is proven.
        q: the linear part of the objective; None for 0.
        A: the rows, dense or sparse; None for none.
        lower, upper: the ends of A x: vectors, or numbers for all rows; infinite, or None, where there is none.
        x_lower, x_upper: the bounds of x, in the same way.

    Example:
        >>> import saddlepoint as sp
        >>> program = sp.apps.QuadraticProgram(q=[-1.0, -2.0], A=[[1.0, 1.0]], upper=1.0, x_lower=0.0)
        >>> found = program.solve()
        >>> found.status, found.x.round(6), found.lower <= -2.0 <= found.upper
        (<ProgramStatus.OPTIMAL: 'optimal'>, array([0., 1.]), True)
    """

    def __init__(
        self,
        P: Any = None,
        q: Any = None,
        A: Any = None,
        lower: Any = None,
        upper: Any = None,
        x_lower: Any = None,
        x_upper: Any = None,
    ) -> None:
        self._data = read_program(P, q, A, lower, upper, x_lower, x_upper)

    @property
    def shape(self) -> tuple[int, int]:
        """The number of rows of A, and of variables."""
        return self._data.shape

    def value(self, x: Any) -> float:
        """The objective at x."""
        with np.errstate(all="ignore"):
            return self._data.estimate(self._point(x))

    def violation(self, x: Any) -> float:
        """A proven upper bound of the largest violation of a row or of a bound at x; 0 only if there is none."""
        with np.errstate(all="ignore"):
            return self._data.violation(self._point(x))

    def certify(self, x: Any, y: Any = None, *, feasibility: float = 0.0) -> ProgramCertificate:
        """What a point and multipliers, whoever computed them, prove about the optimal value.

        Args:
            x: a point; it need not satisfy the program.
            y: multipliers of the rows, with P x + q + A'y as the reduced cost; None for zeros.
            feasibility: the interval is for the program whose rows and bounds may be violated by this much.

        Example:
            >>> import saddlepoint as sp
            >>> program = sp.apps.QuadraticProgram(P=[[2.0]], q=[-2.0], x_lower=0.0, x_upper=3.0)
            >>> program.certify([1.5])
            ProgramCertificate(-1 <= optimal value <= -0.75, violation <= 0)
        """
        point = self._point(x)
        multipliers = np.zeros(self.shape[0]) if y is None else self._multipliers(y)
        with np.errstate(all="ignore"):
            evidence = Evidence(self._relaxed(feasibility), self._data)
            evidence.add(point, multipliers)
            evidence.add_exactly(point, multipliers)
            if evidence.upper < math.inf:
                evidence.add_multipliers(point, multipliers)
            return ProgramCertificate(
                evidence.lower, evidence.upper, self._data.violation(point), evidence.why_lower, evidence.why_upper
            )

    def proves_infeasible(self, y: Any) -> bool:
        """Whether multipliers prove that no point satisfies the rows and bounds."""
        with np.errstate(all="ignore"):
            return proves_infeasible(self._data, self._multipliers(y))

    def proves_unbounded(self, d: Any) -> bool:
        """Whether, within rounding errors of d, the objective decreases without bound along a direction.

        It proves that the program is unbounded if it has a point that satisfies all rows and bounds.
        """
        with np.errstate(all="ignore"):
            return proves_unbounded(self._data, self._point(d))

    def solve(
        self,
        *,
        gap: float | None = None,
        rtol: float | None = None,
        feasibility: float = 0.0,
        method: str = "auto",
        max_seconds: float | None = None,
    ) -> ProgramResult:
        """The optimal value, as a proven interval, and a point.

        Args:
            gap: the length of the interval to prove, in units of the objective.
            rtol: the same relative to the optimal value; where the terms of the objective cancel, relative to a
                millionth of the sum of their absolute values. 1e-6 if neither is given.
            feasibility: the interval is for the program whose rows and bounds may be violated by this much. 0 is the
                program itself, of which a point that satisfies all equations exactly is proven to exist.
            method: "interior" (factorises), "first-order" (products with A alone), or "auto".
            max_seconds: wall-clock limit; without one, the first-order method ends a search after 60 seconds.
        """
        if gap is not None and rtol is not None:
            raise ProblemError("both gap and rtol are given; expected one of them")
        if not isinstance(method, str) or method not in METHODS:
            raise ProblemError(f"method is {short_repr(method)}; expected one of {', '.join(map(repr, METHODS))}")
        limit = TimeLimit(max_seconds)
        data = self._relaxed(feasibility)
        target = None if gap is None else positive(gap, "gap")
        run = ProofSearch(self._data, data, target, RTOL if rtol is None else positive(rtol, "rtol"), method, limit)
        return run.solve()

    def _relaxed(self, feasibility: float) -> Data:
        by = as_nonnegative(feasibility, "feasibility")
        return self._data if by == 0.0 else self._data.relaxed(by)

    def _point(self, x: Any) -> Array:
        return as_vector(x, "x", self.shape[1]).astype(np.float64)

    def _multipliers(self, y: Any) -> Array:
        return as_vector(y, "y", self.shape[0]).astype(np.float64) if self.shape[0] else np.zeros(0)
