"""Equilibria of games, and the steps of the runs that found them."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from saddlepoint.ground.arrays import Array
from saddlepoint.solving.result import History

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Step(NamedTuple):
    """One entry of the history: an outer step, and what was reached by then."""

    step: int
    calls: int  # calls of the oracle that was called most
    seconds: float
    exploitability: float
    infeasibility: float
    penalty: float


def steps_of(history: History) -> list[Step]:
    """The records of ``solve`` as steps; the duality gap of a game is its exploitability."""
    return [
        Step(row.iteration, max(row.grad_g, row.grad_h, row.A, row.At), row.seconds, row.gap, 0.0, 0.0)
        for row in history
    ]


@dataclass
class Equilibrium:
    """Strategies, and how good they are.

    Attributes:
        x, y: the strategies; x minimises and y maximises.
        value: p(x) + <x, A y> - q(y), which x minimises and y maximises.
        exploitability: a bound on what both players gain together if each changes its strategy alone. With strongly
            convex costs on two simplices, it may rest on the mu of the costs.
        distance: a bound on the distance to the equilibrium, |x - x*| + |y - y*|; infinite unless both players have
            probabilities with strongly convex costs.
        infeasibility: the largest violation of a constraint by x or y, relative to the right-hand sides.
        multipliers_x, multipliers_y: (l, u) and (s, v); l and s belong to the equations, u and v to the bounds.
        stationarity: the largest violation of A y + grad p + B'l - u = 0 and of the same equation of y, times the size
            that the strategy may have, so that it is in units of the payoff.
        solved: whether exploitability, stationarity and infeasibility are within their tolerances.
        message: how the run ended, in words.
        steps, calls, seconds: outer steps, oracle calls and time of the run.
        history: a ``Step`` for each outer step; for each certificate where one run of ``solve`` sufficed.
        interrupted: the signal that ended the run, "SIGINT" (Ctrl-C) or "SIGTERM"; empty if none did.
    """

    x: Array
    y: Array
    value: float
    exploitability: float
    infeasibility: float
    multipliers_x: tuple[Array, Array]
    multipliers_y: tuple[Array, Array]
    stationarity: float
    solved: bool
    message: str = ""
    steps: int = 0
    calls: dict[str, int] = field(default_factory=dict)
    seconds: float = 0.0
    history: list[Step] = field(default_factory=list)
    distance: float = math.inf
    interrupted: str = ""

    def to_dict(self) -> dict[str, Any]:
        """All but the arrays and the history, in plain Python values."""
        names = (
            "solved", "message", "value", "exploitability", "distance", "infeasibility", "stationarity", "steps",
            "calls", "seconds", "interrupted",
        )  # fmt: skip
        return {name: getattr(self, name) for name in names}

    def plot(self, path: str | Path | None = None) -> Figure:
        """Proven exploitability against oracle calls and against seconds (needs matplotlib).

        The picture is saved to ``path`` if that is given.
        """
        from saddlepoint.apps.game_plot import plot_exploitability

        return plot_exploitability({"answer": self}, path)

    def __repr__(self) -> str:
        calls = ", ".join(f"{name} {count}" for name, count in self.calls.items())
        lines = [
            f"{'solved' if self.solved else 'not solved'}: {self.message}",
            f"  value           {self.value:.9g}",
            f"  exploitability  {self.exploitability:.3g}",
            f"  infeasibility   {self.infeasibility:.3g} (of the multipliers {self.stationarity:.3g})",
            f"  cost            {self.steps} outer steps, {self.seconds:.3g} s; calls {calls}",
        ]
        return "\n".join(lines)
