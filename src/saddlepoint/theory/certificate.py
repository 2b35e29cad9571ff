"""What one query of the oracle proves about the distance to the saddle point.

With Fx = grad g(x) + A y and Fy = grad h(y) - A' x, strong monotonicity of F gives

    mu_x |x - x*|^2 + mu_y |y - y*|^2  <=  <F, (x - x*, y - y*)>  <=  |Fx|^2/mu_x + |Fy|^2/mu_y,

the second step by Cauchy and Schwarz in the weighted norm on the left.
"""

from __future__ import annotations

import math


def weighted_bound(mu_x: float, mu_y: float, Fx: float, Fy: float) -> float:
    """mu_x |x - x*|^2 + mu_y |y - y*|^2 is at most this, for |Fx|, |Fy| at (x, y)."""
    return Fx / mu_x * Fx + Fy / mu_y * Fy


def distance_bound(mu_x: float, mu_y: float, Fx: float, Fy: float) -> float:
    """|x - x*| + |y - y*| (Definition 2) is at most this; nothing is squared that may overflow or underflow."""
    rx, ry = math.sqrt(mu_x), math.sqrt(mu_y)
    return math.hypot(1.0 / rx, 1.0 / ry) * math.hypot(Fx / rx, Fy / ry)


def gap_bound(mu_x: float, mu_y: float, Fx: float, Fy: float) -> float:
    """max_y f(x, .) - min_x f(., y), the duality gap, is at most this."""
    return 0.5 * weighted_bound(mu_x, mu_y, Fx, Fy)


def start_bound(mu_x: float, mu_y: float, Fx: float, Fy: float) -> float:
    """|x - x*|^2 + |y - y*|^2 is at most this: a proven stand-in for C_0, which the paper's schedules need."""
    return weighted_bound(mu_x, mu_y, Fx, Fy) / min(mu_x, mu_y)
