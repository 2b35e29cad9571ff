"""HTML tables that a reader can sort, and the format of their numbers."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from html import escape
from typing import NamedTuple

MISSING = "–"  # shown in the place of a number that is unknown


class Cell(NamedTuple):
    """A cell of a table: its markup, and the number by which it is sorted, if it has one."""

    markup: str
    value: float | None = None
    numeric: bool = False


def format_number(value: float) -> str:
    """The number with three digits, with a power of ten if that is shorter; an integer has all its digits."""
    if isinstance(value, int):
        return str(value)
    if math.isnan(value):
        return MISSING
    if math.isinf(value):
        return "∞" if value > 0.0 else "−∞"
    size = abs(value)
    if size >= 1e5 or 0.0 < size < 1e-3:
        digits, _, power = f"{value:.2e}".partition("e")
        return f"{digits.rstrip('0').rstrip('.')}e{int(power)}"
    return f"{value:.{max(3, len(str(int(size))))}g}"


def words(text: object) -> Cell:
    """A cell with a text."""
    return Cell(escape(str(text)))


def number(value: float, none: str = MISSING) -> Cell:
    """A cell with a number, or with the text ``none`` if it is not finite; such cells are always sorted last."""
    if not math.isfinite(value):
        return Cell(escape(none), None, True)
    return Cell(format_number(value), value, True)


def table(caption: str, head: Sequence[str], rows: Iterable[Sequence[Cell]], sortable: bool = True) -> str:
    """The markup of a table, which the script makes sortable; the first cell of a row is the heading of the row."""
    rows = list(rows)
    numeric = [any(row[k].numeric for row in rows) for k in range(len(head))]
    titles = zip(head, numeric, strict=True)
    return _scrolling(
        caption,
        [
            '<table class="sortable">' if sortable else "<table>",
            f"<caption>{escape(caption)}</caption>",
            "<thead><tr>",
            *(f'<th scope="col"{_classes(right)}>{escape(title)}</th>' for title, right in titles),
            "</tr></thead>",
            "<tbody>",
            *("<tr>" + "".join(_cell(cell, k == 0) for k, cell in enumerate(row)) + "</tr>" for row in rows),
            "</tbody></table>",
        ],
    )


def facts(caption: str, pairs: Iterable[tuple[str, object]]) -> str:
    """The markup of a small table of names and values; an empty text if there are none."""
    rows = [
        f'<tr><th scope="row">{escape(name)}</th><td>'
        f"{escape(format_number(value) if isinstance(value, float) else str(value))}</td></tr>"
        for name, value in pairs
    ]
    head = ['<table class="facts">', f"<caption>{escape(caption)}</caption>", "<tbody>"]
    return _scrolling(caption, [*head, *rows, "</tbody></table>"]) if rows else ""


def _scrolling(caption: str, lines: Sequence[str]) -> str:
    """The lines in a box that scrolls if it is too wide for the page, by mouse and by keyboard."""
    box = f'<div class="scroll" role="group" tabindex="0" aria-label="{escape(caption)}">'
    return "\n".join([box, *lines, "</div>"])


def _cell(cell: Cell, first: bool) -> str:
    tag, scope = ("th", ' scope="row"') if first else ("td", "")
    value = "" if cell.value is None else f' data-value="{float(cell.value)!r}"'
    return f"<{tag}{scope}{_classes(cell.numeric)}{value}>{cell.markup}</{tag}>"


def _classes(numeric: bool) -> str:
    return ' class="number"' if numeric else ""
