"""Linear programs of Netlib and quadratic programs of Maros and Meszaros, beside other solvers.

    python benchmarks/public_programs.py FOLDER [--entries 2500] [--seconds 10] [--only saddlepoint] [--write]

FOLDER is `tests/data` of the source distribution of PIQP, which has both sets as files of Matlab (`pip download
--no-binary :all: --no-deps piqp==0.6.4`, BSD 2-clause; the files are not part of this repository). Programs whose A has
more entries than asked for are left out. Every answer is measured by `QuadraticProgram.certify`, whatever the solver
says about it, as in `benchmarks/programs.py`. A run of a solver is ended after so many seconds.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import program_peers
from program_peers import Answer, peers
from program_problems import Program
from scipy.sparse import csr_array, vstack
from time_limit import TooLongError, time_limit

import saddlepoint as sp

PAGE = Path(__file__).parent / "results" / "public_programs.md"
GOAL = 1e-6  # relative length of the interval that is asked for
INF = 1e20  # numbers from which bounds of the files count as infinite
SETS = (
    ("Netlib", "netlib/data"),
    ("Netlib, infeasible", "netlib/infeas"),
    ("Maros and Meszaros", "maros_meszaros"),
)
TEXT = """# Public linear and quadratic programs

By `python benchmarks/public_programs.py FOLDER --entries {entries} --seconds {seconds:g} --write`, on {cores}
cores shared with other processes; FOLDER is `tests/data` of the source distribution of PIQP 0.6.4. These are
the programs of the two sets whose A has at most {entries} entries. *proven* counts answers with an interval
for the optimal value that is shorter than {goal:g} of that value (of 1, where it is smaller), and infeasible
programs with a ray that proves it; the interval is computed by `QuadraticProgram.certify` from the point and
the multipliers that the solver returned. *says so* counts programs of which the solver says that it has
solved them (or that they are infeasible), and *not borne out* those among them without such a proof: most
often the answers are good to the tolerance of the solver, and no point that satisfies all rows exactly is
near. Each solver is given {seconds:g} s of wall-clock time a program, and is ended after twice as many seconds of
CPU time. CPU seconds are in total. MPAX has a limit of {rounds}
iterations in place of one of time; it compiles for every program, and takes most of its seconds for that. The
other solvers are asked for no ray here, so that what they say about infeasible programs is not measured.

