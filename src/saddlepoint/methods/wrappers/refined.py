r"""Refined: any method on a copy of A in a lower precision, corrected by products with A itself.

Problem:    F(x, y) = (grad g(x) + A y, grad h(y) - A' x) = 0, with most products taken from a copy S of A in a lower
            precision.
Recursion:  x_{k+1} = x_k + u, y_{k+1} = y_k + v, where (u, v) is nearly the saddle point of the correction problem
                g(x_k + u) + <A y_k, u> + <u, S v> - h(y_k + v) + <A' x_k, v>,
            found by the wrapped method; A y_k and A' x_k are products with A itself.
Guarantee:  one correction multiplies the distance to the saddle point by at most |A - S|/sqrt(mu_x mu_y), up to the
            accuracy of (u, v). When a correction does not halve the proven distance, the wrapped method goes on with A.
Reference:  J. Wilkinson, Rounding Errors in Algebraic Processes, 1963; N. Higham and T. Mary, Mixed precision
            algorithms in numerical linear algebra, Acta Numerica 2022.

A correction ends when the distance that is proven for its own problem has fallen to ``fall`` times that at its start,
or to half of the factor that the previous correction gained, if the copy allowed no more. The test costs one query of
the copy; it is made in the steps 8, 10, 13, ..., each a quarter later than the one before. The end of a correction
costs one query of the problem itself.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

from saddlepoint.ground.arrays import Array
from saddlepoint.ground.errors import NotFinite, ProblemError
from saddlepoint.ground.linalg import norm
from saddlepoint.methods.base import InnerRun, Needs, choice_option, float_option
from saddlepoint.methods.wrappers.base import Wrapper, next_check
from saddlepoint.parts.coupling.low_precision import ROUNDING, low_precision
from saddlepoint.parts.functions.affine import affine
from saddlepoint.problems.saddle import Saddle
from saddlepoint.theory.certificate import distance_bound
from saddlepoint.theory.lower import chain_N

FIRST_TEST = 8  # step of a correction after which its end is tested first
TEST_GROWTH = 1.25  # factor between the steps of two tests
LEAST_STEPS, MOST_STEPS = 100, 5000  # bounds on the steps of a correction that does not reach its accuracy
EXACT = object()  # the ``origin`` of steps on the problem itself; a correction problem has its start as origin
REQUIRED_GAIN = 0.5  # largest share of the distance that a correction may leave if another one is to follow
LARGEST_FALL = 0.3  # largest share of the proven distance at which a correction is to end


class RefinedState(NamedTuple):
    """The point, the state of the wrapped method, and the current correction."""

    x: Array
    y: Array
    inner: Any  # the wrapped method's state, in (u, v); in (x, y) once ``exact`` is set
    x0: Array  # the point at which the correction began
    y0: Array
    Ay0: Array
    Atx0: Array
    start: float  # the distance that was proven at (x0, y0)
    fall: float  # the share of ``start`` at which the correction ends
    k: int  # number of steps of the correction so far
    test: int  # the step after which its end is tested next
    exact: bool  # True once the copy has gained too little and the wrapped method uses A itself


@dataclass(frozen=True)
class Refined(Wrapper):
    """Iterative refinement around another method."""

    storage: str = choice_option("float32", "precision of the copy of A", tuple(ROUNDING))
    fall: float = float_option(0.01, "the share of the proven distance at which a correction ends", 0.0, 1.0)

    own_works: ClassVar[tuple[str, ...]] = ("higham2022",)

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.inner, Refined):
            raise ProblemError("refined wraps refined; one copy of A is enough, give the method itself")

    @property
    def needs(self) -> Needs:  # type: ignore[override]
        """The needs of the inner method, and functions without simple terms, which a correction would have to move."""
        return replace(self.method.needs, smooth=True)

    def init(self, f: Saddle, x: Array, y: Array) -> RefinedState:
        """The start of the first correction; one query of the problem itself."""
        Ay, Atx, start = query(f, x, y)
        return self.begin(f, x, y, Ay, Atx, start, self.fall)

    def begin(self, f: Saddle, x: Array, y: Array, Ay: Array, Atx: Array, start: float, fall: float) -> RefinedState:
        """The state at the start of a correction."""
        s = RefinedState(x, y, None, x, y, Ay, Atx, start, fall, 0, FIRST_TEST, False)
        return s._replace(inner=self.method.init(self.correction(f, s), 0.0 * x, 0.0 * y))

    def correction(self, f: Saddle, s: RefinedState) -> Saddle:
        """The correction problem, in (u, v)."""
        g, h = affine(f.g, shift=s.x0, linear=s.Ay0), affine(f.h, shift=s.y0, linear=-s.Atx0)
        return Saddle.of(g, h, low_precision(f.A, self.storage), f.space)

    def step(self, f: Saddle, s: RefinedState) -> RefinedState:
        """The state after one step of the inner method; a new correction begins if that has solved the problem."""
        if s.exact:
            inner = self.method.step(f, s.inner)
            return s._replace(x=inner.x, y=inner.y, inner=inner, k=s.k + 1)
        low = self.correction(f, s)
        try:
            s = advanced(s, self.method.step(low, s.inner), 1)
        except NotFinite:  # the copy cannot hold such vectors
            return self.exactly_from_start(f, s)
        is_tested = s.k <= FIRST_TEST or f.space.on_host  # elsewhere it costs a wait; the tests find it, too
        if is_tested and not math.isfinite(norm(s.x) + norm(s.y)):
            return self.exactly_from_start(f, s)
        if s.k < s.test:
            return s
        own = proven_distance(f, *low.field(s.inner.x, s.inner.y))
        if own > s.fall * s.start and s.k < most_steps(f):
            return s._replace(test=next_check(s.k, TEST_GROWTH))
        return self.correct(f, s)

    def exactly_from_start(self, f: Saddle, s: RefinedState) -> RefinedState:
        """The start of the method with A itself, where the last correction began."""
        return s._replace(x=s.x0, y=s.y0, inner=self.method.init(f, s.x0, s.y0), k=0, exact=True)

    def correct(self, f: Saddle, s: RefinedState) -> RefinedState:
        """The start of the next correction, or of the method with A itself if this correction gained too little."""
        Ay, Atx, end = query(f, s.x, s.y)
        if end <= REQUIRED_GAIN * s.start and s.start > 0.0:
            return self.begin(f, s.x, s.y, Ay, Atx, end, max(self.fall, min(0.5 * end / s.start, LARGEST_FALL)))
        x, y = (s.x, s.y) if end < s.start else (s.x0, s.y0)
        return s._replace(x=x, y=y, inner=self.method.init(f, x, y), k=0, exact=True)

    def inner_run(self, f: Saddle, s: RefinedState) -> InnerRun:
        """The steps of the inner method until the next test, or without end once A itself is used."""
        if s.exact:
            return InnerRun(self.method, f, s.inner, math.inf, lambda inner, count: exactly(s, inner, count), EXACT)
        return InnerRun(
            self.method,
            self.correction(f, s),
            s.inner,
            s.test - s.k - 1,
            lambda inner, count: advanced(s, inner, count),
            s.x0,
        )

    def note(self, s: RefinedState | None) -> str:
        """A remark if the copy in lower precision was given up."""
        return f"A in {self.storage} gained no more, then A itself" if s is not None and s.exact else ""


def advanced(s: RefinedState, inner: Any, count: int) -> RefinedState:
    """The state after ``count`` steps of the inner method on the correction problem."""
    return s._replace(x=s.x0 + inner.x, y=s.y0 + inner.y, inner=inner, k=s.k + count)


def exactly(s: RefinedState, inner: Any, count: int) -> RefinedState:
    """The state after ``count`` steps of the inner method on the problem itself."""
    return s._replace(x=inner.x, y=inner.y, inner=inner, k=s.k + count)


def query(f: Saddle, x: Array, y: Array) -> tuple[Array, Array, float]:
    """A y, A' x, and the distance to the saddle point that they prove."""
    Ay, Atx = f.A.both(x, y)
    return Ay, Atx, proven_distance(f, f.g.grad(x) + Ay, f.h.grad(y) - Atx)


def proven_distance(f: Saddle, Fx: Array, Fy: Array) -> float:
    """A bound on the distance from the point with this field to the saddle point; |F| where mu is unknown."""
    if math.isnan(f.mu_x + f.mu_y):
        return math.hypot(norm(Fx), norm(Fy))
    return distance_bound(f.mu_x, f.mu_y, norm(Fx), norm(Fy))


def most_steps(f: Saddle) -> float:
    """Most steps of a correction: a good method solves the hardest problem with these constants within them."""
    if math.isnan(f.mu_x + f.mu_y):
        return MOST_STEPS
    return min(max(LEAST_STEPS, 3.0 * chain_N(*f.numbers)), MOST_STEPS)
