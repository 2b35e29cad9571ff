"""Dask: the shards are the row blocks of a Dask array, and stay on the workers that loaded them.

Each worker has one actor, an object of Dask's that lives there and is called without the scheduler, with the stores of
the worker's shards. A round is one message to each actor and one answer: y goes out, and what the shards answer comes
back added up. With many workers both travel along a tree, of which the driver is the root.

Workers may die. Dask then loads their blocks again wherever there is room, from what the array is made of. What else
the shards held is made again: the engine has a copy of it, taken now and then, and the programs of all rounds since,
which on the same store make the same bits. The run above does not notice, but for the time it takes.
"""

from __future__ import annotations

import asyncio
import logging
import math
import pickle
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from importlib import import_module
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from saddlepoint.ground.arrays import Array
from saddlepoint.ground.errors import ProblemError
from saddlepoint.parts.coupling import Coupling, as_coupling
from saddlepoint.parts.coupling.cpu_kernels import threads as kernel_threads
from saddlepoint.parts.sharded.coupling import ShardedCoupling
from saddlepoint.parts.sharded.dask_array import checked, row_bounds
from saddlepoint.parts.sharded.dask_cluster import Cluster, library, present
from saddlepoint.parts.sharded.engine import (
    FUSE_BYTES,
    MATRIX,
    Answers,
    Engine,
    Piece,
    Program,
    Shards,
    ShardsLost,
    joined,
    total,
)
from saddlepoint.parts.sharded.local import even_bounds

FAN = 8  # actors to which the driver, and every actor, passes a message on
ROUNDS = 32  # from one copy of the stores to the next, at least,
SHARE = 0.05  # and so many that copying takes no more than this share of the time
PATIENCE = 60.0  # seconds to wait for a worker when there is none
POLL = 0.05  # seconds between two looks at what is under way
TRIES = 5  # times that shards are brought back for one round
ROOM = 0.6  # of a worker's memory, from which on Dask moves what it holds to disk

log = logging.getLogger("saddlepoint")


class _Lost(Exception):  # noqa: N818 - a signal within the engine
    """A worker does not answer."""


class Entry(NamedTuple):
    """What was done to the stores: a program was run, or (without a program) a vector was given."""

    program: Program | None
    broadcast: Sequence[Array]
    given: tuple[int, dict[int, Any]] | None = None


class _Raised(Exception):  # noqa: N818 - likewise
    """A worker answers that a call failed; the exception is the cause."""


class Pickled(NamedTuple):
    """A function on its way to a worker, which opens it there."""

    data: bytes


class Actor(NamedTuple):
    """Where to call: an address, and the actor's name there."""

    worker: str
    key: str


async def called(rpc: Any, key: str, method: str, *arguments: Any) -> Any:
    """What a method of an actor returns.

    The message is that of ``distributed.Actor``, which would wait for the return of an actor that is lost.
    """
    packed = import_module("distributed.protocol").to_serialize
    reply = await rpc.actor_execute(function=method, actor=key, args=list(map(packed, arguments)))
    if reply["status"] != "OK":
        raise _Raised from reply["exception"]
    return reply["result"]


