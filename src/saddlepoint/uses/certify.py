"""``sp.certify``: what is proven about anyone's answer to a problem, to a model, or to a regression."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, overload

from saddlepoint.ground.errors import ProblemError
from saddlepoint.ground.validation import short_repr
from saddlepoint.problems.certify import CertifiedPoint, certify_point
from saddlepoint.problems.saddle import Saddle
from saddlepoint.uses.estimators import CertifiedEstimator, certify_estimator
from saddlepoint.uses.model.answers import CertifiedAnswer
from saddlepoint.uses.model.problem import Problem


@overload
def certify(f: Saddle, x: Any, y: Any) -> CertifiedPoint: ...
@overload
def certify(f: Problem, x: Mapping[Any, Any]) -> CertifiedAnswer: ...
@overload
def certify(f: Any, x: Any, y: Any) -> CertifiedEstimator: ...
def certify(f: Any, x: Any, y: Any = None) -> CertifiedPoint | CertifiedAnswer | CertifiedEstimator:
    """What is proven about an answer, whoever has computed it.

    A point of a ``Saddle`` that is outside the domain of a simple term is projected onto it first. With simple terms,
    the point after one prox step is certified, too, and the point with the smaller bound is returned. What is claimed
    of g, h and A is examined as by ``solve`` before a run is called solved.

    Args:
        f: a ``Saddle``; a problem of ``sp.model``; or a fitted Ridge, LinearRegression, Lasso, ElasticNet,
            LogisticRegression or LinearSVC of scikit-learn.
        x: the point x; the values of variables by name, of all or of some; or the data X with one row a sample.
        y: the point y; nothing; or the targets with which the model was fitted.

    Returns:
        A ``CertifiedPoint``, a ``CertifiedAnswer`` or a ``CertifiedEstimator``.

    Raises:
        ProblemError: the answer does not fit the problem, or nothing can be proven about it.
        AssumptionError: the examination proved mu or L of g or h wrong, or another claim about the problem.

    Example:
        >>> import numpy as np, saddlepoint as sp
        >>> f = sp.Saddle(sp.Quadratic(1.0, [-1.0, 0.1]) + sp.L1(0.5), sp.Quadratic(1.0), np.zeros((2, 1)))
        >>> sp.certify(f, [0.5, 0.0], [0.0]).support_x.tolist() == [sp.Support.OFF, sp.Support.ZERO]
        True
        >>> x = sp.model.minimiser(2, "x")
        >>> sp.certify(sp.model.Problem(sp.model.sum_squares(x - 1.0)), {"x": [1.0, 1.1]}).distance("x")
        0.1...
    """
    if isinstance(f, Saddle):
        return certify_point(f, x, y)
    if isinstance(f, Problem):
        if y is not None:
            raise ProblemError("certify was given y; expected the values of all variables in one dictionary by name")
        return f.certify(x)
    if hasattr(f, "get_params") and hasattr(f, "fit"):
        return certify_estimator(f, x, y)
    raise ProblemError(
        f"f is {short_repr(f)}; expected a Saddle(g, h, A), a problem of sp.model, or a fitted model of scikit-learn"
    )
