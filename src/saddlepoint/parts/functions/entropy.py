"""A smooth, strongly convex approximation of the negative entropy."""

from __future__ import annotations

import numpy as np

from saddlepoint.ground.arrays import Array, namespace
from saddlepoint.ground.elementwise import clip, log
from saddlepoint.ground.errors import ProblemError
from saddlepoint.parts.functions.smooth import Smooth, _constant


class Entropy(Smooth):
    """The sum of phi(x_i), where phi(t) = t log t for low <= t <= high, and a parabola that fits smoothly outside.

    phi'' = 1/t clipped to [1/high, 1/low], hence mu = 1/high and L = 1/low.

    The function is finite everywhere, so it does not keep x positive: outside [low, high] it is a parabola, and a
    coordinate where the slope at the solution is s < phi'(0) = log(low) is low (s - log(low)) < 0 there. A smaller
    ``low`` brings it nearer to 0 and raises L.

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
        self.low, self.high = _constant(low, "low of Entropy"), _constant(high, "high of Entropy")
        if not 0.0 < self.low < self.high:
            raise ProblemError(f"low = {self.low:g} and high = {self.high:g} of Entropy; expected 0 < low < high")
        super().__init__(
            self._gradient,
            mu=1.0 / self.high,
            L=1.0 / self.low,
            value=self._value,
            hessian=self._hessian,
            restrict=self._restrict,
            trusted=True,
        )

    def _restrict(self, rows: slice) -> Entropy:
        return self

    def _gradient(self, x: Array) -> Array:
        t = clip(x, self.low, self.high)
        return 1.0 + log(t) + (x - t) / t

    def _hessian(self, x: Array) -> Array:
        return np.diag(1.0 / np.clip(x, self.low, self.high))

    def _value(self, x: Array) -> float:
        t = clip(x, self.low, self.high)
        beyond = x - t
        values = t * log(t) + (1.0 + log(t)) * beyond + beyond * beyond / (2.0 * t)
        return float(namespace(values).sum(values))
