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

from saddlepoint.theory.certificate import LEAST, UP


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
