"""How much DIPPA's inner rules save: `adaptive` and `certified` against the paper's fixed K1 and K2.

Quadratic problems (dense, logarithmic spectra) and logistic / log-cosh problems, kappa_x = kappa_y, L = 1, m = n, to
the same certified relative accuracy 1e-8. CG and APFB name the solver of the coupling subproblem.

The paper's rule makes the same K1 and K2 calls in every step (the tests check it), so its calls are the number of its
outer steps times those. Where thousands of products a step would take hours, the steps are counted with the coupling
solved by a factorisation instead, to higher accuracy than K2 gives; on quadratics, with exact proximal steps. Rows
marked `run` were run as they are.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable

import numpy as np

import saddlepoint as sp
from saddlepoint.problems.generators import random_logistic, random_quadratic

LIMIT = 1800.0  # time limit of one run in seconds


def paper_calls(f: sp.Saddle, tol: float, quadratic: bool) -> tuple[int, int, str]:
    """Gradients and products of the paper's rule, and how they were counted."""
    paper = sp.DIPPA("paper", "apfb")
    cost = paper.cost(paper.normal_form(f).problem)
    assert cost is not None
    if cost["A"] < 500 and min(f.shape) <= 500:
        result = sp.solve(f, method=paper, tol=tol, max_seconds=120)
        if result.solved:
            calls = result.calls
            return calls["grad_g"] + calls["grad_h"], calls["A"] + calls["At"], "run"
    stand_in: sp.Method = sp.DPPA() if quadratic else sp.DIPPA("paper", "factor")
    result = sp.solve(f, method=stand_in, tol=tol)
    assert result.solved
    steps = result.iterations
    return steps * (cost["grad_g"] + cost["grad_h"]), steps * (cost["A"] + cost["At"]), "steps x cost"


def share(f: sp.Saddle, method: sp.Method, tol: float, paper: tuple[int, int]) -> tuple[float, float] | None:
    """The shares of the paper's gradients and products that a method needs; None if it ran out of time."""
    result = sp.solve(f, method=method, tol=tol, max_seconds=LIMIT)
    calls = result.calls
    if not result.solved:
        return None
    return (calls["grad_g"] + calls["grad_h"]) / paper[0], (calls["A"] + calls["At"]) / paper[1]


def row(make: Callable[..., sp.Saddle], n: int, kappa: float, ratio: float) -> tuple[str, tuple[float, float] | None]:
    """One row of the table, and the shares of the adaptive rule with CG."""
    f = make(n, n, kappa, kappa, ratio * kappa, seed=n)
    rough = sp.solve(f, method="dippa", tol=1e-4)
    tol = 1e-8 * math.hypot(float(np.linalg.norm(rough.x)), float(np.linalg.norm(rough.y)))
    gradients, products, how = paper_calls(f, tol, make is random_quadratic)
    methods = [sp.DIPPA("certified", "cg"), sp.DIPPA("adaptive", "apfb")] if n <= 500 else []
    methods += [sp.DIPPA("adaptive", "cg")]
    shares = [share(f, method, tol, (gradients, products)) for method in methods]
    cells = [f"> {LIMIT:.0f} s" if pair is None else f"{pair[0]:.3f} / {pair[1]:.4f}" for pair in shares]
    cells = ["–"] * (3 - len(cells)) + cells
    name = "quadratic" if make is random_quadratic else "logistic"
    head = f"| {name} | {n} | {kappa:g} | {ratio:g} | {how} | {gradients:.3g} | {products:.3g} | "
    return head + " | ".join(cells) + " |", shares[-1]


def main(quick: bool = False) -> str:
    """The table, as Markdown."""
    lines = [
        "| problem | n | kappa | A/L | paper counted by | paper grads | paper products |"
        " certified CG | adaptive APFB | adaptive CG |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    found: list[tuple[float, float]] = []
    grid = [(random_quadratic, n) for n in ((100,) if quick else (100, 500, 2000))]
    grid += [(random_logistic, n) for n in ((100,) if quick else (100, 300))]
    began = time.perf_counter()
    for make, n in grid:
        for kappa in (1e2,) if quick else (1e2, 1e4):
            for ratio in (0.01, 0.1, 1.0, 10.0):
                line, pair = row(make, n, kappa, ratio)
                lines.append(line)
                found += [] if pair is None else [pair]
                print(line, f"{time.perf_counter() - began:.0f} s", file=sys.stderr, flush=True)
    worst = [max(column) for column in zip(*found, strict=True)]
    mean = [math.exp(float(np.mean(np.log(column)))) for column in zip(*found, strict=True)]
    lines += [
        "",
        f"Shares are gradients / products. Adaptive with CG: worst {worst[0]:.2f} / {worst[1]:.2f}, geometric mean "
        f"{mean[0]:.3f} / {mean[1]:.4f} of the paper's rule.",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    print(main("--quick" in sys.argv))
