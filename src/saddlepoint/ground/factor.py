"""A solver of linear systems that factorises the matrix once and solves with it many times."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, cho_factor
from scipy.linalg.lapack import dpotrs
from scipy.sparse import issparse

from saddlepoint.ground.arrays import Array, is_foreign, namespace, space_of
from saddlepoint.ground.errors import SingularError


def shifted_solver(M: Any, t: float) -> Callable[[Array], Array]:
    """The function r -> u with (I + t M) u = r, for a positive semidefinite M, dense or sparse, and t >= 0.

    The factor is in float64, and u has the dtype of r. For libraries other than NumPy and SciPy the inverse is computed
    instead, because the array API standard has no triangular solve.
    """
    if isinstance(M, np.ndarray):
        matrix = t * M.astype(np.float64)
        matrix[np.diag_indices_from(matrix)] += 1.0
        try:
            factor, lower = cho_factor(matrix, overwrite_a=True)
        except (LinAlgError, ValueError) as error:  # SciPy raises ValueError for entries that are not finite
            raise SingularError(f"I + t M is not positive definite to working precision: {error}") from None
        return lambda r: np.asarray(dpotrs(factor, r, lower)[0], dtype=r.dtype)  # SciPy's cho_solve checks for longer
    if is_foreign(M):
        xp = namespace(M)
        wide = xp.astype(M, xp.float64)
        inverse = xp.linalg.inv(xp.eye(M.shape[0], dtype=xp.float64, device=space_of(M).device) + t * wide)
        return lambda r: xp.astype(inverse @ xp.astype(r, xp.float64), r.dtype)
    from scipy.sparse import eye_array
    from scipy.sparse.linalg import splu

    try:
        lu = splu((eye_array(M.shape[0]) + t * M.astype(np.float64)).tocsc())
    except RuntimeError as error:  # of SuperLU
        raise SingularError(f"I + t M is singular to working precision: {error}") from None
    return lambda r: np.asarray(lu.solve(r.astype(np.float64)), dtype=r.dtype)


def diagonal_of(matrix: Any) -> Array | None:
    """The diagonal of a sparse matrix that has no other entries; None for any other matrix."""
    if not issparse(matrix):
        return None
    entries: Array = matrix.diagonal()
    return entries if matrix.count_nonzero() == np.count_nonzero(entries) else None
