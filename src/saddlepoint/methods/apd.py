r"""APD, the accelerated primal-dual method: for functions whose mu is not known. Restarted, it is rAPD.

Problem:    min_x max_y g(x) + <x, A y> - h(y), L_x and L_y known.
Recursion:  (k = 1, 2, ...; b = (k + 1)/2, theta = (k - 1)/k, eta = 1/(L/b + |A| sqrt(wx wy)), L = max(wx L_x, wy L_y))
            px = grad g((1 - 1/b) xb + x/b),   py = grad h((1 - 1/b) yb + y/b)
            y+ = y + eta wy (A' (x + theta (x - x_prev)) - py),   x+ = x - eta wx (A y+ + px)
            xb = (1 - 1/b) xb + x+/b,          yb = (1 - 1/b) yb + y+/b.
            With simple terms p and q, x+ is prox_{eta wx p} of the point above, and y+ is prox_{eta wy q}.
Guarantee:  the gap at (xb, yb) falls like L/k^2 + |A| sqrt(wx wy)/k, and the squared distance is below
            ``apd_bound`` times the largest one of the iterates. With strong convexity, ``Restarted`` makes that
            O(sqrt(L) + |A| sqrt(wx wy)) steps for each factor, O(sqrt(kx + ky) + c) with wx = 1/mu_x, wy = 1/mu_y.
Reference:  Y. Chen, G. Lan and Y. Ouyang, Optimal primal-dual methods for a class of saddle point problems, SIAM J.
            Optim. 2014; H. Lu and J. Yang, A practical and optimal first-order method for large-scale convex quadratic
            programming, Math. Prog. 2025.

The iterates depend on wx and wy only through their ratio; where mu is not known they are 1/L_x and 1/L_y.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from saddlepoint.ground.arrays import Array
from saddlepoint.ground.linalg import norm
from saddlepoint.methods.base import Method, Needs
from saddlepoint.problems.saddle import Saddle
from saddlepoint.theory.complexity import Complexity


class APDState(NamedTuple):
    """The average, the iterate, the extrapolated x, and the number of steps."""

    x: Array
    y: Array
    zx: Array
    zy: Array
    xt: Array
    k: int


@dataclass(frozen=True)
class APD(Method):
    """The accelerated primal-dual method, which converges sublinearly unless it is restarted."""

    needs: ClassVar[Needs] = Needs(mu=False, smooth=False)
    complexity: ClassVar[Complexity] = Complexity("1/steps; restarted, it is rapd")
    works: ClassVar[tuple[str, ...]] = ("chen2014", "lu2025")

    def init(self, f: Saddle, x: Array, y: Array) -> APDState:
        """The start: every point of the state is (x, y)."""
        return APDState(x, y, x, y, x, 0)

    def step(self, f: Saddle, s: APDState) -> APDState:
        """The state after one step, which costs one query: a gradient of each function, a product each way."""
        wx, wy = scales(f)
        k = s.k + 1
        a, theta = 2.0 / (k + 1.0), k / (k + 1.0)
        eta = 1.0 / (a * max(wx * f.L_x, wy * f.L_y) + f.norm * math.sqrt(wx) * math.sqrt(wy))
        px = f.g.grad((1.0 - a) * s.x + a * s.zx)
        py = f.h.grad((1.0 - a) * s.y + a * s.zy)
        zy = f.h.simple_prox(s.zy + (eta * wy) * (f.A.tmul(s.xt) - py), eta * wy)
        zx = f.g.simple_prox(s.zx - (eta * wx) * (f.A.mul(zy) + px), eta * wx)
        x, y = (1.0 - a) * s.x + a * zx, (1.0 - a) * s.y + a * zy
        return APDState(x, y, zx, zy, zx + theta * (zx - s.zx), k)

    def cost(self, f: Saddle) -> dict[str, int]:
        """A step costs one gradient of each function and one product each way."""
        return {"grad_g": 1, "grad_h": 1, "A": 1, "At": 1}

    def parameters(self, f: Saddle) -> dict[str, float]:
        """The scales wx and wy."""
        return dict(zip(("wx", "wy"), scales(f), strict=True))


def scales(f: Saddle) -> tuple[float, float]:
    """The scales wx and wy: 1/mu where both mu are known, else 1/L."""
    if math.isnan(f.mu_x + f.mu_y):
        return 1.0 / f.L_x, 1.0 / f.L_y
    return 1.0 / f.mu_x, 1.0 / f.mu_y


def residual(f: Saddle, Fx: Array, Fy: Array) -> float:
    """sqrt(wx |Fx|^2 + wy |Fy|^2): the length of the field, which does not depend on the units of x and y."""
    wx, wy = scales(f)
    return math.hypot(math.sqrt(wx) * norm(Fx), math.sqrt(wy) * norm(Fy))
