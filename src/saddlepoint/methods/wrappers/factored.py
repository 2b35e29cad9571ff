"""The memory of Anderson's mixing on large problems, in float32 and on GPUs: a QR factorisation of the differences.

The columns of Q are all that is kept of the differences of residuals and of outputs of T, beside small matrices of
coefficients: so the memory is one vector a step. When it is full, all of it is dropped, as in restarted GMRES.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg.lapack import dtrtrs

from saddlepoint.ground.arrays import Array, is_float64, is_jax, namespace, space_of, to_host
from saddlepoint.ground.jax_program import in_one_program
from saddlepoint.ground.linalg import inner, may_be_on_gpu, norm
from saddlepoint.ground.rows import Rows

DEPENDENT = 1e-10  # a column is left out if its relative distance from the span of the others is below this number
ROUNDED = 8.0  # units of rounding that this distance has to exceed as well, which matters in float32
AGAIN = 0.1  # relative distance below which the parts of a column in the span of the others are subtracted once more


class NewRow(NamedTuple):
    """The part of a change of the residual that the rows of Q do not reach, and the numbers that go with it."""

    q: Array
    h: Array  # the products of the change with the rows
    Qr: Array  # the products of the new residual r with the rows
    distance: float  # |q|
    length: float  # |r|
    qr: float | None = None  # <q, r>, if it is known


class Factored(NamedTuple):
    """The last residual, a QR factorisation of the differences of residuals, and the moves between them.

    A move z_{i+1} - z_i is a combination of the rows of Q and of p = r - Q'(Q r); its coefficients are a row of
    ``moves``, with that of p at the end. The last row is the last move, whose difference of residuals is not known yet.
    Without a residual, ``factor`` and ``moves`` have no rows.
    """

    r: Array
    Q: Rows  # orthonormal in the first entries, those that have a weight
    factor: Array  # of the differences and of r: triangular, with the products of r with the rows of Q at the end
    moves: Array

    @classmethod
    def empty(cls, window: int, r: Array) -> Factored:
        """No residuals; they will be vectors like r."""
        return cls(r, Rows.empty(window, r), np.empty((0, 0)), np.empty((0, 0)))

    def emptied(self, r: Array) -> Factored:
        """A memory of the same size without residuals, in the same buffer where that can be written into."""
        none = np.empty((0, 0))
        return Factored(r, self.Q.emptied(r), none, none)

    def interrupted(self, r: Array) -> Factored:
        """The memory for a run that goes on elsewhere: nothing is kept."""
        return self.emptied(r)

    @property
    def Qr(self) -> Array:
        """The products of the rows of Q with r."""
        return self.factor[:-1, -1]

    def measure(self, r: Array, size: int) -> NewRow | float:
        """The row for the next residual r, where that takes one wait, as on a GPU; otherwise only the length of r."""
        if may_be_on_gpu(r) and len(self.factor) and not self.Q.full:
            return self._row_on_device(r, size)
        return norm(r[:size])

    def with_residual(self, r: Array, size: int, seen: NewRow | float) -> Factored | None:
        """The memory with the next residual, for a plain step from it. The first ``size`` entries have a weight.

        ``seen`` is what ``measure`` has returned. A change of the residual that is 0 or depends on earlier ones is left
        out. None if there is no room.
        """
        k, Q, factor, moves = self.Q.count, self.Q, self.factor, self.moves
        if not len(factor):
            return Factored(r, Q, np.zeros((1, 1)), np.ones((1, 1)))
        if Q.full:
            return None
        row = seen if isinstance(seen, NewRow) else self._row(r, size, seen)
        q, h, Qr, distance = row[:4]
        space = space_of(q)
        share = max(DEPENDENT, ROUNDED * space.eps)
        least = max(share * math.hypot(distance, norm(h)), 2.0 / space.largest)  # 1/distance stays finite
        if not distance > least:  # the part of r that the rows do not reach is the same, and the move is not kept
            factor, moves = factor.copy(), moves.copy()
            factor[:k, k], moves[k, :k], moves[k, k] = Qr, Qr, 1.0
            return Factored(r, Q, factor, moves)
        q *= 1.0 / distance
        qr = inner(q[:size], r[:size]) if row.qr is None else row.qr / distance
        triangle, table = np.zeros((k + 2, k + 2)), np.empty((k + 2, k + 2))
        triangle[:k, :k], triangle[:k, k], triangle[:k, k + 1] = factor[:k, :k], h, Qr
        triangle[k, k:] = distance, qr
        table[: k + 1, :k], table[: k + 1, k + 1] = moves[:, :k], moves[:, k]
        table[: k + 1, k] = (qr - distance) * moves[:, k]  # the p of before is the new p plus (qr - distance) q
        table[k + 1, :k], table[k + 1, k:] = Qr, (qr, 1.0)
        return Factored(r, Q.append(q), triangle, table)

    def _row(self, r: Array, size: int, length: float) -> NewRow:
        """The row for the next residual r, whose first ``size`` entries have the norm ``length``."""
        k, Q = self.Q.count, self.Q
        rows = Q.matrix[:, :size]
        Qr = on_host(rows @ r[:size]) if k else self.Qr
        h = Qr - self.Qr
        q = Q.subtracted(h, Q.start_row(r, self.r))
        distance = norm(q[:size])
        if k and distance < AGAIN * max(norm(h), length):  # rounding left some of the earlier rows in q
            more = on_host(rows @ q[:size])
            h, q = h + more, Q.subtracted(more, q)
            distance = norm(q[:size])
        return NewRow(q, h, Qr, distance, length)

    def _row_on_device(self, r: Array, size: int) -> NewRow:
        """The same on a GPU, where all numbers are asked for together; the rows are always subtracted twice."""
        k, xp = self.Q.count, namespace(r)
        rows = self.Q.buffer if is_jax(xp) else self.Q.matrix  # JAX compiles one program for all; unused rows are 0
        q, numbers = in_one_program(xp, _new_row, 0, 4)(xp, rows, r, self.r, size)
        *products, of_q, of_r, qr = on_host(numbers).tolist()
        least = 1e-280 if is_float64(r) else 1e-30  # smaller squares may have lost digits to underflow
        distance, length = (
            math.sqrt(square) if least < square < math.inf else norm(v[:size]) for v, square in ((q, of_q), (r, of_r))
        )
        h, Qr = np.array(products).reshape(2, -1)[:, :k]
        return NewRow(q, h, Qr, distance, length, qr)

    def mixed(self) -> tuple[Array, Factored]:
        """The step -dT c, where c minimises |r - dR c|, and the memory with this move in the place of the plain one."""
        c = solve_upper(self.factor[:-1, :-1], self.Qr)
        moves = self.moves.copy()
        moves[-1] = -(c @ moves[:-1])
        along = float(moves[-1, -1])
        step = self.Q.subtracted((1.0 + along) * self.Qr - moves[-1, :-1], self.Q.multiple(along, self.r))
        moves[-1, -1] += 1.0
        return step, self._replace(moves=moves)


def solve_upper(factor: Array, b: Array) -> Array:
    """The solution c of factor c = b, by LAPACK, because SciPy's solve_triangular is slower on small systems."""
    return np.asarray(dtrtrs(factor.T, b, lower=1, trans=1)[0])


def _new_row(xp: Any, rows: Array, r: Array, before: Array, size: int) -> tuple[Array, Array]:
    """The change of r minus its parts in the rows; and, in one array, the numbers of ``NewRow``."""
    q, short = r - before, rows[:, :size]
    first = short @ q[:size]
    q = q - first @ rows
    second = short @ q[:size]
    q = q - second @ rows
    short_q, short_r = q[:size], r[:size]
    last = xp.stack([short_q @ short_q, short_r @ short_r, short_q @ short_r])
    return q, xp.concat([first + second, short @ short_r, last])


def on_host(short: Array) -> Array:
    """A short vector as a NumPy array in float64, for the small triangular system."""
    return np.asarray(to_host(short), dtype=np.float64)
