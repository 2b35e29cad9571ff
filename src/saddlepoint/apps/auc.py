"""AUC maximisation: a linear score that ranks positives above negatives, learnt without forming their pairs."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from functools import partial
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array, diags_array, issparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_is_fitted, check_X_y, validate_data

from saddlepoint.apps.auc_careful import careful_gradient
from saddlepoint.apps.centred import column_sums, sparse_column_sums
from saddlepoint.apps.forming import UP, FormedCoupling, formed
from saddlepoint.ground.arrays import Array
from saddlepoint.ground.compensated import Accumulator, two_sum
from saddlepoint.ground.errors import ProblemError
from saddlepoint.ground.linalg import inner, norm
from saddlepoint.ground.rounding import gamma
from saddlepoint.ground.spectrum import largest_eigenvalue
from saddlepoint.methods import Method
from saddlepoint.parts.coupling import as_coupling
from saddlepoint.parts.functions import Quadratic, Smooth
from saddlepoint.problems.saddle import Saddle
from saddlepoint.solving.result import Result
from saddlepoint.solving.solve import solve
from saddlepoint.theory.certificate import Certificate

SMALL = 1000  # number of features up to which the matrix of g is formed
SINGULAR = 1e12  # kappa_x from which a factorisation of that matrix is not accurate enough
MARGIN = 0.2  # relative margin of the bound on L; the default margin of the library would take twice as many passes
ENTRIES = 1 << 18  # entries of a block if block_rows is not given; such a block fits into a processor's cache
ROWS = 2048  # most rows of such a block: bounds on the rounding of sums grow with them
EPS = float(np.finfo(np.float64).eps)  # twice the largest relative error of one operation
LEAST = 1e-290  # exceeds what underflow can change


class AUCClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A linear classifier that maximises the area under the ROC curve, by the square loss over all pairs.

    Problem.  minimise over w  p q mean (1 - w'(x+ - x-))^2 + l2/2 |w|^2, the mean over all pairs of a positive x+ with
    a negative x-, where p is the share of positives and q = 1 - p. With the means m+, m- and covariances V+, V- of the
    classes and d = m+ - m-, the mean over pairs is w'(V+ + V-)w + (1 - d'w)^2.

    Saddle form (Ying, Wen and Lyu).  Each variance is a minimum, w'V+ w = min_a mean+ (w'x - a)^2, attained at the mean
    score; and the square is a maximum, (d'w)^2 = max_alpha -2 alpha d'w - alpha^2. Up to the constant p q, the problem
    is the minimum over (w, a, b) and the maximum over alpha of

        p q [mean+ (w'x - a)^2 + mean- (w'x - b)^2 - 2 (1 + alpha) d'w - alpha^2] + l2/2 |w|^2,

    a mean over samples: a gradient takes one pass over the rows, and no pair is ever formed.

    Coordinates.  Moving all features by a constant c moves every score by c'w, and a and b with them. With a c near the
    midpoint (m+ + m-)/2 and a unit s of a and b, the variables are x = (w, (a - c'w)/s, (b - c'w)/s), y = alpha, and

        g(w, u, v) = p q [mean+ (w'(x - c) - s u)^2 + mean- (w'(x - c) - s v)^2 - 2 d'w] + l2/2 |w|^2,
        A = -2 p q (d, 0, 0)',    h(alpha) = p q alpha^2.

    Constants.  mu_y = L_y = 2 p q. Twice the quadratic part of g is

        2 p q [w'(V+ + V-)w + (d'w/2 - s u)^2 + (d'w/2 + s v)^2] + l2 |w|^2.

    Without the variances, which are not negative, the form depends on w only by its component t along d and its length,
    and it has the eigenvalue 2 p q s^2 along (u + v)/sqrt(2). What is left is a form in t and e = (u - v)/sqrt(2),
    2 p q (|d| t/sqrt(2) - s e)^2 + l2 t^2. The choice s^2 = |d|^2/2 + l2/(2 p q) makes both entries of its diagonal
    k = p q |d|^2 + l2, and its eigenvalues k -+ sqrt(k (k - l2)). The smaller one is below k and l2, hence

        mu_x = k - sqrt(k (k - l2)) = l2/(1 + sqrt(1 - l2/k)),  between l2/2 and l2.

    The largest eigenvalue of g is at most Lambda + k <= 2 Lambda, where Lambda >= k is that of the block of w, so that
    a and b cost a factor of 4 in the condition number at most. L_x is the smaller of the trace and a bound by the
    Lanczos method that holds with a probability of 1 - 1e-8.

    Certificate.  It is about the numbers in X as they were given: the distance is that to the saddle point of the
    problem above in exact arithmetic, with the c and s that were chosen, which are exact numbers too. Rows are centred
    before anything is multiplied, so that large means of the features cost no accuracy. What rounding changes in d, in
    the Hessian and in mu_x is bounded and is part of the certificate. ``a_``, ``b_`` and the scores are computed
    from w in float64, and are as accurate as w'x is.

    Three passes over the rows give the means and the constants. Up to 1000 features, a fourth one forms g's matrix, and
    gradients do not read the data again; with more, each gradient is one pass. One block of rows is held at a time, and
    X is not copied, except those columns of a sparse X that have entries in more than half of the rows.

    Args:
        l2: the multiple of |w|^2/2 that is added; positive.
        tol: the certified distance |x - x*| + |y - y*| at which the run ends; |w - w*| is at most this, too.
        method: a name that ``sp.solve`` knows, a ``Method``, or ``"auto"``: ``direct`` where the matrix is formed and
            ``krylov`` otherwise, the problem being quadratic.
        max_seconds: wall-clock limit of the solver; there is a ``ConvergenceWarning`` if it was too short.
        block_rows: rows read at a time; by default as many as fit into a processor's cache.

    Attributes:
        coef_, intercept_: w, of shape (1, features), and minus the threshold (a + b)/2 on w'x. A sample is called
            positive if its score is nearer to the mean score of the positives than to that of the negatives, whatever
            their shares are; the ranking does not depend on the threshold. The score is not a probability.
        a_, b_, alpha_: the mean scores w'x of the positives and of the negatives, and the multiplier b - a.
        classes_: the two labels; the second one is the positive.
        result_, certificate_, n_iter_: what the solver returned.

    Reference: Y. Ying, L. Wen and S. Lyu, Stochastic online AUC maximization, NeurIPS 2016.

    Example:
        >>> from saddlepoint.apps import AUCClassifier
        >>> model = AUCClassifier(l2=0.1).fit([[0.0], [1.0], [2.0], [4.0]], ["no", "no", "yes", "yes"])
        >>> model.predict([[1.0], [3.0]]).tolist(), model.result_.solved
        (['no', 'yes'], True)
    """

    def __init__(
        self,
        l2: float = 1e-2,
        *,
        tol: float = 1e-6,
        method: str | Method = "auto",
        max_seconds: float | None = None,
        block_rows: int | None = None,
    ) -> None:
        self.l2 = l2
        self.tol = tol
        self.method = method
        self.max_seconds = max_seconds
        self.block_rows = block_rows

    def problem(self, X: Any, y: Any) -> Saddle:
        """The saddle problem of these data, in the variables x = (w, (a - c'w)/s, (b - c'w)/s) and y = (alpha,)."""
        X, y = check_X_y(X, y, accept_sparse="csr", dtype=[np.float64, np.float32])
        return self._pairs(X, _positives(y)[1]).saddle()

    def fit(self, X: Any, y: Any) -> AUCClassifier:
        """Learn from samples X (an array, a memory map or a SciPy sparse matrix) with two labels y."""
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=[np.float64, np.float32])
        self.classes_, positive = _positives(y)
        pairs = self._pairs(X, positive)
        f = pairs.saddle()
        method = _default_method(f) if self.method == "auto" else self.method
        self.result_: Result = solve(f, method=method, tol=self.tol, max_seconds=self.max_seconds)
        if not self.result_.solved:
            warnings.warn(self.result_.message, ConvergenceWarning, stacklevel=2)
        self.certificate_: Certificate = self.result_.certificate
        self.n_iter_ = self.result_.iterations
        w = self.result_.x[:-2]
        self.coef_ = w[None, :]
        self.a_, self.b_ = (inner(pairs.centre, w) + pairs.unit * float(t) for t in self.result_.x[-2:])
        self.alpha_ = float(self.result_.y[0])
        self.intercept_ = np.array([-0.5 * (self.a_ + self.b_)])
        return self

    def decision_function(self, X: Any) -> Array:
        """w'x - (a + b)/2 of every sample: the larger, the more likely a positive."""
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=[np.float64, np.float32], reset=False)
        scores = [_as_float64(rows) @ self.coef_[0] for rows in _blocks(X, _block_rows(X, self.block_rows))]
        return np.asarray(np.concatenate(scores) + self.intercept_[0])

    def predict(self, X: Any) -> Array:
        """The label of every sample: the second class where ``decision_function`` is positive."""
        positive = self.decision_function(X) > 0.0
        return np.asarray(self.classes_[positive.astype(int)])

    def _pairs(self, X: Any, positive: Array) -> Pairs:
        if not (isinstance(self.l2, Real) and 0.0 < self.l2 < math.inf):
            raise ProblemError(f"l2 of AUCClassifier is {self.l2!r}; expected a positive number, such as 1e-2")
        return Pairs(X, positive, float(self.l2), _block_rows(X, self.block_rows))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.input_tags.sparse = True
        return tags


