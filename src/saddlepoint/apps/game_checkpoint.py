"""Runs on game trees, written to disk and read back.

A file has the best strategies so far, the history, and the regrets and averages of regret matching. It proves nothing:
the exploitability of its strategies is computed again by best responses when it is read.
"""

from __future__ import annotations

import hashlib
import time
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from saddlepoint.apps.equilibrium import Step
from saddlepoint.apps.sequences import Sequences
from saddlepoint.ground.arrays import Array
from saddlepoint.ground.errors import ProblemError
from saddlepoint.solving.checkpoint import older
from saddlepoint.solving.checkpoint.file import Content, is_checkpoint, read, write

FORMAT = "game 2"  # what the files of this kind say that they are
RECORDS = 100_000  # entries of a history that a file may hold
ADVICE = "delete it to begin anew, or name another file"  # the end of each error about a file


class GameRunState(NamedTuple):
    """A run between two steps."""

    seconds: float
    history: list[Step]
    x: Array  # the best strategies
    y: Array
    steps_before: int  # steps of the run before those of regret matching
    numbers: dict[str, float]  # of regret matching; empty before it began
    arrays: list[Array]


class GameCheckpoint:
    """The file of a run.

    Args:
        path: the file.
        every: seconds between two checkpoints; 0 for every step.
        payoff, sequences_x, sequences_y: the game, which a file has to agree with.
    """

    def __init__(
        self, path: Path, every: float, payoff: csr_array, sequences_x: Sequences, sequences_y: Sequences
    ) -> None:
        self.path, self.every, self.shape = path, every, payoff.shape
        self.limit = (1 << 20) + 8 * (8 * sum(payoff.shape) + len(Step._fields) * RECORDS)
        self.game = _digest(payoff, sequences_x, sequences_y)
        self.due_at, self.lost = 0.0, False

    def load(self) -> GameRunState | None:
        """The run in the file, or None if there is none; a file that does not fit is refused."""
        old = older(self.path)
        there = self.path if self.path.exists() else old if is_checkpoint(old) else None
        if there is None:
            return None
        values, arrays = read(there, self.limit)
        if values.get("format") != FORMAT:
            raise ProblemError(f"{there} is the checkpoint of something else than a game of this version; {ADVICE}")
        if values.get("game") != self.game:
            raise ProblemError(f"{there} is the checkpoint of another game; {ADVICE}")
        try:
            return self._saved(values, arrays)
        except (ValueError, TypeError, KeyError, OverflowError) as error:
            raise ProblemError(f"{there} is not a checkpoint of a game: {error}; {ADVICE}") from None

    def _saved(self, values: dict[str, Any], arrays: list[Array]) -> GameRunState:
        x, y, records, *regrets = arrays
        for vector, size in zip((x, y), self.shape, strict=True):
            if vector.dtype != np.float64 or vector.shape != (size,) or not np.isfinite(vector).all():
                raise ValueError("its strategies are not vectors of numbers of this size")
        if records.dtype != np.float64 or records.ndim != 2 or records.shape[1] != len(Step._fields):
            raise ValueError("its history is not a table")
        history = [Step(int(row[0]), int(row[1]), *row[2:]) for row in records.tolist()]
        steps_before = int(values["steps_before"])
        if steps_before < 0:
            raise ValueError("its number of steps is negative")
        return GameRunState(float(values["seconds"]), history, x, y, steps_before, dict(values["numbers"]), regrets)

    def write_if_due(self, saved: GameRunState) -> None:
        """Write the run, which is between two steps, if the time since the last checkpoint is long enough."""
        if time.monotonic() >= self.due_at:
            self.write(saved)

    def write(self, saved: GameRunState) -> None:
        """Replace the file. If that fails, there is a warning and the run continues; the first time, it is an error."""
        records = np.array(saved.history[-RECORDS:], dtype=np.float64).reshape(-1, len(Step._fields))
        values: dict[str, Any] = {"format": FORMAT, "game": self.game}
        values |= {"seconds": saved.seconds, "steps_before": saved.steps_before, "numbers": saved.numbers}
        first = self.due_at == 0.0
        try:
            write(self.path, Content(values, [saved.x, saved.y, records, *saved.arrays]), self.limit)
            self.lost = False
        except OSError as error:
            reason = error.strerror or str(error)
            if first:
                raise ProblemError(f"the checkpoint {self.path} cannot be written: {reason}; name another") from None
            if not self.lost:
                text = f"a checkpoint was lost: {self.path} cannot be written ({reason}); the run goes on"
                warnings.warn(text, RuntimeWarning, stacklevel=2)
            self.lost = True
        finally:
            self.due_at = time.monotonic() + self.every


def _digest(payoff: csr_array, *players: Sequences) -> str:
    """A sum of all numbers of a game; names of information sets and actions do not count."""
    A = csr_array(payoff)
    trees = [part for player in players for part in (player.counts, player.parents)]
    total = hashlib.sha256()
    for array in (A.indptr, A.indices, A.data, *trees):
        total.update(array.astype(np.float64 if array.dtype.kind == "f" else np.int64).tobytes())
        total.update(b"|")
    return total.hexdigest()
