r"""Direct: one factorisation, for quadratic g and h whose matrices are known and not too large.

Problem:    grad g(x) + A y = 0, grad h(y) - A' x = 0 with grad g(x) = P x + b and grad h(y) = Q y + d.
Recursion:  z_{k+1} = z_k - K^-1 F(z_k),   K = [[P, A], [-A', Q]],
            by a factorisation of the Schur complement S = Q + A' P^-1 A if P is diagonal (of P + A Q^-1 A' if Q is),
            by the Cholesky factors of P and S if they are dense, by a sparse LU of K otherwise.
Guarantee:  the first step finds the solution up to rounding; the next ones are iterative refinement.
Reference:  M. Benzi, G. Golub and J. Liesen, Numerical solution of saddle point problems, Acta Numerica 2005.

Each matrix is counted as the oracle calls that would compute it: a gradient for each column of a Hessian, and a product
for each column or row of A, whichever are fewer; of sparse matrices, columns without a common row share one call.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.linalg.lapack import dgetrf, dgetrs, dpotrs
from scipy.sparse import block_array, diags_array, issparse
from scipy.sparse.linalg import splu

from saddlepoint.ground.arrays import Array
from saddlepoint.ground.errors import SingularError
from saddlepoint.ground.factor import diagonal_of
from saddlepoint.ground.fill_in import factor_work
from saddlepoint.methods.base import Method, Needs
from saddlepoint.methods.registry import register
from saddlepoint.problems.saddle import Saddle
from saddlepoint.theory.complexity import Complexity

SPARSE = 0.1  # largest share of nonzero entries with which a sparse factorisation is tried
LARGE = 5000  # rows from which no dense matrix is factorised
DENSE_SPEED = 6.0  # multiplications of a dense factorisation in the time of one of a sparse one
PIVOT = 0.01  # a diagonal entry is the pivot unless it is smaller than this share of the largest one of its column

Solver = Callable[[Array, Array], tuple[Array, Array]]


class DirectState(NamedTuple):
    """The point, and the function that solves systems with the factorisation."""

    x: Array
    y: Array
    solve: Solver


@register
@dataclass(frozen=True)
class Direct(Method):
    """Newton's method, which needs one step because the field is affine."""

    needs: ClassVar[Needs] = Needs(quadratic=True, hessians=True, matrix=True)
    complexity: ClassVar[Complexity] = Complexity("one factorisation")
    works: ClassVar[tuple[str, ...]] = ("benzi2005",)

    def init(self, f: Saddle, x: Array, y: Array) -> DirectState:
        """The start, for which the matrix is factorised."""
        assert f.g.hessian is not None
        assert f.h.hessian is not None
        return DirectState(x, y, solver(wide(f.g.hessian(x)), wide(f.h.hessian(y)), wide(f.A.matrix())))

    def step(self, f: Saddle, s: DirectState) -> DirectState:
        """The state after one step: a query, and a solve with the factorisation."""
        dx, dy = s.solve(*f.field(s.x, s.y))
        return DirectState(s.x - dx, s.y - dy, s.solve)

    def cost(self, f: Saddle) -> dict[str, int]:
        """A step costs one gradient of each function and one product each way; the factorisation is counted apart."""
        return {"grad_g": 1, "grad_h": 1, "A": 1, "At": 1}


def solver(P: Any, Q: Any, A: Any) -> Solver:
    """The map (u, v) -> (x, y) with P x + A y = u, Q y - A' x = v; a SingularError if rounding makes K singular."""
    try:
        return _solver(P, Q, A)
    except (LinAlgError, RuntimeError, ValueError) as error:  # singular (SuperLU), or not finite (SciPy)
        raise SingularError(f"the Hessians are not positive definite to working precision: {error}") from None


def _solver(P: Any, Q: Any, A: Any) -> Solver:
    m, n = A.shape
    p, q = diagonal_of(P), diagonal_of(Q)
    if p is not None and (q is None or n <= m):
        return _by_schur(p, Q, A)
    if q is not None:
        mirrored = _by_schur(q, P, -A.T)
        return lambda u, v: mirrored(v, u)[::-1]
    if any(map(issparse, (P, Q, A))) and sum(map(_entries, (P, Q, A))) < SPARSE * (m + n) ** 2:
        return sparse_solver(P, Q, A)
    return _by_cholesky(*(M.toarray() if issparse(M) else M for M in (P, Q, A)))


