r"""The inexact version of APFB (Algorithm AIPFB): proximal steps by AGD.

Problem:    min_x max_y g(x) + <x, A y> - h(y) with gradients of g and h only.
Recursion:  y_k ~ argmin h_k,  h_k(y) = h(y) + |y - y_{k-1} - sigma A' xt_{k-1}|^2/(2 sigma),   by AGD, to eps_k
            x_k ~ argmin g_k,  g_k(x) = g(x) + |x - x_{k-1} + gamma A y_k|^2/(2 gamma),         by AGD, to eps_k
            xt_k = x_k + theta (x_k - x_{k-1}),   with gamma, sigma, theta of APFB. Simple terms are parts of g and h
            here, and AGD is then the accelerated proximal gradient method.
Guarantee:  mu_x |x_T - x*|^2 + mu_y |y_T - y*|^2 <= C (1 - rho)^T (mu_x |x_0 - x*|^2 + mu_y |y_0 - y*|^2),
            rho = 1/(2 + 4 c), C = 2 c + 1, c = |A|/sqrt(mu_x mu_y)   (Lemma `aipfb-out`), hence
            O~(c + sqrt(c (kappa_x + kappa_y)) + sqrt(kappa_x + kappa_y)) queries   (Theorem `aipfb`).
Reference:  G. Xie, Y. Han and Z. Zhang, DIPPA: An improved method for bilinear saddle point problems, 2021, appendix.

The inner rule says when the proximal steps end. ``paper``: always after K1 and K2 steps of AGD. ``adaptive``: as early
as possible while a bound on the lemma's Lyapunov function, which is proven from the differences of the iterates, still
falls by the factor 1 - rho in each step. ``certified``: the same, but with an accuracy of at least the paper's eps_k,
in which a proven bound replaces the unknown C_0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from saddlepoint.ground.arrays import Array
from saddlepoint.ground.linalg import norm
from saddlepoint.methods.agd import minimise
from saddlepoint.methods.base import Method, Needs, choice_option
from saddlepoint.methods.optimality import optimality
from saddlepoint.methods.registry import register
from saddlepoint.parts.functions.anchored import anchored
from saddlepoint.problems.saddle import Saddle
from saddlepoint.theory.aipfb import (
    aipfb_adaptive_eps,
    aipfb_C,
    aipfb_eps,
    aipfb_K1,
    aipfb_K2,
    aipfb_next_bound,
    aipfb_rho,
)
from saddlepoint.theory.apfb import apfb_parameters, floored
from saddlepoint.theory.complexity import Complexity
from saddlepoint.theory.table1 import aipfb_order


class AIPFBState(NamedTuple):
    """The points x_k and y_k, the extrapolated xt_k, and the numbers that the inner rule uses."""

    x: Array
    y: Array
    xt: Array
    dx: Array  # x_k - x_{k-1}: the next inner solve starts half of this difference ahead
    dy: Array
    k: int  # number of steps so far
    C0: float  # a proven bound on mu_x |x_0 - x*|^2 + mu_y |y_0 - y*|^2
    bound: float  # a proven bound on the Lyapunov function of Lemma `aipfb-out` at step k


@register
@dataclass(frozen=True)
class AIPFB(Method):
    """Accelerated inexact proximal forward-backward."""

    inner: str = choice_option(
        "adaptive",
        "inner accuracy: fixed K1, K2 (paper), eps_k with proofs (certified), or by progress (adaptive)",
        ("paper", "certified", "adaptive"),
    )

    needs: ClassVar[Needs] = Needs(smooth=False)
    complexity: ClassVar[Complexity] = Complexity("c + sqrt(c (kx + ky)) + sqrt(kx + ky)", aipfb_order)
    works: ClassVar[tuple[str, ...]] = ("xie2021",)

    def init(self, f: Saddle, x: Array, y: Array) -> AIPFBState:
        """The start (x, y); one query for the proven bounds, unless the rule is ``paper``."""
        C0 = 0.0
        if self.inner != "paper":
            C0 = optimality(f, x, y, *f.field(x, y)).weighted(f)
        return AIPFBState(x, y, x, 0.0 * x, 0.0 * y, 0, C0, (0.75 + 0.5 * floored(f.coupling)) * C0)

    def step(self, f: Saddle, s: AIPFBState) -> AIPFBState:
        """The state after one step: two inexact proximal steps, one product each way."""
        gamma, sigma, theta = apfb_parameters(f.mu_x, f.mu_y, f.norm)
        K1, K2, eps = self.accuracy(f, s)
        h = anchored(f.h, 1.0 / sigma, s.y + sigma * f.A.tmul(s.xt))
        y = minimise(h, s.y + 0.5 * s.dy, steps=K1, gap=eps)
        g = anchored(f.g, 1.0 / gamma, s.x - gamma * f.A.mul(y))
        x = minimise(g, s.x + 0.5 * s.dx, steps=K2, gap=eps)
        dx, dy = x - s.x, y - s.y
        xt = x + theta * dx
        if self.inner == "paper":
            return AIPFBState(x, y, xt, s.dx, s.dy, s.k + 1, s.C0, s.bound)
        bound = aipfb_next_bound(s.bound, eps, f.coupling, f.mu_x, f.mu_y, norm(dx), norm(dy), norm(x - s.xt))
        return AIPFBState(x, y, xt, dx, dy, s.k + 1, s.C0, bound)

    def accuracy(self, f: Saddle, s: AIPFBState) -> tuple[int | None, int | None, float]:
        """When the inner solves end: after fixed numbers of AGD steps, or at a gap above the minimum."""
        c = f.coupling
        if self.inner == "paper":
            return aipfb_K1(f.kappa_y, c), aipfb_K2(f.kappa_x, c), 0.0
        eps = aipfb_adaptive_eps(s.bound, c)
        return None, None, min(eps, aipfb_eps(s.k + 1, c, s.C0)) if self.inner == "certified" else eps

    def cost(self, f: Saddle) -> dict[str, int] | None:
        """The calls of a step, which are fixed for the paper's rule only."""
        if self.inner != "paper":
            return None
        K1, K2 = aipfb_K1(f.kappa_y, f.coupling), aipfb_K2(f.kappa_x, f.coupling)
        return {"grad_g": K2 + (f.g.simple is not None), "grad_h": K1 + (f.h.simple is not None), "A": 1, "At": 1}

    def parameters(self, f: Saddle) -> dict[str, float]:
        """The constants gamma, sigma, theta, rho, C, K1 and K2."""
        c = f.coupling
        return apfb_parameters(f.mu_x, f.mu_y, f.norm)._asdict() | {
            "rho": aipfb_rho(c),
            "C": aipfb_C(c),
            "K1": aipfb_K1(f.kappa_y, c),
            "K2": aipfb_K2(f.kappa_x, c),
        }
