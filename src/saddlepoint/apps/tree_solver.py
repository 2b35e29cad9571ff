"""Solving an extensive game by regret matching or by the interior-point method, with exact best responses as proof."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import numpy as np

from saddlepoint.apps.constrained_game import ConstrainedGame
from saddlepoint.apps.equilibrium import Equilibrium, Step
from saddlepoint.apps.game_checkpoint import GameCheckpoint, GameRunState
from saddlepoint.apps.regret_matching import RegretMatching
from saddlepoint.apps.sequence_program import sequence_program
from saddlepoint.apps.sequences import Sequences
from saddlepoint.ground.arrays import Array
from saddlepoint.ground.errors import ProblemError, Terminated
from saddlepoint.ground.time_limit import TimeLimit
from saddlepoint.methods.interior_point import InteriorPoint
from saddlepoint.solving.interruption import signal_of
from saddlepoint.solving.progress import Progress
from saddlepoint.solving.result import Record, Result
from saddlepoint.solving.solve import solve

REGRETS, INTERIOR = "cfr", "interior-point"  # names of the two methods
EVERY = 2  # steps of the interior-point method between two evaluations of its strategies, at most
SMALL = 20_000  # sequences of both players up to which factorisations take less time than regret matching
PROGRESS = 0.99  # factor of the exploitability that counts as progress of regret matching
PATIENCE, STALL = 100_000, 8.0  # steps without progress that end regret matching: least, and relative to those before
SHARE = 1e-3  # duality gap that the interior-point method is asked for, over tol: so small that the callback ends it


class TreeRun:
    """A run on a game tree: strategies are evaluated by best responses, and the best ones are kept.

    Args:
        game: the game with the strategies of both players as ``Sequences``.
        tol: the exploitability to reach.
        callback: called with the best ``Equilibrium`` so far; raise StopIteration to end the run.
        bar: the progress bar.
        max_seconds: wall-clock limit.
        file: where the run is written, and from which it goes on if it is there.
    """

    def __init__(
        self,
        game: ConstrainedGame,
        tol: float,
        callback: Callable[[Equilibrium], object] | None,
        bar: Progress,
        max_seconds: float | None,
        file: GameCheckpoint | None = None,
    ) -> None:
        self.game, self.tol, self.callback, self.bar = game, tol, callback, bar
        self.file, self.saved = file, None if file is None else file.load()
        self.limit = TimeLimit(max_seconds, before=0.0 if self.saved is None else self.saved.seconds)
        self.ending = self.signal = ""
        self.steps_before = 0  # steps of the methods and runs before the present one
        self.improved = 0  # the last step of regret matching at which the exploitability fell
        self.history: list[Step] = []
        x, y = game.strategies_x.start, game.strategies_y.start
        if self.saved is not None:
            self.history = list(self.saved.history)
            self.steps_before = self.saved.steps_before
            x, y = game.strategies_x.nearest(self.saved.x), game.strategies_y.nearest(self.saved.y)
        self.best = self.evaluated(x, y)
        if self.history:
            last = self.history[-1]
            self.best.steps, self.best.calls = last.step, dict.fromkeys(("A", "At"), last.calls)
            self.best.seconds, self.best.history = last.seconds, self.history

    def record(self, step: int, x: Array, y: Array) -> bool:
        """Evaluate and record the strategies that are near x and y after some steps of a method.

        Returns True if the run is over.
        """
        step += self.steps_before
        now = self.evaluated(self.game.strategies_x.nearest(x), self.game.strategies_y.nearest(y))
        seconds = self.limit.spent
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
        return self.is_over

    @property
    def is_over(self) -> bool:
        """Whether the run is solved, was ended, or has no time left."""
        return bool(self.ending) or self.best.solved or self.limit.is_over

    def evaluated(self, x: Array, y: Array) -> Equilibrium:
        """What is proven about the strategies, with the multipliers of best responses."""
        game = self.game
        gain = game.exploitability(x, y)
        infeasibility = max(game.strategies_x.violation(x), game.strategies_y.violation(y))
        of_x, of_y = (
            strategies.multipliers(weights)  # type: ignore[attr-defined]
            for strategies, weights in zip((game.strategies_x, game.strategies_y), game.gradients(x, y), strict=True)
        )
        return Equilibrium(x, y, game.value(x, y), gain, infeasibility, of_x, of_y, 0.0, gain <= self.tol)

    def result(self) -> Equilibrium:
        """The best strategies, with a sentence that says how the run ended."""
        found = self.best
        found.interrupted = self.signal
        short = "" if found.solved or self.ending else f"; {self.tol:.3g} was asked for, raise the limits"
        found.message = f"{self.ending}exploitability {found.exploitability:.3g}, {found.steps} steps{short}"
        return found

    # -- the methods ---------------------------------------------------------------------------------------------------

    def run(self, method: str | None, max_steps: int | None, start: tuple[Array, Array] | None) -> None:
        """Both methods or the one that was asked for, from the given strategies or from those of the file.

        Args:
            method: one of the two names; None for the first method, and for the second one if that does not suffice.
            max_steps: steps of both methods together, at most. A step of either one is counted as one product with A
                and one with A'.
            start: strategies to begin with, which are not used if there is a file.
        """
        if start is not None and self.saved is None and not self.is_over:
            self.record(0, *start)
        matching = self.saved is not None and bool(self.saved.numbers)  # the saved run had begun regret matching
        small = sum(self.game.payoff.shape) <= SMALL and not matching
        if not self.is_over and (method == INTERIOR or (method is None and small)):
            self.by_interior_point(max_steps)
            self.steps_before = self.best.steps
        if not self.is_over and method != INTERIOR and not self._is_spent(max_steps, 0):
            self.by_regrets(max_steps, (self.best.x, self.best.y) if self.history else None)

    def by_regrets(self, max_steps: int | None, start: tuple[Array, Array] | None) -> None:
        """Regret matching until the run is over; a run in the file goes on where it ended."""
        x, y = self.sequences
        matching = RegretMatching(self.game.payoff, x, y, start)
        if self.saved is not None and self.saved.numbers:
            try:
                matching.restore(self.saved.numbers, self.saved.arrays)
            except (ValueError, TypeError, KeyError, OverflowError) as error:
                raise ProblemError(f"the checkpoint cannot be continued: {error}; delete it to begin anew") from None
        state = matching.state()
        try:
            while not self._is_over(matching, max_steps):
                matching.step()
                state = matching.state()
                if self.file is not None:
                    self.file.write_if_due(self._snapshot(self.steps_before, state))
        except (KeyboardInterrupt, Terminated) as error:
            self.interrupt("SIGTERM" if isinstance(error, Terminated) else "SIGINT")
        finally:
            if self.file is not None:
                self.file.write(self._snapshot(self.steps_before, state))

    def _is_over(self, matching: RegretMatching, max_steps: int | None) -> bool:
        """Evaluate the averages where that is due, and the last ones when steps or time are spent."""
        spent = self._is_spent(max_steps, matching.steps)
        if matching.steps == 0 or not (matching.is_check_due() or spent):
            return spent
        before = self.best.exploitability
        over = self.record(matching.steps, *matching.strategies) or spent
        if self.best.exploitability < PROGRESS * before:
            self.improved = matching.steps
        if not over and matching.steps > max(PATIENCE, STALL * self.improved):
            last = self.steps_before + self.improved
            self.ending = f"no progress since step {last}, {self.tol:.3g} was asked for: "
        return over or bool(self.ending)

    def _is_spent(self, max_steps: int | None, steps: int) -> bool:
        """Whether there is no time left, or no step after these steps of the present method."""
        return self.limit.is_over or (max_steps is not None and self.steps_before + steps >= max_steps)

    def _snapshot(self, steps_before: int, state: tuple[dict[str, float], list[Array]]) -> GameRunState:
        return GameRunState(self.limit.spent, self.history, self.best.x, self.best.y, steps_before, *state)

    def interrupt(self, signal: str) -> None:
        """Note that a signal ended the run."""
        self.ending, self.signal = "interrupted at ", signal

    def by_interior_point(self, max_steps: int | None) -> None:
        """The interior-point method on the sequence form, until it ends or the run is over."""
        most = None if max_steps is None else max_steps - self.steps_before
        if (most is not None and most < EVERY) or self.limit.is_over:
            return
        x, y = self.sequences
        f = sequence_program(self.game.payoff, x, y)

        def evaluate(result: Result) -> None:
            if result.iterations == 0:
                return
            if self.record(result.iterations, np.asarray(result.x)[: x.size], np.asarray(result.y)[: y.size]):
                raise StopIteration
            if self.file is not None:
                self.file.write_if_due(self._snapshot(self.best.steps, ({}, [])))
            if most is not None and result.iterations + EVERY > most:
                raise StopIteration

        start = (np.r_[x.start, np.zeros(f.shape[0] - x.size)], np.r_[y.start, np.zeros(f.shape[1] - y.size)])
        with suppress(StopIteration):
            ended = solve(
                f, *start, method=InteriorPoint(), gap=SHARE * self.tol, max_seconds=self.limit.left, callback=evaluate
            )
            if signal_of(ended):
                self.interrupt(signal_of(ended))
        if self.file is not None:
            self.file.write(self._snapshot(self.best.steps, ({}, [])))

    @property
    def sequences(self) -> tuple[Sequences, Sequences]:
        """The sequences of both players."""
        x, y = self.game.strategies_x, self.game.strategies_y
        assert isinstance(x, Sequences)
        assert isinstance(y, Sequences)
        return x, y
