"""The memory of Anderson's mixing where a step has kinks: the latest steps, and least squares over all of them.

The map T of a method with simple terms is another one on each face of their domains. The oldest differences of
residuals are therefore dropped one quarter at a time, and nothing is computed from a factorisation that would have to
be begun anew. Once a few steps have ended on one face, those from earlier faces are dropped. The coefficients c
minimise |r - dR c| over all differences that are kept, by their products with each other; a tiny multiple of the
identity makes them unique and short where the differences are nearly dependent, as they soon are on a face of few
dimensions.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.linalg.lapack import dposv

from saddlepoint.ground.arrays import Array, to_host
from saddlepoint.ground.linalg import Rows, norm

RIDGE = 1e-14  # the multiple of the identity, relative to the sum of the squares of differences of length 1
STEADY = 5  # steps on one face after which the differences from earlier faces are dropped
DROPPED = 4  # one part in so many is dropped when the memory is full


class Window(NamedTuple):
    """The last residual, and the latest differences of residuals and of outputs of T.

    Attributes:
        r: the last residual.
        changes: differences of residuals.
        outputs: the differences of T that belong to them.
        products: the products of the differences of residuals and of r, which is the last, with each other; without a
            residual it has no rows.
        steady: number of steps since a step has last ended on another face than the one before.
    """

    r: Array
    changes: Rows
    outputs: Rows
    products: Array
    steady: int = 0

    @classmethod
    def empty(cls, window: int, r: Array) -> Window:
        """No residuals; they will be vectors like r."""
        return cls(r, Rows.empty(window, r), Rows.empty(window, r), np.empty((0, 0)))

    def emptied(self, r: Array) -> Window:
        """A memory of the same size without residuals."""
        return Window.empty(self.changes.most, r)

    def look(self, r: Array, size: int) -> float:
        """The length of the residual r, whose first ``size`` entries have a weight."""
        return norm(r[:size])

    def with_residual(self, r: Array, size: int, length: float, output: Array) -> Window:
        """The memory with the next residual, whose length ``look`` has returned.

        ``output`` is the difference of T since the last residual; it is not used for the first one.
        """
        if not len(self.products):
            return self._replace(r=r, products=np.full((1, 1), length * length))
        kept = self.shortened() if self.changes.full else self
        change, k = r - self.r, kept.changes.count
        changes = kept.changes.append(change)
        rows = changes.matrix[:, :size]
        products = np.empty((k + 2, k + 2))
        products[:k, :k] = kept.products[:k, :k]
        for i, own in enumerate((_on_host(rows @ change[:size]), _on_host(rows @ r[:size]))):
            products[: k + 1, k + i] = products[k + i, : k + 1] = own
        products[-1, -1] = length * length
        return Window(r, changes, kept.outputs.append(output), products, self.steady)

    def shortened(self) -> Window:
        """The memory without its oldest quarter."""
        return self.latest(self.changes.count - max(1, self.changes.count // DROPPED))

    def on_face(self, is_same: bool) -> Window:
        """The memory after a step that has ended on the face of the one before, or on another one.

        After a few steps on one face, the differences from earlier faces are dropped, because they belong to another T.
        """
        steady = self.steady + 1 if is_same else 0
        kept = self.latest(STEADY) if steady == STEADY and self.changes.count > STEADY else self
        return kept._replace(steady=steady)

    def latest(self, count: int) -> Window:
        """The memory of the latest differences."""
        changes, outputs = self.changes.latest(count, self.r), self.outputs.latest(count, self.r)
        return Window(self.r, changes, outputs, self.products[-count - 1 :, -count - 1 :], self.steady)

    def mixed(self) -> Array | None:
        """The step -dT c, where c minimises |r - dR c|; None if there are no differences, or none that are numbers."""
        squares = np.diagonal(self.products)[:-1]
        if not squares.size or not math.isfinite(float(self.products.sum())):
            return None
        lengths = np.where(squares > 0.0, np.sqrt(squares), 1.0)
        scaled = self.products[:-1, :-1] / lengths / lengths[:, None]
        scaled[np.diag_indices_from(scaled)] += RIDGE * len(lengths)
        c, failed = dposv(scaled, self.products[:-1, -1] / lengths, lower=1)[1:]
        return None if failed else self.outputs.combined(-c / lengths, self.r)


def _on_host(numbers: Array) -> Array:
    return np.asarray(to_host(numbers), dtype=np.float64)
