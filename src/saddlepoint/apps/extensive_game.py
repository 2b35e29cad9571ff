r"""Two-player zero-sum games in extensive form, solved in sequence form.

A sequence of a player is the list of this player's own choices on the way to a node of the tree. With perfect recall,
strategies are probabilities of sequences: all v >= 0 with E v = e, where v_0 = 1 for the empty sequence, and the
sequences of each information set add up to the one that leads to it. In these variables the expected payoff is
bilinear, and the game is the linear problem

    min_x max_y x'Ay,    B x = b, x >= 0,    C y = c, y >= 0,

which is as large as the tree, whereas the matrix of all pure strategies is exponentially larger. The first player is y
and maximises x'Ay, the payoff to the first player; the second player is x and minimises it, as in ``ConstrainedGame``,
which solves the problem. A_st is the sum of probability times payoff over the leaves with the sequences s of x and t of
y.

References: D. Koller, N. Megiddo, B. von Stengel, Fast algorithms for finding randomized strategies in game trees, STOC
1994; B. von Stengel, Efficient computation of behavior strategies, Games Econ. Behav. 1996.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from saddlepoint.apps.constrained_game import ConstrainedGame
from saddlepoint.apps.equilibrium import Equilibrium
from saddlepoint.apps.game_checkpoint import GameCheckpoint
from saddlepoint.apps.openspiel import read_openspiel
from saddlepoint.apps.sequences import Sequences
from saddlepoint.apps.tree_solver import INTERIOR, REGRETS, TreeRun
from saddlepoint.ground.arrays import Array
from saddlepoint.ground.errors import ProblemError
from saddlepoint.ground.validation import (
    as_callback,
    as_count,
    as_flag,
    as_pair,
    as_vector,
    did_you_mean,
    finite,
    positive,
)
from saddlepoint.methods import Method
from saddlepoint.methods.registry import method_names
from saddlepoint.problems.files.efg_file import read_efg
from saddlepoint.problems.files.game_file import read_game, write_game
from saddlepoint.problems.files.game_tree import SequenceForm
from saddlepoint.problems.files.reading import MEMORY_LIMIT, as_path
from saddlepoint.solving.checkpoint import sigterm_raises
from saddlepoint.solving.options import as_file_name, as_seconds
from saddlepoint.solving.progress import make_progress

SHIPPED = {"kuhn": "kuhn_poker", "leduc": "leduc_poker(suit_isomorphism=true)"}  # names here: names in OpenSpiel
GAMES = Path(__file__).parent / "games"  # the folder of the games that are shipped
MAX_NODES = 10_000_000  # nodes of a game tree of OpenSpiel up to which it is read
FEASIBLE = 1e-12  # violation of constraints up to which it is taken for rounding


class ExtensiveGame:
    """A two-player zero-sum game of perfect recall in sequence form: the first player maximises the payoff.

    In the letters of ``ConstrainedGame``, the first player is y and maximises x'Ay; the second is x and minimises it.

    Args:
        first, second: the information sets of the players, each a triple (name, actions, parent). Sequence 0 is the
            empty one; the actions of the information sets follow, set by set. The parent is the sequence that leads to
            the set, and is listed before it.
        payoffs: triples (second's sequence, first's sequence, probability of chance times payoff to the first player);
            those of equal sequences add up. Their sum is rounded once, so that what is proven is about the triples.
        title: a name for the game.

    Attributes:
        payoff: A, a sparse array with a row for each sequence of x and a column for each of y. Leaves with payoff 0 are
            stored as well.
        sequences_x, sequences_y: the ``Sequences`` of the second and of the first player, with their information sets.
        constraints_x, constraints_y: (B, b) and (C, c), B and C sparse.
        shape: how many sequences x and y have.

    Example:
        >>> from saddlepoint.apps import ExtensiveGame
        >>> sides = [("coin", ["heads", "tails"], 0)]
        >>> pennies = ExtensiveGame(sides, sides, [(1, 1, 1.0), (1, 2, -1.0), (2, 1, -1.0), (2, 2, 1.0)], "pennies")
        >>> pennies
        ExtensiveGame('pennies', 3 x 3 sequences, 1 and 1 information sets)
        >>> x = pennies.strategy("x", [1.0, 0.5, 0.5])
        >>> round(pennies.exploitability(x, pennies.strategy("y", [1.0, 0.75, 0.25])), 9)
        0.5
        >>> pennies.behaviour("y", [1.0, 0.75, 0.25])
        {'coin': {'heads': 0.75, 'tails': 0.25}}
    """

    def __init__(self, first: Iterable[Any], second: Iterable[Any], payoffs: Iterable[Any], title: str = "") -> None:
        self.title = title
        self.sequences_x, self.sequences_y = Sequences(second, "second"), Sequences(first, "first")
        self.shape = (self.sequences_x.size, self.sequences_y.size)
        self.constraints_x, self.constraints_y = self.sequences_x.constraints, self.sequences_y.constraints
        self.payoff = self._matrix(payoffs)

    def _matrix(self, payoffs: Iterable[Any]) -> csr_array:
        """A, from triples that are checked."""
        rows: list[int] = []
        columns: list[int] = []
        values: Any = []
        for i, entry in enumerate(payoffs):
            if not hasattr(entry, "__len__") or len(entry) != 3:
                raise ProblemError(f"payoff {i} is {entry!r}; expected (second's sequence, first's sequence, payoff)")
            second, first, payoff = entry
            for sequences, sequence in ((self.sequences_x, second), (self.sequences_y, first)):
                if not isinstance(sequence, int | np.integer) or not 0 <= sequence < sequences.size:
                    raise ProblemError(
                        f"payoff {i} is one of sequence {sequence} of the {sequences.player} player; expected 0 to "
                        f"{sequences.size - 1}"
                    )
            rows.append(second)
            columns.append(first)
            values.append(payoff)
        self.sequences_x.check_reached(rows)
        self.sequences_y.check_reached(columns)
        values = as_vector(values, "the list of payoffs").astype(np.float64)
        matrix = _summed(values, np.array(rows, dtype=np.int64), np.array(columns, dtype=np.int64), self.shape)
        finite(matrix.data, "the sum of payoffs")
        return matrix

    # -- reading and writing -----------------------------------------------------------------------------------------

    @classmethod
    def load(cls, name: str | Path) -> ExtensiveGame:
        """A game by name, or from the file at a path.

        "kuhn" and "leduc" are Kuhn poker and Leduc poker as OpenSpiel defines them. The suits of Leduc poker are
        merged, because they do not matter. If OpenSpiel is not installed, the games come from files that were written
        with it.
        """
        if isinstance(name, str) and name in SHIPPED:
            return cls.from_openspiel(SHIPPED[name]) if find_spec("pyspiel") else cls.from_file(GAMES / f"{name}.json")
        if not os.path.exists(as_path(name)):
            raise ProblemError(
                f"file {name} does not exist, and it is not the name of a game; expected a file or "
                f"{' or '.join(SHIPPED)}"
            )
        return cls.from_file(name)

    @classmethod
    def from_openspiel(cls, game: Any, max_nodes: int = MAX_NODES) -> ExtensiveGame:
        """The game of OpenSpiel: a ``pyspiel.Game``, or a name such as "kuhn_poker".

        The game must have two players who move in turns, a constant sum, perfect recall and explicit chance. Its
        player 0 is the first player y, who maximises, and its player 1 is x. A tree with more than ``max_nodes`` nodes
        is refused.
        """
        return cls._of(read_openspiel(game, max_nodes))

    @classmethod
    def from_file(cls, path: str | Path, memory_limit: int = MEMORY_LIMIT) -> ExtensiveGame:
        """The game in a .json file, as ``to_file`` writes it, or in an .efg file of Gambit; see docs/game-file.md."""
        path = as_path(path)
        readers = {".json": read_game, ".efg": read_efg}
        if path.suffix.lower() not in readers:
            raise ProblemError(f"{path} has an unknown ending; expected .json or .efg")
        form = readers[path.suffix.lower()](path, memory_limit)
        try:
            return cls._of(form)
        except ProblemError as error:
            raise ProblemError(f"{path}: {error}") from None

    @classmethod
    def _of(cls, form: SequenceForm) -> ExtensiveGame:
        return cls(form.first, form.second, form.payoffs, form.title)

    def to_file(self, path: str | Path) -> None:
        """Write the game to a .json file, which ``from_file`` reads to the same numbers."""
        path = Path(path)
        if path.suffix.lower() != ".json":
            raise ProblemError(f"{path} does not end in .json; expected .json, the only format that can be written")
        entries = self.payoff.tocoo()
        rows, columns = entries.coords
        payoffs = list(zip(rows.tolist(), columns.tolist(), entries.data.tolist(), strict=True))
        first, second = list(self.sequences_y.sets), list(self.sequences_x.sets)
        write_game(SequenceForm(self.title, first, second, payoffs), path)

    def solve(
        self,
        *,
        tol: float = 1e-6,
        method: str | Method | None = None,
        max_steps: int | None = None,
        max_calls: int | None = None,
        max_seconds: float | None = None,
        callback: Callable[[Equilibrium], object] | None = None,
        progress: bool = False,
        start: tuple[Any, Any] | None = None,
        feasibility: float = 1e-6,
        checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_every: float = 60.0,
    ) -> Equilibrium:
        """An equilibrium. The strategies satisfy their constraints up to rounding.

        The exploitability is that of exact best responses, with what rounding may hide.

        Args:
            tol: the exploitability to reach, in units of the payoff.
            method: "interior-point", which takes 20 to 40 factorisations of the sequence form; "cfr", regret matching
                from products with A and passes over the tree; or a method for the subproblems of
                ``ConstrainedGame.solve``. None takes the first one for games of up to 20 000 sequences, then the second
                one if that does not suffice.
            max_steps: steps of the methods together, at most.
            max_calls: products with A, and with A', that the methods make at most. A step of "cfr" makes one of each,
                and one of "interior-point", with its factorisation, is counted as one of each. Those of best responses,
                which prove the exploitability, are not counted.
            max_seconds: wall-clock limit.
            callback: called with the ``Equilibrium`` so far, again and again; raise StopIteration to end the run.
            progress: show a progress bar.
            start: strategies (x, y), such as those of an earlier run; the answer is not worse, and "cfr" begins there.
            feasibility: as for ``ConstrainedGame.solve``.
            checkpoint: a file to which the run is written, and from which the same call goes on if it is there; start
                is then not used, and limits include what was spent before. "cfr" goes on where it ended, and the
                interior-point method begins anew. SIGTERM then ends the run as Ctrl-C always does, with the best
                strategies so far.
            checkpoint_every: seconds between two checkpoints; 0 for every step.

        Example:
            >>> from saddlepoint.apps import ExtensiveGame
            >>> kuhn = ExtensiveGame.load("kuhn")
            >>> found = kuhn.solve(tol=1e-8)
            >>> found.solved, round(found.value, 6)
            (True, -0.055556)
            >>> kuhn.solve(tol=1e-3, method="cfr").solved
            True
        """
        max_steps, max_calls = (
            None if limit is None else as_count(limit, name, 0)
            for name, limit in (("max_steps", max_steps), ("max_calls", max_calls))
        )
        max_seconds = None if max_seconds is None else positive(max_seconds, "max_seconds")
        callback, progress = as_callback(callback, "an Equilibrium"), as_flag(progress, "progress")
        feasibility, every = positive(feasibility, "feasibility"), as_seconds(checkpoint_every, "checkpoint_every")
        game = ConstrainedGame(self.payoff, self.sequences_x, self.sequences_y)
        names = (INTERIOR, REGRETS, "auto", *method_names())
        if isinstance(method, str) and method not in names:
            raise ProblemError(
                f"unknown method {method!r}; expected {INTERIOR!r}, {REGRETS!r}, 'auto' or the name of a method for "
                f"the subproblems of an augmented Lagrangian{did_you_mean(method, names)}"
            )
        if not (method is None or (isinstance(method, str) and method in (REGRETS, INTERIOR))):
            _refuse_with(method, start=start, checkpoint=checkpoint)
            limits: dict[str, Any] = {"max_calls": max_calls, "max_seconds": max_seconds}
            limits |= {"callback": callback, "progress": progress}
            if max_steps is not None:
                limits["max_steps"] = max_steps
            return game.solve(tol=tol, feasibility=feasibility, method=method, **limits)
        tol = positive(tol, "tol")
        begin = None
        if start is not None:
            x, y = as_pair(start, "start")
            begin = self.strategy("x", x), self.strategy("y", y)
        file = None
        if checkpoint is not None:
            path = as_file_name(checkpoint, "checkpoint")
            file = GameCheckpoint(path, every, self.payoff, self.sequences_x, self.sequences_y)
        with make_progress(progress, tol, "exploitability") as bar, sigterm_raises(file is not None):
            run = TreeRun(game, tol, callback, bar, max_seconds, file)
            run.run(method, min((limit for limit in (max_steps, max_calls) if limit is not None), default=None), begin)
            return run.result()

    # -- strategies --------------------------------------------------------------------------------------------------

    def best_response(self, player: str, weights: Any) -> tuple[float, Array]:
        """The best value that ``player`` can reach if sequences have the given weights, and the pure strategy.

        x minimises <weights, x>, where weights = A y are the payoffs against y. y maximises <weights, y>, where weights
        = A'x. The answer is exact and takes one pass from the last information sets to the first.
        """
        sequences = self._sequences(player)
        weights = as_vector(weights, "weights", sequences.size)
        if player == "y":
            return sequences.best(weights)
        value, vector = sequences.best(-weights)
        return -value, vector

    def strategy(self, player: str, vector: Any) -> Array:
        """The strategy that is close to ``vector``, with all constraints satisfied up to rounding.

        Negative entries become 0; then the actions of each information set are chosen in proportion to their entries,
        or with equal probability where all of them are 0.
        """
        sequences = self._sequences(player)
        return sequences.nearest(as_vector(vector, f"vector of {player}", sequences.size))

    def behaviour(self, player: str, vector: Any) -> dict[str, dict[str, float]]:
        """The probabilities of the actions at each information set, by name, in ``strategy(player, vector)``."""
        sequences = self._sequences(player)
        chances = sequences.chances(as_vector(vector, f"vector of {player}", sequences.size)).tolist()
        return {
            node.name: dict(zip(node.actions, chances[start : start + len(node.actions)], strict=True))
            for node, start in zip(sequences.sets, sequences.starts.tolist(), strict=True)
        }

    def exploitability(self, x: Any, y: Any) -> float:
        """max_y' x'Ay' - min_x' x''Ay: what the best responses of both players gain together.

        Each of the strategies is optimal up to this number, and the value of the game is no further from x'Ay.
        (OpenSpiel calls it nash_conv, and half of it exploitability.) Both strategies must satisfy their constraints;
        ``strategy`` makes them do so. Where they do so only up to rounding, x and y stand for the strategies with the
        probabilities of ``behaviour``. The number is never too small: the largest effect of rounding is added to it.
        """
        plans = []
        for player, vector in (("x", x), ("y", y)):
            sequences = self._sequences(player)
            plan = as_vector(vector, player, sequences.size).astype(np.float64)
            violation = sequences.violation(plan)
            if violation > FEASIBLE:
                raise ProblemError(
                    f"{player} violates its constraints by {violation:.3g}; expected a strategy, such as "
                    f"game.strategy({player!r}, {player})"
                )
            plans.append(plan)
        return ConstrainedGame(self.payoff, self.sequences_x, self.sequences_y).exploitability(*plans)

    def _sequences(self, player: str) -> Sequences:
        if player not in ("x", "y"):
            raise ProblemError(f"player is {player!r}; expected 'x', the second player, or 'y', the first")
        return self.sequences_x if player == "x" else self.sequences_y

    def __repr__(self) -> str:
        sets = f"{len(self.sequences_x.sets)} and {len(self.sequences_y.sets)} information sets"
        return f"ExtensiveGame({self.title!r}, {self.shape[0]} x {self.shape[1]} sequences, {sets})"


def _summed(values: Array, rows: Array, columns: Array, shape: tuple[int, int]) -> csr_array:
    """The sparse array of these entries. Entries at the same place are added up, and their sum is rounded once."""
    places = rows * shape[1] + columns
    order = np.argsort(places, kind="stable")
    places, values = places[order], values[order]
    starts = np.flatnonzero(np.r_[True, places[1:] != places[:-1]])
    ends = np.append(starts[1:], len(places))
    sums = values[starts]
    for k in np.flatnonzero(ends - starts > 1).tolist():
        try:
            sums[k] = math.fsum(values[starts[k] : ends[k]].tolist())
        except OverflowError:
            sums[k] = math.inf
    kept = places[starts]
    return csr_array((sums, (kept // shape[1], kept % shape[1])), shape=shape)


def _refuse_with(method: str | Method, **given: Any) -> None:
    """Raise a ProblemError for arguments that only the methods for game trees have."""
    for name, value in given.items():
        if value is not None:
            raise ProblemError(
                f"{name} is for the methods {REGRETS!r} and {INTERIOR!r}, but method is {method!r}; leave one of them "
                "out"
            )
