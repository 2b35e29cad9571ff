"""Directions in which solutions with simple terms can move, as matrices of JAX (see ``problems.faces``)."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
from jax import numpy as jnp

from saddlepoint.ground.arrays import eps_of
from saddlepoint.ground.errors import ProblemError
from saddlepoint.parts.simple.ball import Ball, L1Ball
from saddlepoint.parts.simple.base import Simple
from saddlepoint.parts.simple.blocks import Blocks
from saddlepoint.parts.simple.euclidean import GroupBalls, Groups, GroupsL1
from saddlepoint.parts.simple.hyperplane import Hyperplane
from saddlepoint.parts.simple.l1_box import L1Box
from saddlepoint.parts.simple.rescaled import Rescaled
from saddlepoint.parts.simple.shifted import Shifted
from saddlepoint.parts.simple.simplex import Simplex

ON_SPHERE = 64.0  # roundings by which a point on a sphere may be inside of it


def tangent(p: Simple | None, x: Any, w: Any) -> tuple[Any, Any]:
    """The projection onto the directions in which x can move, and the curvature of the term (``problems.curvature``).

    Args:
        p: the simple term.
        x: the computed point, which decides about faces.
        w: the gradient of the smooth function there, with the product with A.
    """
    n = int(x.shape[0])
    eye, flat = jnp.eye(n, dtype=x.dtype), jnp.zeros((n, n), dtype=x.dtype)
    if p is None:
        return eye, flat
    if isinstance(p, Rescaled):
        P, C = tangent(p.p, p.scale * x, w / (p.scale * p.weight))
        return P, p.weight * p.scale**2 * C
    if isinstance(p, Ball):
        return tangent(p.ball, x, w)
    if isinstance(p, Shifted):
        return tangent(p.p, x - p.center.like(x), w)
    if isinstance(p, Blocks):
        parts = [tangent(part, x[rows], w[rows]) for rows, part in p._parts(n)]
        joined = [jax.scipy.linalg.block_diag(*matrices) for matrices in zip(*parts, strict=True)]
        return joined[0], joined[1]
    if isinstance(p, L1Box):
        return _diagonal(p.faces(x) == 0.0, x), flat
    if isinstance(p, Simplex):
        return _without(_diagonal(x > 0.0, x), jnp.where(x > 0.0, 1.0, 0.0).astype(x.dtype)), flat
    if isinstance(p, Hyperplane):
        return _without(eye, p.a.like(x) + 0.0 * x), flat
    if isinstance(p, L1Ball):
        near = 1.0 - ON_SPHERE * eps_of(x)
        boundary = jnp.sum(jnp.abs(x)) >= p.radius * near
        face = _without(_diagonal(x != 0.0, x), jnp.sign(x))
        return jnp.where(boundary, face, eye), flat
    if isinstance(p, Groups | GroupsL1 | GroupBalls):
        return _curved(p, x, w)
    raise ProblemError(
        f"derivatives of solutions with the simple term {p!r} are not implemented; they are for L1, Box, NonNegative, "
        "Simplex, Hyperplane, Ball, GroupBalls, Norm2, Groups, and Blocks of these"
    )


def _diagonal(mask: Any, x: Any) -> Any:
    return jnp.diag(jnp.where(mask, 1.0, 0.0).astype(x.dtype))


def _without(P: Any, a: Any) -> Any:
    """The projection P without the direction a, which it leaves as it is."""
    size = jnp.vdot(a, a)
    return P - jnp.outer(a, a) / jnp.where(size > 0.0, size, 1.0)


def _curved(p: Groups | GroupsL1 | GroupBalls, x: Any, w: Any) -> tuple[Any, Any]:
    """Norms of groups, and balls: the curvature is c (I - d d') of each group, and spheres have normals."""
    groups = p.groups if isinstance(p, GroupsL1) else p
    part, n = groups.partition, int(x.shape[0])
    sizes: Any = part.sizes(x)
    radius = groups.balls.radii.like(sizes) + 0.0 * sizes
    labels = jnp.asarray(part.on_coordinates(np.arange(part.count), n))
    same = labels[:, None] == labels[None, :]
    safe: Any = jnp.where(sizes > 0.0, sizes, 1.0)
    d = x / part.spread(safe, x)
    if isinstance(p, GroupBalls):
        bounded = (radius > 0.0) & (radius < jnp.inf)
        on = bounded & (sizes >= radius * (1.0 - ON_SPHERE * eps_of(x)))
        c: Any = jnp.where(on, part.sizes(w) / jnp.where(bounded, radius, 1.0), 0.0)
        free = part.spread(radius > 0.0, x) & (x == x)
        d = jnp.where(part.spread(on, x), d, 0.0)
    else:
        c = jnp.where(sizes > 0.0, radius / safe, 0.0)
        zero = x == 0.0 if isinstance(p, GroupsL1) else part.spread(sizes == 0.0, x)
        free = ~(zero & (part.spread(radius > 0.0, x) | (x != x))) if isinstance(p, Groups) else ~zero
    D = jnp.where(same, jnp.outer(d, d), 0.0)
    P = _diagonal(free, x)
    C = (part.spread(c, x) + 0.0 * x)[:, None] * (jnp.eye(n, dtype=x.dtype) - D)
    return (P - D if isinstance(p, GroupBalls) else P), C
