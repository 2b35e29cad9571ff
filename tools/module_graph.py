"""Reads the imports of the package and draws its rooms: `python tools/module_graph.py` writes docs/modules.svg.

A room is a module or a folder of the package. `FLOORS` says where each stands. `tests/test_architecture.py` holds the
imports against it, and this drawing against the committed one.
"""

from __future__ import annotations

import ast
import math
import sys
from collections.abc import Iterator
from functools import cache
from html import escape
from importlib.util import resolve_name
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "saddlepoint"
DRAWING = ROOT / "docs" / "modules.svg"

# From the ground up, row by row. A room imports rooms of rows below its own, and of no other.
FLOORS: list[tuple[str, list[str]]] = [
    ("ground", ["errors", "arrays", "vectors states spectrum factor"]),
    ("what problems are made of", ["theory coupling", "functions", "sharded"]),
    ("problems", ["problem watch", "transforms oracle generators files check", "audit"]),
    ("methods", ["methods", "wrappers"]),
    (
        "what a run makes use of",
        [
            "result stored combinations corrections citations auto",
            "messages progress compiled provenance",
            "checkpoint",
        ],
    ),
    ("a run", ["door standing", "run", "driver"]),
    ("uses", ["prediction saved batch bench apps", "plots pages"]),
    ("commands", ["cli"]),
]
ROWS = [row.split() for _, rows in FLOORS for row in rows]
GROUND = {room for row in FLOORS[0][1] for room in row.split()}  # used from everywhere, and so without arrows
LEVEL = {room: level for level, row in enumerate(ROWS) for room in row}

# Imports inside functions may point up where a user's call has to get there; each has its reason.
UPWARDS = {
    ("coupling", "sharded"): "as_coupling takes Dask arrays and shards",
    ("result", "plots"): "result.plot()",
}


class Import(NamedTuple):
    """One room imports another: when it is loaded, or late, inside a function."""

    file: str
    room: str
    other: str
    late: bool


@cache
def imports() -> tuple[Import, ...]:
    """All imports between rooms. Those for type checkers only are left out, and so is the version."""
    return tuple(_imports())


def _imports() -> Iterator[Import]:
    for path in sorted(SOURCE.rglob("*.py")):
        file = path.relative_to(SOURCE)
        room = file.parts[0].removesuffix(".py")
        if room == "__init__":
            continue
        package = ".".join(["saddlepoint", *file.parts[:-1]])
        for other, late in _imported(ast.parse(path.read_text("utf-8")), package, late=False):
            if other not in (room, "__version__"):
                yield Import(file.as_posix(), room, other, late)


def _imported(node: ast.AST, package: str, late: bool) -> Iterator[tuple[str, bool]]:
    if isinstance(node, ast.Import):
        modules = [alias.name for alias in node.names]
    elif isinstance(node, ast.ImportFrom):
        module = resolve_name("." * node.level + (node.module or ""), package)
        modules = [f"{module}.{alias.name}" for alias in node.names] if module == "saddlepoint" else [module]
    else:
        modules = []
    for parts in (module.split(".") for module in modules):
        if parts[0] == "saddlepoint":
            yield parts[1] if len(parts) > 1 else "saddlepoint", late
    late = late or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
    only_types = isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING")
    for child in node.orelse if only_types and isinstance(node, ast.If) else ast.iter_child_nodes(node):
        yield from _imported(child, package, late)


# -- the drawing ------------------------------------------------------------------------------------------------------


class Arrow(NamedTuple):
    """From a room to one that it imports."""

    room: str
    other: str
    late: bool


def arrows(found: tuple[Import, ...]) -> list[Arrow]:
    """Those to draw: without what follows from others, and without the ground, so that they can be followed by eye."""
    soon = {(i.room, i.other) for i in found if not i.late}
    below: dict[str, set[str]] = {room: set() for room in LEVEL}
    for one in found:
        if LEVEL[one.other] < LEVEL[one.room]:
            below[one.room].add(one.other)

    @cache
    def reached(room: str) -> frozenset[str]:
        return frozenset().union(*({other} | reached(other) for other in below[room]))

    def direct(room: str) -> list[str]:
        return sorted(o for o in below[room] if not any(o in reached(via) for via in below[room] if via != o))

    down = [
        Arrow(room, other, (room, other) not in soon)
        for room in LEVEL
        for other in direct(room)
        if other not in GROUND or room in GROUND
    ]
    return down + [Arrow(room, other, True) for room, other in UPWARDS]


WIDTH, LEFT, ROW, BOX, CHAR, GAP = 1040, 150, 60, 28, 8.2, 18
Node = str | tuple[str, int]  # a room, or the place where the lines to a room pass through a row


def _chains(drawn: list[Arrow]) -> dict[Arrow, list[Node]]:
    """The way of each arrow from row to row; lines to the same room run together."""
    chains: dict[Arrow, list[Node]] = {}
    for one in drawn:
        top, bottom = sorted((one.room, one.other), key=LEVEL.__getitem__, reverse=True)
        between: list[Node] = [(one.other, level) for level in range(LEVEL[top] - 1, LEVEL[bottom], -1)]
        chains[one] = [top, *between, bottom]
    return chains