class ShardActor:
    """The actor of one worker: its shards with their stores.

    Args:
        numbers: of its shards,
        shards: among so many.
        shapes: that the blocks should have.
        dtype: likewise.
        blocks: rows of A.

    Attributes:
        busy: seconds that the shards worked.
    """

    def __init__(
        self, numbers: Sequence[int], shards: int, shapes: Sequence[tuple[int, int]], dtype: str, *blocks: Any
    ) -> None:
        stores: dict[int, dict[int, Any]] = {}
        for k, shape, block in zip(numbers, shapes, blocks, strict=True):
            if block.shape != shape or str(block.dtype) != dtype:
                raise ProblemError(
                    f"shard {k} of A is {_told(block.shape, block.dtype)}; expected {_told(shape, dtype)}, as the Dask "
                    "array says: correct the meta data that it was made with"
                )
            stores[k] = {MATRIX: as_coupling(_opened(block), f"shard {k} of A", FUSE_BYTES)}
        self.stores, self.shards = stores, shards
        self.below: tuple[Actor, ...] = ()
        self.busy = 0.0
        self.worker = library().get_worker()
        # Kernels that have all cores for themselves need no threads beside them.
        own = self.worker.state.nthreads if kernel_threads() == 1 else 1
        starts = even_bounds(len(numbers), min(own, len(numbers)))
        self.groups = [Shards({k: stores[k] for k in numbers[start:stop]}, shards) for start, stop in pairwise(starts)]
        self.pool: Executor = ThreadPoolExecutor(len(self.groups), thread_name_prefix="saddlepoint-shards")

    def link(self, below: Sequence[Actor]) -> None:
        """Pass messages on to these actors."""
        self.below = tuple(below)

    async def run(self, program: Program, broadcast: Sequence[Array]) -> Any:
        """Run the program on all shards, here and below: the folded answers, and the bytes that they were on the way.

        An exception of the program is returned: what this raises means that an actor is lost.
        """
        loop = asyncio.get_running_loop()
        passed = [
            loop.create_task(called(self.worker.rpc(actor.worker), actor.key, "run", program, broadcast))
            for actor in self.below
        ]
        broadcast = list(map(_opened, broadcast))
        own = [loop.run_in_executor(self.pool, _timed, group, program, broadcast) for group in self.groups]
        moved = 0
        try:
            found = await asyncio.gather(*own)
        except Exception as error:
            return error
        pieces = [folded for folded, _ in found]
        self.busy += max(seconds for _, seconds in found)
        for answer in passed:
            below = await answer
            if isinstance(below, Exception):
                return below
            pieces.append(below[0])
            moved += below[1]
        folded = joined(pieces, program.reductions, self.shards)
        return folded, moved + sum(array.nbytes for answers in folded.values() for array in answers)

    def put(self, name: int, parts: dict[int, Any]) -> None:
        """Hold a part of something under a name."""
        for k, part in parts.items():
            self.stores[k][name] = _opened(part)

    def vectors(self, name: int | None = None) -> dict[int, dict[int, Array]]:
        """The parts of one vector, or of all, by shard and name."""
        return {
            k: {n: part for n, part in store.items() if isinstance(part, np.ndarray) and name in (None, n)}
            for k, store in self.stores.items()
        }

    def restore(self, kept: dict[int, dict[int, Any]], entries: Sequence[Entry]) -> None:
        """Take over what was kept, and do again what was done since."""
        for k, held in kept.items():
            self.stores[k].update({name: _opened(part) for name, part in held.items()})
        for program, broadcast, given in entries:
            if given is not None:
                self.put(*given)
            if program is not None:
                for group in self.groups:
                    group.run(program, list(map(_opened, broadcast)))


