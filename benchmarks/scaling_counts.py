"""Rounds and gradients of the methods on the hardest chain for given condition numbers, beside what theory promises.

They are kept in results/scaling_counts.json, and measured anew where that is missing.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import saddlepoint as sp
from saddlepoint.methods import LPDSlide
from saddlepoint.problems.generators import chain, chain_solution
from saddlepoint.theory import scaling
from saddlepoint.theory.scaling import Counts

COUNTS = Path(__file__).parent / "results" / "scaling_counts.json"
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
