r"""Anderson: acceleration of any method by combining its last steps.

Problem:    the fixed point of z -> T(z), where T is one step of the wrapped method on its whole state z.
Recursion:  r_k = T(z_k) - z_k,   z_{k+1} = T(z_k) - sum_i c_i (T(z_{i+1}) - T(z_i)),
            where c minimises |r_k - sum_i c_i (r_{i+1} - r_i)|, by a QR factorisation to which each step adds a
            column. When there are ``window`` of them, all are dropped. For an affine T these are the steps of
            restarted GMRES. Lengths are those of the method's ``weights``.
Safeguard:  When |r_k| is twice the smallest so far, or has not halved for long, the run goes back to its best state,
            drops all columns, and takes plain steps: 1 the first time, then 2, 4, 8, ... So it converges wherever
            the wrapped method does, from every start, at a linear rate.
Reference:  D. Anderson, Iterative procedures for nonlinear integral equations, J. ACM 1965; H. Walker and P. Ni,
            Anderson acceleration for fixed-point iterations, SIAM J. Numer. Anal. 2011; J. Zhang, B. O'Donoghue and
            S. Boyd, Globally convergent type-I Anderson acceleration for nonsmooth fixed-point iterations, SIAM J.
            Optim. 2020.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.linalg.lapack import dtrtrs

from saddlepoint.ground.arrays import Array, concat, is_array, space_of, split_like, to_host
from saddlepoint.ground.errors import ProblemError
from saddlepoint.ground.linalg import Rows, norm
from saddlepoint.ground.states import arrays, with_arrays
from saddlepoint.methods.base import int_option
from saddlepoint.methods.condat_vu import CondatVu
from saddlepoint.methods.imex import IMEX
from saddlepoint.methods.lpd_gs import LPDGS
from saddlepoint.methods.registry import register_expression
from saddlepoint.methods.wrappers.base import Wrapper
from saddlepoint.problems.saddle import Saddle
from saddlepoint.theory.complexity import Complexity
from saddlepoint.theory.table1 import IMPLICIT, lpd_gs_order, scaled_gradient_order

DEPENDENT = 1e-10  # a difference is left out if its relative distance from the span of the others is below this


class Memory(NamedTuple):
    """The last T(z) and residual, the differences of T(z), and a QR factorisation of those of the residuals."""

    T: Array
    r: Array
    dT: Rows
    Q: Rows
    factor: Array  # upper triangular: dR = factor' Q


class AndersonState(NamedTuple):
    """The point z_k, which is a state of the wrapped method, the memory, and the counters of the safeguard."""

    x: Array
    y: Array
    inner: Any
    scale: Array  # the weight of every entry of the flat state
    memory: Memory | None
    best: Any  # the state after T of the z with the smallest residual
    smallest: float
    halved: float  # |r| when it had last halved
    waited: int  # number of steps since then
    plain: int  # number of plain steps that are still to be taken
    failures: int


@dataclass(frozen=True)
class Anderson(Wrapper):
    """Safeguarded Anderson acceleration of another method."""

    window: int = int_option(40, "number of steps that are kept before all are dropped", 1)

    own_works: ClassVar[tuple[str, ...]] = ("anderson1965", "walker2011", "zhang2020")

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.method, Anderson):
            raise ProblemError("anderson wraps anderson; one memory is enough, give the method itself")

    def init(self, f: Saddle, x: Array, y: Array) -> AndersonState:
        """The start of the inner method."""
        inner = self.method.init(f, x, y)
        return AndersonState(inner.x, inner.y, inner, self.scale(f, inner), None, inner, math.inf, math.inf, 0, 0, 0)

    def step(self, f: Saddle, s: AndersonState) -> AndersonState:
        """The state after one step of the inner method, combined with the steps before it."""
        after = self.method.step(f, s.inner)
        T = flat(after)
        r = s.scale * (T - flat(s.inner))
        length = norm(r)
        best, smallest = (after, length) if length < s.smallest else (s.best, s.smallest)
        halved, waited = (length, 0) if length <= 0.5 * s.halved else (s.halved, s.waited + 1)
        failed = s.plain == 0 and (length > 2.0 * smallest or waited > (4 * self.window + 40) * 2**s.failures)
        if failed or not math.isfinite(length):
            return AndersonState(
                best.x, best.y, best, s.scale, None, best, smallest, smallest, 0, 2**s.failures, s.failures + 1
            )
        memory = self.remember(s.memory, T, r)
        z = after
        if s.plain == 0 and memory.Q.count > 0:
            c = solve_upper(memory.factor, on_host(memory.Q.matrix @ r))
            z = unflat(T - space_of(T).cast(c) @ memory.dT.matrix, after)
        return AndersonState(
            z.x, z.y, z, s.scale, memory, best, smallest, halved, waited, max(s.plain - 1, 0), s.failures
        )

    def remember(self, memory: Memory | None, T: Array, r: Array) -> Memory:
        """The memory with the latest difference added."""
        if memory is None or memory.Q.full:
            return Memory(T, r, Rows.empty(self.window, T), Rows.empty(self.window, r), np.empty((0, 0)))
        dr = q = r - memory.r
        for _ in range(2):  # the second pass removes what rounding left in the first
            q = q - (memory.Q.matrix @ q) @ memory.Q.matrix
        length = norm(q)
        if length <= DEPENDENT * norm(dr):
            return memory._replace(T=T, r=r)
        q = q / length
        k = memory.Q.count
        Q = memory.Q.append(q)
        factor = np.zeros((k + 1, k + 1))
        factor[:k, :k] = memory.factor
        factor[:, k] = on_host(Q.matrix @ dr)
        return Memory(T, r, memory.dT.append(T - memory.T), Q, factor)

    def scale(self, f: Saddle, state: Any) -> Array:
        """The weight of every entry of the flat state."""
        weights = self.method.weights(f)
        return concat(
            space_of(array).full(array.shape[0], weights.get(name, 0.0))
            for name, field in named(state)
            for array in arrays(field)
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


def on_host(short: Array) -> Array:
    """A short vector as a NumPy array in float64, for the small triangular system."""
    return to_host(short).astype(np.float64)


def named(state: Any) -> Iterator[tuple[str, Any]]:
    """The fields of a state that hold arrays, with their names."""
    for name, field in zip(state._fields, state, strict=True):
        if isinstance(field, tuple) or is_array(field):
            yield name, field


def flat(state: Any) -> Array:
    """The arrays of a state in one vector."""
    return concat(arrays(state))


def unflat(vector: Array, like: Any) -> Any:
    """The state that has the arrays of ``vector``, and everything else from ``like``."""
    old = list(arrays(like))
    ends = [0, *accumulate(array.shape[0] for array in old)]
    new = (vector[start:end] for start, end in pairwise(ends))
    return with_arrays(like, map(split_like, new, old))
