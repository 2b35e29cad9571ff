r"""A copy of A in a lower precision for the steps, the true A for the proof.

Problem:    F(x, y) = (grad g(x) + A y, grad h(y) - A' x) = 0 with products of a copy S of A in fewer bits.
Recursion:  x_{k+1} = x_k + u, y_{k+1} = y_k + v, where (u, v) is nearly the saddle point of
            g(x_k + u) + <A y_k, u> + <u, S v> - h(y_k + v) + <A' x_k, v>; A y_k and A' x_k come from the true A.
Guarantee:  a round multiplies the distance by |A - S|/sqrt(mu_x mu_y) at most, up to the error at which it ends; what
            the vectors lose in fewer bits shrinks with u and v. Certificates are those of the true A. When a round
            gains too little, A itself takes over.
Reference:  J. Wilkinson, Rounding Errors in Algebraic Processes, 1963; N. Higham and T. Mary, Mixed precision
            algorithms in numerical linear algebra, Acta Numerica 2022.
"""

from __future__ import annotations

import math

import numpy as np

from saddlepoint.ground.arrays import Array, Space
from saddlepoint.ground.errors import ProblemError
from saddlepoint.ground.linalg import norm
from saddlepoint.parts.coupling import ArrayCoupling, Coupling, DenseCoupling, Norm, SparseCoupling
from saddlepoint.parts.functions.affine import affine
from saddlepoint.problems.saddle import Saddle
from saddlepoint.theory.certificate import distance_bound
from saddlepoint.theory.lower import chain_N

UNITS = {"float32": 2.0**-24, "bfloat16": 2.0**-9}  # relative rounding of an entry
ENOUGH = 0.01  # a round may end when it has left this share of the certified distance,
PATIENCE = 100, 5000  # and ends after three times the rounds of the hardest problem, within these, without progress;
SOLVED = 0.3  # a round ends too when its own problem is solved this much better than the true one;
GAIN = 0.5  # one that leaves more than this has stalled


class Stored:
    """The rounds of one run on a copy of A.

    Attributes:
        stalled: whether the lower precision gains nothing any more.
    """

    def __init__(self, f: Saddle, storage: str) -> None:
        self.f, self.storage = f, storage
        self.S = narrowed(f.A, storage)
        self.patience = min(max(PATIENCE[0], 3.0 * chain_N(*f.numbers)), PATIENCE[1])
        self.began = self.least = math.inf  # certified distances at the start of the round, and the least in it
        self.marked = 0  # calls when it had last fallen
        self.stalled = False

    @property
    def marks(self) -> tuple[float, float, int]:
        """What it has noted of the round so far."""
        return self.began, self.least, self.marked

    @marks.setter
    def marks(self, noted: tuple[float, float, int]) -> None:
        self.began, self.least, self.marked = noted

    def begin(self, x: Array, y: Array) -> None:
        """A round begins at (x, y)."""
        self.x, self.y = x, y
        self.Ay, self.Atx = self.f.A.both(x, y)

    def problem(self, f: Saddle, S: Coupling) -> Saddle:
        """The problem of the round, in the distance to where it began; f and S may be counted."""
        g, h = affine(f.g, shift=self.x, linear=self.Ay), affine(f.h, shift=self.y, linear=-self.Atx)
        return Saddle.of(g, h, S, f.space)

    def over(self, x: Array, y: Array, distance: float, calls: int) -> bool:
        """Note the certified distance of (x, y) after so many calls; whether the round is over."""
        if self.began == math.inf:
            self.began = self.least = distance
        if distance < 0.9 * self.least:
            self.least, self.marked = distance, calls
        waits = calls - self.marked <= self.patience and self.least > ENOUGH * self.began
        if waits and self.own_distance(x, y) > SOLVED * distance:
            return False
        self.stalled = self.least > GAIN * self.began
        self.began, self.marked = self.least, calls
        return True

    def own_distance(self, x: Array, y: Array) -> float:
        """A bound on the distance from (x, y) to the saddle point of the round's own problem."""
        Fx, Fy = self.problem(self.f, self.S).field(x - self.x, y - self.y)
        return distance_bound(self.f.mu_x, self.f.mu_y, norm(Fx), norm(Fy))


class LowPrecisionCoupling(Coupling):
    """A copy of a coupling in fewer bits that takes and gives vectors in the old precision."""

    trusted = True

    def __init__(self, S: Coupling, space: Space, work: Space, norm: Norm) -> None:
        self.S, self._space, self.work, self._norm = S, space, work, norm
        self.shape, self.dtype = S.shape, space.dtype
        self.fused, self.fused_compiled = S.fused, S.fused_compiled

    @property
    def space(self) -> Space:
        """That of the true A."""
        return self._space

    @property
    def norm_estimate(self) -> Norm:
        """From that of the true A."""
        return self._norm

    def mul(self, y: Array) -> Array:
        """S y."""
        return self.space.cast(self.S.mul(self.work.cast(y)))

    def tmul(self, x: Array) -> Array:
        """S' x."""
        return self.space.cast(self.S.tmul(self.work.cast(x)))

    def both(self, x: Array, y: Array) -> tuple[Array, Array]:
        """(S y, S' x)."""
        Sy, Stx = self.S.both(self.work.cast(x), self.work.cast(y))
        return self.space.cast(Sy), self.space.cast(Stx)

    def through(self, y: Array, s: float = 1.0, e: Array | None = None) -> tuple[Array, Array]:
        """(t, S'(s t + e)) with t = S y."""
        t, u = self.S.through(self.work.cast(y), s, None if e is None else self.work.cast(e))
        return self.space.cast(t), self.space.cast(u)

    def _transpose(self) -> Coupling:
        return LowPrecisionCoupling(self.S.T, self.space, self.work, self._norm)


def narrowed(A: Coupling, storage: str) -> LowPrecisionCoupling:
    """A copy of A in ``storage``, which takes and gives vectors of the old dtype."""
    if not isinstance(storage, str) or storage not in UNITS:
        raise ProblemError(f"storage is {storage!r}; expected {' or '.join(UNITS)}")
    if UNITS[storage] <= 0.5 * A.space.eps:
        raise ProblemError(f"storage is {storage}, and A is {A.space}; expected a lower precision than A's")
    work = A.space._replace(dtype=np.dtype(np.float32) if A.space.is_numpy else A.space.xp.float32)
    if isinstance(A, ArrayCoupling):
        dtype = getattr(A.space.xp, storage, None)
        if dtype is None:
            raise ProblemError(f"storage is {storage}, which {A.space} has not; use float32")
        S: Coupling = type(A)(A.space.xp.astype(A.A, dtype))
    elif isinstance(A, DenseCoupling | SparseCoupling):
        if storage == "bfloat16":
            raise ProblemError("storage is bfloat16, which NumPy has not; use float32, or PyTorch or JAX arrays")
        S = type(A)(A.A.astype(storage))
    else:
        raise ProblemError(f"storage needs the entries of A, and A is a {type(A).__name__}; leave storage out")
    norm = A.norm_estimate
    growth = 1.0 + UNITS[storage] * math.sqrt(min(A.shape))  # |A - S| is at most the unit times the Frobenius norm
    return LowPrecisionCoupling(S, A.space, work, Norm(norm.lower / growth, norm.upper * growth, norm.failure, 0))
