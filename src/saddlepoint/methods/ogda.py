r"""Optimistic gradient descent ascent: extragradient whose trial step uses the previous field.

Problem:    min_x max_y g(x) + <x, A y> - h(y) with gradients of g and h; F = (grad g(x) + A y, grad h(y) - A' x).
Recursion:  x_{k+1} = x_k - eta/mu_x (2 Fx(x_k, y_k) - Fx(x_{k-1}, y_{k-1})),   and so for y with eta/mu_y,
            eta = 1/(4 l), l = (k + sqrt(k^2 + 4 c^2))/2, k = max(kx, ky). With simple terms p and q, x_{k+1} is
            prox_{eta/mu_x p} of the point above, and y_{k+1} is prox_{eta/mu_y q}: forward-reflected-backward.
Guarantee:  mu_x |x_k - x*|^2 + mu_y |y_k - y*|^2 <= 4/3 (1 - eta)^k (mu_x |x_0 - x*|^2 + mu_y |y_0 - y*|^2), hence
            O((kx + ky + c) log 1/eps) queries, c = |A|/sqrt(mu_x mu_y).
Reference:  L. Popov, A modification of the Arrow-Hurwicz method for search of saddle points, 1980;
            A. Mokhtari, A. Ozdaglar and S. Pattathil, A unified analysis of extra-gradient and optimistic gradient
            methods for saddle point problems, AISTATS 2020; Y. Malitsky and M. Tam, A forward-backward splitting
            method for monotone inclusions without cocoercivity, SIAM J. Optim. 2020.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from saddlepoint.ground.arrays import Array
from saddlepoint.methods.base import Method, Needs, float_option
from saddlepoint.methods.registry import register
from saddlepoint.problems.saddle import Saddle
from saddlepoint.theory.complexity import Complexity
from saddlepoint.theory.gradient import field_lipschitz, ogda_bound, ogda_eta
from saddlepoint.theory.table1 import scaled_gradient_order


class OGDAState(NamedTuple):
    """The points x_k and y_k, and the field at (x_{k-1}, y_{k-1})."""

    x: Array
    y: Array
    Fx: Array
    Fy: Array


@register
@dataclass(frozen=True)
class OGDA(Method):
    """Optimistic gradient descent ascent, which is Popov's method."""

    eta: float | None = float_option(None, "step in scaled variables; None = by theory")

    needs: ClassVar[Needs] = Needs(smooth=False)
    complexity: ClassVar[Complexity] = Complexity("kx + ky + c", scaled_gradient_order)
    works: ClassVar[tuple[str, ...]] = ("popov1980", "mokhtari2020")

    def init(self, f: Saddle, x: Array, y: Array) -> OGDAState:
        """The start (x, y), which is also taken as the point before it; one query."""
        return OGDAState(x, y, *f.field(x, y))

    def step(self, f: Saddle, s: OGDAState) -> OGDAState:
        """The state after one step, which costs one query: a gradient of each function, a product each way."""
        eta = self.step_size(f)
        Fx, Fy = f.field(s.x, s.y)
        tx, ty = eta / f.mu_x, eta / f.mu_y
        x = f.g.simple_prox(s.x - tx * (2.0 * Fx - s.Fx), tx)
        y = f.h.simple_prox(s.y - ty * (2.0 * Fy - s.Fy), ty)
        return OGDAState(x, y, Fx, Fy)

    def step_size(self, f: Saddle) -> float:
        """The step size eta."""
        return ogda_eta(field_lipschitz(*f.numbers)) if self.eta is None else self.eta

    def cost(self, f: Saddle) -> dict[str, int]:
        """A step costs one gradient of each function and one product each way."""
        return {"grad_g": 1, "grad_h": 1, "A": 1, "At": 1}

    def bound(self, f: Saddle, k: int) -> float | None:
        """The squared distance after k steps is at most 4/3 (1 - eta)^k times its start."""
        return None if self.eta is not None else ogda_bound(field_lipschitz(*f.numbers), k)

    def parameters(self, f: Saddle) -> dict[str, float]:
        """The step size eta."""
        return {"eta": self.step_size(f)}
