"""Rough bounds on the rounding errors of gradients in float64, from the lengths of vectors alone.

They are the bounds on the entries (``product_rounding.py``, ``risk.py``, ``quadratic.py``) with norms in the place of
vectors, and the Frobenius norm F of D in the place of |D|: |D| w is at most F |w| long. A certificate takes them
first, because they need no products and no vectors. They are larger than what they replace, which does not matter
while a residual is far larger than its rounding.

The factors 1.3 and 4 below leave room for gamma, which is at most 1/7, and MORE for everything that is smaller.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from saddlepoint.ground.rounding import gamma
from saddlepoint.parts.coupling import Coupling

EPS = float(np.finfo(np.float64).eps)
NORMAL = float(np.finfo(np.float64).tiny)  # more than an operation can lose by underflow
MORE = 1.01  # factor on a bound, for the rounding of the bound itself and of the one that it replaces


class RoughRisk(NamedTuple):
    """The size of the rounding errors of the gradient D'slope(D x - t) scale + l2 x.

    Attributes:
        F: the Frobenius norm of D; 1 without D.
        across, back: gamma of a product with D, and with D'; 0 without D.
        rows, columns: of D.
        offset: |t|.
        first: the length of the slopes where D x = t.
        curvature: the largest second derivative of the loss.
        units: each slope has an error of at most this many units of rounding of |slope| + curvature, and ``NORMAL``.
        scale, l2: the factors.
    """

    F: float
    across: float
    back: float
    rows: int
    columns: int
    offset: float
    first: float
    curvature: float
    units: float
    scale: float
    l2: float

    def __call__(self, length: float) -> float:
        """The bound where |x| = length."""
        many, few = math.sqrt(self.rows), math.sqrt(self.columns)
        lost = (self.rows + self.columns + 8.0) * NORMAL  # by underflow, in an entry of a product
        r = 1.3 * self.F * length + self.offset
        of_r = 1.3 * self.across * self.F * length + 2.0 * EPS * (r + self.offset) + many * lost
        slope = self.first + self.curvature * r
        of_slope = self.curvature * of_r + self.units * EPS * (slope + self.curvature * many) + 2.0 * many * NORMAL
        of_product = self.scale * (self.F * (1.3 * (self.back * slope + of_slope) + 4.0 * EPS * slope) + few * lost)
        return MORE * (of_product + 4.0 * EPS * self.l2 * length + few * lost)


class RoughQuadratic(NamedTuple):
    """The size of the rounding errors of P x + b.

    Attributes:
        F: the Frobenius norm of P; for a diagonal or a number, its largest entry.
        across: gamma of a product with P.
        skew: the Frobenius norm of P - P'.
        rows: of P.
        offset: the length of b if that is a number for all entries, which may be rounded; 0 if it is a vector.
    """

    F: float
    across: float
    skew: float
    rows: int
    offset: float

    def __call__(self, length: float, size: float) -> float:
        """The bound where |x| = length and |P x + b| = size."""
        lost = math.sqrt(self.rows) * (self.rows + 8.0) * NORMAL
        of_product = (1.3 * self.across * self.F + 0.6 * self.skew) * length
        return MORE * (of_product + EPS * (size + self.offset) + lost)


def gammas(D: Coupling) -> tuple[float, float]:
    """The factors gamma of products with D, and with its transpose."""
    return gamma(D.sum_length + 1, EPS), gamma(D.T.sum_length + 1, EPS)
