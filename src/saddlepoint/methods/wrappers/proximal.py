r"""Proximal: the proximal point method around a method for strongly convex functions.

Problem:    min_x max_y g(x) + p(x) + <x, A y> - h(y) - q(y), where mu of g and h may be 0 and p, q are simple terms.
Recursion:  f_k(x, y) = f(x, y) + a/2 |x - u_k|^2 - b/2 |y - v_k|^2
            (x_k, y_k) = a point by the inner method, from (u_k, v_k), where f_k has residuals (Rx, Ry) with
                |Rx|^2/a + |Ry|^2/b + 2 e <= sigma^2 (a |x_k - u_k|^2 + b |y_k - v_k|^2)
            u_{k+1} = x_k - Rx/a,   v_{k+1} = y_k - Ry/b.
            Rx and Ry contain subgradients of p and q, which are exact up to e. The weights are a = t w |A| and
            b = t |A|/w, with the weight w of PDHG; after each outer step t is multiplied by ``shrink``.
Guarantee:  w |u_k - x*|^2 + |v_k - y*|^2/w never grows, and the smallest residual of f falls with the root of the sum
            of 1/t^2 over the outer steps (``proximal_bound``); on sharp problems the distance falls by a factor in each
            of them (``proximal_rate``). Without simple terms an outer step needs at most as many steps of LPD-GS as
            ``proximal_inner_steps`` says.
Reference:  R. T. Rockafellar, Monotone operators and the proximal point algorithm, SIAM J. Control Optim. 1976;
            M. V. Solodov and B. F. Svaiter, A hybrid approximate extragradient-proximal point algorithm using the
            enlargement of a maximal monotone operator, Set-Valued Anal. 1999.

Where mu is positive for both functions, there is nothing to add, and it is the inner method itself.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

from saddlepoint.ground.arrays import Array
from saddlepoint.ground.linalg import inner as dot
from saddlepoint.methods.base import Needs, float_option
from saddlepoint.methods.optimality import optimality
from saddlepoint.methods.pdhg import PDHG
from saddlepoint.methods.registry import register_expression
from saddlepoint.methods.wrappers.base import FIRST_CHECK, Wrapper, next_check
from saddlepoint.parts.functions.anchored import anchored
from saddlepoint.problems.saddle import Saddle
from saddlepoint.problems.transforms import View
from saddlepoint.theory.complexity import Complexity

LEAST = 1e-6  # least t, relative to the first one


class ProximalState(NamedTuple):
    """The point of the inner method, and the progress of the outer loop."""

    x: Array
    y: Array
    inner: Any  # the state of the inner method, in its own coordinates
    u: Array  # the centres of the quadratic terms
    v: Array
    t: float  # the weights a and b are proportional to it
    k: int  # number of outer steps that are done
    steps: int  # steps of the inner method in this outer step
    next_check: int  # the step at which the residual is checked next


@dataclass(frozen=True)
class Proximal(Wrapper):
    """Proximal point method around another method."""

    sigma: float = float_option(0.2, "error of an outer step, as a share of its length", 1e-9, 0.999)
    start: float = float_option(0.1, "weights at the start, as a share of |A|", 1e-12)
    shrink: float = float_option(0.5, "factor of the weights after each outer step", 1e-9, 1.0)

    own_works: ClassVar[tuple[str, ...]] = ("rockafellar1976", "solodov1999")

    @property
    def needs(self) -> Needs:  # type: ignore[override]
        """The needs of the inner method, but without strong convexity."""
        return replace(self.method.needs, strong=False)

    def normal_form(self, f: Saddle) -> View:
        """The problem as it is; the inner method has its normal form of f_k."""
        return View(f)

    def init(self, f: Saddle, x: Array, y: Array) -> ProximalState:
        """The start, which is the first centre."""
        t = 0.0 if f.mu > 0.0 else self.start
        return self.begin(f, x, y, t, 0)

    def begin(self, f: Saddle, u: Array, v: Array, t: float, k: int) -> ProximalState:
        """The state at the beginning of an outer step with these centres."""
        x, y = f.project(u, v)
        view = self.method.normal_form(self.subproblem(f, u, v, t))
        return ProximalState(x, y, self.method.init(view.problem, *view.to(x, y)), u, v, t, k, 0, FIRST_CHECK)

    def subproblem(self, f: Saddle, u: Array, v: Array, t: float) -> Saddle:
        """The problem f_k."""
        if t == 0.0:
            return f
        a, b = self.anchor_weights(f, t)
        return Saddle.of(anchored(f.g, a, u), anchored(f.h, b, v), f.A, f.space)

    def anchor_weights(self, f: Saddle, t: float) -> tuple[float, float]:
        """The weights a and b of the two quadratic terms."""
        w, size = PDHG().first_weight(f), f.norm or 1.0
        return t * w * size, t * size / w

    def step(self, f: Saddle, s: ProximalState) -> ProximalState:
        """The state after one step of the inner method; a check of its residual costs one query more."""
        fk = self.subproblem(f, s.u, s.v, s.t)
        view = self.method.normal_form(fk)
        inner = self.method.step(view.problem, s.inner)
        x, y = view.back(inner.x, inner.y)
        steps = s.steps + 1
        if s.t == 0.0 or steps < s.next_check:
            return s._replace(x=x, y=y, inner=inner, steps=steps)
        a, b = self.anchor_weights(f, s.t)
        Rx, Ry, excess = optimality(fk, x, y, *fk.field(x, y))
        error = dot(Rx, Rx) / a + dot(Ry, Ry) / b + 2.0 * excess
        move = a * dot(x - s.u, x - s.u) + b * dot(y - s.v, y - s.v)
        if error > self.sigma**2 * move:
            return s._replace(x=x, y=y, inner=inner, steps=steps, next_check=next_check(steps))
        t = max(self.shrink * s.t, LEAST * self.start)
        after = self.begin(f, x - (1.0 / a) * Rx, y - (1.0 / b) * Ry, t, s.k + 1)
        return after._replace(x=x, y=y)

    def state_residual(self, s: ProximalState) -> float:
        """That of the inner method, where it is applied to f itself."""
        return self.method.state_residual(s.inner) if s.t == 0.0 else math.inf

    def parameters(self, f: Saddle) -> dict[str, float]:
        """The weights at the start, and the parameters of the inner method with the prefix ``inner.``."""
        t = 0.0 if f.mu > 0.0 else self.start
        a, b = self.anchor_weights(f, t)
        zero = f.space.of_x.zeros(f.shape[0]), f.space.of_y.zeros(f.shape[1])
        return {"a": a, "b": b} | self.inner_parameters(self.subproblem(f, *zero, t))


register_expression(
    "proximal-anderson-condat-vu", Proximal, "anderson-condat-vu", Complexity("1/gap; linear on sharp problems")
)
