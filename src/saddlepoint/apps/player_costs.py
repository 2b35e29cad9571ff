"""Costs of the players of a game: numbers as quadratic functions, checks, and values."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from saddlepoint.ground.arrays import Array
from saddlepoint.ground.errors import ProblemError
from saddlepoint.ground.linalg import norm
from saddlepoint.ground.validation import as_number, short_repr
from saddlepoint.parts.functions import Quadratic, Smooth
from saddlepoint.parts.functions.second_order import steepness
from saddlepoint.theory.exploitability import MARGIN, UNIT


def as_cost(cost: Any, name: str, kind: str) -> Smooth:
    """A cost as a function; a positive number c stands for c/2 |x|^2.

    Args:
        cost: what the caller gave.
        name: the name of the argument.
        kind: the functions that are expected, such as "convex", for the error.
    """
    if isinstance(cost, Smooth):
        return cost
    expected = f"a {kind} Smooth function, or a positive number c for c/2 |x|^2"
    number = as_number(cost, name, expected)
    if not 0.0 < number < math.inf:
        raise ProblemError(f"{name} is {short_repr(cost)}; expected {expected}")
    return Quadratic(number)


def check_cost(cost: Smooth, name: str, size: int) -> None:
    """Refuse a cost that a player with ``size`` variables in a polytope cannot have."""
    if cost.simple is not None:
        raise ProblemError(
            f"{name} has the simple term {cost.simple!r}, which the cost of a game cannot have; write a constraint as "
            "a row of the player's polytope (ConstrainedGame), or use sp.Saddle with simple terms"
        )
    if cost.dim not in (None, size):
        raise ProblemError(f"{name} has {cost.dim} variables; expected {size}")
    if not math.isfinite(cost.mu + cost.L):
        raise ProblemError(f"{name} has an unknown mu or L; give both (mu = 0 if it is not strongly convex)")


def cost_at(cost: Smooth | None, v: Array) -> float:
    """The value of a cost: 0 where there is none, and NaN where it was given no value."""
    return 0.0 if cost is None else math.nan if cost.value is None else cost(v)


class CostSlope:
    """The gradient of a cost at a strategy v that is known up to ``change``, with all errors; zero without a cost.

    Attributes:
        slope, errors: the gradient as computed, and bounds on its errors.
        inner: an upper bound on the product of the gradient with v.
    """

    def __init__(self, cost: Smooth | None, v: Array, change: Array) -> None:
        self.slope, self.errors, self.inner = np.zeros(len(v)), np.zeros(len(v)), 0.0
        if cost is None:
            return
        self.slope = np.asarray(cost.grad(v), dtype=np.float64)
        proven = cost.rounding if cost.accuracy == 0.0 else None
        errors = np.full(len(v), cost.gradient_error(v, self.slope)) if proven is None else np.asarray(proven(v))
        self.errors = (errors + steepness(cost) * norm(change)) * MARGIN
        size, reach = np.abs(self.slope), np.abs(v) + change
        lost = self.errors @ reach + size @ change + 4.0 * UNIT * (size @ np.abs(v))
        self.inner = math.fsum((self.slope * v).tolist()) + float(lost) * MARGIN
