"""Shards over the ranks of an MPI job: every rank runs the same solve and holds some of the rows of A.

Every rank has the same copy of y and of all other vectors of its length. A round is one Allreduce. Values that could
differ between ranks are sent with the answers: the time of rank 0, and whether any rank has seen Ctrl-C, SIGTERM or an
error. All ranks react to them after the same round. Every round also checks that all ranks asked for the same.
"""

from __future__ import annotations

import signal
import threading
import time
import zlib
from collections.abc import Callable, Sequence
from itertools import pairwise
from types import FrameType
from typing import Any, TypeVar

import numpy as np

from saddlepoint.ground.arrays import Array
from saddlepoint.ground.errors import ProblemError, Terminated
from saddlepoint.ground.validation import in_floats
from saddlepoint.parts.coupling import as_coupling
from saddlepoint.parts.coupling.streamed import StoredRows
from saddlepoint.parts.sharded.engine import Engine
from saddlepoint.parts.sharded.local import even_bounds
from saddlepoint.parts.sharded.shard_program import (
    FUSE_BYTES,
    MATRIX,
    REDUCTIONS,
    Answers,
    Piece,
    Program,
    Shards,
    fold,
    total,
)

SHARDS = 16  # number of shards for any number of ranks, so that sums are added in the same order
ORDERED = SHARDS  # up to this number of ranks, all pieces of a sum are sent, to be added in that order
# Positions of the numbers that are sent with the answers, and how many there are.
CLOCK, INTERRUPTS, TERMINATIONS, ERRORS, SUMS, SQUARES, FLAGS = range(7)

T = TypeVar("T")


def world() -> Any:
    """The communicator of the whole job, which without mpiexec has one rank."""
    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:  # RuntimeError: there is no MPI library
        raise ProblemError(
            f"the mpi engine needs mpi4py and an MPI library ({' '.join(str(error).split())}); "
            "pip install 'saddlepoint[mpi]' brings both"
        ) from None
    return MPI.COMM_WORLD


def raise_on_all_ranks(comm: Any, wrong: str) -> None:
    """Raise the first error message of any rank as a ProblemError on all ranks; an empty message is no error."""
    messages = comm.allgather(wrong)
    for rank, message in enumerate(messages):
        if message:
            raise ProblemError(message if len({*messages}) == 1 else f"rank {rank}: {message}")


