r"""The directions in which a matrix of low rank can move, and the curvature of the nuclear norm in these directions.

Let X* = U diag(s) V' be a solution of rank r, with r columns in U and V, and let w* = grad g + A y there. A subgradient
of weight |X|_* is -w* = weight U V' + N, where U'N = 0, N V = 0 and |N| <= weight. If |N| < weight, the rank is r for
all data near by, and X* moves in the tangent space of the matrices of rank r,

    P Z = Z - (I - U U') Z (I - V V').

With Q = U diag(1/s) V', the nuclear norm adds to the Hessian of g

    C Z = weight ((I - U U') Z V diag(1/s) V' + U diag(1/s) U' Z (I - V V') + U (K o (M - M')) V') - N Z'Q - Q Z'N,

with M = U'Z V and K_ij = 1/(s_i + s_j), entry by entry. This is C = (T^+ - P)/t with the derivative T of the prox at
Y* = X* - t w*, for every t > 0: T has the eigenvalues (f(a) -+ f(b))/(a -+ b) for singular values a, b of Y*, where
f(a) = max(a - t weight, 0), and these are zero just on the orthogonal complement of the tangent space.

The computed X, U, s, V and N are not those of the solution. Let |X - X*| <= e, let the singular values of -w* after the
r-th be at most n < weight, and let S = s_r - e > 0. Then:

- |(I - U* U*') U U'| = |(I - U* U*') (X - X*) X^+| <= e/s_r, and the projections P differ by at most 2 e/s_r.
- At both points f can be replaced by a function whose slope grows linearly from 0 to 1 between t n and t weight + S. It
  exists for t = S/(weight - n), and the slope has the Lipschitz constant 1/(2 S). So does T in the Frobenius norm, up
  to a factor sqrt(2): an entry of the derivative of T is a sum of products with divided differences of second order,
  each at most half of that constant.
- |T^+| <= (S + 2 t weight)/S for both, and by Wedin's theorem |T^+ - T*^+| <= (1 + sqrt(5))/2 |T^+| |T*^+| |T - T*|.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from saddlepoint.ground.arrays import Array, concat, eps_of, namespace, space_of, to_host
from saddlepoint.parts.functions.smooth import Smooth
from saddlepoint.parts.simple.bounds import EPS
from saddlepoint.parts.simple.nuclear import RANK, Nuclear

UP = 1.0 + 2.0**-40  # factor that exceeds the relative rounding of the few operations below
WEDIN = 0.5 * (1.0 + math.sqrt(5.0))  # the constant of Wedin's theorem


class LowRank(NamedTuple):
    """A matrix of low rank among the coordinates.

    Attributes:
        start: the first of its coordinates.
        U, V: orthogonal matrices whose first columns are the singular vectors.
        s: the singular values that are not zero.
        N: the part of -w that is orthogonal to the singular vectors.
        weight: the weight of the nuclear norm.
    """

    start: int
    U: Array
    V: Array
    s: Array
    N: Array
    weight: float

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of the matrix."""
        return self.U.shape[0], self.V.shape[0]

    @property
    def steepest(self) -> float:
        """A bound on the curvature."""
        return UP * 2.0 * self.weight / float(self.s[-1]) if self.s.size and self.weight else 0.0

    @property
    def free(self) -> Array:
        """A mask of the entries of U'Z V that are not zero in the tangent space, in C order."""
        rank, (m, n) = len(self.s), self.shape
        return ((np.arange(m) < rank)[:, None] | (np.arange(n) < rank)[None, :]).reshape(-1)

    def rotated(self, v: Array) -> Array:
        """The coordinates with U'Z V in the place of the matrix Z; of a matrix, of its columns."""
        return self._by(v, self.U.T, self.V)

    def rotated_back(self, v: Array) -> Array:
        """The inverse of ``rotated``."""
        return self._by(v, self.U, self.V.T)

    def _by(self, v: Array, left: Array, right: Array) -> Array:
        xp, cast, (m, n) = namespace(v), space_of(v).cast, self.shape
        end = self.start + m * n
        part = v[self.start : end]
        if v.ndim == 1:
            part = xp.reshape(cast(left) @ xp.reshape(part, (m, n)) @ cast(right), (-1,))
        else:
            stack = xp.permute_dims(xp.reshape(part, (m, n, -1)), (2, 0, 1))
            part = xp.reshape(xp.permute_dims(cast(left) @ stack @ cast(right), (1, 2, 0)), (m * n, -1))
        return part if m * n == v.shape[0] else concat([v[: self.start], part, v[end:]])

    def times(self, Z: Array) -> Array:
        """C Z, for a matrix or a stack of matrices of NumPy."""
        rank = len(self.s)
        U, V, Zt = self.U[:, :rank], self.V[:, :rank], np.swapaxes(Z, -1, -2)
        left, right = U / self.s, V / self.s
        M = U.T @ Z @ V
        ZV, ZtU = Z @ V, Zt @ U
        beside = (ZV - U @ M) @ right.T + left @ np.swapaxes(ZtU - V @ np.swapaxes(M, -1, -2), -1, -2)
        skew = U @ ((M - np.swapaxes(M, -1, -2)) / (self.s[:, None] + self.s[None, :])) @ V.T
        both = self.N @ ZtU @ right.T + left @ np.swapaxes(ZV, -1, -2) @ self.N
        return np.asarray(self.weight * (beside + skew) - both)


