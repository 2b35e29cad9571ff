r"""Gershgorin's theorem as a proven lower bound of the smallest eigenvalue, with all rounding accounted for.

M >= 0 stands for "M is positive semidefinite". For any positive v, diag(|M| v/v) - M >= 0, because this matrix, scaled
by diag(v) from both sides, is diagonally dominant. Hence lambda_min(S) >= min_i S_ii - sum_{j != i} |S_ij| v_j/v_i.
Likewise, a symmetric matrix E of errors is at most diag(w) with w = |E| v/v, which is called Gershgorin's w of E.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csc_array, diags_array, issparse

from saddlepoint.ground.arrays import Array
from saddlepoint.ground.rounding import gamma

UNIT = 2.0**-53  # unit roundoff of float64
TINY = 2.0**-1000  # more than underflow costs in any sum here, where the largest entry of S is from 1 to 2
BLOCK = 256  # rows of a dense matrix that are copied at a time


class Symmetric(NamedTuple):
    """A symmetric matrix with entries below 2, times ``unit``, a power of two.

    Attributes:
        S: the matrix, a NumPy array or a sparse CSC array in float64.
        unit: the factor.
        error: Gershgorin's w for the errors of the entries of S.
    """

    S: Any
    unit: float
    error: Array

    @property
    def diagonal(self) -> Array:
        """The diagonal of S."""
        return np.asarray(self.S.diagonal())


def gershgorin(given: Symmetric, v: Array | None = None) -> float:
    """The lower bound of lambda_min(S) by Gershgorin's theorem with weights v > 0; ones if left out."""
    n, diagonal = given.S.shape[0], given.diagonal
    v = np.ones(n) if v is None else v
    if issparse(given.S):
        radius = (abs(given.S) - diags_array(abs(diagonal))) @ v / v
    else:
        radius = np.empty(n)
        for i in range(0, n, BLOCK):  # a copy of the whole matrix would take as much memory again
            rows = np.abs(given.S[i : i + BLOCK])
            rows[np.arange(len(rows)), np.arange(i, i + len(rows))] = 0.0
            radius[i : i + BLOCK] = rows @ v / v[i : i + BLOCK]
    radius = (1.0 + 4.0 * gamma(n + 2, UNIT)) * (radius + given.error) + TINY
    bound = float(np.min(diagonal - radius - 4.0 * UNIT * (abs(diagonal) + radius)))
    return bound if math.isfinite(bound) else -math.inf


def symmetric_part(matrix: Any, error: Array | None = None) -> Symmetric:
    """(P + P')/2 for a square matrix P; ``error`` is Gershgorin's w for the errors of its entries."""
    n = matrix.shape[0]
    exponent = math.frexp(float(abs(matrix).max()))[1] - 1
    S: Any
    if issparse(matrix):
        S = csc_array(matrix, dtype=np.float64, copy=True)
        S.sum_duplicates()
        S.data = np.ldexp(S.data, -exponent)
        skew = (S != S.T).nnz > 0
    else:
        S = np.ldexp(np.asarray(matrix, dtype=np.float64), -exponent)
        skew = not np.array_equal(S, S.T)
    w = np.full(n, TINY) if error is None else np.ldexp(error, -exponent) + TINY
    if skew:
        S = 0.5 * S + 0.5 * S.T
        w += 2.0 * UNIT * np.asarray(abs(S).sum(axis=1)).ravel()
    return Symmetric(csc_array(S) if issparse(S) else S, math.ldexp(1.0, exponent), w)
