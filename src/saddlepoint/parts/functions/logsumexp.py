"""Log-sum-exp, a smooth maximum."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import diags_array, issparse

from saddlepoint.ground.arrays import Array, common_space, namespace
from saddlepoint.ground.errors import ProblemError
from saddlepoint.ground.linalg import inner
from saddlepoint.ground.validation import as_vector
from saddlepoint.parts.coupling import ArrayCoupling, Coupling, DenseCoupling, SparseCoupling, as_coupling
from saddlepoint.parts.functions.constants import gram_bounds
from saddlepoint.parts.functions.smooth import Smooth, _constant, plus_identity


class LogSumExp(Smooth):
    """tau log sum_i exp((d_i'x - t_i)/tau) + l2/2 |x|^2, which tends to max_i (d_i'x - t_i) as tau falls.

    Its Hessian is D'(diag p - p p')D / tau with softmax weights p, hence L = l2 + min(|D|^2/2, max_i |d_i|^2) / tau.
    Without D the maximum is over the coordinates of x.
    """

    def __init__(self, D: Any = None, t: Any = None, l2: float = 0.0, tau: float = 1.0) -> None:
        self.l2 = _constant(l2, "l2 of LogSumExp")
        self.tau = _constant(tau, "tau of LogSumExp")
        if self.tau == 0.0:
            raise ProblemError("tau of LogSumExp is 0; expected a positive number")
        self.D: Coupling | None = None if D is None else as_coupling(D, "D of LogSumExp")
        rows = None if self.D is None else self.D.shape[0]
        self.t: Array | None = None if t is None else as_vector(t, "t of LogSumExp", rows)
        super().__init__(
            self._gradient,
            mu=self.l2,
            L=self.l2 + self._curvature() / self.tau,
            value=self._value,
            hessian=self._hessian if self.D is None or isinstance(self.D, DenseCoupling | SparseCoupling) else None,
            dim=self.D.shape[1] if self.D is not None else None if self.t is None else self.t.shape[0],
            space=common_space({"D of LogSumExp": self.D, "t of LogSumExp": self.t}),
            trusted=True,
        )

    def _scores(self, x: Array) -> Array:
        Dx = x if self.D is None else self.D.mul(x)
        return (Dx if self.t is None else Dx - self.t) * (1.0 / self.tau)

    def _gradient(self, x: Array) -> Array:
        p = weights(self._scores(x))
        return (p if self.D is None else self.D.tmul(p)) + self.l2 * x

    def _hessian(self, x: Array) -> Array:
        p = weights(self._scores(x))
        if self.D is None:
            spread, mean = np.diag(p), p
        else:
            D = self.D.matrix()
            weighted = (diags_array(p) @ D).toarray() if issparse(D) else p[:, None] * D
            spread, mean = D.T @ weighted, self.D.tmul(p)
        return np.asarray(plus_identity((spread - np.outer(mean, mean)) * (1.0 / self.tau), self.l2))

    def _value(self, x: Array) -> float:
        scores = self._scores(x)
        xp = namespace(scores)
        top = xp.max(scores)
        return self.tau * float(top + xp.log(xp.sum(xp.exp(scores - top)))) + 0.5 * self.l2 * inner(x, x)

    def _curvature(self) -> float:
        if self.D is None:
            return 0.5  # |diag p - p p'| <= 1/2
        bound = 0.5 * gram_bounds(self.D)[1]
        if isinstance(self.D, SparseCoupling):
            bound = min(bound, float(self.D.A.multiply(self.D.A).sum(axis=1).max()))
        elif isinstance(self.D, DenseCoupling | ArrayCoupling):
            xp = self.D.space.xp
            bound = min(bound, float(xp.max(xp.sum(self.D.A * self.D.A, axis=1))))
        return bound


def weights(scores: Array) -> Array:
    """The softmax weights, exp(scores) divided by its sum."""
    xp = namespace(scores)
    p = xp.exp(scores - xp.max(scores))
    share: Array = p / xp.sum(p)
    return share
