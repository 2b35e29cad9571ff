"""The Dask actor of one worker: it holds the stores of the worker's shards and runs programs on them."""

from __future__ import annotations

import asyncio
import pickle
import time
from collections.abc import Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from importlib import import_module
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from saddlepoint.ground.arrays import Array
from saddlepoint.ground.errors import ProblemError
from saddlepoint.parts.coupling import as_coupling
from saddlepoint.parts.coupling.compiled_loops import threads as loop_threads
from saddlepoint.parts.sharded.dask_cluster import import_distributed
from saddlepoint.parts.sharded.local import even_bounds
from saddlepoint.parts.sharded.shard_program import FUSE_BYTES, MATRIX, Answers, Piece, Program, Shards, joined


class Entry(NamedTuple):
    """One change of the stores: a program that was run, or (if that is None) a vector that was scattered."""

    program: Program | None
    broadcast: Sequence[Array]
    scattered: tuple[int, dict[int, Any]] | None = None


class CallFailed(Exception):  # noqa: N818 - a signal within the engine
    """A call of an actor raised an exception, which is the cause of this one."""


class Pickled(NamedTuple):
    """A pickled function, which the worker unpickles."""

    data: bytes


class Actor(NamedTuple):
    """The address of a worker, and the name of the actor there."""

    worker: str
    key: str


async def call_actor(rpc: Any, key: str, method: str, *arguments: Any) -> Any:
    """Call a method of an actor and return its result.

    ``distributed.Actor`` sends the same message, but it would wait without end for an actor that is lost.
    """
    packed = import_module("distributed.protocol").to_serialize
    reply = await rpc.actor_execute(function=method, actor=key, args=list(map(packed, arguments)))
    if reply["status"] != "OK":
        raise CallFailed from reply["exception"]
    return reply["result"]


class ShardActor:
    """The actor of one worker, with the stores of its shards.

    Args:
        numbers: the numbers of its shards.
        shards: number of all shards.
        shapes: expected shapes of the blocks.
        dtype: expected dtype of the blocks.
        blocks: the rows of A of these shards.

    Attributes:
        busy: seconds that the shards have computed.
    """

    def __init__(
        self, numbers: Sequence[int], shards: int, shapes: Sequence[tuple[int, int]], dtype: str, *blocks: Any
    ) -> None:
        stores: dict[int, dict[int, Any]] = {}
        for k, shape, block in zip(numbers, shapes, blocks, strict=True):
            if block.shape != shape or str(block.dtype) != dtype:
                raise ProblemError(
                    f"shard {k} of A is {_describe(block.shape, block.dtype)}; expected {_describe(shape, dtype)}, as "
                    "the Dask array says: correct the meta data that it was made with"
                )
            stores[k] = {MATRIX: as_coupling(unpacked(block), f"shard {k} of A", FUSE_BYTES)}
        self.stores, self.shards = stores, shards
        self.below: tuple[Actor, ...] = ()
        self.busy = 0.0
        self.worker = import_distributed().get_worker()
        # Where the compiled products use several threads themselves, the shards are computed one after the other.
        own = self.worker.state.nthreads if loop_threads() == 1 else 1
        starts = even_bounds(len(numbers), min(own, len(numbers)))
        self.groups = [Shards({k: stores[k] for k in numbers[start:stop]}, shards) for start, stop in pairwise(starts)]
        self.pool: Executor = ThreadPoolExecutor(len(self.groups), thread_name_prefix="saddlepoint-shards")

    def link(self, below: Sequence[Actor]) -> None:
        """Pass messages on to these actors."""
        self.below = tuple(below)

    async def run(self, program: Program, broadcast: Sequence[Array]) -> Any:
        """Run the program on the shards of this actor and of those below it in the tree.

        Returns the folded answers and the number of bytes sent for them. An exception of the program is returned, not
        raised: if this method raises, an actor is lost.
        """
        loop = asyncio.get_running_loop()
        passed = [
            loop.create_task(call_actor(self.worker.rpc(actor.worker), actor.key, "run", program, broadcast))
            for actor in self.below
        ]
        broadcast = list(map(unpacked, broadcast))
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
        """Store parts, by shard, under a name."""
        for k, part in parts.items():
            self.stores[k][name] = unpacked(part)

    def vectors(self, name: int | None = None) -> dict[int, dict[int, Array]]:
        """The parts of one vector, or of all vectors, by shard and name."""
        return {
            k: {n: part for n, part in store.items() if isinstance(part, np.ndarray) and name in (None, n)}
            for k, store in self.stores.items()
        }

    def restore(self, kept: dict[int, dict[int, Any]], entries: Sequence[Entry]) -> None:
        """Store the copied parts, and repeat the changes since the copy."""
        for k, held in kept.items():
            self.stores[k].update({name: unpacked(part) for name, part in held.items()})
        for program, broadcast, scattered in entries:
            if scattered is not None:
                self.put(*scattered)
            if program is not None:
                for group in self.groups:
                    group.run(program, list(map(unpacked, broadcast)))


def _timed(group: Shards, program: Program, broadcast: Sequence[Array]) -> tuple[dict[Piece, Answers], float]:
    began = time.perf_counter()
    folded = group.run(program, broadcast)
    return folded, time.perf_counter() - began


def packed(part: Any) -> Any:
    """A part as it is sent: functions are pickled here, so that a failure can be explained in a ProblemError."""
    if isinstance(part, np.ndarray):
        return part
    try:
        return Pickled(import_module("cloudpickle").dumps(part))
    except Exception as error:
        reason = f"{type(error).__name__}: {' '.join(str(error).split())}"
        raise ProblemError(
            f"a function cannot be sent to the Dask workers ({reason}); expected one that can be pickled"
        ) from None


def unpacked(part: Any) -> Any:
    """A part as it is used. Arrays of a message may be unaligned in memory, and are then copied once."""
    if isinstance(part, Pickled):
        return pickle.loads(part.data)
    return np.require(part, requirements="A") if isinstance(part, np.ndarray) else part


def _describe(shape: Sequence[int], dtype: Any) -> str:
    return f"{' x '.join(map(str, shape))} of {dtype}"
