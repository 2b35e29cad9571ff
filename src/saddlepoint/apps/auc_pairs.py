"""Positive and negative samples for AUC maximisation: moments, constants and products, a block of rows at a time."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array, diags_array, issparse

from saddlepoint.apps.auc_compensated import LEAST, compensated_gradient
from saddlepoint.apps.centred import column_sums, sparse_column_sums
from saddlepoint.apps.data_errors import UP, CouplingWithError, with_error
from saddlepoint.ground.arrays import Array
from saddlepoint.ground.compensated import EPS, Accumulator, two_sum
from saddlepoint.ground.errors import ProblemError
from saddlepoint.ground.linalg import inner, norm
from saddlepoint.ground.rounding import gamma
from saddlepoint.ground.spectrum import largest_eigenvalue
from saddlepoint.parts.coupling import as_coupling
from saddlepoint.parts.functions import Quadratic, Smooth
from saddlepoint.problems.saddle import Saddle

SMALL = 1000  # number of features up to which the matrix of g is formed
MARGIN = 0.2  # relative margin of the bound on L; the default margin of the library would take twice as many passes


class Block(NamedTuple):
    """Some rows: a row of D = X - 1 c' is one of ``dense``, in its columns, plus one of ``sparse`` minus the shift."""

    dense: Array
    sparse: Any  # None if X is dense
    weights: Array  # 2 q/N for a positive sample, 2 p/N for a negative one
    positive: Array  # True for positive samples


