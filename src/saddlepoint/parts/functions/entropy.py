"""A smooth, strongly convex approximation of the negative entropy."""

from __future__ import annotations

from typing import Any

import numpy as np

from saddlepoint.ground.arrays import Array, eps_of, namespace
from saddlepoint.ground.diagonal import diagonal_matrix
from saddlepoint.ground.directed import div_down
from saddlepoint.ground.elementwise import choose, clip, log
from saddlepoint.ground.errors import ProblemError
from saddlepoint.ground.linalg import norm
from saddlepoint.ground.rounding import ELEMENTARY
from saddlepoint.parts.functions.given_constants import as_nonnegative
from saddlepoint.parts.functions.quadratic import Quadratic
from saddlepoint.parts.functions.second_order import UP
from saddlepoint.parts.functions.smooth import Smooth


class Entropy(Smooth):
    """The sum of phi(x_i), where phi(t) = t log t for low <= t <= high, and a parabola that fits smoothly outside.

    phi'' = 1/t clipped to [1/high, 1/low], hence mu = 1/high and L = 1/low.

    The function is finite everywhere, so it does not keep x positive: outside [low, high] it is a parabola, and a
    coordinate where the slope at the solution is s < phi'(0) = log(low) is low (s - log(low)) < 0 there. A smaller
    ``low`` brings it nearer to 0 and raises L.

    Args:
        low, high: the ends of the interval on which phi is t log t, with 0 < low < high.

    Example:
        >>> import numpy as np, saddlepoint as sp
        >>> h = sp.Entropy(low=1e-3)
        >>> h, float(h(np.array([0.5, 0.5])))
        (Entropy(mu=1, L=1000), -0.693...)
        >>> f = sp.Saddle(h, sp.Quadratic(1.0, [-10.0]), np.ones((1, 1)))  # y is about 10, and x becomes negative
        >>> sp.solve(f).x.round(4).tolist()
        [-0.0031]
    """

    def __init__(self, low: float = 1e-3, high: float = 1.0) -> None:
        self.low, self.high = as_nonnegative(low, "low of Entropy"), as_nonnegative(high, "high of Entropy")
        if not 0.0 < self.low < self.high:
            raise ProblemError(f"low = {self.low:g} and high = {self.high:g} of Entropy; expected 0 < low < high")
        super().__init__(
            self._gradient,
            mu=div_down(1.0, self.high),
            L=1.0 / self.low,
            value=self._value,
            hessian=self._hessian,
            hessian_lipschitz=self._hessian_change,
            second_order=self._quadratic_model,
            restrict=self._restrict,
            trusted=True,
            accuracy=0.0,
            rounding=self._rounding,
        )

    @property
    def proven_L(self) -> float:
        """1/low, rounded up."""
        return UP * self.L

    def _restrict(self, rows: slice) -> Entropy:
        return self

    def _gradient(self, x: Array) -> Array:
        t = clip(x, self.low, self.high)
        return 1.0 + log(t) + (x - t) / t

    def _rounding(self, x: Array) -> Array:
        """Bounds on the errors of the entries of 1 + log(t) + (x - t)/t.

        The errors are ELEMENTARY eps of log(t), eps of each of the two sums, and 2 eps of (x - t)/t. In float32 the
        ends of the range are rounded too, which changes the gradient by at most eps |x - t|/t. There is no gradient in
        more digits: each entry has a few terms and an error of a few eps of them, and log has no more digits.
        """
        xp, eps, t = namespace(x), eps_of(x), clip(x, self.low, self.high)
        logs, beyond = log(t), xp.abs(x - t) / t
        terms = ELEMENTARY * xp.abs(logs) + xp.abs(1.0 + logs) + 3.0 * beyond + xp.abs(self._gradient(x))
        bound: Array = eps * terms
        return bound

    def _quadratic_model(self, x: Array) -> Smooth:
        return Quadratic(1.0 / clip(x, self.low, self.high)).replace(mu=self.mu, L=self.L, trusted=True)

    def _hessian_change(self, x: Array, u: Array, reach: float) -> float:
        """An entry 1/t of the Hessian lies between its values at the ends of the interval; its rounding is added."""
        t, low, high = (clip(x + step, self.low, self.high) for step in (0.0, -reach, reach))
        more, less = 1.0 / low - 1.0 / t, 1.0 / t - 1.0 / high
        change = choose(more > less, more, less) + 8.0 * eps_of(x) / low
        return UP * norm(change * u)

    def _hessian(self, x: Array) -> Any:
        return diagonal_matrix(1.0 / np.clip(x, self.low, self.high))

    def _value(self, x: Array) -> float:
        t = clip(x, self.low, self.high)
        beyond = x - t
        values = t * log(t) + (1.0 + log(t)) * beyond + beyond * beyond / (2.0 * t)
        return float(namespace(values).sum(values))
