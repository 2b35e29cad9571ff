"""Two-player games from Gambit's .efg files: the nodes of the tree in prefix order.

Reference: The Gambit Project, The extensive game (.efg) file format, https://gambitproject.readthedocs.io.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from saddlepoint.ground.errors import ProblemError
from saddlepoint.ground.validation import short_repr
from saddlepoint.problems.files.game_tree import ROOT, History, SequenceForm, TreeWalk, after, check_probabilities
from saddlepoint.problems.files.reading import MEMORY_LIMIT, Memory, read_text

# A text in quotation marks, a sign, or a word; possessive quantifiers, so that no text takes long.
TOKEN = re.compile(r'\s*+(?:"(?P<text>[^"\\]*+(?:\\.[^"\\]*+)*+)"|(?P<sign>[{},])|(?P<word>[^\s{},"]+))', re.DOTALL)
NUMBER = re.compile(r"[+-]?(\d+/\d+|(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?)")
END = ("end", "the end of the file")  # the token after the last one
EXPANSION = 80  # most bytes of memory for a byte of text


class Node(NamedTuple):
    """The way to a node: the players' sequences, the probability of the chance moves, the payoffs so far."""

    history: History
    probability: float
    payoffs: tuple[float, float]


class Chance(NamedTuple):
    """An event of chance: its label, its actions and their probabilities."""

    label: str
    actions: tuple[str, ...]
    probabilities: tuple[float, ...]


class Choice(NamedTuple):
    """An information set of a player: its label and its actions."""

    label: str
    actions: tuple[str, ...]


class Outcome(NamedTuple):
    """An outcome: its label, and the payoffs of the players at nodes that have it."""

    label: str
    payoffs: tuple[float, float]


NOTHING = Outcome("", (0.0, 0.0))  # of nodes without an outcome


def read_efg(path: Path, memory_limit: int = MEMORY_LIMIT) -> SequenceForm:
    """Read an .efg file; a ProblemError names the file and the line."""
    reader = _Reader(read_text(path, Memory(memory_limit), EXPANSION))
    try:
        return reader.game()
    except ProblemError as error:
        raise ProblemError(f"{path}, line {reader.line}: {error}") from None


