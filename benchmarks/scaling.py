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

import math
import os
import sys
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from scaling_counts import COUPLINGS, KAPPA, TOL, all_counts, tabled
from scaling_rounds import here, with_engines

from saddlepoint.theory import scaling
from saddlepoint.theory.scaling import Cluster, Counts, Job

PICTURE = Path(__file__).parent.parent / "docs" / "scaling" / "scaling.png"
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
    main("--quick" in sys.argv)
