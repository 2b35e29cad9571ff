"""The style that all plots share: colours, line styles and markers; Matplotlib is imported on the first call."""

from __future__ import annotations

from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, Any

from saddlepoint.ground.errors import ProblemError
from saddlepoint.ground.file_writing import replacing

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Okabe and Ito's palette, safe for the common kinds of colour blindness; line styles and markers differ as well.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
DASHES: tuple[Any, ...] = ("-", "--", "-.", (0, (1, 1)), (0, (5, 1, 1, 1, 1, 1)), (0, (3, 2)), ":")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
RC = {  # the settings of Matplotlib for every plot
    "font.size": 11,
    "axes.grid": True,
    "grid.alpha": 0.25,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    "figure.dpi": 120,
    "savefig.dpi": 160,
    "svg.fonttype": "none",
    "svg.hashsalt": "saddlepoint",
}


def line_styles() -> Any:
    """An endless series of (colour, line style, marker)."""
    return zip(cycle(COLOURS), cycle(DASHES), cycle(MARKERS), strict=False)


def pyplot() -> Any:
    """The module matplotlib.pyplot; a ProblemError says how to install it if it is missing."""
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise ProblemError("plots need matplotlib: pip install 'saddlepoint[plot]'") from None
    return plt


def save(figure: Figure, path: str | Path | None) -> None:
    """Write the figure if a path is given. Missing folders are created, and the ending of the path sets the format."""
    if path is not None:
        target = Path(path) if Path(path).suffix else Path(f"{path}.png")
        target.parent.mkdir(parents=True, exist_ok=True)
        kind = target.suffix[1:].lower()
        stamp = {"Date": None} if kind == "svg" else None
        with replacing(target) as file:
            figure.savefig(file, format=kind, bbox_inches="tight", metadata=stamp)
