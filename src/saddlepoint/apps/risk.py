r"""Regularised empirical risk minimisation: sparse weights, weights that are not negative, structures on the features.

Problem:    min_w (1/N) sum_i loss(d_i'w, t_i) + l2/2 |w|^2 + l1 |w|_1 + phi(K w), where w >= 0 may be asked for, and
            phi(K .) is not separable and has no cheap prox: neighbours in a graph, groups that overlap, differences
            (see ``structure``).
Saddle:     phi(K w) = max_y <K w, y> - phi*(y), hence min_w max_y g(w) + <w, K'y> - h(y) with the risk and l2/2 |w|^2
            as g, A = K' and h = phi*; l1 |w|_1 and w >= 0 are simple terms of g. Without a structure, A is zero.
Constants:  loss'' lies between c and C, and lambda are the eigenvalues of D'D/N (lambda_min taken as 0 if D is sparse):
            squared c = C = 1,   huber c = 0, C = 1,   logistic c = 0, C = 1/4,   hinge c = 0, C = 1/width;
            L_x = C lambda_max + l2 and mu_x = c lambda_min + l2, or l2/2 in place of l2 in mu_x where phi is made of
            norms; mu_y and L_y are those of phi*, and |A| = |K|.
Reference:  Y. Zhang and L. Xiao, Stochastic primal-dual coordinate method for regularized empirical risk minimization,
            JMLR 2017, where the loss is what is written as a maximum; here it is the penalty.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array, hstack, issparse
from scipy.special import log_expit, softmax
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, check_X_y, validate_data

from saddlepoint.apps.centred import Centred, centred
from saddlepoint.apps.forming import EPS, UP, formed
from saddlepoint.apps.structure import Structure, not_negative, positive
from saddlepoint.apps.working_set import few_features
from saddlepoint.ground.arrays import Array
from saddlepoint.ground.errors import ProblemError
from saddlepoint.ground.linalg import inner, norm
from saddlepoint.ground.rounding import gamma
from saddlepoint.methods import Method
from saddlepoint.parts.coupling import Coupling, DenseCoupling, SparseCoupling, as_coupling
from saddlepoint.parts.functions import Huber, LeastSquares, Logistic, Quadratic, Smooth, SmoothedHinge
from saddlepoint.parts.simple import L1Box
from saddlepoint.problems.saddle import Saddle
from saddlepoint.solving.result import Result
from saddlepoint.solving.solve import solve

CHECKS: dict[str, Any] = {"accept_sparse": "csr", "dtype": np.float64}  # options of scikit-learn's input checks


class _Linear(BaseEstimator):  # type: ignore[misc]
    """Common parts of both estimators: the saddle problem of a loss, its solution, and scores."""

    l2: float
    l1: float
    positive: bool
    structure: Structure | None
    fit_intercept: bool
    intercept_scaling: float
    tol: float
    method: str | Method
    max_seconds: float | None

    def _saddle(self, risk: Smooth, n_features: int) -> Saddle:
        """The problem of a risk in the weights of the features and, with an intercept, of the constant."""
        l2 = positive(self.l2, "l2")
        size = risk.dim
        assert size is not None
        if self.structure is None:
            return Saddle(self._with_term(risk + Quadratic(l2), n_features), Quadratic(1.0), np.zeros((size, 1)))
        if not isinstance(self.structure, Structure):
            raise ProblemError(f"structure is {self.structure!r}; expected None, Graph, Groups, Squares or Norms")
        K = self.structure.matrix(n_features)
        K.resize((K.shape[0], size))  # the structure does not include the constant
        ridge, h = self.structure.split(K, l2)
        return Saddle(self._with_term(risk + ridge, n_features), h, self.structure.coupling(K))

    def _with_term(self, g: Smooth, n_features: int) -> Smooth:
        assert g.dim is not None
        l1 = not_negative(self.l1, "l1")
        return g + self._l1_box(np.arange(g.dim), n_features) if l1 > 0.0 or self.positive else g

    def _l1_box(self, weights: Array, n_features: int) -> L1Box:
        """The simple term of the weights with the given numbers; the constant has none."""
        feature = weights < n_features
        return L1Box(np.where(feature, self.l1, 0.0), np.where(feature & bool(self.positive), 0.0, -math.inf))

    def _solve(
        self, f: Saddle, D: Coupling, risk: Callable[[Any], Smooth], n_features: int, scale: float, name: str
    ) -> Result:
        """The solution with decision values that are, in root mean square, within tol times ``scale``."""
        began = time.monotonic()
        unit = scale * math.sqrt(D.shape[0]) / D.norm if D.norm > 0.0 else scale
        tol, left, start = positive(self.tol, "tol") * unit, self.max_seconds, None
        has_matrix = isinstance(D, DenseCoupling | SparseCoupling)
        if self.structure is None and self.l1 > 0.0 and has_matrix:
            term = partial(self._l1_box, n_features=n_features)
            start = few_features(f.g, D.matrix(), risk, term, float(self.l2), tol, self.max_seconds)
            left = None if left is None else max(left - (time.monotonic() - began), 1e-3)
        result = solve(f, start, method=self.method, tol=tol, max_seconds=left)
        if not result.solved:
            warnings.warn(f"{name} is not solved: {result.message}", ConvergenceWarning, stacklevel=3)
        return result

    def _with_constant(self, X: Any) -> Any:
        """X, and a column of ``intercept_scaling`` if there is to be an intercept."""
        if not self.fit_intercept:
            return X
        column = np.full((X.shape[0], 1), positive(self.intercept_scaling, "intercept_scaling"))
        return hstack((X, csr_array(column)), format="csr") if issparse(X) else np.hstack((X, column))

    def _scores(self, X: Any) -> Array:
        check_is_fitted(self)
        X = validate_data(self, X, **CHECKS, reset=False)
        return np.asarray(X @ self.coef_.T + self.intercept_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def _is_logistic(self: RiskClassifier) -> bool:
    return self.loss == "logistic"


class RiskClassifier(ClassifierMixin, _Linear):  # type: ignore[misc]
    """A linear classifier: logistic or smoothed hinge loss, l2, l1, nonnegativity, and a structure on the features.

    (1/N) sum_i loss(s_i (x_i'w + b)) + l2/2 (|w|^2 + (b/intercept_scaling)^2) + l1 |w|_1 + phi(K w) is minimised, with
    s_i = +1 or -1. The docstring of this module has the saddle form and its constants. The intercept b is the weight of
    a feature of constant value and takes part in l2, as in liblinear, because a certificate needs strong convexity in
    all variables; a larger ``intercept_scaling`` makes this penalty smaller and the problem harder. The structure does
    not include it. With more than two classes there is one problem for each class against the rest. The certificate is
    about the numbers as they were given, which enter the problem unchanged.

    Args:
        loss: "logistic", log(1 + exp(-s)); or "hinge", max(0, 1 - s) rounded over ``width``.
        l2: the multiple of |w|^2/2, positive. Without a structure this is scikit-learn's C = 1/(N l2).
        l1: the multiple of |w|_1; with it, most weights are exactly zero. scikit-learn's ``LogisticRegression`` has
            l1 = l1_ratio/(N C) and l2 = (1 - l1_ratio)/(N C). The intercept is not part of |w|_1.
        positive: whether the weights must not be negative; the intercept may be.
        structure: None, Graph, Groups, Squares or Norms.
        fit_intercept: whether there is an intercept.
        intercept_scaling: the value of the constant feature.
        width: the width of the rounding of the hinge, which is a parabola for 1 - width <= s <= 1.
        tol: how accurate the decision values of the training data are to be, in root mean square. The run ends when the
            certified |w - w*| + |y - y*| is at most tol sqrt(N)/|D|, D being the data with the constant feature.
        method: a name that ``sp.solve`` knows, a ``Method``, or "auto".
        max_seconds: wall-clock limit of each problem; there is a ConvergenceWarning if it was too short.

    Attributes:
        coef_, intercept_: one row and one number for each problem: one for two classes, else one for each class.
        classes_: the labels; of two, the second one counts as positive.
        result_, certificate_: what the solver returned; lists if there are more than two classes.
        n_iter_: steps of the method, summed over all problems.

    Example:
        >>> from saddlepoint.apps.risk import RiskClassifier
        >>> from saddlepoint.apps.structure import Graph
        >>> model = RiskClassifier(structure=Graph([(0, 1)])).fit([[0, 1], [1, 1], [3, 2], [4, 4]], [0, 0, 1, 1])
        >>> model.predict([[0, 0], [5, 5]]).tolist(), model.result_.solved
        ([0, 1], True)
    """

    def __init__(
        self,
        loss: str = "logistic",
        l2: float = 1e-2,
        *,
        l1: float = 0.0,
        positive: bool = False,
        structure: Structure | None = None,
        fit_intercept: bool = True,
        intercept_scaling: float = 1.0,
        width: float = 1.0,
        tol: float = 1e-6,
        method: str | Method = "auto",
        max_seconds: float | None = None,
    ) -> None:
        self.loss = loss
        self.l2 = l2
        self.l1 = l1
        self.positive = positive
        self.structure = structure
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.width = width
        self.tol = tol
        self.method = method
        self.max_seconds = max_seconds

    def problem(self, X: Any, y: Any, label: Any = None) -> Saddle:
        """The saddle problem of the class ``label``, the last one if left out, against the rest."""
        X, y = check_X_y(X, y, **CHECKS)
        classes = _classes(y).tolist()
        if label is None:
            label = classes[-1]
        elif label not in classes:
            raise ProblemError(f"label is {label!r}; expected one of {', '.join(map(repr, classes))}")
        return self._saddle(self._risk(as_coupling(self._with_constant(X)), y == label), X.shape[1])

    def fit(self, X: Any, y: Any) -> RiskClassifier:
        """Learn from samples X, an array or a SciPy sparse matrix, with labels y."""
        X, y = validate_data(self, X, y, **CHECKS)
        self.classes_ = _classes(y)
        D = as_coupling(self._with_constant(X))
        results = []
        for label in self.classes_[1:] if len(self.classes_) == 2 else self.classes_:
            risk = partial(self._risk, positives=y == label)
            f = self._saddle(risk(D), X.shape[1])
            results.append(self._solve(f, D, risk, X.shape[1], 1.0, f"the problem of class {label}"))
        weights = np.stack([result.x for result in results])
        self.coef_ = weights[:, : X.shape[1]]
        self.intercept_ = self.intercept_scaling * weights[:, -1] if self.fit_intercept else np.zeros(len(results))
        self.result_: Any = results if len(results) > 1 else results[0]
        self.certificate_: Any = [r.certificate for r in results] if len(results) > 1 else results[0].certificate
        self.n_iter_ = sum(result.iterations for result in results)
        return self

    def decision_function(self, X: Any) -> Array:
        """x'w + b of every sample; a column for each class if there are more than two."""
        scores = self._scores(X)
        return scores[:, 0] if len(self.classes_) == 2 else scores

    def predict(self, X: Any) -> Array:
        """The label of every sample: the second of two if the score is positive; of more, that of the largest score."""
        scores = self.decision_function(X)
        return np.asarray(self.classes_[(scores > 0.0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)])

    @available_if(_is_logistic)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Array:
        """The logistic probability of every class; with more than two, those of the problems, divided by their sum."""
        scores = self.decision_function(X)
        each = np.stack((-scores, scores), axis=1) if scores.ndim == 1 else scores
        return np.asarray(softmax(log_expit(each), axis=1))

    def _risk(self, D: Any, positives: Array) -> Smooth:
        signs = np.where(positives, 1.0, -1.0)
        if self.loss == "logistic":
            return Logistic(D, signs)
        if self.loss == "hinge":
            return SmoothedHinge(D, signs, width=self.width)
        raise ProblemError(f"loss of RiskClassifier is {self.loss!r}; expected 'logistic' or 'hinge'")


class RiskRegressor(RegressorMixin, _Linear):  # type: ignore[misc]
    """Linear regression: squared or Huber loss, l2, l1, nonnegativity, and a structure on the features.

    (1/N) sum_i loss(x_i'w + b - t_i) + l2/2 |w|^2 + l1 |w|_1 + phi(K w) is minimised; the docstring of this module has
    the saddle form and its constants. With an intercept, features and targets are centred first. The certificate is
    about the numbers as they were given and their exact means: what rounding changes when the data are centred is part
    of it, and large means cost no accuracy. For the squared loss b is then mean(t) - mean(x)'w, free of any penalty.
    For Huber's loss it is that plus a correction, the weight of a feature of constant value. The correction takes part
    in l2, because a certificate needs strong convexity in all variables: l2/2 (correction / intercept_scaling)^2 is
    added. The structure does not include the intercept.

    Args:
        loss: "squared", r^2/2; or "huber", r^2/2 where |r| <= delta and delta |r| - delta^2/2 beyond.
        l2: the multiple of |w|^2/2, positive. With squared loss and no structure this is Ridge's alpha = N l2.
        l1: the multiple of |w|_1; with it, most weights are exactly zero. scikit-learn's ``ElasticNet`` has
            l1 = alpha l1_ratio and l2 = alpha (1 - l1_ratio).
        positive: whether the weights must not be negative.
        structure: None, Graph, Groups, Squares or Norms.
        fit_intercept: whether there is an intercept.
        intercept_scaling: the value of the constant feature, for Huber's loss.
        delta: the threshold of Huber's loss, in the unit of the targets.
        tol: how accurate the fitted values are to be, in root mean square and in standard deviations of the targets
            (in their root mean square without an intercept). The run ends when the certified |w - w*| + |y - y*| is at
            most tol deviation sqrt(N)/|D|, D being the data as they enter.
        method: a name that ``sp.solve`` knows, a ``Method``, or "auto".
        max_seconds: wall-clock limit; there is a ConvergenceWarning if it was too short.

    Attributes:
        coef_, intercept_: w and b.
        result_, certificate_: what the solver returned.
        n_iter_: steps of the method.

    Example:
        >>> from saddlepoint.apps.risk import RiskRegressor
        >>> model = RiskRegressor(l2=1e-3).fit([[0.0], [1.0], [2.0]], [1.0, 3.0, 5.0])
        >>> model.predict([[3.0]]).round(1).tolist(), model.result_.solved
        ([7.0], True)
    """

    def __init__(
        self,
        loss: str = "squared",
        l2: float = 1e-2,
        *,
        l1: float = 0.0,
        positive: bool = False,
        structure: Structure | None = None,
        fit_intercept: bool = True,
        intercept_scaling: float = 1.0,
        delta: float = 1.0,
        tol: float = 1e-6,
        method: str | Method = "auto",
        max_seconds: float | None = None,
    ) -> None:
        self.loss = loss
        self.l2 = l2
        self.l1 = l1
        self.positive = positive
        self.structure = structure
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.delta = delta
        self.tol = tol
        self.method = method
        self.max_seconds = max_seconds

    def problem(self, X: Any, y: Any) -> Saddle:
        """The saddle problem of these data."""
        X, y = check_X_y(X, y, **CHECKS, y_numeric=True)
        return self._saddle(self._risk(self._data(X, y)), X.shape[1])

    def fit(self, X: Any, y: Any) -> RiskRegressor:
        """Learn from samples X, an array or a SciPy sparse matrix, with targets y."""
        X, y = validate_data(self, X, y, **CHECKS, y_numeric=True)
        data = self._data(X, y)
        scale = norm(data.t) / math.sqrt(data.t.shape[0])
        f = self._saddle(self._risk(data), X.shape[1])
        risk = partial(self._loss, t=data.t)
        self.result_ = self._solve(f, data.D, risk, X.shape[1], scale if scale > 0.0 else 1.0, "the problem")
        self.certificate_ = self.result_.certificate
        self.n_iter_ = self.result_.iterations
        self.coef_ = self.result_.x[: X.shape[1]]
        correction = self.intercept_scaling * float(self.result_.x[-1]) if data.D.shape[1] > X.shape[1] else 0.0
        self.intercept_ = data.t_mean - inner(data.means, self.coef_) + correction if self.fit_intercept else 0.0
        return self

    def predict(self, X: Any) -> Array:
        """x'w + b of every sample."""
        return self._scores(X)

    def _data(self, X: Any, y: Array) -> Data:
        """The data as they enter the problem."""
        y = y.astype(np.float64)
        if not self.fit_intercept:
            return Data(as_coupling(X), y, np.zeros(X.shape[1]), 0.0)
        constant = positive(self.intercept_scaling, "intercept_scaling") if self.loss == "huber" else None
        features, targets = centred(X, constant=constant), centred(y[:, None])
        t = targets.D.matrix()[:, 0]
        return Data(features.D, t, features.means, float(targets.means[0]), features, targets)

    def _loss(self, D: Any, t: Array) -> Smooth:
        """The risk of data as they are."""
        if self.loss == "squared":
            return LeastSquares(D, t)
        if self.loss == "huber":
            return Huber(D, t, delta=self.delta)
        raise ProblemError(f"loss of RiskRegressor is {self.loss!r}; expected 'squared' or 'huber'")

    def _risk(self, data: Data) -> Smooth:
        risk = self._loss(data.D, data.t)
        return data.formed_risk(risk) if data.features is not None and data.targets is not None else risk


class Data(NamedTuple):
    """Data as they enter a regression.

    Attributes:
        D, t: the features and targets, centred if there is an intercept.
        means, t_mean: what was subtracted, rounded to float64; zero if there is no intercept.
        features, targets: what is known of the rounding of D and t; None if they were not centred.
    """

    D: Coupling
    t: Array
    means: Array
    t_mean: float
    features: Centred | None = None
    targets: Centred | None = None

    def formed_risk(self, risk: Smooth) -> Smooth:
        """The risk of D and t, with bounds that refer to the exact means.

        The gradient is D's/N for slopes s of r = D x - t, where |s| <= |r|, and slopes change no more than r does. If
        the columns of D have errors of the norms e_j, and t has one of norm e, then r has an error of at most
        e'|x| + e, and entry j of the gradient one of (e_j |r| + |D_j| (e'|x| + e))/N.
        """
        assert self.features is not None
        assert self.targets is not None
        N, n = self.D.shape
        sizes, errors = self.features.sizes, self.features.errors
        t_size, t_error = float(self.targets.sizes[0]), float(self.targets.errors[0])
        rows = columns = errors
        if risk.rounding is None:  # D is not one matrix: its products are bounded here, too
            rows, columns = errors + gamma(n + 8, EPS) * sizes, errors + gamma(N + 8, EPS) * sizes
            t_error = t_error + EPS * t_size

        def error(x: Array) -> Array:
            size = np.abs(x)
            r = t_size + inner(sizes, size)
            return np.asarray((UP / N) * (r * columns + (inner(rows, size) + t_error) * sizes))

        if risk.rounding is None:
            risk = risk.replace(accuracy=0.0, rounding=lambda x: 4.0 * EPS * np.abs(risk.grad(x)), trusted=True)
        # The singular values of D are wrong by at most the Frobenius norm of its error.
        least = max(math.sqrt(N * risk.mu) * (1.0 - 8.0 * EPS) - UP * norm(errors), 0.0)
        return formed(risk, error, mu=least * least / N * (1.0 - 8.0 * EPS))


def _classes(y: Array) -> Array:
    check_classification_targets(y)
    classes = np.unique(y)
    if len(classes) < 2:
        raise ProblemError(f"y holds one class only, {classes[0]}; expected samples of two classes or more")
    return classes
