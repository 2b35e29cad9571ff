"""AUC maximisation: a linear score that ranks positives above negatives, learnt without forming their pairs."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import diags_array, issparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_is_fitted, check_X_y, validate_data

from saddlepoint.ground.arrays import Array
from saddlepoint.ground.errors import ProblemError
from saddlepoint.ground.linalg import inner
from saddlepoint.ground.spectrum import largest_eigenvalue
from saddlepoint.methods import Method
from saddlepoint.parts.functions import Quadratic, Smooth
from saddlepoint.problems.saddle import Saddle
from saddlepoint.solving.result import Result
from saddlepoint.solving.solve import solve
from saddlepoint.theory.certificate import Certificate

SMALL = 1000  # number of features up to which the matrix of g is formed
SINGULAR = 1e12  # kappa_x from which a factorisation of that matrix is not accurate enough
MARGIN = 0.2  # relative margin of the bound on L; the default margin of the library would take twice as many passes
ENTRIES = 1 << 18  # entries of a block if block_rows is not given; such a block fits into a processor's cache


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

    Coordinates.  Moving all features by a constant c moves every score by c'w, and a and b with them. With the midpoint
    c = (m+ + m-)/2 and a unit s for a and b, the variables are x = (w, (a - c'w)/s, (b - c'w)/s) and y = alpha, and

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

    One pass over the rows gives the means. Up to 1000 features, a second one forms g's matrix, and gradients do not
    read the data again; with more, each gradient is one pass. One block of rows is held at a time; X is not copied.

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
    """Some rows, minus the centre if they are dense; sparse rows are not centred, because they would become dense."""

    rows: Any
    weights: Array  # 2 q/N for a positive sample, 2 p/N for a negative one
    positive: Array  # True for positive samples


class Pairs:
    """Positives and negatives as ``AUCClassifier`` needs them: moments, constants and products, a block at a time."""

    def __init__(self, X: Any, positive: Array, l2: float, block_rows: int) -> None:
        self.X, self.positive, self.l2, self.block_rows = X, positive, l2, block_rows
        self.share = float(positive.mean())
        self.pq = self.share * (1.0 - self.share)
        means = self._means()
        self.centre, self.gap = 0.5 * (means[0] + means[1]), means[0] - means[1]
        self.shift = (
            self.centre if issparse(X) else 0.0 * self.centre
        )  # what still has to be subtracted from the rows of a block
        self.k = self.pq * inner(self.gap, self.gap) + l2
        self.unit = math.sqrt(self.k / (2.0 * self.pq))
        self.mu = l2 / (1.0 + math.sqrt(1.0 - l2 / self.k))

    def saddle(self) -> Saddle:
        """The saddle problem of g, h and A."""
        slope = np.append(-2.0 * self.pq * self.gap, [0.0, 0.0])
        g = self.g(slope)
        if g.mu < np.finfo(np.float64).eps * g.L:
            raise ProblemError(
                f"l2 = {self.l2:.3g} is lost in rounding, because squares of the features are as large as {g.L:.3g}; "
                "standardise the features (StandardScaler), or raise l2"
            )
        return Saddle(g, Quadratic(2.0 * self.pq), slope[:, None])

    def g(self, slope: Array) -> Smooth:
        """The function of (w, u, v): with its matrix if that is small, otherwise by passes over the rows."""
        n = slope.shape[0]
        P = self.matrix() if n - 2 <= SMALL else None
        times = self.times if P is None else P.dot
        trace = self.trace() if P is None else float(P.trace())
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
        )

    def times(self, x: Array) -> Array:
        """The Hessian of g times x, in one pass over the rows."""
        w, u, v = x[:-2], self.unit * x[-2], self.unit * x[-1]
        along_w, along_u, along_v = self.l2 * w, 0.0, 0.0
        for rows, weights, positive in self.blocks():
            r = weights * (rows @ w - inner(self.shift, w) - np.where(positive, u, v))
            along_w += rows.T @ r - r.sum() * self.shift
            along_u -= self.unit * float(r[positive].sum())
            along_v -= self.unit * float(r[~positive].sum())
        return np.append(along_w, [along_u, along_v])

    def matrix(self) -> Array:
        """The Hessian of g, in one pass over the rows."""
        n = self.X.shape[1]
        P = np.diag(np.append(np.full(n, self.l2), [self.k, self.k]))
        P[:n, n] = P[n, :n] = -self.pq * self.unit * self.gap
        P[:n, n + 1] = P[n + 1, :n] = self.pq * self.unit * self.gap
        for rows, weights, _ in self.blocks():
            root = np.sqrt(weights)
            scaled = diags_array(root) @ rows if issparse(rows) else root[:, None] * rows
            gram = scaled.T @ scaled
            P[:n, :n] += gram.toarray() if issparse(gram) else gram
        P[:n, :n] -= 4.0 * self.pq * np.outer(self.shift, self.shift)
        return P

    def trace(self) -> float:
        """The trace of the Hessian of g, in one pass over the rows: a bound on L that always holds."""
        total: float = self.l2 * self.X.shape[1] + 2.0 * self.k - 4.0 * self.pq * inner(self.shift, self.shift)
        for rows, weights, _ in self.blocks():
            squares = rows.multiply(rows).sum(axis=1) if issparse(rows) else np.einsum("ij,ij->i", rows, rows)
            total += inner(weights, np.ravel(squares))
        return total

    def blocks(self) -> Iterator[Block]:
        """All rows, a block at a time."""
        sides = np.array([2.0 * self.share, 2.0 - 2.0 * self.share]) / self.positive.shape[0]
        for rows, positive in self._labelled():
            yield Block(rows if issparse(rows) else rows - self.centre, sides[positive.astype(int)], positive)

    def _labelled(self) -> Iterator[tuple[Any, Array]]:
        labels = _blocks(self.positive, self.block_rows)
        return zip(map(_as_float64, _blocks(self.X, self.block_rows)), labels, strict=True)

    def _means(self) -> tuple[Array, Array]:
        """The means of the positives and of the negatives."""
        sums = np.zeros((self.X.shape[1], 2))
        for rows, positive in self._labelled():
            sums += rows.T @ np.stack((positive, ~positive), axis=1).astype(np.float64)
        count = int(self.positive.sum())
        return sums[:, 0] / count, sums[:, 1] / (self.positive.shape[0] - count)


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
        return max(1, int(ENTRIES / max(entries, 1.0)))
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
