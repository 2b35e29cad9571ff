"""The time that counting, checking and certifying take: `solve` against a plain loop of the same method."""

from __future__ import annotations

import sys
import time

import numpy as np

import saddlepoint as sp
from saddlepoint.problems.generators import random_logistic, random_quadratic


def bare(f: sp.Saddle, method: sp.Method, steps: int) -> float:
    """Seconds of ``steps`` steps without counting, checking or certifying."""
    view = method.normal_form(f)
    m, n = f.shape
    began = time.process_time()
    state = method.init(view.problem, *view.to(np.zeros(m), np.zeros(n)))
    for _ in range(steps):
        state = method.step(view.problem, state)
    return time.process_time() - began


def main(repeats: int = 15) -> str:
    """The table, as Markdown: the fastest of interleaved repetitions in CPU time, because noise can only add time."""
    lines = [
        "| problem (n = 200) | method | steps | bare loop (ms) | solve (ms) | overhead |",
        "|---|---|---|---|---|---|",
    ]
    for name, make in (("quadratic", random_quadratic), ("logistic", random_logistic)):
        f = make(200, 200, 1e3, 1e3, 100, seed=1)
        for label in ("dippa", "aipfb", "catalyst-dippa", "catalyst-aipfb"):
            method = sp.make_method(label)
            steps = sp.solve(f, method=method, tol=1e-7).iterations  # this also estimates |A|, once
            plain = full = float("inf")
            for _ in range(repeats):
                plain = min(plain, bare(f, method, steps))
                began = time.process_time()
                sp.solve(f, method=method, tol=1e-7)
                full = min(full, time.process_time() - began)
            share = 100 * (full / plain - 1)
            lines.append(f"| {name} | {label} | {steps} | {1e3 * plain:.1f} | {1e3 * full:.1f} | {share:.0f} % |")
            print(lines[-1], file=sys.stderr, flush=True)
    return "\n".join(lines)


if __name__ == "__main__":
    print(main(3 if "--quick" in sys.argv else 15))