class OnManifold(NamedTuple):
    """What is known of the rank of a solution.

    Attributes:
        matrix: the matrix; its rank is that of the solution where it is decided.
        tilt: a bound on how far the projection onto the tangent space is from that at the solution.
        change: the same for the curvature.
        decided: whether the rank of the solution is proven.
    """

    matrix: LowRank
    tilt: float
    change: float
    decided: bool


def of_nuclear(p: Nuclear, x: Array, w: Array, reach_x: float, reach_w: float) -> OnManifold:
    """The tangent space and the curvature at a solution with a nuclear norm.

    Args:
        p: the norm.
        x, w: the point and grad g + A y there, as arrays of NumPy.
        reach_x, reach_w: bounds on the distances from those at the solution.
    """
    X, W, weight = x.reshape(p.shape), w.reshape(p.shape), float(p.weight)
    U, s, V = _decomposed(X)
    sizes = np.append(np.linalg.svd(W, compute_uv=False) if np.isfinite(W).all() else np.full(len(s), math.inf), 0.0)
    rounding = 32.0 * sum(p.shape) * EPS  # relative, of decompositions and of products with their factors
    scale = weight + float(np.linalg.norm(W))
    rank = int(np.count_nonzero(s > UP * reach_x + rounding * float(s[0])))  # the rank of the solution is at least this
    decided = UP * (float(sizes[rank]) + reach_w + rounding * scale) < weight  # and at most this
    if not decided:
        rank = int(np.count_nonzero(s > RANK * float(s[0])))
    first, last = U[:, :rank], V[:, :rank]
    N = -((W - first @ (first.T @ W)) @ (np.eye(len(V)) - last @ last.T))
    size = float(np.linalg.norm(N, 2)) if np.isfinite(N).all() else math.inf
    matrix = LowRank(0, U, V, s[:rank], N if size <= weight else (weight / size) * N, weight)
    below = UP * (max(float(sizes[rank]), size) + reach_w + rounding * scale)
    e = UP * (reach_x + float(np.linalg.norm(s[rank:])) + rounding * float(np.linalg.norm(s)))
    S = (float(s[rank - 1]) - e) / UP if rank else math.inf
    if not (decided and below < weight and S > 0.0):
        return OnManifold(matrix, 0.0, 0.0, False)
    if rank == 0:
        return OnManifold(matrix, 0.0, 0.0, True)
    t = S / (weight - below)
    off = e + t * (float(np.linalg.norm(W + weight * first @ last.T + N)) + reach_w + rounding * scale)
    tilt = UP * 2.0 * e / S + rounding
    change = UP * (WEDIN * (1.0 + 2.0 * t * weight / S) ** 2 * math.sqrt(2.0) * off / (2.0 * S) + tilt) / t
    return OnManifold(matrix, tilt, change + rounding * matrix.steepest, True)


def _decomposed(X: Array) -> tuple[Array, Array, Array]:
    """Orthogonal U and V and the singular values; zeros if X is not finite, of which nothing is known."""
    if not np.isfinite(X).all():
        return np.eye(X.shape[0]), np.zeros(min(X.shape)), np.eye(X.shape[1])
    U, s, Vh = np.linalg.svd(X)
    return U, s, Vh.T


def curvature_of_rank(matrix: LowRank, n: int, like: Array) -> Smooth:
    """The function u -> <Z, C Z>/2 of n coordinates, of which the matrix Z is a part, for vectors like ``like``."""
    return Smooth(
        partial(_product, matrix),
        mu=0.0,
        L=matrix.steepest,
        quadratic=True,
        hessian=partial(_matrix, matrix, n) if isinstance(like, np.ndarray) else None,
        hessian_lipschitz=0.0,
        trusted=True,
        accuracy=32.0 * sum(matrix.shape) * eps_of(like),
    )


def _product(matrix: LowRank, u: Array) -> Array:
    v = np.asarray(to_host(u), dtype=np.float64)
    m, n = matrix.shape
    out, rows = np.zeros_like(v), slice(matrix.start, matrix.start + m * n)
    out[rows] = matrix.times(v[rows].reshape(m, n)).reshape(-1)
    return space_of(u).cast(out)


def _matrix(matrix: LowRank, size: int, u: Array) -> Any:
    m, n = matrix.shape
    rows = slice(matrix.start, matrix.start + m * n)
    out = np.zeros((size, size))
    out[rows, rows] = matrix.times(np.eye(m * n).reshape(-1, m, n)).reshape(m * n, m * n)
    return out
