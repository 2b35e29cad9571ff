"""Plot the exploitability of strategies against work and time."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from saddlepoint.ground.plot_style import RC, line_styles, pyplot, save

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from saddlepoint.apps.constrained_game import Equilibrium


def plot_exploitability(runs: Mapping[str, Equilibrium], path: str | Path | None = None, title: str = "") -> Figure:
    """Plot two panels: exploitability against the calls of the busiest oracle and against seconds."""
    plt = pyplot()
    figure: Figure
    with plt.rc_context(RC):
        figure, axes = plt.subplots(1, 2, figsize=(10.5, 4.7), sharey=True, constrained_layout=True)
        for (label, found), (colour, dash, marker) in zip(runs.items(), line_styles(), strict=False):
            # A run that is solved before its first step has no history.
            steps = [step for step in found.history if step.exploitability > 0.0]
            for axis, work in zip(axes, ("calls", "seconds"), strict=True):
                axis.loglog(
                    [getattr(step, work) for step in steps],
                    [step.exploitability for step in steps],
                    color=colour, linestyle=dash, marker=marker, markersize=3.5, linewidth=1.4, label=label,
                )  # fmt: skip
        axes[0].set_xlabel("calls of the busiest oracle")
        axes[1].set_xlabel("seconds")
        axes[0].set_ylabel("exploitability")
        figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=len(runs))
        if title:
            figure.suptitle(title)
        save(figure, path)
        plt.close(figure)
    return figure
