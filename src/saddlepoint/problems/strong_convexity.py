"""Refusals of problems that are not strongly convex, or not bounded, where a certificate needs it."""

from __future__ import annotations

import math

from saddlepoint.ground.errors import ProblemError
from saddlepoint.problems.saddle import Saddle


def require_strongly_convex(f: Saddle) -> None:
    """Raise a ProblemError if mu of g or of h is 0, so that no distance to the saddle point can be proven."""
    for name, function in (("g", f.g), ("h", f.h)):
        if function.mu == 0.0:
            raise ProblemError(
                f"{name} is not strongly convex (mu = 0), so that no distance to the solution can be proven; give its "
                f"mu if it has one, add a multiple of |.|^2, for example {name} + Quadratic(1e-3), or ask for the "
                "duality gap with gap=1e-6"
            )


def require_bounded(f: Saddle) -> None:
    """Raise a ProblemError if mu of g or of h is 0 and its domain unbounded, so that no duality gap can be proven."""
    for name, function, size in (("g", f.g, f.shape[0]), ("h", f.h, f.shape[1])):
        width = math.inf if function.simple is None else function.simple.diameter_in(size)
        if function.mu == 0.0 and not width < math.inf:
            raise ProblemError(
                f"{name} is not strongly convex (mu = 0) and its variables are not bounded, so that no duality gap can "
                f"be proven; bound them, for example {name} + Box(-1e3, 1e3), or add a multiple of |.|^2, for example "
                f"{name} + Quadratic(1e-3)"
            )
