r"""What a simple term adds to the certificate of a point.

Let w = grad g(x) + A y, and let p be the simple term of x. For every s where the conjugate p* is finite,

    p(x') >= <s, x'> - p*(s)   for all x',

and g is mu-strongly convex, so that for every x in the domain of p

    f(x, y) - min_x' f(x', y)  <=  max_d -<w + s, d> - mu/2 |d|^2  +  p(x) + p*(s) - <s, x>
                               =   |w + s|^2/(2 mu)  +  (p(x) + p*(s) - <s, x>).

The last bracket is the Fenchel gap of x and s, which is never negative. The s with the smallest sum is
s = mu (x - xh) - w with xh = prox_{p/mu}(x - w/mu); any other one proves something, too. So the residual w + s takes
the place of w in the certificate, and the Fenchel gap is added to the duality gap. With s in the subdifferential of p
at x the Fenchel gap is 0. Without strong convexity, -<w + s, d> is at most |w + s| times the diameter of the domain.

A point that is outside the domain by a distance e, because of rounding, stands for the nearest point of the domain: the
gradient there differs by at most L e, and the product by at most that of |A| with the vector of entries e. A point that
is in the domain, but next to a bound or a sphere, may be taken for the point on it, because distances are bounded by
the square root of the Fenchel gap. The duality gap is that of the stored point: it rests on the Fenchel gap there.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from saddlepoint.ground.arrays import Array, eps_of
from saddlepoint.ground.linalg import norm
from saddlepoint.parts.functions.smooth import Smooth
from saddlepoint.parts.simple.base import Pairing


class Term(NamedTuple):
    """What the simple term of one player adds to a certificate.

    Attributes:
        slope: the vector s; None without a simple term.
        excess: a bound on the Fenchel gap, at a point of the domain that is at most ``outside`` away.
        error: a bound on the error of s: the proof is about an exact vector near it.
        outside: a bound on the distance from the point to that point of the domain.
        diameter: a bound on the diameter of the domain.
        excess_at_x: a bound on the Fenchel gap at the stored point itself, on which the duality gap rests; where the
            point is not in the domain, at the point of the domain that the term takes in its place.
        outside_sum: a bound on the sum of the absolute differences of the coordinates of these two points.
    """

    slope: Array | None
    excess: float
    error: float
    outside: float
    diameter: float
    excess_at_x: float
    outside_sum: float = math.inf


NO_TERM = Term(None, 0.0, 0.0, 0.0, math.inf, 0.0)


def term_at(f: Smooth, x: Array, w: Array) -> Term:
    """What the simple term of f adds to a certificate at x, where the field without it is w."""
    p = f.simple
    if p is None:
        return NO_TERM
    diameter = p.diameter_in(int(x.shape[0]))
    if f.mu == 0.0:
        return _term(p.pairing(x, -1.0 * w), diameter)
    strength = f.L if math.isnan(f.mu) else f.mu
    xh = p.prox(x - (1.0 / strength) * w, 1.0 / strength)
    s = strength * (x - xh) - w
    if p.structured and not math.isnan(f.mu):
        return _term(p.pairing_at(x, xh, s), diameter)
    # A prox that the caller wrote: s is a subgradient at xh, up to the rounding of the point where the prox was taken.
    # If it is less accurate, values at xh say nothing about those at the exact prox: there may be a kink between them.
    size = norm(w) + strength * (norm(x) + norm(xh))
    excess = p.bregman(x, xh, s) if p.beyond_rounding == 0.0 else math.inf
    return Term(s, excess, (8.0 * eps_of(x) + p.beyond_rounding) * size, p.outside(x), diameter, excess)


def _term(pair: Pairing, diameter: float) -> Term:
    return Term(pair.s, pair.gap, pair.off_s, pair.off_x, diameter, pair.gap_at_x, pair.off_x_sum)


def subgradient(f: Smooth, x: Array, w: Array) -> Array:
    """The vector that the simple term adds to the field w at x, so that the sum is small near a solution."""
    slope = term_at(f, x, w).slope
    return 0.0 * w if slope is None else slope
