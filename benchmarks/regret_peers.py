"""CFR+ and discounted CFR as OpenSpiel defines them, by array operations on the sequence form of a game.

OpenSpiel visits every node of the tree in each step, and its best responses keep the whole tree in memory. Here a step
takes one product with the payoffs and one pass over the information sets for each player, as one of ``cfr`` in this
library does. `tests/test_regret_peers.py` compares the average strategies with those of OpenSpiel.

References: O. Tammelin, Solving large imperfect information games using CFR+, 2014; N. Brown and T. Sandholm, Solving
imperfect-information games via discounted regret minimization, AAAI 2019.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from saddlepoint.apps import ExtensiveGame
from saddlepoint.apps.regret_matching import Tree
from saddlepoint.ground.arrays import Array

ALPHA, GAMMA = 1.5, 2.0  # exponents of the steps in the discount of positive regrets, and in the weights of averages
NEGATIVE = 0.5  # factor of negative regrets in each step of discounted CFR, for its exponent beta = 0


class _Player:
    """The regrets of one player, the present strategy, and the weighted sum of all strategies."""

    def __init__(self, tree: Tree, payoff: Any) -> None:
        self.tree, self.payoff = tree, payoff
        self.regrets = np.zeros(len(tree.order))
        self.total = np.zeros(len(tree.order))
        self.respond()

    def respond(self) -> None:
        """Choose in proportion to the positive regrets."""
        self.chances = self.tree.chances(np.maximum(self.regrets, 0.0))
        self.plan = self.tree.plan(self.chances)

    def learn(self, other: Array, weight: float) -> None:
        """Add the regrets of the present strategy against the other player's, and the strategy to the sum."""
        self.total += weight * self.plan
        values, sets = self.tree.values(self.payoff @ other, self.chances)
        self.regrets[1:] += values[1:] - np.repeat(sets, self.tree.counts)


class CFRPlus:
    """CFR+: the players learn in turns, regrets are not negative, and strategy k has the weight k in the average.

    Args:
        game: the game.

    Attributes:
        steps: steps so far.
    """

    def __init__(self, game: ExtensiveGame) -> None:
        tree_x, tree_y = Tree(game.sequences_x), Tree(game.sequences_y)
        A = csr_array(game.payoff)[tree_x.order][:, tree_y.order]
        self.x, self.y = _Player(tree_x, csr_array(-A)), _Player(tree_y, csr_array(A.T))
        self.steps = 0

    def step(self) -> None:
        """One step of the first player, y, and one of the second, x, against the new strategy of the first."""
        self.steps += 1
        for player, other in ((self.y, self.x), (self.x, self.y)):
            player.learn(other.plan, self.weight())
            self.discount(player)
            player.respond()

    def weight(self) -> float:
        """The weight of the strategy of this step."""
        return float(self.steps)

    def discount(self, player: _Player) -> None:
        """Forget negative regrets."""
        np.maximum(player.regrets, 0.0, out=player.regrets)

    @property
    def strategies(self) -> tuple[Array, Array]:
        """The averages of x and y, in the order of the sequences of the game; sums that ``game.strategy`` scales."""
        found = []
        for player in (self.x, self.y):
            plan = np.empty(len(player.total))
            plan[player.tree.order] = player.total
            found.append(plan)
        return found[0], found[1]


class DiscountedCFR(CFRPlus):
    """Discounted CFR with alpha = 3/2, beta = 0 and gamma = 2, the defaults of OpenSpiel."""

    def weight(self) -> float:
        """The step to the power gamma."""
        return math.pow(self.steps, GAMMA)

    def discount(self, player: _Player) -> None:
        """Multiply positive regrets by k^alpha/(k^alpha + 1), and negative ones by one half."""
        power = float(self.steps) ** ALPHA
        player.regrets *= np.where(player.regrets >= 0.0, power / (power + 1.0), NEGATIVE)


def strategies_of(policy: Any, game: ExtensiveGame) -> tuple[Array, Array]:
    """The strategies of x and y of a policy of OpenSpiel, whose information sets have the names of those of the game.

    Args:
        policy: a function from the name of an information set to the probabilities of its actions, in their order.
        game: the game, read by ``ExtensiveGame.from_openspiel``.
    """
    found = []
    for sequences in (game.sequences_x, game.sequences_y):
        chances = np.ones(sequences.size)
        for node, start in zip(sequences.sets, sequences.starts.tolist(), strict=True):
            chances[start : start + len(node.actions)] = policy(node.name)
        found.append(sequences.realised(chances))
    return found[0], found[1]
