r"""Data minus the means of their columns, with proven bounds on what rounding changes.

Problem:    X - 1 m', where m are the means of the columns of X. Differences of large numbers are exact or nearly so;
            what loses digits is a mean that is rounded to float64, and a subtraction of products, X w - 1 (m'w).
Means:      the sum of a column is computed as a pair hi + lo: numbers are added two at a time, and the error of each
            addition, which is a floating-point number, is added up too (D. E. Knuth, TAOCP 2, section 4.2.2). So m is
            a pair with about 30 digits, and each entry of X - 1 m' has a relative error of a few units of rounding.
Sparse:     a column with entries in more than half of its rows becomes dense and is centred as above. Of any other
            column at least half of the entries are zero, so that its mean is at most sqrt(2) times its root mean square
            after centring: there X w - 1 (m'w) loses nothing.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csc_array, csr_array, issparse

from saddlepoint.apps.data_errors import UP
from saddlepoint.ground.arrays import Array, dense
from saddlepoint.ground.compensated import EPS, Sum, two_sum
from saddlepoint.ground.linalg import inner
from saddlepoint.ground.rounding import gamma
from saddlepoint.parts.coupling import Coupling, as_coupling

ENTRIES = 1 << 18  # entries of X that are read at a time
RELATIVE = 3.0 * EPS  # most relative error of an entry by the operations that follow the means


class Centred(NamedTuple):
    """A matrix with centred columns.

    Attributes:
        D: the matrix as computed.
        means: the means of the columns of the data, rounded to float64.
        sizes: bounds on the norms of the columns of D, and of the exact matrix.
        errors: bounds on the norms of the columns of D minus the exact matrix.
        shifts: entry (i, j) of D minus the exact matrix is at most RELATIVE |D_ij| + shifts_j.
    """

    D: Coupling
    means: Array
    sizes: Array
    errors: Array
    shifts: Array


def centred(X: Any, *, scale: float = 1.0, constant: float | None = None) -> Centred:
    """scale (X - 1 m') for an array or a SciPy sparse array X in float64, with a last column ``constant`` if given.

    The exact matrix that ``errors`` refer to has the exact means. The scale may have a relative error of EPS.
    """
    rows, features = X.shape
    if not issparse(X):
        D, means, sizes, errors, shifts = _dense(X, scale)
        if constant is not None:
            D = np.hstack((D, np.full((rows, 1), constant)))
        return Centred(as_coupling(D), means, *_with_constant(sizes, errors, shifts, rows, constant))
    X = csc_array(X)
    full = 2 * np.diff(X.indptr) > rows
    kept, filled = csc_array(X[:, ~full]), np.flatnonzero(full)
    F, F_means, F_sizes, F_errors, F_shifts = _dense(X[:, full].toarray(), scale)
    total = sparse_column_sums(kept)
    mean = (total.hi + total.lo) / rows
    off = 2.0 * EPS * np.abs(mean) + total.error / rows
    c = scale * mean
    means, sizes, errors, shifts = (np.zeros(features) for _ in range(4))
    means[full], means[~full] = F_means, mean
    sizes[full], errors[full], shifts[full] = F_sizes, F_errors, F_shifts
    kept = scale * kept
    stored = _column_norms(kept)
    sizes[~full] = UP * (stored + math.sqrt(rows) * np.abs(c))
    relative = 0.0 if scale == 1.0 else 2.0 * EPS
    errors[~full] = UP * (scale * math.sqrt(rows) * off + relative * sizes[~full])
    shifts[~full] = UP * (scale * off + 2.0 * relative * np.abs(c))  # an entry of kept is at most |D_ij| + |c_j|
    rest = np.flatnonzero(~full)
    if constant is not None:
        F, filled = np.hstack((F, np.full((rows, 1), constant))), np.append(filled, features)
    sizes, errors, shifts = _with_constant(sizes, errors, shifts, rows, constant)
    some_sparse = CentredColumns(F, filled, csr_array(kept), rest, c, sizes) if rest.size else as_coupling(F)
    return Centred(some_sparse, means, sizes, errors, shifts)


def uncentred(X: Any, *, scale: float = 1.0) -> Centred:
    """The same without centring, for data without an intercept: scale X."""
    D = X if scale == 1.0 else scale * X
    sizes = UP * _column_norms(D)
    errors = (0.0 if scale == 1.0 else 3.0 * EPS) * sizes
    return Centred(as_coupling(D, "X"), np.zeros(X.shape[1]), sizes + errors, errors, np.zeros(X.shape[1]))


class CentredColumns(Coupling):
    """A matrix with some dense columns and some sparse ones, from each of which a number is subtracted.

    Args:
        F: the dense columns, and ``filled``, their positions.
        S: the sparse columns, and ``rest``, their positions.
        c: the number that is subtracted from each sparse column.
        sizes: bounds on the norms of all columns.
    """

    trusted = True

    def __init__(self, F: Array, filled: Array, S: Any, rest: Array, c: Array, sizes: Array) -> None:
        self.F, self.filled, self.S, self.rest, self.c, self.sizes = F, filled, S, rest, c, sizes
        self.shape = (S.shape[0], sizes.shape[0])
        self.dtype = np.dtype(np.float64)

    def mul(self, y: Array) -> Array:
        """F y_F + S y_S - 1 c'y_S."""
        sparse = y[self.rest]
        return np.asarray(self.F @ y[self.filled] + (self.S @ sparse - inner(self.c, sparse)))

    def tmul(self, x: Array) -> Array:
        """F'x and S'x - c 1'x, in their places."""
        product = np.empty(self.shape[1], np.result_type(x, self.dtype))
        product[self.filled] = self.F.T @ x
        product[self.rest] = self.S.T @ x - float(x.sum()) * self.c
        return product

    def _transpose(self) -> Coupling:
        return TransposedColumns(self)


class TransposedColumns(Coupling):
    """The transpose of ``CentredColumns``."""

    trusted = True

    def __init__(self, of: CentredColumns) -> None:
        self.of = of
        self.shape, self.dtype = (of.shape[1], of.shape[0]), of.dtype

    def mul(self, y: Array) -> Array:
        """A y."""
        return self.of.tmul(y)

    def tmul(self, x: Array) -> Array:
        """A' x."""
        return self.of.mul(x)

    def _transpose(self) -> Coupling:
        return self.of


def column_means(X: Array) -> Sum:
    """The means of the columns of an array. Their error is far below the rounding of a mean to float64.

    The sums are those of X minus rough means, which are a pair too. What the additions lose is added up in ``lo``.
    """
    rows, features = X.shape
    rough = X.mean(axis=0)
    hi, lo, size, error = np.zeros((4, features))
    block = max(1, ENTRIES // features)
    for start in range(0, rows, block):
        rest, low = two_sum(X[start : start + block], -rough)
        part = column_sums(rest)
        hi, lost = two_sum(hi, part.hi)
        lo = lo + (lost + part.lo + low.sum(axis=0))
        size = size + np.abs(low).sum(axis=0) + np.abs(part.lo) + np.abs(lost)
        error = error + part.error
    shift = (hi + lo) / rows
    error = (error + gamma(rows + 4 * math.ceil(rows / block), EPS) * size) / rows + 2.0 * EPS * np.abs(shift)
    return Sum(*two_sum(rough, shift), UP * error)


def _dense(X: Array, scale: float) -> tuple[Array, Array, Array, Array, Array]:
    """The centred array, the means, and ``sizes``, ``errors`` and ``shifts`` of ``Centred``.

    An entry d of D is fl(fl(X - hi) - lo), so that its error is at most EPS |d| + EPS |lo| and the error of hi + lo.
    """
    rows, features = X.shape
    if not features:
        return np.zeros((rows, 0)), *np.zeros((4, 0))
    means = column_means(X)
    D = X - means.hi
    D -= means.lo
    relative = EPS
    if scale != 1.0:
        D *= scale
        relative = RELATIVE
    sizes, shifts = UP * _column_norms(D), UP * scale * (EPS * np.abs(means.lo) + means.error)
    errors = UP * (relative * sizes + math.sqrt(rows) * shifts)
    return D, means.hi, sizes + errors, errors, shifts


def _with_constant(
    sizes: Array, errors: Array, shifts: Array, rows: int, constant: float | None
) -> tuple[Array, Array, Array]:
    """The bounds of ``Centred``, with those of the last column if there is a constant."""
    if constant is None:
        return sizes, errors, shifts
    return np.append(sizes, UP * math.sqrt(rows) * abs(constant)), np.append(errors, 0.0), np.append(shifts, 0.0)


def _column_norms(D: Any) -> Array:
    """Bounds on the norms of the columns, up to the factor UP; they hold even if squares underflow."""
    units = abs(D).max(axis=0)
    units = dense(units).ravel()
    units = np.where(units > 0.0, units, 1.0)
    if issparse(D):
        scaled = csc_array(D)
        squares = (scaled.data / np.repeat(units, np.diff(scaled.indptr))) ** 2
        sums = np.bincount(np.repeat(np.arange(D.shape[1]), np.diff(scaled.indptr)), squares, minlength=D.shape[1])
    else:
        sums = np.zeros(D.shape[1])
        block = max(1, ENTRIES // max(D.shape[1], 1))
        for start in range(0, D.shape[0], block):
            part = D[start : start + block] / units
            sums += np.einsum("ij,ij->j", part, part)
    return np.asarray(units * np.sqrt(sums) * (1.0 + gamma(D.shape[0] + 8, EPS)))


def column_sums(R: Array) -> Sum:
    """The sums of the columns of an array in about twice the digits: halves are added until one row is left."""
    rows = R.shape[0]
    if not rows:
        return Sum(*np.zeros((3, R.shape[1])))
    size = np.abs(R).sum(axis=0)
    lost = np.zeros(R.shape[1])
    while R.shape[0] > 1:
        half = R.shape[0] // 2
        s, e = two_sum(R[:half], R[half : 2 * half])
        lost = lost + e.sum(axis=0)
        R = s if R.shape[0] == 2 * half else np.concatenate((s, R[2 * half :]))
    # The numbers in lost are at most EPS times those added, in each of log2(rows) rounds; adding them up is rounded.
    levels = math.ceil(math.log2(rows)) + 1 if rows > 1 else 1
    return Sum(R[0], lost, UP * gamma(2 * rows, EPS) * gamma(levels, EPS) * size)


def sparse_column_sums(S: Any) -> Sum:
    """The sums of the columns of a SciPy sparse array: neighbours within a column are added until one is left."""
    S = csc_array(S)
    values, counts, columns = S.data, np.diff(S.indptr), S.shape[1]
    owner = np.repeat(np.arange(columns), counts)
    size = np.bincount(owner, np.abs(values), minlength=columns)
    longest = int(counts.max(initial=1))
    lost = np.zeros(columns)
    while counts.max(initial=0) > 1:
        starts = np.cumsum(counts) - counts
        place = np.arange(values.shape[0]) - np.repeat(starts, counts)
        even = np.flatnonzero(place % 2 == 0)
        paired = place[even] + 1 < np.repeat(counts, counts)[even]
        right = np.where(paired, values[np.minimum(even + 1, values.shape[0] - 1)], 0.0)
        values, e = two_sum(values[even], right)
        owner = owner[even]
        lost += np.bincount(owner, e, minlength=columns)
        counts = (counts + 1) // 2
    hi = np.zeros(columns)
    hi[owner] = values
    levels = math.ceil(math.log2(longest)) + 1 if longest > 1 else 1
    return Sum(hi, lost, UP * gamma(2 * longest, EPS) * gamma(levels, EPS) * size)
