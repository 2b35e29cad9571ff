r"""Layers of JAX: one compiled loop for the solution, and a linear system for its derivatives.

The solution: Newton's method is tried first where the problem is small and smooth, as long as it brings the certified
distance down; LPD-GS (``methods.lpd_gs``) continues from there until that distance is at most ``tol``.

Derivatives: with the projection P onto the directions in which the solution can move, the curvature C of the simple
terms, dF the change of the field and q the change of the prox at a fixed argument, both for fixed z, differentiating
z = prox(z - t F(z), t) gives

    dz = (I - P) q + P d    with    P (J + C) P d = P ((I + t C) q/t - dF - J (I - P) q).

JAX transposes this for gradients. Small systems are solved by a factorisation, others by LPD-GS.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import jax
from jax import numpy as jnp

from saddlepoint.ground.arrays import eps_of
from saddlepoint.ground.errors import ProblemError
from saddlepoint.ground.recording import recording
from saddlepoint.ground.validation import as_count, positive
from saddlepoint.parts.coupling import Coupling
from saddlepoint.parts.functions.constants import recorded_ends
from saddlepoint.parts.functions.quadratic import Quadratic
from saddlepoint.parts.functions.smooth import Smooth
from saddlepoint.problems.saddle import Saddle
from saddlepoint.uses.layer.jax_faces import Tangent, tangent
from saddlepoint.uses.layer.jax_loops import Constants, Oracles, by_lpd_gs, by_newton, certified
from saddlepoint.uses.layer.prox_argument import SMALL, prox_argument

if TYPE_CHECKING:
    from saddlepoint.uses.layer.layer import Layer

NEWTON = 1500  # most variables of both players for dense linear systems
MOST = 100_000  # steps of LPD-GS after which a loop gives up, unless max_steps says otherwise
ACCURACY = 1e-9  # the relative accuracy of linear systems that are solved by LPD-GS
HIDDEN = (
    "build of the layer uses an array that JAX traces or differentiates and that is no argument of the layer; make it "
    "an argument"
)
# What JAX raises where code takes numbers out of an array that it traces.
NUMBERS_TAKEN = jax.errors.TracerArrayConversionError, jax.errors.ConcretizationTypeError
ROUNDINGS = 64.0  # least relative accuracy of linear systems, in roundings of L/mu


def make(layer: Layer) -> Callable[..., Any]:
    """The function of arrays that the layer is, compiled."""
    unknown = sorted(set(layer.options) - {"tol", "max_steps"})
    if unknown:
        raise ProblemError(
            f"a layer of JAX was given {', '.join(unknown)}; it is a compiled loop, whose options are tol and max_steps"
        )
    tol = positive(layer.options.get("tol", 1e-6), "tol")
    most = as_count(layer.options.get("max_steps", MOST), "max_steps")

    @jax.custom_jvp
    def solution(*tensors: Any) -> tuple[Any, Any]:
        refuse_hidden(layer, tensors, is_differentiated)
        return solved(built(layer, tensors), tol, most)

    @solution.defjvp
    def derivative(tensors: Any, tangents: Any) -> Any:
        refuse_hidden(layer, tensors, lambda array: True)
        point = solution(*tensors)
        return point, moved(layer, tensors, tangents, point, most)

    def run(*tensors: Any) -> Any:
        dims = layer.dims(len(tensors))
        try:
            return one(*tensors) if dims is None else jax.vmap(one, in_axes=dims)(*tensors)
        except NUMBERS_TAKEN as error:
            raise ProblemError(
                "build of the layer, or a function in it, takes numbers out of an array that JAX traces, for example "
                "by functions of NumPy, float() or if; write it with jax.numpy, which JAX compiles and differentiates"
            ) from error
        except TypeError as error:
            if "No constant handler" not in str(error):
                raise
            raise ProblemError(HIDDEN) from None

    one = jax.jit(solution)
    return run


def refuse_hidden(layer: Layer, tensors: Any, is_refused: Callable[[Any], bool]) -> None:
    """Raise a ProblemError if ``build`` uses an array that JAX traces, that is no argument of the layer and is refused.

    JAX takes such arrays for constants where it differentiates the layer.
    """

    def problem(*given: Any) -> Any:
        f = built(layer, given)
        zeros: list[Any] = [jnp.zeros(n, f.space.dtype) for n in f.shape]
        with recording():
            terms = zip((f.g.simple, f.h.simple), zeros, strict=True)
            return f.field(*zeros), [0.0 if p is None else p.prox(z, 1.0) for p, z in terms]

    if any(is_refused(array) for array in jax.closure_convert(problem, *tensors)[1]):
        raise ProblemError(HIDDEN)


def is_differentiated(array: Any) -> bool:
    """Whether JAX is differentiating with respect to this array now; it may do so later with any that it traces."""
    if not isinstance(array, jax.core.Tracer):
        return False
    if type(array).__name__ in ("JVPTracer", "LinearizeTracer"):
        return True
    return any(is_differentiated(getattr(array, name, None)) for name in ("primal", "val"))


def built(layer: Layer, tensors: Any) -> Saddle:
    """The problem of these arrays, for differentiation and for compiled loops."""
    with recording():
        f = layer.build(*tensors)
    if not isinstance(f, Saddle):
        raise ProblemError(f"build of the layer returned a {type(f).__name__}; expected a Saddle")
    return f


def constants(f: Saddle) -> Constants:
    """The constants of the problem, with the norm of A."""
    found = Constants(f.mu_x, f.mu_y, f.L_x, f.L_y, jnp.sqrt(recorded_ends(f.A.matrix(), gram=True)[1]))
    for name, number in zip(("mu of g", "mu of h", "L of g", "L of h"), found, strict=False):
        if isinstance(number, float) and (math.isnan(number) or (number == 0.0 and name.startswith("mu"))):
            what = "is 0" if number == 0.0 else "is not given"
            raise ProblemError(f"{name} {what}; a layer needs mu > 0 and L of both functions, so give them to Smooth")
    return Constants(*(jax.lax.stop_gradient(jnp.asarray(number, dtype=f.space.dtype)) for number in found))


def solved(f: Saddle, tol: float, most: int) -> tuple[Any, Any]:
    """The saddle point; NaN if its certified distance is above tol after so many steps."""
    c, (m, n), oracles = constants(f), f.shape, Oracles.of(f)
    x, y, distance = certified(oracles, c, jnp.zeros(m, f.space.dtype), jnp.zeros(n, f.space.dtype))
    if not f.has_simple and m + n <= NEWTON:
        x, y, distance = by_newton(oracles, lambda x, y: jacobian(f, x, y), c, x, y, distance, tol)
    x, y, distance = by_lpd_gs(oracles, c, x, y, distance, most, lambda x, y: tol)
    return tuple(jnp.where(distance <= tol, z, jnp.nan) for z in (x, y))  # type: ignore[return-value]


def jacobian(f: Saddle, x: Any, y: Any) -> Any:
    """The Jacobian of the field."""
    A = f.A.matrix()
    return jnp.block([[_hessian(f.g, x), A], [-A.T, _hessian(f.h, y)]])


def _hessian(f: Smooth, x: Any) -> Any:
    with recording():
        f = f.without_term
    if isinstance(f, Quadratic) and isinstance(f.P, Coupling):
        return f.P.matrix()
    return jax.jacfwd(f.grad)(x)


def moved(layer: Layer, tensors: Any, tangents: Any, point: Any, most: int) -> tuple[Any, Any]:
    """The derivative of the solution along the tangents: the formula above."""
    f = built(layer, tensors)
    with recording():
        w = f.field(*point)
        terms = f.g.simple, f.h.simple
        at = [tangent(p, z, part) for p, z, part in zip(terms, point, w, strict=True)]
        t: list[Any] = [SMALL / jax.lax.stop_gradient(jnp.asarray(L, dtype=f.space.dtype)) for L in (f.L_x, f.L_y)]
        ends: list[Any] = [
            None if p is None else prox_argument(p, z, part, step)
            for p, z, part, step in zip(terms, point, w, t, strict=True)
        ]

    def equations(*given: Any) -> Any:
        """The field at the solution, and the prox of the simple terms at fixed arguments."""
        own = built(layer, given)
        with recording():
            proxes = [
                0.0 * z if p is None else p.prox(end, step)
                for p, z, end, step in zip((own.g.simple, own.h.simple), point, ends, t, strict=True)
            ]
            return own.field(*point), proxes

    _, (dF, q) = jax.jvp(equations, tensors, tangents)
    if not f.has_simple:
        return linear_solution(f, point, at, (-dF[0], -dF[1]), most)
    off = [part - side.project(part) for part, side in zip(q, at, strict=True)]
    slopes = [jax.jvp(g.grad, (z,), (part,))[1] for g, z, part in zip((f.g, f.h), point, off, strict=True)]
    Joff = slopes[0] + f.A.mul(off[1]), slopes[1] - f.A.tmul(off[0])
    right = [
        side.project((part + step * side.curvature(side.project(part))) / step - change - pull)
        for side, part, step, change, pull in zip(at, q, t, dF, Joff, strict=True)
    ]
    d = linear_solution(f, point, at, (right[0], right[1]), most)
    return off[0] + d[0], off[1] + d[1]


def linear_solution(f: Saddle, point: Any, at: list[Tangent], b: Any, most: int) -> tuple[Any, Any]:
    """The d with P (J + C) P d = b and P d = d, for b in the range of P."""
    m, right = f.shape[0], jnp.concatenate(b)

    def both(name: str, v: Any) -> Any:
        """A function of ``Tangent`` for both players."""
        return jnp.concatenate([getattr(at[0], name)(v[:m]), getattr(at[1], name)(v[m:])])

    if sum(f.shape) <= NEWTON:
        K = jacobian(f, *point)
        if f.has_simple:
            one = jnp.eye(sum(f.shape), dtype=right.dtype)
            K = both("project", K + both("curvature", one))
            K = both("project", K.T).T + one - both("project", one)
        d = jnp.linalg.solve(K, right)
    else:
        curved = [jax.linearize(part.grad, z)[1] for part, z in zip((f.g, f.h), point, strict=True)]

        def product(v: Any) -> Any:
            x, y = v[:m], v[m:]
            whole = jnp.concatenate([curved[0](x) + f.A.mul(y), curved[1](y) - f.A.tmul(x)])
            return both("project", whole + both("curvature", v)) if f.has_simple else whole

        by_loop = Loop(f, [jax.lax.stop_gradient(part.steep) for part in at], curved, at, most)
        d = jax.lax.custom_linear_solve(product, right, by_loop.solve, by_loop.solve_transposed)
    return d[:m], d[m:]


class Loop:
    """The same system by LPD-GS: it is a saddle problem with quadratic functions.

    Args:
        f: the problem.
        steep: bounds on the curvature of the simple terms.
        curved: products with the Hessians.
        at: the directions in which the solution can move.
        most: steps after which the loop gives up, and the answer is NaN.
    """

    def __init__(self, f: Saddle, steep: list[Any], curved: list[Any], at: list[Tangent], most: int) -> None:
        c = constants(f)
        self.f, self.at, self.curved, self.most = f, at, curved, most
        self.c = c._replace(L_x=c.L_x + steep[0], L_y=c.L_y + steep[1])

    def solve(self, _: Any, b: Any) -> Any:
        """The d with P (J + C) P d = b."""
        m = self.f.shape[0]
        return jnp.concatenate(self._solution(b[:m], b[m:]))

    def solve_transposed(self, _: Any, b: Any) -> Any:
        """The same with J'; there (x, -y) takes the place of (x, y)."""
        m = self.f.shape[0]
        x, y = self._solution(b[:m], -b[m:])
        return jnp.concatenate([x, -y])

    def _solution(self, bx: Any, by: Any) -> tuple[Any, Any]:
        c, f, at = self.c, self.f, self.at
        proxes = [lambda v, t, part=part: part.project(v) for part in at] if f.has_simple else [None, None]
        oracles = Oracles(
            lambda u: self.curved[0](u) + at[0].curvature(u) - bx,
            lambda u: self.curved[1](u) + at[1].curvature(u) - by,
            proxes[0],
            proxes[1],
            f.A.mul,
            f.A.tmul,
        )
        condition = (jnp.maximum(c.L_x, c.L_y) + c.norm) / jnp.minimum(c.mu_x, c.mu_y)
        relative = ACCURACY + ROUNDINGS * eps_of(bx) * condition

        def tol(x: Any, y: Any) -> Any:
            return relative * (jnp.linalg.norm(x) + jnp.linalg.norm(y))

        x, y, distance = certified(oracles, c, jnp.zeros_like(bx), jnp.zeros_like(by))
        x, y, distance = by_lpd_gs(oracles, c, x, y, distance, self.most, tol)
        found = distance <= tol(x, y)
        return jnp.where(found, x, jnp.nan), jnp.where(found, y, jnp.nan)