"""

ROUNDED = """ Proven to be infeasible as their numbers stand: {names}. These
numbers were rounded to float64, and rows contradict each other by no more than that: the message of the result names
the `feasibility=` that allows for it."""


def read(path: Path) -> Program:
    """The program of a file."""
    data: Any = import_module("scipy.io").loadmat(path)
    column = {name: np.ravel(data[name]).astype(float) for name in ("b", "c", "h_l", "h_u", "x_l", "x_u")}
    for name, bound in column.items():
        column[name] = np.where(np.abs(bound) >= INF, np.copysign(np.inf, bound), bound)
    A = csr_array(vstack([csr_array(data["A"]), csr_array(data["G"])]))
    lower, upper = (np.append(column["b"], column[name]) for name in ("h_l", "h_u"))
    P = csr_array(data["P"]).astype(float)
    P.eliminate_zeros()
    quadratic = P if P.nnz else None
    return Program(path.stem, quadratic, column["c"], A.astype(float), lower, upper, column["x_l"], column["x_u"])


def small(folder: Path, entries: int) -> Iterator[Program]:
    """The programs of a folder with at most so many entries, those with the fewest first."""
    found = []
    for path in sorted(folder.glob("*.mat")):
        if path.stat().st_size <= 100 * entries:
            program = read(path)
            if program.A.nnz <= entries:
                found.append(program)
    yield from sorted(found, key=lambda program: program.A.nnz)


def by_us(program: Program, seconds: float) -> tuple[Answer, bool]:
    """The answer of this library, and whether it is proven."""
    found = sp.apps.QuadraticProgram(*program[1:]).solve(rtol=GOAL, max_seconds=seconds)
    proven = found.status in ("infeasible", "unbounded") or is_short(found.lower, found.upper)
    return Answer(found.x, found.y, found.status), proven


def by_peer(peer: Any, program: Program) -> tuple[Answer, bool]:
    """The answer of another solver, and whether it proves an interval."""
    answer = peer(program)
    if answer.x is None or not np.isfinite(answer.x).all() or not np.isfinite(answer.y).all():
        return answer, False
    exact = sp.apps.QuadraticProgram(*program[1:]).certify(answer.x, answer.y)
    return answer, is_short(exact.lower, exact.upper)


def is_short(lower: float, upper: float) -> bool:
    """Whether the interval is as short as asked for."""
    return math.isfinite(upper - lower) and upper - lower <= GOAL * max(1.0, abs(lower), abs(upper))


def claims(says: str) -> bool:
    """Whether a solver says that it has an answer."""
    words = says.replace(" ", "")
    return any(words.startswith(word) for word in ("optimal", "solved", "optimizationterminated")) or "infeas" in words


def row(
    name: str, programs: list[Program], answer: Any, seconds: float, said: dict[str, list[str]], measured: bool = True
) -> str:
    """The row of one solver on one set of programs; ``said`` gets the names by what it says, or what is not proven."""
    counts: Counter[str] = Counter()
    began = time.process_time()
    for program in programs:
        try:
            with time_limit(2.0 * seconds, cpu=True):
                found, proven = answer(program)
        except TooLongError:
            found, proven = Answer(None, None, "late"), False
        except ValueError:  # the solver does not take this kind of program
            counts["left out"] += 1
            said.setdefault("left out", []).append(program.name)
            continue
        except Exception as error:
            found, proven = Answer(None, None, type(error).__name__), False
            counts["errors"] += 1
        says = claims(found.says)
        counts.update({"proven": int(proven), "says": int(says), "not borne out": int(says and not proven)})
        said.setdefault(found.says if proven else "not proven", []).append(program.name)
        print(name, program.name, found.says, proven, file=sys.stderr, flush=True)
    spent, total = time.process_time() - began, len(programs) - counts["left out"]
    proofs = (counts["proven"], counts["says"], counts["not borne out"]) if measured else ("—", counts["says"], "—")
    cells = (total, *proofs, counts["errors"], f"{spent:.1f}")
    return f"| {name} | " + " | ".join(map(str, cells)) + " |"


def main() -> None:
    """Print the page, and write it if asked to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--entries", type=int, default=2500)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--only", nargs="+", default=[], metavar="SOLVER", help="the solvers to run; all by default")
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    if not given.folder.is_dir():
        raise SystemExit(f"{given.folder} is no folder; expected tests/data of the source distribution of PIQP")
    warnings.simplefilter("ignore")
    program_peers.SECONDS = given.seconds
    numbers = {"entries": given.entries, "seconds": given.seconds, "rounds": program_peers.ROUNDS}
    lines = [TEXT.format(cores=os.cpu_count(), goal=GOAL, **numbers)]
    for title, folder in SETS:
        programs = list(small(given.folder / folder, given.entries))
        if not programs:
            continue
        lines += [f"## {title}: {len(programs)} programs", ""]
        lines += ["| solver | programs | proven | says so | not borne out | errors | CPU seconds |", "|" + "---|" * 7]
        ours: dict[str, list[str]] = {}
        lines.append(row("saddlepoint", programs, partial(by_us, seconds=given.seconds), given.seconds, ours))
        for name, peer, quadratic in peers():
            if given.only and name not in given.only:
                continue
            taken = [program for program in programs if quadratic or program.P is None]
            if taken:
                measured = "infeasible" not in title
                lines.append(row(name, taken, partial(by_peer, peer), given.seconds, {}, measured))
        lines += ["", f"Not proven by this library: {', '.join(ours.get('not proven', [])) or 'none'}."]
        if "infeasible" not in title and "infeasible" in ours:
            lines[-1] += ROUNDED.format(names=", ".join(ours["infeasible"]))
        if "left out" in ours:
            lines[-1] += f" Left out, because P is not positive semidefinite: {', '.join(ours['left out'])}."
        lines.append("")
    text = "\n".join(lines)
    print(text)
    if given.write:
        PAGE.write_text(text)


if __name__ == "__main__":
    main()
