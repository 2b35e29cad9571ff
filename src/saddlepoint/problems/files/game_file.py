"""Two-player games in sequence form from and to JSON files; docs/game-file.md describes the format."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from saddlepoint.ground.errors import ProblemError
from saddlepoint.ground.file_writing import write_text
from saddlepoint.ground.validation import did_you_mean, short_repr
from saddlepoint.problems.files.game_tree import InformationSet, SequenceForm
from saddlepoint.problems.files.reading import MEMORY_LIMIT, Memory, read_text

FORMAT, VERSION = "saddlepoint-game", 1
KEYS = ("format", "version", "title", "first", "second", "payoffs")
SET_KEYS = ("name", "parent", "actions")
EXPANSION = 60  # most bytes of memory for a byte of text


def read_game(path: Path, memory_limit: int = MEMORY_LIMIT) -> SequenceForm:
    """Read a game file; a ProblemError names the file and the key that is wrong."""
    return _Reader(path).game(read_text(path, Memory(memory_limit), EXPANSION))


def write_game(form: SequenceForm, path: Path) -> None:
    """Write a game file, with one line for each information set and each payoff."""
    lines = [
        f'"format": {_text(FORMAT)}',
        f'"version": {VERSION}',
        f'"title": {_text(form.title)}',
        f'"first": {_lines(_set_lines(form.first))}',
        f'"second": {_lines(_set_lines(form.second))}',
        f'"payoffs": {_lines(_text(list(payoff)) for payoff in form.payoffs)}',
    ]
    text = "{\n" + ",\n".join(lines) + "\n}\n"
    try:
        write_text(path, text)
    except OSError as error:
        raise ProblemError(f"{path} cannot be written: {error.strerror or error}") from None


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def _lines(items: Iterable[str]) -> str:
    body = ",\n".join(items)
    return f"[\n{body}\n]" if body else "[]"


def _set_lines(sets: list[InformationSet]) -> Iterable[str]:
    number = 1
    for name, actions, parent in sets:
        numbered = {action: number + i for i, action in enumerate(actions)}
        yield _text({"name": name, "parent": parent, "actions": numbered})
        number += len(actions)


class _Reader:
    """Reads one document; its errors name the file and the key."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def refusal(self, complaint: str) -> ProblemError:
        return ProblemError(f"{self.path}: {complaint}")

    def game(self, text: str) -> SequenceForm:
        try:
            document = json.loads(text, object_pairs_hook=self.distinct)
        except ProblemError:
            raise
        except RecursionError:
            raise self.refusal("not valid JSON for a game: lists or objects are nested too deeply") from None
        except ValueError as error:
            raise self.refusal(f"not valid JSON: {error}") from None
        self.keys(document, KEYS, "the document")
        if document["format"] != FORMAT:
            raise self.refusal(f"key 'format' is {short_repr(document['format'])}; expected {FORMAT!r}")
        if self.integer(document["version"], "key 'version'") != VERSION:
            raise self.refusal(f"key 'version' is {document['version']}; this version of saddlepoint reads {VERSION}")
        title = self.string(document["title"], "key 'title'")
        first, second = (self.sets(document[player], player) for player in ("first", "second"))
        entries = self.items(document["payoffs"], "key 'payoffs'")
        return SequenceForm(title, first, second, [self.payoff(entry, i) for i, entry in enumerate(entries)])

    def distinct(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        table = dict(pairs)
        if len(table) < len(pairs):
            (twice, _), *_ = Counter(key for key, _ in pairs).most_common(1)
            raise self.refusal(f"key {short_repr(twice)} appears twice in {short_repr(table)}; expected distinct keys")
        return table

    def keys(self, table: Any, expected: tuple[str, ...], place: str) -> None:
        if not isinstance(table, dict):
            raise self.refusal(
                f"{place} is {short_repr(table)}; expected an object with the keys {', '.join(expected)}"
            )
        for key in table:
            if key not in expected:
                near = did_you_mean(key, expected)
                raise self.refusal(
                    f"{place} has the unknown key {short_repr(key)}; expected {', '.join(expected)}{near}"
                )
        for key in expected:
            if key not in table:
                raise self.refusal(f"{place} lacks the key {key!r}; expected {', '.join(expected)}")

    def string(self, value: Any, place: str) -> str:
        if not isinstance(value, str):
            raise self.refusal(f"{place} is {short_repr(value)}; expected a text")
        if any(0xD800 <= ord(letter) < 0xE000 for letter in value):
            raise self.refusal(f"{place} is {short_repr(value)}, which holds an unpaired surrogate; expected a text")
        return value

    def integer(self, value: Any, place: str) -> int:
        if isinstance(value, bool) or not isinstance(value, int):
            raise self.refusal(f"{place} is {short_repr(value)}; expected a whole number")
        return value

    def items(self, value: Any, place: str) -> list[Any]:
        if not isinstance(value, list):
            raise self.refusal(f"{place} is {short_repr(value)}; expected a list")
        return value

    def sets(self, value: Any, player: str) -> list[InformationSet]:
        sets, number = [], 1
        for i, entry in enumerate(self.items(value, f"key {player!r}")):
            place = f"{player}[{i}]"
            self.keys(entry, SET_KEYS, place)
            name = self.string(entry["name"], f"{place}.name")
            parent = self.integer(entry["parent"], f"{place}.parent")
            if not isinstance(entry["actions"], dict):
                raise self.refusal(
                    f"{place}.actions is {short_repr(entry['actions'])}; expected an object of action: number"
                )
            for action, value in entry["actions"].items():
                self.string(action, f"a key of {place}.actions")
                if self.integer(value, f"{place}.actions[{action!r}]") != number:
                    raise self.refusal(f"{place}.actions[{action!r}] is {value}; expected {number}, the next sequence")
                number += 1
            sets.append(InformationSet(name, tuple(entry["actions"]), parent))
        return sets

    def payoff(self, entry: Any, i: int) -> tuple[int, int, float]:
        place = f"payoffs[{i}]"
        if not isinstance(entry, list) or len(entry) != 3:
            raise self.refusal(
                f"{place} is {short_repr(entry)}; expected [second's sequence, first's sequence, payoff]"
            )
        second, first, payoff = entry
        if isinstance(payoff, bool) or not isinstance(payoff, int | float) or not _finite(payoff):
            raise self.refusal(f"{place} has the payoff {short_repr(payoff)}; expected a finite number")
        return self.integer(second, f"{place}[0]"), self.integer(first, f"{place}[1]"), float(payoff)


def _finite(value: float) -> bool:
    try:
        return math.isfinite(float(value))
    except OverflowError:
        return False
