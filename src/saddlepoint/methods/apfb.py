r"""Accelerated proximal forward-backward (Algorithm APFB): PDHG for strongly convex g and h.

Problem:    min_x max_y g(x) + <x, A y> - h(y) with the proximal operators of g and h; simple terms are parts of them.
Recursion:  y_k  = prox_{sigma h}(y_{k-1} + sigma A' xt_{k-1})
            x_k  = prox_{gamma g}(x_{k-1} - gamma A y_k)
            xt_k = x_k + theta (x_k - x_{k-1}),
            gamma = sqrt(mu_y/mu_x)/|A|,  sigma = sqrt(mu_x/mu_y)/|A|,  theta = |A|/(sqrt(mu_x mu_y) + |A|).
Guarantee:  mu_x |x_T - x*|^2 + mu_y |y_T - y*|^2 <= theta^(T-1) c (mu_x |x_0 - x*|^2 + mu_y |y_0 - y*|^2)
            with c = |A|/sqrt(mu_x mu_y)   (Theorem `apfb`).
Reference:  A. Chambolle and T. Pock, A first-order primal-dual algorithm for convex problems with applications to
            imaging, JMIV 2011, Algorithm 3.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from saddlepoint.ground.arrays import Array
from saddlepoint.methods.base import Method, Needs
from saddlepoint.methods.registry import register
from saddlepoint.problems.saddle import Saddle
from saddlepoint.theory.apfb import apfb_parameters
from saddlepoint.theory.complexity import Complexity


class APFBState(NamedTuple):
    """The points x_k and y_k, and the extrapolated xt_k."""

    x: Array
    y: Array
    xt: Array


@register
@dataclass(frozen=True)
class APFB(Method):
    """Accelerated proximal forward-backward."""

    needs: ClassVar[Needs] = Needs(prox_g=True, prox_h=True, smooth=False)
    complexity: ClassVar[Complexity] = Complexity("c + 1")
    works: ClassVar[tuple[str, ...]] = ("chambolle2011",)

    def init(self, f: Saddle, x: Array, y: Array) -> APFBState:
        """The state at the start (x, y)."""
        return APFBState(x, y, x)

    def step(self, f: Saddle, s: APFBState) -> APFBState:
        """The state after one step: a prox of each function, a product each way."""
        gamma, sigma, theta = apfb_parameters(f.mu_x, f.mu_y, f.norm)
        y = f.h.whole_prox(s.y + sigma * f.A.tmul(s.xt), sigma)
        x = f.g.whole_prox(s.x - gamma * f.A.mul(y), gamma)
        return APFBState(x, y, x + theta * (x - s.x))

    def cost(self, f: Saddle) -> dict[str, int]:
        """A step costs one prox of each function and one product each way."""
        return {"grad_g": 0, "grad_h": 0, "A": 1, "At": 1, "prox_g": 1, "prox_h": 1}

    def parameters(self, f: Saddle) -> dict[str, float]:
        """The steps gamma and sigma, and theta."""
        return apfb_parameters(f.mu_x, f.mu_y, f.norm)._asdict()
