"""The set of probability vectors: mixed strategies of a matrix game."""

from __future__ import annotations

import math

import numpy as np
from scipy.sparse import csr_array

from saddlepoint.ground.arrays import Array
from saddlepoint.theory.exploitability import MARGIN, UNIT


class Simplex:
    """All v >= 0 with sum(v) = 1, as ``ConstrainedGame`` takes them; a best response is the largest weight.

    Args:
        size: the number of entries.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self.constraints = (csr_array(np.ones((1, size))), np.ones(1))
        self.start = np.full(size, 1.0 / size)

    def best(self, weights: Array) -> tuple[float, Array]:
        """max <weights, v> and a pure strategy v that attains it."""
        i = int(np.argmax(weights))
        return float(weights[i]), self.pure(i)

    def best_bound(self, weights: Array, errors: Array) -> float:
        """A proven upper bound on max <w, v>, for all w with |w - weights| <= errors."""
        return float(np.max(np.nextafter(weights + errors, math.inf)))

    def pure(self, i: int) -> Array:
        """The strategy that always plays ``i``."""
        v = np.zeros(self.size)
        v[i] = 1.0
        return v

    def nearest(self, vector: Array) -> Array:
        """max(vector, 0) divided by its sum; equal probabilities if no entry is positive."""
        v = np.maximum(vector, 0.0)
        v = v / v.max() if v.max() > 0.0 else np.ones(self.size)
        return np.asarray(v / v.sum())

    def rounding(self, vector: Array) -> Array:
        """Bounds on the entries of vector - v, where v is the strategy max(vector, 0) divided by its exact sum."""
        v = np.maximum(vector, 0.0)
        total = math.fsum(v.tolist())
        if not 0.0 < total < math.inf:
            return np.full(self.size, math.inf)
        return np.asarray(v - vector + v * ((abs(1.0 - total) + UNIT * total) / total * MARGIN))

    def violation(self, vector: Array) -> float:
        """The largest error in v >= 0 and sum(v) = 1."""
        return max(abs(float(vector.sum()) - 1.0), -float(vector.min()), 0.0)
