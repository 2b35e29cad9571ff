r"""Layers of JAX: one compiled loop forwards, a linear system backwards, and the field differentiated by JAX.

Forwards, Newton's method is tried first where the problem is small and smooth, as long as it brings the certified
distance down; LPD-GS (``methods.lpd_gs``) continues from there until that distance is at most ``tol``. The distance is
the one of ``theory.certificate``, after one prox step if there are simple terms. It is computed within the program,
without bounds on rounding errors; ``solve`` has these.

Backwards, the adjoint system is solved as a dense one. Simple terms restrict it to the face of the computed point.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
from jax import numpy as jnp

from saddlepoint.ground.errors import ProblemError
from saddlepoint.ground.recording import recording
from saddlepoint.ground.validation import as_count, positive
from saddlepoint.parts.functions.constants import recorded_ends
from saddlepoint.problems.saddle import Saddle
from saddlepoint.theory.lpd import MARGIN, SMALLEST
from saddlepoint.uses.layer.jax_faces import tangent

if TYPE_CHECKING:
    from saddlepoint.uses.layer.layer import Layer

NEWTON = 1500  # most variables of both players for steps of Newton's method
NEWTON_STEPS = 30  # most of them
CHECK = 10  # steps of LPD-GS between two certificates
MOST = 100_000  # steps of LPD-GS after which the loop gives up, unless max_steps says otherwise


class Constants(NamedTuple):
    """The constants of a problem, numbers or symbols of JAX."""

    mu_x: Any
    mu_y: Any
    L_x: Any
    L_y: Any
    norm: Any


def make(layer: Layer) -> Callable[..., Any]:
    """The function of arrays that the layer is, compiled."""
    unknown = sorted(set(layer.options) - {"tol", "max_steps"})
    if unknown:
        raise ProblemError(
            f"a layer of JAX was given {', '.join(unknown)}; it is a compiled loop, whose options are tol and max_steps"
        )
    tol = positive(layer.options.get("tol", 1e-6), "tol")
    most = as_count(layer.options.get("max_steps", MOST), "max_steps")

    @jax.custom_vjp
    def solution(*tensors: Any) -> tuple[Any, Any]:
        return solved(built(layer, tensors), tol, most)

    def forward(*tensors: Any) -> Any:
        point = solution(*tensors)
        return point, (tensors, point)

    def backward(kept: Any, v: Any) -> Any:
        tensors, (x, y) = kept
        u = adjoint(built(layer, tensors), x, y, *v)

        def field(*given: Any) -> Any:
            f = built(layer, given)
            with recording():
                return f.field(x, y)

        _, pull = jax.vjp(field, *tensors)
        return pull((-u[0], -u[1]))

    solution.defvjp(forward, backward)

    def run(*tensors: Any) -> Any:
        dims = layer.dims(len(tensors))
        if dims is None:
            return one(*tensors)
        return jax.vmap(one, in_axes=dims)(*tensors)

    one = jax.jit(solution)
    return run


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
    c, (m, n) = constants(f), f.shape
    start = jnp.zeros(m, f.space.dtype), jnp.zeros(n, f.space.dtype)
    x, y, distance = certified(f, c, *start)
    if not f.has_simple and m + n <= NEWTON:
        x, y, distance = by_newton(f, c, x, y, distance, tol)
    x, y, distance = by_lpd_gs(f, c, x, y, distance, tol, most)
    return tuple(jnp.where(distance <= tol, z, jnp.nan) for z in (x, y))  # type: ignore[return-value]


def certified(f: Saddle, c: Constants, x: Any, y: Any) -> tuple[Any, Any, Any]:
    """A point and a bound on its distance: (x, y), or the point after one prox step if there are simple terms.

    The residual after a prox step with the step t is F(z+) - F(z) + (z - z+)/t.
    """
    Fx, Fy = f.field(x, y)
    if f.has_simple:
        tx, ty = 1.0 / (c.L_x + c.norm), 1.0 / (c.L_y + c.norm)
        nx, ny = f.g.simple_prox(x - tx * Fx, tx), f.h.simple_prox(y - ty * Fy, ty)
        Gx, Gy = f.field(nx, ny)
        Fx, Fy = Gx - Fx + (x - nx) / tx, Gy - Fy + (y - ny) / ty
        x, y = nx, ny
    weighted = jnp.vdot(Fx, Fx) / c.mu_x + jnp.vdot(Fy, Fy) / c.mu_y
    return x, y, jnp.sqrt((1.0 / c.mu_x + 1.0 / c.mu_y) * weighted)


def jacobian(f: Saddle, x: Any, y: Any) -> Any:
    """The Jacobian of the field."""
    m = f.shape[0]

    def stacked(z: Any) -> Any:
        return jnp.concatenate(f.field(z[:m], z[m:]))

    return jax.jacfwd(stacked)(jnp.concatenate([x, y]))


def by_newton(f: Saddle, c: Constants, x: Any, y: Any, distance: Any, tol: float) -> tuple[Any, Any, Any]:
    """Steps of Newton's method while the certified distance falls."""
    m = f.shape[0]

    def goes_on(state: Any) -> Any:
        k, _, _, distance, fell = state
        return (k < NEWTON_STEPS) & (distance > tol) & fell

    def step(state: Any) -> Any:
        k, x, y, distance, _ = state
        move = jnp.linalg.solve(jacobian(f, x, y), jnp.concatenate(f.field(x, y)))
        nx, ny, new = certified(f, c, x - move[:m], y - move[m:])
        fell = new < distance
        x, y, distance = (jnp.where(fell, a, b) for a, b in ((nx, x), (ny, y), (new, distance)))
        return k + 1, x, y, distance, fell

    state = jax.lax.while_loop(goes_on, step, (0, x, y, distance, jnp.isfinite(distance)))
    return state[1], state[2], state[3]


