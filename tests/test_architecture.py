"""Modules import only from lower floors, and ARCHITECTURE.md and its drawing agree with the source tree."""

import ast
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import module_graph
import pytest
from module_graph import FLOORS, SOURCE, Import, circle, floor, imports, upward

import saddlepoint

ROOT = Path(__file__).parent.parent


def test_the_folders_of_the_package_are_the_floors():
    assert {path.name for path in SOURCE.iterdir()} - {"__pycache__"} == {
        *FLOORS,
        "__init__.py",
        "__init__.pyi",
        "__main__.py",
        "py.typed",
    }


def test_no_import_points_up():
    assert not upward(imports()), "a module may import lower floors and its own, see ARCHITECTURE.md"


def test_an_import_that_points_up_is_found():
    above = Import("saddlepoint.methods.dippa", "saddlepoint.solving.result", late=True)
    whole = Import("saddlepoint.uses.prediction", "saddlepoint", late=False)
    below = Import("saddlepoint.methods.dippa", "saddlepoint.methods.agd", late=False)
    assert upward([above, below, whole]) == [above, whole]


def test_no_modules_import_each_other_in_a_circle():
    """Imports inside functions count as well."""
    assert not circle((one.module, one.imported) for one in imports() if floor(one.module))


def test_a_circle_is_found():
    assert not circle([("a", "b"), ("a", "c"), ("b", "c")])
    found = circle([("a", "b"), ("b", "c"), ("c", "a"), ("c", "d")])
    assert set(found) == set("abc")
    assert all(pair in [("a", "b"), ("b", "c"), ("c", "a")] for pair in pairwise(found))


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("from saddlepoint.solving.result import Result", [("saddlepoint.solving.result.Result", False)]),
        ("from saddlepoint import solve, Saddle", [("saddlepoint.solve", False), ("saddlepoint.Saddle", False)]),
        ("import saddlepoint.solving.run as r, numpy", [("saddlepoint.solving.run", False), ("numpy", False)]),
        ("from ..theory import agd", [("saddlepoint.theory.agd", False)]),
        ("from . import base", [("saddlepoint.methods.base", False)]),
        ("try:\n  import a\nexcept ImportError: pass", [("a", False)]),
        ("class A:\n  import a", [("a", False)]),
        ("def f():\n  if f:\n    from a import b", [("a.b", True)]),
        ("if TYPE_CHECKING:\n  import a", []),
        ("if typing.TYPE_CHECKING:\n  import a\nelse:\n  import b", [("b", False)]),
    ],
)
def test_imports_are_read_wherever_they_stand(code, found):
    assert list(module_graph._imported(ast.parse(code), "saddlepoint.methods")) == found


def test_functions_are_read_as_imports_of_their_modules():
    assert Import("saddlepoint.methods.dippa", "saddlepoint.methods.agd", late=False) in imports()


def test_no_method_knows_the_oracle_meter():
    """Methods are given a Saddle; they neither count calls nor know of budgets."""
    for one in imports():
        if floor(one.module) == "methods":
            assert one.imported != "saddlepoint.problems.oracle", one.module


def test_couplings_do_not_know_the_engines_of_shards():
    """Imports inside functions count as well: engines register the kinds of A that they take."""
    folders = ("saddlepoint.parts.coupling", "saddlepoint.parts.functions")
    found = [one for one in imports() if one.module.startswith(folders)]
    assert not [one for one in found if one.imported.startswith("saddlepoint.parts.sharded")]


@pytest.mark.slow
def test_the_core_needs_no_heavy_package():
    code = (
        "import sys; from saddlepoint import *; solve(Saddle(Quadratic(1.0), Quadratic(1.0), [[1.0]])); "
        "print(*{name.partition('.')[0] for name in sys.modules})"
    )
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert "numpy" in loaded
    heavy = (
        "typer rich matplotlib pandas sklearn numba torch jax triton dask distributed mpi4py h5py zarr pyarrow sphinx"
    )
    assert not set(loaded) & set(heavy.split())


@pytest.mark.slow
def test_the_package_loads_three_parts_of_scipy():
    """Each of the others takes long to load, and only some problems need one."""
    code = "import sys; from saddlepoint import *; print(*sys.modules)"
    names = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    parts = [name.split(".")[1] for name in names if name.startswith("scipy.")]
    large = {part for part in parts if parts.count(part) > 5}
    assert large <= {"_lib", "linalg", "sparse", "special"}