def _width(node: Node) -> float:
    return CHAR * len(node) + 22 if isinstance(node, str) else 0.0


def _placed(row: list[Node], wish: dict[Node, tuple[float, float]]) -> dict[Node, float]:
    """The places nearest to the wished ones, by weight, that keep order and gaps (pooling of adjacent violators)."""
    offsets = [0.0]
    for before, node in pairwise(row):
        offsets.append(offsets[-1] + (_width(before) + _width(node)) / 2 + GAP)
    pools: list[tuple[float, float, int]] = []
    for node, offset in zip(row, offsets, strict=True):
        mean, weight, count = wish[node][0] - offset, wish[node][1], 1
        while pools and pools[-1][0] > mean:
            other, more, few = pools.pop()
            mean, weight, count = (mean * weight + other * more) / (weight + more), weight + more, count + few
        pools.append((mean, weight, count))
    starts = [mean for mean, _, count in pools for _ in range(count)]
    low = LEFT + _width(row[0]) / 2
    high = WIDTH - 30 - _width(row[-1]) / 2 - offsets[-1]
    return {node: min(max(start, low), high) + o for node, start, o in zip(row, starts, offsets, strict=True)}


def _layout(chains: dict[Arrow, list[Node]]) -> dict[Node, float]:
    """Where each node stands in its row: with few crossings, then with straight lines. Nothing in it is random."""
    links = sorted({pair for chain in chains.values() for pair in pairwise(chain)}, key=str)
    rows: list[list[Node]] = [list(row) for row in ROWS]
    for node in sorted({n for chain in chains.values() for n in chain if not isinstance(n, str)}):
        rows[node[1]].append(node)
    near: dict[Node, list[Node]] = {node: [] for row in rows for node in row}
    for one, other in links:
        near[one].append(other)
        near[other].append(one)
    level = {node: i for i, row in enumerate(rows) for node in row}
    middle = (LEFT + WIDTH) / 2
    x = {node: middle + 60.0 * (i - len(row) / 2) for row in rows for i, node in enumerate(row)}

    def wish(node: Node, sides: list[int]) -> tuple[float, float]:
        """The mean place of its neighbours; lines that only pass by weigh most, so they become straight."""
        pulls = [
            (x[n], 1.0 + 3.0 * (not isinstance(n, str)) * (1 + 2 * (not isinstance(node, str))))
            for n in near[node]
            if level[n] - level[node] in sides
        ] or [(x[node], 0.5)]
        weight = math.fsum(w for _, w in pulls)
        return math.fsum(place * w for place, w in pulls) / weight, weight

    best: tuple[int, list[list[Node]], dict[Node, float]] | None = None
    for sweep in range(80):
        for i in range(len(rows)) if sweep % 2 else reversed(range(len(rows))):
            wishes = {node: wish(node, [-1, 1] if sweep % 3 == 2 else [-1 if sweep % 2 else 1]) for node in rows[i]}
            rows[i].sort(key=lambda node: (wishes[node][0], str(node)))
            x |= _placed(rows[i], wishes)
        crossings = _crossings(links, x)
        if best is None or crossings < best[0]:
            best = crossings, [list(row) for row in rows], dict(x)
    assert best is not None
    _, rows, x = best
    for sweep in range(1000):
        for row in rows if sweep % 2 else reversed(rows):
            x |= _placed(row, {node: wish(node, [-1, 1]) for node in row})
    return x


def _crossings(links: list[tuple[Node, Node]], x: dict[Node, float]) -> int:
    by_row: dict[int, list[tuple[float, float]]] = {}
    for top, bottom in links:
        level = LEVEL[top] if isinstance(top, str) else top[1]
        by_row.setdefault(level, []).append((x[top], x[bottom]))
    return sum((a - c) * (b - d) < 0 for row in by_row.values() for a, b in row for c, d in row) // 2


STYLE = """
text{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;fill:var(--ink);text-anchor:middle}
.floor{font:13px system-ui,sans-serif;fill:var(--soft);text-anchor:start}
svg{--paper:#fff;--band:#f1f4f8;--box:#fff;--ink:#1b2733;--soft:#51606f;--line:#8896a5;--up:#b3400e;--lit:#ffd98a}
@media(prefers-color-scheme:dark){svg{--paper:#14181d;--band:#1d232a;--box:#2a323b;--ink:#e8edf2;--soft:#a8b4c0;
--line:#75828f;--up:#ff9d6b;--lit:#6d4d0c}}
.paper{fill:var(--paper)}.band{fill:var(--band)}
.room rect{fill:var(--box);stroke:var(--line)}
.room:is(:hover,:focus) rect{stroke:var(--ink);stroke-width:2.5;outline:0}
.arrow{fill:none;stroke:var(--line);stroke-width:1.3}.late{stroke-dasharray:5 4}.up{stroke:var(--up)}
.head{fill:var(--line)}.head.up{fill:var(--up);stroke:none}
"""


