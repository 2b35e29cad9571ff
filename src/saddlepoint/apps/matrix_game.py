r"""Matrix games: two players, mixed strategies, zero sum.

Problem:    max_x min_y x'Ay - p(x) + q(y) over probabilities x of the rows and y of the columns. A_ij is the payoff of
            the row player, who maximises, when the players choose row i and column j; the column player receives -A_ij
            and minimises x'Ay. Each player may bear a convex cost, p or q. Both orders of max and min give the same
            number, the value of the game.
Guarantee:  the exploitability is what best responses to x and y gain together; without costs it is
            max_i (A y)_i - min_j (A'x)_j. A bound is computed at the strategies that are returned, and what rounding
            may hide is part of it. If both costs are strongly convex, the distance to the equilibrium is bounded too.
Reference:  J. von Neumann, Zur Theorie der Gesellschaftsspiele, Math. Ann. 1928.
"""

from __future__ import annotations

import math
import os
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.sparse import issparse

from saddlepoint.apps.constrained_game import ConstrainedGame
from saddlepoint.apps.equilibrium import Equilibrium, Step, steps_of
from saddlepoint.apps.player_costs import as_cost, check_cost, cost_at
from saddlepoint.apps.simplex import Simplex
from saddlepoint.ground.arrays import Array, dense
from saddlepoint.ground.errors import ProblemError
from saddlepoint.ground.linalg import inner
from saddlepoint.ground.time_limit import TimeLimit
from saddlepoint.ground.validation import as_pair, as_vector, positive
from saddlepoint.parts import simple
from saddlepoint.parts.coupling import DenseCoupling, SparseCoupling, as_coupling
from saddlepoint.parts.functions import Smooth
from saddlepoint.problems.saddle import Saddle
from saddlepoint.solving.interruption import signal_of
from saddlepoint.solving.solve import solve
from saddlepoint.theory.exploitability import UNIT, exploitability_bound, product_error

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DEFAULT_TOL = 1e-6  # exploitability to reach if none is given, relative to half the range of the payoffs
SUM_ERROR = 1e-9  # |sum(v) - 1| up to which a given vector counts as probabilities
SOLVER_SHARE = 0.5  # exploitability that the solver is asked for, relative to tol: the rest is left to rounding
LARGE = 250  # choices of a player from which the augmented Lagrangian is not tried
CALLS = 20_000  # calls of each oracle after which the augmented Lagrangian takes over in smaller games
PATIENCE = 40  # outer steps of the solver in which the exploitability must be halved, or the run ends


@dataclass(frozen=True)
class MatrixGameResult:
    """Mixed strategies of both players, and how good they are.

    Attributes:
        row: the probabilities with which the row player, who maximises, chooses the rows.
        column: the probabilities with which the column player, who minimises, chooses the columns.
        value: row' A column, minus the cost of the row player, plus that of the column player, rounded. The value of
            the game is no further from the exact number than ``exploitability``. NaN if a cost was given no value.
        exploitability: a proven bound on what best responses gain together, max_i (A column)_i - min_j (A' row)_j if
            there are no costs.
        distance: a proven bound on the distance of (row, column) to the equilibrium, |row - row*| + |column - column*|;
            infinite unless both players have strongly convex costs.
        solved: whether the exploitability is at most the tolerance.
        message: how the run ended, in a sentence.
        seconds: the time it took.
        calls: oracle calls of the run.
        history: a ``Step`` for each certificate of the run, and a last one for this answer.
        interrupted: the signal that ended the run, "SIGINT" (Ctrl-C) or "SIGTERM"; empty if none did.
    """

    row: Array
    column: Array
    value: float
    exploitability: float
    distance: float = math.inf
    solved: bool = False
    message: str = ""
    seconds: float = 0.0
    calls: dict[str, int] = field(default_factory=dict)
    history: list[Step] = field(default_factory=list)
    interrupted: str = ""

    def to_dict(self) -> dict[str, Any]:
        """All but the strategies and the history, in plain Python values."""
        names = ("solved", "message", "value", "exploitability", "distance", "seconds", "calls", "interrupted")
        return {name: getattr(self, name) for name in names}

    def plot(self, path: str | Path | None = None) -> Figure:
        """Proven exploitability against oracle calls and against seconds (needs matplotlib).

        The picture is saved to ``path`` if that is given.
        """
        from saddlepoint.apps.game_plot import plot_exploitability

        return plot_exploitability({"answer": self}, path)

    def __repr__(self) -> str:
        lines = [
            f"{'solved' if self.solved else 'not solved'}: {self.message}",
            f"  value           {self.value:.9g}",
            f"  exploitability  <= {self.exploitability:.3g}",
            *([f"  distance        <= {self.distance:.3g}"] if self.distance < math.inf else []),
            f"  game            {len(self.row)} rows, {len(self.column)} columns, {self.seconds:.3g} s",
        ]
        return "\n".join(lines)


