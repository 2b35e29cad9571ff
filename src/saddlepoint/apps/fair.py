r"""Fair classification: scores whose covariance with sensitive attributes is bounded.

Problem:    min_w (1/N) sum_i loss(s_i d_i'w) + l2/2 |w|^2 + l1 |w|_1 subject to |a_k'w| <= c_k, where
            a_k = (1/N) sum_i (z_ik - mean z_k) d_i, so that a_k'w is the covariance of attribute k and the score.
Saddle:     the constraint is max_y y a_k'w - c_k |y|, hence A has the columns a_k, and h is the weighted l1 norm.
Bounds:     w = 0 is feasible, so that the multipliers satisfy c_k |y_k*| <= loss(0) - minimum <= loss(0). Hence bounds
            of loss(0)/c_k on |y_k| change nothing, and with them the duality gap is finite and proves |w - w*|.
Data:       a is computed from centred data with bounds on its rounding, which are part of the certificate.
Reference:  M. B. Zafar, I. Valera, M. Gomez Rodriguez and K. P. Gummadi, Fairness constraints: mechanisms for fair
            classification, AISTATS 2017.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.sparse import csr_array, hstack, issparse
from sklearn.utils.validation import check_array, check_consistent_length, check_X_y

from saddlepoint.apps.centred import centred
from saddlepoint.apps.class_labels import two_classes_of
from saddlepoint.apps.data_errors import UP, CouplingWithError
from saddlepoint.apps.risk import RiskClassifier
from saddlepoint.apps.samples import CHECKS, samples
from saddlepoint.apps.structure import Structure
from saddlepoint.ground.arrays import Array
from saddlepoint.ground.compensated import EPS
from saddlepoint.ground.errors import ProblemError
from saddlepoint.ground.rounding import gamma, nearest_power_of_two
from saddlepoint.methods import Method
from saddlepoint.parts.coupling import Coupling, as_coupling
from saddlepoint.parts.functions import Quadratic, Smooth
from saddlepoint.parts.simple import L1Box
from saddlepoint.problems.saddle import Saddle


class FairClassifier(RiskClassifier):
    """A linear classifier of two classes whose scores have a bounded covariance with sensitive attributes.

    (1/N) sum_i loss(s_i (x_i'w + b)) + l2/2 (|w|^2 + (b/intercept_scaling)^2) + l1 |w|_1 is minimised subject to
    |cov(z_k, x'w)| <= covariance for every sensitive attribute z_k, over the training data. The certificate bounds
    |w - w*|, w* being the solution for the data as they were given.

    Args:
        loss: "logistic", "hinge" or "smoothed_hinge".
        covariance: the bound on the covariance of score and attribute: a positive number, or one for each attribute.
        l2, l1, fit_intercept, intercept_scaling, width, method, max_seconds: as of ``RiskClassifier``.
        tol: how accurate the decision values of the training data are to be, in root mean square, as of
            ``RiskClassifier``; |w - w*| is certified.

    Attributes:
        coef_, intercept_, classes_, result_, certificate_, n_iter_: as of ``RiskClassifier``.
        covariance_: the covariance of the scores and each attribute.

    Example:
        >>> import numpy as np
        >>> from saddlepoint.apps import FairClassifier
        >>> X = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 2.0], [3.0, 1.0], [0.5, 2.0], [2.5, 0.0]])
        >>> y, gender = [0, 0, 1, 1, 0, 1], [0, 0, 1, 1, 1, 0]
        >>> model = FairClassifier(covariance=0.05).fit(X, y, sensitive_features=gender)
        >>> abs(model.covariance_).max().round(6), model.result_.solved
        (np.float64(0.05), True)
    """

    groups: Any = None
    group_weight: Any = 0.0
    structure: Structure | None = None
    positive = False

    def __init__(
        self,
        loss: str = "logistic",
        covariance: Any = 0.01,
        l2: float = 1e-2,
        *,
        l1: float = 0.0,
        fit_intercept: bool = True,
        intercept_scaling: float = 1.0,
        width: float = 1.0,
        tol: float = 1e-6,
        method: str | Method = "auto",
        max_seconds: float | None = None,
    ) -> None:
        self.loss = loss
        self.covariance = covariance
        self.l2 = l2
        self.l1 = l1
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.width = width
        self.tol = tol
        self.method = method
        self.max_seconds = max_seconds

    def problem(self, X: Any, y: Any, sensitive_features: Any) -> Saddle:  # type: ignore[override]
        """The saddle problem of these data."""
        X, y = check_X_y(X, y, **CHECKS)
        classes = two_classes_of(y)
        covariances = _covariances(X, sensitive_features)
        D, positives = as_coupling(self._with_constant(X)), y == classes[1]
        return self._fair_problem(D, positives, self._smooth_risk(D, positives), X.shape[1], covariances)

    def fit(self, X: Any, y: Any, sensitive_features: Any) -> FairClassifier:  # type: ignore[override]
        """Learn from samples X, an array or a SciPy sparse matrix, with labels y.

        Args:
            X: the samples.
            y: their labels, of two classes.
            sensitive_features: the attributes: a vector of numbers or of words, or an array with a column for each
                attribute. Of words, each one is an attribute that a sample has or has not.
        """
        X, y = samples(self, X, y)
        self.classes_ = two_classes_of(y)
        D, positives = as_coupling(self._with_constant(X)), y == self.classes_[1]
        covariances = _covariances(X, sensitive_features)
        risk = self._smooth_risk(D, positives)
        f = self._fair_problem(D, positives, risk, X.shape[1], covariances)
        self.result_ = self._solve(f, D, risk, X.shape[1], 1.0, "the problem")
        self.certificate_ = self.result_.certificate
        self.n_iter_ = self.result_.iterations
        self.coef_ = self.result_.x[None, : X.shape[1]]
        self.intercept_ = self.intercept_scaling * self.result_.x[-1:] if self.fit_intercept else np.zeros(1)
        self.covariance_ = covariances[0].T @ self.coef_[0]
        return self

    def _fair_problem(
        self, D: Coupling, positives: Array, risk: Smooth | None, n_features: int, covariances: tuple[Array, Array]
    ) -> Saddle:
        a, error = (np.vstack((part, np.zeros((D.shape[1] - n_features, part.shape[1])))) for part in covariances)
        c = self._bounds(a.shape[1])
        if risk is not None:
            g = self._saddle(risk, n_features).g
            most = UP / c  # the logistic loss of the margin 0 is log(2), and that of the others is at most 1
            return Saddle(g, L1Box(c, -most, most), CouplingWithError(as_coupling(a), error))
        f = super()._problem(D, positives, None, n_features)
        N, q = D.shape[0], f.h.simple
        assert isinstance(q, L1Box)
        scales = nearest_power_of_two(math.sqrt(N) * _root_mean_square(f.A.matrix()) / _lengths(a))
        a, error, c = scales * a, scales * error, scales * c  # columns of A of a size that suits Newton's method
        most = UP * N / c  # the sum of the losses of the margin 0 is N
        joined = L1Box(
            np.append(np.zeros(N), c),
            np.append(q.lower.everywhere(N), -most),
            np.append(q.upper.everywhere(N), most),
        )
        signs = Quadratic(0.0, np.append(np.where(positives, 1.0, -1.0), np.zeros(c.size)))
        return Saddle(f.g, signs + joined, CouplingWithError(as_coupling(_beside(f.A.matrix(), a)), _after(N, error)))

    def _bounds(self, attributes: int) -> Array:
        given = np.asarray(self.covariance)
        fits = given.dtype.kind in "fiu" and given.shape in ((), (attributes,))
        if not fits or not (np.isfinite(given).all() and (given > 0.0).all()):
            raise ProblemError(
                f"covariance is {self.covariance!r}; expected a positive number, or one for each of the {attributes} "
                "attributes"
            )
        return np.array(np.broadcast_to(given.astype(np.float64), attributes))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags


def _covariances(X: Any, sensitive_features: Any) -> tuple[Array, Array]:
    """The covariances a of features (rows) and attributes (columns), and bounds on their errors.

    a_jk = <x_j, z_k>/N for centred columns. If these have errors of norms at most e_j and f_k, a has one of at most
    (e_j |z_k| + |x_j| f_k)/N beside that of the product.
    """
    Z = _attributes(sensitive_features)
    check_consistent_length(X, Z)
    N = X.shape[0]
    features, attributes = centred(X), centred(Z)
    z = np.ascontiguousarray(attributes.D.matrix().T)
    found = [_product(features.D, column) for column in z]
    a, slack = (np.stack([part[i] for part in found], axis=1) for i in range(2))
    a = a / N
    error = features.errors[:, None] * attributes.sizes[None, :] + features.sizes[:, None] * attributes.errors[None, :]
    return a, UP / N * (error + slack) + EPS * np.abs(a)


def _product(D: Coupling, z: Array) -> tuple[Array, Array]:
    """D'z, and bounds on the rounding errors of its entries."""
    compensated = D.T.compensated_mul(z)
    if compensated is not None:
        return compensated.hi, np.abs(compensated.lo) + compensated.error
    lengths = np.broadcast_to(D.T.row_lengths(), D.shape[1])
    return D.tmul(z), gamma(D.shape[0] + 8, EPS) * UP * lengths * np.linalg.norm(z)


