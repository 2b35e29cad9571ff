r"""The minimiser of a strongly convex function subject to linear equations, with a proven distance.

Problem:    min g(x) subject to A x = b, where g is mu-strongly convex and L-smooth and the rows of A are independent.
Saddle:     min_x max_y g(x) + <x, A'y> - b'y. It has no mu_y, but A' is injective: |A'y| >= sigma |y|.
Guarantee:  |x - x*| and |y - y*| are bounded by ``theory.equations_distances``, with rounding accounted for.
Method:     if A is small, x = p + Z t, where A p = b and the columns of Z are an orthonormal basis of the
            directions with A Z = 0; ``solve`` minimises g(p + Z t). Otherwise the proximal point method (the method of
            multipliers) around ``solve``.
Reference:  R. T. Rockafellar, Augmented Lagrangians and applications of the proximal point algorithm, Math. Oper. Res.
            1976.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg import qr, solve_triangular
from scipy.sparse import issparse

from saddlepoint.apps.proximal import proximal_point
from saddlepoint.ground.arrays import Array, dense
from saddlepoint.ground.definite import smallest_singular_value
from saddlepoint.ground.errors import ProblemError
from saddlepoint.ground.linalg import norm
from saddlepoint.ground.time_limit import TimeLimit
from saddlepoint.ground.validation import as_float_array, as_vector, positive
from saddlepoint.methods import Method
from saddlepoint.methods.registry import method_or_auto
from saddlepoint.parts.coupling import as_coupling
from saddlepoint.parts.functions import Quadratic, Smooth
from saddlepoint.problems.certify import certify_point
from saddlepoint.problems.one_sided import obstacle, proven_smoothness
from saddlepoint.problems.saddle import Saddle
from saddlepoint.solving.interruption import uninterrupted
from saddlepoint.solving.solve import solve
from saddlepoint.theory.certificate import Certificate

WEIGHT = 1e-3  # proximal weight, relative to the curvature of the dual function
ENTRIES = 4_000_000  # most entries of A for which sigma is proven by a factorisation
ROWS = 2000  # most rows of A for which sigma is proven by a factorisation, and for which x = p + Z t
COMPARED = 250_000  # most entries of an A whose singular values are computed, to compare a given sigma with them
PRODUCTS = 20  # pairs of products from which a small singular value is estimated, if A has more than COMPARED entries
TINY = 1e-300  # in place of a norm that is 0
TRIES = 6  # times that the residual is asked to be ten times smaller
ROUNDING = 1e-9  # margin of the constants of g(p + Z t) for the rounding of Z


@dataclass(frozen=True)
class EqualityConstrainedResult:
    """A point, and a proof of its distance to the minimiser.

    Attributes:
        x: the point.
        y: multipliers of the equations: grad g(x) + A'y is about zero.
        certificate: its ``distance_x`` bounds |x - x*|, its ``distance_y`` |y - y*|, and ``distance`` their sum;
            ``assumes`` says what this rests on.
        violation: the length |A x - b|, as computed.
        solved: whether ``certificate.distance_x`` is at most what was asked for.
        message: how it ended, in a sentence.
        seconds: the wall-clock time of the call.
    """

    x: Array
    y: Array
    certificate: Certificate
    violation: float
    solved: bool
    message: str
    seconds: float


class EqualityConstrained:
    """min g(x) subject to A x = b, for a strongly convex and smooth g.

    Args:
        g: a function with mu > 0, without a simple term.
        A: a matrix with independent rows, dense or sparse, or an operator.
        b: the right-hand side.
        sigma: a lower bound of the smallest singular value of A that you know. It is refused if a few products with
            A' contradict it, which proves nothing otherwise, and ``certificate.assumes`` names it. None: one is
            proven, which takes a factorisation of A.

    Example:
        >>> import numpy as np, saddlepoint as sp
        >>> g = sp.Quadratic(1.0, -np.array([1.0, 2.0, 6.0]))  # half the squared distance to (1, 2, 6)
        >>> found = sp.apps.EqualityConstrained(g, [[1.0, 1.0, 1.0]], [1.0]).solve(tol=1e-9)
        >>> found.x.round(6), found.solved
        (array([-1.666667, -0.666667,  3.333333]), True)
    """

    def __init__(self, g: Smooth, A: Any, b: Any, *, sigma: float | None = None) -> None:
        if not isinstance(g, Smooth):
            raise ProblemError(f"g is a {type(g).__name__}; expected a Smooth function, such as Quadratic")
        if g.simple is not None:
            raise ProblemError(
                f"g has the simple term {g.simple!r}, for which the theorem does not hold; expected a smooth function. "
                "QuadraticProgram takes bounds and rows with ends"
            )
        if not g.mu > 0.0:
            raise ProblemError(
                f"g has mu = {g.mu:.3g}; expected a strongly convex function: give its mu if it has one, or add a "
                "multiple of |.|^2, for example g + Quadratic(1e-3)"
            )
        self._given, self._matrix = A, _as_matrix(A)
        coupling = as_coupling(A if self._matrix is None else self._matrix, "A")
        self.g, self.b = g, as_vector(b, "b", coupling.shape[0]).astype(np.float64)
        self.problem = Saddle(g, Quadratic(0.0, self.b), coupling.T)
        self.L, _ = proven_smoothness(self.problem.g)
        self.sigma = self._proven_sigma() if sigma is None else positive(sigma, "sigma")
        self._assumed: tuple[str, ...] = ()
        if sigma is not None:
            self._compare_sigma()
            self._assumed = (f"The smallest singular value of A is at least {self.sigma:.6g}, as given.",)
        self.problem.known_sigma = self.problem.A, self.sigma
        lacking = obstacle(self.problem)
        if lacking:
            raise ProblemError(lacking)

    def _proven_sigma(self) -> float:
        """A proven lower bound of the smallest singular value of A; a ProblemError if it is 0 or A is too large."""
        M = self._matrix
        if M is None:
            raise ProblemError(
                f"A is of the class {type(self._given).__name__}, whose entries are not at hand to prove a bound of "
                "its smallest singular value; give one that you know with sigma="
            )
        if M.shape[0] > ROWS or M.shape[0] * M.shape[1] > ENTRIES:
            raise ProblemError(
                f"A has {self.b.size} rows and {self.problem.shape[0]} columns, which is too large to prove a bound of "
                "its smallest singular value; give one that you know with sigma="
            )
        M = dense(M)
        sigma = smallest_singular_value(M) if M.shape[0] <= M.shape[1] else 0.0
        if sigma == 0.0:
            raise ProblemError(
                f"the {M.shape[0]} rows of A are not proven to be independent; leave out equations that follow "
                "from the others"
            )
        return sigma

    def _compare_sigma(self) -> None:
        """A ProblemError if a singular value of A is below the sigma that was given."""
        A, m, n = self.problem.A, self.b.size, self.problem.shape[0]
        if m > n:
            raise ProblemError(f"A has {m} rows and {n} columns; its smallest singular value is 0")
        if self._matrix is not None and m * n <= COMPARED:
            found = float(np.linalg.svd(dense(self._matrix), compute_uv=False)[-1])
        else:  # |A'v| for one vector v of length 1 after a few steps towards the smallest value
            v, found = np.random.default_rng(0).standard_normal(m), math.inf
            for _ in range(PRODUCTS):
                v = v / norm(v)
                image = A.mul(v)
                found = min(found, norm(image))
                v = v - A.tmul(image) / max(self.problem.norm**2, norm(image) ** 2, TINY)
        if found < (1.0 - ROUNDING) * self.sigma:
            raise ProblemError(
                f"sigma is {self.sigma:.6g}, but A has a singular value of at most {found:.6g}; expected a lower bound "
                "of the smallest one"
            )

    def certify(self, x: Any, y: Any) -> Certificate:
        """What a point and multipliers prove about their distances to the solution.

        Claims about a g of one's own are examined at the point, as by ``sp.certify``, which may raise AssumptionError.
        """
        found = certify_point(self.problem, x, y).certificate
        return found._replace(assumes=(*found.assumes, *self._assumed))

    def solve(
        self, *, tol: float = 1e-6, method: str | Method = "auto", max_seconds: float | None = None
    ) -> EqualityConstrainedResult:
        """A point with a proven distance |x - x*| of at most ``tol``.

        Args:
            tol: the distance to prove.
            method: the method for the subproblems, as for ``solve``.
            max_seconds: wall-clock limit.
        """
        limit, tol = TimeLimit(max_seconds), positive(tol, "tol")
        method_or_auto(method)
        k1 = self.g.mu / (1.0 + self.g.mu / self.L)
        residual = 0.25 * tol * min(k1, self.sigma * math.sqrt(k1 / (self.g.mu + self.L)))
        x, y = np.zeros(self.problem.shape[0]), np.zeros(self.problem.shape[1])
        best, ending = self.problem.certificate(x, y), ""
        for _ in range(TRIES):
            if best.distance_x <= tol:
                best = self.certify(x, y)  # with what an examination adds
            if best.distance_x <= tol or limit.is_over:
                break
            try:
                point = self._point(residual, method, limit.left)
            except KeyboardInterrupt:
                ending = "interrupted at "
                break
            found = self.problem.certificate(*point)
            if found.distance_x < best.distance_x:
                best, (x, y) = found, point
            residual *= 0.1
        best = self.certify(x, y)
        solved = best.distance_x <= tol
        message = f"{ending}proven distance {best.distance_x:.3g} {'<=' if solved else '>'} {tol:.3g}"
        return EqualityConstrainedResult(x, y, best, best.Fy, solved, message, limit.spent)

    def _point(self, residual: float, method: str | Method, seconds: float | None) -> tuple[Array, Array]:
        """A point with a residual of about this size, and multipliers."""
        if self._matrix is None or self._matrix.shape[0] > ROWS:
            norm_A = self.problem.norm
            weight = WEIGHT * max(self.sigma, 1e-3 * norm_A) ** 2 / self.L
            h, A = self.problem.h, self.problem.A
            found = proximal_point(
                self.g, h, A, tol=residual, weights=(0.0, weight), method=method, max_seconds=seconds
            )
            return np.asarray(found.x), np.asarray(found.y)
        x = self._in_null_space(residual / (self.L + self.g.mu), method, seconds)
        Q, R, _, M = self._factors
        x = x - Q @ solve_triangular(R, M @ x - self.b, trans="T")
        return x, solve_triangular(R, -(Q.T @ self.g.grad(x)))

    @cached_property
    def _factors(self) -> tuple[Array, Array, Array, Array]:
        """Q and R with A' = Q R, an orthonormal basis Z of the null space of A, and A as a dense matrix."""
        M = dense(self._matrix)
        full, R = qr(M.T)
        m = M.shape[0]
        return full[:, :m], R[:m], full[:, m:], M

    def _in_null_space(self, tol: float, method: str | Method, seconds: float | None) -> Array:
        """An approximate minimiser, by that of g(p + Z t) without constraints."""
        Q, R, Z, _ = self._factors
        p = Q @ solve_triangular(R, self.b, trans="T")
        if Z.shape[1] == 0:
            return np.asarray(p)
        g = self.g
        value, hessian = g.value, g.hessian
        inside = Smooth(
            lambda t: Z.T @ g.grad(p + Z @ t),
            mu=g.mu * (1.0 - ROUNDING),
            L=g.L * (1.0 + ROUNDING),
            value=None if value is None else lambda t: value(p + Z @ t),
            dim=Z.shape[1],
            hessian=None if hessian is None else lambda t: Z.T @ (hessian(p + Z @ t) @ Z),
            trusted=g.trusted,
        )
        f = Saddle(inside, Quadratic(1.0), np.zeros((Z.shape[1], 1)))
        result = uninterrupted(solve(f, tol=tol, method=method, max_seconds=seconds, history=False))
        return np.asarray(p + Z @ result.x)


def _as_matrix(A: Any) -> Any:
    """A as a NumPy matrix or a SciPy sparse array in float64; None if it is something else."""
    if issparse(A):
        return A.astype(np.float64)
    if isinstance(A, np.ndarray | list | tuple):
        M = as_float_array(A, "A").astype(np.float64)
        return M if M.ndim == 2 else None
    return None
