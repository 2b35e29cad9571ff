r"""The double inexact proximal point algorithm (Algorithm DIPPA), the paper's method.

Problem:    min_x max_y g(x) + <x, A y> - h(y), both functions L-smooth and mu-strongly convex, kappa = L/mu.
Recursion:  z_k = x_{k-1} - alpha A y_{k-1},   w_k = y_{k-1} + alpha A' x_{k-1},   alpha = 1/sqrt(L mu)
            xt_k ~ argmin G_k,  G_k(x) = g(x) + |x - z_k|^2/(2 alpha),   by AGD, to eps_k
            yt_k ~ argmin H_k,  H_k(y) = h(y) + |y - w_k|^2/(2 alpha),   by AGD, to eps_k
            (x_k, y_k) ~ prox_{alpha A}(2 xt_k - z_k, 2 yt_k - w_k)      by APFB, CG or a factorisation, to delta_k.
            Simple terms p and q join the last step, where x_k + alpha (A y_k + s_k) = 2 xt_k - z_k with a subgradient
            s_k of p at x_k, and so for y; it is solved by APFB, z_{k+1} is x_k - alpha (A y_k + s_k), and z_1 is
            x_0 + alpha grad g(x_0).
Guarantee:  |x_K - x*|^2 + |y_K - y*|^2 <= C (1 - rho)^K (|x_0 - x*|^2 + |y_0 - y*|^2),
            rho = 1/(2 sqrt(kappa)), C = 4 sqrt(kappa) + 1 + |A|^2/(L mu)   (Theorem `dippa-out`; with simple terms
            C = 4 sqrt(kappa) + (1 + sqrt(kappa))^2, and docs/theory/dippa.md has the proof), hence
            O~(|A|/mu + kappa^(3/4)) queries   (Theorem `dippa:0`).
Reference:  G. Xie, Y. Han and Z. Zhang, DIPPA: An improved method for bilinear saddle point problems, 2021.

The problem is first rescaled so that one L and one mu hold for both functions. The rate for an unbalanced problem is
then that of kappa = max(kappa_x, kappa_y), and ``Catalyst(DIPPA())`` needs fewer calls.

The inner rule says when the inner solves end. ``paper``: always after K1 steps of AGD and K2 of APFB. ``adaptive``: as
early as possible while a bound on |z_k - z*|^2 + |w_k - w*|^2, which is proven from the fixed-point residual, still
falls by the factor 1 - rho in each step; the accuracy of every inner solve is proven. ``certified``: the same, but with
an accuracy of at least the paper's eps_k and delta_k, in which a proven bound replaces the unknown C_0; so Theorem
`dippa-out` holds without a change.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from saddlepoint.ground.arrays import Array
from saddlepoint.ground.linalg import norm
from saddlepoint.methods.agd import minimise
from saddlepoint.methods.base import Method, Needs, choice_option
from saddlepoint.methods.optimality import optimality
from saddlepoint.methods.registry import register
from saddlepoint.methods.resolvent import REFRESH, SMALL, Solution, Start, by_apfb, by_cg, by_factor, by_proximal_apfb
from saddlepoint.parts.functions.anchored import anchored
from saddlepoint.problems.saddle import Saddle
from saddlepoint.problems.transforms import View, balanced
from saddlepoint.theory.complexity import Complexity
from saddlepoint.theory.dippa import (
    dippa_adaptive_level,
    dippa_C,
    dippa_eps,
    dippa_first_level,
    dippa_K1,
    dippa_K2,
    dippa_K2_cg,
    dippa_level,
    dippa_next_bound,
    dippa_residual,
    dippa_rho,
    dippa_start,
)
from saddlepoint.theory.dppa import dppa_alpha
from saddlepoint.theory.table1 import dippa_order


class DIPPAState(NamedTuple):
    """The points x_k and y_k, the next (z, w), and the numbers that the inner rule uses."""

    x: Array
    y: Array
    z: Array
    w: Array
    dx: Array  # xt_k - x_{k-1}: the next inner solve starts half of this difference ahead
    dy: Array
    k: int  # number of steps so far
    C0: float  # a proven bound on |x_0 - x*|^2 + |y_0 - y*|^2
    bound: float  # a proven bound on a_{k+1} = |z_{k+1} - z*|^2 + |w_{k+1} - w*|^2
    level: float  # the inexactness that step k + 1 may have


@register
@dataclass(frozen=True)
class DIPPA(Method):
    """Double inexact proximal point algorithm."""

    inner: str = choice_option(
        "adaptive",
        "inner accuracy: fixed K1, K2 (paper), eps_k and delta_k with proofs (certified), or by progress (adaptive)",
        ("paper", "certified", "adaptive"),
    )
    coupling: str = choice_option(
        "auto",
        "coupling subproblem: APFB as in the paper, conjugate gradients, or one factorisation; auto decides by size",
        ("auto", "apfb", "cg", "factor"),
    )

    complexity: ClassVar[Complexity] = Complexity("sqrt(k) (c/(kx ky)^(1/4) + k^(1/4))", dippa_order)
    works: ClassVar[tuple[str, ...]] = ("xie2021",)

    @property
    def needs(self) -> Needs:  # type: ignore[override]
        """No simple terms if the coupling subproblem is to be solved as the linear system that it is without them."""
        return Needs(smooth=self.coupling in ("cg", "factor"))

    def normal_form(self, f: Saddle) -> View:
        """Both functions L-smooth and mu-strongly convex with the smallest L/mu."""
        return balanced(f)

    def init(self, f: Saddle, x: Array, y: Array) -> DIPPAState:
        """The start, z_1 and w_1; one gradient of each function for the proven bounds, unless the rule is ``paper``."""
        alpha, kappa = dppa_alpha(f.L, f.mu), f.L / f.mu
        Ay, Atx = f.A.both(x, y)
        z, w = x - alpha * Ay, y + alpha * Atx
        if self.inner == "paper" and not f.has_simple:
            return DIPPAState(x, y, z, w, 0.0 * x, 0.0 * y, 0, 0.0, 0.0, 0.0)
        gx, hy = f.g.grad(x), f.h.grad(y)
        if f.has_simple:
            z, w = x + alpha * gx, y + alpha * hy
        if self.inner == "paper":
            return DIPPAState(x, y, z, w, 0.0 * x, 0.0 * y, 0, 0.0, 0.0, 0.0)
        found = optimality(f, x, y, gx + Ay, hy - Atx)
        C0 = found.squared(f)
        bound = dippa_start(kappa, alpha * f.norm, f.has_simple) * C0
        level = dippa_first_level(alpha * math.hypot(norm(found.Rx), norm(found.Ry)), bound, kappa)
        if self.inner == "certified":
            level = min(level, dippa_level(1, kappa, C0))
        return DIPPAState(x, y, z, w, 0.0 * x, 0.0 * y, 0, C0, bound, level)

    def step(self, f: Saddle, s: DIPPAState) -> DIPPAState:
        """The state after one step, which is two inexact proximal steps."""
        alpha, kappa, z, w = dppa_alpha(f.L, f.mu), f.L / f.mu, s.z, s.w
        K1 = dippa_K1(kappa, alpha * f.norm, f.has_simple) if self.inner == "paper" else None
        eps = dippa_eps(s.level, f.mu)
        xt = minimise(anchored(f.g.without_term, 1.0 / alpha, z), s.x + 0.5 * s.dx, steps=K1, gap=eps)
        yt = minimise(anchored(f.h.without_term, 1.0 / alpha, w), s.y + 0.5 * s.dy, steps=K1, gap=eps)
        p, q = 2.0 * xt - z, 2.0 * yt - w
        x, y, rx, ry, _ = self.couple(f, p, q, s)
        z, w = 2.0 * x - p + rx, 2.0 * y - q + ry  # x - alpha A y and y + alpha A' x, at no extra cost
        if not f.has_simple and (self.inner == "paper" or (s.k + 1) % REFRESH == 0):
            Ay, Atx = f.A.both(x, y)
            z, w = x - alpha * Ay, y + alpha * Atx
        if self.inner == "paper":
            return s._replace(x=x, y=y, z=z, w=w, k=s.k + 1)
        moved = math.hypot(norm(z - s.z), norm(w - s.w))
        bound = dippa_next_bound(s.bound, s.level, moved, kappa)
        level = dippa_adaptive_level(bound, kappa)
        if self.inner == "certified":
            level = min(level, dippa_level(s.k + 2, kappa, s.C0))
        return DIPPAState(x, y, z, w, xt - s.x, yt - s.y, s.k + 1, s.C0, bound, level)

    def couple(self, f: Saddle, p: Array, q: Array, s: DIPPAState) -> Solution:
        """The proximal step prox_{alpha A}(p, q), which starts from (x_{k-1}, y_{k-1}), whose products are known."""
        alpha = dppa_alpha(f.L, f.mu)
        kappa, nu = f.L / f.mu, alpha * f.norm
        residual = math.sqrt(dippa_residual(s.level, kappa))
        fixed = self.inner == "paper"
        if f.has_simple:
            steps = dippa_K2(kappa, nu, terms=True) if fixed else None
            return by_proximal_apfb(f, p, q, alpha, (s.x, s.y), residual, steps)
        start = Start(s.x, s.y, s.x - s.z, s.w - s.y)
        match self.solver(f):
            case "factor":
                return by_factor(f.A, p, q, alpha, start)
            case "apfb":
                return by_apfb(f.A, p, q, alpha, start, residual, dippa_K2(kappa, nu) if fixed else None)
            case _:
                return by_cg(f.A, p, q, alpha, start, residual, dippa_K2_cg(kappa, nu) if fixed else None)

    def solver(self, f: Saddle) -> str:
        """The solver of the coupling subproblem that the option means; ``auto`` is resolved by size."""
        if self.coupling != "auto":
            return self.coupling
        if self.inner == "paper" or f.has_simple:
            return "apfb"
        return "factor" if min(f.shape) <= SMALL else "cg"

    def cost(self, f: Saddle) -> dict[str, int] | None:
        """The calls of a step, fixed for the paper's rule with APFB: K1 gradients each, K2 + 1 products each way."""
        if self.inner != "paper" or self.solver(f) != "apfb":
            return None
        kappa, nu = f.L / f.mu, f.norm * dppa_alpha(f.L, f.mu)
        K1, K2 = dippa_K1(kappa, nu, f.has_simple), dippa_K2(kappa, nu, f.has_simple)
        return {"grad_g": K1, "grad_h": K1, "A": K2 + (not f.has_simple), "At": K2 + 1}

    def parameters(self, f: Saddle) -> dict[str, float]:
        """The constants alpha, kappa, rho, C, K1 and K2."""
        alpha, kappa = dppa_alpha(f.L, f.mu), f.L / f.mu
        nu = alpha * f.norm
        return {
            "alpha": alpha,
            "kappa": kappa,
            "rho": dippa_rho(kappa),
            "C": dippa_C(kappa, nu, f.has_simple),
            "K1": dippa_K1(kappa, nu, f.has_simple),
            "K2": dippa_K2(kappa, nu, f.has_simple),
        }
