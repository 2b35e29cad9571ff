"""Formulas of docstrings, which are plain text, as reStructuredText."""

import re
from collections.abc import Iterator

from saddlepoint.uses.pages.formulas import FormulaError, latex, pieces, segments

SPECIAL = re.compile(r"([\\*|_`])")
CODED = re.compile(r"(``.+?``|`[^`]+`)")
HEAD = re.compile(r"^([A-Z][a-z]+):\s+(?=\S)")  # of a page of a paper: Problem, Recursion, Guarantee, Reference
SHOWN = ("Recursion", "Reach")  # heads whose formulas have lines of their own
NO_LIST = "\\ "  # before a sentence that begins with a sign or with initials, which would make it an item of a list
FEW = 24  # letters of words that a formula on a line of its own may have beside it


def inline(text: str) -> str:
    """A sentence: formulas become mathematics, text in backticks becomes code, and the rest is shown as it is."""
    found = []
    for i, part in enumerate(CODED.split(text)):
        if i % 2:
            found.append(f"``{part.strip('`')}``")
            continue
        for formula, piece in segments(part):
            found.append(_roles(piece) if formula else SPECIAL.sub(r"\\\1", piece))
    return "".join(found)


def _roles(formula: str) -> str:
    """A formula in parts, between which a line may end."""
    return "\\ " + " ".join(f":math:`{latex(piece)}`" for piece in pieces(formula)) + "\\ "


def display(lines: list[str]) -> list[str] | None:
    """Lines that are formulas as one block of mathematics; None if they cannot be read."""
    try:
        found = [latex(line.strip()) for line in lines]
    except FormulaError:
        return None
    if any("`" in line for line in lines):
        return None
    body = [f"& {line} \\\\" for line in found] if len(found) > 1 else found
    rows = [r"\begin{aligned}", *body, r"\end{aligned}"] if len(found) > 1 else body
    return [".. math::", "", *(f"    {row}" for row in rows), ""]


def is_page(lines: list[str]) -> bool:
    """Whether the lines are those of a page of a paper: a head, and text in a column beside it."""
    return bool(HEAD.match(lines[0]))


def page(lines: list[str]) -> Iterator[str]:
    """The page as a list of definitions, one for each head."""
    for head, body in _parts(lines):
        yield f"**{head}:**"
        yield from (f"    {line}" if line else "" for line in _body(head, body))
        yield ""


def _parts(lines: list[str]) -> Iterator[tuple[str, list[str]]]:
    head, body = "", []
    for line in lines:
        match = HEAD.match(line)
        if match:
            if head:
                yield head, body
            head, body = match[1], [line[match.end() :]]
        else:
            body.append(line.strip())
    yield head, body


def _body(head: str, lines: list[str]) -> Iterator[str]:
    sentence: list[str] = []
    for line in lines:
        block = display([line]) if head in SHOWN and _is_formula(line) else None
        if block is None:
            sentence.append(line)
            continue
        if sentence:
            yield from (f"{NO_LIST}{inline(' '.join(sentence))}", "")
            sentence = []
        yield from block
    if sentence:
        text = " ".join(sentence)
        yield from (NO_LIST + (SPECIAL.sub(r"\\\1", text) if head == "Reference" else inline(text)), "")


def _is_formula(line: str) -> bool:
    """Whether a line has little beside a formula."""
    words = [part for formula, part in segments(line) if not formula]
    rest = sum(len(re.sub(r"\W", "", part)) for part in words)
    return bool(re.search(r"=|~|->|<-", line)) and rest <= FEW and not re.search(r"\. [A-Z]|`", line)
