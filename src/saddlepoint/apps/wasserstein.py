r"""Classification against the worst distribution near the data, in the Wasserstein distance of order one.

Problem:    min_w max_Q E_Q[loss(s d'w)] + l2/2 |w|^2 over the distributions Q to which the samples can be transported
            by moving features, not labels, with a mean distance of at most radius.
Reduction:  the logistic and the hinge loss have the largest slope 1, which they approach, so that the maximum is the
            mean loss of the samples plus radius |w|_*, with the dual norm of the metric: |w| if features move by
            Euclidean distances, and |w|_1 if they move by the largest change of a feature.
Saddle:     the norm is a simple term of g, as the groups and l1 of ``RiskClassifier`` are.
Reference:  S. Shafieezadeh-Abadeh, D. Kuhn and P. Mohajerin Esfahani, Regularization via mass transportation, JMLR
            2019.
"""

from __future__ import annotations

from typing import Any

from saddlepoint.apps.risk import RiskClassifier
from saddlepoint.apps.structure import Structure
from saddlepoint.ground.errors import ProblemError
from saddlepoint.methods import Method
from saddlepoint.parts.functions.given_constants import as_nonnegative


class WassersteinClassifier(RiskClassifier):
    """A linear classifier that is best against the worst distribution within a Wasserstein distance of the data.

    The certificate is that of ``RiskClassifier``: it bounds the distance of the weights to the exact ones, for the data
    as they were given. The intercept, the weight of a constant feature, is not part of the norm, but of l2.

    Args:
        radius: the mean distance by which the samples may be moved, not negative.
        loss: "logistic", "hinge" or "smoothed_hinge".
        l2: the multiple of |w|^2/2, positive; it makes the proof possible, and may be small.
        metric: how far a sample moves: "euclidean", or "max", the largest change of a feature, with which most weights
            are zero.
        fit_intercept, intercept_scaling, width, tol, method, max_seconds: as of ``RiskClassifier``.

    Attributes:
        coef_, intercept_, classes_, result_, certificate_, n_iter_: as of ``RiskClassifier``.

    Example:
        >>> from saddlepoint.apps import WassersteinClassifier
        >>> X = [[0.0, 1.0], [1.0, 1.0], [3.0, 2.0], [4.0, 4.0]]
        >>> model = WassersteinClassifier(0.1, l2=1e-3).fit(X, [0, 0, 1, 1])
        >>> model.predict([[0.0, 0.0], [5.0, 5.0]]).tolist(), model.result_.solved
        ([0, 1], True)
    """

    structure: Structure | None = None
    positive = False
    groups: Any = None

    def __init__(
        self,
        radius: float = 0.1,
        loss: str = "logistic",
        l2: float = 1e-3,
        *,
        metric: str = "euclidean",
        fit_intercept: bool = True,
        intercept_scaling: float = 1.0,
        width: float = 1.0,
        tol: float = 1e-6,
        method: str | Method = "auto",
        max_seconds: float | None = None,
    ) -> None:
        self.radius = radius
        self.loss = loss
        self.l2 = l2
        self.metric = metric
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.width = width
        self.tol = tol
        self.method = method
        self.max_seconds = max_seconds

    @property
    def l1(self) -> float:  # type: ignore[override]
        """The multiple of |w|_1."""
        return as_nonnegative(self.radius, "radius") if self._is_max() else 0.0

    @property
    def group_weight(self) -> float:
        """The multiple of |w|."""
        return 0.0 if self._is_max() else as_nonnegative(self.radius, "radius")

    def _groups(self, n_features: int) -> list[list[int]] | None:
        return None if self._is_max() or self.group_weight == 0.0 else [list(range(n_features))]

    def _is_max(self) -> bool:
        if self.metric not in ("euclidean", "max"):
            raise ProblemError(f"metric is {self.metric!r}; expected 'euclidean' or 'max'")
        return self.metric == "max"
