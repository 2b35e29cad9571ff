r"""Direct: one factorisation, for quadratic g and h whose matrices are at hand and not too large.

Problem:    grad g(x) + A y = 0, grad h(y) - A' x = 0 with grad g(x) = P x + b and grad h(y) = Q y + d.
Recursion:  z_{k+1} = z_k - K^-1 F(z_k),   K = [[P, A], [-A', Q]],
            by the Cholesky factors of P and of S = Q + A' P^-1 A if they are dense, by a sparse LU of K otherwise.
Guarantee:  the first step is the solution, to rounding; the next ones are iterative refinement.
Reference:  M. Benzi, G. Golub and J. Liesen, Numerical solution of saddle point problems, Acta Numerica 2005.

The matrices are charged as what they would cost through the oracle: a gradient or a product for each column.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.sparse import block_array, issparse
from scipy.sparse.linalg import splu

from saddlepoint.errors import ProblemError
from saddlepoint.methods.base import Method, register
from saddlepoint.problem import Saddle
from saddlepoint.vectors import Array

Solver = Callable[[Array, Array], tuple[Array, Array]]


class DirectState(NamedTuple):
    """The point, and the solver that was made for it."""

    x: Array
    y: Array
    solve: Solver


@register
@dataclass(frozen=True)
class Direct(Method):
    """Newton's method, which is one step where the field is affine."""

    oracle: ClassVar[str] = "matrices"
    complexity: ClassVar[str] = "one factorisation"
    reference: ClassVar[str] = "Benzi, Golub and Liesen 2005"

    def init(self, f: Saddle, x: Array, y: Array) -> DirectState:
        """The factorisation."""
        for name, function in (("g", f.g), ("h", f.h)):
            if function.hessian is None:
                raise ProblemError(
                    f"direct needs quadratic g and h with matrices (Quadratic, LeastSquares), and {name} has none; "
                    "give hessian= to Smooth, or use krylov or auto"
                )
        assert f.g.hessian is not None
        assert f.h.hessian is not None
        m, n = f.shape
        return DirectState(x, y, solver(wide(f.g.hessian(m)), wide(f.h.hessian(n)), wide(f.A.matrix())))

    def step(self, f: Saddle, s: DirectState) -> DirectState:
        """One query, one solve."""
        dx, dy = s.solve(*f.field(s.x, s.y))
        return DirectState(s.x - dx, s.y - dy, s.solve)

    def cost(self, f: Saddle) -> dict[str, int]:
        """One of each, once there is a factorisation."""
        return {"grad_g": 1, "grad_h": 1, "A": 1, "At": 1}


def solver(P: Any, Q: Any, A: Any) -> Solver:
    """(u, v) -> (x, y) with P x + A y = u and Q y - A' x = v."""
    if any(map(issparse, (P, Q, A))):
        m = A.shape[0]
        lu = splu(block_array([[P, A], [-A.T, Q]], format="csc"))

        def sparse(u: Array, v: Array) -> tuple[Array, Array]:
            z = lu.solve(np.concatenate((u, v)).astype(np.float64)).astype(u.dtype)
            return z[:m], z[m:]

        return sparse
    p = cho_factor(P)
    s = cho_factor(Q + A.T @ cho_solve(p, A))

    def dense(u: Array, v: Array) -> tuple[Array, Array]:
        y = cho_solve(s, v + A.T @ cho_solve(p, u))
        return cho_solve(p, u - A @ y).astype(u.dtype), y.astype(v.dtype)

    return dense


def wide(matrix: Any) -> Any:
    """In float64, the precision of factors."""
    return matrix.astype(np.float64)
