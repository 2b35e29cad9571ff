r"""Counterfactual regret minimisation on game trees, with discounted regrets, by products with A and passes over trees.

Problem:    min_x max_y x'Ay over the strategies of two players in sequence form.
Recursion:  in turns, a player computes the values q of all sequences against the other's strategy, from the last
            choices to the first, and adds q minus the value of the information set to the regrets R of its actions:
            R <- max(d_k R + q - value, 0) with d_k = k^1.5/(k^1.5 + 1). Each set then plays in proportion to R.
            The answer is the average of all strategies, that of step k with the weight k^4.
Guarantee:  the exploitability of the average is O(1/sqrt(k)) in theory, and falls about as 1/k in practice. It is
            computed exactly, by best responses.
Reference:  M. Zinkevich et al., Regret minimization in games with incomplete information, NeurIPS 2007; O. Tammelin,
            Solving large imperfect information games using CFR+, 2014; N. Brown and T. Sandholm, Solving
            imperfect-information games via discounted regret minimization, AAAI 2019; H. Xu et al., Minimizing weighted
            counterfactual regret with optimistic online mirror descent, IJCAI 2024.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from saddlepoint.apps.sequences import Sequences
from saddlepoint.ground.arrays import Array

DISCOUNT = 1.5  # exponent of the steps in the factor of old regrets
AVERAGE = 4  # exponent of the steps in the weights of the average
FIRST_CHECK, GROWTH = 16, 1.1  # the step after which the average is evaluated first, and the factor to the next one


class Pass(NamedTuple):
    """One level of a tree, in the order in which ``Tree`` keeps the sequences."""

    own: slice  # the sequences of the level
    sets: slice  # its information sets
    offsets: Array  # the position in ``own`` where each set begins
    before: Array  # the sequence before each of the sequences
    parents: Array  # the different sequences before the sets
    groups: Array  # the position among the sets where those with the same parent begin


class Tree:
    """The sequences of a player, ordered by levels and parents, so that a pass over them takes few operations.

    Args:
        sequences: the sequences.

    Attributes:
        order: the given numbers of the sequences, in the order that is kept here.
        passes: the levels, from the first choices to the last.
        counts, starts: how many actions each information set has, and where they begin after the empty sequence.
        equal: the probability of each action if all actions of its set have the same.
    """

    def __init__(self, sequences: Sequences) -> None:
        levels, order = [], [np.zeros(1, dtype=np.intp)]
        depth = np.zeros(sequences.size, dtype=np.intp)
        for k, level in enumerate(sequences.levels):
            depth[level.sequences] = k + 1
        place = np.zeros(sequences.size, dtype=np.intp)
        end = 1
        for k in range(len(sequences.levels)):
            sets = np.flatnonzero(depth[sequences.starts] == k + 1)
            sets = sets[np.argsort(place[sequences.parents[sets]], kind="stable")]
            counts = sequences.counts[sets]
            offsets = np.cumsum(counts) - counts
            own = np.repeat(sequences.starts[sets] - offsets, counts) + np.arange(counts.sum())
            place[own] = end + np.arange(len(own))
            levels.append((sets, end, counts, offsets))
            order.append(own)
            end += len(own)
        self.order = np.concatenate(order)
        self.passes: list[Pass] = []
        first = 0
        for sets, start, counts, offsets in levels:
            parents = place[sequences.parents[sets]]
            different, groups = np.unique(parents, return_index=True)
            end = start + int(counts.sum())
            self.passes.append(
                Pass(
                    slice(start, end),
                    slice(first, first + len(sets)),
                    offsets,
                    np.repeat(parents, counts),
                    different,
                    groups,
                )
            )
            first += len(sets)
        self.counts = np.concatenate([counts for _, _, counts, _ in levels]) if levels else np.zeros(0, dtype=np.intp)
        self.starts = np.cumsum(self.counts) - self.counts
        self.equal = np.repeat(1.0 / self.counts, self.counts)

    def values(self, weights: Array, chances: Array) -> tuple[Array, Array]:
        """The values of all sequences, and of all information sets, if the player chooses by ``chances``.

        Args:
            weights: the payoffs of the sequences themselves, which are overwritten by the values.
            chances: the probability of each choice at its set.
        """
        sets = np.empty(len(self.counts))
        for level in reversed(self.passes):
            found = np.add.reduceat(weights[level.own] * chances[level.own], level.offsets)
            sets[level.sets] = found
            weights[level.parents] += np.add.reduceat(found, level.groups)
        return weights, sets

    def chances(self, regrets: Array) -> Array:
        """Choices in proportion to the regrets, which are not negative; equal where all are 0."""
        chances = np.ones(len(regrets))
        if len(self.counts):
            sums = np.repeat(np.add.reduceat(regrets[1:], self.starts), self.counts)
            chances[1:] = np.where(sums > 0.0, regrets[1:] / np.where(sums > 0.0, sums, 1.0), self.equal)
        return chances

    def plan(self, chances: Array) -> Array:
        """The probabilities of the sequences."""
        plan = chances.copy()
        for level in self.passes:
            plan[level.own] *= plan[level.before]
        return plan


class Player:
    """One player of the iteration: the regrets, the present strategy and the average.

    Args:
        tree: the player's sequences; all vectors are in its order.
        payoff: the matrix that gives the payoffs of the sequences from the other player's strategy.
        chances: the probability of each choice at its information set, to begin with.
    """

    def __init__(self, tree: Tree, payoff: Any, chances: Array) -> None:
        self.tree, self.payoff = tree, payoff
        self.regrets = chances * float(abs(payoff).max() if payoff.nnz else 1.0)  # as large as the first regrets
        self.chances = self.tree.chances(self.regrets)
        self.plan = self.tree.plan(self.chances)
        self.average = self.plan.copy()

    def step(self, other: Array, k: int, weight: float) -> None:
        """Respond to the strategy of the other player in step k; ``weight`` is that of the average.

        Regrets and averages are new arrays, so that a state which was taken before stays as it is.
        """
        values, sets = self.tree.values(self.payoff @ other, self.chances)
        regrets = self.regrets * (float(k) ** DISCOUNT / (float(k) ** DISCOUNT + 1.0))
        regrets[1:] += values[1:] - np.repeat(sets, self.tree.counts)
        self.regrets = np.maximum(regrets, 0.0, out=regrets)
        self.chances = self.tree.chances(regrets)
        self.plan = self.tree.plan(self.chances)
        self.average = self.average + weight * (self.plan - self.average)

    def restore(self, regrets: Array, average: Array) -> None:
        """Continue from earlier regrets and an earlier average."""
        self.regrets, self.average = regrets, average
        self.chances = self.tree.chances(self.regrets)
        self.plan = self.tree.plan(self.chances)

    def strategy(self) -> Array:
        """The average in the order of the sequences that were given."""
        found = np.empty(len(self.average))
        found[self.tree.order] = self.average
        return found


class RegretMatching:
    """The iteration for both players: ``step`` takes one step, and ``strategies`` are the averages so far.

    Args:
        payoff: A.
        sequences_x, sequences_y: the strategies of the players; x minimises x'Ay, and y maximises it.
        start: strategies to begin with.

    Attributes:
        steps: steps so far.
    """

    def __init__(
        self,
        payoff: csr_array,
        sequences_x: Sequences,
        sequences_y: Sequences,
        start: tuple[Array, Array] | None = None,
    ) -> None:
        x, y = (sequences_x.start, sequences_y.start) if start is None else start
        tree_x, tree_y = Tree(sequences_x), Tree(sequences_y)
        A = csr_array(payoff)[tree_x.order][:, tree_y.order]
        self.x = Player(tree_x, csr_array(-A), sequences_x.chances(x)[tree_x.order])
        self.y = Player(tree_y, csr_array(A.T), sequences_y.chances(y)[tree_y.order])
        self.steps, self.next_check, self.total = 0, FIRST_CHECK, 0.0

    def step(self) -> None:
        """One step of x, then one of y against the new strategy of x."""
        self.steps += 1
        self.total += float(self.steps) ** AVERAGE
        weight = float(self.steps) ** AVERAGE / self.total
        self.x.step(self.y.plan, self.steps, weight)
        self.y.step(self.x.plan, self.steps, weight)

    def is_check_due(self) -> bool:
        """Whether the averages have changed enough since the last check; the next one is planned if so."""
        if self.steps < self.next_check:
            return False
        self.next_check = max(self.steps + 1, int(GROWTH * self.steps))
        return True

    @property
    def strategies(self) -> tuple[Array, Array]:
        """The averages of x and y."""
        return self.x.strategy(), self.y.strategy()

    # -- the state, for files ----------------------------------------------------------------------------------------

    def state(self) -> tuple[dict[str, float], list[Array]]:
        """Numbers and arrays from which ``restore`` goes on without a difference."""
        numbers = {"steps": self.steps, "next_check": self.next_check, "total": self.total}
        return numbers, [self.x.regrets, self.x.average, self.y.regrets, self.y.average]

    def restore(self, numbers: dict[str, float], arrays: list[Array]) -> None:
        """Continue from a ``state``; a ValueError says why that is none of this game."""
        steps, check, total = int(numbers["steps"]), int(numbers["next_check"]), float(numbers["total"])
        if steps < 0 or not 0.0 <= total < np.inf or check < 0:
            raise ValueError("its numbers of steps are not possible")
        players = (self.x, self.x, self.y, self.y)
        if len(arrays) != len(players):
            raise ValueError(f"it has {len(arrays)} arrays; expected {len(players)}")
        for array, player in zip(arrays, players, strict=True):
            if array.dtype != np.float64 or array.shape != player.regrets.shape:
                raise ValueError(f"it has an array of {array.dtype} and shape {list(array.shape)}")
            if not np.isfinite(array).all() or array.min() < 0.0:
                raise ValueError("it has numbers that are negative or not finite")
        self.steps, self.next_check, self.total = steps, check, total
        self.x.restore(arrays[0], arrays[1])
        self.y.restore(arrays[2], arrays[3])
