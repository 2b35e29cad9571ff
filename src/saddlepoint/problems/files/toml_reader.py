"""A TOML file with arrays and numbers, read so that every error names the file and the key."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

from saddlepoint.ground.errors import ProblemError
from saddlepoint.ground.validation import as_number, did_you_mean
from saddlepoint.problems.files.arrays import read_array
from saddlepoint.problems.files.reading import Memory, read_text
from saddlepoint.problems.files.toml_values import list_fault, toml_repr

EXPANSION = 320  # most bytes of memory for a byte of a problem file whose keys have at most PARTS parts
PARTS = 4  # most parts of a dotted key, such as a.b.c.d; the parser's memory grows with their square
# A part of a key: a text in quotation marks of either kind, or a bare word; and a whole key, or a comment.
PART = r"""(?:"(?:[^"\\\n]|\\.)*+"?|'[^'\n]*+'?|[A-Za-z0-9_-]++)"""
KEY = re.compile(rf"#[^\n]*+|{PART}(?:[ \t]*+\.[ \t]*+{PART})*+")


class TomlReader:
    """Reads one file.

    Args:
        path: the file. Names of other files in it are relative to its folder.
        memory: the memory that the file and the arrays that it names may take together.
    """

    def __init__(self, path: Path, memory: Memory) -> None:
        self.path, self.memory = path, memory

    def fail(self, key: str, complaint: str) -> NoReturn:
        """Raise a ProblemError that names the file and the key."""
        raise ProblemError(f"{self.path}: key {key!r} {complaint}")

    def document(self) -> dict[str, Any]:
        """The tables and values of the file."""
        text = read_text(self.path, self.memory, EXPANSION)
        try:
            if any(_parts(match[0]) > PARTS for match in KEY.finditer(text)):
                raise RecursionError
            return tomllib.loads(text)
        except RecursionError:
            raise ProblemError(f"{self.path} is nested too deeply for a problem; expected keys and tables") from None
        except ValueError as error:
            raise ProblemError(f"{self.path} is not valid TOML: {error}") from None

    def only(self, table: Mapping[str, Any], allowed: tuple[str, ...], prefix: str) -> None:
        """Raise a ProblemError if the table has another key; the message names it with ``prefix`` before it."""
        for key in table:
            if key not in allowed:
                self.fail(f"{prefix}{key}", f"is unknown; expected {', '.join(allowed)}{did_you_mean(key, allowed)}")

    def array(self, value: Any, key: str, mapped: bool = False) -> Any:
        """The array of a key, which holds a file reference, a number or a list of numbers."""
        if not isinstance(value, str):
            if isinstance(value, bool) or not isinstance(value, int | float | list):
                self.fail(key, f"is {toml_repr(value)}; expected a file name or numbers")
            labels = key.endswith(".groups")  # they may be words
            if isinstance(value, list) and not labels and (fault := list_fault(value)):
                self.fail(key, fault)
            return value
        try:
            return read_array(value, self.path.parent, self.memory, mapped)
        except ProblemError as error:
            raise ProblemError(f"{self.path}: key {key!r}: {error}") from None

    def number(self, value: Any, key: str) -> float:
        """The number of a key."""
        return as_number(value, f"{self.path}: key {key!r}")


def _parts(key: str) -> int:
    """The number of parts of a dotted key; quoted texts and comments count as one."""
    return len(re.findall(PART, key)) if key.count(".") >= PARTS and not key.startswith("#") else 1
