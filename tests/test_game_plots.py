"""Plots of games: the curve is the history of the run, and the label has the answer."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from saddlepoint.apps import ConstrainedGame, ExtensiveGame, MatrixGame
from saddlepoint.apps.equilibrium import Equilibrium
from saddlepoint.apps.matrix_game import MatrixGameResult

RNG = np.random.default_rng(5)
PAYOFF = RNG.standard_normal((12, 9))
ROWS = np.ones((1, 12)), np.ones(1)
COLUMNS = np.vstack([np.ones(9), np.arange(9.0)]), np.array([1.0, 4.0])


def violated(found: Equilibrium) -> Equilibrium:
    """The same run, as if the constraints had not been satisfied."""
    return replace(found, history=[step._replace(infeasibility=1e-3 / step.step) for step in found.history])


RUNS = {
    "matrix game": lambda: MatrixGame(PAYOFF).solve(),
    "matrix game with costs": lambda: MatrixGame(PAYOFF, 0.2, 0.1).solve(),
    "matrix game with a pure equilibrium": lambda: MatrixGame([[1.0, 2.0], [0.0, 3.0]]).solve(),
    "constrained game": lambda: ConstrainedGame(PAYOFF, ROWS, COLUMNS).solve(),
    "constrained game, violated": lambda: violated(ConstrainedGame(PAYOFF, ROWS, COLUMNS).solve(max_steps=3)),
    "no payoffs": lambda: ConstrainedGame.mixed(np.zeros((2, 2))).solve(),
    "tree, interior point": lambda: ExtensiveGame.load("kuhn").solve(),
    "tree, cfr": lambda: ExtensiveGame.load("kuhn").solve(method="cfr", tol=1e-2),
}


@pytest.mark.parametrize("name", RUNS)
def test_the_plot_shows_the_history_and_the_answer(name: str, tmp_path: Path) -> None:
    found: Equilibrium | MatrixGameResult = RUNS[name]()
    figure = found.plot(tmp_path / "run.svg")
    assert (tmp_path / "run.svg").read_text().startswith("<?xml")
    by_calls, by_seconds = figure.axes
    steps = found.history
    for axis, work in ((by_calls, "calls"), (by_seconds, "seconds")):
        line = axis.get_lines()[0]
        if steps:
            np.testing.assert_array_equal(line.get_ydata(), [step.exploitability for step in steps])
            np.testing.assert_array_equal(line.get_xdata(), [getattr(step, work) for step in steps])
        else:
            np.testing.assert_array_equal(line.get_ydata(), [found.exploitability])
    texts = [text.get_text() for text in figure.legends[0].get_texts()]
    assert f"value {found.value:.6g}, exploitability ≤ {found.exploitability:.2g}" in texts[0]
    assert (len(texts) == 2) is ("violated" in name)


@pytest.mark.parametrize("costs", [(), (0.2, 0.1)])
def test_the_history_of_a_matrix_game_ends_with_its_answer(costs: tuple[float, ...]) -> None:
    found = MatrixGame(1e6 * PAYOFF, *(1e6 * cost for cost in costs)).solve()
    last = found.history[-1]
    assert (last.exploitability, last.seconds) == (found.exploitability, found.seconds)
    assert last.calls == max(found.calls.values()) > 0
    assert found.history[0].exploitability > 1e4 * found.exploitability  # in units of the payoff
    assert [step.seconds for step in found.history] == sorted(step.seconds for step in found.history)


def test_the_history_goes_on_where_the_augmented_lagrangian_takes_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("saddlepoint.apps.matrix_game.CALLS", 30)
    found = MatrixGame(PAYOFF).solve(tol=1e-9)
    assert found.solved
    assert any(step.penalty > 0.0 for step in found.history)
    calls = [step.calls for step in found.history]
    assert calls == sorted(calls)
    assert calls[-1] >= max(found.calls.values()) > 30
