"""Many couplings of equal shape as one coupling, a block-diagonal matrix."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse import block_diag, coo_array

from saddlepoint.ground.arrays import Array, Space, space_of, to_host
from saddlepoint.ground.compensated import UP, Sum, dense_product
from saddlepoint.ground.errors import ProblemError
from saddlepoint.ground.linalg import norm, norms
from saddlepoint.ground.validation import as_float_array, finite
from saddlepoint.parts.coupling import ArrayCoupling, Coupling, DenseCoupling, Norm

SMALLEST = 1e-280  # least sum of squares that is sure to have lost no digits to underflow
BLOCK = 1 << 24  # most entries of A that are converted at a time where its dtype is not that of the vector


class BatchedCoupling(Coupling):
    """diag(A_1, ..., A_B) for an array of shape (B, m, n), which is used without a copy on any device."""

    trusted = True
    has_entries = True

    def __init__(self, A: Any) -> None:
        self.A = A
        self.blocks, m, n = map(int, A.shape)
        self.shape = (self.blocks * m, self.blocks * n)
        self._space = space_of(A)
        self.dtype = A.dtype

    @property
    def space(self) -> Space:
        """Library, dtype and device of the blocks."""
        return self._space

    @property
    def arrays(self) -> tuple[Any, ...]:
        """The array of all blocks."""
        return (self.A,)

    def mul(self, y: Array) -> Array:
        """(A_1 y_1, ..., A_B y_B)."""
        Y = self.space.xp.reshape(y, (self.blocks, -1))
        product = self._product(self.A, Y) if y.dtype == self.dtype else self._widened(Y)
        flat: Array = self.space.xp.reshape(product, (-1,))
        return flat

    def tmul(self, x: Array) -> Array:
        """(A_1' x_1, ..., A_B' x_B)."""
        return self.T.mul(x)

    def _transpose(self) -> Coupling:
        return BatchedCoupling(np.swapaxes(self.A, 1, 2) if self.space.is_numpy else self.A.mT)

    def _product(self, A: Any, Y: Array) -> Array:
        product: Array = (A @ Y[:, :, None])[:, :, 0]
        return product

    def _widened(self, Y: Array) -> Array:
        """The product in the precision of Y, some blocks at a time: a wide copy of A would take twice its memory."""
        xp = self.space.xp
        parts = [self._product(xp.astype(self.A[r, :, :], Y.dtype), Y[r, :]) for r in self._ranges()]
        joined: Array = xp.concat(parts, axis=0)
        return joined

    def _ranges(self) -> list[slice]:
        """Ranges of blocks with at most BLOCK entries each, or one block."""
        some = max(1, BLOCK // (self.A.shape[1] * self.A.shape[2]))
        return [slice(i, min(i + some, self.blocks)) for i in range(0, self.blocks, some)]

    def matrix(self) -> Any:
        """The block-diagonal matrix: sparse for NumPy, dense in other libraries."""
        return self._diagonal(self.A)

    def gram(self) -> Any:
        """The block-diagonal matrix of the A_b' A_b."""
        At = self.T.A  # type: ignore[attr-defined]
        return self._diagonal(At @ self.A)

    def _diagonal(self, blocks: Any) -> Any:
        if self.space.is_numpy:
            return block_diag([coo_array(block) for block in blocks], format="csr")
        xp, (B, m, n) = self.space.xp, blocks.shape
        eye = xp.eye(B, dtype=self.dtype, device=self.space.device)
        return xp.reshape(eye[:, None, :, None] * blocks[:, :, None, :], (B * m, B * n))

    @cached_property
    def column_norms(self) -> Array:
        """The Euclidean norms of the columns of the matrices."""
        xp = self.space.xp
        wide = self.space.wide
        lengths = xp.concat([norms(wide.cast(self.A[r, :, :]), axis=1) for r in self._ranges()], axis=0)
        flat: Array = xp.reshape(lengths, (-1,))
        return flat

    @property
    def sum_length(self) -> int:
        """The number of columns of a block."""
        return int(self.A.shape[2])

    def rounding_scale(self, y: Array) -> float:
        """The rounding scale of A y, from the norms of the columns of A."""
        return norm(self.rounding_terms(y))

    def rounding_terms(self, y: Array) -> Array:
        """The vector whose norm is the rounding scale of A y, both for the whole and for each block."""
        return (UP * math.sqrt(self.sum_length)) * (self.column_norms * y)

    def compensated_mul(self, y: Array) -> Sum:
        """The products of all blocks in about twice the digits."""
        xp = self.space.xp
        Y = xp.reshape(y, (self.blocks, -1))
        sums = [dense_product(self.A[r, :, :], Y[r, :]) for r in self._ranges()]
        return Sum(*(xp.reshape(xp.concat(list(parts), axis=0), (-1,)) for parts in zip(*sums, strict=True)))

    def norm_ceiling(self) -> float:
        """The largest Frobenius norm of a block."""
        size = self.A.shape[1] * self.A.shape[2]
        largest = float(block_norms([self.column_norms], self.blocks).max())
        return largest * (1.0 + 4.0 * self.space.eps * math.sqrt(size))

    def bounded(self) -> BatchedCoupling:
        """This coupling, with the largest Frobenius norm of a block as bound on its norm, which needs no products."""
        self.__dict__["norm_estimate"] = Norm(0.0, self.norm_ceiling(), 0.0, 0)
        return self


def batched(A: Any) -> BatchedCoupling:
    """An array of shape (B, m, n) as a coupling, or a ProblemError."""
    array = finite(as_float_array(A, "A"), "A")
    if len(array.shape) != 3 or 0 in array.shape:
        raise ProblemError(f"A has shape {tuple(array.shape)}; expected (B, m, n), one m x n matrix for each problem")
    return BatchedCoupling(array)


def stacked_couplings(couplings: Iterable[Any], space: Space) -> BatchedCoupling | None:
    """Dense couplings of equal shape as one; None if one is of another kind or shape."""
    parts = list(couplings)
    if not all(isinstance(A, DenseCoupling | ArrayCoupling) and A.shape == parts[0].shape for A in parts):
        return None
    return BatchedCoupling(space.xp.stack([space.cast(A.A) for A in parts]))


def block_norms(vectors: Sequence[Array], blocks: int) -> Array:
    """The Euclidean norms of the blocks of vectors of float64, as a NumPy matrix with a row for each vector."""
    xp = space_of(vectors[0]).xp
    parts = [xp.reshape(v, (blocks, -1)) for v in vectors]
    sums = [np.einsum("bi,bi->b", V, V) if xp is np else xp.sum(V * V, axis=1) for V in parts]
    squares = to_host(xp.stack(sums))
    if ((squares > SMALLEST) & (squares < math.inf)).all():
        return np.asarray(np.sqrt(squares))
    return to_host(xp.stack([norms(V, axis=1) for V in parts]))
