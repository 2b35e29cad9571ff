"""One query of the oracle at a point: the lengths of the residuals there, with bounds on their rounding errors."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from saddlepoint.ground.arrays import FLOAT64, Array, Space, detached, eps_of, is_array, is_foreign, smallest_of
from saddlepoint.ground.compensated import UP, Accumulator, Sum
from saddlepoint.ground.linalg import lengths, norm, prefetch_norms
from saddlepoint.ground.rounding import gamma
from saddlepoint.ground.validation import as_vector, refuse_masked
from saddlepoint.parts.coupling import Coupling
from saddlepoint.parts.functions.accuracy import ProvenBounds, Rough, error_from_sizes
from saddlepoint.parts.functions.gradient_noise import eps_of_code
from saddlepoint.parts.functions.smooth import Smooth
from saddlepoint.problems.terms import NO_TERM, Term, term_at

ROUGH = 1e-3  # share of a residual up to which a rough bound on its rounding errors is enough


Lengths = tuple[Any, Any, Any, Any]  # of the residuals of a query, |Fx| and |Fy|, and bounds on their rounding errors


class Query(NamedTuple):
    """Gradients and products at a point.

    Attributes:
        x, y: the point, in float64.
        at_x, at_y: the same in the dtypes in which the gradients were taken.
        gx, hy: the gradients.
        Ay, Atx: the products.
        of_x, of_y: what the simple terms of x and of y add to the certificate.
    """

    x: Array
    y: Array
    at_x: Array
    at_y: Array
    gx: Array
    hy: Array
    Ay: Array
    Atx: Array
    of_x: Term = NO_TERM
    of_y: Term = NO_TERM


class Residuals:
    """The parts of a saddle problem, and the arithmetic of a query. ``Saddle`` adds what is proven from it."""

    g: Smooth
    h: Smooth
    A: Coupling
    space: Space
    L_x: float
    L_y: float
    blocks = 1  # number of independent problems that this one consists of

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of variables of x and of y."""
        return self.A.shape

    @property
    def has_simple(self) -> bool:
        """Whether g or h has a simple term, such as a constraint."""
        return self.g.simple is not None or self.h.simple is not None

    def with_terms(self, query: Query) -> Query:
        """The query with what the simple terms add to the certificate."""
        if not self.has_simple:
            return query
        with np.errstate(all="ignore"), self.space.exact_products():
            return query._replace(
                of_x=term_at(self.g, query.x, query.gx + query.Ay), of_y=term_at(self.h, query.y, query.hy - query.Atx)
            )

    def gradients_and_products(self, x: Array, y: Array) -> Query:
        """The gradients and products at (x, y), in float64 where the functions allow it."""
        wide = self.space.wide
        x, y = self.as_point(x, "x", self.shape[0]), self.as_point(y, "y", self.shape[1])
        x64, y64 = wide.of_x.cast(x), wide.of_y.cast(y)
        with np.errstate(all="ignore"), self.space.exact_products():
            Ay, Atx = _products(self.A, x64, y64)
            at_x, at_y = self.gradient_argument(self.g, x, x64), self.gradient_argument(self.h, y, y64)
            at_x, at_y = self.g.inside(at_x), self.h.inside(at_y)
            gx, hy = self.g.grad(at_x), self.h.grad(at_y)
        for name, p in (("g", gx), ("h", hy)):
            if type(p) is not np.ndarray:
                refuse_masked(p, f"the gradient of {name}")
        return Query(x64, y64, at_x, at_y, gx, hy, Ay, Atx)

    def residuals(self, query: Query) -> Lengths:
        """The norms |Fx| and |Fy| at (x, y), and bounds on their rounding errors; of a batch, those of each block."""
        x, y, at_x, at_y, gx, hy, Ay, Atx, *_ = query
        with np.errstate(all="ignore"), self.space.exact_products():
            Rx, Ry = gx + Ay, hy - Atx
            twice_x = twice_y = 0.0  # errors of a sum of three vectors, which is rounded twice
            if query.of_x.slope is not None:
                Rx, twice_x = Rx + query.of_x.slope, 2.0 * eps_of(Rx) * norm(Rx)
            if query.of_y.slope is not None:
                Ry, twice_y = Ry + query.of_y.slope, 2.0 * eps_of(Ry) * norm(Ry)
            of_x = Rx, gx, x, *_rounding(self.g, at_x, self.blocks)
            of_y = Ry, hy, y, *_rounding(self.h, at_y, self.blocks)
            (Fx, *sizes_x, scale_x), (Fy, *sizes_y, scale_y) = self._lengths(of_x, of_y, enough=ROUGH)
            error_x, error_y = self._gradient_errors(query, [Fx, *sizes_x], [Fy, *sizes_y])
            eps_x, eps_y = max(eps_of(gx), eps_of(Ay)), max(eps_of(hy), eps_of(Atx))
            error_x = error_x + gamma(self.A.sum_length, eps_of(Ay)) * scale_x + self._norm_error(0, eps_x) * Fx
            error_y = error_y + gamma(self.A.T.sum_length, eps_of(Atx)) * scale_y + self._norm_error(1, eps_y) * Fy
            error_x, error_y = error_x + twice_x, error_y + twice_y
            return Fx, Fy, *self._with_underflow(query, error_x, error_y, sizes_x, sizes_y)

    def compensated_residuals(self, query: Query) -> Lengths | None:
        """The same with products in about twice the digits; None if A has none."""
        found = self._compensated(query)
        if found is None:
            return None
        (Rx, Fx, error_x), (Ry, Fy, error_y) = found
        error_x = error_x + self._norm_error(0, eps_of(Rx.hi)) * Fx
        return Fx, Fy, error_x, error_y + self._norm_error(1, eps_of(Ry.hi)) * Fy

    def compensated_field(self, query: Query) -> tuple[Array, Array, Any, Any] | None:
        """Gradients plus products, with those in about twice the digits, and bounds on the lengths of their errors.

        None if A has no such products. Subgradients of simple terms are left out.
        """
        found = self._compensated(query._replace(of_x=NO_TERM, of_y=NO_TERM))
        if found is None:
            return None
        (Rx, _, error_x), (Ry, _, error_y) = found
        return Rx.hi, Ry.hi, UP * (error_x + norm(Rx.lo)), UP * (error_y + norm(Ry.lo))

    def _compensated(self, query: Query) -> tuple[tuple[Sum, Any, Any], tuple[Sum, Any, Any]] | None:
        """The residuals with products in about twice the digits, their lengths, and bounds on those of their errors."""
        x, y, at_x, at_y, gx, hy, *_ = query
        with np.errstate(all="ignore"), self.space.exact_products():
            Ay, Atx = self.A.compensated_mul(y), self.A.T.compensated_mul(x)
            if Ay is None or Atx is None:
                return None
            Rx = _compensated_sum(self.g, at_x, gx, Ay, query.of_x.slope)
            Ry = _compensated_sum(self.h, at_y, hy, Atx, query.of_y.slope, -1.0)
            of_x = Rx.hi, gx, x, *_rounding(self.g, at_x, self.blocks, compensated=True), Rx.error
            of_y = Ry.hi, hy, y, *_rounding(self.h, at_y, self.blocks, compensated=True), Ry.error
            (Fx, *sizes_x, more_x, _), (Fy, *sizes_y, more_y, _) = self._lengths(of_x, of_y)
            error_x, error_y = self._gradient_errors(query, [Fx, *sizes_x], [Fy, *sizes_y], compensated=True)
            errors = self._with_underflow(query, error_x + more_x, error_y + more_y, sizes_x, sizes_y)
            return (Rx, Fx, errors[0]), (Ry, Fy, errors[1])

    def _likely_errors(self, x: Array, y: Array) -> tuple[Any, Any]:
        """About the rounding errors of the two parts of the field at (x, y)."""
        query = self.gradients_and_products(x, y)
        with np.errstate(all="ignore"):
            of_x, of_y = (query.Ay, query.gx, query.x), (query.Atx, query.hy, query.y)
            (*sizes_x, at_x, scale_x), (*sizes_y, at_y, scale_y) = self._lengths(of_x, of_y)
            L_x, L_y = self._smoothness
            scale_x, scale_y = (s / math.sqrt(A.sum_length) for s, A in ((scale_x, self.A), (scale_y, self.A.T)))
            error_x = 2.0 * max(map(eps_of, of_x)) * (sum(sizes_x) + L_x * at_x + scale_x)
            error_y = 2.0 * max(map(eps_of, of_y)) * (sum(sizes_y) + L_y * at_y + scale_y)
        return error_x, error_y

    def _gradient_errors(
        self, query: Query, sizes_x: list[Any], sizes_y: list[Any], compensated: bool = False
    ) -> tuple[Any, Any]:
        """Bounds on the errors of the two gradients, from the sizes of residual, gradient, point and entries' bounds.

        Where a rough bound is a small share of the residual, the bounds on the entries are not computed.
        """
        errors = []
        for f, L, at, p, (F, size, length, *entries) in (
            (self.g, self._smoothness[0], query.at_x, query.gx, sizes_x),
            (self.h, self._smoothness[1], query.at_y, query.hy, sizes_y),
        ):
            known = compensated and f.compensated is not None
            rounding = entries[0] if entries and not known else 0.0 * size
            rough = None if compensated else _rough_rounding(f, at, self.blocks)
            if rough is not None:
                rounding = rough(length, size, at.shape[0])
                if not rounding <= ROUGH * F:
                    assert f.rounding is not None
                    rounding = norm(f.rounding(at))
            # With L = 0 the gradient is constant: whole numbers in it say nothing about the precision of the code.
            guess = math.isnan(f.accuracy) and f.L > 0.0
            eps = max(eps_of(at), eps_of_code(f.grad, at, p) if guess else eps_of(p))
            errors.append(error_from_sizes(f, L, eps, rounding, size, length))
        return errors[0], errors[1]

    def _norm_error(self, side: int, eps: float) -> float:
        """The relative error of the norm of a residual, and of the sum that the residual is."""
        return gamma(self.shape[side] // self.blocks + 4, eps)

    def _with_underflow(
        self, query: Query, error_x: Any, error_y: Any, sizes_x: list[Any], sizes_y: list[Any]
    ) -> tuple[Any, Any]:
        """The errors with what underflow adds: each term of a sum can change by the smallest positive number."""
        lost = max(map(smallest_of, query[4:8])) * (sum(self.shape) / self.blocks) ** 1.5
        lost = lost * (sum(sizes_x[:2]) + sum(sizes_y[:2]) + error_x + error_y > 0.0)
        return error_x + lost, error_y + lost

    def _lengths(
        self, of_x: tuple[Array, ...], of_y: tuple[Array, ...], enough: float = 0.0
    ) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """The norms of some vectors, the third being x and y, followed by the rounding scales of A y and of A' x.

        A rounding scale is a rough one, which takes less time, where the rounding error that it allows is at most the
        share ``enough`` of the first norm.
        """
        prefetch_norms(*of_x)
        sizes = lengths([*of_x, *of_y]) if self.space.sides is None else [*lengths(of_x), *lengths(of_y)]
        sizes_x, sizes_y = sizes[: len(of_x)], sizes[len(of_x) :]
        scale_x = _rounding_scale(self.A, of_y[2], sizes_y[2], enough * sizes_x[0])
        scale_y = _rounding_scale(self.A.T, of_x[2], sizes_x[2], enough * sizes_y[0])
        return (*sizes_x, scale_x), (*sizes_y, scale_y)

    @property
    def _smoothness(self) -> tuple[Any, Any]:
        """The constants L of g and of h; of a batch, those of each block."""
        return self.L_x, self.L_y

    def as_point(self, point: Any, name: str, size: int) -> Array:
        """The point as a vector of this size; a ProblemError if it cannot be one."""
        if type(point) is np.ndarray and point.dtype is FLOAT64 and point.shape == (size,):
            return point
        refuse_masked(point, name)
        fits = is_array(point) and point.shape == (size,) and (is_foreign(point) or point.dtype.kind == "f")
        vector: Array = detached(point) if fits else as_vector(point, name, size)
        return vector

    def gradient_argument(self, function: Smooth, x: Array, x64: Array) -> Array:
        """The point in float64; in the problem's dtype for functions of other libraries, which may need that."""
        return x64 if self.space.is_numpy or function.space is not None else self.space.cast(x)


def _products(A: Coupling, x: Array, y: Array) -> tuple[Array, Array]:
    """(A y, A' x); zeros without reading A where x and y are zero, as at the start of most runs."""
    in_memory = A.has_entries and not A.runtime.reading and type(x) is np.ndarray and type(y) is np.ndarray
    if in_memory and not x.any() and not y.any():
        return np.zeros(A.shape[0]), np.zeros(A.shape[1])
    return A.both(x, y)


def _rounding_scale(A: Coupling, y: Array, size: float, enough: float) -> float:
    """The rounding scale of A y, where |y| is ``size``; a rough one if it makes the error of A y at most ``enough``."""
    rough = A.rough_scale(size) if enough > 0.0 else math.inf
    return rough if gamma(A.sum_length, eps_of(y)) * rough <= enough else A.rounding_scale(y)


def _rounding(f: Smooth, x: Array, blocks: int, compensated: bool = False) -> tuple[Array, ...]:
    """The bounds on the errors of the entries of the gradient at x, if the function has some and no rough one is first.

    A compensated gradient comes with its own bounds, which take the place of these.
    """
    if f.rounding is None or (f.compensated is not None if compensated else _rough_rounding(f, x, blocks) is not None):
        return ()
    return (f.rounding(x),)


def _rough_rounding(f: Smooth, x: Array, blocks: int) -> Rough | None:
    """The rough bound on the size of these bounds, where there is one for a point like x."""
    if blocks != 1 or f.domain or not isinstance(f.rounding, ProvenBounds) or not isinstance(x, np.ndarray):
        return None
    return f.rounding.rough if x.dtype is FLOAT64 else None


def _compensated_sum(f: Smooth, x: Array, p: Array, product: Sum, slope: Array | None, sign: float = 1.0) -> Sum:
    """The gradient at x, which is p as computed, plus or minus a product, plus a slope, in about twice the digits."""
    total = Accumulator(0.0 * product.hi)
    total.add_sum(Sum(sign * product.hi, sign * product.lo, product.error))
    if f.compensated is None:
        total.add(p)
    else:
        total.add_sum(Sum(*f.compensated(x)))
    if slope is not None:
        total.add(slope)
    return total.total()
