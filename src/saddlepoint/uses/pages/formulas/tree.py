"""Formulas in plain text, such as ``sqrt(kx) + |A|/mu_x``, as trees.

Plain text is what docstrings, messages and the register of methods have. ``|x|`` is a norm, ``<x, y>`` an inner
product, ``A'`` a transpose, ``x*`` a solution, ``x+`` a next point; ``xt``, ``xb`` and ``xh`` have a tilde, a bar and a
hat, and ``Fx``, ``tx`` and ``k1`` an index. Other names of two letters or more are words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

WORDS = ("at", "by", "it", "my", "ah", "eh", "oh", "ex", "ax", "ox", "um")  # words that look like names in formulas
GREEK = {  # names of Greek letters
    "alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ", "eps": "ε", "eta": "η", "theta": "θ", "kappa": "κ",
    "lambda": "λ", "mu": "μ", "rho": "ρ", "sigma": "σ", "tau": "τ", "phi": "φ", "psi": "ψ", "nu": "ν", "xi": "ξ",
    "omega": "ω", "ell": "ℓ",
}  # fmt: skip
FUNCTIONS = (  # names that are written upright
    "argmin", "argmax", "min", "max", "log", "exp", "prox", "mean", "hypot", "tanh", "cosh", "ceil", "sign", "gap",
    "clip", "diag", "rank", "trace", "span",
)  # fmt: skip
SYMBOLS = {"sum": "∑", "inf": "∞", "grad": "∇", "sqrt": "√"}  # names that are drawn as one sign
INDEXED = re.compile(r"([a-zFRGMEW])([xy])|([A-Za-z])(\d+)|([xyz])([fgm])")  # Fx, ty, k1, xf; Ay is a product
MARKED = re.compile(r"([fghquvwxyz])([tbh])")  # xt, xb and xh: tilde, bar and hat
PRODUCTS = ("dx", "dy", "dz", "dg", "dh", "ii", "ij", "jj")  # letters side by side
MARKS = {"t": "tilde", "b": "bar", "h": "hat"}  # marks above a letter, by the letter that stands behind it
RELATIONS = {"<=": "≤", ">=": "≥", "!=": "≠", "->": "→", "<-": "←", "=:": "=:", ":=": ":=", "...": "…", "~": "≈"}
OPENING = {")": "(", "]": "[", "}": "{"}  # opening brackets, by their closing ones
TOKEN = re.compile(
    r"(?P<space>\s+)|(?P<number>\d+(?:\.\d+)?(?:e[-+]?\d+)?(?![A-Za-z]))|(?P<name>[A-Za-z]+\d*)"
    r"|(?P<relation><=|>=|!=|->|<-|=:|:=|\.\.\.|~)|(?P<bars>\|\|?)|(?P<other>.)",
    re.DOTALL,
)


class Node(NamedTuple):
    """A part of a formula.

    Attributes:
        kind: "name", "upright", "number", "text", "sign", "open", "close", "space", "row", "root", "scripts", "matrix",
            or a mark above its part: "tilde", "bar" or "hat".
        text: what it shows, if it has no parts.
        parts: its parts; those of "scripts" are base, index and exponent, and an empty row stands for none.
    """

    kind: str
    text: str = ""
    parts: tuple[Node, ...] = ()


NOTHING = Node("row")  # an index or an exponent that is not there


class FormulaError(ValueError):
    """The text cannot be read as a formula."""


def parsed(text: str) -> Node:
    """The formula as a tree."""
    return _Reader(text).row("")


class _Reader:
    """Reads tokens from the left to the right."""

    def __init__(self, text: str) -> None:
        self.tokens = [(match.lastgroup or "", match[0]) for match in TOKEN.finditer(text)]
        self.place = 0
        self.bars = 0  # norms that are open
        self.angles = 0  # inner products that are open

    def peek(self, ahead: int = 0) -> str:
        """A token further on, or nothing at the end."""
        place = self.place + ahead
        return self.tokens[place][1] if 0 <= place < len(self.tokens) else ""

    def blank(self, ahead: int) -> bool:
        """Whether there is a space, or nothing, at this place."""
        return not self.peek(ahead).strip()

    def row(self, end: str) -> Node:
        """Everything up to a closing bracket, which is read as well."""
        found: list[Node] = []
        depth = 0
        while self.place < len(self.tokens):
            if end and not depth and self.peek() == end:
                self.place += 1
                return Node("row", parts=tuple(found))
            depth += {OPENING.get(end): 1, end: -1}.get(self.peek(), 0)
            self.one(found)
        if end:
            raise FormulaError(f"{end} is missing")
        return Node("row", parts=tuple(found))

    def one(self, found: list[Node]) -> None:
        """Read the next part, or what belongs to the last one."""
        kind, token = self.tokens[self.place]
        self.place += 1
        if kind == "space":
            if found and found[-1].kind != "space":
                found.append(Node("space", token))
        elif kind == "number":
            found.append(Node("number", token))
        elif kind == "name":
            found.append(self.name(token))
        elif kind == "relation":
            found.append(self.relation(token, found))
        elif kind == "bars":
            self.bar(token, found)
        elif token in "_^":
            self.script(token, found)
        elif token == "*":
            after = self.peek()
            if found and not self.blank(-2) and (not after or not re.match(r"[\w(]", after) or after == "_"):
                _raise(found, Node("sign", "∗"))
            else:
                found.append(Node("sign", "·"))
        elif token == "+" and self.superscript(found):
            _raise(found, Node("sign", "+"))
        elif token == "'":
            self.prime(found)
        elif token == "<" and not self.blank(0):
            self.angles += 1
            found.append(Node("open", "⟨"))
        elif token == ">" and self.angles:
            self.angles -= 1
            found.append(Node("close", "⟩"))
        elif token == "[" and self.peek() == "[":
            found.append(self.matrix())
        else:
            found.append(Node("open" if token in "([{" else "close" if token in ")]}" else "sign", token))

    def superscript(self, found: list[Node]) -> bool:
        """Whether a plus belongs to the name before it: x+ is the next point."""
        return (
            bool(found)
            and found[-1].kind in ("name", "scripts", "upright")
            and not re.match(r"[\w({\[]", self.peek() or " ")
            and not (self.blank(-2))
        )

    def name(self, token: str) -> Node:
        """A name of one or more letters."""
        if token == "sqrt" and self.peek() == "(":
            self.place += 1
            return Node("root", parts=(self.row(")"),))
        if token in GREEK:
            return Node("name", token)
        if token in ("kx", "ky"):
            return _scripts(Node("name", "kappa"), index=Node("name", token[1]))
        if token in SYMBOLS:
            return Node("sign" if token != "inf" else "name", SYMBOLS[token])
        if token in FUNCTIONS:
            return Node("upright", token)
        if len(token) == 1:
            return Node("name", token)
        if token in PRODUCTS or (re.fullmatch("[A-Z][xyzvw]", token) and not INDEXED.fullmatch(token)):
            return Node("row", parts=tuple(Node("name", letter) for letter in token))
        if token in WORDS:
            return Node("text", token)
        if marked := MARKED.fullmatch(token):
            return Node(MARKS[marked[2]], parts=(Node("name", marked[1]),))
        if indexed := INDEXED.fullmatch(token):
            base, index = (part for part in indexed.groups() if part)
            return _scripts(Node("name", base), index=Node("number" if index.isdigit() else "name", index))
        return Node("text", token)

    def relation(self, token: str, found: list[Node]) -> Node:
        """A relation; O~ leaves out logarithms."""
        if token == "~" and found and found[-1] == Node("name", "O"):
            return Node("tilde", parts=(found.pop(),))
        return Node("sign", RELATIONS[token])

    def bar(self, token: str, found: list[Node]) -> None:
        """The bar of a norm, which opens one if a space or an operator is before it."""
        closes = self.bars and not self.blank(-2)
        if closes and found and found[-1].kind in ("open", "sign"):
            closes = False
        self.bars += -1 if closes else 1
        found.append(Node("close" if closes else "open", "‖"))

    def script(self, token: str, found: list[Node]) -> None:
        """An index or an exponent."""
        if not found:
            raise FormulaError(f"nothing is before {token}")
        inside = self.argument()
        base = _base(found)
        if base.kind == "scripts" and base.parts[1 if token == "_" else 2] == NOTHING:
            index, power = (inside, base.parts[2]) if token == "_" else (base.parts[1], inside)
            found.append(Node("scripts", parts=(base.parts[0], index, power)))
        else:
            found.append(_scripts(base, inside, NOTHING) if token == "_" else _scripts(base, NOTHING, inside))

    def argument(self) -> Node:
        """What is behind an underscore or a caret: one thing, or something in brackets, which are left out."""
        found: list[Node] = []
        if self.peek() == "-":
            self.place += 1
            found.append(Node("sign", "-"))
        token = self.peek()
        if not token.strip():
            raise FormulaError("an index or an exponent is missing")
        if token in ("{", "("):
            self.place += 1
            return Node("row", parts=(*found, self.row("}" if token == "{" else ")")))
        if token == "*":
            self.place += 1
            return Node("sign", "∗")
        self.one(found)
        if found[0].kind == "text" and len(found[0].text) == 2:
            return Node("row", parts=tuple(Node("name", letter) for letter in found[0].text))
        return Node("row", parts=tuple(found))

    def prime(self, found: list[Node]) -> None:
        """A transpose, or a derivative: h'(1) and h''(0)."""
        if not found:
            raise FormulaError("nothing is before a prime")
        count = 1
        while self.peek() == "'":
            self.place += 1
            count += 1
        base = found[-1]
        slope = count > 1 or (base == Node("name", "h") and self.peek() == "(")
        if slope:
            _raise(found, Node("row", parts=tuple([Node("sign", "′")] * count)))
        else:
            _raise(found, Node("sign", "⊤"))

    def matrix(self) -> Node:
        """A matrix [[a, b], [c, d]]."""
        rows = []
        while self.peek() == "[":
            self.place += 1
            cells = _cells(self.row("]"))
            rows.append(Node("row", parts=tuple(cells)))
            while self.peek() == "," or not self.peek().strip():
                if self.place >= len(self.tokens):
                    raise FormulaError("] is missing")
                self.place += 1
        if self.peek() != "]":
            raise FormulaError("] is missing")
        self.place += 1
        return Node("matrix", parts=tuple(rows))


