# mypy: ignore-errors
"""pyproximal's primal-dual method, with exact proximal steps given to it."""

from __future__ import annotations

import math

import numpy as np
import pylops
import pyproximal
from scipy.linalg import cho_factor, cho_solve

import saddlepoint as sp
from saddlepoint.ground.arrays import Array
from saddlepoint.ground.linalg import norm

from .problems import Instance
from .recorder import Recorder
from .reference import hessian


def primal_dual(instance: Instance, recorder: Recorder, step: float, theory: bool) -> None:
    """pyproximal.optimization.primaldual.PrimalDual on min_x g(x) + h*(A'x), whose dual variable is y.

    ``theory``: steps and extrapolation of Chambolle and Pock (2011) for both functions strongly convex. Otherwise
    tau = ``step``/|A|, mu = 1/(``step`` |A|) and theta = 1, as the documentation has it.
    """
    f = instance.f
    tau, mu, theta = step / f.norm, 1.0 / (step * f.norm), 1.0
    if theory:
        rate = 2.0 * math.sqrt(f.mu_x * f.mu_y) / f.norm
        tau, mu, theta = rate / (2.0 * f.mu_x), rate / (2.0 * f.mu_y), 1.0 / (1.0 + rate)

    class CountedTranspose(pylops.LinearOperator):
        def __init__(self) -> None:
            super().__init__(dtype=np.dtype(np.float64), shape=(f.shape[1], f.shape[0]))

        def _matvec(self, x: Array) -> Array:
            recorder.count(At=1)
            return f.A.tmul(x)

        def _rmatvec(self, y: Array) -> Array:
            recorder.count(A=1)
            return f.A.mul(y)

    pyproximal.optimization.primaldual.PrimalDual(
        _Prox(f.g, "grad_g", recorder),
        _Prox(f.h, "grad_h", recorder),
        CountedTranspose(),
        x0=np.zeros(f.shape[0]),
        tau=tau,
        mu=mu,
        theta=theta,
        niter=10**7,
        callback=recorder.certify_point,
        callbacky=True,
    )


class _Prox(pyproximal.ProxOperator):
    """The prox of g, and, as the dual prox of h*, the prox of h; an inner Newton method where there is no formula."""

    def __init__(self, f: sp.Smooth, name: str, recorder: Recorder) -> None:
        super().__init__(None, False)
        self.f, self.name, self.recorder = f, name, recorder
        self.last: Array | None = None

    def __call__(self, x: Array) -> float:
        """pyproximal asks for a value, which is not used."""
        return 0.0

    def prox(self, v: Array, tau: float) -> Array:
        """The prox, argmin_u f(u) + |u - v|^2/(2 tau)."""
        if self.f.has_prox:
            self.recorder.count(**{self.name: 1})
            return self.f.prox(v, tau)
        u = v if self.last is None else self.last
        for _ in range(20):
            self.recorder.count(**{self.name: 1})
            residual = self.f.grad(u) + (u - v) / tau
            if norm(residual) <= 1e-12 * (1.0 + norm(v) / tau):
                break
            factor = cho_factor(hessian(self.f, u) + np.eye(u.size) / tau)
            u = u - cho_solve(factor, residual)
        self.last = u
        return u

    def proxdual(self, v: Array, tau: float) -> Array:
        """The same as ``prox``: what pyproximal calls the dual prox of h* is the prox of h."""
        return self.prox(v, tau)
