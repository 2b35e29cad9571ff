"""Minimax-APPA: the accelerated proximal point method around accelerated ascent (Lin, Jin and Jordan 2020).

APPA adds beta |x - xt|^2 to a function that is mu-strongly convex; kappa = beta/mu throughout.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from saddlepoint.theory.catalyst import catalyst_eps, catalyst_theta

LARGEST_RATIO = 1e32  # largest ratio of two squared residuals that float64 can resolve
SHARE = 0.1  # most error that an inexact x may cause in the gradient for y, relative to the target of that gradient


def appa_q(kappa: float) -> float:
    """q = 1/(4 kappa). With this q, APPA is Catalyst: it has its momentum, and its rate 1 - sqrt(q) per step.

    Catalyst would take mu/(mu + 2 beta), which is larger; the theorem holds for any smaller q.
    """
    return 1.0 / (4.0 * kappa)


def appa_theta(kappa: float) -> float:
    """theta = (2 sqrt(kappa) - 1)/(2 sqrt(kappa) + 1), the outer momentum."""
    return catalyst_theta(appa_q(kappa))


def appa_eps(k: int, kappa: float, gap: float) -> float:
    """The duality gap at which outer step k may end; ``gap`` is a proven bound on the gap at the start.

    The papers fix one small accuracy for all steps. Here it falls at the outer rate, as Catalyst's theorem allows.
    """
    return catalyst_eps(k, appa_q(kappa), gap)


class AppaParameters(NamedTuple):
    """The constants of Minimax-APPA."""

    ell: float  # one smoothness constant for everything; the weight of the anchor
    kappa: float  # ell/mu_x, the outer condition number
    m: float  # mu_x + 2 ell, the strong convexity of an x-subproblem
    L_phi: float  # the smoothness of what y has to minimise, h(y) - min_x (g(x) + <x, A y> + ell |x - xt|^2)


def minimax_appa_parameters(L_x: float, L_y: float, mu_x: float, norm: float) -> AppaParameters:
    """ell = max(L_x, L_y, |A|), kappa = ell/mu_x, m = mu_x + 2 ell, L_phi = L_y + |A|^2/m."""
    ell = max(L_x, L_y, norm)
    m = mu_x + 2.0 * ell
    return AppaParameters(ell, ell / mu_x, m, L_y + norm * norm / m)


def minimax_appa_tolerance(eps: float, m: float, mu_y: float, norm: float) -> float:
    """The gradient norm at which an x-subproblem may end, if the duality gap has to come down to eps.

    Half of eps is for x, as |p|^2/(2 m), and half for y, as |r|^2/(2 mu_y). The error |A| |p|/m that x causes in r is
    at most ``SHARE`` of |r|.
    """
    return math.sqrt(m * eps) / max(1.0, norm / math.sqrt(m * mu_y) / SHARE)


def reduction(start: float, end: float) -> float:
    """start/end, but at most ``LARGEST_RATIO`` and at least 1: what is small enough already does not have to fall."""
    return min(max(start / end, 1.0), LARGEST_RATIO) if end > 0.0 else LARGEST_RATIO
