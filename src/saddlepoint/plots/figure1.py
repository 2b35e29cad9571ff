"""Figure 1 of the paper."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from saddlepoint.plots.style import COLOURS, DASHES, MARKERS, RC, pyplot, save

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from saddlepoint.bench.figure import FigureData


def plot_figure1(data: FigureData, paths: Sequence[str | Path] = ()) -> Figure:
    """Bounds as lines, measured calls as markers, the regimes shaded and named."""
    plt = pyplot()
    figure: Figure
    with plt.rc_context(RC):
        figure, axis = plt.subplots(figsize=(8.6, 5.6), constrained_layout=True)
        for (name, bound), colour, dash in zip(data.bounds.items(), COLOURS, DASHES, strict=False):
            axis.loglog(data.norms, bound, color=colour, linestyle=dash, linewidth=2.2, label=f"bound: {name}")
        for i, method in enumerate(dict.fromkeys(run.method for run in data.runs)):
            runs = [run for run in data.runs if run.method == method and run.solved]
            axis.loglog(
                [data.norm_of(run.coupling) for run in runs],
                [run.calls for run in runs],
                linestyle="none",
                marker=MARKERS[i % len(MARKERS)],
                markersize=7,
                markerfacecolor="none",
                markeredgewidth=1.6,
                color=COLOURS[(i + 3) % len(COLOURS)],
                label=f"measured: {method}",
            )
        _regimes(axis, data)
        axis.set_xlabel("coupling  |A| / L")
        axis.set_ylabel("oracle calls (bounds: order × log 1/tol)")
        axis.set_title(f"$\\kappa_x$ = {data.kx:g}, $\\kappa_y$ = {data.ky:g}, relative accuracy {data.tol:g}")
        axis.legend(loc="upper left", fontsize=9)
        for path in paths:
            save(figure, path)
        plt.close(figure)
    return figure


def _regimes(axis: Any, data: FigureData) -> None:
    """Name the three regimes, and mark |A| = L."""
    kx, ky = data.kx, data.ky
    weak = data.norm_of(math.sqrt(kx + ky))
    strong = data.norm_of(math.pow(kx * ky * (kx + ky), 0.25))
    edges = (data.norms[0], weak, strong, data.norms[-1])
    for name, low, high, shade in zip(
        ("weak", "intermediate", "strong"), edges, edges[1:], (0.0, 0.06, 0.12), strict=False
    ):
        axis.axvspan(low, high, color="black", alpha=shade, linewidth=0)
        axis.text(
            math.sqrt(low * high),
            0.02,
            name,
            transform=axis.get_xaxis_transform(),
            ha="center",
            va="bottom",
            fontsize=9,
            style="italic",
            rotation=90 if high / low < 4 else 0,
        )
    axis.set_xlim(data.norms[0], data.norms[-1])
