"""What a round on Dask costs beyond the work of the shards, what it moves, and how it scales from one worker to two.

The work of the shards alone is timed on the workers, in the same rounds; the slowest worker of a round counts.
All times are by the wall clock.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

import saddlepoint as sp
from saddlepoint.methods.registry import make_method
from saddlepoint.parts.coupling import Norm
from saddlepoint.parts.sharded.coupling import ShardedCoupling
from saddlepoint.parts.sharded.dask import DaskEngine
from saddlepoint.parts.sharded.dask_actor import ShardActor
from saddlepoint.parts.sharded.dask_array import rows_from
from saddlepoint.parts.sharded.dask_cluster import Cluster
from saddlepoint.parts.sharded.local import even_bounds

COLUMNS = 1024  # of A
SHARDS = 16  # parts of the rows of A


def read(start: int, stop: int) -> Any:
    """Some rows of A."""
    return np.random.default_rng(start).standard_normal((stop - start, COLUMNS))


def busy(dask_worker: Any) -> float:
    """Seconds that a worker has spent on its shards."""
    return sum(actor.busy for actor in dask_worker.state.actors.values() if isinstance(actor, ShardActor))


def seconds(call: Callable[[], Any], times: int, warm: bool = True) -> list[float]:
    """The seconds of some calls, after one that is not timed if ``warm``."""
    if warm:
        call()
    found = []
    for _ in range(times):
        began = time.perf_counter()
        call()
        found.append(time.perf_counter() - began)
    return found


def shard_task(block: Any, y: Any) -> Any:
    """The product of one shard, as a task."""
    return block.T @ (block @ y)


def worker_task(y: Any, *blocks: Any) -> Any:
    """The sum of the products of the shards of one worker, as a task."""
    return sum(shard_task(block, y) for block in blocks)


def by_tasks(client: Any, engine: DaskEngine, y: Any, each_shard: bool) -> Callable[[], Any]:
    """The same sums as tasks of the scheduler instead of calls of actors."""

    def call() -> Any:
        futures = []
        for actor, numbers in zip(engine.actors, engine.numbers, strict=True):
            blocks = [engine.blocks[k] for k in numbers]
            pinned = {"workers": [actor.worker], "pure": False}
            if each_shard:
                futures += [client.submit(shard_task, block, y, **pinned) for block in blocks]
            else:
                futures.append(client.submit(worker_task, y, *blocks, **pinned))
        return sum(client.gather(futures, direct=True))

    return call


def median_ms(values: list[float]) -> float:
    """The median of some seconds, in milliseconds."""
    return 1e3 * float(np.median(values))


def as_text(values: list[float]) -> str:
    """The median and, in brackets, the least of some seconds."""
    return f"{median_ms(values):.1f} ms ({1e3 * min(values):.1f})"


class Measured:
    """A matrix on a number of workers, and its measurements."""

    def __init__(self, workers: int, rows: int, rounds: int, tasks: bool = False) -> None:
        distributed = import_module("distributed")
        with (
            distributed.LocalCluster(
                n_workers=workers, threads_per_worker=1, dashboard_address=":0", memory_limit="3GiB"
            ) as local,
            distributed.Client(local, direct_to_workers=True) as client,
        ):
            engine = DaskEngine(rows_from(read, even_bounds(rows, SHARDS), COLUMNS, "float64"), Cluster(client))
            A, y = ShardedCoupling(engine), np.ones(COLUMNS)
            self.rounds, self.alone, worked = [], [], client.run(busy)
            for number in range(rounds + 1):
                (took,) = seconds(lambda: A.through(y), 1, warm=False)
                before, worked = worked, client.run(busy)
                if number:  # the first round compiles the loops
                    self.rounds.append(took)
                    self.alone.append(max(worked[worker] - before[worker] for worker in worked))
            self.more = [whole - pure for whole, pure in zip(self.rounds, self.alone, strict=True)]
            self.tasks = (
                [seconds(by_tasks(client, engine, y, each), rounds // 3) for each in (False, True)] if tasks else []
            )
            self.proxied = self._proxied(distributed, local, rows, y, rounds) if tasks else []
            self.iteration(A, engine, rounds)
            engine.close()

    def _proxied(self, distributed: Any, local: Any, rows: int, y: Any, rounds: int) -> list[float]:
        """Rounds by the scheduler, as with a client that cannot reach the workers, on a small matrix."""
        with distributed.Client(local, set_as_default=False) as client:
            engine = DaskEngine(rows_from(read, even_bounds(SHARDS, SHARDS), COLUMNS, "float64"), Cluster(client))
            A = ShardedCoupling(engine)
            found = seconds(lambda: A.through(y), rounds)
            engine.close()
        with distributed.Client(local, set_as_default=False, direct_to_workers=True) as client:
            engine = DaskEngine(rows_from(read, even_bounds(SHARDS, SHARDS), COLUMNS, "float64"), Cluster(client))
            A = ShardedCoupling(engine)
            self.straight = seconds(lambda: A.through(y), rounds)
            engine.close()
        return found

    def iteration(self, A: ShardedCoupling, engine: DaskEngine, steps: int) -> None:
        """Rounds, bytes and time of iterations of Condat-Vu."""
        m, n = A.shape
        A.__dict__["norm_estimate"] = A.T.__dict__["norm_estimate"] = Norm(0.0, 2.0 * m**0.5, 0.0, 0)
        f = sp.Saddle(sp.Huber(None, np.ones(m), l2=1.0), sp.Quadratic(1.0, np.ones(n)), A)
        method = make_method("condat-vu")
        view = method.normal_form(f)
        state = method.init(view.problem, *view.to(f.space.of_x.zeros(m), f.space.of_y.zeros(n)))
        state = method.step(view.problem, method.step(view.problem, state))
        before = np.array([engine.rounds, engine.out, engine.back, engine.kept, loopback_bytes()])
        self.steps = []
        for _ in range(steps):
            began = time.perf_counter()
            state = method.step(view.problem, state)
            self.steps.append(time.perf_counter() - began)
        after = np.array([engine.rounds, engine.out, engine.back, engine.kept, loopback_bytes()])
        self.moved = (after - before) / steps


def loopback_bytes() -> float:
    """Bytes that this machine has sent over its loopback interface."""
    return float(import_module("psutil").net_io_counters(pernic=True)["lo"].bytes_sent)


def main(gigabytes: float = 1.0, rounds: int = 60) -> None:
    """Print the page."""
    rows = int(gigabytes * 2**30 / 8 / COLUMNS)
    two, one = Measured(2, rows, rounds, tasks=True), Measured(1, rows, rounds)
    half = Measured(1, rows // 2, rounds)

    print(
        f"A is {rows} x {COLUMNS} float64, {gigabytes:g} GiB in {SHARDS} shards; workers are processes with one thread."
    )
    print(f"Times are medians of {rounds} rounds, and in brackets the fastest; the load of the machine was")
    print(f"{os.getloadavg()[0]:.1f} at the end, on {os.cpu_count()} cores.\n")
    print("| workers | a round | the shards alone | overhead | ratio |\n|---|---|---|---|---|")
    for workers, found in ((2, two), (1, one)):
        ratio = float(np.median(np.divide(found.rounds, found.alone)))
        print(f"| {workers} | {as_text(found.rounds)} | {as_text(found.alone)} | {as_text(found.more)} | {ratio:.3f} |")
    print("\n## One message a worker\n\n| on 2 workers | a round |\n|---|---|")
    print(f"| one call of an actor for each worker | {as_text(two.rounds)} |")
    print(f"| one task for each worker (two plain products) | {as_text(two.tasks[0])} |")
    print(f"| one task for each shard (two plain products) | {as_text(two.tasks[1])} |")
    print(f"| actors, a matrix of {SHARDS} rows: the messages alone | {as_text(two.straight)} |")
    print(f"| the same by the scheduler (`direct_to_workers` not set) | {as_text(two.proxied)} |")
    print("\n## What an iteration of Condat-Vu moves\n")
    print(
        "| workers | rounds | bytes out | by theory | bytes back | by theory | copies | over the loopback interface |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for workers, found in ((2, two), (1, one)):
        theory, (count, out, back, kept, sent) = workers * 8 * COLUMNS, found.moved
        print(f"| {workers} | {count:g} | {out:g} | {theory} | {back:g} | {theory} | {kept:.0f} | {sent:.0f} |")
    print(
        "\nCopies are those of the stores, taken for the case that a worker dies. The last column counts all bytes that"
    )
    print("crossed the loopback interface meanwhile: headers, heartbeats, and all other local traffic.")
    print("\n## Scaling\n\n| | 1 worker | 2 workers | speed-up or efficiency |\n|---|---|---|---|")
    for kind, single in ((f"strong, {gigabytes:g} GiB", one), (f"weak, {gigabytes / 2:g} GiB a worker", half)):
        for name in ("rounds", "alone", "steps"):
            a, b = (getattr(found, name) for found in (single, two))
            what = {"rounds": "a round", "alone": "the shards alone", "steps": "an iteration"}[name]
            gain = f"{median_ms(a) / median_ms(b):.2f} ({min(a) / min(b):.2f})"
            print(f"| {kind}: {what} | {as_text(a)} | {as_text(b)} | {gain} |")


if __name__ == "__main__":
    main(*((0.125, 12) if "--quick" in sys.argv else ()))
