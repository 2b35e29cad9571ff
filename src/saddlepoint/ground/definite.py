r"""Proven lower bounds of the smallest eigenvalue of a symmetric matrix.

Eigenvalues that are computed in floating-point arithmetic are estimates. The functions of this module return numbers s
of which lambda_min(S) >= s is proven, for the very entries of S and with all rounding accounted for. M >= 0 stands for
"M is positive semidefinite", and u is the unit roundoff.

Gershgorin: For any positive v, diag(|M| v/v) - M >= 0, because this matrix, scaled by diag(v) from both sides, is
    diagonally dominant. Hence lambda_min(S) >= min_i S_ii - sum_{j != i} |S_ij| v_j/v_i.
Factorisation: Let R'R = B + E with the computed factor R of B = S - s I - diag(w). Standard error analysis says
    |E| <= gamma |R'||R|, in any order of summation, and if w is so large that diag(w) >= E, then S - s I >= 0.
    Dense: |E_ij| <= gamma/(1 - gamma) sqrt(B_ii B_jj), of which Gershgorin's w, with v_i = 1/sqrt(B_ii), is at most
    n gamma/(1 - gamma) B_ii. So it is enough that Cholesky's algorithm runs to completion.
    Sparse: L and U of Gaussian elimination with diagonal pivots are read, and Gershgorin's w is computed from them.

References: S. M. Rump, Verification of positive definiteness, BIT 2006; N. J. Higham, Accuracy and Stability of
Numerical Algorithms, SIAM 2002, theorems 9.3 and 10.3.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import eigvalsh, lapack
from scipy.sparse import csc_array, diags_array, issparse
from scipy.sparse.linalg import ArpackError, ArpackNoConvergence, LinearOperator, SuperLU, eigsh, splu

from saddlepoint.ground.arrays import Array
from saddlepoint.ground.fill_in import factor_work
from saddlepoint.ground.rounding import gamma

UNIT = 2.0**-53  # unit roundoff of float64
TINY = 2.0**-1000  # more than underflow costs in any sum here, where the largest entry of S is from 1 to 2
ALL_EIGENVALUES = 1500  # largest size of a matrix of which all eigenvalues are computed
MOST_WORK = 3e12  # multiplications that a factorisation may take, by a rough estimate
BLOCK = 256  # rows of a dense matrix that are copied at a time
FULL = 0.1  # share of entries that are stored from which a sparse matrix is factorised as a dense one
GOOD = 0.95  # part of an upper bound of lambda_min with which a cheap lower bound is accepted
ESTIMATE = 1e-2  # relative accuracy of estimated eigenvalues of large matrices
SMOOTHING = 10  # steps of inverse iteration for the vector v of Gershgorin's theorem
SEEDS = 3  # starts of the estimate; another one is drawn if the proof fails
SHRINK = 1.0 / 8.0  # factor of the trial value where the estimates were too large
TRIALS = 16  # trial values at most


class IndefiniteError(ArithmeticError):
    """The matrix is not positive semidefinite, not even up to rounding.

    Attributes:
        found: the smallest eigenvalue is not above it; NaN if no such number is known.
    """

    def __init__(self, found: float = math.nan) -> None:
        super().__init__(found)
        self.found = found


class TooLargeError(ArithmeticError):
    """A factorisation of the matrix would take too much time or memory."""


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


class Ends(NamedTuple):
    """The ends of the eigenvalues of a matrix.

    Attributes:
        low: a proven lower bound.
        high: an estimate of the largest eigenvalue; NaN for large matrices, of which it is not computed.
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
        error: the bound is to hold for all matrices that differ from P by a symmetric E with -diag(error) <= E.

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
        except IndefiniteError as error:
            raise IndefiniteError(error.found * given.unit) from None
    return Ends(_times(ends.low, given.unit), ends.high * given.unit)


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
        given = symmetric_part(-np.asarray(matrix), error)
        low = float(eigvalsh(given.S, check_finite=False)[0])
        loss = float(np.max(_cholesky_weights(given, low))) + 8.0 * len(given.S) * UNIT * abs(low)
        found = next(
            (s for s in (low - factor * loss for factor in (1.0, 4.0, 64.0)) if completes(given, s)), -math.inf
        )
    return -_times(max(found, gershgorin(given)), given.unit)


