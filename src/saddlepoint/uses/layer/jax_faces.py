"""Directions in which solutions with simple terms can move, as functions of JAX (see ``problems.faces``)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np
from jax import numpy as jnp

from saddlepoint.ground.arrays import eps_of
from saddlepoint.ground.errors import ProblemError
from saddlepoint.parts.simple.ball import Ball, L1Ball
from saddlepoint.parts.simple.base import Simple
from saddlepoint.parts.simple.blocks import Blocks
from saddlepoint.parts.simple.group_balls import GroupBalls
from saddlepoint.parts.simple.groups import Groups, GroupsL1
from saddlepoint.parts.simple.hyperplane import Hyperplane
from saddlepoint.parts.simple.l1_box import L1Box
from saddlepoint.parts.simple.nuclear import Nuclear
from saddlepoint.parts.simple.rescaled import Rescaled
from saddlepoint.parts.simple.shifted import Shifted
from saddlepoint.parts.simple.simplex import Simplex

ON_SPHERE = 64.0  # roundings by which a point on a sphere may be inside of it

Linear = Callable[[Any], Any]


class Tangent(NamedTuple):
    """The directions in which a solution can move. The functions take vectors, or matrices by their columns.

    Attributes:
        project: the projection onto these directions.
        curvature: the product with the curvature of the term (``problems.curvature``).
        steep: a bound on the curvature.
    """

    project: Linear
    curvature: Linear
    steep: Any


def tangent(p: Simple | None, x: Any, w: Any) -> Tangent:
    """The directions in which x can move.

    Args:
        p: the simple term.
        x: the computed point, which decides about faces.
        w: the gradient of the smooth function there, with the product with A.
    """
    if p is None:
        return Tangent(lambda v: v, _nothing, 0.0)
    if isinstance(p, Rescaled):
        found, c = tangent(p.p, p.scale * x, w / (p.scale * p.weight)), p.weight * p.scale**2
        return Tangent(found.project, lambda v: c * found.curvature(v), c * found.steep)
    if isinstance(p, Ball):
        return tangent(p.ball, x, w)
    if isinstance(p, Shifted):
        return tangent(p.p, x - p.center.like(x), w)
    if isinstance(p, Blocks):
        return _joined(p, x, w)
    if isinstance(p, L1Box):
        return Tangent(_masked(p.faces(x) == 0.0), _nothing, 0.0)
    if isinstance(p, Simplex):
        return Tangent(_without(_masked(x > 0.0), jnp.where(x > 0.0, 1.0, 0.0).astype(x.dtype)), _nothing, 0.0)
    if isinstance(p, Hyperplane):
        return Tangent(_without(lambda v: v, p.a.like(x) + 0.0 * x), _nothing, 0.0)
    if isinstance(p, L1Ball):
        boundary = jnp.sum(jnp.abs(x)) >= p.radius * (1.0 - ON_SPHERE * eps_of(x))
        face = _without(_masked(x != 0.0), jnp.sign(x))
        return Tangent(lambda v: jnp.where(boundary, face(v), v), _nothing, 0.0)
    if isinstance(p, Groups | GroupsL1 | GroupBalls):
        return _curved(p, x, w)
    if isinstance(p, Nuclear):
        return _low_rank(p, x, w)
    raise ProblemError(
        f"derivatives of solutions with the simple term {p!r} are not implemented in layers of JAX; they are for L1, "
        "Box, NonNegative, Simplex, Hyperplane, Ball, GroupBalls, Norm2, Groups, Nuclear, and Blocks of these"
    )


def _nothing(v: Any) -> Any:
    return 0.0 * v


def _on(c: Any, v: Any) -> Any:
    """The numbers c times the entries of v, or times the rows of a matrix."""
    return c * v if v.ndim == 1 else c[:, None] * v


def _masked(mask: Any) -> Linear:
    return lambda v: _on(jnp.where(mask, 1.0, 0.0).astype(v.dtype), v)


def _without(project: Linear, a: Any) -> Linear:
    """The projection without the direction a, which it leaves as it is."""
    size = jnp.vdot(a, a)
    size = jnp.where(size > 0.0, size, 1.0)

    def onto(v: Any) -> Any:
        along = a @ v / size
        return project(v) - (a * along if v.ndim == 1 else a[:, None] * along)

    return onto


def _joined(p: Blocks, x: Any, w: Any) -> Tangent:
    """The directions of all blocks together."""
    parts = [(rows, tangent(part, x[rows], w[rows])) for rows, part in p.parts(int(x.shape[0]))]
    return Tangent(
        lambda v: jnp.concatenate([part.project(v[rows]) for rows, part in parts]),
        lambda v: jnp.concatenate([part.curvature(v[rows]) for rows, part in parts]),
        sum(part.steep for _, part in parts),
    )


def _curved(p: Groups | GroupsL1 | GroupBalls, x: Any, w: Any) -> Tangent:
    """Norms of groups, and balls: the curvature is c (I - d d') of each group, and spheres have normals."""
    groups = p.groups if isinstance(p, GroupsL1) else p
    part, n = groups.partition, int(x.shape[0])
    sizes: Any = part.sizes(x)
    radius = groups.balls.radii.like(sizes) + 0.0 * sizes
    labels = jnp.asarray(part.on_coordinates(np.arange(part.count), n))
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
    scale, mask = (part.spread(c, x) + 0.0 * x).astype(x.dtype), _masked(free)

    def along(v: Any) -> Any:
        """d d' v in each group."""
        return _on(d, jax.ops.segment_sum(_on(d, v), labels, part.count)[labels])

    project = (lambda v: mask(v) - along(v)) if isinstance(p, GroupBalls) else mask
    return Tangent(project, lambda v: _on(scale, v - along(v)), jnp.max(scale))


def _low_rank(p: Nuclear, x: Any, w: Any) -> Tangent:
    """Matrices of the rank of x, and the curvature of the nuclear norm (``problems.low_rank``)."""
    (m, n), X, W = p.shape, x.reshape(p.shape), w.reshape(p.shape)
    U, s, Vh = jnp.linalg.svd(X, full_matrices=False)
    there = s > ON_SPHERE * max(m, n) * eps_of(x) * s[0]
    U, V = jnp.where(there, U, 0.0), jnp.where(there, Vh.T, 0.0)
    inverse = jnp.where(there, 1.0 / jnp.where(there, s, 1.0), 0.0)
    left, right, K = U * inverse, V * inverse, 1.0 / jnp.where(there, s[:, None] + s[None, :], 1.0)
    N = -(W - U @ (U.T @ W))
    N = N - (N @ V) @ V.T

    def project(Z: Any) -> Any:
        rest = Z - U @ (U.T @ Z)
        return Z - (rest - (rest @ V) @ V.T)

    def curvature(Z: Any) -> Any:
        M, ZV, ZtU = U.T @ Z @ V, Z @ V, Z.T @ U
        beside = (ZV - U @ M) @ right.T + left @ (ZtU - V @ M.T).T
        return p.weight * (beside + U @ (K * (M - M.T)) @ V.T) - N @ ZtU @ right.T - left @ ZV.T @ N

    def of_vectors(of_matrix: Linear) -> Linear:
        def of_vector(v: Any) -> Any:
            return of_matrix(v.reshape(m, n)).reshape(-1)

        return lambda v: of_vector(v) if v.ndim == 1 else jax.vmap(of_vector, 1, 1)(v)

    return Tangent(of_vectors(project), of_vectors(curvature), 2.0 * p.weight * jnp.max(inverse))
