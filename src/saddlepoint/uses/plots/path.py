"""The plot of `SolutionPath.plot`: coordinates, certified distances and calls against the parameter."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from saddlepoint.ground.errors import ProblemError
from saddlepoint.ground.plot_style import COLOURS, RC, line_styles, pyplot, save

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from saddlepoint.uses.path import SolutionPath

MOST = 7  # coordinates of x that are drawn: those that change most
LEAST = 1e-10  # smallest distance that is drawn, in units of the tolerance; smaller ones are drawn there
WIDE = 30.0  # largest parameter over the smallest one from which the axis is logarithmic


def plot_path(family: SolutionPath, path: str | Path | None = None) -> Figure:
    """Three panels: the coordinates of x that change most, the certified distances, and the calls."""
    if not len(family):
        raise ProblemError("the path has no results; there is nothing to plot")
    plt, values, x = pyplot(), family.parameters, family.x
    figure: Figure
    with plt.rc_context(RC):
        figure = plt.figure(figsize=(10.5, 4.6), constrained_layout=True)
        grid = figure.add_gridspec(2, 2, width_ratios=(3, 2))
        wide = figure.add_subplot(grid[:, 0])
        upper = figure.add_subplot(grid[0, 1], sharex=wide)
        lower = figure.add_subplot(grid[1, 1], sharex=wide)
        largest = np.sort(np.argsort(-np.ptp(x, axis=0), kind="stable")[:MOST])
        for j, (colour, dash, _) in zip(largest, line_styles(), strict=False):
            wide.plot(values, x[:, j], color=colour, linestyle=dash, linewidth=1.6, label=f"$x_{{{j + 1}}}$")
        many = f"the {MOST} coordinates of x that change most, of {x.shape[1]}"
        wide.set_ylabel(many if x.shape[1] > MOST else "coordinates of x")
        wide.legend(ncols=2, fontsize=9)
        solved = np.array([result.solved for result in family])
        proven = np.maximum(family.proven, LEAST * family.target.most)
        upper.semilogy(values, proven, color=COLOURS[0], linewidth=1.2)
        for marks, colour, label in ((solved, COLOURS[0], "solved"), (~solved, COLOURS[1], "not solved")):
            if marks.any():
                upper.plot(values[marks], proven[marks], ".", color=colour, markersize=5, label=label)
        upper.axhline(family.target.most, color=COLOURS[6], linestyle=":", linewidth=1.2, label=family.target.argument)
        upper.set_ylabel(f"certified {family.target.what}")
        upper.legend(fontsize=9)
        lower.plot(values, family.calls, ".-", color=COLOURS[2], linewidth=1.2, markersize=5)
        lower.set_ylabel("calls of all oracles")
        lower.set_ylim(bottom=0.0)
        if values.min() > 0.0 and values.max() / values.min() >= WIDE:
            wide.set_xscale("log")
        upper.tick_params(labelbottom=False)
        for axis in (wide, lower):
            axis.set_xlabel("parameter")
    save(figure, path)
    return figure
