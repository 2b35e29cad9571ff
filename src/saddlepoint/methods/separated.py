r"""Separated: gradients of g, gradients of h and products are called at different rates, each at its own.

Problem:    min_x max_y g(x) + <x, A y> - h(y), the players rescaled to mu_x = mu_y = 1 and, if need be, exchanged so
            that kx >= ky; gt = g - |x|^2/2, ht = h - |y|^2/2.
Recursion:  with r the root of r^2 N^2 = 1 + r (1 at most), theta = 1/(1 + r), l = 1/r, M = 1 + l, and the functions
            averaged over the steps so far, G(x) = M gt((l w_k + x)/M) and H(y) = M ht((l q_k + y)/M):
            c^2 <= ky - 1 (products in the outer loop, N = c):
                y_{k+1} = argmin_y |y|^2/2 + l/2 |y - y_k|^2 + H(y) - <A' x_k, y>,
                x_{k+1} = argmin_x |x|^2/2 + l/2 |x - x_k|^2 + G(x) + <A yb, x>,       both by AGD,
                yb = y_{k+1} + theta (y_{k+1} - y_k);
            c^2 <= kx - 1 and c^2 <= 16 (ky - 1) (products and h, N = sqrt(c^2 + ky - 1)):
                the same with <v_k, y> in the place of H(y), v_k = grad ht(q_k);
            otherwise (h, N = sqrt(ky - 1)):
                (x_{k+1}, y_{k+1}) = the saddle point of |x|^2/2 + l/2 |x - x_k|^2 + G(x) + <x, A y> - (|y|^2/2
                + l/2 |y - y_k|^2 + <v_k + theta (v_k - v_{k-1}), y>), by this method, or by LPD-slide if c^2 > kx - 1;
            where c^2 > kx - 1 and kx - 1 <= 16 (ky - 1) (g and h, N = sqrt(kx - 1)): the step of LPD-slide.
            w_{k+1} = (l w_k + x_{k+1})/M,   q_{k+1} = (l q_k + y_{k+1})/M (yb where <v_k, y> is used with products).
Guarantee:  with exact inner solves mu_x |x_k - x*|^2 + mu_y |y_k - y*|^2 falls by 1/(1 + r) ~ 1 - 1/N a step, up to a
            constant (``separated_bound``). The inner problems are better conditioned by N^2, so that up to logarithms
            there are sqrt(kx) gradients of g, sqrt(ky) of h (times 4 at most where loops are shared) and
            c + min(sqrt(kx), sqrt(ky)) products. The inner solves end at ``accuracy`` times the move, which is not
            proven to be enough; the certificate does not depend on it.
Reference:  It is LPD-GS (the lifting of K. Thekumparampil, N. He and S. Oh, AISTATS 2022) with blocks that are solved
            for. That the three counts can be separated was shown, with another method, by E. Borodich, A. Gasnikov and
            D. Kovalev, On linear convergence in smooth convex-concave bilinearly-coupled saddle-point optimization:
            lower bounds and optimal algorithms, ICML 2025.

It makes more calls in all than LPD-GS. It is for problems where one oracle costs far more than the others.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from saddlepoint.ground.arrays import Array
from saddlepoint.ground.linalg import norm
from saddlepoint.methods.base import Method, float_option
from saddlepoint.methods.lpd_slide import LPDSlide
from saddlepoint.methods.registry import register
from saddlepoint.parts.functions.smooth import Smooth
from saddlepoint.problems.saddle import Saddle
from saddlepoint.problems.transforms import View, scaled_coupling, swapped, unit_strength
from saddlepoint.theory.agd import agd_momentum
from saddlepoint.theory.complexity import Complexity
from saddlepoint.theory.separated import (
    explicit_parts,
    relative_gradient_steps,
    separated_bound,
    separated_gradient_g_order,
    separated_gradient_h_order,
    separated_order,
    separated_product_order,
    separated_rho,
)

LIMIT = 1e4  # factor of kx/accuracy in the number of steps after which an inner run ends in any case
PROVEN = 1e-10  # largest ``accuracy`` with which inner solves count as exact


class SeparatedState(NamedTuple):
    """The points x_k and y_k, A' x_k if products are explicit, the averages w_k and q_k, the last two grad ht(q)."""

    x: Array
    y: Array
    Atx: Array | None
    w: Array
    q: Array
    v: Array | None
    v_before: Array | None


