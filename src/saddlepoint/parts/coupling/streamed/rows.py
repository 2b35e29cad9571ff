"""Rows of a store, read in parts by the processes that hold shards of A."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.sparse import issparse, vstack

from saddlepoint.parts.coupling.streamed.store import Store

PIECE = 1 << 26  # most bytes that are read at a time
PIECES = 8  # least number of reads, so that few rows beyond the requested ones are read


class StoredRows:
    """The rows of a store, of which ``rows[start:stop]`` reads some: an array or a SciPy sparse array.

    It holds no open file, so it can be pickled and used by another process that can read the store.
    """

    ndim = 2

    def __init__(self, store: Store) -> None:
        self.store, self.shape, self.dtype = store, store.shape, store.dtype
        self.nbytes = math.prod(self.shape) * self.dtype.itemsize

    def __getitem__(self, rows: slice) -> Any:
        start, stop, _ = rows.indices(self.shape[0])
        return self.read(start, stop)

    def read(self, start: int, stop: int) -> Any:
        """The rows from ``start`` to ``stop``, from all blocks that have some of them."""
        parts = []
        size = self.store.expansion * (stop - start) * self.store.row_bytes // PIECES
        with self.store.opened() as read:
            for block in self.store.blocks(min(PIECE, max(1, size))):
                first, last = max(start, block.first), min(stop, block.last)
                if first < last:
                    parts.append(read(block, None)[first - block.first : last - block.first])
        if len(parts) == 1:
            return parts[0]
        return vstack(parts, format="csr") if issparse(parts[0]) else np.concatenate(parts)

    def bounds(self, shards: int) -> list[int]:
        """The first rows of about ``shards`` shards, each of whole blocks, and the number of rows at the end."""
        size = max(1, self.store.expansion * self.nbytes // shards)
        return [*(block.first for block in self.store.blocks(size)), self.shape[0]]
