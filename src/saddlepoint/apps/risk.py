r"""Regularised empirical risk minimisation: sparse weights, weights that are not negative, structures on the features.

Problem:    min_w (1/N) sum_i loss(d_i'w, t_i) + l2/2 |w|^2 + l1 |w|_1 + sum_G weight_G |w_G| + phi(K w), where w >= 0
            may be asked for, the groups G are disjoint, and phi(K .) is not separable and has no cheap prox: neighbours
            in a graph, groups that overlap, differences (see ``structure``).
Saddle:     phi(K w) = max_y <K w, y> - phi*(y), hence min_w max_y g(w) + <w, K'y> - h(y) with the risk and l2/2 |w|^2
            as g, A = K' and h = phi*; l1 |w|_1, w >= 0 and the groups are simple terms of g. Without a structure, A is
            zero. A loss that is not smooth is the maximum itself: hinge, absolute, quantile and epsilon-insensitive
            loss are max_y y r - epsilon |y| over an interval, and A = D' (see ``linear_model``).
Constants:  loss'' lies between c and C, and lambda are the eigenvalues of D'D/N (lambda_min taken as 0 if D is sparse):
            squared c = C = 1,   huber c = 0, C = 1,   logistic c = 0, C = 1/4,   smoothed hinge c = 0, C = 1/width;
            L_x = C lambda_max + l2 and mu_x = c lambda_min + l2, or l2/2 in place of l2 in mu_x where phi is made of
            norms; mu_y and L_y are those of phi*, and |A| = |K|.
Reference:  Y. Zhang and L. Xiao, Stochastic primal-dual coordinate method for regularized empirical risk minimization,
            JMLR 2017, where the loss is what is written as a maximum; here it is the penalty.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.special import log_expit, softmax
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, check_X_y

from saddlepoint.apps.centred import centred
from saddlepoint.apps.class_labels import classes_of
from saddlepoint.apps.hypergradient import Hypergradient, check_differentiable, hypergradient_of
from saddlepoint.apps.linear_model import LinearModel, with_constant
from saddlepoint.apps.regression_data import Data
from saddlepoint.apps.samples import CHECKS, samples
from saddlepoint.apps.structure import Structure
from saddlepoint.ground.arrays import Array, dense
from saddlepoint.ground.errors import ProblemError
from saddlepoint.ground.linalg import inner, norm
from saddlepoint.ground.validation import as_flag, positive
from saddlepoint.methods import Method
from saddlepoint.parts.coupling import Coupling, as_coupling
from saddlepoint.parts.functions import Huber, LeastSquares, Logistic, Quadratic, Smooth, SmoothedHinge
from saddlepoint.parts.functions.given_constants import as_nonnegative
from saddlepoint.parts.simple import L1Box
from saddlepoint.problems.saddle import Saddle

EXACT = ("absolute", "quantile", "epsilon_insensitive")  # losses of RiskRegressor that are not smooth


def _is_logistic(self: RiskClassifier) -> bool:
    return self.loss == "logistic"


class RiskClassifier(ClassifierMixin, LinearModel):  # type: ignore[misc]
    """A linear classifier: logistic or hinge loss, l2, l1, nonnegativity, groups, and a structure on the features.

    (1/N) sum_i loss(s_i (x_i'w + b)) + l2/2 (|w|^2 + (b/intercept_scaling)^2) + l1 |w|_1 + phi(K w) is minimised, with
    s_i = +1 or -1. The docstring of this module has the saddle form and its constants. The intercept b is the weight of
    a feature of constant value and takes part in l2, as in liblinear, because a certificate needs strong convexity in
    all variables; a larger ``intercept_scaling`` makes this penalty smaller and the problem harder. The structure does
    not include it. With more than two classes there is one problem for each class against the rest. The certificate is
    about the numbers as they were given, which enter the problem unchanged.

    Args:
        loss: "logistic", log(1 + exp(-s)); "hinge", max(0, 1 - s), the support vector machine; or "smoothed_hinge",
            which is rounded over ``width``. A structure needs one of the smooth ones.
        l2: the multiple of |w|^2/2, positive. Without a structure this is scikit-learn's C = 1/(N l2).
        l1: the multiple of |w|_1, which makes weights exactly zero. scikit-learn's ``LogisticRegression`` has
            l1 = l1_ratio/(N C) and l2 = (1 - l1_ratio)/(N C). The intercept is not part of |w|_1.
        positive: whether the weights must not be negative; the intercept may be.
        groups: disjoint groups of features: a label for each feature, or lists of features. The features of a group
            are used or left out together: group_weight |w_G| is added for each group, the group lasso, exactly.
        group_weight: one number, or one for each group in the order of the lists or of the sorted labels.
        structure: None, Graph, Groups, Squares, Norms or Fused.
        fit_intercept: whether there is an intercept.
        intercept_scaling: the value of the constant feature.
        width: the width of the rounding of the hinge, which is a parabola for 1 - width <= s <= 1.
        tol: how accurate the decision values of the training data are to be, in root mean square. The run ends when the
            certified |w - w*| + |y - y*| is at most tol sqrt(N)/|D|, D being the data with the constant feature. With
            the hinge loss or a structure with width=0 it is |w - w*| alone.
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
        groups: Any = None,
        group_weight: Any = 0.1,
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
        self.groups = groups
        self.group_weight = group_weight
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
        classes = classes_of(y).tolist()
        if label is None:
            label = classes[-1]
        elif label not in classes:
            raise ProblemError(f"label is {label!r}; expected one of {', '.join(map(repr, classes))}")
        D, positives = as_coupling(self._with_constant(X)), y == label
        return self._problem(D, positives, self._smooth_risk(D, positives), X.shape[1])

    def fit(self, X: Any, y: Any) -> RiskClassifier:
        """Learn from samples X, an array or a SciPy sparse matrix, with labels y."""
        X, y = samples(self, X, y)
        self.classes_ = classes_of(y)
        D = as_coupling(self._with_constant(X))
        results = []
        for label in self.classes_[1:] if len(self.classes_) == 2 else self.classes_:
            risk = self._smooth_risk(D, y == label)
            f = self._problem(D, y == label, risk, X.shape[1])
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

    def hypergradient(self, X: Any, y: Any) -> Hypergradient:
        """The mean loss of held-out samples, and its derivatives with respect to l2 and l1, with proven bounds.

        The derivatives are those of the loss of the fitted model, as a function of its penalties. With more than two
        classes the losses of all problems are added up. Derivatives exist for a smooth loss without a structure and
        without groups; other models are refused.

        Example:
            >>> from saddlepoint.apps.risk import RiskClassifier
            >>> model = RiskClassifier(l2=0.1).fit([[0, 1], [1, 1], [3, 2], [4, 4]], [0, 0, 1, 1])
            >>> slope = model.hypergradient([[2, 0], [2, 4]], [0, 1])
            >>> slope.bound_l2 < 1e-4 * abs(slope.l2)
            True
        """
        check_is_fitted(self)
        check_differentiable(self)
        X, y = check_X_y(X, y, **CHECKS)
        unknown = sorted(set(np.unique(y).tolist()) - set(self.classes_.tolist()))
        if unknown:
            raise ProblemError(f"y has the label {unknown[0]!r}, which the model was not fitted to")
        D = as_coupling(self._with_constant(X))
        labels = self.classes_[1:] if len(self.classes_) == 2 else self.classes_
        results = self.result_ if isinstance(self.result_, list) else [self.result_]
        losses = [self._risk(D, y == label) for label in labels]
        return hypergradient_of(list(zip(results, losses, strict=True)), X.shape[1])

    def _problem(self, D: Coupling, positives: Array, risk: Smooth | None, n_features: int) -> Saddle:
        """The problem of the given samples against the others; ``risk`` is what ``_smooth_risk`` returned for them.

        The hinge loss of a margin m = s d'w is max_u u (1 - m), 0 <= u <= 1. With y = -s u it is y d'w - s y, where y
        is from -1 to 0 if s = 1, and from 0 to 1 if s = -1.
        """
        if risk is not None:
            return self._saddle(risk, n_features)
        q = L1Box(0.0, np.where(positives, -1.0, 0.0), np.where(positives, 0.0, 1.0))
        return self._exact_saddle(D.T, Quadratic(0.0, np.where(positives, 1.0, -1.0)), q, n_features)

    def _smooth_risk(self, D: Coupling, positives: Array) -> Smooth | None:
        """The risk without l2; None for the hinge loss, which is not smooth."""
        return None if self.loss == "hinge" else self._risk(D, positives)

    def _risk(self, D: Any, positives: Array) -> Smooth:
        signs = np.where(positives, 1.0, -1.0)
        if self.loss == "logistic":
            return Logistic(D, signs)
        if self.loss == "smoothed_hinge":
            return SmoothedHinge(D, signs, width=self.width)
        raise ProblemError(
            f"loss of {type(self).__name__} is {self.loss!r}; expected 'logistic', 'hinge' or 'smoothed_hinge'"
        )


class RiskRegressor(RegressorMixin, LinearModel):  # type: ignore[misc]
    """Linear regression with a choice of losses, l2, l1, nonnegativity, groups, and a structure on the features.

    (1/N) sum_i loss(x_i'w + b - t_i) + l2/2 |w|^2 + l1 |w|_1 + phi(K w) is minimised; the docstring of this module has
    the saddle form and its constants. With an intercept, features and targets are centred first. The certificate is
    about the numbers as they were given and their exact means: what rounding changes when the data are centred is part
    of it, and large means cost no accuracy. For the squared loss b is then mean(t) - mean(x)'w, free of any penalty.
    For the other losses it is that plus a correction, the weight of a feature of constant value. The correction takes
    part in l2, because a certificate needs strong convexity in all variables: l2/2 (correction / intercept_scaling)^2
    is added. The structure does not include the intercept.

    Args:
        loss: "squared", r^2/2; "huber", r^2/2 where |r| <= delta and delta |r| - delta^2/2 beyond;
            "absolute", |r|; "quantile", quantile r^- + (1 - quantile) r^+ with the negative and positive parts of
            r = prediction - target; or "epsilon_insensitive", max(0, |r| - epsilon), support vector regression. The
            last three are exact, and need structure=None.
        l2: the multiple of |w|^2/2, positive. With squared loss and no structure this is Ridge's alpha = N l2.
        l1: the multiple of |w|_1, which makes weights exactly zero. scikit-learn's ``ElasticNet`` has
            l1 = alpha l1_ratio and l2 = alpha (1 - l1_ratio).
        positive: whether the weights must not be negative.
        groups: disjoint groups of features: a label for each feature, or lists of features. The features of a group
            are used or left out together: group_weight |w_G| is added for each group, the group lasso, exactly.
        group_weight: one number, or one for each group in the order of the lists or of the sorted labels.
        structure: None, Graph, Groups, Squares, Norms or Fused.
        fit_intercept: whether there is an intercept.
        intercept_scaling: the value of the constant feature, for all but the squared loss.
        delta: the threshold of Huber's loss, in the unit of the targets.
        quantile: which quantile is to be predicted, between 0 and 1. The loss uses 1 - quantile as float64 rounds it.
        epsilon: residuals below this do not count, in the unit of the targets.
        tol: how accurate the fitted values are to be, in root mean square and in standard deviations of the targets
            (in their root mean square without an intercept). The run ends when the certified |w - w*| + |y - y*| is at
            most tol deviation sqrt(N)/|D|, D being the data as they enter. With an exact loss or a structure with
            width=0 it is |w - w*| alone.
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
        groups: Any = None,
        group_weight: Any = 0.1,
        structure: Structure | None = None,
        fit_intercept: bool = True,
        intercept_scaling: float = 1.0,
        delta: float = 1.0,
        quantile: float = 0.5,
        epsilon: float = 0.1,
        tol: float = 1e-6,
        method: str | Method = "auto",
        max_seconds: float | None = None,
    ) -> None:
        self.loss = loss
        self.l2 = l2
        self.l1 = l1
        self.positive = positive
        self.groups = groups
        self.group_weight = group_weight
        self.structure = structure
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.delta = delta
        self.quantile = quantile
        self.epsilon = epsilon
        self.tol = tol
        self.method = method
        self.max_seconds = max_seconds

    def problem(self, X: Any, y: Any) -> Saddle:
        """The saddle problem of these data."""
        X, y = check_X_y(X, y, **CHECKS, y_numeric=True)
        data = self._data(X, y)
        return self._problem(data, self._smooth_risk(data), X.shape[1])

    def fit(self, X: Any, y: Any) -> RiskRegressor:
        """Learn from samples X, an array or a SciPy sparse matrix, with targets y."""
        X, y = samples(self, X, y, y_numeric=True)
        data = self._data(X, y)
        scale = norm(data.t) / math.sqrt(data.t.shape[0])
        risk = self._smooth_risk(data)
        f = self._problem(data, risk, X.shape[1])
        self.result_ = self._solve(f, data.D, risk, X.shape[1], scale if scale > 0.0 else 1.0, "the problem")
        self.certificate_ = self.result_.certificate
        self.n_iter_ = self.result_.iterations
        self.coef_ = self.result_.x[: X.shape[1]]
        self._means = data.means[: X.shape[1]], data.t_mean
        correction = self.intercept_scaling * float(self.result_.x[-1]) if data.D.shape[1] > X.shape[1] else 0.0
        self.intercept_ = data.t_mean - inner(data.means, self.coef_) + correction if self.fit_intercept else 0.0
        return self

    def predict(self, X: Any) -> Array:
        """x'w + b of every sample."""
        return self._scores(X)

    def hypergradient(self, X: Any, y: Any) -> Hypergradient:
        """The mean loss of held-out samples, and its derivatives with respect to l2 and l1, with proven bounds.

        The derivatives are those of the loss of the fitted model, as a function of its penalties. They exist for a
        smooth loss without a structure and without groups; other models are refused.

        Example:
            >>> from saddlepoint.apps.risk import RiskRegressor
            >>> model = RiskRegressor(l2=0.1).fit([[0.0], [1.0], [2.0]], [1.0, 3.0, 5.5])
            >>> slope = model.hypergradient([[3.0], [4.0]], [7.0, 9.0])
            >>> slope.bound_l2 < 1e-4 * abs(slope.l2)
            True
        """
        check_is_fitted(self)
        check_differentiable(self)
        X, y = check_X_y(X, y, **CHECKS, y_numeric=True)
        means, t_mean = self._means
        D, t = X, y.astype(np.float64)
        if self.fit_intercept:
            D, t = dense(X) - means, t - t_mean
            D = D if self.loss == "squared" else with_constant(D, self.intercept_scaling)
        return hypergradient_of([(self.result_, self._loss(as_coupling(D), t))], X.shape[1])

    def _data(self, X: Any, y: Array) -> Data:
        """The data as they enter the problem."""
        y = y.astype(np.float64)
        if not as_flag(self.fit_intercept, "fit_intercept"):
            return Data(as_coupling(X), y, np.zeros(X.shape[1]), 0.0)
        constant = None if self.loss == "squared" else positive(self.intercept_scaling, "intercept_scaling")
        features, targets = centred(X, constant=constant), centred(y[:, None])
        t = targets.D.matrix()[:, 0]
        return Data(features.D, t, features.means, float(targets.means[0]), features, targets, (X, y))

    def _problem(self, data: Data, risk: Smooth | None, n_features: int) -> Saddle:
        if risk is not None:
            centred = data.features is not None and data.targets is not None
            return self._saddle(data.formed_risk(risk) if centred else risk, n_features)
        return self._exact_saddle(data.transposed(), data.linear(), self._interval(), n_features)

    def _interval(self) -> L1Box:
        """The term of y, for residuals r = d'w - t of an exact loss max_y y r - epsilon |y|."""
        if self.loss == "epsilon_insensitive":
            return L1Box(as_nonnegative(self.epsilon, "epsilon"), -1.0, 1.0)
        if self.loss == "absolute":
            return L1Box(0.0, -1.0, 1.0)
        quantile = positive(self.quantile, "quantile")
        if quantile >= 1.0:
            raise ProblemError(f"quantile is {quantile:g}; expected a number between 0 and 1")
        return L1Box(0.0, -quantile, 1.0 - quantile)

    def _loss(self, D: Any, t: Array) -> Smooth:
        """The risk of the data D and t, without a bound on what centring them rounded."""
        if self.loss == "squared":
            return LeastSquares(D, t)
        if self.loss == "huber":
            return Huber(D, t, delta=self.delta)
        known = ", ".join(map(repr, ("squared", "huber", *EXACT)))
        raise ProblemError(f"loss of RiskRegressor is {self.loss!r}; expected one of {known}")

    def _smooth_risk(self, data: Data) -> Smooth | None:
        """The risk without l2 and without a bound on what centring rounded; None for a loss that is not smooth."""
        return None if self.loss in EXACT else self._loss(data.D, data.t)
