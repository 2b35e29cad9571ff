r"""Extragradient: a trial step, then a step with the field at the trial point.

Problem:    min_x max_y g(x) + <x, A y> - h(y) with gradients of g and h; F = (grad g(x) + A y, grad h(y) - A' x).
Recursion:  xh  = x_k - eta/mu_x Fx(x_k, y_k),   yh  = y_k - eta/mu_y Fy(x_k, y_k)
            x_{k+1} = x_k - eta/mu_x Fx(xh, yh),     y_{k+1} = y_k - eta/mu_y Fy(xh, yh)
            (with simple terms p and q, prox_{eta/mu_x p} and prox_{eta/mu_y q} of these points)
            with the largest eta for which eta^2 l^2 + 2 eta <= 1, l = (k + sqrt(k^2 + 4 c^2))/2, k = max(kx, ky).
Guarantee:  mu_x |x_k - x*|^2 + mu_y |y_k - y*|^2 <= (1 - eta)^k (mu_x |x_0 - x*|^2 + mu_y |y_0 - y*|^2), hence
            O((kx + ky + c) log 1/eps) queries, c = |A|/sqrt(mu_x mu_y).
Reference:  G. Korpelevich, The extragradient method for finding saddle points and other problems, 1976;
            P. Tseng, On linear convergence of iterative methods for the variational inequality problem, 1995.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from saddlepoint.ground.arrays import Array
from saddlepoint.methods.base import Method, Needs, State, float_option
from saddlepoint.methods.registry import register
from saddlepoint.problems.saddle import Saddle
from saddlepoint.theory.complexity import Complexity
from saddlepoint.theory.gradient import extragradient_bound, extragradient_eta, field_lipschitz
from saddlepoint.theory.table1 import scaled_gradient_order


@register
@dataclass(frozen=True)
class Extragradient(Method):
    """Korpelevich's method in the variables where mu_x = mu_y."""

    eta: float | None = float_option(None, "step in scaled variables; None = by theory")

    needs: ClassVar[Needs] = Needs(smooth=False)
    complexity: ClassVar[Complexity] = Complexity("kx + ky + c", scaled_gradient_order)
    works: ClassVar[tuple[str, ...]] = ("korpelevich1976", "tseng1995", "mokhtari2020")

    def init(self, f: Saddle, x: Array, y: Array) -> State:
        """The state at the start (x, y)."""
        return State(x, y)

    def step(self, f: Saddle, s: State) -> State:
        """The state after one step, which costs two queries."""
        eta = self.step_size(f)
        tx, ty = eta / f.mu_x, eta / f.mu_y
        Fx, Fy = f.field(s.x, s.y)
        Fx, Fy = f.field(f.g.simple_prox(s.x - tx * Fx, tx), f.h.simple_prox(s.y - ty * Fy, ty))
        return State(f.g.simple_prox(s.x - tx * Fx, tx), f.h.simple_prox(s.y - ty * Fy, ty))

    def step_size(self, f: Saddle) -> float:
        """The step size eta."""
        return extragradient_eta(field_lipschitz(*f.numbers)) if self.eta is None else self.eta

    def cost(self, f: Saddle) -> dict[str, int]:
        """A step costs two gradients of each function and two products each way."""
        return {"grad_g": 2, "grad_h": 2, "A": 2, "At": 2}

    def bound(self, f: Saddle, k: int) -> float | None:
        """The squared distance falls by the factor (1 - eta)^k in k steps."""
        return None if self.eta is not None else extragradient_bound(field_lipschitz(*f.numbers), k)

    def parameters(self, f: Saddle) -> dict[str, float]:
        """The step size eta."""
        return {"eta": self.step_size(f)}
