"""Solutions of dense linear systems with symmetric matrices that are positive definite, or nearly so."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import LinAlgError
from scipy.linalg.lapack import dposv

from saddlepoint.ground.arrays import Array

PIVOT = 1e-5  # least pivot of Cholesky's algorithm, relative to the largest one, with which its solution is taken


def plus_diagonal(H: Array, diagonal: Any) -> Array:
    """H, to which the diagonal matrix is added in its place."""
    np.einsum("ii->i", H)[...] += diagonal
    return H


def definite_solution(H: Array, b: Array) -> Array:
    """The solution of H x = b for a positive definite H; LinAlgError if it is none."""
    _, x, info = dposv(H, b)
    if info != 0:
        raise LinAlgError("the matrix is not positive definite")
    return np.asarray(x)


def semidefinite_solution(H: Array, b: Array) -> Array:
    """The solution of H x = b for a positive semidefinite H; the shortest one, where H is singular."""
    factor, x, info = dposv(H, b)
    pivots = factor.diagonal()
    if info == 0 and pivots.min() > PIVOT * pivots.max():
        return np.asarray(x)
    return np.asarray(np.linalg.lstsq(H, b, rcond=None)[0])