class Pairs:
    """Positives and negatives as ``AUCClassifier`` needs them: moments, constants and products, a block at a time.

    Attributes:
        counts: the numbers of negatives and of positives.
        F, filled, S: the columns of X that are centred row by row, their positions, and the other columns in a sparse
            array of the shape of X; S is None if X is dense.
        shift: c in the columns of S, whose rows are not centred, and 0 in the others.
        below, above: the means of the negatives and of the positives, minus c.
        k: p q |d|^2 + l2.
        two_pq: 2 p q, with an error of one rounding.
        centre: c. Any c gives an equivalent problem, so these numbers are exact.
        gap: d, and ``gap_error``, bounds on the errors of its entries.
        sizes: bounds on the roots of the sums over samples of weight D_ij^2, one for each feature j.
        relative: bounds on the errors of weighted sums over the samples, relative to those of the absolute values.
        unit: s. Any s gives an equivalent problem, so this number is exact.
        mu: a lower bound on the eigenvalues of the Hessian of g.
    """

    def __init__(self, X: Any, positive: Array, l2: float, block_rows: int) -> None:
        self.X, self.positive, self.l2, self.block_rows = X, positive, l2, block_rows
        N, ones = positive.shape[0], int(positive.sum())
        self.counts = N - ones, ones
        self.two_pq = 2 * ones * (N - ones) / N**2
        self.weights = np.array([2 * ones / N**2, 2 * (N - ones) / N**2])
        self.F, self.filled, self.S = _dense_and_sparse(X)
        # A sum adds up the rows of a block, then the blocks; a few more roundings are in its terms. Sums of sparse rows
        # minus the shift have up to four parts.
        steps = min(block_rows, N) + math.ceil(N / block_rows) + 16
        self.relative = (1.0 if self.S is None else 4.0) * gamma(steps, EPS)
        self.centre = self.shift = np.zeros(X.shape[1])
        first, second = self._class_means()
        self.centre = 0.5 * first + 0.5 * second
        if self.S is not None:  # dense columns are centred block by block, and sparse ones never
            self.shift = self.centre.copy()
            self.shift[self.filled] = 0.0
        self.sizes = self._sizes()
        below, above, inexact = self._accurate_means()
        self.below, self.above = below, above
        self.gap = above - below
        self.gap_error = UP * (inexact + EPS * np.abs(self.gap))
        self.k = 0.5 * self.two_pq * inner(self.gap, self.gap) + l2
        self.unit = math.sqrt(self.k / self.two_pq)
        off_centre = UP * norm(0.5 * np.abs(above + below) + inexact + EPS * np.abs(self.gap))
        longest = norm(np.abs(self.gap) + self.gap_error) * (1.0 + gamma(X.shape[1] + 8, EPS))
        self.mu = self._strong_convexity(longest, off_centre)

    def _strong_convexity(self, gap: float, off_centre: float) -> float:
        """mu_x for |d| <= gap, where c is within ``off_centre`` of the midpoint of the means.

        The squares of (m - c)'w - s u are at least 1 - theta times those for the midpoint, minus (1/theta - 1) times
        (off_centre |w|)^2, for any theta between 0 and 1. What the latter costs is taken from l2. The form that is left
        has the eigenvalue b = 2 p q s^2, and those of a matrix of two rows with the determinant b l2.
        """
        lost = 2.0 * self.two_pq * off_centre**2
        theta = min(0.5, math.sqrt(lost / self.l2))
        l2 = self.l2 - (lost / theta if theta > 0.0 else 0.0)
        if l2 <= 0.0:
            return 0.0
        b, along = self.two_pq * self.unit**2, 0.5 * self.two_pq * gap * gap
        root = math.sqrt((along + l2 - b) ** 2 + 4.0 * along * b)
        least: float = min(2.0 * b * l2 / (along + l2 + b + root), b, l2)
        return (1.0 - theta) * (1.0 - 64.0 * EPS) * least

    def saddle(self) -> Saddle:
        """The saddle problem of g, h and A."""
        slope = np.append(-self.two_pq * self.gap, [0.0, 0.0])
        slope_error = np.append(UP * self.two_pq * self.gap_error, [0.0, 0.0]) + 2.0 * EPS * np.abs(slope)
        g = self.g(slope, slope_error)
        if g.mu < EPS * g.L:
            raise ProblemError(
                f"l2 = {self.l2:.3g} is lost in rounding, because squares of the features are as large as {g.L:.3g}; "
                "standardise the features (StandardScaler), or raise l2"
            )
        h = with_error(Quadratic(self.two_pq), self._h_error, mu=self.two_pq * (1.0 - EPS))
        return Saddle(g, h, CouplingWithError(as_coupling(slope[:, None]), slope_error[:, None]))

    def _h_error(self, y: Array) -> Array:
        """What the rounding of 2 p q changes in the gradient of h."""
        return np.asarray(EPS * self.two_pq * np.abs(y))

    def g(self, slope: Array, slope_error: Array) -> Smooth:
        """The function of (w, u, v): with its matrix if that is small, otherwise by passes over the rows."""
        n = slope.shape[0]
        P = self.matrix() if n - 2 <= SMALL else None
        times = self.times if P is None else P.dot
        sizes = np.append(self.sizes, 2 * [UP * self.unit * math.sqrt(self.two_pq)])
        l2 = np.append(np.full(n - 2, self.l2), [0.0, 0.0])
        trace = UP * (inner(sizes, sizes) + float(l2.sum()))
        relative = UP * (2.0 * self.relative + 4.0 * gamma(n + 24, EPS))

        def rounding(x: Array) -> Array:
            """By Cauchy and Schwarz, an entry of the Hessian of g is at most the product of two sizes, l2 apart."""
            size = np.abs(x)
            return relative * (inner(sizes, size) * sizes) + 4.0 * EPS * l2 * size + slope_error + LEAST

        return Smooth(
            lambda x: times(x) + slope,
            mu=self.mu,
            L=max(self.mu, min(trace, largest_eigenvalue(times, n, margin=MARGIN).upper)),
            value=lambda x: 0.5 * inner(x, times(x)) + inner(slope, x),
            dim=n,
            dtype=np.float64,
            quadratic=True,
            hessian=None if P is None else lambda x: P,
            trusted=True,
            accuracy=0.0,
            rounding=rounding,
            compensated=partial(compensated_gradient, self),
        )

    def times(self, x: Array) -> Array:
        """The Hessian of g times x, in one pass over the rows."""
        w, u, v = x[:-2], self.unit * x[-2], self.unit * x[-1]
        along_w, along_u, along_v = self.l2 * w, 0.0, 0.0
        for dense, sparse, weights, positive in self.blocks():
            scores = dense @ w[self.filled]
            if sparse is not None:
                scores = scores + (sparse @ w - inner(self.shift, w))
            r = weights * (scores - np.where(positive, u, v))
            along_w[self.filled] += dense.T @ r
            if sparse is not None:
                along_w += sparse.T @ r - r.sum() * self.shift
            along_u -= self.unit * float(r[positive].sum())
            along_v -= self.unit * float(r[~positive].sum())
        return np.append(along_w, [along_u, along_v])

    def matrix(self) -> Array:
        """The Hessian of g, in one pass over the rows."""
        n = self.X.shape[1]
        below, above = self.below, self.above
        P = np.diag(np.append(np.full(n, self.l2), 2 * [self.two_pq * self.unit**2]))
        P[:n, n] = P[n, :n] = -self.two_pq * self.unit * above
        P[:n, n + 1] = P[n + 1, :n] = -self.two_pq * self.unit * below
        filled = np.arange(n)[self.filled]
        of_dense, of_sparse, across = (
            np.zeros(shape) for shape in ((filled.size, filled.size), (n, n), (filled.size, n))
        )
        dense_sums, sparse_sums = np.zeros(filled.size), np.zeros(n)
        for dense, sparse, weights, _ in self.blocks():
            root = np.sqrt(weights)
            scaled = root[:, None] * dense
            of_dense += scaled.T @ scaled
            if sparse is not None:
                rows = diags_array(root) @ sparse
                of_sparse += (rows.T @ rows).toarray()
                across += (rows.T @ scaled).T
                sparse_sums += sparse.T @ weights
                dense_sums += dense.T @ weights
        if self.S is not None:
            across -= np.outer(dense_sums, self.shift)
            of_shift = np.outer(sparse_sums, self.shift)
            of_sparse += 2.0 * self.two_pq * np.outer(self.shift, self.shift) - (of_shift + of_shift.T)
            P[:n, :n] += of_sparse
            P[filled, :n] += across
            P[:n, filled] += across.T
        P[np.ix_(filled, filled)] += of_dense
        return P

    def blocks(self) -> Iterator[Block]:
        """All rows, a block at a time."""
        centre = self.centre[self.filled]
        for start in range(0, self.X.shape[0], self.block_rows):
            rows = slice(start, start + self.block_rows)
            positive = self.positive[rows]
            sparse = None if self.S is None else as_float64(self.S[rows])
            yield Block(as_float64(self.F[rows]) - centre, sparse, self.weights[positive.astype(int)], positive)

    def _class_means(self) -> tuple[Array, Array]:
        """The means of the rows of X - 1 c', of the negatives and of the positives, by ordinary sums."""
        sums = np.zeros((self.X.shape[1], 2))
        for dense, sparse, _, positive in self.blocks():
            sides = np.stack((~positive, positive), axis=1).astype(np.float64)
            sums[self.filled] += dense.T @ sides
            if sparse is not None:
                sums += sparse.T @ sides
        return sums[:, 0] / self.counts[0] - self.shift, sums[:, 1] / self.counts[1] - self.shift

    def _accurate_means(self) -> tuple[Array, Array, Array]:
        """The same in about twice the digits before they are rounded, and bounds on the sum of the two errors."""
        n = self.X.shape[1]
        dense = [Accumulator(np.zeros(self.F.shape[1])) for _ in range(2)]
        sparse = [Accumulator(np.zeros(n)) for _ in range(2)]
        for start in range(0, self.X.shape[0], self.block_rows):
            rows = slice(start, start + self.block_rows)
            block, low = two_sum(as_float64(self.F[rows]), -self.centre[self.filled])
            for side, mask in enumerate((~self.positive[rows], self.positive[rows])):
                dense[side].add_sum(column_sums(block[mask]))
                dense[side].add_sum(column_sums(low[mask]))
                if self.S is not None:
                    sparse[side].add_sum(sparse_column_sums(as_float64(self.S[rows][mask])))
        means, errors = [], np.zeros(n)
        for side, count in enumerate(self.counts):
            of_dense, of_sparse = dense[side].total(), sparse[side].total()
            stored = (of_sparse.hi + of_sparse.lo) / count
            found = stored - self.shift
            found[self.filled] += (of_dense.hi + of_dense.lo) / count
            means.append(found)
            errors += 2.0 * EPS * (np.abs(stored) + np.abs(found)) + of_sparse.error / count
            errors[self.filled] += of_dense.error / count
        return means[0], means[1], errors

    def _sizes(self) -> Array:
        """``sizes``, from weighted sums of squares."""
        squares = np.zeros(self.X.shape[1])
        for dense, sparse, weights, _ in self.blocks():
            squares[self.filled] += np.einsum("i,ij,ij->j", weights, dense, dense)
            if sparse is not None:
                squares += sparse.multiply(sparse).T @ weights
        sizes = np.sqrt(squares * (1.0 + self.relative)) + math.sqrt(2.0 * self.two_pq) * np.abs(self.shift)
        return np.asarray(UP * sizes + LEAST)


def _dense_and_sparse(X: Any) -> tuple[Array, Any, Any]:
    """Columns that are to be centred, their places, and the others in a sparse array of the shape of X.

    Those of a sparse X are the columns with entries in more than half of the rows: in each other column the mean is not
    large beside the entries after centring, so that nothing is lost if it is subtracted from a product.
    """
    if not issparse(X):
        return X, slice(None), None
    full = 2 * np.bincount(X.indices, minlength=X.shape[1]) > X.shape[0]
    filled = np.flatnonzero(full)
    if not filled.size:
        return np.zeros((X.shape[0], 0)), filled, X
    others = csr_array(X @ diags_array((~full).astype(X.dtype)))
    others.eliminate_zeros()
    return X[:, filled].toarray(), filled, others


def as_float64(rows: Any) -> Any:
    """The rows in float64, without a copy if they already are."""
    return rows.astype(np.float64, copy=False)
