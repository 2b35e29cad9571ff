"""Many functions of one kind as one: f(x_1, ..., x_B) = f_1(x_1) + ... + f_B(x_B).

Numbers of the f_b, such as l2, become vectors of float64 where they differ: the steps of a float32 problem round them,
its certificates do not. A prox takes a step size for each variable, which is constant within a block.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias, cast

import numpy as np

from saddlepoint.ground.arrays import Array, Space, concat, eps_of, namespace
from saddlepoint.ground.compensated import Sum
from saddlepoint.ground.elementwise import cast_like
from saddlepoint.ground.linalg import norm
from saddlepoint.ground.rounding import underflow
from saddlepoint.parts.coupling import Coupling
from saddlepoint.parts.functions.accuracy import CompensatedGradient, Rounding
from saddlepoint.parts.functions.compensated import (
    compensated_gradient,
    divided,
    exactly,
    rounded,
    times,
    total,
    two_product,
    widened,
)
from saddlepoint.parts.functions.compensated import product as times_sum
from saddlepoint.parts.functions.entropy import Entropy
from saddlepoint.parts.functions.logsumexp import LogSumExp, score_errors, weight_errors
from saddlepoint.parts.functions.losses import Huber, LeastSquares, LogCosh, Logistic, SmoothedHinge
from saddlepoint.parts.functions.product_rounding import HALF, absolute, ridge_rounding, scaled_rounding
from saddlepoint.parts.functions.quadratic import Quadratic
from saddlepoint.parts.functions.risk import Risk
from saddlepoint.parts.functions.smooth import Gradient, Smooth
from saddlepoint.uses.batch.coupling import BatchedCoupling, stacked_couplings

Numbers: TypeAlias = float | Array
BlockProx: TypeAlias = Callable[[Array, Any], Array]


class Parts(NamedTuple):
    """The oracles of a stack: the gradient, bounds on the errors of its entries, and the prox if there is one."""

    grad: Gradient
    rounding: Rounding
    prox: BlockProx | None = None
    compensated: CompensatedGradient | None = None


def stacked(functions: Sequence[Smooth], size: int, space: Space) -> Smooth | None:
    """The sum of functions of ``size`` variables each; None unless all are of one kind that can be stacked."""
    kind = type(functions[0])
    if kind not in STACKS or not all(type(f) is kind and _has_own_bounds(f) for f in functions):
        return None
    parts = STACKS[kind](functions, size, space)
    if parts is None:
        return None
    return Smooth(
        parts.grad,
        mu=min(f.mu for f in functions),
        L=max(f.L for f in functions),
        prox=parts.prox,
        dim=len(functions) * size,
        space=space,
        quadratic=functions[0].quadratic,
        trusted=all(f.trusted for f in functions),
        accuracy=0.0,
        rounding=parts.rounding,
        compensated=parts.compensated,
    )


def _has_own_bounds(f: Smooth) -> bool:
    """Whether the bounds on the errors of the gradient are those of its class, and not what a caller has said."""
    bounds = getattr(f.rounding, "function", f.rounding)  # within a JaxProgram
    return f.accuracy == 0.0 and getattr(bounds, "__func__", None) is getattr(type(f), "_rounding", None)


def stretched_blocks(f: Smooth, a: Array, weight: Array, L: float) -> Smooth:
    """The function u -> sum_b weight_b f_b(a_b u_b), where the weights make mu = 1.

    Args:
        f: the sum of the f_b.
        a, weight: a number for each variable, constant within a block.
        L: the smoothness of the result.
    """
    slope, step = weight * a, weight * a * a

    def rounding(u: Array) -> Array:
        """The products with a and slope are rounded. If a u changes by d, the gradient of f does by at most L |d|."""
        assert f.rounding is not None
        xp, eps, p = namespace(u), eps_of(u), f.grad(a * u)
        moved = norm(2.0 * eps * xp.abs(a * u) + underflow(u)) * f.L
        bound: Array = slope * (f.rounding(a * u) + moved) + 4.0 * eps * xp.abs(slope * p) + underflow(p)
        return bound

    return f.replace(
        grad=lambda u: slope * f.grad(a * u),
        mu=1.0,
        L=max(1.0, L),
        value=None,  # the value of f is the sum of those of the f_b, each of which would need its own weight
        prox=(lambda v, t: f.prox(a * v, t * step) / a) if f.has_prox else None,
        hessian=None,
        restrict=None,
        trusted=f.trusted,
        accuracy=None if math.isnan(f.accuracy) else f.accuracy,
        rounding=None if f.rounding is None else rounding,
    )


def _quadratics(functions: Sequence[Any], size: int, space: Space) -> Parts | None:
    b = _joined([f.b for f in functions], size, space)
    if any(isinstance(f.P, Coupling) for f in functions):
        matrices = stacked_couplings([f.P for f in functions], space)
        if matrices is None:
            return None
        times, sizes, skew = matrices.mul, absolute(matrices), absolute(BatchedCoupling(_skew(matrices.A)))

        def product(x: Array) -> Array:
            return times(x) if b is None else times(x) + b

        def product_rounding(x: Array) -> Array:
            xp, eps = namespace(x), eps_of(x)
            bound: Array = sizes.errors(x) + HALF * skew.times(xp.abs(x))
            return bound if b is None else bound + eps * xp.abs(product(x))

        def compensated_product(x: Array) -> Sum:
            wide = widened(x)
            if wide is None:
                return Sum(product(x), 0.0 * x, product_rounding(x))
            found = total(matrices.compensated_mul(wide), None if b is None else exactly(cast_like(b, wide)))
            return found._replace(error=found.error + HALF * skew.times(abs(wide)))

        return Parts(product, product_rounding, compensated=compensated_product)
    P = _numbers([f.P for f in functions], size, space)

    def grad(x: Array) -> Array:
        Px = _like(P, x) * x
        return Px if b is None else Px + b

    def prox(v: Array, t: Any) -> Array:
        u: Array = (v if b is None else v - t * b) / (1.0 + t * _like(P, v))
        return u

    def rounding(x: Array) -> Array:
        return scaled_rounding(_like(P, x), b, x)

    def compensated(x: Array) -> Sum:
        wide = widened(x)
        if wide is None:
            return Sum(grad(x), 0.0 * x, rounding(x))
        return total(two_product(wide, _like(P, wide)), None if b is None else exactly(cast_like(b, wide)))

    return Parts(grad, rounding, prox, compensated)


def _skew(matrices: Any) -> Any:
    """The differences P - P' of square matrices."""
    return matrices - (np.swapaxes(matrices, 1, 2) if isinstance(matrices, np.ndarray) else matrices.mT)


