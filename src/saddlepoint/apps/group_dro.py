r"""Group DRO: the model whose largest risk over groups of samples is smallest.

Problem:    min_w max_g R_g(w) + l2/2 |w|^2, where R_g is the mean loss of the samples of group g: logistic, or squared.
Saddle:     max_g R_g = max_q q'R(w) over probabilities q of the groups. The coupling is not bilinear, so that this is
            not a problem for ``solve``.
Recursion:  q is kept near the last one by |q - q0|^2/(2 sigma). What remains of the maximum is a smooth convex function
            of w with the slope J'q, q = projection of q0 + sigma R(w) onto the simplex. Newton's method minimises it.
            Then q0 becomes q, and sigma grows.
Guarantee:  ``theory/worst_case.py`` proves |w - w*| for any w and q, from the gradient for q and the risks.
Reference:  S. Sagawa, P. W. Koh, T. B. Hashimoto and P. Liang, Distributionally robust neural networks for group
            shifts, ICLR 2020; A. Ben-Tal, D. den Hertog, A. De Waegenaere, B. Melenberg and G. Rennen, Robust solutions
            of optimization problems affected by uncertain probabilities, Management Science 2013.
"""

from __future__ import annotations

import math
import warnings
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_consistent_length, check_is_fitted, column_or_1d, validate_data

from saddlepoint.apps.class_labels import two_classes_of
from saddlepoint.apps.data_errors import UP
from saddlepoint.apps.linear_model import with_constant
from saddlepoint.apps.samples import CHECKS, samples
from saddlepoint.ground.arrays import Array, dense
from saddlepoint.ground.compensated import EPS
from saddlepoint.ground.errors import ProblemError
from saddlepoint.ground.linalg import inner, norm
from saddlepoint.ground.rounding import gamma
from saddlepoint.ground.time_limit import TimeLimit
from saddlepoint.ground.validation import as_flag, positive
from saddlepoint.parts.coupling import as_coupling
from saddlepoint.parts.functions import LeastSquares, Logistic, Smooth
from saddlepoint.parts.simple import Simplex
from saddlepoint.theory.worst_case import WorstCaseCertificate, worst_case_certificate

OUTER = 40  # the most values of sigma
STEPS = 50  # the most Newton steps for one value of sigma
GROWTH = 8.0  # factor of sigma
ARMIJO = 1e-4  # part of the predicted descent that a step must reach
COMPENSATED = 0.1  # share of rounding in the slack from which the scores are computed in about twice the digits
PATIENCE = 3  # values of sigma without a smaller certified distance after which the run ends


class Group(NamedTuple):
    """The samples of one group.

    Attributes:
        D: their features, with the constant.
        t: their signs or targets.
        risk: their risk.
    """

    D: Any
    t: Array
    risk: Smooth


