"""One HTML page with new runs and their certificates, and with the tables of all measurements.

`python benchmarks/report.py [FILE.html] [--quick]` writes out/bench.html. It solves a few problems with several methods
(about a minute; seconds with `--quick`) and takes the rest from benchmarks/results and benchmarks/peers.
"""

from __future__ import annotations

import base64
import math
import re
import sys
from collections.abc import Callable, Iterator
from html import escape
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.sparse import random_array

import saddlepoint as sp
from saddlepoint.problems.generators import demo, random_logistic
from saddlepoint.uses.bench.measure import hard_chain
from saddlepoint.uses.pages.report import Group, assembled
from saddlepoint.uses.pages.report_table import MISSING, Cell, format_number, number, table

HERE = Path(__file__).parent
TOL = 1e-6  # certified distance
SHORT = 24  # most characters of a cell that is not broken into lines
COMMAND = "python benchmarks/report.py"


class Case(NamedTuple):
    """A problem to be solved for the page."""

    heading: str
    about: str
    make: Callable[[], sp.Saddle]
    methods: tuple[str, ...]


def sparse(m: int, n: int) -> sp.Saddle:
    """A strongly coupled problem with ten entries in each row of A."""
    rng = np.random.default_rng(0)
    A = random_array((m, n), density=10 / n, rng=rng, data_sampler=rng.standard_normal)
    g = sp.Logistic(random_array((m, m), density=10 / m, rng=rng), np.where(rng.random(m) < 0.5, -1.0, 1.0), l2=1e-2)
    return sp.Saddle(g, 1e-2 * sp.LogCosh(l2=1.0) + sp.Quadratic(0.0, rng.standard_normal(n)), A)


NESTED = ("auto", "dippa", "catalyst-dippa", "aipfb", "catalyst-aipfb", "lpd-gs", "apdg")
CASES = [
    Case("The demo", "Logistic g, log-cosh h: no prox is cheap. The problem of `make demo`.", demo, NESTED),
    Case(
        "The hardest chain",
        "Quadratic and sparse: every query lets the answer reach one coordinate further, and no more.",
        lambda: hard_chain(1000.0, 30.0, 300.0, TOL).f,
        ("auto", "krylov", "lpd-gs", "ag-eg", "dippa", "catalyst-dippa", "rapd", "extragradient"),
    ),
    Case(
        "Large, sparse, strongly coupled",
        "Ten entries in each row of A.",
        lambda: sparse(8000, 6000),
        ("auto", "dippa", "anderson-imex", "lpd-slide", "lpd-gs", "extragradient"),
    ),
]
QUICK = [
    Case("A small one", "Logistic g, log-cosh h.", lambda: random_logistic(30, 20, 100.0, 10.0, 50.0), NESTED[:3]),
    Case("A small sparse one", "Ten entries in each row of A.", lambda: sparse(60, 40), ("auto", "lpd-gs")),
]


def solved(case: Case, max_seconds: float) -> Group:
    """The runs on one problem."""
    f = case.make()
    results = {}
    for name in case.methods:
        results[name] = sp.solve(f, method=name, tol=TOL, max_seconds=max_seconds)
        print(f"{case.heading}, {name}: {results[name].status}, {results[name].seconds:.2f} s", flush=True)
    return Group(case.heading, results, f'<p class="faint">{inline(case.about)}</p>')


# -- the measured pages ------------------------------------------------------------------------------------------------


def measured_pages() -> list[Path]:
    """The comparison with peers, and then the other pages."""
    return [HERE / "peers" / "RESULTS.md", *sorted((HERE / "results").glob("*.md"))]


def command_first(text: str) -> str:
    """The page with the paragraph that names its command moved to the front."""
    blocks = re.split(r"\n\s*\n", text.strip())
    made = [block for block in blocks if block.startswith("By `")]
    if not made:
        raise ValueError("the page does not say by which command it was made; expected a paragraph: By `command` ...")
    return "\n\n".join([*made, *(block for block in blocks if block not in made)])


