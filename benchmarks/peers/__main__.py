"""``python -m benchmarks.peers fresh | suite | sparse | expensive | report``, in the peers' own environment."""

from __future__ import annotations

import argparse
import math
import os
import platform
import re
import time
from importlib.metadata import version
from pathlib import Path

from . import clock
from .contestants import PEERS
from .fresh import ACCURACIES, ALLOWED, OWN
from .fresh import measure as measure_fresh
from .fresh_problems import LIMIT, drawn
from .pictures import profiles, sparse_curves
from .problems import EXPENSIVE, SPARSE, SUITE, Instance
from .report import Board, expensive_page, fresh_page, sparse_page, suite_page
from .runner import Store, run_all

HERE = Path(__file__).parent
STAGES: dict[str, tuple[list[Instance], tuple[float, ...]]] = {  # instances and accuracies
    "suite": (SUITE, (1e-4, 1e-8)),
    "sparse": (SPARSE, (1e-2, 1e-4, 1e-6)),
    "expensive": ([EXPENSIVE], (1e-4, 1e-8)),
}
PROFILED = [
    "auto",
    "newton_krylov",
    "extragradient by hand",
    "L-BFGS on the max",
    "root(hybr, jac)",
    "optimistix",
    "CVXPY + Clarabel",
    "pyproximal",
]
DRAWN = ["auto", "dippa", "lpd-gs", "lpd-slide", "newton_krylov", "extragradient by hand", "L-BFGS on the max"]
PACKAGES = ("numpy", "scipy", "cvxpy", "clarabel", "dsp-cvxpy", "pyproximal", "jax", "jaxopt", "optimistix")


def measure(stage: str, arguments: argparse.Namespace) -> None:
    """Measure the instances of a stage that were not measured yet."""
    instances, accuracies = STAGES[stage]
    chosen = [instance for instance in instances if re.search(arguments.only, instance.name)]
    wanted = [name for name in arguments.who.split(",") if name]
    store = Store(HERE / f"{stage}.json")
    peers = [] if stage == "expensive" else PEERS
    run_all(store, chosen, peers, wanted, accuracies, arguments.limit, arguments.settings, arguments.again)


def fresh(arguments: argparse.Namespace) -> None:
    """Measure problems of the time's seed, or of the one that was given, and write their page."""
    first = int(time.time()) if arguments.seed is None else arguments.seed
    clock.choose(arguments.clock)
    if arguments.clock != "wall":
        clock.use_for_ours()
    path = Path("out/peers") / f"fresh-{first}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    store, end = Store(path), time.time() + arguments.seconds
    for seed in range(first, first + arguments.problems):
        if time.time() > end:
            break
        measure_fresh(store, drawn(seed))
    board = Board(store.outcomes)
    count, names = len(board.instances), [f"{accuracy:g}" for accuracy in ACCURACIES]
    command = f"python -m benchmarks.peers fresh --seed {first} --problems {count} --clock {arguments.clock}"
    seconds = {"cpu": "CPU seconds of the process, which has one thread", "wall": "wall-clock seconds, of one thread"}
    page = f"""# `auto` and its peers on fresh problems

Whole calls of `solve`, with functions by hand and with ready ones, beside the peers in one run, on {count} problems
drawn afresh: quadratic (dense), logistic against log-cosh risks (dense), and the chain of the lower bound; 20 to 800
variables a side (chains up to 5000), condition numbers from 3 to 1e5, |A|/L from 0.01 to 30.

`auto` gets new objects in every call, and its seconds and rounds are those of the whole call: the estimate of |A|,
steps, certificates, and the examination of functions by hand. All contestants are told mu and L, the peers |A| as well.
A peer's point is certified off its clock, and the first evaluation that certifies the accuracy ends its run; no peer
can do that by itself. Every setting of a peer is tried ([the settings](../peers/README.md)), and the best one counts.
A peer may take {ALLOWED[1]:g} times as long as `auto` and {ALLOWED[0]:g} seconds more, at most {LIMIT:g}.

Columns: problems on which the accuracy was reached, of those on which the contestant can run; then what it took over
what `auto` took with functions by hand, where both reached it: rounds and seconds (geometric means), and the least and
the most of the ratios of seconds. Below 1, the contestant needs less. Seconds are {seconds[arguments.clock]}.

{fresh_page(board, names, OWN)}
By `{command}` on {os.cpu_count()} cores, Python {platform.python_version()}, {versions()}.
"""
    Path(arguments.out).write_text(page)


def versions() -> str:
    """The versions of the packages."""
    return ", ".join(f"{package} {version(package)}" for package in PACKAGES)


def report() -> None:
    """Write RESULTS.md and the pictures from the JSON files."""
    boards = {stage: Board(Store(HERE / f"{stage}.json").outcomes) for stage in STAGES}
    names = {stage: [f"{accuracy:g}" for accuracy in STAGES[stage][1]] for stage in STAGES}
    profiles(boards["suite"], names["suite"], PROFILED, HERE / "suite.png")
    sparse_curves(boards["sparse"], DRAWN, HERE / "sparse.png")
    page = [
        "# Our methods beside their peers",
        "",
        f"By `python -m benchmarks.peers`, Python {platform.python_version()}, {versions()}. What is measured and how",
        "is in [README.md](README.md). A cell is `rounds / CPU seconds`; `·` where rounds cannot be counted; a dash",
        "where the accuracy was not reached in time, with the certified relative distance that was.",
        "",
        "## Suite",
        "",
        "![Performance profiles](suite.png)",
        "",
        suite_page(boards["suite"], names["suite"]),
        "",
        "## Large and sparse",
        "",
        "![Certified distance against time](sparse.png)",
        "",
        sparse_page(boards["sparse"], names["sparse"]),
        "## Expensive gradients",
        "",
        f"{EXPENSIVE.name}. One gradient costs 100 units, one product 1.",
        "",
        expensive_page(boards["expensive"], names["expensive"]),
        "",
    ]
    (HERE / "RESULTS.md").write_text("\n".join(page))


def main() -> None:
    """Read the command line and run the stage or the report."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers", description=__doc__)
    parser.add_argument("what", choices=["fresh", *STAGES, "report"])
    parser.add_argument("--only", default="", help="instances whose name matches this regular expression")
    parser.add_argument("--who", default="", help="contestants, separated by commas; all if left out")
    parser.add_argument("--limit", type=float, help="CPU seconds for one run; by the size of the instance if left out")
    parser.add_argument("--settings", type=int, default=99, help="most settings of each peer")
    parser.add_argument("--again", action="store_true", help="measure anew what is in the JSON file already")
    parser.add_argument("--seed", type=int, help="fresh: of the first problem; the time if left out")
    parser.add_argument("--problems", type=int, default=40, help="fresh: how many problems")
    parser.add_argument(
        "--seconds", type=float, default=math.inf, help="fresh: begin no further problem after this time"
    )
    parser.add_argument("--clock", choices=list(clock.CLOCKS), default="wall", help="fresh: CPU time on a busy machine")
    parser.add_argument("--out", default=HERE.parent / "results" / "peers.md", help="fresh: the file for the page")
    arguments = parser.parse_args()
    if arguments.what == "report":
        report()
    elif arguments.what == "fresh":
        fresh(arguments)
    else:
        measure(arguments.what, arguments)


if __name__ == "__main__":
    main()