class _GroupDRO(BaseEstimator):  # type: ignore[misc]
    """What both estimators share: parameters, the solution and scores."""

    squared: bool

    def __init__(
        self,
        l2: float = 1e-2,
        *,
        fit_intercept: bool = True,
        intercept_scaling: float = 1.0,
        tol: float = 1e-5,
        max_seconds: float | None = None,
    ) -> None:
        self.l2 = l2
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.tol = tol
        self.max_seconds = max_seconds

    def _fit(self, X: Any, t: Array, groups: Any, scale: float) -> None:
        """Fit to signs or targets t; ``scale`` is the unit of the decision values in which tol is given."""
        groups = _as_groups(groups, X)
        self.groups_ = np.unique(groups)
        D = with_constant(X, self.intercept_scaling) if as_flag(self.fit_intercept, "fit_intercept") else X
        parts = [self._group(D[groups == label], t[groups == label]) for label in self.groups_]
        size = as_coupling(D).norm
        limit = TimeLimit(self.max_seconds)
        goal = positive(self.tol, "tol") * scale * (math.sqrt(D.shape[0]) / size if size > 0.0 else 1.0)
        w, q, self.n_iter_ = minimise(parts, positive(self.l2, "l2"), goal, self.squared, limit)
        self.certificate_: WorstCaseCertificate = certificate(parts, float(self.l2), w, q, self.squared)
        self.solved_ = self.certificate_.distance <= goal
        if not self.solved_:
            message = f"the problem is not solved: the certified distance is {self.certificate_.distance:.3g}"
            warnings.warn(f"{message}, above {goal:.3g}", ConvergenceWarning, stacklevel=3)
        self.coef_ = w[: X.shape[1]]
        self.intercept_ = float(self.intercept_scaling * w[-1]) if self.fit_intercept else 0.0
        self.group_weights_ = q
        self.group_risks_ = np.array([part.risk(w) for part in parts])

    def _group(self, D: Any, t: Array) -> Group:
        return Group(D, t, LeastSquares(D, t) if self.squared else Logistic(D, t))

    def _scores(self, X: Any) -> Array:
        check_is_fitted(self)
        X = validate_data(self, X, **CHECKS, reset=False)
        return np.asarray(X @ self.coef_ + self.intercept_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


class GroupDROClassifier(ClassifierMixin, _GroupDRO):  # type: ignore[misc]
    """Logistic regression of two classes for the group of samples on which it is worst.

    max_g R_g(w, b) + l2/2 (|w|^2 + (b/intercept_scaling)^2) is minimised, R_g being the mean logistic loss of group g.

    Args:
        l2: the multiple of |w|^2/2, positive.
        fit_intercept: whether there is an intercept, which takes part in l2.
        intercept_scaling: the value of the constant feature.
        tol: how accurate the decision values of the training data are to be, in root mean square: the certified
            |w - w*| is at most tol sqrt(N)/|D|. The proof compares values of risks, so that rounding ends it at about
            sqrt(1e-15/l2).
        max_seconds: wall-clock limit; there is a ConvergenceWarning if it was too short.

    Attributes:
        coef_, intercept_, classes_: w, b, and the labels, of which the second counts as positive.
        certificate_: bounds on |w - w*| and on the objective minus its minimum.
        solved_: whether the certified distance is what was asked for.
        groups_, group_weights_, group_risks_: the labels of the groups, their probabilities q, and their risks.
        n_iter_: Newton steps.

    Example:
        >>> from saddlepoint.apps import GroupDROClassifier
        >>> X = [[0.0, 1.0], [1.0, 0.0], [2.0, 2.0], [3.0, 1.0], [0.5, 2.0], [2.5, 0.0]]
        >>> model = GroupDROClassifier().fit(X, [0, 0, 1, 1, 0, 1], groups=["a", "a", "a", "b", "b", "b"])
        >>> model.group_risks_.round(4).tolist(), model.solved_
        ([0.1203, 0.1203], True)
    """

    squared = False

    def fit(self, X: Any, y: Any, groups: Any = None) -> GroupDROClassifier:
        """Learn from samples X with labels y; ``groups`` has a label for each sample, and None is one group."""
        X, y = samples(self, X, y)
        self.classes_ = two_classes_of(y)
        self._fit(X, np.where(y == self.classes_[1], 1.0, -1.0), groups, 1.0)
        return self

    def decision_function(self, X: Any) -> Array:
        """x'w + b of every sample."""
        return self._scores(X)

    def predict(self, X: Any) -> Array:
        """The label of every sample: the second one if the score is positive."""
        scores = self._scores(X)
        return np.asarray(self.classes_[(scores > 0.0).astype(int)])

    def predict_proba(self, X: Any) -> Array:
        """The logistic probability of both classes."""
        scores = self._scores(X)
        return np.stack((expit(-scores), expit(scores)), axis=1)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags


class GroupDRORegressor(RegressorMixin, _GroupDRO):  # type: ignore[misc]
    """Least squares for the group of samples on which they are worst.

    max_g R_g(w, b) + l2/2 (|w|^2 + (b/intercept_scaling)^2) is minimised, R_g being the mean of r^2/2 over group g.

    Args:
        l2: the multiple of |w|^2/2, positive.
        fit_intercept: whether there is an intercept, which takes part in l2. If that penalty is too large, subtract the
            mean of the targets from them first.
        intercept_scaling: the value of the constant feature.
        tol: how accurate the fitted values are to be, in root mean square and in root mean squares of the targets: the
            certified |w - w*| is at most tol rms(t) sqrt(N)/|D|.
        max_seconds: wall-clock limit; there is a ConvergenceWarning if it was too short.

    Attributes:
        coef_, intercept_: w and b.
        certificate_, solved_, groups_, group_weights_, group_risks_, n_iter_: as of ``GroupDROClassifier``.

    Example:
        >>> from saddlepoint.apps import GroupDRORegressor
        >>> model = GroupDRORegressor(1e-3, fit_intercept=False)
        >>> model.fit([[1.0], [1.0], [1.0]], [0.0, 0.0, 1.0], groups=[0, 0, 1]).coef_.round(3), model.solved_
        (array([0.5]), True)
    """

    squared = True

    def fit(self, X: Any, y: Any, groups: Any = None) -> GroupDRORegressor:
        """Learn from samples X with targets y; ``groups`` has a label for each sample, and None is one group."""
        X, y = samples(self, X, y, y_numeric=True)
        t = y.astype(np.float64)
        scale = norm(t) / math.sqrt(len(t))
        self._fit(X, t, groups, scale if scale > 0.0 else 1.0)
        return self

    def predict(self, X: Any) -> Array:
        """x'w + b of every sample."""
        return self._scores(X)


# -- the solution ------------------------------------------------------------------------------------------------------


def minimise(parts: list[Group], l2: float, goal: float, squared: bool, limit: TimeLimit) -> tuple[Array, Array, int]:
    """The weights w and the probabilities q of the groups, certified to ``goal`` if possible, and the Newton steps."""
    steps = without_progress = 0
    simplex, k = Simplex(), len(parts)
    w, q0, sigma = np.zeros(parts[0].D.shape[1]), np.full(k, 1.0 / k), 1.0
    best, least = (w, q0), math.inf
    for _ in range(OUTER):
        for _ in range(STEPS):
            R = np.array([part.risk(w) for part in parts])
            q = np.asarray(simplex.project(q0 + sigma * R))
            J = np.stack([part.risk.grad(w) for part in parts])
            slope = l2 * w + q @ J
            away = q - q0
            left = inner(slope, slope) / (2.0 * l2)
            if left <= max(0.01 * l2 * goal**2, 1e-2 * inner(away, away) / sigma):
                break
            moved = _step(parts, l2, sigma, q0, w, R, q, J, slope)
            if moved is None:
                break
            w, steps = moved, steps + 1
        proof = certificate(parts, l2, w, q, squared)
        without_progress = 0 if proof.distance < least else without_progress + 1
        if proof.distance < least:
            best, least = (w, q), proof.distance
        if least <= goal or without_progress >= PATIENCE or limit.is_over:
            break
        q0, sigma = q, sigma * GROWTH
    return best[0], best[1], steps


def _step(
    parts: list[Group], l2: float, sigma: float, q0: Array, w: Array, R: Array, q: Array, J: Array, slope: Array
) -> Array | None:
    """The weights after a Newton step that descends; None if it does not."""
    H = l2 * np.eye(w.size)
    for weight, part in zip(q, parts, strict=True):
        if weight > 0.0:
            assert part.risk.hessian is not None
            found = part.risk.hessian(w)
            H += weight * dense(found)
    on = q > 0.0
    centred = J[on] - J[on].mean(axis=0)
    H += sigma * (centred.T @ centred)
    try:
        step = -np.asarray(cho_solve(cho_factor(H), slope))
    except LinAlgError:
        return None
    value, descent, length = _value(R, q, q0, sigma) + 0.5 * l2 * inner(w, w), inner(slope, step), 1.0
    for _ in range(STEPS):
        there = w + length * step
        risks = np.array([part.risk(there) for part in parts])
        q_there = np.asarray(Simplex().project(q0 + sigma * risks))
        found = _value(risks, q_there, q0, sigma) + 0.5 * l2 * inner(there, there)
        if found <= value + ARMIJO * length * descent + 4.0 * EPS * abs(value):
            return np.asarray(there)
        length *= 0.5
    return None


def _value(R: Array, q: Array, q0: Array, sigma: float) -> float:
    """q'R - |q - q0|^2/(2 sigma)."""
    away = q - q0
    return inner(q, R) - inner(away, away) / (2.0 * sigma)


# -- its proof ---------------------------------------------------------------------------------------------------------


def certificate(parts: list[Group], l2: float, w: Array, q: Array, squared: bool) -> WorstCaseCertificate:
    """What is proven about w, with bounds on all rounding errors.

    The probabilities are those of q divided by their sum, which differs from 1 by rounding: this changes the slack and
    the gradient by that much, relative to the risks and to the sum of the gradients. Where the rounding of the scores
    is a large part of the slack, they are computed in about twice the digits.
    """
    slack, rounding = _slack(parts, w, q, squared, compensated=False)
    if rounding > COMPENSATED * slack:
        slack = min(slack, _slack(parts, w, q, squared, compensated=True)[0])
    with np.errstate(all="ignore"):
        gradients = np.stack([part.risk.grad(w) for part in parts])
        slacks = np.stack([_gradient_error(part.risk, w) for part in parts])
        off = abs(math.fsum(q) - 1.0) + EPS
        k = len(parts) + 4
        mixed = q @ np.abs(gradients)
        residual = norm(l2 * w + q @ gradients) * (1.0 + gamma(w.size + 4, EPS))
        residual += UP * (norm(q @ slacks) + (off + gamma(k, EPS)) * norm(mixed) + 2.0 * EPS * l2 * norm(w))
    return worst_case_certificate(l2, residual, slack)


def _slack(parts: list[Group], w: Array, q: Array, squared: bool, compensated: bool) -> tuple[float, float]:
    """A bound on max_g R_g - q'R, and the part of it that allows for rounding."""
    with np.errstate(all="ignore"):
        found = [_risk(part, w, squared, compensated) for part in parts]
        risks, errors = (np.array(numbers) for numbers in zip(*found, strict=True))
        off, k = abs(math.fsum(q) - 1.0) + EPS, len(parts) + 4
        above = risks[None, :] - risks[:, None]  # of each group, by how much the others are above it
        allowed = (errors[None, :] + errors[:, None] + EPS * np.abs(above)) * (1.0 - np.eye(len(parts)))
        slack = UP * (1.0 + off) * inner(q, np.max(above + allowed, axis=1)) * (1.0 + gamma(k, EPS))
        return slack, inner(q, np.max(allowed, axis=1))


def _risk(part: Group, w: Array, squared: bool, compensated: bool) -> tuple[float, float]:
    """The risk of a group and a bound on its error.

    The score of a sample has an error of at most gamma |d_i|'|w|, which the slope of the loss multiplies.
    """
    N, n = part.D.shape
    total = as_coupling(part.D).compensated_mul(w) if compensated else None
    if total is None:
        scores, off = part.D @ w, gamma(n + 4, EPS) * np.asarray(abs(part.D) @ np.abs(w))
    else:
        scores, off = total.hi, np.abs(total.lo) + total.error
    if squared:
        r = np.abs(scores - part.t)
        off = off + 2.0 * EPS * (r + np.abs(part.t))
        off, losses = off * (r + 2.0 * off), 0.5 * r * r
    else:
        losses = np.logaddexp(0.0, -part.t * scores)
    value = math.fsum(losses) / N
    return value, UP * float(np.mean(off)) + 16.0 * EPS * value  # each loss is right to a few units of rounding


def _gradient_error(risk: Smooth, w: Array) -> Array:
    """Bounds on the rounding errors of the gradient of a risk."""
    assert risk.rounding is not None
    return np.asarray(risk.rounding(w))


def _as_groups(groups: Any, X: Any) -> Array:
    if groups is None:
        return np.zeros(X.shape[0], int)
    labels = np.asarray(column_or_1d(groups))
    check_consistent_length(X, labels)
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        raise ProblemError("groups holds a number that is not finite; expected a label for each sample")
    return labels
