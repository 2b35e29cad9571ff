r"""InteriorPoint: Mehrotra's predictor and corrector, for quadratic or linear g and h on simplices and boxes.

Problem:    min_x max_y g(x) + <x, A y> - h(y) with x and y in simplices or boxes; mu may be 0.
Recursion:  with slacks a = x - lower, b = upper - x and multipliers z, u > 0 of x (and the same of y), one Newton step
            for
                grad g(x) + A y - z + u + v 1 = 0,   sum x = total (on a simplex),   a z = b u = t,
            first with t = 0, then with t = s mean(a z, b u), where s is the cube of what the first step would leave of
            that mean, and with the products of the first step's changes. Of the way to the boundary, 99.5 % is taken.
            The linear system has the matrix [[P + z/a + u/b, A], [-A', Q + ...]] and is solved by a factorisation.
Guarantee:  none is proven for this rule of steps. Drawn problems with up to 40 variables a player take 6 to 17 steps,
            also where rows and columns of A have scales from 1e-2 to 1e2 (``tests/test_interior_point.py`` allows 25).
            Certificates do not depend on it.
Reference:  S. Mehrotra, On the implementation of a primal-dual interior point method, SIAM J. Optim. 1992.

Each matrix is counted as the oracle calls that would compute it, as for Newton's method.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.sparse import diags_array, issparse

from saddlepoint.ground.arrays import Array
from saddlepoint.ground.errors import SingularError
from saddlepoint.methods.base import Method, Needs
from saddlepoint.methods.direct import Solver, dense_solver, solver, sparse_solver, wide
from saddlepoint.methods.registry import register
from saddlepoint.parts.functions.smooth import Smooth
from saddlepoint.parts.simple import L1Box, Simplex
from saddlepoint.parts.simple.base import Simple
from saddlepoint.parts.simple.rescaled import Rescaled
from saddlepoint.problems.saddle import Saddle
from saddlepoint.theory.complexity import Complexity

SHARE = 0.995  # share of the way to the boundary that a step takes
START = 0.1  # weight of the given start; the rest is the centre of the domain
SIZE = 0.5  # least multiplier at the start, in units of the spread of the field
PATIENCE, FALL = 4, 0.9  # steps in which the mean of the products must fall below this share, or the method ends
FEW = 10  # entries of a row, in the mean, up to which a sparse factorisation is tried
DENSE = 25_000_000  # entries of a matrix up to which it is made dense


class InteriorPointState(NamedTuple):
    """The point, the slacks of all bounds, their multipliers, and those of the sums; x first, then y.

    Where there is no bound, the slack is infinite and the multiplier is 0.
    """

    x: Array
    y: Array
    low: Array
    up: Array
    z: Array
    u: Array
    v: Array
    least: float = math.inf  # the least mean of the products of slacks and multipliers so far
    since: int = 0  # steps since it fell


class Domain(NamedTuple):
    """The bounds of one player, and the sum of its variables; the sum is NaN unless they are in a simplex."""

    lower: Array
    upper: Array
    total: float = math.nan

    @property
    def is_simplex(self) -> bool:
        """Whether the sum is given."""
        return not math.isnan(self.total)


class Change(NamedTuple):
    """A Newton step: of the point, of the two multipliers of the bounds, and of those of the sums."""

    point: Array
    z: Array
    u: Array
    v: Array


@register
@dataclass(frozen=True)
class InteriorPoint(Method):
    """Mehrotra's interior-point method on simplices and boxes."""

    name: ClassVar[str] = "interior-point"
    needs: ClassVar[Needs] = Needs(
        quadratic=True, hessians=True, matrix=True, mu=False, strong=False, smooth=False, barrier=True
    )
    complexity: ClassVar[Complexity] = Complexity("10 to 20 factorisations")
    works: ClassVar[tuple[str, ...]] = ("mehrotra1992",)

    def init(self, f: Saddle, x: Array, y: Array) -> InteriorPointState:
        """A point between the start and the centre of the domain, with multipliers that fit the field there."""
        places = domains(f)
        x, y = (inside(place, v).astype(v.dtype) for place, v in zip(places, (x, y), strict=True))
        low = np.concatenate((x - places[0].lower, y - places[1].lower))
        up = np.concatenate((places[0].upper - x, places[1].upper - y))
        field, E = f.field(x, y), sums(f)
        least = SIZE * max(f.norm / math.sqrt(max(f.shape)), *(float(np.ptp(F)) for F in field)) or 1.0
        v = np.array(
            [least - float(F.min()) if place.is_simplex else 0.0 for F, place in zip(field, places, strict=True)]
        )
        F = np.concatenate(field) + v @ E
        z = np.where(low < math.inf, np.maximum(F, 0.0) + least * (up < math.inf), 0.0)
        z = np.maximum(z, least * (low < math.inf))
        u = np.where(up < math.inf, np.maximum(-F, 0.0) + least, 0.0)
        return InteriorPointState(x, y, low, up, z, u, v)

    def step(self, f: Saddle, s: InteriorPointState) -> InteriorPointState:
        """The state after one step: a query, the matrices, and a factorisation."""
        m, equations = f.shape[0], Equations(factorised(f, s), sums(f), wide(np.concatenate(f.field(s.x, s.y))), s)
        linear = f.g.L == f.h.L == 0.0
        with np.errstate(all="ignore"):  # what is not finite is found below
            first = equations.step(0.0, 0.0, 0.0)
            mean, left = mean_product(s), mean_product(after(s, first, m, 1.0, linear))
            target = mean * min(left / mean, 1.0) ** 3 if mean > 0.0 else 0.0
            change = equations.step(target, first.point * first.z, -first.point * first.u)
            found = after(s, change, m, SHARE, linear)
        if not np.isfinite(np.concatenate((found.x, found.y, found.z, found.u))).all() or s.since >= PATIENCE:
            raise SingularError("rounding errors are larger than the progress of a step")
        fell = mean < FALL * s.least or mean == 0.0
        return found._replace(least=mean if fell else s.least, since=0 if fell else s.since + 1)


