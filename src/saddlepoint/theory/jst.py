"""The primal-dual extragradient method of Jin, Sidford and Tian."""

from __future__ import annotations

import math


def jst_lambda(kx: float, ky: float, c: float) -> float:
    """lambda = 1 + sqrt(kx) + sqrt(ky) + c."""
    return 1.0 + math.sqrt(kx) + math.sqrt(ky) + c


def jst_bound(kx: float, ky: float, c: float, k: int) -> float:
    """mu_x |x_k - x*|^2 + mu_y |y_k - y*|^2 is at most this times its start.

    The Bregman distance of the lifted problem falls by 1/(1 + 1/lambda) a step; at the start it is at most
    max(kx, ky)/2 times the weighted distance.
    """
    return max(kx, ky) * (1.0 + 1.0 / jst_lambda(kx, ky, c)) ** -k
