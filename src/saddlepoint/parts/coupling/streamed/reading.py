"""A pass over the blocks of A, of which the next is read while one is multiplied; and the progress of the pass."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np

from saddlepoint.ground.arrays import Array
from saddlepoint.parts.coupling.streamed.budget import Plan
from saddlepoint.parts.coupling.streamed.store import Block, Read, Store


class Reading:
    """The progress of reading A; any thread may read the attributes at any time.

    Attributes:
        passes: number of passes that were started.
        share: finished share of the current pass, 1 between two passes.
        bytes: bytes read from the store in all passes.
        rate: bytes read per second, in the current pass or the last one.
    """

    def __init__(self) -> None:
        self.passes, self.share, self.bytes, self.rate = 0, 1.0, 0, 0.0
        self._began, self._read, self._rows = 0.0, 0, 1

    def begin(self, rows: int) -> None:
        """Start a pass over ``rows`` rows."""
        self.passes += 1
        self.share, self._began, self._read, self._rows = 0.0, time.perf_counter(), 0, rows

    def advance(self, block: Block, kept: bool) -> None:
        """Count a block that was multiplied, and that was read for it unless it was ``kept`` in memory."""
        self.share = block.last / self._rows
        if not kept:
            self.bytes += block.bytes
            self._read += block.bytes
        self.rate = self._read / max(time.perf_counter() - self._began, 1e-9)


def read_blocks(
    store: Store, plan: Plan, kept: dict[int, Any], spare: list[Array], reading: Reading
) -> Generator[tuple[Block, Any]]:
    """All blocks in order, each with its rows, which are valid until the next block is requested.

    Blocks that stay in memory are put into ``kept`` in the first pass; others are read into ``spare`` memory. A thread
    reads one block ahead; if the caller stops early, it is joined.
    """
    reading.begin(store.shape[0])
    missing = [k for k in range(len(plan.blocks)) if k not in kept]
    with ExitStack() as stack:
        ahead: Iterator[Any] = iter(())
        if missing:
            read = stack.enter_context(store.opened())
            buffers = stack.enter_context(_buffers(store, plan, spare))
            pool = stack.enter_context(ThreadPoolExecutor(1, thread_name_prefix="saddlepoint-reader"))
            ahead = _read_ahead(plan, missing, buffers, read, pool)
        for k, block in enumerate(plan.blocks):
            was_kept = k in kept
            rows = kept[k] if was_kept else next(ahead)
            if k in plan.keep:
                kept[k] = rows
            yield block, rows
            del rows
            reading.advance(block, was_kept)
    reading.share = 1.0


def _read_ahead(
    plan: Plan, missing: list[int], buffers: list[Array | None], read: Read, pool: ThreadPoolExecutor
) -> Iterator[Any]:
    """The rows of the missing blocks; while one is used, the next is being read."""

    def start(at: int) -> Future[Any]:
        k = missing[at]
        return pool.submit(read, plan.blocks[k], None if k in plan.keep else buffers[at % 2])

    future: Future[Any] | None = start(0)
    for at in range(len(missing)):
        assert future is not None
        rows = future.result()
        future = start(at + 1) if at + 1 < len(missing) else None
        yield rows
        del rows


@contextmanager
def _buffers(store: Store, plan: Plan, spare: list[Array]) -> Iterator[list[Array | None]]:
    """Memory for two blocks, if the store can read into it; it is reused in the next pass."""
    most = max((b.last - b.first for k, b in enumerate(plan.blocks) if k not in plan.keep), default=0)
    if not store.reuses or not most:
        yield [None, None]
        return
    taken = [spare.pop() if spare else np.empty(most * store.shape[1], store.dtype) for _ in range(2)]
    yield [*taken]
    spare += taken
