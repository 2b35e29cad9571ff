r"""A good start for losses and penalties that are piecewise linear: Newton's method, and proximal steps in y.

Problem:    min_x max_y g(x) + p(x) + <x, A y> + c'y - q(y), where g has a Hessian, and p and q are l1 norms with bounds
            on the coordinates, or zero; p may also be norms of disjoint groups. The hinge loss is c = 1, A = -D' with
            signs, and 0 <= y <= 1.
Recursion:  y is kept near the last one by |y - y0|^2/(2 sigma). What remains of the maximum over y is a smooth function
            of r = c + A'x, whose slope is y = prox_{sigma q}(y0 + sigma r), and whose second derivative is sigma in the
            coordinates F of y that are off their bounds and kinks. So the problem in x is solved by Newton's
            method; few samples are in F. Then y0 becomes y, and sigma grows. The term p is written as a maximum over
            further y_i, with multiples of x_i as the entries of r, so that Newton's method sees a smooth function. If
            p is a sum of norms of groups, sqrt(|x_G|^2 + delta^2) takes the place of |x_G|, and delta shrinks as sigma
            grows.
            Once there are no more coordinates of y off their faces than of x, or two values of sigma in a row leave
            both on the same faces, the equations of these faces are solved directly.
Guarantee:  none here. The point is a start: ``solve`` goes on from it and certifies what it returns.
Reference:  R. T. Rockafellar, Augmented Lagrangians and applications of the proximal point algorithm in convex
            programming, Math. Oper. Res. 1976; X. Li, D. Sun and K.-C. Toh, A highly efficient semismooth Newton
            augmented Lagrangian method for solving lasso problems, SIAM J. Optim. 2018.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import LinAlgError
from scipy.sparse import csr_array, issparse
from scipy.sparse.linalg import LinearOperator, cg

from saddlepoint.apps.smooth_norms import SmoothNorms
from saddlepoint.ground.arrays import Array, dense
from saddlepoint.ground.compensated import EPS
from saddlepoint.ground.definite_solution import definite_solution, plus_diagonal, semidefinite_solution
from saddlepoint.ground.linalg import inner, max_abs
from saddlepoint.ground.time_limit import TimeLimit
from saddlepoint.parts.functions.smooth import Smooth
from saddlepoint.parts.simple import Groups, L1Box
from saddlepoint.problems.saddle import Saddle

OUTER = 40  # the most values of sigma
INNER = 1.0  # the gap of x at which sigma grows, relative to |y - y0|^2/sigma
STEPS = 60  # the most Newton steps for one value of sigma
GROWTH = 3.0  # factor of sigma
DENSE = 2000  # up to this many unknowns, Newton's equations are factorised
WORSE = 1e3  # sigma grows no more if a gap is this many times the least one so far
STEADY = 0.9  # if sigma grows no more, the run ends where a gap is more than this times the least one before it
SEARCH = 20  # the most points of a search along a step
SLOPE = 0.1  # the derivative along a step, relative to the first one, at which its search ends
MORE = 50  # most equations beyond the unknowns with which the equations of the faces are solved: some may be the same
AT_FLOOR = 8.0  # gap of a solution of these equations that is called rounding, in units of what rounding usually makes
ARMIJO = 1e-4  # part of the predicted descent that a step must reach
TINY = float(np.finfo(np.float64).tiny)  # the smallest normal number
NONE = np.zeros(0, dtype=np.intp)  # the numbers of no coordinates
FREE = L1Box(0.0)  # the simple term that is zero everywhere


class _Point(NamedTuple):
    """A point, and what Newton's method needs of it.

    Attributes:
        x: the weights.
        r: c + A'x, and after it the entries of x that p is about, times ``unit``.
        y: the slope of the smooth function of r.
        slope: the gradient of what is minimised.
        value: what is minimised; NaN if it was not asked for.
    """

    x: Array
    r: Array
    y: Array
    slope: Array
    value: float


class PiecewiseLinear:
    """The problem of ``f``, whose h is linear plus an L1Box, and whose g has values and Hessians.

    Args:
        f: the problem; its A must have a matrix. The term of x must be one of those of ``suits``.
        ridge: the number rho if g is rho/2 |x|^2, so that Newton's equations can be solved in the coordinates F of y;
            None otherwise.
    """

    def __init__(self, f: Saddle, ridge: float | None = None) -> None:
        assert isinstance(f.h.simple, L1Box)
        n, N = f.shape
        self.g, self.ridge, self.mu, p, self.norms = f.g, ridge, f.g.mu, f.g.simple, None
        if isinstance(p, Groups):
            norms = self.norms = SmoothNorms(p, f.g, n)
            self.g = Smooth(norms.grad, mu=f.g.mu, L=f.g.L, value=norms.value, hessian=norms.hessian, dim=n)
            self.ridge, p = None, None
        assert p is None or isinstance(p, L1Box)
        rows = f.A.matrix().T
        self.rows: Any = csr_array(rows) if issparse(rows) else np.ascontiguousarray(rows)
        self.columns = self.rows.T
        self.c = -np.asarray(f.h.grad(np.zeros(N)))
        self.p, self.q = p or FREE, f.h.simple
        square = _mean_square(self.rows)
        self.unit = math.sqrt(square) if square > 0.0 else 1.0
        self.both, self.termed, (weight, lower, upper) = self.q, NONE, _arrays(self.q, N)
        self.bounded = bool(np.isfinite(lower).all() and np.isfinite(upper).all())
        if self.p is not FREE:
            self.termed, conjugate = _as_maximum(self.p, n, self.unit)
            weight, lower, upper = map(np.concatenate, zip((weight, lower, upper), conjugate, strict=True))
            self.both = L1Box(weight, lower, upper)
        self.interval = None if weight.any() else (lower, upper)

    @staticmethod
    def suits(f: Saddle) -> bool:
        """Whether the terms of x and y have the right form: an L1Box each, with bounds on x that are 0 or infinite.

        The term of x may also be norms of groups, if g has Hessians.
        """
        p, q = f.g.simple, f.h.simple
        if isinstance(p, Groups) and isinstance(q, L1Box):
            return f.g.value is not None and f.g.hessian is not None and f.shape[0] <= DENSE
        if not isinstance(q, L1Box) or not (p is None or isinstance(p, L1Box)):
            return False
        bounds = p is None or (np.isin(p.lower.value, (0.0, -math.inf)).all() and p.upper.least == math.inf)
        return bool(bounds) and f.g.value is not None

    def start(self, distance: float, max_seconds: float | None = None) -> tuple[Array, Array]:
        """A point where x is likely to be within ``distance`` of the solution."""
        limit, faces, N = TimeLimit(max_seconds), None, self.rows.shape[0]
        sigma = self.mu / self.unit**2  # y moves as far as one step of x asks
        x, y = np.zeros(self.rows.shape[1]), np.asarray(self.both.project(np.zeros(N + self.termed.size)))
        best, least, lowest, growth, kept = (x, y[:N]), math.inf, math.inf, GROWTH, (x, y)
        if self.norms is not None:
            self.norms.delta = max(math.sqrt(inner(self.c, self.c) / N), TINY) / self.unit  # the scale of x
        for _ in range(OUTER):
            x, y = self._newton(x, y, sigma, 0.5 * self.mu * distance**2, lowest)
            point, before = (self._on_kinks(x, y), y[:N]), faces
            gap, floor = self._gap(*point)
            faces = self._faces_of_x(point[0]), self._faces_of_y(point[1])
            off = int(np.count_nonzero(faces[1] == 0.0))
            if 0 < off <= x.shape[0] or (before is not None and all(map(np.array_equal, before, faces))):
                better = self._on_faces(*point, *faces)
                gap_there, floor_there = self._gap(*better)
                if better[0] is not point[0] and gap_there <= AT_FLOOR * floor_there:
                    return better
                if gap_there < min(gap, least):
                    best, least = better, gap_there
            before_it = lowest
            if gap < lowest:
                lowest, kept = gap, (x, y)
            if gap < least:
                best, least = point, gap
            if least <= max(0.25 * self.mu * distance**2, floor) or limit.is_over:
                break
            if growth == 1.0:
                if gap > STEADY * before_it:
                    break
            elif gap > WORSE * lowest:  # sigma times the rounding of r is too much for y
                (x, y), growth, sigma = kept, 1.0, sigma / GROWTH
            sigma *= growth
            if self.norms is not None:
                self.norms.delta /= GROWTH
        return best

    # -- products ------------------------------------------------------------------------------------------------------

    def _times(self, x: Array) -> Array:
        """A'x, and the entries of x in the term."""
        found: Array = self.rows.dot(x)
        return np.concatenate((found, self.unit * x[self.termed])) if self.termed.size else found

    def _slope(self, x: Array, y: Array) -> Array:
        """grad g(x) + A y, and what the term adds."""
        N = self.rows.shape[0]
        found = self._gradient(x) + self.columns.dot(y[:N])
        if self.termed.size:
            found[self.termed] += self.unit * y[N:]
        return np.asarray(found)

    def _gradient(self, x: Array) -> Array:
        """The gradient of g at x."""
        return np.asarray(self.g.grad(x) if self.ridge is None else self.ridge * x)

    def _prox(self, v: Array, sigma: float) -> Array:
        """The prox of the terms of y in the place of v; without weights, it is the nearest point of the interval."""
        if self.interval is None:
            return np.asarray(self.both.prox(v, sigma))
        np.maximum(v, self.interval[0], out=v)
        return np.asarray(np.minimum(v, self.interval[1], out=v))

    def _free(self, y: Array) -> Array:
        """The coordinates of y that are off their bounds and kinks."""
        if self.interval is None:
            return np.flatnonzero(self.both.faces(y) == 0.0)
        return np.flatnonzero((y > self.interval[0]) & (y < self.interval[1]))

    # -- one value of sigma --------------------------------------------------------------------------------------------

    def _newton(self, x: Array, y0: Array, sigma: float, goal: float, least: float) -> tuple[Array, Array]:
        """The minimiser for y0 and sigma, nearly, and its y."""
        r = self._times(x)
        r[: self.c.shape[0]] += self.c
        at = self._at(x, y0, sigma, r)
        for _ in range(STEPS):
            left = inner(at.slope, at.slope) / (2.0 * self.mu)
            away = at.y - y0
            if left <= max(0.1 * goal, INNER * min(inner(away, away) / sigma, least)):
                break
            try:
                step = -self._solve(at.x, self._free(at.y), sigma, at.slope)
            except LinAlgError:
                break
            search = self._descended if self.ridge is None else self._searched
            moved = search(at, step, self._times(step), y0, sigma)
            if moved is None:
                break
            at = moved
        return at.x, at.y

    def _at(self, x: Array, y0: Array, sigma: float, r: Array) -> _Point:
        """The point with the weights x, of which r has the products."""
        y = self._prox(y0 + sigma * r, sigma)
        value = math.nan
        if self.ridge is None:
            assert self.g.value is not None
            away = y - y0
            value = self.g.value(x) + inner(r, y) - self.both(y) - inner(away, away) / (2.0 * sigma)
        return _Point(x, r, y, self._slope(x, y), value)

    def _descended(self, at: _Point, step: Array, change: Array, y0: Array, sigma: float) -> _Point | None:
        """The point after the step, which is halved until it descends; None if it never does."""
        length, descent = 1.0, inner(at.slope, step)
        for _ in range(STEPS):
            found = self._at(at.x + length * step, y0, sigma, at.r + length * change)
            if found.value <= at.value + ARMIJO * length * descent + 4.0 * EPS * abs(at.value):
                return found
            length *= 0.5
        return None

    def _searched(self, at: _Point, step: Array, change: Array, y0: Array, sigma: float) -> _Point | None:
        """The lowest point in the direction of the step, nearly; None if it does not descend.

        The derivative along it is increasing and piecewise linear, and costs no product with A: secants find its zero.
        """
        assert self.ridge is not None
        linear, square = self.ridge * inner(at.x, step), self.ridge * inner(step, step)
        before, direction = y0 + sigma * at.r, sigma * change

        def derivative(t: float) -> float:
            return linear + t * square + inner(self._prox(before + t * direction, sigma), change)

        first = linear + inner(at.y, change)
        if not first < 0.0:
            return None
        (a, at_a), (b, at_b), t, at_t = (0.0, first), (math.inf, math.inf), 1.0, derivative(1.0)
        for _ in range(SEARCH):
            if abs(at_t) <= SLOPE * abs(first):
                break
            if at_t < 0.0:  # an end that stays counts for half its derivative, so that the other one moves farther
                (a, at_a), at_b = (t, at_t), 0.5 * at_b if a > 0.0 else at_b
            else:
                (b, at_b), at_a = (t, at_t), 0.5 * at_a if b < math.inf else at_a
            t = 2.0 * a if b == math.inf else min(max(b - at_b * (b - a) / (at_b - at_a), 0.95 * a + 0.05 * b), b)
            at_t = derivative(t)
        return self._at(at.x + t * step, y0, sigma, at.r + t * change)

    def _solve(self, x: Array, F: Array, sigma: float, b: Array) -> Array:
        """(H + sigma B'B)^-1 b for the rows B in F, of which those of the term are multiples of unit vectors."""
        N, n = self.rows.shape
        if self.ridge is not None and not self.termed.size and 0 < F.size < min(n, DENSE):
            B = self.rows[F]
            K = plus_diagonal(dense(B @ B.T), self.ridge / sigma)
            return np.asarray(b - B.T.dot(definite_solution(K, B.dot(b)))) / self.ridge
        B = self.rows[F[F < N]]
        diagonal = np.zeros(n)
        diagonal[self.termed[F[F >= N] - N]] = sigma * self.unit**2
        if self.ridge is not None:
            diagonal += self.ridge
            if min(B.shape) > DENSE:
                operator = LinearOperator((n, n), matvec=lambda v: diagonal * v + sigma * (B.T @ (B @ v)), dtype=float)
                return np.asarray(cg(operator, b, rtol=1e-6, maxiter=500)[0])
            if B.shape[0] < n:
                scaled = b / diagonal
                if not B.shape[0]:
                    return scaled
                K = dense(B @ (B.T / diagonal[:, None] if not issparse(B) else B.T.multiply(1.0 / diagonal[:, None])))
                y = definite_solution(plus_diagonal(K, 1.0 / sigma), B @ scaled)
                return np.asarray(scaled - (B.T @ y) / diagonal)
        H = sigma * dense(B.T @ B)
        if self.ridge is None:
            assert self.g.hessian is not None
            H += dense(self.g.hessian(x))
        return definite_solution(plus_diagonal(H, diagonal), b)

    # -- the equations of the faces ------------------------------------------------------------------------------------

    def _on_kinks(self, x: Array, y: Array) -> Array:
        """x with zeros where the term holds it at its kink or bound."""
        if not self.termed.size and self.norms is None:
            return x
        x = x.copy()
        x[self.termed[self.both.faces(y)[self.rows.shape[0] :] == 0.0]] = 0.0
        return np.asarray(self.p.project(x if self.norms is None else self.norms.without_small_groups(x)))

    def _faces_of_x(self, x: Array) -> Array:
        """For each coordinate, a number for the face of the term on which x is there; 0 where it is on none."""
        return self.p.faces(x) if self.norms is None else np.where(self.norms.used(x), 0.0, 1.0)

    def _faces_of_y(self, y: Array) -> Array:
        """The same for y."""
        if self.interval is None:
            return self.q.faces(y)
        lower, upper = (end[: y.shape[0]] for end in self.interval)
        return np.asarray((y <= lower) + 2.0 * (y >= upper))

    def _gap(self, x: Array, y: Array) -> tuple[float, float]:
        """About the duality gap at (x, y), and what rounding makes of it at the solution."""
        w, r = self.columns.dot(y), self.c + self.rows.dot(x)
        residual = self._residual(x, w)
        free = int(np.count_nonzero(self._faces_of_y(y) == 0.0))
        floor = 0.4 * EPS * (free + 1) * (max_abs(self.c) + max_abs(r))
        return inner(residual, residual) / (2.0 * self.mu) + self._fenchel_gap(y, r), floor

    def _fenchel_gap(self, y: Array, r: Array) -> float:
        """About q(y) + q*(r) - r'y."""
        if self.interval is None or not self.bounded:
            return self.q.fenchel_gap(y, r)
        lower, upper = (end[: y.shape[0]] for end in self.interval)
        return inner(np.maximum(r, 0.0), upper - y) + inner(np.minimum(r, 0.0), lower - y)

    def _residual(self, x: Array, w: Array) -> Array:
        """grad g(x) + w plus a subgradient of the term of x."""
        if self.norms is not None:
            return self.norms.residual(x, w)
        slope = self._gradient(x) + w
        return slope if self.p is FREE else np.asarray(slope + self.p.subgradient(x, -slope))

    def _on_faces(self, x: Array, y: Array, faces_x: Array, faces_y: Array) -> tuple[Array, Array]:
        """The solution if x and y are on their faces: grad g + s + A y = 0 in S, and r = s in F; (x, y) if it is not.

        Two steps of Newton's method; the second one corrects the rounding of the first.
        """
        S, F = np.flatnonzero(faces_x == 0.0), np.flatnonzero(faces_y == 0.0)
        size = F.size + (S.size if self.ridge is None else 0)
        if not 0 < F.size <= S.size + MORE or size > DENSE:
            return x, y
        B, H = dense(self.rows[F])[:, S], None
        hessian = self.g.hessian if self.norms is None else self.norms.exact().hessian
        if self.ridge is None and hessian is not None:
            H = dense(hessian(x))[np.ix_(S, S)]
        new_x, new_y = x.copy(), y.copy()
        for _ in range(2):
            r, R = self.c + self.rows.dot(new_x), self._residual(new_x, self.columns.dot(new_y))[S]
            t = r[F] if self.interval is not None else (r - self.q.subgradient(new_y, r))[F]
            try:
                if H is None:
                    assert self.ridge is not None
                    e = semidefinite_solution(B @ B.T, self.ridge * t - B @ R)
                    d = -(R + e @ B) / self.ridge
                else:
                    K = np.block([[H, B.T], [B, np.zeros((F.size, F.size))]])
                    both = np.linalg.lstsq(K, -np.concatenate((R, t)), rcond=None)[0]
                    d, e = both[: S.size], both[S.size :]
            except LinAlgError:
                return x, y
            new_x[S] += d
            new_y[F] += e
            same = np.array_equal(self._faces_of_x(new_x), faces_x) and (new_x[S] * x[S] >= 0.0).all()
            if not (same and np.array_equal(self._faces_of_y(new_y), faces_y) and self.q.outside(new_y) == 0.0):
                return x, y
        return new_x, new_y


def _arrays(p: L1Box, n: int) -> tuple[Array, Array, Array]:
    """The weights and the bounds of n coordinates."""
    return p.weight.everywhere(n), p.lower.everywhere(n), p.upper.everywhere(n)


def _as_maximum(p: L1Box, n: int, unit: float) -> tuple[Array, tuple[Array, Array, Array]]:
    """The coordinates that p is about, and p as a maximum over y_i of unit x_i y_i: the weight and bounds of y_i.

    weight |x_i| is that over |y_i| <= weight/unit; with x_i >= 0, y_i has no lower bound.
    """
    weight, lower, _ = _arrays(p, n)
    chosen = np.flatnonzero((weight > 0.0) | (lower == 0.0))
    size = weight[chosen] / unit
    return chosen, (0.0 * size, np.where(lower[chosen] == 0.0, -math.inf, -size), size)


def _mean_square(rows: Any) -> float:
    """The mean square of the lengths of the rows."""
    data = rows.data if issparse(rows) else rows.reshape(-1)
    return float(inner(data, data)) / int(rows.shape[0])
