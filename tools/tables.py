"""Write what is made from the register of methods and the results of benchmarks: tables, lists, and classes.pyi.

    python tools/tables.py          write the files
    python tools/tables.py --check  write nothing, and exit with 1 if a file is stale

A table is between two comments, `<!-- methods: begin -->` and `<!-- methods: end -->`.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path

import saddlepoint as sp
from saddlepoint.methods import classes
from saddlepoint.methods.base import Needs
from saddlepoint.methods.registry import MethodInfo
from saddlepoint.uses.pages.formulas import as_markdown

ROOT = Path(__file__).parent.parent
MARKDOWN = "<!-- methods: begin -->\n", "<!-- methods: end -->\n"
RST = ".. methods: begin\n", ".. methods: end\n"


def readme_table() -> str:
    """The table of the README, with one line for all methods of the same needs and the same complexity."""
    groups: dict[tuple[str, str], list[str]] = {}
    for info in sp.methods():
        groups.setdefault((info.oracle, info.complexity), []).append(info.name)
    plain = Needs().oracle
    lines = sorted(groups.items(), key=lambda item: (item[0][0] != plain, item[0][0], item[1]))
    rows = [f"| {', '.join(map(_code, names))} | {oracle} | {as_markdown(words)} |" for (oracle, words), names in lines]
    return "\n".join(["| name | oracle | calls |", "|---|---|---|", *rows, ""])


def docs_table() -> str:
    """The table of the documentation, with one line for every method and its reference."""

    def row(info: MethodInfo) -> str:
        terms = "no" if sp.make_method(info.name).needs.smooth else "yes"
        return f"| {_code(info.name)} | {info.oracle} | {terms} | {as_markdown(info.complexity)} | {info.reference} |"

    head = ["| name | oracle | simple terms | calls | reference |", "|---|---|---|---|---|"]
    return "\n".join([*head, *map(row, sp.methods()), ""])


def reference_list() -> str:
    """The list of the classes of methods, for Sphinx."""
    head = [
        ".. autosummary::",
        "   :toctree: generated",
        "   :template: autosummary/paper_page.rst",
        "   :nosignatures:",
    ]
    return "\n".join(["", *head, "", *(f"   {name}" for name in ("AGD", *classes.__all__)), "", ""])


def class_stub() -> str:
    """The text of ``methods/classes.pyi``, which type checkers and editors read."""
    found = sorted((getattr(classes, name).__module__, name) for name in classes.__all__)
    imports = [f"from {module} import {name} as {name}" for module, name in found]
    names = [f'    "{name}",' for name in classes.__all__]
    return "\n".join(
        ["# Written by tools/tables.py.", "# ruff: noqa: RUF022", "", *imports, "", "__all__ = [", *names, "]", ""]
    )


HEADLINES = (  # what was measured, with the columns that are quoted, the page under benchmarks/, and its line
    (
        "On {number} problems drawn afresh, `auto` takes {calls} times the calls and {seconds} times the seconds of "
        "the named method that turns out to be the best (geometric means).",
        "results/fresh.md",
        "all",
    ),
    (
        "SciPy's `newton_krylov` takes {newton_krylov: mean} times the seconds of `auto` on the "
        "{newton_krylov: number} of these that it solves in time.",
        "results/fresh.md",
        "all",
    ),
    (
        "{runs} runs on problems whose solutions are known: {false solved} were reported as solved with a false "
        "bound, {false} had a false bound, solved or not.",
        "results/honesty.md",
        "all",
    ),
    (
        "With products in twice the digits a certificate takes {ratio} times as long.",
        "results/certificate_cost.md",
        "dense 1000 x 1000",
    ),
    (
        "The best root finder of SciPy takes {geometric mean} times the rounds of `auto` to a relative accuracy of "
        "1e-4, on {both} problems.",
        "peers/RESULTS.md",
        "1e-4",
    ),
)


def headlines() -> str:
    """The table of headline numbers, taken from the pages that the benchmarks wrote."""
    rows = []
    for words, page, line in HEADLINES:
        text = (ROOT / "benchmarks" / page).read_text(encoding="utf-8")
        found = _cells(text, line)
        for name, cell in list(found.items()):  # such as "2.90 of 8, 1.1"
            mean = re.match(r"(\S+) of (\d+)", cell)
            found |= {f"{name}: mean": mean[1], f"{name}: number": mean[2]} if mean else {}
        sentence = words
        for name, cell in found.items():
            sentence = sentence.replace(f"{{{name}}}", cell)
        title = text.splitlines()[0].removeprefix("# ")
        rows.append(f"| {sentence} | [{title}](../benchmarks/{page}) |")
    return "\n".join(["| measured | page |", "|---|---|", *rows, ""])


def _cells(page: str, first: str) -> dict[str, str]:
    """The first line of a table that begins with this cell, by the names of the columns."""
    head: list[str] = []
    for line in page.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")] if line.startswith("|") else []
        if not cells:
            head = []
        elif not head:
            head = cells
        elif cells[0] == first:
            return dict(reversed(list(zip(head, cells, strict=False))))
    raise ValueError(f"no table has a line that begins with {first!r}")


def _code(text: str) -> str:
    return "`" + text.replace("|", "\\|") + "`"


def between(marks: tuple[str, str], make: Callable[[], str]) -> Callable[[str], str]:
    """A function that replaces the text between two marks of a page."""

    def changed(page: str) -> str:
        before, _, rest = page.partition(marks[0])
        _, mark, after = rest.partition(marks[1])
        if not mark:
            raise ValueError(f"the page has no {marks[0].strip()} ... {marks[1].strip()}")
        return "".join([before, marks[0], make(), marks[1], after])

    return changed


FILES: dict[str, Callable[[str], str]] = {
    "README.md": between(MARKDOWN, readme_table),
    "docs/methods.md": between(MARKDOWN, docs_table),
    "docs/measured.md": between(("<!-- headlines: begin -->\n", "<!-- headlines: end -->\n"), headlines),
    "docs/api/methods.rst": between(RST, reference_list),
    "src/saddlepoint/methods/classes.pyi": lambda _: class_stub(),
}


def stale() -> dict[str, str]:
    """The names of the files that are out of date, with the text that they should have."""
    found = {}
    for name, change in FILES.items():
        path = ROOT / name
        now = path.read_text(encoding="utf-8") if path.exists() else ""
        if (wanted := change(now)) != now:
            found[name] = wanted
    return found


def main(arguments: list[str]) -> int:
    """Write the files, or print which ones are stale."""
    found = stale()
    for name, text in found.items():
        if arguments == ["--check"]:
            print(f"stale: {name}; run python tools/tables.py", file=sys.stderr)
        else:
            (ROOT / name).write_text(text, encoding="utf-8")
            print(f"written: {name}")
    return int(bool(found) and arguments == ["--check"])


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
