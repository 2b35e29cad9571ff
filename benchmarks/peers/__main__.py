"""``python -m benchmarks.peers suite | sparse | expensive | report``, in the peers' own environment."""

from __future__ import annotations

import argparse
import platform
import re
from importlib.metadata import version
from pathlib import Path

from .contestants import PEERS
from .pictures import profiles, sparse_curves
from .problems import EXPENSIVE, SPARSE, SUITE, Instance
from .report import Board, expensive_page, sparse_page, suite_page
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


def report() -> None:
    """Write RESULTS.md and the pictures from the JSON files."""
    boards = {stage: Board(Store(HERE / f"{stage}.json").outcomes) for stage in STAGES}
    names = {stage: [f"{accuracy:g}" for accuracy in STAGES[stage][1]] for stage in STAGES}
    profiles(boards["suite"], names["suite"], PROFILED, HERE / "suite.png")
    sparse_curves(boards["sparse"], DRAWN, HERE / "sparse.png")
    versions = ", ".join(f"{package} {version(package)}" for package in PACKAGES)
    page = [
        "# Our methods beside their peers",
        "",
        f"By `python -m benchmarks.peers`, Python {platform.python_version()}, {versions}. What is measured and how is",
        "in [README.md](README.md). A cell is `rounds / CPU seconds`; `·` where rounds cannot be counted; a dash where",
        "the accuracy was not reached in time, with the certified relative distance that was.",
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
    parser.add_argument("what", choices=[*STAGES, "report"])
    parser.add_argument("--only", default="", help="instances whose name matches this regular expression")
    parser.add_argument("--who", default="", help="contestants, separated by commas; all if left out")
    parser.add_argument("--limit", type=float, help="CPU seconds for one run; by the size of the instance if left out")
    parser.add_argument("--settings", type=int, default=99, help="most settings of each peer")
    parser.add_argument("--again", action="store_true", help="measure anew what is in the JSON file already")
    arguments = parser.parse_args()
    if arguments.what == "report":
        report()
    else:
        measure(arguments.what, arguments)


if __name__ == "__main__":
    main()
