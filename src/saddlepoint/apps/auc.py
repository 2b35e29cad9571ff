"""AUC maximisation: a linear score that ranks positives above negatives, learnt without forming their pairs."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted, check_X_y, validate_data

from saddlepoint.apps.auc_pairs import Pairs, as_float64
from saddlepoint.apps.class_labels import two_classes_of
from saddlepoint.ground.arrays import Array
from saddlepoint.ground.linalg import inner
from saddlepoint.ground.validation import as_count, positive
from saddlepoint.methods import Method
from saddlepoint.methods.registry import method_or_auto
from saddlepoint.problems.saddle import Saddle
from saddlepoint.solving.interruption import uninterrupted
from saddlepoint.solving.result import Result
from saddlepoint.solving.solve import solve
from saddlepoint.theory.certificate import Certificate

ENTRIES = 1 << 18  # entries of a block if block_rows is not given; such a block fits into a processor's cache
ROWS = 2048  # most rows of a block if block_rows is not given: bounds on the rounding of sums grow with them
SINGULAR = 1e12  # L_x/mu_x from which a factorisation of the matrix of g is not accurate enough


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

    Three passes over the rows give the means and mu_x. Up to 1000 features, a fourth one forms g's matrix, and
    gradients do not read the data again; with more, each gradient and each step of the Lanczos method is one pass. One
    block of rows is held at a time. X is copied only if it is sparse and has columns with entries in more than half of
    the rows, which become dense.

    Args:
        l2: the multiple of |w|^2/2 that is added; positive.
        tol: the certified distance |x - x*| + |y - y*| at which the run ends; |w - w*| is at most this, too.
        method: a name that ``sp.solve`` knows, a ``Method``, or ``"auto"``, which takes ``direct`` where the matrix is
            formed and L_x/mu_x is below 1e12, and ``krylov`` otherwise, the problem being quadratic.
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
        return self._pairs(X, y == two_classes_of(y)[1]).saddle()

    def fit(self, X: Any, y: Any) -> AUCClassifier:
        """Learn from samples X (an array, a memory map or a SciPy sparse matrix) with two labels y."""
        given = method_or_auto(self.method)
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=[np.float64, np.float32])
        self.classes_ = two_classes_of(y)
        pairs = self._pairs(X, y == self.classes_[1])
        f = pairs.saddle()
        method = _default_method(f) if given is None else given
        self.result_: Result = uninterrupted(solve(f, method=method, tol=self.tol, max_seconds=self.max_seconds))
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
        scores = [as_float64(rows) @ self.coef_[0] for rows in _blocks(X, _block_rows(X, self.block_rows))]
        return np.asarray(np.concatenate(scores) + self.intercept_[0])

    def predict(self, X: Any) -> Array:
        """The label of every sample: the second class where ``decision_function`` is positive."""
        positives = self.decision_function(X) > 0.0
        return np.asarray(self.classes_[positives.astype(int)])

    def _pairs(self, X: Any, positives: Array) -> Pairs:
        return Pairs(X, positives, positive(self.l2, "l2 of AUCClassifier"), _block_rows(X, self.block_rows))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.input_tags.sparse = True
        return tags


def _block_rows(X: Any, wanted: int | None) -> int:
    """The number of rows to read at a time: as asked for, or as many as fit into a processor's cache."""
    if wanted is None:
        entries = X.nnz / X.shape[0] if issparse(X) else X.shape[1]
        return max(1, min(ROWS, int(ENTRIES / max(entries, 1.0))))
    return as_count(wanted, "block_rows of AUCClassifier")


def _blocks(X: Any, size: int) -> Iterator[Any]:
    """The rows of X, some at a time."""
    return (X[start : start + size] for start in range(0, X.shape[0], size))


def _default_method(f: Saddle) -> str:
    """A factorisation of the matrix of g where that is formed and accurate enough, otherwise a Krylov method."""
    return "direct" if f.g.hessian and f.kappa_x < SINGULAR else "krylov"
