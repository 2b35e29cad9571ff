"""Extragradient, optimistic gradient and Condat-Vu: methods whose rate depends on the constants of the whole field.

Everything is in the scaled variables sqrt(mu_x) x, sqrt(mu_y) y: there the field is strongly monotone with modulus
1, the functions have kx and ky as constants of smoothness, and the coupling has the norm c.
"""

from __future__ import annotations

import math
from typing import NamedTuple

SMALLEST = 1e-3  # least kappa - 1 + c that is used, so that steps stay finite where it is 0


def field_lipschitz(kx: float, ky: float, c: float) -> float:
    """The Lipschitz constant of the scaled field, (k + sqrt(k^2 + 4 c^2))/2 with k = max(kx, ky)."""
    k = max(kx, ky)
    return 0.5 * (k + math.hypot(k, 2.0 * c))


def extragradient_eta(lipschitz: float) -> float:
    """The largest eta with eta^2 l^2 + 2 eta <= 1: the error then falls by 1 - eta a step."""
    return 1.0 / (1.0 + math.hypot(1.0, lipschitz))


def extragradient_bound(lipschitz: float, k: int) -> float:
    """mu_x |x_k - x*|^2 + mu_y |y_k - y*|^2 is at most this times its start, with simple terms too.

    The inequalities of the two proximal steps give |z+ - z*|^2 <= |z - z*|^2 - (1 - eta^2 l^2) |z - zh|^2
    - 2 eta |zh - z*|^2, where zh is the trial point; and |z - z*|^2 <= 2 |z - zh|^2 + 2 |zh - z*|^2.
    """
    return (1.0 - extragradient_eta(lipschitz)) ** k


def ogda_eta(lipschitz: float) -> float:
    """The step 1/(4 l) (Mokhtari, Ozdaglar and Pattathil 2020)."""
    return 0.25 / lipschitz


def ogda_bound(lipschitz: float, k: int) -> float:
    """mu_x |x_k - x*|^2 + mu_y |y_k - y*|^2 is at most this times its start, with simple terms too.

    Let d = z_k - z*, e = z_k - z_{k-1} and D = F(z_k) - F(z_{k-1}); a plus marks the next step. The proximal step
    and the strong monotonicity give, with eta l = 1/4,

        |d+|^2 - 2 eta <D+, d+> + 2 eta |d+|^2 + 3/4 |e+|^2  <=  |d|^2 - 2 eta <D, d> + 1/4 |e|^2  =: E_k.

    Since 2 eta <D, d> <= |d| |e|/2, the left side is at least (1 + 8/5 eta) E_{k+1}, and E_k >= 3/4 |d|^2. The factor
    1/(1 + 8/5 eta) is at most 1 - eta, because eta <= 1/4; and E_0 = |d|^2.
    """
    return 4.0 / 3.0 * (1.0 - ogda_eta(lipschitz)) ** k


class Sweep(NamedTuple):
    """The steps mu_x tx and mu_y ty, and the extrapolation theta."""

    rx: float
    ry: float
    theta: float


def condat_vu_steps(kx: float, ky: float, c: float) -> Sweep:
    """rx = 1/(kx - 1 + c), ry = 1/(ky - 1 + c), theta = 1/(1 + min(rx, ry)).

    They are the longest steps, equally long for equal condition numbers, that satisfy the condition of Condat and Vu,
    (1/tx - (L_x - mu_x)) (1/ty - (L_y - mu_y)) >= theta |A|^2. A side handled by its prox enters with kappa = 1.
    """
    rx, ry = (1.0 / max(k - 1.0 + c, SMALLEST) for k in (kx, ky))
    return Sweep(rx, ry, 1.0 / (1.0 + min(rx, ry)))


def condat_vu_bound(kx: float, ky: float, c: float, k: int) -> float:
    """mu_x |x_k - x*|^2 + mu_y |y_k - y*|^2 is at most this times its start: theta^k, up to a constant.

    The sweep contracts in a norm that the condition on the steps makes definite by a factor 1 - theta only.
    """
    rx, ry, theta = condat_vu_steps(kx, ky, c)
    return 2.0 * (1.0 + max(rx, ry)) / min(rx, ry) / (1.0 - theta) * theta**k
