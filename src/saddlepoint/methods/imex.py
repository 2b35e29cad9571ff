r"""IMEX: an explicit gradient step for the functions, an implicit step for the coupling.

Problem:    min_x max_y g(x) + <x, A y> - h(y), the players rescaled so that one step t suits both functions.
Recursion:  p = x_k - t grad g(x_k),   q = y_k - t grad h(y_k),   t = sx/L_x = sy/L_y,
            x_{k+1} + t A y_{k+1} = p,   y_{k+1} - t A' x_{k+1} = q,
            by conjugate gradients, until the residual is ``accuracy`` times the move, or by a factorisation;
            sx = min(stride, sqrt(kx)) and sy = min(stride, sqrt(ky)), but 1 at least if the stride is.
Guarantee:  with exact solves, for stride <= 1, |x_k - x*|^2 + |y_k - y*|^2 <= (1 - stride/kappa)^(2k) times its start,
            kappa = max(kx, ky), because the implicit step lengthens no distance: O(kappa) gradients, whatever |A| is.
Reference:  It is forward-backward splitting (P.-L. Lions and B. Mercier, SIAM J. Numer. Anal. 1979) of the field into
            its gradient part and its skew part.

Without acceleration the method is slow. But the coupling enters its steps only through a bounded operator, so that
Anderson acceleration works as preconditioned GMRES does: on many problems some dozens of gradients are enough, whatever
|A| is, though no bound says so. The plain recursion is unstable for strides beyond 2. With Anderson acceleration such a
stride saves gradients on some problems and fails on others, so ``anderson-imex`` has a stride of 1.9.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from saddlepoint.ground.arrays import Array
from saddlepoint.methods.base import Method, choice_option, float_option
from saddlepoint.methods.registry import register
from saddlepoint.methods.resolvent import REFRESH, SMALL, Start, by_cg, by_factor
from saddlepoint.problems.saddle import Saddle
from saddlepoint.problems.transforms import View, rescaled
from saddlepoint.theory.complexity import Complexity
from saddlepoint.theory.table1 import IMPLICIT

LARGE = 2000  # smaller dimension of A from which on A is never factorised


class IMEXState(NamedTuple):
    """The points x_k and y_k, the products t A y_k and t A' x_k, and the steps of conjugate gradients on a GPU."""

    x: Array
    y: Array
    tAy: Array
    tAtx: Array
    k: int
    steps: int = 0


@register
@dataclass(frozen=True)
class IMEX(Method):
    """Forward-backward splitting, explicit in the functions and implicit in the coupling."""

    stride: float = float_option(1.0, "length of the step in units of 1/L, where that is at most sqrt(kappa)")
    accuracy: float = float_option(0.3, "residual of the implicit step, relative to the move", 0.0, 0.5)
    coupling: str = choice_option(
        "auto", "conjugate gradients or one factorisation; auto by size", ("auto", "cg", "factor")
    )

    complexity: ClassVar[Complexity] = IMPLICIT
    works: ClassVar[tuple[str, ...]] = ("lions1979",)

    def strides(self, f: Saddle) -> tuple[float, float]:
        """The strides sx and sy. Beyond sqrt(kappa) a longer step gains nothing and makes the implicit step harder."""
        return min(self.stride, max(1.0, f.kappa_x**0.5)), min(self.stride, max(1.0, f.kappa_y**0.5))

    def normal_form(self, f: Saddle) -> View:
        """The problem in variables where L_x/sx = L_y/sy; |A| stays as it is."""
        sx, sy = self.strides(f)
        ratio = (f.L_y / sy) ** 0.25 / (f.L_x / sx) ** 0.25
        return rescaled(f, ratio, 1.0 / ratio)

    def init(self, f: Saddle, x: Array, y: Array) -> IMEXState:
        """The state at the start (x, y); one product each way."""
        return IMEXState(x, y, *self.products(f, x, y), 0)

    def step(self, f: Saddle, s: IMEXState) -> IMEXState:
        """The state after one step: a gradient of each function, and conjugate gradients for the coupling."""
        t = self.size(f)
        p, q = s.x - t * f.g.grad(s.x), s.y - t * f.h.grad(s.y)
        start = Start(s.x, s.y, s.tAy, s.tAtx)
        if self.factorised(f):
            x, y, rx, ry, steps = by_factor(f.A, p, q, t, start)
        else:
            # About as many steps as last time: before the last of them, a GPU is not asked whether they suffice.
            sure, here = max(s.steps - 1, 0), (s.x, s.y)
            x, y, rx, ry, steps = by_cg(f.A, p, q, t, start, relative=self.accuracy, origin=here, sure=sure)
        tAy, tAtx = p - x - rx, y - q + ry
        if (s.k + 1) % REFRESH == 0:
            tAy, tAtx = self.products(f, x, y)
        return IMEXState(x, y, tAy, tAtx, s.k + 1, steps)

    def size(self, f: Saddle) -> float:
        """The step t."""
        return self.strides(f)[0] / f.L_x

    def products(self, f: Saddle, x: Array, y: Array) -> tuple[Array, Array]:
        """The products t A y and t A' x."""
        t = self.size(f)
        Ay, Atx = f.A.both(x, y)
        return t * Ay, t * Atx

    def factorised(self, f: Saddle) -> bool:
        """Whether A is factorised: if that costs less than some dozens of solves by conjugate gradients."""
        if self.coupling != "auto":
            return self.coupling == "factor"
        return min(f.shape) <= max(SMALL, min(LARGE, 25.0 * self.size(f) * f.norm))

    def bound(self, f: Saddle, k: int) -> float | None:
        """The bound (1 - stride/kappa)^(2k), where stride <= 1 and the solves are exact; None elsewhere."""
        if self.stride > 1.0 or not self.factorised(f):
            return None
        spread = max(f.mu_x, f.mu_y) / f.mu
        return spread * (1.0 - self.stride / max(f.kappa_x, f.kappa_y)) ** (2 * k)

    def weights(self, f: Saddle) -> dict[str, float]:
        """Both x and y have the weight 1."""
        return {"x": 1.0, "y": 1.0}

    def parameters(self, f: Saddle) -> dict[str, float]:
        """The step t."""
        return {"t": self.size(f)}