class MPIEngine(Engine):
    """Shards of the rows of a matrix over the ranks of a communicator. All ranks create, use and close it together.

    The number of shards does not depend on the number of ranks. With up to 16 ranks, results have the same bits for any
    number of ranks. With more, MPI adds in an order of its own, and results agree up to rounding.

    Args:
        A: an array, of which each rank reads its own rows (so it may be a memory map, or ``StoredRows``), or a SciPy
            sparse array.
        comm: the communicator; by default that of the whole job.
    """

    kind = "mpi"
    alone = False

    def __init__(self, A: Any, comm: Any = None) -> None:
        self.comm = world() if comm is None else comm
        self.rank, ranks = self.comm.Get_rank(), self.comm.Get_size()
        sparse = hasattr(A, "tocsr")
        array = in_floats(A).tocsr() if sparse else A if isinstance(A, np.ndarray | StoredRows) else np.asarray(A)
        if array.ndim != 2 or array.shape[0] < ranks:
            raise ProblemError(
                f"A has shape {array.shape} and there are {ranks} ranks; expected a matrix with a row for each rank"
            )
        m, n = array.shape
        bounds = even_bounds(m, min(m, max(SHARDS, ranks)))
        self.groups = even_bounds(len(bounds) - 1, ranks)
        own = range(self.groups[self.rank], self.groups[self.rank + 1])
        parts, wrong = {}, ""
        try:
            first, mine = bounds[own.start], array[bounds[own.start] : bounds[own.stop]]
            for k in own:
                part = mine[bounds[k] - first : bounds[k + 1] - first]
                parts[k] = as_coupling(_read(part), least=FUSE_BYTES)
        except ProblemError as error:
            wrong = str(error)
        raise_on_all_ranks(self.comm, wrong)
        kinds = self.comm.allgather(next(iter(parts.values())).dtype)
        super().__init__(bounds, n, kinds[0])
        self.held = Shards({k: {MATRIX: part} for k, part in parts.items()}, self.shards)
        self.pieces = [list(_pieces(self.groups[r], self.groups[r + 1], self.shards)) for r in range(ranks)]
        self._signals = _Signals()
        self._now = self.once(time.perf_counter)

    def run(self, program: Program, broadcast: Sequence[Array]) -> Answers:
        """One round: one Allreduce of the answers and of the flags that all ranks must know."""
        own: dict[Piece, Answers] = {}
        error: BaseException | None = None
        try:
            own = self.held.run(program, broadcast)
        except BaseException as caught:
            error = caught
        sizes = _sizes(program, self.columns)
        flags = self._flags(program, broadcast, error)
        ordered = self.comm.Get_size() <= ORDERED or "compensated" in program.reductions
        pieces, flags = (self._by_pieces if ordered else self._by_sums)(own, program.reductions, sizes, flags)
        self._react_to(flags, error)
        answers = total([pieces], program.reductions, self.shards)
        kinds = [answer.dtype for answer in next(iter(own.values()))]
        self.rounds += 1
        slots = sum(map(len, self.pieces)) if ordered else 1
        self.sent += 8 * slots * sum(sizes)
        self.received += 8 * slots * sum(sizes)
        return [answer.astype(kind, copy=False) for answer, kind in zip(answers, kinds, strict=True)]

    def _round(self, program: Program, broadcast: Sequence[Array]) -> Answers:
        return self.run(program, broadcast)

    def _flags(self, program: Program, broadcast: Sequence[Array], error: BaseException | None) -> Array:
        flags = np.zeros(FLAGS)
        flags[CLOCK] = time.perf_counter() if self.rank == 0 else 0.0
        flags[INTERRUPTS], flags[TERMINATIONS] = self._signals.take_counts()
        flags[ERRORS] = error is not None
        asked = zlib.crc32("".join(step.op for step in program.steps).encode())
        for y in broadcast:
            asked = zlib.crc32(np.ascontiguousarray(y).data, asked)
        flags[SUMS], flags[SQUARES] = asked % 2**20, (asked % 2**20) ** 2  # small enough for exact sums
        return flags

    def _by_pieces(
        self, own: dict[Piece, Answers], reductions: Sequence[str], sizes: Sequence[int], flags: Array
    ) -> tuple[dict[Piece, Answers], Array]:
        """All pieces of all ranks, each in its own place: only zeros are added to it, so the order has no effect."""
        every = [piece for rank in self.pieces for piece in rank]
        width = sum(sizes)
        buffer = np.zeros(len(every) * width + FLAGS)
        buffer[-FLAGS:] = flags
        for k, piece in enumerate(every):
            if piece in own:
                buffer[k * width : (k + 1) * width] += _flat(own[piece])
        self._allreduce(buffer)
        rows = buffer[:-FLAGS].reshape(len(every), width)
        return {piece: _split(row, sizes) for piece, row in zip(every, rows, strict=True)}, buffer[-FLAGS:]

    def _by_sums(
        self, own: dict[Piece, Answers], reductions: Sequence[str], sizes: Sequence[int], flags: Array
    ) -> tuple[dict[Piece, Answers], Array]:
        """The sums of all ranks, added by MPI; a second Allreduce for maxima, in the rare rounds that have some."""
        first, *more = own.values() or [[np.zeros(size) for size in sizes]]
        for answers in more:
            first = [
                np.maximum(a, b) if how == "max" else a + b
                for a, b, how in zip(first, answers, reductions, strict=True)
            ]
        buffer = np.concatenate([_flat(first), flags])
        if "max" in reductions:
            largest = buffer.copy()
            self._allreduce(largest, "MAX")
        self._allreduce(buffer)
        joined = _split(buffer, sizes)
        if "max" in reductions:
            highest = _split(largest, sizes)
            joined = [highest[i] if how == "max" else joined[i] for i, how in enumerate(reductions)]
        return {(0, self.shards): joined}, buffer[-FLAGS:]

    def _allreduce(self, buffer: Array, op: str = "SUM") -> None:
        from mpi4py import MPI

        self.comm.Allreduce(MPI.IN_PLACE, buffer, getattr(MPI, op))

    def _react_to(self, flags: Array, error: BaseException | None) -> None:
        """React to the flags in the same way on all ranks."""
        self._now = float(flags[CLOCK])
        if flags[ERRORS]:
            own = None if error is None else (type(error).__name__, " ".join(str(error).split()))
            errors = self.comm.allgather(own)
            if error is not None:
                raise error
            rank, (kind, why) = next((rank, found) for rank, found in enumerate(errors) if found is not None)
            raise RuntimeError(f"rank {rank} failed, {kind}: {why}")
        if self.comm.Get_size() * flags[SQUARES] != flags[SUMS] ** 2:
            raise ProblemError(
                "the ranks no longer have the same y, to the last bit; give all of them the same FILE and options, and "
                "the same kind of processor and libraries"
            )
        if flags[TERMINATIONS]:
            raise Terminated
        if flags[INTERRUPTS]:
            raise KeyboardInterrupt

    def scatter(self, name: int, part: Callable[[int], Any]) -> None:
        """Store ``part(k)`` under ``name`` in every shard k; each rank calls ``part`` for its own shards only."""
        for k, store in self.held.stores.items():
            store[name] = part(k)

    def _gather(self, name: int) -> Array:
        own = np.concatenate([self.held.stores[k][name] for k in sorted(self.held.stores)])
        rows = [self.bounds[end] for end in self.groups]
        counts = [stop - start for start, stop in pairwise(rows)]
        whole = np.empty(self.rows, own.dtype)
        self.comm.Allgatherv(own, (whole, counts))
        return whole

    def gather(self, name: int) -> Array:
        """A vector over the shards as one array on every rank."""
        vector = self._gather(name)
        self.gathered += vector.nbytes
        return vector

    def clock(self) -> float:
        """The time on rank 0 when the last round ended."""
        return self._now

    def once(self, action: Callable[[], T]) -> T:
        """What ``action`` returns or raises on rank 0, on all ranks."""
        outcome: tuple[Any, BaseException | None] = None, None
        if self.rank == 0:
            try:
                outcome = action(), None
            except Exception as error:
                outcome = None, error
        value, wrong = self.comm.bcast(outcome, 0)
        if wrong is not None:
            raise wrong
        found: T = value
        return found

    def close(self) -> None:
        """Free the shards and restore the signal handlers."""
        self.held.stores.clear()
        self._signals.restore()


