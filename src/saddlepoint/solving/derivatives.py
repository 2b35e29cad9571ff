"""Derivatives of the saddle point with respect to the data of the problem, with a proven bound on their error.

With F the field and z* the saddle point, F(z*, theta) = 0, so that dz* = -J^-1 dF with the Jacobian J of F. A vjp
solves J' u = v once, for the derivatives of <v, z*> with respect to everything; a jvp solves J dz = -dF for one
direction.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from saddlepoint.ground.arrays import Array, detached, eps_of, is_array, smallest_of, to_host
from saddlepoint.ground.errors import AssumptionError, ProblemError, SingularError
from saddlepoint.ground.linalg import norm
from saddlepoint.ground.validation import as_vector
from saddlepoint.methods.direct import solver, wide
from saddlepoint.parts.coupling import Coupling, DenseCoupling, SparseCoupling, as_coupling
from saddlepoint.parts.functions.second_order import steepness
from saddlepoint.parts.functions.source_data import refuse_changed_coupling
from saddlepoint.problems.curvature import Near
from saddlepoint.problems.faces import Face, faces_of
from saddlepoint.problems.hessian_check import is_examined
from saddlepoint.problems.linearised import SMALL, Linearised, Reduced, on_host, relative_accuracy
from saddlepoint.problems.saddle import Saddle
from saddlepoint.solving.result import Result, Status
from saddlepoint.theory.certificate import Certificate

Solve = Callable[..., Result]
DISAGREES = (
    "Differences of gradients disagree with the second derivatives, which may be wrong: check hvp= or hessian=, or "
    "parts of the gradient that are not differentiated"
)
CHANGED = 4.0  # factor by which a certified distance may grow when it is computed again; if it grows more, data changed


@dataclass(frozen=True, repr=False, eq=False)
class Derivative:
    """What is known of a derivative of the saddle point.

    Attributes:
        bound: a proven bound on the error against the derivative at the true saddle point, as |.| of the x part plus
            |.| of the y part; infinite where nothing is known.
        bound_x, bound_y: bounds for the two parts.
        why: why the bound is infinite, in a sentence; empty if it is finite.
        undecided: how many coordinates are neither proven to be at a bound of a simple term nor proven to be off it.
            The computed point has decided about them; the derivative is then one of several possible ones.
        assumes: what the bound rests on beside arithmetic, in sentences.
        run: the result of the linear system's run; None if the derivative is zero or one factorisation was enough.
    """

    bound: float
    bound_x: float
    bound_y: float
    why: str
    undecided: int
    assumes: tuple[str, ...]
    run: Result | None

    def _words(self) -> str:
        proof = f"error <= {self.bound:.3g}" if self.bound < math.inf else f"error unknown: {self.why}"
        return f"{proof}; {self.undecided} coordinates undecided" if self.undecided else proof


@dataclass(frozen=True, repr=False, eq=False)
class VJP(Derivative):
    """The gradient of <vx, x*> + <vy, y*> with respect to the data of the problem, by ``Result.vjp``.

    Attributes:
        ux, uy: the solution of the adjoint system J' u = v. The gradient with respect to a parameter theta of the
            functions is -(dF/dtheta)' u. The bounds are about this vector.
        bx, by: the gradients with respect to b and c, where <b, x> is added to g and <c, y> to h: -ux and -uy.
    """

    ux: Array
    uy: Array
    bx: Array
    by: Array
    problem_and_point: tuple[Saddle, Array, Array, Certificate]

    @property
    def A(self) -> Any:
        """The gradient with respect to A, x uy' - ux y'; for a sparse A with respect to the stored entries."""
        f, x, y, _ = self.problem_and_point
        if isinstance(f.A, SparseCoupling):
            pattern = f.A.A.tocoo()
            rows, columns = pattern.coords
            values = x[rows] * self.uy[columns] - self.ux[rows] * y[columns]
            return csr_array((values, (rows, columns)), shape=f.A.shape)
        gradient: Array = x[:, None] * self.uy[None, :] - self.ux[:, None] * y[None, :]
        return gradient

    @property
    def bound_A(self) -> float:
        """A bound on the error of ``A`` in the Frobenius norm: |x - x*|, |y - y*|, the errors of u, and rounding."""
        f, x, y, proof = self.problem_and_point
        if self.bound == math.inf:  # before 0 * inf, which is not a number, where x or y is zero
            return math.inf
        of_x = norm(x) * self.bound_y + proof.distance_x * (norm(self.uy) + self.bound_y)
        of_y = norm(y) * self.bound_x + proof.distance_y * (norm(self.ux) + self.bound_x)
        products = norm(x) * norm(self.uy) + norm(y) * norm(self.ux)  # the entries of A are rounded differences of two
        rounding = 2.0 * eps_of(self.ux) * products + 4.0 * smallest_of(self.ux) * sum(f.shape)
        return (of_x + of_y + rounding) * (1.0 + 4.0 * eps_of(self.ux) * sum(f.shape))  # norms are rounded, too

    def __repr__(self) -> str:
        return f"VJP({self._words()})"


@dataclass(frozen=True, repr=False, eq=False)
class JVP(Derivative):
    """The derivative of the saddle point along a change of the data, by ``Result.jvp``.

    Attributes:
        x, y: the derivatives of x* and y*.
    """

    x: Array
    y: Array

    def __repr__(self) -> str:
        return f"JVP({self._words()})"


class Differentiable:
    """A result with its problem, ready for derivatives.

    Args:
        f: the problem.
        solve: the function that solves the linear systems, which are saddle problems too.
    """

    def __init__(self, f: Saddle, solve: Solve) -> None:
        self.f, self.solve = f, solve

    def vjp(self, result: Result, vx: Any, vy: Any, options: dict[str, Any]) -> VJP:
        """See ``Result.vjp``."""
        f = self._checked(result)
        given = self._vector(vx, "vx", 0), self._vector(vy, "vy", 1)
        (ux, w), proof, facts = self._solution(result, -1.0 * given[0], given[1], (0.0, 0.0), options)
        uy = -1.0 * w
        data = f, result.x, result.y, result.certificate
        return VJP(*proof, ux=ux, uy=uy, bx=-1.0 * ux, by=w, problem_and_point=data, **facts)

    def jvp(self, result: Result, A: Any, bx: Any, by: Any, field: Any, options: dict[str, Any]) -> JVP:
        """See ``Result.jvp``."""
        f, proof = self._checked(result), result.certificate
        dFx, dFy = self._vector(bx, "bx", 0), self._vector(by, "by", 1)
        more = [0.0, 0.0]
        if A is not None:
            dA = as_coupling(detached(A), "the direction of A")
            if dA.shape != f.shape:
                raise ProblemError(f"the direction of A has shape {dA.shape}; expected {f.shape}, that of A")
            Ay, Atx = dA.both(result.x, result.y)
            dFx, dFy = dFx + f.space.of_x.cast(Ay), dFy - f.space.of_y.cast(Atx)
            size = _bound_of_norm(dA)
            eps = f.space.eps * 4.0 * (sum(f.shape) + 4)
            more = [size * (proof.distance_y + eps * norm(result.y)), size * (proof.distance_x + eps * norm(result.x))]
        if field is not None:
            try:
                of_x, of_y = field
            except (TypeError, ValueError):
                raise ProblemError(
                    "field is not a pair of vectors; expected (dFx, dFy), the change of the field"
                ) from None
            dFx, dFy = dFx + self._vector(of_x, "field[0]", 0), dFy + self._vector(of_y, "field[1]", 1)
        (dx, dy), bounds, facts = self._solution(result, dFx, dFy, (more[0], more[1]), options)
        return JVP(*bounds, x=dx, y=dy, **facts)

    def _checked(self, result: Result) -> Saddle:
        """The problem; a ProblemError if its solution cannot be differentiated."""
        f = self.f
        if result.status is Status.UNCERTIFIED or math.isnan(f.mu_x + f.mu_y):
            raise ProblemError(
                "the run is uncertified, so that nothing is known of the point whose derivative is asked for; give mu "
                "of g and h, and solve again"
            )
        if min(f.mu_x, f.mu_y) <= 0.0:
            side = "g" if f.mu_x <= 0.0 else "h"
            raise ProblemError(
                f"{side} is not strongly convex (mu = {getattr(f, side).mu:.3g}), so that its solution may be neither "
                f"unique nor differentiable; add a multiple of |.|^2, for example {side} + Quadratic(1e-3)"
            )
        if result.certificate.distance == math.inf:
            raise ProblemError(
                f"the run ended without a certificate ({result.status}), so that nothing is known of the point whose "
                "derivative is asked for; solve the problem first"
            )
        if f.space.of_x.is_sharded or f.space.sides is not None:
            raise ProblemError("derivatives of problems in shards are not implemented; use A in one piece")
        self._refuse_changed(result)
        return f

    def _refuse_changed(self, result: Result) -> None:
        """Raise a ProblemError if x, y, A or other data were written into after the run: its certificate is void."""
        refuse_changed_coupling(self.f.A)
        then = result.certificate.distance
        now = self.f.certificate(result.x, result.y, then)
        if not now.distance <= CHANGED * (then + now.rounding):
            raise ProblemError(
                f"x, y or data of the problem were written into after the run, which had proven a distance of "
                f"{then:.3g}; now it is {now.distance:.3g}. Solve the problem again, or give it copies of the data"
            )

    def _vector(self, value: Any, name: str, side: int) -> Array:
        space, size = (self.f.space.of_x, self.f.space.of_y)[side], self.f.shape[side]
        if value is None:
            return space.zeros(size)
        value = detached(value) if is_array(value) else value
        return space.cast(as_vector(value, name, size))

    def _solution(
        self, result: Result, bx: Array, by: Array, more: tuple[float, float], options: dict[str, Any]
    ) -> tuple[tuple[Array, Array], tuple[float, float, float], dict[str, Any]]:
        """The u with J u = -(bx, by); bounds on its error; and the other fields of ``Derivative``."""
        f, x, y = self.f, result.x, result.y
        faces: list[Face | None] = [None, None]
        undecided = 0
        if f.has_simple:
            supports = result.support_x, result.support_y
            faces, undecided = faces_of((f.g.simple, f.h.simple), (x, y), supports, self._near(result))
        linear = Linearised(f, x, y, (faces[0], faces[1]))
        rest = [_length_on(face, b) for face, b in zip(faces, (bx, by), strict=True)]
        proof, run, agrees = result.certificate, None, True
        u = 0.0 * x, 0.0 * y
        if max(rest) > 0.0:
            noises = proof.noise_x, proof.noise_y
            try:
                u, run = self._solved(result, linear.reduced(bx, by), options)
            except (AssumptionError, ProblemError) as error:
                linear.agrees_with_gradients((bx, by), noises)  # which says it better, if second derivatives are wrong
                raise _in_linear_system(error) from error
            agrees = linear.agrees_with_gradients(u, noises)
        noise = linear.noise(proof.noise_x, proof.noise_y, u)
        if run is not None:
            noise = max(noise[0], run.certificate.noise_x), max(noise[1], run.certificate.noise_y)
        errors = more[0] + noise[0], more[1] + noise[1]
        shown = linear.certificate(u, bx, by, (proof.distance_x, proof.distance_y), errors)
        bounds = shown.distance, shown.distance_x, shown.distance_y
        why = self._why(undecided, shown)
        if why:
            bounds = math.inf, math.inf, math.inf
            why += "" if agrees else f". {DISAGREES}"
        facts = {"why": why, "undecided": undecided, "assumes": self._assumes(proof), "run": run}
        return u, bounds, facts

    def _solved(self, result: Result, small: Reduced, options: dict[str, Any]) -> tuple[Any, Result | None]:
        """The solution of the linear system, and the run that found it, if one factorisation was not enough."""
        f, run = self.f, None
        target = {} if {"tol", "rtol"} & set(options) else {"rtol": self._accuracy(result)}
        host = on_host(small.problem) if "method" not in options else None
        # A run examines second derivatives of one's own; those of other functions were examined as gradients.
        examined = all(part.quadratic or part.trusted for part in (f.g.without_term, f.h.without_term))
        found = _by_factorisation(host or small.problem, target["rtol"]) if examined and not options else None
        if found is None:
            run = self.solve(host or small.problem, **{"history": False, **target, **options})
            found = run.x, run.y
        space = small.problem.space
        return small.vectors(space.of_x.cast(found[0]), space.of_y.cast(found[1])), run

    def _assumes(self, proof: Certificate) -> tuple[str, ...]:
        """What the bound rests on beside arithmetic."""
        found = list(proof.assumes)
        if proof.noise_x + proof.noise_y > 0.0:
            found.append("Products with the Hessians are as accurate as the gradients, which are noisy.")
        for name, function in (("g", self.f.g), ("h", self.f.h)):
            if is_examined(function):
                found.append(
                    f"The second derivatives of {name} are those of its gradient, and change as little as is said; the "
                    "gradients that were examined around the point agree with it."
                )
        return tuple(found)

    def _near(self, result: Result) -> tuple[Near, Near]:
        """What is known of the gradients w = grad g + A y and grad h - A' x at the solution."""
        f, proof, query = self.f, result.certificate, self.f.gradients_and_products(result.x, result.y)
        _, _, *errors = f.residuals(query)
        size = _bound_of_norm(f.A)
        e, fields = (proof.distance_x, proof.distance_y), (query.gx + query.Ay, query.hy - query.Atx)
        levels, slopes = (proof.noise_x, proof.noise_y), [steepness(f.g), steepness(f.h)]
        nears = []
        for k, name in enumerate("gh"):
            slope = math.inf if name in f.estimated else slopes[k]
            reach = (slope * e[k] if e[k] > 0.0 else 0.0) + size * e[1 - k] + float(errors[k]) + levels[k]
            nears.append(Near(np.asarray(to_host(fields[k]), dtype=np.float64), e[k], reach * (1.0 + 1e-12)))
        return nears[0], nears[1]

    def _accuracy(self, result: Result) -> float:
        return relative_accuracy(self.f, result.x, result.y, result.certificate.distance)

    def _why(self, undecided: int, found: Certificate) -> str:
        """Why nothing is known of the error; empty if the bound is finite."""
        f = self.f
        if undecided:
            return (
                f"{undecided} coordinates are neither proven to be at a bound or at zero nor proven to be off it; "
                "solve with a smaller tol to decide them, unless the solution is just where its derivative jumps"
            )
        if found.distance < math.inf:
            return ""
        for name, function in (("g", f.g), ("h", f.h)):
            own = function.without_term
            if not own.quadratic and own.hessian_lipschitz is None:
                return (
                    f"the Lipschitz constant of the Hessian of {name} is not known; give hessian_lipschitz= to Smooth"
                )
        return "a part of g or h has a Hessian whose Lipschitz constant is not known; give hessian_lipschitz= to Smooth"


