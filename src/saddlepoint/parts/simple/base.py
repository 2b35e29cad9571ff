r"""Simple functions: closed, convex, and with a proximal operator that is cheap to compute.

The pair of x and s. Fenchel's inequality says p(x) + p*(s) - <s, x> >= 0, with equality if and only if s is a
subgradient of p at x. For every s in the domain of p* and every mu-strongly convex g, with w = grad g(x) + A y,

    f(x, y) - min_x' f(x', y)  <=  |w + s|^2/(2 mu) + p(x) + p*(s) - <s, x>,

because p(x') >= <s, x'> - p*(s), and what remains is a quadratic in x'. A certificate therefore needs ``dual_point``,
which moves any vector into the domain of p*, and ``fenchel_gap``, which bounds the last three terms. The ready-made
functions compute that bound from their structure, without the cancellation of the formula as it stands.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from enum import IntEnum
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from saddlepoint.ground.arrays import Array, eps_of, namespace, to_host
from saddlepoint.ground.errors import ProblemError
from saddlepoint.ground.linalg import norm
from saddlepoint.ground.recording import is_recording
from saddlepoint.ground.rounding import gamma
from saddlepoint.ground.validation import as_count, as_flag, as_number, short_repr
from saddlepoint.parts.simple import multiple
from saddlepoint.parts.simple.bounds import EPS, norm_bound, not_nan, wide

Prox: TypeAlias = Callable[[Array, float], Array]
Value: TypeAlias = Callable[[Array], float]
Projection: TypeAlias = Callable[[Array], Array]

PROX_ERROR = 8.0  # assumed error of a computed prox, in units of rounding of its argument and of its answer
INSIDE = 64.0  # a point counts as inside the domain if its distance is below this many roundings of its entries


class Support(IntEnum):
    """What is proven about a coordinate of the solution.

    Attributes:
        UNDECIDED: nothing.
        OFF: it is at no bound and at no kink: between its bounds, and not zero where an l1 or group norm has its kink.
            In a group, it says that the group is not zero.
        ZERO: it is zero.
        LOWER: it is at its lower bound.
        UPPER: it is at its upper bound.

    Example:
        >>> import numpy as np, saddlepoint as sp
        >>> f = sp.Saddle(sp.Quadratic(1.0, [3.0, 0.1]) + sp.L1(1.0), sp.Quadratic(1.0), np.zeros((2, 1)))
        >>> [sp.Support(value).name for value in sp.solve(f).support_x]
        ['OFF', 'ZERO']
    """

    UNDECIDED = 0
    OFF = 1
    ZERO = 2
    LOWER = 3
    UPPER = 4


class Pairing(NamedTuple):
    """A proof that p(x') + p*(s') - <s', x'> <= gap for real vectors x' and s' near x and ``s``.

    Floating-point numbers are rarely exactly on a sphere or on a plane, and a point eps inside of the sphere has a gap
    of the order eps. The exact points next to it have a much smaller one.

    Attributes:
        s: the dual vector, in the dtype of the given one.
        off_x: a bound on |x' - x|.
        off_s: a bound on |s' - s|.
        gap: a bound on p(x') + p*(s') - <s', x'>.
        gap_at_x: a bound on p(x) + p*(s') - <s', x>, for the stored numbers of x; where these are outside the domain,
            for the point of the domain that ``fenchel_gap`` takes in their place.
        off_x_sum: a bound on the sum of the |x'_i - x_i|, where a better one is known than sqrt(n) times ``off_x``.
    """

    s: Array
    off_x: float
    off_s: float
    gap: float
    gap_at_x: float
    off_x_sum: float = math.inf


class Simple:
    """A closed convex function p with a cheap prox: a norm, or the indicator of a constraint (0 inside, inf outside).

    The class itself makes a function from a prox that the caller wrote. The ready-made functions are subclasses.

    Args:
        prox: (v, t) -> argmin_u t p(u) + |u - v|^2 / 2, for t > 0, as a new array. For a constraint it is the nearest
            point, whatever t is.
        value: x -> p(x), infinite outside the domain. Optional: without it no certificate can use values of p.
        project: x -> the nearest point where p is finite. Optional: without it p is taken to be finite everywhere,
            unless ``value`` says otherwise.
        conjugate: s -> max_x <s, x> - p(x). Optional.
        diameter: an upper bound of the diameter of the domain.
        separable: True if prox acts on each coordinate alone and in the same way, so that it may be applied in shards.
        dim: the dimension, if the function fixes it.
        accuracy: a number a with |computed - prox| <= a (|v| + |computed|), for a prox that is computed by iterations.
            Certificates allow for it: they are about the exact prox, which is at most that far away. Left out, prox is
            taken to be right up to a few units of rounding, and a run that sees larger errors is not solved.

    Attributes:
        structured: whether ``fenchel_gap`` is computed from the structure of the function, as for the ready-made ones.
        dim: the dimension, or None.
        separable: whether the function is a sum of functions of single coordinates.
        accuracy: the number a, or NaN if nothing was said.
        inexact: an estimate of the errors, beyond rounding, of a prox that the caller wrote, relative to the lengths of
            its argument and of its answer, where examinations have seen some; for a proof, ``accuracy`` is to be said.

    Example:
        >>> import numpy as np, saddlepoint as sp
        >>> p = sp.Simple(prox=lambda v, t: np.maximum(v - t, 0.0), value=lambda x: x.sum() if x.min() >= 0 else np.inf)
        >>> p.prox(np.array([3.0, 0.5]), 1.0).tolist(), float(p(np.array([2.0, 1.0])))
        ([2.0, 0.0], 3.0)
    """

    __array_ufunc__ = None  # makes NumPy leave sums and products with arrays to this class
    structured: bool = False
    accuracy: float = math.nan
    inexact: float = 0.0

    def __init__(
        self,
        prox: Prox,
        value: Value | None = None,
        *,
        project: Projection | None = None,
        conjugate: Value | None = None,
        diameter: float = math.inf,
        separable: bool = False,
        dim: int | None = None,
        accuracy: float | None = None,
    ) -> None:
        given = (("prox", prox), ("value", value), ("project", project), ("conjugate", conjugate))
        for what, function in given:
            if not callable(function) and (function is not None or what == "prox"):
                raise ProblemError(f"{what} of Simple is {short_repr(function)}; expected a function")
        self._prox, self._value, self._project, self._conjugate = prox, value, project, conjugate
        self._diameter = as_number(diameter, "diameter of Simple")
        if not self._diameter >= 0.0:
            raise ProblemError(f"diameter of Simple is {self._diameter:g}; expected a number that is not negative")
        self.separable = as_flag(separable, "separable of Simple")
        self.dim = None if dim is None else as_count(dim, "dim of Simple")
        if accuracy is not None:
            self.accuracy = as_number(accuracy, "accuracy of Simple", "a number from 0 to 1")
            if not 0.0 <= self.accuracy <= 1.0:
                raise ProblemError(f"accuracy of Simple is {self.accuracy:g}; expected a number from 0 to 1")

    # -- the function --------------------------------------------------------------------------------------------------

    def value(self, x: Array) -> float:
        """p(x); infinite outside the domain, but not for points that are outside only by rounding."""
        if self._value is None:
            raise ProblemError("this Simple was given no value; pass value= to have one")
        return _as_float(self._value(x), "value")

    @property
    def has_value(self) -> bool:
        """Whether the function has a value, not only a prox."""
        return self.structured or self._value is not None

    def __call__(self, x: Array) -> float:
        """The value at x."""
        return self.value(x)

    def prox(self, v: Array, t: float) -> Array:
        """The point argmin_u t p(u) + |u - v|^2 / 2, for t > 0, in the library and dtype of v."""
        return self._prox(v, t)

    def prox_error(self, v: Array, x: Array) -> float:
        """What certificates take for a bound on the error of x = prox(v, t), a prox that the caller wrote."""
        return (PROX_ERROR * eps_of(x) + self.beyond_rounding) * (norm(v) + norm(x))

    @property
    def beyond_rounding(self) -> float:
        """The errors of prox beyond rounding, relative to its argument and answer: as stated, or as estimated."""
        return self.inexact if math.isnan(self.accuracy) else self.accuracy

    def conjugate(self, s: Array) -> float:
        """p*(s) = max_x <s, x> - p(x), the support function of a set; infinite outside its domain."""
        if self._conjugate is None:
            raise ProblemError("this Simple was given no conjugate; pass conjugate= to have one")
        return _as_float(self._conjugate(s), "conjugate")

    # -- its domain ----------------------------------------------------------------------------------------------------

    def project(self, x: Array) -> Array:
        """The point nearest to x where p is finite."""
        return x if self._project is None else self._project(x)

    def outside(self, x: Array) -> float:
        """A proven upper bound of the distance from x to the domain of p; 0.0 where x is known to be inside."""
        if self._value is not None and self.value(x) < math.inf:
            return 0.0
        if self._project is None:
            return 0.0 if self._value is None else math.inf
        return norm_bound(wide(x) - wide(self.project(x)), 1)

    def is_inside(self, x: Array) -> bool:
        """Whether x is in the domain up to the rounding of its entries."""
        return self.outside(x) <= INSIDE * eps_of(x) * math.sqrt(int(x.shape[0])) * norm(x)

    @property
    def diameter(self) -> float:
        """An upper bound of the diameter of the domain; infinite if it is unbounded or if it depends on the dimension
        and the function does not fix it (see ``diameter_in``).
        """
        return self.diameter_in(self.dim)

    def diameter_in(self, n: int | None) -> float:
        """An upper bound of the diameter of the domain in n dimensions."""
        return self._diameter

    def validate(self, n: int, name: str = "x") -> None:
        """Raise a ProblemError if the function is not one of vectors of n entries, which are called ``name``."""
        if self.dim is not None and self.dim != n:
            raise ProblemError(
                f"{self!r} is a function of {self.dim} coordinates, but {name} has {n}; give it {n} coordinates too"
            )

    def restrict(self, rows: slice) -> Simple:
        """The function of some coordinates, if this one is a sum over coordinates; shards need it."""
        if not self.separable:
            raise ProblemError(
                f"{self!r} is not a sum over coordinates, so that it cannot be applied in shards; use a separable one "
                "such as L1 or Box there"
            )
        return self

    # -- what certificates need ----------------------------------------------------------------------------------------

    def dual_point(self, s: Array) -> Array:
        """A point near s at which p* is finite, for its stored digits exactly; s itself if p* is finite everywhere.

        For a function that the caller wrote it is s, because nothing is known about p*.
        """
        return s

    def subgradient(self, xh: Array, s: Array) -> Array:
        """The subgradient of p at xh that is nearest to s, where the faces of p are flat; else ``dual_point(s)``.

        A vector s = mu (x - xh) - w is a subgradient up to rounding, and rounding alone would make the Fenchel gap of x
        and s of the order eps. With the exact slope of the face on which x and xh are, the gap is 0.
        """
        return self.dual_point(s)

    def fenchel_gap(self, x: Array, s: Array) -> float:
        """A proven upper bound of p(x) + p*(s) - <s, x>, rounding included, for s in the domain of p*.

        If x is outside the domain, the bound holds for a point of the domain that is at most ``outside(x)`` from x. It
        is infinite if s is not in the domain of p*, and if nothing is known. For a function that the caller wrote,
        cancellation limits its accuracy.
        """
        if self._value is None or self._conjugate is None:
            return math.inf
        x, s = wide(x), wide(s)
        p, q = self.value(x), self.conjugate(s)
        n = int(x.shape[0])
        products = s * x
        allowed = gamma(n + 8, EPS) * (abs(p) + abs(q) + float(namespace(x).sum(namespace(x).abs(products))))
        return not_nan(max(p + q - float(namespace(x).sum(products)), 0.0) + 2.0 * allowed)

    def bregman(self, x: Array, xh: Array, s: Array) -> float:
        """A proven upper bound of p(x) - p(xh) - <s, x - xh> for a subgradient s of p at xh, rounding included.

        A ready-made function returns fenchel_gap(x, dual_point(s)), which is this number for the subgradient
        ``dual_point(s)``. For a function that the caller wrote it is computed from values, which are assumed to have
        the errors of a sum over the coordinates; it is infinite without ``value``.
        """
        if self.structured:
            return self.fenchel_gap(x, self.dual_point(s))
        if self._value is None:
            return math.inf
        x, xh, s = wide(x), wide(xh), wide(s)
        xp, n = namespace(x), int(x.shape[0])
        p, q, products = self.value(x), self.value(xh), s * (x - xh)
        sizes = float(xp.sum(xp.abs(s) * (xp.abs(x) + xp.abs(xh))))
        allowed = gamma(n + 8, EPS) * (abs(p) + abs(q) + float(xp.sum(xp.abs(products)))) + 2.0 * EPS * sizes
        return not_nan(max(p - q - float(xp.sum(products)), 0.0) + 2.0 * allowed)

    def pairing(self, x: Array, s: Array) -> Pairing:
        """The best proof about x and a dual vector near s.

        For functions with curved faces it is better than ``fenchel_gap`` at ``dual_point``, because it may move both
        points by a rounding error.
        """
        dual = self.dual_point(s)
        gap = self.fenchel_gap(x, dual)
        return Pairing(dual, self.outside(x), 0.0, gap, gap)

    def pairing_at(self, x: Array, xh: Array, s: Array) -> Pairing:
        """The proof about x and the subgradient at xh that is nearest to s."""
        return self.pairing(x, self.subgradient(xh, s))

    def faces(self, x: Array) -> Array:
        """For each coordinate a number that says at which kink or bound of the function it is; 0.0 if at none.

        Methods that combine points compare these numbers. Of a function that the caller wrote, zero is the only kink.
        """
        found: Array = namespace(x).astype(x == 0.0, x.dtype)
        return found

    def along_face(self, x: Array, moves: Array) -> Array:
        """The moves without the parts that would take x off its kinks and bounds; a vector, or a matrix of rows."""
        found: Array = moves * namespace(x).astype(self.faces(x) == 0.0, moves.dtype)
        return found

    def support(self, x: Array, w: Array, reach_x: float, reach_w: Any) -> Array:
        """What is proven about each coordinate of the solution: an int8 array of NumPy with values of ``Support``.

        The solution x* satisfies 0 = w* + s* with a subgradient s* of p at x*.

        Args:
            x: a point.
            w: grad g(x) + A y there, without the subgradient of p.
            reach_x: a bound on |x - x*|, over all coordinates together.
            reach_w: bounds on |w_i - w_i*|: one for each coordinate, or one number for all.
        """
        return np.full(int(x.shape[0]), Support.UNDECIDED, dtype=np.int8)

    # -- sums ----------------------------------------------------------------------------------------------------------

    def __add__(self, other: Any) -> Simple:
        if not isinstance(other, Simple):
            return NotImplemented
        for one, two in ((self, other), (other, self)):
            found = one._plus(two)
            if found is not None:
                return found
        raise ProblemError(
            f"the prox of {self!r} + {other!r} is not known: in general it does not follow from the prox operators of "
            "the two. Known are sums of L1, Box and NonNegative, and of Groups or Norm2 with L1, NonNegative or both. "
            "If you know the prox of this sum, give it as sp.Simple(prox=...); else put one of the two on the other "
            "player: p(x) = max_y <x, y> - p*(y)"
        )

    def _plus(self, other: Simple) -> Simple | None:
        """The sum of the two, where its prox is known."""
        return None

    # -- multiples -----------------------------------------------------------------------------------------------------

    def __mul__(self, factor: float) -> Simple:
        c = as_number(factor, "the factor of a simple function")
        if not is_recording() and not 0.0 < c < math.inf:
            raise ProblemError(f"a simple function can only be multiplied by a finite positive number; got {c:g}")
        return self._times(c)

    __rmul__ = __mul__

    def _times(self, c: float) -> Simple:
        """The function times a positive number. Ready-made norms have other weights then, and constraints stay."""
        return Simple(
            partial(multiple.prox, self, c),
            partial(multiple.value, self, c) if self.has_value else None,
            project=self.project if self._project is not None else None,
            conjugate=partial(multiple.conjugate, self, c) if self._conjugate is not None else None,
            diameter=self._diameter,
            separable=self.separable,
            dim=self.dim,
            accuracy=None if math.isnan(self.accuracy) else self.accuracy,
        )

    def __repr__(self) -> str:
        return type(self).__name__


class Structured(Simple):
    """A ready-made simple function: its subclasses define every method from the formula of the function."""

    structured = True

    def __init__(self, dim: int | None = None, separable: bool = False) -> None:
        self.dim, self.separable = dim, separable
        self._value = self._project = self._conjugate = None
        self._diameter = math.inf

    def _times(self, c: float) -> Simple:
        """The same, because a multiple of a constraint is that constraint. Norms change their weights."""
        return self


def _as_float(answer: Any, what: str) -> float:
    """The answer of a function that the caller wrote, as a number."""
    try:
        return float(answer)
    except (TypeError, ValueError):
        raise ProblemError(f"{what} of Simple returned {short_repr(answer)}; expected a number") from None


def on_host(a: Any) -> Array:
    """A number or an array of any library in NumPy's float64."""
    return np.asarray(to_host(a) if hasattr(a, "shape") else a, dtype=np.float64)
