r"""A good start for sparse models: the problem on few features at a time, by Newton's method on their support.

Problem:    min_w risk(w) + l2/2 |w|^2 + p(w), where p is an l1 norm, with bounds on w or without.
Recursion:  W holds the features with w_i != 0, and those where 0 is farthest from the subdifferential. The problem with
            w = 0 outside W is solved, then W is chosen again, until what is left outside W is small enough.
            Within W, S holds the features that are not held at zero or at a bound. On S, p is linear, and a Newton
            step is taken; weights that would change their sign become zero, and steps that do not descend are halved.
Guarantee:  none here. The point is a start: ``solve`` on all features goes on from it and certifies what it returns.
Reference:  M. Massias, A. Gramfort and J. Salmon, Celer: a fast solver for the Lasso with dual extrapolation, ICML
            2018; J. D. Lee, Y. Sun and M. A. Saunders, Proximal Newton-type methods for minimizing composite functions,
            SIAM J. Optim. 2014.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from saddlepoint.ground.arrays import Array, dense
from saddlepoint.ground.linalg import norm
from saddlepoint.ground.time_limit import TimeLimit
from saddlepoint.parts.functions import Quadratic, Smooth
from saddlepoint.parts.functions.risk import Risk
from saddlepoint.parts.simple import Simple
from saddlepoint.problems.saddle import Saddle
from saddlepoint.solving.interruption import uninterrupted
from saddlepoint.solving.solve import solve

FEWEST = 100  # the least number of features that a round adds
ROUNDS = 30  # the most choices of W
NEWTON = 1000  # up to this many features, Newton's method is tried
STEPS = 30  # the most Newton steps of a round
SHARE = 0.25  # the distance that a round asks for and that may be left outside W, relative to tol
FALL = 1e-3  # the distance that a round asks for, relative to what the residual in W before it says


def few_features(
    g: Smooth,
    risk: Risk,
    penalty: Callable[[Array], Simple],
    l2: float,
    tol: float,
    max_seconds: float | None = None,
) -> Array:
    """Weights near the solution, most of them zero.

    Args:
        g: the function of all weights that is to be minimised.
        risk: the risk in it, without l2; its data are an array or a SciPy sparse array.
        penalty: the simple term of the weights with the given numbers.
        l2: the multiple of |w|^2/2.
        tol: the distance to the solution that is wanted.
        max_seconds: wall-clock limit.
    """
    assert risk.D is not None
    assert g.simple is not None
    limit, (N, n) = TimeLimit(max_seconds), risk.D.shape
    everything, p = np.arange(n), g.simple
    w, Dw = np.zeros(n), np.zeros(N)
    if n <= FEWEST:
        w, residual = newton(g.without_term, p, w, SHARE * SHARE * l2 * tol)
        if residual <= SHARE * l2 * tol:
            return w
        Dw = risk.D.mul(w)
    W, goal = everything[:0], math.inf
    for _ in range(ROUNDS):
        slope = risk.gradient_from(Dw, w) + l2 * w
        excess = np.abs(slope + p.subgradient(w, -slope))
        outside = excess.copy()
        outside[W] = 0.0
        arrived = goal <= SHARE * tol and norm(outside) <= SHARE * l2 * tol
        if arrived or limit.is_over:
            break
        used = np.flatnonzero(w)
        more = min(max(FEWEST, 2 * used.size), n)
        worst = np.argpartition(outside, n - more)[n - more :]
        W = everything if n <= FEWEST else np.union1d(used, worst[outside[worst] > 0.0])
        if not W.size or not excess.any():  # all weights are zero at the solution
            break
        own, term = risk if W.size == n else risk.with_columns(W), penalty(W)
        part = g.without_term if W.size == n else with_ridge(own, l2)
        goal = max(SHARE * tol, FALL * norm(excess[W]) / l2)
        start = w[W]
        found, residual = newton(part, term, start, SHARE * l2 * goal) if W.size <= NEWTON else (start, math.inf)
        if residual > l2 * goal:
            f = Saddle(part + term, Quadratic(1.0), np.zeros((W.size, 1)))
            found = uninterrupted(solve(f, found, tol=goal, max_seconds=limit.left, history=False)).x
        elif residual <= l2 * SHARE * tol:
            goal = SHARE * tol
        w = np.zeros(n)
        w[W] = found
        assert own.D is not None
        Dw = own.D.mul(found)
    return w


def with_ridge(risk: Smooth, l2: float) -> Smooth:
    """The function risk + l2/2 |w|^2; a risk without l2 computes it in its own gradient, which takes fewer products."""
    return risk.with_l2(l2) if isinstance(risk, Risk) and risk.l2 == 0.0 else risk + Quadratic(l2)


def newton(g: Smooth, p: Simple, w: Array, goal: float) -> tuple[Array, float]:
    """A point and the size of the residual of g + p there: at most ``goal``, unless no further step descended."""
    if g.hessian is None or g.value is None:
        return w, _excess(g, p, w)
    value = g(w) + p(w)
    for _ in range(STEPS):
        slope = g.grad(w)
        residual = slope + p.subgradient(w, -slope)
        size = norm(residual)
        if size <= goal:
            return w, size
        S = np.flatnonzero((w != 0.0) | (residual != 0.0))
        step = np.zeros_like(w)
        step[S] = np.linalg.solve(_hessian(g, w, S), -residual[S])
        side = np.where(w != 0.0, np.sign(w), -np.sign(residual))
        for _ in range(STEPS):
            moved = w + step
            moved = np.asarray(p.project(np.where(moved * side > 0.0, moved, 0.0)))
            found = g(moved) + p(moved)
            if found <= value:
                break
            step *= 0.5
        if not found <= value or np.array_equal(moved, w):
            return w, size
        w, value = moved, found
    return w, _excess(g, p, w)


def _hessian(g: Smooth, w: Array, S: Array) -> Array:
    """The Hessian at w in the coordinates S, outside of which w is zero."""
    assert g.hessian is not None
    if isinstance(g, Risk) and S.size < w.size and w.size > FEWEST:
        part = g.with_columns(S)
        assert part.hessian is not None
        return dense(part.hessian(w[S]))
    return np.asarray(dense(g.hessian(w))[np.ix_(S, S)])


def _excess(g: Smooth, p: Simple, w: Array) -> float:
    """The distance of 0 from the subdifferential of g + p at w."""
    slope = g.grad(w)
    return norm(slope + p.subgradient(w, -slope))
