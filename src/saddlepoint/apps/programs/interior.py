r"""A primal-dual interior-point method for linear and quadratic programs.

Problem:    min 1/2 x'Px + q'x subject to s = A x, l <= s <= u, xl <= x <= xu; rows with l = u are equations.
Recursion:  Mehrotra's: a step to the optimum without a barrier predicts how far the barrier can be lowered, and a
            second step with the same factorisation goes there, with the second-order terms of the first. x and s stay
            strictly between their ends. It begins as Mehrotra's method does: x is the shortest solution of the rows
            and y the best multipliers in the sense of least squares, moved inside by as much as they are outside.
Guarantee:  none here. Its points are proposals: what they prove is computed afterwards, by ``certificate.py``. Points
            inside the bounds are good ones for that purpose, even where the solution is degenerate.
Reference:  S. Mehrotra, On the implementation of a primal-dual interior point method, SIAM J. Optim. 1992;
            A. Altman and J. Gondzio, Regularized symmetric indefinite systems in interior point methods for linear and
            quadratic optimization, Optim. Methods Softw. 1999.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve, lapack
from scipy.sparse import block_array, csc_array, csr_array, diags_array, issparse
from scipy.sparse.linalg import splu

from saddlepoint.apps.programs.data import Data
from saddlepoint.apps.programs.ends import Ends
from saddlepoint.apps.programs.scaling import resized, scaled
from saddlepoint.ground.arrays import Array

STEPS = 100  # steps at most
REGULAR = 1e-8  # weight of a proximal term in x and y, relative to entries of about 1
LESS_REGULAR = 1e-10  # REGULAR where a larger weight keeps the iteration from the solution
LEAST_WEIGHT = 1e-8  # least factor of the proximal weight of a row, which is small where its variables can hardly move
REFINEMENTS = 3  # corrections of each solution of a linear system
STAY = 0.995  # share of the way to the nearest end that a step may take
SHORT = 0.1  # length of a step below which a step to the centre is taken instead
CENTRE = 0.5  # part of the barrier that is left after a step to the centre
LEAST = 1e-3  # least size of an entry of x or y to which a residual is compared
LARGEST = 1e4  # size of x or y, in units of the first estimate, for which proximal terms are weighed at most
TINY = 1e-30  # mean product of distances and multipliers that needs no further step
STUCK = 1e-9  # length of a step that counts as none
SMALL = 500  # most unknowns of a linear system that is always solved as a dense one


class Proposal(NamedTuple):
    """A point, multipliers, and an estimate of the duality gap in units of the objective."""

    x: Array
    y: Array
    gap: float


def interior_point(given: Data, regular: float = REGULAR) -> Iterator[Proposal]:
    """Better and better points, with proximal terms of this weight; it ends where it makes no more progress."""
    kept = (np.diff(given.rows.indptr) > 0) & (np.isfinite(given.lower) | np.isfinite(given.upper))
    if not kept.all():  # rows of zeros and rows without ends have no multipliers
        for found in interior_point(_with_rows(given, kept), regular):
            y = np.zeros(kept.size)
            y[kept] = found.y
            yield found._replace(y=y)
        return
    form = scaled(given)
    run = _Run(form.data, regular)
    # Proximal terms, and all numbers that count as small, now fit the size of x.
    form = resized(given, form, *run.sizes)
    run = _Run(form.data, regular)
    for _ in range(STEPS):
        at = run.residuals()
        yield Proposal(*form.back(run.x, run.y), at.gap / form.objective)
        if run.is_over(at) or not run.step(at):
            return


def _with_rows(data: Data, kept: Array) -> Data:
    """The program with some of the rows."""
    return replace(data, A=data.A[np.flatnonzero(kept)], lower=data.lower[kept], upper=data.upper[kept])


class _Residuals(NamedTuple):
    """What the optimality conditions leave at a point.

    Attributes:
        gx, gs: the distances of x and s to their ends.
        mu: the mean product of a distance and its multiplier.
        rd, rs: the gradients of the Lagrangian in x and in s.
        rp: A x - s.
        gap: an estimate of the duality gap, with what the residuals add to it.
    """

    gx: list[Array]
    gs: list[Array]
    mu: float
    rd: Array
    rs: Array
    rp: Array
    gap: float


class _Step(NamedTuple):
    """The changes of x, s, y and of the multipliers of the ends of x and s."""

    x: Array
    s: Array
    y: Array
    z: list[Array]
    w: list[Array]


class _Run:
    """The iteration on a scaled program: x, s = A x, multipliers y of the rows, and z and w of the ends of x and s."""

    def __init__(self, data: Data, regular: float) -> None:
        n = data.shape[1]
        self.data, self.slow = data, 0
        self.fixed, self.equal = data.x_lower == data.x_upper, data.lower == data.upper
        self.x_ends = Ends(data.x_lower, data.x_upper, ~self.fixed)
        self.s_ends = Ends(data.lower, data.upper, ~self.equal)
        self.P = csr_array((n, n)) if data.P is None else data.P
        self.system = _System(data, self.fixed, self.equal, regular)
        start = self.system.factorise(np.ones(n), np.where(self.equal, 0.0, 1.0)) or _no_change
        x = np.where(self.fixed, data.x_lower, self.x_ends.inside(np.zeros(n)))
        s = np.where(self.equal, data.lower, self.s_ends.inside(data.A @ x))
        dx, _ = start(np.zeros(n), s - data.A @ x)
        self.x = np.where(self.fixed, x, self.x_ends.well_inside(x + dx))
        self.s = np.where(self.equal, s, self.s_ends.well_inside(data.A @ self.x))
        slope = self.P @ self.x + data.q
        self.y: Array = start(-slope, np.zeros(s.size))[1]
        self.z, self.w = self.x_ends.start(self.x, slope + data.At @ self.y), self.s_ends.start(self.s, -self.y)

    @property
    def sizes(self) -> tuple[float, float]:
        """The largest entries of x and of the terms that make up the gradient of the objective."""
        slope = abs(self.P) @ np.abs(self.x) + np.abs(self.data.q)
        return float(np.max(np.abs(self.x), initial=0.0)), float(np.max(slope, initial=0.0))

    @property
    def count(self) -> int:
        """The number of ends."""
        return self.x_ends.count + self.s_ends.count

    def residuals(self) -> _Residuals:
        """The residuals at the present point."""
        data, x, y, z, w = self.data, self.x, self.y, self.z, self.w
        gx, gs = self.x_ends.gaps(x), self.s_ends.gaps(self.s)
        mu = (self.x_ends.product(gx, z) + self.s_ends.product(gs, w)) / max(1, self.count)
        rd = self.P @ x + data.q + data.At @ y - z[0] + z[1]
        rs = np.where(self.equal, 0.0, -y - w[0] + w[1])
        rp = data.A @ x - self.s
        rd[self.fixed] = 0.0
        off = float(np.abs(rp) @ (np.abs(y) + LEAST)) + float(np.abs(rd) @ (np.abs(x) + LEAST))
        return _Residuals(gx, gs, mu, rd, rs, rp, mu * self.count + off)

    def is_over(self, at: _Residuals) -> bool:
        """Whether the gap is that of rounding, nothing has moved for three steps, or the point is on the boundary."""
        small = at.gap <= 1e-15 * (1.0 + abs(self.data.estimate(self.x))) or (self.count > 0 and at.mu <= TINY)
        return small or self.slow >= 3 or min(float(np.min(v, initial=1.0)) for v in (*at.gx, *at.gs)) <= 0.0

    def step(self, at: _Residuals) -> bool:
        """Take a step; False if there is no factorisation, or if the point is not finite any more."""
        self.system.set_sizes(self.x, self.y)
        solve = self.system.factorise(self.x_ends.weights(at.gx, self.z), self.s_ends.weights(at.gs, self.w))
        if solve is None:
            return False
        cx, cs = self._targets(at, self._direction(at, solve, (0.0, 0.0), (0.0, 0.0)))
        for again in (True, False):
            d = self._direction(at, solve, cx, cs)
            primal, dual = (min(STAY * length, 1.0) for length in self._longest(at, d))
            if min(primal, dual) >= SHORT or not again:
                break
            cx = cs = (CENTRE * at.mu, CENTRE * at.mu)  # back to the centre, without second-order terms
        if self.data.P is not None:
            primal = dual = min(primal, dual)
        self.slow = self.slow + 1 if max(primal, dual) < STUCK else 0
        self.x, self.s, self.y = self.x + primal * d.x, self.s + primal * d.s, self.y + dual * d.y
        self.z = [a + dual * b for a, b in zip(self.z, d.z, strict=True)]
        self.w = [a + dual * b for a, b in zip(self.w, d.w, strict=True)]
        return bool(np.isfinite(self.x).all() and np.isfinite(self.y).all())

    def _direction(self, at: _Residuals, solve: Solve, cx: Any, cs: Any) -> _Step:
        """The step after which the products of distances and multipliers are cx and cs, to first order."""
        to_x, to_s = self.x_ends.push(at.gx, self.z, cx), self.s_ends.push(at.gs, self.w, cs)
        theta = self.s_ends.weights(at.gs, self.w)
        inverse = np.where(self.equal, 0.0, 1.0 / np.where(theta > 0.0, theta, 1.0))
        rho = np.where(self.equal, 0.0, -at.rs + to_s)
        dx, dy = solve(-at.rd + to_x, -at.rp + inverse * rho)
        ds = np.where(self.equal, 0.0, inverse * (dy + rho))
        dz, dw = self.x_ends.duals(at.gx, self.z, dx, cx), self.s_ends.duals(at.gs, self.w, ds, cs)
        return _Step(dx, ds, dy, dz, dw)

    def _longest(self, at: _Residuals, d: _Step) -> tuple[float, float]:
        """The longest steps of x and s, and of the multipliers, inside their ends."""
        primal = min(self.x_ends.longest(at.gx, d.x), self.s_ends.longest(at.gs, d.s))
        return primal, min(self.x_ends.longest_dual(self.z, d.z), self.s_ends.longest_dual(self.w, d.w))

    def _targets(self, at: _Residuals, d: _Step) -> tuple[Any, Any]:
        """The products to aim at, by how far the step d without a barrier would lower their mean."""
        primal, dual = (min(length, 1.0) for length in self._longest(at, d))
        after = self.x_ends.after(at.gx, self.z, d.x, d.z, primal, dual)
        after += self.s_ends.after(at.gs, self.w, d.s, d.w, primal, dual)
        sigma = min(1.0, max(after / max(1, self.count) / at.mu, 0.0)) ** 3 if at.mu > 0.0 else 0.0
        return self.x_ends.second(sigma * at.mu, d.x, d.z), self.s_ends.second(sigma * at.mu, d.s, d.w)


Solve = Callable[[Array, Array], tuple[Array, Array]]


def _no_change(a: Array, b: Array) -> tuple[Array, Array]:
    """In place of a linear system that could not be factorised."""
    return np.zeros(a.size), np.zeros(b.size)


class _System:
    """The linear systems [P + D, A'; A, -W] of the steps, for diagonal D >= 0 and W >= 0.

    Proximal terms are added to the entries of D and W, so that a factorisation exists.
    """

    def __init__(self, data: Data, fixed: Array, equal: Array, regular: float) -> None:
        self.data, self.fixed, self.equal, self.weight = data, fixed, equal, regular
        self.regular = regular, regular
        m, n = data.shape
        P = data.P
        self.diagonal: Array | None = np.zeros(n) if P is None else None
        if P is not None and (P.nnz if issparse(P) else np.count_nonzero(P)) == np.count_nonzero(P.diagonal()):
            self.diagonal = np.asarray(P.diagonal())
        bounded = np.isfinite(data.x_lower) | np.isfinite(data.x_upper)
        self.normal = self.diagonal is not None and bool((bounded | (self.diagonal > 0.0)).all())
        self.dense = n + m <= SMALL or not issparse(data.A) or (P is not None and not issparse(P))
        self.A = data.A if not self.dense else (data.A.toarray() if issparse(data.A) else data.A)
        self.squares = data.A * data.A if not issparse(data.A) else data.A.multiply(data.A).tocsr()
        self.curved = np.zeros(n) if P is None else np.asarray(P.diagonal())
        if P is None or not self.dense:
            self.P = csr_array((n, n)) if P is None else csr_array(P)
        else:
            self.P = P.toarray() if issparse(P) else P

    def set_sizes(self, x: Array, y: Array) -> None:
        """Weigh the proximal terms for a point and multipliers of these sizes."""
        sizes = [min(max(1.0, float(np.max(np.abs(v), initial=0.0))), LARGEST) for v in (x, y)]
        ratio = sizes[0] / sizes[1]
        self.regular = self.weight / ratio, self.weight * ratio

    def factorise(self, D: Array, theta: Array) -> Any:
        """The function that solves the system for a right-hand side, or None if the factorisation fails."""
        D = np.where(self.fixed, 0.0, D)
        W = np.where(self.equal, 0.0, 1.0 / np.where(theta > 0.0, theta, 1.0))
        try:
            with np.errstate(all="ignore"):
                D = D + self.regular[0]
                moves = np.where(self.fixed, 0.0, 1.0 / (self.curved + D))
                W = W + self.regular[1] * np.clip(self.squares @ moves, LEAST_WEIGHT, 1.0)
                raw = self._normal(D, W) if self.normal else self._augmented(D, W)
        except (np.linalg.LinAlgError, RuntimeError, ValueError):
            return None
        data, P, fixed = self.data, self.P, self.fixed

        def solve(a: Array, b: Array) -> tuple[Array, Array]:
            a = np.where(fixed, 0.0, a)
            x, y = raw(a, b)
            for _ in range(REFINEMENTS):
                first = np.where(fixed, 0.0, a - (P @ x + D * x + data.At @ y))
                second = b - (data.A @ x - W * y)
                dx, dy = raw(first, second)
                new_x, new_y = x + dx, y + dy
                if not (np.isfinite(new_x).all() and np.isfinite(new_y).all()):
                    break
                x, y = new_x, new_y
            return x, y

        return solve

    def _normal(self, D: Array, W: Array) -> Solve:
        """By the matrix A (P + D)^-1 A' + W, for a diagonal P."""
        assert self.diagonal is not None
        A, At = self.data.A, self.data.At
        inverse = np.where(self.fixed, 0.0, 1.0 / (self.diagonal + D))
        if issparse(A):
            S = csr_array(A @ diags_array(inverse) @ At) + diags_array(W)
            solve = _dense_cholesky(S.toarray()) if S.shape[0] <= SMALL or S.nnz > 0.2 * S.shape[0] ** 2 else _sparse(S)
        else:
            S = (A * inverse) @ At
            S[np.diag_indices_from(S)] += W
            solve = _dense_cholesky(S)

        def both(a: Array, b: Array) -> tuple[Array, Array]:
            y = solve(A @ (inverse * a) - b)
            return inverse * (a - At @ y), y

        return both

    def _augmented(self, D: Array, W: Array) -> Solve:
        """By the whole matrix; fixed variables get the diagonal entry 1e20, so that they do not move."""
        m, n = self.data.shape
        D = np.where(self.fixed, 1e20, D)
        if self.dense:
            K = np.zeros((n + m, n + m))
            K[:n, :n] = self.P.toarray() if issparse(self.P) else self.P
            K[:n, n:], K[n:, :n] = self.A.T, self.A
            K[np.arange(n + m), np.arange(n + m)] += np.concatenate([D, -W])
            lu, pivots, failed = lapack.dgetrf(K)
            if failed or not np.isfinite(K).all():
                raise np.linalg.LinAlgError
            return lambda a, b: tuple(np.split(lapack.dgetrs(lu, pivots, np.concatenate([a, b]))[0], [n]))  # type: ignore[return-value]
        K = block_array([[self.P + diags_array(D), self.A.T], [self.A, -diags_array(W)]], format="csc")
        solve = _sparse(K)
        return lambda a, b: tuple(np.split(solve(np.concatenate([a, b])), [n]))  # type: ignore[return-value]


def _dense_cholesky(S: Array) -> Callable[[Array], Array]:
    """The function that solves a dense positive definite system; its diagonal grows if rounding made it indefinite."""
    try:
        factor = cho_factor(S)
    except np.linalg.LinAlgError:
        S[np.diag_indices_from(S)] += REGULAR * S.diagonal()
        factor = cho_factor(S)
    return lambda b: np.asarray(cho_solve(factor, b, check_finite=False))


def _sparse(S: Any) -> Callable[[Array], Array]:
    """The function that solves a sparse symmetric system, without pivoting."""
    factor = splu(csc_array(S), permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True})
    return lambda b: np.asarray(factor.solve(b))
