"""The plots of games: proven exploitability against products with the payoff and against seconds."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from saddlepoint.ground.plot_style import RC, line_styles, pyplot, save

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from saddlepoint.apps.equilibrium import Equilibrium
    from saddlepoint.apps.matrix_game import MatrixGameResult

VISIBLE = 1e-12  # infeasibility from which it is drawn; less is rounding


def plot_exploitability(
    runs: Mapping[str, Equilibrium | MatrixGameResult], path: str | Path | None = None, title: str = ""
) -> Figure:
    """Two panels: the proven exploitability of each step against calls of the busiest oracle, and against seconds.

    The label of each run has the value of its answer and what is proven about it. Constraints that are violated
    by more than rounding have a thin line of their own, relative to the right-hand sides.
    """
    plt = pyplot()
    figure: Figure
    with plt.rc_context(RC):
        figure, axes = plt.subplots(1, 2, figsize=(10.5, 4.7), sharey=True, constrained_layout=True)
        largest = longest = 0.0
        for (label, found), (colour, dash, marker) in zip(runs.items(), line_styles(), strict=False):
            calls, seconds, proven, violations = _course(found)
            largest, longest = max(largest, proven.max()), max(longest, seconds.max())
            words = f"{label}: value {found.value:.6g}, exploitability ≤ {found.exploitability:.2g}"
            style: dict[str, Any] = {"color": colour, "linestyle": dash}
            for axis, work in zip(axes, (calls, seconds), strict=True):
                axis.plot(work, proven, marker=marker, markersize=3.5, linewidth=1.6, label=words, **style)
                if violations.max() > VISIBLE:
                    kind = f"{label}: infeasibility, relative"
                    axis.plot(work, violations, linewidth=0.8, alpha=0.7, label=kind, **style)
        if largest > 0.0:
            axes[0].set_yscale("log", nonpositive="clip")
        axes[0].set_xscale("symlog", linthresh=10)
        if longest > 0.0:
            axes[1].set_xscale("log")
            axes[1].xaxis.set_minor_formatter("")
        axes[0].set_xlim(0.0, max(axes[0].get_xlim()[1], 10.0))
        axes[0].set_xlabel("calls of the busiest oracle")
        axes[1].set_xlabel("seconds")
        axes[0].set_ylabel("proven exploitability")
        figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=1)
        if title:
            figure.suptitle(title)
        save(figure, path)
        plt.close(figure)
    return figure


def _course(found: Equilibrium | MatrixGameResult) -> tuple[Any, Any, Any, Any]:
    """Calls, seconds, exploitability and infeasibility of all steps; of the answer, if it was found without a step."""
    rows = [(step.calls, step.seconds, step.exploitability, step.infeasibility) for step in found.history]
    rows = rows or [(max(found.calls.values(), default=0), found.seconds, found.exploitability, 0.0)]
    calls, seconds, proven, violations = np.array(rows, dtype=np.float64).T
    return calls, seconds, proven, violations
