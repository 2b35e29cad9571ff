"""Shards over the ranks of an MPI job: every rank runs the same solve and holds some of the rows of A.

y, and everything else of its length, is on every rank alike; a round is one Allreduce. What could differ from rank to
rank is decided once: the clock is that of rank 0 and travels with the answers, and so do Ctrl-C, SIGTERM and errors of
any rank, on which all ranks act after the same round. That all ranks ask for the same is checked in every round.
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
from saddlepoint.parts.coupling import as_coupling
from saddlepoint.parts.coupling.streamed import StoredRows
from saddlepoint.parts.sharded.engine import (
    FUSE_BYTES,
    MATRIX,
    REDUCTIONS,
    Answers,
    Engine,
    Piece,
    Program,
    Shards,
    fold,
    total,
)
from saddlepoint.parts.sharded.local import even_bounds

SHARDS = 16  # whatever the number of ranks, so that the same sums are made in the same order
ORDERED = SHARDS  # ranks up to which all pieces of a sum travel, to be added up in that order
CLOCK, INTERRUPTS, TERMINATIONS, ERRORS, SUMS, SQUARES, VOTES = range(7)  # what travels with the answers

T = TypeVar("T")


def world() -> Any:
    """The communicator of the job; one rank without mpiexec."""
    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:  # RuntimeError: there is no MPI library
        raise ProblemError(
            f"the mpi engine needs mpi4py and an MPI library ({' '.join(str(error).split())}); "
            "pip install 'saddlepoint[mpi]' brings both"
        ) from None
    return MPI.COMM_WORLD


def agree(comm: Any, wrong: str) -> None:
    """Raise the first complaint of any rank, on all of them; "" is none."""
    complaints = comm.allgather(wrong)
    for rank, complaint in enumerate(complaints):
        if complaint:
            raise ProblemError(complaint if len({*complaints}) == 1 else f"rank {rank}: {complaint}")


class MPIEngine(Engine):
    """Shards of the rows of a matrix over the ranks of a communicator. Made, used and closed by all ranks alike.

    The number of shards does not depend on that of ranks, and up to 16 ranks the answers have the same bits for any
    number of them. Beyond, MPI adds up in an order of its own, and they agree to rounding.

    Args:
        A: an array, of which each rank reads its own rows (so that it may be a memory map, or ``StoredRows``), or a
            SciPy sparse array.
        comm: the communicator; that of the whole job if left out.
        shards: how many, over all ranks.
    """

    kind = "mpi"
    alone = False

    def __init__(self, A: Any, comm: Any = None, shards: int = SHARDS) -> None:
        self.comm = world() if comm is None else comm
        self.rank, ranks = self.comm.Get_rank(), self.comm.Get_size()
        sparse = hasattr(A, "tocsr")
        array = A.tocsr() if sparse else A if isinstance(A, np.ndarray | StoredRows) else np.asarray(A)
        if array.ndim != 2 or array.shape[0] < ranks:
            raise ProblemError(
                f"A has shape {array.shape} and there are {ranks} ranks; expected a matrix with a row a rank at least"
            )
        m, n = array.shape
        bounds = even_bounds(m, min(m, max(shards, ranks)))
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
        agree(self.comm, wrong)
        kinds = self.comm.allgather(next(iter(parts.values())).dtype)
        super().__init__(bounds, n, kinds[0])
        self.held = Shards({k: {MATRIX: part} for k, part in parts.items()}, self.shards)
        self.pieces = [list(_pieces(self.groups[r], self.groups[r + 1], self.shards)) for r in range(ranks)]
        self._signals = _Signals()
        self._now = self.once(time.perf_counter)

    def run(self, program: Program, broadcast: Sequence[Array]) -> Answers:
        """One round: one Allreduce, and what all ranks have to know with it."""
        own: dict[Piece, Answers] = {}
        error: BaseException | None = None
        try:
            own = self.held.run(program, broadcast)
        except BaseException as caught:
            error = caught
        sizes = _sizes(program, self.columns)
        votes = self._votes(program, broadcast, error)
        ordered = self.comm.Get_size() <= ORDERED
        pieces, votes = (self._by_pieces if ordered else self._by_sums)(own, program.reductions, sizes, votes)
        self._act_on(votes, error)
        answers = total([pieces], program.reductions, self.shards)
        kinds = [answer.dtype for answer in next(iter(own.values()))]
        self.rounds += 1
        slots = sum(map(len, self.pieces)) if ordered else 1
        self.sent += 8 * slots * sum(sizes)
        self.received += 8 * slots * sum(sizes)
        return [answer.astype(kind, copy=False) for answer, kind in zip(answers, kinds, strict=True)]

    def _round(self, program: Program, broadcast: Sequence[Array]) -> Answers:
        return self.run(program, broadcast)

    def _votes(self, program: Program, broadcast: Sequence[Array], error: BaseException | None) -> Array:
        votes = np.zeros(VOTES)
        votes[CLOCK] = time.perf_counter() if self.rank == 0 else 0.0
        votes[INTERRUPTS], votes[TERMINATIONS] = self._signals.seen()
        votes[ERRORS] = error is not None
        asked = zlib.crc32("".join(step.op for step in program.steps).encode())
        for y in broadcast:
            asked = zlib.crc32(np.ascontiguousarray(y).data, asked)
        votes[SUMS], votes[SQUARES] = asked % 2**20, (asked % 2**20) ** 2  # small enough for exact sums
        return votes

    def _by_pieces(
        self, own: dict[Piece, Answers], reductions: Sequence[str], sizes: Sequence[int], votes: Array
    ) -> tuple[dict[Piece, Answers], Array]:
        """All pieces of all ranks, each in a place of its own: whatever the order, only zeros are added to them."""
        every = [piece for rank in self.pieces for piece in rank]
        width = sum(sizes)
        buffer = np.zeros(len(every) * width + VOTES)
        buffer[-VOTES:] = votes
        for k, piece in enumerate(every):
            if piece in own:
                buffer[k * width : (k + 1) * width] += _flat(own[piece])
        self._allreduce(buffer)
        rows = buffer[:-VOTES].reshape(len(every), width)
        return {piece: _split(row, sizes) for piece, row in zip(every, rows, strict=True)}, buffer[-VOTES:]

    def _by_sums(
        self, own: dict[Piece, Answers], reductions: Sequence[str], sizes: Sequence[int], votes: Array
    ) -> tuple[dict[Piece, Answers], Array]:
        """The sum of each rank, added up by MPI; and the largest numbers apart, in the rare rounds that ask for it."""
        first, *more = own.values() or [[np.zeros(size) for size in sizes]]
        for answers in more:
            first = [
                np.maximum(a, b) if how == "max" else a + b
                for a, b, how in zip(first, answers, reductions, strict=True)
            ]
        buffer = np.concatenate([_flat(first), votes])
        if "max" in reductions:
            largest = buffer.copy()
            self._allreduce(largest, "MAX")
        self._allreduce(buffer)
        joined = _split(buffer, sizes)
        if "max" in reductions:
            highest = _split(largest, sizes)
            joined = [highest[i] if how == "max" else joined[i] for i, how in enumerate(reductions)]
        return {(0, self.shards): joined}, buffer[-VOTES:]

    def _allreduce(self, buffer: Array, op: str = "SUM") -> None:
        from mpi4py import MPI

        self.comm.Allreduce(MPI.IN_PLACE, buffer, getattr(MPI, op))

    def _act_on(self, votes: Array, error: BaseException | None) -> None:
        """What all ranks know now, they act on alike."""
        self._now = float(votes[CLOCK])
        if votes[ERRORS]:
            told = self.comm.allgather(None if error is None else (type(error).__name__, " ".join(str(error).split())))
            if error is not None:
                raise error
            rank, (kind, why) = next((rank, what) for rank, what in enumerate(told) if what is not None)
            raise RuntimeError(f"rank {rank} failed, {kind}: {why}")
        if self.comm.Get_size() * votes[SQUARES] != votes[SUMS] ** 2:
            raise ProblemError(
                "the ranks no longer agree about y, to the last bit; give all of them the same FILE and options, and "
                "the same kind of processor and libraries"
            )
        if votes[TERMINATIONS]:
            raise Terminated
        if votes[INTERRUPTS]:
            raise KeyboardInterrupt

    def give(self, name: int, part: Callable[[int], Any]) -> None:
        """Let every shard k hold ``part(k)``; each rank asks for the parts of its own shards alone."""
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
        """A vector that the shards hold, as one array on every rank."""
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
        """Let the shards go, and signals be what they were."""
        self.held.stores.clear()
        self._signals.restore()


class _Signals:
    """SIGINT and SIGTERM are only noted; all ranks act on them after the same round. A third one ends the process."""

    def __init__(self) -> None:
        self.came = {signal.SIGINT: 0, signal.SIGTERM: 0}
        self.before: dict[signal.Signals, Any] = {}
        if threading.current_thread() is threading.main_thread():
            self.before = {number: signal.signal(number, self._note) for number in self.came}

    def _note(self, number: int, frame: FrameType | None) -> None:
        came = signal.Signals(number)
        self.came[came] += 1
        if self.came[came] > 2:
            raise KeyboardInterrupt

    def seen(self) -> tuple[int, int]:
        """How many of each, once."""
        counts = self.came[signal.SIGINT], self.came[signal.SIGTERM]
        if any(counts):
            self.came = dict.fromkeys(self.came, 0)
        return counts

    def restore(self) -> None:
        """Leave signals to whom they were left before."""
        for number, handler in self.before.items():
            signal.signal(number, handler)
        self.before = {}


def _flat(answers: Answers) -> Array:
    """All numbers of some answers, which may be none."""
    return np.concatenate([np.empty(0), *(answer.ravel() for answer in answers)])


def _split(numbers: Array, sizes: Sequence[int]) -> Answers:
    """The way back."""
    ends = [0, *np.cumsum(sizes, dtype=int)]
    return [numbers[start:end] for start, end in pairwise(ends)]


def _read(rows: Any) -> Any:
    """Rows in memory, and not where they were mapped from."""
    return np.array(rows) if isinstance(rows, np.memmap) else rows


def _pieces(first: int, last: int, shards: int) -> Sequence[Piece]:
    """The nodes of the tree that are wholly within these shards, and their parents not."""
    return list(fold({k: [] for k in range(first, last)}, (), shards))


def _sizes(program: Program, columns: int) -> list[int]:
    """How many numbers each answer has."""
    numbers = {"gram": columns * columns, "through": columns, "both": columns, "tmul": columns}
    return [numbers.get(step.op, 1) for step in program.steps if step.op in REDUCTIONS]