def smallest_singular_value(E: Array) -> float:
    """A proven lower bound of the smallest singular value of a dense matrix with no more rows than columns; 0 if none.

    Let X be its computed pseudo-inverse. If |I - E X| <= a < 1, then |E'y| >= (1 - a) |y|/|X| for all y.

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
            X = np.linalg.pinv(E)
        except np.linalg.LinAlgError:
            return 0.0
        growth = gamma(columns + 4, UNIT)
        off = np.abs(np.eye(rows) - E @ X) + 2.0 * growth * (np.abs(E) @ np.abs(X)) + columns * TINY
        a = 1.01 * math.sqrt(float(np.max(off.sum(axis=0))) * float(np.max(off.sum(axis=1))))
        if not a < 1.0:
            return 0.0
        gram = X.T @ X
        error = 2.0 * growth * rows * np.diag(gram)
        length = math.sqrt(largest_eigenvalue_bound(gram, error)) * (1.0 + 4.0 * UNIT)
    return _times((1.0 - a) / length * (1.0 - 8.0 * UNIT), math.ldexp(1.0, exponent)) if length < math.inf else 0.0


# -- small matrices: all eigenvalues are computed --------------------------------------------------------------------


def _small(given: Symmetric) -> Ends:
    dense = given.S.toarray() if issparse(given.S) else given.S
    given = given._replace(S=dense)
    n = dense.shape[0]
    if n == 1:
        return Ends(gershgorin(given), float(dense[0, 0]))
    values = eigvalsh(dense, check_finite=False)
    low, high = float(values[0]), float(values[-1])
    rounding = 8.0 * n * UNIT * max(abs(low), abs(high))  # usual error of a computed eigenvalue
    if low < -32.0 * rounding:
        raise IndefiniteError(low)
    found = gershgorin(given)
    if low < 1e3 * rounding:  # a badly scaled matrix may have far smaller eigenvalues, which its factor shows
        with suppress(IndefiniteError):
            found = max(found, _DenseProver(given).bound())
    loss = float(np.max(_cholesky_weights(given, low))) + rounding
    trials = (s for s in _trials(low, loss) if s <= found or completes(given, s))
    return Ends(max(found, next(trials, -math.inf)), high)


def _trials(low: float, loss: float) -> Iterator[float]:
    """Values to try where the smallest eigenvalue is about ``low`` and the proof may cost ``loss``."""
    if low > 0.0:
        yield from (low - part * low for part in (1e-12, 1e-9, 1e-6, 1e-3, 0.1, 0.5, 0.9) if part * low < loss)
    for factor in (1.0, 4.0, 16.0, 64.0, 1024.0):
        yield low - factor * loss


# -- large matrices --------------------------------------------------------------------------------------------------


def _large(given: Symmetric) -> float:
    highest = float(given.diagonal.min())  # lambda_min is not larger
    if highest < 0.0:
        raise IndefiniteError(highest)
    bound = gershgorin(given)
    if bound >= GOOD * highest:
        return bound
    if issparse(given.S) and given.S.nnz > FULL * given.S.shape[0] ** 2:
        given = given._replace(S=given.S.toarray())
    prover = _SparseProver(given) if issparse(given.S) else _DenseProver(given)
    return max(bound, prover.bound())


class _Prover(ABC):
    """An estimate of the smallest eigenvalue, and its proof by a second factorisation.

    A subclass has ``weights`` w, what the proof by a factorisation costs, ``factorise()`` for S + diag(w), where w is
    tiny, and ``proven(s)``, a number close to s that is proven to be a lower bound, or None.
    """

    weights: Array

    def __init__(self, given: Symmetric) -> None:
        self.given = given
        self.n: int = given.S.shape[0]
        if self.work() > MOST_WORK:
            raise TooLargeError

    @abstractmethod
    def work(self) -> float: ...

    @abstractmethod
    def proven(self, s: float) -> float | None: ...

    @abstractmethod
    def solve(self, r: Array) -> Array: ...

    def bound(self) -> float:
        """The proven lower bound."""
        estimate, v = self.smoothed()
        found = gershgorin(self.given, v)
        if found >= GOOD * estimate:
            return found
        trial = math.inf
        for seed in range(TRIALS):
            trial = min(trial * SHRINK, self.estimate(seed)) if seed < SEEDS else trial * SHRINK
            if trial <= float(np.min(self.weights)):
                break
            proven = self.proven((1.0 - 3.0 * ESTIMATE) * trial)
            if proven is not None and proven > 0.5 * trial:
                return max(proven, found)
        return max(found, self.nearly_singular())

    def smoothed(self) -> tuple[float, Array]:
        """A Rayleigh quotient, and a positive vector, by inverse iteration."""
        v = np.ones(self.n)
        for _ in range(SMOOTHING):
            v = self.solve(v)
            v = v / float(np.max(np.abs(v)))
        quotient = float(v @ (self.given.S @ v)) / float(v @ v)
        return quotient, np.maximum(np.abs(v), 1e-100)

    def estimate(self, seed: int) -> float:
        """An estimate of the smallest eigenvalue; the start of the iteration depends on the seed."""
        n = self.n
        start = np.random.default_rng(seed).standard_normal(n)
        inverse = LinearOperator((n, n), matvec=self.solve, dtype=np.float64)
        try:
            values = eigsh(inverse, k=1, which="LA", v0=start, tol=ESTIMATE, maxiter=20, return_eigenvectors=False)
        except ArpackNoConvergence as error:
            values = error.eigenvalues
        except ArpackError:
            values = np.zeros(0)
        largest = float(values[0]) if len(values) else math.nan
        return 1.0 / largest if largest > 0.0 else float(self.given.diagonal.min())

    def nearly_singular(self) -> float:
        """A negative lower bound, of the size of rounding errors; an ``IndefiniteError`` if it cannot be proven."""
        for factor in (1.0, 1e2, 1e4):
            proven = self.proven(-factor * float(np.max(self.weights)))
            if proven is not None:
                return proven
        raise IndefiniteError


class _DenseProver(_Prover):
    """The proof by Cholesky factorisations."""

    def __init__(self, given: Symmetric) -> None:
        super().__init__(given)
        self.weights = _cholesky_weights(given, 0.0)
        self.factor: Array | None = None

    def work(self) -> float:
        return float(self.n) ** 3 / 3.0

    def proven(self, s: float) -> float | None:
        self.factor = None  # two factors at once would need twice the memory
        return s if completes(self.given, s) else None

    def solve(self, r: Array) -> Array:
        if self.factor is None:
            self.factor = _cholesky(self.given.S, -self.weights)
        if self.factor is None:
            raise IndefiniteError
        return np.asarray(lapack.dpotrs(self.factor, r)[0])


def completes(given: Symmetric, s: float) -> bool:
    """Whether Cholesky's algorithm proves that S - s I >= 0, for a dense S."""
    w = _cholesky_weights(given, s)
    w = w + 4.0 * UNIT * (abs(given.diagonal) + abs(s) + w)  # the subtraction on the diagonal rounds as well
    return _cholesky(given.S, s + w) is not None


