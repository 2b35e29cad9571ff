r"""LPD, the lifted primal-dual method, which was the first to attain the lower bound.

Problem:    min_x max_y g(x) + <x, A y> - h(y); gt = g - mu_x/2 |x|^2, ht = h - mu_y/2 |y|^2.
Recursion:  x_{k+1} = (x_k - tx (A yb + ub))/(1 + rx),   y_{k+1} = (y_k + ty (A' xb - vb))/(1 + ry),
            xb = x_k + theta (x_k - x_{k-1}), and so yb, ub and vb,
            w_{k+1} = (w_k + sx x_{k+1})/(1 + sx),       u_{k+1} = grad gt(w_{k+1})
            q_{k+1} = (q_k + sy y_{k+1})/(1 + sy),       v_{k+1} = grad ht(q_{k+1}),
            rx = mu_x tx = 1/(a + 2 c), ry = mu_y ty = 1/(b + 2 c), sx = 1/a, sy = 1/b, theta = 1/(1 + 1/(a + b + 2 c)),
            a = sqrt(kx - 1), b = sqrt(ky - 1), c = |A|/sqrt(mu_x mu_y). With simple terms p and q, x_{k+1} is
            prox_{t p} of the point above with t = tx/(1 + rx), and y_{k+1} is prox_{t q} with t = ty/(1 + ry).
Guarantee:  mu_x |x_k - x*|^2 + mu_y |y_k - y*|^2 falls by theta a step, up to a constant, hence
            O((sqrt(kx) + sqrt(ky) + c) log 1/eps) queries.
Reference:  K. Thekumparampil, N. He and S. Oh, Lifted primal-dual method for bilinearly coupled smooth minimax
            optimization, AISTATS 2022.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from saddlepoint.ground.arrays import Array
from saddlepoint.methods.base import Method, Needs
from saddlepoint.methods.registry import register
from saddlepoint.problems.saddle import Saddle
from saddlepoint.theory.complexity import Complexity
from saddlepoint.theory.lpd import lpd_bound, lpd_parameters
from saddlepoint.theory.table1 import lpd_order


class LPDState(NamedTuple):
    """The points x_k and y_k, the lifted points with their gradients, and the extrapolations for the next step."""

    x: Array
    y: Array
    w: Array
    q: Array
    u: Array
    v: Array
    xb: Array
    yb: Array
    ub: Array
    vb: Array


@register
@dataclass(frozen=True)
class LPD(Method):
    """The lifted primal-dual method, with all blocks updated at once."""

    needs: ClassVar[Needs] = Needs(smooth=False)
    complexity: ClassVar[Complexity] = Complexity("sqrt(kx - 1) + sqrt(ky - 1) + 2 c", lpd_order)
    works: ClassVar[tuple[str, ...]] = ("thekumparampil2022",)

    def init(self, f: Saddle, x: Array, y: Array) -> LPDState:
        """The start, with w = x and q = y; one gradient of each function."""
        u, v = f.g.grad(x) - f.mu_x * x, f.h.grad(y) - f.mu_y * y
        return LPDState(x, y, x, y, u, v, x, y, u, v)

    def step(self, f: Saddle, s: LPDState) -> LPDState:
        """The state after one step, which costs one query: a gradient of each function, a product each way."""
        rx, ry, sx, sy, theta = lpd_parameters(*f.numbers)
        Ay, Atx = f.A.both(s.xb, s.yb)
        a, b, tx, ty = 1.0 / (1.0 + rx), 1.0 / (1.0 + ry), rx / f.mu_x, ry / f.mu_y
        x = f.g.simple_prox(a * (s.x - tx * (Ay + s.ub)), a * tx)
        y = f.h.simple_prox(b * (s.y + ty * (Atx - s.vb)), b * ty)
        w = (1.0 / (1.0 + sx)) * (s.w + sx * x)
        q = (1.0 / (1.0 + sy)) * (s.q + sy * y)
        u, v = f.g.grad(w) - f.mu_x * w, f.h.grad(q) - f.mu_y * q
        xb, yb = x + theta * (x - s.x), y + theta * (y - s.y)
        return LPDState(x, y, w, q, u, v, xb, yb, u + theta * (u - s.u), v + theta * (v - s.v))

    def cost(self, f: Saddle) -> dict[str, int]:
        """A step costs one gradient of each function and one product each way."""
        return {"grad_g": 1, "grad_h": 1, "A": 1, "At": 1}

    def bound(self, f: Saddle, k: int) -> float:
        """The squared distance after k steps is at most theta^k times a constant."""
        return lpd_bound(*f.numbers, k)

    def weights(self, f: Saddle) -> dict[str, float]:
        """Points are weighted by sqrt(mu), gradients by 1/sqrt(L - mu)."""
        sx, sy, gx, gy = lifted_weights(f)
        return {"x": sx, "y": sy, "w": sx, "q": sy, "ub": gx, "vb": gy, "xb": sx, "yb": sy}

    def parameters(self, f: Saddle) -> dict[str, float]:
        """The steps rx, ry, sx and sy, and theta."""
        return lpd_parameters(*f.numbers)._asdict()


def lifted_weights(f: Saddle) -> tuple[float, float, float, float]:
    """The weights of points x and y, and of the gradients of gt and ht, which are lifted variables."""
    gx, gy = (0.0 if mu >= L else 1.0 / math.sqrt(L - mu) for L, mu in ((f.L_x, f.mu_x), (f.L_y, f.mu_y)))
    return math.sqrt(f.mu_x), math.sqrt(f.mu_y), gx, gy