def by_lpd_gs(f: Saddle, c: Constants, x: Any, y: Any, distance: Any, tol: float, most: int) -> tuple[Any, Any, Any]:
    """Steps of LPD-GS, with the letters of ``methods.lpd_gs``, until the certified distance is at most tol."""
    a, b = (jnp.maximum(L / mu - 1.0, 0.0) for L, mu in ((c.L_x, c.mu_x), (c.L_y, c.mu_y)))
    cc = c.norm**2 / (c.mu_x * c.mu_y)
    trace = a + b + cc  # N^2 is the larger eigenvalue of a symmetric matrix with this trace and the determinant a b
    N2 = 0.5 * (trace + jnp.sqrt(jnp.maximum(trace**2 - 4.0 * a * b, 0.0)))
    N = jnp.maximum(MARGIN * jnp.sqrt(N2), SMALLEST)
    r = (1.0 + jnp.sqrt(1.0 + 4.0 * N**2)) / (2.0 * N) / N
    tx, ty, theta = r / c.mu_x, r / c.mu_y, 1.0 / (1.0 + r)

    def step(_: Any, s: Any) -> Any:
        x, y, Atx, w, q, u, v = s
        yn = f.h.simple_prox(theta * (y + ty * (Atx - v)), theta * ty)
        w = theta * (w + r * x)
        un = f.g.grad(w) - c.mu_x * w
        yb, ub = yn + theta * (yn - y), un + theta * (un - u)
        x = f.g.simple_prox(theta * (x - tx * (f.A.mul(yb) + ub)), theta * tx)
        q = theta * (q + r * yb)
        return x, yn, f.A.tmul(x), w, q, un, f.h.grad(q) - c.mu_y * q

    def goes_on(state: Any) -> Any:
        k, _, _, _, distance = state
        return (k < most) & (distance > tol)

    def steps(state: Any) -> Any:
        k, s, _, _, _ = state
        s = jax.lax.fori_loop(0, CHECK, step, s)
        return k + CHECK, s, *certified(f, c, s[0], s[1])

    start = (x, y, f.A.tmul(x), x, y, f.g.grad(x) - c.mu_x * x, f.h.grad(y) - c.mu_y * y)
    state = jax.lax.while_loop(goes_on, steps, (0, start, x, y, distance))
    return state[2], state[3], state[4]


def adjoint(f: Saddle, x: Any, y: Any, vx: Any, vy: Any) -> tuple[Any, Any]:
    """The solution of J' u = v, on the face of the point if there are simple terms."""
    m, v = f.shape[0], jnp.concatenate([vx, vy])
    K = jacobian(f, x, y).T
    if f.has_simple:
        Fx, Fy = f.field(x, y)
        (P, C), (Q, E) = tangent(f.g.simple, x, Fx), tangent(f.h.simple, y, Fy)
        P = jax.scipy.linalg.block_diag(P, Q)
        K = P @ (K + jax.scipy.linalg.block_diag(C, E)) @ P + (jnp.eye(v.shape[0], dtype=v.dtype) - P)
        v = P @ v
    u = jnp.linalg.solve(K, v)
    return u[:m], u[m:]