def _cholesky_weights(given: Symmetric, s: float) -> Array:
    """Gershgorin's w for the rounding of Cholesky's algorithm, applied to S - s I, and for the errors of S.

    The entries (i, j) of the factor, i <= j, take i + 1 roundings, hence the factor sum_j gamma_{min(i,j) + 1}.
    """
    n = given.S.shape[0]
    i = np.arange(1.0, n + 1.0)
    roundings = 0.5 * i * (i + 1.0) + i * (n - i) + n
    # The factor 1.05 exceeds 1/(1 - gamma_{n+1})^2 and all rounding here.
    growth = 1.05 * UNIT * roundings if n < 1e10 else math.inf
    return np.asarray(growth * (np.maximum(given.diagonal, 0.0) + max(-s, 0.0)) + 1.05 * given.error + n * TINY)


def _cholesky(S: Array, shift: Array) -> Array | None:
    """The factor of S - diag(shift), or None if the algorithm breaks down."""
    B = S.copy()
    B[np.diag_indices_from(B)] -= shift
    factor, info = lapack.dpotrf(B.T, lower=0, clean=0, overwrite_a=1)  # B.T has the order of Fortran, and no copy
    return np.asarray(factor) if info == 0 and math.isfinite(float(factor[-1, -1])) else None


class _SparseProver(_Prover):
    """The proof by Gaussian elimination with diagonal pivots."""

    def __init__(self, given: Symmetric) -> None:
        super().__init__(given)
        tiny = 64.0 * UNIT * np.maximum(given.diagonal, TINY)
        self.factor = _eliminated(given.S, -tiny)
        if self.factor is None:
            raise IndefiniteError
        weights = _elimination_weights(self.factor)
        self.weights = 2.0 * (weights if weights is not None else tiny) + 2.0 * given.error + self.n * TINY

    def work(self) -> float:
        return factor_work(self.given.S)

    def proven(self, s: float) -> float | None:
        diagonal, w = abs(self.given.diagonal), self.weights
        spare = w - self.given.error - 4.0 * UNIT * (diagonal + abs(s) + w)
        factor = _eliminated(self.given.S, s + w)
        needed = None if factor is None else _elimination_weights(factor)
        return None if needed is None else s - max(0.0, 2.0 * float(np.max(needed - spare)))

    def solve(self, r: Array) -> Array:
        assert self.factor is not None
        return np.asarray(self.factor.solve(r))


