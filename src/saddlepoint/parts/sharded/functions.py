"""Functions of vectors over shards, and functions that are sums over shards."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from saddlepoint.ground.arrays import Array, eps_of
from saddlepoint.ground.compensated import Sum
from saddlepoint.ground.directed import add_down, mul_down
from saddlepoint.ground.errors import ProblemError
from saddlepoint.ground.rounding import underflow
from saddlepoint.parts.functions.accuracy import known_rounding
from saddlepoint.parts.functions.compensated import times, total, two_product
from saddlepoint.parts.functions.given_constants import known
from saddlepoint.parts.functions.product_rounding import ridge_rounding
from saddlepoint.parts.functions.second_order import proven_L_of
from saddlepoint.parts.functions.smooth import Smooth
from saddlepoint.parts.sharded.simple import ShardedSimple
from saddlepoint.parts.sharded.vectors import Library, Sharded


class ShardedFunction(Smooth):
    """g as a function of a vector over shards. Every shard has the part of g that belongs to its rows.

    Args:
        g: a sum of functions of single coordinates, which therefore has ``restrict``; so must be its simple term.
        library: the array library of the engine.
    """

    def __init__(self, g: Smooth, library: Library) -> None:
        self.library, self.number = library, scatter_function(g.without_term, library)
        super().__init__(
            self._gradient,
            mu=known(g.mu),
            L=known(g.L),
            value=None if g.value is None else self._value,
            prox=self._proximal if g.has_prox else None,
            dim=g.dim,
            space=g.space,
            quadratic=g.quadratic,
            trusted=g.trusted,
            accuracy=known(g.accuracy),
            rounding=None if g.rounding is None else self._rounding,
            compensated=None if g.compensated is None else self._compensated,
            simple=None if g.simple is None else ShardedSimple(g.simple, library),
            domain=g.domain,
        )
        self._proven_L = partial(proven_L_of, g)

    @property
    def separable(self) -> bool:
        """True: g has ``restrict``."""
        return True

    def _compensated(self, x: Any) -> Sum:
        whole = Sharded(self.library, self.library.float64, "compensated", (self.number, self.library.asarray(x)))
        parts: list[Any] = [Sharded(self.library, whole.dtype, "row", (whole, k)) for k in range(3)]
        return Sum(*parts)

    def _rounding(self, x: Any) -> Any:
        return Sharded(self.library, self.library.float64, "rounding", (self.number, self.library.asarray(x)))

    def _gradient(self, x: Any) -> Any:
        point = self.library.asarray(x)
        return Sharded(self.library, point.dtype, "grad", (self.number, point))

    def _proximal(self, v: Any, t: float) -> Any:
        point = self.library.asarray(v)
        return Sharded(self.library, point.dtype, "prox", (self.number, point, float(t)))

    def _value(self, x: Any) -> float:
        return float(self.library.run([("value", None, (self.number, self.library.asarray(x)))])[0][0])


def scatter_function(g: Smooth, library: Library) -> int:
    """Store in every shard its part of g, and return the name of these parts."""
    restrict, engine = g.restrict, library.engine
    if g.simple is not None:
        raise ProblemError(f"g has the simple term {g.simple!r}, which is not applied in shards; add it elsewhere")
    if restrict is None:
        raise ProblemError(
            f"g is a {type(g).__name__} that couples x in different shards; with A in shards, expected a "
            "sum of functions of single coordinates: Quadratic with a number or a diagonal, Huber or LogCosh without "
            "D, Entropy, sums and multiples of them, or a Smooth with restrict="
        )
    name = engine.name()
    engine.scatter(name, lambda k: restrict(engine.slice(k)))
    return name


class ShardedRisk(Smooth):
    """y -> scale loss(D y) + l2/2 |y|^2, where D is in shards.

    Its gradient scale D' grad loss(D y) + l2 y takes one round, in which n numbers are sent and n received.

    Args:
        loss: a function of D y with ``restrict``, such as ``Huber(t=t)``.
        library: the array library of the engine whose matrix is D.
        scale: factor of the loss, usually 1/N for the mean over N rows.
        l2: factor of the regulariser.
        curvature: lower and upper bound on the second derivatives of the loss.
        gram: bounds on the smallest and the largest eigenvalue of D'D.
    """

    def __init__(
        self,
        loss: Smooth,
        library: Library,
        *,
        scale: float,
        l2: float,
        curvature: tuple[float, float],
        gram: tuple[float, float],
    ) -> None:
        self.library, self.number, self.scale, self.l2 = library, scatter_function(loss, library), scale, l2
        self.curvature = curvature[0] if curvature[0] == curvature[1] else None
        mu = add_down(l2, mul_down(scale, mul_down(curvature[0], gram[0])))
        L = l2 + scale * curvature[1] * gram[1]
        super().__init__(
            self._gradient,
            mu=mu,
            L=max(mu, L),
            value=None if loss.value is None else self._value,
            dim=library.engine.columns,
            dtype=library.engine.dtype,
            quadratic=loss.quadratic,
            trusted=True,
            **known_rounding(
                None if loss.rounding is None else self._rounding,
                None if loss.compensated is None else self._compensated,
            ),
        )

    def _rounding(self, y: Array) -> Array:
        """Bounds on the errors of the entries, in one round; the products with scale and l2 y are rounded too."""
        bounds = ("risk_rounding", None, (self.number, y.copy(), self.library.engine.shards))
        p, bound = self.library.run([("tmul", None, (self._slope(y),)), bounds])
        p = self.scale * p
        bound = self.scale * bound + 2.0 * eps_of(y) * np.abs(p) + underflow(p)
        return np.asarray(bound + ridge_rounding(p, self.l2, y))

    def _compensated(self, y: Array) -> Sum:
        """The gradient in about twice the digits, in one round; the factor ``scale`` may have been rounded."""
        wide = np.array(y, np.float64)
        answer = self.library.run([("risk_compensated", None, (self.number, wide, self.curvature))])[0]
        p = times(Sum(*answer.reshape(3, -1)), self.scale)
        p = p._replace(error=p.error + eps_of(wide) * np.abs(p.hi))
        return total(p, two_product(wide, self.l2)) if self.l2 > 0.0 else p

    def _slope(self, y: Array) -> Sharded:
        t = Sharded(self.library, y.dtype, "mul", (y.copy(),))
        return Sharded(self.library, y.dtype, "grad", (self.number, t))

    def _gradient(self, y: Array) -> Array:
        return self.scale * self.library.run([("tmul", None, (self._slope(y),))])[0] + self.l2 * y

    def _value(self, y: Array) -> float:
        t = Sharded(self.library, y.dtype, "mul", (y.copy(),))
        total = float(self.library.run([("value", None, (self.number, t))])[0][0])
        return self.scale * total + 0.5 * self.l2 * float(y.dot(y))
