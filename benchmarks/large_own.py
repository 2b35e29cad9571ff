"""Large sparse problems with functions of one's own: wall clock, the oracles' own time, and memory.

    python benchmarks/large_own.py [--rows 10000 100000 1000000] [--seeds 2] [--first N] [--out FILE]

g and h are log-cosh plus mu/2 |.|^2 with mu = 0.1, given as gradients written with NumPy, so that the run examines
them. A has half as many columns as rows and ten random entries in a row; |A| is about 0.6 (a mild coupling) or 5 (a
strong one). A run is solved when the certified distance is at most 1e-6 sqrt(rows). The oracles' own time is that of a
loop that makes all calls of the run (``result.all_calls``: those of the method, of certificates and of the examination)
and nothing else, in the same process after the run. The rest is the CPU time of the run without that. Memory is the
peak that tracemalloc counts in another run of the same problem, in vectors of the size of (x, y), without A itself.
The first seed is the time unless one is given.
"""

from __future__ import annotations

import argparse
import os
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from timing import once

import saddlepoint as sp

MU = 0.1  # strong convexity of both functions
COUPLINGS = {"mild": 0.25, "strong": 2.0}  # usual length of a row of A
MEMORY = 64  # vectors that the run in the last columns may take
HEAD = (
    "| rows | coupling | method | calls g, h, A, A' | of the method | wall s | CPU s | oracles CPU s | rest / oracles "
    f"| vectors | CPU s, memory={MEMORY} | vectors |"
)


class Problem(NamedTuple):
    """The problem, and its oracles as one would call them without the library."""

    f: sp.Saddle
    oracles: dict[str, Callable[[], Any]]
    tol: float


def problem(m: int, strength: float, seed: int) -> Problem:
    """A problem with m rows."""
    n, rng = m // 2, np.random.default_rng(seed)
    columns = rng.integers(0, n, 10 * m, dtype=np.int32)
    entries = rng.standard_normal(10 * m) * (strength / np.sqrt(10.0))
    A = sparse.csr_array((entries, columns, np.arange(0, 10 * m + 1, 10, dtype=np.int32)), shape=(m, n))
    A.sum_duplicates()
    b, c = rng.standard_normal(m), rng.standard_normal(n)

    def grad_g(x: Any) -> Any:
        return MU * x + np.tanh(x - b)

    def grad_h(y: Any) -> Any:
        return MU * y + np.tanh(y - c)

    x, y, At = rng.standard_normal(m), rng.standard_normal(n), A.T
    oracles = {"grad_g": lambda: grad_g(x), "grad_h": lambda: grad_h(y), "A": lambda: A @ y, "At": lambda: At @ x}
    f = sp.Saddle(sp.Smooth(grad_g, mu=MU, L=1.0 + MU), sp.Smooth(grad_h, mu=MU, L=1.0 + MU), A)
    return Problem(f, oracles, 1e-6 * np.sqrt(m))


def loop(oracles: dict[str, Callable[[], Any]], calls: dict[str, int]) -> None:
    """The calls, one oracle after the other in turn."""
    for k in range(max(calls.values())):
        for name, oracle in oracles.items():
            if k < calls[name]:
                oracle()


def peak(m: int, strength: float, seed: int, memory: int | None) -> float:
    """The most memory that a run takes, in vectors."""
    f, _, tol = problem(m, strength, seed)
    tracemalloc.start()
    sp.solve(f, tol=tol, memory=memory)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return most / (8 * sum(f.shape))


def row(m: int, name: str, seed: int) -> str:
    """One line of the table."""
    strength = COUPLINGS[name]
    f, oracles, tol = problem(m, strength, seed)
    spent, result = once(lambda: sp.solve(f, tol=tol))
    own, _ = once(lambda: loop(oracles, result.all_calls))
    f, _, tol = problem(m, strength, seed)
    less, small = once(lambda: sp.solve(f, tol=tol, memory=MEMORY))
    if not (result.solved and small.solved):
        print(f"rows {m}, {name}, seed {seed}: {result.status}, {small.status}", flush=True)
    counts, of_method = (
        ", ".join(str(calls[oracle]) for oracle in oracles) for calls in (result.all_calls, result.calls)
    )
    return (
        f"| {m} | {name} | {result.method} | {counts} | {of_method} "
        f"| {spent.wall:.3g} | {spent.cpu:.3g} | {own.cpu:.3g} | {spent.cpu / own.cpu - 1.0:.2f} "
        f"| {peak(m, strength, seed, None):.0f} | {less.cpu:.3g} | {peak(m, strength, seed, MEMORY):.0f} |"
    )


def main() -> None:
    """Read the arguments, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--first", type=int, default=int(time.time()))
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    sp.solve(problem(100, 1.0, 0).f)  # what is loaded once
    load = f"First seed {given.first}; {os.cpu_count()} cores, load average {os.getloadavg()[0]:.1f}."
    lines = [load, "", HEAD, "|" + "---|" * 12]
    print("\n".join(lines), flush=True)
    for m in given.rows:
        for name in COUPLINGS:
            for k in range(given.seeds if m < 1_000_000 else 1):
                lines.append(row(m, name, given.first + k))
                print(lines[-1], flush=True)
                if given.out is not None:
                    given.out.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