class _Signals:
    """Counts SIGINT and SIGTERM, so that all ranks react after the same round; a third one ends the process."""

    def __init__(self) -> None:
        self.counts = {signal.SIGINT: 0, signal.SIGTERM: 0}
        self.before: dict[signal.Signals, Any] = {}
        if threading.current_thread() is threading.main_thread():
            self.before = {number: signal.signal(number, self._note) for number in self.counts}

    def _note(self, number: int, frame: FrameType | None) -> None:
        received = signal.Signals(number)
        self.counts[received] += 1
        if self.counts[received] > 2:
            raise KeyboardInterrupt

    def take_counts(self) -> tuple[int, int]:
        """The numbers of SIGINT and SIGTERM since the last call."""
        counts = self.counts[signal.SIGINT], self.counts[signal.SIGTERM]
        if any(counts):
            self.counts = dict.fromkeys(self.counts, 0)
        return counts

    def restore(self) -> None:
        """Restore the handlers of before."""
        for number, handler in self.before.items():
            signal.signal(number, handler)
        self.before = {}


def _flat(answers: Answers) -> Array:
    """All numbers of some answers in one array, which may be empty."""
    return np.concatenate([np.empty(0), *(answer.ravel() for answer in answers)])


def _split(numbers: Array, sizes: Sequence[int]) -> Answers:
    """The inverse of ``_flat``."""
    ends = [0, *np.cumsum(sizes, dtype=int)]
    return [numbers[start:end] for start, end in pairwise(ends)]


def _read(rows: Any) -> Any:
    """The rows, read into memory if they are a memory map."""
    return np.array(rows) if isinstance(rows, np.memmap) else rows


def _pieces(first: int, last: int, shards: int) -> Sequence[Piece]:
    """The nodes of the tree that are within these shards and whose parents are not."""
    return list(fold({k: [] for k in range(first, last)}, (), shards))


def _sizes(program: Program, columns: int) -> list[int]:
    """The number of numbers in each answer."""
    numbers = dict.fromkeys(("through", "both", "tmul", "risk_rounding"), columns)
    numbers |= {"gram": columns * columns, "compensated_tmul": 3 * columns, "risk_compensated": 3 * columns}
    return [numbers.get(step.op, 1) for step in program.steps if step.op in REDUCTIONS]
