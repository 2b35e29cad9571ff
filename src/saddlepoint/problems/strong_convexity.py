"""Refusals of problems that are not strongly convex, or not bounded, where a certificate needs it."""

from __future__ import annotations

import math

from saddlepoint.ground.errors import ProblemError
from saddlepoint.problems.one_sided import is_one_sided, obstacle
from saddlepoint.problems.saddle import Saddle


def require_distance(f: Saddle) -> None:
    """Raise a ProblemError if mu of g or of h is 0 and no distance to the saddle point can be proven."""
    if f.one_sided is None:
        require_strongly_convex(f)


def require_strongly_convex(f: Saddle) -> None:
    """Raise a ProblemError if mu of g or of h is 0."""
    for name, function in (("g", f.g), ("h", f.h)):
        if function.mu == 0.0:
            nothing = f"{name} is not strongly convex (mu = 0), so that no distance to the solution can be proven"
            remedy = f"give its mu if it has one, add a multiple of |.|^2, for example {name} + Quadratic(1e-3)"
            why = obstacle(f) if is_one_sided(f) else ""
            if why:
                other = "h" if name == "g" else "g"
                raise ProblemError(
                    f"{nothing}; {remedy}, or see to it that A and the L of {other} allow a proof: {why}"
                )
            raise ProblemError(f"{nothing}; {remedy}, or ask for the duality gap with gap=1e-6")


def require_bounded(f: Saddle) -> None:
    """Raise a ProblemError if mu of g or of h is 0 and its domain unbounded, so that no duality gap can be proven."""
    for name, function, size in (("g", f.g, f.shape[0]), ("h", f.h, f.shape[1])):
        width = math.inf if function.simple is None else function.simple.diameter_in(size)
        if function.mu == 0.0 and not width < math.inf:
            instead = ", or ask for a distance with tol=1e-6" if f.one_sided is not None else ""
            raise ProblemError(
                f"{name} is not strongly convex (mu = 0) and its variables are not bounded, so that no duality gap can "
                f"be proven; bound them, for example {name} + Box(-1e3, 1e3), or add a multiple of |.|^2, for example "
                f"{name} + Quadratic(1e-3){instead}"
            )
