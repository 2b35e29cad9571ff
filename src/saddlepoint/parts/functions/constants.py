"""Constants mu and L of the ready-made functions: eigenvalues of small matrices, else Lanczos bounds with a margin."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, eigvalsh
from scipy.sparse import issparse

from saddlepoint.ground.arrays import Space, all_finite, copied, is_array, is_foreign, namespace
from saddlepoint.ground.errors import ProblemError
from saddlepoint.ground.linalg import norm
from saddlepoint.ground.spectrum import largest_eigenvalue
from saddlepoint.ground.validation import short_repr
from saddlepoint.parts.coupling import ArrayCoupling, Coupling, DenseCoupling, SparseCoupling
from saddlepoint.parts.functions.probes import changed_argument, differ
from saddlepoint.parts.functions.smooth import Gradient

DENSE = 1500  # largest size of a matrix of which all eigenvalues are computed
ROUNDING = 32 * float(np.finfo(np.float64).eps)  # relative error of a computed eigenvalue


def eigenvalue_bounds(P: Coupling) -> tuple[float, float]:
    """Numbers (mu, L) with mu <= lambda_min and lambda_max <= L for a symmetric positive semidefinite P.

    The eigenvalues of a small P are computed. A large P is treated by Lanczos, and so is its inverse, by one
    factorisation; a margin is added to each.
    """
    n = P.shape[0]
    if n <= DENSE:
        low, high = _ends(P.matrix())
        if low < -ROUNDING * high * n:
            raise ProblemError(f"P is not positive semidefinite: its smallest eigenvalue is {low:.6g}")
        return max(low - ROUNDING * high, 0.0), high * (1 + ROUNDING)
    L = largest_eigenvalue(P.mul, n, space=P.space).upper
    inverse = _inverse(P)
    return (0.0 if inverse is None else 1.0 / largest_eigenvalue(inverse, n).upper), L


def gram_bounds(D: Coupling) -> tuple[float, float]:
    """Bounds on the smallest and largest eigenvalue of D'D."""
    rows, columns = D.shape
    if isinstance(D, DenseCoupling | ArrayCoupling) and min(rows, columns) <= DENSE:
        small = D.space.wide.cast(D.A if columns <= rows else D.A.T)
        with np.errstate(over="ignore", invalid="ignore"):
            gram = small.T @ small
        if not all_finite(gram):
            raise ProblemError("the entries of D are so large that D'D overflows; scale D (and x with it)")
        low, high = _ends(gram)
        return (max(low - ROUNDING * high, 0.0) if columns <= rows else 0.0), high * (1 + ROUNDING)
    if D.space.of_x.is_sharded and columns <= DENSE:  # this takes one round, in which only the Gram matrix is sent
        low, high = _ends(D.gram())
        slack = rows * ROUNDING * (1.0 if D.dtype == np.float64 else 2.0**29)  # D'D was summed up in the dtype of D
        return max(low - slack * high, 0.0), high * (1.0 + slack)
    return 0.0, D.norm * D.norm


def estimate_smoothness(
    grad: Gradient, n: int, space: Space, *, name: str = "the function", starts: int = 4, steps: int = 12
) -> tuple[float, int]:
    """An estimate of L of a black box, and the gradient calls it took.

    It is twice the largest quotient |grad(x) - grad(z)|/|x - z| that power iteration finds around a few random points.
    It is not a bound: the run checks it, and no certificate depends on it.
    """
    rng = np.random.default_rng(0)
    largest, calls = 0.0, 0
    for start in range(starts):
        x = space.zeros(n) if start == 0 else space.cast(rng.standard_normal(n))
        given = copied(x)
        base = grad(given)
        if not is_array(base) or base.shape != x.shape:
            raise ProblemError(
                f"the gradient of {name} returned {short_repr(base)} for a point of shape {tuple(x.shape)}; "
                "expected an array of the same shape"
            )
        if differ(given, x):
            raise changed_argument(name)
        direction = space.cast(rng.standard_normal(n))
        length = (1.0 + norm(x)) * space.eps**0.33
        for _ in range(steps):
            direction = direction * (length / norm(direction))
            change = grad(x + direction) - base
            calls += 1
            largest = max(largest, norm(change) / length)
            if not norm(change) > 0.0:
                break
            direction = change
        calls += 1
    if not (np.isfinite(largest) and largest > 0.0):
        raise ProblemError(f"the gradient gave a smoothness of {largest}; give L, or correct the gradient")
    return 2.0 * largest, calls


def _ends(matrix: Any) -> tuple[float, float]:
    """The smallest and the largest eigenvalue of a symmetric matrix."""
    if is_foreign(matrix):
        xp = namespace(matrix)
        values = xp.linalg.eigvalsh(xp.astype(matrix, xp.float64))
    else:
        values = eigvalsh(np.asarray(matrix.toarray() if issparse(matrix) else matrix, dtype=np.float64))
    return float(values[0]), float(values[-1])


def _inverse(P: Coupling) -> Gradient | None:
    """The map r -> P^-1 r, or None if P is singular; a ProblemError if P is not positive semidefinite."""
    if isinstance(P, SparseCoupling):
        from scipy.sparse.linalg import splu

        matrix = P.A.tocsc().astype(np.float64)
        try:  # only with diagonal pivots do their signs agree with those of the eigenvalues
            lu = splu(matrix, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True})
        except RuntimeError:
            return None
        if (lu.U.diagonal() <= 0.0).any():
            raise ProblemError("P is not positive definite: a pivot of its factorisation is not positive")
        return lambda r: np.asarray(lu.solve(r))
    if not isinstance(P, DenseCoupling):
        return None  # nothing but mu >= 0 is known
    try:
        factor = cho_factor(np.asarray(P.A, dtype=np.float64))
    except LinAlgError:
        raise ProblemError("P is not positive definite: its Cholesky factorisation fails") from None
    return lambda r: np.asarray(cho_solve(factor, r))
