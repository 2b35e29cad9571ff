"""Dependencies point downwards only, and the page and its drawing say so as it is."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
sys.path.append(str(ROOT / "tools"))
import module_graph  # noqa: E402
from module_graph import FLOORS, LEVEL, ROWS, SOURCE, UPWARDS, imports  # noqa: E402


def rooms():
    return {path.name.removesuffix(".py") for path in SOURCE.iterdir() if path.suffix == ".py" or path.is_dir()} - {
        "__init__",
        "__pycache__",
    }


def test_every_room_has_one_place():
    assert sorted(room for row in ROWS for room in row) == sorted(rooms())


def test_nothing_points_up():
    """Rooms of one row do not know each other either, so no two rooms can need each other."""
    for one in imports():
        assert one.other in LEVEL, f"{one.file} imports {one.other} from the whole package, which is above it"
        if (one.room, one.other) not in UPWARDS or not one.late:
            assert LEVEL[one.other] < LEVEL[one.room], f"{one.file} imports {one.other}, which is not below it"


def test_every_exception_is_needed():
    late = {(one.room, one.other) for one in imports() if one.late}
    assert set(UPWARDS) <= late


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("from saddlepoint.solving.run import Run", [("run", False)]),
        ("from saddlepoint import run, __version__", [("run", False), ("__version__", False)]),
        ("import saddlepoint.solving.run as r, numpy", [("run", False)]),
        ("import saddlepoint", [("saddlepoint", False)]),
        ("from ..run import Run", [("run", False)]),
        ("from . import base", [("methods", False)]),
        ("try:\n  from saddlepoint.solving.run import Run\nexcept ImportError: pass", [("run", False)]),
        ("class A:\n  from saddlepoint.solving.run import Run", [("run", False)]),
        ("def f():\n  if f:\n    from saddlepoint.solving.run import Run", [("run", True)]),
        ("if TYPE_CHECKING:\n  from saddlepoint.solving.run import Run", []),
        (
            "if typing.TYPE_CHECKING:\n  import saddlepoint.solving.run\nelse:\n  import saddlepoint.problems.oracle",
            [("oracle", False)],
        ),
        ("from saddlepoints.run import Run", []),
    ],
)
def test_imports_are_read_wherever_they_stand(code, found):
    assert list(module_graph._imported(ast.parse(code), "saddlepoint.methods", late=False)) == found


def test_no_method_knows_the_driver():
    for one in imports():
        if one.room in ("methods", "wrappers"):
            assert one.other not in ("driver", "oracle", "result", "progress"), one.file


def test_the_core_needs_no_heavy_package():
    code = "import sys, saddlepoint; print(*{name.partition('.')[0] for name in sys.modules})"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert "numpy" in loaded
    heavy = (
        "typer rich matplotlib pandas sklearn numba torch jax triton dask distributed mpi4py h5py zarr pyarrow sphinx"
    )
    assert not set(loaded) & set(heavy.split())


def test_only_the_command_line_needs_typer_and_rich_when_loaded():
    heavy = {"typer", "rich", "matplotlib", "pandas"}
    for path in SOURCE.rglob("*.py"):
        if path.relative_to(SOURCE).parts[0] == "cli":
            continue
        for node in ast.parse(path.read_text()).body:
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            assert not {name.partition(".")[0] for name in names} & heavy, path.name


def test_the_page_has_the_floors_and_rooms_in_their_order():
    page = (ROOT / "ARCHITECTURE.md").read_text()
    tree = re.findall(r"^ {4}(.*)$", page, re.MULTILINE)
    titles = [line for line in tree if line and not line.startswith(" ")]
    assert titles == [title for title, _ in reversed(FLOORS)]
    named = [re.match(r" {2}(\w+)(\.py|/) ", line) for line in tree if line.startswith("  ") and line[2] != " "]
    assert all(named)
    listed = [match[1] for match in named]
    assert sorted(listed) == sorted(rooms())
    assert [LEVEL[room] for room in listed] == sorted(LEVEL.values(), reverse=True)
    for match in named:
        assert (SOURCE / (match[1] + match[2])).exists(), match[1] + match[2]
    at = {title: tree.index(title) for title in titles}
    lines = {match[1]: tree.index(match.string) for match in named}
    for title, rows in FLOORS:
        end = min([line for line in at.values() if line > at[title]], default=len(tree))
        assert {room for room, line in lines.items() if at[title] < line < end} == set(" ".join(rows).split())


def test_the_drawing_is_what_the_imports_say():
    assert module_graph.DRAWING.read_text("utf-8") == module_graph.draw(), "run `python tools/module_graph.py`"


def test_the_drawing_shows_every_room_and_only_arrows_that_exist():
    found = imports()
    drawn = module_graph.arrows(found)
    pairs = {(one.room, one.other) for one in found}
    assert {(one.room, one.other) for one in drawn} <= pairs
    # Nothing is lost by leaving arrows out: whatever a room imports can be reached along those drawn.
    for room, other in pairs - set(UPWARDS):
        seen, todo = set(), [room]
        while todo:
            for one in drawn:
                if one.room == todo[0] and one.other not in seen and LEVEL[one.other] < LEVEL[one.room]:
                    seen.add(one.other)
                    todo.append(one.other)
            todo.pop(0)
        assert other in seen or other in module_graph.GROUND, (room, other)
    text = module_graph.DRAWING.read_text("utf-8")
    assert all(f'id="{room}"' in text for room in rooms())
