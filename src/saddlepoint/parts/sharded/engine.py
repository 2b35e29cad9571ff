"""The seam below every engine: shards do the same small program on their own rows, and what they answer is added up.

A is split into shards of rows. What has one number for every row (x, the gradient of g, A y) is split likewise: its
parts stay with their shards and never travel. A shard is a store, a dict from names to what it holds: its rows of A,
its part of g, its parts of vectors. In a round every shard gets the same few vectors of length n (the broadcast) and
the same program, runs it (``execute``) on its store, and answers with a few short arrays. These are added up by a
binary tree over the shards that is the same whoever holds them (``fold``, ``total``), so that results repeat, with any
number of workers.
"""

from __future__ import annotations

import signal
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import count
from types import FrameType
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from saddlepoint.ground.arrays import Array
from saddlepoint.ground.errors import ProblemError
from saddlepoint.parts.coupling.runtime import Runtime

MATRIX = 0  # the name under which every shard holds its rows of A, a ``Coupling``
FUSE_BYTES = 1 << 22  # of a shard from which one pass pays: between two rounds the other shards have used the cache

Store: TypeAlias = dict[int, Any]
Answers: TypeAlias = list[Array]  # of one shard, or added up over several
Piece: TypeAlias = tuple[int, int]  # shards first <= k < last, a node of the tree


class Step(NamedTuple):
    """One line of a program: ``op`` is a name in ``STEPS`` or ``REDUCTIONS``, ``out`` the vector that it makes."""

    op: str
    out: int | None
    args: tuple[Any, ...]


class Program(NamedTuple):
    """What every shard does in a round.

    Attributes:
        steps: in order.
        drop: names that nobody asks for any longer, let go before the steps,
        temporary: and after them.
    """

    steps: tuple[Step, ...]
    drop: tuple[int, ...] = ()
    temporary: tuple[int, ...] = ()

    @property
    def reductions(self) -> tuple[str, ...]:
        """How the answers are to be joined, "sum" or "max" for each."""
        return tuple(REDUCTIONS[step.op] for step in self.steps if step.op in REDUCTIONS)


# -- what a shard does -------------------------------------------------------------------------------------------------

REDUCTIONS = {"through": "sum", "both": "sum", "tmul": "sum", "gram": "sum", "dot": "sum", "value": "sum", "max": "max"}


def execute(program: Program, store: Store, broadcast: Sequence[Array]) -> Answers:
    """Run a program on one shard: its store is changed, its answers are returned.

    The same program on the same store gives the same bits, so a store that was lost can be made again by running the
    programs once more that made it.
    """
    for name in program.drop:
        store.pop(name, None)
    answers: Answers = []
    with np.errstate(all="ignore"):
        for op, out, args in program.steps:
            if op in REDUCTIONS:
                made, answer = REDUCING[op](store, broadcast, *args)
                answers.append(np.atleast_1d(np.asarray(answer)))
            else:
                made = STEPS[op](store, broadcast, *args)
            if out is not None:
                store[out] = made
    for name in program.temporary:
        store.pop(name, None)
    return answers


def _combine(store: Store, _: Sequence[Array], terms: Sequence[tuple[float, int]]) -> Array:
    first, *more = (store[name] if factor == 1.0 else store[name] * factor for factor, name in terms)
    return first + more[0] if more else np.array(first)


def _weighted(store: Store, _: Sequence[Array], terms: Sequence[tuple[float, int]]) -> Array:
    (factor, name), *more = terms
    total: Array = store[name] * factor
    for factor, name in more:
        total += store[name] * factor
    return total


def _fill(store: Store, _: Sequence[Array], value: float, dtype: str) -> Array:
    return np.full(store[MATRIX].shape[0], value, dtype)


def _grad(store: Store, _: Sequence[Array], function: int, x: int) -> Array:
    point = store[x]
    return np.asarray(store[function].grad(point), point.dtype)


def _prox(store: Store, _: Sequence[Array], function: int, v: int, t: float) -> Array:
    point = store[v]
    return np.asarray(store[function].prox(point, t), point.dtype)


STEPS: dict[str, Callable[..., Array]] = {
    "combine": _combine,  # (factor, vector) once or twice: their sum
    "fill": _fill,  # a number, a dtype
    "grad": _grad,  # a function, a vector
    "prox": _prox,  # a function, a vector, a number
    "mul": lambda store, given, y: store[MATRIX].mul(given[y]),  # A y; which of the broadcast
    "weighted": _weighted,  # ((factor, vector), ...)
    "over": lambda store, _, a, number: store[a] / number,
    "times": lambda store, _, a, b: store[a] * store[b],
    "abs": lambda store, _, a: np.abs(store[a]),
    "isfinite": lambda store, _, a: np.isfinite(store[a]).astype(store[a].dtype),
    "cast": lambda store, _, a, dtype: store[a].astype(dtype),
}


def _through(store: Store, given: Sequence[Array], y: int, s: float, e: int | None) -> tuple[Array, Array]:
    pair: tuple[Array, Array] = store[MATRIX].through(given[y], s, None if e is None else store[e])
    return pair


def _both(store: Store, given: Sequence[Array], x: int, y: int) -> tuple[Array, Array]:
    pair: tuple[Array, Array] = store[MATRIX].both(store[x], given[y])
    return pair


def _gram(store: Store, _: Sequence[Array]) -> tuple[None, Array]:
    gram = store[MATRIX].gram()
    return None, gram.toarray() if hasattr(gram, "toarray") else gram


