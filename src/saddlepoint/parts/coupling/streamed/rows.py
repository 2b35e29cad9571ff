"""Some rows of a store, for whoever holds a shard of them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.sparse import issparse, vstack

from saddlepoint.parts.coupling.streamed.store import Store

PIECE = 1 << 26  # bytes that are read at a time, at most,
PIECES = 8  # and reads at least, so that little beyond the rows is read where the store can be divided so


class StoredRows:
    """The rows of a store, read where they are asked for: ``rows[start:stop]``, an array or a SciPy sparse array.

    It holds no open file, so it can be sent to another process that reaches the store.
    """

    ndim = 2

    def __init__(self, store: Store) -> None:
        self.store, self.shape, self.dtype = store, store.shape, store.dtype
        self.nbytes = math.prod(self.shape) * self.dtype.itemsize

    def __getitem__(self, rows: slice) -> Any:
        start, stop, _ = rows.indices(self.shape[0])
        return self.read(start, stop)

    def read(self, start: int, stop: int) -> Any:
        """These rows, of all the blocks in which they are."""
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
        """Where about so many shards begin, each in blocks of its own, and the end."""
        size = max(1, self.store.expansion * self.nbytes // shards)
        return [*(block.first for block in self.store.blocks(size)), self.shape[0]]
