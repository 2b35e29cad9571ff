"""SciPy's root finders on F = 0."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import newton_krylov as scipy_newton_krylov
from scipy.optimize import root

from .problems import Instance
from .recorder import Recorder
from .reference import jacobian

TINY = 1e-300  # SciPy's tolerance, so small that the recorder ends the run
MANY = 10**7  # SciPy's limit of steps, which the recorder's limit of time precedes


def newton_krylov(instance: Instance, recorder: Recorder, **options: Any) -> None:
    """scipy.optimize.newton_krylov; it may raise NoConvergence without a point, so evaluations of F are recorded."""
    scipy_newton_krylov(recorder.field, np.zeros(sum(instance.f.shape)), f_tol=TINY, maxiter=MANY, **options)


def root_with(instance: Instance, recorder: Recorder, method: str, **options: Any) -> None:
    """scipy.optimize.root without a Jacobian."""
    limits = {"maxfev": MANY, "fatol": TINY, "ftol": 0.0} if method == "df-sane" else {"maxiter": MANY, "fatol": TINY}
    root(recorder.field, np.zeros(sum(instance.f.shape)), method=method, options=limits | options)


def hybr(instance: Instance, recorder: Recorder, factor: float) -> None:
    """MINPACK's hybrid method with the dense Jacobian, for small problems; a Jacobian counts as no call at all."""
    f = instance.f
    root(
        recorder.field,
        np.zeros(sum(f.shape)),
        jac=lambda z: jacobian(f, z),
        method="hybr",
        options={"maxfev": MANY, "xtol": 1e-15, "factor": factor},
    )