def test_importing_the_package_loads_nothing_before_it_is_used():
    code = (
        "import sys, saddlepoint as sp; before = set(sys.modules); sp.ProblemError; import saddlepoint.methods.base; "
        "assert callable(sp.methods); print(*before)"
    )
    names = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not [name for name in names if name.startswith(("numpy", "scipy", "saddlepoint."))]


def test_type_checkers_read_the_names_that_the_package_has():
    found = {}
    for node in ast.parse((SOURCE / "__init__.pyi").read_text()).body:
        if isinstance(node, ast.ImportFrom):
            found |= {alias.name: (node.module or "").removeprefix("saddlepoint.") for alias in node.names}
    folders = {name: place.rpartition(".")[0] or "saddlepoint" for name, place in saddlepoint._MODULES.items()}
    homes = folders | saddlepoint._HOMES
    assert {name: home for name, home in found.items() if name not in ("*", "classes")} == homes


@pytest.mark.slow
def test_only_the_command_line_needs_typer_and_rich_when_loaded():
    heavy = {"typer", "rich", "matplotlib", "pandas"}
    for path in SOURCE.rglob("*.py"):
        if path.relative_to(SOURCE).parts[0] == "commands":
            continue
        for node in ast.parse(path.read_text()).body:
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            assert not {name.partition(".")[0] for name in names} & heavy, path.name


def test_the_page_lists_the_floors_from_the_top():
    assert list(module_graph.page()) == FLOORS[::-1]


@pytest.mark.parametrize("name", FLOORS)
def test_the_page_lists_the_rooms_of_a_floor(name):
    rooms = module_graph.page()[name]
    for room in rooms:
        assert list((SOURCE / name).glob(room.name.strip("/"))), f"the page lists {name}/{room.name}; there is none"
    for module in module_graph.modules():
        if floor(module) == name and module.count(".") > 1:
            assert module_graph.room_of(module, rooms), f"the page does not list {module}"


def test_the_drawing_is_up_to_date():
    assert module_graph.DRAWING.read_text("utf-8") == module_graph.draw(), "run `python tools/module_graph.py`"


def test_the_drawing_shows_every_room_once():
    text = module_graph.DRAWING.read_text("utf-8")
    for rooms in module_graph.page().values():
        for room in rooms:
            assert text.count(f"<title>{room.floor}/{room.name}: ") == 1


def test_the_imports_of_a_room_are_printed():
    imported, users = module_graph.neighbours("methods/base").splitlines()
    assert "problems/saddle.py" in imported
    assert "solving/" not in imported
    assert "methods/registry.py" in users
    with pytest.raises(SystemExit, match="no such room"):
        module_graph.neighbours("methods/nothing")


# -- the run layer ----------------------------------------------------------------------------------------------------

SOLVING = SOURCE / "solving"


def attributes(node):
    """The attributes of the objects of a class: fields of a dataclass, and what methods assign to self."""
    fields = {item.target.id for item in node.body if isinstance(item, ast.AnnAssign)}
    stored = {
        target.attr
        for target in ast.walk(node)
        if isinstance(target, ast.Attribute) and isinstance(target.ctx, ast.Store)
        if isinstance(target.value, ast.Name) and target.value.id == "self"
    }
    return fields | stored


@pytest.mark.parametrize("path", sorted(SOLVING.rglob("*.py")), ids=lambda path: path.name)
def test_no_class_of_the_run_layer_has_more_than_a_dozen_attributes(path):
    """Result is what users see of a run, and lists all of it."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ClassDef) and node.name != "Result":
            assert len(attributes(node)) <= 12, f"{node.name}: {sorted(attributes(node))}"


def test_the_loop_reads_in_one_screen():
    tree = ast.parse((SOLVING / "loop.py").read_text())
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    assert {"run_method", "run_methods", "to_end"} <= {node.name for node in functions}
    loop = [node for node in functions if node.name in ("run_method", "run_methods")]
    assert sum(node.end_lineno - node.lineno + 1 for node in loop) <= 40


def test_the_run_layer_does_not_ask_where_arrays_live():
    """Only the choice of methods and derivatives, which shards do not have, ask whether there are shards."""
    for path in SOLVING.rglob("*.py"):
        words = ["is_numpy", "engine is None", "stored is None"]
        words += ["is_sharded"] if path.name not in ("auto.py", "derivatives.py") else []
        for word in words:
            assert word not in path.read_text(), f"{path.name}: {word}"
