"""A as a SciPy sparse array."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

import numpy as np

from saddlepoint.coupling.base import Coupling
from saddlepoint.vectors import Array, norm


class SparseCoupling(Coupling):
    """A sparse m x n matrix in compressed rows (its transpose is in compressed columns and shares the data)."""

    def __init__(self, A: Any) -> None:
        self.A = A if A.format in ("csr", "csc") else A.tocsr()
        self.shape = (A.shape[0], A.shape[1])
        self.dtype = A.dtype

    def mul(self, y: Array) -> Array:
        """A y."""
        return np.asarray(self.A @ y)

    def tmul(self, x: Array) -> Array:
        """A' x."""
        return self.T.mul(x)

    def _transpose(self) -> Coupling:
        return SparseCoupling(self.A.T)

    def matrix(self) -> Any:
        """A itself."""
        return self.A

    def gram(self) -> Any:
        """A'A, sparse."""
        return self.A.T @ self.A

    @cached_property
    def _column_norms(self) -> Array:
        wide = self.A.astype(np.float64)
        squares: Array = np.asarray(wide.multiply(wide).sum(axis=0)).ravel()
        return np.sqrt(squares)

    def rounding_scale(self, y: Array) -> float:
        """From the norms of the columns of A."""
        return norm(self._column_norms * y)

    def _norm_ceiling(self) -> float:
        return norm(self._column_norms) * (1.0 + 1e-14 * math.sqrt(self.A.nnz))  # Frobenius; exact for rank one
