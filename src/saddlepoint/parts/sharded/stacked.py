"""Concatenated vectors, some over the shards and some in this process, for methods that store past iterates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from saddlepoint.ground.arrays import Array
from saddlepoint.ground.linalg import max_abs

if TYPE_CHECKING:
    from saddlepoint.parts.sharded.vectors import Library, Sharded


@dataclass(frozen=True, eq=False, repr=False)
class Stacked:
    """A concatenation of ``Sharded`` vectors and NumPy arrays, each of which stays where it is."""

    blocks: tuple[Any, ...]

    __array_ufunc__ = None  # so that array @ rows calls __rmatmul__ of the rows

    @property
    def library(self) -> Library:
        """The library of the first block that is over the shards."""
        library: Library = next(block.library for block in self.blocks if not isinstance(block, np.ndarray))
        return library

    @property
    def shape(self) -> tuple[int]:
        """The length of all blocks together."""
        return (sum(block.shape[0] for block in self.blocks),)

    @property
    def dtype(self) -> Any:
        """The widest dtype of the blocks."""
        return np.result_type(*(block.dtype for block in self.blocks))

    @property
    def device(self) -> str:
        """The device of the shards."""
        return self.library.device

    def __array_namespace__(self, api_version: str | None = None) -> StackedLibrary:
        return StackedLibrary(self.library)

    def __getitem__(self, key: slice) -> Any:
        """The blocks between two of their ends."""
        start, stop, _ = key.indices(self.shape[0])
        ends = pairwise(accumulate((block.shape[0] for block in self.blocks), initial=0))
        chosen = [
            block for block, (first, last) in zip(self.blocks, ends, strict=True) if start <= first < last <= stop
        ]
        if sum(block.shape[0] for block in chosen) != stop - start:
            raise self.library.refusal("a part of x")
        return chosen[0] if len(chosen) == 1 else Stacked(tuple(chosen))

    def __add__(self, other: Any) -> Stacked:
        return self._with(other, lambda a, b: a + b)

    def __sub__(self, other: Any) -> Stacked:
        return self._with(other, lambda a, b: a - b)

    def __mul__(self, other: Any) -> Stacked:
        return self._with(other, lambda a, b: a * b)

    __rmul__ = __mul__

    def __truediv__(self, other: float) -> Stacked:
        return Stacked(tuple(block / other for block in self.blocks))

    def __neg__(self) -> Stacked:
        return self * -1.0

    def _with(self, other: Any, join: Callable[[Any, Any], Any]) -> Stacked:
        if isinstance(other, Stacked):
            return Stacked(tuple(map(join, self.blocks, other.blocks)))
        return Stacked(tuple(join(block, other) for block in self.blocks))

    def __matmul__(self, other: Stacked) -> float:
        """The inner product, in one round."""
        return float(inner_products([self], other)[0])


@dataclass(frozen=True, eq=False, repr=False)
class StackedRows:
    """Vectors as the rows of a matrix."""

    rows: tuple[Stacked, ...]

    __array_ufunc__ = None

    @property
    def shape(self) -> tuple[int, int]:
        """The number of rows, and their length."""
        return len(self.rows), self.rows[0].shape[0] if self.rows else 0

    def __getitem__(self, key: tuple[slice, slice]) -> StackedRows:
        """Some of the rows, between two ends of blocks."""
        return StackedRows(tuple(_stacked(row[key[1]]) for row in self.rows[key[0]]))

    def __matmul__(self, vector: Any) -> Array:
        """The inner products with the rows, in one round; in none if no block is over the shards."""
        return inner_products(self.rows, _stacked(vector))

    def __rmatmul__(self, weights: Array) -> Any:
        """The weighted sum of the rows; 0 if there are none."""
        if not self.rows:
            return 0.0
        factors = [float(weight) for weight in weights]
        columns = zip(*(row.blocks for row in self.rows), strict=True)
        return Stacked(tuple(_weighted(factors, column) for column in columns))

    def buffer(self, most: int) -> Buffer:
        """These rows in a buffer for up to ``most`` rows."""
        return Buffer(most, self.shape[1], list(self.rows))


class Buffer:
    """A matrix to whose end rows are written, as ``ground.rows.Rows`` needs it."""

    def __init__(self, most: int, length: int, rows: list[Stacked] | None = None) -> None:
        self.shape = most, length
        self.rows = [] if rows is None else rows

    def __getitem__(self, key: tuple[slice, slice]) -> StackedRows:
        return StackedRows(tuple(self.rows[key[0]]))

    def __setitem__(self, key: tuple[int, slice], row: Stacked) -> None:
        self.rows[key[0] :] = [row]


class StackedLibrary:
    """The part of the array API that a run needs, for ``Stacked`` vectors."""

    __name__ = "stacked"
    float32, float64 = np.dtype(np.float32), np.dtype(np.float64)
    finfo, result_type = staticmethod(np.finfo), staticmethod(np.result_type)

    def __init__(self, library: Library) -> None:
        self.library = library

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StackedLibrary) and other.library is self.library

    __hash__ = None  # type: ignore[assignment]

    def asarray(self, array: Array, dtype: Any = None, device: Any = None, copy: bool | None = None) -> Array:
        """A NumPy array, which stays in this process."""
        return np.asarray(array, dtype)

    def astype(self, vector: Stacked, dtype: Any, copy: bool = True) -> Stacked:
        """The vector in another dtype."""
        return Stacked(
            tuple(
                block.astype(dtype) if isinstance(block, np.ndarray) else self.library.astype(block, dtype)
                for block in vector.blocks
            )
        )

    def zeros(self, shape: tuple[int, int], dtype: Any = None, device: Any = None) -> Buffer:
        """An empty buffer for rows."""
        return Buffer(*shape)

    def abs(self, vector: Stacked) -> Stacked:
        """The absolute values."""
        return Stacked(tuple(abs(b) if isinstance(b, np.ndarray) else self.library.abs(b) for b in vector.blocks))

    def max(self, vector: Stacked) -> float:
        """The largest entry of a vector of absolute values."""
        return max(map(max_abs, vector.blocks))


def _stacked(vector: Any) -> Stacked:
    """The vector as a concatenation, perhaps of one block."""
    return vector if isinstance(vector, Stacked) else Stacked((vector,))


def inner_products(rows: Sequence[Stacked], vector: Stacked) -> Array:
    """The inner products of several vectors with one, in one round."""
    pairs: list[tuple[Sharded, Sharded]] = []
    found = np.zeros(len(rows))
    for k, row in enumerate(rows):
        for a, b in zip(row.blocks, vector.blocks, strict=True):
            if isinstance(a, np.ndarray):
                found[k] += a.dot(b)
            else:
                pairs.append((a, b))
    if pairs:
        found += np.reshape(vector.library.dots(pairs), (len(rows), -1)).sum(axis=1)
    return found


def _weighted(factors: list[float], vectors: tuple[Any, ...]) -> Any:
    if not isinstance(vectors[0], np.ndarray):
        return vectors[0].library.weighted(factors, vectors)
    return np.asarray(np.asarray(factors, vectors[0].dtype) @ np.stack(vectors))