def domains(f: Saddle) -> tuple[Domain, Domain]:
    """The domains of both players."""
    return domain(f.g.simple, f.shape[0]), domain(f.h.simple, f.shape[1])


def domain(p: Simple | None, n: int) -> Domain:
    """The domain of a player with n variables and the simple term p."""
    if isinstance(p, Rescaled):
        plain = domain(p.p, n)
        return Domain(plain.lower / p.scale, plain.upper / p.scale, plain.total / p.scale)
    if isinstance(p, Simplex):
        return Domain(np.zeros(n), np.full(n, math.inf), p.total)
    if isinstance(p, L1Box):
        return Domain(p.lower.everywhere(n), p.upper.everywhere(n))
    return Domain(np.full(n, -math.inf), np.full(n, math.inf))


def has_barrier(p: Simple | None) -> bool:
    """Whether the term is a simplex or a box with an interior; no term is a box without bounds."""
    if isinstance(p, Rescaled):
        return p.scale > 0.0 and has_barrier(p.p)
    if isinstance(p, L1Box):
        lower, upper = (part.everywhere(p.dim or 1) for part in (p.lower, p.upper))
        return p.weight.most == 0.0 and bool((lower < upper).all())
    return p is None or isinstance(p, Simplex)


def inside(place: Domain, x: Array) -> Array:
    """A point inside the domain, on the way from x to the centre."""
    if place.is_simplex:
        centre = np.full(len(x), place.total / len(x))
        x = np.maximum(x, 0.0)
        return START * x * (place.total / x.sum()) + (1.0 - START) * centre if x.sum() > 0.0 else centre
    lower, upper = place.lower, place.upper
    with np.errstate(invalid="ignore"):
        middle = np.where(lower + upper == 0.0, 0.0, 0.5 * lower + 0.5 * upper)
    one_sided = np.where(lower > -math.inf, np.maximum(x, lower + 1.0), np.minimum(x, upper - 1.0))
    between = START * np.clip(x, lower, upper) + (1.0 - START) * middle
    bounded = (lower > -math.inf) & (upper < math.inf)
    free = (lower == -math.inf) & (upper == math.inf)
    return np.asarray(np.where(bounded, between, np.where(free, x, one_sided)))


def sums(f: Saddle) -> Array:
    """The matrix whose rows add up the variables of x and of y; a row of zeros for a player without a simplex."""
    E = np.zeros((2, sum(f.shape)))
    of_x, of_y = domains(f)
    E[0, : f.shape[0]], E[1, f.shape[0] :] = of_x.is_simplex, of_y.is_simplex
    return E


def factorised(f: Saddle, s: InteriorPointState) -> Solver:
    """The solver of Newton's equations without the sums, with one step of refinement."""
    m, A, barrier = f.shape[0], _stored(wide(f.A.matrix())), s.z / s.low + s.u / s.up
    P, Q = _hessian(f.g, s.x), _hessian(f.h, s.y)
    exact = _plus(P, barrier[:m]), _plus(Q, barrier[m:])
    solve = _solver(*exact, A)

    def refined(u: Array, v: Array) -> tuple[Array, Array]:
        x, y = solve(u, v)
        dx, dy = solve(u - exact[0] @ x - A @ y, v - exact[1] @ y + A.T @ x)
        return x + dx, y + dy

    return refined


