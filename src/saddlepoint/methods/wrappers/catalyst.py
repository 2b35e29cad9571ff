r"""Catalyst (Algorithms Catalyst-DIPPA and Catalyst-AIPFB): any method, accelerated for unbalanced problems.

Problem:    min_x max_y g(x) + <x, A y> - h(y) with L_x = L_y = L and mu_x < mu_y.
Recursion:  f_k(x, y) = f(x, y) + beta/2 |x - xt_{k-1}|^2,   beta = L (mu_y - mu_x)/(L - mu_y)
            (x_k, y_k) = an eps_k-saddle point of f_k by the inner method
            xt_k = x_k + theta (x_k - x_{k-1}),   theta = (1 - sqrt(q))/(1 + sqrt(q)),  q = mu_x/(mu_x + beta).
Guarantee:  f_k is balanced, and sqrt(1/q) outer steps a digit are enough; with DIPPA inside this makes
            O~(|A|/sqrt(mu_x mu_y) + (kappa_x kappa_y (kappa_x + kappa_y))^(1/4)) queries   (Theorem `dippa`), and
            with AIPFB O~(sqrt(|A| max(|A|, L)/(mu_x mu_y)) + sqrt(kappa_x + kappa_y))   (Theorem `catalyst-aipfb`).
Reference:  H. Lin, J. Mairal and Z. Harchaoui, A universal catalyst for first-order optimization, NeurIPS 2015;
            G. Xie, Y. Han and Z. Zhang, DIPPA: An improved method for bilinear saddle point problems, 2021.

The printed algorithms anchor f_k at xt_k, which is not known yet; xt_{k-1} is meant. They leave eps_k open: here outer
step k ends when the duality gap of f_k, certified by one query of the metered oracle, is at most
eps_k = 2/9 (1 - 0.9 sqrt(q))^k times the certified gap of f at the start. With beta = 0 it is the inner method itself.
Simple terms stay with the functions, and certified gaps contain them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

from saddlepoint.ground.arrays import Array
from saddlepoint.ground.linalg import inner as dot
from saddlepoint.methods.aipfb import AIPFB
from saddlepoint.methods.base import Needs, float_option
from saddlepoint.methods.dippa import DIPPA
from saddlepoint.methods.optimality import optimality
from saddlepoint.methods.registry import register_expression
from saddlepoint.methods.wrappers.base import Wrapper
from saddlepoint.problems.saddle import Saddle
from saddlepoint.problems.transforms import View, anchored, smaller_mu_first
from saddlepoint.theory.catalyst import catalyst_beta, catalyst_eps, catalyst_q, catalyst_theta
from saddlepoint.theory.complexity import Complexity
from saddlepoint.theory.table1 import BEST_RESPONSE, catalyst_dippa_order


class CatalystState(NamedTuple):
    """The current point of the inner method, and the progress of the outer loop."""

    x: Array
    y: Array
    inner: Any  # the state of the inner method, in its own coordinates
    k: int  # number of the current outer step, counted from 1
    anchor: Array  # xt_{k-1}
    last: Array  # x_{k-1}
    shift: Array  # xt_{k-1} - xt_{k-2}
    gap: float  # the certified duality gap of f at the start


@dataclass(frozen=True)
class Catalyst(Wrapper):
    """Accelerated proximal point method around another method."""

    beta: float | None = float_option(None, "weight of the anchor; None = by theory", 0.0)

    own_works: ClassVar[tuple[str, ...]] = ("lin2015", "xie2021")

    @property
    def needs(self) -> Needs:  # type: ignore[override]
        """The needs of the inner method, and positive mu, from which the weight of the anchor is computed."""
        return replace(self.method.needs, mu=True, strong=True)

    def normal_form(self, f: Saddle) -> View:
        """The problem in variables where L_x = L_y and mu_x <= mu_y."""
        return smaller_mu_first(f)

    def init(self, f: Saddle, x: Array, y: Array) -> CatalystState:
        """The start, with x as the anchor; one query for the gap."""
        gap = 0.0 if self.weight(f) == 0.0 else certified_gap(f, x, y, *f.field(x, y))
        return CatalystState(x, y, self.restart(f, x, x, y), 1, x, x, 0.0 * x, gap)

    def step(self, f: Saddle, s: CatalystState) -> CatalystState:
        """The state after one step of the inner method and, if that has solved f_k, the outer extrapolation."""
        beta = self.weight(f)
        fk = anchored(f, beta, s.anchor)
        view = self.method.normal_form(fk)
        inner = self.method.step(view.problem, s.inner)
        x, y = view.back(inner.x, inner.y)
        if beta == 0.0:
            return s._replace(x=x, y=y, inner=inner)
        q = catalyst_q(f.mu_x, beta)
        Fx, Fy = fk.field(x, y)
        if certified_gap(fk, x, y, Fx, Fy) > catalyst_eps(s.k, q, s.gap):
            return s._replace(x=x, y=y, inner=inner)
        anchor = x + catalyst_theta(q) * (x - s.last)
        shift = anchor - s.anchor
        gap = certified_gap(fk, x, y, Fx - beta * shift, Fy)  # the gap of f_{k+1} at (x, y), at no extra cost
        start = self.guess(anchored(f, beta, anchor), s, x, y, shift, gap)
        return CatalystState(x, y, self.restart(f, anchor, start, y), s.k + 1, anchor, x, shift, s.gap)

    def guess(self, f: Saddle, s: CatalystState, x: Array, y: Array, shift: Array, gap: float) -> Array:
        """The start for f_{k+1}: x_k, or x_k moved in proportion to the anchor, whichever has the smaller gap."""
        length = dot(s.shift, s.shift)
        response = min(dot(x - s.last, s.shift) / length, 1.0) if length > 0.0 else 0.0
        if response <= 0.0:
            return x
        moved, y = f.project(x + response * shift, y)
        return moved if certified_gap(f, moved, y, *f.field(moved, y)) < gap else x

    def weight(self, f: Saddle) -> float:
        """The weight beta of the anchor."""
        return catalyst_beta(f.L, f.mu_x, f.mu_y) if self.beta is None else self.beta

    def restart(self, f: Saddle, anchor: Array, x: Array, y: Array) -> Any:
        """The inner state at the start of an outer step."""
        view = self.method.normal_form(anchored(f, self.weight(f), anchor))
        return self.method.init(view.problem, *view.to(x, y))

    def parameters(self, f: Saddle) -> dict[str, float]:
        """The constants beta, q and theta, and those of the inner method with the prefix ``inner.``."""
        beta = self.weight(f)
        q = catalyst_q(f.mu_x, beta)
        inner = self.inner_parameters(anchored(f, beta, f.space.zeros(f.shape[0])))
        return {"beta": beta, "q": q, "theta": catalyst_theta(q)} | inner


def certified_gap(f: Saddle, x: Array, y: Array, Fx: Array, Fy: Array) -> float:
    """A bound on the duality gap of f at the point (x, y) with this field."""
    return optimality(f, x, y, Fx, Fy).gap(f)


# The paper's method for unbalanced problems, and the method of its appendix.
register_expression("catalyst-dippa", Catalyst, DIPPA, Complexity("c + (kx ky (kx + ky))^(1/4)", catalyst_dippa_order))
register_expression("catalyst-aipfb", Catalyst, AIPFB, BEST_RESPONSE)
