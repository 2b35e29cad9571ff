"""The smooth maximum."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import logsumexp, softmax

from saddlepoint.coupling import Coupling, DenseCoupling, SparseCoupling, as_coupling
from saddlepoint.errors import ProblemError
from saddlepoint.functions.constants import gram_bounds
from saddlepoint.functions.smooth import Smooth, _constant
from saddlepoint.vectors import Array, as_vector, inner


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
        data = [array.dtype for array in (self.D, self.t) if array is not None]
        super().__init__(
            self._gradient,
            mu=self.l2,
            L=self.l2 + self._curvature() / self.tau,
            value=self._value,
            dim=self.D.shape[1] if self.D is not None else None if self.t is None else self.t.shape[0],
            dtype=np.result_type(*data) if data else None,
        )

    def _scores(self, x: Array) -> Array:
        Dx = x if self.D is None else self.D.mul(x)
        return (Dx if self.t is None else Dx - self.t) * (1.0 / self.tau)

    def _gradient(self, x: Array) -> Array:
        p = softmax(self._scores(x))
        return (p if self.D is None else self.D.tmul(p)) + self.l2 * x

    def _value(self, x: Array) -> float:
        return self.tau * float(logsumexp(self._scores(x))) + 0.5 * self.l2 * inner(x, x)

    def _curvature(self) -> float:
        if self.D is None:
            return 0.5  # |diag p - p p'| <= 1/2
        bound = 0.5 * gram_bounds(self.D)[1]
        if isinstance(self.D, DenseCoupling | SparseCoupling):
            squares = self.D.A * self.D.A if isinstance(self.D, DenseCoupling) else self.D.A.multiply(self.D.A)
            bound = min(bound, float(squares.sum(axis=1).max()))
        return bound
