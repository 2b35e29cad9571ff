"""Comparing what a method needs with what a problem has. No other module does this.

A method says what it needs in its attribute ``needs``; ``Needs`` in ``methods.base`` lists what can be asked for.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from saddlepoint.ground.errors import ProblemError
from saddlepoint.methods.base import Method
from saddlepoint.methods.interior_point import has_barrier
from saddlepoint.methods.registry import make_method, method_names
from saddlepoint.problems.saddle import Saddle

WELL_KNOWN = ("lpd-gs", "dippa", "krylov")  # methods that an error names before all others


class Missing(NamedTuple):
    """One thing that a method needs and a problem does not have, in words."""

    need: str
    reason: str
    remedy: str  # what the caller can do about it; empty if nothing


def check_needs(method: Method, f: Saddle) -> None:
    """Raise a ProblemError if the method needs something that the problem does not have."""
    found = missing(method, f)
    if found:
        need, reason, remedy = found[0]
        instead = f"use a method that does without: {_without(f)}"
        remedy = f"{remedy}, or {instead}" if remedy else instead
        raise ProblemError(f"{method.label} needs {need}, {reason}; {remedy}")


def missing(method: Method, f: Saddle) -> tuple[Missing, ...]:
    """What the method needs and the problem does not have; empty if the method can run on the problem."""
    needs, found = method.needs, list[Missing]()
    functions = (("g", f.g, needs.prox_g), ("h", f.h, needs.prox_h))
    if needs.matrix and f.space.of_x.is_sharded:
        reason = f"but A is in {f.A.runtime.shards} shards"
        found.append(Missing("A as one NumPy or SciPy matrix, which it factorises", reason, ""))
    elif needs.matrix and not f.space.is_numpy:
        found.append(Missing("A as one NumPy or SciPy matrix, which it factorises", f"but A is {f.space}", ""))
    for name, function, prox in functions:
        kind = type(function).__name__
        if needs.smooth and function.simple is not None:
            reason = f"but {name} has the simple term {function.simple!r}"
            found.append(Missing("g and h without simple terms", reason, ""))
        if needs.barrier and not has_barrier(function.simple):
            reason = f"but {name} has the simple term {function.simple!r}"
            found.append(Missing("simplices or boxes with an interior as simple terms", reason, ""))
        if needs.mu and math.isnan(function.mu):
            remedy = "give mu to Smooth (without it no distance can be certified)"
            found.append(Missing(f"mu of {name}", "which is unknown", remedy))
        if needs.strong and function.mu == 0.0:
            found.append(Missing(f"a positive mu of {name}", "which is 0", ""))
        if needs.quadratic and not function.quadratic:
            remedy = "give quadratic=True to Smooth if it is"
            found.append(Missing("quadratic g and h", f"but {name} ({kind}) is not known to be quadratic", remedy))
        if needs.hessians and function.hessian is None:
            remedy = "give hessian= to Smooth"
            found.append(Missing("the Hessians of g and h", f"but {name} ({kind}) has none", remedy))
        if prox and not needs.prox_apart and function.simple is not None and not function.has_whole_prox:
            reason = f"but the prox of {name} ({kind}) with the simple term {function.simple!r} is not known"
            found.append(Missing(f"the prox of {name}", reason, "give prox_of_sum= to Smooth"))
        elif prox and not function.has_prox and (needs.prox_apart or function.simple is None):
            found.append(Missing(f"the prox of {name}", f"but {name} ({kind}) has none", "give prox= to Smooth"))
    return tuple(found)


def _without(f: Saddle) -> str:
    """The names of all registered methods that can run on the problem, as part of a sentence."""
    suited = [name for name in method_names() if not missing(make_method(name), f)]
    suited.sort(key=lambda name: name not in WELL_KNOWN)  # otherwise they remain in the order of the alphabet
    *first, last = ["auto", *suited]
    return f"{', '.join(first)} or {last}" if first else last
