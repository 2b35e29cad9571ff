"""AG-EG, AG-OG and rAPD: accelerated gradients with extragradient or primal-dual steps, restarted.

In scaled variables: L = max(kx, ky) for the functions, c for the coupling.
"""

from __future__ import annotations

import math

from saddlepoint.theory.counts import countable

OG_SLACK = math.sqrt(3.0 + math.sqrt(3.0))  # factor of c in the steps of AG-OG; it is 1 in those of AG-EG


def ag_eta(L: float, c: float, k: int, slack: float = 1.0) -> float:
    """The length of step k >= 0 of an epoch, (k + 2)/(2 L + slack c (k + 2)).

    The slack is 1 for AG-EG, and ``OG_SLACK`` for AG-OG, which makes one product each way in a step instead of two.
    """
    return (k + 2.0) / (2.0 * L + slack * c * (k + 2.0))


def ag_epoch_bound(L: float, c: float, k: int, slack: float = 1.0) -> float:
    """|z_ag - z*|^2 after k steps of an epoch is at most this times |z - z*|^2 at its start."""
    return 1.0 if k == 0 else 4.0 * L / (k + 1.0) ** 2 + 2.0 * slack * c / (k + 1.0)


def ag_epoch(L: float, c: float, slack: float = 1.0) -> int:
    """The length of an epoch: the smallest K with ``ag_epoch_bound`` at most exp(-2)."""
    B, C = 2.0 * slack * c * math.exp(2.0), 4.0 * L * math.exp(2.0)
    return max(1, math.ceil(countable(0.5 * (B + math.hypot(B, 2.0 * math.sqrt(C))) - 1.0)))


def ag_bound(L: float, c: float, k: int, slack: float = 1.0) -> float:
    """mu_x |x_k - x*|^2 + mu_y |y_k - y*|^2 is at most this times its start, over whole epochs and the last one."""
    epochs, rest = divmod(k, ag_epoch(L, c, slack))
    return math.exp(-2.0 * epochs) * ag_epoch_bound(L, c, rest, slack)


def apd_bound(L: float, c: float, k: int) -> float:
    """|zb_k - z*|^2 after k >= 1 steps of APD is at most this times the largest |z_i - z*|^2 of the iterates before.

    The proof of Chen, Lan and Ouyang (2014) at z*, where the gap is at least half the squared distance. Simple terms
    are part of their problem, and the largest distance takes the place of the diameter of their domain.
    """
    return ag_epoch_bound(L, c, k)
