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
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array, issparse

from saddlepoint.apps.programs.data import Data, read_program
from saddlepoint.apps.programs.evidence import Evidence
from saddlepoint.apps.programs.first_order import first_order
from saddlepoint.apps.programs.interior import Proposal, interior_point
from saddlepoint.apps.programs.rays import (
    farkas_multipliers,
    proves_infeasible,
    proves_unbounded,
    ray_program,
    row_ray,
    violation_program,
    without_objective,
)
from saddlepoint.ground.arrays import Array
from saddlepoint.ground.errors import ProblemError
from saddlepoint.ground.file_writing import replacing
from saddlepoint.ground.fill_in import factor_work
from saddlepoint.ground.validation import as_number, as_vector, positive

RTOL = 1e-6  # length of the interval to prove if none is given, relative to the size of the objective
LEAST = 1e-6  # size of x, in each coordinate, below which rtol is not relative any more
WORK = 3e10  # multiplications of a factorisation up to which the interior-point method is taken
TRIES = 6  # proposals in a row that are examined without an improvement
SECONDS = 60.0  # limit of the first-order method if none is given
METHODS = "auto", "interior", "first-order"


class ProgramStatus(StrEnum):
    """What is proven about a program."""

    OPTIMAL = "optimal"
    INFEASIBLE = "infeasible"
    UNBOUNDED = "unbounded"
    UNPROVEN = "not proven"


class ProgramCertificate(NamedTuple):
    """What a point and multipliers prove about the optimal value.

    Attributes:
        lower: the optimal value is at least this; -inf where nothing is proven.
        upper: the optimal value is at most this; inf where no point is proven to satisfy the program.
        violation: a proven bound on the largest violation of a row or bound at the given point.
        why_lower, why_upper: why an end is infinite; empty if it is finite.
    """

    lower: float
    upper: float
    violation: float
    why_lower: str
    why_upper: str

    @property
    def width(self) -> float:
        """The length of the interval."""
        finite = math.isfinite(self.lower) and math.isfinite(self.upper)
        return max(0.0, math.nextafter(self.upper - self.lower, math.inf)) if finite else math.inf

    def __repr__(self) -> str:
        text = f"ProgramCertificate({self.lower:.12g} <= optimal value <= {self.upper:.12g}"
        return f"{text}, violation <= {self.violation:.3g})"


@dataclass(frozen=True, eq=False, repr=False)
class ProgramResult:
    """The answer to a program.

    Attributes:
        status: "optimal", "infeasible", "unbounded" or "not proven".
        lower, upper: a proven interval for the optimal value. Both are inf for an infeasible program, and -inf for an
            unbounded one.
        x: a point, and ``violation`` a proven bound on its largest violation of a row or bound. If ``upper`` is
            finite, a point that satisfies the program exactly is proven to exist within rounding errors of x.
        y: multipliers of the rows: P x + q + A'y is the reduced cost; y_i > 0 where the upper end of a row is active.
        ray: for an infeasible program, multipliers that prove it, and for an unbounded one a direction; else None.
        message: what is proven, or what was not, in a sentence.
        steps: steps of the method.
        seconds: the wall-clock time of the call.
    """

    status: ProgramStatus
    lower: float
    upper: float
    x: Array
    y: Array
    violation: float
    ray: Array | None
    message: str
    steps: int
    seconds: float

    @property
    def width(self) -> float:
        """The length of the interval; infinite if an end is."""
        finite = math.isfinite(self.lower) and math.isfinite(self.upper)
        return max(0.0, math.nextafter(self.upper - self.lower, math.inf)) if finite else math.inf

    @property
    def solved(self) -> bool:
        """Whether the program is proven to be optimal, infeasible or unbounded."""
        return self.status != ProgramStatus.UNPROVEN

    def to_dict(self) -> dict[str, Any]:
        """All in plain Python values."""
        names = ("lower", "upper", "violation", "message", "steps", "seconds")
        arrays = {name: getattr(self, name) for name in ("x", "y", "ray")}
        return (
            {"status": str(self.status), "solved": self.solved}
            | {name: getattr(self, name) for name in names}
            | {name: None if array is None else array.tolist() for name, array in arrays.items()}
        )

    def save(self, path: str | Path) -> None:
        """Write x, y, the interval and, if there is one, the ray to a .npz file."""
        rays: dict[str, Any] = {} if self.ray is None else {"ray": self.ray}
        with replacing(path) as file:
            np.savez(file, x=self.x, y=self.y, lower=self.lower, upper=self.upper, status=str(self.status), **rays)

    def __repr__(self) -> str:
        lines = [f"{self.status}: {self.message}"]
        if self.status in (ProgramStatus.OPTIMAL, ProgramStatus.UNPROVEN):
            lines.append(f"  optimal value  in [{self.lower:.12g}, {self.upper:.12g}]")
            lines.append(f"  violation of x <= {self.violation:.3g}")
        return "\n".join([*lines, f"  {self.steps} steps, {self.seconds:.3g} s"])


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
        return self._data.estimate(self._point(x))

    def violation(self, x: Any) -> float:
        """A proven upper bound of the largest violation of a row or of a bound at x; 0 only if there is none."""
        return self._data.violation(self._point(x))

    def certify(self, x: Any, y: Any = None, *, feasibility: float = 0.0) -> ProgramCertificate:
        """What a point and multipliers, from wherever they are, prove about the optimal value.

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
        return proves_infeasible(self._data, self._multipliers(y))

    def proves_unbounded(self, d: Any) -> bool:
        """Whether, within rounding errors of d, there is a direction along which the objective falls for ever.

        It proves that the program is unbounded if it has a point that satisfies all rows and bounds.
        """
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
            rtol: the same relative to the size of the objective, |q|'(|x| + 1e-6) + x'Px/2 + the sum of
                |y_i| times the active ends, at the solution; 1e-6 if neither is given.
            feasibility: the interval is for the program whose rows and bounds may be violated by this much. 0 is the
                program itself, of which a point that satisfies all equations exactly is proven to exist.
            method: "interior" (factorises), "first-order" (products with A alone), or "auto".
            max_seconds: wall-clock limit.
        """
        if gap is not None and rtol is not None:
            raise ProblemError("both gap and rtol are given; expected one of them")
        if method not in METHODS:
            raise ProblemError(f"method is {method!r}; expected one of {', '.join(map(repr, METHODS))}")
        limit = math.inf if max_seconds is None else positive(max_seconds, "max_seconds")
        data = self._relaxed(feasibility)
        target = None if gap is None else positive(gap, "gap")
        run = _Run(self._data, data, target, RTOL if rtol is None else positive(rtol, "rtol"), method, limit)
        return run.solve()

    def _relaxed(self, feasibility: float) -> Data:
        by = as_number(feasibility, "feasibility", "a number that is not negative")
        if not 0.0 <= by < math.inf:
            raise ProblemError(f"feasibility is {by}; expected a number that is not negative")
        return self._data if by == 0.0 else self._data.relaxed(by)

    def _point(self, x: Any) -> Array:
        return as_vector(x, "x", self.shape[1]).astype(np.float64)

    def _multipliers(self, y: Any) -> Array:
        return as_vector(y, "y", self.shape[0]).astype(np.float64) if self.shape[0] else np.zeros(0)