class MatrixGame:
    """A zero-sum game in probabilities: A is the payoff of the row player, who maximises x'Ay, as in nashpy.

    The column player receives -A and minimises x'Ay. x has the probabilities of the rows, y those of the columns. With
    costs, the row player maximises x'Ay - cost_row(x), and the column player minimises x'Ay + cost_column(y).

    Args:
        payoff: A, with a row for each choice of the row player: an array or a SciPy sparse array.
        cost_row, cost_column: convex ``Smooth`` functions of the probabilities x and y; a number c stands for
            c/2 |x|^2, and None is no cost.

    Attributes:
        payoff: A in float64.
        cost_row, cost_column: the costs as functions, or None.
        shape: the number of rows and of columns.

    Raises:
        ProblemError: the payoff is not a matrix of finite real numbers, its entries cannot be read, or a cost is not a
            convex function of as many variables as the player has choices.

    Example:
        >>> import numpy as np, saddlepoint as sp
        >>> game = sp.apps.MatrixGame([[2.0, -1.0], [-1.0, 1.0]])
        >>> found = game.solve(tol=1e-9)
        >>> found.solved, found.row.round(6), found.column.round(6), round(found.value, 6)
        (True, array([0.4, 0.6]), array([0.4, 0.6]), 0.2)
        >>> round(game.exploitability(row=[0.5, 0.5], column=[0.5, 0.5]), 6)
        0.5
        >>> with_costs = sp.apps.MatrixGame([[2.0, -1.0], [-1.0, 1.0]], cost_row=0.5, cost_column=0.5)
        >>> found = with_costs.solve(tol=1e-12)
        >>> found.row.round(4), found.distance <= 1e-5
        (array([0.4231, 0.5769]), True)
    """

    def __init__(
        self, payoff: Any, cost_row: Smooth | float | None = None, cost_column: Smooth | float | None = None
    ) -> None:
        A = as_coupling(payoff, "payoff")
        if not isinstance(A, DenseCoupling | SparseCoupling):
            raise ProblemError(
                f"payoff is a {type(payoff).__name__}; expected a NumPy array or a SciPy sparse array, because the "
                "entries of A are needed (of an operator, A @ np.eye(columns) has them)"
            )
        self.payoff = A.A.astype(np.float64)
        self.shape: tuple[int, int] = (int(self.payoff.shape[0]), int(self.payoff.shape[1]))
        self._centre, self._centred = _centred(self.payoff)
        self._largest = float(abs(self._centred).max())
        self._half_range = 0.5 * float(self.payoff.max()) - 0.5 * float(self.payoff.min())
        self._unit = math.ldexp(1.0, math.frexp(self._largest)[1] - 1)  # a power of two: scaling is exact
        self._rows, self._columns = Simplex(self.shape[0]), Simplex(self.shape[1])
        self.cost_row = _checked_cost(cost_row, "cost_row", self.shape[0])
        self.cost_column = _checked_cost(cost_column, "cost_column", self.shape[1])

    @property
    def problem(self) -> Saddle:
        """The game with two strongly convex costs as a saddle problem, in which x minimises: x is ``column`` here."""
        if self.cost_row is None or self.cost_column is None:
            raise ProblemError("problem needs costs of both players; this game has none for one of them")
        p, q = self.cost_row + simple.Simplex(), self.cost_column + simple.Simplex()
        return Saddle(q, p, self.payoff.T)

    def solve(
        self,
        *,
        tol: float | None = None,
        max_seconds: float | None = None,
        progress: bool = False,
        start: tuple[Any, Any] | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
    ) -> MatrixGameResult:
        """Strategies whose exploitability is proven to be at most ``tol``.

        Args:
            tol: the exploitability to reach, in units of the payoff; None is 1e-6 times half the range of the payoffs,
                which is their largest minus their smallest. With costs, their L are added to half the range.
            max_seconds: wall-clock limit.
            progress: show a progress bar.
            start: probabilities of the rows and of the columns, such as those of an earlier run; the answer is not
                worse. For games without costs, as is the next one.
            checkpoint: a file to which the run is written, and from which the same call goes on if it is there.
        """
        limit = TimeLimit(max_seconds)
        goal = DEFAULT_TOL * self._size() if tol is None else positive(tol, "tol")
        if self.cost_row is not None or self.cost_column is not None:
            if start is not None or checkpoint is not None:
                raise ProblemError(
                    "start and checkpoint of MatrixGame.solve are for games without costs; with costs, "
                    "sp.solve(game.problem, x0, y0, checkpoint=...) takes them"
                )
            return self._solve_with_costs(goal, limit, progress)
        rows, columns = [self._rows.start, self._best_pure_row()], [self._columns.start, self._best_pure_column()]
        if start is not None:
            row, column = as_pair(start, "start")
            rows.append(_as_probabilities(row, "start[0]", self.shape[0]))
            columns.append(_as_probabilities(column, "start[1]", self.shape[1]))
        found = self._best_of(rows, columns)
        if found.exploitability <= goal:
            return _ended(found, goal, "", [], limit.spent)
        accuracy = max(SOLVER_SHARE * goal, self._rounding()) / self._unit
        first = (rows[0], columns[0]) if start is None else (rows[-1], columns[-1])
        mixed = _solve_mixed(self._centred / self._unit, first, accuracy, limit, progress, checkpoint)
        found = self._best_of([*rows, mixed.y], [*columns, mixed.x])
        found = replace(found, calls=mixed.calls, interrupted=mixed.interrupted)
        history = [step._replace(exploitability=self._unit * step.exploitability) for step in mixed.history]
        return _ended(found, goal, self._advice(goal), history, limit.spent)

    def exploitability(self, row: Any, column: Any) -> float:
        """What best responses to ``row`` and ``column`` gain together: max_i (A column)_i - min_j (A' row)_j.

        With costs, the bound is that of best responses to the gradients of what the players want. The number is never
        too small, because the largest possible effect of rounding is added to it. Where the given probabilities sum to
        1 only up to rounding, it is that of row/sum(row) and column/sum(column).
        """
        x, y = _as_probabilities(row, "row", self.shape[0]), _as_probabilities(column, "column", self.shape[1])
        if self.cost_row is not None or self.cost_column is not None:
            return self._constrained().exploitability(y, x)
        return self._best_of([x], [y]).exploitability

    def value(self, row: Any, column: Any) -> float:
        """The expected payoff row' A column, minus the cost of the row player, plus that of the column player."""
        x, y = _as_probabilities(row, "row", self.shape[0]), _as_probabilities(column, "column", self.shape[1])
        return self._value(x, y)

    def _value(self, x: Array, y: Array) -> float:
        costs = cost_at(self.cost_column, y) - cost_at(self.cost_row, x)
        return self._centre + inner(x, self._centred @ y) + costs

    def _size(self) -> float:
        """Half the range of the payoffs, plus the L of the costs: the unit of the default tolerance."""
        return self._half_range + sum(cost.L for cost in (self.cost_row, self.cost_column) if cost is not None)

    def _constrained(self) -> ConstrainedGame:
        """The same game with x and y exchanged, because x minimises there."""
        return ConstrainedGame(self.payoff.T, self._columns, self._rows, self.cost_column, self.cost_row)

    def _solve_with_costs(self, goal: float, limit: TimeLimit, progress: bool) -> MatrixGameResult:
        """The solution of a game in which a player bears a cost."""
        run = self._constrained().solve(tol=goal, max_seconds=limit.left, progress=progress)
        value = self._value(run.y, run.x)
        found = MatrixGameResult(run.y, run.x, value, run.exploitability, run.distance)
        found = replace(found, calls=run.calls, interrupted=run.interrupted)
        return _ended(found, goal, "raise tol or max_seconds", run.history, limit.spent)

    def _best_of(self, rows: list[Array], columns: list[Array]) -> MatrixGameResult:
        """The best of the given strategies of each player, which does not depend on the strategy of the other."""
        B = self._centred
        with np.errstate(over="ignore", invalid="ignore"):
            lows = [(float((B.T @ x).min()), self._error(x)) for x in rows]
            highs = [(float((B @ y).max()), self._error(y)) for y in columns]
        i = max(range(len(rows)), key=lambda i: lows[i][0] - lows[i][1])
        j = min(range(len(columns)), key=lambda j: highs[j][0] + highs[j][1])
        bound = exploitability_bound(highs[j][0], lows[i][0], highs[j][1] + lows[i][1])
        return MatrixGameResult(rows[i].copy(), columns[j].copy(), self._value(rows[i], columns[j]), bound)

    def _error(self, v: Array) -> float:
        """The error of the products with ``v``; centring rounds each payoff once."""
        entries = UNIT if self._centre else 0.0
        return product_error(self._largest, int(np.count_nonzero(v)), math.fsum(v.tolist()), entries)

    def _best_pure_row(self) -> Array:
        """The row whose worst payoff is the best."""
        return self._rows.pure(int(np.argmax(_flat(self._centred.min(axis=1)))))

    def _best_pure_column(self) -> Array:
        """The column whose largest payoff is the smallest."""
        return self._columns.pure(int(np.argmin(_flat(self._centred.max(axis=0)))))

    def _advice(self, goal: float) -> str:
        """What to do if the goal was not reached."""
        if goal <= 10.0 * self._rounding():
            return f"rounding alone can make {self._rounding():.3g} in this game, raise tol"
        return "raise tol, or max_seconds if it ended the run"

    def _rounding(self) -> float:
        """What rounding adds to the exploitability if all probabilities are positive."""
        m, n = self.shape
        return product_error(self._largest, m, 1.0, UNIT) + product_error(self._largest, n, 1.0, UNIT)