class _Reader:
    """Reads tokens one by one, with one token of lookahead."""

    def __init__(self, text: str) -> None:
        self.text, self.start, self.stop = text, 0, 0
        self.walk = TreeWalk()
        self.declared: dict[tuple[str, int], Any] = {}
        self.ahead = END

    @property
    def line(self) -> int:
        """The line of the token that was read last."""
        return self.text.count("\n", 0, self.start) + 1

    # -- tokens ------------------------------------------------------------------------------------------------------

    def advance(self) -> None:
        match = TOKEN.match(self.text, self.stop)
        if match:
            self.stop, self.ahead = match.end(), (str(match.lastgroup), str(match[str(match.lastgroup)]))
        elif self.text[self.stop :].strip():
            self.start = self.stop
            raise ProblemError("the text that begins here is not closed; expected another quotation mark")
        else:
            self.ahead = END

    def take(self, kind: str, expected: str) -> str:
        """The next token, which must be of ``kind``."""
        found, value = self.ahead
        self.start = self.stop - len(value) if found != "end" else len(self.text.rstrip())
        if found != kind:
            raise ProblemError(f"found {value if found == 'end' else short_repr(value)}; expected {expected}")
        self.advance()
        return value

    def label(self, expected: str) -> str:
        return re.sub(r"\\(.)", r"\1", self.take("text", expected), flags=re.DOTALL)

    def sign(self, value: str) -> None:
        found = self.take("sign", repr(value))
        if found != value:
            raise ProblemError(f"found {found!r}; expected {value!r}")

    def closes(self) -> bool:
        return self.ahead == ("sign", "}")

    def integer(self, expected: str, least: int) -> int:
        word = self.take("word", expected)
        if not re.fullmatch(r"\d{1,18}", word) or int(word) < least:
            raise ProblemError(f"found {word!r}; expected {expected}, {least} or more")
        return int(word)

    def number(self, expected: str) -> float:
        """A decimal number, or a fraction such as 1/3."""
        word = self.take("word", expected)
        value = math.nan
        if NUMBER.fullmatch(word):
            over, slash, under = word.partition("/")
            with suppress(ZeroDivisionError, OverflowError, ValueError):  # the error is raised below
                value = int(over) / int(under) if slash else float(word)
        if not math.isfinite(value):
            raise ProblemError(f"found {word[:40]!r}; expected {expected}, a finite number")
        return value

    # -- the prologue ------------------------------------------------------------------------------------------------

    def game(self) -> SequenceForm:
        self.advance()
        for word in ("EFG", "2", "R"):
            found = self.take("word", "'EFG 2 R' at the beginning of an extensive game")
            if found != word and not (word == "R" and found == "D"):
                raise ProblemError(f"found {found!r}; expected 'EFG 2 R' at the beginning of an extensive game")
        title = self.label("the title of the game in quotation marks")
        players = self.labels("the name of a player in quotation marks")
        if len(players) != 2:
            raise ProblemError(f"the game has {len(players)} players; expected 2")
        if self.ahead[0] == "text":
            self.advance()  # skips the comment of the game
        self.nodes()
        return self.walk.form(title)

    def labels(self, expected: str) -> tuple[str, ...]:
        self.sign("{")
        labels = []
        while not self.closes():
            labels.append(self.label(expected))
        self.sign("}")
        return tuple(labels)

    # -- the nodes ---------------------------------------------------------------------------------------------------

    def nodes(self) -> None:
        """Read all nodes. The stack holds, for each node on the way down, its children that are still to be read."""
        stack: list[Iterator[Node]] = [iter([Node(ROOT, 1.0, (0.0, 0.0))])]
        while stack:
            node = next(stack[-1], None)
            if node is None:
                stack.pop()
            else:
                stack.append(self.children(node))
        if self.ahead != END:
            self.take("end", "the end of the file, for the tree is complete")

    def children(self, node: Node) -> Iterator[Node]:
        kind = self.take("word", "a node: c, p or t")
        if kind not in ("c", "p", "t"):
            raise ProblemError(f"found {kind!r}; expected a node: c, p or t")
        self.label("the name of the node in quotation marks")
        if kind == "t":
            self.walk.leaf(node.history, node.probability, self.added(node))
            return iter(())
        return self.chance(node) if kind == "c" else self.choice(node)

    def chance(self, node: Node) -> Iterator[Node]:
        event = self.declaration("event", self.integer("the number of the event", 1), self.event)
        payoffs = self.added(node)
        return (Node(node.history, node.probability * p, payoffs) for p in event.probabilities)

    def choice(self, node: Node) -> Iterator[Node]:
        player = self.integer("the number of the player", 1) - 1
        if player > 1:
            raise ProblemError(f"the node belongs to player {player + 1}; expected 1 or 2")
        number = self.integer("the number of the information set", 1)
        choice = self.declaration(f"player {player + 1}'s information set", number, self.information_set)
        start = self.walk.decision(player, number, choice.label or str(number), choice.actions, node.history)
        payoffs = self.added(node)
        sequences = range(start, start + len(choice.actions))
        return (Node(after(node.history, player, s), node.probability, payoffs) for s in sequences)

    def added(self, node: Node) -> tuple[float, float]:
        """The payoffs so far plus those of the outcome that is read next; the number 0 means no outcome."""
        number = self.integer("the number of the outcome", 0)
        outcome = self.declaration("outcome", number, self.outcome) if number else NOTHING
        return node.payoffs[0] + outcome.payoffs[0], node.payoffs[1] + outcome.payoffs[1]

    # -- declarations, which may be left out when they are repeated --------------------------------------------------

    def declaration(self, kind: str, number: int, read: Any) -> Any:
        known = self.declared.get((kind, number))
        if self.ahead[0] != "text":
            if known is None:
                raise ProblemError(f"{kind} {number} is not declared before; expected its name and what it holds")
            return known
        found = read()
        if known is not None and found != known:
            raise ProblemError(f"{kind} {number} is declared differently before; expected {known.label!r} as it was")
        self.declared[kind, number] = found
        return found

    def event(self) -> Chance:
        label = self.label("the name of the event")
        actions, probabilities = [], []
        self.sign("{")
        while not self.closes():
            actions.append(self.label("the name of an action in quotation marks"))
            probabilities.append(self.number("a probability"))
        self.sign("}")
        check_probabilities(probabilities)
        return Chance(label, tuple(actions), tuple(probabilities))

    def information_set(self) -> Choice:
        label = self.label("the name of the information set")
        actions = self.labels("the name of an action in quotation marks")
        if not actions:
            raise ProblemError(f"information set {label!r} has no actions; expected one at least")
        return Choice(label, actions)

    def outcome(self) -> Outcome:
        label = self.label("the name of the outcome")
        self.sign("{")
        payoffs = []
        while not self.closes():
            payoffs.append(self.number("a payoff"))
            if self.ahead == ("sign", ","):
                self.sign(",")
        self.sign("}")
        if len(payoffs) != 2:
            raise ProblemError(f"outcome {label!r} has {len(payoffs)} payoffs; expected 2, one for each player")
        return Outcome(label, (payoffs[0], payoffs[1]))
