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
            Once two values of sigma in a row leave x and y on the same faces, the equations of these faces are
            solved directly.
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
from scipy.linalg.lapack import dposv
from scipy.sparse import csr_array, issparse
from scipy.sparse.linalg import LinearOperator, cg

from saddlepoint.apps.smooth_norms import SmoothNorms
from saddlepoint.ground.arrays import Array, dense
from saddlepoint.ground.compensated import EPS
from saddlepoint.ground.linalg import inner
from saddlepoint.ground.time_limit import TimeLimit
from saddlepoint.parts.functions.smooth import Smooth
from saddlepoint.parts.simple import Groups, L1Box
from saddlepoint.problems.saddle import Saddle

OUTER = 40  # the most values of sigma
INNER = 1e-2  # the gap of x at which sigma grows, relative to |y - y0|^2/sigma
STEPS = 60  # the most Newton steps for one value of sigma
GROWTH = 8.0  # factor of sigma
DENSE = 2000  # up to this many unknowns, Newton's equations are factorised
WORSE = 1e3  # sigma grows no more if a gap is this many times the least one so far
STEADY = 0.9  # if sigma grows no more, the run ends where a gap is more than this times the least one before it
SEARCH = 20  # the most points of a search along a step
SLOPE = 0.1  # the derivative along a step, relative to the first one, at which its search ends
ARMIJO = 1e-4  # part of the predicted descent that a step must reach
TINY = float(np.finfo(np.float64).tiny)  # the smallest normal number
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
        self.c = -np.asarray(f.h.grad(np.zeros(N)))
        self.p, self.q = p or FREE, f.h.simple
        square = _mean_square(self.rows)
        self.unit = math.sqrt(square) if square > 0.0 else 1.0
        self.termed, conjugate = _as_maximum(self.p, n, self.unit)
        weight, lower, upper = map(np.concatenate, zip(_arrays(self.q, N), conjugate, strict=True))
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
        best, least, growth, kept = (x, y[:N]), math.inf, GROWTH, (x, y)
        if self.norms is not None:
            self.norms.delta = max(math.sqrt(inner(self.c, self.c) / N), TINY) / self.unit  # the scale of x
        for _ in range(OUTER):
            x, y = self._newton(x, y, sigma, 0.5 * self.mu * distance**2, least)
            point = self._on_kinks(x, y), y[:N]
            gap, floor = self._gap(*point)
            before, faces = faces, np.concatenate((self._faces(point[0]), self.q.faces(point[1])))
            if before is not None and np.array_equal(before, faces):
                better = self._on_faces(*point)
                gap_there, _ = self._gap(*better)
                if gap_there < gap:
                    point, gap = better, gap_there
            before_it = least
            if gap < least:
                best, least, kept = point, gap, (x, y)
            if least <= max(0.25 * self.mu * distance**2, floor) or limit.is_over:
                break
            if growth == 1.0:
                if gap > STEADY * before_it:
                    break
            elif gap > WORSE * least:  # sigma times the rounding of r is too much for y
                (x, y), growth, sigma = kept, 1.0, sigma / GROWTH
            sigma *= growth
            if self.norms is not None:
                self.norms.delta /= GROWTH
        return best

    # -- products ------------------------------------------------------------------------------------------------------

    def _times(self, x: Array) -> Array:
        """A'x, and the entries of x in the term."""
        return np.concatenate((self.rows @ x, self.unit * x[self.termed]))

    def _slope(self, x: Array, y: Array) -> Array:
        """grad g(x) + A y, and what the term adds."""
        N = self.rows.shape[0]
        found: Array = self.g.grad(x) + y[:N] @ self.rows
        found[self.termed] += self.unit * y[N:]
        return found

    def _prox(self, v: Array, sigma: float) -> Array:
        """The prox of the terms of y; without weights, it is the nearest point of the interval."""
        if self.interval is None:
            return np.asarray(self.both.prox(v, sigma))
        return np.asarray(np.minimum(np.maximum(v, self.interval[0]), self.interval[1]))

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
            F = np.flatnonzero(self.both.faces(at.y) == 0.0)
            try:
                step = -self._solve(at.x, F, sigma, at.slope)
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

        def derivative(t: float) -> float:
            y = self._prox(y0 + sigma * (at.r + t * change), sigma)
            return linear + t * square + inner(y, change)

        first = derivative(0.0)
        if not first < 0.0:
            return None
        (a, at_a), (b, at_b) = (0.0, first), (1.0, derivative(1.0))
        for _ in range(SEARCH):
            if abs(at_b) <= SLOPE * abs(first):
                break
            if at_b < 0.0:
                (a, at_a), b = (b, at_b), 2.0 * b
                at_b = derivative(b)
                continue
            width = b - a
            t = min(max(b - at_b * width / (at_b - at_a), a + 0.05 * width), b - 0.05 * width)
            at_t = derivative(t)
            if at_t < -SLOPE * abs(first):
                a, at_a = t, at_t
            else:
                b, at_b = t, at_t
        return self._at(at.x + b * step, y0, sigma, at.r + b * change)

    def _solve(self, x: Array, F: Array, sigma: float, b: Array) -> Array:
        """(H + sigma B'B)^-1 b for the rows B in F, of which those of the term are multiples of unit vectors."""
        N, n = self.rows.shape
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
                K[np.diag_indices(B.shape[0])] += 1.0 / sigma
                return np.asarray(scaled - (B.T @ _definite_solution(K, B @ scaled)) / diagonal)
        H = sigma * dense(B.T @ B)
        if self.ridge is None:
            assert self.g.hessian is not None
            H += dense(self.g.hessian(x))
        H[np.diag_indices(n)] += diagonal
        return _definite_solution(H, b)

    # -- the equations of the faces ------------------------------------------------------------------------------------

    def _on_kinks(self, x: Array, y: Array) -> Array:
        """x with zeros where the term holds it at its kink or bound."""
        x = x.copy()
        x[self.termed[self.both.faces(y)[self.rows.shape[0] :] == 0.0]] = 0.0
        return np.asarray(self.p.project(x if self.norms is None else self.norms.without_small_groups(x)))

    def _faces(self, x: Array) -> Array:
        """For each coordinate, a number for the face of the term on which x is there; 0 where it is on none."""
        return self.p.faces(x) if self.norms is None else np.where(self.norms.used(x), 0.0, 1.0)

    def _gap(self, x: Array, y: Array) -> tuple[float, float]:
        """About the duality gap at (x, y), and what rounding makes of it at the solution."""
        w, r = y @ self.rows, self.c + self.rows @ x
        residual = self._residual(x, w)
        free = int(np.count_nonzero(self.q.faces(y) == 0.0))
        floor = 0.4 * EPS * (free + 1) * float(np.max(np.abs(self.c)) + np.max(np.abs(r)))
        return inner(residual, residual) / (2.0 * self.mu) + self.q.fenchel_gap(y, r), floor

    def _residual(self, x: Array, w: Array) -> Array:
        """grad g(x) + w plus a subgradient of the term of x."""
        if self.norms is not None:
            return self.norms.residual(x, w)
        slope = self.g.grad(x) + w
        return np.asarray(slope + self.p.subgradient(x, -slope))

    def _on_faces(self, x: Array, y: Array) -> tuple[Array, Array]:
        """The solution if x and y are on their faces: grad g + s + A y = 0 in S, and r = s in F; (x, y) if it is not.

        Two steps of Newton's method; the second one corrects the rounding of the first.
        """
        S, F = np.flatnonzero(self._faces(x) == 0.0), np.flatnonzero(self.q.faces(y) == 0.0)
        size = F.size + (S.size if self.ridge is None else 0)
        if not 0 < F.size <= S.size or size > DENSE:
            return x, y
        B, H = dense(self.rows[F])[:, S], None
        hessian = self.g.hessian if self.norms is None else self.norms.exact().hessian
        if self.ridge is None and hessian is not None:
            H = dense(hessian(x))[np.ix_(S, S)]
        new_x, new_y = x.copy(), y.copy()
        for _ in range(2):
            r, R = self.c + self.rows @ new_x, self._residual(new_x, new_y @ self.rows)[S]
            t = (r - self.q.subgradient(new_y, r))[F]
            try:
                if H is None:
                    assert self.ridge is not None
                    e = np.linalg.lstsq(B @ B.T, self.ridge * t - B @ R, rcond=None)[0]
                    d = -(R + e @ B) / self.ridge
                else:
                    K = np.block([[H, B.T], [B, np.zeros((F.size, F.size))]])
                    both = np.linalg.lstsq(K, -np.concatenate((R, t)), rcond=None)[0]
                    d, e = both[: S.size], both[S.size :]
            except LinAlgError:
                return x, y
            new_x[S] += d
            new_y[F] += e
            same = np.array_equal(self._faces(new_x), self._faces(x)) and (new_x[S] * x[S] >= 0.0).all()
            if not (same and np.array_equal(self.q.faces(new_y), self.q.faces(y)) and self.q.outside(new_y) == 0.0):
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


def _definite_solution(H: Array, b: Array) -> Array:
    """The solution of H x = b for a positive definite H; LinAlgError if it is none."""
    _, x, info = dposv(H, b)
    if info != 0:
        raise LinAlgError("the matrix is not positive definite")
    return np.asarray(x)