def draw() -> str:
    """The drawing, as SVG."""
    found = imports()
    strangers = {name for one in found for name in (one.room, one.other)} - set(LEVEL)
    if strangers:
        raise SystemExit(f"{', '.join(sorted(strangers))}: no such room in FLOORS, in {Path(__file__).name}")
    chains = _chains(arrows(found))
    x = _layout(chains)
    y, bands, top = _rows()
    height = top + 34
    lines = [_line(one, chain, x, y) for one, chain in chains.items()]
    uses = {room: sorted({i.other for i in found if i.room == room}, key=_order) for room in LEVEL}
    users = {room: sorted({i.room for i in found if i.other == room}, key=_order) for room in LEVEL}
    lit = [
        f"svg:has(#{room}:is(:hover,:focus)) :is({','.join('#' + other for other in others)}) rect{{fill:var(--lit)}}"
        for room, others in uses.items()
        if others
    ]
    note = (
        "An arrow: imports. Dashed: only inside a function. "
        "Not drawn: what follows from other arrows, and the way to the ground."
    )
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}"'
            ' role="img" aria-labelledby="title">',
            '<title id="title">The rooms of saddlepoint, and what they import: always from below</title>',
            f"<style>{STYLE}{chr(10).join(lit)}\n</style>",
            f'<rect class="paper" width="{WIDTH}" height="{height}" rx="8"/>',
            *bands,
            *lines,
            *(_room(room, x[room], y[level], uses[room], users[room]) for room, level in LEVEL.items()),
            f'<text class="floor" x="22" y="{height - 13}">{note}</text>',
            "</svg>",
            "",
        ]
    )


def _order(room: str) -> int:
    return list(LEVEL).index(room)


def _rows() -> tuple[list[float], list[str], int]:
    """The heights of the rows from the ground up, the bands behind the floors, and the lowest edge."""
    heights: list[float] = []
    bands, top = [], 12
    for title, rows in reversed(FLOORS):
        depth = ROW * len(rows)
        bands.append(f'<rect class="band" x="12" y="{top}" width="{WIDTH - 24}" height="{depth}" rx="6"/>')
        bands += [
            f'<text class="floor" x="22" y="{top + 22 + 17 * i}">{escape(part)}</text>'
            for i, part in enumerate(_wrapped(title))
        ]
        heights += [top + ROW * (i + 0.5) for i in range(len(rows))]
        top += depth + 10
    return heights[::-1], bands, top - 10


def _wrapped(title: str, most: int = 14) -> list[str]:
    lines = [""]
    for word in title.split():
        if lines[-1] and len(lines[-1]) + len(word) >= most:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    return lines


def _room(room: str, x: float, y: float, uses: list[str], users: list[str]) -> str:
    width = _width(room)
    lines = [about(room), f"imports {', '.join(uses) or 'nothing'}", f"imported by {', '.join(users) or 'no room'}"]
    return (
        f'<g class="room" id="{room}" tabindex="0"><title>{escape(chr(10).join(lines))}</title>'
        f'<rect x="{x - width / 2:.1f}" y="{y - BOX / 2:.1f}" width="{width:.1f}" height="{BOX}" rx="5"/>'
        f'<text x="{x:.1f}" y="{y + 5:.1f}">{room}</text></g>'
    )


def about(room: str) -> str:
    """The first line of a room's docstring."""
    path = SOURCE / room / "__init__.py"
    text = (path if path.exists() else SOURCE / f"{room}.py").read_text("utf-8")
    return (ast.get_docstring(ast.parse(text)) or room).splitlines()[0]


def _line(one: Arrow, chain: list[Node], x: dict[Node, float], y: list[float]) -> str:
    """A smooth line from row to row, with a head at the room that is imported."""
    up = LEVEL[one.other] > LEVEL[one.room]
    points = []
    for node in chain:
        level = LEVEL[node] if isinstance(node, str) else node[1]
        points.append((x[node], y[level]))
    (x0, y0), (x1, y1) = points[0], points[-1]
    points[0], points[-1] = (x0, y0 + BOX / 2 + (7 if up else 0)), (x1, y1 - BOX / 2 - (0 if up else 7))
    path = f"M{points[0][0]:.1f} {points[0][1]:.1f}"
    for (a, b), (c, d) in pairwise(points):
        middle = (b + d) / 2
        path += f"C{a:.1f} {middle:.1f} {c:.1f} {middle:.1f} {c:.1f} {d:.1f}"
    kind = "arrow" + (" late" if one.late else "") + (" up" if up else "")
    tip_x, tip_y, turn = (x0, y0 + BOX / 2, 1) if up else (x1, y1 - BOX / 2, -1)
    head = f"M{tip_x:.1f} {tip_y:.1f}l-4 {8 * turn}h8z"
    return f'<path class="{kind}" d="{path}"/><path class="head{" up" if up else ""}" d="{head}"/>'


if __name__ == "__main__":
    DRAWING.write_text(draw(), encoding="utf-8")
    sys.stdout.write(f"written: {DRAWING.relative_to(ROOT)}\n")
