"""Fitted linear models of scikit-learn, certified: how far their coefficients are from those that the data define.

Each model is written with ``sp.model`` as its documentation defines it, and its coefficients are certified as anyone's
values are. scikit-learn itself is not imported here.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array, diags_array, hstack, issparse

from saddlepoint.ground.arrays import Array, dense
from saddlepoint.ground.definite import eigenvalue_ends
from saddlepoint.ground.definite_factors import IndefiniteError, TooLargeError
from saddlepoint.ground.errors import ProblemError
from saddlepoint.ground.gershgorin import UNIT
from saddlepoint.ground.linalg import norm
from saddlepoint.ground.rounding import ELEMENTARY, gamma
from saddlepoint.ground.validation import as_vector, finite, in_floats
from saddlepoint.parts.functions import Logistic, Quadratic, Smooth
from saddlepoint.theory.logistic_distance import logistic_distance
from saddlepoint.uses import model as m
from saddlepoint.uses.model.answers import CertifiedAnswer
from saddlepoint.uses.model.problem import Problem

UP = 1.0 + 1e-9  # factor that exceeds the rounding of the bounds here
FACTORS = "Factors of the objective, such as alpha (1 - l1_ratio), are those that float64 arithmetic makes of them."
NEWTON = 20  # steps of Newton's method at most from the given coefficients
LARGEST = 5000  # coefficients up to which the Hessian of a logistic regression is factorised


@dataclass(frozen=True)
class CertifiedEstimator:
    """What is proven about the coefficients of a fitted model; ``sp.certify(estimator, X, t)`` makes it.

    Attributes:
        coef: the coefficients.
        intercept: the intercept; None if the model was fitted without one.
        distance: a bound on the distance of coefficients and intercept together from those that minimise the objective.
        assumes: what the proof rests on, in sentences.
        proof: the certificate of the problem with variables "coef" and "intercept", if that is what proved it.
    """

    coef: Array
    intercept: float | None
    distance: float
    assumes: tuple[str, ...]
    proof: CertifiedAnswer | None = None

    def __repr__(self) -> str:
        return f"CertifiedEstimator(|coefficients - exact ones| <= {self.distance:.3g})"


def certify_estimator(estimator: Any, X: Any, t: Any) -> CertifiedEstimator:
    """What is proven about the coefficients of a fitted linear model; see ``sp.certify``."""
    name = type(estimator).__name__
    coef = _coefficients(estimator, name)
    data = _data(X, coef.size)
    has_intercept = bool(estimator.fit_intercept)
    intercept = float(np.ravel(estimator.intercept_)[0]) if has_intercept else None
    labels = _labels(estimator, t, name) if hasattr(estimator, "classes_") else as_vector(t, "t", data.shape[0])
    if labels.shape[0] != data.shape[0]:
        raise ProblemError(f"t has {labels.shape[0]} entries, but X has {data.shape[0]} rows; they must agree")
    if name == "LogisticRegression" and has_intercept and estimator.solver != "liblinear":
        return _logistic_with_intercept(estimator, data, labels, coef, intercept or 0.0)
    values: dict[str, Any] = {"coef": coef}
    w, b = m.minimiser(coef.size, "coef"), None
    if has_intercept:
        b, values["intercept"] = m.minimiser(1, "intercept"), np.array([intercept])
    problem = OBJECTIVES[name](estimator, data, np.asarray(labels, dtype=np.float64), w, b)
    proof = _proof(problem, values, name)
    assumes = (*proof.certificate.assumes, FACTORS)
    return CertifiedEstimator(coef, intercept, _distance_together(problem, proof, values), assumes, proof)


def _coefficients(estimator: Any, name: str) -> Array:
    """The coefficients of a fitted model for one target, or two classes."""
    if name not in OBJECTIVES:
        raise ProblemError(f"the estimator is a {name}; expected one of {', '.join(sorted(OBJECTIVES))}")
    if not hasattr(estimator, "coef_"):
        raise ProblemError(f"the {name} is not fitted; call its method fit first")
    _refuse_weights(estimator, name)
    coef = np.asarray(estimator.coef_, dtype=np.float64)
    if coef.ndim == 2 and coef.shape[0] == 1:
        coef = coef[0]
    if coef.ndim != 1:
        raise ProblemError(f"coef_ of the {name} has the shape {coef.shape}; expected one target, or two classes")
    return coef


def _data(X: Any, columns: int) -> Any:
    """The samples as a finite matrix of float64, dense or in compressed rows."""
    data = csr_array(in_floats(X)).astype(np.float64) if issparse(X) else np.asarray(X, dtype=np.float64)
    if data.ndim != 2 or data.shape[1] != columns:
        raise ProblemError(f"X has the shape {data.shape}; expected {columns} columns, one for each coefficient")
    finite(np.asarray(data.data) if issparse(data) else data, "X")
    return data


def _proof(problem: Problem, values: dict[str, Any], name: str) -> CertifiedAnswer:
    """What is proven about the coefficients as values of the problem."""
    try:
        return problem.certify(values)
    except ProblemError as error:
        if "strongly" not in str(error):
            raise
        raise ProblemError(
            f"the objective of this {name} is not strongly convex, or cannot be proven to be, so that there is no "
            "distance to certify; its solution need not be unique. A positive l2 penalty makes it so"
        ) from None


def _distance_together(problem: Problem, proof: CertifiedAnswer, values: dict[str, Any]) -> float:
    """A bound on the distance of all values together."""
    together = math.hypot(*(proof.distance(key) for key in values))
    if problem.form.saddle.mu > 0.0 and proof.point is not None:  # all variables are in one certificate
        shift = norm(np.concatenate([np.ravel(values[k]) for k in values]) - proof.point.x)
        together = min(together, UP * (proof.certificate.distance_x + shift))
    return together


def _ridge(e: Any, X: Any, t: Array, w: Any, b: Any) -> Problem:
    alpha = np.unique(np.asarray(e.alpha, dtype=np.float64))
    if alpha.size != 1:
        raise ProblemError("the Ridge has several alphas; expected one")
    penalty = float(alpha[0])
    return _squares(X, t, w, b, 0.5, 0.5 * penalty, 0.0, bool(getattr(e, "positive", False)))


def _linear(e: Any, X: Any, t: Array, w: Any, b: Any) -> Problem:
    return _squares(X, t, w, b, 0.5, 0.0, 0.0, bool(getattr(e, "positive", False)))


def _elastic(e: Any, X: Any, t: Array, w: Any, b: Any) -> Problem:
    ratio = float(getattr(e, "l1_ratio", 1.0))
    alpha = float(e.alpha)
    return _squares(X, t, w, b, 0.5 / X.shape[0], 0.5 * alpha * (1.0 - ratio), alpha * ratio, bool(e.positive))


def _squares(X: Any, t: Array, w: Any, b: Any, factor: float, l2: float, l1: float, positive: bool) -> Problem:
    """factor |X w + b - t|^2 + l2 |w|^2 + l1 |w|_1, perhaps with w >= 0."""
    objective = factor * m.sum_squares((X @ w if b is None else X @ w + b) - t)
    if l2 > 0.0:
        objective = objective + l2 * m.sum_squares(w)
    if l1 > 0.0:
        objective = objective + l1 * m.norm1(w)
    return Problem(objective, [w >= 0.0] if positive else [])


def _logistic(e: Any, X: Any, s: Array, w: Any, b: Any) -> Problem:
    l1, l2 = _penalties(e)
    margins = _margins(X, s, w, b)
    objective = float(e.C if math.isfinite(e.C) else 1.0) * m.logistic(-1.0 * margins)
    objective = objective + l2 * m.sum_squares(w) if l2 > 0.0 else objective
    objective = objective + l1 * m.norm1(w) if l1 > 0.0 else objective
    return Problem(_with_intercept(objective, e, b, l1))


def _svc(e: Any, X: Any, s: Array, w: Any, b: Any) -> Problem:
    if e.penalty != "l2":
        raise ProblemError(f"the LinearSVC has the penalty {e.penalty!r}; expected 'l2'")
    short = 1.0 - _margins(X, s, w, b)
    loss = m.positive_part(short) if e.loss == "hinge" else m.function(SQUARED_HINGE, short)
    return Problem(_with_intercept(float(e.C) * loss + 0.5 * m.sum_squares(w), e, b, 0.0))


def _with_intercept(objective: Any, e: Any, b: Any, l1: float) -> Any:
    """liblinear penalises the intercept as the weight of a feature that is intercept_scaling everywhere."""
    if b is None:
        return objective
    scaled = b / float(e.intercept_scaling)
    return objective + (m.norm1(scaled) if l1 > 0.0 else 0.5 * m.sum_squares(scaled))


def _margins(X: Any, s: Array, w: Any, b: Any) -> Any:
    signed = diags_array(s) @ X if issparse(X) else s[:, None] * X
    return signed @ w if b is None else signed @ w + s[:, None] @ b


def _penalties(e: Any) -> tuple[float, float]:
    """The factors of |w|_1 and |w|^2 in the objective C sum of losses + penalty."""
    kind = getattr(e, "penalty", "l2")
    if kind is None or kind == "none" or not math.isfinite(float(e.C)):
        return 0.0, 0.0
    ratio = {"l2": 0.0, "l1": 1.0}.get(kind, float(getattr(e, "l1_ratio", None) or 0.0))
    return ratio, 0.5 * (1.0 - ratio)


def _logistic_with_intercept(e: Any, X: Any, s: Array, w: Array, b: float) -> CertifiedEstimator:
    """The bound of ``logistic_distance`` for losses with an intercept that is not penalised."""
    l1, l2 = _penalties(e)
    if l1 > 0.0:
        raise ProblemError(
            "the LogisticRegression has an l1 penalty and an intercept without one; nothing is proven then"
        )
    n = w.size + 1
    if n > LARGEST:
        raise ProblemError(f"the model has {n} coefficients; expected at most {LARGEST}, for which a proof is possible")
    ones = np.ones((X.shape[0], 1))
    D = csr_array(hstack([X, csr_array(ones)])) if issparse(X) else np.hstack([X, ones])
    C = float(e.C) if math.isfinite(float(e.C)) else 1.0
    diagonal = np.append(np.full(w.size, 2.0 * l2), 0.0)
    g: Smooth = (C * X.shape[0]) * Logistic(D, s) + Quadratic(diagonal)
    rows = np.asarray((D * D).sum(axis=1)).ravel()
    radius = UP * math.sqrt(float(rows.max()))
    given = v = np.append(w, b)
    distance = math.inf
    for _ in range(NEWTON):  # a proof about a point nearby is one about the given point, plus the way between the two
        H = _dense_hessian(g, v)
        bound = _bound_at(g, v, H, X.shape[0], radius) + UP * norm(v - given)
        if distance < math.inf and not bound < distance:
            break
        distance = bound
        with suppress(np.linalg.LinAlgError):
            v = v - np.linalg.solve(H, g.grad(v))
    logs = f"The functions exp, log and tanh in the gradient and in the Hessian err by at most {ELEMENTARY:g} eps."
    return CertifiedEstimator(w, b, distance, (logs, FACTORS))


def _dense_hessian(g: Smooth, v: Array) -> Array:
    assert g.hessian is not None
    H = g.hessian(v)
    return dense(H)


def _bound_at(g: Smooth, v: Array, H: Array, terms: int, radius: float) -> float:
    """The bound at v, where H is the Hessian as computed, whose entries are sums of this number of terms."""
    p = g.grad(v)
    size = UP * norm(p) + float(g.gradient_error(v, p))
    growth = gamma(terms + 8 * int(ELEMENTARY) + 64, UNIT)
    try:
        curvature = float(eigenvalue_ends(H, 2.0 * growth * v.size * H.diagonal()).low)
    except (IndefiniteError, TooLargeError):
        return math.inf
    return logistic_distance(size, curvature, radius)


def _labels(e: Any, t: Any, name: str) -> Array:
    """The classes of the rows as -1 and 1, in the order of the model."""
    classes = np.asarray(e.classes_)
    given = np.asarray(t).ravel()
    if classes.size != 2:
        raise ProblemError(f"the {name} has {classes.size} classes; expected two")
    if not np.isin(given, classes).all():
        raise ProblemError(
            f"t has classes that the {name} does not know; expected those of its fit: {classes.tolist()}"
        )
    return np.where(given == classes[1], 1.0, -1.0)


def _refuse_weights(e: Any, name: str) -> None:
    if getattr(e, "class_weight", None) is not None:
        raise ProblemError(f"the {name} has class weights; expected a model without them")


def _squared_hinge_slope(r: Array) -> Array:
    return 2.0 * np.maximum(r, 0.0)


def _squared_hinge(r: Array) -> float:
    return float(np.sum(np.maximum(r, 0.0) ** 2))


SQUARED_HINGE = Smooth(_squared_hinge_slope, mu=0.0, L=2.0, value=_squared_hinge, trusted=True)

# By the name of the estimator: (estimator, X, targets, coefficients, intercept) -> the problem of its objective.
OBJECTIVES: dict[str, Callable[[Any, Any, Array, Any, Any], Problem]] = {
    "ElasticNet": _elastic,
    "Lasso": _elastic,
    "LinearRegression": _linear,
    "LinearSVC": _svc,
    "LogisticRegression": _logistic,
    "Ridge": _ridge,
}
