"""The problem of the derivatives of a saddle point: quadratic functions with the Hessians at the point, and the same A.

With the Jacobian J = [[H_g, A], [-A', H_h]] of the field, J u = -b is the saddle problem of <u, H_g u>/2 + <bx, u> and
<w, H_h w>/2 + <by, w> with the coupling A. The transposed system is the same with -A; there (ux, -uy) takes the place
of (ux, uy), so that A itself can be used, with what is known of its norm.
"""

from __future__ import annotations

import math
from functools import partial
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse.linalg import LinearOperator

from saddlepoint.ground.arrays import Array, Space, to_host
from saddlepoint.ground.linalg import norm
from saddlepoint.parts.coupling import ArrayCoupling, Coupling, DenseCoupling, SparseCoupling, as_coupling
from saddlepoint.parts.functions.affine import affine
from saddlepoint.parts.functions.quadratic import Quadratic
from saddlepoint.parts.functions.second_order import constant_matrix, hessian_change, quadratic_model
from saddlepoint.parts.functions.smooth import Smooth
from saddlepoint.problems.faces import Face
from saddlepoint.problems.hessian_check import is_examined, refuse_wrong_second_derivatives
from saddlepoint.problems.saddle import Saddle
from saddlepoint.theory.certificate import Certificate
from saddlepoint.theory.derivatives import derivative_certificate

SMALL = 1000  # most variables of a player for which a problem of another library is solved with matrices of NumPy
UP = 1.0 + 2.0**-40  # factor that exceeds the relative rounding of sums and norms of a few numbers
FINEST, FINEST_FLOAT32 = 1e-10, 2e-6  # least relative accuracies to which linear systems are solved, by dtype
COARSEST = 1e-4  # largest one, however inaccurate the point is


