"""Runs scripts of the gallery and keeps their figures: `python docs/applications/draw.py [SCRIPT ...] [--out FOLDER]`.

Without arguments it draws the pictures of the pages in this folder anew.
"""

import argparse
import runpy
import sys
from pathlib import Path

import matplotlib as mpl

HERE = Path(__file__).parent
SCRIPTS = sorted((HERE.parents[1] / "examples/applications").glob("*.py"))


def draw(script: Path, folder: Path) -> list[Path]:
    """Run the script, and save its figures as NAME.png, NAME-2.png, ..."""
    import matplotlib.pyplot as plt

    plt.show = lambda: None
    sys.argv = [str(script)]
    runpy.run_path(str(script), run_name="__main__")
    pictures = []
    for place, number in enumerate(plt.get_fignums(), 1):
        pictures.append(folder / (f"{script.stem}.png" if place == 1 else f"{script.stem}-{place}.png"))
        plt.figure(number).savefig(pictures[-1], dpi=100)
    plt.close("all")
    mpl.rcdefaults()
    return pictures


if __name__ == "__main__":
    mpl.use("agg")
    parser = argparse.ArgumentParser()
    parser.add_argument("scripts", nargs="*", type=Path, default=SCRIPTS)
    parser.add_argument("--out", type=Path, default=HERE)
    given = parser.parse_args()
    for script in given.scripts:
        for picture in draw(script, given.out):
            print(f"picture: {picture}")
