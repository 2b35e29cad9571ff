"""The interface of engines: every shard runs the same small program on its rows, and the answers are added up.

A is split by rows into shards. A vector with one number for every row (x, the gradient of g, A y) is split in the same
way, and its parts are never sent. An engine sends programs (``shard_program.py``) to the shards and collects their
answers; one program and its answers are a round.
"""

from __future__ import annotations

import signal
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from types import FrameType
from typing import Any

import numpy as np

from saddlepoint.ground.arrays import Array
from saddlepoint.ground.errors import ProblemError
from saddlepoint.parts.coupling.runtime import Runtime
from saddlepoint.parts.sharded.shard_program import MATRIX, Answers, Program


class ShardsLost(ProblemError):  # noqa: N818 - also a signal to the solver
    """The engine has lost shards and cannot restore them; a run ends with the last point copied to this process."""


class Engine(Runtime, ABC):
    """The runtime of an A in shards: sends programs to the shards and collects their answers.

    A new engine defines ``_round``, ``scatter`` and ``_gather``.

    Args:
        bounds: the first row of each shard, and the number of rows at the end: 0, ..., m.
        columns: the number of columns of A.
        dtype: the dtype of A.

    Attributes:
        rounds: number of rounds so far.
        sent, received: bytes sent to and received from one worker, on average: the broadcasts, and the answers.
        gathered: bytes of vectors that were fetched from the shards.
    """

    kind = "local"  # the name of the engine on the command line
    latency = 1e-4  # seconds, roughly
    measurable = False  # results have the same bits with any number of workers, so the same method must be chosen

    def __init__(self, bounds: Sequence[int], columns: int, dtype: Any) -> None:
        super().__init__()
        self.bounds, self.columns, self.dtype = tuple(bounds), columns, np.dtype(dtype)
        self.shards = len(self.bounds) - 1
        self.rounds = self.sent = self.received = self.gathered = 0
        self.dropped: list[int] = []  # names of vectors that the program no longer refers to
        self._names = count(MATRIX + 1)

    @property
    def rows(self) -> int:
        """The number of rows of A."""
        return self.bounds[-1]

    def slice(self, k: int) -> slice:
        """The rows of shard k."""
        return slice(self.bounds[k], self.bounds[k + 1])

    def name(self) -> int:
        """A name that no store uses yet."""
        return next(self._names)

    def take_dropped(self) -> tuple[int, ...]:
        """The names of vectors that were deleted since the last call."""
        gone, self.dropped = tuple(self.dropped), []
        return gone

    def run(self, program: Program, broadcast: Sequence[Array]) -> Answers:
        """One round. It is never done in part: Ctrl-C takes effect after it."""
        with signals_deferred():
            answers = self._round(program, broadcast)
        self.rounds += 1
        self.sent += sum(y.nbytes for y in broadcast)
        self.received += sum(answer.nbytes for answer in answers)
        return answers

    def gather(self, name: int) -> Array:
        """A vector over the shards as one array in this process."""
        with signals_deferred():
            vector = self._gather(name)
        self.gathered += vector.nbytes
        return vector

    @abstractmethod
    def _round(self, program: Program, broadcast: Sequence[Array]) -> Answers:
        """Let every shard ``execute`` the program, and return the ``total`` of the answers."""

    @abstractmethod
    def scatter(self, name: int, part: Callable[[int], Any]) -> None:
        """Store ``part(k)``, a part of a vector or of a function, under ``name`` in every shard k."""

    @abstractmethod
    def _gather(self, name: int) -> Array:
        """The parts of a vector, joined in the order of the shards."""

    def close(self) -> None:
        """Free the shards and whatever else the engine holds."""
        self.dropped = []


@contextmanager
def signals_deferred() -> Iterator[None]:
    """Within this context SIGINT and SIGTERM are handled at its end; a second SIGINT is handled at once."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[tuple[int, FrameType | None]] = []
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def note(number: int, frame: FrameType | None) -> None:
        if number == signal.SIGINT and came:
            raise KeyboardInterrupt
        came.append((number, frame))

    changed = [number for number, handler in handlers.items() if callable(handler)]
    for number in changed:
        signal.signal(number, note)
    try:
        yield
    finally:
        for number in changed:
            signal.signal(number, handlers[number])
        for came_first, frame in came[:1]:
            handler = handlers[signal.Signals(came_first)]
            assert callable(handler)
            handler(came_first, frame)