def sparse_solver(P: Any, Q: Any, A: Any) -> Solver:
    """The same map for sparse matrices, by an LU factorisation of K, which is more accurate than a Schur complement."""
    m = A.shape[0]
    try:
        lu = sparse_lu(block_array([[P, A], [-A.T, Q]]))
    except RuntimeError as error:
        raise SingularError(f"the matrix is singular to working precision: {error}") from None

    def solve(u: Array, v: Array) -> tuple[Array, Array]:
        z = lu.solve(np.concatenate((u, v)).astype(np.float64)).astype(u.dtype)
        return z[:m], z[m:]

    return solve


def dense_solver(P: Any, Q: Any, A: Any) -> Solver:
    """The same map by an LU factorisation of K as a dense matrix: slow, but more accurate than a Schur complement."""
    m, (P, Q, A) = A.shape[0], (M.toarray() if issparse(M) else M for M in (P, Q, A))
    K = np.block([[P, A], [-A.T, Q]])
    lu, pivots, info = dgetrf(K, overwrite_a=True)
    if info != 0 or not np.isfinite(lu).all():
        raise SingularError("the matrix is singular to working precision")

    def solve(u: Array, v: Array) -> tuple[Array, Array]:
        z = dgetrs(lu, pivots, np.concatenate((u, v)).astype(np.float64))[0].astype(u.dtype)
        return z[:m], z[m:]

    return solve


def _by_cholesky(P: Array, Q: Array, A: Array) -> Solver:
    """The solver for dense matrices: P and S = Q + A' P^-1 A are factorised."""
    p, _ = cho_factor(P)
    s, _ = cho_factor(Q + A.T @ cho_solve((p, False), A))
    At = A.T

    def solve(u: Array, v: Array) -> tuple[Array, Array]:
        # LAPACK is called directly: for small matrices, `cho_solve` takes several times as long.
        y, _ = dpotrs(s, v + At @ dpotrs(p, u)[0])
        x, _ = dpotrs(p, u - A @ y)
        return np.asarray(x, dtype=u.dtype), np.asarray(y, dtype=v.dtype)

    return solve


def _by_schur(p: Array, Q: Any, A: Any) -> Solver:
    """The solver for a diagonal P: x is eliminated, and S = Q + A' P^-1 A is factorised."""
    if not bool((p > 0.0).all()):
        raise LinAlgError("a diagonal entry is not positive")
    inverse = 1.0 / p
    S = Q + (A.T @ (diags_array(inverse) @ A) if issparse(A) else _gram(np.sqrt(inverse)[:, None] * A))
    if issparse(S) and stays_sparse(S):
        solve_S = sparse_lu(S).solve
    else:
        factor, _ = cho_factor(S.toarray() if issparse(S) else S)
        solve_S = lambda r: dpotrs(factor, r)[0]  # noqa: E731

    def solve(u: Array, v: Array) -> tuple[Array, Array]:
        y = solve_S(v + A.T @ (inverse * u))
        return (inverse * (u - A @ y)).astype(u.dtype), y.astype(v.dtype)

    return solve


def stays_sparse(S: Any) -> bool:
    """Whether a sparse factorisation of a symmetric matrix takes less time than a dense one, as far as one can tell."""
    n = int(S.shape[0])
    return n > LARGE or bool(S.nnz < SPARSE * n**2 and DENSE_SPEED * factor_work(S) < n**3 / 3.0)


def sparse_lu(K: Any) -> Any:
    """SuperLU's factors of a matrix with a symmetric pattern and a positive definite symmetric part."""
    return splu(K.tocsc(), permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=PIVOT, options={"SymmetricMode": True})


def _gram(B: Array) -> Array:
    """B'B; NumPy computes half of it where both factors are one array."""
    return np.asarray(B.T @ B)


def _entries(matrix: Any) -> int:
    return int(matrix.nnz if issparse(matrix) else matrix.size)


def wide(matrix: Any) -> Any:
    """The array in float64, the precision of the factorisation."""
    return matrix.astype(np.float64)
