"""The plot of `Result.plot`: certified distance, or duality gap where there is none, against oracle calls."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from saddlepoint.ground.plot_style import RC, line_styles, pyplot, save

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from saddlepoint.solving.result import Result


def plot_convergence(results: Mapping[str, Result], path: str | Path | None = None, title: str = "") -> Figure:
    """Two panels: certified |x-x*| + |y-y*| against gradient calls and against products with A and A'.

    If no run has a certified distance, as without strong convexity, it is the certified duality gap.
    """
    plt = pyplot()
    known = any(np.isfinite(result.history.column("distance")).any() for result in results.values())
    gaps = any(np.isfinite(result.history.column("gap")).any() for result in results.values())
    quantity = "distance" if known or not gaps else "gap"
    figure: Figure
    with plt.rc_context(RC):
        figure, axes = plt.subplots(1, 2, figsize=(10.5, 4.4), sharey=True, constrained_layout=True)
        ends = []
        for (label, result), (colour, dash, _) in zip(results.items(), line_styles(), strict=False):
            history = result.history
            proven = history.column(quantity)
            gradients = history.column("grad_g") + history.column("grad_h")
            products = history.column("A") + history.column("At")
            for axis, calls in zip(axes, (gradients, products), strict=True):
                axis.semilogy(calls, proven, color=colour, linestyle=dash, linewidth=1.8, label=label)
                axis.plot(calls[-1], proven[-1], "o", color=colour, markersize=4)
            ends.append(max(gradients[-1] + products[-1], 1))
        if max(ends) > 30 * min(ends):  # too far apart for one linear scale
            for axis in axes:
                axis.set_xscale("symlog", linthresh=10)
        axes[0].set_xlabel("gradient calls (g and h)")
        axes[1].set_xlabel("products with A and A'")
        axes[0].set_ylabel("certified duality gap" if quantity == "gap" else "certified |x − x*| + |y − y*|")
        axes[1].legend(loc="upper right")
        if title:
            figure.suptitle(title)
        save(figure, path)
        plt.close(figure)
    return figure
