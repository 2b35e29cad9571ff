r"""What the conditions of Karush, Kuhn and Tucker prove about a minimiser subject to linear equations.

Let g be mu-strongly convex and L-smooth, and w* the minimiser of g(w) subject to E w = e, with multipliers y*:
grad g(w*) + E'y* = 0. For any w and y, with r = grad g(w) + E'y, q = E w - e, d = |w - w*| and sigma, the smallest
singular value of E,

    mu d^2  <=  <grad g(w) - grad g(w*), w - w*>  =  <r, w - w*> - <y - y*, q>  <=  |r| d + |q| |y - y*|,
    sigma |y - y*|  <=  |E'(y - y*)|  <=  L d + |r|,

so d is at most the larger root of mu d^2 - (|r| + L |q|/sigma) d - |q| |r|/sigma = 0.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from saddlepoint.theory.certificate import LEAST, UP, Certificate


class EquationsCertificate(NamedTuple):
    """A proof about a point w that is to minimise a function subject to linear equations E w = e.

    Attributes:
        distance: bounds |w - w*|; it allows for the rounding of the query.
        rounding: the part of ``distance`` that allows for rounding.
        stationarity: |grad g(w) + E'y|, as computed.
        feasibility: |E w - e|, as computed.
        assumes: sentences that say what the proof rests on beside arithmetic.
    """

    distance: float
    rounding: float
    stationarity: float
    feasibility: float
    assumes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"EquationsCertificate(|w-w*| <= {self.distance:.3g})"


def equations_certificate(
    mu: float, L: float, sigma: float, stationarity: float, feasibility: float, slack_r: float, slack_q: float
) -> EquationsCertificate:
    """The certificate of a point, from the lengths of r and q and bounds on their rounding errors."""
    return EquationsCertificate(
        equations_bound(mu, L, sigma, stationarity + slack_r, feasibility + slack_q),
        equations_bound(mu, L, sigma, slack_r, slack_q),
        stationarity,
        feasibility,
    )


def equations_bound(mu: float, L: float, sigma: float, r: float, q: float) -> float:
    """|w - w*| is at most this, for |grad g(w) + E'y| = r and |E w - e| = q; infinite where nothing can be proven.

    With a = (r + L q/sigma)/(2 mu) and b^2 = q r/(sigma mu), the root is a + sqrt(a^2 + b^2). It is rounded up, and
    neither r nor q is squared.
    """
    if not math.isfinite(mu + L + sigma + r + q) or min(mu, sigma) <= 0.0:
        return math.inf
    a = 0.5 * (r / mu + L / mu * q / sigma)
    b = math.sqrt(r) / math.sqrt(mu) * (math.sqrt(q) / math.sqrt(sigma))
    return UP * (a + math.hypot(a, b)) + LEAST * (r + q > 0.0)


def bounded_multipliers_bound(mu: float, r: float, q: float, B: float) -> float:
    """|w - w*| is at most this, for the r and q of ``equations_bound`` and multipliers with |y - y*| <= B.

    It is the larger root of mu d^2 - r d - q B = 0, rounded up.
    """
    if not math.isfinite(mu + r + q + B) or mu <= 0.0:
        return math.inf
    a, b = 0.5 * (r / mu), math.sqrt(q) / math.sqrt(mu) * math.sqrt(B)
    return UP * (a + math.hypot(a, b)) + LEAST * (r + q > 0.0)


def equations_distances(mu: float, L: float, sigma: float, Fx: float, Fy: float) -> tuple[float, float]:
    r"""Bounds on |x - x*| and |y - y*| for min_x max_y g(x) + <x, A y> - h(y), where h is convex and need not be more.

    g is mu-strongly convex and L-smooth, |A y| >= sigma |y| for all y, Fx = |grad g(x) + A y| and
    Fy = |grad h(y) - A'x|. With h(y) = b'y it is min g(x) subject to A'x = b. Infinite where nothing is proven.

    Proof: Write dx = x - x*, dy = y - y* and v = |grad g(x) - grad g(x*)|. With k1 = mu L/(mu + L) and k2 = 1/(mu + L),
    <grad g(x) - grad g(x*), dx> >= k1 |dx|^2 + k2 v^2; h is convex, so that k1 |dx|^2 + k2 v^2 <= Fx |dx| + Fy |dy|.
    A dy is the residual of x minus the difference of the gradients, hence sigma |dy| <= Fx + v. Completing the squares,

        k1 (|dx| - Fx/(2 k1))^2 + k2 (v - Fy/(2 k2 sigma))^2 <= rho^2 = Fx^2/(4 k1) + Fy^2/(4 k2 sigma^2) + Fx Fy/sigma,

    and so |dx| <= Fx/(2 k1) + rho/sqrt(k1) and sigma |dy| <= Fx + Fy/(2 k2 sigma) + rho/sqrt(k2).

    Example:
        >>> from saddlepoint.theory import equations_distances
        >>> tuple(round(bound, 9) for bound in equations_distances(1.0, 1.0, 1.0, 1e-3, 0.0))
        (0.002, 0.002)
    """
    if not math.isfinite(mu + L + sigma + Fx + Fy) or min(mu, sigma) <= 0.0 or mu > L:
        return math.inf, math.inf
    # Everything is written in Fx and Fy/sigma without squares of them, which could underflow or overflow.
    k1, k2 = mu / (1.0 + mu / L), 1.0 / (mu + L)
    q = Fy / sigma
    parts = math.hypot(Fx / (2.0 * math.sqrt(k1)), q / (2.0 * math.sqrt(k2)))
    rho = math.hypot(parts, math.sqrt(Fx) * math.sqrt(q))
    most = 4.0 * LEAST * (Fx + Fy > 0.0)
    dx = UP * UP * (Fx / (2.0 * k1) + rho / math.sqrt(k1)) + most
    dy = UP * UP * (Fx + q / (2.0 * k2) + rho / math.sqrt(k2) + most) / sigma
    return dx, dy * UP + most


def equations_saddle_certificate(
    mu: float,
    L: float,
    sigma: float,
    Fx: float,
    Fy: float,
    slack_x: float,
    slack_y: float,
    noise_x: float = 0.0,
    noise_y: float = 0.0,
) -> Certificate:
    """The certificate of a point of the saddle problem of ``equations_distances``; nothing is proven about its gap.

    Args:
        mu, L, sigma, Fx, Fy: as there, with the residuals as computed.
        slack_x, slack_y: bounds on the rounding errors of the two residuals.
        noise_x, noise_y: bounds on the noise of the two gradients.
    """
    more_x, more_y = slack_x + noise_x, slack_y + noise_y
    dx, dy = equations_distances(mu, L, sigma, (Fx + more_x) * UP, (Fy + more_y) * UP)
    rounding = sum(equations_distances(mu, L, sigma, more_x * UP, more_y * UP))
    return Certificate(math.nextafter(dx + dy, math.inf), dx, dy, math.inf, rounding, Fx, Fy, noise_x, noise_y)
