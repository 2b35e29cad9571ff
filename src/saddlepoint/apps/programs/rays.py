r"""Rays that prove that a program has no solution.

Infeasible:  y proves it if the minimum of <A'y, x> over the bounds of x exceeds sum_i max(l_i y_i, u_i y_i): a point
             that satisfies the program would make the first at most the second (Farkas' lemma). Such a y is looked for
             by the program that minimises the largest violation of a row, whose optimal value is proven to be positive.
Unbounded:   d proves it, together with one point that satisfies the program, if P d = 0, q'd < 0, and no row and no
             bound stops a step along d, however long. It is looked for by minimising q'd over -1 <= d <= 1.
"""

from __future__ import annotations

import math
from contextlib import suppress

import numpy as np
from scipy.sparse import csr_array, hstack, vstack

from saddlepoint.apps.programs.certificate import lower_bound
from saddlepoint.apps.programs.data import Data
from saddlepoint.apps.programs.evidence import Evidence
from saddlepoint.apps.programs.exact import Exact, TooLongError, is_small
from saddlepoint.apps.programs.implied_equations import Implied, implied
from saddlepoint.apps.programs.pivoting import by_pivoting, largest_one
from saddlepoint.ground.arrays import Array, dense


def without_objective(data: Data) -> Data:
    """The program of finding a point."""
    return Data(None, np.zeros(data.q.size), data.A, data.lower, data.upper, data.x_lower, data.x_upper)


def proves_infeasible(data: Data, y: Array, exactly: bool = True) -> bool:
    """Whether multipliers prove that no point satisfies the program.

    ``exactly`` allows rational arithmetic, with what the equations imply in it.
    """
    plain = without_objective(data)
    if _proves(plain, y, exactly):
        return True
    if not exactly or not is_small(plain):
        return False
    found = implied(plain) or Implied(plain)
    if _proves(found.data, y, True):
        return True
    ray = _exact_ray(found.data) if found.ray is None else found.ray
    # The ray proves it by itself; y names its rows, by multipliers of the right signs.
    return ray is not None and bool((y * ray > 0.0)[ray != 0.0].all())


def _exact_ray(plain: Data) -> Array | None:
    """The multipliers, rounded, that prove a very small program infeasible in exact arithmetic; None if none do."""
    with suppress(TooLongError):
        found = by_pivoting(Exact(plain), objective=False)
        if found is not None and found.is_ray:
            return largest_one(found.y)
    return None


def _proves(plain: Data, y: Array, exactly: bool) -> bool:
    """Whether multipliers of the rows, as they were given, prove it."""
    x = np.clip(np.zeros(plain.q.size), plain.x_lower, plain.x_upper)
    return lower_bound(plain, x, y).value > 0.0 or (exactly and is_small(plain) and Exact(plain).farkas(y))


def row_ray(data: Data) -> Array | None:
    """Multipliers of one row that prove that the bounds of x contradict it; None if they contradict no single row."""
    m = data.shape[0]
    rows = data.rows
    row = np.repeat(np.arange(m), np.diff(rows.indptr))
    low, high = data.x_lower[rows.indices], data.x_upper[rows.indices]
    with np.errstate(all="ignore"):
        least = np.bincount(row, np.where(rows.data > 0.0, rows.data * low, rows.data * high), m)
        most = np.bincount(row, np.where(rows.data > 0.0, rows.data * high, rows.data * low), m)
    for i in np.flatnonzero((least > data.upper) | (most < data.lower))[:10]:
        y = np.zeros(m)
        y[i] = 1.0 if least[i] > data.upper[i] else -1.0
        if proves_infeasible(data, y):
            return y
    return None


def violation_program(data: Data) -> Data:
    """min t subject to l - t a <= A x <= u + t a, in (x, t), where a has the largest entries of the rows."""
    m, n = data.shape
    sizes = dense(abs(data.rows).max(axis=1)).ravel() if data.rows.nnz else np.ones(m)
    ones = csr_array(np.where(sizes > 0.0, sizes, 1.0)[:, None])
    A = csr_array(vstack([hstack([data.rows, -ones]), hstack([data.rows, ones])]))
    x = np.clip(np.zeros(n), data.x_lower, data.x_upper)
    most = 2.0 * data.violation(x) + 1.0
    return Data(
        None,
        np.append(np.zeros(n), 1.0),
        A,
        np.concatenate([np.full(m, -np.inf), data.lower]),
        np.concatenate([data.upper, np.full(m, np.inf)]),
        np.append(data.x_lower, 0.0),
        np.append(data.x_upper, most if math.isfinite(most) else np.inf),
    )


def farkas_multipliers(y: Array) -> Array:
    """Multipliers of a program's rows from those of its ``violation_program``."""
    m = y.size // 2
    y = np.maximum(y[:m], 0.0) + np.minimum(y[m:], 0.0)
    size = float(np.max(np.abs(y), initial=0.0))
    return y / size if size > 0.0 else y


def ray_program(data: Data) -> Data:
    """min q'd over the directions d, |d_i| <= 1, along which no row, no bound and no growth of x'Px ends a step."""
    n = data.q.size
    rows, low, high = (
        data.rows,
        np.where(np.isfinite(data.lower), 0.0, -np.inf),
        np.where(np.isfinite(data.upper), 0.0, np.inf),
    )
    if data.P is not None:
        rows = csr_array(vstack([rows, csr_array(data.P)]))
        low, high = np.append(low, np.zeros(n)), np.append(high, np.zeros(n))
    x_low, x_high = np.where(np.isfinite(data.x_lower), 0.0, -1.0), np.where(np.isfinite(data.x_upper), 0.0, 1.0)
    return Data(None, data.q, rows, low, high, x_low, x_high)


def proves_unbounded(data: Data, d: Array) -> bool:
    """Whether there is, close to d, a direction along which the objective decreases without bound.

    A program with such a direction and a point that satisfies it is unbounded.
    """
    size = float(np.max(np.abs(d), initial=0.0))
    if not 0.0 < size < math.inf:
        return False
    rays = Evidence(ray_program(data))
    rays.add_point(d / size)
    if rays.upper >= 0.0:
        rays.add_exactly(d / size, np.zeros(rays.data.shape[0]))
    return rays.upper < 0.0
