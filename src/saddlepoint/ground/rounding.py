"""Bounds on errors of floating-point arithmetic, for any order of summation.

One operation ``+ - * /`` or a square root has a relative error of at most eps/2, half the spacing of the numbers. All
bounds use eps instead. The factor of two allows for the rounding of the bounds themselves, whose relative error is far
below 1/2: they are short formulas with positive terms, and ``gamma`` is infinite for sums so long that it would not be.
The assumption on libraries is ``ELEMENTARY``.

Reference: N. J. Higham, Accuracy and Stability of Numerical Algorithms, 2nd edition, SIAM 2002, sections 2.2 and 3.1.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from saddlepoint.ground.arrays import Array, namespace, smallest_of, space_of
from saddlepoint.ground.elementwise import choose

# Assumed of exp, log, tanh and the logistic function of NumPy, SciPy, PyTorch, JAX and CuPy: relative error in units of
# eps, beside an absolute error of the smallest normal number.
ELEMENTARY = 4.0

LONGEST = 0.125  # most n eps for which a sum of n terms is bounded


def gamma(n: int, eps: float) -> float:
    """A bound on the error of a sum of n products, relative to the sum of their absolute values, in any order.

    It is infinite if n eps exceeds ``LONGEST``.

    Example:
        >>> from saddlepoint.ground.rounding import gamma
        >>> gamma(100, 2.0**-52) < 2.3e-14
        True
    """
    return n * eps / (1.0 - n * eps) if n * eps <= LONGEST else math.inf


def underflow(x: Array, operations: int = 1) -> Array:
    """What this number of operations can lose by underflow: nothing where x is zero, because 0 times anything is 0."""
    if namespace(x).__name__ == "sharded":  # comparing entries would cost a round
        return (operations * smallest_of(x)) * ones_like(x)
    nothing = 0.0 * x
    lost: Array = choose(x != 0.0, nothing + operations * smallest_of(x), nothing)
    return lost


def flushed(x: Array) -> float:
    """What a sum can lose: nothing with NumPy, but other libraries may replace subnormal results by zero."""
    return 0.0 if isinstance(x, np.ndarray) else smallest_of(x)


def ones_like(x: Array) -> Array:
    """A vector of ones that is kept like x; NaN where x is not finite."""
    if namespace(x).__name__ == "sharded":
        return space_of(x).full(x.shape[0], 1.0)
    return 0.0 * x + 1.0


def nearest_power_of_two(numbers: Any) -> Any:
    """The powers of two that are nearest to positive numbers on a logarithmic scale: products with them are exact."""
    return np.exp2(np.round(np.log2(numbers)))


def is_power_of_two(number: float) -> bool:
    """Whether products with the number are exact, up to overflow and underflow."""
    return math.frexp(number)[0] in (0.5, -0.5)
