r"""Proven lower bounds of the smallest eigenvalue of a symmetric matrix.

Eigenvalues that are computed in floating-point arithmetic are estimates. The functions of this module return numbers s
of which lambda_min(S) >= s is proven, for the very entries of S and with all rounding accounted for. The proofs are by
Gershgorin's theorem (``gershgorin.py``) and by factorisations (``definite_factors.py``).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import eigvalsh
from scipy.sparse import issparse

from saddlepoint.ground.arrays import Array
from saddlepoint.ground.definite_factors import (
    GOOD,
    DenseProver,
    IndefiniteError,
    SparseProver,
    cholesky_proves,
    cholesky_weights,
)
from saddlepoint.ground.gershgorin import TINY, UNIT, Symmetric, gershgorin, symmetric_part
from saddlepoint.ground.linalg import norm
from saddlepoint.ground.rounding import gamma

ALL_EIGENVALUES = 1500  # largest size of a matrix of which all eigenvalues are computed
FULL = 0.1  # share of entries that are stored from which a sparse matrix is factorised as a dense one


class Ends(NamedTuple):
    """The ends of the eigenvalues of a matrix.

    Attributes:
        low: a proven lower bound.
        high: a proven upper bound; NaN for large matrices, of which it is not computed.
    """

    low: float
    high: float


def eigenvalue_ends(matrix: Any, error: Array | None = None) -> Ends:
    """The ends of the eigenvalues of (P + P')/2, for a matrix P that is positive semidefinite, if only up to rounding.

    The lower bound is close to the smallest eigenvalue: up to rounding if there are up to 1500 rows, and within a few
    per cent for larger matrices. It is negative, but tiny beside the entries of P, if the eigenvalue is zero or cannot
    be told from zero.

    Args:
        matrix: P, square, with finite entries: a NumPy array or a SciPy sparse array.
        error: the bounds are to hold for all matrices that differ from P by a symmetric E with -diag(error) <= E and
            E <= diag(error).

    Raises:
        IndefiniteError: an eigenvalue is negative beyond rounding.
        TooLargeError: the matrix is too large to be factorised, and Gershgorin's theorem proves too little.

    Example:
        >>> import numpy as np
        >>> from saddlepoint.ground.definite import eigenvalue_ends
        >>> low, high = eigenvalue_ends(np.array([[2.0, 1.0], [1.0, 2.0]]))
        >>> 1.0 - 1e-14 < low <= 1.0
        True
    """
    with np.errstate(all="ignore"):
        given = symmetric_part(matrix, error)
        try:
            ends = _small(given) if given.S.shape[0] <= ALL_EIGENVALUES else Ends(_large(given), math.nan)
        except IndefiniteError as indefinite:
            raise IndefiniteError(indefinite.found * given.unit) from None
    return Ends(_times(ends.low, given.unit), -_times(-ends.high, given.unit))


def _times(bound: float, unit: float) -> float:
    """The product of a bound and a power of two, rounded down where it underflows."""
    product = bound * unit
    return product if abs(product) >= 2.0**-1000 else math.nextafter(product, -math.inf)


def largest_eigenvalue_bound(matrix: Any, error: Array | None = None) -> float:
    """A proven upper bound of the largest eigenvalue of a dense symmetric matrix, and close to it.

    Args:
        matrix: a NumPy array with finite entries, not too large for all of its eigenvalues.
        error: the bound is to hold for all matrices that differ from this one by a symmetric E <= diag(error).
    """
    with np.errstate(all="ignore"):
        given = symmetric_part(np.asarray(matrix), error)
        high = float(eigvalsh(given.S, check_finite=False)[-1])
        return -_times(-_proven_high(given, high), given.unit)


def _proven_high(given: Symmetric, high: float) -> float:
    """A proven upper bound of the largest eigenvalue of a dense S, of which ``high`` is a computed one."""
    mirrored, low = given._replace(S=-given.S), -high
    loss = float(np.max(cholesky_weights(mirrored, low))) + 8.0 * len(given.S) * UNIT * abs(low)
    trials = (low - factor * loss for factor in (1.0, 4.0, 64.0))
    return -max(next((s for s in trials if cholesky_proves(mirrored, s)), -math.inf), gershgorin(mirrored))


def smallest_singular_value(E: Array, rough: bool = False) -> float:
    """A proven lower bound of the smallest singular value of a dense matrix with no more rows than columns; 0 if none.

    Let X be its computed pseudo-inverse. If |I - E X| <= a < 1, then |E'y| >= (1 - a) |y|/|X| for all y.

    Args:
        E: the matrix.
        rough: whether the bound may be too small by a factor of up to the root of the number of rows, or 0 where the
            condition number is large. It then takes a quarter of the time for small matrices.

    Example:
        >>> import numpy as np
        >>> from saddlepoint.ground.definite import smallest_singular_value
        >>> 2.0 - 1e-9 < smallest_singular_value(np.array([[2.0, 0.0, 0.0], [0.0, 3.0, 0.0]])) <= 2.0
        True
    """
    rows, columns = E.shape
    largest = float(np.max(np.abs(E), initial=0.0))
    if largest == 0.0 or not math.isfinite(largest):
        return 0.0
    exponent = math.frexp(largest)[1]
    E = np.ldexp(E, -exponent)
    with np.errstate(all="ignore"):
        try:
            X = E.T @ np.linalg.inv(E @ E.T) if rough else np.linalg.pinv(E)
        except np.linalg.LinAlgError:
            return 0.0
        growth = gamma(columns + 4, UNIT)
        off = np.abs(np.eye(rows) - E @ X) + 2.0 * growth * (np.abs(E) @ np.abs(X)) + columns * TINY
        a = 1.01 * math.sqrt(float(np.max(off.sum(axis=0))) * float(np.max(off.sum(axis=1))))
        if not a < 1.0:
            return 0.0
        if rough:
            length = norm(X.ravel()) * (1.0 + gamma(X.size + 4, UNIT))
        else:
            gram = X.T @ X
            error = 2.0 * growth * rows * np.diag(gram)
            length = math.sqrt(largest_eigenvalue_bound(gram, error)) * (1.0 + 4.0 * UNIT)
    return _times((1.0 - a) / length * (1.0 - 8.0 * UNIT), math.ldexp(1.0, exponent)) if length < math.inf else 0.0


# -- small matrices: all eigenvalues are computed --------------------------------------------------------------------


def _small(given: Symmetric) -> Ends:
    """The ends for a matrix of which all eigenvalues are computed."""
    dense = given.S.toarray() if issparse(given.S) else given.S
    given = given._replace(S=dense)
    n = dense.shape[0]
    if n == 1 and dense[0, 0] >= 0.0:
        return Ends(gershgorin(given), -gershgorin(given._replace(S=-dense)))
    values = np.linalg.eigvalsh(dense)
    low, high = float(values[0]), float(values[-1])
    rounding = 8.0 * n * UNIT * max(abs(low), abs(high))  # usual error of a computed eigenvalue
    if low < -32.0 * rounding:
        raise IndefiniteError(low)
    found = gershgorin(given)
    if low < 1e3 * rounding:  # a badly scaled matrix may have far smaller eigenvalues, which its factor shows
        with suppress(IndefiniteError):
            found = max(found, DenseProver(given).bound())
    loss = float(np.max(cholesky_weights(given, low))) + rounding
    trials = (s for s in _trials(low, loss) if s <= found or cholesky_proves(given, s))
    return Ends(max(found, next(trials, -math.inf)), _proven_high(given, high))


def _trials(low: float, loss: float) -> Iterator[float]:
    """Lower bounds to try, where the smallest eigenvalue is about ``low`` and the proof may lose ``loss``."""
    if low > 0.0:
        parts = (1e-12, 1e-9, 1e-6, 1e-3, 0.1, 0.5, 0.9)  # of ``low`` that are given up, in turn
        yield from (low - part * low for part in parts if part * low < loss)
    for factor in (1.0, 4.0, 16.0, 64.0, 1024.0):
        yield low - factor * loss


# -- large matrices --------------------------------------------------------------------------------------------------


def _large(given: Symmetric) -> float:
    """The lower bound for a matrix too large for all its eigenvalues, by Gershgorin's theorem or a factorisation."""
    highest = float(given.diagonal.min())  # lambda_min is not larger
    if highest < 0.0:
        raise IndefiniteError(highest)
    bound = gershgorin(given)
    if bound >= GOOD * highest:
        return bound
    if issparse(given.S) and given.S.nnz > FULL * given.S.shape[0] ** 2:
        given = given._replace(S=given.S.toarray())
    prover = SparseProver(given) if issparse(given.S) else DenseProver(given)
    return max(bound, prover.bound())