class _Mixed(NamedTuple):
    """Strategies x of the columns and y of the rows, and the run that found them."""

    x: Array
    y: Array
    calls: dict[str, int]
    history: list[Step]
    interrupted: str


def _solve_mixed(
    A: Any, start: tuple[Array, Array], tol: float, limit: TimeLimit, progress: bool, checkpoint: Any
) -> _Mixed:
    """Mixed strategies; ``tol`` is the exploitability that is asked for.

    This is a saddle problem with the two simplices as simple terms, whose duality gap is the exploitability. Where
    ``solve`` takes too many calls on a small game, the augmented Lagrangian of ``ConstrainedGame`` takes over. In both,
    x minimises and y maximises: hence x chooses the columns and y the rows.
    """
    m, n = A.shape
    f = Saddle(simple.Simplex(), simple.Simplex(), A.T)
    calls = CALLS if max(m, n) < LARGE else None
    limits: dict[str, Any] = {"max_calls": calls, "max_seconds": limit.left}
    result = solve(f, start[1], start[0], gap=tol, **limits, progress=progress, checkpoint=checkpoint)
    x, y, ended_by = np.asarray(result.x), np.asarray(result.y), signal_of(result)
    first = _Mixed(x, y, dict(result.calls), steps_of(result.history), ended_by)
    if result.certificate.gap <= tol or ended_by or calls is None or limit.is_over:
        return first
    game = ConstrainedGame(A.T, Simplex(n), Simplex(m))
    seen: list[float] = []

    def stop_without_progress(now: Equilibrium) -> None:
        seen.append(now.exploitability)
        if len(seen) > PATIENCE and seen[-1] > 0.5 * seen[-1 - PATIENCE]:
            raise StopIteration

    spent = limit.spent
    found = game.solve(tol=tol, max_seconds=limit.left, callback=stop_without_progress, progress=progress)
    before = max(first.calls.values())
    later = [step._replace(calls=before + step.calls, seconds=spent + step.seconds) for step in found.history]
    both = dict(Counter(first.calls) + Counter(found.calls))
    return _Mixed(found.x, found.y, both, first.history + later, found.interrupted)


