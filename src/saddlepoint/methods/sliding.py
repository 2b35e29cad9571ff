r"""Sliding: acceleration of the functions around an implicit step of the coupling, solved by conjugate gradients.

Problem:    min_x max_y g(x) + <x, A y> - h(y); gt = g - mu_x/2 |x|^2, ht = h - mu_y/2 |y|^2.
Recursion:  (in the variables where mu_x = mu_y = 1; z = (x, y))
            zg = alpha z_k + (1 - alpha) zf_k,   p = (grad gt(xg), grad ht(yg))
            zh ~ saddle point of <px, x> + |x|^2/2 + |x - x_k|^2/(2 eta) + <x, A y> - (the same for y)
            zf_{k+1} = zg + alpha (zh - z_k),    z_{k+1} = z_k - eta (p + zh + (A yh, -A' xh)),
            alpha = min(1, 1/sqrt(l)), eta = min(1/3, 1/(3 alpha l)), l = max(kx, ky) - 1; zh until its gradient B
            satisfies eta |B|^2 <= |zh - z_k|^2/(6 eta). Simple terms are parts of the problem of zh, which APFB solves
            then, and their subgradients at zh are added to the field of the last step. The answer is zh in this case,
            which is on the faces of the constraints.
Guarantee:  O(sqrt(kx + ky) log 1/eps) gradients and O((sqrt(kx + ky) + c) log 1/eps) products.
Reference:  E. Borodich, G. Kormakov, D. Kovalev, A. Beznosikov and A. Gasnikov, Optimal algorithm with complexity
            separation for strongly convex-strongly concave composite saddle point problems, 2023.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from saddlepoint.ground.arrays import Array
from saddlepoint.methods.base import Method, Needs
from saddlepoint.methods.registry import register
from saddlepoint.methods.resolvent import REFRESH, Start, by_cg, by_proximal_apfb
from saddlepoint.problems.saddle import Saddle
from saddlepoint.problems.transforms import View, unit_strength
from saddlepoint.theory.complexity import Complexity
from saddlepoint.theory.sliding import sliding_accuracy, sliding_bound, sliding_parameters
from saddlepoint.theory.table1 import SLIDING


class SlidingState(NamedTuple):
    """The points z_k and zf_k, and the last zh with its products, from which the next inner solve starts."""

    x: Array  # of z_k, or of the last zh if there are simple terms
    y: Array
    zx: Array
    zy: Array
    xf: Array
    yf: Array
    start: Start
    k: int


@register
@dataclass(frozen=True)
class Sliding(Method):
    """Extragradient sliding with conjugate gradients inside."""

    needs: ClassVar[Needs] = Needs(smooth=False)
    complexity: ClassVar[Complexity] = SLIDING
    works: ClassVar[tuple[str, ...]] = ("borodich2023",)

    def normal_form(self, f: Saddle) -> View:
        """The problem in the variables where mu_x = mu_y = 1."""
        return unit_strength(f)

    def init(self, f: Saddle, x: Array, y: Array) -> SlidingState:
        """The start: every point of the state is (x, y); one product each way."""
        return SlidingState(x, y, x, y, x, y, self.start(f, x, y), 0)

    def step(self, f: Saddle, s: SlidingState) -> SlidingState:
        """The state after one step: a gradient of each function, and conjugate gradients for the coupling."""
        alpha, eta = sliding_parameters(f.kappa_x, f.kappa_y)
        xg, yg = alpha * s.zx + (1.0 - alpha) * s.xf, alpha * s.zy + (1.0 - alpha) * s.yf
        px, py = f.g.grad(xg) - xg, f.h.grad(yg) - yg
        a = eta / (1.0 + eta)
        p, q = a * ((1.0 / eta) * s.zx - px), a * ((1.0 / eta) * s.zy - py)
        here, accuracy = (s.zx, s.zy), sliding_accuracy(eta)
        if f.has_simple:
            at = (s.start.x, s.start.y)
            xh, yh, rx, ry, _ = by_proximal_apfb(f, p, q, a, at, relative=accuracy, origin=here)
        else:
            xh, yh, rx, ry, _ = by_cg(f.A, p, q, a, s.start, relative=accuracy, origin=here)
        xf, yf = xg + alpha * (xh - s.zx), yg + alpha * (yh - s.zy)
        start = Start(xh, yh, p - xh - rx, yh - q + ry)
        if (s.k + 1) % REFRESH == 0 and not f.has_simple:
            start = self.start(f, xh, yh)
        zx, zy = xh + (1.0 + eta) * rx, yh + (1.0 + eta) * ry
        x, y = (xh, yh) if f.has_simple else (zx, zy)
        return SlidingState(x, y, zx, zy, xf, yf, start, s.k + 1)

    def start(self, f: Saddle, x: Array, y: Array) -> Start:
        """The point (x, y) with its products."""
        eta = sliding_parameters(f.kappa_x, f.kappa_y).eta
        a = eta / (1.0 + eta)
        Ay, Atx = f.A.both(x, y)
        return Start(x, y, a * Ay, a * Atx)

    def bound(self, f: Saddle, k: int) -> float:
        """The squared distance falls by 1 - alpha/3 in each step, up to a constant."""
        return sliding_bound(f.kappa_x, f.kappa_y, k, f.has_simple)

    def parameters(self, f: Saddle) -> dict[str, float]:
        """The constants alpha and eta of the recursion."""
        return sliding_parameters(f.kappa_x, f.kappa_y)._asdict()
