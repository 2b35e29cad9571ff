"""Formulas within sentences."""

from __future__ import annotations

import re
from html import escape

from saddlepoint.uses.pages.formulas.latex import latex
from saddlepoint.uses.pages.formulas.mathml import mathml
from saddlepoint.uses.pages.formulas.tree import (
    FUNCTIONS,
    GREEK,
    INDEXED,
    MARKED,
    OPENING,
    PRODUCTS,
    SYMBOLS,
    WORDS,
    FormulaError,
    parsed,
)

OF_SENTENCES = (  # names in formulas that are ordinary words where they stand alone
    "sum", "sqrt", "mean", "sign", "gap", "span", "rank", "clip", "trace", "diag", "prox", "ceil",
)  # fmt: skip
AFTER_A = (  # words that may follow the matrix A at the beginning of a sentence
    "is", "has", "and", "or", "may", "must", "can", "as", "in", "of", "to", "on", "are", "itself", "needs", "with",
    "by", "over",
)  # fmt: skip
CHUNK = re.compile(r"``.+?``|`[^`]+`|\s+|\S+")  # code, a space, or a word
# Signs of which a formula has one at least, unless it is a name alone.
SYMBOL = re.compile(r"[-+=*/<>~|_^'\[\]()]")
LONG = 34  # characters from which a formula is broken at its relations
NARROW = 18  # characters from which a formula in a column of a table is broken at its relations


def segments(text: str) -> list[tuple[bool, str]]:
    """The text in parts, each with whether it is a formula.

    Example:
        >>> segments("at most |A|/mu calls, for every x")
        [(False, 'at most '), (True, '|A|/mu'), (False, ' calls, for every '), (True, 'x')]
    """
    chunks = [piece for chunk in CHUNK.findall(text) for piece in _without_words(chunk)]
    kinds = [_kind(chunk) for chunk in chunks]
    for i, chunk in enumerate(chunks):
        if chunk.lstrip("(") == "sum" and re.search(r"_[ijk]\b|(exp|sqrt)\(", "".join(chunks[i + 2 : i + 3])):
            kinds[i] = "formula"
        if chunk == "A" and _begins_sentence(chunks[max(i - 2, 0) : i + 3], i):
            kinds[i] = "word"
    found: list[tuple[bool, str]] = []
    place = 0
    while place < len(chunks):
        end = place
        while end < len(chunks) and kinds[end] != "word":
            end += 1
            if re.search(r"(?<!\.\.)[.:;]$", chunks[end - 1]):
                break
        start, stop = _core(kinds, place, end)
        while start < stop:
            before, formula, after = _trimmed("".join(chunks[start:stop]))
            if _is_whole(formula):
                _add(found, False, "".join(chunks[place:start]) + before)
                _add(found, True, formula)
                _add(found, False, after)
                place = stop
                break
            start, stop = _core(kinds, start, stop - 1)
        _add(found, False, "".join(chunks[place:end]))
        if end < len(chunks) and kinds[end] == "word":
            _add(found, False, chunks[end])
            end += 1
        place = end
    return found


def _begins_sentence(around: list[str], place: int) -> bool:
    """Whether the article A begins a sentence: a word follows that the matrix A would not have behind it."""
    begins = place == 0 or around[0][-1] in ".:"
    after = around[-1]
    return begins and re.fullmatch(r"[a-z]{2,}[a-z-]*[,.]?", after) is not None and after not in AFTER_A


def _without_words(chunk: str) -> list[str]:
    """A chunk such as ``mu-strongly`` in two parts, the name of a formula and the rest; other chunks are whole."""
    match = re.match(r"([A-Za-z]+)(-[a-z]{4,}.*)", chunk)
    return [match[1], match[2]] if match and (len(match[1]) == 1 or match[1] in GREEK) else [chunk]


def _core(kinds: list[str], start: int, stop: int) -> tuple[int, int]:
    """The part of a run of chunks that is a formula: its ends are no lone signs, numbers or articles."""

    def loose(i: int, inward: int) -> bool:
        near = kinds[i + 2 * inward] if start <= i + 2 * inward < stop else ""
        return kinds[i] in ("space", "sign") or (kinds[i] in ("number", "article") and near != "sign")

    while start < stop and loose(start, 1):
        start += 1
    while start < stop and loose(stop - 1, -1):
        stop -= 1
    return (start, stop) if "formula" in kinds[start:stop] else (start, start)


