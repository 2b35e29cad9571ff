"""Rows and columns of a program scaled to similar sizes, and the way back.

Reference: D. Ruiz, A scaling algorithm to equilibrate both rows and columns norms in matrices, report RAL-TR-2001-034.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array, diags_array, issparse

from saddlepoint.apps.programs.data import Data
from saddlepoint.ground.arrays import Array, dense
from saddlepoint.ground.rounding import nearest_power_of_two

ROUNDS = 10  # rounds of scaling
FAR = 1e-300  # size of an objective that is not scaled further
DISTANT = 1e3  # size of a bound, relative to the median of the ends of rows, from which it is tried without
LIMIT = 1e8  # largest factor of a row or column; the smallest one is its inverse


class Scaled(NamedTuple):
    """The program in x/columns, with rows and objective multiplied by factors that are powers of two."""

    data: Data
    columns: Array
    rows: Array
    objective: float

    def back(self, x: Array, y: Array) -> tuple[Array, Array]:
        """A point and multipliers of the given program."""
        return x * self.columns, y * self.rows / self.objective


def scaled(data: Data) -> Scaled:
    """The program with rows and columns whose largest entries are about 1."""
    m, n = data.shape
    columns, rows = np.ones(n), np.ones(m)
    P = None if data.P is None else abs(data.P)
    A = abs(data.A)
    for _ in range(ROUNDS):
        in_rows, in_columns = _largest(A, rows, columns)
        if P is not None:
            in_columns = np.maximum(in_columns, _largest(P, columns, columns)[1])
        rows, columns = rows / _root(in_rows), columns / _root(in_columns)
    rows, columns = (nearest_power_of_two(np.clip(v, 1 / LIMIT, LIMIT)) for v in (rows, columns))
    unit = _unit(data, rows, columns)
    rows, columns = rows / unit, columns * unit
    size = float(np.max(np.abs(data.q * columns), initial=0.0))
    return _with_factors(data, columns, rows, _inverse(size))


def resized(data: Data, form: Scaled, point: float, slope: float) -> Scaled:
    """The program with x in units of the largest entry of a point, and an objective with a slope of about 1 there."""
    unit = _power(point) if point > 1.0 / LIMIT else 1.0
    objective = np.clip(form.objective * _inverse(slope) / unit, FAR, 1.0 / FAR)
    return _with_factors(data, form.columns * unit, form.rows / unit, float(nearest_power_of_two(objective)))


def without_far_bounds(data: Data) -> Data | None:
    """The program without the bounds of x that are far beyond the ends of its rows; None if there are none.

    Such bounds are often written where none is meant. A method that starts halfway between them begins far from the
    solution.
    """
    part = scaled(data).data
    rows, columns = _sizes(part.lower, part.upper), _sizes(part.x_lower, part.x_upper)
    if not columns.size:
        return None
    far = DISTANT * float(np.median(rows) if rows.size else columns.min())
    below, above = np.isfinite(part.x_lower) & (part.x_lower < -far), np.isfinite(part.x_upper) & (part.x_upper > far)
    if not (below.any() or above.any()):
        return None
    return replace(data, x_lower=np.where(below, -np.inf, data.x_lower), x_upper=np.where(above, np.inf, data.x_upper))


def _power(size: float) -> float:
    """The power of two closest to a size that is not extreme."""
    return float(nearest_power_of_two(np.clip(size, 1.0 / LIMIT, LIMIT)))


def _inverse(size: float) -> float:
    """The power of two closest to the inverse of the size of an objective; 1 for none."""
    return float(nearest_power_of_two(1.0 / np.clip(size, FAR, 1.0 / FAR))) if 0.0 < size < np.inf else 1.0


def _with_factors(data: Data, columns: Array, rows: Array, factor: float) -> Scaled:
    ends = (data.lower * rows, data.upper * rows, data.x_lower / columns, data.x_upper / columns)
    P = None if data.P is None else _times(factor * columns, data.P, columns)
    return Scaled(Data(P, factor * columns * data.q, _times(rows, data.A, columns), *ends), columns, rows, factor)


def _unit(data: Data, rows: Array, columns: Array) -> float:
    """A power of two of the size of the ends of rows and variables, in units of the scaled ones."""
    with np.errstate(all="ignore"):
        ends = np.concatenate([data.lower * rows, data.upper * rows, data.x_lower / columns, data.x_upper / columns])
    sizes = _sizes(ends)
    return _power(float(np.median(sizes))) if sizes.size else 1.0


def _sizes(*ends: Array) -> Array:
    """The absolute values of ends that are neither zero nor infinite."""
    found = np.concatenate(ends)
    return np.asarray(np.abs(found[np.isfinite(found) & (found != 0.0)]))


def _largest(M: Any, rows: Array, columns: Array) -> tuple[Array, Array]:
    """The largest entries in the rows, and in the columns, of a matrix without negative entries after scaling."""
    if 0 in M.shape:
        return np.zeros(M.shape[0]), np.zeros(M.shape[1])
    S = _times(rows, M, columns)
    ends = (S.max(axis=1), S.max(axis=0))
    in_rows, in_columns = (dense(v).ravel() for v in ends)
    return in_rows, in_columns


def _times(rows: Array, M: Any, columns: Array) -> Any:
    """The matrix with rows and columns multiplied by factors."""
    if issparse(M):
        return csr_array(diags_array(rows) @ M @ diags_array(columns))
    return rows[:, None] * M * columns


def _root(v: Array) -> Array:
    """The square roots; 1 where an entry is zero."""
    return np.sqrt(np.where(v > 0.0, v, 1.0))
