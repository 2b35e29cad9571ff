"""The inexact version of APFB: Lemma `aipfb-out`, Lemma `aipfb:inner`, Theorem `aipfb`.

coupling = |A|/sqrt(mu_x mu_y) throughout; C_0 bounds mu_x |x_0 - x*|^2 + mu_y |y_0 - y*|^2.
"""

from __future__ import annotations

import math

from saddlepoint.theory.agd import agd_steps
from saddlepoint.theory.apfb import floored
from saddlepoint.theory.counts import countable


def aipfb_rho(coupling: float) -> float:
    """rho = sqrt(mu_x mu_y)/(2 sqrt(mu_x mu_y) + 4 |A|)."""
    return 1.0 / (2.0 + 4.0 * floored(coupling))


def aipfb_C(coupling: float) -> float:
    """C = 2 |A|/sqrt(mu_x mu_y) + 1.

    The lemma prints C without the factor 2, but (1 - 2 rho)(mu_x + 2/gamma) = 2 |A| sqrt(mu_x/mu_y) contains it.
    """
    return 2.0 * floored(coupling) + 1.0


def aipfb_eps(k: int, coupling: float, C0: float) -> float:
    """eps_k = C_0 rho (1 - theta)/16 (1 - rho)^(k-1): a subproblem may end this far above its minimum."""
    rho, one_minus_theta = aipfb_rho(coupling), 1.0 / (1.0 + floored(coupling))
    return C0 * rho * one_minus_theta / 16.0 * (1.0 - rho) ** (k - 1)


def aipfb_bound(coupling: float, T: int, C0: float) -> float:
    """Lemma `aipfb-out`, T >= 2: mu_x |x_T - x*|^2 + mu_y |y_T - y*|^2 is at most this."""
    return aipfb_C(coupling) * (1.0 - aipfb_rho(coupling)) ** T * C0


def aipfb_K(coupling: float, mu_x: float, mu_y: float, C0: float, eps: float) -> int:
    """The outer steps after which |x - x*| + |y - y*| <= eps (Definition 2) by Lemma `aipfb-out`."""
    reduction = max(aipfb_C(coupling) * C0 * (1.0 / mu_x + 1.0 / mu_y) / eps / eps, 1.0)
    return max(2, math.floor(countable((4.0 * floored(coupling) + 2.0) * math.log(reduction))) + 1)


def aipfb_K1(kappa_y: float, coupling: float) -> int:
    """Lemma `aipfb:inner`: the AGD steps of the y-subproblem h_k, which comes first.

    The lemma names it for x, prints (1 - rho) in the numerator where its proof has 1/(1 - rho), and uses the bound of
    Lemma `aipfb-out` at T = 1, where only C C_0 holds; hence (1 - rho)^2 in the denominator.
    """
    return _agd_steps(kappa_y, coupling, 320.0 / (1.0 - aipfb_rho(coupling)) ** 2)


def aipfb_K2(kappa_x: float, coupling: float) -> int:
    """Lemma `aipfb:inner`: the AGD steps of the x-subproblem g_k (with 1/(1 - rho) for T = 1, see K1)."""
    return _agd_steps(kappa_x, coupling, 80.0 / (1.0 - aipfb_rho(coupling)))


def _agd_steps(kappa: float, coupling: float, factor: float) -> int:
    c = floored(coupling)
    reduction = factor * aipfb_C(c) * (kappa + 2.0 * c + 1.0) * (1.0 + c) / aipfb_rho(c)
    return agd_steps((kappa + c) / (1.0 + c), reduction)


def aipfb_adaptive_eps(bound: float, coupling: float) -> float:
    """rho (1 - theta)/16 of a bound on b_{k-1}: by the recursion below, the bound falls by 1 - rho at least.

    It is a quarter of what the recursion needs, so that the errors themselves do not hide how small b_k has become.
    """
    return aipfb_rho(coupling) / (1.0 + floored(coupling)) / 16.0 * bound


def aipfb_next_bound(
    bound: float, eps: float, coupling: float, mu_x: float, mu_y: float, dx: float, dy: float, dxt: float
) -> float:
    """A bound on the Lyapunov function b_k of Lemma `aipfb-out`, given one on b_{k-1} and what the step measured.

    b_k = (mu_x/4 + 1/(2 gamma)) |x_k - x*|^2 + (3 mu_y/4 + 1/(2 sigma)) |y_k - y*|^2 + |x_k - x_{k-1}|^2/(2 gamma)
          + <x_k - x_{k-1}, A (y_k - y*)>.

    It is the smaller of two bounds. One is the recursion b_k <= (1 - 2 rho) b_{k-1} + 4 eps/(1 - theta). The other
    follows from the field F at the exact solutions of both subproblems, where the conditions of optimality express F by
    differences of the iterates.

    Args:
        dx, dy: |x_k - x_{k-1}| and |y_k - y_{k-1}|.
        dxt: |x_k - xt_{k-1}|.
    """
    c = floored(coupling)
    ex, ey = (math.sqrt(2.0 * eps / (mu * (1.0 + c))) for mu in (mu_x, mu_y))  # distances to the exact solutions
    A = c * math.sqrt(mu_x) * math.sqrt(mu_y)
    Fx = c * mu_x * (dx + ex) + A * ey
    Fy = c * mu_y * (dy + ey) + A * (dxt + ex)
    exact = math.hypot(Fx / math.sqrt(mu_x), Fy / math.sqrt(mu_y))
    W = exact + math.hypot(math.sqrt(mu_x) * ex, math.sqrt(mu_y) * ey)
    seen = (0.75 + c) * W * W + c * mu_x * dx * dx
    return min((1.0 - 2.0 * aipfb_rho(c)) * bound + 4.0 * (1.0 + c) * eps, seen)
