"""Two pictures: performance profiles over the suite, and certified distance against time on the sparse family."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np

from saddlepoint.ground.plot_style import COLOURS, DASHES, MARKERS, RC, pyplot, save

from .contestants import UNCOUNTED
from .report import Board


def profiles(board: Board, accuracies: list[str], names: list[str], path: Path) -> None:
    """The share of (instance, accuracy) pairs that a contestant solves within a factor of the best one shown.

    An instance that a peer cannot solve, or is not run on, counts as not solved. Uncounted peers have no rounds.
    """
    plt = pyplot()
    cases = [(instance, accuracy) for instance in board.instances for accuracy in accuracies]
    appearances = zip([*COLOURS, "#999999"], [*DASHES, "-"], strict=True)  # grey is the eighth
    styles = {name: {"color": c, "linestyle": d} for name, (c, d) in zip(names, appearances, strict=True)}
    with plt.rc_context(RC):
        figure, axes = plt.subplots(1, 2, figsize=(11, 4.6), sharey=True, constrained_layout=True)
        for axis, what in zip(axes, ("rounds", "seconds"), strict=True):
            shown = [name for name in names if what == "seconds" or name not in UNCOUNTED]
            best = {case: board.best_of(shown, *case, what)[0] for case in cases}
            for name in reversed(shown):
                found = ((board.best(case[0], name, case[1], what), best[case]) for case in cases)
                factors = sorted(number / least for number, least in found if math.isfinite(number))
                shares = [0.0, *(np.arange(1, len(factors) + 1) / len(cases))]
                width = 3.0 if name == "auto" else 1.7
                axis.step([1.0, *factors, 1e9], [*shares, shares[-1]], where="post", linewidth=width, label=name,
                          **styles[name])  # fmt: skip
            axis.set_xscale("log")
            axis.set_xlim(1, 300)
            axis.set_xlabel(f"{what}, as a multiple of the fewest")
        axes[0].set_ylim(0, 1.02)
        axes[0].set_ylabel("share of instances done")
        handles = {line.get_label(): line for axis in axes for line in axis.get_lines()}
        ordered = [name for name in names if name in handles]
        figure.legend([handles[name] for name in ordered], ordered, loc="outside right upper")
        save(figure, path)
        plt.close(figure)


def sparse_curves(board: Board, names: list[str], path: Path) -> None:
    """One panel for each instance; of a peer's settings, the one that was most accurate, or first, is drawn."""
    plt = pyplot()
    with plt.rc_context(RC):
        count = len(board.instances)
        figure, axes = plt.subplots(1, count, figsize=(4.4 * count, 4.4), sharey=True, constrained_layout=True)
        for axis, instance in zip(np.atleast_1d(axes), board.instances, strict=True):
            for name, colour, dash, mark in zip(names, COLOURS, DASHES, MARKERS, strict=True):
                if outcomes := [o for o in board.of(instance, name) if o["curve"]]:
                    seconds, _, certified = zip(*min(outcomes, key=_rank)["curve"], strict=True)
                    times = np.maximum(seconds, 0.05)
                    axis.loglog(times, certified, color=colour, linestyle=dash, linewidth=1.8, label=name)
                    axis.plot(times[-1], certified[-1], mark, color=colour, markersize=5)
            axis.set_title(instance.split(", ")[1])
            axis.set_xlabel("seconds")
            axis.set_ylim(2e-7, 20)
        np.atleast_1d(axes)[0].set_ylabel("certified relative distance to the solution")
        lines = [line for axis in np.atleast_1d(axes) for line in axis.get_lines()]
        handles = {line.get_label(): line for line in lines if not line.get_label().startswith("_")}
        figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=5)
        save(figure, path)
        plt.close(figure)


def _rank(outcome: dict[str, Any]) -> tuple[int, float]:
    """The sort key of a setting: the accuracies reached, then the time, or the distance if none was reached."""
    return -len(outcome["reached"]), outcome["seconds"] if outcome["reached"] else outcome["certified"]
