"""The memory of Anderson's mixing on problems that are not large: the latest steps, and least squares over all of them.

The coefficients c minimise |r - dR c| over all differences of residuals that are kept, by a Cholesky factorisation of
their products with each other, to which each step adds a row. A small number that is added to its diagonal makes them
unique and short where the differences are nearly dependent, as they soon are where the variables are few, or old
differences are much longer than new ones. When the memory is full, the oldest quarter is dropped, and the rest is
factorised anew.

For an affine T the next residual would be about as long as r - dR c. If it is several times as long, and longer than r,
T is far from affine between these points, and all differences but the newest are dropped.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.linalg.blas import dtpsv

from saddlepoint.ground.arrays import Array
from saddlepoint.ground.linalg import norm
from saddlepoint.ground.rows import Rows

RIDGE = 1e-12  # what is added to the diagonal, relative to the number of differences, whose length is 1
DROPPED = 4  # one part in so many is dropped when the memory is full
FAR = 5.0  # times the predicted length of the next residual, from which T is taken to be far from affine
LARGEST = float(np.finfo(np.float64).max)


class Latest(NamedTuple):
    """The present point, its residual, and the latest differences of residuals and of outputs of T.

    Attributes:
        point: z_k, the arrays of a state as one vector; at its start are those that have a weight.
        scale: the weights of these entries.
        output: T(z_{k-1}), which is not used before there is a residual.
        r: the residual of z_{k-1}.
        length: |r|; infinite before the first residual.
        changes: differences of residuals, divided by their lengths.
        outputs: the differences of T that belong to them, divided by the same numbers.
        products: in row i, the products of the i-th change with those before it and with itself.
        factor: the rows of the Cholesky factor of the products, one after the other.
        along: the products of the changes with r, as a column: a state that is read from a checkpoint may have matrices
            with more rows than the first state has, but no longer vectors.
        trusted: the length of the next residual up to which T is taken to be about affine.
    """

    point: Array
    scale: Array
    output: Array
    r: Array
    length: float
    changes: Rows
    outputs: Rows
    products: Array
    factor: Array
    along: Array
    trusted: float = math.inf

    @classmethod
    def empty(cls, window: int, point: Array, scale: Array) -> Latest:
        """No residuals, at this point."""
        changes, outputs = Rows.empty(window, scale), Rows.empty(window, point)
        products, factor = np.zeros((window, window)), np.zeros(window * (window + 1) // 2)
        return cls(point, scale, point, scale, math.inf, changes, outputs, products, factor, np.empty((0, 1)))

    def emptied(self, r: Array) -> Latest:
        """A memory of the same size without residuals."""
        return Latest.empty(self.changes.most, self.point, self.scale)

    def interrupted(self, r: Array) -> Latest:
        """The memory for a run that goes on elsewhere: nothing is kept."""
        return self.emptied(r)

    def moved(self, point: Array) -> Latest:
        """The memory at another point."""
        return self._replace(point=point)

    def residual(self, output: Array) -> tuple[Array, int]:
        """The residual of the present point, whose T is given, in the entries that have a weight, and their number."""
        size = len(self.scale)
        r: Array = output[:size] - self.point[:size]
        r *= self.scale
        return r, size

    def measure(self, r: Array, size: int) -> float:
        """The length of the residual r."""
        return norm(r)

    def with_residual(self, r: Array, length: float, output: Array) -> Latest:
        """The memory with the residual of the present point, its length, and T of the point, which is the next one."""
        if self.length == math.inf:
            return self._replace(point=output, output=output, r=r, length=length)
        kept = self.latest(0) if length > self.trusted else self.shortened() if self.changes.full else self
        k, changes, outputs = kept.changes.count, kept.changes.buffer, kept.outputs.buffer
        change = np.subtract(r, self.r, out=changes[k])
        distance = norm(change)
        scale = 1.0 / distance if distance > 1.0 / LARGEST else 1.0
        change *= scale
        rows = changes[: k + 1]
        kept.products[k, : k + 1] = own = rows @ change
        _append_row(kept.factor, k, own)
        np.subtract(output, self.output, out=outputs[k])
        outputs[k] *= scale
        return kept._replace(
            point=output,
            output=output,
            r=r,
            length=length,
            changes=Rows(changes, k + 1),
            outputs=Rows(outputs, k + 1),
            along=(rows @ r)[:, None],
            trusted=math.inf,
        )

    def shortened(self) -> Latest:
        """The memory without its oldest quarter."""
        return self.latest(self.changes.count - max(1, self.changes.count // DROPPED))

    def latest(self, count: int) -> Latest:
        """The memory of the latest differences."""
        first = self.changes.count - count
        changes, outputs = self.changes.latest(count, self.scale), self.outputs.latest(count, self.point)
        products, factor = np.zeros_like(self.products), np.zeros_like(self.factor)
        products[:count, :count] = self.products[first : first + count, first : first + count]
        for k in range(count):
            _append_row(factor, k, products[k, : k + 1])
        return self._replace(
            changes=changes, outputs=outputs, products=products, factor=factor, along=self.along[first:]
        )

    def mixed(self) -> Latest:
        """The memory with the next point T(z_k) - dT c, where c minimises |r - dR c|.

        It knows how long the residual there may be. Nothing is changed if there are no differences, or none that are
        numbers.
        """
        k, along = self.changes.count, self.along[:, 0]
        if not k or not math.isfinite(float(along.sum())):
            return self
        factor = self.factor[: k * (k + 1) // 2]
        c = dtpsv(k, factor, dtpsv(k, factor, along, trans=1))
        square = self.length * self.length
        trusted = math.sqrt(max(square, FAR * FAR * (square - float(c @ along))))
        return self._replace(point=self.output - c @ self.outputs.buffer[:k], trusted=trusted)


def _append_row(factor: Array, k: int, products: Array) -> None:
    """Write row k of the Cholesky factor, from the products of the k-th difference with those up to it."""
    start = k * (k + 1) // 2
    row, ridge = factor[start : start + k + 1], RIDGE * (k + 1)
    if k:
        row[:k] = dtpsv(k, factor[:start], products[:k], trans=1)
    row[k] = math.sqrt(max(float(products[k]) + ridge - float(row[:k] @ row[:k]), 0.5 * ridge))
