"""Shards in this process, one after the other or by a few threads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import numpy as np

from saddlepoint.ground.arrays import Array
from saddlepoint.ground.errors import ProblemError
from saddlepoint.ground.validation import as_count
from saddlepoint.parts.coupling import as_coupling
from saddlepoint.parts.sharded.engine import FUSE_BYTES, MATRIX, Answers, Engine, Program, Shards, total


def even_bounds(rows: int, shards: int) -> list[int]:
    """Where so many shards of nearly equal size begin, and the end."""
    return [rows * k // shards for k in range(shards + 1)]


class LocalEngine(Engine):
    """Shards of the rows of a matrix that is here.

    Args:
        A: an array or a SciPy sparse array.
        shards: how many; 8 if left out, and fewer where A has fewer rows.
        workers: threads that share them.
    """

    def __init__(self, A: Any, shards: int | None = None, workers: int = 1) -> None:
        workers = as_count(workers, "workers")
        wanted = max(8, workers) if shards is None else as_count(shards, "shards")
        m, n = as_coupling(A).shape
        if shards is not None and shards > m:
            raise ProblemError(f"{shards} shards of a matrix with {m} rows; expected one row a shard at least")
        bounds = even_bounds(m, min(wanted, m))
        rows = A.tocsr() if hasattr(A, "tocsr") else np.asarray(A)
        parts = [as_coupling(rows[start:stop], least=FUSE_BYTES) for start, stop in pairwise(bounds)]
        super().__init__(bounds, n, parts[0].dtype)
        groups = even_bounds(self.shards, min(workers, self.shards))
        self.workers = [
            Shards({k: {MATRIX: parts[k]} for k in range(start, stop)}, self.shards) for start, stop in pairwise(groups)
        ]
        self.pool = ThreadPoolExecutor(len(self.workers)) if len(self.workers) > 1 else None

    def _round(self, program: Program, broadcast: Sequence[Array]) -> Answers:
        if self.pool is None:
            pieces = [worker.run(program, broadcast) for worker in self.workers]
        else:
            pieces = list(self.pool.map(lambda worker: worker.run(program, broadcast), self.workers))
        return total(pieces, program.reductions, self.shards)

    def give(self, name: int, part: Callable[[int], Any]) -> None:
        """Let every shard k hold ``part(k)``."""
        for worker in self.workers:
            for k, store in worker.stores.items():
                store[name] = part(k)

    def _gather(self, name: int) -> Array:
        return np.concatenate([store[name] for worker in self.workers for _, store in sorted(worker.stores.items())])

    def close(self) -> None:
        """Let the shards and the threads go."""
        self.workers = []
        if self.pool is not None:
            self.pool.shutdown()
