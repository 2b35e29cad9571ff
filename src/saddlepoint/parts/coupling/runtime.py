"""Runtime: which processes hold A, and how they keep time and decide together."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from saddlepoint.parts.coupling.streamed.reading import Reading

T = TypeVar("T")


class Runtime:
    """How a run on a coupling is carried out. This class itself is the default: all of A is in this process.

    The engines of ``saddlepoint.parts.sharded`` are runtimes whose A is split into shards. ``Coupling.runtime`` is the
    runtime of a coupling, and everything that wraps a coupling passes it on.

    Args:
        reading: progress of reading A from disk, for an A that is not in memory.

    Attributes:
        shards: number of parts into which the rows of A are split.
        latency: seconds that one communication round takes when it carries hardly any data.
        alone: True if this process decides by itself; False if several processes repeat every decision (MPI).
        fragile: True if parts of the data can be lost during a run, so that the best point must be copied in time.
        measurable: True if products may be timed to choose a method; False if the choice must not depend on a clock,
            because it has to be the same in every process and in every run.
        reading: as given.
    """

    shards: int = 1
    latency: float = 0.0
    alone: bool = True
    fragile: bool = False
    measurable: bool = True

    def __init__(self, reading: Reading | None = None) -> None:
        self.reading = reading

    def clock(self) -> float:
        """The time in seconds by which a run decides: the same in all processes that decide together."""
        return time.perf_counter()

    def once(self, action: Callable[[], T]) -> T:
        """What ``action`` returns, or raises: one process calls it, and all processes receive its answer."""
        return action()


LOCAL = Runtime()  # the default of every coupling
