"""True problems whose arrays are those of JAX: on one device, and split over a mesh of devices.

All of them have the same few shapes, because JAX compiles its programs for every shape anew.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.random import Generator

import saddlepoint as sp

from . import functions, losses
from .draws import Case, between, matrix
from .exact import Exact
from .functions import Part
from .numbers import Array

M, N, SAMPLES = 4, 6, 8  # numbers of variables and of samples: multiples of the numbers of devices
DEVICES = 2  # devices into which the host is divided, so that there is a mesh


def jax(rng: Generator) -> Case:
    """Arrays of JAX, in float64 and float32; quadratics in units of 1e-60 to 1e60."""
    return _problem(rng, on_mesh=False)


def jax_mesh(rng: Generator) -> Case:
    """Arrays of JAX that are split by rows, by columns or both ways over a mesh of devices."""
    return _problem(rng, on_mesh=True)


def _problem(rng: Generator, on_mesh: bool) -> Case:
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_enable_x64", True)  # type: ignore[no-untyped-call]
    narrow = rng.random() < 0.3
    dtype = np.float32 if narrow else np.float64
    alike = rng.random() < 0.5  # quadratics, in any unit
    unit = math.ldexp(1.0, int(rng.integers(-8, 9) if narrow else rng.integers(-200, 201)) if alike else 0)
    g, h = (_function(rng, k, unit, dtype, alike, jnp) for k in (M, N))
    A = (unit * matrix(rng, M, N, between(rng, -1, 1))).astype(dtype)
    given = jnp.asarray(A)
    if on_mesh:
        given = jax.device_put(given, _placement(rng, jax))
    return Case(sp.Saddle(g.smooth, h.smooth, given), Exact(g, h, A))


def _placement(rng: Generator, jax: Any) -> Any:
    """A placement of A on a mesh of all devices (one, where JAX was started with one)."""
    devices = np.array(jax.devices()[:DEVICES])
    axes: list[tuple[str | None, str | None]] = [("rows", None), (None, "rows"), ("rows", "columns")]
    spec = axes[int(rng.integers(3))]
    shape = (1, len(devices)) if spec[1] == "columns" and rng.random() < 0.5 else (len(devices), 1)
    mesh = jax.sharding.Mesh(devices.reshape(shape), ("rows", "columns"))
    return jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec(*spec))


def _function(rng: Generator, size: int, unit: float, dtype: Any, quadratic: bool, jnp: Any) -> Part:
    """A ready function of arrays of JAX, or a function of the caller's."""

    def drawn(*shape: int) -> Array:
        return rng.standard_normal(shape).astype(dtype)

    l2 = float(np.float32(between(rng, -2, 0)))
    pick = rng.integers(2) if quadratic else rng.integers(2, 7)
    if pick < 2:
        P, b = (unit * rng.uniform(0.1, 1, size)).astype(dtype), (unit * rng.standard_normal(size)).astype(dtype)
        part = functions.Quadratic(P, b)
        slopes, shift = jnp.asarray(P), jnp.asarray(b)
        if pick == 0:
            return functions.As(part, sp.Quadratic(slopes, shift))
        return functions.As(part, sp.Smooth(lambda x: slopes * x + shift, mu=float(P.min()), L=float(P.max())))
    D, t, signs = drawn(SAMPLES, size), drawn(SAMPLES), rng.choice([-1.0, 1.0], SAMPLES).astype(dtype)
    data, targets, labels = jnp.asarray(D), jnp.asarray(t), jnp.asarray(signs)
    match pick:
        case 2:
            return functions.Risk(losses.SQUARE, sp.LeastSquares(data, targets, l2), D, t, l2)
        case 3:
            return functions.Risk(losses.LOGISTIC, sp.Logistic(data, labels, l2), D, None, l2, signs)
        case 4:
            return functions.Risk(losses.huber(0.5), sp.Huber(data, targets, l2, 0.5), D, t, l2)
    t = drawn(size)
    targets = jnp.asarray(t)
    smooth: sp.Smooth = sp.LogCosh(None, targets, l2)
    if pick == 6:
        smooth = sp.Smooth(lambda x: jnp.tanh(x - targets) + l2 * x, mu=l2, L=1.0 + l2)
    return functions.Risk(losses.LOGCOSH, smooth, None, t, l2, mean=False, size=size)
