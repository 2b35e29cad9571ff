"""A as an array of another library than NumPy: PyTorch, JAX, CuPy, or any library of the array API standard."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cached_property
from typing import Any

from saddlepoint.ground.arrays import Array, Space, detached, space_of
from saddlepoint.ground.compensated import UP, Sum, dense_product
from saddlepoint.ground.linalg import norm, norms
from saddlepoint.parts.coupling.base import Coupling, raised_lengths, scale_from_columns
from saddlepoint.parts.coupling.transpose import TransposeByProducts

BLOCK = 1 << 24  # entries of A converted at a time for a product with a vector of a wider dtype


class ArrayCoupling(Coupling):
    """A dense m x n array on the device on which it is."""

    trusted = True
    has_entries = True

    def __init__(self, A: Any) -> None:
        A = detached(A)
        self.A = A
        self.shape = (int(A.shape[0]), int(A.shape[1]))
        self._space = space_of(A)
        self.dtype = A.dtype

    @property
    def space(self) -> Space:
        """Library, dtype and device of A."""
        return self._space

    @property
    def arrays(self) -> tuple[Any, ...]:
        """A itself."""
        return (self.A,)

    def mul(self, y: Array) -> Array:
        """A y."""
        if y.dtype != self.dtype:
            return self._widened(y)
        product: Array = self.A @ y
        return product

    def tmul(self, x: Array) -> Array:
        """A' x."""
        if x.dtype != self.dtype:
            return self.T.mul(x)
        product: Array = x @ self.A
        return product

    def _transpose(self) -> Coupling:
        return ArrayTranspose(self) if self.space.is_jax else type(self)(self.A.T)

    def _widened(self, y: Array) -> Array:
        """A y in the dtype of y, by blocks of A: a whole copy of A in that dtype would take twice its memory."""
        joined: Array = self.space.xp.concat([block @ y for _, block in self._blocks(y.dtype)])
        return joined

    def _blocks(self, dtype: Any) -> Iterator[tuple[slice, Any]]:
        """The rows of A, converted to another dtype block by block."""
        m, n = self.shape
        rows = max(1, BLOCK // n)
        for start in range(0, m, rows):
            part = slice(start, min(start + rows, m))
            yield part, self.space.xp.astype(self.A[part, :], dtype)

    def matrix(self) -> Any:
        """A itself."""
        return self.A

    def gram(self) -> Any:
        """A'A."""
        return self.A.T @ self.A

    @cached_property
    def column_norms(self) -> Array:
        """The Euclidean norms of the columns of A."""
        parts = [norms(block, axis=0) for _, block in self._blocks(self.space.wide.dtype)]
        return norms(self.space.xp.stack(parts), axis=0)

    @cached_property
    def row_norms(self) -> Array:
        """The Euclidean norms of the rows of A."""
        lengths: Array = self.space.xp.concat(
            [norms(block, axis=1) for _, block in self._blocks(self.space.wide.dtype)]
        )
        return lengths

    def rounding_scale(self, y: Array) -> float:
        """A bound from the norms of the columns of A."""
        return scale_from_columns(self.column_norms, y)

    def bound_from_sum(self, total: float) -> float:
        """The length of the longest column times the sum."""
        return UP * self._longest_column * total

    def row_lengths(self) -> Array:
        """The lengths of the rows, rounded up."""
        return raised_lengths(self.row_norms, self.shape[1])

    def compensated_mul(self, y: Array) -> Sum | None:
        """A y in about twice the digits."""
        return dense_product(self.A, y)

    def compensated_tmul(self, x: Array) -> Sum | None:
        """A' x in about twice the digits."""
        return dense_product(self.A.T, x)

    def norm_ceiling(self) -> float:
        """The Frobenius norm, rounded up."""
        size = self.shape[0] * self.shape[1]
        return norm(self.column_norms) * (1.0 + 4.0 * self.space.eps * math.sqrt(size))  # Frobenius


class ArrayTranspose(TransposeByProducts):
    """The transpose where A.T would be a copy, as with JAX, which has no views."""

    def mul(self, y: Array) -> Array:
        """A' y."""
        if y.dtype == self.dtype:
            return super().mul(y)
        product: Array = sum(y[part] @ block for part, block in self.of._blocks(y.dtype))
        return product

    def matrix(self) -> Any:
        """A', which is a copy."""
        return self.of.A.T

    def gram(self) -> Any:
        """A A'."""
        return self.of.A @ self.of.A.T

    def rounding_scale(self, y: Array) -> float:
        """A bound from the norms of the rows of A."""
        return scale_from_columns(self.of.row_norms, y)

    def bound_from_sum(self, total: float) -> float:
        """The length of the longest row of A times the sum."""
        return UP * self._longest_column * total

    def row_lengths(self) -> Array:
        """The lengths of the columns of A, rounded up."""
        return raised_lengths(self.of.column_norms, self.shape[1])

    def compensated_mul(self, y: Array) -> Sum | None:
        """A' y in about twice the digits."""
        return self.of.compensated_tmul(y)  # type: ignore[no-any-return]
