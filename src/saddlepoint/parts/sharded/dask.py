"""The Dask engine: the shards are the row blocks of a Dask array and stay on the workers that loaded them.

Each worker has one Dask actor, which holds the stores of its shards and is called without the scheduler. A round is one
message to each actor, with y, and one reply, with the sum over its shards. With many workers, messages and replies pass
along a tree of actors whose root is this process.

If a worker dies, Dask loads its blocks again on other workers. The rest of the stores is rebuilt: the engine has a
copy of the vectors, which it renews now and then, and the programs of all rounds since the copy. Running these again
gives the same bits, so a solve continues as if nothing had happened, only later.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from itertools import pairwise
from typing import Any

import numpy as np

from saddlepoint.ground.arrays import Array
from saddlepoint.ground.errors import ProblemError
from saddlepoint.parts.sharded.coupling import ShardedCoupling
from saddlepoint.parts.sharded.dask_actor import Actor, CallFailed, Entry, ShardActor, call_actor, packed
from saddlepoint.parts.sharded.dask_array import check_dask_array, row_bounds
from saddlepoint.parts.sharded.dask_cluster import Cluster, current_cluster, import_distributed
from saddlepoint.parts.sharded.engine import Engine, ShardsLost
from saddlepoint.parts.sharded.local import even_bounds
from saddlepoint.parts.sharded.shard_program import Answers, Program, total

FAN_OUT = 8  # number of actors to which this process, and every actor, passes a message on
COPY_ROUNDS = 32  # least number of rounds between two copies of the stores
COPY_SHARE = 0.05  # largest share of the time that copying the stores may take
PATIENCE = 60.0  # seconds to wait for a worker when there is none
POLL = 0.05  # seconds between two queries of the state of futures and workers
TRIES = 5  # how often lost shards are restored for one round
MEMORY_SHARE = 0.6  # share of a worker's memory that A may take; from there on Dask moves data to disk

log = logging.getLogger("saddlepoint")


class _Lost(Exception):  # noqa: N818 - a signal within the engine
    """A worker does not answer."""


class DaskEngine(Engine):
    """The shards of a Dask array on the workers of a cluster.

    Args:
        A: a Dask array, chunked by rows.
        cluster: the cluster; by default that of the current ``distributed.Client``, or this process without one.
        patience: seconds to wait for a worker when all are lost.
        name: the name of A in error messages.
        fan_out: number of actors to which this process, and every actor, passes a message on.
        copy_rounds: least number of rounds between two copies of the stores.

    Attributes:
        out, back: bytes of vectors sent to and received from all workers together.
        kept: bytes of all copies of the stores so far.
    """

    kind = "dask"
    fragile = True
    latency = 5e-3  # seconds

    def __init__(
        self,
        A: Any,
        cluster: Cluster | None = None,
        patience: float = PATIENCE,
        name: str = "A",
        fan_out: int = FAN_OUT,
        copy_rounds: int = COPY_ROUNDS,
    ) -> None:
        array = check_dask_array(A, name)
        super().__init__(row_bounds(array), int(array.shape[1]), array.dtype)
        self.label, self.patience = name, patience
        self.fan_out, self.copy_rounds = fan_out, copy_rounds
        self.cluster: Cluster | None = current_cluster() if cluster is None else cluster
        self.client = self.cluster.client
        self.out = self.back = self.kept = 0
        self.functions: dict[int, dict[int, Any]] = {}  # parts of functions, by name and shard
        self.snapshot: dict[int, dict[int, Array]] = {k: {} for k in range(self.shards)}
        self.entries: list[Entry] = []  # changes since the snapshot
        self.copied_at, self.copy_seconds = time.perf_counter(), 0.0
        self.actors: list[Actor] = []
        self.numbers: list[list[int]] = []  # the shards of each actor
        self.roots: list[int] = []  # actors that this process itself calls
        self.handles: list[Any] = []  # futures of the actors, which keep them alive
        self.blocks: list[Any] = []  # futures of the rows of A
        try:
            self.blocks = self._loading(array)
            self._place_actors()
        except (ShardsLost, _Lost) as error:
            self.close()
            raise ProblemError(str(error)) from None
        except BaseException:
            self.close()
            raise

    @property
    def workers(self) -> int:
        """The number of workers that hold shards."""
        return len(self.actors)

    # -- engine interface ----------------------------------------------------------------------------------------------

    def _round(self, program: Program, broadcast: Sequence[Array]) -> Answers:
        found = self._retry(lambda: self._ask("run", self.roots, lambda _: (program, list(broadcast))))
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

    def scatter(self, name: int, part: Callable[[int], Any]) -> None:
        """Store ``part(k)``, a part of a vector or of a function, under ``name`` in every shard k."""
        parts = {k: packed(part(k)) for k in range(self.shards)}
        self._retry(lambda: self._ask("put", None, lambda i: (name, {k: parts[k] for k in self.numbers[i]})))
        if isinstance(parts[0], np.ndarray):
            self.entries.append(Entry(None, (), (name, parts)))
        else:
            self.functions[name] = parts

    def _gather(self, name: int) -> Array:
        found = self._retry(lambda: self._ask("vectors", None, lambda _: (name,)))
        parts = {k: held[name] for answer in found for k, held in answer.items()}
        return np.concatenate([parts[k] for k in range(self.shards)])

    def close(self) -> None:
        """Free the shards; a cluster that was started for them alone is closed too."""
        self.actors, self.handles, self.blocks, self.cluster = [], [], [], None

    # -- messages ------------------------------------------------------------------------------------------------------

    def _ask(self, method: str, which: Sequence[int] | None, arguments: Callable[[int], tuple[Any, ...]]) -> list[Any]:
        """Call a method of some actors, or of all, at the same time; raise `_Lost` if one does not answer."""

        async def asked() -> list[Any]:
            calls = [call_actor(self._rpc(i), self.actors[i].key, method, *arguments(i)) for i in chosen]
            return list(await asyncio.gather(*calls))

        if self.cluster is None:
            raise ProblemError(f"the engine of {self.label} is closed; build the problem again")
        chosen = range(self.workers) if which is None else which
        try:
            answers: list[Any] = self.client.sync(asked)
        except CallFailed as failed:
            reason = f"{type(failed.__cause__).__name__}: {' '.join(str(failed.__cause__).split())}"
            if method == "run":  # it raises only if an actor below it in the tree is lost
                raise _Lost(reason) from failed
            raise ProblemError(f"a Dask worker cannot store its part of {self.label} or of g ({reason})") from failed
        except Exception as error:
            raise _Lost(" ".join(str(error).split())) from error
        return answers

    def _rpc(self, i: int) -> Any:
        """A connection to the worker of an actor: direct, or through the scheduler if the client has no other."""
        worker = self.actors[i].worker
        if self.client.direct_to_workers:
            return self.client.rpc(worker)
        return import_module("distributed.actor").ProxyRPC(self.client.scheduler, worker)

    def _retry(self, ask: Callable[[], list[Any]]) -> list[Any]:
        """Repeat a call until it is answered; lost shards are restored before each repetition."""
        for _ in range(TRIES):
            try:
                return ask()
            except _Lost as lost:
                began = time.perf_counter()
                log.warning("a Dask worker is lost (%s): waiting until its shards are loaded again", lost)
                self._place_actors()
                log.warning(
                    "all %d shards are back on %d workers after %.1f s, with the last %d rounds done again",
                    self.shards,
                    self.workers,
                    time.perf_counter() - began,
                    len(self.entries),
                )
        raise ShardsLost(
            f"shards were lost {TRIES} times in one round; read the logs of the Dask workers for the reason"
        )

    # -- shards that are lost ------------------------------------------------------------------------------------------

    def _copy_if_due(self) -> None:
        """Copy the vectors of the stores to this process, if the last copy is old enough."""
        began = time.perf_counter()
        if len(self.entries) < self.copy_rounds or self.copy_seconds > COPY_SHARE * (began - self.copied_at):
            return
        try:
            found = self._ask("vectors", None, lambda _: ())
        except _Lost:  # the next round will notice
            return
        self.snapshot = {k: held for answer in found for k, held in answer.items()}
        self.kept += sum(part.nbytes for held in self.snapshot.values() for part in held.values())
        self.entries, self.copied_at = [], time.perf_counter()
        self.copy_seconds = self.copied_at - began

    def _place_actors(self) -> None:
        """Create an actor on each worker that holds blocks, with the full contents of its stores."""
        while True:
            self.actors, self.handles = [], []
            self._some_workers()
            self._wait(self.blocks, "loading")
            shards_by_worker = self._shards_by_worker()
            if not shards_by_worker:
                continue
            self.numbers = list(shards_by_worker.values())
            self.handles = [self._actor(worker, numbers) for worker, numbers in shards_by_worker.items()]
            try:
                self._wait(self.handles, "setting up", set(shards_by_worker))
                self.actors = [
                    Actor(worker, handle.key) for worker, handle in zip(shards_by_worker, self.handles, strict=True)
                ]
                self._link()
                self._ask("restore", None, self._contents)
            except _Lost:
                continue
            return

    def _shards_by_worker(self) -> dict[str, list[int]]:
        """The numbers of the shards by the worker that holds their blocks; empty if a block is being moved."""
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
        given = numbers, self.shards, shapes, str(self.dtype), *blocks
        return self.client.submit(ShardActor, *given, actor=True, workers=[worker], pure=False)

    def _link(self) -> None:
        """Build the tree: this process calls up to ``fan_out`` actors, each of them as many more, and so on."""

        def head(several: list[int]) -> int:
            below = [head(some) for some in _split(several[1:], self.fan_out)]
            if below:
                self._ask("link", several[:1], lambda _: ([self.actors[i] for i in below],))
            return several[0]

        self.roots = [head(some) for some in _split(list(range(self.workers)), self.fan_out)]

    def _contents(self, i: int) -> tuple[dict[int, dict[int, Any]], list[Entry]]:
        """What the stores of an actor must contain: functions and copied vectors, and the changes since the copy."""
        mine = self.numbers[i]
        kept = {k: {**{name: parts[k] for name, parts in self.functions.items()}, **self.snapshot[k]} for k in mine}
        entries = [
            entry
            if entry.scattered is None
            else entry._replace(scattered=(entry.scattered[0], {k: entry.scattered[1][k] for k in mine}))
            for entry in self.entries
        ]
        return kept, entries

    # -- loading -------------------------------------------------------------------------------------------------------

    def _workers(self) -> dict[str, Any]:
        """Dask's information about each worker, by address, in the order of their names."""
        if self.client.status != "running":
            raise ShardsLost("the Dask client is closed, or its scheduler is gone")
        found: dict[str, Any] = self.client.scheduler_info()["workers"]
        return dict(sorted(found.items(), key=lambda item: (str(item[1]["name"]), item[0])))

    def _loading(self, array: Any) -> list[Any]:
        """The futures of the blocks. Each worker loads consecutive blocks, in proportion to its threads."""
        futures_of = import_distributed().futures_of
        keys = [row[0] for row in array.__dask_keys__()]
        held = {future.key: future for future in futures_of(array)}
        if all(key in held for key in keys):  # the caller has persisted A, and it stays where it is
            return [held[key] for key in keys]
        workers = self._some_workers()
        threads = np.cumsum([0, *(worker["nthreads"] for worker in workers.values())])
        starts = [self.shards * int(before) // int(threads[-1]) for before in threads]
        self._check_memory(array, workers, starts)
        blocks = []
        for worker, start, stop in zip(workers, starts[:-1], starts[1:], strict=True):
            if start < stop:
                part = self.client.persist(array.blocks[start:stop], workers=[worker], allow_other_workers=True)
                found = {future.key: future for future in futures_of(part)}
                blocks += [found[row[0]] for row in part.__dask_keys__()]
        return blocks

    def _check_memory(self, array: Any, workers: dict[str, Any], starts: list[int]) -> None:
        """Raise a ProblemError if the blocks do not fit the workers' memory; the size of sparse blocks is unknown."""
        if not isinstance(array._meta, np.ndarray):
            return
        for worker, start, stop in zip(workers.values(), starts[:-1], starts[1:], strict=True):
            size = (self.bounds[stop] - self.bounds[start]) * self.columns * self.dtype.itemsize
            limit = worker["memory_limit"] or math.inf
            if size > MEMORY_SHARE * limit:
                raise ProblemError(
                    f"{self.label} has {array.nbytes / 2**30:.3g} GiB, of which the worker {worker['name']} would hold "
                    f"{size / 2**30:.3g} GiB with a memory of {limit / 2**30:.3g} GiB; expected at most "
                    f"{MEMORY_SHARE:.0%} of it: use more workers, or give them more memory"
                )

    def _some_workers(self) -> dict[str, Any]:
        """The workers; if there are none, wait for the first."""
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
        """Wait until all futures are finished.

        Raises `_Lost` if one of the needed workers dies, and ShardsLost if no worker is left.
        """
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
        """Raise an error that says why a block or an actor could not be created."""
        error = future.exception(timeout=self.patience) if future.status == "error" else None
        if isinstance(error, ProblemError):
            raise error
        if needed is not None and not needed <= set(self._workers()):
            raise _Lost("it died while it was set up")
        reason = "it was cancelled" if error is None else f"{type(error).__name__}: {' '.join(str(error).split())}"
        if isinstance(error, ModuleNotFoundError) and "saddlepoint" in str(error):
            raise ProblemError("the Dask workers cannot import saddlepoint; install it where they run")
        if isinstance(error, import_module("distributed").KilledWorker):
            raise ShardsLost(
                f"Dask workers died again and again while they were {doing} shards of {self.label}; their memory may "
                "be too small for the chunks: make these smaller, or give the workers more"
            )
        shard = f"shard {self.blocks.index(future)}" if future in self.blocks else "a shard"
        raise ProblemError(f"{doing} {shard} of {self.label} failed ({reason})") from error


def dask_coupling(A: Any, name: str = "A", cluster: Cluster | None = None) -> ShardedCoupling:
    """A Dask array as a coupling."""
    return ShardedCoupling(DaskEngine(A, cluster, name=name))


def _split(several: list[int], most: int) -> list[list[int]]:
    """Consecutive numbers in at most ``most`` groups of nearly equal size."""
    starts = even_bounds(len(several), min(most, len(several))) if several else [0]
    return [several[start:stop] for start, stop in pairwise(starts)]
