"""The directions in which the solution of a problem with simple terms can move when its data change.

A coordinate that is proven to be at a bound or at zero stays there, and sums that are fixed stay fixed: near the data,
the solution moves in a linear subspace, in which the problem is smooth. On a sphere it is the tangent space, and
``problems.curvature`` has the curvature of the sphere; for matrices of low rank, ``problems.low_rank`` has both. A
``Face`` is such a subspace with an orthonormal basis: coordinates that are free, and in them the directions that are
orthogonal to some normals.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import issparse

from saddlepoint.ground.arrays import Array, concat, namespace, space_of, to_host
from saddlepoint.ground.errors import ProblemError
from saddlepoint.ground.linalg import norm
from saddlepoint.parts.simple.ball import Ball, L1Ball
from saddlepoint.parts.simple.base import Simple, Support
from saddlepoint.parts.simple.blocks import Blocks
from saddlepoint.parts.simple.bounds import EPS
from saddlepoint.parts.simple.group_balls import GroupBalls
from saddlepoint.parts.simple.groups import Groups, GroupsL1
from saddlepoint.parts.simple.hyperplane import Hyperplane
from saddlepoint.parts.simple.l1_box import L1Box
from saddlepoint.parts.simple.nuclear import Nuclear
from saddlepoint.parts.simple.rescaled import Rescaled
from saddlepoint.parts.simple.shifted import Shifted
from saddlepoint.parts.simple.simplex import Simplex
from saddlepoint.problems.curvature import BY_ROUNDING, Curved, Near, TermCurvature, of_balls, of_norms
from saddlepoint.problems.low_rank import LowRank, of_nuclear

UP = 1.0 + 1e-9  # factor that exceeds the relative rounding of a sum over all coordinates


class Free(NamedTuple):
    """Which coordinates are free, and what their free directions are orthogonal to.

    Attributes:
        free: a mask of coordinates; of the entries of U'Z V where a matrix Z has a low rank (``LowRank.rotated``).
        normals: vectors with disjoint sets of nonzero entries.
        undecided: how many coordinates are neither proven to be free nor proven to be fixed.
        curvature: the curvature of norms and spheres.
    """

    free: Array
    normals: list[Array]
    undecided: int
    curvature: TermCurvature = TermCurvature()


def free_directions(p: Simple, x: Array, support: Array | None, near: Near) -> Free:
    """The directions in which x can move. Where nothing is proven of a coordinate, the computed point decides.

    Args:
        p: the simple term.
        x: the computed point, as an array of NumPy.
        support: what is proven about its coordinates.
        near: what is known of the solution near the point.
    """
    n = int(x.shape[0])
    found = np.zeros(n, dtype=np.int8) if support is None else support
    if isinstance(p, Rescaled):
        return _rescaled(p, x, found, near)
    if isinstance(p, Blocks):
        return _joined(p, x, found, near)
    if isinstance(p, Ball):
        return free_directions(p.ball, x, found, near)
    if isinstance(p, Shifted):
        z = x - p.center.everywhere(n)
        at_center = p.p.support(z, near.w, near.reach_x + EPS * norm(z), near.reach_w)  # its entries need not be zero
        return free_directions(p.p, z, at_center, near)
    if isinstance(p, Hyperplane):
        return Free(np.ones(n, dtype=bool), [p.a.everywhere(n)], 0)
    if isinstance(p, GroupBalls):
        on = of_balls(p, x, found, near)
        return Free(on.free, on.normals, on.undecided, on.curvature)
    if isinstance(p, L1Ball):
        return _in_l1_ball(p, x, found, near)
    if isinstance(p, Nuclear):
        return _of_low_rank(p, x, near)
    undecided = int(np.count_nonzero(found == Support.UNDECIDED))
    if isinstance(p, Groups | GroupsL1):
        there = x != 0.0
        if isinstance(p, Groups):
            there = np.asarray(p.partition.on_coordinates(p.partition.norms(x) > 0.0, n))
        free = np.where(found == Support.UNDECIDED, there, found == Support.OFF)
        return Free(free, [], undecided, of_norms(p, x, free, near))
    if not isinstance(p, L1Box | Simplex):
        raise ProblemError(
            f"derivatives of solutions with the simple term {p!r} are not implemented; they are for L1, Box, "
            "NonNegative, Simplex, Hyperplane, Ball, GroupBalls, Norm2, Groups, Nuclear, and Blocks of these"
        )
    at_kink = p.faces(x) != 0.0 if isinstance(p, L1Box) else x <= 0.0
    free = np.where(found == Support.UNDECIDED, ~at_kink, found == Support.OFF)
    normals = [1.0 * free] if isinstance(p, Simplex) and free.any() else []
    return Free(free, normals, undecided)


def _in_l1_ball(p: L1Ball, x: Array, support: Array, near: Near) -> Free:
    """On the boundary, which w* != 0 proves, the signed sum of the entries that are not zero is fixed."""
    size = float(np.abs(x).sum())
    inside = size * UP + math.sqrt(len(x)) * near.reach_x < p.radius
    active = float(np.abs(near.w).max()) > near.reach_w * UP
    if inside and not active:
        return Free(np.ones(len(x), dtype=bool), [], 0)
    undecided = int(np.count_nonzero(support == Support.UNDECIDED)) if active else len(x)
    if not active and size < p.radius * (1.0 - BY_ROUNDING):
        return Free(np.ones(len(x), dtype=bool), [], undecided)
    free = np.where(support == Support.UNDECIDED, x != 0.0, support == Support.OFF)
    return Free(free, [np.sign(x) * free] if free.any() else [], undecided)


def _of_low_rank(p: Nuclear, x: Array, near: Near) -> Free:
    """The tangent space of the matrices of the rank that is proven; where none is, the computed point decides."""
    if p.weight == 0.0:
        return Free(np.ones(len(x), dtype=bool), [], 0)
    found = of_nuclear(p, x, near.w, near.reach_x, near.reach_w)
    curvature = TermCurvature((), found.tilt, found.change, (found.matrix,))
    return Free(found.matrix.free, [], 0 if found.decided else len(x), curvature)


def _rescaled(p: Rescaled, x: Array, support: Array, near: Near) -> Free:
    """The directions of weight p(scale x): the Hessian of p is multiplied by weight scale^2."""
    slope, c = p.scale * p.weight, p.weight * p.scale * p.scale
    inner = Near(near.w / slope, abs(p.scale) * near.reach_x, near.reach_w / abs(slope))
    found = free_directions(p.p, p.scale * x, support, inner)
    curvature = found.curvature
    parts = tuple(part._replace(c=c * part.c) for part in curvature.parts)
    ranks = tuple(matrix._replace(N=c * matrix.N, weight=c * matrix.weight) for matrix in curvature.ranks)
    return found._replace(curvature=TermCurvature(parts, curvature.tilt, c * curvature.change, ranks))


def _joined(p: Blocks, x: Array, support: Array, near: Near) -> Free:
    """The directions of all blocks together."""
    n, masks, normals, undecided = int(x.shape[0]), [], [], 0
    parts: list[Curved] = []
    ranks: list[LowRank] = []
    tilt = change = 0.0
    for rows, part in p.parts(n):
        found = free_directions(part, x[rows], support[rows], near._replace(w=near.w[rows]))
        masks.append(found.free)
        parts += [piece._replace(rows=piece.rows + rows.start) for piece in found.curvature.parts]
        ranks += [matrix._replace(start=matrix.start + rows.start) for matrix in found.curvature.ranks]
        tilt, change = max(tilt, found.curvature.tilt), max(change, found.curvature.change)
        undecided += found.undecided
        for normal in found.normals:
            whole = np.zeros(n)
            whole[rows] = normal
            normals.append(whole)
    return Free(np.concatenate(masks), normals, undecided, TermCurvature(tuple(parts), tilt, change, tuple(ranks)))


class Face:
    """A subspace with an orthonormal basis; its vectors are arrays of any library.

    Args:
        of: the free coordinates and the normals.
    """

    def __init__(self, of: Free) -> None:
        self.places = np.flatnonzero(of.free)
        self.n = int(of.free.shape[0])
        kept = np.ones(self.places.shape[0], dtype=bool)
        self.mirrors: list[Array] = []
        for normal in of.normals:
            inside = np.asarray(normal, dtype=np.float64)[self.places]
            length = float(np.linalg.norm(inside))
            if length == 0.0:
                continue
            first = int(np.flatnonzero(inside)[0])
            mirror = inside / length  # the reflection that turns the normal into a multiple of one axis
            mirror[first] += 1.0 if mirror[first] >= 0.0 else -1.0
            self.mirrors.append(mirror / float(np.linalg.norm(mirror)))
            kept[first] = False
        self.kept = np.flatnonzero(kept)
        self.size = int(self.kept.shape[0])
        self._back = _slots(self.kept, self.places.shape[0])
        self._out = _slots(self.places, self.n)
        self.curvature = of.curvature
        self.has_axes = not self.mirrors and not of.curvature.ranks  # the basis consists of coordinates

    def onto(self, v: Array) -> Array:
        """The coefficients of the projection of v; of a matrix, those of its columns."""
        for matrix in self.curvature.ranks:
            v = matrix.rotated(v)
        w = _take(v, self.places)
        for mirror in self.mirrors:
            w = _reflected(w, mirror)
        return w if self.kept.shape[0] == self.places.shape[0] else _take(w, self.kept)

    def vector(self, u: Array) -> Array:
        """The vector with these coefficients."""
        w = _take(_with_zero(u), self._back)
        for mirror in self.mirrors:
            w = _reflected(w, mirror)
        v = _take(_with_zero(w), self._out)
        for matrix in self.curvature.ranks:
            v = matrix.rotated_back(v)
        return v

    def off(self, v: Array) -> float:
        """The length of the part of v that is orthogonal to the subspace, as computed."""
        return norm(v - self.vector(self.onto(v)))

    def rows(self, M: Any) -> Any:
        """The matrix in the basis of this subspace, by its rows."""
        if issparse(M):
            return M.tocsr()[self.places] if self.has_axes else self.onto(M.toarray())
        return self.onto(M)

    def matrix(self, M: Any, other: Face) -> Any:
        """The matrix in the bases of this subspace (rows) and of the other one (columns)."""
        if issparse(M) and self.has_axes and other.has_axes:
            return M.tocsr()[self.places][:, other.places]
        M = M.toarray() if issparse(M) else M
        return other.onto(self.onto(M).T).T


def _slots(places: Array, size: int) -> Array:
    """For each of ``size`` entries its position among the places, and the position after the last for all others."""
    slots = np.full(size, places.shape[0])
    slots[places] = np.arange(places.shape[0])
    return slots


def _with_zero(u: Array) -> Array:
    return concat([u, 0.0 * u[:1]]) if u.shape[0] else space_of(u).zeros(1)


def _take(v: Array, places: Array) -> Array:
    """The entries of v (the rows of a matrix) at these places."""
    if isinstance(v, np.ndarray):
        return v[places]
    xp, device = namespace(v), space_of(v).device
    found: Array = xp.take(v, xp.asarray(places, device=device) if device is not None else xp.asarray(places), axis=0)
    return found


def _reflected(v: Array, mirror: Array) -> Array:
    h = space_of(v).cast(mirror)
    step: Array = v - 2.0 * (h[:, None] * (h @ v) if v.ndim == 2 else h * (h @ v))
    return step


def faces_of(
    terms: Sequence[Simple | None], point: Sequence[Array], supports: Sequence[Array | None], nears: Sequence[Near]
) -> tuple[list[Face | None], int]:
    """The subspaces of x and of y, None where there is no simple term; and how many coordinates are undecided."""
    faces: list[Face | None] = []
    undecided = 0
    for p, z, support, near in zip(terms, point, supports, nears, strict=True):
        if p is None:
            faces.append(None)
            continue
        found = free_directions(p, np.asarray(to_host(z), dtype=np.float64), support, near)
        faces.append(Face(found))
        undecided += found.undecided
    return faces, undecided
