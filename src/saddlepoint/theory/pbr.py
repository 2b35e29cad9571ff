"""Proximal best response: two accelerated proximal point methods around alternating best responses (Wang, Li 2020)."""

from __future__ import annotations

import math
from typing import NamedTuple

from saddlepoint.theory.counts import countable

ACCURACY = 0.125  # residual after a best response, relative to the one before


class Betas(NamedTuple):
    """The weights of the anchors, beta_x |x - xh|^2 and beta_y |y - yh|^2."""

    x: float
    y: float


def pbr_betas(mu_x: float, mu_y: float, norm: float) -> Betas:
    """mu_x max(1, c) and mu_y max(1, c), c = |A|/sqrt(mu_x mu_y): the same method in any scale of x and y."""
    c = max(1.0, norm / math.sqrt(mu_x) / math.sqrt(mu_y))
    return Betas(mu_x * c, mu_y * c)


def pbr_paper_betas(mu_x: float, mu_y: float, norm: float) -> Betas:
    """max(mu_x, |A|) and max(mu_y, |A|), as in the paper; equal to ``pbr_betas`` if mu_x = mu_y."""
    return Betas(max(mu_x, norm), max(mu_y, norm))


def appa_tau(kappa: float) -> float:
    """tau = 1/(2 sqrt(kappa) + 4 kappa), the weight of x_k - xh_{k-1} in the outer extrapolation."""
    return 1.0 / (2.0 * math.sqrt(kappa) + 4.0 * kappa)


def response_theta(m_x: float, m_y: float, norm: float) -> float:
    """|A|/sqrt(m_x m_y), which the betas keep at 1/2 or below."""
    return norm / math.sqrt(m_x) / math.sqrt(m_y)


def response_contraction(theta: float, accuracy: float = ACCURACY) -> float:
    """The factor on R = sqrt(|Fx|^2/m_x + |Fy|^2/m_y) of a pair of best responses, at most.

    In these units a response to accuracy a R moves x by at most X + a R, if X = |Fx|/sqrt(m_x); so Fy grows by theta of
    that at most. The same holds for y, so that Y <= a R and X <= a R + theta (Y_0 + theta (X_0 + a R) + a R).
    """
    x = accuracy + theta * (accuracy * (1.0 + theta) + math.hypot(1.0, theta))
    return math.hypot(x, accuracy)


def response_sweeps(theta: float, reduction: float) -> int:
    """Pairs of best responses that shrink the duality gap, which is R^2/2, by ``reduction``."""
    return max(1, math.ceil(countable(0.5 * math.log(max(reduction, 1.0)) / -math.log(response_contraction(theta)))))
