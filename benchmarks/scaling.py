"""The cost model of docs/scaling is calibrated, compared with rounds on this machine, and used to predict others.
Times are by the wall clock.

1. Rounds of one and two worker processes over TCP: bandwidth and latency are measured apart (passes over A without
   communication, pings), and the model predicts rounds of other sizes. Then the same over links between network
   namespaces that delay every packet, and with the engines of Dask and MPI. The shortest of many rounds counts.
2. Rounds and gradients of the methods on the hardest chain for given condition numbers: they depend on these alone,
   not on the size of A.
3. Tables for 1 TB to 1 PB on 10 to 10 000 workers, the quickest method in each case, and the picture
   docs/scaling/scaling.png.

`python benchmarks/scaling.py [--quick]`; the second part is kept in results/scaling_counts.json, and made anew where
that is missing.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from importlib import import_module
from itertools import product
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import network
import numpy as np

import saddlepoint as sp
from saddlepoint.methods import LPDSlide
from saddlepoint.problems.generators import chain, chain_solution
from saddlepoint.theory import scaling
from saddlepoint.theory.scaling import Cluster, Counts, Job

HERE = Path(__file__).parent
COUNTS = HERE / "results" / "scaling_counts.json"
PICTURE = HERE.parent / "docs" / "scaling" / "scaling.png"
TIMES = 100  # number of repetitions; the shortest counts, because other processes can only add time
PING = 400_000  # bytes of the ping that measures the link

# -- 1. rounds here ----------------------------------------------------------------------------------------------------


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


COLUMNS = 1000  # of the matrices whose rounds are measured


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
    command = [str(beside) if beside.exists() else "mpiexec", "-n", str(workers), sys.executable, __file__, "--rank"]
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


# -- 2. rounds and gradients -------------------------------------------------------------------------------------------

KAPPA, TOL = 1e3, 1e-6  # condition number of both functions; final distance over that of the start
COUPLINGS = (1.0, 3.0, 10.0, 30.0, 100.0, 300.0)  # values of |A|/sqrt(mu_x mu_y)
LIMIT = 30.0  # time limit of a run in seconds


def runs() -> dict[str, Callable[[], Any]]:
    """The methods that are run; those that factorise are left out, because such matrices are too large for them."""
    return {
        "condat-vu": lambda: sp.make_method("condat-vu"),
        "lpd-gs": lambda: sp.make_method("lpd-gs"),
        "lpd-slide": lambda: LPDSlide(coupling="cg"),
        "dippa": lambda: sp.make_method("dippa"),
        "aipfb": lambda: sp.make_method("aipfb"),
        "anderson-condat-vu": lambda: sp.make_method("anderson-condat-vu"),
    }


def counted(method: Any, c: float) -> Counts | None:
    """The calls that bring the distance on the hardest chain to TOL times its start; None if that takes too long."""
    n = 200 + int(8.0 * scaling.promised_counts("lower bound", KAPPA, KAPPA, c, TOL).rounds / 5.0)
    f = chain(n, KAPPA, KAPPA, c)
    xs, ys = chain_solution(n, KAPPA, KAPPA, c)
    start = float(np.linalg.norm(xs) + np.linalg.norm(ys))
    found: list[Counts] = []

    def watch(result: sp.Result) -> None:
        if np.linalg.norm(result.x - xs) + np.linalg.norm(result.y - ys) <= TOL * start:
            rounds = max(result.calls["A"], result.calls["At"])
            found.append(Counts(rounds, max(result.calls["grad_g"], result.calls["grad_h"])))
            raise StopIteration

    sp.solve(f, method=method, tol=1e-14 * start, max_seconds=LIMIT, callback=watch, history=False)
    return found[0] if found else None


# Sums over x that a step waits for, in each round: the inner test of LPD-slide, Anderson's inner products.
SCALARS = {"lpd-slide": 1.0, "anderson-condat-vu": 6.0}


def all_counts() -> dict[str, dict[float, Counts]]:
    """The counts of all methods, from the file or measured anew."""
    if not COUNTS.exists():
        table: dict[str, dict[str, Any]] = {}
        for name, make in runs().items():
            table[name] = {}
            for c in COUPLINGS:
                counts = counted(make(), c)
                table[name][f"{c:g}"] = None if counts is None else [counts.rounds, counts.gradients]
                print(name, c, counts, file=sys.stderr, flush=True)
        COUNTS.write_text(json.dumps({"kappa": KAPPA, "tol": TOL, "counts": table}, indent=1) + "\n")
    table = json.loads(COUNTS.read_text())["counts"]
    return {
        name: {
            float(c): Counts(found[0], found[1], SCALARS.get(name, 0.0) * found[0]) for c, found in row.items() if found
        }
        for name, row in table.items()
    }


def tabled(counts: dict[str, dict[float, Counts]]) -> Iterator[str]:
    """Measured rounds and gradients, and what theory promises."""
    yield f"Rounds / pairs of gradients to shrink the distance by {TOL:g} on the hardest chain, kx = ky = {KAPPA:g};"
    yield "in brackets what the theorems promise (nested loops with every constant of their proofs):"
    yield from ("", "| c | " + " | ".join(counts) + " | lower bound |", "|" + "---|" * (len(counts) + 2))
    for c in COUPLINGS:
        cells = []
        for name, row in counts.items():
            said = name.removeprefix("anderson-")
            theory = scaling.promised_counts(said, KAPPA, KAPPA, c, TOL)
            measured = f"{row[c].rounds:,.0f} / {row[c].gradients:,.0f}" if c in row else f"over {LIMIT:.0f} s"
            cells.append(f"{measured} ({theory.rounds:,.0f} / {theory.gradients:,.0f})".replace(",", " "))
        forced = scaling.promised_counts("lower bound", KAPPA, KAPPA, c, TOL).rounds
        yield f"| {c:g} | " + " | ".join(cells) + f" | {forced:,.0f} |".replace(",", " ")


# -- 3. elsewhere ------------------------------------------------------------------------------------------------------

SIZES = {"1 TB": 1e12, "10 TB": 1e13, "100 TB": 1e14, "1 PB": 1e15}  # bytes of A
WORKERS = (10, 100, 1000, 10_000)  # processes that hold rows of A
VECTOR = 8e5  # bytes of y: n = 100 000
NETWORKS = {  # latency of a message with its software, bytes a second, the engine's own seconds
    "InfiniBand and MPI": {"latency": 5e-6, "network": 2.5e10, "overhead": 1e-5},
    "Ethernet and Dask": {"latency": 1e-4, "network": 1.25e9, "overhead": 1.5e-2},
    "two regions": {"latency": 3e-2, "network": 1.25e8, "overhead": 1.5e-2},
}


def cluster(workers: int, kind: str, memory: float = 5e11) -> Cluster:
    """Nodes with 512 GB of memory read at 200 GB/s and a disk read at 5 GB/s, whose times scatter by 5 per cent."""
    return Cluster(workers, 2e11, 5e9, memory=memory, fan_in=8, scatter=0.05, **NETWORKS[kind])


def seconds(value: float) -> str:
    """A time as text for a table."""
    if value >= 86400.0:
        return f"{value / 86400:.3g} d"
    if value >= 3600.0:
        return f"{value / 3600:.3g} h"
    if value >= 120.0:
        return f"{value / 60:.3g} min"
    return f"{value:.3g} s" if value >= 1.0 else f"{1e3 * value:.3g} ms"


def rounds_elsewhere() -> Iterator[str]:
    """Seconds of a round."""
    yield "A round, and the share of it in which A is read; *from disk* where A does not fit the workers' memory:"
    yield from ("", "| A | network | " + " | ".join(f"{k} workers" for k in WORKERS) + " |", "|" + "---|" * 6)
    for size_name, size in SIZES.items():
        for kind in NETWORKS:
            cells = []
            for k in WORKERS:
                job, where = Job(size, VECTOR), cluster(k, kind)
                one = scaling.round_seconds(job, where)
                cell = f"{seconds(one.total)}, {100 * one.efficiency:.0f} %"
                cells.append(cell if scaling.fits(job, where) else f"*{cell}*")
            yield f"| {size_name} | {kind} | " + " | ".join(cells) + " |"


# The bytes that a gradient reads, over those of A.
GRADIENTS = {"next to nothing": 0.0, "reads a tenth of A": 0.1, "reads as much as A": 1.0}
# Sizes of A and numbers of workers.
SETTINGS = (("1 TB", 10), ("1 TB", 1000), ("100 TB", 1000), ("1 PB", 1000), ("1 PB", 10_000))


def winners(counts: dict[str, dict[float, Counts]]) -> Iterator[str]:
    """The quickest method, and the next one."""
    yield f"The quickest method and its time to {TOL:g}, kx = ky = {KAPPA:g}, by the counts measured above; then the"
    yield "next one and how much longer it takes:"
    head = (
        "| A, workers | network | a pair of gradients | " + " | ".join(f"c = {c:g}" for c in (3.0, 30.0, 300.0)) + " |"
    )
    yield from ("", head, "|" + "---|" * 6)
    for (size, k), kind, (what, share) in product(SETTINGS, ("InfiniBand and MPI", "two regions"), GRADIENTS.items()):
        job, where, cells = Job(SIZES[size], VECTOR, gradient_size=share * SIZES[size]), cluster(k, kind), []
        for c in (3.0, 30.0, 300.0):
            took = {name: scaling.solution_seconds(row[c], job, where) for name, row in counts.items() if c in row}
            best, second = sorted(took, key=lambda name: took[name])[:2]
            cells.append(f"**{best}** {seconds(took[best])}; {second} {took[second] / took[best]:.1f} x")
        place = f"{size}, {k}" if scaling.fits(job, where) else f"*{size}, {k}, from disk*"
        yield f"| {place} | {kind} | {what} | " + " | ".join(cells) + " |"


def draw(counts: dict[str, dict[float, Counts]]) -> None:
    """The picture: the time of a round against the number of workers, and the quickest methods."""
    from matplotlib.colors import ListedColormap

    from saddlepoint.ground.plot_style import COLOURS, RC, pyplot, save

    plt = pyplot()
    with plt.rc_context(RC):
        figure, (left, right) = plt.subplots(1, 2, figsize=(12.5, 4.8), layout="constrained")
        many = np.unique(np.geomspace(10, 10_000, 100).astype(int))
        for (name, size), colour in zip(SIZES.items(), COLOURS, strict=False):
            for kind, dash in (("InfiniBand and MPI", "-"), ("Ethernet and Dask", "--")):
                total = [scaling.round_seconds(Job(size, VECTOR), cluster(int(k), kind)).total for k in many]
                left.loglog(many, total, dash, color=colour)
                if dash == "-":
                    left.text(9.3, total[0], name, color=colour, ha="right", va="center")
        left.set(xlabel="workers", ylabel="seconds of a round", title="A round: reading A, then messages")
        left.text(0.97, 0.97, "solid: InfiniBand, MPI\ndashed: Ethernet, Dask\nsteps: A comes into memory", ha="right",
                  va="top", transform=left.transAxes, fontsize=9)  # fmt: skip
        left.set_xlim(4, 12_000)
        _draw_winners(right, counts, ListedColormap)
        save(figure, PICTURE)


def _draw_winners(axes: Any, counts: dict[str, dict[float, Counts]], colormap: Any) -> None:
    from saddlepoint.ground.plot_style import COLOURS

    where, job = cluster(1000, "InfiniBand and MPI"), Job(1e14, VECTOR)
    one, scalar = scaling.round_seconds(job, where).total, scaling.scalar_seconds(where)
    couplings, costs = np.geomspace(COUPLINGS[0], COUPLINGS[-1], 200), np.geomspace(1e-2, 1e2, 200)
    names = list(counts)
    total = np.full((len(names), costs.size, couplings.size), np.inf)
    for i, row in enumerate(counts.values()):
        known = sorted(row)
        inside = (couplings >= known[0]) & (couplings <= known[-1])
        rounds, gradients, scalars = (
            np.exp(np.interp(np.log(couplings), np.log(known), np.log([max(row[c][part], 1e-9) for c in known])))
            for part in range(3)
        )
        total[i] = rounds + scalars * scalar / one + costs[:, None] * gradients
        total[i][:, ~inside] = np.inf
    best = total.argmin(0)
    shown = sorted({int(i) for i in best.flat})
    index = np.searchsorted(shown, best)
    axes.pcolormesh(couplings, costs, index, cmap=colormap([COLOURS[i] for i in shown]), alpha=0.55, rasterized=True)
    for k, i in enumerate(shown):
        rows, columns = np.nonzero(index == k)
        x, y = couplings[int(np.median(columns))], costs[int(np.median(rows))]
        axes.text(x, y, names[i], ha="center", va="center", fontsize=10)
    axes.set(xscale="log", yscale="log", xlabel="c = |A|/sqrt(mu_x mu_y)", ylabel="a pair of gradients, in rounds",
             title=f"The quickest method, kx = ky = {KAPPA:g}")  # fmt: skip
    axes.grid(False)
    axes.axvline(math.sqrt(KAPPA), color="k", lw=0.8, ls=":")
    axes.text(0.96 * math.sqrt(KAPPA), 70.0, "c = sqrt(kx)", ha="right", fontsize=9)


def main(quick: bool) -> None:
    """Print the page."""
    for part in (here(quick), with_engines(quick)):
        for line in part:
            print(line, flush=True)
        print()
    if quick:
        return
    counts = all_counts()
    proven = {name: row for name, row in counts.items() if not name.startswith("anderson")}
    for part in (tabled(counts), rounds_elsewhere(), winners(proven)):
        for line in part:
            print(line, flush=True)
        print()
    draw(proven)


if __name__ == "__main__":
    os.environ.setdefault("NUMBA_NUM_THREADS", "1")
    if "--rank" in sys.argv:
        rank(sys.argv[sys.argv.index("--rank") + 1 :])
    else:
        main("--quick" in sys.argv)