def _cells(row: Node) -> Iterator[Node]:
    cell: list[Node] = []
    depth = 0
    for part in row.parts:
        depth += {"open": 1, "close": -1}.get(part.kind, 0)
        if part == Node("sign", ",") and not depth:
            yield Node("row", parts=tuple(cell))
            cell = []
        elif part.kind != "space" or cell:
            cell.append(part)
    yield Node("row", parts=tuple(cell))


def _base(found: list[Node]) -> Node:
    """Take the last thing away, with everything in the brackets that it closes."""
    last = found.pop()
    if last.kind != "close":
        return last
    parts, depth = [last], 1
    while found and depth:
        part = found.pop()
        depth += {"close": 1, "open": -1}.get(part.kind, 0)
        parts.append(part)
    return Node("row", parts=tuple(reversed(parts)))


def _scripts(base: Node, index: Node = NOTHING, power: Node = NOTHING) -> Node:
    return Node("scripts", parts=(base, index, power))


def _raise(found: list[Node], mark: Node) -> None:
    """Put a mark above and behind the last thing."""
    base = _base(found)
    if base.kind == "scripts" and base.parts[2] == NOTHING:
        found.append(Node("scripts", parts=(base.parts[0], base.parts[1], mark)))
    else:
        found.append(_scripts(base, NOTHING, mark))


def power_of_ten(number: str, general: str, alone: str, plain: str = "{}") -> str:
    """A number in one of three forms: 2.5e-8, 1e-8 and 2.5."""
    mantissa, _, power = number.partition("e")
    if not power:
        return plain.format(number)
    return alone.format(int(power)) if mantissa == "1" else general.format(mantissa, int(power))
