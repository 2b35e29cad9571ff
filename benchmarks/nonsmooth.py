"""Constraints and nonsmooth terms beside specialised solvers: seconds to the same accuracy, in one run.

`python benchmarks/nonsmooth.py [--quick] [--only SECTION ...] [--out FILE]` needs CVXPY with Clarabel and scikit-learn.
celer, skglm, scikit-image, pyproximal and ODL are measured if they are installed (`pip install celer skglm scikit-image
pyproximal odl`).
"""

from __future__ import annotations

import argparse
import os
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from nonsmooth_images import blurred, images, signals
from nonsmooth_models import games, machines, robust, sparse
from nonsmooth_peers import MANY, QUICK, RUNS, Row

TEXT = """# Constraints and nonsmooth terms beside other solvers

Seconds (wall-clock, and CPU in the next column) of one call on one thread, the fastest of {runs} runs, or of {many}
where a run takes less than {quick:g} s; ours and the peers of a task in the same run of this script. Every solver is
asked for the accuracy in the column "task": this library once, because it proves its error; a peer with smaller and
smaller tolerances, and the first that is accurate enough counts. The true error is the distance to an answer that was
proven to be more accurate. Calls that compile (Numba, CVXPY) are made once before. "short" says that the peer did not
reach the accuracy with its smallest tolerance.

"""

SECTIONS: dict[str, Callable[[bool], Iterator[Row]]] = {
    "games": lambda quick: games(60 if quick else 400),
    "sparse": sparse,
    "machines": machines,
    "robust": lambda quick: robust(*((300, 10) if quick else (3000, 30))),
    "images": lambda quick: images(32 if quick else 256),
    "blurred": lambda quick: blurred(16 if quick else 128),
    "signals": lambda quick: signals(1000 if quick else 10_000),
}


def table(rows: Iterator[Row]) -> str:
    """The rows as Markdown, each printed as soon as it is there."""
    lines = ["| task | solver | seconds | CPU | true error | proven error |", "|---|---|---|---|---|---|"]
    for row in rows:
        proof = "none" if row.proven is None else f"{row.proven:.0e}"
        reached = f"{row.error:.0e}{' (short)' if row.short else ''}"
        lines.append(f"| {row.task} | {row.solver} | {row.seconds:.3g} | {row.cpu:.3g} | {reached} | {proof} |")
        print(lines[-1], flush=True)
    return "\n".join(lines)


def main() -> None:
    """Measure, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small problems")
    parser.add_argument("--only", nargs="+", choices=SECTIONS, default=list(SECTIONS), help="some sections only")
    parser.add_argument("--out", type=Path, help="the page to write")
    given = parser.parse_args()
    warnings.simplefilter("ignore")  # peers warn when they stop early; the table says what they reached
    found = table(row for name in given.only for row in SECTIONS[name](given.quick))
    if given.out is not None:
        by = f"By `python benchmarks/nonsmooth.py --out {given.out}`."
        given.out.write_text(TEXT.format(runs=RUNS, many=MANY, quick=QUICK) + found + f"\n\n{by}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
