"""A function plus weight/2 |x - centre|^2, as proximal methods need it."""

from __future__ import annotations

import math
from functools import partial

from saddlepoint.ground.arrays import Array, eps_of, namespace, space_of
from saddlepoint.ground.compensated import Sum
from saddlepoint.ground.directed import add_down
from saddlepoint.ground.linalg import inner
from saddlepoint.ground.rounding import underflow
from saddlepoint.parts.functions.accuracy import SumRounding
from saddlepoint.parts.functions.compensated import compensated_gradient, exactly, times, total, widened
from saddlepoint.parts.functions.given_constants import known
from saddlepoint.parts.functions.second_order import proven_L_of, quadratic_model
from saddlepoint.parts.functions.smooth import Prox, Smooth, plus_identity


def anchored(f: Smooth, weight: float, centre: Array) -> Smooth:
    """The function f + weight/2 |x - centre|^2, which proximal steps minimise and Catalyst uses in the place of g.

    Args:
        f: the function.
        weight: a number that is not negative.
        centre: a vector.

    Only ``+ - *`` are applied to points, so they may be symbolic.
    """
    grad, value, F, restrict = f.grad, f.value, f.hessian, f.restrict

    def anchored_prox(prox: Prox, v: Array, t: float) -> Array:
        shrink = 1.0 / (1.0 + t * weight)
        return prox(shrink * (v + (t * weight) * centre), shrink * t)

    arithmetic = AnchoredRounding(f, weight, centre)
    found = f.replace(
        grad=lambda x: grad(x) + weight * (x - centre),
        mu=known(add_down(f.mu, weight)),
        L=known(f.L + weight),
        value=None if value is None else lambda x: value(x) + 0.5 * weight * inner(x - centre, x - centre),
        prox=partial(anchored_prox, f.prox) if f.has_prox else None,
        prox_of_sum=None if f.prox_of_sum is None else partial(anchored_prox, f.prox_of_sum),
        hessian=None if F is None else lambda x: plus_identity(F(x), weight),
        hvp=None,
        second_order=lambda x: anchored(quadratic_model(f, x), weight, 0.0 * centre),
        restrict=None if restrict is None else lambda rows: anchored(restrict(rows), weight, centre[rows]),
        trusted=f.trusted,
        accuracy=known(f.accuracy),
        rounding=None if f.rounding is None and math.isnan(f.accuracy) else arithmetic,
        compensated=None if f.compensated is None or f.accuracy != 0.0 else arithmetic.compensated,
    )
    found._proven_L = partial(proven_L_of, f, 1.0, weight)
    return found


class AnchoredRounding:
    """Bounds on the errors of the entries of grad f(x) + weight (x - centre)."""

    def __init__(self, f: Smooth, weight: float, centre: Array) -> None:
        self.f, self.weight, self.centre = f, weight, centre

    def __call__(self, x: Array) -> Array:
        """The bounds at x: those of a sum of two functions."""
        term = Smooth(self._gradient, mu=0.0, L=self.weight, accuracy=0.0, rounding=self._bounds)
        return SumRounding(self.f, term)(x)

    def compensated(self, x: Array) -> Sum:
        """The gradient in about twice the digits."""
        wide = widened(x)
        if wide is None:
            p = self.f.grad(x) + self._gradient(x)
            return Sum(p, 0.0 * p, self(x))
        step = total(exactly(wide), exactly(-space_of(wide).cast(self.centre)))
        return total(compensated_gradient(self.f, x), times(step, self.weight))

    def _gradient(self, x: Array) -> Array:
        return self.weight * (x - self.centre)

    def _bounds(self, x: Array) -> Array:
        """One rounding each of the difference, of the weight in the dtype of x, and of the product."""
        q = namespace(x).abs(self._gradient(x))
        bounds: Array = 3.0 * eps_of(x) * q + underflow(x - self.centre)
        return bounds
