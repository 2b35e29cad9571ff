"""One player of a constrained game in the augmented Lagrangian: scaled constraints, multipliers and penalties."""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np
from scipy.sparse import csr_array, diags_array

from saddlepoint.ground.arrays import Array
from saddlepoint.ground.directed import add_down
from saddlepoint.ground.linalg import inner, norm
from saddlepoint.parts.coupling import as_coupling
from saddlepoint.parts.coupling.equilibration import ruiz
from saddlepoint.parts.functions import Smooth
from saddlepoint.parts.functions.affine import affine


class Side:
    """A player's constraints E v = e, v >= 0, cost, strategy and multipliers, in scaled variables.

    v = d v', and equation i is multiplied by w_i, so that the entries of w E d and of w e are 1 at most; costs and
    payoffs are divided by ``unit``.

    Attributes:
        E, e: the scaled constraints.
        v: the scaled strategy.
        multiplier, bound_multiplier: the scaled multipliers of the equations and of the bounds.
    """

    def __init__(self, constraints: tuple[csr_array, Array], start: Array) -> None:
        E, e = constraints
        self.w, self.d = ruiz(abs(E))
        size = float(np.abs(self.w * e).max()) or 1.0
        self.d, self.w = self.d * size, self.w / size
        self.E = csr_array(diags_array(self.w) @ E @ diags_array(self.d))
        self.e, self.v = self.w * e, start / self.d
        self.Et = csr_array(self.E.T)
        self.EtE = csr_array(self.Et @ self.E)
        self.norm = as_coupling(self.E).estimated_norm().upper
        self.multiplier, self.bound_multiplier = np.zeros(E.shape[0]), np.zeros(E.shape[1])

    def set_cost(self, cost: Smooth | None, unit: float) -> None:
        """Set the cost of the player and the unit of payoffs."""
        self.unit = unit
        self.cost = None if cost is None else affine(cost, scale=self.d, weight=1.0 / unit)

    def multipliers(self, v: Array, r: float) -> tuple[Array, Array]:
        """The multipliers after a step to v with the penalty r."""
        return self.multiplier + r * (self.E @ v - self.e), np.maximum(self.bound_multiplier - r * v, 0.0)

    def move(self, v: Array, r: float) -> float:
        """Move to v and update the multipliers; returns the length of the step."""
        self.multiplier, self.bound_multiplier = self.multipliers(v, r)
        length = norm(v - self.v)
        self.v = v
        return length

    def original(self) -> tuple[Array, Array, Array]:
        """v and its multipliers in the units of the game."""
        return self.d * self.v, self.unit * self.w * self.multiplier, self.unit * self.bound_multiplier / self.d


class Penalised(Smooth):
    """cost(v) + r/2 |E v - e + multiplier/r|^2 + r/2 |(bound_multiplier/r - v)_+|^2 + a/2 |v - centre|^2.

    The centre and the multipliers are those of the given player.
    Its Hessian is that of the cost, plus r E'E, plus r where bound_multiplier > r v, plus a; hence mu = mu_cost + a and
    L = L_cost + r (|E|^2 + 1) + a.
    """

    def __init__(self, side: Side, r: float, a: float) -> None:
        side = copy(side)  # keeps the present strategy and multipliers, which ``move`` replaces in the given object
        cost, centre = side.cost, side.v

        def grad(v: Array) -> Array:
            multiplier, bound_multiplier = side.multipliers(v, r)
            gradient = side.Et @ multiplier - bound_multiplier + a * (v - centre)
            return np.asarray(gradient if cost is None else gradient + cost.grad(v))

        def value(v: Array) -> float:
            multiplier, bound_multiplier = side.multipliers(v, r)
            penalty = (inner(multiplier, multiplier) + inner(bound_multiplier, bound_multiplier)) / (2.0 * r)
            return penalty + 0.5 * a * inner(v - centre, v - centre) + (0.0 if cost is None else cost(v))

        def hessian(v: Array) -> Any:
            matrix = r * side.EtE + diags_array(np.where(side.bound_multiplier > r * v, r + a, a))
            return matrix if cost is None or cost.hessian is None else csr_array(matrix + cost.hessian(v))

        super().__init__(
            grad,
            mu=a if cost is None else add_down(a, cost.mu),
            L=a + r * (side.norm**2 + 1.0) + (0.0 if cost is None else cost.L),
            value=value if cost is None or cost.value else None,
            dim=centre.shape[0],
            hessian=hessian if cost is None or cost.hessian else None,
            trusted=cost is None or cost.trusted,
        )
