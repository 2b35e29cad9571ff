"""Proven bounds on the errors of derivatives beside the truth: are they above it, and how far?

    python benchmarks/derivative_bounds.py [--draws 1000] [--seed N] [--write]

Every draw is a problem with smooth functions and simple terms of both players, some with ill-conditioned data, data of
large or small scale, float32, or a bound that is next to an entry of the solution. It is solved to a tolerance that is
drawn too. `derivative_truths.py` draws the problems and computes the truth in 50 digits.
"""

from __future__ import annotations

import argparse
import time
from decimal import localcontext
from pathlib import Path
from typing import Any

import numpy as np
from derivative_truths import Problem, Truth, UndecidedError
from exact_terms import TERMS
from many_digits import DIGITS, distance

import saddlepoint as sp

PAGE = Path(__file__).parent / "results" / "derivative_bounds.md"
CALLS = 3000  # most calls of a run
Compared = tuple[str, float, float]  # what is compared, its error, and the bound on it


def judge(seed: int) -> dict[str, Any]:
    """One draw: the errors of a vjp and of a jvp, and their bounds."""
    rng = np.random.default_rng(seed)
    with localcontext() as context:
        context.prec = DIGITS
        problem = Problem(rng)
        found: dict[str, Any] = {"seed": seed, "kinds": problem.kinds, "terms": problem.names}
        sharp = sp.solve(problem.f, tol=1e-11 if problem.dtype is np.float64 else 1e-4, max_calls=CALLS)
        rough = sp.solve(problem.f, tol=float(10.0 ** rng.uniform(-8.0, -1.0)), max_calls=CALLS)
        try:
            truth = problem.truth(sharp.x, sharp.y)
        except (UndecidedError, ArithmeticError):
            return found | {"skipped": True}
        certified = [result for result in (rough, sharp) if np.isfinite(result.certificate.distance)]
        return found | {"pairs": [row for result in certified for row in compared(result, problem, truth)]}


def compared(result: sp.Result, problem: Problem, truth: Truth) -> list[Compared]:
    """The errors of the derivatives of a result beside their bounds."""
    vjp, jvp = result.vjp(*problem.v), result.jvp(A=problem.dA)
    return [
        ("vjp", distance(vjp.ux, truth.ux) + distance(vjp.uy, truth.uy), vjp.bound),
        ("A", distance(vjp.A, truth.A), vjp.bound_A),
        ("jvp", distance(jvp.x, truth.dx) + distance(jvp.y, truth.dy), jvp.bound),
    ]


class Row:
    """Counts for one simple term."""

    def __init__(self) -> None:
        self.problems = self.unknown = self.false = 0
        self.ratios: list[float] = []

    def add(self, pairs: list[tuple[str, float, float]]) -> None:
        """Add the errors and bounds of a problem."""
        self.problems += 1
        for _, error, bound in pairs:
            self.unknown += bound == np.inf
            self.false += error > bound
            if error > 0.0 and bound < np.inf:
                self.ratios.append(bound / error)

    def __str__(self) -> str:
        least, middle = (f"{q(self.ratios):.2g}" if self.ratios else "" for q in (np.min, np.median))
        return f"{self.problems} | {len(self.ratios)} | {self.unknown} | {self.false} | {least} | {middle}"


def main() -> None:
    """Draw, judge, print the page; write it if asked to."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=time.time_ns() % 10**9)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    rows = {name: Row() for name in TERMS}
    skipped = false = 0
    for seed in range(options.seed, options.seed + options.draws):
        found = judge(seed)
        skipped += "skipped" in found
        for name in set(found["terms"]) if "skipped" not in found else ():
            rows[name].add(found.get("pairs", []))
        for what, error, bound in found.get("pairs", []):
            if error > bound:
                false += 1
                print(f"false: seed {seed}, {found}: {what} {error} > {bound}", flush=True)
    table = "\n".join(f"| {name} | {row} |" for name, row in rows.items())
    text = TEXT.format(seed=options.seed, draws=options.draws, skipped=skipped, false=false, table=table)
    print(text)
    if options.write:
        PAGE.write_text(text)


TEXT = """# Bounds on the errors of derivatives, beside the truth

By `python benchmarks/derivative_bounds.py --write`: {draws} problems, drawn afresh with the seeds from {seed} on; the
drawing rule is in the file. Functions of both players are quadratic, logistic, log-cosh, log-sum-exp or given by a
gradient and `hvp`; a part of them has ill-conditioned data, data of scale 0.01 or 100, or float32, or a bound that
differs from an entry of the solution by 1e-7 to 0.1 of it. Each problem is solved twice, to a tolerance between 1e-8
and 0.1 and to a small one. For both the adjoint vectors, the gradient with respect to A and the derivative along a
change of A are compared with those at the solution in 50 digits.

**False bounds: {false}.** {skipped} problems were left out, because the face of their solution could not be verified.

| term | problems | finite bounds | infinite bounds | false bounds | least bound/error | median bound/error |
|---|---|---|---|---|---|---|
{table}

A problem with different terms of its players is counted in both lines. Finite bounds are counted where the error is not
exactly 0. An infinite bound says that a coordinate is undecided at this tolerance, and `why` says so.
"""


if __name__ == "__main__":
    main()
