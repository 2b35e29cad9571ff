"""A linear or quadratic program from a TOML file; docs/problem-file.md describes the format."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from saddlepoint.problems.files.reading import MEMORY_LIMIT, Memory, as_path
from saddlepoint.problems.files.toml_reader import TomlReader
from saddlepoint.problems.files.toml_values import toml_repr

KIND = "program"  # the value of the key kind
DATA = ("P", "q", "A", "lower", "upper", "x_lower", "x_upper")  # the arguments of QuadraticProgram
NUMBERS = ("gap", "rtol", "feasibility", "max_seconds")  # the keys of [solve] that hold numbers
SOLVE = (*NUMBERS, "method")  # all keys of [solve]


class ProgramFile(NamedTuple):
    """The arguments of a program, and the keywords of its ``solve``."""

    data: dict[str, Any]
    solve: dict[str, Any]


def load_program(path: str | Path, memory_limit: int = MEMORY_LIMIT) -> ProgramFile:
    """Read a file with ``kind = "program"``; a ProblemError names the file and the key that is wrong.

    Args:
        path: the file.
        memory_limit: bytes that it and the arrays that it names may take together.
    """
    path = as_path(path)
    reader = TomlReader(path, Memory(memory_limit))
    document = reader.document()
    if document.get("kind") != KIND:
        found = toml_repr(document["kind"]) if "kind" in document else "missing"
        reader.fail("kind", f'is {found}; expected kind = "{KIND}", above all tables')
    reader.only(document, ("kind", *DATA, "solve"), "")
    data = {key: reader.array(document[key], key) for key in DATA if key in document}
    settings = document.get("solve", {})
    if not isinstance(settings, dict):
        reader.fail("solve", f"is {toml_repr(settings)}; expected a table [solve]")
    reader.only(settings, SOLVE, "solve.")
    asked = {key: reader.number(settings[key], f"solve.{key}") for key in NUMBERS if key in settings}
    if "method" in settings:
        asked["method"] = settings["method"]
    return ProgramFile(data, asked)
