"""The number of oracle calls that theory promises, as a formula and as functions of three numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

Order = Callable[[float, float, float], float]
"""A count of calls without logarithms, from kx = L_x/mu_x, ky = L_y/mu_y and c = |A|/sqrt(mu_x mu_y)."""


class Complexity(NamedTuple):
    """Numbers of calls without logarithms: a formula for people and functions of (kx, ky, c) for programs.

    In formulas c = |A|/sqrt(mu_x mu_y), k = max(kx, ky), and N is the norm of ((c, sqrt(ky-1)), (sqrt(kx-1), 0)).
    """

    formula: str
    order: Order | None = None  # calls of the busiest oracle; None where theory gives no number
    grad_g: Order | None = None  # gradients of g, where they are fewer
    grad_h: Order | None = None  # gradients of h, where they are fewer
    products: Order | None = None  # products with A and with A', where they are fewer
