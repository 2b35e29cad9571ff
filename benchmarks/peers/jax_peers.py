# mypy: ignore-errors
"""JAX: optimistix's root finders and jaxopt's Anderson acceleration, on F written in jax.numpy; dense problems.

Compilation is not timed. Calls inside compiled code cannot be counted, so only times are reported for root finders.
"""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jaxopt
import lineax as lx
import numpy as np
import optimistix as optx

import saddlepoint as sp
from saddlepoint.parts.functions import Risk

from .problems import Instance
from .recorder import Recorder

jax.config.update("jax_enable_x64", True)


def root_finder(instance: Instance, recorder: Recorder, solver: str, linear: str) -> None:
    """One of optimistix's root finders, stepped by hand as its documentation shows."""
    m = instance.f.shape[0]
    field = _field(instance.f)

    def fn(z: Any, args: Any) -> tuple[Any, None]:
        return field(z), None

    linear_solver = {
        "lu": lx.AutoLinearSolver(well_posed=True),
        "gmres": lx.GMRES(rtol=1e-6, atol=1e-12, restart=100, stagnation_iters=100),
    }[linear]
    finder = getattr(optx, solver)(rtol=1e-15, atol=1e-15, linear_solver=linear_solver)
    z = jnp.zeros(sum(instance.f.shape))
    structure = jax.eval_shape(lambda: fn(z, None)[0])
    tags: frozenset[object] = frozenset()
    state = finder.init(fn, z, None, {}, structure, None, tags)
    step = eqx.filter_jit(lambda z, state: finder.step(fn, z, None, {}, state, tags))
    step(*step(z, state)[:2])  # compiles the step for the first state and for later ones
    recorder.restart_clock()
    while True:
        z, state, _ = jax.block_until_ready(step(z, state))
        point = np.asarray(z)
        recorder.certify_point(point[:m], point[m:])


def anderson(instance: Instance, recorder: Recorder, window: int, step: float) -> None:
    """jaxopt.AndersonAcceleration of the map z -> z - step/(L + |A|) F(z): one F an update."""
    f = instance.f
    m, field, eta = f.shape[0], _field(f), step / (f.L + f.norm)
    solver = jaxopt.AndersonAcceleration(
        lambda z: z - eta * field(z), history_size=window, ridge=1e-12, maxiter=10**7, tol=0.0
    )
    z = jnp.zeros(sum(f.shape))
    state = solver.init_state(z)
    update = jax.jit(lambda z, state: tuple(solver.update(z, state)))
    jax.block_until_ready(update(*update(z, state)))
    recorder.restart_clock()
    while True:
        z, state = jax.block_until_ready(update(z, state))
        recorder.count(grad_g=1, grad_h=1, A=1, At=1)
        point = np.asarray(z)
        recorder.certify_point(point[:m], point[m:])


def _field(f: sp.Saddle) -> Any:
    """F in jax.numpy."""
    m, A = f.shape[0], jnp.asarray(f.A.A)
    grad_g, grad_h = _gradient(f.g), _gradient(f.h)
    return lambda z: jnp.concatenate([grad_g(z[:m]) + A @ z[m:], grad_h(z[m:]) - A.T @ z[:m]])


def _gradient(f: sp.Smooth) -> Any:
    if isinstance(f, sp.Quadratic):
        P, b = jnp.asarray(f.P.A), jnp.zeros(f.P.shape[0]) if f.b is None else jnp.asarray(f.b)
        return lambda x: P @ x + b
    assert isinstance(f, Risk)
    D = jnp.asarray(f.D.A)
    if isinstance(f, sp.Logistic):
        s = jnp.asarray(f.labels)
        return lambda x: D.T @ (-s * jax.nn.sigmoid(-s * (D @ x))) / D.shape[0] + f.l2 * x
    t = jnp.asarray(f.t)
    return lambda x: D.T @ jnp.tanh(D @ x - t) / D.shape[0] + f.l2 * x
