r"""Anderson: acceleration of any method by combining its last steps.

Problem:    the fixed point of z -> T(z), where T is one step of the wrapped method on its whole state z.
Recursion:  r_k = T(z_k) - z_k,   z_{k+1} = T(z_k) - sum_i c_i (T(z_{i+1}) - T(z_i)),
            where c minimises |r_k - sum_i c_i (r_{i+1} - r_i)|. When there are ``window`` columns, the oldest quarter
            is dropped, and all are dropped where T is far from affine (``wrappers.latest``). For an affine T these are
            the steps of GMRES. Lengths are those of the method's ``weights``.
Safeguard:  When |r_k| is twice the smallest so far, or has not halved for long, the run goes back to its best state,
            drops all columns, and takes plain steps: 1 the first time, then 2, 4, 8, ..., but half as many for each
            time that |r_k| has halved since. So the smallest |r_k| falls at a linear rate wherever that of the
            wrapped method does: if N of its steps halve the residual of every state, a number of steps that depends on
            N and ``window`` alone does so here, whatever is mixed (``theory.anderson`` has the number and the proof).
Terms:      With simple terms the mixed point is projected onto their domains. T is another map on each of their faces;
            earlier steps are combined as they would have been on the face of the last one, by least squares over all
            that are kept (``wrappers.window``). The differences of T are kept as well: moves to projected points are no
            combinations of residuals. The safeguard allows larger residuals, because they grow where a face is left.
Memory:     Of each step the differences of r and of T are kept. Where these would be many numbers, in float32 and
            outside NumPy, c comes from a QR factorisation to which each step adds a column. When there are ``window``
            of them, all are dropped: restarted GMRES. The columns q_i of Q are all that is kept then. The moves
            z_{i+1} - z_i are combinations of them and of p_k = r_k - Q Q'r_k, the part of the residual that they do
            not reach; only the coefficients are kept. So the memory is ``window`` states, and a step reads it three
            times (``wrappers.factored``). With PyTorch on a GPU, where T takes a fixed number of calls and A is much
            larger than the memory, the differences of T are kept as well, and no number is read between two
            certificates (``wrappers.on_device``). With NumPy in float64 and a short window the differences of r take
            the place of the q_i, and c comes from normal equations, which takes less time (``wrappers.gram``).
Reference:  D. Anderson, Iterative procedures for nonlinear integral equations, J. ACM 1965; H. Walker and P. Ni,
            Anderson acceleration for fixed-point iterations, SIAM J. Numer. Anal. 2011; J. Zhang, B. O'Donoghue and
            S. Boyd, Globally convergent type-I Anderson acceleration for nonsmooth fixed-point iterations, SIAM J.
            Optim. 2020.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple, TypeAlias

import numpy as np

from saddlepoint.ground.arrays import Array
from saddlepoint.ground.errors import ProblemError
from saddlepoint.ground.states import arrays
from saddlepoint.methods.base import Method, int_option
from saddlepoint.methods.condat_vu import CondatVu
from saddlepoint.methods.imex import IMEX
from saddlepoint.methods.lpd_gs import LPDGS
from saddlepoint.methods.registry import register_expression
from saddlepoint.methods.wrappers import on_device
from saddlepoint.methods.wrappers.base import Wrapper
from saddlepoint.methods.wrappers.factored import Factored, NewRow
from saddlepoint.methods.wrappers.flat import added, difference, joined, parted, scale_of
from saddlepoint.methods.wrappers.gram import MOST, Gram
from saddlepoint.methods.wrappers.latest import Latest
from saddlepoint.methods.wrappers.on_device import DeviceState
from saddlepoint.methods.wrappers.window import Window, along_faces, are_on_one_face
from saddlepoint.problems.saddle import Saddle
from saddlepoint.theory.complexity import Complexity
from saddlepoint.theory.table1 import IMPLICIT, lpd_gs_order, scaled_gradient_order

JUMP = 10.0  # times the smallest |r| that |r| may be with simple terms, because it grows where a face is left
FORGIVEN = 2  # failures up to which steps are kept after one of them, with simple terms
ROOM = 3_000_000  # numbers that the differences of r and of T may take together, where two are kept of each step


Memory: TypeAlias = Factored | Gram | Latest | Window  # the kinds of memory of earlier steps


class AndersonState(NamedTuple):
    """The point z_k, which is a state of the wrapped method, the memory, and the counters of the safeguard."""

    x: Array
    y: Array
    inner: Any
    weights: tuple[float, ...]  # of the arrays of the inner state; 0 for those that lengths ignore
    memory: Memory
    best: Any  # the state after T of the z with the smallest residual
    last: Any  # the state after T of the z before this one, with simple terms
    smallest: float
    halved: float  # |r| when it had last halved
    waited: int  # number of steps since |r| had last halved
    plain: int  # number of plain steps that are still to be taken
    failures: int


@dataclass(frozen=True)
class Anderson(Wrapper):
    """Safeguarded Anderson acceleration of another method."""

    window: int = int_option(40, "number of steps that are kept before some are dropped", 1)
    memory: int = int_option(
        0, "most vectors like (x, y) that the steps may take, if not 0; the window is then shorter"
    )

    own_works: ClassVar[tuple[str, ...]] = ("anderson1965", "walker2011", "zhang2020")

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.method, Anderson):
            raise ProblemError("anderson wraps anderson; one memory is enough, give the method itself")

    def init(self, f: Saddle, x: Array, y: Array) -> AndersonState | DeviceState:
        """The start of the inner method."""
        inner, given = self.method.init(f, x, y), self.method.weights(f)
        fields = zip(inner._fields, inner, strict=True)
        weights = tuple(given.get(name, 0.0) for name, field in fields for _ in arrays(field))
        flat = difference(inner, inner, weights)[0]
        if f.space.is_cuda and self.cost(f) is not None and not (f.has_simple or self.memory):
            window = min(self.window, sum(f.shape))
            if on_device.fits(window, flat.shape[0], f.shape):
                return on_device.begun(inner, weights, window)
        room = self.memory * sum(f.shape) // flat.shape[0] if self.memory else 2 * self.window
        memory: Memory
        if f.has_simple:
            memory = Window.empty(min(self.window, max(1, room // 2)), flat)
        elif 2 * self.window <= room and fits(2 * self.window, flat):
            memory = Latest.empty(self.window, joined(inner, weights), scale_of(inner, weights))
        else:
            window = min(self.window, max(1, room))
            if window <= MOST and fits(0, flat):
                memory = Gram.empty(window, flat)
                first = next((weight for weight in weights if weight), 1.0)
                weights = tuple(weight / first for weight in weights)  # only ratios matter; 1 needs no multiplication
            else:
                memory = Factored.empty(window, flat)
        return AndersonState(inner.x, inner.y, inner, weights, memory, inner, inner, math.inf, math.inf, 0, 0, 0)

    def within(self, vectors: int) -> Method:
        """The same with this memory, or with the memory that it has if that is less."""
        return replace(self, memory=min(vectors, self.memory or vectors))

    def cost(self, f: Saddle) -> dict[str, int] | None:
        """That of the inner method."""
        return self.method.cost(f)

    def step(self, f: Saddle, s: AndersonState | DeviceState) -> AndersonState | DeviceState:
        """The state after one step of the inner method, combined with the steps before it."""
        after = self.method.step(f, s.inner)
        if isinstance(s, DeviceState):
            return on_device.next_state(after, s)
        output = None
        if isinstance(s.memory, Latest):
            output = joined(after, s.weights)
            r, size = s.memory.residual(output)
        else:
            r, size = difference(after, s.inner, s.weights)
        seen = s.memory.measure(r, size)
        length = seen if isinstance(seen, float) else seen.length
        best, smallest = (after, length) if length < s.smallest else (s.best, s.smallest)
        halves = length <= 0.5 * s.halved
        halved, waited = (length, 0) if halves else (s.halved, s.waited + 1)
        failures = max(s.failures - 1, 0) if halves else s.failures
        forgives = isinstance(s.memory, Window) and size == sum(f.shape) and failures < FORGIVEN
        jumped = length > (JUMP if forgives else 2.0) * smallest
        failed = s.plain == 0 and (jumped or waited > (4 * self.window + 40) * 2**failures)
        if failed or not math.isfinite(length):
            memory = s.memory.interrupted(r) if forgives and jumped else s.memory.emptied(r)
            if isinstance(memory, Latest):
                memory = memory.moved(joined(best, s.weights))
            return AndersonState(
                best.x, best.y, best, s.weights, memory, best, best, smallest, smallest, 0, 2**failures, failures + 1
            )
        z, memory = self.combined(f, s, after, r, size, seen, output)
        at = after if f.has_simple else z  # a step ends on faces, a mixed point may be off them
        last = after if isinstance(memory, Window) else best
        return AndersonState(
            at.x, at.y, z, s.weights, memory, best, last, smallest, halved, waited, max(s.plain - 1, 0), failures
        )

    def state_residual(self, s: AndersonState | DeviceState) -> float:
        """The smallest |r| so far; infinite on a GPU, which would have to be asked for it."""
        return math.inf if isinstance(s, DeviceState) else s.smallest

    def combined(
        self, f: Saddle, s: AndersonState, after: Any, r: Array, size: int, seen: NewRow | float, output: Array | None
    ) -> tuple[Any, Memory]:
        """The next z and the memory: a combination of the state ``after`` T and those before, if there are any."""
        if isinstance(s.memory, Window):
            assert isinstance(seen, float)
            return self.combined_with_kinks(f, s, after, r, size, seen)
        if isinstance(s.memory, Latest):
            assert isinstance(seen, float)
            assert output is not None
            latest = s.memory.with_residual(r, seen, output)
            if s.plain == 0:
                latest = latest.mixed()
            return (after if latest.point is output else parted(after, latest.point, s.weights)), latest
        memory = _extended(s.memory, r, size, seen)
        if memory is None:
            memory = _extended(s.memory.emptied(r), r, size, seen)
            assert memory is not None
            return after, memory
        if s.plain > 0 or len(memory.moves) == 1:
            return after, memory
        step, memory = memory.mixed()
        return added(after, step, s.weights), memory

    def combined_with_kinks(
        self, f: Saddle, s: AndersonState, after: Any, r: Array, size: int, length: float
    ) -> tuple[Any, Window]:
        """The same with simple terms; the mixed point is projected onto their domains."""
        assert isinstance(s.memory, Window)
        output, is_same = difference(after, s.last, s.weights)[0], are_on_one_face(f, after, s.last)
        along = along_faces(f, after) if size == sum(f.shape) else None
        memory = s.memory.after(length < s.smallest, is_same, along)
        memory = memory.with_residual(r, size, output, along, is_same)
        step = None if s.plain > 0 else memory.mixed(along)
        if step is None:
            return after, memory
        z = added(after, step, s.weights)
        x, y = f.project(z.x, z.y)
        return z._replace(x=x, y=y), memory


def _extended(memory: Factored | Gram, r: Array, size: int, seen: NewRow | float) -> Factored | Gram | None:
    """The memory with the next residual; None if there is no room."""
    if isinstance(memory, Gram):
        assert isinstance(seen, float)
        return memory.with_residual(r, size, seen)
    return memory.with_residual(r, size, seen)


def fits(rows: int, like: Array) -> bool:
    """Whether so many vectors like this one are arrays of NumPy in float64 that do not take more than ``ROOM``."""
    return type(like) is np.ndarray and like.dtype == np.float64 and rows * like.shape[0] <= ROOM


MIXED = "; far fewer on typical problems"
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