@register
@dataclass(frozen=True)
class Separated(Method):
    """The oracle with the smallest constant in the outer loop, the one with the largest in the innermost."""

    accuracy: float = float_option(0.1, "residual of the inner problems, relative to the move", 1e-14, 0.5)

    complexity: ClassVar[Complexity] = Complexity(
        "grad g: sqrt(kx), grad h: sqrt(ky), products c + sqrt(min(kx, ky))",
        separated_order,
        separated_gradient_g_order,
        separated_gradient_h_order,
        separated_product_order,
    )
    works: ClassVar[tuple[str, ...]] = ("borodich2025", "thekumparampil2022")

    def normal_form(self, f: Saddle) -> View:
        """The problem in variables where mu_x = mu_y = 1 and kx >= ky."""
        view = unit_strength(f)
        if f.kappa_x >= f.kappa_y:
            return view
        return View(swapped(view.problem).problem, view.a, view.b, swapped=True)

    def init(self, f: Saddle, x: Array, y: Array) -> Any:
        """The start, with w = x and q = y and the gradients and products that the outer loop needs."""
        parts = explicit_parts(*f.numbers)
        if parts == "gh":
            return self.slide().init(f, x, y)
        v = f.h.grad(y) - y if "h" in parts else None
        return SeparatedState(x, y, f.A.tmul(x) if "A" in parts else None, x, y, v, v)

    def step(self, f: Saddle, s: Any) -> Any:
        """The state after one step of the outer loop."""
        parts = explicit_parts(*f.numbers)
        if parts == "gh":
            return self.slide().step(f, s)
        return self.implicit_coupling(f, s) if parts == "h" else self.explicit_coupling(f, s)

    def explicit_coupling(self, f: Saddle, s: SeparatedState) -> SeparatedState:
        """A step with one product each way; the parts with g and, unless it is explicit, h are minimised by AGD."""
        r = separated_rho(*f.numbers)
        theta, a = 1.0 / (1.0 + r), r / (1.0 + r)
        assert s.Atx is not None
        if s.v is None:
            y = self.minimise(averaged(f.h, s.q, theta * s.y + a * s.Atx, r), s.y)
        else:
            y = theta * s.y + a * (s.Atx - s.v)
        yb = y + theta * (y - s.y)
        x = self.minimise(averaged(f.g, s.w, theta * s.x - a * f.A.mul(yb), r), s.x)
        w = theta * s.w + a * x
        if s.v is None:
            return SeparatedState(x, y, f.A.tmul(x), w, theta * s.q + a * y, None, None)
        q = theta * s.q + a * yb
        return SeparatedState(x, y, f.A.tmul(x), w, q, f.h.grad(q) - q, s.v)

    def implicit_coupling(self, f: Saddle, s: SeparatedState) -> SeparatedState:
        """A step with one gradient of h; the saddle problem of g and A is solved by an inner method."""
        r = separated_rho(*f.numbers)
        theta, a = 1.0 / (1.0 + r), r / (1.0 + r)
        assert s.v is not None
        assert s.v_before is not None
        centre = theta * s.y - a * (s.v + theta * (s.v - s.v_before))
        g = averaged(f.g, s.w, theta * s.x, r)
        h = Smooth(lambda y: y - centre, mu=1.0, L=1.0, quadratic=True)
        inner = Saddle.of(g, h, scaled_coupling(f.A, a), f.space)
        x, y = self.solve(inner, s.x, s.y)
        q = theta * s.q + a * y
        return SeparatedState(x, y, None, theta * s.w + a * x, q, f.h.grad(q) - q, s.v)

    def solve(self, f: Saddle, x: Array, y: Array) -> tuple[Array, Array]:
        """Take steps from (x, y) until the estimated error is at most ``accuracy`` times the distance from (x, y)."""
        r = separated_rho(*f.numbers)
        state = self.init(f, x, y)
        for _ in range(2 + math.ceil((1.0 + 1.0 / r) * math.log(LIMIT * max(f.kappa_x, 1.0) / self.accuracy))):
            before, state = state, self.step(f, state)
            move = math.hypot(norm(state.x - before.x), norm(state.y - before.y))
            whole = math.hypot(norm(state.x - x), norm(state.y - y))
            if move <= 2.0 * r * self.accuracy * whole:
                break
        return state.x, state.y

    def minimise(self, phi: Smooth, x: Array) -> Array:
        """Run AGD from x until the gradient is at most ``accuracy`` times the distance from x; mu of phi is 1."""
        momentum, old, xt = agd_momentum(phi.L), x, x
        for _ in range(relative_gradient_steps(phi.L, self.accuracy)):
            p = phi.grad(xt)
            new = xt - (1.0 / phi.L) * p
            if phi.L <= 1.0 or norm(p) <= self.accuracy * norm(new - x):
                return new
            old, xt = new, new + momentum * (new - old)
        return old

    def slide(self) -> LPDSlide:
        """The method for g and h in the outer loop."""
        return LPDSlide(self.accuracy)

    def bound(self, f: Saddle, k: int) -> float | None:
        """The bound (1 + r)^-k times a constant, where ``accuracy`` is at most ``PROVEN``; None elsewhere."""
        return separated_bound(*f.numbers, k) if self.accuracy <= PROVEN else None

    def parameters(self, f: Saddle) -> dict[str, float]:
        """The constants r and theta of the recursion."""
        r = separated_rho(*f.numbers)
        return {"rho": r, "theta": 1.0 / (1.0 + r)}


def averaged(f: Smooth, w: Array, centre: Array, r: float) -> Smooth:
    """The function x -> |x - centre|^2/2 + ft((l w + x)/M) of a step, divided by M; ft = f - |x|^2/2, and mu is 1."""
    theta, a = 1.0 / (1.0 + r), r / (1.0 + r)
    grad: Callable[[Array], Array] = f.grad

    def gradient(x: Array) -> Array:
        z = theta * w + a * x
        return x - centre + a * (grad(z) - z)

    return Smooth(gradient, mu=1.0, L=1.0 + a * a * (f.L - 1.0), quadratic=f.quadratic)
