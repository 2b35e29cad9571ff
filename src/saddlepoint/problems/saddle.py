"""The problem min_x max_y g(x) + <x, A y> - h(y), its field, and what one query proves about a point."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from copy import copy
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from saddlepoint.ground.arrays import (
    FLOAT64,
    Array,
    Space,
    common_space,
    detached,
    eps_of,
    is_array,
    is_foreign,
    smallest_of,
)
from saddlepoint.ground.compensated import Accumulator, Sum
from saddlepoint.ground.errors import ProblemError
from saddlepoint.ground.linalg import lengths, norm, squared_together
from saddlepoint.ground.rounding import ELEMENTARY, gamma
from saddlepoint.ground.validation import as_vector
from saddlepoint.parts.coupling import Coupling, as_coupling
from saddlepoint.parts.functions import Entropy, GroupHuber, LogSumExp, Quadratic, Risk
from saddlepoint.parts.functions.accuracy import StatedBounds, error_from_sizes
from saddlepoint.parts.functions.autodiff import without_gradients
from saddlepoint.parts.functions.constants import estimate_smoothness
from saddlepoint.parts.functions.probes import eps_of_code
from saddlepoint.parts.functions.smooth import Smooth
from saddlepoint.parts.functions.zero import Zero
from saddlepoint.parts.simple.base import Simple
from saddlepoint.problems.terms import NO_TERM, Term, term_at
from saddlepoint.theory.certificate import Certificate, certificate_from_residuals, distance_bound, rounding_decides

READY = (Entropy, GroupHuber, LogSumExp, Quadratic, Risk)  # classes of functions that detach their data themselves


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


class Saddle:
    """The saddle problem min_x max_y g(x) + <x, A y> - h(y).

    Args:
        g: a ``Smooth`` function of x, mu_x-strongly convex and L_x-smooth; perhaps plus a ``Simple`` one, as in
            ``Quadratic(1.0) + L1(0.1)``; or a ``Simple`` one alone, which has mu_x = 0.
        h: the same of y.
        A: the m x n coupling: an array, a SciPy sparse array, a LinearOperator, or anything with ``@`` and ``.T``.

    Example:
        >>> import numpy as np, saddlepoint as sp
        >>> f = sp.Saddle(sp.Quadratic(1.0), sp.Quadratic(2.0, [1.0, 0.0]), np.eye(2))
        >>> f.certificate(np.zeros(2), np.zeros(2))
        Certificate(|x-x*| + |y-y*| <= 0.866, duality gap <= 0.25)
    """

    noise = (0.0, 0.0)  # bounds on the errors of gradients of g and h beyond rounding; in a batch, for any block
    blocks = 1  # number of independent problems that this one consists of

    def __init__(self, g: Smooth | Simple, h: Smooth | Simple, A: Any) -> None:
        of_x, of_y, coupling = _as_smooth(g, "g"), _as_smooth(h, "h"), as_coupling(A)
        for function, size in zip((of_x, of_y), coupling.shape, strict=True):
            if function.simple is not None:
                function.simple.validate(size)
        if of_x.dim in (None, coupling.shape[0]):
            of_x = coupling.of_x(of_x)  # over shards, if A is
        space = common_space({"A": coupling, "g": of_x, "h": of_y})
        assert space is not None
        self.estimated: dict[str, int] = {}  # functions whose L was estimated, and the gradients that this took
        of_x = self._admitted(of_x, "g", coupling.shape[0], space)
        of_y = self._admitted(of_y, "h", coupling.shape[1], space)
        self._set(of_x, of_y, coupling, space)

    @classmethod
    def of(cls, g: Smooth, h: Smooth, A: Coupling, space: Space) -> Saddle:
        """The problem of these parts, which are not checked again; transforms use it."""
        self = cls.__new__(cls)
        self.estimated = {}
        self._set(g, h, A, space)
        return self

    def _set(self, g: Smooth, h: Smooth, A: Coupling, space: Space) -> None:
        self.g, self.h, self.A, self.space = g, h, A, space
        self.__dict__.pop("assumes", None)  # of other parts, where this is a copy
        self.mu_x, self.L_x, self.mu_y, self.L_y = g.mu, g.L, h.mu, h.L

    def _admitted(self, f: Smooth, name: str, size: int, space: Space) -> Smooth:
        if f.dim is not None and f.dim != size:
            side = "rows" if name == "g" else "columns"
            raise ProblemError(f"{name} has {f.dim} variables but A has {size} {side}; they must agree")
        if f.mu < 0.0:
            raise ProblemError(
                f"{name} is not strongly convex (mu = {f.mu:.3g}); give its mu if it has one, or add a multiple of "
                f"|.|^2, for example {name} + Quadratic(1e-3)"
            )
        if space.is_torch and not isinstance(f, READY):
            f = without_gradients(f)
        if f.domain:
            f = _guarded(f, name)
        if not math.isnan(f.L):
            return f
        with np.errstate(all="ignore"):
            L, calls = estimate_smoothness(f.grad, size, space.of_x if name == "g" else space.of_y, name=name)
        self.estimated[name] = calls
        return with_smoothness(f, L)

    def replace(self, *, g: Smooth | None = None, h: Smooth | None = None, A: Coupling | None = None) -> Saddle:
        """A copy with another g, h or A, and everything else kept; the new parts are not checked."""
        other = copy(self)
        other._set(g or self.g, h or self.h, self.A if A is None else A, self.space)
        return other

    # -- constants ---------------------------------------------------------------------------------------------------

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of variables of x and of y."""
        return self.A.shape

    @property
    def dtype(self) -> Any:
        """The dtype of x and y."""
        return self.space.dtype

    @property
    def clock(self) -> Callable[[], float]:
        """The clock that measures the time of a run on the problem."""
        return self.A.runtime.clock

    @property
    def norm(self) -> float:
        """The upper bound or estimate of |A| (see ``A.norm_estimate``)."""
        return self.A.norm

    @property
    def L(self) -> float:
        """The larger smoothness constant, max(L_x, L_y)."""
        return max(self.L_x, self.L_y)

    @property
    def mu(self) -> float:
        """The smaller strong convexity constant, min(mu_x, mu_y)."""
        return min(self.mu_x, self.mu_y)

    @property
    def kappa_x(self) -> float:
        """The condition number L_x/mu_x of g."""
        return math.inf if self.mu_x == 0.0 else self.L_x / self.mu_x

    @property
    def kappa_y(self) -> float:
        """The condition number L_y/mu_y of h."""
        return math.inf if self.mu_y == 0.0 else self.L_y / self.mu_y

    @property
    def coupling(self) -> float:
        """The coupling condition number |A|/sqrt(mu_x mu_y)."""
        if self.mu == 0.0:
            return math.inf
        return self.norm / math.sqrt(self.mu_x) / math.sqrt(self.mu_y)

    @property
    def numbers(self) -> tuple[float, float, float]:
        """The numbers (kappa_x, kappa_y, |A|/sqrt(mu_x mu_y)) on which the rate of a method depends."""
        return self.kappa_x, self.kappa_y, self.coupling

    # -- queries -----------------------------------------------------------------------------------------------------

    def field(self, x: Array, y: Array) -> tuple[Array, Array]:
        """The field (grad g(x) + A y, grad h(y) - A' x), which is zero at the saddle point only."""
        Ay, Atx = self.A.both(x, y)
        return self.g.grad(x) + Ay, self.h.grad(y) - Atx

    def certificate(self, x: Array, y: Array, tol: float | None = None, gap: float | None = None) -> Certificate:
        """Bounds that one query at (x, y) in float64 proves; infinite if mu is unknown or the field is not finite.

        The rounding errors of the query are part of the bounds. Where they decide, its products are computed again in
        about twice the digits.

        Args:
            x, y: the point.
            tol: what the distance is compared with: rounding decides if the distance could be above or below it.
                Without it, rounding decides if it is more than half of the distance.
            gap: the same for the duality gap, which is looked at where it is given or a mu is 0.
        """
        query = self._with_terms(self._query(x, y))
        residuals = self._residuals(query)
        found = self._certificate(residuals, query)
        if self._rounding_decides(found, residuals[2:], query, tol, gap):
            careful = self._careful_residuals(query)
            again = found if careful is None else self._certificate(careful, query)
            found = min(found, again, key=lambda proof: (proof.distance, proof.gap))
        return found._replace(assumes=self.assumes)

    def _rounding_decides(
        self, found: Certificate, errors: tuple[Any, Any], query: Query, tol: float | None, gap: float | None
    ) -> bool:
        """Whether the rounding errors of a query decide about the distance, or about the gap if that is asked for."""
        if gap is None and self.mu != 0.0:
            return rounding_decides(found.distance, distance_bound(self.mu_x, self.mu_y, *errors), tol)
        widths = query.of_x.diameter, query.of_y.diameter
        due = certificate_from_residuals(self.mu_x, self.mu_y, 0.0, 0.0, *errors, diameters=widths).gap
        return rounding_decides(found.gap, due, gap)

    @cached_property
    def assumes(self) -> tuple[str, ...]:
        """What certificates of this problem rest on beside arithmetic, in sentences."""
        claims = [f"{given_mu(name, f)}." for name, f in (("g", self.g), ("h", self.h)) if not f.trusted]
        return (*claims, *assumed_of_arithmetic(self.g, self.h, self.A))

    def _certificate(self, residuals: tuple[Any, Any, Any, Any], query: Query) -> Certificate:
        Fx, Fy, error_x, error_y = residuals
        of_x, of_y, (L_x, L_y), wide = query.of_x, query.of_y, self._smoothness, self.space.wide
        if of_x.outside > 0.0:  # the certificate is about a point of the domain, where the field is another one
            error_x += L_x * of_x.outside
            error_y += self.A.T.rounding_scale(wide.of_x.zeros(self.shape[0]) + of_x.outside)
        if of_y.outside > 0.0:
            error_y += L_y * of_y.outside
            error_x += self.A.rounding_scale(wide.of_y.zeros(self.shape[1]) + of_y.outside)
        return certificate_from_residuals(
            self.mu_x,
            self.mu_y,
            Fx,
            Fy,
            error_x + of_x.error,
            error_y + of_y.error,
            *self.noise,
            excess=of_x.excess + of_y.excess,
            diameters=(of_x.diameter, of_y.diameter),
            outside=(of_x.outside, of_y.outside),
        )

    def _with_terms(self, query: Query) -> Query:
        """The query with what the simple terms add to the certificate."""
        if not self.has_simple:
            return query
        with np.errstate(all="ignore"), self.space.exact_products():
            return query._replace(
                of_x=term_at(self.g, query.x, query.gx + query.Ay), of_y=term_at(self.h, query.y, query.hy - query.Atx)
            )

    @property
    def has_simple(self) -> bool:
        """Whether g or h has a simple term, such as a constraint."""
        return self.g.simple is not None or self.h.simple is not None

    def project(self, x: Array, y: Array) -> tuple[Array, Array]:
        """The nearest point in the domains of the simple terms."""
        p, q = self.g.simple, self.h.simple
        return x if p is None else p.project(x), y if q is None else q.project(y)

    def _query(self, x: Array, y: Array) -> Query:
        """The gradients and products at (x, y), in float64 where the functions allow it."""
        wide = self.space.wide
        x, y = self._point(x, "x", self.shape[0]), self._point(y, "y", self.shape[1])
        x64, y64 = wide.of_x.cast(x), wide.of_y.cast(y)
        with np.errstate(all="ignore"), self.space.exact_products():
            Ay, Atx = self.A.both(x64, y64)
            at_x, at_y = self._argument(self.g, x, x64), self._argument(self.h, y, y64)
            at_x, at_y = self.g.inside(at_x), self.h.inside(at_y)
            return Query(x64, y64, at_x, at_y, self.g.grad(at_x), self.h.grad(at_y), Ay, Atx)

    def _residuals(self, query: Query) -> tuple[Any, Any, Any, Any]:
        """The norms |Fx| and |Fy| at (x, y), and bounds on their rounding errors; of a batch, those of each block."""
        x, y, at_x, at_y, gx, hy, Ay, Atx, *_ = query
        with np.errstate(all="ignore"), self.space.exact_products():
            Rx, Ry = gx + Ay, hy - Atx
            twice_x = twice_y = 0.0  # errors of a sum of three vectors, which is rounded twice
            if query.of_x.slope is not None:
                Rx, twice_x = Rx + query.of_x.slope, 2.0 * eps_of(Rx) * norm(Rx)
            if query.of_y.slope is not None:
                Ry, twice_y = Ry + query.of_y.slope, 2.0 * eps_of(Ry) * norm(Ry)
            of_x, of_y = (Rx, gx, x, *_rounding(self.g, at_x)), (Ry, hy, y, *_rounding(self.h, at_y))
            (Fx, *sizes_x, scale_x), (Fy, *sizes_y, scale_y) = self._lengths(of_x, of_y)
            error_x, error_y = self._gradient_errors(query, sizes_x, sizes_y)
            eps_x, eps_y = max(eps_of(gx), eps_of(Ay)), max(eps_of(hy), eps_of(Atx))
            error_x = error_x + gamma(self.A.sum_length, eps_of(Ay)) * scale_x + self._norm_error(0, eps_x) * Fx
            error_y = error_y + gamma(self.A.T.sum_length, eps_of(Atx)) * scale_y + self._norm_error(1, eps_y) * Fy
            error_x, error_y = error_x + twice_x, error_y + twice_y
            return Fx, Fy, *self._with_underflow(query, error_x, error_y, sizes_x, sizes_y)

    def _careful_residuals(self, query: Query) -> tuple[Any, Any, Any, Any] | None:
        """The same with products in about twice the digits; None if A has none."""
        x, y, at_x, at_y, gx, hy, *_ = query
        with np.errstate(all="ignore"), self.space.exact_products():
            Ay, Atx = self.A.careful_mul(y), self.A.T.careful_mul(x)
            if Ay is None or Atx is None:
                return None
            Rx = _careful_sum(self.g, at_x, gx, Ay, query.of_x.slope)
            Ry = _careful_sum(self.h, at_y, hy, Atx, query.of_y.slope, -1.0)
            of_x = Rx.hi, gx, x, *_rounding(self.g, at_x), Rx.error
            of_y = Ry.hi, hy, y, *_rounding(self.h, at_y), Ry.error
            (Fx, *sizes_x, more_x, _), (Fy, *sizes_y, more_y, _) = self._lengths(of_x, of_y)
            error_x, error_y = self._gradient_errors(query, sizes_x, sizes_y, careful=True)
            error_x = error_x + more_x + self._norm_error(0, eps_of(Rx.hi)) * Fx
            error_y = error_y + more_y + self._norm_error(1, eps_of(Ry.hi)) * Fy
            return Fx, Fy, *self._with_underflow(query, error_x, error_y, sizes_x, sizes_y)

    def precision(self, x: Array, y: Array) -> float:
        """The distance that rounding errors of a query at (x, y) are likely to make: an estimate, not a bound."""
        errors = self._likely_errors(x, y)
        return math.inf if self.mu == 0.0 else float(np.max(distance_bound(self.mu_x, self.mu_y, *errors)))

    def gap_precision(self, x: Array, y: Array) -> float:
        """The same for the duality gap: errors of the field times the sizes of x and y."""
        error_x, error_y = self._likely_errors(x, y)
        return float(np.max(error_x)) * norm(x) + float(np.max(error_y)) * norm(y)

    def _likely_errors(self, x: Array, y: Array) -> tuple[Any, Any]:
        """About the rounding errors of the two parts of the field at (x, y)."""
        query = self._query(x, y)
        with np.errstate(all="ignore"):
            of_x, of_y = (query.Ay, query.gx, query.x), (query.Atx, query.hy, query.y)
            (*sizes_x, at_x, scale_x), (*sizes_y, at_y, scale_y) = self._lengths(of_x, of_y)
            L_x, L_y = self._smoothness
            scale_x, scale_y = (s / math.sqrt(A.sum_length) for s, A in ((scale_x, self.A), (scale_y, self.A.T)))
            error_x = 2.0 * max(map(eps_of, of_x)) * (sum(sizes_x) + L_x * at_x + scale_x)
            error_y = 2.0 * max(map(eps_of, of_y)) * (sum(sizes_y) + L_y * at_y + scale_y)
        return error_x, error_y

    def _gradient_errors(
        self, query: Query, sizes_x: list[Any], sizes_y: list[Any], careful: bool = False
    ) -> tuple[Any, Any]:
        """Bounds on the errors of the two gradients, from the sizes of gradient, point and bounds on the entries."""
        errors = []
        for f, L, at, p, (size, length, *entries) in (
            (self.g, self._smoothness[0], query.at_x, query.gx, sizes_x),
            (self.h, self._smoothness[1], query.at_y, query.hy, sizes_y),
        ):
            known = careful and f.careful is not None
            rounding = entries[0] if entries and not known else 0.0 * size
            eps = max(eps_of(at), eps_of_code(f.grad, at, p) if math.isnan(f.accuracy) else eps_of(p))
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

    def _lengths(self, of_x: tuple[Array, ...], of_y: tuple[Array, ...]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """The norms of some vectors, the third being x and y, followed by the rounding scales of A y and of A' x."""
        squared_together(*of_x)
        sizes = lengths([*of_x, *of_y]) if self.space.sides is None else [*lengths(of_x), *lengths(of_y)]
        sizes_x, sizes_y = sizes[: len(of_x)], sizes[len(of_x) :]
        return (*sizes_x, self.A.rounding_scale(of_y[2])), (*sizes_y, self.A.T.rounding_scale(of_x[2]))

    @property
    def _smoothness(self) -> tuple[Any, Any]:
        """The constants L of g and of h; of a batch, those of each block."""
        return self.L_x, self.L_y

    def block_norms(self, vectors: Sequence[Array]) -> Sequence[Any]:
        """The norms of vectors like x or y; of a batch, the norms of the blocks of each."""
        return lengths(vectors)

    def _point(self, point: Any, name: str, size: int) -> Array:
        """The point as a vector of this size; a ProblemError if it cannot be one."""
        if type(point) is np.ndarray and point.dtype is FLOAT64 and point.shape == (size,):
            return point
        fits = is_array(point) and point.shape == (size,) and (is_foreign(point) or point.dtype.kind == "f")
        vector: Array = detached(point) if fits else as_vector(point, name, size)
        return vector

    def _argument(self, function: Smooth, x: Array, x64: Array) -> Array:
        """The point in float64; in the problem's dtype for functions of other libraries, which may need that."""
        return x64 if self.space.is_numpy or function.space is not None else self.space.cast(x)

    def __repr__(self) -> str:
        m, n = self.shape
        return f"Saddle({m} x {n}: g={self.g!r}, h={self.h!r}, A={self.A!r})"


def _guarded(f: Smooth, name: str) -> Smooth:
    """The function whose gradient and value raise an exception outside the domain of the simple term."""
    if f.simple is None:
        raise ProblemError(
            f"{name} has domain=True, which says that its gradient is defined in the domain of its simple term alone, "
            f"but it has no simple term; add one, such as {name} + Box(0, 1)"
        )
    if math.isnan(f.L):
        raise ProblemError(f"L of {name} is unknown, and cannot be estimated with domain=True; expected L")
    value = None if f.value is None else Guarded(f.value, f.simple)
    return f.replace(grad=Guarded(f.grad, f.simple), value=value, trusted=f.trusted, **f.arithmetic)


class Guarded:
    """A function that is called in the domain of a simple term alone."""

    def __init__(self, function: Callable[[Array], Any], term: Simple) -> None:
        self.function, self.term = function, term

    def __call__(self, x: Array) -> Any:
        """The answer of the function; ArithmeticError outside the domain."""
        if not self.term._is_inside(x):
            raise ArithmeticError("the point is outside the domain, where the function is not defined")
        return self.function(x if self.term.outside(x) == 0.0 else self.term.project(x))  # without rounding errors


def _as_smooth(function: Any, name: str) -> Smooth:
    """The function; a simple one is added to zero."""
    if isinstance(function, Simple):
        return Zero() + function
    if not isinstance(function, Smooth):
        raise ProblemError(f"{name} is a {type(function).__name__}; expected a Smooth, such as Quadratic")
    return function


def require_strongly_convex(f: Saddle) -> None:
    """Raise a ProblemError if mu of g or of h is 0, so that no distance to the saddle point can be proven."""
    for name, function in (("g", f.g), ("h", f.h)):
        if function.mu == 0.0:
            raise ProblemError(
                f"{name} is not strongly convex (mu = 0), so that no distance to the solution can be proven; give its "
                f"mu if it has one, add a multiple of |.|^2, for example {name} + Quadratic(1e-3), or ask for the "
                "duality gap with gap=1e-6"
            )


def require_bounded(f: Saddle) -> None:
    """Raise a ProblemError if mu of g or of h is 0 and its domain unbounded, so that no duality gap can be proven."""
    for name, function, size in (("g", f.g, f.shape[0]), ("h", f.h, f.shape[1])):
        width = math.inf if function.simple is None else function.simple.diameter_in(size)
        if function.mu == 0.0 and not width < math.inf:
            raise ProblemError(
                f"{name} is not strongly convex (mu = 0) and its variables are not bounded, so that no duality gap can "
                f"be proven; bound them, for example {name} + Box(-1e3, 1e3), or add a multiple of |.|^2, for example "
                f"{name} + Quadratic(1e-3)"
            )


def with_smoothness(f: Smooth, L: float) -> Smooth:
    """The function f with another L, which is raised to mu if it is smaller."""
    return f.replace(L=L if math.isnan(f.mu) else max(L, f.mu))


def _rounding(f: Smooth, x: Array) -> tuple[Array, ...]:
    """The bounds on the errors of the entries of the gradient at x, if the function has some."""
    return () if f.rounding is None else (f.rounding(x),)


def _careful_sum(f: Smooth, x: Array, p: Array, product: Sum, slope: Array | None, sign: float = 1.0) -> Sum:
    """The gradient at x, which is p as computed, plus or minus a product, plus a slope, in about twice the digits."""
    total = Accumulator(0.0 * product.hi)
    total.add_sum(Sum(sign * product.hi, sign * product.lo, product.error))
    if f.careful is None:
        total.add(p)
    else:
        total.add_sum(Sum(*f.careful(x)))
    if slope is not None:
        total.add(slope)
    return total.total()


def given_mu(name: str, f: Smooth) -> str:
    """The beginning of a sentence about the mu of a function whose constants are claims of the caller."""
    return f"The strong convexity mu of {name} is {'unknown' if math.isnan(f.mu) else f'{f.mu:.6g}, as given'}"


def assumed_of_arithmetic(g: Smooth, h: Smooth, A: Coupling) -> tuple[str, ...]:
    """What certificates assume about how gradients and products are computed, in sentences."""
    found = []
    for name, f in (("g", g), ("h", h)):
        if math.isnan(f.accuracy):
            found.append(
                f"The gradient of {name} is computed to within two units of rounding of its length plus L times the "
                "length of the point, apart from the noise that is found in it."
            )
        elif f.accuracy > 0.0 or isinstance(f.rounding, StatedBounds):
            found.append(f"The gradient of {name} is as accurate as was stated.")
        elif f.trusted and not f.quadratic:
            found.append(
                f"The functions exp, log and tanh in the gradient of {name} err by at most {ELEMENTARY:g} eps."
            )
    for name, f in (("g", g), ("h", h)):
        if f.simple is not None and not f.simple.structured:
            found.append(f"The simple term of {name} is convex, and its prox and its value are as given.")
        if f.simple is not None and not f.trusted:
            found.append(
                f"The smoothness L of {name} is {f.L:.6g}, by which its support and rounding to its domain are counted."
            )
    if not A.has_entries:
        found.append(
            "Products with A and with its transpose are right to two units of rounding of |A| |y|, apart from the "
            "errors that are found in them."
        )
    return tuple(found)
