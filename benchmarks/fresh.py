"""`auto` beside the named methods and two peers, on problems drawn afresh: seconds and calls to a certified 1e-6.

    python benchmarks/fresh.py [--problems 200] [--seconds 3600] [--seed N] [--limit 10] [--out FILE.md]
    python benchmarks/fresh.py --seed N --problems 1        # one problem again
    python benchmarks/fresh.py --terms                      # problems with simple terms
    python benchmarks/fresh.py --part A.jsonl               # rows of one process among several
    python benchmarks/fresh.py --merge A.jsonl B.jsonl [--out FILE.md]     # one page of their rows

The seed is the time unless one is given, so that every run has its own problems. The accuracy is a certified distance
of 1e-6 times that of the start. Each run gets a new object of the problem, and its seconds are those of the whole call:
examination of the problem, estimate of |A|, steps and certificates, of the quicker of two runs where they are short.
Calls are those of the busiest oracle; a matrix that is handed over is counted as the calls that would compute it. The
named methods and the peers are stopped when they have taken half a second and half as long again as `auto`.

Seconds are wall-clock time, or CPU time of the process with `--clock cpu`.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import scipy
from drawn import Problem, draw, draw_with_terms
from scipy.optimize import newton_krylov

import saddlepoint as sp
from saddlepoint.ground.arrays import Array
from saddlepoint.methods.needs import missing
from saddlepoint.theory.certificate import distance_bound

NAMED = (
    "anderson-condat-vu",
    "anderson-imex",
    "anderson-lpd-gs",
    "condat-vu",
    "krylov",
    "direct",
    "newton",
    "dippa",
    "lpd-gs",
)
PEERS = ("newton_krylov", "extragradient by hand")
ACCURACY = 1e-6  # certified distance, relative to that of the start
FACTOR = 3.0  # what is wanted: `auto` takes at most this many times the best
CLOCKS = {"wall": time.perf_counter, "cpu": time.process_time}
SHORT = 0.1  # seconds up to which a run is repeated
WORST = 12  # problems that are listed
SUMMARY = (
    "| problems | number | unsolved | calls | worst | above 3 | seconds | worst | above 3 "
    "| newton_krylov | extragradient |"
)
HEAD = (
    "| seed | problem | auto ended with | calls | over the best | seconds | over the best "
    "| newton_krylov/auto | extragradient/auto |"
)


class Outcome(NamedTuple):
    """One contestant on one problem. Calls and seconds are infinite if it was not solved."""

    calls: float
    seconds: float
    status: str
    method: str


class Row(NamedTuple):
    """One problem: `auto`, the best named method by calls and by seconds, and the peers."""

    problem: Problem
    auto: Outcome
    calls: tuple[float, str]
    seconds: tuple[float, str]
    peers: dict[str, Outcome]

    @property
    def more_calls(self) -> float:
        """Calls of `auto` over those of the best named method."""
        return self.auto.calls / self.calls[0]

    @property
    def more_seconds(self) -> float:
        """Seconds of `auto` over those of the best named method."""
        return self.auto.seconds / self.seconds[0]


class FinishedError(Exception):
    """The peer has reached the accuracy, or its time is up."""


def ours(problem: Problem, method: str, limit: float, clock: str) -> Outcome:
    """A method of this library."""
    f, now = problem.make(), CLOCKS[clock]
    m, n = f.shape
    tol = ACCURACY * f.certificate(*f.project(np.zeros(m), np.zeros(n))).distance
    if method != "auto" and missing(sp.make_method(method), f):
        return Outcome(math.inf, math.inf, "does not apply", method)
    began = now()
    try:
        result = sp.solve(f, tol=tol, method=method, max_seconds=limit)
    except (sp.ProblemError, sp.AssumptionError) as error:
        print(f"seed {problem.seed}, {method}: {error}", file=sys.stderr)
        return Outcome(math.inf, math.inf, type(error).__name__, method)
    seconds = now() - began
    if not result.solved:
        return Outcome(math.inf, math.inf, str(result.status), result.method)
    return Outcome(max(result.calls.values()), seconds, str(result.status), result.method)


def peer(problem: Problem, name: str, limit: float, clock: str) -> Outcome:
    """A peer, which is stopped as soon as its values of the field prove the accuracy."""
    f, now, calls = problem.make(), CLOCKS[clock], 0
    m, n = f.shape
    if f.has_simple:
        return Outcome(math.inf, math.inf, "does not apply", name)
    start = f.certificate(np.zeros(m), np.zeros(n))
    tol, norm = ACCURACY * start.distance, f.norm
    began, deadline, reached = now(), time.perf_counter() + limit, False

    def field(z: Array) -> Array:
        nonlocal calls, reached
        calls += 1
        Fx, Fy = f.field(z[:m], z[m:])
        reached = distance_bound(f.mu_x, f.mu_y, float(np.linalg.norm(Fx)), float(np.linalg.norm(Fy))) <= tol
        if reached or time.perf_counter() > deadline:
            raise FinishedError
        return np.concatenate((Fx, Fy))

    try:
        if name == "newton_krylov":
            newton_krylov(field, np.zeros(m + n), f_tol=1e-300, maxiter=10**7)
        else:
            z, eta = np.zeros(m + n), 0.9 / (f.L + norm)
            while True:
                z = z - eta * field(z - eta * field(z))
    except FinishedError:
        pass
    except Exception as error:  # SciPy's solver raises many kinds where it breaks down
        return Outcome(math.inf, math.inf, type(error).__name__, name)
    seconds = now() - began
    return Outcome(calls, seconds, "solved", name) if reached else Outcome(math.inf, math.inf, "out_of_time", name)


def quickest(problem: Problem, method: str, limit: float, clock: str) -> Outcome:
    """A method of this library; where it takes little time, the quicker one of two runs."""
    first = ours(problem, method, limit, clock)
    return first if not first.seconds < SHORT else min(first, ours(problem, method, limit, clock), key=seconds_of)


def seconds_of(outcome: Outcome) -> float:
    """The seconds of an outcome."""
    return outcome.seconds


def measured(problem: Problem, limit: float, clock: str) -> Row | None:
    """All contestants on one problem; None if no named method has solved it."""
    began = time.perf_counter()
    auto = quickest(problem, "auto", limit, clock)
    wall = time.perf_counter() - began
    allowed = limit if math.isinf(auto.seconds) else min(limit, 0.5 + 1.5 * wall)
    named = {name: quickest(problem, name, allowed, clock) for name in NAMED}
    solved = {name: outcome for name, outcome in named.items() if outcome.status == "solved"}
    if not solved and math.isinf(auto.seconds):
        return None
    peers = {name: peer(problem, name, allowed, clock) for name in PEERS}
    by_calls = min(((outcome.calls, name) for name, outcome in solved.items()), default=(auto.calls, "auto"))
    by_seconds = min(((outcome.seconds, name) for name, outcome in solved.items()), default=(auto.seconds, "auto"))
    return Row(problem, auto, by_calls, by_seconds, peers)


# -- the rows of several processes -------------------------------------------------------------------------------------


class Part:
    """The file to which a process writes its rows, one in a line, as soon as they are measured."""

    def __init__(self, path: Path, command: str) -> None:
        self.path = path
        path.write_text(json.dumps({"command": command}) + "\n")

    def add(self, problem: Problem, row: Row | None) -> None:
        """Write one row; None for a problem that nobody has solved."""
        entry: dict[str, Any] = {"problem": [problem.seed, problem.words, problem.own, problem.quadratic]}
        if row is not None:
            entry |= {"auto": row.auto, "calls": row.calls, "seconds": row.seconds, "peers": row.peers}
        with self.path.open("a") as file:
            file.write(json.dumps(entry) + "\n")


def drawn_again(draw_one: Callable[[int], Problem], seed: int) -> sp.Saddle:
    """The problem of this seed, drawn when it is asked for: drawing it takes time."""
    return draw_one(seed).make()


def merged(paths: list[Path]) -> tuple[list[Row], list[Problem], list[str]]:
    """The rows of several parts, the problems that nobody has solved, and the commands that measured them."""
    rows, skipped, commands = list[Row](), list[Problem](), list[str]()
    for path in paths:
        first, *lines = (json.loads(line) for line in path.read_text().splitlines())
        commands.append(f"{first['command']} --problems {len(lines)}")
        for entry in lines:
            seed, words, own, quadratic = entry["problem"]
            draw_one = draw_with_terms if "--terms" in first["command"] else draw
            problem = Problem(seed, partial(drawn_again, draw_one, seed), words, own, quadratic)
            if "auto" not in entry:
                skipped.append(problem)
                continue
            peers = {name: Outcome(*outcome) for name, outcome in entry["peers"].items()}
            best = tuple(entry["calls"]), tuple(entry["seconds"])
            rows.append(Row(problem, Outcome(*entry["auto"]), *best, peers))
    seeds = [row.problem.seed for row in rows]
    if len(seeds) != len(set(seeds)):
        raise SystemExit("the parts have problems in common: give every process a seed of its own, far from the others")
    return rows, skipped, commands


# -- the page ---------------------------------------------------------------------------------------------------------


def mean(ratios: list[float]) -> float:
    """The geometric mean; what is infinite counts as 1e3."""
    return math.exp(sum(math.log(min(ratio, 1e3)) for ratio in ratios) / len(ratios)) if ratios else math.nan


def line(row: Row) -> str:
    """One problem as a row of the table of the worst."""
    times = [f"{row.peers[name].seconds / row.auto.seconds:.2g}" for name in PEERS]
    more = f"{row.more_calls:.2f} ({row.calls[1]})", f"{row.more_seconds:.2f} ({row.seconds[1]})"
    words = row.problem.words.replace("|", "\\|")
    cells = [
        str(row.problem.seed), words, f"{row.auto.method} ({row.auto.status})",
        f"{row.auto.calls:.0f}", more[0], f"{row.auto.seconds:.3g}", more[1], *times,
    ]  # fmt: skip
    return f"| {' | '.join(cells)} |"


def summary(name: str, rows: list[Row]) -> str:
    """One group of problems as a row of the summary."""
    calls, seconds = [row.more_calls for row in rows], [row.more_seconds for row in rows]
    cells = [name, str(len(rows)), str(sum(row.auto.status != "solved" for row in rows))]
    for ratios in (calls, seconds):
        above = sum(ratio > FACTOR for ratio in ratios)
        cells += [f"{mean(ratios):.2f}", f"{max(ratios):.3g}", str(above)]
    for name in PEERS:
        ratios = [row.peers[name].seconds / row.auto.seconds for row in rows if row.auto.status == "solved"]
        reached = [ratio for ratio in ratios if math.isfinite(ratio)]
        cells.append(f"{mean(reached):.2f} of {len(reached)}, {min(reached, default=math.nan):.2g}")
    return f"| {' | '.join(cells)} |"


def page(rows: list[Row], skipped: list[Problem], command: str, title: str, together: str = "") -> str:
    """The tables as Markdown."""
    about = (__doc__ or "").split("\n\n")
    groups = {
        "all": rows,
        "own functions": [row for row in rows if row.problem.own],
        "ready functions": [row for row in rows if not row.problem.own],
        "quadratic": [row for row in rows if row.problem.quadratic],
    }
    lines = [
        title, "", about[0], "", " ".join(about[2].split()), "",
        "Columns: problems; those that `auto` did not solve in time; its calls and its seconds over those of the best",
        "named method (geometric mean, worst, and how many are above 3); seconds of a peer over those of `auto`",
        "(geometric mean of the problems that the peer solved in time, their number, and the worst for us).", "",
        SUMMARY, "|" + "---|" * SUMMARY.count(" | ") + "---|",
        *(summary(name, group) for name, group in groups.items() if group), "",
        f"No named method and not `auto` either solved {len(skipped)} further problems in time.", "",
    ]  # fmt: skip
    for title, key in (("calls", Row.more_calls), ("seconds", Row.more_seconds)):
        worst = sorted(rows, key=key.fget, reverse=True)[:WORST]  # type: ignore[attr-defined]
        lines += [
            f"## The worst by {title}", "",
            HEAD, "|" + "---|" * HEAD.count(" | ") + "---|", *map(line, worst), "",
        ]  # fmt: skip
    ends = Counter(f"{row.auto.method}: {row.auto.status}" for row in rows)
    lines += ["## How `auto` ended", "", "| method and status | problems |", "|---|---|"]
    lines += [f"| {end} | {count} |" for end, count in ends.most_common()]
    versions = f"Python {platform.python_version()}, NumPy {np.__version__}, SciPy {scipy.__version__}"
    lines += [
        "",
        f"By `{command}`{together} on {os.cpu_count()} cores, one thread{' each' * bool(together)}: {versions}.",
        "",
    ]
    return "\n".join(lines)


def warm_up() -> None:
    """Load what is loaded once, whichever method is measured first."""
    f = sp.Saddle(sp.LogCosh(t=np.ones(3), l2=0.1), sp.LogCosh(t=np.ones(2), l2=0.1), np.ones((3, 2)))
    q = sp.Saddle(sp.Quadratic(1.0), sp.Quadratic(1.0), np.ones((3, 2)))
    for name in NAMED:
        problem = q if missing(sp.make_method(name), f) else f
        sp.solve(problem, method=name)


def main() -> None:
    """Draw, measure, print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--problems", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=math.inf, help="begin no further problem after this time")
    parser.add_argument("--seed", type=int, default=None, help="of the first problem; the next ones follow")
    parser.add_argument("--limit", type=float, default=10.0, help="seconds of one run")
    parser.add_argument("--clock", choices=list(CLOCKS), default="wall", help="CPU time where the machine is busy")
    parser.add_argument("--terms", action="store_true", help="problems with simple terms, which the peers cannot take")
    parser.add_argument("--out", default=None, help="file for the page; printed if left out")
    parser.add_argument("--part", type=Path, default=None, help="file for the rows, for --merge")
    parser.add_argument(
        "--merge", type=Path, nargs="+", help="make the page of the rows in these files, and run nothing"
    )
    arguments = parser.parse_args()
    if arguments.merge:
        rows, skipped, commands = merged(arguments.merge)
        together = f", {len(commands)} processes at the same time," if len(commands) > 1 else ""
        write(page(rows, skipped, "`; `".join(commands), titled("--terms" in commands[0]), together), arguments.out)
        return
    warnings.simplefilter("ignore")
    if arguments.clock == "cpu":
        time.perf_counter = time.process_time  # limits too: on a busy machine a run may wait for as long as it works
    first = int(time.time()) if arguments.seed is None else arguments.seed
    options = f" --limit {arguments.limit:g}{' --terms' * arguments.terms}{' --clock cpu' * (arguments.clock == 'cpu')}"
    part = Part(arguments.part, f"python benchmarks/fresh.py --seed {first}{options}") if arguments.part else None
    warm_up()
    rows, skipped, end = list[Row](), list[Problem](), time.time() + arguments.seconds
    for number in range(arguments.problems):
        if time.time() > end:
            break
        problem = draw_with_terms(first + number) if arguments.terms else draw(first + number)
        row = measured(problem, arguments.limit, arguments.clock)
        if part is not None:
            part.add(problem, row)
        if row is None:
            skipped.append(problem)
            print(f"{problem.seed}: nobody. {problem.words}", file=sys.stderr, flush=True)
            continue
        rows.append(row)
        print(
            f"{problem.seed}: calls {row.more_calls:.2f} ({row.calls[1]}), seconds {row.more_seconds:.2f} "
            f"({row.seconds[1]}), {row.auto.method} {row.auto.calls:.0f} {row.auto.seconds:.3g} s. {problem.words}",
            file=sys.stderr,
            flush=True,
        )
    count = len(rows) + len(skipped)
    command = f"python benchmarks/fresh.py --seed {first} --problems {count}{options}"
    write(page(rows, skipped, command, titled(arguments.terms)), arguments.out)


def titled(terms: bool) -> str:
    """The title of a page."""
    return f"# `auto` on fresh problems{' with simple terms' * terms}"


def write(text: str, out: str | None) -> None:
    """Write the page to a file, or print it."""
    if out is None:
        print(text)
    else:
        Path(out).write_text(text)


if __name__ == "__main__":
    main()
