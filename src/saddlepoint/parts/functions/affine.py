"""A function after an affine change of its variable: u -> weight f(scale u + shift) + <linear, u>."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from scipy.sparse import diags_array, issparse

from saddlepoint.ground.arrays import Array, is_array, namespace
from saddlepoint.ground.linalg import inner

if TYPE_CHECKING:
    from saddlepoint.parts.functions.smooth import Smooth


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
    vectors: list[Any] = [v for v in (scale, shift, linear) if is_array(v)]
    return f.replace(
        grad=t.grad,
        mu=None if math.isnan(f.mu) else low * f.mu,
        L=None if math.isnan(f.L) else high * f.L,
        value=None if f.value is None else t.value,
        prox=t.prox if f.has_prox and not is_array(scale) else None,
        dim=vectors[0].shape[0] if vectors and f.dim is None else f.dim,
        hessian=None if f.hessian is None else t.hessian,
        restrict=None if f.restrict is None else t.restrict,
        trusted=f.trusted,
    )


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
        """The smallest and the largest factor by which curvatures are multiplied."""
        c: Any = 1.0 if self.curvature is None else self.curvature
        if not is_array(c):
            return c, c
        xp = namespace(c)
        return float(xp.min(c)), float(xp.max(c))

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
        scale, shift, linear, curvature = self.scale, self.shift, self.linear, self.curvature
        z = self.inside(v)
        if linear is not None:
            z = z - (t if scale is None else t * scale) * linear
        z = self.f.prox(z, t if curvature is None else curvature * t)
        if shift is not None:
            z = z - shift
        return z if scale is None else (1.0 / scale) * z

    def hessian(self, u: Array) -> Any:
        """The Hessian, slope H scale, where H is the Hessian of f at scale u + shift."""
        assert self.f.hessian is not None
        H: Any = self.f.hessian(self.inside(u))
        if not is_array(self.scale):
            return H if self.curvature is None else self.curvature * H
        if issparse(H):
            return diags_array(self.slope) @ H @ diags_array(self.scale)
        return self.slope[:, None] * H * self.scale

    def restrict(self, rows: slice) -> Smooth:
        """The same function of some of the coordinates."""
        assert self.f.restrict is not None
        given: dict[str, Any] = {name: v[rows] if is_array(v) else v for name, v in self.given.items()}
        return affine(self.f.restrict(rows), **given)


def _unless_one(factor: Any) -> Any:
    """The factor; None for the number 1, by which nothing needs to be multiplied."""
    return factor if is_array(factor) or factor != 1.0 else None
