r"""Good starts for total variation denoising. They prove nothing: ``solve`` certifies the point or goes on from it.

Problem:    min_x 1/2 |x - b|^2 + p(x) + weight sum_p |(K x)_p| with a simple term p.
Recursion:  x = prox_p(b - K'y) minimises for a given y, and the dual function of y has a gradient K x with the constant
            |K|^2 <= 4 d in d dimensions. Accelerated projected gradient steps, begun anew where they overshoot:
            x = prox_p(b - K'z),  y_{k+1} = project(z + K x/(4 d)),  z = y_{k+1} + beta_k (y_{k+1} - y_k).
            In one dimension, dynamic programming finds the solution itself.
Reference:  A. Beck and M. Teboulle, Fast gradient-based algorithms for constrained total variation image denoising and
            deblurring problems, IEEE Trans. Image Process. 2009; N. Johnson, A dynamic programming algorithm for the
            fused lasso and l0-segmentation, J. Comput. Graph. Statist. 2013.
"""

from __future__ import annotations

import math
from collections import deque

import numpy as np

from saddlepoint.ground.arrays import Array
from saddlepoint.ground.time_limit import TimeLimit
from saddlepoint.parts.simple import Simple

STEPS = 20_000  # the most steps on the dual problem
FIRST_CHECK, GROWTH = 20, 1.25  # the step at which the gap is first computed, and the factor to the next such step
TIME_SHARE = 0.8  # share of the time limit that steps on the dual problem may take; the rest is for the certified run
SHARE = 0.9  # the gap that is aimed at, relative to what is asked for: rounding is added by the certificate


def dual_gradient(
    b: Array, weight: float, isotropic: bool, term: Simple | None, gap: float, max_seconds: float | None
) -> tuple[Array, Array]:
    """x and y with a duality gap of about ``gap``, as vectors.

    Args:
        b: the image, with the channels as its first axis.
        weight: the largest length of y at a pixel.
        isotropic: whether lengths are Euclidean; otherwise every entry of y is bounded.
        term: the simple term of x, or None.
        gap: the duality gap to reach.
        max_seconds: wall-clock limit.
    """
    limit, d = TimeLimit(None if max_seconds is None else TIME_SHARE * max_seconds), b.ndim - 1
    y = np.zeros((d, *b.shape))
    z, step, t, check = y.copy(), 1.0 / (4.0 * d), 1.0, FIRST_CHECK
    for k in range(STEPS):
        new = differences(_primal(b, z, term))
        new *= step
        new += z
        _project(new, weight, isotropic)
        y, old = new, y
        move = y - old
        if np.vdot(z - y, move) > 0.0:  # the momentum points uphill
            t = 1.0
        following = 0.5 * (1.0 + math.sqrt(1.0 + 4.0 * t * t))
        z = move
        z *= (t - 1.0) / following
        z += y
        t = following
        if k == check:
            check = math.ceil(GROWTH * check)
            if limit.is_over or _gap(_primal(b, y, term), y, weight, isotropic) <= SHARE * gap:
                break
    return _primal(b, y, term).ravel(), y.ravel()


def differences(x: Array) -> Array:
    """K x: along each axis after the first, the next entry minus this one, and zero at the end of a line."""
    found = np.zeros((x.ndim - 1, *x.shape))
    for axis in range(1, x.ndim):
        line = np.moveaxis(x, axis, 0)
        np.subtract(line[1:], line[:-1], out=np.moveaxis(found[axis - 1], axis, 0)[:-1])
    return found


def _primal(b: Array, y: Array, term: Simple | None) -> Array:
    """The x that is best against y: prox(b - K'y)."""
    x = b.copy()
    for axis in range(1, b.ndim):
        out, field = np.moveaxis(x, axis, 0), np.moveaxis(y[axis - 1], axis, 0)[:-1]
        out[:-1] += field
        out[1:] -= field
    return x if term is None else np.reshape(term.prox(x.ravel(), 1.0), b.shape)


def _project(y: Array, weight: float, isotropic: bool) -> None:
    """Shorten y in place where it is longer than the weight."""
    if not isotropic:
        np.clip(y, -weight, weight, out=y)
        return
    size = np.einsum("dc...,dc...->...", y, y)
    np.sqrt(size, out=size)
    np.maximum(size, weight, out=size)
    np.divide(weight, size, out=size)
    y *= size


def _gap(x: Array, y: Array, weight: float, isotropic: bool) -> float:
    """weight sum |(K x)_p| - <K x, y>, the duality gap if x is best against y."""
    z = differences(x)
    total = np.sqrt(np.einsum("dc...,dc...->...", z, z)).sum() if isotropic else np.abs(z).sum()
    return float(weight * total - np.vdot(z, y))


def one_dimension(b: Array, weight: float) -> Array:
    """The solution in one dimension without a simple term, in one pass forth and one back.

    The best value of the entries up to i, as a function of x_i, is convex, and its derivative is piecewise linear: a
    line for the far left, and at each knot a change of slope and offset. The next difference cuts the derivative off at
    -weight and weight; the points ``low`` and ``high`` where this happens bound x_i by x_{i+1} on the way back.
    """
    values, n = b.tolist(), b.shape[0]
    knots: deque[tuple[float, float, float]] = deque()
    lows, highs = [0.0] * n, [0.0] * n
    slope, left, right = 1.0, -values[0], -values[0]
    for i in range(n):
        goal = weight if i < n - 1 else 0.0  # at the end the derivative is to be zero
        a, c = slope, left
        while knots and a * knots[0][0] + c < -goal:
            _, da, dc = knots.popleft()
            a, c = a + da, c + dc
        low = (-goal - c) / a
        e, f = slope, right
        while knots and e * knots[-1][0] + f > goal:
            _, da, dc = knots.pop()
            e, f = e - da, f - dc
        high = (goal - f) / e
        lows[i], highs[i] = low, high
        if i < n - 1:
            knots.appendleft((low, a, c + weight))
            knots.append((high, -e, weight - f))
            left, right = -weight - values[i + 1], weight - values[i + 1]
    x = np.empty(n)
    now = lows[-1]
    for i in range(n - 1, -1, -1):
        now = min(max(now, lows[i]), highs[i])
        x[i] = now
    return x
