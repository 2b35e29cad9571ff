"""The memory of Anderson's mixing where few steps of many variables are kept: normal equations.

Such a step takes its time to read and write vectors, so that this memory is read twice in a step, where an orthogonal
basis (``factored.py``) is read three times and its new vector is scaled and measured. Only the differences
d_i = r_i - r_{i-1} of residuals are kept, and their products with each other. The moves z_{i+1} - z_i are combinations
of these and of the last residual; only the coefficients are kept. When the memory is full, all of it is dropped, as in
restarted GMRES.

The coefficients c minimise |r - sum_i c_i d_i| by a Cholesky factorisation of the products, whose rounding errors grow
with the square of the condition number of the differences. For few of them that is harmless: c only has to make the
next residual small, and that is computed anew from the next point.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.linalg.lapack import dposv

from saddlepoint.ground.arrays import Array
from saddlepoint.ground.linalg import norm
from saddlepoint.ground.rows import Rows

MOST = 20  # steps up to which the normal equations are used
RIDGE = 1e-13  # added to the diagonal of the normal equations for each difference; all are scaled to length 1
SAFE = 1e-280, 1e280  # squares between these numbers have lost no digits to underflow, and did not overflow


class Gram(NamedTuple):
    """The last residual r, the differences of residuals, and the moves between the points.

    Attributes:
        r: the last residual.
        length: |r|, of the entries that have a weight; infinite before the first residual.
        differences: its differences; at the start are the entries that have a weight.
        products: of the differences with each other.
        along: their products with r, as a column: a state that is read from a checkpoint may have matrices with more
            rows than the first state has, but no longer vectors.
        moves: a row of coefficients for each move: of the differences, and of r at the end. The last row is the last
            move, whose difference of residuals is not known yet. Without a residual there are no rows.
    """

    r: Array
    length: float
    differences: Rows
    products: Array
    along: Array
    moves: Array

    @classmethod
    def empty(cls, window: int, r: Array) -> Gram:
        """No residuals; they will be vectors like r."""
        none = np.empty((0, 0))
        return cls(r, math.inf, Rows.empty(window, r), none, np.empty((0, 1)), none)

    def emptied(self, r: Array) -> Gram:
        """A memory of the same size without residuals, in the same buffer."""
        none = np.empty((0, 0))
        return Gram(r, math.inf, self.differences.emptied(r), none, np.empty((0, 1)), none)

    def interrupted(self, r: Array) -> Gram:
        """The memory for a run that goes on elsewhere: nothing is kept."""
        return self.emptied(r)

    def measure(self, r: Array, size: int) -> float:
        """The length of the residual r, of which the first ``size`` entries have a weight."""
        return norm(r[:size])

    def with_residual(self, r: Array, size: int, length: float) -> Gram | None:
        """The memory with the next residual, for a plain step from it; None if there is no room, or nothing to add.

        The first ``size`` entries of r have a weight, and ``length`` is theirs.
        """
        if not len(self.moves):
            return self._replace(r=r, length=length, moves=np.ones((1, 1)))
        k, rows = self.differences.count, self.differences
        if rows.full:
            return None
        row = rows.start_row(r, self.r)
        own = rows.buffer[: k + 1, :size] @ row[:size]
        square = float(own[k])
        if not SAFE[0] < square < SAFE[1]:
            return None
        products, moves = np.empty((k + 1, k + 1)), np.zeros((k + 2, k + 2))
        products[:k, :k], products[k], products[:k, k] = self.products, own, own[:k]
        moves[: k + 1, : k + 1], moves[: k + 1, k + 1] = self.moves, self.moves[:, k]
        moves[: k + 1, k] *= -1.0  # the last residual is r minus the new difference
        moves[k + 1, k + 1] = 1.0
        along = own + np.append(self.along[:, 0], 0.0)  # r is the last residual plus the new difference
        along[k] = 0.5 * (square + (length - self.length) * (length + self.length))
        return Gram(r, length, rows.append(row), products, along[:, None], moves)

    def mixed(self) -> tuple[Array, Gram]:
        """The step -dT c, where c minimises |r - dR c|, and the memory with this move in the place of the plain one."""
        size = np.sqrt(self.products.diagonal())
        scaled = self.products / np.outer(size, size)
        scaled.flat[:: len(size) + 1] += RIDGE * len(size)
        _, c, failed = dposv(scaled, self.along[:, 0] / size)
        c = np.zeros(len(size)) if failed else c / size
        moves = self.moves.copy()
        moves[-1] = -(c @ moves[:-1])
        moves[-1, :-1] -= c
        along = float(moves[-1, -1])
        step = self.differences.subtracted(-moves[-1, :-1], self.differences.multiple(along, self.r))
        moves[-1, -1] += 1.0
        return step, self._replace(moves=moves)
