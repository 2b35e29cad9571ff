"""The strategies of one player of an extensive game with perfect recall: a polytope with a cheap best response."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from saddlepoint.ground.arrays import Array
from saddlepoint.ground.errors import ProblemError
from saddlepoint.problems.files.game_tree import InformationSet
from saddlepoint.theory.exploitability import MARGIN, UNIT


class Level(NamedTuple):
    """The information sets that have the same number of earlier choices of their player."""

    sequences: Array  # the sequences of these sets, set by set
    before: Array  # the sequence before each of the sequences
    offsets: Array  # the position in ``sequences`` where each set begins
    parents: Array  # the sequence before each set


class Sequences:
    """All v >= 0 with E v = e, where v_s is the probability that the player makes all choices of sequence s.

    Row 0 of E says v_0 = 1 for the empty sequence. Each information set has one further row: the entries of its
    sequences add up to the entry of the sequence before it. The passes over the tree go from level to level, with array
    operations within a level.

    Args:
        sets: the information sets; each comes after the set of its parent sequence.
        player: "first" or "second", for error messages.
    """

    def __init__(self, sets: Iterable[Any], player: str) -> None:
        self.player = player
        self.sets = _checked(sets, player)
        self.counts = np.array([len(node.actions) for node in self.sets], dtype=np.intp)
        self.starts = 1 + np.cumsum(self.counts) - self.counts
        self.parents = np.array([node.parent for node in self.sets], dtype=np.intp)
        self.size = 1 + int(self.counts.sum())

    def check_reached(self, ends: list[int]) -> None:
        """Refuse a sequence that is neither among the ``ends``, those of leaves, nor leads to an information set."""
        reached = np.zeros(self.size, dtype=bool)
        reached[self.parents] = True
        reached[ends] = True
        for sequence in np.flatnonzero(~reached)[:1].tolist():
            raise ProblemError(
                f"sequence {sequence} of the {self.player} player, {self.describe(sequence)}, reaches no payoff; "
                "expected one, which is 0 if the game ends in a draw"
            )

    def describe(self, sequence: int) -> str:
        """A sequence in words, by its last choice."""
        if sequence == 0:
            return "the empty one"
        i = int(np.searchsorted(self.starts, sequence, side="right")) - 1
        return f"{self.sets[i].actions[sequence - int(self.starts[i])]!r} at {self.sets[i].name!r}"

    @cached_property
    def levels(self) -> list[Level]:
        """The levels of the information sets, from the first choices of the player to the last."""
        depth = np.zeros(self.size, dtype=np.intp)  # of sequences: choices made
        for start, count, parent in zip(self.starts.tolist(), self.counts.tolist(), self.parents.tolist(), strict=True):
            depth[start : start + count] = depth[parent] + 1
        of_sets = depth[self.starts]
        order = np.argsort(of_sets, kind="stable")
        cuts = np.flatnonzero(np.diff(of_sets[order])) + 1
        return [self._level(sets) for sets in np.split(order, cuts) if sets.size]

    def _level(self, sets: Array) -> Level:
        counts = self.counts[sets]
        offsets = np.cumsum(counts) - counts
        sequences = np.repeat(self.starts[sets] - offsets, counts) + np.arange(counts.sum())
        return Level(sequences, np.repeat(self.parents[sets], counts), offsets, self.parents[sets])

    @cached_property
    def constraints(self) -> tuple[csr_array, Array]:
        """E, sparse, and e."""
        sets = np.arange(1, len(self.sets) + 1)
        rows = np.concatenate([[0], np.repeat(sets, self.counts), sets])
        columns = np.concatenate([np.arange(self.size), self.parents])
        values = np.concatenate([np.ones(self.size), -np.ones(len(self.sets))])
        e = np.zeros(len(self.sets) + 1)
        e[0] = 1.0
        return csr_array((values, (rows, columns)), shape=(len(e), self.size)), e

    @property
    def start(self) -> Array:
        """The strategy that chooses all actions with equal probability."""
        return self.nearest(np.zeros(self.size))

    def nearest(self, vector: Array) -> Array:
        """The strategy whose choices have the probabilities of ``chances(vector)``."""
        return self.realised(self.chances(vector))

    def best(self, weights: Array) -> tuple[float, Array]:
        """max <weights, v>, and the pure strategy that attains it; of equally good actions, the first one is taken."""
        values, best = self._best_values(weights)
        chances = np.zeros(self.size)
        chances[0] = 1.0
        if self.sets:
            good = np.flatnonzero(values[1:] == np.repeat(best, self.counts))
            chances[1 + good[np.searchsorted(good, self.starts - 1)]] = 1.0
        return float(values[0]), self.realised(chances)

    def multipliers(self, weights: Array) -> tuple[Array, Array]:
        """The multipliers m of E v = e and u >= 0 of v >= 0 with E'm - u = weights, of max <weights, v>.

        m has the value of the best response to each information set, and u what an action loses against the best one.
        """
        values, best = self._best_values(weights)
        m = np.append(values[0], best)
        return m, np.append(0.0, np.repeat(best, self.counts) - values[1:])

    def _best_values(self, weights: Array) -> tuple[Array, Array]:
        """The values of all sequences, and of all information sets, if the best action is chosen at every set."""
        values = np.array(weights, dtype=np.float64)
        for level in reversed(self.levels):
            np.add.at(values, level.parents, np.maximum.reduceat(values[level.sequences], level.offsets))
        return values, np.maximum.reduceat(values[1:], self.starts - 1) if self.sets else np.zeros(0)

    def best_bound(self, weights: Array, errors: Array) -> float:
        """A proven upper bound on max <w, v>, for all w with |w - weights| <= errors.

        It is the recursion of ``best``, in which the value of every sequence is rounded up by what its sum may lose.
        """
        values, sizes = weights + errors, np.abs(weights) + errors
        terms = 2.0 + np.bincount(self.parents, minlength=self.size)
        lost = 2.0 * UNIT * terms  # twice the first order of the error of the sum, relative to its terms
        for level in reversed(self.levels):
            own = level.sequences
            upper = values[own] + lost[own] * sizes[own]
            best = np.nextafter(np.maximum.reduceat(upper, level.offsets), np.inf)
            np.add.at(values, level.parents, best)
            np.add.at(sizes, level.parents, np.abs(best))
        return float(np.nextafter(values[0] + lost[0] * sizes[0], np.inf))

    def rounding(self, vector: Array) -> Array:
        """Bounds on the entries of vector - v, where v is the exact strategy with the ``chances`` of the vector.

        At an information set where the entries s of max(vector, 0) have the sum t, those of v are s/t times the entry
        of v for the sequence before it. So errors, relative to s, grow by the difference of that entry and t.
        """
        s = np.maximum(vector, 0.0).astype(np.float64)
        error = s - vector
        change = np.zeros(self.size)  # |v - s|
        change[0] = abs(1.0 - s[0])
        for level in self.levels:
            own, before = level.sequences, level.before
            counts = np.diff(np.append(level.offsets, len(own)))
            total = np.add.reduceat(s[own], level.offsets)
            parent = s[level.parents]
            off = np.abs(total - parent) + change[level.parents] + 2.0 * UNIT * counts * total
            share = np.where(total > 0.0, off / np.where(total > 0.0, total, 1.0), 0.0)
            has_chances = np.repeat(total > 0.0, counts)
            change[own] = np.where(has_chances, np.repeat(share, counts) * s[own], s[before] + change[before]) * (
                1.0 + 16.0 * UNIT * len(own) + 16.0 * UNIT
            )
        return np.asarray((error + change) * MARGIN)

    def chances(self, vector: Array) -> Array:
        """The probability of each action at its information set: in proportion to max(v, 0), or equal if all are 0."""
        v = np.maximum(vector, 0.0).astype(np.float64)
        v /= max(1.0, float(v.max()))  # so that no sum overflows
        if self.sets:
            sums = np.repeat(np.add.reduceat(v[1:], self.starts - 1), self.counts)
            v[1:] = np.where(sums > 0.0, v[1:], 1.0) / np.where(sums > 0.0, sums, np.repeat(self.counts, self.counts))
        v[0] = 1.0
        return v

    def realised(self, chances: Array) -> Array:
        """The strategy v that makes each choice with the given probability."""
        v = chances.copy()
        for level in self.levels:
            v[level.sequences] *= v[level.before]
        return v

    def violation(self, vector: Array) -> float:
        """The largest error in v >= 0 and E v = e."""
        E, e = self.constraints
        return max(float(np.abs(E @ vector - e).max()), -float(vector.min()), 0.0)


def _checked(sets: Iterable[Any], player: str) -> tuple[InformationSet, ...]:
    checked: list[InformationSet] = []
    names: set[str] = set()
    size = 1
    for i, given in enumerate(sets):
        if not hasattr(given, "__len__") or len(given) != 3 or isinstance(given[1], str) or not np.iterable(given[1]):
            raise ProblemError(
                f"information set {i} of the {player} player is {given!r}; expected (name, actions, parent), the "
                "actions as a list"
            )
        node = InformationSet(given[0], tuple(given[1]), given[2])
        place = f"information set {i} of the {player} player, {node.name!r},"
        if node.name in names:
            raise ProblemError(f"{place} has the name of another one; expected distinct names")
        if not node.actions:
            raise ProblemError(f"{place} has no actions; expected one at least")
        if len(set(node.actions)) < len(node.actions):
            twice = next(action for j, action in enumerate(node.actions) if action in node.actions[:j])
            raise ProblemError(f"{place} has the action {twice!r} twice; expected distinct actions")
        if not isinstance(node.parent, int | np.integer) or not 0 <= node.parent < size:
            raise ProblemError(
                f"{place} follows sequence {node.parent}; expected one listed before it, 0 to {size - 1}, so that "
                "there is no cycle"
            )
        names.add(node.name)
        size += len(node.actions)
        checked.append(node._replace(parent=int(node.parent)))
    return tuple(checked)