def _bound_of_norm(A: Coupling) -> float:
    """A proven bound of |A|; of an operator, one that holds with a probability of 1 - 1e-8."""
    return A.norm_ceiling() if A.has_entries else A.estimated_norm().upper


def _in_linear_system(error: AssumptionError | ProblemError) -> AssumptionError | ProblemError:
    """The error of a run on the linear system, with the words that say so."""
    text = f"in the linear system of the derivative, where the gradients are products with the Hessians: {error}"
    if isinstance(error, AssumptionError):
        return AssumptionError(error.function, "hessian", error.given, error.observed, text)
    return ProblemError(text)


@np.errstate(all="ignore")  # numbers that are not finite are refused by the certificate, as in a run
def _by_factorisation(f: Saddle, rtol: float) -> tuple[Array, Array] | None:
    """The solution of a small quadratic problem by its matrices, without a run, which would take longer to start.

    None if the problem is large, if its matrices are not known, or if the answer is inaccurate.
    """
    ready = f.g.hessian is not None and f.h.hessian is not None
    if not (ready and max(f.shape) <= SMALL and isinstance(f.A, DenseCoupling)):
        return None
    x, y = f.space.of_x.zeros(f.shape[0]), f.space.of_y.zeros(f.shape[1])
    try:
        solve = solver(*(wide(M) for M in (f.g.hessian(x), f.h.hessian(y), f.A.matrix())))  # type: ignore[misc]
    except SingularError:
        return None
    for _ in range(2):  # the second time removes the rounding of the first
        dx, dy = solve(*f.field(x, y))
        x, y = x - dx, y - dy
    tol = rtol * (norm(x) + norm(y))
    return (x, y) if f.certificate(x, y, tol).distance <= tol else None


def _length_on(face: Face | None, b: Array) -> float:
    """The length of the part of b in the face; 0.0 if it is there by rounding alone, which no run could resolve."""
    if face is None or not face.size:
        return norm(b) if face is None else 0.0
    length = norm(face.onto(b))
    return length if length > 8.0 * eps_of(b) * math.sqrt(face.n) * norm(b) else 0.0
