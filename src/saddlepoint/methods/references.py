"""The works behind the methods, read from ``references.bib``.

A method names the keys of its works in its attribute ``works``. A method outside this package whose work is not in the
file writes it in words, such as ``works = ("Malitsky 2015",)``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from typing import NamedTuple

FILE = "references.bib"
SHOWN_AUTHORS = 3  # a work of more authors is shown with the first one and "et al."


class Work(NamedTuple):
    """One entry of a BibTeX file."""

    kind: str  # article, inproceedings, misc, ...
    key: str
    fields: dict[str, str]

    @property
    def bibtex(self) -> str:
        """The entry as a BibTeX file has it."""
        lines = (f"  {name} = {{{text}}}," for name, text in self.fields.items())
        return "\n".join([f"@{self.kind}{{{self.key},", *lines, "}"])

    @property
    def short(self) -> str:
        """Surnames and year, such as "Xie, Han and Zhang 2021"."""
        names = [re.sub(r"\\[\"'`^~]|[{}\\]", "", name).split()[-1] for name in self.fields["author"].split(" and ")]
        if len(names) > SHOWN_AUTHORS:
            return f"{names[0]} et al. {self.fields['year']}"
        *first, last = names
        return f"{', '.join(first)}{' and ' if first else ''}{last} {self.fields['year']}"


def read_bibtex(text: str) -> dict[str, Work]:
    """The entries of a BibTeX file by key; a ValueError says what is malformed.

    The reader takes what ``references.bib`` uses: values in braces, one level of which is removed, and lines that begin
    with % as comments.
    """
    text = "\n".join(line for line in text.splitlines() if not line.startswith("%"))
    found: dict[str, Work] = {}
    position = 0
    while (start := text.find("@", position)) >= 0:
        head = re.compile(r"@(\w+)\{([\w:-]+),").match(text, start)
        if head is None:
            raise ValueError(f"expected @kind{{key, but found {text[start : start + 30]!r}")
        kind, key = head.groups()
        if key in found:
            raise ValueError(f"the key {key} occurs twice")
        position = _end_of_braces(text, head.end(2) - len(key) - 1, key)
        found[key] = Work(kind, key, _read_fields(text[head.end() : position - 1], key))
    return found


def _read_fields(text: str, key: str) -> dict[str, str]:
    fields: dict[str, str] = {}
    position = 0
    while text[position:].strip(" ,\n"):
        head = re.compile(r"[\s,]*(\w+)\s*=\s*(?=\{)").match(text, position)
        if head is None:
            raise ValueError(f"in {key}: expected name = {{text}}, but found {text[position:].strip()[:30]!r}")
        position = _end_of_braces(text, head.end(), key)
        fields[head[1]] = " ".join(text[head.end() + 1 : position - 1].split())
    return fields


def _end_of_braces(text: str, start: int, key: str) -> int:
    """The position after the brace that closes the one at ``start``."""
    depth = 0
    for position in range(start, len(text)):
        depth += {"{": 1, "}": -1}.get(text[position], 0)
        if depth == 0:
            return position + 1
    raise ValueError(f"in {key}: a brace is not closed")


@cache
def all_works() -> dict[str, Work]:
    """The works of ``references.bib`` by key."""
    return read_bibtex(files("saddlepoint.methods").joinpath(FILE).read_text(encoding="utf-8"))


def reference(works: Iterable[str]) -> str:
    """Works in a line, such as "Condat 2013; Vu 2013"."""
    known = all_works()
    return "; ".join(known[work].short if work in known else work for work in works)


def bibtex(works: Iterable[str]) -> dict[str, str]:
    """BibTeX entries by key; a work that is given in words becomes a note."""
    known, found = all_works(), dict[str, str]()
    for work in works:
        key = work if work in known else re.sub(r"\W+", "-", work).strip("-")
        found[key] = known[work].bibtex if work in known else f"@misc{{{key},\n  note = {{{work}}},\n}}"
    return found
