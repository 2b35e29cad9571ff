"""CFR+ and discounted CFR of the benchmarks are those of OpenSpiel."""

from importlib import import_module

import games
import numpy as np
import pytest
import regret_peers

from saddlepoint.apps import ExtensiveGame

pyspiel = pytest.importorskip("pyspiel")
LEDUC = "leduc_poker(suit_isomorphism=true)"


def discounted(played):
    return import_module("open_spiel.python.algorithms.discounted_cfr").DCFRSolver(played)


def as_tabular(policy):
    """A policy of OpenSpiel's Python code as one of its C++ code."""
    if hasattr(policy, "action_probability_array"):
        return import_module("open_spiel.python.policy").python_policy_to_pyspiel_policy(policy)
    return policy


@pytest.mark.parametrize(
    ("name", "ours", "theirs", "steps"),
    [
        ("kuhn_poker", regret_peers.CFRPlus, pyspiel.CFRPlusSolver, 50),
        ("kuhn_poker", regret_peers.DiscountedCFR, discounted, 50),
        (LEDUC, regret_peers.CFRPlus, pyspiel.CFRPlusSolver, 10),
        (LEDUC, regret_peers.DiscountedCFR, discounted, 3),
    ],
)
def test_the_average_strategies_are_those_of_openspiel(name, ours, theirs, steps):
    game, played = ExtensiveGame.from_openspiel(name), pyspiel.load_game(name)
    here, there = ours(game), theirs(played)
    for _ in range(steps):
        here.step()
        there.evaluate_and_update_policy()
    of_openspiel = regret_peers.strategies_of(games.probabilities(there), game)
    for player, found, expected in zip("xy", here.strategies, of_openspiel, strict=True):
        np.testing.assert_allclose(game.strategy(player, found), expected, atol=1e-12)
    gap = pyspiel.nash_conv(played, as_tabular(there.average_policy()))
    assert game.exploitability(*of_openspiel) == pytest.approx(gap, abs=1e-12)
    assert gap > 1e-3
