"""Counts of what the answers were worth, by kind of problem and by way in, and the tables of them."""

from __future__ import annotations

import json
import math
import platform
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import scipy

KEPT = 20  # failures of one kind whose words are kept
RATIOS = 3000  # ratios of one kind that are kept
FAILURE = "kind", "seed", "case", "way", "outcome", "solved", "words"  # what is kept of a failure


class Tally:
    """What has been counted: by kind and way in, with failures in words and ratios of certified to true distances.

    The counts of several processes, each with a seed of its own, are added up by ``merge``.

    Attributes:
        counts: by "kind|way|name", how many answers have this name; a name is "runs", "solved", "false" and so on.
        ratios: by kind, decimal logarithms of certified over true distances.
        failures: the first failures of each kind.
        seconds: seconds that all workers took together.
        next: by kind, the number of the next case.
        seeds: the seeds of the cases.
    """

    def __init__(self, path: Path | None = None) -> None:
        self.counts: Counter[str] = Counter()
        self.ratios: dict[str, list[float]] = {}
        self.failures: list[dict[str, Any]] = []
        self.seconds = 0.0
        self.next: dict[str, int] = {}
        self.seeds: list[int] = []
        if path is not None:
            saved = json.loads(path.read_text())
            self.counts.update(saved["counts"])
            self.ratios, self.failures = saved["ratios"], saved["failures"]
            self.seconds, self.next, self.seeds = saved["seconds"], saved["next"], saved["seeds"]

    def merge(self, other: Tally) -> None:
        """Add what another process has counted, on cases of other seeds."""
        if twice := set(self.seeds) & set(other.seeds):
            raise ValueError(f"the cases of seed {min(twice)} are counted already; give each process its own seed")
        self.counts.update(other.counts)
        for kind, ratios in other.ratios.items():
            self.ratios.setdefault(kind, []).extend(ratios)
        self.failures += other.failures
        self.seconds += other.seconds
        self.next, self.seeds = {}, sorted([*self.seeds, *other.seeds])

    @property
    def runs(self) -> int:
        """The number of answers."""
        return self.total("runs")

    def add(self, row: dict[str, Any]) -> None:
        """Count one answer."""
        kind, way, outcome = row["kind"], row["way"], row["outcome"]
        if outcome == "unexamined" and _is_measured(kind):
            outcome = "false"
        if outcome == "undecided":
            self.counts[f"{kind}||undecided"] += 1
            return
        self.seconds += row.get("seconds", 0.0)
        wrong, solved = is_false_claim(kind), bool(row.get("solved"))
        names = ["runs", "solved"] if solved else ["runs"]
        if wrong:
            if outcome == "assumed" or (outcome in ("false", "unexamined") and not solved):
                names.append(outcome)
            names.append(_name_of_claim(outcome, solved))
        else:
            names.append(outcome)
            if outcome == "false" and solved:
                names.append("false solved")
        if row.get("suspected") and not row.get("noisy") and not wrong:
            names.append("suspected")
        for name in names:
            self.counts[f"{kind}|{way}|{name}"] += 1
        ratio = row.get("ratio", math.nan)
        kept = self.ratios.setdefault(kind, [])
        if 0.0 < ratio < math.inf and outcome == "true" and not wrong and len(kept) < RATIOS:
            kept.append(round(math.log10(ratio), 3))
        bad = {"false", "crashed"} if wrong else {"false", "accused", "crashed"}
        if outcome in bad and sum(f["kind"] == kind and f["outcome"] == outcome for f in self.failures) < KEPT:
            self.failures.append({key: row.get(key) for key in FAILURE})

    def save(self, path: Path) -> None:
        """Write everything to a file."""
        content = {
            "seeds": self.seeds,
            "counts": dict(self.counts),
            "ratios": self.ratios,
            "failures": self.failures,
            "seconds": self.seconds,
            "next": self.next,
        }
        path.write_text(json.dumps(content))

    def total(self, name: str, chosen: Callable[[str, str], bool] = lambda kind, way: True) -> int:
        """How many answers of chosen kinds and ways in have this name."""
        keys = ((key.split("|"), n) for key, n in self.counts.items())
        return sum(n for (kind, way, what), n in keys if what == name and chosen(kind, way))

    def failed(self) -> list[str]:
        """The failures in words."""
        return ["  ".join(str(failure[key]) for key in FAILURE)[:400] for failure in self.failures]


def is_false_claim(kind: str) -> bool:
    """Whether something that the caller says about problems of this kind is false."""
    return kind.startswith("false claim")


def _is_measured(kind: str) -> bool:
    """Whether the errors of gradients of this kind are measured, so that bounds are to be true in unsolved runs too."""
    return any(word in kind for word in ("noise", "rounded", "memory"))


def _name_of_claim(outcome: str, solved: bool) -> str:
    """What became of a false claim."""
    if outcome == "crashed":
        return "crashed"
    if not solved:  # an error, or a run that is not reported as solved
        return "found"
    return {"false": "false solved", "assumed": "taken as zero"}.get(outcome, "harmless")


# -- tables ------------------------------------------------------------------------------------------------------------

