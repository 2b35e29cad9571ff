"""The set {v : E v = e, v >= 0} of a player's strategies."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import csr_array, diags_array, eye_array, hstack
from scipy.sparse.linalg import lsqr

from saddlepoint.ground.arrays import Array
from saddlepoint.ground.errors import InfeasibleError, ProblemError
from saddlepoint.ground.rounding import gamma
from saddlepoint.ground.validation import as_vector
from saddlepoint.parts.coupling import DenseCoupling, SparseCoupling, as_coupling
from saddlepoint.parts.coupling.equilibration import ruiz
from saddlepoint.theory.exploitability import MARGIN, SMALLEST, UNIT

FEASIBLE = 1e-9  # violation of E v = e, relative to e, up to which the equations count as satisfied
TIGHT = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}  # the smallest that HiGHS takes
REFINEMENTS = 3  # linear programs at most for one bound
NEGLIGIBLE = 1e-14  # excess of weights, relative to the largest of them, that is not worth another linear program
SLACK = 1e-9  # addition to the weights of entries without an upper bound, relative to the largest weight
CLIP = 1e3  # weights of a refinement are not below this multiple of the largest excess


class Polytope:
    """All v >= 0 with E v = e; best responses are linear programs, which HiGHS solves.

    A bound on the value of a best response rests on weak duality and not on the tolerances of HiGHS.

    Args:
        E, e: a matrix (array or SciPy sparse) and a vector.
        name: the name of the constraints in error messages, such as "B x = b, x >= 0".
        size: the expected number of variables.

    Raises:
        ProblemError: E or e is not numeric, or has the wrong shape.
    """

    def __init__(self, E: Any, e: Any, name: str, size: int) -> None:
        matrix = as_coupling(E, f"the matrix of {name}")
        if not isinstance(matrix, DenseCoupling | SparseCoupling):
            raise ProblemError(f"the matrix of {name} is a {type(E).__name__}; expected an array or a sparse array")
        if matrix.shape[1] != size:
            raise ProblemError(
                f"the matrix of {name} has {matrix.shape[1]} columns; expected {size}, one for each strategy"
            )
        self.name, self.size = name, size
        self.constraints = (csr_array(matrix.A), as_vector(e, f"the right-hand side of {name}", matrix.shape[0]))

    @cached_property
    def start(self) -> Array:
        """A vertex of the set, by a linear program; an InfeasibleError if the set is empty."""
        E, e = self.constraints
        rows = E.shape[0]
        slack = np.r_[np.zeros(self.size), np.ones(2 * rows)]
        wide = hstack([E, eye_array(rows), -eye_array(rows)], format="csc")
        found = linprog(slack, A_eq=wide, b_eq=e, bounds=(0, None), method="highs")
        if found.x is None:
            raise ProblemError(f"{self.name} could not be checked for a solution: {found.message}")
        if found.fun > FEASIBLE * (1.0 + np.abs(e).max()):
            raise InfeasibleError(
                f"{self.name} has no solution: every v >= 0 violates the equations by {found.fun:.3g} in sum at least, "
                "as the certificate of this error proves; correct the constraints",
                np.asarray(found.eqlin.marginals),
            )
        return np.asarray(found.x[: self.size])

    def best(self, weights: Array) -> tuple[float, Array]:
        """max <weights, v> and a v that attains it, as HiGHS finds them; infinity and NaN if there is no maximum."""
        v = self._program(weights)[0]
        return (np.inf, np.full(self.size, np.nan)) if v is None else (float(weights @ v), v)

    def best_bound(self, weights: Array, errors: Array) -> float:
        """A proven upper bound on max <w, v>, for all w with |w - weights| <= errors; infinite if none is found.

        For any z, <w, v> = <z, e> + <w - E'z, v>, and <w - E'z, v> is at most the sum of the positive w_j - E_j'z times
        the largest v_j. HiGHS proposes z, and the bound holds whatever z is. A second program, for the weights
        w - E'z, improves on the tolerances of HiGHS.
        """
        if not (np.isfinite(weights).all() and np.isfinite(errors).all()):
            return math.inf
        unlimited = ~(self.reach < math.inf)
        margin = np.where(unlimited, SLACK * float(np.abs(weights).max()) + 4.0 * errors, 0.0)
        bound, z, rest = math.inf, np.zeros(self.constraints[0].shape[0]), weights + margin
        for _ in range(REFINEMENTS):
            step = self._program(rest)[1]
            if step is None:
                break
            z = z + step
            found, excess = self._dual_bound(weights, errors, z)
            if not found < bound:
                break
            bound, worst = found, float(np.max(excess))
            if worst <= float(np.max(errors)) + NEGLIGIBLE * float(np.abs(weights).max()):
                break
            rest = np.maximum(weights + margin - self.constraints[0].T @ z, -CLIP * worst)
        return bound

    @cached_property
    def reach(self) -> Array:
        """Proven upper bounds of the entries of strategies; infinite where none is found.

        For any d with E'd >= 0, the sum of (E'd)_j v_j is <d, e>, so v_j is at most <d, e>/(E'd)_j.
        """
        E, e = self.constraints
        rows, n = E.shape
        scales, w = self._scales
        wide = hstack([-(diags_array(w) @ E @ diags_array(scales)).T, eye_array(n)], format="csc")
        goal = np.r_[np.zeros(rows), -np.ones(n)]
        limits = [(None, None)] * rows + [(0.0, 1.0)] * n
        found = linprog(goal, A_ub=wide, b_ub=np.zeros(n), bounds=limits, method="highs")
        nothing = np.full(n, math.inf)
        if found.x is None:
            return nothing
        d = w * np.asarray(found.x[:rows])
        least, error = E.T @ d, _product_error(E.T, d)
        unsure = np.flatnonzero(least < error)
        if any(_exact_column(E, j, d) < 0 for j in unsure.tolist()):
            return nothing
        least = np.maximum(least - error, 0.0)
        total = max(0.0, math.fsum((d * e).tolist()) + _inner_error(d, e))
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(np.where(least > 0.0, total / least * MARGIN, math.inf))

    def _dual_bound(self, weights: Array, errors: Array, z: Array) -> tuple[float, Array]:
        """The bound that z proves, and upper bounds on the positive parts of w - E'z."""
        E, e = self.constraints
        Etz, rounding = E.T @ z, _product_error(E.T, z)
        excess = weights - Etz + (rounding + errors + 2.0 * UNIT * (np.abs(weights) + np.abs(Etz)))
        excess = np.maximum(np.nextafter(excess, math.inf), 0.0)
        cost = excess[excess > 0.0] * self.reach[excess > 0.0]
        total = math.fsum((e * z).tolist()) + _inner_error(e, z) + math.fsum(cost.tolist()) * MARGIN
        bound = total + 4.0 * UNIT * abs(total)
        return (math.inf if math.isnan(bound) else bound), excess

    def _program(self, weights: Array) -> tuple[Array | None, Array | None]:
        """A v that maximises <weights, v>, and a z with E'z >= weights and the least <z, e>, up to tolerances.

        The tolerances of HiGHS are absolute, so the program is scaled: the entries of E, e and the weights become at
        most 1. None and None if there is no maximum, or if HiGHS fails.
        """
        E, e = self.constraints
        d, w = self._scales
        size, unit = float(np.abs(w * e).max()) or 1.0, float(np.abs(d * weights).max()) or 1.0
        scaled = diags_array(w) @ E @ diags_array(d)
        for options in (TIGHT, {}):
            found = linprog(
                d * weights / -unit, A_eq=scaled, b_eq=w * e / size, bounds=(0, None), method="highs", options=options
            )
            if found.x is not None:
                return size * d * np.asarray(found.x), -unit * w * np.asarray(found.eqlin.marginals)
        return None, None

    @cached_property
    def _scales(self) -> tuple[Array, Array]:
        """Factors d of the columns and w of the rows for which the entries of w E d are at most about 1."""
        rows, columns = ruiz(abs(self.constraints[0]))
        return columns, rows

    def rounding(self, vector: Array) -> Array:
        """Zeros: the vector stands for itself, and ``violation`` says how far it is from satisfying the equations."""
        return np.zeros(self.size)

    def nearest(self, vector: Array) -> Array:
        """A strategy near ``vector`` that is zero where max(vector, 0) is, if there is one.

        It is v (1 + E'z) with v = max(vector, 0) and the least |sqrt(v) E'z|; on a simplex this is v/sum(v).
        """
        E, e = self.constraints
        v = np.maximum(vector, 0.0)
        for _ in range(3):
            root = np.sqrt(v)
            change = lsqr(E @ diags_array(root), e - E @ v, atol=1e-15, btol=1e-15)[0]
            v = np.maximum(v + root * change, 0.0)
        return v

    def violation(self, vector: Array) -> float:
        """The largest error in v >= 0 and E v = e, relative to e or to 1, whichever is larger."""
        E, e = self.constraints
        error = max(float(np.abs(E @ vector - e).max()), -float(vector.min()), 0.0)
        return error / max(1.0, float(np.abs(e).max()))


def _product_error(matrix: Any, v: Array) -> Array:
    """Bounds on the errors of the entries of a computed product of a sparse matrix and a vector."""
    terms = int(np.max(np.diff(csr_array(matrix).indptr), initial=0)) + 2
    return np.asarray(2.0 * gamma(terms, UNIT) * (abs(matrix) @ np.abs(v)) + terms * SMALLEST)


def _inner_error(a: Array, b: Array) -> float:
    """A bound on the error of <a, b>, computed as ``math.fsum(a * b)``."""
    return 4.0 * UNIT * float(np.abs(a) @ np.abs(b)) + len(a) * SMALLEST


def _exact_column(E: csr_array, j: int, d: Array) -> Fraction:
    """The product of column j of E with d, in exact arithmetic."""
    column = E[:, [j]].tocoo()
    terms = zip(column.data.tolist(), d[column.coords[0]].tolist(), strict=True)
    return sum((Fraction(a) * Fraction(b) for a, b in terms), Fraction(0))
