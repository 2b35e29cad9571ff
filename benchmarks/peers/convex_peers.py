# mypy: ignore-errors
"""CVXPY with the conjugate of h derived by hand, and DSP, both with Clarabel."""

from __future__ import annotations

from typing import Any

import cvxpy as cp
import dsp
import numpy as np
from scipy.linalg import cholesky, solve_triangular

import saddlepoint as sp
from saddlepoint.ground.arrays import Array
from saddlepoint.parts.functions import Risk

from .problems import Instance
from .recorder import Recorder


def cvxpy_conjugate(instance: Instance, recorder: Recorder, tol: float) -> None:
    """The problem min_x g(x) + h*(A'x).

    Quadratic h: h*(s) = |R'^-1 (s - b)|^2/2 with h'' = R'R, and y solves h'' y = A'x - b.

    Log-cosh risk h = mean log cosh(E y - t) + l2/2 |y|^2 of N rows: h*(s) is the least, over u, of
    mean c(u) + t'u/N + |s - E'u/N|^2/(2 l2), where c(u) = ((1+u) log(1+u) + (1-u) log(1-u))/2; y = (s - E'u/N)/l2.
    """
    f, h = instance.f, instance.f.h
    At = _matrix(f.A).T
    x = cp.Variable(f.shape[0])
    if isinstance(h, sp.Quadratic):
        R, b = cholesky(_matrix(h.P)), 0.0 if h.b is None else h.b
        conjugate = 0.5 * cp.sum_squares(solve_triangular(R, At, trans="T") @ x - solve_triangular(R, b, trans="T"))
    else:
        assert isinstance(h, Risk)
        E, N = _matrix(h.D), _matrix(h.D).shape[0]
        u, s = cp.Variable(N), cp.Variable(f.shape[1])
        entropy = -0.5 * (cp.sum(cp.entr(1 + u)) + cp.sum(cp.entr(1 - u)))
        conjugate = (entropy + h.t @ u) / N + cp.sum_squares(s) / (2.0 * h.l2)
    constraints = [] if isinstance(h, sp.Quadratic) else [s == At @ x - E.T @ u / N]
    problem = cp.Problem(cp.Minimize(_written_out(f.g, x) + conjugate), constraints)
    problem.solve(solver=cp.CLARABEL, **_tolerances(tol, recorder.limit))
    argmax = instance.argmax
    recorder.certify_point(x.value, s.value / h.l2 if argmax is None else argmax(At @ x.value))


def dsp_saddle(instance: Instance, recorder: Recorder, tol: float) -> None:
    """The saddle problem in the form that DSP accepts, which DSP dualises. A is scaled as the rules of DSP ask."""
    f = instance.f
    x, y = cp.Variable(f.shape[0]), cp.Variable(f.shape[1])
    objective = _written_out(f.g, x) + dsp.inner(x, _matrix(f.A) @ y) - _written_out(f.h, y)
    problem = dsp.SaddlePointProblem(dsp.MinimizeMaximize(objective), [])
    problem.solve(solver=cp.CLARABEL, **_tolerances(tol, recorder.limit))
    recorder.certify_point(x.value, y.value)


def _written_out(f: sp.Smooth, x: Any) -> Any:
    """The function g or h as a CVXPY expression."""
    if isinstance(f, sp.Quadratic):
        linear = 0.0 if f.b is None else f.b @ x
        return 0.5 * cp.sum_squares(cholesky(_matrix(f.P)) @ x) + linear
    assert isinstance(f, Risk)
    D = _matrix(f.D)
    if isinstance(f, sp.Logistic):
        loss = cp.sum(cp.logistic(-(f.labels[:, None] * D) @ x))
    else:  # log cosh r = log(1 + exp(2 r)) - r - log 2
        r = D @ x - f.t
        loss = cp.sum(cp.logistic(2.0 * r) - r)
    return loss / D.shape[0] + 0.5 * f.l2 * cp.sum_squares(x)


def _matrix(A: Any) -> Array:
    """The dense array inside a coupling."""
    return np.asarray(A.A)


def _tolerances(tol: float, limit: float) -> dict[str, float]:
    return {"tol_gap_abs": tol, "tol_gap_rel": tol, "tol_feas": tol, "time_limit": limit}
