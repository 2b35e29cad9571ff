"""The measurements as Markdown: tables at equal accuracy, and ratios."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

from .contestants import PEERS, SCIPY, UNCOUNTED

Outcomes = list[dict[str, Any]]
PEER_NAMES = [peer.name for peer in PEERS]


class Board:
    """The outcomes of one JSON file; the best setting counts, for rounds and for seconds separately."""

    def __init__(self, outcomes: Outcomes) -> None:
        self.outcomes = outcomes
        self.instances = list(dict.fromkeys(o["instance"] for o in outcomes))
        known = dict.fromkeys(o["contestant"] for o in outcomes)
        self.peers = [name for name in PEER_NAMES if name in known]
        self.ours = sorted((name for name in known if name not in PEER_NAMES), key=lambda name: (name != "auto", name))

    def of(self, instance: str, name: str) -> Outcomes:
        """The outcomes of one contestant on one instance, one for each setting."""
        return [o for o in self.outcomes if o["instance"] == instance and o["contestant"] == name]

    def best(self, instance: str, name: str, accuracy: str, what: str) -> float:
        """The smallest ``what`` (rounds, seconds, ...) to the accuracy; infinite if not reached, NaN if not counted."""
        found = [o["reached"][accuracy][what] for o in self.of(instance, name) if accuracy in o["reached"]]
        uncounted = name in UNCOUNTED and what != "seconds"
        return math.nan if uncounted and found else min(found, default=math.inf)

    def best_of(self, names: Iterable[str], instance: str, accuracy: str, what: str) -> tuple[float, str]:
        """The smallest over several contestants, and whose it is."""
        pairs = [(self.best(instance, name, accuracy, what), name) for name in names]
        return min((pair for pair in pairs if not math.isnan(pair[0])), default=(math.inf, ""))

    def cell(self, instance: str, name: str, accuracy: str) -> str:
        """A cell with ``rounds / seconds``; if the accuracy was not reached, with the best certified distance."""
        outcomes = self.of(instance, name)
        if not outcomes:
            return ""
        rounds, seconds = (self.best(instance, name, accuracy, what) for what in ("rounds", "seconds"))
        if math.isinf(seconds):
            closest = min(o["certified"] for o in outcomes)
            return "–" if math.isinf(closest) else f"– ({closest:.0e})"
        return f"{'·' if math.isnan(rounds) else f'{rounds:.0f}'} / {seconds:.2g}"


def power(accuracy: str) -> str:
    """The accuracy as a power of ten: 0.0001 as 1e-4."""
    return f"1e{math.log10(float(accuracy)):.0f}"


def table(board: Board, names: list[str], accuracy: str) -> list[str]:
    """The table of instances by contestants."""
    lines = ["| instance | " + " | ".join(names) + " |", "|---" * (1 + len(names)) + "|"]
    for instance in board.instances:
        cells = [board.cell(instance, name, accuracy) for name in names]
        lines.append("| " + " | ".join([instance.replace("|", "\\|"), *cells]) + " |")
    return lines


def compare(pairs: Iterable[tuple[float, float]]) -> str:
    """Geometric mean and extremes of rival/auto over the instances both solved, and who else solved what."""
    pairs = [pair for pair in pairs if not any(map(math.isnan, pair))]
    ratios = [rival / auto for rival, auto in pairs if math.isfinite(rival) and math.isfinite(auto)]
    alone = sum(math.isinf(rival) and math.isfinite(auto) for rival, auto in pairs)
    missed = sum(math.isfinite(rival) and math.isinf(auto) for rival, auto in pairs)
    if not ratios:
        return f"– | – | – | 0 | {alone} | {missed}"
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    return f"{mean:.2f} | {min(ratios):.2f} | {max(ratios):.1f} | {len(ratios)} | {alone} | {missed}"


def ratios(board: Board, accuracies: list[str], large: Callable[[str], bool]) -> list[str]:
    """How auto compares: rounds with SciPy and with the best of our methods, seconds with every peer."""
    head = "geometric mean | least | most | both | only auto | only the other |"
    lines = ["Ratios are the other's number divided by auto's: above 1, auto needs less.", ""]
    lines += [f"| accuracy | other | what | {head}", "|---" * 9 + "|"]
    single = [name for name in board.ours if name != "auto"]
    for accuracy in accuracies:
        for title, names in (("best SciPy root finder", SCIPY), ("best single method of ours", single)):
            pairs = [
                (
                    board.best_of(names, instance, accuracy, "rounds")[0],
                    board.best(instance, "auto", accuracy, "rounds"),
                )
                for instance in board.instances
            ]
            lines.append(f"| {power(accuracy)} | {title} | rounds | {compare(pairs)} |")
        for name in board.peers:
            pairs = [
                (board.best(instance, name, accuracy, "seconds"), board.best(instance, "auto", accuracy, "seconds"))
                for instance in board.instances
                if large(instance) and board.of(instance, name)
            ]
            lines.append(f"| {power(accuracy)} | {name} | seconds, n = 200 and more | {compare(pairs)} |")
    return lines


COLUMNS = ("rounds", "gradients", "products", "seconds")


def relative_costs(board: Board, accuracies: list[str]) -> list[str]:
    """The calls and seconds of each contestant in units of auto's, geometric means over instances that both solved."""
    lines = ["Geometric means of what a contestant takes over what auto takes, where both reach the accuracy.", ""]
    lines += ["| contestant | " + " | ".join(f"{power(a)}: done | {' | '.join(COLUMNS)}" for a in accuracies) + " |"]
    lines += ["|---" * (1 + (1 + len(COLUMNS)) * len(accuracies)) + "|"]
    for name in [*board.ours, *board.peers]:
        cells = []
        for accuracy in accuracies:
            tried = [instance for instance in board.instances if board.of(instance, name)]
            done = [instance for instance in tried if math.isfinite(board.best(instance, name, accuracy, "seconds"))]
            cells.append(f"{len(done)} of {len(tried)}")
            for what in COLUMNS:
                pairs = [[board.best(instance, who, accuracy, what) for who in (name, "auto")] for instance in done]
                logs = [math.log(theirs / ours) for theirs, ours in pairs if theirs > 0.0]
                counted = logs and not any(map(math.isnan, logs))
                cells.append(f"{math.exp(sum(logs) / len(logs)):.2g}" if counted else "·")
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return lines


