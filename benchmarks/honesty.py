"""A campaign on the two promises of the library: "solved" is true, and a true problem is never called wrong.

    python benchmarks/honesty.py [--runs 100000] [--seed N] [--kind NAME] [--workers 2] [--out F.json] [--resume]
    python benchmarks/honesty.py --kind NAME --seed N --case K     # one case again, with every answer
    python benchmarks/honesty.py --merge A.json B.json [--out F.json] [--report PAGE.md]

Problems of many kinds are drawn at random, true ones and wrong ones, and given to every way into the library. Their
solutions are known in decimal arithmetic of 60 digits. Every bound that is returned is compared with the truth:

- a false bound is one below the truth, whether the run was solved or not;
- a false accusation is an error that says that something is wrong with a true problem;
- a false claim is found if the run ends with an error or unsolved, and harmless if the bound is true in spite of it.

The seed is the date unless one is given, so that every day has its own problems. Counts are added up in F.json. Several
processes, also on several machines, each take a seed of their own; ``--merge`` makes one table of their files.
``--without`` leaves out kinds, and formats of files (npy, zarr, h5, ...). Kinds and formats whose package is not
installed are left out as well.
"""

from __future__ import annotations

import argparse
import datetime
import math
import multiprocessing
import os
import queue
import sys
import time
import warnings
import zlib
from collections.abc import Iterator
from decimal import Decimal
from importlib.util import find_spec
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from honest.applications import APPLICATIONS, Claim, ratio
from honest.draws import Case
from honest.exact import NoSolutionError
from honest.false_claims import FALSE_CLAIMS
from honest.judge import ACCUSING, judge
from honest.misused import MISUSED, UNUSUAL
from honest.nonsmooth import NONSMOOTH
from honest.on_jax import DEVICES
from honest.planted import FALSE_TERMS, PLANTED
from honest.problems import TRUE, ordinary, own
from honest.table import Tally, is_false_claim, report
from honest.term_ways import FALSE_TERM_WAYS, TERM_WAYS, WEAK_WAYS
from honest.ways_in import FORGED, FORMATS, WAYS_IN, WRONG, formats

import saddlepoint as sp


def forged(rng: np.random.Generator) -> Case:
    """A true problem, whose run goes on from a checkpoint that was changed."""
    return ordinary(rng) if rng.random() < 0.5 else own(rng)


EVERY_APPLICATION = {**APPLICATIONS, **NONSMOOTH}
KINDS: dict[str, Any] = {
    **TRUE,
    **UNUSUAL,
    **PLANTED,
    **EVERY_APPLICATION,
    **FALSE_CLAIMS,
    **FALSE_TERMS,
    **MISUSED,
    "false claim: forged checkpoint": forged,
}
SLOW = {  # kinds that take long: one case of them for ten of others
    "saturation",
    "long rows",
    "long data",
    "flat direction",
    "bent gradients",
    "application: classification",
    "application: coupled costs",
    "application: matrix game",
    "application: constrained game",
    "application: robust",
}
ON_JAX = {"JAX", "JAX mesh"}  # JAX compiles for ten seconds or more: one case of them for a hundred of others
GAPS = 0.2  # share of the answers whose duality gap is computed


def generator(kind: str, seed: int, number: int) -> np.random.Generator:
    """The random numbers of one case."""
    return np.random.default_rng([seed, zlib.crc32(kind.encode()), number])


def claims(kind: str, seed: int, number: int) -> Iterator[dict[str, Any]]:
    """What an application says about one set of data, with what it is worth."""
    began = time.perf_counter()
    found: list[Claim] = []
    try:
        found = list(EVERY_APPLICATION[kind](generator(kind, seed, number)))
    except NoSolutionError:
        yield {"kind": kind, "seed": seed, "case": number, "way": "", "outcome": "undecided", "words": ""}
    except Exception as error:
        yield {"kind": kind, "seed": seed, "case": number, "way": kind, **built(error)}
    for claim in found:
        seconds, began = time.perf_counter() - began, time.perf_counter()
        below = claim.bound < math.inf and Decimal(claim.bound) < claim.truth
        words = f"{claim.name} {claim.bound:.6g} < {float(claim.truth):.6g}; {claim.message}" if below else ""
        yield {
            "kind": kind,
            "seed": seed,
            "case": number,
            "way": claim.way,
            "seconds": seconds,
            "outcome": "false" if below else "true",
            "solved": claim.solved,
            "ratio": ratio(claim),
            "words": words,
        }


def verdicts(kind: str, seed: int, number: int) -> Iterator[dict[str, Any]]:
    """All answers on one case, with what they are worth."""
    if kind in EVERY_APPLICATION:
        yield from claims(kind, seed, number)
        return
    rng = generator(kind, seed, number)
    began = time.perf_counter()
    try:
        case: Case = KINDS[kind](rng)
        case.exact.size()
    except NoSolutionError:
        yield {"kind": kind, "seed": seed, "case": number, "way": "", "outcome": "undecided", "words": ""}
        return
    except Exception as error:
        yield {"kind": kind, "seed": seed, "case": number, "way": "Saddle", **built(error)}
        return
    for way, share in ways_of(kind).values():
        if rng.random() >= share:
            continue
        for answer in way(case, rng):
            found = judge(case, answer, rng.random() < GAPS)
            seconds, began = time.perf_counter() - began, time.perf_counter()
            yield {
                "kind": kind,
                "seed": seed,
                "case": number,
                "way": answer.way,
                "noisy": case.noisy,
                "seconds": seconds,
                **found._asdict(),
            }


