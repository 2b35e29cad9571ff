r"""Krylov: generalised conjugate residuals, for quadratic g and h.

Problem:    K z = -b, the field of a quadratic problem being F(z) = K z + b, K = [[P, A], [-A', Q]], z = (x, y).
Recursion:  (in the variables where mu_x = mu_y = 1)
            d = r_k, e = K r_k, and both made orthogonal: e to the e_i before, d by the same combination of the d_i
            z_{k+1} = z_k + <r_k, e>/<e, e> d,    r_{k+1} = r_k - <r_k, e>/<e, e> e.
Guarantee:  until the window is full, |F(z_k)| is the smallest of all points in
            z_0 + span(r_0, K r_0, ..., K^{k-1} r_0), as in GMRES; it cannot break down, because the symmetric part of K
            is positive definite. So no method that combines queries of the whole field has a smaller residual, hence
            O((sqrt(kx + ky) + c) log 1/eps) queries. After that it is restarted, as GMRES is.
Reference:  S. Eisenstat, H. Elman and M. Schultz, Variational iterative methods for nonsymmetric systems of linear
            equations, SIAM J. Numer. Anal. 1983; Y. Saad and M. Schultz, GMRES, SIAM J. Sci. Stat. Comput. 1986.

Products with P and Q are differences of gradients, and are counted as gradients. SciPy's GMRES cannot be stopped
between two products when a certificate is reached; this recursion can, and has the same residuals (tests compare them).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

from saddlepoint.ground.arrays import Array, concat
from saddlepoint.ground.linalg import inner, norm
from saddlepoint.ground.rows import Rows
from saddlepoint.methods.base import Method, Needs, int_option
from saddlepoint.methods.registry import register
from saddlepoint.problems.saddle import Saddle
from saddlepoint.problems.transforms import View, unit_strength
from saddlepoint.theory.complexity import Complexity
from saddlepoint.theory.table1 import lower_order

DEPENDENT = 1e-10  # relative distance from the span of the others below which a direction is rounding error
REFRESH = 64  # number of steps after which the residual is computed anew, so that rounding errors do not add up


class KrylovState(NamedTuple):
    """The point z_k, the residual -F(z_k), b, and the directions d_i with the orthonormal e_i = K d_i."""

    x: Array
    y: Array
    r: Array
    b: Array
    d: Rows
    e: Rows
    k: int


@register
@dataclass(frozen=True)
class Krylov(Method):
    """Generalised conjugate residuals."""

    window: int = int_option(300, "number of directions that are kept before all are dropped", 1)

    needs: ClassVar[Needs] = Needs(quadratic=True)
    complexity: ClassVar[Complexity] = Complexity("c + sqrt(kx + ky)", lower_order)
    works: ClassVar[tuple[str, ...]] = ("eisenstat1983", "saad1986")

    def normal_form(self, f: Saddle) -> View:
        """The problem in the variables where mu_x = mu_y = 1."""
        return unit_strength(f)

    def init(self, f: Saddle, x: Array, y: Array) -> KrylovState:
        """The start, with two queries: the field at zero, which is b, and at (x, y)."""
        b = concat((f.g.grad(0.0 * x), f.h.grad(0.0 * y)))
        r = -concat(f.field(x, y))
        return KrylovState(x, y, r, b, Rows.empty(self.window, r), Rows.empty(self.window, r), 0)

    def step(self, f: Saddle, s: KrylovState) -> KrylovState:
        """The state after one step: one query, and another one when the residual is computed anew."""
        m = f.shape[0]
        if s.e.full:
            s = self.forget(s)
        length = norm(s.r)
        if length == 0.0:
            return s
        # A difference with b at equal lengths loses no digits.
        stretch = min(max(norm(s.b), 1.0) / length, 0.5 * f.space.largest) or 1.0
        v = stretch * s.r
        d, e = s.r, (1.0 / stretch) * (concat(f.field(v[:m], v[m:])) - s.b)
        before = norm(e)
        for _ in range(2):  # the second pass removes what rounding left in the first
            c = s.e.matrix @ e
            d, e = d - c @ s.d.matrix, e - c @ s.e.matrix
        length = norm(e)
        if length <= DEPENDENT * before:  # up to rounding there is no new direction: drop all of them and begin again
            return self.forget(s)._replace(r=-concat(f.field(s.x, s.y)))
        d, e = d / length, e / length
        a = inner(s.r, e)
        x, y, r = s.x + a * d[:m], s.y + a * d[m:], s.r - a * e
        if (s.k + 1) % REFRESH == 0:
            r = -concat(f.field(x, y))
        return KrylovState(x, y, r, s.b, s.d.append(d), s.e.append(e), s.k + 1)

    def within(self, vectors: int) -> Method:
        """A window that is short enough: of each direction d, K d is kept too."""
        return replace(self, window=min(self.window, max(1, vectors // 2)))

    def forget(self, s: KrylovState) -> KrylovState:
        """The state of the same point without directions."""
        return s._replace(d=Rows.empty(self.window, s.r), e=Rows.empty(self.window, s.r))