def _stacked_data(functions: Sequence[Any], size: int, space: Space) -> tuple[BatchedCoupling | None, int] | None:
    """The data D of all functions, None if they have none, and the rows of each; None if the D cannot be stacked."""
    first = functions[0]
    if any((f.D is None) != (first.D is None) for f in functions):
        return None
    if first.D is None:
        return None, size
    D = stacked_couplings([f.D for f in functions], space)
    return None if D is None else (D, first.D.shape[0])


def _risks(functions: Sequence[Any], size: int, space: Space) -> Parts | None:
    first = functions[0]
    shape = {name: getattr(first, name) for name in ("delta", "width") if hasattr(first, name)}
    if any(getattr(f, name) != value for f in functions for name, value in shape.items()):
        return None
    data = _stacked_data(functions, size, space)
    if data is None:
        return None
    D, rows = data
    targets = [f.labels if hasattr(f, "labels") else f.t for f in functions]
    # The mean over the rows of all blocks is the sum of the blocks' means, divided by their number.
    losses: Risk = type(first)(None if D is None else D.bounded(), _joined(targets, rows, space), 0.0, **shape)
    count = 1.0 if D is None else float(len(functions))
    l2 = _numbers([f.l2 for f in functions], size, space)

    def grad(x: Array) -> Array:
        return count * losses.grad(x) + _like(l2, x) * x

    def prox(v: Array, t: Any) -> Array:
        shrink = 1.0 / (1.0 + t * _like(l2, v))
        return losses.prox(shrink * v, shrink * t)

    def rounding(x: Array) -> Array:
        """The bounds of the sum, times the number of blocks, and those of one more product and of l2 x."""
        assert losses.rounding is not None
        eps, p = eps_of(x), count * losses.grad(x)
        own: Array = count * losses.rounding(x) + eps * namespace(x).abs(p)
        return own + ridge_rounding(p, _like(l2, x), x)

    def compensated(x: Array) -> Sum:
        wide = widened(x)
        if wide is None:
            return Sum(grad(x), 0.0 * x, rounding(x))
        return total(times(compensated_gradient(losses, wide), count), two_product(wide, _like(l2, wide)))

    return Parts(grad, rounding, prox if losses.has_prox else None, compensated)


