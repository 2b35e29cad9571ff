"""Whether the numbers in a checkpoint have caused an exception of the run that continues from it."""

from __future__ import annotations

import traceback

# Packages whose code a step of a method may run. If other code took part in an exception, that code caused it.
OURS = ("saddlepoint", "numpy", "scipy", "array_api_compat", "array_api_strict", "torch", "jax", "jaxlib", "numba")
# Modules of the standard library through which such a step passes.
STANDARD = ("contextlib", "functools", "math", "dataclasses", "typing", "concurrent")


def is_caused_by_file(error: Exception) -> bool:
    """Whether only code of this package and of the libraries below it took part in an exception.

    Then the caller's gradients, callback and method did not raise it, and numbers of the file led to it: a run that
    begins anew has no such exceptions.
    """
    frames = traceback.walk_tb(error.__traceback__)
    names = (str(frame.f_globals.get("__name__", "")).partition(".")[0] for frame, _ in frames)
    return all(name in OURS or name in STANDARD for name in names)
