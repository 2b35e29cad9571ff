r"""APDG, the accelerated primal-dual gradient method.

Problem:    min_x max_y g(x) + <x, A y> - h(y) with gradients of g and h.
Recursion:  (in the variables where mu_x = mu_y = 1)
            xg = tau_x x_k + (1 - tau_x) xf_k,   yg = tau_y y_k + (1 - tau_y) yf_k,   ym = y_k + theta (y_k - y_{k-1})
            x_{k+1} = x_k + eta_x ((xg - x_k) - grad g(xg) - A ym)
            y_{k+1} = y_k + eta_y ((yg - y_k) - grad h(yg) + A' x_{k+1})
            xf_{k+1} = xg + sigma_x (x_{k+1} - x_k),   yf_{k+1} = yg + sigma_y (y_{k+1} - y_k).
Guarantee:  mu_x |x_k - x*|^2 + mu_y |y_k - y*|^2 falls by theta = 1 - 1/(4 + 4 max(sqrt(kx), sqrt(ky), c)) a step, up
            to a constant, hence O((sqrt(kx) + sqrt(ky) + c) log 1/eps) queries, c = |A|/sqrt(mu_x mu_y).
Reference:  D. Kovalev, A. Gasnikov and P. Richtarik, Accelerated primal-dual gradient method for smooth and
            convex-concave saddle-point problems with bilinear coupling, NeurIPS 2022.

The published method has two more terms, multiples of A A' x and A' A y, for functions that are not strongly convex.
Here they would only double the number of products, so they are left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from saddlepoint.ground.arrays import Array
from saddlepoint.methods.base import Method
from saddlepoint.methods.registry import register
from saddlepoint.problems.saddle import Saddle
from saddlepoint.problems.transforms import View, unit_strength
from saddlepoint.theory.apdg import apdg_bound, apdg_parameters
from saddlepoint.theory.complexity import Complexity
from saddlepoint.theory.table1 import separate_order


class APDGState(NamedTuple):
    """The points x_k and y_k, the averages xf and yf, and the extrapolated y."""

    x: Array
    y: Array
    xf: Array
    yf: Array
    ym: Array


@register
@dataclass(frozen=True)
class APDG(Method):
    """The accelerated primal-dual gradient method for strongly convex functions."""

    complexity: ClassVar[Complexity] = Complexity("sqrt(kx) + sqrt(ky) + c", separate_order)
    works: ClassVar[tuple[str, ...]] = ("kovalev2022",)

    def normal_form(self, f: Saddle) -> View:
        """The problem in the variables where mu_x = mu_y = 1."""
        return unit_strength(f)

    def init(self, f: Saddle, x: Array, y: Array) -> APDGState:
        """The start: every point of the state is (x, y)."""
        return APDGState(x, y, x, y, y)

    def step(self, f: Saddle, s: APDGState) -> APDGState:
        """The state after one step, which costs one query: a gradient of each function, a product each way."""
        sigma_x, sigma_y, tau_x, tau_y, eta_x, eta_y, theta = apdg_parameters(*f.numbers)
        xg = tau_x * s.x + (1.0 - tau_x) * s.xf
        yg = tau_y * s.y + (1.0 - tau_y) * s.yf
        x = s.x + eta_x * (xg - s.x - f.g.grad(xg) - f.A.mul(s.ym))
        y = s.y + eta_y * (yg - s.y - f.h.grad(yg) + f.A.tmul(x))
        return APDGState(x, y, xg + sigma_x * (x - s.x), yg + sigma_y * (y - s.y), y + theta * (y - s.y))

    def cost(self, f: Saddle) -> dict[str, int]:
        """A step costs one gradient of each function and one product each way."""
        return {"grad_g": 1, "grad_h": 1, "A": 1, "At": 1}

    def bound(self, f: Saddle, k: int) -> float:
        """The squared distance after k steps is at most theta^k times a constant."""
        return apdg_bound(*f.numbers, k)

    def weights(self, f: Saddle) -> dict[str, float]:
        """Every field has the weight 1."""
        return dict.fromkeys(APDGState._fields, 1.0)

    def parameters(self, f: Saddle) -> dict[str, float]:
        """The constants sigma, tau, eta and theta."""
        return apdg_parameters(*f.numbers)._asdict()
