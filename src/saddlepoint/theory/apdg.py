"""APDG, the accelerated primal-dual gradient method."""

from __future__ import annotations

import math
from typing import NamedTuple


class ApdgParameters(NamedTuple):
    """The constants of APDG for strongly convex functions, in scaled variables (mu_x = mu_y = 1)."""

    sigma_x: float
    sigma_y: float
    tau_x: float
    tau_y: float
    eta_x: float
    eta_y: float
    theta: float


def apdg_parameters(kx: float, ky: float, c: float) -> ApdgParameters:
    """The choice of Kovalev, Gasnikov and Richtarik 2022, Theorem 1, where both functions are strongly convex."""
    sigma_x, sigma_y = math.sqrt(0.5 / kx), math.sqrt(0.5 / ky)
    reach = 0.25 / c if c > 0.0 else math.inf
    return ApdgParameters(
        sigma_x,
        sigma_y,
        1.0 / (1.0 / sigma_x + 0.5),
        1.0 / (1.0 / sigma_y + 0.5),
        min(0.25 / (1.0 + kx * sigma_x), reach),
        min(0.25 / (1.0 + ky * sigma_y), reach),
        1.0 - 0.25 / (1.0 + max(math.sqrt(kx), math.sqrt(ky), c)),
    )


def apdg_bound(kx: float, ky: float, c: float, k: int) -> float:
    """mu_x |x_k - x*|^2 + mu_y |y_k - y*|^2 is at most this times its start.

    The potential, (1/eta) |.|^2 plus 2/sigma Bregman distances on each side, falls by theta a step; it starts below
    (1/eta + kappa/sigma) |.|^2 and ends above 3/4 of its first part.
    """
    p = apdg_parameters(kx, ky, c)
    start = max(1.0 / p.eta_x + kx / p.sigma_x, 1.0 / p.eta_y + ky / p.sigma_y)
    return start * max(p.eta_x, p.eta_y) / 0.75 * p.theta**k
