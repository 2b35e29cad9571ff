"""The memory of Anderson's mixing where a step has kinks: the latest steps, as they would be on the present face.

The map T of a method with simple terms is another one on each face of their domains. Where z moves by dz and T by dT on
one face, T would move by P dT on a smaller face, where P leaves out the moves off that face. So a residual r = T(z) - z
that has changed by dr = dT - dz would have changed by P dT - dz = P dr - (I - P) dz. The coefficients c minimise
|r - sum_i c_i (P dr_i - (I - P) dz_i)| over all steps that are kept, and T moves by -P sum_i c_i dT_i. Where a face
becomes larger, the steps before miss the moves in the new directions, which the steps that follow add.

The products of the changes are computed from all of them when a step has ended on another face, and grow by a column
otherwise. A tiny multiple of the identity makes c unique and short where the changes are nearly dependent, as they soon
are on a face of few dimensions. The oldest steps are dropped one quarter at a time when the memory is full, and one
half when a combination has failed or no residual has been smaller for long, because steps from other faces may
contradict those on this one. A method whose states have more than x and y, such as LPD-GS, has no such P; there the
steps from earlier faces are dropped once a few steps have ended on one face.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg.lapack import dposv

from saddlepoint.ground.arrays import Array, namespace, space_of
from saddlepoint.ground.linalg import norm
from saddlepoint.ground.rows import Rows
from saddlepoint.methods.wrappers.factored import on_host
from saddlepoint.problems.saddle import Saddle

RIDGE = 1e-14  # the multiple of the identity, relative to the sum of the squares of changes of length 1
STUCK = 12  # steps without a smaller residual, after which the older half is dropped
STEADY = 5  # steps on one face, after which those from earlier faces are dropped where P is not known
DROPPED = 4  # one part in so many is dropped when the memory is full

Along = Callable[[Array], Array]  # the part of a vector, or of the rows of a matrix, along a face


class Window(NamedTuple):
    """The last residual, and the latest changes of residuals and of outputs of T.

    Attributes:
        r: the last residual.
        changes: the changes of residuals.
        outputs: the changes of T that belong to them.
        products: the products of the changes with each other, as they would be on the face of the last step.
        toward: the products of the same with r, a column, because a matrix in a checkpoint may have grown.
        is_begun: whether the next residual is compared with r.
        stuck: number of steps since the smallest residual, or since changes were dropped for that reason.
        steady: number of steps since a step has last ended on another face than the one before.
    """

    r: Array
    changes: Rows
    outputs: Rows
    products: Array
    toward: Array
    is_begun: bool = False
    stuck: int = 0
    steady: int = 0

    @classmethod
    def empty(cls, window: int, r: Array) -> Window:
        """No residuals; they will be vectors like r."""
        return cls(r, Rows.empty(window, r), Rows.empty(window, r), np.empty((0, 0)), np.empty((0, 1)))

    def emptied(self, r: Array) -> Window:
        """A memory of the same size without residuals."""
        return Window.empty(self.changes.most, r)

    def measure(self, r: Array, size: int) -> float:
        """The length of the residual r, whose first ``size`` entries have a weight."""
        return norm(r[:size])

    def with_residual(
        self, r: Array, size: int, output: Array, along: Along | None = None, is_same_face: bool = True
    ) -> Window:
        """The memory with the next residual.

        Args:
            r: the residual; its first ``size`` entries have a weight.
            size: number of these entries.
            output: the change of T since the last residual; it is not used for the first one.
            along: the moves along the face on which the step has ended; None for all moves.
            is_same_face: whether the step before has ended on the same face.
        """
        kept, grows, change = self, self.is_begun and is_same_face, r - self.r
        if self.is_begun:
            kept = self.shortened() if self.changes.full else self
            kept = kept._replace(changes=kept.changes.append(change), outputs=kept.outputs.append(output))
        count = kept.changes.count
        if not count:
            return kept._replace(r=r, is_begun=True)
        dR, dT = kept.changes.stored[:, :size], kept.outputs.stored[:, :size]
        rows = [r[:size], change[:size], output[:size] - change[:size]] if grows else [r[:size]]
        toward, *column = (on_host(numbers)[:count] for numbers in _products_with(dR, dT, rows, along))
        products = _grown(kept.products, column[0]) if grows else on_host(_all_products(dR, dT, along))[:count, :count]
        return Window(r, kept.changes, kept.outputs, products, toward[:, None], True, self.stuck, self.steady)

    def shortened(self, part: int = DROPPED) -> Window:
        """The memory without its oldest part, one in ``part``."""
        return self.latest(self.changes.count - max(1, self.changes.count // part))

    def after(self, is_smaller: bool, is_same_face: bool, along: Along | None) -> Window:
        """What is kept after a step whose residual is smaller than all before, or not."""
        stuck, steady = 0 if is_smaller else self.stuck + 1, self.steady + 1 if is_same_face else 0
        kept = self._replace(stuck=stuck, steady=steady)
        if along is None:
            return kept.latest(STEADY) if steady == STEADY and self.changes.count > STEADY else kept
        return kept.shortened(2)._replace(stuck=0) if stuck == STUCK else kept

    def latest(self, count: int) -> Window:
        """The memory of the latest changes."""
        if count <= 0:
            return self.emptied(self.r)._replace(is_begun=self.is_begun, stuck=self.stuck, steady=self.steady)
        changes, outputs = self.changes.latest(count, self.r), self.outputs.latest(count, self.r)
        products, toward = self.products[-count:, -count:], self.toward[-count:]
        return self._replace(changes=changes, outputs=outputs, products=products, toward=toward)

    def interrupted(self, r: Array) -> Window:
        """The newer half of the memory, for a run that goes on elsewhere: no change since r is counted."""
        return self.shortened(2)._replace(is_begun=False)

    def mixed(self, along: Along | None = None) -> Array | None:
        """The move of T, -P sum_i c_i dT_i; None if there are no changes, or none that are numbers."""
        squares = np.diagonal(self.products)
        if not squares.size or not math.isfinite(float(self.products.sum() + self.toward.sum())):
            return None
        lengths = np.where(squares > 0.0, np.sqrt(squares), 1.0)
        scaled = self.products / lengths / lengths[:, None]
        scaled[np.diag_indices_from(scaled)] += RIDGE * len(lengths)
        c, failed = dposv(scaled, self.toward[:, 0] / lengths, lower=1)[1:]
        if failed:
            return None
        move = self.outputs.combined(-c / lengths, self.r)
        return move if along is None else along(move)


def _products_with(dR: Array, dT: Array, rows: list[Array], along: Along | None) -> list[Array]:
    """The products of the changes, as they would be on the face, with r and, if dr and dz are given, with their change.

    With Q = I - P, a vector v has the products (P dR - Q dZ) v = dR v - dT Q v.
    """
    if along is None:
        return [dR @ v for v in rows[:2]]
    inside = along(namespace(rows[0]).stack(rows))
    found = [dR @ rows[0] - dT @ (rows[0] - inside[0, :])]
    if len(rows) == 1:
        return found
    off = rows[2] - inside[2, :]
    return [*found, dR @ (inside[1, :] - off) + dT @ off]


def _all_products(dR: Array, dT: Array, along: Along | None) -> Array:
    """The products of all changes with each other, as they would be on the face."""
    on_face = dR if along is None else along(dT) - (dT - dR)
    return on_face @ on_face.T


def _grown(products: Array, column: Array) -> Array:
    """The products with those of one more change."""
    k = len(column) - 1
    whole = np.empty((k + 1, k + 1))
    whole[:k, :k] = products
    whole[:, k] = whole[k, :] = column
    return whole


def along_faces(f: Saddle, at: Any) -> Along | None:
    """The moves of x and y along the faces on which the state ``at`` is; None for shards, whose entries are not read.

    They are given as vectors, or rows of a matrix, that begin with those of x and of y.
    """
    if space_of(at.x).is_sharded or space_of(at.y).is_sharded:
        return None
    m, n = int(at.x.shape[0]), int(at.y.shape[0])
    sides = ((f.g.simple, at.x, slice(0, m)), (f.h.simple, at.y, slice(m, m + n)))

    def along(moves: Array) -> Array:
        parts = [moves[..., its] if p is None else p.along_face(z, moves[..., its]) for p, z, its in sides]
        found: Array = namespace(moves).concat([*parts, moves[..., m + n :]], axis=-1)
        return found

    return along


def are_on_one_face(f: Saddle, new: Any, old: Any) -> bool:
    """Whether x and y are at the same kinks and bounds in two states; True for shards, whose entries are not read."""
    pairs = ((f.g.simple, new.x, old.x), (f.h.simple, new.y, old.y))
    return all(
        term is None or space_of(a).is_sharded or bool(namespace(a).all(term.faces(a) == term.faces(b)))
        for term, a, b in pairs
    )