def _smooth_maxima(functions: Sequence[Any], size: int, space: Space) -> Parts | None:
    blocks = len(functions)
    data = _stacked_data(functions, size, space)
    if data is None:
        return None
    D, rows = data
    t = _joined([f.t for f in functions], rows, space)
    l2 = _numbers([f.l2 for f in functions], size, space)
    tau = _numbers([f.tau for f in functions], rows, space)
    rate = _numbers([1.0 / f.tau for f in functions], rows, space)
    xp = space.xp

    def scores(x: Array) -> Array:
        Dx = x if D is None else D.mul(x)
        found: Array = xp.reshape(_like(rate, x) * (Dx if t is None else Dx - t), (blocks, -1))
        return found

    def weights(scores: Array) -> Array:
        p = xp.exp(scores - xp.max(scores, axis=1, keepdims=True))
        flat: Array = xp.reshape(p / xp.sum(p, axis=1, keepdims=True), (-1,))
        return flat

    def grad(x: Array) -> Array:
        p = weights(scores(x))
        return (p if D is None else D.tmul(p)) + _like(l2, x) * x

    def rounding(x: Array) -> Array:
        """Bounds on the errors of the gradient, as those of ``LogSumExp``, block by block."""
        z = scores(x)
        e = score_errors(x, D, t, _like(rate, x), xp.reshape(z, (-1,)))
        p = weights(z)
        bound: Array = xp.reshape(weight_errors(z, xp.reshape(e, (blocks, -1))), (-1,))
        if D is not None:
            p, bound = D.tmul(p), absolute(D.T).errors(p, bound)
        return bound + ridge_rounding(p, _like(l2, x), x)

    def compensated(x: Array) -> Sum:
        """The gradient in about twice the digits, as that of ``LogSumExp``, block by block."""
        wide = widened(x)
        r = None if wide is None else exactly(wide) if D is None else times_sum(D, exactly(wide))
        if r is None or wide is None:
            return Sum(grad(x), 0.0 * x, rounding(x))
        r = divided(r if t is None else total(r, exactly(-cast_like(t, wide))), _like(tau, wide))
        high, e = (xp.reshape(part, (blocks, -1)) for part in rounded(r))
        p = weights(high)
        found = Sum(p, 0.0 * p, xp.reshape(weight_errors(high, e), (-1,)))
        product = found if D is None else times_sum(D.T, found)
        if product is None:
            return Sum(grad(x), 0.0 * x, rounding(x))
        return total(product, two_product(wide, _like(l2, wide)))

    return Parts(grad, rounding, compensated=compensated)


def _entropies(functions: Sequence[Any], size: int, space: Space) -> Parts | None:
    first = functions[0]
    same = all((f.low, f.high) == (first.low, first.high) for f in functions)
    return Parts(first.grad, first.rounding) if same else None


STACKS: dict[type[Smooth], Callable[[Sequence[Any], int, Space], Parts | None]] = {
    Quadratic: _quadratics,
    LeastSquares: _risks,
    Logistic: _risks,
    SmoothedHinge: _risks,
    Huber: _risks,
    LogCosh: _risks,
    LogSumExp: _smooth_maxima,
    Entropy: _entropies,
}


def _joined(vectors: Sequence[float | Array | None], size: int, space: Space) -> Array | None:
    """The vectors joined into one, with zeros in the place of None, a number for all entries; None if all are None."""
    if all(v is None for v in vectors):
        return None
    return concat([space.full(size, v or 0.0) if v is None or isinstance(v, float) else space.cast(v) for v in vectors])


def _numbers(values: Sequence[Numbers], size: int, space: Space) -> Numbers:
    """The numbers or vectors of all blocks as one vector of float64, or as one number if all are equal."""
    wide = space.wide
    if not all(isinstance(value, float) for value in values):
        return concat([wide.full(size, v) if isinstance(v, float) else wide.cast(v) for v in values])
    numbers = cast("Sequence[float]", values)
    return numbers[0] if len(set(numbers)) == 1 else wide.cast(np.repeat(numbers, size))


def _like(numbers: Numbers, x: Array) -> Numbers:
    return numbers if isinstance(numbers, float) else cast_like(numbers, x)
