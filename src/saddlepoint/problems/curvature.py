r"""The curvature of simple terms: second derivatives of Euclidean norms, and of the spheres that bound Euclidean balls.

``problems.low_rank`` has that of the nuclear norm.

At a solution x* on the sphere |x| = r, with w = grad g(x*) + A y* = -lambda x* and lambda = |w|/r > 0, the solution
moves along the sphere when the data change: its derivative is orthogonal to x*, and to the Hessian of g it adds lambda
I, the curvature of the sphere. A norm weight |x| has the Hessian (weight/|x|)(I - d d') with d = x/|x| where x is not
zero. Both are c (I - d d') for the vectors in question, for each group of coordinates.

The computed point x is not x*. With |x - x*| <= e, the direction d is wrong by at most 2 e/r, lambda by at most
|w - w*|/r, and the Hessian of |.|, whose third derivative at z is at most 2/(sqrt(3) |z|^2), by at most
2 e/(sqrt(3) (|x| - e)^2).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial, reduce
from operator import add
from typing import Any, NamedTuple

import numpy as np

from saddlepoint.ground.arrays import Array, eps_of, space_of, to_host
from saddlepoint.parts.functions.smooth import Smooth
from saddlepoint.parts.simple.base import Support
from saddlepoint.parts.simple.bounds import EPS
from saddlepoint.parts.simple.group_balls import GroupBalls
from saddlepoint.parts.simple.groups import Groups, GroupsL1
from saddlepoint.parts.simple.partition import Partition
from saddlepoint.problems.low_rank import LowRank, curvature_of_rank

UP = 1.0 + 2.0**-40  # factor that exceeds the relative rounding of the few operations below
THIRD = 2.0 / math.sqrt(3.0)  # the largest third derivative of |.| at a vector of length 1
BY_ROUNDING = 1e-7  # a point is taken to be on a sphere if it is so near, relative to the radius


class Near(NamedTuple):
    """What is known of the solution near a point.

    Attributes:
        w: grad g + A y at the point, as an array of NumPy.
        reach_x: a bound on |x - x*|.
        reach_w: a bound on |w - w*|.
    """

    w: Array
    reach_x: float
    reach_w: float


class Curved(NamedTuple):
    """The matrix c (I - d d') of some coordinates, with a unit vector d."""

    rows: Array
    c: float
    d: Array


class TermCurvature(NamedTuple):
    """The curvature of a simple term at a point.

    Attributes:
        parts: the matrices, of disjoint sets of coordinates.
        tilt: a bound on how far the projections onto the directions in which the solution can move are from those at
            the solution; for a sphere, on how far its unit normal is.
        change: a bound on how far the matrices are from those at the solution, in the spectral norm.
        ranks: matrices of low rank, with the curvature of the nuclear norm.
    """

    parts: tuple[Curved, ...] = ()
    tilt: float = 0.0
    change: float = 0.0
    ranks: tuple[LowRank, ...] = ()

    def function(self, n: int, like: Array) -> Smooth | None:
        """The function u -> <u, C u>/2 of n coordinates with the matrix C of all parts; None if there are none."""
        found = [curvature_of_rank(matrix, n, like) for matrix in self.ranks]
        if self.parts:
            found.append(curvature_function(self.parts, n, like))
        return reduce(add, found) if found else None


def of_norms(p: Groups | GroupsL1, x: Array, free: Array, near: Near) -> TermCurvature:
    """The curvature of the norms of the groups that are not zero.

    Args:
        p: the norms, with an l1 norm or without.
        x: the point, as an array of NumPy.
        free: a mask of the coordinates that are not zero at the solution.
        near: what is known of the solution.
    """
    groups = p.groups if isinstance(p, GroupsL1) else p
    weights = groups.balls.radii.everywhere(groups.partition.count).tolist()
    parts, change = [], 0.0
    for rows, weight in zip(members(groups.partition, len(x)), weights, strict=True):
        inside = rows[free[rows]]
        length = float(np.linalg.norm(x[inside]))
        if weight == 0.0 or length == 0.0:
            continue
        parts.append(Curved(inside, weight / length, x[inside] / length))
        left = length / UP - near.reach_x
        change = max(change, weight * THIRD * near.reach_x / left**2 if left > 0.0 else math.inf)
    most = max((part.c for part in parts), default=0.0)
    return TermCurvature(tuple(parts), 0.0, UP * change + 64.0 * EPS * most)


class OnSpheres(NamedTuple):
    """The spheres on which groups are.

    Attributes:
        curvature: their curvature.
        normals: their unit normals.
        free: a mask of the coordinates of balls that are more than a point.
        undecided: how many coordinates are in groups of which it is not proven whether they are on their spheres.
    """

    curvature: TermCurvature
    normals: list[Array]
    free: Array
    undecided: int


def of_balls(p: GroupBalls, x: Array, support: Array, near: Near) -> OnSpheres:
    """The spheres on which groups are.

    A group is on its sphere if its part of w is not zero beyond its error: inside, w* would be zero.

    Args:
        p: the balls.
        x: the point, as an array of NumPy.
        support: what is proven about its coordinates.
        near: what is known of the solution.
    """
    radii = p.balls.radii.everywhere(p.partition.count).tolist()
    parts, normals, free = [], [], np.ones(len(x), dtype=bool)
    tilt, change, undecided = 0.0, 0.0, 0
    for rows, radius in zip(members(p.partition, len(x)), radii, strict=True):
        if radius == 0.0:
            free[rows] = False
            continue
        length, slope = float(np.linalg.norm(x[rows])), float(np.linalg.norm(near.w[rows]))
        on_sphere = slope > UP * near.reach_w and length > 0.0
        if not on_sphere and support[rows[0]] != Support.OFF:
            undecided += len(rows)
            on_sphere = length > 0.0 and length >= radius * (1.0 - BY_ROUNDING)
        if support[rows[0]] == Support.OFF or not on_sphere:
            continue
        normal = np.zeros(len(x))
        normal[rows] = x[rows] / length
        normals.append(normal)
        parts.append(Curved(rows, slope / radius, x[rows] / length))
        tilt = max(tilt, UP * 2.0 * near.reach_x / radius + 64.0 * EPS)
        change = max(change, UP * near.reach_w / radius)
    return OnSpheres(TermCurvature(tuple(parts), tilt, change), normals, free, undecided)


def members(partition: Partition, n: int) -> list[Array]:
    """The coordinates of each group, in the order of ``Partition.norms``."""
    labels = partition.on_coordinates(np.arange(partition.count), n)
    order = np.argsort(labels, kind="stable")
    return np.split(order, np.cumsum(np.bincount(labels, minlength=partition.count))[:-1])


def curvature_function(parts: Sequence[Curved], n: int, like: Array) -> Smooth:
    """The function u -> sum c (|u|^2 - <d, u>^2)/2 of the parts, for vectors like ``like``."""
    scale, direction, label = np.zeros(n), np.zeros(n), np.zeros(n, dtype=np.int64)
    for k, (rows, c, d) in enumerate(parts):
        scale[rows], direction[rows], label[rows] = c, d, k
    data = scale, direction, label
    return Smooth(
        partial(_product, data),
        mu=0.0,
        L=UP * max(part.c for part in parts),
        quadratic=True,
        hessian=partial(_matrix, data) if isinstance(like, np.ndarray) else None,
        hessian_lipschitz=0.0,
        trusted=True,
        accuracy=(8.0 + n) * eps_of(like),
    )


def _product(data: tuple[Array, Array, Array], u: Array) -> Array:
    scale, direction, label = data
    v = np.asarray(to_host(u), dtype=np.float64)
    along = np.bincount(label, weights=direction * v)[label]
    return space_of(u).cast(scale * (v - along * direction))


def _matrix(data: tuple[Array, Array, Array], u: Array) -> Any:
    scale, direction, label = data
    same = label[:, None] == label[None, :]
    return np.diag(scale) - np.where(same, np.outer(scale * direction, direction), 0.0)