def ways_of(kind: str) -> dict[str, Any]:
    """The ways in for problems of this kind, each with the share of the cases for which it is used."""
    if kind in PLANTED:
        return WEAK_WAYS if "linear" in kind else TERM_WAYS
    if kind in FALSE_TERMS:
        return FALSE_TERM_WAYS
    return FORGED if "forged" in kind else WRONG if is_false_claim(kind) else WAYS_IN


def built(error: Exception) -> dict[str, Any]:
    """The verdict on an error while a problem is made."""
    words = f"{type(error).__name__}: {error}"
    accused = isinstance(error, sp.AssumptionError) or any(w in words for w in ACCUSING)
    known = isinstance(error, sp.ProblemError | sp.AssumptionError)
    return {"outcome": "accused" if accused and known else "refused" if known else "crashed", "words": words}


def work(task: tuple[str, int, int]) -> list[dict[str, Any]]:
    """One case, in a worker process."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return list(verdicts(*task))


def tasks(kinds: list[str], seed: int, tally: Tally) -> Iterator[tuple[str, int, int]]:
    """Cases without end, of all kinds in turn; those of slow kinds less often."""
    turn = 0
    while True:
        for kind in kinds:
            rarely = 100 if kind in ON_JAX else 10 if kind in SLOW else 1
            if turn % rarely and len(kinds) > 1:
                continue
            number = tally.next.get(kind, 0)
            tally.next[kind] = number + 1
            yield kind, seed, number
        turn += 1


def finished(cases: Iterator[tuple[str, int, int]], workers: int, until: float) -> Iterator[list[dict[str, Any]]]:
    """The answers on the cases, by worker processes, until a time of ``time.perf_counter``.

    Only as many cases are handed out as there are workers: a pool that is fed from an endless iterator cannot be ended.
    """
    answers: queue.SimpleQueue[Any] = queue.SimpleQueue()
    with multiprocessing.get_context("fork").Pool(workers) as pool:
        for _ in range(workers):
            pool.apply_async(work, (next(cases),), callback=answers.put, error_callback=answers.put)
        while (left := until - time.perf_counter()) > 0.0:
            try:
                rows = answers.get(timeout=min(left, 1e6))
            except queue.Empty:
                return
            if isinstance(rows, BaseException):
                raise rows
            pool.apply_async(work, (next(cases),), callback=answers.put, error_callback=answers.put)
            yield rows


def installed() -> list[str]:
    """The kinds whose packages are installed."""
    has_jax = all(map(find_spec, ("jax", "array_api_compat")))
    return [kind for kind in KINDS if has_jax or kind not in ON_JAX]


def main() -> None:
    """Read the arguments, and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    today = int(datetime.datetime.now(datetime.UTC).date().strftime("%Y%m%d"))
    parser.add_argument("--runs", type=int, default=100_000, help="answers to judge")
    parser.add_argument("--seed", type=int, default=today, help="by default the date, as a number")
    parser.add_argument("--kind", action="append", choices=list(KINDS), help="only this kind (may be repeated)")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--case", type=int, help="run one case of the kind and print every answer")
    parser.add_argument("--seconds", type=float, default=math.inf, help="end after this time")
    parser.add_argument("--out", type=Path, help="file for the counts")
    parser.add_argument("--report", type=Path, help="file for the page with all tables")
    parser.add_argument("--resume", action="store_true", help="add to the counts in the file")
    parser.add_argument(
        "--without", nargs="+", default=[], choices=[*KINDS, *FORMATS], help="kinds and formats of files"
    )
    parser.add_argument("--merge", type=Path, nargs="+", help="add up the counts in these files, and run nothing")
    given = parser.parse_args()
    formats[:] = [form for form in formats if form not in given.without]
    kinds = [kind for kind in given.kind or installed() if kind not in given.without]
    flags = os.environ.get("XLA_FLAGS", "")  # read when JAX starts, in a worker process
    os.environ["XLA_FLAGS"] = f"{flags} --xla_force_host_platform_device_count={DEVICES}"
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    if given.merge:
        conclude(merged(given.merge), given.out, given.report)
        return
    if given.case is not None:
        for kind in kinds:
            for row in work((kind, given.seed, given.case)):
                print(row)
        return
    tally = Tally(given.out if given.resume else None)
    if given.seed not in tally.seeds:
        tally.seeds, tally.next = [*tally.seeds, given.seed], {}
    began = saved = time.perf_counter()
    for rows in finished(tasks(kinds, given.seed, tally), given.workers, began + given.seconds):
        for row in rows:
            tally.add(row)
        if time.perf_counter() - saved > 20.0:
            saved = time.perf_counter()
            print(f"{tally.runs} runs, {saved - began:.0f} s", file=sys.stderr, flush=True)
            if given.out is not None:
                tally.save(given.out)
        if tally.runs >= given.runs:
            break
    conclude(tally, given.out, given.report)


def merged(paths: list[Path]) -> Tally:
    """The sum of the counts in several files."""
    total = Tally()
    for path in paths:
        total.merge(Tally(path))
    return total


def conclude(tally: Tally, out: Path | None, page: Path | None) -> None:
    """Write the counts and the tables, print them, and end the process with 1 if anything is wrong, else with 0."""
    if out is not None:
        tally.save(out)
    tables = report(tally, KINDS, sp.__version__)
    if page is not None:
        page.write_text(tables + "\n")
    print(tables, *tally.failed(), sep="\n")
    sys.exit(1 if tally.failures else 0)


if __name__ == "__main__":
    main()
