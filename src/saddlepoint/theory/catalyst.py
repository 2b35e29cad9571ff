"""Catalyst for unbalanced problems, L_x = L_y = L and mu_x <= mu_y.

The outer loop is the accelerated proximal point method on Phi(x) = max_y f(x, y); its guarantee is Theorem 3.1 of Lin,
Mairal and Harchaoui, "A universal catalyst for first-order optimization", NeurIPS 2015.
"""

from __future__ import annotations

import math

from saddlepoint.theory.counts import MOST, countable


def catalyst_beta(L: float, mu_x: float, mu_y: float) -> float:
    """beta = L (mu_y - mu_x)/(L - mu_y), which makes both condition numbers equal; at most L.

    At kappa_y = 1 the formula divides by zero: no beta reaches the condition number 1. With beta = L that of the
    x-player is already below 2, and more weight would only cost outer steps. If mu_y exceeds mu_x by at most one per
    cent, beta is 0.
    """
    if mu_y <= 1.01 * mu_x:
        return 0.0
    return min(L, L * (mu_y - mu_x) / (L - mu_y)) if mu_y < L else L


def catalyst_q(mu_x: float, beta: float) -> float:
    """q = mu_x/(mu_x + beta)."""
    return mu_x / (mu_x + beta)


def catalyst_theta(q: float) -> float:
    """theta = (1 - sqrt(q))/(1 + sqrt(q)), the outer momentum."""
    return (1.0 - math.sqrt(q)) / (1.0 + math.sqrt(q))


def catalyst_rho(q: float) -> float:
    """The outer rate asked for: rho = 0.9 sqrt(q), a little below the sqrt(q) of exact steps."""
    return 0.9 * math.sqrt(q)


def catalyst_eps(k: int, q: float, gap: float) -> float:
    """eps_k = 2/9 (1 - rho)^k gap: the duality gap of f_k at which outer step k may end.

    ``gap`` bounds Phi(x_0) - min Phi; the certified gap of f at the start does.
    """
    return 2.0 / 9.0 * gap * (1.0 - catalyst_rho(q)) ** k


def catalyst_bound(k: int, q: float, gap: float) -> float:
    """Phi(x_k) - min Phi is at most this after k outer steps, and mu_x/2 |x_k - x*|^2 with it."""
    rho = catalyst_rho(q)
    return 8.0 / (math.sqrt(q) - rho) ** 2 * (1.0 - rho) ** (k + 1) * gap


def catalyst_steps(q: float, reduction: float) -> int:
    """The outer steps after which ``catalyst_bound`` is at most gap/reduction; those for 1 if ``reduction`` is less."""
    if q >= 1.0:
        return 1
    rho = catalyst_rho(q)
    left = math.sqrt(q) - rho
    if left == 0.0:
        return int(MOST)
    factor = math.log(8.0 * max(reduction, 1.0)) - 2.0 * math.log(left)
    return max(1, math.ceil(countable(factor / -math.log1p(-rho))))
