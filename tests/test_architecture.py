"""Dependencies point downwards only."""

import ast
from pathlib import Path

import saddlepoint

SOURCE = Path(saddlepoint.__file__).parent
LAYERS = [  # from the ground up; a module may import its own layer and those below
    {"errors", "arrays", "vectors", "states"},
    {"spectrum", "factor"},
    {"theory"},
    {"coupling"},
    {"functions"},
    {"sharded"},
    {"problem"},
    {"transforms", "watch", "oracle", "audit"},
    {"methods"},
    {"wrappers"},
    {"combinations", "compiled", "stored", "result", "generators", "files", "prediction", "check", "progress", "auto"},
    {"corrections", "citations", "provenance", "checkpoint", "saved"},
    {"messages", "door", "standing", "run", "driver"},
    {"apps", "batch", "bench", "plots"},
    {"cli"},
]
LEVEL = {room: level for level, rooms in enumerate(LAYERS) for room in rooms}


def imports(path):
    """The rooms that a file imports when it is loaded; what only types need, or functions import late, is left out."""
    tree = ast.parse(path.read_text())
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("saddlepoint"):
            parts = node.module.split(".")
            yield from [parts[1]] if len(parts) > 1 else [alias.name for alias in node.names]


def test_every_room_has_a_level_and_nothing_points_up():
    for path in SOURCE.rglob("*.py"):
        room = path.relative_to(SOURCE).parts[0].removesuffix(".py")
        if room == "__init__":
            continue
        assert room in LEVEL, f"{room} has no level"
        for other in imports(path):
            if other in LEVEL:  # a name such as __version__ is no room
                assert LEVEL[other] <= LEVEL[room], f"{path.relative_to(SOURCE)} imports {other}, which is above it"


def test_no_method_knows_the_driver():
    for folder in ("methods", "wrappers"):
        for path in (SOURCE / folder).glob("*.py"):
            assert not {"driver", "oracle", "result", "progress"} & set(imports(path)), path.name


def test_the_core_needs_neither_the_command_line_nor_plots():
    heavy = {"typer", "rich", "matplotlib", "pandas"}
    for path in SOURCE.rglob("*.py"):
        if path.relative_to(SOURCE).parts[0] == "cli":
            continue
        for node in ast.parse(path.read_text()).body:
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            assert not {name.partition(".")[0] for name in names} & heavy, path.name


def test_the_page_draws_the_tree_as_it_is():
    page = (Path(__file__).parent.parent / "ARCHITECTURE.md").read_text()
    for entry in SOURCE.iterdir():
        name = entry.name + ("/" if entry.is_dir() else "")
        if entry.name not in ("__init__.py", "__pycache__", "py.typed"):
            assert name in page, f"{name} is missing in ARCHITECTURE.md"
