r"""The certificate of the point after one prox step, from the subgradients that the step yields.

The step is

    x+ = prox_{t p}(v),  v = x - t w,  w = grad g(x) + A y,   and the same for y.

Then s = (v - x+)/t is a subgradient of p at x+, with which the Fenchel gap of the certificate is 0. This needs the prox
alone, so that it serves terms that the caller wrote, also those without a value. Their computed prox is taken to be
wrong by a few units of rounding of v and x+, and by what examinations have measured; the error of s is this number
divided by t. Nothing of the kind is assumed of ready-made terms: what they add at x+ is computed from their structure,
as at any other point.

The duality gap is that of the stored point if p is a constraint: between two points of its domain the Fenchel gap of s
changes by at most |s| times their distance. If p has other values, these change too, by an amount that the prox does
not tell: the duality gap is then proven for the exact prox, up to this change.
"""

from __future__ import annotations

import math

import numpy as np

from saddlepoint.ground.arrays import Array, Space, eps_of
from saddlepoint.ground.linalg import norm
from saddlepoint.parts.functions.smooth import Smooth
from saddlepoint.parts.simple.bounds import raised
from saddlepoint.problems.prox_check import has_own_term
from saddlepoint.problems.saddle import Saddle
from saddlepoint.problems.terms import NO_TERM, Term
from saddlepoint.theory.certificate import Certificate

Point = tuple[Array, Array]


def prox_step(f: Saddle, x: Array, y: Array, space: Space) -> tuple[Point, tuple[Term, Term]]:
    """The point after one prox step from (x, y), and what its subgradients add to a certificate; one query.

    Args:
        f: the problem.
        x, y: a point.
        space: the space whose dtype the new point has; the step is taken in float64.
    """
    at = f.gradients_and_products(x, y)
    with np.errstate(all="ignore"), f.space.exact_products():
        t_x, t_y = _steps(f)
        x, of_x = _step(f.g, at.x, at.gx + at.Ay, t_x, space.of_x)
        y, of_y = _step(f.h, at.y, at.hy - at.Atx, t_y, space.of_y)
    return (x, y), (of_x, of_y)


def certificate_after(f: Saddle, point: Point, terms: tuple[Term, Term]) -> Certificate:
    """The certificate of a point after a prox step.

    Of a term p that the caller wrote, the subgradient of the step is used where it proves more than values of p.
    """
    at = f.with_terms(f.gradients_and_products(*point))
    stepped = at._replace(
        of_x=terms[0] if has_own_term(f.g) else at.of_x, of_y=terms[1] if has_own_term(f.h) else at.of_y
    )
    found = [f.certificate_from(f.residuals(query), query) for query in (at, stepped)]
    return min(found, key=lambda proof: (proof.distance, proof.gap))


def _steps(f: Saddle) -> tuple[float, float]:
    """Steps of x and y for which a step makes no residual much larger."""
    strong = f.mu_x > 0.0 and f.mu_y > 0.0
    ratio = math.sqrt(f.mu_x) / math.sqrt(f.mu_y) if strong else 1.0
    reach_x, reach_y = f.L_x + f.norm * ratio, f.L_y + f.norm / ratio
    return 1.0 / reach_x if reach_x > 0.0 else 1.0, 1.0 / reach_y if reach_y > 0.0 else 1.0


def _step(f: Smooth, x: Array, w: Array, t: float, space: Space) -> tuple[Array, Term]:
    """The point after the step, and what its subgradient adds to a certificate; x itself without a simple term."""
    if f.simple is None:
        return space.cast(x), NO_TERM
    v = x - t * w
    after = f.simple.prox(v, t)
    error = f.simple.prox_error(v, after)
    s, rounded = (1.0 / t) * (v - after), space.cast(after)
    away = error if rounded.dtype == after.dtype else error + 2.0 * eps_of(rounded) * norm(after)
    n = int(x.shape[0])
    excess = away * (raised(norm(s), n + 4) + error / t)
    return rounded, Term(s, 0.0, error / t, away, f.simple.diameter_in(n), excess)
