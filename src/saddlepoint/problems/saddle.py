"""The problem min_x max_y g(x) + <x, A y> - h(y), its field, and what one query proves about a point."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from copy import copy
from functools import cached_property
from typing import Any

import numpy as np

from saddlepoint.ground.arrays import Array, Space, common_space
from saddlepoint.ground.compensated import UP
from saddlepoint.ground.errors import ProblemError
from saddlepoint.ground.linalg import lengths, norm
from saddlepoint.ground.recording import is_recording
from saddlepoint.ground.validation import as_number
from saddlepoint.parts.coupling import Coupling, as_coupling
from saddlepoint.parts.coupling.side_by_side import side_by_side
from saddlepoint.parts.functions import Entropy, GroupHuber, LogSumExp, Quadratic, Risk
from saddlepoint.parts.functions.autodiff import without_gradients
from saddlepoint.parts.functions.block_sum import block_sum
from saddlepoint.parts.functions.constants import estimate_smoothness
from saddlepoint.parts.functions.second_order import steepness
from saddlepoint.parts.functions.smooth import Smooth
from saddlepoint.parts.functions.source_data import refuse_changed_coupling, refuse_changed_data
from saddlepoint.parts.functions.zero import Zero
from saddlepoint.parts.simple.base import Simple
from saddlepoint.parts.simple.from_operator import HasProx
from saddlepoint.problems.assumed import assumed_of_arithmetic, unexamined_claims
from saddlepoint.problems.guarded import guarded
from saddlepoint.problems.one_sided import OneSided, one_sided
from saddlepoint.problems.residuals import Lengths, Query, Residuals
from saddlepoint.problems.terms import Term
from saddlepoint.theory.certificate import Certificate, certificate_from_residuals, distance_bound, rounding_decides

READY = (Entropy, GroupHuber, LogSumExp, Quadratic, Risk)  # classes whose data are detached from PyTorch's records


class Saddle(Residuals):
    """The saddle problem min_x max_y g(x) + <x, A y> - h(y).

    Args:
        g: a ``Smooth`` function of x, mu_x-strongly convex and L_x-smooth; perhaps plus a ``Simple`` one, as in
            ``Quadratic(1.0) + L1(0.1)``; or a ``Simple`` one alone, which has mu_x = 0.
        h: the same of y.
        A: the m x n coupling: an array, a SciPy sparse array, a LinearOperator, or anything with ``@`` and ``.T``.

    With lists h = [h_1, h_2, ...] and A = [A_1, A_2, ...] it is min_x g(x) + sum_i max_{y_i} <x, A_i y_i> - h_i(y_i); y
    is the vector of all y_i, which ``split_y`` takes apart.

    Example:
        >>> import numpy as np, saddlepoint as sp
        >>> f = sp.Saddle(sp.Quadratic(1.0), sp.Quadratic(2.0, [1.0, 0.0]), np.eye(2))
        >>> f.certificate(np.zeros(2), np.zeros(2))
        Certificate(|x-x*| + |y-y*| <= 0.866, duality gap <= 0.25)
    """

    noise = (0.0, 0.0)  # bounds on the errors of gradients of g and h beyond rounding; in a batch, for any block
    columns: tuple[int, ...] | None = None  # of each A_i, if there are several

    def __init__(
        self,
        g: Smooth | Simple | HasProx,
        h: Smooth | Simple | HasProx | Sequence[Smooth | Simple | HasProx],
        A: Any,
    ) -> None:
        if isinstance(h, list | tuple):
            h, A, self.columns = _joined(h, A)
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
        for name in ("assumes", "one_sided"):
            self.__dict__.pop(name, None)  # of other parts, where this is a copy
        self.known_sigma: tuple[Coupling, float] | None = self.__dict__.get("known_sigma")
        self.mu_x, self.L_x, self.mu_y, self.L_y = g.mu, g.L, h.mu, h.L

    def _admitted(self, f: Smooth, name: str, size: int, space: Space) -> Smooth:
        if f.dim is not None and f.dim != size:
            side = "rows" if name == "g" else "columns"
            raise ProblemError(f"{name} has {f.dim} variables but A has {size} {side}; they must agree")
        if is_recording():
            return f
        if f.mu < 0.0:
            raise ProblemError(
                f"{name} is not strongly convex (mu = {f.mu:.3g}); give its mu if it has one, or add a multiple of "
                f"|.|^2, for example {name} + Quadratic(1e-3)"
            )
        if space.is_torch and not isinstance(f, READY):
            plain = f.before_term
            f = without_gradients(f)
            f.before_term = plain if isinstance(plain, READY) else None
        if f.domain:
            f = guarded(f, name)
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
            gap: the same for the duality gap, which is compared where this is given or a mu is 0.
        """
        tol = None if tol is None else as_number(tol, "tol")
        gap = None if gap is None else as_number(gap, "gap")
        self.refuse_changes()
        return self.proven(self.query(x, y), tol, gap)

    def refuse_changes(self) -> None:
        """Raise a ProblemError if data of g, of h or of A were written into after constants were computed from them."""
        refuse_changed_data(self.g, self.h)
        refuse_changed_coupling(self.A)

    def query(self, x: Array, y: Array) -> Query:
        """The gradients and products at (x, y), with what the simple terms add to the certificate."""
        return self.with_terms(self.gradients_and_products(x, y))

    def proven(
        self, query: Query, tol: float | None = None, gap: float | None = None, residuals: Lengths | None = None
    ) -> Certificate:
        """The certificate of the point of a query; the other arguments are those of ``certificate``.

        The residuals of the query are computed unless they are given.
        """
        residuals = self.residuals(query) if residuals is None else residuals
        found = self.certificate_from(residuals, query)
        if self._rounding_decides(found, residuals[2:], query, tol, gap):
            compensated = self.compensated_residuals(query)
            again = found if compensated is None else self.certificate_from(compensated, query)
            found = min(found, again, key=lambda proof: (proof.distance, proof.gap))
        return found._replace(assumes=self.assumes)

    def _rounding_decides(
        self, found: Certificate, errors: tuple[Any, Any], query: Query, tol: float | None, gap: float | None
    ) -> bool:
        """Whether the rounding errors of a query decide about the distance, or about the gap if that is asked for."""
        if gap is None and (self.mu != 0.0 or self.one_sided is not None):
            return rounding_decides(found.distance, self.distance_of(*errors), tol)
        return rounding_decides(found.gap, self._gap_of(errors, query), gap)

    def _gap_of(self, errors: tuple[Any, Any], query: Query) -> float:
        """The part of a certified duality gap that bounds on the errors of the residuals make."""
        widths = query.of_x.diameter, query.of_y.diameter
        return certificate_from_residuals(self.mu_x, self.mu_y, 0.0, 0.0, *errors, diameters=widths).gap

    def gap_of_errors(self, query: Query) -> float:
        """The part of the certified duality gap at a query that bounds on errors of the residuals make, at least."""
        compensated = self.compensated_residuals(query)
        found = [self._gap_of(lengths[2:], query) for lengths in (self.residuals(query), compensated) if lengths]
        return min(found)

    @cached_property
    def assumes(self) -> tuple[str, ...]:
        """What certificates of this problem rest on beside arithmetic, in sentences."""
        of_sides = () if self.one_sided is None else self.one_sided.assumes
        return (*unexamined_claims(self.g, self.h, self.A), *assumed_of_arithmetic(self.g, self.h, self.A), *of_sides)

    @cached_property
    def one_sided(self) -> OneSided | None:
        """What proves a distance although one mu is 0; None where nothing does, or where nothing has to."""
        return one_sided(self)

    def certificate_from(self, residuals: Lengths, query: Query) -> Certificate:
        """The certificate that these residuals of a query prove."""
        Fx, Fy, error_x, error_y = residuals
        of_x, of_y, wide = query.of_x, query.of_y, self.space.wide
        if of_x.outside > 0.0:  # the certificate is about a point of the domain, where the field is another one
            error_x += steepness(self.g) * of_x.outside
            error_y += _product_bound(self.A.T, of_x, wide.of_x)
        if of_y.outside > 0.0:
            error_y += steepness(self.h) * of_y.outside
            error_x += _product_bound(self.A, of_y, wide.of_y)
        found = certificate_from_residuals(
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
            excess_at_point=of_x.excess_at_x + of_y.excess_at_x,
        )
        return found if self.one_sided is None else self.one_sided.certificate(found, (error_x, error_y))

    def split_y(self, y: Array) -> list[Array]:
        """The parts y_1, y_2, ... of y, for a problem that was given lists of h and A; else y alone.

        Example:
            >>> import numpy as np, saddlepoint as sp
            >>> h = [sp.Quadratic(1.0), sp.Box(-1.0, 1.0)]
            >>> f = sp.Saddle(sp.Quadratic(1.0, [1.0, 2.0]), h, [np.eye(2), np.ones((2, 1))])
            >>> [part.tolist() for part in f.split_y(np.array([1.0, 2.0, 3.0]))]
            [[1.0, 2.0], [3.0]]
        """
        columns = self.columns or (self.shape[1],)
        ends = np.cumsum(columns).tolist()
        return [y[end - n : end] for n, end in zip(columns, ends, strict=True)]

    def project(self, x: Array, y: Array) -> tuple[Array, Array]:
        """The nearest point in the domains of the simple terms."""
        p, q = self.g.simple, self.h.simple
        return x if p is None else p.project(x), y if q is None else q.project(y)

    def precision(self, x: Array, y: Array) -> float:
        """The distance that rounding errors of a query at (x, y) are likely to make: an estimate, not a bound."""
        return float(np.max(self.distance_of(*self._likely_errors(x, y))))

    def distance_of(self, Fx: Any, Fy: Any) -> Any:
        """|x - x*| + |y - y*| is at most this where the two parts of the field have these lengths; of a batch, each."""
        if self.one_sided is not None:
            return sum(self.one_sided.distances(Fx, Fy))
        return math.inf if self.mu == 0.0 else distance_bound(self.mu_x, self.mu_y, Fx, Fy)

    def gap_precision(self, x: Array, y: Array) -> float:
        """The same for the duality gap: errors of the field times the sizes of x and y."""
        error_x, error_y = self._likely_errors(x, y)
        return float(np.max(error_x)) * norm(x) + float(np.max(error_y)) * norm(y)

    def block_norms(self, vectors: Sequence[Array]) -> Sequence[Any]:
        """The norms of vectors like x or y; of a batch, the norms of the blocks of each."""
        return lengths(vectors)

    def __repr__(self) -> str:
        m, n = self.shape
        return f"Saddle({m} x {n}: g={self.g!r}, h={self.h!r}, A={self.A!r})"


