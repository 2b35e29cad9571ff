"""The errors for claims about a problem that gradients refute: each says what was given, what was seen, what to do."""

from __future__ import annotations

from saddlepoint.ground.errors import SLIGHT, AssumptionError
from saddlepoint.theory.smoothness import observed_L, observed_mu


def mu_too_large(name: str, mu: float, seen: float, low: float) -> AssumptionError:
    """The error for a mu that gradients refute: it is at most ``seen``, and perhaps no more than ``low``."""
    least = low if 0.0 < low < seen else seen
    if seen <= 0.0:
        text = f"{name} is not convex: mu = {mu:.6g} was given, but two gradients show mu <= {seen:.6g}; "
        return AssumptionError(
            name, "mu", mu, seen, f"{text}check the gradient of {name} (sp.check examines the problem)"
        )
    return AssumptionError(
        name,
        "mu",
        mu,
        seen,
        f"mu of {name} is too large: mu = {mu:.6g} was given, but two gradients show mu <= {seen:.6g}; give a smaller "
        f"one: the smallest curvature found so far is {least:.6g}, and the true mu may be smaller still",
        (0.999 if least >= (1.0 - SLIGHT) * mu else 0.5) * least,
    )


def L_too_small(name: str, L: float, seen: float, high: float) -> AssumptionError:
    """The error for an L that gradients refute: it is at least ``seen``, and perhaps no less than ``high``."""
    most = max(seen, high)
    return AssumptionError(
        name,
        "L",
        L,
        seen,
        f"L of {name} is too small: L = {L:.6g} was given, but two gradients show L >= {seen:.6g}; give a larger one "
        f"(the largest curvature found so far is {most:.6g}, and the true L may be larger), "
        "or L=None to have it estimated",
        (1.001 if most <= (1.0 + SLIGHT) * L else 2.0) * most,
    )


def not_both(name: str, mu: float, L: float, cross: float, dx2: float, dp2: float) -> AssumptionError:
    """The error for two gradients that refute mu or L, but do not show which of them is wrong."""
    seen, largest = observed_L(cross, dx2, dp2, mu), observed_mu(cross, dx2, dp2, L)
    return AssumptionError(
        name,
        "L",
        L,
        seen,
        f"mu = {mu:.6g} and L = {L:.6g} of {name} cannot both hold: two gradients show L >= {seen:.6g}, "
        f"or else mu <= {largest:.6g}; give a larger L or a smaller mu, or check the gradient of {name}",
        (1.001 if seen <= (1.0 + SLIGHT) * L else 2.0) * seen,
    )


def no_gradient(name: str, skew: float, high: float) -> AssumptionError:
    """The error for a gradient whose Jacobian is not symmetric."""
    return _wrong_gradient(
        name,
        skew,
        f"the gradient of {name} is not the gradient of any function: its Jacobian J is not symmetric, "
        f"|<J u, v> - <u, J v>| = {skew:.3g} for two unit vectors, beside curvatures up to {high:.3g}, and no function "
        f"with these mu and L can have its sum around a closed polygon; "
        f"check the gradient of {name}, for example the signs of its entries",
    )


def two_answers(name: str, difference: float) -> AssumptionError:
    """The error for two gradients at one point that differ by more than noise."""
    return _wrong_gradient(
        name,
        difference,
        f"the gradient of {name} gave two answers at one point, {difference:.3g} apart; it must depend on the point "
        "alone, return a new array and leave its argument alone",
    )


def other_slope(name: str, wrong: float) -> AssumptionError:
    """The error for a function whose values do not change as its gradient says."""
    return _wrong_gradient(
        name,
        wrong,
        f"the gradient of {name} is not that of its value: along a random line they differ by {wrong:.2g} of the "
        f"gradient; check both (sp.check examines the problem)",
    )


def _wrong_gradient(name: str, by: float, sentence: str) -> AssumptionError:
    """The error for a gradient that is wrong by this number, which should be 0."""
    return AssumptionError(name, "gradient", 0.0, by, sentence)
