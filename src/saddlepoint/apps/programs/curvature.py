"""Proven lower bounds of the curvature of a quadratic function, coordinate by coordinate."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from scipy.sparse import diags_array, issparse

from saddlepoint.ground.arrays import Array, dense
from saddlepoint.ground.definite import eigenvalue_ends
from saddlepoint.ground.definite_factors import IndefiniteError, TooLargeError
from saddlepoint.ground.errors import ProblemError

EXACT = 40  # most variables of a matrix that is examined in rational arithmetic


def curvature(P: Any) -> Array:
    """d with P - diag(d) >= 0, proven, for a symmetric positive semidefinite P.

    A diagonal P is its own d. Otherwise P is scaled by powers of two to a diagonal of about 1, and the smallest
    eigenvalue of the scaled matrix is bounded. If that bound is below zero, which rounding causes for singular
    matrices, d is negative, unless rational arithmetic proves that P is positive semidefinite. Entries are -inf if P is
    too large to be examined.

    Example:
        >>> import numpy as np
        >>> from saddlepoint.apps.programs.curvature import curvature
        >>> curvature(np.array([[1.0, 1.0], [1.0, 1.0]]))
        array([0., 0.])
    """
    diagonal = np.asarray(P.diagonal())
    if (diagonal < 0.0).any():
        at = int(diagonal.argmin())
        raise _not_convex(f"its diagonal has {diagonal[at]:.3g} at index {at}")
    if (P.nnz if issparse(P) else np.count_nonzero(P)) == np.count_nonzero(diagonal):
        return diagonal.copy()
    used = np.flatnonzero(diagonal > 0.0)
    rest = abs(P).sum(axis=1)
    if (np.asarray(rest).ravel()[diagonal == 0.0] > 0.0).any():
        raise _not_convex("a row has a zero on the diagonal and other entries beside it")
    powers = np.ldexp(1.0, -(np.frexp(diagonal[used])[1] // 2))
    if issparse(P):
        S = P.tocsr()[used][:, used]
        S = diags_array(powers) @ S @ diags_array(powers)
    else:
        S = powers[:, None] * P[np.ix_(used, used)] * powers
    try:
        low = eigenvalue_ends(S).low
    except IndefiniteError as error:
        raise _not_convex(f"it has an eigenvalue of about {error.found:.3g}, scaled to a diagonal of 1") from None
    except TooLargeError:
        low = -math.inf
    if -math.inf < low < 0.0 and used.size <= EXACT and _semidefinite(dense(P)):  # S may have lost entries to underflow
        low = 0.0
    found = np.zeros(diagonal.size)
    with np.errstate(all="ignore"):
        found[used] = np.nextafter(low / powers**2, -np.inf) if low != 0.0 else 0.0
    return found


def _not_convex(why: str) -> ProblemError:
    return ProblemError(f"P is not positive semidefinite: {why}; the program is not convex, and nothing can be proven")


def _semidefinite(S: Array) -> bool:
    """Whether a matrix is positive semidefinite, by elimination in rational arithmetic."""
    rows = [[Fraction(float(v)) for v in row] for row in S]
    for k in range(len(rows)):
        pivot = rows[k][k]
        if pivot < 0 or (pivot == 0 and any(rows[k][k:])):
            return False
        for i in range(k + 1, len(rows)) if pivot else ():
            factor = rows[i][k] / pivot
            if factor:
                rows[i] = [a - factor * b for a, b in zip(rows[i], rows[k], strict=True)]
    return True