REDUCING: dict[str, Callable[..., tuple[Array | None, Any]]] = {
    "through": _through,  # which y, a number s, a vector e or None: t = A y, and A'(s t + e)
    "both": _both,  # a vector x, which y: A y, and A'x
    "tmul": lambda store, _, x: (None, store[MATRIX].tmul(store[x])),
    "gram": _gram,
    "dot": lambda store, _, a, b: (None, store[a].dot(store[b])),
    "max": lambda store, _, a: (None, store[a].max()),
    "value": lambda store, _, function, x: (None, float(store[function](store[x]))),
}


# -- how answers are joined --------------------------------------------------------------------------------------------


def fold(answers: Mapping[int, Answers], reductions: Sequence[str], shards: int) -> dict[Piece, Answers]:
    """The answers of some of the shards, joined as far as the tree allows without the others."""
    pieces: dict[Piece, Answers] = {(k, k + 1): own for k, own in answers.items()}
    _fold(pieces, reductions, 0, shards)
    return pieces


def _fold(pieces: dict[Piece, Answers], reductions: Sequence[str], first: int, last: int) -> None:
    if last - first == 1 or not any(first <= start < last for start, _ in pieces):
        return
    middle = (first + last) // 2
    for half in ((first, middle), (middle, last)):
        _fold(pieces, reductions, *half)
    if (first, middle) in pieces and (middle, last) in pieces:
        left, right = pieces.pop((first, middle)), pieces.pop((middle, last))
        pieces[first, last] = [
            np.maximum(a, b) if how == "max" else a + b for a, b, how in zip(left, right, reductions, strict=True)
        ]


def total(pieces: Iterable[Mapping[Piece, Answers]], reductions: Sequence[str], shards: int) -> Answers:
    """The answers of all shards joined, from what each worker has folded."""
    return joined(pieces, reductions, shards)[0, shards]


def joined(pieces: Iterable[Mapping[Piece, Answers]], reductions: Sequence[str], shards: int) -> dict[Piece, Answers]:
    """What several workers have folded, joined as far as the tree allows without the others."""
    every = {piece: answers for some in pieces for piece, answers in some.items()}
    _fold(every, reductions, 0, shards)
    return every


class Shards:
    """The shards that one process holds, by their numbers, each with its store."""

    def __init__(self, stores: Mapping[int, Store], shards: int) -> None:
        self.stores, self.shards = dict(stores), shards

    def run(self, program: Program, broadcast: Sequence[Array]) -> dict[Piece, Answers]:
        """Run the program on each, and fold the answers."""
        answers = {k: execute(program, store, broadcast) for k, store in self.stores.items()}
        return fold(answers, program.reductions, self.shards)


# -- what an engine offers ---------------------------------------------------------------------------------------------


class ShardsLost(ProblemError):  # noqa: N818 - a signal to the driver too
    """The engine has lost shards and cannot get them back; a run then ends with the best point that is here."""


class Engine(Runtime, ABC):
    """Where the shards are, and how to reach them. A new engine defines ``_round``, ``give`` and ``_gather``.

    Args:
        bounds: the rows at which shards begin, and the number of rows at the end: 0, ..., m.
        columns: of A.
        dtype: of A.

    Attributes:
        rounds: programs run so far.
        sent, received: bytes to and from one worker, on average: those of the broadcast, and those of the answers.
        gathered: bytes of vectors that were fetched from the shards.
    """

    kind = "local"  # as the command line calls it
    latency = 1e-4  # seconds, roughly
    measurable = False  # results repeat with any number of workers, and so must the choice of the method

    def __init__(self, bounds: Sequence[int], columns: int, dtype: Any) -> None:
        super().__init__()
        self.bounds, self.columns, self.dtype = tuple(bounds), columns, np.dtype(dtype)
        self.shards = len(self.bounds) - 1
        self.rounds = self.sent = self.received = self.gathered = 0
        self.dropped: list[int] = []  # names of vectors that are gone
        self._names = count(MATRIX + 1)

    @property
    def rows(self) -> int:
        """Of A."""
        return self.bounds[-1]

    def slice(self, k: int) -> slice:
        """The rows of a shard."""
        return slice(self.bounds[k], self.bounds[k + 1])

    def name(self) -> int:
        """A name for something new."""
        return next(self._names)

    def forgotten(self) -> tuple[int, ...]:
        """The names of vectors that are gone since this was asked last."""
        gone, self.dropped = tuple(self.dropped), []
        return gone

    def run(self, program: Program, broadcast: Sequence[Array]) -> Answers:
        """One round. It is done wholly or not at all: Ctrl-C waits for its end."""
        with undisturbed():
            answers = self._round(program, broadcast)
        self.rounds += 1
        self.sent += sum(y.nbytes for y in broadcast)
        self.received += sum(answer.nbytes for answer in answers)
        return answers

    def gather(self, name: int) -> Array:
        """A vector that the shards hold, as one array here."""
        with undisturbed():
            vector = self._gather(name)
        self.gathered += vector.nbytes
        return vector

    @abstractmethod
    def _round(self, program: Program, broadcast: Sequence[Array]) -> Answers:
        """Have every shard ``execute`` the program, and return the ``total`` of what they answer."""

    @abstractmethod
    def give(self, name: int, part: Callable[[int], Any]) -> None:
        """Let every shard k hold ``part(k)``, a vector's part or a function's, under ``name``."""

    @abstractmethod
    def _gather(self, name: int) -> Array:
        """The parts of a vector, one after the other."""

    def close(self) -> None:
        """Let everything go."""
        self.dropped = []


@contextmanager
def undisturbed() -> Iterator[None]:
    """SIGINT and SIGTERM wait until the end; a second SIGINT does not."""
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
