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

FEASIBLE = 1e-9  # distance to E v = e, relative to e, that counts as none


class Polytope:
    """All v >= 0 with E v = e; best responses are linear programs, left to HiGHS.

    Args:
        E, e: a matrix (array or SciPy sparse) and a vector.
        name: what complaints call the constraints, such as "B x = b, x >= 0".
        size: the number of variables there should be.

    Raises:
        ProblemError: E or e is not what it should be.
    """

    def __init__(self, E: Any, e: Any, name: str, size: int) -> None:
        matrix = as_coupling(E, f"the matrix of {name}")
        if not isinstance(matrix, DenseCoupling | SparseCoupling):
            raise ProblemError(f"the matrix of {name} is a {type(E).__name__}; expected an array or a sparse array")
        if matrix.shape[1] != size:
            raise ProblemError(f"the matrix of {name} has {matrix.shape[1]} columns; expected {size}, one a strategy")
        self.name, self.size = name, size
        self.constraints = (csr_array(matrix.A), as_vector(e, f"the right-hand side of {name}", matrix.shape[0]))

    @cached_property
    def start(self) -> Array:
        """Some v of the set: a vertex with the least |E v - e|_1 over v >= 0; an InfeasibleError if that is not 0."""
        E, e = self.constraints
        rows = E.shape[0]
        slack = np.r_[np.zeros(self.size), np.ones(2 * rows)]
        wide = hstack([E, eye_array(rows), -eye_array(rows)], format="csc")
        found = linprog(slack, A_eq=wide, b_eq=e, bounds=(0, None), method="highs")
        if found.x is None:
            raise ProblemError(f"{self.name} could not be examined: {found.message}")
        if found.fun > FEASIBLE * (1.0 + np.abs(e).max()):
            raise InfeasibleError(
                f"{self.name} has no solution: its equations are missed by {found.fun:.3g} in sum at least, which the "
                "error's certificate proves; correct them",
                np.asarray(found.eqlin.marginals),
            )
        return np.asarray(found.x[: self.size])

    def best(self, weights: Array) -> tuple[float, Array]:
        """max <weights, v> and a v that attains it; infinite if the set allows it."""
        E, e = self.constraints
        found = linprog(-weights, A_eq=E, b_eq=e, bounds=(0, None), method="highs")
        if found.x is None:
            return np.inf, np.full(self.size, np.nan)
        return float(-found.fun), np.asarray(found.x)

    def nearest(self, vector: Array) -> Array:
        """A strategy with the support of max(vector, 0), if there is one: v (1 + E'z) with the least |sqrt(v) E'z|.

        On a simplex it is v/sum(v).
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
