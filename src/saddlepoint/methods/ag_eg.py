r"""AG-EG: Nesterov's acceleration of the functions around an extragradient step of the coupling, restarted.

Problem:    min_x max_y g(x) + <x, A y> - h(y); z = (x, y), H z = (A y, -A' x), grad f = (grad g, grad h).
Recursion:  (in the variables where mu_x = mu_y = 1; step k = 0, ..., K - 1 of an epoch, alpha = 2/(k + 2))
            p  = grad f((1 - alpha) z_ag + alpha z)
            zh = z - eta (H z + p),   z_ag = (1 - alpha) z_ag + alpha zh,   z = z - eta (H zh + p)
            eta = (k + 2)/(2 L + c (k + 2)), L = max(kx, ky); the next epoch starts with z = z_ag.
Guarantee:  |z_ag - z*|^2 falls by exp(-2) an epoch, whose length K is O(sqrt(L) + c): hence
            O((sqrt(kx + ky) + c) log 1/eps) gradients and twice as many products.
Reference:  S. Du, G. Gidel, M. Jordan and C. Li, Optimal extragradient-based bilinearly-coupled saddle-point
            optimization, 2022.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from saddlepoint.ground.arrays import Array
from saddlepoint.methods.base import Method
from saddlepoint.methods.registry import register
from saddlepoint.problems.saddle import Saddle
from saddlepoint.problems.transforms import View, unit_strength
from saddlepoint.theory.ag import ag_bound, ag_epoch, ag_eta
from saddlepoint.theory.complexity import Complexity
from saddlepoint.theory.table1 import joint_order


class AGEGState(NamedTuple):
    """The points z_ag and z, and the number k of steps taken in this epoch."""

    x: Array
    y: Array
    zx: Array
    zy: Array
    k: int


@register
@dataclass(frozen=True)
class AGEG(Method):
    """Accelerated gradient, extragradient."""

    name: ClassVar[str] = "ag-eg"
    complexity: ClassVar[Complexity] = Complexity("sqrt(k) + c", joint_order)
    works: ClassVar[tuple[str, ...]] = ("du2022",)

    def normal_form(self, f: Saddle) -> View:
        """The problem in the variables where mu_x = mu_y = 1."""
        return unit_strength(f)

    def init(self, f: Saddle, x: Array, y: Array) -> AGEGState:
        """The state at the start of the first epoch, at (x, y)."""
        return AGEGState(x, y, x, y, 0)

    def step(self, f: Saddle, s: AGEGState) -> AGEGState:
        """The state after one step: one gradient of each function, two products each way."""
        alpha, eta = 2.0 / (s.k + 2.0), ag_eta(f.L, f.norm, s.k)
        px = f.g.grad((1.0 - alpha) * s.x + alpha * s.zx)
        py = f.h.grad((1.0 - alpha) * s.y + alpha * s.zy)
        Ay, Atx = f.A.both(s.zx, s.zy)
        xh, yh = s.zx - eta * (Ay + px), s.zy - eta * (py - Atx)
        x, y = (1.0 - alpha) * s.x + alpha * xh, (1.0 - alpha) * s.y + alpha * yh
        Ay, Atx = f.A.both(xh, yh)
        if s.k + 1 == ag_epoch(f.L, f.norm):
            return AGEGState(x, y, x, y, 0)
        return AGEGState(x, y, s.zx - eta * (Ay + px), s.zy - eta * (py - Atx), s.k + 1)

    def cost(self, f: Saddle) -> dict[str, int]:
        """A step costs one gradient of each function and two products each way."""
        return {"grad_g": 1, "grad_h": 1, "A": 2, "At": 2}

    def bound(self, f: Saddle, k: int) -> float:
        """The squared distance falls by the factor exp(-2) in each epoch."""
        return ag_bound(f.L, f.norm, k)

    def parameters(self, f: Saddle) -> dict[str, float]:
        """The number of steps K of an epoch."""
        return {"K": ag_epoch(f.L, f.norm)}
