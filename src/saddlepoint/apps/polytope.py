"""The set {v : E v = e, v >= 0} of a player's strategies."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import csr_array, diags_array, eye_array, hstack
from scipy.sparse.linalg import lsqr

from saddlepoint.ground.arrays import Array
from saddlepoint.ground.errors import InfeasibleError, ProblemError
from saddlepoint.ground.validation import as_vector
from saddlepoint.parts.coupling import DenseCoupling, SparseCoupling, as_coupling

FEASIBLE = 1e-9  # violation of E v = e, relative to e, up to which the equations count as satisfied


class Polytope:
    """All v >= 0 with E v = e; best responses are linear programs, which HiGHS solves.

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
        """max <weights, v> and a v that attains it; infinity and NaN if the maximum is unbounded."""
        E, e = self.constraints
        found = linprog(-weights, A_eq=E, b_eq=e, bounds=(0, None), method="highs")
        if found.x is None:
            return np.inf, np.full(self.size, np.nan)
        return float(-found.fun), np.asarray(found.x)

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
