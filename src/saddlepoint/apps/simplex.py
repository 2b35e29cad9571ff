"""The set of probability vectors: mixed strategies of a matrix game."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from saddlepoint.ground.arrays import Array


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

    def violation(self, vector: Array) -> float:
        """The largest error in v >= 0 and sum(v) = 1."""
        return max(abs(float(vector.sum()) - 1.0), -float(vector.min()), 0.0)
