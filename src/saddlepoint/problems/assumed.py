"""What certificates rest on beside the arithmetic of a query, in sentences."""

from __future__ import annotations

import math

from saddlepoint.ground.rounding import ELEMENTARY
from saddlepoint.parts.coupling import Coupling
from saddlepoint.parts.functions.accuracy import StatedBounds
from saddlepoint.parts.functions.smooth import Smooth
from saddlepoint.theory.certificate import NOT_EXAMINED

# Such gradients can be the exact ones of another function, so that gradients alone show nothing.
SHARED = (
    " An error that gradients at all points have in common, as with forward differences of values (half a step times "
    "the curvature), is not seen in them: it is taken to be 0, and is measured where value= is given."
)
TERMS_UNEXAMINED = f"The prox and the value of simple terms that the caller wrote were {NOT_EXAMINED}."


def given_mu(name: str, f: Smooth) -> str:
    """The beginning of a sentence about the mu of a function whose constants are claims of the caller."""
    if math.isnan(f.mu):
        return f"The strong convexity mu of {name} is unknown"
    if f.has_observed_mu:
        return f"The strong convexity mu of {name} is {f.mu:.6g}, by the curvatures that refuted the larger one given"
    return f"The strong convexity mu of {name} is {f.mu:.6g}, as given"


def unexamined_claims(g: Smooth, h: Smooth, A: Coupling) -> tuple[str, ...]:
    """What certificates take from the caller if nothing is examined, in sentences."""
    found = [f"{given_mu(name, f)}; it was {NOT_EXAMINED}." for name, f in (("g", g), ("h", h)) if not f.trusted]
    if not A.trusted:
        found.append(f"A.T is the transpose of A; this was {NOT_EXAMINED}.")
    if any(f.simple is not None and not f.simple.structured for f in (g, h)):
        found.append(TERMS_UNEXAMINED)
    return tuple(found)


def assumed_of_arithmetic(g: Smooth, h: Smooth, A: Coupling) -> tuple[str, ...]:
    """What certificates assume about how gradients and products are computed, in sentences."""
    found = []
    for name, f in (("g", g), ("h", h)):
        if math.isnan(f.accuracy):
            parts = "" if f.rounding is None else " and the errors that are stated or proven of its parts"
            found.append(
                f"The gradient of {name} is computed to within two units of rounding of its length plus L times the "
                f"length of the point, apart from the noise that is found in it{parts}."
                + ("" if f.trusted or f.value is not None else SHARED)
            )
        elif f.accuracy > 0.0 or isinstance(f.rounding, StatedBounds):
            found.append(f"The gradient of {name} is as accurate as was stated.")
        elif f.trusted and not f.quadratic:
            found.append(
                f"The functions exp, log and tanh in the gradient of {name} err by at most {ELEMENTARY:g} eps."
            )
    for name, f in (("g", g), ("h", h)):
        if f.simple is not None and not f.simple.structured:
            found.append(f"The simple term of {name} is convex, and its prox and its value are as given.")
            if f.simple.accuracy > 0.0:
                found.append(
                    f"The prox of the simple term of {name} errs by at most {f.simple.accuracy:g} of the lengths of "
                    "its argument and its answer, as stated; the duality gap is that of the exact prox."
                )
        if f.simple is not None and f.proven_L is None:
            found.append(
                f"The smoothness L of {name} is {f.L:.6g}, by which its support and rounding to its domain are counted."
            )
    if not A.has_entries:
        found.append(
            "Products with A and with its transpose are right to two units of rounding of |A| |y|, apart from the "
            "errors that are found in them."
        )
    return tuple(found)
