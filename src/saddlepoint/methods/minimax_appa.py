r"""Minimax-APPA: an accelerated proximal point method in x around accelerated ascent in y.

Problem:    min_x max_y g(x) + <x, A y> - h(y) with L_x = L_y; ell = max(L_x, L_y, |A|), kappa = ell/mu_x.
Recursion:  f_k(x, y) = f(x, y) + ell |x - xt_{k-1}|^2
            (x_k, y_k) = an eps_k-saddle point of f_k, by Maximin-AG2:
                x  ~ argmin f_k(., yt)                       by AGD
                y+ = yt - (grad h(yt) - A' x)/L_phi,         L_phi = L_y + |A|^2/(mu_x + 2 ell)
                yt = y+ + theta_y (y+ - y),                  theta_y = (sqrt(L_phi/mu_y) - 1)/(sqrt(L_phi/mu_y) + 1)
            xt_k = x_k + theta (x_k - x_{k-1}),              theta = (2 sqrt(kappa) - 1)/(2 sqrt(kappa) + 1).
Guarantee:  O~(ell/sqrt(mu_x mu_y)) queries, that is O~(|A|/sqrt(mu_x mu_y) + sqrt(kappa_x kappa_y)).
Reference:  T. Lin, C. Jin and M. I. Jordan, Near-optimal algorithms for minimax optimization, COLT 2020.

The paper uses one L for g, h and A; the rescaling to L_x = L_y that keeps |A| makes ell/sqrt(mu_x mu_y) smallest. Outer
step k ends when the duality gap of f_k is at most eps_k, which falls at the outer rate. AGD returns the gradient at its
last point, so that the gap is proven at no extra cost. A step of the method is one step of Maximin-AG2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from saddlepoint.ground.arrays import Array
from saddlepoint.ground.linalg import norm
from saddlepoint.methods.agd import AGD
from saddlepoint.methods.base import Method
from saddlepoint.methods.registry import register
from saddlepoint.parts.functions.anchored import anchored
from saddlepoint.parts.functions.smooth import Smooth
from saddlepoint.problems.saddle import Saddle
from saddlepoint.problems.transforms import View, equal_smoothness_keeping_norm
from saddlepoint.theory.agd import agd_momentum, agd_proof_steps
from saddlepoint.theory.certificate import gap_bound
from saddlepoint.theory.complexity import Complexity
from saddlepoint.theory.minimax_appa import (
    appa_eps,
    appa_theta,
    minimax_appa_parameters,
    minimax_appa_tolerance,
    reduction,
)
from saddlepoint.theory.table1 import minimax_appa_order


class APPAState(NamedTuple):
    """The current point of Maximin-AG2, and the progress of the outer loop."""

    x: Array
    y: Array
    yt: Array  # the extrapolated y
    k: int  # number of the current outer step, counted from 1
    anchor: Array  # xt_{k-1}
    last: Array  # x_{k-1}
    gap: float  # a proven duality gap of f at the start
    left: int  # steps until outer step k would end in exact arithmetic; 0 before its first step


@register
@dataclass(frozen=True)
class MinimaxAPPA(Method):
    """Minimax accelerated proximal point algorithm."""

    name: ClassVar[str] = "minimax-appa"
    complexity: ClassVar[Complexity] = Complexity("c + sqrt(kx ky)", minimax_appa_order)
    works: ClassVar[tuple[str, ...]] = ("lin2020",)

    def normal_form(self, f: Saddle) -> View:
        """The problem in variables where L_x = L_y; |A| stays as it is."""
        return equal_smoothness_keeping_norm(f)

    def init(self, f: Saddle, x: Array, y: Array) -> APPAState:
        """The start, with x as the anchor; one query for the gap."""
        Fx, Fy = f.field(x, y)
        return APPAState(x, y, y, 1, x, x, gap_bound(f.mu_x, f.mu_y, norm(Fx), norm(Fy)), 0)

    def step(self, f: Saddle, s: APPAState) -> APPAState:
        """The state after one step of Maximin-AG2 and, if that has solved f_k, the outer extrapolation."""
        ell, kappa, m, L_phi = minimax_appa_parameters(f.L_x, f.L_y, f.mu_x, f.norm)
        eps = appa_eps(s.k, kappa, s.gap)
        g = anchored(f.g, 2.0 * ell, s.anchor - (0.5 / ell) * f.A.mul(s.yt))
        x, p = stationary(g, s.x, minimax_appa_tolerance(eps, m, f.mu_y, f.norm))
        r = f.h.grad(s.yt) - f.A.tmul(x)
        gap = gap_bound(m, f.mu_y, norm(p), norm(r))  # the proven duality gap of f_k at (x, yt)
        if gap <= eps or s.left == 1:
            anchor = x + appa_theta(kappa) * (x - s.last)
            return APPAState(x, s.yt, s.yt, s.k + 1, anchor, x, s.gap, 0)
        left = s.left - 1 if s.left else agd_proof_steps(L_phi / f.mu_y, reduction(gap, eps))
        y = s.yt - (1.0 / L_phi) * r
        yt = y + agd_momentum(L_phi / f.mu_y) * (y - s.y)
        return s._replace(x=x, y=y, yt=yt, left=left)

    def parameters(self, f: Saddle) -> dict[str, float]:
        """The constants ell, kappa, L_phi and theta."""
        ell, kappa, _, L_phi = minimax_appa_parameters(f.L_x, f.L_y, f.mu_x, f.norm)
        return {"ell": ell, "kappa": kappa, "L_phi": L_phi, "theta": appa_theta(kappa)}


def stationary(phi: Smooth, x: Array, tol: float) -> tuple[Array, Array]:
    """Run AGD from x until the norm of the gradient is at most ``tol``; return the point and the gradient there.

    If rounding errors keep the gradient larger, the run ends after the steps that suffice in exact arithmetic.
    """
    agd, most = AGD(), math.inf
    s = agd.init(phi, x)
    k = 0
    while True:
        after = agd.step(phi, s)
        k += 1
        size = norm(after.p)
        if k == 1:
            most = agd_proof_steps(phi.L / phi.mu, reduction(size * size, tol * tol))
        if size <= tol or k >= most:
            return s.xt, after.p
        s = after
