r"""Anderson: acceleration of any method by combining its last steps.

Problem:    the fixed point of z -> T(z), where T is one step of the wrapped method on its whole state z.
Recursion:  r_k = T(z_k) - z_k,   z_{k+1} = T(z_k) - sum_i c_i (T(z_{i+1}) - T(z_i)),
            where c minimises |r_k - sum_i c_i (r_{i+1} - r_i)|, by a QR factorisation to which each step adds a
            column. When there are ``window`` of them, all are dropped. For an affine T these are the steps of
            restarted GMRES. Lengths are those of the method's ``weights``.
Safeguard:  When |r_k| is twice the smallest so far, or has not halved for long, the run goes back to its best state,
            drops all columns, and takes plain steps: 1 the first time, then 2, 4, 8, ..., and half as many again for
            each time that |r_k| has halved since. So it converges wherever the wrapped method does, from every start,
            at a linear rate: the plain steps grow until they suffice to halve |r_k|, and no further than that.
Terms:      With simple terms the mixed point is projected onto their domains. T is another map on each of their faces,
            so that the oldest columns are dropped a quarter at a time, or once a few steps have ended on one face, and
            c is computed from all that are kept (``wrappers.window``). The differences of T are kept as well: moves to
            projected points are no combinations of residuals.
Memory:     The columns q_i of Q are all that is kept. The moves z_{i+1} - z_i are combinations of them and of
            p_k = r_k - Q Q'r_k, the part of the residual that they do not reach; only the coefficients are kept.
            So the memory is ``window`` states, and a step reads it three times.
Reference:  D. Anderson, Iterative procedures for nonlinear integral equations, J. ACM 1965; H. Walker and P. Ni,
            Anderson acceleration for fixed-point iterations, SIAM J. Numer. Anal. 2011; J. Zhang, B. O'Donoghue and
            S. Boyd, Globally convergent type-I Anderson acceleration for nonsmooth fixed-point iterations, SIAM J.
            Optim. 2020.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.linalg.lapack import dtrtrs

from saddlepoint.ground.arrays import Array, concat, namespace, space_of, split_like, to_host
from saddlepoint.ground.errors import ProblemError
from saddlepoint.ground.linalg import Rows, asked_together, inner, jax_program, norm
from saddlepoint.ground.states import arrays, with_arrays
from saddlepoint.methods.base import Method, int_option
from saddlepoint.methods.condat_vu import CondatVu
from saddlepoint.methods.imex import IMEX
from saddlepoint.methods.lpd_gs import LPDGS
from saddlepoint.methods.registry import register_expression
from saddlepoint.methods.wrappers.base import Wrapper
from saddlepoint.methods.wrappers.window import Window
from saddlepoint.problems.saddle import Saddle
from saddlepoint.theory.complexity import Complexity
from saddlepoint.theory.table1 import IMPLICIT, lpd_gs_order, scaled_gradient_order

DEPENDENT = 1e-10  # a column is left out if its relative distance from the span of the others is below this


class NewRow(NamedTuple):
    """The part of a change of the residual that the rows of Q do not reach, and the numbers that go with it."""

    q: Array
    h: Array  # the products of the change with the rows
    Qr: Array  # the products of the new residual r with the rows
    distance: float  # |q|
    length: float  # |r|
    qr: float | None = None  # <q, r>, if it is known


class Memory(NamedTuple):
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
    def empty(cls, window: int, r: Array) -> Memory:
        """No residuals; they will be vectors like r."""
        return cls(r, Rows.empty(window, r), np.empty((0, 0)), np.empty((0, 0)))

    def emptied(self, r: Array) -> Memory:
        """A memory of the same size without residuals, in the same buffer where that can be written into."""
        none = np.empty((0, 0))
        return Memory(r, self.Q.emptied(r), none, none)

    @property
    def Qr(self) -> Array:
        """The products of the rows of Q with r."""
        return self.factor[:-1, -1]

    def look(self, r: Array, size: int) -> NewRow | float:
        """The row for the next residual r, where that takes one wait, as on a GPU; otherwise only the length of r."""
        if asked_together(r) and len(self.factor) and not self.Q.full:
            return self._row_on_device(r, size)
        return norm(r[:size])

    def with_residual(self, r: Array, size: int, seen: NewRow | float) -> Memory | None:
        """The memory with the next residual, for a plain step from it. The first ``size`` entries have a weight.

        ``seen`` is what ``look`` has returned. A change of the residual that is 0 or depends on earlier ones is left
        out. None if there is no room.
        """
        k, Q, factor, moves = self.Q.count, self.Q, self.factor, self.moves
        if not len(factor):
            return Memory(r, Q, np.zeros((1, 1)), np.ones((1, 1)))
        if Q.full:
            return None
        row = seen if isinstance(seen, NewRow) else self._row(r, size, seen)
        q, h, Qr, distance = row[:4]
        least = max(DEPENDENT * math.hypot(distance, norm(h)), 2.0 / space_of(q).largest)  # 1/distance stays finite
        if not distance > least:  # the part of r that the rows do not reach is the same, and the move is not kept
            factor, moves = factor.copy(), moves.copy()
            factor[:k, k], moves[k, :k], moves[k, k] = Qr, Qr, 1.0
            return Memory(r, Q, factor, moves)
        q *= 1.0 / distance
        qr = inner(q[:size], r[:size]) if row.qr is None else row.qr / distance
        triangle, table = np.zeros((k + 2, k + 2)), np.empty((k + 2, k + 2))
        triangle[:k, :k], triangle[:k, k], triangle[:k, k + 1] = factor[:k, :k], h, Qr
        triangle[k, k:] = distance, qr
        table[: k + 1, :k], table[: k + 1, k + 1] = moves[:, :k], moves[:, k]
        table[: k + 1, k] = (qr - distance) * moves[:, k]  # the p of before is the new p plus (qr - distance) q
        table[k + 1, :k], table[k + 1, k:] = Qr, (qr, 1.0)
        return Memory(r, Q.append(q), triangle, table)

    def _row(self, r: Array, size: int, length: float) -> NewRow:
        """The row for the next residual r, whose first ``size`` entries have the norm ``length``."""
        k, Q = self.Q.count, self.Q
        rows = Q.matrix[:, :size]
        Qr = on_host(rows @ r[:size]) if k else self.Qr
        h = Qr - self.Qr
        q = Q.subtracted(h, Q.start_row(r, self.r))
        distance = norm(q[:size])
        if k and distance < max(norm(h), 0.1 * length):  # rounding left some of the earlier rows in q: once more
            more = on_host(rows @ q[:size])
            h, q = h + more, Q.subtracted(more, q)
            distance = norm(q[:size])
        return NewRow(q, h, Qr, distance, length)

    def _row_on_device(self, r: Array, size: int) -> NewRow:
        """The same on a GPU, where all numbers are asked for together; the rows are always subtracted twice."""
        k, xp = self.Q.count, namespace(r)
        jax = xp.__name__.startswith("jax")  # which compiles one program for all numbers of rows; the others are 0
        compute, rows = (jax_program(_new_row, 0, 4), self.Q.buffer) if jax else (_new_row, self.Q.matrix)
        q, numbers = compute(xp, rows, r, self.r, size)
        *products, of_q, of_r, qr = on_host(numbers).tolist()
        tame = 1e-30 if space_of(r).eps > 1e-15 else 1e-280
        distance, length = (
            math.sqrt(square) if tame < square < math.inf else norm(v[:size]) for v, square in ((q, of_q), (r, of_r))
        )
        h, Qr = np.array(products).reshape(2, -1)[:, :k]
        return NewRow(q, h, Qr, distance, length, qr)

    def mixed(self) -> tuple[Array, Memory]:
        """The step -dT c, where c minimises |r - dR c|, and the memory with this move in the place of the plain one."""
        c = solve_upper(self.factor[:-1, :-1], self.Qr)
        moves = self.moves.copy()
        moves[-1] = -(c @ moves[:-1])
        along = float(moves[-1, -1])
        step = self.Q.subtracted((1.0 + along) * self.Qr - moves[-1, :-1], along * self.r)
        moves[-1, -1] += 1.0
        return step, self._replace(moves=moves)


class AndersonState(NamedTuple):
    """The point z_k, which is a state of the wrapped method, the memory, and the counters of the safeguard."""

    x: Array
    y: Array
    inner: Any
    weights: tuple[float, ...]  # of the arrays of the inner state; 0 for those that lengths ignore
    memory: Memory | Window
    best: Any  # the state after T of the z with the smallest residual
    last: Any  # the state after T of the z before this one, if there are simple terms
    smallest: float
    halved: float  # |r| when it had last halved
    waited: int  # number of steps since then
    plain: int  # number of plain steps that are still to be taken
    failures: int


@dataclass(frozen=True)
class Anderson(Wrapper):
    """Safeguarded Anderson acceleration of another method."""

    window: int = int_option(40, "number of steps that are kept before all are dropped", 1)
    memory: int = int_option(
        0, "most vectors like (x, y) that the steps may take, if not 0; the window is then shorter"
    )

    own_works: ClassVar[tuple[str, ...]] = ("anderson1965", "walker2011", "zhang2020")

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.method, Anderson):
            raise ProblemError("anderson wraps anderson; one memory is enough, give the method itself")

    def init(self, f: Saddle, x: Array, y: Array) -> AndersonState:
        """The start of the inner method."""
        inner, given = self.method.init(f, x, y), self.method.weights(f)
        fields = zip(inner._fields, inner, strict=True)
        weights = tuple(given.get(name, 0.0) for name, field in fields for _ in arrays(field))
        flat = difference(inner, inner, weights)[0]
        rows = 2 if f.has_simple else 1  # that are kept of a step
        room = self.memory * sum(f.shape) // (rows * flat.shape[0]) if self.memory else self.window
        most = min(self.window, max(1, room))
        memory = Window.empty(most, flat) if f.has_simple else Memory.empty(most, flat)
        return AndersonState(inner.x, inner.y, inner, weights, memory, inner, inner, math.inf, math.inf, 0, 0, 0)

    def within(self, vectors: int) -> Method:
        """The same with this memory, or with the memory that it has if that is less."""
        return replace(self, memory=min(vectors, self.memory or vectors))

    def step(self, f: Saddle, s: AndersonState) -> AndersonState:
        """The state after one step of the inner method, combined with the steps before it."""
        after = self.method.step(f, s.inner)
        r, size = difference(after, s.inner, s.weights)
        seen = s.memory.look(r, size)
        length = seen if isinstance(seen, float) else seen.length
        best, smallest = (after, length) if length < s.smallest else (s.best, s.smallest)
        halves = length <= 0.5 * s.halved
        halved, waited = (length, 0) if halves else (s.halved, s.waited + 1)
        failures = max(s.failures - 1, 0) if halves else s.failures
        failed = s.plain == 0 and (length > 2.0 * smallest or waited > (4 * self.window + 40) * 2**failures)
        if failed or not math.isfinite(length):
            empty = s.memory.emptied(r)
            return AndersonState(
                best.x, best.y, best, s.weights, empty, best, best, smallest, smallest, 0, 2**failures, failures + 1
            )
        z, memory = self.combined(f, s, after, r, size, seen)
        at, last = (after, after) if f.has_simple else (z, best)  # a step ends on faces, a mixed point may be off them
        return AndersonState(
            at.x, at.y, z, s.weights, memory, best, last, smallest, halved, waited, max(s.plain - 1, 0), failures
        )

    def state_residual(self, s: AndersonState) -> float:
        """The smallest |r| so far."""
        return s.smallest

    def combined(
        self, f: Saddle, s: AndersonState, after: Any, r: Array, size: int, seen: NewRow | float
    ) -> tuple[Any, Memory | Window]:
        """The next z and the memory: a combination of the state ``after`` T and those before, if there are any."""
        if isinstance(s.memory, Window):
            assert isinstance(seen, float)
            return self.combined_with_kinks(f, s, after, r, size, seen)
        memory = s.memory.with_residual(r, size, seen)
        if memory is None:
            memory = s.memory.emptied(r).with_residual(r, size, seen)
            assert memory is not None
            return after, memory
        if s.plain > 0 or memory.Q.count == 0:
            return after, memory
        step, memory = memory.mixed()
        return added(after, step, s.weights), memory

    def combined_with_kinks(
        self, f: Saddle, s: AndersonState, after: Any, r: Array, size: int, length: float
    ) -> tuple[Any, Window]:
        """The same with simple terms; the mixed point is projected onto their domains."""
        assert isinstance(s.memory, Window)
        memory = s.memory.on_face(are_on_one_face(f, after, s.last))
        memory = memory.with_residual(r, size, length, difference(after, s.last, s.weights)[0])
        step = None if s.plain > 0 else memory.mixed()
        if step is None:
            return after, memory
        z = added(after, step, s.weights)
        x, y = f.project(z.x, z.y)
        return z._replace(x=x, y=y), memory


def are_on_one_face(f: Saddle, new: Any, old: Any) -> bool:
    """Whether x and y are at the same kinks and bounds in two states; True for shards, whose entries are not read."""
    pairs = ((f.g.simple, new.x, old.x), (f.h.simple, new.y, old.y))
    return all(
        term is None or space_of(a).is_sharded or bool(namespace(a).all(term.faces(a) == term.faces(b)))
        for term, a, b in pairs
    )


MIXED = "; on everyday problems far less"
register_expression(  # `auto` chooses this one when the coupling is mild
    "anderson-condat-vu", Anderson, CondatVu, Complexity(f"kx + ky + c{MIXED}", scaled_gradient_order), window=100
)
register_expression("anderson-lpd-gs", Anderson, LPDGS, Complexity(f"N{MIXED}", lpd_gs_order))
register_expression(  # `auto` chooses this one when the coupling is strong
    "anderson-imex",
    Anderson,
    IMEX,
    IMPLICIT._replace(formula=IMPLICIT.formula + MIXED),
    window=100,
    stride=1.9,
)


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


@cache
def order(weights: tuple[float, ...]) -> list[int]:
    """The places of the arrays of a state in the flat vector: first those that have a weight."""
    return sorted(range(len(weights)), key=lambda place: weights[place] == 0.0)


def difference(new: Any, old: Any, weights: tuple[float, ...]) -> tuple[Array, int]:
    """The difference of two states times the weights as one vector, and the number of entries that have a weight.

    The entries without a weight are at the end, unchanged.
    """
    new, old = tuple(arrays(new)), tuple(arrays(old))
    size = sum(array.shape[0] for array, weight in zip(new, weights, strict=True) if weight)
    in_one_program = asked_together(new[0]) and namespace(new[0]).__name__.startswith("jax")
    return (jax_program(_difference, 2) if in_one_program else _difference)(new, old, weights), size


def _difference(new: tuple[Array, ...], old: tuple[Array, ...], weights: tuple[float, ...]) -> Array:
    if all(type(array) is np.ndarray and array.dtype == new[0].dtype for array in (*new, *old)):
        whole, end = np.empty(sum(len(array) for array in new), new[0].dtype), 0
        for k in order(weights):  # in one vector from the start, since copies of long ones take time
            start, end = end, end + len(new[k])
            piece = np.subtract(new[k], old[k], out=whole[start:end])
            if weights[k] not in (0.0, 1.0):
                piece *= weights[k]
        return whole
    pieces = [a - b for a, b in zip(new, old, strict=True)]
    for k, weight in enumerate(weights):
        if weight not in (0.0, 1.0):
            pieces[k] *= weight
    return concat(pieces[k] for k in order(weights))


def added(state: Any, step: Array, weights: tuple[float, ...]) -> Any:
    """The state plus a vector like those of ``difference``."""
    old = tuple(arrays(state))
    in_one_program = asked_together(old[0]) and namespace(old[0]).__name__.startswith("jax")
    new = (jax_program(_added, 2) if in_one_program else _added)(old, step, weights)
    return with_arrays(state, (split_like(a, b) for a, b in zip(new, old, strict=True)))


def _added(arrays: tuple[Array, ...], step: Array, weights: tuple[float, ...]) -> list[Array]:
    new, end = list(arrays), 0
    for k in order(weights):
        start, end = end, end + new[k].shape[0]
        piece = step[start:end]
        if weights[k] not in (0.0, 1.0):
            piece = piece * (1.0 / weights[k])
            if type(piece) is np.ndarray and type(new[k]) is np.ndarray and piece.dtype == new[k].dtype:
                new[k] = np.add(piece, new[k], out=piece)
                continue
        new[k] = new[k] + piece
    return new