def suite_page(board: Board, accuracies: list[str]) -> str:
    """The page about the suite."""
    lines: list[str] = []
    for accuracy in accuracies:
        lines += [f"### To certified relative distance {power(accuracy)}", ""]
        lines += [*table(board, ["auto", *board.peers], accuracy), ""]
        lines += ["Our methods:", "", *table(board, board.ours, accuracy), ""]
    lines += ["### Rounds, gradients, products and seconds", "", *relative_costs(board, accuracies), ""]
    return "\n".join([*lines, "### Ratios", "", *ratios(board, accuracies, lambda name: "n = 50," not in name)])


def fresh_page(board: Board, accuracies: list[str], reference: str) -> str:
    """What every contestant takes over what the reference takes, on problems drawn afresh."""
    lines: list[str] = []
    for accuracy in accuracies:
        lines += [f"## To certified relative distance {power(accuracy)}", ""]
        lines += ["| contestant | solved | rounds | seconds | least | most |", "|---|---|---|---|---|---|"]
        for name in [*board.ours, *board.peers]:
            tried = [instance for instance in board.instances if board.of(instance, name)]
            taken = [board.best(instance, name, accuracy, "seconds") for instance in tried]
            cells = [f"{sum(map(math.isfinite, taken))} of {len(tried)}"]
            for what in ("rounds", "seconds"):
                pairs = [[board.best(instance, who, accuracy, what) for who in (name, reference)] for instance in tried]
                found = [theirs / ours for theirs, ours in pairs if math.isfinite(theirs) and math.isfinite(ours)]
                mean = math.exp(sum(map(math.log, found)) / len(found)) if found else math.nan
                cells.append(f"{mean:.2g}" if found else "·")
            cells += [f"{min(found):.2g}", f"{max(found):.3g}"] if found else ["·", "·"]
            lines.append(f"| {name} | {' | '.join(cells)} |")
        lines.append("")
    return "\n".join(lines)


def sparse_page(board: Board, accuracies: list[str]) -> str:
    """Contestants by accuracies, for each instance of the sparse family."""
    lines: list[str] = []
    for instance in board.instances:
        lines += [
            f"### {instance}",
            "",
            "| contestant | " + " | ".join(map(power, accuracies)) + " | certified at the end |",
        ]
        lines += ["|---" * (2 + len(accuracies)) + "|"]
        for name in [*board.ours, *board.peers]:
            if outcomes := board.of(instance, name):
                cells = [board.cell(instance, name, accuracy) for accuracy in accuracies]
                end = min(outcomes, key=lambda o: o["certified"])
                lines.append(f"| {name} | {' | '.join(cells)} | {end['certified']:.1e} ({end['status']}) |")
        lines.append("")
    return "\n".join(lines)


def expensive_page(board: Board, accuracies: list[str]) -> str:
    """The page about expensive gradients: one gradient costs as much as a hundred products."""
    lines = ["| method | " + " | ".join(f"{power(a)}: gradients | products | units" for a in accuracies) + " |"]
    lines += ["|---" * (1 + 3 * len(accuracies)) + "|"]
    for name in board.ours:
        cells = []
        for accuracy in accuracies:
            calls = [board.best(board.instances[0], name, accuracy, what) for what in ("gradients", "products")]
            cells += [f"{number:.4g}" for number in (*calls, 100 * calls[0] + calls[1])]
        lines.append(f"| {name} | " + " | ".join(cells).replace("inf", "–") + " |")
    return "\n".join(lines)
