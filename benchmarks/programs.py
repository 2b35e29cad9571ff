"""Linear and quadratic programs beside other solvers: seconds, and the interval that each answer proves.

`python benchmarks/programs.py [--quick] [--seed N] [--draws N] [--out FILE]` needs Clarabel and OSQP (CVXPY brings
them); OR-tools (PDLP) and MPAX are measured if they are installed (`pip install ortools mpax`).
"""

from __future__ import annotations

import argparse
import math
import os
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from program_peers import SECONDS, Answer, peers
from program_problems import Program, programs, without_solution
from time_limit import TooLongError, time_limit

import saddlepoint as sp

COMPILED = 1000  # variables from which MPAX is measured, as it compiles in every call
FIRST_ORDER = 500_000  # most rows times columns for which the first-order method is measured as well
TEXT = """# Linear and quadratic programs beside other solvers

By `python benchmarks/programs.py --seed {seed} --draws {draws}`, on {cores} cores shared with other processes.
Seconds are wall-clock time of one call on one thread; MPAX compiles in every call, and is measured on programs with
1000 variables or more.
*says* is what the solver reports about its answer. *interval* is computed by the same function for all,
`QuadraticProgram.certify(x, y)`, from the point and the multipliers that the solver returned: the length of the proven
interval for the optimal value, divided by the optimal value. inf says that nothing is proven: no point that satisfies
all rows exactly was found close to x, or the multipliers prove no lower bound. *violation* is the proven largest
violation of a row or bound at x itself. This library is asked for a relative length of 1e-6, once with the method that
it chooses and once with the first-order method, which has {short:.2g} s. The other solvers have {limit:g} s. A solver
that does not take a program is left out; a dash says that it gave no point.

"""
ATTACK = """## False claims

Small programs of {kinds} kinds, drawn afresh (`tests/program_kinds.py` says what the kinds are). The optimal value
is known exactly, from a simplex method in rational arithmetic (`tests/exact_programs.py`) or because the program was
made from its solution. *decided* counts those that are proven to be optimal to a relative 1e-6, infeasible or
unbounded;
about the others the result says that something is not proven. A claim is false if the exact value is outside of the
interval, or if the status is wrong; the intervals that `certify` proves for the points and multipliers of the answers
after random changes of any size are checked as well.

| kind | programs | decided | false claims |
|---|---|---|---|
"""
Row = list[str]


def timed(function: Callable[[], Any]) -> tuple[float, Any]:
    """The wall-clock seconds of a call, and its answer; TooLongError where it takes too long."""
    began = time.perf_counter()
    with time_limit(1.5 * SECONDS):
        found = function()
    return time.perf_counter() - began, found


def table(given: Iterator[Program]) -> Iterator[Row]:
    """The rows of the table."""
    for program in given:
        solver = sp.apps.QuadraticProgram(*program[1:])
        seconds, found = timed(solver.solve)
        value = max(abs(found.lower), abs(found.upper))
        scale = value if 0.0 < value < math.inf else 1.0
        yield row(program, solver, "saddlepoint", seconds, Answer(found.x, found.y, found.status), scale)
        m, n = solver.shape
        if found.status in ("optimal", "not proven") and m * n <= FIRST_ORDER:
            try:
                first = partial(solver.solve, method="first-order", max_seconds=SECONDS / 3)
                seconds, other = timed(first)
                answer = Answer(other.x, other.y, other.status)
                yield row(program, solver, "saddlepoint, first-order", seconds, answer, scale)
            except TooLongError:
                yield [program.name, "saddlepoint, first-order", f"> {1.5 * SECONDS:g}", "", "", ""]
        for name, peer, quadratic in peers():
            if (program.P is not None and not quadratic) or (name == "MPAX" and program.q.size < COMPILED):
                continue
            try:
                yield row(program, solver, name, *timed(partial(peer, program)), scale)
            except TooLongError:
                yield [program.name, name, f"> {1.5 * SECONDS:g}", "", "", ""]
            except ValueError:
                continue
            except Exception as error:
                yield [program.name, name, "", f"{type(error).__name__}", "—", "—"]


def warm_up(program: Program) -> None:
    """Call all solvers once, so that no time of the table is that of an import."""
    sp.apps.QuadraticProgram(*program[1:]).solve()
    for name, peer, _ in peers():
        if name != "MPAX":
            peer(program)


def row(program: Program, solver: Any, name: str, seconds: float, answer: Answer, scale: float) -> Row:
    """The row of one solver on one program."""
    start = [program.name, name, f"{seconds:.2g}", str(answer.says)]
    if answer.x is None or not np.isfinite(answer.x).all() or not np.isfinite(answer.y).all():
        return [*start, "—", "—"]
    if answer.says in ("infeasible", "unbounded") and name.startswith("saddlepoint"):
        return [*start, "proven by a ray", ""]
    exact = solver.certify(answer.x, answer.y)
    return [*start, f"{exact.width / scale:.0e}", f"{exact.violation:.0e}"]


def attack(seed: int, draws: int) -> str:
    """The section about small programs whose optimal values are known exactly, so many in all."""
    kinds: Any = import_module("program_kinds")
    rows, totals = [], Counter[str]()
    for number, kind in enumerate(kinds.KINDS):
        counts: Counter[str] = Counter()
        for i in range(math.ceil(draws / len(kinds.KINDS))):
            random = np.random.default_rng([seed, number, i])
            program, truth = kinds.drawn_kind(kind, random)
            solver = sp.apps.QuadraticProgram(*program)
            found = solver.solve()
            wanted = truth if isinstance(truth, str) else "optimal"
            right = found.status == "not proven" or found.status == wanted
            right = right and (isinstance(truth, str) or kinds.is_true(truth, found.lower, found.upper))
            noise = 10.0 ** random.uniform(-16, 1)
            x, y = (v + noise * random.standard_normal(v.size) for v in (found.x, found.y))
            other = solver.certify(x, y)
            right = right and kinds.is_true(truth, other.lower, other.upper)
            counts.update({"programs": 1, "decided": int(found.solved), "false": int(not right)})
        totals += counts
        rows.append(f"| {kind.replace('_', ' ')} | {counts['programs']} | {counts['decided']} | {counts['false']} |")
    total = f"| **all** | {totals['programs']} | {totals['decided']} | **{totals['false']}** |"
    return ATTACK.format(kinds=len(kinds.KINDS)) + "\n".join([*rows, total]) + "\n"


def main() -> None:
    """Write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--seed", type=int, default=time.time_ns() % 2**32)
    parser.add_argument("--draws", type=int, default=None, help="number of small programs with known values")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results/programs.md")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    random = np.random.default_rng(options.seed)
    head = ["program", "solver", "seconds", "says", "interval", "violation"]
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    warm_up(next(iter(programs(np.random.default_rng(0), True))))
    for cells in table(iter([*programs(random, options.quick), *without_solution(random)])):
        lines.append("| " + " | ".join(cells) + " |")
        print(lines[-1], file=sys.stderr, flush=True)
    draws = options.draws if options.draws is not None else 50 if options.quick else 1000
    text = TEXT.format(seed=options.seed, draws=draws, cores=os.cpu_count(), limit=SECONDS, short=SECONDS / 3)
    options.out.write_text(text + "\n".join(lines) + "\n\n" + attack(options.seed, draws))


if __name__ == "__main__":
    main()