class Block(NamedTuple):
    """Some rows: a row of D = X - 1 c' is one of ``dense``, in its columns, plus one of ``sparse`` minus the shift."""

    dense: Array
    sparse: Any  # None if X is dense
    weights: Array  # 2 q/N for a positive sample, 2 p/N for a negative one
    positive: Array  # True for positive samples


class Pairs:
    """Positives and negatives as ``AUCClassifier`` needs them: moments, constants and products, a block at a time.

    Attributes:
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
        h = formed(Quadratic(self.two_pq), self._h_error, mu=self.two_pq * (1.0 - EPS))
        return Saddle(g, h, FormedCoupling(as_coupling(slope[:, None]), slope_error[:, None]))

    def _h_error(self, y: Array) -> Array:
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
            careful=partial(careful_gradient, self),
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
            sparse = None if self.S is None else _as_float64(self.S[rows])
            yield Block(_as_float64(self.F[rows]) - centre, sparse, self.weights[positive.astype(int)], positive)

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
            block, low = two_sum(_as_float64(self.F[rows]), -self.centre[self.filled])
            for side, mask in enumerate((~self.positive[rows], self.positive[rows])):
                dense[side].add_sum(column_sums(block[mask]))
                dense[side].add_sum(column_sums(low[mask]))
                if self.S is not None:
                    sparse[side].add_sum(sparse_column_sums(_as_float64(self.S[rows][mask])))
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
    columns = X.tocsc()
    full = 2 * np.diff(columns.indptr) > X.shape[0]
    filled = np.flatnonzero(full)
    if not filled.size:
        return np.zeros((X.shape[0], 0)), filled, X
    others = csr_array(X @ diags_array((~full).astype(X.dtype)))
    others.eliminate_zeros()
    return columns[:, filled].toarray(), filled, others


def _positives(y: Array) -> tuple[Array, Array]:
    """The two labels, and True for the samples with the second one."""
    check_classification_targets(y)
    kind = type_of_target(y, input_name="y")
    if kind != "binary":
        raise ProblemError(
            f"Only binary classification is supported. The type of the target is {kind}; expected two labels in y "
            "(for more classes use sklearn.multiclass.OneVsRestClassifier)"
        )
    classes, where = np.unique(y, return_inverse=True)
    if classes.shape[0] < 2:
        raise ProblemError(f"y holds one class only, {classes[0]!r}; expected samples of two classes")
    return classes, where == 1


def _block_rows(X: Any, wanted: int | None) -> int:
    if wanted is None:
        entries = X.nnz / X.shape[0] if issparse(X) else X.shape[1]
        return max(1, min(ROWS, int(ENTRIES / max(entries, 1.0))))
    if isinstance(wanted, bool) or not isinstance(wanted, Integral) or wanted < 1:
        raise ProblemError(f"block_rows of AUCClassifier is {wanted!r}; expected a whole number >= 1, or None")
    return int(wanted)


def _blocks(X: Any, size: int) -> Iterator[Any]:
    """The rows of X, some at a time."""
    return (X[start : start + size] for start in range(0, X.shape[0], size))


def _default_method(f: Saddle) -> str:
    """The method for this quadratic problem."""
    return "direct" if f.g.hessian and f.kappa_x < SINGULAR else "krylov"


def _as_float64(rows: Any) -> Any:
    """The rows in float64, without a copy if they already are."""
    return rows.astype(np.float64, copy=False)