def _solver(P: Any, Q: Any, A: Any) -> Solver:
    """The fastest factorisation that works: that of the whole matrix is slower and more accurate.

    A whole matrix that is too large to be dense is not tried; the method then ends with what it has.
    """
    if all(map(issparse, (P, Q, A))):
        return sparse_solver(P, Q, A)
    try:
        return solver(P, Q, A)
    except SingularError:
        if sum(A.shape) ** 2 > DENSE:
            raise
        return dense_solver(P, Q, A)


def _stored(A: Any) -> Any:
    """The matrix, dense if it has so many entries that the factors would be dense too."""
    return A.toarray() if issparse(A) and not is_very_sparse(A) and A.shape[0] * A.shape[1] <= DENSE else A


def is_very_sparse(A: Any) -> bool:
    """Whether a sparse matrix has so few entries in a row that a sparse factorisation is tried."""
    return bool(A.nnz <= FEW * sum(A.shape))


def _hessian(g: Smooth, x: Array) -> Any:
    assert g.hessian is not None
    return wide(g.hessian(x))


def _plus(H: Any, diagonal: Array) -> Any:
    return H + diags_array(diagonal) if issparse(H) else H + np.diag(diagonal)


class Equations(NamedTuple):
    """Newton's equations at a state, with a factorisation: E adds up the variables, F is the field there."""

    solve: Solver
    E: Array
    F: Array
    s: InteriorPointState

    def step(self, target: float, low_second: Any, up_second: Any) -> Change:
        """The step that removes the residual and brings the products of slacks and multipliers to the target.

        The products of the changes of an earlier step are what the linear equations leave out.
        """
        s, E = self.s, self.E
        low, up = (target - low_second) / s.low - s.z, (target - up_second) / s.up - s.u
        d = self.solved(low - up - (self.F + s.v @ E - s.z + s.u))
        W = np.array([self.solved(e) for e in E])
        of_sums, left = E @ W.T, E @ d
        if not (np.isfinite(of_sums).all() and np.isfinite(left).all()):
            raise SingularError("the solution of Newton's equations is not finite")
        v = np.linalg.lstsq(of_sums, left)[0]  # the sums are right at the start, and stay so
        d = d - v @ W
        return Change(d, low - s.z / s.low * d, up + s.u / s.up * d, v)

    def solved(self, right: Array) -> Array:
        """The solution for one right-hand side."""
        m = len(self.s.x)
        return np.concatenate(self.solve(right[:m], right[m:]))


def after(s: InteriorPointState, change: Change, m: int, share: float, linear: bool) -> InteriorPointState:
    """The state after this share of the longest steps that stay inside, or after a whole step.

    The multipliers of x depend on y, and those of y on x, if g and h are linear. Then x and the multipliers of y have
    one step, and the others another one.
    """
    d, n = change.point, len(change.point) - m
    room, dual_room = (
        np.minimum(_room(s.low, d), _room(s.up, -d)),
        np.minimum(_room(s.z, change.z), _room(s.u, change.u)),
    )
    one = min(1.0, share * float(room[:m].min()), share * float(dual_room[m:].min()))
    other = min(1.0, share * float(room[m:].min()), share * float(dual_room[:m].min()))
    if not linear:
        one = other = min(one, other)
    of_point, of_dual = np.repeat((one, other), (m, n)), np.repeat((other, one), (m, n))
    step = of_point * d
    return InteriorPointState(
        (s.x + step[:m]).astype(s.x.dtype),
        (s.y + step[m:]).astype(s.y.dtype),
        s.low + step,
        s.up - step,
        s.z + of_dual * change.z,
        s.u + of_dual * change.u,
        s.v + np.array((other, one)) * change.v,
    )


def _room(v: Array, d: Array) -> Array:
    """The steps at which the entries of v + step d become 0; infinite where they do not."""
    return np.asarray(np.where(d < 0.0, v / np.where(d < 0.0, -d, 1.0), math.inf))


def mean_product(s: InteriorPointState) -> float:
    """The mean of the products of slacks and multipliers."""
    low, up = s.low < math.inf, s.up < math.inf
    total = float(s.low[low] @ s.z[low]) + float(s.up[up] @ s.u[up])
    return total / max(int(low.sum()) + int(up.sum()), 1)
