r"""adaPDM: a primal-dual method that finds its steps from the last two gradients, without L.

Problem:    min_x max_y g(x) + <x, A y> - h(y) with the gradient of g and the prox of h.
Recursion:  y_{k+1} = prox_{s h}(y_k + s ((1 + rho) A' x_k - rho A' x_{k-1})),   s = t^2 gamma_{k+1},
            x_{k+1} = x_k - gamma_{k+1} (grad g(x_k) + A y_{k+1}),               rho = gamma_{k+1}/gamma_k,
            gamma_{k+1} = min(gamma_k sqrt(1 + gamma_k/gamma_{k-1}), 1/(2.4 t |A|),
                              gamma_k sqrt(o/(2 (D + sqrt(D^2 + xi o))))),
            xi = (t gamma_k |A|)^2, o = 1 - 4 xi, D = gamma_k l (gamma_k C - 1), with the local estimates
            l = <dg, dx>/|dx|^2 and C = |dg|^2/<dg, dx> of the last two points; t = sqrt(mu_x/mu_y), or 1 without mu.
Guarantee:  the iterates converge to the saddle point, also where g is only locally smooth. With strong convexity a
            linear rate is observed, about kx + c calls a digit; none is proven here.
Reference:  P. Latafat, A. Themelis, L. Stella and P. Patrinos, Adaptive proximal algorithms for convex optimization
            under local Lipschitz continuity of the gradient, Mathematical Programming 2025.

L of g is used for the length of the first step only. The two products of a step are one call of ``through``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from saddlepoint.ground.arrays import Array
from saddlepoint.ground.linalg import inner
from saddlepoint.methods.base import Method, Needs, float_option
from saddlepoint.methods.registry import register
from saddlepoint.problems.saddle import Saddle
from saddlepoint.theory.adapdm import adapdm_step, longest_step
from saddlepoint.theory.complexity import Complexity


class AdaPDMState(NamedTuple):
    """The points x_k and y_k, the gradient of g and A' x at x_k, the same at x_{k-1}, and the last two steps."""

    x: Array
    y: Array
    gx: Array
    Atx: Array
    x_before: Array
    gx_before: Array
    Atx_before: Array
    step: float
    step_before: float


@register
@dataclass(frozen=True)
class AdaPDM(Method):
    """The adaptive primal-dual method."""

    ratio: float | None = float_option(None, "t, the square root of dual step over primal step; None = sqrt(mu_x/mu_y)")

    needs: ClassVar[Needs] = Needs(prox_h=True, mu=False)
    complexity: ClassVar[Complexity] = Complexity("kx + c, observed")
    works: ClassVar[tuple[str, ...]] = ("latafat2025",)

    def init(self, f: Saddle, x: Array, y: Array) -> AdaPDMState:
        """The start: one gradient and one product. The two step lengths before it are min(1/L, longest allowed)."""
        gx, Atx = f.g.grad(x), f.A.tmul(x)
        step = min(1.0 / f.L_x, longest_step(self.t(f), f.norm))
        return AdaPDMState(x, y, gx, Atx, x, gx, Atx, step, step)

    def step(self, f: Saddle, s: AdaPDMState) -> AdaPDMState:
        """The state after one step: one gradient of g, one prox of h, one product each way."""
        t = self.t(f)
        dx, dg = s.x - s.x_before, s.gx - s.gx_before
        move, change, both = inner(dx, dx), inner(dg, dg), inner(dx, dg)
        low, high = (both / move, change / both) if move > 0.0 and both > 0.0 else (0.0, 0.0)
        step = adapdm_step(s.step, s.step_before, low, high, t, f.norm)
        rho = step / s.step
        sigma = t * t * step
        y = f.h.prox(s.y + sigma * ((1.0 + rho) * s.Atx - rho * s.Atx_before), sigma)
        p = s.x - step * s.gx
        Ay, Atx = f.A.through(y, -step, p)
        x = p - step * Ay
        return AdaPDMState(x, y, f.g.grad(x), Atx, s.x, s.gx, s.Atx, step, s.step)

    def t(self, f: Saddle) -> float:
        """The number t, the square root of dual step over primal step."""
        if self.ratio is not None:
            return self.ratio
        return 1.0 if math.isnan(f.mu_x + f.mu_y) else math.sqrt(f.mu_x / f.mu_y)

    def cost(self, f: Saddle) -> dict[str, int]:
        """A step costs one gradient of g, one prox of h and one product each way."""
        return {"grad_g": 1, "grad_h": 0, "A": 1, "At": 1, "prox_h": 1}

    def parameters(self, f: Saddle) -> dict[str, float]:
        """The number t of the recursion."""
        return {"t": self.t(f)}
