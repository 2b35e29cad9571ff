"""One factorisation, many solves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from saddlepoint.vectors import Array


def shifted_solver(M: Any, t: float) -> Callable[[Array], Array]:
    """r -> u with (I + t M) u = r, for a symmetric positive semidefinite M, dense or sparse, and t >= 0.

    The factor is in float64; u comes back in the dtype of r.
    """
    if isinstance(M, np.ndarray):
        matrix = t * M.astype(np.float64)
        matrix[np.diag_indices_from(matrix)] += 1.0
        factor = cho_factor(matrix, overwrite_a=True)
        return lambda r: np.asarray(cho_solve(factor, r), dtype=r.dtype)
    from scipy.sparse import eye_array
    from scipy.sparse.linalg import splu

    lu = splu((eye_array(M.shape[0]) + t * M.astype(np.float64)).tocsc())
    return lambda r: np.asarray(lu.solve(r.astype(np.float64)), dtype=r.dtype)
