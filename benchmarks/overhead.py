"""How much longer a call of `solve` takes than the steps of the method in it.

Problems are drawn afresh at every run of this page: three families, functions written by hand (`sp.Smooth` with a
NumPy gradient, mu and L) and ready ones, mu from L/1000 to L, |A| from L/10 to 30 L. Every call gets new objects, so
that nothing is known from an earlier call: it checks its arguments, estimates |A|, takes certificates, and examines
functions written by hand before it says that the problem is solved.

- *call / steps* is the time of the whole call divided by that of a plain loop of the same steps of the same method, on
  the functions and the matrix as they are, without counting, checking or certifying.
- *seconds / method_seconds* is what the result of the quickest of these calls says.

The line below the table names the clock of all times, that of the runs included: `--clock cpu`, the default, takes the
CPU seconds of the process, so that other programs on the machine do not count, and `--clock wall` the wall clock, which
is the same where nothing else runs, but is read more quickly. Times are of one thread and the smallest of interleaved
repetitions; means are geometric. A run of `auto` counts where one method came to the end, since only then
there is a loop to compare it with. The shorter the runs, the larger the ratios, and some draws have far shorter runs
than others: two versions of the library are compared on one seed, `python benchmarks/overhead.py SEED`.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

import saddlepoint as sp

SIZES = {(60, 40): (2, 5), (300, 200): (1, 3), (1000, 1000): (1, 2)}  # numbers of draws and of repetitions
METHODS = ("auto", "lpd-gs", "dippa")
TOL = 1e-7  # certified distance, in units of that of the start
LIMIT = 1_000  # calls after which a run is left out
CLOCKS = {"cpu": time.process_time, "wall": time.perf_counter}

Problem = Callable[[], sp.Saddle]


class Row(NamedTuple):
    """One problem, solved by one method."""

    size: tuple[int, int]
    own: bool
    asked: str
    calls: int
    certificates: int
    gradients: float
    products: int
    against_steps: float
    reported: float


def log_cosh(rng: np.random.Generator, n: int, mu: float, own: bool) -> sp.Smooth:
    """The sum of log cosh(x_i - b_i), and mu/2 |x|^2."""
    b = rng.standard_normal(n)
    return sp.Smooth(lambda x: mu * x + np.tanh(x - b), mu=mu, L=1.0 + mu) if own else sp.LogCosh(t=b, l2=mu)


def logistic(rng: np.random.Generator, n: int, mu: float, own: bool) -> sp.Smooth:
    """Logistic regression with 2 n rows."""
    D, labels = rng.standard_normal((2 * n, n)), rng.choice([-1.0, 1.0], 2 * n)
    rows = 2 * n
    if not own:
        return sp.Logistic(D, labels, mu)
    M = labels[:, None] * D
    L = float(np.linalg.norm(M, 2)) ** 2 / (4.0 * rows) + mu
    return sp.Smooth(lambda x: mu * x - (1.0 / (1.0 + np.exp(M @ x))) @ M / rows, mu=mu, L=L)


def quadratic(rng: np.random.Generator, n: int, mu: float, own: bool) -> sp.Smooth:
    """A dense quadratic function with eigenvalues from mu to 1."""
    Q = np.linalg.qr(rng.standard_normal((n, n)))[0]
    P = Q * np.geomspace(mu, 1.0, n) @ Q.T
    P, b = 0.5 * (P + P.T), rng.standard_normal(n)
    low = mu * (1.0 - 1e-9)
    return sp.Smooth(lambda x: P @ x + b, mu=low, L=1.0 + 1e-9) if own else sp.Quadratic(P, b)


FAMILIES = {"log-cosh": log_cosh, "logistic": logistic, "quadratic": quadratic}


def drawn(size: tuple[int, int], family: str, own: bool, seed: int) -> Problem:
    """A function that makes one problem, of new objects at every call."""
    rng = np.random.default_rng(seed)
    (m, n), make = size, FAMILIES[family]
    mu_x, mu_y = 10.0 ** rng.uniform(-3.0, 0.0, 2)
    g, h = make(rng, m, mu_x, own), make(rng, n, mu_y, own)
    A = rng.standard_normal(size)
    A *= max(g.L, h.L) * 10.0 ** rng.uniform(-1.0, 1.5) / np.linalg.norm(A, 2)
    return lambda: sp.Saddle(_fresh(g), _fresh(h), A)


def _fresh(f: sp.Smooth) -> sp.Smooth:
    return f.replace()


def bare(f: sp.Saddle, method: sp.Method, steps: int) -> float:
    """The seconds of ``steps`` steps without counting, checking or certifying; |A| is known before."""
    assert f.norm >= 0.0
    m, n = f.shape
    began = time.perf_counter()
    view = method.normal_form(f)
    state = method.init(view.problem, *view.to(np.zeros(m), np.zeros(n)))
    for _ in range(steps):
        state = method.step(view.problem, state)
    return time.perf_counter() - began


def measured(make: Problem, size: tuple[int, int], own: bool, asked: str, repeats: int) -> Row | None:
    """The row of one problem and method; None if it is not solved within the limit, or by several methods."""
    tol = TOL * make().certificate(np.zeros(size[0]), np.zeros(size[1])).distance
    result = sp.solve(make(), method=asked, tol=tol, max_calls=LIMIT)
    if not result.solved or ", then " in result.message or result.provenance["corrections"]:
        return None
    method = sp.make_method(result.method)
    plain = full = reported = quickest = math.inf
    for _ in range(repeats):
        plain = min(plain, bare(make(), method, result.iterations))
        f = make()
        began = time.perf_counter()
        result = sp.solve(f, method=asked, tol=tol, max_calls=LIMIT)
        full = min(full, time.perf_counter() - began)
        if result.seconds < quickest:
            quickest, reported = result.seconds, result.seconds / result.method_seconds
    setup = result.setup_calls
    return Row(
        size,
        own,
        asked,
        max(result.calls.values()),
        result.monitor_calls,
        0.5 * (setup["grad_g"] + setup["grad_h"]),
        setup["A"],
        full / plain,
        reported,
    )


def table(rows: list[Row]) -> Iterator[str]:
    """The rows by size, functions and method, as Markdown."""
    yield (
        "| size | functions | method | problems | calls | certificates | other gradients | other products "
        "| call / steps, mean | largest | seconds / method_seconds, mean |"
    )
    yield "|" + "---|" * 11
    groups: dict[Any, list[Row]] = {}
    for row in rows:
        for own in (row.own, None):
            for asked in (row.asked, "all") if own is not None else ("all",):
                groups.setdefault((row.size, own, asked), []).append(row)
    for row in rows:
        groups.setdefault((None, None, "all"), []).append(row)
    order = sorted(groups, key=lambda key: (key[0] or (10**9, 0), key[1] is None, not key[1], key[2] == "all", key[2]))
    for key in order:
        size, own, asked = key
        some = groups[key]
        medians = [np.median([getattr(row, name) for row in some]) for name in Row._fields[3:7]]
        ratios = [row.against_steps for row in some]
        yield (
            f"| {'all' if size is None else f'{size[0]} x {size[1]}'} "
            f"| {'all' if own is None else 'by hand' if own else 'ready'} | {asked} | {len(some)} | "
            + " | ".join(f"{median:.0f}" for median in medians)
            + f" | {mean(ratios):.2f} | {max(ratios):.1f} | {mean([row.reported for row in some]):.2f} |"
        )


def mean(values: list[float]) -> float:
    """The geometric mean."""
    return math.exp(sum(map(math.log, values)) / len(values))


def main(quick: bool, seed: int, clock: str = "cpu") -> str:
    """The table, as Markdown; medians of calls, certificates, gradients of a function and products each way."""
    time.perf_counter = CLOCKS[clock]  # the clock of the runs
    rows = []
    for size, (draws, repeats) in list(SIZES.items())[: 1 if quick else None]:
        for family in FAMILIES:
            for own in (True, False):
                for draw in range(draws):
                    make = drawn(size, family, own, seed + draw)
                    for asked in METHODS:
                        row = measured(make, size, own, asked, repeats)
                        print(family, draw, row, file=sys.stderr, flush=True)
                        rows += [] if row is None else [row]
    return "\n".join([*table(rows), "", f"Clock of this run: {clock}. Seed: {seed}."])


if __name__ == "__main__":
    given = [word for word in sys.argv[1:] if word.isdigit()]  # `python benchmarks/overhead.py 7` draws problems again
    chosen = sys.argv[sys.argv.index("--clock") + 1] if "--clock" in sys.argv else "cpu"
    print(main("--quick" in sys.argv, int(given[0]) if given else time.time_ns() % 10**9, chosen))
