"""Plot Figure 1 of the paper, with measured calls and with the lower bound."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from saddlepoint.ground.plot_style import COLOURS, MARKERS, RC, pyplot, save

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from saddlepoint.uses.bench.figure import FigureData

BLACK, GREY = "#000000", "#6f6f6f"
BOUND_DASHES: tuple[Any, ...] = ("--", "-.", (0, (1, 1.2)))  # styles of the lines of bounds
# The styles of the lines of methods; the next one is used when all colours have been used.
LINES: tuple[Any, ...] = ("-", (0, (4, 1.5)), (0, (4, 1, 1, 1)))
GAP = 0.04  # least distance between two labels, as a share of the height of the axis


class Label(NamedTuple):
    """A name that is written at the right of the picture, beside the end (x, y) of its line."""

    text: str
    colour: str
    x: float
    y: float


def plot_figure1(data: FigureData, paths: Sequence[str | Path] = ()) -> Figure:
    """Plot measured calls as lines with markers, bounds dashed, forced rounds in black, and the regimes by name."""
    plt = pyplot()
    figure: Figure
    with plt.rc_context(RC):
        figure, axis = plt.subplots(figsize=(9.4, 6.2), constrained_layout=True)
        for (name, bound), dash in zip(data.bounds.items(), BOUND_DASHES, strict=False):
            axis.loglog(data.norms, bound, color=GREY, linestyle=dash, linewidth=1.5, label=name)
        labels = _methods(axis, data)
        axis.loglog(data.norms, data.forced, color=BLACK, linewidth=2.4)
        labels.append(Label("lower bound, forced", BLACK, data.norms[-1], data.forced[-1]))
        _regimes(axis, data)
        axis.set_ylim(bottom=0.45 * data.forced[0])
        axis.fill_between(data.norms, axis.get_ylim()[0], data.forced, color=BLACK, alpha=0.10, linewidth=0)
        axis.set_xlabel("coupling  |A| / L")
        axis.set_ylabel("calls of the busiest oracle")
        title = f"$\\kappa_x$ = {data.kx:g}, $\\kappa_y$ = {data.ky:g}, distance reduced to {data.tol:g} of its start"
        axis.set_title(title, fontsize=11)
        axis.legend(
            title="the paper's bounds, order × log(1/tol) without constants",
            loc="upper center",
            bbox_to_anchor=(0.5, -0.11),
            ncols=3,
            fontsize=9,
            title_fontsize=9,
            handlelength=3,
        )
        _write(axis, labels)
        for path in paths:
            save(figure, path)
        plt.close(figure)
    return figure


def _methods(axis: Any, data: FigureData) -> list[Label]:
    """Draw the runs that reached their goal, with a colour and a marker for each method."""
    labels = []
    palette = [colour for colour in COLOURS if colour != BLACK]
    for i, method in enumerate(dict.fromkeys(run.method for run in data.runs)):
        runs = [run for run in data.runs if run.method == method]
        solved = [run for run in runs if run.solved]
        if not solved:
            continue
        colour = palette[i % len(palette)]
        norms, calls = [data.norm_of(run.coupling) for run in solved], [run.calls for run in solved]
        axis.loglog(
            norms,
            calls,
            color=colour,
            linestyle=LINES[i // len(palette) % len(LINES)],
            linewidth=1.3,
            marker=MARKERS[i % len(MARKERS)],
            markersize=6,
            markerfacecolor="white",
            markeredgewidth=1.5,
        )
        end = "" if len(solved) == len(runs) else " (then out of time)"
        labels.append(Label(method + end, colour, norms[-1], calls[-1]))
    return labels


def _write(axis: Any, labels: Sequence[Label]) -> None:
    """Write the names at the right, in the order of the line ends, and move them apart where they would overlap."""
    low, high = map(math.log, axis.get_ylim())
    axis.set_ylim(axis.get_ylim())
    ordered = sorted(labels, key=lambda label: label.y)
    places = _apart([(math.log(label.y) - low) / (high - low) for label in ordered])
    for label, place in zip(ordered, places, strict=True):
        axis.annotate(
            label.text,
            xy=(label.x, label.y),
            xytext=(1.03, place),
            textcoords="axes fraction",
            color=label.colour,
            fontsize=9.5,
            va="center",
            annotation_clip=False,
            arrowprops={
                "arrowstyle": "-",
                "color": label.colour,
                "linewidth": 0.6,
                "relpos": (0.0, 0.5),
                "shrinkA": 1,
                "shrinkB": 4,
            },
        )


def _apart(places: Sequence[float]) -> list[float]:
    """The places in their order, moved until they are ``GAP`` apart and, if they fit, between 0 and 1."""
    moved = list(places)
    for _ in range(100):
        for i in range(1, len(moved)):
            overlap = max(0.0, moved[i - 1] + GAP - moved[i])
            moved[i - 1], moved[i] = moved[i - 1] - overlap / 2, moved[i] + overlap / 2
    for i in range(len(moved)):
        moved[i] = max(moved[i], 0.0 if i == 0 else moved[i - 1] + GAP)
    for i in reversed(range(len(moved))):
        moved[i] = min(moved[i], 1.0 if i == len(moved) - 1 else moved[i + 1] - GAP)
    return moved


def _regimes(axis: Any, data: FigureData) -> None:
    """Name the three regimes, and mark their borders."""
    kx, ky = data.kx, data.ky
    weak = data.norm_of(math.sqrt(kx + ky))
    strong = data.norm_of(math.pow(kx * ky * (kx + ky), 0.25))
    edges = (data.norms[0], weak, strong, data.norms[-1])
    for name, low, high in zip(("weak", "intermediate", "strong"), edges, edges[1:], strict=False):
        axis.axvline(low, color=GREY, linewidth=0.6)
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
