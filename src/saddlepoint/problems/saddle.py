"""The problem min_x max_y g(x) + <x, A y> - h(y), its field, and what one query proves about a point."""

from __future__ import annotations

import math
from collections.abc import Callable
from copy import copy
from typing import Any, NamedTuple

import numpy as np

from saddlepoint.ground.arrays import Array, Space, common_space, eps_of, is_array, is_foreign, smallest_of
from saddlepoint.ground.errors import ProblemError
from saddlepoint.ground.linalg import norm, squared_together
from saddlepoint.ground.validation import as_vector
from saddlepoint.parts.coupling import Coupling, as_coupling
from saddlepoint.parts.functions.constants import estimate_smoothness
from saddlepoint.parts.functions.smooth import Smooth
from saddlepoint.theory.certificate import distance_bound, gap_bound


class Certificate(NamedTuple):
    """A proof about one point, from one query there in float64.

    ``distance`` bounds |x - x*| + |y - y*| and ``gap`` bounds the duality gap; both include ``rounding``, the part of
    the distance that allows for the error of evaluating the field itself.
    """

    distance: float
    gap: float
    rounding: float
    Fx: float  # |grad g(x) + A y|
    Fy: float  # |grad h(y) - A' x|

    @property
    def residual(self) -> float:
        """|F|, the length of the field."""
        return math.hypot(self.Fx, self.Fy)

    def __repr__(self) -> str:
        return f"Certificate(|x-x*| + |y-y*| <= {self.distance:.3g}, duality gap <= {self.gap:.3g})"


