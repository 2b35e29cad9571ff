"""What `solve` checks before a run, and what it learns there: the method, the start, and what a call costs."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

from saddlepoint.ground.arrays import Array, common_space, copied
from saddlepoint.ground.errors import ProblemError
from saddlepoint.ground.validation import as_number, as_vector, short_repr
from saddlepoint.methods.base import Method
from saddlepoint.methods.needs import check_needs
from saddlepoint.problems.first_call import check_gradient
from saddlepoint.problems.saddle import Saddle

REACTIONS = ("raise", "adapt")  # to a constant that the run refutes
EXTREME = 1e152  # condition numbers beyond this have squares that are no floating-point numbers


def as_path(path: Any, name: str) -> Path:
    """A file name, in a folder that exists."""
    if not isinstance(path, str | os.PathLike) or not isinstance(os.fspath(path), str) or "\0" in os.fspath(path):
        raise ProblemError(f"{name} is {short_repr(path)}; expected a file name")
    found = Path(os.path.realpath(path))
    try:
        if found.is_dir():
            raise ProblemError(f"{name} is {found}, which is a folder; expected a file name")
        if not found.parent.is_dir():
            raise ProblemError(f"{name} is in the folder {found.parent}, which does not exist; make it first")
    except OSError as error:
        raise ProblemError(f"{name} is {short_repr(str(path))}: {error.strerror or error}") from None
    return found


def as_seconds(value: Any, name: str) -> float:
    """Seconds between two events, 0 for as often as can be."""
    number = as_number(value, name, "seconds, 0 or more")
    if not number >= 0.0:
        raise ProblemError(f"{name} is {number}; expected seconds, 0 or more")
    return number


def check_reaction(on_violation: Any) -> bool:
    """Whether a refuted constant is to be corrected."""
    if on_violation not in REACTIONS:
        raise ProblemError(f"on_violation is {short_repr(on_violation)}; expected one of {', '.join(REACTIONS)}")
    return bool(on_violation == "adapt")


def check_callback(callback: Any) -> None:
    """Refuse what cannot be called."""
    if callback is not None and not callable(callback):
        raise ProblemError(f"callback is {short_repr(callback)}; expected a function of a Result")


def start(f: Saddle, x0: Any, y0: Any) -> tuple[Array, Array]:
    """The starting point: as given, in the problem's dtype, or zero."""
    m, n = f.shape
    starts = [None if given is None else as_vector(given, name, size) for given, name, size in
              ((x0, "x0", m), (y0, "y0", n))]  # fmt: skip
    for name, point in zip(("x0", "y0"), starts, strict=True):
        common_space({"the problem": f.space, name: point})
    x, y = (space.zeros(size) if point is None else space.placed(copied(point))
            for space, point, size in zip((f.space.of_x, f.space.of_y), starts, (m, n), strict=True))  # fmt: skip
    return x, y


def check_oracle(f: Saddle, x: Array, y: Array) -> float:
    """Call each gradient once at the start, and raise ProblemError if something is wrong with it.

    Returns the seconds that the calls took.
    """
    return check_gradient("g", f.g, x, f.space.of_x) + check_gradient("h", f.h, y, f.space.of_y)


def check_numbers(f: Saddle) -> None:
    """Refuse a problem with which no arithmetic can do anything."""
    for name, number in zip(("L_x/mu_x", "L_y/mu_y", "|A|/sqrt(mu_x mu_y)"), f.numbers, strict=True):
        if number > EXTREME:
            raise ProblemError(
                f"{name} is {number:.3g}, and no method can do anything with that in floating-point numbers; "
                "give a larger mu, or add a multiple of |.|^2 to g or h"
            )


def measured_costs(f: Saddle, x: Array, y: Array, gradients: float) -> dict[str, float]:
    """What a gradient and a product cost, in seconds."""
    began = time.perf_counter()
    f.A.both(x, y)
    products = max(time.perf_counter() - began, 1e-6)
    return {"grad_g": gradients, "grad_h": gradients, "A": products, "At": products}


def check_method(f: Saddle, method: Method) -> None:
    """Refuse a method that needs what the problem has not."""
    check_needs(method, f)