def _eliminated(S: Any, shift: Array) -> SuperLU | None:
    """The factors of S - diag(shift), or None if a pivot is zero, negative or not on the diagonal."""
    try:
        lu = splu(
            csc_array(S - diags_array(shift)),
            permc_spec="MMD_AT_PLUS_A",
            diag_pivot_thresh=0.0,
            options={"SymmetricMode": True},
        )
    except RuntimeError:  # a column of zeros
        return None
    except MemoryError:
        raise TooLargeError from None
    diagonal_pivots = np.array_equal(lu.perm_r, lu.perm_c)
    return lu if diagonal_pivots and bool((lu.U.diagonal() > 0.0).all()) else None


def _elimination_weights(lu: SuperLU) -> Array | None:
    """Gershgorin's w for what the factors L and U lack to be a factorisation L D L' with D = diag(U).

    With F = U'/D - L, the matrix is B = L D L' + L D F' - E with |E| <= gamma |L||U|, so that it is at least
    -diag(w) for the w of gamma |L||U| + |L| D |F'|. They come in the order of S. None if something overflows.
    """
    L, U = lu.L.tocsc(), lu.U.tocsc()
    D = U.diagonal()
    n = len(D)
    terms = int(np.max(np.bincount(L.indices, minlength=n))) + 2
    F = abs(csc_array(U.T @ diags_array(1.0 / D)) - L) + 4.0 * UNIT * abs(L)
    size_L, size_U, growth = abs(L), abs(U), gamma(terms, UNIT)
    v = 1.0 / np.sqrt(size_L @ (D * (size_L.T @ np.ones(n))) + TINY)
    right = size_L @ (growth * (size_U @ v) + D * (F.T @ v))
    left = growth * (size_U.T @ (size_L.T @ v)) + F @ (D * (size_L.T @ v))
    w = (1.0 + 16.0 * gamma(n + 4, UNIT)) * 0.5 * (right + left) / v + n * TINY
    return np.asarray(w[lu.perm_r]) if bool(np.isfinite(w).all()) else None
