"""Extensive games by regret matching and by the interior-point method: passes over the tree, values and proofs."""

from __future__ import annotations

import numpy as np
import pytest

import saddlepoint as sp
from saddlepoint.apps import ExtensiveGame
from saddlepoint.apps.regret_matching import Tree, regret_matching
from saddlepoint.apps.sequences import Sequences

KUHN = ExtensiveGame.load("kuhn")
SETS = [("a", ["l", "r"], 0), ("b", ["u", "v", "w"], 1), ("c", ["l", "r"], 4), ("d", ["l", "r"], 1), ("e", ["z"], 0)]


def test_passes_over_the_tree_agree_with_those_of_the_sequences() -> None:
    sequences = Sequences(SETS, "first")
    tree, rng = Tree(sequences), np.random.default_rng(0)
    plan = sequences.nearest(rng.random(sequences.size))
    chances = sequences.chances(plan)
    np.testing.assert_allclose(tree.plan(chances[tree.order]), plan[tree.order], rtol=1e-15)
    weights = rng.standard_normal(sequences.size)
    values, _ = tree.values(weights[tree.order].copy(), chances[tree.order])
    assert values[0] == pytest.approx(weights @ plan, rel=1e-13)
    np.testing.assert_allclose(tree.chances(np.zeros(sequences.size)), sequences.chances(np.zeros(9 + 2))[tree.order])


def test_multipliers_of_a_best_response_prove_its_value() -> None:
    sequences = Sequences(SETS, "first")
    weights = np.random.default_rng(1).standard_normal(sequences.size)
    m, u = sequences.multipliers(weights)
    E, e = sequences.constraints
    np.testing.assert_allclose(E.T @ m - u, weights, atol=1e-14)
    assert u.min() >= 0.0
    assert m @ e == pytest.approx(sequences.best(weights)[0])


@pytest.mark.parametrize(("method", "tol"), [("interior-point", 1e-10), ("cfr", 1e-3)])
def test_kuhn_poker_has_its_value(method: str, tol: float) -> None:
    found = KUHN.solve(tol=tol, method=method)
    assert found.solved
    assert KUHN.exploitability(found.x, found.y) <= tol
    assert abs(found.value + 1.0 / 18.0) <= tol
    (B, _), (m, u) = KUHN.constraints_x, found.multipliers_x
    np.testing.assert_allclose(B.T @ m - u, -(KUHN.payoff @ found.y), atol=1e-12)


@pytest.mark.slow
def test_leduc_poker_is_solved_by_factorisations_within_some_dozen_steps() -> None:
    found = ExtensiveGame.load("leduc").solve(tol=1e-8)
    assert found.solved
    assert found.steps <= 40
    assert found.value == pytest.approx(-0.0856064, abs=1e-6)


def test_regret_matching_begins_from_given_strategies() -> None:
    best = KUHN.solve(tol=1e-10)
    cold, warm = (KUHN.solve(tol=1e-9, method="cfr", max_steps=20, start=start) for start in (None, (best.x, best.y)))
    assert warm.solved
    assert warm.steps == 0
    assert not cold.solved
    assert "raise max_steps or max_seconds" in cold.message
    with pytest.raises(sp.ProblemError, match="start is for the method 'cfr'"):
        KUHN.solve(method="newton", start=(best.x, best.y))


def test_callbacks_and_time_end_a_run() -> None:
    seen = []

    def watch(found: object) -> None:
        seen.append(found)
        if len(seen) == 3:
            raise StopIteration

    for method in ("cfr", "interior-point"):
        seen.clear()
        found = KUHN.solve(tol=1e-12, method=method, callback=watch)
        assert len(seen) == 3
        assert "stopped by the callback" in found.message
        assert len(found.history) == 3
    assert not KUHN.solve(tol=1e-12, method="cfr", max_seconds=1e-9).solved
    with pytest.raises(sp.ProblemError, match=r"tol is 0\.0; expected a positive number"):
        KUHN.solve(tol=0.0)


def test_a_game_without_choices() -> None:
    game = ExtensiveGame([], [], [(0, 0, 2.0)], "nothing to choose")
    found = game.solve()
    assert found.solved
    assert found.value == 2.0
    _, x, y = next(regret_matching(game.payoff, game.sequences_x, game.sequences_y))
    assert (x.tolist(), y.tolist()) == ([1.0], [1.0])
