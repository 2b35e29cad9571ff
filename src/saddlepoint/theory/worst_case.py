r"""What a gradient and the values of several functions prove about the minimiser of their maximum.

Let R_1, ..., R_k be convex, r mu-strongly convex, P(w) = r(w) + max_g R_g(w), w* its minimiser, q in the simplex, and
F = r + sum_g q_g R_g. With d = |w - w*|,

    P(w)  >=  P(w*) + mu/2 d^2,        P(w*)  >=  F(w*)  >=  F(w) - |grad F(w)| d + mu/2 d^2,

so mu d^2 <= |grad F(w)| d + s, where s = P(w) - F(w) = sum_g q_g (max_h R_h(w) - R_g(w)) >= 0. The second line also
bounds the minimum from below, P(w) - P(w*) <= s + |grad F(w)|^2/(2 mu).
"""

from __future__ import annotations

import math
from typing import NamedTuple

from saddlepoint.theory.certificate import LEAST, UP


class WorstCaseCertificate(NamedTuple):
    """A proof about a point w that is to minimise the largest of several risks.

    Attributes:
        distance: bounds |w - w*|; it allows for rounding.
        gap: bounds the objective at w minus its minimum; it allows for rounding.
        assumes: sentences that say what the proof rests on beside arithmetic.
    """

    distance: float
    gap: float
    assumes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"WorstCaseCertificate(|w-w*| <= {self.distance:.3g}, gap <= {self.gap:.3g})"


def worst_case_certificate(mu: float, residual: float, slack: float) -> WorstCaseCertificate:
    """The certificate from |grad F(w)| and s; infinite where nothing can be proven.

    Example:
        >>> from saddlepoint.theory.worst_case import worst_case_certificate
        >>> worst_case_certificate(2.0, 0.0, 8.0)
        WorstCaseCertificate(|w-w*| <= 2, gap <= 8)
    """
    if not math.isfinite(mu + residual + slack) or mu <= 0.0:
        return WorstCaseCertificate(math.inf, math.inf)
    a, b = 0.5 * residual / mu, math.sqrt(slack) / math.sqrt(mu)
    least = LEAST * (residual + slack > 0.0)
    return WorstCaseCertificate(UP * (a + math.hypot(a, b)) + least, UP * (slack + a * residual) + least)