class Saddle:
    """min_x max_y g(x) + <x, A y> - h(y).

    Args:
        g: a ``Smooth`` function of x, mu_x-strongly convex and L_x-smooth.
        h: a ``Smooth`` function of y, mu_y-strongly convex and L_y-smooth.
        A: the m x n coupling: an array, a SciPy sparse array, a LinearOperator, or anything with ``@`` and ``.T``.

    Example:
        >>> import numpy as np, saddlepoint as sp
        >>> f = sp.Saddle(sp.Quadratic(1.0), sp.Quadratic(2.0, [1.0, 0.0]), np.eye(2))
        >>> f.certificate(np.zeros(2), np.zeros(2))
        Certificate(|x-x*| + |y-y*| <= 0.866, duality gap <= 0.25)
    """

    noise = (0.0, 0.0)  # by how much the gradients of g and h may be wrong beyond rounding

    def __init__(self, g: Smooth, h: Smooth, A: Any) -> None:
        for name, function in (("g", g), ("h", h)):
            if not isinstance(function, Smooth):
                raise ProblemError(f"{name} is a {type(function).__name__}; expected a Smooth, such as Quadratic")
        coupling = as_coupling(A)
        if g.dim in (None, coupling.shape[0]):
            g = coupling.of_x(g)
        space = common_space({"A": coupling, "g": g, "h": h})
        assert space is not None
        self.estimated: dict[str, int] = {}  # the functions whose L was not given, and the gradients its estimate took
        g = self._admitted(g, "g", coupling.shape[0], space)
        h = self._admitted(h, "h", coupling.shape[1], space)
        self._set(g, h, coupling, space)

    @classmethod
    def of(cls, g: Smooth, h: Smooth, A: Coupling, space: Space) -> Saddle:
        """The problem of parts that were checked already: what a transform returns."""
        self = cls.__new__(cls)
        self.estimated = {}
        self._set(g, h, A, space)
        return self

    def _set(self, g: Smooth, h: Smooth, A: Coupling, space: Space) -> None:
        self.g, self.h, self.A, self.space = g, h, A, space
        self.mu_x, self.L_x, self.mu_y, self.L_y = g.mu, g.L, h.mu, h.L

    def _admitted(self, f: Smooth, name: str, size: int, space: Space) -> Smooth:
        if f.dim is not None and f.dim != size:
            side = "rows" if name == "g" else "columns"
            raise ProblemError(f"{name} has {f.dim} variables but A has {size} {side}; they must agree")
        if f.mu == 0.0:
            raise ProblemError(
                f"{name} is not strongly convex (mu = 0); give its mu if it has one, or add a multiple of |.|^2, "
                f"for example {name} + Quadratic(1e-3)"
            )
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
        """Of x and y."""
        return self.space.dtype

    @property
    def clock(self) -> Callable[[], float]:
        """The clock by which a run on the problem decides."""
        return self.A.runtime.clock

    @property
    def norm(self) -> float:
        """|A|, or rather an upper bound (see ``A.norm_estimate``)."""
        return self.A.norm

    @property
    def L(self) -> float:
        """max(L_x, L_y)."""
        return max(self.L_x, self.L_y)

    @property
    def mu(self) -> float:
        """min(mu_x, mu_y)."""
        return min(self.mu_x, self.mu_y)

    @property
    def kappa_x(self) -> float:
        """L_x/mu_x."""
        return self.L_x / self.mu_x

    @property
    def kappa_y(self) -> float:
        """L_y/mu_y."""
        return self.L_y / self.mu_y

    @property
    def coupling(self) -> float:
        """|A|/sqrt(mu_x mu_y), the coupling condition number."""
        return self.norm / math.sqrt(self.mu_x) / math.sqrt(self.mu_y)

    @property
    def numbers(self) -> tuple[float, float, float]:
        """(kappa_x, kappa_y, |A|/sqrt(mu_x mu_y)): all that the rate of a method depends on."""
        return self.kappa_x, self.kappa_y, self.coupling

    # -- queries -----------------------------------------------------------------------------------------------------

    def field(self, x: Array, y: Array) -> tuple[Array, Array]:
        """(grad g(x) + A y, grad h(y) - A' x): zero at the saddle point and nowhere else."""
        Ay, Atx = self.A.both(x, y)
        return self.g.grad(x) + Ay, self.h.grad(y) - Atx

    def certificate(self, x: Array, y: Array) -> Certificate:
        """What one query at (x, y), made in float64, proves; infinite if mu is unknown or the field is not finite."""
        wide = self.space.wide
        x, y = self._point(x, "x", self.shape[0]), self._point(y, "y", self.shape[1])
        x64, y64 = wide.of_x.cast(x), wide.of_y.cast(y)
        with np.errstate(all="ignore"), self.space.exact_products():
            Ay, Atx = self.A.both(x64, y64)
            gx, hy = (self._gradient(*of) for of in ((self.g, x, x64), (self.h, y, y64)))
            residual = gx + Ay
            squared_together(residual, gx, Ay, x64)
            Fx, Fy = norm(residual), norm(hy - Atx)
            at = norm(x64), norm(y64)
            size_x = norm(gx) + norm(Ay) + self.L_x * at[0] + self.A.rounding_scale(y64)
            size_y = norm(hy) + norm(Atx) + self.L_y * at[1] + self.A.T.rounding_scale(x64)
        # What underflows is lost whatever its size: the smallest number for each term.
        lost = max(map(smallest_of, (gx, hy, Ay, Atx))) * sum(self.shape) ** 1.5 if any((*at, size_x, size_y)) else 0.0
        slack_x = _unit(gx, Ay) * size_x + lost + self.noise[0]
        slack_y = _unit(hy, Atx) * size_y + lost + self.noise[1]
        if not math.isfinite(Fx + Fy + slack_x + slack_y + self.mu_x + self.mu_y):
            return Certificate(math.inf, math.inf, math.inf, Fx, Fy)
        return Certificate(
            _up(distance_bound(self.mu_x, self.mu_y, Fx + slack_x, Fy + slack_y), Fx + Fy),
            _up(gap_bound(self.mu_x, self.mu_y, Fx + slack_x, Fy + slack_y), Fx + Fy),
            distance_bound(self.mu_x, self.mu_y, slack_x, slack_y),
            Fx,
            Fy,
        )

    def _point(self, point: Any, name: str, size: int) -> Array:
        """The point itself, which nearly always is a vector of this size; whatever else is given, checked."""
        fits = is_array(point) and point.shape == (size,) and (is_foreign(point) or point.dtype.kind == "f")
        vector: Array = point if fits else as_vector(point, name, size)
        return vector

    def _gradient(self, function: Smooth, x: Array, x64: Array) -> Array:
        """In float64, or in the problem's own dtype where a black box of another library may take no other."""
        return function.grad(x64 if self.space.is_numpy or function.space is not None else self.space.cast(x))

    def __repr__(self) -> str:
        m, n = self.shape
        return f"Saddle({m} x {n}: g={self.g!r}, h={self.h!r}, A={self.A!r})"


def with_smoothness(f: Smooth, L: float) -> Smooth:
    """f with another L, which is no less than mu."""
    return f.replace(L=L if math.isnan(f.mu) else max(L, f.mu))


def _unit(*arrays: Array) -> float:
    """Two units of rounding of the narrowest array: an oracle that answers in float32 is trusted no further."""
    return 2.0 * max(map(eps_of, arrays))


def _up(bound: float, positive: float) -> float:
    """The bound; but of something positive, the smallest number at least."""
    return max(bound, math.ulp(0.0)) if positive > 0.0 else bound
