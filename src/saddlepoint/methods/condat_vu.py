r"""Condat-Vu: a primal-dual step with explicit gradients, or with the prox of a function where that is cheap.

Problem:    min_x max_y g(x) + <x, A y> - h(y).
Recursion:  y_{k+1} = y_k + sy (A' x_k - grad h(y_k))                                or prox_{ty h}(y_k + ty A' x_k)
            x_{k+1} = x_k - sx (grad g(x_k) + A (y_{k+1} + theta (y_{k+1} - y_k)))    or prox_{tx g}(x_k - tx A (...))
            tx = rx/mu_x, ty = ry/mu_y, rx = 1/(kx - 1 + c), ry = 1/(ky - 1 + c), theta = 1/(1 + min(rx, ry)),
            sx = tx/(1 + rx), sy = ty/(1 + ry), with kappa = 1 for a side that is handled by its prox. These are steps
            of length tx and ty along gradients of g - mu_x/2 |x|^2 and h - mu_y/2 |y|^2, whose quadratic parts are
            handled by their prox. With simple terms p and q, x_{k+1} is prox_{sx p} of the point above, and y_{k+1} is
            prox_{sy q}.
Guarantee:  mu_x |x_k - x*|^2 + mu_y |y_k - y*|^2 falls by theta a step, up to a constant: O(kx + ky + c) queries
            without prox, O(1 + c) proximal steps with both.
Reference:  L. Condat, A primal-dual splitting method for convex optimization, JOTA 2013; B. Vu, A splitting algorithm
            for dual monotone inclusions, 2013; A. Chambolle and T. Pock, On the ergodic convergence rates of a
            first-order primal-dual algorithm, Math. Prog. 2016.

The two products of a step are one call of ``through``: a step ends with the A' x that the next one begins with.
``anderson-condat-vu`` is Anderson acceleration of this step; ``auto`` begins with it where the coupling is mild.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from saddlepoint.ground.arrays import Array
from saddlepoint.methods.base import Method, Needs, choice_option
from saddlepoint.methods.coupled_step import coupled_step
from saddlepoint.methods.registry import register
from saddlepoint.problems.saddle import Saddle
from saddlepoint.theory.complexity import Complexity
from saddlepoint.theory.gradient import Sweep, condat_vu_bound, condat_vu_steps
from saddlepoint.theory.table1 import scaled_gradient_order


class CondatVuState(NamedTuple):
    """The points x_k and y_k, and A' x_k; with a simple term of x, a step computes A' x_k itself and keeps it here."""

    x: Array
    y: Array
    Atx: Array


@register
@dataclass(frozen=True)
class CondatVu(Method):
    """Condat-Vu in Gauss-Seidel order: y first, then x with the new y."""

    prox: str = choice_option("none", "sides whose prox is used instead of the gradient", ("none", "x", "y", "both"))

    name: ClassVar[str] = "condat-vu"
    complexity: ClassVar[Complexity] = Complexity("kx + ky + c", scaled_gradient_order)
    works: ClassVar[tuple[str, ...]] = ("condat2013", "vu2013", "chambolle2016")

    def init(self, f: Saddle, x: Array, y: Array) -> CondatVuState:
        """The state at the start (x, y); one product, unless the steps begin with it."""
        return CondatVuState(x, y, f.A.tmul(x) if f.g.simple is None else 0.0 * y)

    def step(self, f: Saddle, s: CondatVuState) -> CondatVuState:
        """The state after one step: a gradient or prox of each function, a product each way."""
        rx, ry, theta = self.steps(f)
        tx, ty = rx / f.mu_x, ry / f.mu_y
        Atx = s.Atx if f.g.simple is None else f.A.tmul(s.x)
        if self.prox in ("y", "both"):
            y = f.h.whole_prox(s.y + ty * Atx, ty)
        else:
            sy = ry / (1.0 + ry) / f.mu_y
            y = f.h.simple_prox(s.y + sy * (Atx - f.h.grad(s.y)), sy)
        yb = y + theta * (y - s.y)
        if self.prox in ("x", "both"):
            x = f.g.whole_prox(s.x - tx * f.A.mul(yb), tx)
            return CondatVuState(x, y, f.A.tmul(x) if f.g.simple is None else Atx)
        sx = rx / (1.0 + rx) / f.mu_x
        p = s.x - sx * f.g.grad(s.x)
        if f.g.simple is not None:
            return CondatVuState(f.g.simple_prox(p - sx * f.A.mul(yb), sx), y, Atx)
        x, Atx = coupled_step(f, p, sx, yb)
        return CondatVuState(x, y, Atx)

    @property
    def needs(self) -> Needs:  # type: ignore[override]
        """The prox of each side for which the option asks."""
        return Needs(prox_g=self.prox in ("x", "both"), prox_h=self.prox in ("y", "both"), smooth=False)

    def steps(self, f: Saddle) -> Sweep:
        """The steps rx and ry, and theta."""
        return condat_vu_steps(*self.effective_numbers(f))

    def effective_numbers(self, f: Saddle) -> tuple[float, float, float]:
        """The numbers kx, ky and c, with kappa = 1 for a function whose prox is used."""
        kx = 1.0 if self.prox in ("x", "both") else f.kappa_x
        ky = 1.0 if self.prox in ("y", "both") else f.kappa_y
        return kx, ky, f.coupling

    def cost(self, f: Saddle) -> dict[str, int]:
        """A step costs one gradient or prox of each function and one product each way."""
        x, y = self.prox in ("x", "both"), self.prox in ("y", "both")
        calls = {"grad_g": int(not x), "grad_h": int(not y), "A": 1, "At": 1, "prox_g": int(x), "prox_h": int(y)}
        return {name: count for name, count in calls.items() if count or name not in ("prox_g", "prox_h")}

    def bound(self, f: Saddle, k: int) -> float:
        """The squared distance after k steps is at most theta^k times a constant."""
        return condat_vu_bound(*self.effective_numbers(f), k)

    def parameters(self, f: Saddle) -> dict[str, float]:
        """The steps rx and ry, and theta."""
        return self.steps(f)._asdict()
