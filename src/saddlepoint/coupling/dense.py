"""A as a NumPy array."""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np

from saddlepoint.coupling.base import Coupling
from saddlepoint.vectors import Array, norm

BLOCK = 1 << 22  # entries converted at a time when a narrow A meets a wide vector


class DenseCoupling(Coupling):
    """A dense m x n array, used as it lies in memory."""

    def __init__(self, A: Array) -> None:
        self.A = A
        self.shape = (A.shape[0], A.shape[1])
        self.dtype = A.dtype

    def mul(self, y: Array) -> Array:
        """A y."""
        if y.dtype.itemsize > self.dtype.itemsize:
            return self._widened(y)
        return self.A @ y

    def tmul(self, x: Array) -> Array:
        """A' x."""
        return self.T.mul(x)

    def _transpose(self) -> Coupling:
        return DenseCoupling(self.A.T)

    def _widened(self, y: Array) -> Array:
        """A y in the precision of y, a block at a time: the plain product would copy all of A."""
        m, n = self.shape
        rows = max(1, BLOCK // max(n, 1))
        blocks = [self.A[i : i + rows].astype(y.dtype) @ y for i in range(0, m, rows)]
        return np.concatenate(blocks)

    def matrix(self) -> Array:
        """A itself."""
        return self.A

    def gram(self) -> Array:
        """A'A."""
        return np.asarray(self.A.T @ self.A)

    @cached_property
    def _column_norms(self) -> Array:
        squares: Array = np.einsum("ij,ij->j", self.A, self.A, dtype=np.float64)
        return np.sqrt(squares)

    def rounding_scale(self, y: Array) -> float:
        """From the norms of the columns of A."""
        return norm(self._column_norms * y)

    def _norm_ceiling(self) -> float:
        return norm(self._column_norms) * (1.0 + 1e-14 * math.sqrt(self.A.size))  # Frobenius; exact for rank one
