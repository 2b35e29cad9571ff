"""Examination of a prox that the caller wrote: one call before a run, and more at the point that the run returns.

Ready-made terms are not examined: they are correct by construction.
"""

from __future__ import annotations

import math

import numpy as np

from saddlepoint.ground.arrays import Array, copied, space_of
from saddlepoint.ground.errors import AssumptionError, ProblemError
from saddlepoint.ground.linalg import norm
from saddlepoint.ground.rounding import ones_like
from saddlepoint.ground.validation import short_repr
from saddlepoint.parts.functions.probes import is_reused, length_scale
from saddlepoint.parts.functions.smooth import Smooth
from saddlepoint.parts.simple.prox_inequalities import refuted_prox, wrong_array
from saddlepoint.theory.certificate import NOTHING_PROVEN

AROUND = 1.0, 1e-3, 10.0  # distances of random points from the point, in units of its length
STEPS = 0.1, 1.0, 10.0  # steps t, in units of 1/L
TOWARDS_ZERO = 0.5, 0.1  # multiples of the point: kinks of norms are at zero


def has_own_term(f: Smooth) -> bool:
    """Whether the function has a simple term that the caller wrote."""
    return f.simple is not None and not f.simple.structured


def check_first_prox(name: str, f: Smooth, point: Array) -> None:
    """Call prox and project of a term that the caller wrote once; a ProblemError if an answer is no point of its kind.

    Args:
        name: "g" or "h".
        f: the function.
        point: a point of the problem; the functions are given copies.
    """
    if not has_own_term(f):
        return
    assert f.simple is not None
    for what, function in (("prox", lambda v: f.simple.prox(v, 1.0)), ("project", f.simple.project)):
        given = copied(point)
        answer = function(given)
        wrong = wrong_array(given, point, answer, what)
        if wrong:
            raise ProblemError(f"the simple term of {name}: {wrong}")
        other = ones_like(point) + 2.0 * point
        if is_reused(function(other), answer, other):
            raise ProblemError(f"the simple term of {name}: {what} returned the same array twice; return a new one")


def check_own_prox(name: str, f: Smooth, point: Array) -> None:
    """Call the prox of a function g or h of the caller once; a ProblemError if its answer is no point of its kind.

    Args:
        name: "g" or "h".
        f: the function.
        point: a point of the problem; the prox is given a copy.
    """
    if f.trusted or not f.has_prox or f.simple is not None:
        return
    found = f.prox(copied(point), 1.0)
    if getattr(found, "shape", None) != point.shape:
        raise ProblemError(
            f"the prox of {name} returned {short_repr(found)} for a point of shape {tuple(point.shape)}; expected an "
            "array of the same shape"
        )


def inexact_terms(g: Smooth, h: Smooth) -> tuple[str, ...]:
    """A sentence for each prox that the caller wrote in which unannounced errors beyond rounding were seen."""
    return tuple(
        f"the prox of the simple term of {name} seems inexact: errors of about {f.simple.inexact:.1g} of the lengths "
        f"of its argument and its answer were estimated, so that {NOTHING_PROVEN}; say what it errs by at most with "
        "accuracy= of sp.Simple, or make it exact"
        for name, f in (("g", g), ("h", h))
        if f.simple is not None and math.isnan(f.simple.accuracy) and f.simple.inexact > 0.0
    )


def examine_prox(name: str, f: Smooth, x: Array, w: Array) -> bool:
    """Raise an AssumptionError if a prox that the caller wrote is not that of a convex function, or not of its value.

    Returns whether errors of the prox were measured that are larger than those known before.

    Args:
        name: "g" or "h".
        f: the function.
        x: the point around which the prox is examined.
        w: the field there, without the subgradient of the term.
    """
    assert f.simple is not None
    before = f.simple.inexact
    wrong = wrong_prox(f, x, w)
    if wrong:
        raise AssumptionError(name, "prox", math.nan, math.nan, f"the simple term of {name}: {wrong}")
    return f.simple.inexact > before


def wrong_prox(f: Smooth, x: Array, w: Array, seed: int = 0) -> str | None:
    """What is wrong with a prox that the caller wrote, around x, in a sentence; None if nothing was found."""
    if not has_own_term(f):
        return None
    assert f.simple is not None
    unit = f.L if 0.0 < f.L < math.inf else 1.0
    times = [factor / unit for factor in STEPS]
    if f.mu > 0.0:
        times.append(1.0 / f.mu)
    length, rng, space = length_scale(x, w, unit), np.random.default_rng(seed), space_of(x)
    points = [x, x - (1.0 / unit) * w, *(share * x for share in TOWARDS_ZERO)]
    for share in AROUND:
        step = space.cast(rng.standard_normal(int(x.shape[0])))
        points += [x + (sign * share * length / norm(step)) * step for sign in (1.0, -1.0)]
    with np.errstate(all="ignore"):
        return refuted_prox(f.simple, points, times)
