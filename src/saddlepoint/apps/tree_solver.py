"""Solving an extensive game by regret matching or by the interior-point method, with exact best responses as proof."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress

import numpy as np

from saddlepoint.apps.constrained_game import ConstrainedGame, Equilibrium, Step
from saddlepoint.apps.regret_matching import regret_matching
from saddlepoint.apps.sequence_program import sequence_program
from saddlepoint.apps.sequences import Sequences
from saddlepoint.ground.arrays import Array
from saddlepoint.methods.interior_point import InteriorPoint
from saddlepoint.solving.progress import Progress
from saddlepoint.solving.result import Record, Result
from saddlepoint.solving.solve import solve

REGRETS, INTERIOR = "cfr", "interior-point"  # names of the two methods
SMALL = 20_000  # sequences of both players up to which factorisations take less time than regret matching
SHARE = 1e-3  # the duality gap that the interior-point method is asked for, relative to tol: its callback ends it


class TreeRun:
    """A run on a game tree: strategies are judged by best responses, and the best ones are kept.

    Args:
        game: the game with the strategies of both players as ``Sequences``.
        tol: the exploitability to reach.
        callback: called with the best ``Equilibrium`` so far; raise StopIteration to end the run.
        bar: the progress bar.
        max_seconds: wall-clock limit.
    """

    def __init__(
        self,
        game: ConstrainedGame,
        tol: float,
        callback: Callable[[Equilibrium], object] | None,
        bar: Progress,
        max_seconds: float | None,
    ) -> None:
        self.game, self.tol, self.callback, self.bar, self.max_seconds = game, tol, callback, bar, max_seconds
        self.began = time.monotonic()
        self.ending = ""
        self.history: list[Step] = []
        x, y = game.strategies_x.start, game.strategies_y.start
        self.best = self.evaluated(x, y)

    @property
    def left(self) -> float | None:
        """The seconds that are left, if they are limited."""
        return None if self.max_seconds is None else self.max_seconds - (time.monotonic() - self.began)

    def judge(self, step: int, x: Array, y: Array) -> bool:
        """Note the strategies that are near x and y after some steps; True if the run is over."""
        now = self.evaluated(self.game.strategies_x.nearest(x), self.game.strategies_y.nearest(y))
        seconds = time.monotonic() - self.began
        self.history.append(Step(step, step, seconds, now.exploitability, now.infeasibility, 0.0))
        calls = dict.fromkeys(("A", "At"), step)
        self.bar.update(Record(step, 0, 0, step, step, 2 * step, seconds, now.exploitability, now.exploitability))
        if now.exploitability <= self.best.exploitability:
            self.best = now
        self.best.steps, self.best.calls, self.best.seconds, self.best.history = step, calls, seconds, self.history
        try:
            if self.callback is not None:
                self.callback(self.best)
        except StopIteration:
            self.ending = "stopped by the callback at "
        return bool(self.ending) or self.best.solved or (self.left is not None and self.left <= 0.0)

    def evaluated(self, x: Array, y: Array) -> Equilibrium:
        """What is proven about the strategies, with the multipliers of best responses."""
        game = self.game
        gain = game.exploitability(x, y)
        infeasibility = max(game.strategies_x.violation(x), game.strategies_y.violation(y))
        of_x, of_y = (
            strategies.multipliers(weights)  # type: ignore[attr-defined]
            for strategies, weights in zip((game.strategies_x, game.strategies_y), game._gradients(x, y), strict=True)
        )
        return Equilibrium(x, y, game.value(x, y), gain, infeasibility, of_x, of_y, 0.0, gain <= self.tol)

    def result(self) -> Equilibrium:
        """The best strategies, with a sentence."""
        found = self.best
        short = "" if found.solved or self.ending else f"; {self.tol:.3g} was asked for, raise max_steps or max_seconds"
        found.message = f"{self.ending}exploitability {found.exploitability:.3g}, {found.steps} steps{short}"
        return found

    # -- the methods ---------------------------------------------------------------------------------------------------

    def by_regrets(self, max_steps: int | None, start: tuple[Array, Array] | None) -> None:
        """Regret matching until the run is over."""
        x, y = self.sequences
        if start is not None and self.judge(0, *start):
            return
        for step, plan_x, plan_y in regret_matching(self.game.payoff, x, y, start):
            if self.judge(step, plan_x, plan_y) or (max_steps is not None and step >= max_steps):
                return

    def by_interior_point(self, max_steps: int | None) -> None:
        """The interior-point method on the sequence form, until it ends or the run is over."""
        if self.left is not None and self.left <= 0.0:
            return
        x, y = self.sequences
        f = sequence_program(self.game.payoff, x, y)

        def look(result: Result) -> None:
            if result.iterations == 0:
                return
            if self.judge(result.iterations, np.asarray(result.x)[: x.size], np.asarray(result.y)[: y.size]):
                raise StopIteration
            if max_steps is not None and result.iterations >= max_steps:
                raise StopIteration

        start = (np.r_[x.start, np.zeros(f.shape[0] - x.size)], np.r_[y.start, np.zeros(f.shape[1] - y.size)])
        with suppress(StopIteration):
            solve(f, *start, method=InteriorPoint(), gap=SHARE * self.tol, max_seconds=self.left, callback=look)

    @property
    def sequences(self) -> tuple[Sequences, Sequences]:
        """The sequences of both players."""
        x, y = self.game.strategies_x, self.game.strategies_y
        assert isinstance(x, Sequences)
        assert isinstance(y, Sequences)
        return x, y
