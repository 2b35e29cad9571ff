"""The double proximal point algorithm: Theorem `dppa` and its corollary."""

from __future__ import annotations

import math


def dppa_alpha(L: float, mu: float) -> float:
    """alpha = 1/sqrt(L mu), the step of both proximal operators."""
    return 1.0 / math.sqrt(L) / math.sqrt(mu)


def dppa_contraction(kappa: float) -> float:
    """Theorem `dppa`: eta = ((sqrt(kappa) - 1)/(sqrt(kappa) + 1))^2, by which |z - z*|^2 + |w - w*|^2 falls a step."""
    return ((math.sqrt(kappa) - 1.0) / (math.sqrt(kappa) + 1.0)) ** 2


def dppa_bound(kappa: float, nu: float, K: int, start: float) -> float:
    """Corollary `dppa`: |x_K - x*|^2 + |y_K - y*|^2 is at most this.

    Args:
        kappa: L/mu.
        nu: |A|/sqrt(L mu).
        start: |x_0 - x*|^2 + |y_0 - y*|^2.
    """
    return (1.0 + nu * nu) * start * math.exp(-2.0 * K / math.sqrt(kappa))
