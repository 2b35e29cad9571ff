"""A saddle problem from a TOML file; docs/problem-file.md describes the format."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from saddlepoint.ground.errors import ProblemError
from saddlepoint.ground.validation import as_count, did_you_mean
from saddlepoint.parts.coupling import Coupling
from saddlepoint.parts.coupling.streamed import StoredRows
from saddlepoint.parts.functions import (
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
from saddlepoint.parts.simple import Simple
from saddlepoint.problems.files.arrays import split_reference
from saddlepoint.problems.files.reading import MEMORY_LIMIT, Memory, as_path
from saddlepoint.problems.files.simple_terms import TERMS, is_label_list
from saddlepoint.problems.files.stores import open_store, stored_reference, stream
from saddlepoint.problems.files.toml_reader import TomlReader
from saddlepoint.problems.files.toml_values import toml_repr
from saddlepoint.problems.saddle import Saddle

# What the keys that a problem file must have are expected to hold.
NEEDED = {
    "A": "the matrix, a file name or rows of numbers",
    "g": "a table [g] with a kind",
    "h": "a table [h] with a kind",
}
SOLVE_KEYS = ("method", "options", "tol", "rtol", "gap", "max_calls", "max_seconds", "x0", "y0")

K = TypeVar("K")


class Kind(NamedTuple):
    """The keys that a table [g] or [h] of one kind may have."""

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
    """A problem, and the keywords of ``solve`` that its file gives."""

    problem: Saddle
    solve: dict[str, Any]


def load_problem(
    path: str | Path, memory_limit: int = MEMORY_LIMIT, split: Callable[[Any], Coupling] | None = None
) -> ProblemFile:
    """Read a problem file; a ProblemError names the file and the key that is wrong.

    Args:
        path: the file.
        memory_limit: bytes that it and the arrays that it names may take together. An A that is too large for that, or
            is stored in blocks, stays on disk and is read with the memory that is left.
        split: a function that makes a coupling from A, which is then not read into memory: a .npy file is given as a
            memory map, and an A that is stored in blocks as ``StoredRows``.
    """
    path = as_path(path)
    reader = ProblemReader(path, Memory(memory_limit))
    document = reader.document()
    reader.only(document, ("A", "g", "h", "solve"), "")
    for key in ("A", "g", "h"):
        if key not in document:
            reader.fail(key, f"is missing; expected {NEEDED[key]}")
    on_disk = reader.on_disk(document["A"], split is not None)
    A = None if on_disk else reader.array(document["A"], "A", split is not None)
    g, h = (reader.function(document[name], name) for name in ("g", "h"))
    settings = reader.settings(document.get("solve", {}))
    if A is None:
        A = reader.streamed(document["A"]) if split is None else reader.stored(document["A"])
    try:
        problem = Saddle(g, h, A if split is None else split(A))
    except ProblemError as error:
        raise ProblemError(f"{path}: {error}") from None
    return ProblemFile(problem, settings)


class ProblemReader(TomlReader):
    """Reads the functions, the matrix and the settings of a problem file."""

    def on_disk(self, value: Any, mapped: bool) -> bool:
        """Whether A stays on disk; a .npy file that is mapped into memory does not count."""
        room = math.inf if mapped else self.memory.room
        return isinstance(value, dict) or (isinstance(value, str) and stored_reference(value, self.path.parent, room))

    def table(self, value: Any) -> dict[str, Any]:
        """The table {stream = "A.npy", norm = 3.0} of A, also if the file gives the name alone."""
        table = value if isinstance(value, dict) else {"stream": value}
        self.only(table, ("stream", "norm"), "A.")
        if not isinstance(table.get("stream"), str):
            self.fail("A.stream", f"is {toml_repr(table.get('stream'))}; expected the name of a file or folder")
        return table

    def stored(self, value: Any) -> StoredRows:
        """The rows of an A on disk, for shards."""
        table = self.table(value)
        if "norm" in table:
            self.fail("A.norm", "is for an A that is read from disk all along; leave it out for shards")
        try:
            store, by_columns = open_store(*split_reference(table["stream"], self.path.parent))
        except ProblemError as error:
            raise ProblemError(f"{self.path}: key 'A': {error}") from None
        if by_columns:
            self.fail("A", "is stored by columns; expected rows: np.save(np.ascontiguousarray(A))")
        return StoredRows(store)

    def streamed(self, value: Any) -> Coupling:
        """A streamed coupling, which may take the memory that is left."""
        table = self.table(value)
        norm = self.number(table["norm"], "A.norm") if "norm" in table else None
        try:
            return stream(self.path.parent / table["stream"], max(1, self.memory.room), norm=norm)
        except ProblemError as error:
            raise ProblemError(f"{self.path}: key 'A': {error}") from None

    def function(self, value: Any, name: str) -> Smooth | Simple:
        """The function of one table with its simple term, or the sum of the functions of several tables."""
        if isinstance(value, list) and value:
            return self.total([self.function(item, f"{name}[{i}]") for i, item in enumerate(value)], name)
        if not isinstance(value, dict):
            self.fail(name, f"is {toml_repr(value)}; expected a table [{name}]")
        if "simple" in value:
            rest = {key: part for key, part in value.items() if key != "simple"}
            term = self.term(value["simple"], f"{name}.simple")
            return self.total([self.function(rest, name), term], name) if rest else term
        kind = self.kind(value, KINDS, name)
        self.only(value, ("kind", "weight", "simple", *kind.arrays, *kind.numbers), f"{name}.")
        self.require(value, kind.required, name)
        arrays = {key: self.array(value[key], f"{name}.{key}") for key in kind.arrays if key in value}
        numbers = {key: self.number(value[key], f"{name}.{key}") for key in kind.numbers if key in value}
        try:
            function = kind.build(**arrays, **numbers)
            if "weight" in value and "weight" not in kind.numbers:
                function = self.number(value["weight"], f"{name}.weight") * function
            return function
        except ProblemError as error:
            raise ProblemError(f"{self.path}: key {name!r}: {error}") from None

    def kind(self, value: dict[str, Any], kinds: Mapping[str, K], name: str) -> K:
        """The kind of function that a table names."""
        called = value.get("kind")
        if not isinstance(called, str) or called not in kinds:
            near = did_you_mean(called, kinds) if isinstance(called, str) else ""
            given = "missing" if called is None else toml_repr(called)
            self.fail(f"{name}.kind", f"is {given}; expected one of {', '.join(kinds)}{near}")
        return kinds[value["kind"]]

    def require(self, value: dict[str, Any], keys: tuple[str, ...], name: str) -> None:
        """Raise a ProblemError if the table of a function lacks one of these keys."""
        for key in keys:
            if key not in value:
                self.fail(f"{name}.{key}", f"is missing; {value['kind']} needs it")

    def term(self, value: Any, name: str) -> Smooth | Simple:
        """The simple term of one table, or the sum of those of several tables."""
        if isinstance(value, list) and value:
            return self.total([self.term(item, f"{name}[{i}]") for i, item in enumerate(value)], name)
        if not isinstance(value, dict):
            self.fail(name, f"is {toml_repr(value)}; expected a table [{name}]")
        kind = self.kind(value, TERMS, name)
        self.only(value, ("kind", *kind.arrays, *kind.numbers, *kind.words, *kind.blocks), f"{name}.")
        self.require(value, kind.required, name)
        if not is_label_list(value.get("groups")):
            self.fail(f"{name}.groups", "has lists within it; expected one label for each coordinate")
        given = {key: self.array(value[key], f"{name}.{key}") for key in kind.arrays if key in value}
        given |= {key: self.number(value[key], f"{name}.{key}") for key in kind.numbers if key in value}
        given |= {key: value[key] for key in kind.words if key in value}
        given |= {key: self.blocks(value[key], f"{name}.{key}") for key in kind.blocks}
        try:
            return kind.build(**given)
        except ProblemError as error:
            raise ProblemError(f"{self.path}: key {name!r}: {error}") from None

    def blocks(self, value: Any, name: str) -> list[tuple[Any, Smooth | Simple]]:
        """Ranges of coordinates and their simple terms, from a list of tables with start, stop and simple."""
        if not isinstance(value, list) or not all(isinstance(block, dict) for block in value):
            self.fail(name, f"is {toml_repr(value)}; expected tables [[{name}]] with start, stop and simple")
        found: list[tuple[Any, Smooth | Simple]] = []
        for i, block in enumerate(value):
            own = f"{name}[{i}]"
            self.only(block, ("start", "stop", "simple"), f"{own}.")
            for key in ("start", "simple"):
                if key not in block:
                    self.fail(f"{own}.{key}", "is missing; a block needs start and simple, and may have stop")
            if isinstance(block["simple"], dict) and block["simple"].get("kind") == "blocks":
                self.fail(f"{own}.simple", "has blocks again; expected ranges of coordinates in one list of blocks")
            found.append(((block["start"], block.get("stop")), self.term(block["simple"], f"{own}.simple")))
        return found

    def total(self, functions: Sequence[Smooth | Simple], name: str) -> Smooth | Simple:
        """The sum of the functions, by halves, so that the recursion of its gradient is not deep."""
        if len(functions) == 1:
            return functions[0]
        half = len(functions) // 2
        left, right = self.total(functions[:half], name), self.total(functions[half:], name)
        try:
            return left + right
        except ProblemError as error:
            raise ProblemError(f"{self.path}: key {name!r}: {error}") from None

    def settings(self, table: Any) -> dict[str, Any]:
        """The keywords of ``solve`` in the table [solve]."""
        if not isinstance(table, dict):
            self.fail("solve", f"is {toml_repr(table)}; expected a table [solve]")
        self.only(table, SOLVE_KEYS, "solve.")
        settings = dict(table)
        for key in ("x0", "y0"):
            if key in settings:
                settings[key] = self.array(settings[key], f"solve.{key}")
        for key, kind, expected in (("method", str, "a method's name"), ("options", dict, "a table of options")):
            if key in settings and not isinstance(settings[key], kind):
                self.fail(f"solve.{key}", f"is {toml_repr(settings[key])}; expected {expected}")
        for key in ("tol", "rtol", "gap", "max_seconds"):
            if key in settings:
                settings[key] = self.number(settings[key], f"solve.{key}")
        calls = settings.get("max_calls", {})
        for oracle, number in calls.items() if isinstance(calls, dict) else [("", calls)]:
            as_count(number, f"{self.path}: key 'solve.max_calls{oracle and '.'}{oracle}'", 0)
        return settings
