"""The sequence form of a two-player game, built from the nodes of its tree."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import NamedTuple

from saddlepoint.ground.errors import ProblemError

History = tuple[int, int]  # the last sequence of the first and of the second player
ROOT: History = (0, 0)
PLAYERS = ("first", "second")
ROUNDING = 1e-9  # largest accepted error of probabilities that add up to 1, and of payoffs with a constant sum


class InformationSet(NamedTuple):
    """Nodes that a player cannot tell apart: a name, the actions there, and the player's sequence that leads to them.

    Sequences are numbered: 0 is the empty one, and the actions of the information sets follow, set by set.
    """

    name: str
    actions: tuple[str, ...]
    parent: int


class SequenceForm(NamedTuple):
    """A game in sequence form: payoffs are (second's sequence, first's sequence, probability times payoff)."""

    title: str
    first: list[InformationSet]
    second: list[InformationSet]
    payoffs: list[tuple[int, int, float]]


class TreeWalk:
    """Collects the nodes of a tree, parents before their children; raises a ProblemError if the game is not valid."""

    def __init__(self) -> None:
        self._sets: tuple[list[InformationSet], list[InformationSet]] = ([], [])
        self._keys: tuple[dict[Hashable, int], dict[Hashable, int]] = ({}, {})  # positions of information sets
        self._starts: tuple[list[int], list[int]] = ([], [])  # sequences of their first actions
        self._sizes = [1, 1]
        self._payoffs: dict[History, float] = {}
        self._total: float | None = None

    def decision(self, player: int, key: Hashable, name: str, actions: Sequence[str], history: History) -> int:
        """Add a node of ``player`` in the information set ``key``; return the sequence of its first action."""
        here = InformationSet(name, tuple(actions), history[player])
        if key not in self._keys[player]:
            self._keys[player][key] = len(self._sets[player])
            self._sets[player].append(here)
            self._starts[player].append(self._sizes[player])
            self._sizes[player] += len(here.actions)
        index = self._keys[player][key]
        known = self._sets[player][index]
        whose = f"information set {name!r} of the {PLAYERS[player]} player"
        if known.actions != here.actions:
            raise ProblemError(
                f"{whose} has the actions {', '.join(here.actions)} here and {', '.join(known.actions)} elsewhere; "
                "expected the same in all its nodes"
            )
        if known.parent != here.parent:
            raise ProblemError(
                f"{whose} is reached {self._way_to(player, here.parent)} and {self._way_to(player, known.parent)}; "
                "expected perfect recall: no player forgets an own choice"
            )
        return self._starts[player][index]

    def leaf(self, history: History, probability: float, payoffs: tuple[float, float]) -> None:
        """Add a leaf; ``probability`` is the product of the probabilities of the chance moves that lead to it."""
        total = payoffs[0] + payoffs[1]
        if self._total is None:
            self._total = total
        if not abs(total - self._total) <= ROUNDING * max(1.0, abs(payoffs[0]) + abs(payoffs[1])):
            raise ProblemError(
                f"the payoffs {payoffs[0]:g} and {payoffs[1]:g} add up to {total:g}, those of the first leaf to "
                f"{self._total:g}; expected a zero-sum (or constant-sum) game"
            )
        self._payoffs[history] = self._payoffs.get(history, 0.0) + probability * payoffs[0]

    def form(self, title: str) -> SequenceForm:
        """The sequence form. If the names of a player's information sets are not distinct, their keys are added."""
        sets = []
        for known, keys in zip(self._sets, self._keys, strict=True):
            distinct = len({node.name for node in known}) == len(known)
            pairs = zip(known, keys, strict=True)
            sets.append(known if distinct else [node._replace(name=f"{node.name} #{key}") for node, key in pairs])
        payoffs = [(second, first, payoff) for (first, second), payoff in self._payoffs.items()]
        return SequenceForm(title, sets[0], sets[1], payoffs)

    def _way_to(self, player: int, sequence: int) -> str:
        if sequence == 0:
            return "before any choice"
        for known, start in zip(self._sets[player], self._starts[player], strict=True):
            if sequence < start + len(known.actions):
                return f"after {known.actions[sequence - start]!r} at {known.name!r}"
        raise IndexError(sequence)


def after(history: History, player: int, sequence: int) -> History:
    """The history when ``player`` has made the last choice of ``sequence``."""
    return (sequence, history[1]) if player == 0 else (history[0], sequence)


def check_probabilities(probabilities: Iterable[float]) -> None:
    """Raise a ProblemError unless the numbers are a probability distribution."""
    numbers = list(probabilities)
    for number in numbers:
        if not 0.0 <= number <= 1.0:
            raise ProblemError(f"chance has a probability {number:g}; expected one from 0 to 1")
    if not abs(sum(numbers) - 1.0) <= ROUNDING:
        raise ProblemError(
            f"the probabilities of chance add up to {sum(numbers):.10g}; expected 1 (1/3 may be written so)"
        )
