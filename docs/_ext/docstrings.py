"""Docstrings as they are written here, in plain text, made into reStructuredText.

In plain text |x - x*| is a norm, A' a transpose and x_ a name, and none of them is markup: formulas become mathematics.
An indented paragraph is a formula. ``Args:``, ``Attributes:``, ``Raises:``, ``Returns:``, ``References:`` and
``Example:`` open a section.
"""

import re
from collections.abc import Iterator
from typing import Any

from plain_formulas import display, inline, is_page, page
from sphinx.application import Sphinx

LISTS = {"Args": "Arguments", "Attributes": "Attributes", "Raises": "Raises"}
TEXTS = {"Returns": "Returns", "Yields": "Yields", "References": "References"}
CODE = ("Example", "Examples")
HEAD = re.compile(rf"^({'|'.join([*LISTS, *TEXTS, *CODE])}):$")
ITEM = re.compile(r"^(\S[^:`]*?): (.*)$")
ALIAS = re.compile(r"TypeAliasForwardRef\('(\w+)'\)")
OBJECT = re.compile(r"<[^<>]+>")  # a default that has no literal


def indent_of(line: str) -> int:
    """The number of blanks before the text of a line."""
    return len(line) - len(line.lstrip())


def paragraphs(lines: list[str]) -> Iterator[list[str]]:
    """The paragraphs, as lists of the lines between empty lines."""
    block: list[str] = []
    for line in [*lines, ""]:
        if line.strip():
            block.append(line)
        elif block:
            yield block
            block = []


def prose(lines: list[str]) -> Iterator[str]:
    """Paragraphs; those that are indented are formulas, and doctests are shown letter by letter."""
    base = min((indent_of(line) for line in lines if line.strip()), default=0)
    for block in paragraphs([line[base:] for line in lines]):
        if block[0].startswith(">>>"):
            yield from [".. code-block:: pycon", "", *(f"    {line}" for line in block), ""]
        elif is_page(block) and uneven(block):
            yield from page(block)
        elif indent_of(block[0]) or uneven(block):
            yield from display(block) or ["::", "", *(f"    {line}" for line in block), ""]
        else:
            yield from [*map(plain_line, joined(block)), ""]


def uneven(block: list[str]) -> bool:
    """Whether the lines of a paragraph are indented differently, so that their columns matter."""
    return not block[0].startswith("- ") and any(indent_of(line) for line in block)


def joined(block: list[str]) -> list[str]:
    """Each item of a list, or the whole paragraph, on one line, so that no formula is on two of them."""
    found: list[str] = []
    for line in block:
        if found and not line.lstrip().startswith("- "):
            found[-1] += f" {line.strip()}"
        else:
            found.append(line)
    return found


def plain_line(line: str) -> str:
    """A line of prose, in which "- " at the start makes an item of a list."""
    body = line.lstrip()
    bullet = "- " if body.startswith("- ") else ""
    return line[: indent_of(line)] + bullet + inline(body.removeprefix("- "))


def items(lines: list[str]) -> Iterator[str]:
    """``name: what it is`` as a list of definitions."""
    base = min(indent_of(line) for line in lines if line.strip())
    text = [line[base:] for line in lines]
    starts = [i for i, line in enumerate(text) if line and not line.startswith(" ")]
    for start, end in zip(starts, [*starts[1:], len(text)], strict=True):
        match = ITEM.match(text[start])
        if match is None:
            yield from [inline(text[start]), ""]
            continue
        names = ", ".join(f"``{name.strip()}``" for name in match[1].split(","))
        yield names
        yield from (f"    {line}" for line in prose([match[2], *(line.strip() for line in text[start + 1 : end])]))


def sections(lines: list[str]) -> Iterator[tuple[str, list[str]]]:
    """The docstring in parts, each with the word that opened it."""
    name, part = "", []
    for line in lines:
        head = HEAD.match(line)
        if head or (name and line.strip() and not line.startswith(" ")):
            yield name, part
            name, part = (head[1], []) if head else ("", [line])
        else:
            part.append(line)
    yield name, part


def marked_up(lines: list[str]) -> list[str]:
    """The docstring in reStructuredText."""
    out: list[str] = []
    for name, part in sections(lines):
        if not any(line.strip() for line in part):
            continue
        if name in LISTS or name in TEXTS:
            body = items(part) if name in LISTS else prose(part)
            out += [f":{LISTS.get(name) or TEXTS[name]}:", *(f"    {line}" for line in body), ""]
        elif name in CODE:
            out += [".. rubric:: Example", "", *prose(part)]
        else:
            out += prose(part)
    return out


def process(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Change a docstring in place, for the event of autodoc."""
    lines[:] = marked_up(lines)


def skip(app: Sphinx, what: str, name: str, obj: Any, skipped: bool, options: Any) -> bool | None:
    """Leave out what other libraries put into our classes."""
    alias = (getattr(obj, "__doc__", None) or "").startswith("Alias for field number")
    return True if alias or re.fullmatch(r"set_\w+_request", name) else None


def named(app: Sphinx, what: str, name: str, obj: Any, options: Any, given: str | None, returned: str | None) -> Any:
    """Types by the names they have in the code."""

    def short(text: str | None) -> str | None:
        text = text and OBJECT.sub("...", ALIAS.sub(r"\1", text))
        return text and text.replace("ndarray[tuple[Any, ...], dtype[Any]]", "Array")

    return short(given), short(returned)


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the extension with autodoc."""
    app.connect("autodoc-process-docstring", process)
    app.connect("autodoc-process-signature", named)
    app.connect("autodoc-skip-member", skip)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
