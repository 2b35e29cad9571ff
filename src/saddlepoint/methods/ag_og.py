r"""AG-OG: Nesterov's acceleration of the functions around an optimistic step of the coupling, restarted.

Problem:    min_x max_y g(x) + <x, A y> - h(y); z = (x, y), H z = (A y, -A' x), grad f = (grad g, grad h).
Recursion:  (in the variables where mu_x = mu_y = 1; step k = 0, ..., K - 1 of an epoch, alpha = 2/(k + 2))
            p  = grad f((1 - alpha) z_ag + alpha z)
            zh = z - eta (Hz + p),   z_ag = (1 - alpha) z_ag + alpha zh,   Hz = H zh,   z = z - eta (Hz + p)
            eta = (k + 2)/(2 L + sqrt(3 + sqrt(3)) c (k + 2)), L = max(kx, ky); the next epoch starts with z = z_ag.
Guarantee:  |z_ag - z*|^2 falls by exp(-2) an epoch, whose length K is O(sqrt(L) + c): hence
            O((sqrt(kx + ky) + c) log 1/eps) queries.
Reference:  C. Li, A. Yuan, G. Gidel, Q. Gu and M. Jordan, Nesterov meets optimism: rate-optimal separable minimax
            optimization, ICML 2023.

H z_ag is computed as the same average of the products H zh, so that a new epoch begins without a product.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from saddlepoint.ground.arrays import Array
from saddlepoint.methods.base import Method
from saddlepoint.methods.registry import register
from saddlepoint.problems.saddle import Saddle
from saddlepoint.problems.transforms import View, unit_strength
from saddlepoint.theory.ag import OG_SLACK, ag_bound, ag_epoch, ag_eta
from saddlepoint.theory.complexity import Complexity
from saddlepoint.theory.table1 import joint_order


class AGOGState(NamedTuple):
    """The points z_ag and z, the last products A y and A' x, those at z_ag, and the number k of steps in this epoch."""

    x: Array
    y: Array
    zx: Array
    zy: Array
    Ay: Array
    Atx: Array
    Ay_ag: Array
    Atx_ag: Array
    k: int


@register
@dataclass(frozen=True)
class AGOG(Method):
    """Accelerated gradient, optimistic gradient."""

    name: ClassVar[str] = "ag-og"
    complexity: ClassVar[Complexity] = Complexity("sqrt(k) + c", joint_order)
    works: ClassVar[tuple[str, ...]] = ("li2023",)

    def normal_form(self, f: Saddle) -> View:
        """The problem in the variables where mu_x = mu_y = 1."""
        return unit_strength(f)

    def init(self, f: Saddle, x: Array, y: Array) -> AGOGState:
        """The state at the start of the first epoch, at (x, y); one product each way."""
        Ay, Atx = f.A.both(x, y)
        return AGOGState(x, y, x, y, Ay, Atx, Ay, Atx, 0)

    def step(self, f: Saddle, s: AGOGState) -> AGOGState:
        """The state after one step, which costs one query: a gradient of each function, a product each way."""
        alpha, eta = 2.0 / (s.k + 2.0), ag_eta(f.L, f.norm, s.k, OG_SLACK)
        px = f.g.grad((1.0 - alpha) * s.x + alpha * s.zx)
        py = f.h.grad((1.0 - alpha) * s.y + alpha * s.zy)
        xh, yh = s.zx - eta * (s.Ay + px), s.zy - eta * (py - s.Atx)
        x, y = (1.0 - alpha) * s.x + alpha * xh, (1.0 - alpha) * s.y + alpha * yh
        Ay, Atx = f.A.both(xh, yh)
        Ay_ag, Atx_ag = (1.0 - alpha) * s.Ay_ag + alpha * Ay, (1.0 - alpha) * s.Atx_ag + alpha * Atx
        if s.k + 1 == ag_epoch(f.L, f.norm, OG_SLACK):
            return AGOGState(x, y, x, y, Ay_ag, Atx_ag, Ay_ag, Atx_ag, 0)
        zx, zy = s.zx - eta * (Ay + px), s.zy - eta * (py - Atx)
        return AGOGState(x, y, zx, zy, Ay, Atx, Ay_ag, Atx_ag, s.k + 1)

    def cost(self, f: Saddle) -> dict[str, int]:
        """A step costs one gradient of each function and one product each way."""
        return {"grad_g": 1, "grad_h": 1, "A": 1, "At": 1}

    def bound(self, f: Saddle, k: int) -> float:
        """The squared distance falls by the factor exp(-2) in each epoch."""
        return ag_bound(f.L, f.norm, k, OG_SLACK)

    def parameters(self, f: Saddle) -> dict[str, float]:
        """The number of steps K of an epoch."""
        return {"K": ag_epoch(f.L, f.norm, OG_SLACK)}
