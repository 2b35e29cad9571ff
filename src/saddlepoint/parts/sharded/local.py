"""Shards in this process, computed one after the other or by a few threads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import numpy as np

from saddlepoint.ground.arrays import Array
from saddlepoint.ground.errors import ProblemError
from saddlepoint.ground.validation import as_count, in_floats
from saddlepoint.parts.coupling import as_coupling
from saddlepoint.parts.sharded.engine import Engine
from saddlepoint.parts.sharded.shard_program import FUSE_BYTES, MATRIX, Answers, Program, Shards, total


def even_bounds(rows: int, shards: int) -> list[int]:
    """The first rows of ``shards`` shards of nearly equal size, and the number of rows at the end."""
    return [rows * k // shards for k in range(shards + 1)]


class LocalEngine(Engine):
    """Shards of the rows of a matrix in the memory of this process.

    Args:
        A: an array or a SciPy sparse array.
        shards: number of shards; by default 8, or as many as there are workers or rows.
        workers: number of threads that share the shards.
    """

    def __init__(self, A: Any, shards: int | None = None, workers: int = 1) -> None:
        workers = as_count(workers, "workers")
        wanted = max(8, workers) if shards is None else as_count(shards, "shards")
        m, n = as_coupling(A).shape
        if shards is not None and shards > m:
            raise ProblemError(f"shards is {shards}, and A has {m} rows; expected at most {m} shards")
        bounds = even_bounds(m, min(wanted, m))
        rows = in_floats(A).tocsr() if hasattr(A, "tocsr") else np.asarray(A)
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

    def scatter(self, name: int, part: Callable[[int], Any]) -> None:
        """Store ``part(k)`` under ``name`` in every shard k."""
        for worker in self.workers:
            for k, store in worker.stores.items():
                store[name] = part(k)

    def _gather(self, name: int) -> Array:
        return np.concatenate([store[name] for worker in self.workers for _, store in sorted(worker.stores.items())])

    def close(self) -> None:
        """Free the shards and end the threads."""
        self.workers = []
        if self.pool is not None:
            self.pool.shutdown()
