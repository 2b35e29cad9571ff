r"""The double proximal point algorithm (Algorithm DPPA): DIPPA with exact proximal steps.

Problem:    min_x max_y g(x) + <x, A y> - h(y), both functions L-smooth and mu-strongly convex, kappa = L/mu.
Recursion:  z_k = x_{k-1} - alpha A y_{k-1},   w_k = y_{k-1} + alpha A' x_{k-1},   alpha = 1/sqrt(L mu)
            (xt_k, yt_k) = prox_{alpha (g - h)}(z_k, w_k)
            (x_k, y_k)   = prox_{alpha A}(2 xt_k - z_k, 2 yt_k - w_k).
            Simple terms p and q join the second step, where x_k + alpha (A y_k + s_k) = 2 xt_k - z_k with a subgradient
            s_k of p at x_k, and so for y; then z_{k+1} = x_k - alpha (A y_k + s_k), and z_1 = x_0 + alpha grad g(x_0).
Guarantee:  |z_{k+1} - z*|^2 + |w_{k+1} - w*|^2 <= eta (|z_k - z*|^2 + |w_k - w*|^2),
            eta = ((sqrt(kappa) - 1)/(sqrt(kappa) + 1))^2   (Theorem `dppa`).
Reference:  G. Xie, Y. Han and Z. Zhang, DIPPA: An improved method for bilinear saddle point problems, 2021. It is
            Peaceman-Rachford splitting, and for quadratic g and h the Hermitian and skew-Hermitian splitting of
            Z.-Z. Bai, G. H. Golub and M. K. Ng, SIMAX 2003.

prox_{alpha A}(p, q) is the (x, y) with x + alpha A y = p and y - alpha A' x = q, by one factorisation. Hence
z_{k+1} = x_k - alpha A y_k = 2 x_k - p and w_{k+1} = 2 y_k - q cost no further product. With simple terms APFB finds
it, to ten digits of the step; the theorem holds because the second reflection does not lengthen any distance
(docs/theory/dippa.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from saddlepoint.ground.arrays import Array
from saddlepoint.methods.base import Method, Needs
from saddlepoint.methods.registry import register
from saddlepoint.methods.resolvent import by_proximal_apfb
from saddlepoint.problems.saddle import Saddle
from saddlepoint.problems.transforms import View, balanced
from saddlepoint.theory.complexity import Complexity
from saddlepoint.theory.dppa import dppa_alpha, dppa_contraction

EXACT = 1e-10  # residual of the coupling step with simple terms, relative to the length of the step


class DPPAState(NamedTuple):
    """The points x_k and y_k, and (z_{k+1}, w_{k+1}), from which the next step starts."""

    x: Array
    y: Array
    z: Array
    w: Array


@register
@dataclass(frozen=True)
class DPPA(Method):
    """Double proximal point algorithm."""

    needs: ClassVar[Needs] = Needs(prox_g=True, prox_h=True, prox_apart=True, smooth=False)
    complexity: ClassVar[Complexity] = Complexity("sqrt(k) steps, each one prox of g, of h and of the coupling")
    works: ClassVar[tuple[str, ...]] = ("xie2021", "bai2003")

    def normal_form(self, f: Saddle) -> View:
        """Both functions L-smooth and mu-strongly convex with the smallest L/mu."""
        return balanced(f)

    def init(self, f: Saddle, x: Array, y: Array) -> DPPAState:
        """The start, with z_1 and w_1; a gradient of each function instead of products if there are simple terms."""
        alpha = dppa_alpha(f.L, f.mu)
        if f.has_simple:
            return DPPAState(x, y, x + alpha * f.g.grad(x), y + alpha * f.h.grad(y))
        Ay, Atx = f.A.both(x, y)
        return DPPAState(x, y, x - alpha * Ay, y + alpha * Atx)

    def step(self, f: Saddle, s: DPPAState) -> DPPAState:
        """The state after one step, which is two proximal steps."""
        alpha = dppa_alpha(f.L, f.mu)
        z, w = s.z, s.w
        xt, yt = f.g.prox(z, alpha), f.h.prox(w, alpha)
        p, q = 2.0 * xt - z, 2.0 * yt - w
        if f.g.simple is None and f.h.simple is None:
            x, y = f.A.resolvent(p, q, alpha)
            return DPPAState(x, y, 2.0 * x - p, 2.0 * y - q)
        here = (s.x, s.y)
        x, y, rx, ry, _ = by_proximal_apfb(f, p, q, alpha, here, relative=EXACT, origin=here)
        return DPPAState(x, y, 2.0 * x - p + rx, 2.0 * y - q + ry)

    def cost(self, f: Saddle) -> dict[str, int] | None:
        """A step costs one prox of each function and, once A is factorised, two products each way."""
        if f.has_simple:
            return None
        return {"grad_g": 0, "grad_h": 0, "A": 2, "At": 2, "prox_g": 1, "prox_h": 1}

    def parameters(self, f: Saddle) -> dict[str, float]:
        """The step alpha, and the factor eta by which a step reduces the error."""
        return {"alpha": dppa_alpha(f.L, f.mu), "eta": dppa_contraction(f.L / f.mu)}
