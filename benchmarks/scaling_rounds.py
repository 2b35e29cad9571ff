"""Rounds on this machine, measured and predicted by the cost model: worker processes over TCP, Dask and MPI.

`benchmarks/scaling.py` prints them. This file is also the program of the ranks of MPI.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from importlib import import_module
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import network
import numpy as np

import saddlepoint as sp
from saddlepoint.theory import scaling
from saddlepoint.theory.scaling import Cluster, Counts, Job

TIMES = 100  # number of repetitions; the shortest counts, because other processes can only add time
PING = 400_000  # bytes of the ping that measures the link
COLUMNS = 1000  # of the matrices whose rounds are measured with the engines


def compared(team: network.Team, reference: tuple[int, int], sizes: list[tuple[int, int]]) -> Iterator[Any]:
    """The model's constants, and predicted and measured seconds of a round, for several sizes of A.

    Latency and network are those of pings, the bandwidth that of passes over one reference. Passes, pings and rounds
    are interleaved, so that other processes disturb them alike, and the shortest of each counts.
    """
    workers = len(team.links)
    for _ in range(20):
        team.ping(10 * PING)  # lets TCP enlarge its window
    team.share(0, *reference)
    for which, (rows, n) in enumerate(sizes, 1):
        team.share(which, rows, n)
        job, y = Job(8.0 * rows * n, 8.0 * n), np.ones(n)
        taken = [(team.passes(0), team.ping(1), team.ping(PING), team.round(which, y)) for _ in range(TIMES)]
        read, short, long, measured = map(min, zip(*taken, strict=True))
        bandwidth = 8.0 * math.prod(reference) / workers / read
        link = PING / max(0.5 * (long - short), 1e-9)
        cluster = Cluster(workers, bandwidth, bandwidth, 0.5 * short, link, fan_in=max(2, workers))
        yield job, cluster, scaling.round_seconds(job, cluster), measured


def here(quick: bool) -> Iterator[str]:
    """The tables of the first part, rounds on this machine."""
    reference = (4000, 4000) if quick else (16_000, 2000)
    sizes = [(20_000, 500), (2000, 10_000)] if quick else [(64_000, 500), (8000, 8000), (1000, 50_000)]
    head = "| workers | link | A | y | read | send | predicted | measured | off by |"
    yield from ("Milliseconds of a round:", "", head, "|" + "---|" * 9)
    errors = []
    for name, places in _places(quick):
        with places as where:
            if isinstance(where, str):
                yield f"| | {name} | {where} | | | | | | |"
                continue
            with network.team(where) as team:
                for job, cluster, one, measured in compared(team, reference, sizes):
                    predicted = one.total
                    errors.append(abs(predicted / measured - 1.0))
                    yield (
                        f"| {cluster.workers} | {name} | {job.size / 1e6:.0f} MB | {job.vector / 1e3:.0f} KB "
                        f"| {1e3 * one.read:.2f} | {1e3 * (one.broadcast + one.reduction):.2f} | {1e3 * predicted:.2f} "
                        f"| {1e3 * measured:.2f} | {100 * (predicted / measured - 1):+.0f} % |"
                    )
    yield ""
    yield f"Off by {100 * median(errors):.0f} % in the median and {100 * max(errors):.0f} % at most."


def _places(quick: bool) -> Iterator[tuple[str, Any]]:
    for workers in (1, 2):
        yield "loopback", nullcontext([("127.0.0.1", [])] * workers)
    for workers, delay in ((2, 0.0), (2, 5.0)) if quick else ((1, 1.0), (2, 0.0), (2, 1.0), (2, 5.0), (2, 20.0)):
        yield f"namespace, {delay:g} ms each way", _linked(workers, 1e-3 * delay)


class Tried(NamedTuple):
    """One A on an engine: the shortest and the median of many rounds, and a whole solve."""

    rows: int
    least: float
    usual: float
    rounds: int
    took: float


def tried(couplings: list[Any]) -> list[Tried]:
    """Interleaved rounds of several matrices, some in a row as in a solve, then a solve with each matrix."""
    taken = [[[_round(A) for _ in range(12)][2:] for A in couplings] for _ in range(TIMES // 10)]
    found = []
    for A, turns in zip(couplings, zip(*taken, strict=True), strict=True):
        all_of_it = [one for turn in turns for one in turn]
        m, n = A.shape
        f = sp.Saddle(sp.Quadratic(1.0, np.ones(m)), sp.Quadratic(1.0, np.ones(n)), A)
        before, watch = A.engine.rounds, time.perf_counter()
        sp.solve(f, method="lpd-gs", tol=1e-10)
        took = time.perf_counter() - watch
        found.append(Tried(m, min(all_of_it), median(all_of_it), A.engine.rounds - before, took))
    return found


def _round(A: Any) -> float:
    y = np.ones(A.shape[1])
    began = time.perf_counter()
    np.asarray(A.through(y, 0.5)[1])
    return time.perf_counter() - began


def with_engines(quick: bool) -> Iterator[str]:
    """The same for the engines, and for whole solves: a small and a large A calibrate each, others are predicted."""
    sizes = (64, 8000, 4000, 2000) if quick else (64, 64_000, 32_000, 16_000)
    yield "With the engines: milliseconds of a round (the least), and seconds of a solve with its certificates, from"
    yield "median rounds. The overhead is that of an A of no size, the bandwidth that of the largest:"
    head = "| engine | workers | A | predicted | a round | off by | rounds of a solve | predicted | took | off by |"
    yield from ("", head, "|" + "---|" * 10)
    for name, engine in {"Dask": _on_dask, "MPI": _on_ranks}.items():
        for workers in (1, 2):
            try:
                small, large, *others = engine(workers, sizes)
            except ImportError as error:
                yield f"| {name} | {workers} | not here: {error} |" + " |" * 7
                continue
            least, usual = (_calibrated(workers, small, large, kind) for kind in ("least", "usual"))
            for one in others:
                job = Job(8.0 * one.rows * COLUMNS, 8.0 * COLUMNS)
                predicted = scaling.round_seconds(job, least).total
                whole = scaling.solution_seconds(Counts(one.rounds, 0.0), job, usual)
                yield (
                    f"| {name} | {workers} | {job.size / 1e6:.0f} MB | {1e3 * predicted:.2f} | {1e3 * one.least:.2f} "
                    f"| {100 * (predicted / one.least - 1):+.0f} % | {one.rounds} | {whole:.2f} | {one.took:.2f} "
                    f"| {100 * (whole / one.took - 1):+.0f} % |"
                )


def _calibrated(workers: int, small: Tried, large: Tried, kind: str) -> Cluster:
    overhead, slow = getattr(small, kind), getattr(large, kind)
    bandwidth = 8.0 * large.rows * COLUMNS / workers / (slow - overhead)
    return Cluster(workers, bandwidth, bandwidth, 0.0, 1e300, overhead=overhead)


def _on_dask(workers: int, sizes: tuple[int, ...]) -> list[Tried]:
    da: Any = import_module("dask.array")
    from saddlepoint.parts.sharded.dask import dask_coupling
    from saddlepoint.parts.sharded.dask_cluster import connect

    with connect(None, workers, None) as cluster:
        couplings = []
        for rows in sizes:
            D = da.random.default_rng(0).standard_normal((rows, COLUMNS), chunks=(rows // 8, COLUMNS))
            couplings.append(dask_coupling(D / math.sqrt(rows + COLUMNS), "A", cluster))
        found = tried(couplings)
        for A in couplings:
            A.engine.close()
    return found


def _on_ranks(workers: int, sizes: tuple[int, ...]) -> list[Tried]:
    """The measurement with MPI, in a job of its own, because this process is not one of its ranks."""
    import_module("mpi4py")
    beside = Path(sys.executable).with_name("mpiexec")
    command = [str(beside) if beside.exists() else "mpiexec", "-n", str(workers), sys.executable, __file__]
    with TemporaryDirectory() as folder:
        for rows in sizes:
            A = np.random.default_rng(0).standard_normal((rows, COLUMNS)) / math.sqrt(rows + COLUMNS)
            np.save(Path(folder, f"{rows}.npy"), A)
        files = [str(Path(folder, f"{rows}.npy")) for rows in sizes]
        answer = subprocess.run([*command, *files], check=True, capture_output=True, text=True).stdout
    return [Tried(*row) for row in json.loads(answer)]


def rank(files: list[str]) -> None:
    """The program of every rank of that job; the first one prints the measurements."""
    from saddlepoint.parts.sharded import ShardedCoupling
    from saddlepoint.parts.sharded.mpi import MPIEngine, world

    found = tried([ShardedCoupling(MPIEngine(np.load(file, mmap_mode="r"))) for file in files])
    if world().Get_rank() == 0:
        print(json.dumps(found))


@contextmanager
def _linked(workers: int, delay: float) -> Iterator[Any]:
    """The namespaces, or the reason why there are none."""
    try:
        links = network.namespaces(workers, delay)
        places = links.__enter__()
    except (OSError, subprocess.CalledProcessError) as error:
        yield f"not possible here: {error}"
        return
    try:
        yield places
    finally:
        links.__exit__(None, None, None)


if __name__ == "__main__":
    rank(sys.argv[1:])
