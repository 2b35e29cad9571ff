"""Accelerated proximal forward-backward: Theorem `apfb`."""

from __future__ import annotations

import math
from typing import NamedTuple

from saddlepoint.theory.counts import countable

# Least |A|/sqrt(mu_x mu_y) that is used, which keeps gamma and sigma finite when A = 0. The theorem holds with any
# upper bound in the place of |A|.
COUPLING_FLOOR = 1e-3


class ApfbParameters(NamedTuple):
    """gamma, sigma and theta of Algorithm APFB."""

    gamma: float
    sigma: float
    theta: float


def floored(coupling: float) -> float:
    """|A|/sqrt(mu_x mu_y), but at least ``COUPLING_FLOOR``."""
    return max(coupling, COUPLING_FLOOR)


def apfb_parameters(mu_x: float, mu_y: float, norm: float) -> ApfbParameters:
    """gamma = sqrt(mu_y/mu_x)/|A|, sigma = sqrt(mu_x/mu_y)/|A|, theta = |A|/(sqrt(mu_x mu_y) + |A|)."""
    c = floored(norm / math.sqrt(mu_x) / math.sqrt(mu_y))
    return ApfbParameters(gamma=1.0 / (c * mu_x), sigma=1.0 / (c * mu_y), theta=c / (1.0 + c))


def apfb_bound(coupling: float, T: int, start: float) -> float:
    """Theorem `apfb`, T >= 1: mu_x |x_T - x*|^2 + mu_y |y_T - y*|^2 is at most this.

    Args:
        coupling: |A|/sqrt(mu_x mu_y).
        start: mu_x |x_0 - x*|^2 + mu_y |y_0 - y*|^2.
    """
    c = floored(coupling)
    return (c / (1.0 + c)) ** (T - 1) * c * start


def apfb_steps(coupling: float, reduction: float) -> int:
    """A number of steps T for which the bound of Theorem `apfb` is at most start/reduction."""
    c = floored(coupling)
    return max(1, math.floor(countable((c + 1.0) * math.log(max(1.0, c) * max(reduction, 1.0)))) + 2)


def proximal_apfb_steps(coupling: float, reduction: float) -> int:
    """A number of steps T after which the residual of DIPPA's coupling step is below the first one by ``reduction``.

    With simple terms the residual is made of moves: rx = nu (x_T - x_{T-1}) and
    ry = a A'(x_T - xt_{T-1}) + nu (y_T - y_{T-1}), where nu = a |A| is the coupling. So it is at most 8 nu times the
    largest distance to the solution in the steps T - 2 to T; and the distance is at most the residual.
    """
    c = floored(coupling)
    return apfb_steps(c, 64.0 * max(1.0, c * c) * reduction * reduction) + 2
