"""Hand-written peers in NumPy: extragradient, and L-BFGS on the primal function."""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize

from saddlepoint.ground.arrays import Array
from saddlepoint.ground.linalg import norm

from .problems import Instance
from .recorder import Recorder


def extragradient(instance: Instance, recorder: Recorder, step: float) -> None:
    """Korpelevich's method with the constant step ``step``/(L + |A|), the textbook bound on Lipschitz F."""
    f = instance.f
    eta = step / (f.L + f.norm)
    z = np.zeros(sum(f.shape))
    while True:
        half = z - eta * recorder.field(z)
        z = z - eta * recorder.field(half)


def lbfgs(instance: Instance, recorder: Recorder, maxcor: int) -> None:
    """L-BFGS on phi(x) = g(x) + max_y <x, A y> - h(y), the maximum exact (a formula or a factorisation)."""
    f, argmax = instance.f, instance.argmax
    assert argmax is not None

    def phi(x: Array) -> tuple[float, Array]:
        recorder.count(A=1, At=1, grad_g=1)
        y = argmax(f.A.tmul(x))
        Ay = f.A.mul(y)
        p = f.g.grad(x) + Ay
        recorder.record(x, y, norm(p), 0.0)
        return f.g(x) + float(x @ Ay) - f.h(y), p

    options = {"maxcor": maxcor, "maxiter": 10**7, "maxfun": 10**7, "ftol": 0.0, "gtol": 0.0, "maxls": 50}
    minimize(phi, np.zeros(f.shape[0]), jac=True, method="L-BFGS-B", options=options)