def _attributes(sensitive_features: Any) -> Array:
    """The attributes as columns of numbers."""
    if sensitive_features is None:
        raise ProblemError(
            "sensitive_features is None; expected a number or a word for each sample, or columns of them"
        )
    given = np.asarray(sensitive_features)
    if given.ndim == 1 and given.dtype.kind in "OUSb":
        words = np.unique(given.astype(str))
        chosen = words[1:] if len(words) == 2 else words
        return np.asarray(given.astype(str)[:, None] == chosen[None, :], dtype=np.float64)
    if given.ndim == 1:
        given = given[:, None]
    return np.asarray(check_array(given, dtype=np.float64, input_name="sensitive_features"))


def _lengths(a: Array) -> Array:
    """The norms of the columns; 1 for those that are zero."""
    lengths = np.linalg.norm(a, axis=0)
    return np.where(lengths > 0.0, lengths, 1.0)


def _root_mean_square(A: Any) -> float:
    """The root mean square of the norms of the columns of A."""
    entries = A.data if issparse(A) else A
    return math.sqrt(float(np.sum(np.square(entries))) / A.shape[1]) or 1.0


def _beside(A: Any, a: Array) -> Any:
    """The columns of A and those of a."""
    return hstack((A, csr_array(a)), format="csr") if issparse(A) else np.hstack((A, a))


def _after(columns: int, error: Array) -> Any:
    """An error with columns of zeros before it."""
    return hstack((csr_array((error.shape[0], columns)), csr_array(error)), format="csr")
