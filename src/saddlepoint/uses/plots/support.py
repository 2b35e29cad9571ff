"""How many coordinates of the solution are proven to be zero or at a bound, while a run goes on."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from saddlepoint.ground.errors import ProblemError
from saddlepoint.ground.plot_style import COLOURS, RC, pyplot, save
from saddlepoint.parts.simple.base import Support
from saddlepoint.problems.saddle import Saddle
from saddlepoint.problems.support import proven_support
from saddlepoint.solving.result import Result
from saddlepoint.solving.solve import solve

if TYPE_CHECKING:
    from matplotlib.figure import Figure

AT_BOUND = (Support.ZERO, Support.LOWER, Support.UPPER)  # values of coordinates that do not move
# The kinds of coordinates that are drawn, from the bottom of the picture to the top.
NAMES = ("proven: zero or at a bound", "undecided", "proven: off its bounds")


def plot_support(f: Saddle, path: str | Path | None = None, **settings: Any) -> Figure:
    """Solve the problem, and draw how many coordinates are proven to be where, against the calls of the busiest oracle.

    Args:
        f: a problem with a simple term.
        path: file for the picture, if it is to be saved.
        settings: those of ``sp.solve``, without callback.
    """
    if not f.has_simple:
        raise ProblemError(
            "the problem has no simple term, so that there is no support to prove; add one, for example g + L1(1)"
        )
    calls: list[int] = []
    counts: dict[str, list[list[int]]] = {"x": [], "y": []}

    def note(result: Result) -> None:
        calls.append(max(result.calls.values()))
        for name, found in zip("xy", proven_support(f, result.x, result.y, result.certificate), strict=True):
            if found is not None:
                at, free = int(np.isin(found, AT_BOUND).sum()), int((found == Support.OFF).sum())
                counts[name].append([at, int(found.shape[0]) - at - free, free])

    solve(f, **settings, callback=note)
    return drawn_support(calls, {name: rows for name, rows in counts.items() if rows}, path)


def drawn_support(calls: list[int], counts: dict[str, list[list[int]]], path: str | Path | None) -> Figure:
    """One panel for each player with a term; each row has the numbers of coordinates of the three kinds."""
    plt = pyplot()
    figure: Figure
    with plt.rc_context(RC):
        figure, axes = plt.subplots(
            1, len(counts), figsize=(5.2 * len(counts), 4.2), squeeze=False, layout="constrained"
        )
        for axis, (name, rows) in zip(axes[0], counts.items(), strict=True):
            bands, shades = np.array(rows).T, (COLOURS[0], "#DDDDDD", COLOURS[4])
            axis.stackplot(calls, bands, labels=NAMES, colors=shades, step="post", alpha=0.9)
            axis.set_xlim(calls[0], max(calls[-1], calls[0] + 1))
            axis.set_ylim(0, int(bands[:, 0].sum()))
            axis.set_xlabel("calls of the busiest oracle")
            axis.set_ylabel(f"coordinates of {name}")
        axes[0][0].legend(
            loc="upper center", bbox_to_anchor=(0.5, 1.16), ncols=1 if len(counts) == 1 else 3, fontsize=9
        )
        save(figure, path)
        plt.close(figure)
    return figure
