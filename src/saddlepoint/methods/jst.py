r"""JST, primal-dual extragradient: mirror prox on the lifted problem.

Problem:    min_x max_y g(x) + <x, A y> - h(y); gt = g - mu_x/2 |x|^2, ht = h - mu_y/2 |y|^2.
Recursion:  (in the variables where mu_x = mu_y = 1, l = 1 + sqrt(kx) + sqrt(ky) + c)
            xh  = x - (x + grad gt(w) + A y)/l,           yh  = y - (y + grad ht(q) - A' x)/l
            wh  = (1 - 1/l) w + x/l,                      qh  = (1 - 1/l) q + y/l
            x+  = (l x + xh - (xh + grad gt(wh) + A yh))/(1 + l),   y+ = (l y + yh - (yh + grad ht(qh) - A' xh))/(1 + l)
            w+  = (l w + xh)/(1 + l),                     q+  = (l q + yh)/(1 + l).
            With simple terms p and q, xh and yh are prox_{p/l} and prox_{q/l} of these points, x+ and y+ are
            prox_{p/(1 + l)} and prox_{q/(1 + l)} of theirs.
Guarantee:  mu_x |x_k - x*|^2 + mu_y |y_k - y*|^2 <= max(kx, ky) (1 + 1/l)^-k times its start, hence
            O((sqrt(kx) + sqrt(ky) + c) log 1/eps) queries, two a step.
Reference:  Y. Jin, A. Sidford and K. Tian, Sharper rates for separable minimax and finite sum optimization via
            primal-dual extragradient methods, COLT 2022.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from saddlepoint.ground.arrays import Array
from saddlepoint.methods.base import Method, Needs
from saddlepoint.methods.registry import register
from saddlepoint.problems.saddle import Saddle
from saddlepoint.problems.transforms import View, unit_strength
from saddlepoint.theory.complexity import Complexity
from saddlepoint.theory.jst import jst_bound, jst_lambda
from saddlepoint.theory.table1 import separate_order


class JSTState(NamedTuple):
    """The points x_k and y_k, and the points w and q, whose gradients are the lifted variables."""

    x: Array
    y: Array
    w: Array
    q: Array


@register
@dataclass(frozen=True)
class JST(Method):
    """Primal-dual extragradient."""

    needs: ClassVar[Needs] = Needs(smooth=False)
    complexity: ClassVar[Complexity] = Complexity("sqrt(kx) + sqrt(ky) + c", separate_order)
    works: ClassVar[tuple[str, ...]] = ("jin2022",)

    def normal_form(self, f: Saddle) -> View:
        """The problem in the variables where mu_x = mu_y = 1."""
        return unit_strength(f)

    def init(self, f: Saddle, x: Array, y: Array) -> JSTState:
        """The start, with w = x and q = y."""
        return JSTState(x, y, x, y)

    def step(self, f: Saddle, s: JSTState) -> JSTState:
        """The state after one step, which costs two queries."""
        x, y, w, q = s
        lam = jst_lambda(*f.numbers)
        t, a = 1.0 / lam, 1.0 / (1.0 + lam)
        Ay, Atx = f.A.both(x, y)
        xh = f.g.simple_prox(x - t * (x + f.g.grad(w) - w + Ay), t)
        yh = f.h.simple_prox(y - t * (y + f.h.grad(q) - q - Atx), t)
        wh, qh = (1.0 - t) * w + t * x, (1.0 - t) * q + t * y
        Ay, Atx = f.A.both(xh, yh)
        return JSTState(
            f.g.simple_prox(a * (lam * x - (f.g.grad(wh) - wh + Ay)), a),
            f.h.simple_prox(a * (lam * y - (f.h.grad(qh) - qh - Atx)), a),
            a * (lam * w + xh),
            a * (lam * q + yh),
        )

    def cost(self, f: Saddle) -> dict[str, int]:
        """A step costs two gradients of each function and two products each way."""
        return {"grad_g": 2, "grad_h": 2, "A": 2, "At": 2}

    def bound(self, f: Saddle, k: int) -> float:
        """The squared distance after k steps is at most max(kx, ky) (1 + 1/lambda)^-k times its start."""
        return jst_bound(*f.numbers, k)

    def weights(self, f: Saddle) -> dict[str, float]:
        """Every field has the weight 1."""
        return dict.fromkeys(JSTState._fields, 1.0)

    def parameters(self, f: Saddle) -> dict[str, float]:
        """The number lambda, the l of the recursion."""
        return {"lambda": jst_lambda(*f.numbers)}
