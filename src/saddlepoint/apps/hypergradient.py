r"""Derivatives of a held-out loss with respect to the penalties of a fitted model, with proven bounds.

Problem:    l(w*), where w* = w*(l2, l1) minimises the training risk plus l2/2 |w|^2 + l1 |w|_1, and l is the mean loss
            of held-out data.
Derivative: with v = grad l(w*) and the adjoint vector u, J'u = v (``Result.vjp``), the derivative with respect to l2 is
            -<u, w*>, and that with respect to l1 is -<u, sign(w*)>, over the weights that are not zero.
Bound:      w is known up to e = |w - w*|. v is the gradient at the computed w, with a rounding error of at most r, and
            has the Lipschitz constant L. So u is known up to d = b + (L e + r)/mu, with the bound b of ``vjp``, and
            |<u, w> - <u*, w*>| is at most d (|w| + e) + |u| e, and the rounding of the inner product. The signs are
            those of w* where they are proven (``Result.support_x``).
Reference:  F. Pedregosa, Hyperparameter optimization with approximate gradient, ICML 2016.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from saddlepoint.ground.arrays import Array
from saddlepoint.ground.compensated import EPS
from saddlepoint.ground.errors import ProblemError
from saddlepoint.ground.linalg import inner, norm
from saddlepoint.ground.rounding import gamma
from saddlepoint.parts.functions.second_order import steepness
from saddlepoint.parts.functions.smooth import Smooth
from saddlepoint.solving.result import Result

NOT_SMOOTH = ("hinge", "absolute", "quantile", "epsilon_insensitive")  # losses with kinks


class Hypergradient(NamedTuple):
    """A held-out loss and its derivatives.

    Attributes:
        value: the mean loss of the held-out data at the fitted weights.
        l2, l1: its derivatives with respect to the penalties, through the solution.
        bound_l2, bound_l1: proven bounds on the errors of the two against the derivatives at the exact solution;
            infinite where nothing is known.
        why: why a bound is infinite, in a sentence; empty if both are finite.
    """

    value: float
    l2: float
    l1: float
    bound_l2: float
    bound_l1: float
    why: str

    def __repr__(self) -> str:
        words = f"; {self.why}" if self.why else ""
        return (
            f"Hypergradient(loss {self.value:.6g}, d/dl2 = {self.l2:.6g} +- {self.bound_l2:.1e}, "
            f"d/dl1 = {self.l1:.6g} +- {self.bound_l1:.1e}{words})"
        )


def hypergradient_of(parts: Sequence[tuple[Result, Smooth]], n_features: int) -> Hypergradient:
    """The sum over the problems of a model, which has one for each class if there are more than two.

    Args:
        parts: the result of each problem, and the held-out loss as a function of its weights.
        n_features: the number of weights to which l1 applies; the others come after them.
    """
    found = [_of_one(result, loss, n_features) for result, loss in parts]
    return Hypergradient(
        value=math.fsum(part.value for part in found),
        l2=math.fsum(part.l2 for part in found),
        l1=math.fsum(part.l1 for part in found),
        bound_l2=sum(part.bound_l2 for part in found),
        bound_l1=sum(part.bound_l1 for part in found),
        why=next((part.why for part in found if part.why), ""),
    )


def _of_one(result: Result, loss: Smooth, n_features: int) -> Hypergradient:
    """The derivatives for one problem."""
    x, near = result.x, result.certificate.distance_x
    v = loss.grad(x)
    u = result.vjp(v)
    mu = result.differentiable().f.mu_x
    rounding = gamma(x.shape[0] + 8, EPS)  # of the inner products, relative to the products of the norms
    up = (1.0 + rounding) ** 2  # factor that exceeds the relative rounding of the norms and of the bounds themselves
    off = up * (u.bound_x + (steepness(loss) * near + float(loss.gradient_error(x, v))) / mu)
    feature = np.arange(x.shape[0]) < n_features
    signs: Array = np.where(feature, np.sign(x), 0.0)
    size = norm(u.ux)
    bound_l2 = up * (off * (norm(x) + near) + size * (near + rounding * norm(x)))
    bound_l1 = up * (off + rounding * size) * norm(signs)
    support = result.support_x
    why = u.why
    if support is None and not why and bool(np.any(feature & ~(np.abs(x) > up * near))):
        bound_l1, why = math.inf, "a weight is zero up to its error, where |w| has a kink; solve with a smaller tol"
    if u.why:
        bound_l2 = bound_l1 = math.inf
    return Hypergradient(loss(x), -inner(u.ux, x), -inner(u.ux, signs), bound_l2, bound_l1, why)


def check_differentiable(model: Any) -> None:
    """Raise a ProblemError if held-out losses of a model cannot be differentiated with respect to its penalties."""
    if model.structure is not None or model.groups is not None:
        raise ProblemError(
            "hypergradients of models with a structure or with groups are not implemented; use the problem and "
            "result_.vjp"
        )
    if model.loss in NOT_SMOOTH:
        raise ProblemError(
            f"the loss {model.loss!r} is not smooth, so that its solution may not be differentiable; expected a smooth "
            "loss, such as 'smoothed_hinge' or 'huber'"
        )