TRUE = ("runs", "solved", "false solved", "false", "accused", "crashed", "refused", "suspected", "undecided")
CLAIM = ("runs", "found", "harmless", "false solved", "false", "unexamined", "assumed", "crashed")


def markdown(head: Iterable[str], rows: Iterable[Iterable[Any]]) -> list[str]:
    """A table."""
    head = list(head)
    return [f"| {' | '.join(map(str, line))} |" for line in (head, ["---"] * len(head), *rows)]


def tightness(ratios: list[float]) -> list[str]:
    """The median and the 90th percentile of certified over true distance."""
    if not ratios:
        return ["", ""]
    return [f"{10 ** float(np.quantile(ratios, q)):.2g}" for q in (0.5, 0.9)]


def by_kind(tally: Tally, kinds: Iterable[str], names: tuple[str, ...]) -> Iterable[list[Any]]:
    """One row for each kind, and their sum."""
    kinds = [kind for kind in kinds if tally.total("runs", lambda k, d, kind=kind: k == kind)]  # type: ignore[misc]
    for kind in kinds:
        counts = [tally.total(name, lambda k, d, kind=kind: k == kind) for name in names]  # type: ignore[misc]
        yield [kind, *counts, *([] if is_false_claim(kind) else tightness(tally.ratios.get(kind, [])))]
    filler = [] if names is CLAIM else ["", ""]
    yield ["all", *(tally.total(name, lambda k, d: k in kinds) for name in names), *filler]


def by_way(tally: Tally) -> Iterable[list[Any]]:
    """One row for each way in."""
    for way in sorted({key.split("|")[1] for key in tally.counts} - {""}):
        names = ("runs", "solved", "false solved", "false", "accused", "crashed")
        yield [
            way,
            *(
                tally.total(name, lambda k, d, way=way: d == way and not is_false_claim(k))  # type: ignore[misc]
                for name in names
            ),
            tally.total("runs", lambda k, d, way=way: d == way and is_false_claim(k)),  # type: ignore[misc]
            tally.total("false solved", lambda k, d, way=way: d == way and is_false_claim(k)),  # type: ignore[misc]
        ]


PAGE = """# Are the certificates true?

Problems of many kinds are drawn at random and given to every way into the library: `solve` by `auto`, by named and by
wrapped methods, certificates at given points, batches, copies of A in lower precision, A on disk (also in Zarr and HDF5
stores), A in shards, arrays of JAX on one device and on a mesh of devices, stopped
and continued runs, `sp.check`, `sp.certify`, and the applications. The solution of each problem is known in decimal
arithmetic of 60 digits, found by Newton's method and proven by its residual there. Problems with constraints and
nonsmooth terms are made from their solution: linear terms are chosen so that a point with given subgradients solves
the problem. Their runs ask for a distance (`tol`), a relative distance (`rtol`) or a duality gap (`gap`). Every bound
that comes back is compared with the truth, and so are proven supports.

| column | what is counted |
|---|---|
| runs | answers: results, certificates, errors |
| false solved | a run is reported as solved, and a bound (distance, gap, exploitability) is below the truth |
| false | a bound is below the truth, solved or not; of false claims: of an unsolved run that says nothing of it |
| unexamined | of false claims: such a bound of a run that says that they were not examined |
| assumed | of differences of values: a bound below the truth, where `assumes` takes errors that all share to be 0 |
| accused | an error or message says that something is wrong with a true problem: a false accusation |
| crashed | an exception that is not one of the library's own, or a bound that is NaN |
| refused | a `ProblemError` without an accusation, such as a method that does not fit |
| suspected | a run on exact gradients, or `sp.check`, says that they seem noisy or rounded, or a prox inexact |
| undecided | cases that were left out because Newton's method did not find their solution |
| found | of false claims: an error, or a run that is not solved |
| harmless | of false claims: a solved run whose bounds are true all the same |
| certified/true | the certified distance over the true one, which contains condition numbers and rounding |

"""


def report(tally: Tally, kinds: Iterable[str], version: str) -> str:
    """The page with all tables, as Markdown."""
    kinds = list(kinds)
    true, wrong = [k for k in kinds if not is_false_claim(k)], [k for k in kinds if is_false_claim(k)]
    ways = [
        *("way in", "runs", "solved", "false solved", "false", "accused", "crashed"),
        *("false claims", "of these, false solved"),
    ]
    seeds = tally.seeds
    command = (
        f"--seed {seeds[0]}" if len(seeds) == 1 else f"--seed N` with N from {seeds[0]} to {seeds[-1]}, and `--merge"
    )
    lines = [
        "## True problems",
        "",
        *markdown(["kind", *TRUE, "certified/true: median", "90 %"], by_kind(tally, true, TRUE)),
        "",
        "## False claims",
        "",
        *markdown(["kind", *CLAIM], by_kind(tally, wrong, CLAIM)),
        "",
        "## Ways in",
        "",
        *markdown(ways, by_way(tally)),
        "",
        f"By `python benchmarks/honesty.py {command}`: {tally.runs} runs in {tally.seconds / 3600:.1f} hours of worker "
        f"time, on saddlepoint {version}, Python {platform.python_version()}, NumPy {np.__version__}, "
        f"SciPy {scipy.__version__}.",
    ]
    return PAGE + "\n".join(lines)
