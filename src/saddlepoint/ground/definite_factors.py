r"""Proofs by factorisations that a symmetric matrix S is positive definite, and by how much.

M >= 0 stands for "M is positive semidefinite". Let R'R = B + E with the computed factor R of B = S - s I - diag(w).
Standard error analysis says |E| <= gamma |R'||R|, in any order of summation, and if w is so large that diag(w) >= E,
then S - s I >= 0. Gershgorin's theorem (``gershgorin.py``) says which w are large enough.

Dense: |E_ij| <= gamma/(1 - gamma) sqrt(B_ii B_jj), of which Gershgorin's w, with v_i = 1/sqrt(B_ii), is at most
    n gamma/(1 - gamma) B_ii. So it is enough that Cholesky's algorithm runs to completion.
Sparse: L and U of Gaussian elimination with diagonal pivots are read, and Gershgorin's w is computed from them.

References: S. M. Rump, Verification of positive definiteness, BIT 2006; N. J. Higham, Accuracy and Stability of
Numerical Algorithms, SIAM 2002, theorems 9.3 and 10.3.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from scipy.linalg import lapack
from scipy.sparse import csc_array, diags_array
from scipy.sparse.linalg import ArpackError, ArpackNoConvergence, LinearOperator, SuperLU, eigsh, splu

from saddlepoint.ground.arrays import Array
from saddlepoint.ground.fill_in import factor_work
from saddlepoint.ground.gershgorin import TINY, UNIT, Symmetric, gershgorin
from saddlepoint.ground.rounding import gamma

MOST_WORK = 3e12  # multiplications that a factorisation may take, by a rough estimate
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


class Prover(ABC):
    """An estimate of the smallest eigenvalue, and its proof by a second factorisation.

    Attributes:
        weights: Gershgorin's w for the rounding errors of a factorisation: what a proof costs. A subclass sets it.
    """

    weights: Array

    def __init__(self, given: Symmetric) -> None:
        self.given = given
        self.n: int = given.S.shape[0]
        if self.work() > MOST_WORK:
            raise TooLargeError

    @abstractmethod
    def work(self) -> float:
        """The multiplications that one factorisation takes, roughly."""

    @abstractmethod
    def proven(self, s: float) -> float | None:
        """A number close to s that is proven to be a lower bound of the smallest eigenvalue; None if there is none."""

    @abstractmethod
    def solve(self, r: Array) -> Array:
        """The solution v of (S + diag(w)) v = r, where w is tiny."""

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


class DenseProver(Prover):
    """The proof by Cholesky factorisations."""

    def __init__(self, given: Symmetric) -> None:
        super().__init__(given)
        self.weights = cholesky_weights(given, 0.0)
        self.factor: Array | None = None

    def work(self) -> float:
        """n^3/3."""
        return float(self.n) ** 3 / 3.0

    def proven(self, s: float) -> float | None:
        """The number s itself, if Cholesky's algorithm runs to completion."""
        self.factor = None  # two factors at once would need twice the memory
        return s if cholesky_proves(self.given, s) else None

    def solve(self, r: Array) -> Array:
        """The solution by the factor of S + diag(w); IndefiniteError if there is none."""
        if self.factor is None:
            self.factor = _cholesky(self.given.S, -self.weights)
        if self.factor is None:
            raise IndefiniteError
        return np.asarray(lapack.dpotrs(self.factor, r)[0])


def cholesky_proves(given: Symmetric, s: float) -> bool:
    """Whether Cholesky's algorithm runs to completion, and thus proves that S - s I >= 0, for a dense S."""
    w = cholesky_weights(given, s)
    w = w + 4.0 * UNIT * (abs(given.diagonal) + abs(s) + w)  # the subtraction on the diagonal rounds as well
    return _cholesky(given.S, s + w) is not None


def cholesky_weights(given: Symmetric, s: float) -> Array:
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


class SparseProver(Prover):
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
        """Foreseen from where the entries of S are."""
        return factor_work(self.given.S)

    def proven(self, s: float) -> float | None:
        """The number s, less what the rounding errors of this elimination take beyond the weights."""
        diagonal, w = abs(self.given.diagonal), self.weights
        spare = w - self.given.error - 4.0 * UNIT * (diagonal + abs(s) + w)
        factor = _eliminated(self.given.S, s + w)
        needed = None if factor is None else _elimination_weights(factor)
        return None if needed is None else s - max(0.0, 2.0 * float(np.max(needed - spare)))

    def solve(self, r: Array) -> Array:
        """The solution by the factors of S + diag(w)."""
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