class DaskEngine(Engine):
    """The shards of a Dask array on the workers of a cluster.

    Args:
        A: a Dask array, chunked by rows.
        cluster: where to; the present ``distributed.Client``'s if left out, and this process if there is none.
        patience: seconds to wait for a worker when all are lost.
        name: of A in complaints.

    Attributes:
        out, back: bytes of vectors that went to workers and came back, all workers together.
        kept: bytes of the copies of the stores.
    """

    kind = "dask"
    fragile = True
    latency = 5e-3

    def __init__(self, A: Any, cluster: Cluster | None = None, patience: float = PATIENCE, name: str = "A") -> None:
        array = checked(A, name)
        super().__init__(row_bounds(array), int(array.shape[1]), array.dtype)
        self.label, self.patience = name, patience
        self.cluster: Cluster | None = present() if cluster is None else cluster
        self.client = self.cluster.client
        self.out = self.back = self.kept = 0
        self.functions: dict[int, dict[int, Any]] = {}  # parts of functions, by name and shard
        self.snapshot: dict[int, dict[int, Array]] = {k: {} for k in range(self.shards)}
        self.entries: list[Entry] = []  # since that was taken
        self.since, self.took = time.perf_counter(), 0.0
        self.actors: list[Actor] = []
        self.numbers: list[list[int]] = []  # of the shards of each
        self.roots: list[int] = []  # actors that the driver itself calls
        self.handles: list[Any] = []  # the futures of the actors, which keep them alive
        self.blocks: list[Any] = []  # those of the rows
        try:
            self.blocks = self._loading(array)
            self._place()
        except (ShardsLost, _Lost) as error:
            self.close()
            raise ProblemError(str(error)) from None
        except BaseException:
            self.close()
            raise

    @property
    def workers(self) -> int:
        """Those that hold shards."""
        return len(self.actors)

    # -- the seam ------------------------------------------------------------------------------------------------------

    def _round(self, program: Program, broadcast: Sequence[Array]) -> Answers:
        found = self._insist(lambda: self._ask("run", self.roots, lambda _: (program, list(broadcast))))
        for answer in found:
            if isinstance(answer, Exception):
                raise answer
        self.entries.append(Entry(program, broadcast))
        for name in (*program.drop, *program.temporary):
            self.functions.pop(name, None)
        self.out += self.workers * sum(array.nbytes for array in broadcast)
        self.back += sum(moved for _, moved in found)
        self._copy_if_due()
        return total([pieces for pieces, _ in found], program.reductions, self.shards)

    def give(self, name: int, part: Callable[[int], Any]) -> None:
        """Let every shard k hold ``part(k)``, a vector's part or a function's, under ``name``."""
        parts = {k: _closed(part(k)) for k in range(self.shards)}
        self._insist(lambda: self._ask("put", None, lambda i: (name, {k: parts[k] for k in self.numbers[i]})))
        if isinstance(parts[0], np.ndarray):
            self.entries.append(Entry(None, (), (name, parts)))
        else:
            self.functions[name] = parts

    def _gather(self, name: int) -> Array:
        found = self._insist(lambda: self._ask("vectors", None, lambda _: (name,)))
        parts = {k: held[name] for answer in found for k, held in answer.items()}
        return np.concatenate([parts[k] for k in range(self.shards)])

    def close(self) -> None:
        """Let the shards go, and with them a cluster that was started for them."""
        self.actors, self.handles, self.blocks, self.cluster = [], [], [], None

    # -- messages ------------------------------------------------------------------------------------------------------

    def _ask(self, method: str, which: Sequence[int] | None, arguments: Callable[[int], tuple[Any, ...]]) -> list[Any]:
        """Call a method of some actors, or all, at the same time; `_Lost` if one does not answer."""

        async def asked() -> list[Any]:
            calls = [called(self._rpc(i), self.actors[i].key, method, *arguments(i)) for i in chosen]
            return list(await asyncio.gather(*calls))

        if self.cluster is None:
            raise ProblemError(f"the shards of {self.label} were let go; make the problem anew")
        chosen = range(self.workers) if which is None else which
        try:
            answers: list[Any] = self.client.sync(asked)
        except _Raised as failed:
            told = f"{type(failed.__cause__).__name__}: {' '.join(str(failed.__cause__).split())}"
            if method == "run":  # which raises if an actor below is lost, and nothing else
                raise _Lost(told) from failed
            raise ProblemError(f"a Dask worker cannot take over its part of {self.label} or of g ({told})") from failed
        except Exception as error:
            raise _Lost(" ".join(str(error).split())) from error
        return answers

    def _rpc(self, i: int) -> Any:
        """The way to an actor's worker: straight, or by the scheduler if the client knows no other."""
        worker = self.actors[i].worker
        if self.client.direct_to_workers:
            return self.client.rpc(worker)
        return import_module("distributed.actor").ProxyRPC(self.client.scheduler, worker)

    def _insist(self, ask: Callable[[], list[Any]]) -> list[Any]:
        """Ask until there is an answer; shards that are lost are brought back before."""
        for _ in range(TRIES):
            try:
                return ask()
            except _Lost as lost:
                began = time.perf_counter()
                log.warning("a Dask worker is lost (%s): waiting until its shards are loaded again", lost)
                self._place()
                log.warning(
                    "all %d shards are back on %d workers after %.1f s, with the last %d rounds done again",
                    *(self.shards, self.workers, time.perf_counter() - began, len(self.entries)),
                )
        raise ShardsLost(f"shards were lost {TRIES} times in one round; look at the logs of the Dask workers")

    # -- shards that are lost ------------------------------------------------------------------------------------------

    def _copy_if_due(self) -> None:
        """Copy the stores to the driver, if that is long ago."""
        began = time.perf_counter()
        if len(self.entries) < ROUNDS or self.took > SHARE * (began - self.since):
            return
        try:
            found = self._ask("vectors", None, lambda _: ())
        except _Lost:  # the next round will notice
            return
        self.snapshot = {k: held for answer in found for k, held in answer.items()}
        self.kept += sum(part.nbytes for held in self.snapshot.values() for part in held.values())
        self.entries, self.since = [], time.perf_counter()
        self.took = self.since - began

    def _place(self) -> None:
        """Have an actor on each worker that holds blocks, with all that their shards should know."""
        while True:
            self.actors, self.handles = [], []
            self._some_workers()
            self._wait(self.blocks, "loading")
            holders = self._holders()
            if not holders:
                continue
            self.numbers = list(holders.values())
            self.handles = [self._actor(worker, numbers) for worker, numbers in holders.items()]
            try:
                self._wait(self.handles, "setting up", set(holders))
                self.actors = [Actor(worker, handle.key) for worker, handle in zip(holders, self.handles, strict=True)]
                self._link()
                self._ask("restore", None, self._known)
            except _Lost:
                continue
            return

    def _holders(self) -> dict[str, list[int]]:
        """The shards by the worker that holds their blocks; empty if one is on its way elsewhere."""
        there = self._workers()
        places = self.client.who_has(self.blocks) if there else {}
        found: dict[str, list[int]] = {}
        for k, block in enumerate(self.blocks):
            holding = sorted(worker for worker in places.get(block.key, ()) if worker in there)
            if not holding:
                time.sleep(POLL)
                return {}
            found.setdefault(holding[0], []).append(k)
        return found

    def _actor(self, worker: str, numbers: list[int]) -> Any:
        shapes = [(self.bounds[k + 1] - self.bounds[k], self.columns) for k in numbers]
        blocks = [self.blocks[k] for k in numbers]
        return self.client.submit(
            *(ShardActor, numbers, self.shards, shapes, str(self.dtype), *blocks),
            **{"actor": True, "workers": [worker], "pure": False},
        )

    def _link(self) -> None:
        """The driver calls up to FAN actors, each of them as many more, and so on."""

        def head(several: list[int]) -> int:
            below = [head(some) for some in _split(several[1:], FAN)]
            if below:
                self._ask("link", several[:1], lambda _: ([self.actors[i] for i in below],))
            return several[0]

        self.roots = [head(some) for some in _split(list(range(self.workers)), FAN)]

    def _known(self, i: int) -> tuple[dict[int, dict[int, Any]], list[Entry]]:
        """What the shards of an actor should know."""
        mine = self.numbers[i]
        kept = {k: {**{name: parts[k] for name, parts in self.functions.items()}, **self.snapshot[k]} for k in mine}
        entries = [
            entry
            if entry.given is None
            else entry._replace(given=(entry.given[0], {k: entry.given[1][k] for k in mine}))
            for entry in self.entries
        ]
        return kept, entries

    # -- loading -------------------------------------------------------------------------------------------------------

    def _workers(self) -> dict[str, Any]:
        """What Dask knows about each worker, by address; in the order of their names."""
        if self.client.status != "running":
            raise ShardsLost("the Dask client is closed, or its scheduler is gone")
        found: dict[str, Any] = self.client.scheduler_info()["workers"]
        return dict(sorted(found.items(), key=lambda item: (str(item[1]["name"]), item[0])))

    def _loading(self, array: Any) -> list[Any]:
        """The futures of the blocks. Each worker loads neighbours, in proportion to its threads."""
        futures_of = library().futures_of
        keys = [row[0] for row in array.__dask_keys__()]
        held = {future.key: future for future in futures_of(array)}
        if all(key in held for key in keys):  # the caller persisted A; where it is, it stays
            return [held[key] for key in keys]
        workers = self._some_workers()
        threads = np.cumsum([0, *(told["nthreads"] for told in workers.values())])
        starts = [self.shards * int(before) // int(threads[-1]) for before in threads]
        self._check_room(array, workers, starts)
        blocks = []
        for worker, start, stop in zip(workers, starts[:-1], starts[1:], strict=True):
            if start < stop:
                part = self.client.persist(array.blocks[start:stop], workers=[worker], allow_other_workers=True)
                found = {future.key: future for future in futures_of(part)}
                blocks += [found[row[0]] for row in part.__dask_keys__()]
        return blocks

    def _check_room(self, array: Any, workers: dict[str, Any], starts: list[int]) -> None:
        """Refuse what cannot fit; of sparse blocks, the size is not known."""
        if not isinstance(array._meta, np.ndarray):
            return
        for told, start, stop in zip(workers.values(), starts[:-1], starts[1:], strict=True):
            size = (self.bounds[stop] - self.bounds[start]) * self.columns * self.dtype.itemsize
            limit = told["memory_limit"] or math.inf
            if size > ROOM * limit:
                raise ProblemError(
                    f"{self.label} has {array.nbytes / 2**30:.3g} GiB, of which the worker {told['name']} would hold "
                    f"{size / 2**30:.3g} GiB with a memory of {limit / 2**30:.3g} GiB; expected {ROOM:.0%} of it at "
                    "most: use more workers, or give them more memory"
                )

    def _some_workers(self) -> dict[str, Any]:
        """The workers; waits for the first."""
        began = time.perf_counter()
        while not (workers := self._workers()):
            if time.perf_counter() - began > self.patience:
                raise ShardsLost(
                    f"all Dask workers are lost, and none came back within {self.patience:.3g} s"
                    if self.blocks
                    else f"no Dask worker came within {self.patience:.3g} s"
                )
            time.sleep(POLL)
        return workers

    def _wait(self, futures: Iterable[Any], doing: str, needed: set[str] | None = None) -> None:
        """Until all are there. `_Lost` if a worker that is needed for them dies, ShardsLost if there are none left."""
        seen = time.perf_counter()
        waiting = list(futures)
        while waiting := [future for future in waiting if future.status != "finished"]:
            for future in waiting:
                if future.status in ("error", "cancelled"):
                    self._failed(future, doing, needed)
            now, workers = time.perf_counter(), self._workers()
            if needed is not None and not needed <= set(workers):
                raise _Lost("it died while it was set up")
            seen = now if workers else seen
            if now - seen > self.patience:
                raise ShardsLost(f"all Dask workers are lost, and none came back within {self.patience:.3g} s")
            time.sleep(POLL)

    def _failed(self, future: Any, doing: str, needed: set[str] | None) -> None:
        """Say why a block or an actor cannot be made."""
        error = future.exception(timeout=self.patience) if future.status == "error" else None
        if isinstance(error, ProblemError):
            raise error
        if needed is not None and not needed <= set(self._workers()):
            raise _Lost("it died while it was set up")
        told = "it was cancelled" if error is None else f"{type(error).__name__}: {' '.join(str(error).split())}"
        if isinstance(error, ModuleNotFoundError) and "saddlepoint" in str(error):
            raise ProblemError("the Dask workers cannot import saddlepoint; install it where they run")
        if isinstance(error, import_module("distributed").KilledWorker):
            raise ShardsLost(
                f"Dask workers died again and again while they were {doing} shards of {self.label}; their memory may "
                "be too small for the chunks: make these smaller, or give the workers more"
            )
        shard = f"shard {self.blocks.index(future)}" if future in self.blocks else "a shard"
        raise ProblemError(f"{doing} {shard} of {self.label} failed ({told})") from error


def dask_coupling(A: Any, name: str = "A", cluster: Cluster | None = None) -> Coupling:
    """A Dask array as a coupling."""
    return ShardedCoupling(DaskEngine(A, cluster, name=name))


def _timed(group: Shards, program: Program, broadcast: Sequence[Array]) -> tuple[dict[Piece, Answers], float]:
    began = time.perf_counter()
    folded = group.run(program, broadcast)
    return folded, time.perf_counter() - began


def _closed(part: Any) -> Any:
    """A part as it is sent: functions are pickled here, so that it is told in a sentence if they cannot be."""
    if isinstance(part, np.ndarray):
        return part
    try:
        return Pickled(import_module("cloudpickle").dumps(part))
    except Exception as error:
        told = f"{type(error).__name__}: {' '.join(str(error).split())}"
        raise ProblemError(
            f"a function cannot be sent to the Dask workers ({told}); expected what pickle takes"
        ) from None


def _opened(part: Any) -> Any:
    """A part as it is used. What came in a message may lie anywhere; at an odd address, each product copies it."""
    if isinstance(part, Pickled):
        return pickle.loads(part.data)
    return np.require(part, requirements="A") if isinstance(part, np.ndarray) else part


def _split(several: list[int], most: int) -> list[list[int]]:
    """Neighbours in groups of nearly equal size, and so many groups at most."""
    starts = even_bounds(len(several), min(most, len(several))) if several else [0]
    return [several[start:stop] for start, stop in pairwise(starts)]


def _told(shape: Sequence[int], dtype: Any) -> str:
    return f"{' x '.join(map(str, shape))} of {dtype}"
