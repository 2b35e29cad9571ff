r"""Compiled loops of JAX that solve saddle problems: Newton's method and LPD-GS, until a certified distance is small.

The certified distance is the one of ``theory.certificate``, after one prox step if there are simple terms. It is
computed within the program, without bounds on rounding errors; ``solve`` has these.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
from jax import numpy as jnp

from saddlepoint.problems.saddle import Saddle
from saddlepoint.theory.certificate import distance_bound
from saddlepoint.theory.lpd import MARGIN, SMALLEST

NEWTON_STEPS = 30  # most steps of Newton's method
CHECK = 10  # steps of LPD-GS between two certificates


class Constants(NamedTuple):
    """The constants of a problem, numbers or symbols of JAX."""

    mu_x: Any
    mu_y: Any
    L_x: Any
    L_y: Any
    norm: Any


class Oracles(NamedTuple):
    """What the loops call: gradients, prox of simple terms, and products with A.

    Attributes:
        prox_g, prox_h: None if there is no simple term.
    """

    grad_g: Callable[[Any], Any]
    grad_h: Callable[[Any], Any]
    prox_g: Callable[[Any, Any], Any] | None
    prox_h: Callable[[Any, Any], Any] | None
    mul: Callable[[Any], Any]
    tmul: Callable[[Any], Any]

    @classmethod
    def of(cls, f: Saddle) -> Oracles:
        """Those of a problem."""
        prox_g, prox_h = (None if part.simple is None else part.simple_prox for part in (f.g, f.h))
        return cls(f.g.grad, f.h.grad, prox_g, prox_h, f.A.mul, f.A.tmul)

    def field(self, x: Any, y: Any) -> tuple[Any, Any]:
        """The field without the simple terms."""
        return self.grad_g(x) + self.mul(y), self.grad_h(y) - self.tmul(x)


def certified(f: Oracles, c: Constants, x: Any, y: Any) -> tuple[Any, Any, Any]:
    """A point and a bound on its distance: (x, y), or the point after one prox step if there are simple terms.

    The residual after a prox step with the step t is F(z+) - F(z) + (z - z+)/t.
    """
    Fx, Fy = f.field(x, y)
    if f.prox_g is not None or f.prox_h is not None:
        tx, ty = 1.0 / (c.L_x + c.norm), 1.0 / (c.L_y + c.norm)
        nx, ny = _prox(f.prox_g, x - tx * Fx, tx), _prox(f.prox_h, y - ty * Fy, ty)
        Gx, Gy = f.field(nx, ny)
        Fx, Fy = Gx - Fx + (x - nx) / tx, Gy - Fy + (y - ny) / ty
        x, y = nx, ny
    return x, y, distance_bound(c.mu_x, c.mu_y, jnp.linalg.norm(Fx), jnp.linalg.norm(Fy))


def by_newton(
    f: Oracles, jacobian: Callable[[Any, Any], Any], c: Constants, x: Any, y: Any, distance: Any, tol: Any
) -> tuple[Any, Any, Any]:
    """Steps of Newton's method while the certified distance falls."""
    m = x.shape[0]

    def goes_on(state: Any) -> Any:
        k, _, _, distance, fell = state
        return (k < NEWTON_STEPS) & (distance > tol) & fell

    def step(state: Any) -> Any:
        k, x, y, distance, _ = state
        move = jnp.linalg.solve(jacobian(x, y), jnp.concatenate(f.field(x, y)))
        nx, ny, new = certified(f, c, x - move[:m], y - move[m:])
        fell = new < distance
        x, y, distance = (jnp.where(fell, a, b) for a, b in ((nx, x), (ny, y), (new, distance)))
        return k + 1, x, y, distance, fell

    state = jax.lax.while_loop(goes_on, step, (0, x, y, distance, jnp.isfinite(distance)))
    return state[1], state[2], state[3]


def by_lpd_gs(
    f: Oracles, c: Constants, x: Any, y: Any, distance: Any, most: int, tol: Callable[[Any, Any], Any]
) -> tuple[Any, Any, Any]:
    """Steps of LPD-GS, with the letters of ``methods.lpd_gs``, until the certified distance is at most tol(x, y)."""
    a, b = (jnp.maximum(L / mu - 1.0, 0.0) for L, mu in ((c.L_x, c.mu_x), (c.L_y, c.mu_y)))
    cc = c.norm**2 / (c.mu_x * c.mu_y)
    trace = a + b + cc  # N^2 is the larger eigenvalue of a symmetric matrix with this trace and the determinant a b
    N2 = 0.5 * (trace + jnp.sqrt(jnp.maximum(trace**2 - 4.0 * a * b, 0.0)))
    N = jnp.maximum(MARGIN * jnp.sqrt(N2), SMALLEST)
    r = (1.0 + jnp.sqrt(1.0 + 4.0 * N**2)) / (2.0 * N) / N
    tx, ty, theta = r / c.mu_x, r / c.mu_y, 1.0 / (1.0 + r)

    def step(_: Any, s: Any) -> Any:
        x, y, Atx, w, q, u, v = s
        yn = _prox(f.prox_h, theta * (y + ty * (Atx - v)), theta * ty)
        w = theta * (w + r * x)
        un = f.grad_g(w) - c.mu_x * w
        yb, ub = yn + theta * (yn - y), un + theta * (un - u)
        x = _prox(f.prox_g, theta * (x - tx * (f.mul(yb) + ub)), theta * tx)
        q = theta * (q + r * yb)
        return x, yn, f.tmul(x), w, q, un, f.grad_h(q) - c.mu_y * q

    def goes_on(state: Any) -> Any:
        k, _, x, y, distance = state
        return (k < most) & (distance > tol(x, y))

    def steps(state: Any) -> Any:
        k, s, _, _, _ = state
        s = jax.lax.fori_loop(0, CHECK, step, s)
        return k + CHECK, s, *certified(f, c, s[0], s[1])

    start = (x, y, f.tmul(x), x, y, f.grad_g(x) - c.mu_x * x, f.grad_h(y) - c.mu_y * y)
    state = jax.lax.while_loop(goes_on, steps, (0, start, x, y, distance))
    return state[2], state[3], state[4]


def _prox(prox: Callable[[Any, Any], Any] | None, v: Any, t: Any) -> Any:
    return v if prox is None else prox(v, t)