def _kind(chunk: str) -> str:
    """What a chunk without spaces is: "word", "formula", "sign", "number", "article" or "space"."""
    if chunk.isspace():
        return "space"
    core = chunk.strip(",.;:()")
    if chunk.startswith("`"):
        return "word"
    if core in ("a", "I"):
        return "article"
    if (
        core in OF_SENTENCES
        or core in WORDS
        or re.fullmatch(r"\(?[A-Z]\.(-[A-Z]\.)?|[a-z]{2,}(-[a-z]+)+[,.;:)]*|\w-th\b.*", chunk)
    ):
        return "word"
    if not core or not re.search(r"\w", core):
        if chunk.endswith("]") or not SYMBOL.search(chunk) or re.fullmatch(r"[().,;:]+", chunk):
            return "formula" if chunk.endswith("]") else "word"
        return "sign"
    if re.fullmatch(r"-?[\d.]+(e[-+]?\d+)?", core):
        return "number"
    plain = re.sub(r"(?<=\w)_[a-z]{1,4}\b", "", re.sub(r"\d(?:\.\d+)?e[-+]?\d+", "1", chunk))
    letters = re.findall(r"[A-Za-z]+\d*", plain)
    if not all(_is_name(name) for name in letters) or re.search(r"[^\x00-\x7f]|[A-Za-z]{2,}'s\b|[\"$%&@#?!\\]", chunk):
        return "word"
    return "formula" if letters or SYMBOL.search(core) else "number"


def _is_name(name: str) -> bool:
    """Whether a word stands for something in formulas."""
    if len(name) == 1:
        return True
    if name in GREEK or name in SYMBOLS or name in FUNCTIONS or name in ("kx", "ky", *PRODUCTS):
        return True
    return re.fullmatch("[A-Z][xyzvw]", name) is not None or any(
        pattern.fullmatch(name) for pattern in (MARKED, INDEXED)
    )


def _trimmed(text: str) -> tuple[str, str, str]:
    """The formula without punctuation behind it and without brackets that it does not open or close."""
    before, after = "", ""
    while text:
        if (text[-1] in ",.;:" and not text.endswith("...")) or (text[-1] == ")" and text.count(")") > text.count("(")):
            text, after = text[:-1], text[-1] + after
        elif text[0] == "(" and text.count("(") > text.count(")"):
            text, before = text[1:], before + text[0]
        else:
            break
    return before, text, after


def _is_whole(formula: str) -> bool:
    """Whether it can be read, and opens and closes the same brackets and norms."""
    try:
        parsed(formula)
    except FormulaError:
        return False
    inside: list[str] = []
    for letter in re.sub(r"[^][(){}]", "", formula):
        if letter not in OPENING:
            inside.append(letter)
        elif not inside or inside.pop() != OPENING[letter]:
            return False
    return not inside and formula.count("|") % 2 == 0 and not _open_angles(formula)


def _open_angles(text: str) -> int:
    """How many inner products are open at the end of the text."""
    return len(re.findall(r"<(?=[^\s=-])", text)) - len(re.findall(r"(?<=[^\s=-])>", text))


def _add(found: list[tuple[bool, str]], formula: bool, text: str) -> None:
    if text and found and found[-1][0] == formula:
        found[-1] = (formula, found[-1][1] + text)
    elif text:
        found.append((formula, text))


def pieces(formula: str, longest: int = LONG) -> list[str]:
    """A long formula in parts between which a line may end: before its relations, and before its sums."""
    found = [formula]
    for pattern in (r" (?=(?:<=|>=|=|=:|->|~) )|(?<=,) +", r" (?=[-+] )"):
        found = [piece for part in found for piece in (_split(part, pattern) if len(part) > longest else [part])]
    return [piece for piece in found if piece]


def _split(text: str, pattern: str) -> list[str]:
    """The text split where the pattern matches outside all brackets and norms."""
    parts, last = [], 0
    for match in re.finditer(pattern, text):
        left = text[: match.start()]
        if (
            not _open_angles(left)
            and left.count("|") % 2 == 0
            and all(left.count(a) == left.count(b) for a, b in ("()", "[]", "{}"))
        ):
            parts.append(text[last : match.start()])
            last = match.end()
    return [*parts, text[last:]]


def as_markdown(text: str) -> str:
    """The text with its formulas in LaTeX between dollar signs: ``sqrt(kx) + c`` is $\\sqrt{\\kappa_x} + c$."""
    return "".join(f"${latex(part)}$" if formula else part for formula, part in segments(text))


def as_html(text: str) -> str:
    """The text as HTML, with its formulas in MathML; long ones are in parts, between which a line may end."""
    found = []
    for formula, part in segments(text):
        found.append(" ".join(map(mathml, pieces(part, NARROW))) if formula else escape(part))
    return "".join(found)
