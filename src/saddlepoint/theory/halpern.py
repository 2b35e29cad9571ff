r"""Steps of PDHG, and Halpern's bound on the residual of a nonexpansive map.

Let T be a map whose reflection 2 T - I is nonexpansive in a norm |.|, as one step of PDHG is in its own norm if g and h
are linear, and let z* be a fixed point. Halpern's iteration

    z_{k+1} = (k+1)/(k+2) (2 T(z_k) - z_k) + 1/(k+2) z_0

satisfies |T(z_k) - z_k| <= |z_0 - z*|/(k+1): the bound 2 |z_0 - z*|/(k+1) of Lieder for the map R = 2 T - I, whose
residual R(z) - z is twice that of T. No other anchored iteration has a better one.

A problem is sharp if |T(z) - z| >= a dist(z, Z*) for the set Z* of fixed points and some a > 0, as linear programs and
matrix games are on bounded sets. An epoch that begins with the residual r is then at a distance of r/a at most, so that
its residual is at most b r after 1/(a b) steps. If it is restarted there, the residual falls by b with every epoch:
the convergence is linear (H. Lu and J. Yang, arXiv 2407.16144, section 4).
"""

from __future__ import annotations

import math

ROUNDING = 1e-9  # what numbers of steps may exceed a whole number by rounding
LEAST = 1e-300  # least curvature that is used, so that steps stay finite where A and L are 0


def pdhg_steps(L_x: float, L_y: float, norm: float, weight: float) -> tuple[float, float]:
    """The steps tx = 1/(L_x + w |A|) and ty = 1/(L_y + |A|/w), for which (1/tx - L_x)(1/ty - L_y) = |A|^2.

    Example:
        >>> from saddlepoint.theory import pdhg_steps
        >>> pdhg_steps(0.0, 1.0, 2.0, 0.5)
        (1.0, 0.2)
    """
    return 1.0 / max(L_x + weight * norm, LEAST), 1.0 / max(L_y + norm / weight, LEAST)


def halpern_bound(k: int) -> float:
    """|T(z_k) - z_k| after k steps of Halpern's iteration is at most this times |z_0 - z*|.

    Reference: F. Lieder, On the convergence rate of the Halpern iteration, Optim. Lett. 2021.
    """
    return 1.0 / (k + 1)


def halpern_steps(residual: float, distance: float) -> int:
    """The number of steps after which the residual is sure to be at most ``residual``, from a start at ``distance``.

    Example:
        >>> from saddlepoint.theory import halpern_steps
        >>> halpern_steps(1e-3, 1.0)
        999
    """
    return max(math.ceil(distance / residual) - 1, 0)


def restarted_halpern_steps(sharpness: float, share: float, reduction: float) -> int:
    """The number of steps after which the residual of a sharp problem is sure to have fallen by ``reduction``.

    Args:
        sharpness: the number a with |T(z) - z| >= a dist(z, Z*).
        share: an epoch ends when its residual has fallen to this share of its first one.
        reduction: the last residual over the first one.

    Reference: H. Lu and J. Yang, Restarted Halpern PDHG for linear programming, arXiv 2407.16144, 2024.

    Example:
        >>> from saddlepoint.theory import restarted_halpern_steps
        >>> restarted_halpern_steps(0.1, 0.2, 1e-6)
        450
    """
    epochs = math.ceil(math.log(reduction) / math.log(share) - ROUNDING)
    return max(epochs, 0) * math.ceil(1.0 / (sharpness * share) - ROUNDING)
