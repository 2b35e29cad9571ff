r"""Two players with costs of their own and a bilinear payoff between them, over free vectors.

Problem:    min_x max_y g(x) + <x, A y> - h(y). Player x minimises and y maximises the payoff x'Ay; g is the cost of x
            alone and h the cost of y alone. x and y are vectors without constraints. For probabilities see
            ``MatrixGame``, and for other linear constraints ``ConstrainedGame``.
Constants:  mu and L of the costs, |A|. A cost c/2 |x|^2 has mu = L = c; ``Huber``, ``LogCosh`` and ``Entropy`` state
            their own.
Guarantee:  the certificate. The exploitability max_y' f(x, y') - min_x' f(x', y) is the duality gap, and at most
            |F_x|^2/(2 mu_x) + |F_y|^2/(2 mu_y).
Reference:  J. B. Rosen, Existence and uniqueness of equilibrium points for concave n-person games, Econometrica 1965.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from saddlepoint.apps.player_costs import as_cost, cost_at
from saddlepoint.ground.arrays import Array
from saddlepoint.parts.functions import Smooth
from saddlepoint.problems.saddle import Saddle
from saddlepoint.problems.strong_convexity import require_strongly_convex
from saddlepoint.solving.result import Result
from saddlepoint.solving.solve import solve


@dataclass(frozen=True)
class CoupledCostsResult:
    """The equilibrium of two players with coupled costs.

    Attributes:
        x, y: the vectors that the players choose.
        value: g(x) + <x, A y> - h(y), which x minimises and y maximises; NaN if a cost was given no value.
        exploitability: a proven bound on what both players together can gain if each changes its vector alone.
        distance: a proven bound on the distance of (x, y) to the equilibrium.
        result: the run that found it.
    """

    x: Array
    y: Array
    value: float
    exploitability: float
    distance: float
    result: Result

    @property
    def solved(self) -> bool:
        """Whether the run reached its tolerance."""
        return self.result.solved

    def __repr__(self) -> str:
        lines = [
            f"{self.result.status}: {self.result.message}",
            f"  value           {self.value:.9g}",
            f"  exploitability  <= {self.exploitability:.3g}",
            f"  distance        <= {self.distance:.3g}",
            f"  method          {self.result.method}, {self.result.iterations} iterations, {self.result.seconds:.3g} s",
        ]
        return "\n".join(lines)


class CoupledCosts:
    """Two players choose free vectors: x minimises and y maximises g(x) + x'Ay - h(y).

    Each player bears a cost of its own, g or h, and the payoff x'Ay couples the two. The vectors are not probabilities:
    the game in mixed strategies is ``MatrixGame``.

    Args:
        payoff: A, which x minimises and y maximises as x'Ay: an array, a SciPy sparse array or a LinearOperator.
        cost_x, cost_y: g and h, strongly convex ``Smooth`` functions; a number c stands for c/2 |x|^2.

    Attributes:
        problem: the ``Saddle`` problem, for any method of the library.

    Example:
        >>> import numpy as np, saddlepoint as sp
        >>> game = sp.apps.CoupledCosts([[1.0, -2.0], [0.5, 1.0]], sp.Quadratic(1.0, [0.1, 0.2]), cost_y=2.0)
        >>> found = game.solve(tol=1e-9)
        >>> found.solved, round(found.value, 6), found.exploitability <= 1e-9
        (True, -0.018171, True)
    """

    def __init__(self, payoff: Any, cost_x: Smooth | float, cost_y: Smooth | float) -> None:
        g, h = (as_cost(cost, name, "strongly convex") for name, cost in (("cost_x", cost_x), ("cost_y", cost_y)))
        self.problem = Saddle(g, h, payoff)
        require_strongly_convex(self.problem)

    def solve(self, *, tol: float = 1e-6, **options: Any) -> CoupledCostsResult:
        """The equilibrium up to a certified distance of ``tol``; the options are those of ``solve``."""
        result = solve(self.problem, tol=tol, **options)
        x, y = result.x, result.y
        proof = result.certificate
        return CoupledCostsResult(x, y, self.value(x, y), proof.gap, proof.distance, result)

    def value(self, x: Array, y: Array) -> float:
        """g(x) + <x, A y> - h(y); NaN if a cost was given no value."""
        f = self.problem
        return cost_at(f.g, x) + float(x @ f.A.mul(y)) - cost_at(f.h, y)
