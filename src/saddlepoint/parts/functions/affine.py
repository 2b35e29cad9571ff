"""A function after an affine change of its variable: u -> weight f(scale u + shift) + <linear, u>."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from scipy.sparse import diags_array, issparse

from saddlepoint.ground.arrays import Array, eps_of, is_array, namespace, space_of
from saddlepoint.ground.compensated import Sum
from saddlepoint.ground.directed import mul_down
from saddlepoint.ground.errors import ProblemError
from saddlepoint.ground.linalg import inner, norm
from saddlepoint.ground.recording import is_recording
from saddlepoint.ground.rounding import is_power_of_two, ones_like, underflow
from saddlepoint.parts.functions.accuracy import stated
from saddlepoint.parts.functions.compensated import compensated_gradient, exactly, times, total, widened
from saddlepoint.parts.functions.second_order import hessian_change, proven_L_of, quadratic_model
from saddlepoint.parts.simple.base import Simple
from saddlepoint.parts.simple.diagonal import diagonal_simple
from saddlepoint.parts.simple.rescaled import rescaled_simple

if TYPE_CHECKING:
    from saddlepoint.parts.functions.smooth import Smooth


UP = 1.0 + 2.0**-48  # factor that exceeds the relative rounding of the constants below


def affine(
    f: Smooth,
    *,
    scale: float | Array = 1.0,
    shift: Array | None = None,
    weight: float = 1.0,
    linear: Array | None = None,
    slope: float | None = None,
) -> Smooth:
    """The function u -> weight f(scale u + shift) + <linear, u>, with everything that is known of f.

    A part that is left out costs no vector operation. Only ``+ - *`` are applied to vectors, so they may be symbolic.

    Args:
        f: the function.
        scale: a number other than 0, or a vector of such numbers, one for each variable. With a vector the
            result has no prox, because it cannot be computed from the prox of f.
        shift, linear: vectors; zero if left out.
        weight: a positive number.
        slope: weight * scale, given instead of ``weight`` where the weight itself overflows or underflows; ``scale``
            must then be a number.
    """
    t = Affine(f, scale, shift, weight, linear, slope)
    if t.scale is t.slope is shift is linear is None:
        return f
    low, high = t.curvature_range
    if is_recording():
        simple = None if f.simple is None else t.simple(f.simple)
        return f.replace(
            grad=t.grad,
            mu=low * f.mu,
            L=high * f.L,
            value=None,
            prox=None,
            prox_of_sum=None,
            hessian=None,
            simple=simple,
            trusted=f.trusted,
        )
    vectors: list[Any] = [v for v in (scale, shift, linear) if is_array(v)]
    found = f.replace(
        grad=t.grad,
        mu=None if math.isnan(f.mu) else mul_down(low if f.mu >= 0.0 else math.nextafter(high, math.inf), f.mu),
        L=None if math.isnan(f.L) else high * f.L,
        value=None if f.value is None else t.value,
        prox=t.prox if f.has_prox and not is_array(scale) else None,
        prox_of_sum=None if f.prox_of_sum is None else t.prox_of_sum,
        dim=vectors[0].shape[0] if vectors and f.dim is None else f.dim,
        hessian=None if f.hessian is None else t.hessian,
        hvp=None,
        hessian_lipschitz=t.hessian_change,
        second_order=t.second_order,
        restrict=None if f.restrict is None else t.restrict,
        trusted=f.trusted,
        accuracy=None if math.isnan(f.accuracy) else min(t.slope_ratio * f.accuracy * UP, 1.0),
        rounding=None if f.rounding is None and math.isnan(f.accuracy) else t.rounding,
        simple=None if f.simple is None else t.simple(f.simple),
        compensated=t.compensated if f.compensated is not None and f.accuracy == 0.0 and t.is_exact_inside else None,
    )
    found._proven_L = partial(proven_L_of, f, high)
    return found


class Affine:
    """The oracles of u -> weight f(scale u + shift) + <linear, u>, as methods, which can be sent to other processes.

    Attributes:
        scale, slope, curvature: the factors of u, of the gradient of f and of its Hessian; None means 1.
    """

    def __init__(self, f: Smooth, scale: Any, shift: Any, weight: float, linear: Any, slope: float | None) -> None:
        self.f, self.f_grad, self.shift, self.linear = f, f.grad, shift, linear
        self.given = {"scale": scale, "shift": shift, "weight": weight, "linear": linear, "slope": slope}
        factor = weight * scale if slope is None else slope
        self.scale, self.slope, self.curvature = map(_unless_one, (scale, factor, factor * scale))

    @property
    def curvature_range(self) -> tuple[float, float]:
        """The smallest factor by which curvatures are multiplied, rounded down, and the largest one."""
        c: Any = 1.0 if self.curvature is None else self.curvature
        if is_recording():
            return (c, c) if not is_array(c) or not c.shape else (namespace(c).min(c), namespace(c).max(c))
        if not is_array(c):
            exact = self.scale is None or self.slope is None
            return (c if exact else mul_down(self.slope, self.scale)), c
        xp = namespace(c)
        return math.nextafter(float(xp.min(c)), 0.0), float(xp.max(c))

    def inside(self, u: Array) -> Array:
        """The argument of f, scale u + shift."""
        z = u if self.scale is None else self.scale * u
        return z if self.shift is None else z + self.shift

    def grad(self, u: Array) -> Array:
        """The gradient, slope grad f(scale u + shift) + linear."""
        scale, shift, slope, linear = self.scale, self.shift, self.slope, self.linear
        z = u if scale is None else scale * u
        p = self.f_grad(z if shift is None else z + shift)
        if slope is not None:
            p = slope * p
        return p if linear is None else p + linear

    @property
    def slope_ratio(self) -> float:
        """The largest factor of an entry of the gradient of f, relative to the smallest one."""
        if not is_array(self.slope):
            return 1.0
        xp, sizes = namespace(self.slope), namespace(self.slope).abs(self.slope)
        return float(xp.max(sizes)) / float(xp.min(sizes))

    def rounding(self, u: Array) -> Array:
        """Bounds on the errors of the entries of the gradient, beyond those that its ``accuracy`` accounts for.

        The argument of f is computed with an error d, which changes the gradient of f by at most L d, entry by entry if
        f is a sum over coordinates, and by at most L |d| otherwise. Three more operations are rounded. If f has an
        accuracy a, then a s (|grad f(z)| + L |z|) <= a |grad| + a |linear| + a s L (|scale| |u| + |shift|) with
        s = |slope|, of which the terms with |grad| and |u| are in the accuracy of the result.
        """
        f, xp, eps = self.f, namespace(u), eps_of(u)
        slope: Any = 1.0 if self.slope is None else self.slope
        s: Any = xp.abs(slope) if is_array(slope) else abs(slope)
        z, p = self.inside(u), self.f_grad(self.inside(u))
        bound: Array = 0.0 * xp.abs(p) if f.rounding is None else f.rounding(z)
        off = self._error_inside(u, z)
        if off is not None:
            bound = bound + (f.L * off if f.separable else (f.L * norm(off)) * ones_like(off))
        bound = s * bound
        if self.slope is not None:
            bound = bound + 3.0 * eps * xp.abs(slope * p) + underflow(p)
        if self.linear is not None:
            bound = bound + eps * xp.abs(slope * p + self.linear)
        if f.accuracy != 0.0:
            a = self.slope_ratio * stated(f, u, p)
            extra = 0.0 if self.linear is None else a * norm(self.linear)
            if self.shift is not None:
                extra += a * (float(xp.max(s)) if is_array(s) else s) * f.L * norm(self.shift)
            bound = bound + extra * ones_like(bound)
        return bound

    @property
    def is_exact_inside(self) -> bool:
        """Whether scale u + shift is computed without rounding, up to underflow."""
        return self.shift is None and not is_array(self.scale) and (self.scale is None or is_power_of_two(self.scale))

    def compensated(self, u: Array) -> Sum:
        """The gradient in about twice the digits, for an argument of f that is computed without rounding."""
        wide = widened(u)
        if wide is None:
            p = self.grad(u)
            return Sum(p, 0.0 * p, self.rounding(u))
        z = self.inside(wide)
        found = compensated_gradient(self.f, z)
        off = self._error_inside(wide, z)
        if off is not None:  # by underflow
            found = found._replace(error=found.error + (self.f.L * norm(off)) * ones_like(off))
        if self.slope is not None:
            found = times(found, self.slope)
        return found if self.linear is None else total(found, exactly(space_of(wide).cast(self.linear)))

    def _error_inside(self, u: Array, z: Array) -> Array | None:
        """Bounds on the errors of the entries of scale u + shift; None if they are exact."""
        xp, eps, scale = namespace(u), eps_of(u), self.scale
        error: Array | None = None
        if scale is not None:
            error = underflow(u)
            if is_array(scale) or not is_power_of_two(scale):
                error = error + 2.0 * eps * xp.abs(scale * u)
        if self.shift is not None:
            error = eps * xp.abs(z) if error is None else error + eps * xp.abs(z)
        return error

    def value(self, u: Array) -> float:
        """The value, weight f(scale u + shift) + <linear, u>."""
        found, weight = self.f(self.inside(u)), self.given["weight"]
        if self.given["slope"] is not None:  # the weight itself may overflow; these two factors do not
            found = self.given["slope"] * (found / self.given["scale"])
        elif weight != 1.0:
            found = weight * found
        return found if self.linear is None else found + inner(self.linear, u)

    def prox(self, v: Array, t: float) -> Array:
        """The prox, from that of f at scale (v - t linear) + shift with the step t curvature."""
        return self._prox(self.f.prox, v, t)

    def prox_of_sum(self, v: Array, t: float) -> Array:
        """The prox of the function together with its simple term."""
        return self._prox(self.f.whole_prox, v, t)

    def _prox(self, prox: Callable[[Array, float], Array], v: Array, t: float) -> Array:
        scale, shift, linear, curvature = self.scale, self.shift, self.linear, self.curvature
        z = self.inside(v)
        if linear is not None:
            z = z - (t if scale is None else t * scale) * linear
        z = prox(z, t if curvature is None else curvature * t)
        if shift is not None:
            z = z - shift
        return z if scale is None else (1.0 / scale) * z

    def simple(self, term: Simple) -> Simple:
        """The simple term as a function of u."""
        if self.shift is not None:
            raise ProblemError("a function with a simple term cannot be shifted; add the term afterwards")
        if is_array(self.scale):
            return diagonal_simple(term, self.scale, self.given["weight"])
        scale = 1.0 if self.scale is None else self.scale
        slope = 1.0 if self.slope is None else self.slope
        return rescaled_simple(term, scale, slope / scale)

    def hessian(self, u: Array) -> Any:
        """The Hessian, slope H scale, where H is the Hessian of f at scale u + shift."""
        assert self.f.hessian is not None
        H: Any = self.f.hessian(self.inside(u))
        if not is_array(self.scale):
            return H if self.curvature is None else self.curvature * H
        if issparse(H):
            return diags_array(self.slope) @ H @ diags_array(self.scale)
        return self.slope[:, None] * H * self.scale

    def second_order(self, u: Array) -> Smooth:
        """The quadratic function of the Hessian at u."""
        given = self.given | {"shift": None, "linear": None}
        return affine(quadratic_model(self.f, self.inside(u)), **given)

    def hessian_change(self, u: Array, d: Array, reach: float) -> float:
        """A bound on the change of the Hessian times d within this reach of u."""
        scale, slope = (1.0 if factor is None else factor for factor in (self.scale, self.slope))
        steepest, widest = (
            float(namespace(c).max(namespace(c).abs(c))) if is_array(c) else abs(c) for c in (slope, scale)
        )
        change = hessian_change(self.f, self.inside(u), scale * d, UP * widest * reach)
        return 0.0 if change == 0.0 else UP * steepest * change

    def restrict(self, rows: slice) -> Smooth:
        """The function of some of the coordinates."""
        assert self.f.restrict is not None
        given: dict[str, Any] = {name: v[rows] if is_array(v) else v for name, v in self.given.items()}
        return affine(self.f.restrict(rows), **given)


def _unless_one(factor: Any) -> Any:
    """The factor; None for the number 1, by which nothing needs to be multiplied."""
    return factor if is_array(factor) or factor != 1.0 else None
