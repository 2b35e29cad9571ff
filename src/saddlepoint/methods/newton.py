r"""Newton: linearise the whole field, and damp the step where the linear model is poor.

Problem:    min_x max_y g(x) + <x, A y> - h(y) with Hessians, the players rescaled to mu_x = mu_y = 1; z = (x, y).
Recursion:  (J + b I) d = -F(z_k),   J = [[P, A], [-A', Q]] with the Hessians P of g at x_k and Q of h at y_k;
            z_{k+1} = z_k + d if |F| falls by a tenth of what the linear model says, |F| - b |d|; else b grows fourfold
            from 1 on, and d is computed again. After a good step b shrinks, from 1 to 0.
Guarantee:  |F| falls at every step, and z_k -> z* from anywhere, also where the gradients have kinks: for large b the
            step is -F/b nearly, which shrinks |F| as soon as b > L^2. Near z* there is no damping: it is quadratic if
            the Hessians are Lipschitz, and ends in one step if the gradients are linear around z*.
Reference:  L. Qi and J. Sun, A nonsmooth version of Newton's method, Math. Programming 1993; the damping is that of
            K. Levenberg 1944 and D. Marquardt 1963, here with J + b I, which monotony makes positive definite.

Each matrix is counted as the oracle calls that would compute it: a gradient or a product for each column.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from saddlepoint.ground.arrays import Array
from saddlepoint.ground.linalg import norm
from saddlepoint.methods.base import Method, Needs
from saddlepoint.methods.direct import solver, wide
from saddlepoint.methods.registry import register
from saddlepoint.parts.functions.smooth import plus_identity
from saddlepoint.problems.saddle import Saddle
from saddlepoint.problems.transforms import View, unit_strength
from saddlepoint.theory.complexity import Complexity

ENOUGH, GOOD = 0.1, 0.5  # least shares of the predicted decrease: to accept a step, to reduce the damping
STIFF = 1e30  # largest damping that is tried
ROUNDING = 2.0**-53  # relative length of a step that changes a point by rounding only


class NewtonState(NamedTuple):
    """The point, the field there, and the damping."""

    x: Array
    y: Array
    Fx: Array
    Fy: Array
    b: float


@register
@dataclass(frozen=True)
class Newton(Method):
    """Damped semismooth Newton steps."""

    needs: ClassVar[Needs] = Needs(hessians=True, matrix=True)
    complexity: ClassVar[Complexity] = Complexity("a few factorisations")
    works: ClassVar[tuple[str, ...]] = ("qi1993",)

    def normal_form(self, f: Saddle) -> View:
        """The problem in the variables where mu_x = mu_y = 1, in which |F| bounds the distance."""
        return unit_strength(f)

    def init(self, f: Saddle, x: Array, y: Array) -> NewtonState:
        """The start, with one query for the field."""
        return NewtonState(x, y, *f.field(x, y), 0.0)

    def step(self, f: Saddle, s: NewtonState) -> NewtonState:
        """The state after one step: a query and a factorisation for each damping that is tried."""
        assert f.g.hessian is not None
        assert f.h.hessian is not None
        P, Q, A = wide(f.g.hessian(s.x)), wide(f.h.hessian(s.y)), wide(f.A.matrix())
        before, b = length(s.Fx, s.Fy), s.b
        while b < STIFF:
            dx, dy = solver(plus_identity(P, b), plus_identity(Q, b), A)(-s.Fx, -s.Fy)
            x, y = s.x + dx, s.y + dy
            Fx, Fy = f.field(x, y)
            gain, promise = before - length(Fx, Fy), before - b * length(dx, dy)
            if gain >= ENOUGH * promise:
                smaller = 0.1 * b if b > 1.0 else 0.0
                return NewtonState(x, y, Fx, Fy, smaller if gain >= GOOD * promise else b)
            if length(dx, dy) <= ROUNDING * length(s.x, s.y):  # shorter steps change nothing
                return s
            b = max(4.0 * b, 1.0)
        return s

    def state_residual(self, s: NewtonState) -> float:
        """The length of the field, where mu_x = mu_y = 1."""
        return length(s.Fx, s.Fy)


def length(u: Array, v: Array) -> float:
    """The norm of (u, v)."""
    return math.hypot(norm(u), norm(v))