class _Run:
    """One call of ``solve``: proposals from ``given``, proofs about ``data``, which may be relaxed."""

    def __init__(self, given: Data, data: Data, gap: float | None, rtol: float, method: str, limit: float) -> None:
        self.given, self.data, self.gap, self.rtol = given, data, gap, rtol
        self.method = method if method != "auto" else _choice(given)
        self.began, self.limit = time.monotonic(), limit
        self.evidence = Evidence(data, given)
        self.last = Proposal(np.zeros(given.q.size), np.zeros(given.lower.size), math.inf)
        self.is_added = False  # whether the last proposal is among the evidence
        self.steps = self.useless = 0

    @property
    def late(self) -> bool:
        return time.monotonic() - self.began > self.limit

    def solve(self) -> ProgramResult:
        with np.errstate(all="ignore"):
            self._examine(self.given, self._improve)
            if not self.proven and not self.is_added and np.isfinite(self.last.x).all():
                self.evidence.add(self.last.x, self.last.y)
            if not self.proven and not self.late and np.isfinite(self.last.x).all():
                self.evidence.add_exactly(self.last.x, self.last.y)
            if self.proven:
                return self._result(ProgramStatus.OPTIMAL, f"proven gap {self.evidence.width:.3g} <= {self.target:.3g}")
            return self._without_solution() or self._result(ProgramStatus.UNPROVEN, self._what_is_missing())

    @property
    def target(self) -> float:
        """The length of the interval that is asked for."""
        if self.gap is not None:
            return self.gap
        data, x, y = self.data, self.last.x, self.last.y
        if self.evidence.x is not None:
            x = self.evidence.x
        size = float(np.abs(data.q) @ np.abs(x)) + (0.0 if data.P is None else 0.5 * abs(float(x @ (data.P @ x))))
        sides = np.where(y > 0.0, data.upper, data.lower)
        size += float(np.abs(np.where(np.isfinite(sides) & (y != 0.0), y * sides, 0.0)).sum())
        size += LEAST * float(np.abs(data.q).sum())
        return self.rtol * size if math.isfinite(size) else 0.0

    @property
    def proven(self) -> bool:
        return self.evidence.width <= self.target

    def _improve(self, found: Proposal) -> bool:
        """Take a proposal into account; True if the interval is short enough."""
        self.last = found
        before = self.evidence.width
        self.is_added = found.gap <= 10.0 * self.target or self.method == "first-order"
        if self.is_added:
            self.evidence.add(found.x, found.y)
            self.useless = 0 if self.evidence.width < before else self.useless + 1
        return self.proven or self.useless > TRIES

    def _examine(self, data: Data, accept: Callable[[Proposal], bool]) -> None:
        """Let the method propose points until one is accepted, time is over, or it gets no further."""
        self.useless = 0
        limit = self.limit if self.method == "interior" else min(self.limit, SECONDS)
        end = min(time.monotonic() + limit, self.began + self.limit)

        def late() -> bool:
            return time.monotonic() > end

        by_factors = self.method == "interior" or data.shape[0] == 0
        proposals = interior_point(data) if by_factors else first_order(data, late=late)
        for found in proposals:
            self.steps += 1
            if accept(found) or late():
                return

    def _without_solution(self) -> ProgramResult | None:
        """The result for a program that is proven to be infeasible or unbounded; None otherwise."""
        if self.evidence.upper == math.inf and not self.late:
            y = self._farkas()
            if y is not None:
                result = self._result(ProgramStatus.INFEASIBLE, "no point satisfies all rows and bounds; ray proves it")
                return _replaced(result, math.inf, math.inf, y)
        converged = self.last.gap <= 10.0 * self.target
        if self.evidence.lower == -math.inf and not self.late and not converged:
            d = self._descent()
            if d is not None and self._feasible():
                result = self._result(ProgramStatus.UNBOUNDED, "the objective falls for ever along ray")
                return _replaced(result, -math.inf, -math.inf, d)
        return None

    def _farkas(self) -> Array | None:
        data = self.data
        if data.shape[0] == 0:
            return None
        alone = row_ray(data)
        if alone is not None:
            return alone
        found: list[Array] = []
        last: list[Array] = []

        def accept(proposal: Proposal) -> bool:
            last[:] = [farkas_multipliers(proposal.y)]
            if proves_infeasible(data, last[0], exactly=False):
                found.append(last[0])
            return bool(found)

        self._examine(violation_program(data), accept)
        if not found and last and proves_infeasible(data, last[0]):
            found = last
        return found[0] if found else None

    def _descent(self) -> Array | None:
        found: list[Array] = []
        rays = ray_program(self.data)
        if not (rays.x_lower < rays.x_upper).any():
            return None
        last: list[Array] = []

        def accept(proposal: Proposal) -> bool:
            last[:] = [proposal.x]
            if rays.q @ proposal.x < 0.0 and proposal.gap < 0.1 * abs(float(rays.q @ proposal.x)):
                evidence = Evidence(rays)
                evidence.add_point(proposal.x)
                if evidence.upper < 0.0 and evidence.x is not None:
                    found.append(evidence.x)
            return bool(found)

        self._examine(rays, accept)
        if not found and last and proves_unbounded(self.data, last[0]):
            found = last
        return found[0] if found else None

    def _feasible(self) -> bool:
        """Whether a point is proven to satisfy the program; it becomes the result's."""
        if self.evidence.upper < math.inf:
            return True
        data = without_objective(self.data)
        evidence = Evidence(data)

        def accept(proposal: Proposal) -> bool:
            self.last = proposal
            evidence.add_point(proposal.x)
            return evidence.upper < math.inf

        self._examine(data, accept)
        if evidence.upper == math.inf:
            evidence.add_exactly(self.last.x, self.last.y)
        self.evidence.x = evidence.x
        return evidence.upper < math.inf

    def _what_is_missing(self) -> str:
        e = self.evidence
        if e.upper == math.inf:
            return f"no point is proven to satisfy the program: {e.why_upper}"
        if e.lower == -math.inf:
            return f"no lower bound is proven: {e.why_lower}"
        return f"proven gap {e.width:.3g} > {self.target:.3g}" + ("; out of time" if self.late else "")

    def _result(self, status: ProgramStatus, message: str) -> ProgramResult:
        e = self.evidence
        x = self.last.x if e.x is None else e.x
        y = self.last.y if e.y is None else e.y
        seconds = time.monotonic() - self.began
        violation = self.given.violation(x)
        return ProgramResult(status, e.lower, e.upper, x, y, violation, None, message, self.steps, seconds)


def _replaced(result: ProgramResult, lower: float, upper: float, ray: Array) -> ProgramResult:
    r = result
    return ProgramResult(r.status, lower, upper, r.x, r.y, r.violation, ray, r.message, r.steps, r.seconds)


def _choice(data: Data) -> str:
    """The method for a program: by the work of one factorisation."""
    m, n = data.shape
    dense = (not issparse(data.A) and data.A.size > 0) or (data.P is not None and not issparse(data.P))
    diagonal = (
        data.P is None or data.P.nnz == np.count_nonzero(data.P.diagonal()) if not dense or data.P is None else False
    )
    if dense:
        k = m if diagonal else n + m
        return "interior" if float(k) ** 3 / 3.0 + float(m) * m * n * (diagonal) <= WORK else "first-order"
    pattern = csr_array((np.ones(data.rows.nnz), data.rows.indices, data.rows.indptr), shape=data.rows.shape)
    S = csr_array(pattern @ pattern.T) if diagonal and pattern.nnz < 5_000_000 else None
    if S is not None and min(factor_work(S), float(m) ** 3 / 3.0) <= WORK:
        return "interior"
    return "interior" if n + m <= 20_000 else "first-order"