def measured(path: Path) -> str:
    """A page of Markdown as a section that can be folded."""
    text = path.read_text(encoding="utf-8")
    title, _, body = text.partition("\n")
    return "\n".join(
        [
            '<details class="measured">',
            f"<summary><h3>{inline(title.removeprefix('# '))}</h3></summary>",
            *markup(command_first(body), title.removeprefix("# "), path.parent),
            "</details>",
        ]
    )


def markup(text: str, title: str, folder: Path) -> Iterator[str]:
    """HTML of the Markdown blocks that the pages use: headings, paragraphs, lists, pictures and tables."""
    for block in re.split(r"\n\s*\n", text.strip()):
        lines = block.strip().split("\n")
        if heading := re.match(r"(#+) (.*)", lines[0]):
            title = heading[2]
            yield f"<h{len(heading[1]) + 2}>{inline(title)}</h{len(heading[1]) + 2}>"
        elif lines[0].startswith("|"):
            yield markdown_table(lines, re.sub(r"[`*]", "", title))
        elif picture := re.fullmatch(r"!\[([^]]*)\]\(([^)]+)\)", lines[0]):
            data = base64.b64encode((folder / picture[2]).read_bytes()).decode()
            yield f'<p><img alt="{escape(picture[1])}" src="data:image/png;base64,{data}"></p>'
        elif re.match(r"(-|\d+\.) ", lines[0]):
            items = re.split(r"(?m)^(?:-|\d+\.) +", "\n".join(lines))[1:]
            tag = "ul" if lines[0].startswith("-") else "ol"
            yield f"<{tag}>{''.join(f'<li>{inline(item)}</li>' for item in items)}</{tag}>"
        else:
            yield f"<p>{inline(' '.join(lines))}</p>"


def markdown_table(lines: list[str], caption: str) -> str:
    """A table that can be sorted; cells that are numbers are compared as numbers."""
    head, _, *rows = ([cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines)
    cells = [[cell_of(text) for text in (*row, *[""] * len(head))[: len(head)]] for row in rows]
    return table(caption, [re.sub(r"[`*\\]", "", name) for name in head], cells)


def cell_of(text: str) -> Cell:
    """A cell with a number or words, shown as written."""
    try:
        return number(math.nan if text == MISSING else float(text.removesuffix("%")))._replace(markup=escape(text))
    except ValueError:
        return Cell(inline(text) if len(text) > SHORT else f'<span class="short">{inline(text)}</span>')


def inline(text: str) -> str:
    """HTML of code and bold words; of a link only the text is kept."""
    text = escape(text.replace(r"\|", "|"), quote=False)
    text = re.sub(r"\[([^]]+)\]\([^)]+\)", r"\1", text)
    text = re.sub(r"`([^`]+)`", r"<code>\1</code>", text)
    text = re.sub(r"\*\*([^*]+)\*\*", r"<strong>\1</strong>", text)
    return re.sub(r"(?<![\w*])\*([^*\s][^*]*)\*(?![\w*])", r"<em>\1</em>", text)


def bench_page(quick: bool) -> str:
    """The HTML of the page."""
    limit = 5.0 if quick else 20.0
    groups = [solved(case, limit) for case in (QUICK if quick else CASES)]
    about = (
        f"<p>First a few problems, solved for this page to a certified distance of {format_number(TOL)}, at most "
        f"{limit:g} "
        f"seconds a method, by <code>{COMMAND}{' --quick' if quick else ''}</code>; then <a href='#measured'>what was "
        "measured before</a>, each page with the command that makes it. The head of a column sorts its table.</p>"
    )
    pages = "\n".join(map(measured, measured_pages()))
    return assembled("Benchmarks", groups, about, f'<section id="measured"><h2>Measured</h2>\n{pages}\n</section>')


def main() -> None:
    """Write the page."""
    names = [word for word in sys.argv[1:] if not word.startswith("-")]
    target = Path(names[0]) if names else HERE.parent / "out" / "bench.html"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(bench_page("--quick" in sys.argv), encoding="utf-8")
    print(f"written: {target}")


if __name__ == "__main__":
    main()
