"""Extensive games by regret matching and by the interior-point method: passes over the tree, values and proofs."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

import saddlepoint as sp
from saddlepoint.apps import ExtensiveGame, tree_solver
from saddlepoint.apps.regret_matching import RegretMatching, Tree
from saddlepoint.apps.sequences import Sequences
from saddlepoint.solving.checkpoint.file import Content, read, write

KUHN = ExtensiveGame.load("kuhn")
SETS = [("a", ["l", "r"], 0), ("b", ["u", "v", "w"], 1), ("c", ["l", "r"], 4), ("d", ["l", "r"], 1), ("e", ["z"], 0)]


def test_passes_over_the_tree_agree_with_those_over_the_sequences() -> None:
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
    assert "raise the limits" in cold.message
    with pytest.raises(sp.ProblemError, match="start is for the methods 'cfr' and 'interior-point'"):
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


def test_a_game_without_choices_is_solved() -> None:
    game = ExtensiveGame([], [], [(0, 0, 2.0)], "nothing to choose")
    found = game.solve()
    assert found.solved
    assert found.value == 2.0
    matching = RegretMatching(game.payoff, game.sequences_x, game.sequences_y)
    matching.step()
    x, y = matching.strategies
    assert (x.tolist(), y.tolist()) == ([1.0], [1.0])


# -- checkpoints -------------------------------------------------------------------------------------------------------


def test_a_run_goes_on_from_its_file_without_a_difference(tmp_path: Path) -> None:
    file = tmp_path / "kuhn.ckpt"
    whole = KUHN.solve(tol=1e-9, method="cfr", max_steps=300)
    half = KUHN.solve(tol=1e-9, method="cfr", max_steps=101, checkpoint=file)
    assert half.steps == 101
    again = KUHN.solve(tol=1e-9, method="cfr", max_steps=300, checkpoint=file)
    assert again.steps == whole.steps == 300
    # The check at the end of the first part is one more; all others are the same.
    seen = {step.step: step.exploitability for step in again.history}
    assert [seen[step.step] for step in whole.history] == [step.exploitability for step in whole.history]
    assert again.history[-1].seconds >= again.history[0].seconds
    loose = KUHN.solve(tol=1.0, checkpoint=file)  # solved by what is in the file already
    assert loose.solved
    assert loose.steps == 300


def test_an_interrupted_run_is_written_and_returns_its_best_strategies(tmp_path: Path) -> None:
    file = tmp_path / "kuhn.ckpt"

    def interrupt(found: object) -> None:
        raise KeyboardInterrupt

    for method in ("cfr", "interior-point", None):
        found = KUHN.solve(tol=1e-12, method=method, callback=interrupt, checkpoint=file, checkpoint_every=0)
        assert found.interrupted == "SIGINT", method
        assert found.message.startswith("interrupted at exploitability")
        assert KUHN.exploitability(found.x, found.y) == found.exploitability
        assert file.exists()
        file.unlink()
        file.with_name(file.name + ".old").unlink(missing_ok=True)


def test_a_file_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "run.ckpt"
    KUHN.solve(tol=1e-9, method="cfr", max_steps=20, checkpoint=file)
    sides = [("coin", ["heads", "tails"], 0)]
    pennies = ExtensiveGame(sides, sides, [(1, 1, 1.0), (1, 2, -1.0), (2, 1, -1.0), (2, 2, 1.0)])
    with pytest.raises(sp.ProblemError, match="another game; delete it to begin anew"):
        pennies.solve(checkpoint=file)
    other = ExtensiveGame(sides, sides, [(1, 1, 2.0), (1, 2, -1.0), (2, 1, -1.0), (2, 2, 1.0)])
    other.solve(checkpoint=tmp_path / "other.ckpt", method="cfr", max_steps=1, tol=1e-12)
    with pytest.raises(sp.ProblemError, match="another game"):
        pennies.solve(checkpoint=tmp_path / "other.ckpt")
    sp.solve(sp.Saddle(sp.Quadratic(1.0), sp.Quadratic(1.0), [[1.0]]), checkpoint=tmp_path / "saddle.ckpt")
    with pytest.raises(sp.ProblemError, match="something else than a game"):
        pennies.solve(checkpoint=tmp_path / "saddle.ckpt")
    file.write_bytes(file.read_bytes()[:-3])
    with pytest.raises(sp.ProblemError, match="damaged"):
        KUHN.solve(checkpoint=file)
    with pytest.raises(sp.ProblemError, match="checkpoint is for the methods"):
        KUHN.solve(method="newton", checkpoint=file)
    with pytest.raises(sp.ProblemError, match="nowhere, which does not exist; make it first"):
        KUHN.solve(checkpoint=tmp_path / "nowhere" / "run.ckpt", tol=1e-9)


def test_a_first_checkpoint_that_cannot_be_written_ends_the_run(tmp_path: Path) -> None:
    folder = tmp_path / "removed"
    folder.mkdir()
    with pytest.raises(sp.ProblemError, match=r"cannot be written: .*; name another"):
        KUHN.solve(checkpoint=folder / "run.ckpt", callback=lambda now: shutil.rmtree(folder, ignore_errors=True))


def test_forged_numbers_are_refused_and_prove_nothing(tmp_path: Path) -> None:
    file = tmp_path / "run.ckpt"
    true = KUHN.solve(tol=1e-9, method="cfr", max_steps=20, checkpoint=file)
    values, arrays = read(file, 1 << 30)
    for forge in (
        lambda: (values | {"steps_before": -1}, arrays),
        lambda: (values | {"numbers": {"steps": -1, "next_check": 3, "total": 1.0}}, arrays),
        lambda: (values | {"numbers": {"steps": 1}}, arrays),
        lambda: (values, [*arrays[:3], arrays[3] * np.nan, *arrays[4:]]),
        lambda: (values, [*arrays[:3], arrays[3][:-1], *arrays[4:]]),
        lambda: (values, arrays[:-1]),
        lambda: (values, [arrays[0][:-1], *arrays[1:]]),
    ):
        write(file, Content(*forge()), 1 << 30)
        with pytest.raises(sp.ProblemError, match="delete it to begin anew"):
            KUHN.solve(tol=1e-9, method="cfr", checkpoint=file)
    records = arrays[2].copy()
    records[:, 3] = 1e-12  # an exploitability that these strategies do not have
    write(file, Content(values, [*arrays[:2], records, *arrays[3:]]), 1 << 30)
    forged = KUHN.solve(tol=1e-9, method="cfr", max_steps=20, checkpoint=file)
    assert not forged.solved
    assert forged.exploitability == pytest.approx(true.exploitability, rel=1e-12)


def test_a_start_does_not_make_the_answer_of_a_small_game_worse() -> None:
    uniform = KUHN.sequences_x.start, KUHN.sequences_y.start
    assert KUHN.solve(tol=1e-10, start=uniform).solved
    best = KUHN.solve(tol=1e-10)
    assert KUHN.solve(tol=1e-9, method="interior-point", start=(best.x, best.y)).steps == 0


def test_regret_matching_ends_where_nothing_improves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tree_solver, "PATIENCE", 500)
    found = KUHN.solve(tol=1e-20)  # below what rounding hides
    assert not found.solved
    assert "no progress since step" in found.message
    assert found.exploitability < 1e-9
    calls = [step.calls for step in found.history]
    assert calls == sorted(calls)  # steps of the interior-point method, then those of regret matching
    assert found.calls == {"A": calls[-1], "At": calls[-1]}
    assert found.steps == calls[-1] > 500


def test_a_run_whose_steps_are_spent_goes_on_with_the_interior_point_method(tmp_path: Path) -> None:
    file = tmp_path / "kuhn.ckpt"
    first = KUHN.solve(tol=1e-10, max_steps=6, checkpoint=file)
    assert first.steps == 6
    found = KUHN.solve(tol=1e-10, max_steps=60, checkpoint=file)  # regret matching would take far more steps
    assert found.solved
    assert 6 < found.steps <= 60


def test_limits_count_the_steps_of_both_methods_and_of_earlier_runs(tmp_path: Path) -> None:
    file = tmp_path / "kuhn.ckpt"
    by_factors = KUHN.solve(tol=1e-20, method="interior-point").steps
    for most in (by_factors + 20, by_factors + 50):
        found = KUHN.solve(tol=1e-20, max_steps=most, checkpoint=file)
        assert found.steps == most
        assert [step.step for step in found.history][-1] == most
    alone = KUHN.solve(tol=1e-20, max_steps=by_factors + 50)
    assert (found.x.tolist(), found.y.tolist()) == (alone.x.tolist(), alone.y.tolist())
