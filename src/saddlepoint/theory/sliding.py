"""Sliding: gradients and products separated, as in Borodich, Kormakov, Kovalev, Beznosikov and Gasnikov 2023."""

from __future__ import annotations

import math
from typing import NamedTuple


class SlidingParameters(NamedTuple):
    """The weight alpha of the new point and the step eta, both in scaled variables."""

    alpha: float
    eta: float


def sliding_parameters(kx: float, ky: float) -> SlidingParameters:
    """alpha = min(1, 1/sqrt(l)), eta = min(1/3, 1/(3 alpha l)), l = max(kx, ky) - 1."""
    excess = max(kx, ky) - 1.0
    alpha = min(1.0, 1.0 / math.sqrt(excess)) if excess > 0.0 else 1.0
    return SlidingParameters(alpha, min(1.0, 1.0 / (alpha * excess) if excess > 0.0 else 1.0) / 3.0)


def sliding_accuracy(eta: float) -> float:
    """The residual of the inner system that is allowed, relative to the length of the step: 1/(sqrt(6) (1 + eta)).

    It is the condition eta |B|^2 <= |zh - z|^2/(6 eta) on the gradient B of the inner problem, written for the residual
    of the system divided by 1 + 1/eta.
    """
    return 1.0 / (math.sqrt(6.0) * (1.0 + eta))


def sliding_bound(kx: float, ky: float, k: int, terms: bool = False) -> float:
    """mu_x |x_k - x*|^2 + mu_y |y_k - y*|^2 is at most this times its start: 1 - alpha/3 a step, up to a constant.

    The potential is |.|^2/eta plus 2/alpha Bregman distances, which start below (kappa - 1)/alpha |.|^2. With
    simple terms the answer is zh, and |z_k - zh| <= |zh - z_{k-1}|/sqrt(6); so |zh - z*|^2 is at most 6 times the
    larger one of |z_k - z*|^2 and |z_{k-1} - z*|^2. The proof uses of the coupling only that it is monotone, as it is
    with such terms.
    """
    if terms:
        return 1.0 if k == 0 else 6.0 * sliding_bound(kx, ky, k - 1)
    alpha, eta = sliding_parameters(kx, ky)
    return (1.0 + eta * (max(kx, ky) - 1.0) / alpha) * (1.0 - min(alpha, eta)) ** k
