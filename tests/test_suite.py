"""Rules for the tests themselves: each one has an assertion, and the tiers are those that CONTRIBUTING names."""

import ast
import re
import tomllib
from functools import cache
from pathlib import Path

import pytest
from scheduling import LONG, LONGEST, in_parts

TESTS = Path(__file__).parent
ROOT = TESTS.parent
TIERS = ("slow", "browser", "cluster", "gpu")
FILES = sorted(path for path in [*TESTS.glob("*.py"), *TESTS.glob("fuzz/*.py")])


@cache
def syntax(path):
    return ast.parse(path.read_text("utf-8"))


@cache
def functions(path):
    """Every function of a file by name, methods of classes included."""
    return {node.name: node for node in ast.walk(syntax(path)) if isinstance(node, ast.FunctionDef)}


@cache
def imported(path):
    """Where the names come from that a file imports from another file of the tests: {name: (file, name there)}."""
    files = {path.stem: path for path in FILES}
    names = {}
    for node in ast.walk(syntax(path)):
        if isinstance(node, ast.ImportFrom) and node.module in files:
            names |= {alias.asname or alias.name: (files[node.module], alias.name) for alias in node.names}
    return names


@cache
def called(function):
    """The names of everything that a function calls: f for f(...) and for a.f(...)."""
    names = {node.func for node in ast.walk(function) if isinstance(node, ast.Call)}
    return {f.id if isinstance(f, ast.Name) else f.attr for f in names if isinstance(f, ast.Name | ast.Attribute)}


@cache
def asserts_itself(function):
    """Whether a function asserts by itself, or through NumPy or pytest."""
    return any(isinstance(node, ast.Assert) for node in ast.walk(function)) or any(
        name in ("raises", "warns", "fail") or name.startswith("assert_") for name in called(function)
    )


def asserts(path, function):
    """Whether a function asserts: by itself, through NumPy or pytest, or through a helper that it calls."""
    waiting, seen = [(path, function)], set()
    while waiting:
        path, function = waiting.pop()
        if asserts_itself(function):
            return True
        seen.add(function)
        for name in called(function):
            where, there = imported(path).get(name, (path, name))
            helper = functions(where).get(there)
            if helper is not None and helper not in seen:
                waiting.append((where, helper))
    return False


def silent(path):
    """The tests of a file that could only fail by an exception."""
    tests = (function for name, function in functions(path).items() if name.startswith("test_"))
    return [function.name for function in tests if not asserts(path, function)]


@pytest.mark.parametrize("path", [path for path in FILES if path.stem.startswith("test_")], ids=lambda path: path.stem)
def test_every_test_asserts_something(path):
    assert silent(path) == []


def test_a_test_without_an_assertion_is_found(tmp_path):
    path = tmp_path / "test_example.py"
    path.write_text("""
def helper(x): return x
def checked(x): assert x
def test_nothing(): helper(1)
def test_plain(): assert helper(1)
def test_through_a_helper(): checked(1)
def test_by_numpy(): np.testing.assert_allclose(1, 1)
def test_by_an_error():
    with pytest.raises(ValueError): helper(1)
""")
    assert silent(path) == ["test_nothing"]


def test_the_tiers_are_declared_once_and_described():
    """The markers of pyproject.toml are those that `make check` leaves out and CONTRIBUTING explains."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["pytest"]["ini_options"]
    assert [line.partition(":")[0] for line in settings["markers"]] == list(TIERS)
    wanted = '-m "' + " and ".join(f"not {tier}" for tier in TIERS) + '"'
    assert wanted in (ROOT / "Makefile").read_text("utf-8")
    page = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    for tier in TIERS:
        assert re.search(rf"^\| `{tier}` \|", page, re.MULTILINE), tier


class Item:
    """A test as the ordering sees it: a file and whether it is marked."""

    def __init__(self, stem, long):
        self.path, self.long = Path(f"{stem}.py"), long

    def get_closest_marker(self, name):
        return name in LONG and self.long


def test_every_process_starts_with_long_tests_and_a_file_has_one_part():
    mixed = [Item(f"test_{k % 7}", long=k % 3 == 0) for k in range(70)]
    items = [*mixed, *(Item(LONGEST[1], long=True) for _ in range(2)), Item(LONGEST[0], long=True)]
    parts = in_parts(items, 3)
    assert sorted(map(id, parts)) == sorted(map(id, items))
    cut = [parts[:24], parts[24:48], parts[48:]]  # as pytest-xdist cuts 73 tests
    assert [part[0].path.stem for part in cut[:2]] == list(LONGEST[:2])
    for part in cut:
        assert sorted(part, key=lambda item: not item.long) == part  # the long tests are first
        assert part[0].long
    homes = [{item.path for item in part if item.long} for part in cut]
    assert not homes[0] & homes[1] | homes[1] & homes[2] | homes[0] & homes[2]


def test_the_files_that_start_first_exist():
    assert {f"{name}.py" for name in LONGEST} <= {path.name for path in FILES}
