"""The search for a proof: points from a method, and claims that are computed from them."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

import numpy as np
from scipy.sparse import csr_array, issparse

from saddlepoint.apps.programs.data import Data
from saddlepoint.apps.programs.evidence import Evidence
from saddlepoint.apps.programs.exact import TooLongError, is_small
from saddlepoint.apps.programs.first_order import first_order
from saddlepoint.apps.programs.implied_equations import implied
from saddlepoint.apps.programs.interior import LESS_REGULAR, REGULAR, Proposal, interior_point
from saddlepoint.apps.programs.pivoting import by_pivoting, largest_one
from saddlepoint.apps.programs.rays import (
    farkas_multipliers,
    proves_infeasible,
    proves_unbounded,
    ray_program,
    row_ray,
    violation_program,
    without_objective,
)
from saddlepoint.apps.programs.result import ProgramResult, ProgramStatus
from saddlepoint.apps.programs.scaling import without_far_bounds
from saddlepoint.ground.arrays import Array
from saddlepoint.ground.fill_in import factor_work
from saddlepoint.ground.time_limit import TimeLimit

CANCELLED = 1e-6  # optimal value, relative to the size of its terms, below which rtol is not relative any more
LEAST = 1e-6  # least size of an entry of x for the size of the terms, relative to the largest one, and of that one
WORK = 3e10  # multiplications of a factorisation up to which the interior-point method is taken
PROMISING = 10.0  # estimated gap up to which a proposal is examined, in units of the interval that is asked for
HARDLY = 1e-9  # violation, relative to the size of x, that looks like rounding
FALL = 0.5  # factor of the estimated gap from one proposal to the next that counts as an improvement
TRIES = 6  # proposals in a row that are examined without an improvement
SECONDS = 60.0  # limit of each search by the first-order method, in seconds, if no time limit is given
PATTERN = 5_000_000  # entries of A up to which the pattern of A A' is formed, to foresee the work of its factorisation
ROWS = 20_000  # rows of a factorised sparse matrix up to which the interior-point method is taken, whatever its work


class ProofSearch:
    """One call of ``QuadraticProgram.solve``.

    Args:
        given: the program as it was given; the method proposes points for it.
        data: the program that proofs are about: the same, or one whose rows and bounds are relaxed.
        gap: the length of the interval to prove; None if rtol says it.
        rtol: the same, relative to the optimal value.
        method: "interior", "first-order" or "auto".
        limit: wall-clock limit.
    """

    def __init__(self, given: Data, data: Data, gap: float | None, rtol: float, method: str, limit: TimeLimit) -> None:
        self.given, self.data, self.gap, self.rtol = given, data, gap, rtol
        self.method = method if method != "auto" else _choice(given)
        self.limit = limit
        self.evidence = Evidence(data, given, lambda: limit.is_over)
        self.last = Proposal(np.zeros(given.q.size), np.zeros(given.lower.size), math.inf)
        self.is_added = False  # whether the last proposal is among the evidence
        self.steps = self.useless = 0

    def solve(self) -> ProgramResult:
        """Let the method propose points until the interval is short enough; then the result, with what is proven."""
        with np.errstate(all="ignore"):
            self._examine(self.given, self._improve)
            if self._is_stuck():
                self._examine_again(self.given, LESS_REGULAR)
            near = None if self.proven or self.limit.is_over else without_far_bounds(self.given)
            if near is not None:
                self._examine_again(near, REGULAR)
            if not self.proven and not self.is_added and np.isfinite(self.last.x).all():
                self.evidence.add(self.last.x, self.last.y)
            if not self.proven and not self.limit.is_over and np.isfinite(self.last.x).all():
                self.evidence.add_exactly(self.last.x, self.last.y)
            if self.proven:
                return self._optimal()
            return (
                self._without_solution()
                or self._with_implied_bounds()
                or self._by_pivoting()
                or self._result(ProgramStatus.UNPROVEN, self._what_is_missing())
            )

    @property
    def target(self) -> float:
        """The length of the interval that is asked for."""
        if self.gap is not None:
            return self.gap
        data, x, y = self.data, self.last.x, self.last.y
        if self.evidence.x is not None:
            x = self.evidence.x
        ends = self.evidence.lower, self.evidence.upper
        value = min(abs(end) for end in ends) if self.evidence.width < math.inf else abs(data.estimate(x))
        most = float(np.max(np.abs(x), initial=LEAST))
        size = float(np.abs(data.q) @ (np.abs(x) + LEAST * most))
        size += 0.0 if data.P is None else 0.5 * float(data.P.diagonal() @ (x * x + LEAST * most * most))
        sides = np.where(y > 0.0, data.upper, data.lower)
        size += float(np.abs(np.where(np.isfinite(sides) & (y != 0.0), y * sides, 0.0)).sum())
        least = self.rtol * max(value, CANCELLED * size)
        return least if math.isfinite(least) else 0.0

    @property
    def proven(self) -> bool:
        """Whether the interval is as short as was asked for."""
        return self.evidence.width <= self.target

    def _improve(self, found: Proposal) -> bool:
        """Take a proposal into account; True if the interval is short enough."""
        falls = found.gap <= FALL * self.last.gap
        self.last = found
        before = self.evidence.width
        self.is_added = found.gap <= PROMISING * self.target or self.method == "first-order"
        if self.is_added:
            self.evidence.add(found.x, found.y)
            self.useless = 0 if falls or self.evidence.width < before else self.useless + 1
        return self.proven or self.useless > TRIES

    def _is_stuck(self) -> bool:
        """Whether the interior-point method has ended without a proof at a point that satisfies rows and bounds."""
        if self.proven or self.limit.is_over or self.method != "interior" or not np.isfinite(self.last.x).all():
            return False
        return self.given.violation(self.last.x) <= HARDLY * max(1.0, float(np.max(np.abs(self.last.x), initial=0.0)))

    def _examine(self, data: Data, accept: Callable[[Proposal], bool], regular: float = REGULAR) -> None:
        """Let the method propose points until one is accepted, time is over, or it gets no further.

        ``regular`` is the weight of the proximal terms of the interior-point method.
        """
        self.useless = 0
        limit = self.limit
        if self.method != "interior" and limit.seconds is None:
            limit = TimeLimit(SECONDS)
        by_factors = self.method == "interior" or data.shape[0] == 0
        proposals = interior_point(data, regular) if by_factors else first_order(data, late=lambda: limit.is_over)
        for found in proposals:
            self.steps += 1
            if accept(found) or limit.is_over:
                return

    def _examine_again(self, data: Data, regular: float) -> None:
        """Examine proposals of another run, whose last one is kept only if it is better than that of the first."""
        first = self.last, self.is_added
        self._examine(data, self._improve, regular)
        if not self.proven and not self.last.gap < first[0].gap:
            self.last, self.is_added = first

    def _with_implied_bounds(self) -> ProgramResult | None:
        """The result for a small program whose equations imply bounds or a contradiction; None if that is no proof."""
        found = None if self.limit.is_over or not is_small(self.data) else implied(self.data)
        if found is None:
            return None
        if found.ray is not None:
            return self._infeasible(found.ray)
        again = ProofSearch(found.data, found.data, self.gap, self.rtol, self.method, self.limit)
        result = again.solve()
        if not result.solved:
            return None
        if result.status == ProgramStatus.INFEASIBLE and result.ray is not None:
            return self._infeasible(result.ray)
        return replace(result, violation=self.given.violation(result.x), steps=self.steps + result.steps)

    def _by_pivoting(self) -> ProgramResult | None:
        """The result for a very small program, by pivots in rational arithmetic; None if there is none."""
        if self.limit.is_over or not is_small(self.data) or not bool((self.data.curvature >= 0.0).all()):
            return None
        with suppress(TooLongError):
            found = by_pivoting(self.evidence.exact)
            if found is not None and not found.is_ray:
                self.evidence.add_fractions(found.x, found.y)
                return self._optimal() if self.proven else None
            point = None if found is None else by_pivoting(self.evidence.exact, objective=False)
            if found is None or point is None:
                return None
            if point.is_ray:
                y = largest_one(point.y)
                return self._infeasible(y) if proves_infeasible(self.data, y) else None
            self.evidence.add_fractions(point.x, point.y)
            d = largest_one(found.x)
            return self._unbounded(d) if proves_unbounded(self.data, d) else None
        return None

    def _optimal(self) -> ProgramResult:
        """The result for an interval that is short enough."""
        return self._result(ProgramStatus.OPTIMAL, f"proven gap {self.evidence.width:.3g} <= {self.target:.3g}")

    def _unbounded(self, ray: Array) -> ProgramResult:
        """The result for a program that a ray, and a point, prove to be unbounded."""
        result = self._result(ProgramStatus.UNBOUNDED, "the objective decreases without bound along ray")
        return replace(result, lower=-math.inf, upper=-math.inf, ray=ray)

    def _infeasible(self, ray: Array) -> ProgramResult:
        """The result for a program that a ray proves to be infeasible."""
        message = "no point satisfies all rows and bounds; ray proves it" + self._hardly_violated()
        result = self._result(ProgramStatus.INFEASIBLE, message)
        return replace(result, lower=math.inf, upper=math.inf, ray=ray)

    def _without_solution(self) -> ProgramResult | None:
        """The result for a program that is proven to be infeasible or unbounded; None otherwise."""
        if self.evidence.upper == math.inf and not self.limit.is_over:
            y = self._farkas()
            if y is not None:
                return self._infeasible(y)
        converged = self.last.gap <= PROMISING * self.target
        if self.evidence.lower == -math.inf and not self.limit.is_over and not converged:
            d = self._descent()
            if d is not None and self._feasible():
                return self._unbounded(d)
        return None

    def _hardly_violated(self) -> str:
        """Words about what to do if the last point satisfies all rows and bounds almost."""
        violation = self.data.violation(self.last.x)
        if not violation <= HARDLY * max(1.0, float(np.max(np.abs(self.last.x), initial=0.0))):
            return ""
        enough = 10.0 ** math.ceil(math.log10(min(max(violation, 1e-300), 1e300)))
        return f". A point violates rows and bounds by {violation:.2g} at most: allow it by feasibility={enough:.0e}"

    def _farkas(self) -> Array | None:
        """Multipliers that prove the program infeasible (Farkas' lemma); None if none are found."""
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
        """A direction along which the objective decreases without bound; None if none is found."""
        found: list[Array] = []
        rays = ray_program(self.data)
        if not (rays.x_lower < rays.x_upper).any():
            return None
        last: list[Array] = []

        def accept(proposal: Proposal) -> bool:
            last[:] = [proposal.x]
            if rays.q @ proposal.x < 0.0 and proposal.gap < 0.1 * abs(float(rays.q @ proposal.x)):
                evidence = Evidence(rays, late=lambda: self.limit.is_over)
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
        evidence = Evidence(data, late=lambda: self.limit.is_over)

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
            return f"no point is proven to satisfy the program: {e.why_upper}{self._hardly_violated()}"
        if e.lower == -math.inf:
            return f"no lower bound is proven: {e.why_lower}"
        return f"proven gap {e.width:.3g} > {self.target:.3g}" + ("; out of time" if self.limit.is_over else "")

    def _result(self, status: ProgramStatus, message: str) -> ProgramResult:
        e = self.evidence
        x = self.last.x if e.x is None else e.x
        y = self.last.y if e.y is None else e.y
        violation = self.given.violation(x)
        return ProgramResult(status, e.lower, e.upper, x, y, violation, None, message, self.steps, self.limit.spent)


def _choice(data: Data) -> str:
    """The method for a program: by the work of one factorisation.

    Where P is diagonal, the matrix that is factorised has a row for each row of A; otherwise it has a row for each
    variable as well.
    """
    m, n = data.shape
    if (not issparse(data.A) and data.A.size > 0) or (data.P is not None and not issparse(data.P)):
        k = m if data.P is None else n + m
        forming = float(m) * m * n if data.P is None else 0.0
        return "interior" if float(k) ** 3 / 3.0 + forming <= WORK else "first-order"
    diagonal = data.P is None or data.P.nnz == np.count_nonzero(data.P.diagonal())
    if diagonal and data.rows.nnz < PATTERN:
        pattern = csr_array((np.ones(data.rows.nnz), data.rows.indices, data.rows.indptr), shape=data.rows.shape)
        if min(factor_work(csr_array(pattern @ pattern.T)), float(m) ** 3 / 3.0) <= WORK:
            return "interior"
    return "interior" if n + m <= ROWS else "first-order"