def _joined(h: Sequence[Any], A: Any) -> tuple[Smooth, Coupling, tuple[int, ...]]:
    """The functions as one, the matrices side by side, and the numbers of their columns."""
    if not isinstance(A, list | tuple) or len(A) != len(h):
        count = f"a list of {len(A)}" if isinstance(A, list | tuple) else "no list"
        raise ProblemError(f"h is a list of {len(h)} functions, but A is {count}; expected as many matrices in a list")
    functions = [_as_smooth(function, f"h[{i}]") for i, function in enumerate(h)]
    coupling, columns = side_by_side(A)
    return block_sum(functions, columns), coupling, tuple(columns)


def _product_bound(A: Coupling, term: Term, space: Space) -> float:
    """A bound on |A d|, where d is the difference of a point and of the point of the domain that is near it."""
    n = A.shape[1]
    bound = A.bound_from_sum(min(term.outside_sum, UP * math.sqrt(n) * term.outside))
    return bound if bound < math.inf else A.rounding_scale(space.full(n, term.outside))


def _as_smooth(function: Any, name: str) -> Smooth:
    """The function; a simple one is added to zero."""
    if isinstance(function, Smooth):
        return function
    if isinstance(function, HasProx):
        return Zero() + function
    raise ProblemError(f"{name} is a {type(function).__name__}; expected a Smooth, such as Quadratic")


def with_smoothness(f: Smooth, L: float) -> Smooth:
    """The function f with another L, which is raised to mu if it is smaller."""
    return f.replace(L=L if math.isnan(f.mu) else max(L, f.mu))