def _ended(found: MatrixGameResult, goal: float, advice: str, history: list[Step], seconds: float) -> MatrixGameResult:
    """The strategies with how the run ended, and a history whose last step is this answer."""
    reached, asked = f"exploitability {found.exploitability:.3g}", f"tol {goal:.3g}"
    solved = found.exploitability <= goal
    last = history[-1] if history else Step(0, 0, 0.0, 0.0, 0.0, 0.0)
    answer = last._replace(seconds=seconds, exploitability=found.exploitability)
    short = f"interrupted at {reached} > {asked}" if found.interrupted else f"{reached} > {asked}; {advice}"
    message = f"{reached} <= {asked}" if solved else short
    return replace(found, solved=solved, message=message, seconds=seconds, history=[*history, answer])


def _centred(A: Any) -> tuple[float, Any]:
    """The middle c of the smallest and the largest payoff, and A - c, in which the players have the same strategies.

    Rounding errors are then relative to the differences of payoffs. A sparse matrix with zeros remains as it is.
    """
    if issparse(A) and A.nnz < A.shape[0] * A.shape[1]:
        return 0.0, A
    centre = 0.5 * float(A.min()) + 0.5 * float(A.max())
    if centre == 0.0:
        return 0.0, A
    if not issparse(A):
        return centre, A - centre
    B = A.copy()
    B.data -= centre
    return centre, B


def _checked_cost(cost: Any, name: str, size: int) -> Smooth | None:
    if cost is None:
        return None
    found = as_cost(cost, name, "convex")
    check_cost(found, name, size)
    return found


def _flat(vector: Any) -> Array:
    return dense(vector).ravel()


def _as_probabilities(value: Any, name: str, size: int) -> Array:
    v = as_vector(value, name, size).astype(np.float64)
    if v.min() < 0.0:
        raise ProblemError(f"{name} has a negative entry, {v.min():.3g}; expected probabilities")
    if abs(v.sum() - 1.0) > SUM_ERROR:
        raise ProblemError(f"{name} sums to {v.sum():.9g}; expected probabilities, which sum to 1")
    return v
