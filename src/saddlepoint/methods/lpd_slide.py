r"""LPD-slide: the lifted primal-dual method with an implicit coupling, which needs few gradients for any |A|.

Problem:    min_x max_y g(x) + <x, A y> - h(y); gt = g - mu_x/2 |x|^2, ht = h - mu_y/2 |y|^2.
Recursion:  (in the variables where mu_x = mu_y = 1)
            (x_{k+1}, y_{k+1}) ~ saddle point of <ub, x> + |x|^2/2 + |x - x_k|^2/(2 r) + <x, A y> - (<vb, y> + ...)
            w_{k+1} = (w_k + r x_{k+1})/(1 + r),   u_{k+1} = grad gt(w_{k+1}),   ub = u + theta (u - u_prev)
            q_{k+1} = (q_k + r y_{k+1})/(1 + r),   v_{k+1} = grad ht(q_{k+1}),   vb = v + theta (v - v_prev),
            theta = 1/(1 + r), r the root of r^2 l = 1 + r, l = max(kx, ky) - 1. The inner system is solved by
            conjugate gradients from 2 z_k - z_{k-1} until its residual is a tenth of the move. Simple terms are parts
            of the inner problem, which APFB solves then.
Guarantee:  with exact inner solves mu_x |x_k - x*|^2 + mu_y |y_k - y*|^2 falls by 1/(1 + r) ~ 1 - 1/sqrt(l) a step, up
            to a constant: O(sqrt(kx + ky) log 1/eps) gradients, and O((sqrt(kx + ky) + c) log 1/eps) products. With
            ``accuracy`` up to ``theory.lpd_slide_accuracy(kx, ky)`` it falls by about 1 - 3/4 r, with simple terms as
            without; the default is larger, and takes fewer products in practice, without this guarantee.
Reference:  LPD-GS with the block (x, y) on one side; compare E. Borodich, G. Kormakov, D. Kovalev, A. Beznosikov and
            A. Gasnikov, Optimal algorithm with complexity separation for strongly convex-strongly concave composite
            saddle point problems, 2023.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from saddlepoint.ground.arrays import Array
from saddlepoint.methods.base import Method, Needs, choice_option, float_option
from saddlepoint.methods.lpd import lifted_weights
from saddlepoint.methods.registry import register
from saddlepoint.methods.resolvent import REFRESH, SMALL, Start, by_cg, by_factor, by_proximal_apfb
from saddlepoint.problems.saddle import Saddle
from saddlepoint.problems.transforms import View, unit_strength
from saddlepoint.theory.complexity import Complexity
from saddlepoint.theory.lpd import lpd_slide_bound, lpd_slide_inexact_bound, lpd_slide_rho
from saddlepoint.theory.table1 import SLIDING


class LPDSlideState(NamedTuple):
    """The point z_k with its scaled products, the start of the next inner solve, and the lifted points."""

    x: Array
    y: Array
    aAy: Array
    aAtx: Array
    start: Start  # 2 z_k - z_{k-1}
    w: Array
    q: Array
    u: Array
    v: Array
    ub: Array
    vb: Array
    k: int


@register
@dataclass(frozen=True)
class LPDSlide(Method):
    """The lifted primal-dual method with an implicit coupling."""

    accuracy: float = float_option(0.1, "residual of the inner system, relative to the move", 0.0, 0.5)
    coupling: str = choice_option(
        "auto", "conjugate gradients or one factorisation; auto by size", ("auto", "cg", "factor")
    )

    name: ClassVar[str] = "lpd-slide"
    complexity: ClassVar[Complexity] = SLIDING
    works: ClassVar[tuple[str, ...]] = ("thekumparampil2022", "borodich2023")

    @property
    def needs(self) -> Needs:  # type: ignore[override]
        """No simple terms if the inner system is to be solved as the linear system that it is without them."""
        return Needs(smooth=self.coupling != "auto")

    def normal_form(self, f: Saddle) -> View:
        """The problem in the variables where mu_x = mu_y = 1."""
        return unit_strength(f)

    def init(self, f: Saddle, x: Array, y: Array) -> LPDSlideState:
        """The start, with w = x and q = y; one query."""
        u, v = f.g.grad(x) - x, f.h.grad(y) - y
        aAy, aAtx = self.products(f, x, y)
        return LPDSlideState(x, y, aAy, aAtx, Start(x, y, aAy, aAtx), x, y, u, v, u, v, 0)

    def step(self, f: Saddle, s: LPDSlideState) -> LPDSlideState:
        """The state after one step: a gradient of each function, and conjugate gradients for the coupling."""
        r = lpd_slide_rho(f.kappa_x, f.kappa_y)
        theta, a = 1.0 / (1.0 + r), r / (1.0 + r)
        p, q = a * ((1.0 / r) * s.x - s.ub), a * ((1.0 / r) * s.y - s.vb)
        if f.has_simple:
            at, accuracy = (s.start.x, s.start.y), self.accuracy * theta
            x, y, rx, ry, _ = by_proximal_apfb(f, p, q, a, at, relative=accuracy, origin=(s.x, s.y))
        elif self.exact(f):
            x, y, rx, ry, _ = by_factor(f.A, p, q, a, s.start)
        else:
            x, y, rx, ry, _ = by_cg(f.A, p, q, a, s.start, relative=self.accuracy * theta, origin=(s.x, s.y))
        w, yw = theta * (s.w + r * x), theta * (s.q + r * y)
        u, v = f.g.grad(w) - w, f.h.grad(yw) - yw
        aAy, aAtx = p - x - rx, y - q + ry
        start = Start(2.0 * x - s.x, 2.0 * y - s.y, 2.0 * aAy - s.aAy, 2.0 * aAtx - s.aAtx)
        if (s.k + 1) % REFRESH == 0 and not f.has_simple:
            aAy, aAtx = self.products(f, x, y)
            start = Start(x, y, aAy, aAtx)  # not extrapolated: that would keep the errors of the last products
        ub, vb = u + theta * (u - s.u), v + theta * (v - s.v)
        return LPDSlideState(x, y, aAy, aAtx, start, w, yw, u, v, ub, vb, s.k + 1)

    def products(self, f: Saddle, x: Array, y: Array) -> tuple[Array, Array]:
        """The products a A y and a A' x."""
        r = lpd_slide_rho(f.kappa_x, f.kappa_y)
        Ay, Atx = f.A.both(x, y)
        return (r / (1.0 + r)) * Ay, (r / (1.0 + r)) * Atx

    def bound(self, f: Saddle, k: int) -> float | None:
        """The bound (1 + r)^-k times a constant where A is factorised, a larger one for a small accuracy, or None."""
        if self.exact(f):
            return lpd_slide_bound(f.kappa_x, f.kappa_y, k)
        bound = lpd_slide_inexact_bound(f.kappa_x, f.kappa_y, self.accuracy, k)
        return bound if bound < math.inf else None

    def exact(self, f: Saddle) -> bool:
        """Whether the inner system is solved by a factorisation."""
        if f.has_simple:
            return False
        return self.coupling == "factor" or (self.coupling == "auto" and min(f.shape) <= SMALL)

    def weights(self, f: Saddle) -> dict[str, float]:
        """Points are weighted by sqrt(mu), gradients by 1/sqrt(L - mu)."""
        sx, sy, gx, gy = lifted_weights(f)
        return {"x": sx, "y": sy, "w": sx, "q": sy, "ub": gx, "vb": gy}

    def parameters(self, f: Saddle) -> dict[str, float]:
        """The constants r and theta of the recursion."""
        r = lpd_slide_rho(f.kappa_x, f.kappa_y)
        return {"rho": r, "theta": 1.0 / (1.0 + r)}
