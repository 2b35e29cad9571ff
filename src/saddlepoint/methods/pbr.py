r"""Proximal best response (PBR): proximal terms for both players, so large that best responses converge.

Problem:    min_x max_y g(x) + <x, A y> - h(y).
Recursion:  f_k(x, y)  = f(x, y) + beta_x |x - xh_k|^2,            solved to eps_k
            f_kj(x, y) = f_k(x, y) - beta_y |y - yh_j|^2,          solved to eps_kj by best responses:
                x ~ argmin f_kj(., y),  y ~ argmax f_kj(x, .)      by AGD, each to 1/8 of the residual
            yh_{j+1} = y_j + theta_y (y_j - y_{j-1}) + tau_y (y_j - yh_j)
            xh_{k+1} = x_k + theta_x (x_k - x_{k-1}) + tau_x (x_k - xh_k),
            theta = (2 sqrt(kappa) - 1)/(2 sqrt(kappa) + 1), tau = 1/(2 sqrt(kappa) + 4 kappa), kappa = beta/mu.
Guarantee:  O~(sqrt(kappa_x + |A| L/(mu_x mu_y) + kappa_y)) queries, L = max(L_x, L_y, |A|).
Reference:  Y. Wang and J. Li, Improved algorithms for convex-concave minimax optimization, NeurIPS 2020.

Weights. ``scaled``: beta_x = mu_x max(1, c), beta_y = mu_y max(1, c), c = |A|/sqrt(mu_x mu_y), the same method in any
scale of x and y. ``paper``: beta_x = max(mu_x, |A|), beta_y = max(mu_y, |A|). Either way |A|^2 is at most a quarter of
the product of the strong convexities of f_kj, and a pair of best responses is a contraction. The accuracies eps_k and
eps_kj are duality gaps that fall at the rates of their loops. AGD returns the gradient at its last point, so that the
gaps are proven at no extra cost. A step of the method is one pair of best responses.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from saddlepoint.ground.arrays import Array
from saddlepoint.ground.linalg import norm
from saddlepoint.methods.base import Method, choice_option
from saddlepoint.methods.minimax_appa import stationary
from saddlepoint.methods.registry import register
from saddlepoint.parts.functions.anchored import anchored
from saddlepoint.problems.saddle import Saddle
from saddlepoint.problems.transforms import View, unit_strength
from saddlepoint.theory.catalyst import catalyst_steps
from saddlepoint.theory.certificate import gap_bound
from saddlepoint.theory.complexity import Complexity
from saddlepoint.theory.minimax_appa import appa_eps, appa_q, appa_theta, reduction
from saddlepoint.theory.pbr import (
    ACCURACY,
    Betas,
    appa_tau,
    pbr_betas,
    pbr_paper_betas,
    response_sweeps,
    response_theta,
)
from saddlepoint.theory.table1 import BEST_RESPONSE


class PBRState(NamedTuple):
    """The current point of the best responses, and the progress of the two loops around them."""

    x: Array
    y: Array
    Ay: Array
    k: int  # number of the current step of the loop in x, counted from 1
    j: int  # that number for the loop in y
    i: int  # number of best responses on f_kj so far
    xh: Array  # the anchors
    yh: Array
    last_x: Array  # x_{k-1}
    last_y: Array  # y_{j-1}
    gap: float  # the proven duality gap of f at the start
    gap_k: float  # the proven duality gap of f_k at its start
    gap_kj: float  # the proven duality gap of f_kj at its start
    now: float  # the proven duality gap of f_kj at (x, y)


@register
@dataclass(frozen=True)
class PBR(Method):
    """Proximal best response."""

    betas: str = choice_option(
        "scaled", "weights of the anchors: for any scale of x and y (scaled), or the paper's", ("scaled", "paper")
    )

    complexity: ClassVar[Complexity] = BEST_RESPONSE
    works: ClassVar[tuple[str, ...]] = ("wang2020",)

    def normal_form(self, f: Saddle) -> View:
        """The problem where mu_x = mu_y = 1; as it is given with the paper's weights, which refer to that."""
        return View(f) if self.betas == "paper" else unit_strength(f)

    def init(self, f: Saddle, x: Array, y: Array) -> PBRState:
        """The start, with (x, y) as the anchors; one query for the gaps."""
        beta = self.anchors(f)
        m_x, m_y = f.mu_x + 2.0 * beta.x, f.mu_y + 2.0 * beta.y
        Ay, Atx = f.A.both(x, y)
        Fx, Fy = norm(f.g.grad(x) + Ay), norm(f.h.grad(y) - Atx)
        gap, gap_k, gap_kj = (gap_bound(*mu, Fx, Fy) for mu in ((f.mu_x, f.mu_y), (m_x, f.mu_y), (m_x, m_y)))
        return PBRState(x, y, Ay, 1, 1, 0, x, y, x, y, gap, gap_k, gap_kj, gap_kj)

    def step(self, f: Saddle, s: PBRState) -> PBRState:
        """The state after a pair of best responses and the updates of the loops in y and in x."""
        beta = self.anchors(f)
        m_x, m_y = f.mu_x + 2.0 * beta.x, f.mu_y + 2.0 * beta.y
        tol = ACCURACY * math.sqrt(2.0 * s.now)
        g = anchored(f.g, 2.0 * beta.x, s.xh - (0.5 / beta.x) * s.Ay)
        x, px = stationary(g, s.x, tol * math.sqrt(m_x))
        h = anchored(f.h, 2.0 * beta.y, s.yh + (0.5 / beta.y) * f.A.tmul(x))
        y, py = stationary(h, s.y, tol * math.sqrt(m_y))
        Ay = f.A.mul(y)
        Fx, Fy = px + (Ay - s.Ay), py - (2.0 * beta.y) * (y - s.yh)  # the field of f_k; for f_kj it is (Fx, py)
        s = s._replace(x=x, y=y, Ay=Ay, i=s.i + 1, now=gap_bound(m_x, m_y, norm(Fx), norm(py)))
        eps_k, eps_kj = appa_eps(s.k, beta.x / f.mu_x, s.gap), appa_eps(s.j, beta.y / f.mu_y, s.gap_k)
        theta = response_theta(m_x, m_y, f.norm)
        answered = s.now <= eps_kj or s.i >= response_sweeps(theta, reduction(s.gap_kj, eps_kj))
        most = catalyst_steps(appa_q(beta.y / f.mu_y), reduction(s.gap_k, eps_k))
        if gap_bound(m_x, f.mu_y, norm(Fx), norm(Fy)) <= eps_k or (answered and s.j >= most):
            xh = extrapolated(x, s.last_x, s.xh, beta.x / f.mu_x)
            Fx = Fx + (2.0 * beta.x) * (s.xh - xh)
            gap_k, now = (gap_bound(m_x, mu, norm(Fx), norm(Fy)) for mu in (f.mu_y, m_y))
            return PBRState(x, y, Ay, s.k + 1, 1, 0, xh, y, x, y, s.gap, gap_k, now, now)
        if answered:
            yh = extrapolated(y, s.last_y, s.yh, beta.y / f.mu_y)
            now = gap_bound(m_x, m_y, norm(Fx), norm(py + (2.0 * beta.y) * (s.yh - yh)))
            return s._replace(j=s.j + 1, i=0, yh=yh, last_y=y, gap_kj=now, now=now)
        return s

    def anchors(self, f: Saddle) -> Betas:
        """The weights beta_x and beta_y of the anchors."""
        return (pbr_paper_betas if self.betas == "paper" else pbr_betas)(f.mu_x, f.mu_y, f.norm)

    def parameters(self, f: Saddle) -> dict[str, float]:
        """The weights of the anchors and the momenta."""
        beta = self.anchors(f)
        theta_x, theta_y = appa_theta(beta.x / f.mu_x), appa_theta(beta.y / f.mu_y)
        return {"beta_x": beta.x, "beta_y": beta.y, "theta_x": theta_x, "theta_y": theta_y}


def extrapolated(x: Array, last: Array, anchor: Array, kappa: float) -> Array:
    """The next anchor, x + theta (x - last) + tau (x - anchor)."""
    return x + appa_theta(kappa) * (x - last) + appa_tau(kappa) * (x - anchor)
