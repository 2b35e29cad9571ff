r"""PDHG, the primal-dual hybrid gradient method: Condat-Vu without strong convexity.

Problem:    min_x max_y g(x) + p(x) + <x, A y> - h(y) - q(y), where mu of g and h may be 0 and p, q are simple terms.
Recursion:  x_{k+1} = prox_{tx p}(x_k - tx (grad g(x_k) + A y_k))
            y_{k+1} = prox_{ty q}(y_k - ty (grad h(y_k) - A'(2 x_{k+1} - x_k))),
            tx = 1/(L_x + w |A|), ty = 1/(L_y + |A|/w), w the weight of x beside y.
Guarantee:  the steps satisfy (1/tx - L_x)(1/ty - L_y) >= |A|^2. The duality gap of the averages over k steps falls as
            1/k, and the distance to the set of saddle points never grows, in the norm
            |x|^2/tx - 2 <x, A y> + |y|^2/ty.
Reference:  A. Chambolle and T. Pock, A first-order primal-dual algorithm for convex problems with applications to
            imaging, J. Math. Imaging Vision 2011; L. Condat, A primal-dual splitting method for convex optimization,
            JOTA 2013; A. Chambolle and T. Pock, On the ergodic convergence rates of a first-order primal-dual
            algorithm, Math. Prog. 2016.

The weight is part of the state, so that a wrapper can change it during a run, as Halpern does.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from saddlepoint.ground.arrays import Array
from saddlepoint.methods.base import Method, Needs, float_option
from saddlepoint.methods.registry import register
from saddlepoint.parts.functions.smooth import Smooth
from saddlepoint.problems.saddle import Saddle
from saddlepoint.theory.complexity import Complexity
from saddlepoint.theory.halpern import pdhg_steps


class PDHGState(NamedTuple):
    """The points x_k and y_k, the products with them, and the weight w."""

    x: Array
    y: Array
    Ay: Array
    Atx: Array
    weight: float


@register
@dataclass(frozen=True)
class PDHG(Method):
    """The primal-dual hybrid gradient method."""

    weight: float | None = float_option(None, "weight of x beside y; None = by the domains or L")

    needs: ClassVar[Needs] = Needs(mu=False, strong=False, smooth=False)
    complexity: ClassVar[Complexity] = Complexity("1/gap, without mu")
    works: ClassVar[tuple[str, ...]] = ("chambolle2011", "condat2013", "chambolle2016")

    def init(self, f: Saddle, x: Array, y: Array) -> PDHGState:
        """The state at the start (x, y); one product each way."""
        Ay, Atx = f.A.both(x, y)
        return PDHGState(x, y, Ay, Atx, self.first_weight(f))

    def step(self, f: Saddle, s: PDHGState) -> PDHGState:
        """The state after one step: a gradient and a prox of each side, a product each way."""
        tx, ty = pdhg_steps(f.L_x, f.L_y, f.norm, s.weight)
        x = f.g.simple_prox(s.x - tx * (f.g.grad(s.x) + s.Ay), tx)
        Atx = f.A.tmul(x)
        y = f.h.simple_prox(s.y - ty * (f.h.grad(s.y) - 2.0 * Atx + s.Atx), ty)
        return PDHGState(x, y, f.A.mul(y), Atx, s.weight)

    def first_weight(self, f: Saddle) -> float:
        """The weight at the start: the diameter of the domain of y beside that of x, where both are known.

        Otherwise it is sqrt(L_x/L_y). Both change as the steps have to when variables are rescaled.
        """
        if self.weight is not None:
            return self.weight
        size_x, size_y = (_diameter(g, n) for g, n in zip((f.g, f.h), f.shape, strict=True))
        if 0.0 < size_x < math.inf and 0.0 < size_y < math.inf:
            return size_y / size_x
        return math.sqrt(f.L_x / f.L_y) if f.L_x > 0.0 and f.L_y > 0.0 else 1.0

    def cost(self, f: Saddle) -> dict[str, int]:
        """A step costs one gradient of each function and one product each way."""
        return {"grad_g": 1, "grad_h": 1, "A": 1, "At": 1}

    def weights(self, f: Saddle) -> dict[str, float]:
        """Points are weighted by the inverse roots of their steps."""
        tx, ty = pdhg_steps(f.L_x, f.L_y, f.norm, self.first_weight(f))
        return {"x": 1.0 / math.sqrt(tx), "y": 1.0 / math.sqrt(ty)}

    def parameters(self, f: Saddle) -> dict[str, float]:
        """The two steps at the start, and the weight."""
        weight = self.first_weight(f)
        tx, ty = pdhg_steps(f.L_x, f.L_y, f.norm, weight)
        return {"tx": tx, "ty": ty, "weight": weight}


def _diameter(function: Smooth, n: int) -> float:
    return math.inf if function.simple is None else function.simple.diameter_in(n)
