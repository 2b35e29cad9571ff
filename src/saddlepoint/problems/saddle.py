"""The problem min_x max_y g(x) + <x, A y> - h(y), its field, and what one query proves about a point."""

from __future__ import annotations

import math
from collections.abc import Callable
from copy import copy
from typing import Any

import numpy as np

from saddlepoint.ground.arrays import Array, Space, common_space, detached, eps_of, is_array, is_foreign, smallest_of
from saddlepoint.ground.errors import ProblemError
from saddlepoint.ground.linalg import norm, squared_together
from saddlepoint.ground.validation import as_vector
from saddlepoint.parts.coupling import Coupling, as_coupling
from saddlepoint.parts.functions import Entropy, GroupHuber, LogSumExp, Quadratic, Risk
from saddlepoint.parts.functions.autodiff import without_gradients
from saddlepoint.parts.functions.constants import estimate_smoothness
from saddlepoint.parts.functions.smooth import Smooth
from saddlepoint.theory.certificate import Certificate, certificate_from_residuals

READY = (Entropy, GroupHuber, LogSumExp, Quadratic, Risk)  # classes of functions that detach their data themselves


class Saddle:
    """The saddle problem min_x max_y g(x) + <x, A y> - h(y).

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

    noise = (0.0, 0.0)  # bounds on the errors of gradients of g and h beyond rounding; in a batch, for any block
    blocks = 1  # number of independent problems that this one consists of

    def __init__(self, g: Smooth, h: Smooth, A: Any) -> None:
        for name, function in (("g", g), ("h", h)):
            if not isinstance(function, Smooth):
                raise ProblemError(f"{name} is a {type(function).__name__}; expected a Smooth, such as Quadratic")
        coupling = as_coupling(A)
        if g.dim in (None, coupling.shape[0]):
            g = coupling.of_x(g)
        space = common_space({"A": coupling, "g": g, "h": h})
        assert space is not None
        self.estimated: dict[str, int] = {}  # functions whose L was estimated, and the gradients that this took
        g = self._admitted(g, "g", coupling.shape[0], space)
        h = self._admitted(h, "h", coupling.shape[1], space)
        self._set(g, h, coupling, space)

    @classmethod
    def of(cls, g: Smooth, h: Smooth, A: Coupling, space: Space) -> Saddle:
        """The problem of these parts, which are not checked again; transforms use it."""
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
        if space.is_torch and not isinstance(f, READY):
            f = without_gradients(f)
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
        """An upper bound on |A| (see ``A.norm_estimate``)."""
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
        return self.L_x / self.mu_x

    @property
    def kappa_y(self) -> float:
        """The condition number L_y/mu_y of h."""
        return self.L_y / self.mu_y

    @property
    def coupling(self) -> float:
        """The coupling condition number |A|/sqrt(mu_x mu_y)."""
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

    def certificate(self, x: Array, y: Array) -> Certificate:
        """Bounds that one query at (x, y) in float64 proves; infinite if mu is unknown or the field is not finite."""
        return certificate_from_residuals(self.mu_x, self.mu_y, *self._residuals(x, y), *self.noise)

    def _residuals(self, x: Array, y: Array) -> tuple[Any, Any, Any, Any]:
        """The norms |Fx| and |Fy| at (x, y), and bounds on their rounding errors; of a batch, those of each block."""
        wide = self.space.wide
        x, y = self._point(x, "x", self.shape[0]), self._point(y, "y", self.shape[1])
        x64, y64 = wide.of_x.cast(x), wide.of_y.cast(y)
        with np.errstate(all="ignore"), self.space.exact_products():
            Ay, Atx = self.A.both(x64, y64)
            gx, hy = (self._gradient(*of) for of in ((self.g, x, x64), (self.h, y, y64)))
            lengths = self._lengths((gx + Ay, gx, Ay, x64), (hy - Atx, hy, Atx, y64))
            (Fx, *terms_x, at_x, scale_x), (Fy, *terms_y, at_y, scale_y) = lengths
            L_x, L_y = self._smoothness
            size_x, size_y = sum(terms_x) + L_x * at_x + scale_x, sum(terms_y) + L_y * at_y + scale_y
            # Underflow can change each term of a sum by the smallest positive number.
            lost = max(map(smallest_of, (gx, hy, Ay, Atx))) * (sum(self.shape) / self.blocks) ** 1.5
            lost = lost * (at_x + at_y + size_x + size_y > 0.0)
            return Fx, Fy, _unit(gx, Ay) * size_x + lost, _unit(hy, Atx) * size_y + lost

    def _lengths(self, of_x: tuple[Array, ...], of_y: tuple[Array, ...]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """The norms of some vectors, the last being x and y, followed by the rounding scales of A y and of A' x."""
        squared_together(*of_x)
        sizes_x, sizes_y = tuple(map(norm, of_x)), tuple(map(norm, of_y))
        return (*sizes_x, self.A.rounding_scale(of_y[-1])), (*sizes_y, self.A.T.rounding_scale(of_x[-1]))

    @property
    def _smoothness(self) -> tuple[Any, Any]:
        """The constants L of g and of h; of a batch, those of each block."""
        return self.L_x, self.L_y

    def block_norms(self, vector: Array) -> Any:
        """The norm of a vector like x or y; of a batch, the norms of its blocks."""
        return norm(vector)

    def _point(self, point: Any, name: str, size: int) -> Array:
        """The point as a vector of this size; a ProblemError if it cannot be one."""
        fits = is_array(point) and point.shape == (size,) and (is_foreign(point) or point.dtype.kind == "f")
        vector: Array = detached(point) if fits else as_vector(point, name, size)
        return vector

    def _gradient(self, function: Smooth, x: Array, x64: Array) -> Array:
        """The gradient in float64; in the problem's dtype for functions of other libraries, which may need that."""
        return function.grad(x64 if self.space.is_numpy or function.space is not None else self.space.cast(x))

    def __repr__(self) -> str:
        m, n = self.shape
        return f"Saddle({m} x {n}: g={self.g!r}, h={self.h!r}, A={self.A!r})"


def with_smoothness(f: Smooth, L: float) -> Smooth:
    """The function f with another L, which is raised to mu if it is smaller."""
    return f.replace(L=L if math.isnan(f.mu) else max(L, f.mu))


def _unit(*arrays: Array) -> float:
    """Two units of rounding of the array with the lowest precision, which limits the accuracy of a sum."""
    return 2.0 * max(map(eps_of, arrays))
