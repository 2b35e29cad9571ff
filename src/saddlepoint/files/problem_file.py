"""A saddle problem from a TOML file; docs/problem-file.md describes the format."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from functools import reduce
from operator import add
from pathlib import Path
from typing import Any, NamedTuple

from saddlepoint.errors import ProblemError
from saddlepoint.files.arrays import MEMORY_LIMIT, read_array
from saddlepoint.functions import (
    Entropy,
    GroupHuber,
    Huber,
    LeastSquares,
    LogCosh,
    Logistic,
    LogSumExp,
    Quadratic,
    Smooth,
    SmoothedHinge,
)
from saddlepoint.problem import Saddle

SOLVE_KEYS = ("method", "options", "tol", "max_calls", "max_seconds", "x0", "y0")


class Kind(NamedTuple):
    """What a table [g] or [h] of one kind may say."""

    build: Callable[..., Smooth]
    arrays: tuple[str, ...]  # keys that name or hold arrays
    numbers: tuple[str, ...]  # keys that hold one number
    required: tuple[str, ...]


KINDS = {
    "quadratic": Kind(Quadratic, ("P", "b"), ("mu", "L"), ("P",)),
    "least-squares": Kind(LeastSquares, ("D", "t"), ("l2",), ("D", "t")),
    "logistic": Kind(Logistic, ("D", "labels"), ("l2",), ("D", "labels")),
    "huber": Kind(Huber, ("D", "t"), ("l2", "delta"), ()),
    "log-cosh": Kind(LogCosh, ("D", "t"), ("l2",), ()),
    "log-sum-exp": Kind(LogSumExp, ("D", "t"), ("l2", "tau"), ()),
    "smoothed-hinge": Kind(SmoothedHinge, ("D", "labels"), ("l2", "width"), ("D", "labels")),
    "entropy": Kind(Entropy, (), ("low", "high"), ()),
    "group-huber": Kind(GroupHuber, ("groups",), ("weight", "width", "l2"), ()),
}


class ProblemFile(NamedTuple):
    """A problem, and how its file asks for it to be solved (keywords of ``solve``)."""

    problem: Saddle
    solve: dict[str, Any]


def load_problem(path: str | Path, memory_limit: int = MEMORY_LIMIT) -> ProblemFile:
    """Read a problem file; a ProblemError names the file and the key that is wrong."""
    path = Path(path)
    reader = _Reader(path, memory_limit)
    document = reader.document()
    reader.only(document, ("A", "g", "h", "solve"), "")
    for key in ("A", "g", "h"):
        if key not in document:
            reader.fail(key, "is missing")
    A = reader.array(document["A"], "A")
    g, h = (reader.function(document[name], name) for name in ("g", "h"))
    try:
        problem = Saddle(g, h, A)
    except ProblemError as error:
        raise ProblemError(f"{path}: {error}") from None
    return ProblemFile(problem, reader.settings(document.get("solve", {})))


class _Reader:
    """Reads one document; knows how to complain about it."""

    def __init__(self, path: Path, memory_limit: int) -> None:
        self.path, self.memory_limit = path, memory_limit

    def fail(self, key: str, complaint: str) -> None:
        raise ProblemError(f"{self.path}: key {key!r} {complaint}")

    def document(self) -> dict[str, Any]:
        try:
            with self.path.open("rb") as file:
                return tomllib.load(file)
        except FileNotFoundError:
            raise ProblemError(f"file {self.path} does not exist") from None
        except OSError as error:
            raise ProblemError(f"{self.path} cannot be read: {error.strerror or error}") from None
        except UnicodeDecodeError:
            raise ProblemError(f"{self.path} is not a text file (UTF-8 is expected)") from None
        except (tomllib.TOMLDecodeError, RecursionError) as error:
            raise ProblemError(f"{self.path} is not valid TOML: {error}") from None

    def only(self, table: Mapping[str, Any], allowed: tuple[str, ...], prefix: str) -> None:
        for key in table:
            if key not in allowed:
                self.fail(f"{prefix}{key}", f"is unknown; expected {', '.join(allowed)}")

    def array(self, value: Any, key: str) -> Any:
        """A file reference, a number, or numbers in place."""
        if not isinstance(value, str):
            if isinstance(value, bool) or not isinstance(value, int | float | list):
                self.fail(key, f"is {value!r}; expected a file name or numbers")
            return value
        try:
            return read_array(value, self.path.parent, self.memory_limit)
        except ProblemError as error:
            raise ProblemError(f"{self.path}: key {key!r}: {error}") from None

    def number(self, value: Any, key: str) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float):
            self.fail(key, f"is {value!r}; expected a number")
        return float(value)

    def function(self, value: Any, name: str) -> Smooth:
        """One table, or several that are added up."""
        if isinstance(value, list) and value:
            return reduce(add, (self.function(item, f"{name}[{i}]") for i, item in enumerate(value)))
        if not isinstance(value, dict):
            self.fail(name, f"is {value!r}; expected a table [{name}]")
        if value.get("kind") not in KINDS:
            self.fail(f"{name}.kind", f"is {value.get('kind')!r}; expected one of {', '.join(KINDS)}")
        kind = KINDS[value["kind"]]
        self.only(value, ("kind", "weight", *kind.arrays, *kind.numbers), f"{name}.")
        for key in kind.required:
            if key not in value:
                self.fail(f"{name}.{key}", f"is missing; {value['kind']} needs it")
        arrays = {key: self.array(value[key], f"{name}.{key}") for key in kind.arrays if key in value}
        numbers = {key: self.number(value[key], f"{name}.{key}") for key in kind.numbers if key in value}
        try:
            function = kind.build(**arrays, **numbers)
            return function if "weight" not in value else self.number(value["weight"], f"{name}.weight") * function
        except ProblemError as error:
            raise ProblemError(f"{self.path}: key {name!r}: {error}") from None

    def settings(self, table: Any) -> dict[str, Any]:
        if not isinstance(table, dict):
            self.fail("solve", f"is {table!r}; expected a table [solve]")
        self.only(table, SOLVE_KEYS, "solve.")
        settings = dict(table)
        for key in ("x0", "y0"):
            if key in settings:
                settings[key] = self.array(settings[key], f"solve.{key}")
        for key, kind, expected in (("method", str, "a method's name"), ("options", dict, "a table of options")):
            if key in settings and not isinstance(settings[key], kind):
                self.fail(f"solve.{key}", f"is {settings[key]!r}; expected {expected}")
        return settings
