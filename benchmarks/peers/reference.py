"""Reference solutions: by Newton's method where the Jacobian can be factorised, else certified; and the Jacobian."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from scipy.linalg import lu_factor, lu_solve
from scipy.sparse import block_array
from scipy.sparse.linalg import spsolve
from scipy.special import expit

import saddlepoint as sp
from saddlepoint.ground.arrays import Array
from saddlepoint.ground.linalg import norm
from saddlepoint.parts.coupling import DenseCoupling
from saddlepoint.parts.functions import Risk

from .problems import Instance

CACHE = Path("out/peers")
LONG = 900.0  # time limit in seconds for the reference of a large problem


def solution(instance: Instance) -> Array:
    """The solution z* = (x*, y*), which is kept in out/peers because large problems take minutes."""
    path = CACHE / f"{instance.file_stem}.npy"
    if not path.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        z = _certified(instance.f) if instance.family == "sparse" else _newton(instance.f)
        np.save(path, z)
    return np.asarray(np.load(path))


def jacobian(f: sp.Saddle, z: Array) -> Any:
    """[[Hess g, A], [-A', Hess h]] at z = (x, y), dense or sparse as A is."""
    m = f.shape[0]
    A: Any = f.A.A  # type: ignore[attr-defined]
    blocks = [[hessian(f.g, z[:m]), A], [-A.T, hessian(f.h, z[m:])]]
    return np.block(blocks) if isinstance(f.A, DenseCoupling) else block_array(blocks, format="csc")


def hessian(f: sp.Smooth, x: Array) -> Any:
    """The second derivative of a quadratic or of a risk of dense data."""
    if isinstance(f, sp.Quadratic):
        return f.P.A  # type: ignore[union-attr]
    assert isinstance(f, Risk)
    D: Array = f.D.A  # type: ignore[union-attr]
    return D.T @ (_curvature(f, x)[:, None] * D) / D.shape[0] + f.l2 * np.eye(x.size)


def _curvature(f: Risk, x: Array) -> Array:
    """The second derivative of the loss at every sample."""
    r = f._residual(x)
    if isinstance(f, sp.Logistic):
        p = expit(f.labels * r)
        return np.asarray(p * (1.0 - p))
    assert isinstance(f, sp.LogCosh)
    return np.asarray(1.0 - np.tanh(r) ** 2)


def _newton(f: sp.Saddle, steps: int = 60) -> Array:
    """Newton on F = 0, halving the step while |F| does not fall."""
    z = np.zeros(sum(f.shape))
    F = _field(f, z)
    for _ in range(steps):
        J = jacobian(f, z)
        step = lu_solve(lu_factor(J), F) if isinstance(J, np.ndarray) else spsolve(J, F)
        t = 1.0
        while norm(new := _field(f, z - t * step)) > (1.0 - 1e-4 * t) * norm(F) and t > 1e-6:
            t *= 0.5
        if t <= 1e-6:
            break  # |F| is at rounding level
        z, F = z - t * step, new
    return z


def _field(f: sp.Saddle, z: Array) -> Array:
    m = f.shape[0]
    return np.concatenate(f.field(z[:m], z[m:]))


def _certified(f: sp.Saddle) -> Array:
    """A solution by DIPPA, as accurate as rounding or the time limit allows; its certificate proves the accuracy."""
    result = sp.solve(f, method="dippa", tol=1e-7, max_seconds=LONG)
    return np.concatenate([result.x, result.y])
