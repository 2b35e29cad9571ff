r"""Duality for the sum of two norms, F(w) = |B w - s| + radius |w|, the objective of robust least squares.

For |u| <= 1 and |B'u| <= radius, F(w) >= <u, B w - s> + radius |w| >= -<s, u>, whatever w is. So any w gives an upper
bound on min F, and any u gives a lower one once it is scaled to meet the two conditions.
"""

from __future__ import annotations

import math


def norm_sum_upper(radius: float, z: float, w: float) -> float:
    """min F is at most this, for z = |B w - s| and w = |w| at some point."""
    return z + radius * w


def norm_sum_lower(radius: float, su: float, u: float, Btu: float) -> float:
    """min F is at least this, for su = <s, u>, u = |u| and Btu = |B'u| of some u; 0 if nothing better is known."""
    scale = max(u, Btu / radius)
    return max(-su / scale, 0.0) if 0.0 < scale < math.inf else 0.0