class Linearised:
    """The field of a problem near a point, by its first derivatives.

    Args:
        f: the problem.
        x, y: the point.
        faces: the subspaces in which the solution can move; None for the whole space.
    """

    def __init__(self, f: Saddle, x: Array, y: Array, faces: tuple[Face | None, Face | None] = (None, None)) -> None:
        wide = f.space.wide
        self.f, self.faces = f, faces
        self.at = (
            f.gradient_argument(f.g, x, wide.of_x.cast(x)),
            f.gradient_argument(f.h, y, wide.of_y.cast(y)),
        )
        models = [quadratic_model(f.g, self.at[0]), quadratic_model(f.h, self.at[1])]
        self.hessians = models[0], models[1]
        for k, (face, z) in enumerate(zip(faces, (x, y), strict=True)):
            curved = None if face is None else face.curvature.function(face.n, z)
            if curved is not None:
                models[k] = models[k] + curved
        self.models = models[0], models[1]

    def problem(self, bx: Array, by: Array) -> Saddle:
        """The problem whose solution u satisfies J u = -(bx, by), without the faces."""
        g, h = (affine(model, linear=b) for model, b in zip(self.models, (bx, by), strict=True))
        return self.f.replace(g=g, h=h)

    def reduced(self, bx: Array, by: Array) -> Reduced:
        """The same problem in the bases of the faces."""
        whole = self.problem(bx, by)
        if self.faces == (None, None):
            return Reduced(whole, self.faces)
        g, h = (_on_face(function, face) for function, face in zip((whole.g, whole.h), self.faces, strict=True))
        return Reduced(Saddle(g, h, _coupling_on_faces(self.f.A, self.faces)), self.faces)

    def agrees_with_gradients(self, b: tuple[Array, Array], noises: tuple[float, float]) -> bool:
        """Whether products of the Hessians that a caller wrote with these vectors agree with differences of gradients.

        An AssumptionError if they are refuted (see ``problems.hessian_check``).
        """
        found = True
        for k, (name, f) in enumerate((("g", self.f.g), ("h", self.f.h))):
            if is_examined(f):
                agrees = refuse_wrong_second_derivatives(f, self.hessians[k], name, self.at[k], b[k], noises[k])
                found = found and agrees
        return found

    def noise(self, noise_x: float, noise_y: float, u: tuple[Array, Array]) -> tuple[float, float]:
        """By how much products of the Hessians with u may be wrong if gradients are wrong by so much.

        It is an assumption that products are, relative to L |u|, as accurate as gradients are relative to their size.
        """
        found = []
        for f, at, level, vector in zip((self.f.g, self.f.h), self.at, (noise_x, noise_y), u, strict=True):
            size = 0.0 if level == 0.0 else f.L * norm(at) + norm(f.grad(at))
            found.append(0.0 if level == 0.0 else 2.0 * level / size * f.L * norm(vector) if size > 0.0 else math.inf)
        return found[0], found[1]

    def certificate(
        self, u: tuple[Array, Array], bx: Array, by: Array, reach: tuple[float, float], more: tuple[float, float]
    ) -> Certificate:
        """Bounds on the distance from u to the solution of the same system at the true saddle point.

        Args:
            u: the computed solution.
            bx, by: the right-hand side.
            reach: bounds on |x - x*| and |y - y*|.
            more: bounds on errors of the right-hand side, and on noise of the products.
        """
        whole = self.problem(bx, by)
        query = whole.gradients_and_products(*u)
        rx, ry, error_x, error_y = whole.residuals(query)
        off, changed = [0.0, 0.0], [0.0, 0.0]
        residuals = [float(rx), float(ry)]
        with np.errstate(all="ignore"):
            parts = query.gx + query.Ay, query.hy - query.Atx
            for k, (face, part, vector) in enumerate(zip(self.faces, parts, (query.x, query.y), strict=True)):
                if face is None:
                    continue
                # Vectors of the library may be rounded; what is orthogonal to the face is no part of the residual.
                residuals[k] = UP * norm(face.onto(part)) if face.size else 0.0
                off[k] = UP * face.off(vector) + 4.0 * float(np.finfo(np.float64).eps) * norm(vector)
                # The tangent space at the solution is another one: see ``TermCurvature``.
                residuals[k] += _product(face.curvature.tilt, norm(part))
                off[k] += _product(face.curvature.tilt, norm(vector))
                changed[k] = UP * _product(face.curvature.change, norm(vector))
        steep = sum(model.L for model in self.models) + sum(face.curvature.change for face in self.faces if face)
        steep += 2.0 * self.f.norm
        slack = _product(steep, sum(off))
        change_x = hessian_change(self.f.g, self.at[0], query.x, reach[0])
        change_y = hessian_change(self.f.h, self.at[1], query.y, reach[1])
        found = derivative_certificate(
            self.f.mu_x,
            self.f.mu_y,
            residuals[0],
            residuals[1],
            float(error_x) + change_x + changed[0] + slack + more[0],
            float(error_y) + change_y + changed[1] + slack + more[1],
        )
        if not sum(off):
            return found
        return found._replace(
            distance=found.distance + sum(off),
            distance_x=found.distance_x + off[0],
            distance_y=found.distance_y + off[1],
        )


class Reduced(NamedTuple):
    """A problem in the bases of two faces."""

    problem: Saddle
    faces: tuple[Face | None, Face | None]

    def vectors(self, u: Array, w: Array) -> tuple[Array, Array]:
        """The vectors with these coefficients; zero where a face is a point."""
        found = []
        for face, v in zip(self.faces, (u, w), strict=True):
            found.append(v if face is None else face.vector(v if face.size else v[:0]))
        return found[0], found[1]


