r"""Second derivatives of functions that a caller wrote, compared with differences of their gradients.

A derivative of the solution takes products H(x) u from ``hvp``, from ``hessian``, or from automatic differentiation.
For every step t, with a bound c(t) on |(H(x') - H(x)) u| for all x' up to t |u| from x,

    |(grad(x + t u) - grad(x))/t - H(x) u|  <=  c(t) + the errors of the two gradients/t,

because the difference is the mean of H(x + s t u) u over 0 <= s <= 1; with a Lipschitz constant of the Hessian, c(t)/2
is enough. A larger one proves that the product, or the bound on the changes of the Hessian, is wrong. The errors of
gradients may be assumed, not proven: those that would explain the differences of the shortest steps are allowed, too.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from saddlepoint.ground.arrays import Array, eps_of, space_of
from saddlepoint.ground.errors import AssumptionError, ProblemError
from saddlepoint.ground.linalg import norm
from saddlepoint.parts.functions import Entropy, LogSumExp, Quadratic, Risk
from saddlepoint.parts.functions.block_sum import BlockSum
from saddlepoint.parts.functions.second_order import hessian_change
from saddlepoint.parts.functions.smooth import Smooth

READY = Quadratic, Risk, LogSumExp, Entropy  # classes whose second derivatives are those of this library
STEPS = 1.0, -1.0, 0.1, 1e-2, 1e-3, 1e-4, 1e-5, -1e-5  # relative to the point
SHORTEST, SHORT = 1e-5, 1e-4  # steps that show the errors of gradients, and steps over which a Hessian hardly changes
TWICE = 2.0  # factor of the errors of gradients that are known or assumed
NOISY = 5.0  # factor of those that would explain the shortest steps
DIFFERENT = 1e-2  # relative difference from which products and differences of gradients are said to disagree
ALIKE = 0.1  # relative difference up to which differences of gradients with short steps agree


class Compared(NamedTuple):
    """A product with the Hessian beside a difference of gradients.

    Attributes:
        relative: the length of the step, relative to the point.
        length: the length of the step.
        off: the length of (grad(x + t u) - grad(x))/t - H u.
        errors: what the errors of the gradients add to it.
        change: the bound on the mean change of H u over the step; infinite if none is known.
        size: the length of H u.
    """

    relative: float
    length: float
    off: float
    errors: float
    change: float
    size: float


def is_examined(f: Smooth) -> bool:
    """Whether the second derivatives are compared with gradients: where the caller wrote the function."""
    f = f.without_term
    if isinstance(f, BlockSum):
        return any(is_examined(part) for part in f.parts)
    return not f.trusted and not isinstance(f, READY)


def refuse_wrong_second_derivatives(f: Smooth, model: Smooth, name: str, x: Array, u: Array, noise: float) -> bool:
    """Raise an AssumptionError if gradients refute the products with the Hessian, or the bound on its changes.

    Args:
        f: the function, with its simple term.
        model: the function u -> <u, H(x) u>/2.
        name: "g" or "h".
        x: the point.
        u: the direction.
        noise: by how much gradients may be wrong beyond rounding.

    Returns:
        Whether products and differences agree as far as they can be compared. Where no bound on the changes of the
        Hessian is known, nothing can be refuted, and short steps that agree with each other but not with the product
        make it False.
    """
    product = model.grad(space_of(x).cast(u))
    if "complex" in str(product.dtype) or not math.isfinite(norm(product)):
        raise ProblemError(
            f"the product of the Hessian of {name} with a vector has entries that are complex, infinite or NaN; "
            f"correct the second derivatives of {name} (hvp= or hessian=)"
        )
    found = list(_comparisons(f, model, x, u, noise))
    level = max((one.off * one.length for one in found if one.relative <= SHORTEST), default=0.0)
    for one in found:
        if one.relative > SHORTEST and one.off > one.change + TWICE * one.errors + NOISY * level / one.length:
            raise _refuted(f, name, one)
    short = [one for one in found if one.relative <= SHORT]
    offs = [one.off for one in short]
    apart = all(one.off > DIFFERENT * one.size + TWICE * one.errors for one in short)
    steady = bool(offs) and max(offs) - min(offs) <= ALIKE * max(offs)
    unknown = all(one.change == math.inf for one in short)
    return not (unknown and apart and steady)


@np.errstate(all="ignore")  # gradients that overflow far from the point are left out
def _comparisons(f: Smooth, model: Smooth, x: Array, u: Array, noise: float) -> Iterator[Compared]:
    u = space_of(x).cast(u)
    length = norm(u)
    if not 0.0 < length < math.inf or not norm(x) < math.inf:
        return
    own = f.without_term
    at = f.inside(x)
    p, Hu = own.grad(at), model.grad(u)
    size, reach = norm(Hu), norm(at)
    mean = 1.0 if callable(own.hessian_lipschitz) else 0.5
    for relative in STEPS:
        t = relative * (reach if reach > 0.0 else 1.0) / length
        there = at + t * u
        if f.domain and f.simple is not None and f.simple.outside(there) > 0.0:
            continue
        q = own.grad(there)
        off = norm((q - p) / t - Hu)
        eps = max(eps_of(p), eps_of(at))
        error = own.gradient_error(at, p) + own.gradient_error(there, q) + 2.0 * noise
        error += 8.0 * eps * (own.L * (norm(there) + reach) + norm(p) + norm(q))  # of the point, and of the difference
        if not math.isfinite(off) or not math.isfinite(error):
            continue
        step = abs(t)
        change = mean * hessian_change(own, at, u, step * length)
        errors = error / step + 64.0 * eps * (size + own.L * length)
        yield Compared(abs(relative), step * length, off, errors, change, size)


def _refuted(f: Smooth, name: str, found: Compared) -> AssumptionError:
    own = f.without_term
    source = "hvp=" if own.hvp is not None else "hessian=" if own.hessian is not None else "by differentiation"
    if own.quadratic:
        claim = f"{name} was said to be quadratic (quadratic=True), but its gradient is not affine, or its Hessian"
        advice = f"leave quadratic=True out, or correct the Hessian of {name}"
    else:
        claim = f"the second derivatives of {name} ({source}), or hessian_lipschitz,"
        advice = f"correct the second derivatives of {name}, or give a larger hessian_lipschitz"
    return AssumptionError(
        name,
        "hessian",
        found.change,
        found.off,
        f"{claim} is wrong: two gradients at a distance of {found.length:.3g} differ by {found.off:.3g} from what the "
        f"product with the Hessian says, and the Hessian may change it by {found.change:.3g}; {advice}",
    )
