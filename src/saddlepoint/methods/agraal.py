r"""aGRAAL, the adaptive golden ratio algorithm, which needs no constants, not even L or |A|.

Problem:    F(z) = 0 for z = (x, y), F = (grad g(x) + A y, grad h(y) - A' x).
Recursion:  zb_k = ((phi - 1) z_k + zb_{k-1})/phi,   z_{k+1} = zb_k - s_k W F(z_k),   phi = 3/2,
            s_k = min((1/phi + 1/phi^2) s_{k-1},  phi t_{k-1}/(4 s_{k-1}) |z_k - z_{k-1}|^2/|F(z_k) - F(z_{k-1})|^2)
            t_k = phi s_k/s_{k-1}, lengths in the norms of W^-1 and W. With simple terms p and q, x_{k+1} is
            prox_{s_k wx p} of the point above, and y_{k+1} is prox_{s_k wy q}.
Guarantee:  it converges for every monotone, locally Lipschitz field, and linearly for strongly monotone ones, in
            O((kx + ky + c) log 1/eps) queries; ``agraal_energy`` falls in every step, with and without simple terms.
Reference:  Y. Malitsky, Golden ratio algorithms for variational inequalities, Math. Prog. 2020.

W = (wx, wy) only sets the relative scale of the players: 1/mu_x, 1/mu_y where they are known, else 1/L_x, 1/L_y.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from saddlepoint.ground.arrays import Array
from saddlepoint.ground.linalg import norm
from saddlepoint.methods.apd import residual, scales
from saddlepoint.methods.base import Method, Needs
from saddlepoint.methods.registry import register
from saddlepoint.problems.saddle import Saddle
from saddlepoint.theory.agraal import PHI
from saddlepoint.theory.complexity import Complexity
from saddlepoint.theory.table1 import agraal_order

FIRST = 1e-4  # length of the trial step at the start, relative to the point or to the field, whichever is longer


class AGRAALState(NamedTuple):
    """The points z_k, zb_{k-1} and z_{k-1}, the field at z_{k-1}, and the numbers s_{k-1} and t_{k-1}."""

    x: Array
    y: Array
    bx: Array
    by: Array
    px: Array
    py: Array
    Fx: Array
    Fy: Array
    s: float
    t: float


@register
@dataclass(frozen=True)
class AGRAAL(Method):
    """The adaptive golden ratio algorithm."""

    needs: ClassVar[Needs] = Needs(mu=False, smooth=False)
    complexity: ClassVar[Complexity] = Complexity("k + c", agraal_order)
    works: ClassVar[tuple[str, ...]] = ("malitsky2020",)

    def init(self, f: Saddle, x: Array, y: Array) -> AGRAALState:
        """The start: the field changes along a tiny step, which gives the first step length; two queries."""
        Fx, Fy = f.field(x, y)
        length = residual(f, Fx, Fy)
        if length == 0.0:
            return AGRAALState(x, y, x, y, x, y, Fx, Fy, 1.0, 1.0)
        tiny = FIRST * max(norm_of(f, x, y), length) / length
        px, py = moved_along(f, x, y, Fx, Fy, tiny)
        Gx, Gy = f.field(px, py)
        change = residual(f, Gx - Fx, Gy - Fy)
        s = norm_of(f, px - x, py - y) / change if change > 0.0 else 1.0
        return AGRAALState(*moved_along(f, x, y, Fx, Fy, s), x, y, x, y, Fx, Fy, s, 1.0)

    def step(self, f: Saddle, s: AGRAALState) -> AGRAALState:
        """The state after one step, which costs one query: a gradient of each function, a product each way."""
        Fx, Fy = f.field(s.x, s.y)
        moved, change = norm_of(f, s.x - s.px, s.y - s.py), residual(f, Fx - s.Fx, Fy - s.Fy)
        size = (1.0 / PHI + 1.0 / PHI**2) * s.s
        if change > 0.0 and moved > 0.0:  # a noisy field can change although the point does not
            size = min(size, PHI * s.t / (4.0 * s.s) * (moved / change) * (moved / change))
        bx, by = ((PHI - 1.0) / PHI) * s.x + (1.0 / PHI) * s.bx, ((PHI - 1.0) / PHI) * s.y + (1.0 / PHI) * s.by
        x, y = moved_along(f, bx, by, Fx, Fy, size)
        return AGRAALState(x, y, bx, by, s.x, s.y, Fx, Fy, size, PHI * size / s.s)

    def cost(self, f: Saddle) -> dict[str, int]:
        """A step costs one gradient of each function and one product each way."""
        return {"grad_g": 1, "grad_h": 1, "A": 1, "At": 1}


def moved_along(f: Saddle, x: Array, y: Array, Fx: Array, Fy: Array, s: float) -> tuple[Array, Array]:
    """The point (x, y) - s W (Fx, Fy), or the prox of the simple terms there."""
    wx, wy = scales(f)
    return f.g.simple_prox(x - (s * wx) * Fx, s * wx), f.h.simple_prox(y - (s * wy) * Fy, s * wy)


def norm_of(f: Saddle, x: Array, y: Array) -> float:
    """The length sqrt(|x|^2/wx + |y|^2/wy) of a step (x, y)."""
    wx, wy = scales(f)
    return math.hypot(norm(x) / math.sqrt(wx), norm(y) / math.sqrt(wy))
