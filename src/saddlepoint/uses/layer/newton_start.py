r"""A good start for small problems with simple terms: Newton's steps on the faces that prox steps find.

With the step t = 1/(L + |A|), z+ = prox(z - t F(z), t) has s = (z - z+)/t - F(z) as a subgradient of the simple terms.
The solution is on the face of z+ once z is near it, and there it satisfies F + s = 0 in the directions of the face, up
to the curvature C of the face (``problems.faces``). So the next point is z+ + d, where d is in the face and

    <v, (J + C) d> = -<v, F(z+) + s>   for all v in the face,

with the Jacobian J of the field; entries that pass a kink of an l1 norm stop there. After a few steps it is near the
solution, or the search ends without a start. A run that starts there certifies and examines it like any other point.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import issparse

from saddlepoint.ground.arrays import NUMPY64, Array
from saddlepoint.ground.errors import ProblemError, SingularError
from saddlepoint.methods.direct import solver, wide
from saddlepoint.parts.coupling import DenseCoupling, SparseCoupling
from saddlepoint.parts.functions.quadratic import Quadratic
from saddlepoint.parts.functions.smooth import Smooth
from saddlepoint.parts.simple.base import Simple
from saddlepoint.parts.simple.l1_box import L1Box
from saddlepoint.problems.curvature import Near
from saddlepoint.problems.faces import Face, free_directions
from saddlepoint.problems.saddle import Saddle

STEPS = 12  # most steps before the search is given up
PATIENCE = 4  # steps without a shorter prox step before the search is given up
DENSE, ENTRIES = 300, 200_000  # most variables of x and y together for a dense A, and most entries of a sparse one
CLOSE, EXACT = 1e-8, 1e-14  # a prox step that is so much shorter than the point: one more step is taken, and none


@np.errstate(all="ignore")  # what is not finite is no start
def newton_start(f: Saddle) -> tuple[Array, Array] | None:
    """A point near the solution of a small problem; None if none is found at once."""
    functions = f.g.without_term, f.h.without_term
    if not (f.has_simple and _is_suitable(f, functions)):
        return None
    x, y = f.project(np.zeros(f.shape[0]), np.zeros(f.shape[1]))
    best, since = np.inf, 0
    try:
        for _ in range(STEPS):
            w = f.field(x, y)
            near = _prox(f.g, x, w[0], f.norm), _prox(f.h, y, w[1], f.norm)
            gap = max(float(np.abs(x - near[0][0]).max()), float(np.abs(y - near[1][0]).max()))
            x, y = near[0][0], near[1][0]
            size = 1.0 + max(float(np.abs(x).max()), float(np.abs(y).max()))
            if gap <= EXACT * size or best <= CLOSE * size:  # from there one step leaves nothing but rounding
                return x, y
            best, since = (gap, 0) if gap < best else (best, since + 1)
            if since == PATIENCE:
                break
            x, y = _step(f, functions, near)
    except (SingularError, ProblemError, np.linalg.LinAlgError):
        pass
    return None


def _is_suitable(f: Saddle, functions: tuple[Smooth, Smooth]) -> bool:
    """Whether the Hessians are known and small; those of one's own functions may take many calls."""
    ready = all(part.hessian is not None and (part.trusted or isinstance(part, Quadratic)) for part in functions)
    if not (ready and f.space == NUMPY64 and f.mu > 0.0 and np.isfinite(f.L)):
        return False
    if isinstance(f.A, SparseCoupling):
        return all(_entries(part, n) <= ENTRIES for part, n in zip(functions, f.shape, strict=True))
    return isinstance(f.A, DenseCoupling) and sum(f.shape) <= DENSE


def _entries(f: Smooth, n: int) -> int:
    """The number of entries of the Hessian of a function of n variables."""
    assert f.hessian is not None
    H = f.hessian(np.zeros(n))
    return int(H.nnz if issparse(H) else H.size)


def _prox(f: Smooth, x: Array, w: Array, norm: float) -> tuple[Array, Array]:
    """The point after a prox step, and the subgradient of the simple term there."""
    slope = f.L + norm
    following = x - w / slope
    near = following if f.simple is None else f.simple.prox(following, 1.0 / slope)
    return near, slope * (x - near) - w


def _step(f: Saddle, functions: tuple[Smooth, Smooth], near: Any) -> tuple[Array, Array]:
    """The solution on the faces of the points."""
    (x, s), (y, r) = near
    F = list(f.field(x, y))
    A: Any = wide(f.A.matrix())
    parts: list[tuple[Any, Array, Face | None]] = []
    for k, (function, z, slope, full) in enumerate(zip(functions, (x, y), (s, r), (f.g, f.h), strict=True)):
        assert function.hessian is not None
        H = wide(function.hessian(z))
        if full.simple is None:
            parts.append((H, F[k], None))
            continue
        face = Face(free_directions(full.simple, z, None, Near(F[k], 0.0, 0.0)))
        curvature = face.curvature.function(face.n, z)
        if curvature is not None:
            assert curvature.hessian is not None
            H = H + curvature.hessian(z)
        parts.append((face.matrix(H, face), face.onto(F[k] + slope), face))
    (P, Fx, of_x), (Q, Fy, of_y) = parts
    A = A if of_x is None else of_x.rows(A)
    A = A if of_y is None else of_y.rows(A.T).T
    if 0 in A.shape:  # one face is a point, so that the other player is alone
        dx, dy = (_alone(M, v) for M, v in ((P, Fx), (Q, Fy)))
    else:
        dx, dy = solver(P, Q, A)(-Fx, -Fy)
    x_next, y_next = (z + (d if face is None else face.vector(d)) for z, d, face in ((x, dx, of_x), (y, dy, of_y)))
    return _stopped(f.g.simple, x, x_next), _stopped(f.h.simple, y, y_next)


def _stopped(p: Simple | None, x: Array, following: Array) -> Array:
    """The next point, with zeros where it is on the other side of the kink of an l1 norm."""
    if not isinstance(p, L1Box) or p.weight.most == 0.0:
        return following
    return np.where(x * following < 0.0, 0.0, following)


def _alone(M: Any, v: Array) -> Array:
    return np.linalg.solve(M.toarray() if issparse(M) else M, -v) if v.shape[0] else v
