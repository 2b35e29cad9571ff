r"""The nuclear norm of a matrix: the sum of its singular values, whose minima have a low rank.

A computed singular value decomposition U, S, V of X is not exact. Let d_U bound |U'U - I|. The nearest matrix to U with
orthonormal columns differs from it by at most d_U, so that there is a matrix with exactly the singular values S whose
distance to X is at most |X - U S V'| + (d_U + d_V) |S|, up to a factor near 1.

The gap of X = sum_i S_i u_i v_i' and a matrix Y of spectral norm at most w is

    w |X|_* - <X, Y>  =  sum_i S_i (w - u_i'Y v_i)  =  sum_i S_i (|Y v_i - w u_i|^2 + w^2 - |Y v_i|^2) / (2 w),

and w^2 - |Y v|^2 is a sum of positive terms in terms of the singular values and vectors of Y. If those singular values
of Y that are w up to rounding are taken as w, nothing cancels.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from saddlepoint.ground.arrays import Array, all_finite, concat, eps_of, namespace, space_of
from saddlepoint.ground.compensated import exact_product
from saddlepoint.ground.elementwise import choose
from saddlepoint.ground.errors import ProblemError
from saddlepoint.ground.linalg import norms
from saddlepoint.ground.recording import has_numbers
from saddlepoint.ground.rounding import gamma
from saddlepoint.ground.validation import as_count, as_number, short_repr
from saddlepoint.parts.simple.base import Pairing, Structured, Support, on_host
from saddlepoint.parts.simple.bounds import EPS, norm_bound, not_nan, raised, sum_difference, wide
from saddlepoint.parts.simple.l1_box import UP, limited

RANK = 1e-12  # singular values below this multiple of the largest one count as zero
FULL = 1e-12  # singular values of a dual matrix within this of the weight, relative to it, count as equal to it


class Factors(NamedTuple):
    """A singular value decomposition X = U diag(S) Vh of a matrix of float64, with bounds on its errors.

    Attributes:
        defect: a bound on |U'U - I| + |V'V - I|.
        residual: a bound on |X - U diag(S) Vh|.
        error: a bound on the distance from X to a matrix with exactly these singular values.
    """

    U: Array
    S: Array
    Vh: Array
    defect: float
    residual: float
    error: float


class Nuclear(Structured):
    r"""weight times the nuclear norm of the matrix of this shape whose entries, in C order, are the coordinates.

    Args:
        shape: the numbers of rows and columns.
        weight: a number that is not negative.

    Example:
        >>> import numpy as np, saddlepoint as sp
        >>> p = sp.Nuclear((2, 2))
        >>> X = np.array([[3.0, 0.0], [0.0, 0.5]])
        >>> float(round(p(X.reshape(-1)), 12)), (p.prox(X.reshape(-1), 1.0).reshape(2, 2) + 0.0).round(12).tolist()
        (3.5, [[2.0, 0.0], [0.0, 0.0]])
    """

    def __init__(self, shape: tuple[int, int], weight: float = 1.0) -> None:
        if np.ndim(shape) != 1 or len(shape) != 2:
            raise ProblemError(f"shape of Nuclear is {short_repr(shape)}; expected the numbers of rows and columns")
        rows, columns = (as_count(size, "shape of Nuclear") for size in shape)
        self.shape = rows, columns
        self.weight = as_number(weight, "weight of Nuclear")
        if has_numbers(weight) and not 0.0 <= self.weight < math.inf:
            raise ProblemError(f"weight of Nuclear is {self.weight:g}; expected a finite number that is not negative")
        super().__init__(rows * columns)

    # -- the function --------------------------------------------------------------------------------------------------

    def value(self, x: Array) -> float:
        """The weight times the sum of the singular values."""
        _, S, _ = self._decomposed(wide(x))
        return self.weight * float(namespace(S).sum(S))

    def prox(self, v: Array, t: float) -> Array:
        """The singular values are lowered by t weight, or become zero."""
        U, S, Vh = self._decomposed(v)
        return self._flat((U * limited(S - t * self.weight, 0.0, None)) @ Vh)

    def conjugate(self, s: Array) -> float:
        """0.0 if the largest singular value is at most the weight, infinite otherwise."""
        factors = self._factors(wide(s))
        slack = 64.0 * eps_of(s) * self.weight + factors.error
        return 0.0 if float(namespace(factors.S).max(factors.S)) <= self.weight + slack else math.inf

    def project(self, x: Array) -> Array:
        """The point itself: the function is finite everywhere."""
        return x

    def outside(self, x: Array) -> float:
        """0.0: the function is finite everywhere."""
        return 0.0

    # -- what certificates need ----------------------------------------------------------------------------------------

    def dual_point(self, s: Array) -> Array:
        """Singular values above the weight are lowered to it, and a little more for rounding."""
        if self._spectral_bound(s) <= self.weight:
            return s
        f = self._factors(wide(s))
        rank = math.sqrt(min(self.shape))
        margin = 8.0 * (f.defect + gamma(min(self.shape) + 8, EPS) * rank + 2.0 * eps_of(s) * rank)
        for _ in range(20):
            lowered = limited(f.S, None, self.weight * max(1.0 - margin, 0.0))
            near = space_of(s).cast(self._flat((f.U * lowered) @ f.Vh))
            if self._spectral_bound(near) <= self.weight:
                return near
            margin *= 2.0
        return 0.0 * s

    def subgradient(self, xh: Array, s: Array) -> Array:
        """weight U V' on the range of xh, and the part of s that is orthogonal to it."""
        xh, S = wide(xh), self._matrix(wide(s))
        U, sizes, Vh = self._decomposed(xh)
        xp = namespace(sizes)
        there = xp.astype(sizes > RANK * xp.max(sizes), sizes.dtype)
        left, right = U * there, Vh.T * there
        rest = S - left @ (left.T @ S)
        rest = rest - (rest @ right) @ right.T
        return space_of(s).cast(self._flat(self.weight * (left @ right.T) + rest))

    def fenchel_gap(self, x: Array, s: Array) -> float:
        """weight |X|_* - <X, S>, from a bound on the nuclear norm and an inner product in about twice the digits."""
        if not self._spectral_bound(s) <= self.weight:
            return math.inf
        x, s = wide(x), wide(s)
        f = self._factors(x)
        k = min(self.shape)
        most = raised(float(namespace(x).sum(f.S)) + math.sqrt(k) * f.error, k + 6) * self.weight
        difference, error = sum_difference(concat(exact_product(x, s)), most)
        return not_nan(max(-difference, 0.0) + error + 4.0 * EPS * most + 1e-300)

    def pairing(self, x: Array, s: Array) -> Pairing:
        """The formula above, for matrices whose decompositions are exact."""
        if self.weight == 0.0:
            return Pairing(0.0 * s, 0.0, 0.0, 0.0, 0.0)
        w, xp = self.weight, namespace(x)
        X, Y = self._factors(wide(x)), self._factors(wide(s))
        k = min(self.shape)
        taken = choose(w * (1.0 - FULL) <= Y.S, 0.0 * Y.S + w, Y.S)  # the singular values of the exact dual matrix
        off_s = raised(Y.error + norm_bound(Y.S - taken, 1), 4)
        e = 8.0 * (X.defect + Y.defect) + 4.0 * math.sqrt(k) * gamma(sum(self.shape) + k + 16, EPS)
        V, Vs = X.Vh.T, Y.Vh.T
        C = Y.Vh @ V
        ahead = norms((Y.U * taken) @ C - w * X.U, 0) + e * w
        beyond = norms(V - Vs @ C, 0) + e
        short = xp.sum(((w - taken) * (w + taken))[:, None] * (xp.abs(C) + e) ** 2.0, axis=0)
        kept = choose(4.0 * X.error < X.S, X.S, 0.0 * X.S)  # smaller singular values are rounding errors
        # Singular vectors are divided by their lengths, which makes the nuclear norm of the exact X at most sum(kept).
        lengths = xp.abs(norms(X.U, 0) - 1.0) + xp.abs(norms(V, 0) - 1.0) + 2.0 * gamma(max(self.shape) + 8, EPS)
        off_x = raised(X.residual + norm_bound(X.S - kept) + float(xp.sum(lengths * kept)), k + 6)
        gaps = kept * (ahead * ahead + short + (w * beyond) ** 2.0) * (1.0 / (2.0 * w))
        gap = raised(float(xp.sum(gaps)), 4 * k + 16)
        # From the exact X to x, weight |X|_* and <S, X> change by at most weight times the nuclear norm of the move.
        return Pairing(s, off_x, off_s, gap, raised(gap + 2.0 * w * math.sqrt(k) * off_x, 6))

    def support(self, x: Array, w: Array, reach_x: float, reach_w: Any) -> Array:
        """All entries are zero if the largest singular value of w is below the weight beyond its error."""
        w = on_host(w)
        reach = np.broadcast_to(on_host(reach_w), w.shape[0])
        most = self._spectral_bound(w) + norm_bound(np.array(reach))
        found = Support.ZERO if most * UP < self.weight else Support.UNDECIDED
        return np.full(w.shape[0], found, dtype=np.int8)

    def _times(self, c: float) -> Nuclear:
        return Nuclear(self.shape, c * self.weight)

    # -- matrices ------------------------------------------------------------------------------------------------------

    def _matrix(self, x: Array) -> Array:
        matrix: Array = namespace(x).reshape(x, self.shape)
        return matrix

    def _flat(self, matrix: Array) -> Array:
        vector: Array = namespace(matrix).reshape(matrix, (-1,))
        return vector

    def _decomposed(self, x: Array) -> tuple[Array, Array, Array]:
        X = self._matrix(x)
        if isinstance(x, np.ndarray) and not all_finite(x):  # NumPy would raise an error
            k = min(self.shape)
            return math.nan * X[:, :k], np.full(k, math.nan, dtype=x.dtype), math.nan * X[:k, :]
        U, S, Vh = namespace(x).linalg.svd(X, full_matrices=False)
        return U, S, Vh

    def _factors(self, x: Array) -> Factors:
        """The decomposition of x, with bounds that hold for whatever was computed."""
        U, S, Vh = self._decomposed(x)
        xp, k = namespace(x), min(self.shape)
        one = xp.eye(k, dtype=x.dtype) if isinstance(x, np.ndarray) else space_of(x).cast(np.eye(k))
        defect = sum(norm_bound(self._flat(Q.T @ Q - one)) for Q in (U, Vh.T))
        defect = raised(defect + 2.0 * k * gamma(max(self.shape) + 4, EPS), 4)
        most = norm_bound(self._flat((xp.abs(U) * S) @ xp.abs(Vh)))  # bounds the rounding of the product
        left = norm_bound(self._flat(self._matrix(x) - (U * S) @ Vh)) + gamma(k + 3, EPS) * most
        residual = raised(left + EPS * norm_bound(x), 6)
        error = raised(residual + 1.1 * defect * norm_bound(S), 6) if defect < 0.1 else math.inf
        return Factors(U, S, Vh, defect, residual, error)

    def _spectral_bound(self, s: Array) -> float:
        """A bound on the largest singular value."""
        factors = self._factors(wide(s))
        return raised(float(namespace(factors.S).max(factors.S)) + factors.error, 4)

    def __repr__(self) -> str:
        return f"Nuclear({self.shape}, {self.weight:g})"
