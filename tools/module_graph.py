"""Checks the imports between the modules and draws docs/modules.svg.

`python tools/module_graph.py` draws; `python tools/module_graph.py parts/coupling` prints what a room imports.

The folders of src/saddlepoint are floors. A floor imports the floors below it. Inside a floor, a room (a file or a
folder of the floor) may import another, but never in a circle. `tests/test_architecture.py` calls the checks.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterable, Iterator
from fnmatch import fnmatch
from functools import cache
from graphlib import CycleError, TopologicalSorter
from html import escape
from importlib.util import resolve_name
from pathlib import Path
from typing import NamedTuple

FLOORS = ["ground", "theory", "parts", "problems", "methods", "solving", "apps", "uses", "commands"]  # lowest first

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "saddlepoint"
PAGE = ROOT / "ARCHITECTURE.md"
DRAWING = ROOT / "docs" / "modules.svg"


class Import(NamedTuple):
    """One module imports another, when it is loaded or later, inside a function."""

    module: str
    imported: str
    late: bool


def modules() -> dict[str, Path]:
    """The files of the package by the dotted names of their modules."""
    paths = sorted(SOURCE.rglob("*.py"))
    return {".".join(p.relative_to(SOURCE.parent).with_suffix("").parts).removesuffix(".__init__"): p for p in paths}


@cache
def imports() -> list[Import]:
    """All imports between modules of the package, without those that only type checkers read."""
    known = modules()
    found = set()
    for module, path in known.items():
        package = module if path.name == "__init__.py" else module.rpartition(".")[0]
        for name, late in _imported(ast.parse(path.read_text("utf-8")), package):
            imported = name if name in known else name.rpartition(".")[0]  # `from module import function`
            if imported in known and imported != module and name != "saddlepoint.__version__":
                found.add(Import(module, imported, late))
    return sorted(found)


def _imported(node: ast.AST, package: str, late: bool = False) -> Iterator[tuple[str, bool]]:
    """The dotted names that a syntax tree imports, and whether it does so inside a function."""
    if isinstance(node, ast.Import):
        yield from ((alias.name, late) for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        module = resolve_name("." * node.level + (node.module or ""), package)
        yield from ((f"{module}.{alias.name}", late) for alias in node.names)
    late = late or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
    only_types = isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING")
    for child in node.orelse if only_types and isinstance(node, ast.If) else ast.iter_child_nodes(node):
        yield from _imported(child, package, late)


def floor(module: str) -> str:
    """The folder of the package that a module is in, or "" for the package itself and for its command line."""
    name = module.split(".")[1] if "." in module else ""
    return "" if name == "__main__" else name


def upward(found: Iterable[Import]) -> list[Import]:
    """The imports that do not go to the same floor or to a lower one. The package itself is above every floor."""
    height = {name: i for i, name in enumerate([*FLOORS, ""])}
    return [one for one in found if height[floor(one.imported)] > height[floor(one.module)]]


def circle(edges: Iterable[tuple[str, str]]) -> list[str]:
    """Names that import each other in a circle, the first one again at the end; empty if there are none."""
    graph: dict[str, set[str]] = {}
    for one, other in edges:
        graph.setdefault(one, set()).add(other)
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])[::-1]
    return []


# -- the rooms, as ARCHITECTURE.md lists them --------------------------------------------------------------------------


class Room(NamedTuple):
    """A file or a folder of a floor and its description; the name may be a pattern such as ``*.py``."""

    floor: str
    name: str
    about: str

    def has(self, module: str) -> bool:
        """Whether a module is in this room."""
        parts = module.split(".")
        return parts[1:2] == [self.floor] and fnmatch("".join(parts[2:3]), self.name.removesuffix(".py").strip("/"))


def page() -> dict[str, list[Room]]:
    """The floors of the page from the top, and the rooms of each."""
    floors: dict[str, list[Room]] = {}
    for indent, name, about in re.findall(r"^ {4}( *)(\S+) +(.+)$", PAGE.read_text("utf-8"), re.MULTILINE):
        if not indent:
            floors[name.strip("/")] = []
        elif len(indent) == 2:
            floors[list(floors)[-1]].append(Room(list(floors)[-1], name, about))
    return floors


def room_of(module: str, rooms: Iterable[Room]) -> Room | None:
    """The room a module is in: by its own name if there is one, and else by a pattern."""
    return next((room for room in sorted(rooms, key=lambda room: "*" in room.name) if room.has(module)), None)


# -- the drawing ------------------------------------------------------------------------------------------------------

WIDTH, LEFT, BOX, LINE, CHAR, GAP = 600, 120, 26, 34, 7.3, 8  # pixels; CHAR is the width of a letter
STYLE = """
svg{--paper:#fff;--band:#f1f4f8;--box:#fff;--ink:#1b2733;--line:#8896a5}
@media(prefers-color-scheme:dark){svg{--paper:#14181d;--band:#1d232a;--box:#2a323b;--ink:#e8edf2;--line:#75828f}}
text{font:12px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;fill:var(--ink);text-anchor:middle}
.floor{font:bold 14px system-ui,sans-serif;text-anchor:start}
.paper{fill:var(--paper)}.band{fill:var(--band)}.room rect{fill:var(--box);stroke:var(--line)}
"""


def draw() -> str:
    """The drawing as SVG: a band for each floor and a box for each room, with its description as the tooltip."""
    bands, boxes, top = [], [], 10
    for name, rooms in page().items():
        x, y = float(LEFT), top + 6
        for room in rooms:
            label = room.about if "*" in room.name else room.name.removesuffix(".py")
            width = CHAR * len(label) + 14
            if x + width > WIDTH - 16 and x > LEFT:
                x, y = LEFT, y + LINE
            boxes.append(
                f'<g class="room"><title>{escape(f"{room.floor}/{room.name}: {room.about}")}</title>'
                f'<rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="{BOX}" rx="5"/>'
                f'<text x="{x + width / 2:.1f}" y="{y + 17}">{escape(label)}</text></g>'
            )
            x += width + GAP
        height = y - top + LINE - 2
        bands.append(f'<rect class="band" x="10" y="{top}" width="{WIDTH - 20}" height="{height}" rx="6"/>')
        bands.append(f'<text class="floor" x="20" y="{top + 24}">{name}</text>')
        top += height + 8
    size = f'viewBox="0 0 {WIDTH} {top + 2}" width="{WIDTH}" height="{top + 2}"'
    title = "The floors of saddlepoint and their rooms. A floor imports the floors below it."
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-labelledby="title">',
            f'<title id="title">{title}</title>',
            f"<style>{STYLE}</style>",
            f'<rect class="paper" width="{WIDTH}" height="{top + 2}" rx="8"/>',
            *bands,
            *boxes,
            "</svg>\n",
        ]
    )


def neighbours(name: str) -> str:
    """What a room such as ``parts/coupling`` imports, and what imports it."""
    rooms = [room for inside in page().values() for room in inside]
    pairs = {(room_of(one.module, rooms), room_of(one.imported, rooms)) for one in imports()}
    here = next((room for room in rooms if f"{room.floor}/{room.name}".startswith(name)), None)
    if here is None:
        raise SystemExit(f"{name}: no such room in {PAGE.name}; expected a name such as parts/coupling")

    def names(others: Iterable[Room | None]) -> str:
        return ", ".join(f"{r.floor}/{r.name}" for r in rooms if r in others and r != here) or "no other room"

    uses, users = {b for a, b in pairs if a == here}, {a for a, b in pairs if b == here}
    return f"imports {names(uses)}\nimported by {names(users)}\n"


if __name__ == "__main__":
    if len(sys.argv) > 1:
        sys.stdout.write(neighbours(sys.argv[1]))
    else:
        DRAWING.write_text(draw(), encoding="utf-8")
        sys.stdout.write(f"written: {DRAWING.relative_to(ROOT)}\n")