def on_host(f: Saddle) -> Saddle | None:
    """A small quadratic problem of another library as one of NumPy, with its matrices; None if it is too large.

    Other libraries take long to start many small operations, and JAX to compile them.
    """
    if f.space.is_numpy or max(f.shape) > SMALL or not isinstance(f.A, ArrayCoupling):
        return None
    functions = []
    for function, size, space in zip((f.g, f.h), f.shape, (f.space.of_x, f.space.of_y), strict=True):
        b, H = hessian_matrix(function, size, space)
        functions.append(
            Smooth(
                partial(_affine_map, H, b),
                mu=function.mu,
                L=function.L,
                quadratic=True,
                hessian=partial(constant_matrix, H),
                trusted=True,
            )
        )
    return Saddle(functions[0], functions[1], np.asarray(to_host(f.A.matrix()), dtype=np.float64))


def hessian_matrix(f: Smooth, n: int, space: Space) -> tuple[Array, Array]:
    """The b and the matrix H of a function whose gradient is H u + b, as arrays of NumPy in float64."""
    zero = space.zeros(n)
    b = f.grad(zero)
    identity = space.cast(np.eye(n))
    if space.is_jax:
        rows: Any = import_module("jax").vmap(f.grad)(identity)
    else:
        rows = space.xp.stack([f.grad(identity[i]) for i in range(n)])
    base, H = (np.asarray(to_host(part), dtype=np.float64) for part in (b, rows))
    H = H - base
    return base, 0.5 * (H + H.T)


def _product(a: float, b: float) -> float:
    """The product, which is 0 if one of the two is, even if the other is infinite."""
    return 0.0 if 0.0 in (a, b) else a * b


def _affine_map(H: Array, b: Array, u: Array) -> Array:
    return np.asarray(H @ u + b)


def _on_face(f: Smooth, face: Face | None) -> Smooth:
    """The function of the coefficients of a vector in the face; any function of one number for a face that is a point.

    None stands for the whole space.
    """
    if face is None:
        return f
    if face.size == 0:
        return Quadratic(1.0)
    hessian = f.hessian

    def grad(u: Array) -> Array:
        return face.onto(f.grad(face.vector(u)))

    def matrix(u: Array) -> Any:
        assert hessian is not None
        return face.matrix(hessian(face.vector(u)), face)

    return f.replace(
        grad=grad,
        value=None,
        prox=None,
        hessian=None if hessian is None else matrix,
        hvp=None,
        second_order=None,
        restrict=None,
        dim=face.size,
        trusted=f.trusted,
    )


def _coupling_on_faces(A: Coupling, faces: tuple[Face | None, Face | None]) -> Any:
    """A in the bases of the faces; a row or a column of zeros for a face that is a point."""
    m, n = (size if face is None else face.size for face, size in zip(faces, A.shape, strict=True))
    of_x, of_y = faces
    if min(m, n) == 0:
        xp = A.space.xp
        where = A.space.device_keyword()
        return xp.zeros((max(m, 1), max(n, 1)), dtype=A.space.dtype, **where)
    if isinstance(A, DenseCoupling | SparseCoupling | ArrayCoupling):
        matrix: Any = A.matrix()
        if of_x is not None and of_y is not None:
            return of_x.matrix(matrix, of_y)
        if of_x is not None:
            return of_x.rows(matrix)
        assert of_y is not None
        return of_y.rows(matrix.T).T

    def mul(w: Array) -> Array:
        t = A.mul(w if of_y is None else of_y.vector(w))
        return t if of_x is None else of_x.onto(t)

    def tmul(u: Array) -> Array:
        t = A.tmul(u if of_x is None else of_x.vector(u))
        return t if of_y is None else of_y.onto(t)

    return as_coupling(LinearOperator((m, n), matvec=mul, rmatvec=tmul, dtype=A.dtype))


def relative_accuracy(f: Saddle, x: Array, y: Array, distance: float) -> float:
    """The relative accuracy to which the linear system is solved: about that of the point, within limits."""
    size = norm(x) + norm(y)
    known = distance / size if size > 0.0 and math.isfinite(distance) else 0.0
    return min(max(known, FINEST if f.space.is_float64 else FINEST_FLOAT32), COARSEST)
