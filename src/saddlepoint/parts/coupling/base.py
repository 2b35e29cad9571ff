"""The base class of couplings: products with A and A', two fused products, the norm, and the resolvent."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from saddlepoint.ground.arrays import Array, Space, eps_of, to_host
from saddlepoint.ground.compensated import UP, Sum
from saddlepoint.ground.errors import ProblemError
from saddlepoint.ground.factor import shifted_solver
from saddlepoint.ground.linalg import norm, power_of_two
from saddlepoint.ground.rounding import gamma
from saddlepoint.ground.spectrum import UNPROVEN, Eigenvalue, largest_eigenvalue
from saddlepoint.parts.coupling.runtime import LOCAL, Runtime

# The attributes that are not pickled, but computed anew where they are needed: a factorisation, copies of A, the sizes
# of its rows, and scales for its rows and columns.
NOT_PICKLED = ("_kept", "_low_precision", "_absolute", "_equilibrated")


class Norm(NamedTuple):
    """Bounds on |A|: ``lower`` always holds, ``upper`` with probability at least ``1 - failure``.

    With ``failure`` = 1, ``upper`` is a quick estimate, which a run corrects if its products refute it.
    """

    lower: float
    upper: float
    failure: float
    products: int  # products with A, and as many with A', used by the estimate

    @property
    def is_quick(self) -> bool:
        """Whether the upper bound is an estimate of which nothing is proven."""
        return self.failure >= UNPROVEN


class Coupling(ABC):
    """The linear map y -> A y of an m x n matrix, with its transpose.

    A subclass defines ``mul``, ``tmul`` and ``_transpose``. Everything else has a default, which it may replace by
    something faster.

    Attributes:
        shape, dtype: of A.
        fused: whether ``both`` and ``through`` read A once.
        fused_compiled: whether they also do so within steps that are compiled together.
        trusted: whether products with A and A' are computed from the same entries, so that they agree.
        runtime: which processes hold A, and how they decide together.
        has_entries: whether products are computed from entries that are known, so that their errors can be bounded.
        compensated_entries: number of entries of A that products in about twice the digits have read so far.
        sources: the array behind A with a mark that shows whether it was written into; None before a run has begun.
        probes: products with A, and as many with A', that ``as_coupling`` used to examine A.

    Example:
        >>> import numpy as np, saddlepoint as sp
        >>> class Shift(sp.Coupling):
        ...     shape, dtype = (3, 3), np.dtype(np.float64)
        ...     def mul(self, y):
        ...         return np.roll(y, 1)
        ...     def tmul(self, x):
        ...         return np.roll(x, -1)
        ...     def _transpose(self):
        ...         return sp.as_coupling(self.matrix().T)
        >>> f = sp.Saddle(sp.Quadratic(1.0, np.ones(3)), sp.Quadratic(1.0), Shift())
        >>> sp.solve(f).x.round(6).tolist()
        [-0.5, -0.5, -0.5]
    """

    shape: tuple[int, int]
    dtype: np.dtype[Any]
    fused: bool = False
    fused_compiled: bool = False
    trusted: bool = False
    has_entries: bool = False
    compensated_entries: int = 0
    runtime: Runtime = LOCAL
    sources: tuple[Any, ...] | None = None
    probes = 0

    @property
    def arrays(self) -> tuple[Any, ...]:
        """The caller's arrays with the entries of A; none if A is elsewhere, such as on disk or in an operator."""
        return ()

    @property
    def space(self) -> Space:
        """Library, dtype and device of the vectors x and y."""
        return Space(np, self.dtype)

    def of_x(self, g: Any) -> Any:
        """g as a function of the vectors x of this coupling: g itself, unless these are over shards."""
        return g

    def of_rows(self, loss: Any, **constants: Any) -> Any:
        """y -> scale loss(A y) + l2/2 |y|^2, computed by the shards of A; None if A is not in shards."""
        return None

    @abstractmethod
    def mul(self, y: Array) -> Array:
        """A y."""

    @abstractmethod
    def tmul(self, x: Array) -> Array:
        """A' x."""

    @abstractmethod
    def _transpose(self) -> Coupling: ...

    @cached_property
    def T(self) -> Coupling:
        """The transpose as a coupling, sharing its data with this one."""
        transpose = self._transpose()
        transpose.__dict__["T"] = self
        return transpose

    def both(self, x: Array, y: Array) -> tuple[Array, Array]:
        """(A y, A' x)."""
        return self.mul(y), self.tmul(x)

    def through(self, y: Array, s: float = 1.0, e: Array | None = None) -> tuple[Array, Array]:
        """(t, A'(s t + e)) with t = A y. For A' in the place of A, call ``A.T.through(x, s, e)``."""
        t = self.mul(y)
        u = t if s == 1.0 else s * t
        return t, self.tmul(u if e is None else u + e)

    @cached_property
    def norm_estimate(self) -> Norm:
        """A lower bound and an estimate of |A|, by a few steps of Lanczos' method on the smaller Gram matrix.

        Steps of methods depend on |A|, and no certificate does. A run that finds a larger |A| corrects it.
        """
        if "norm_estimate" in self.T.__dict__:
            return self.T.norm_estimate
        own = type(self).estimated_norm is not Coupling.estimated_norm  # of a subclass that knows its norm
        return self.estimated_norm() if own else self.estimated_norm(quick=True)

    def estimated_norm(self, quick: bool = False) -> Norm:
        """New bounds on |A|, whatever ``norm_estimate`` has stored; the upper one may come from a cheap certain bound.

        Unless they are to be ``quick``, the upper one holds with a probability of 1 - 1e-8.
        """
        small = self if self.shape[1] <= self.shape[0] else self.T
        with np.errstate(all="ignore"):
            unit, found = small._gram_eigenvalue(quick)
            ceiling = self.norm_ceiling()
        if math.isnan(found.lower):
            raise ProblemError("products with A are not finite; check the entries (or the operator) of A")
        upper, failure = unit * math.sqrt(found.upper), found.failure
        if ceiling <= upper:
            upper, failure = ceiling, 0.0
        return Norm(min(unit * math.sqrt(found.lower), upper), upper, failure, found.products)

    def _gram_eigenvalue(self, quick: bool = False) -> tuple[float, Eigenvalue]:
        """A unit, and bounds on the largest eigenvalue of A'A/unit^2.

        The unit is 1, unless squares of entries overflow or underflow.
        """
        n, space = self.shape[1], self.space.of_y
        found = largest_eigenvalue(lambda v: self.through(v)[1], n, space=space, quick=quick)
        most = space.largest**0.4  # of the squares of singular values: products of two of them do not overflow
        if 1.0 / most <= found.lower <= most:
            return 1.0, found
        length = most if found.lower < 1.0 else 1.0 / most
        probe = space.cast(length * np.random.default_rng(0).standard_normal(n))
        size = norm(self.through(probe)[0]) / length
        products = found.products + 1
        if not 0.0 < size < math.inf:  # A = 0, or it is not finite
            return 1.0, found._replace(products=products)
        unit = power_of_two(size, space.exponent)
        found = largest_eigenvalue(lambda v: self.through((1.0 / unit) * v, 1.0 / unit)[1], n, space=space, quick=quick)
        return unit, found._replace(products=found.products + products)

    @property
    def norm(self) -> float:
        """The upper bound or estimate of |A|, the largest singular value (see ``norm_estimate``)."""
        return self.norm_estimate.upper

    def norm_ceiling(self) -> float:
        """An upper bound on |A| that always holds; infinite where none is cheap."""
        return math.inf

    @property
    def sum_length(self) -> int:
        """The most terms that are added up for an entry of A y.

        If the entries of A are not known it is 2: with that number, ``product_error`` is two units of rounding.
        """
        return self.shape[1] if self.has_entries else 2

    def rounding_scale(self, y: Array) -> float:
        """A bound on the norm of |A||y|, where |.| is taken of each entry; |A| |y| if the entries are not known.

        It can be far above |A y|.
        """
        return self.norm * norm(y)

    def rough_scale(self, length: float) -> float:
        """A bound on the norm of |A||y| for vectors y of this length; infinite where ``rounding_scale`` is as quick."""
        return math.inf

    def bound_from_sum(self, total: float) -> float:
        """A bound on |A y| for a y whose absolute values have at most this sum; infinite where none is cheap.

        It is the sum times the length of the longest column of A.
        """
        return math.inf

    @cached_property
    def _longest_column(self) -> float:
        """An upper bound of the length of the longest column of A."""
        return float(np.max(self.T.row_lengths(), initial=0.0))

    def row_lengths(self) -> Array | float:
        """Upper bounds of the lengths of the rows of A, as an array of NumPy; one number for all if A has no entries.

        That number is the upper bound of |A|, which holds with a probability of 1 - 1e-8.
        """
        bounds = self.norm_estimate
        return (self.estimated_norm() if bounds.is_quick else bounds).upper

    def product_error(self, y: Array, eps: float) -> float:
        """A bound on the error of A y by rounding, for any order of summation, in arithmetic with this epsilon.

        It is gamma_n |A||y| for sums of n terms (N. J. Higham, Accuracy and Stability of Numerical Algorithms, 3.1). If
        the entries of A are not known, it is an assumption.
        """
        return gamma(self.sum_length, eps) * self.rounding_scale(y)

    def compensated_mul(self, y: Array) -> Sum | None:
        """A y in about twice the digits of float64, with a bound on its error; None if the entries are not known."""
        return None

    def resolvent(self, p: Array, q: Array, a: float) -> tuple[Array, Array]:
        """The (x, y) with x + a A y = p and y - a A' x = q, by a factorisation that is kept for later calls.

        The factorisation is of A'A, which squares the condition number. A second solve, for the residual of the first,
        restores the accuracy.
        """
        if self.shape[0] < self.shape[1]:
            y, x = self.T.resolvent(q, p, -a)
            return x, y
        solve = self.normal_solver(a)
        x, y = p, 0.0 * q
        for _ in range(2):
            dy = solve(q - y + a * self.tmul(x))
            x, y = x - a * self.mul(dy), y + dy
        return x, y

    def matrix(self) -> Any:
        """A itself, as a dense or sparse matrix."""
        rows, columns = self.shape
        if rows < columns:
            return np.stack([self.tmul(row) for row in np.eye(rows, dtype=self.dtype)], axis=0)
        return np.stack([self.mul(column) for column in np.eye(columns, dtype=self.dtype)], axis=1)

    def products_for_matrix(self) -> int:
        """The number of products with A that determine its entries."""
        return self.shape[1]

    def gram(self) -> Any:
        """A'A as a dense or sparse matrix."""
        identity = np.eye(self.shape[1], dtype=self.dtype)
        return np.stack([self.through(column)[1] for column in identity], axis=1)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name not in NOT_PICKLED}

    def normal_solver(self, a: float) -> Callable[[Array], Array]:
        """r -> y with (I + a^2 A'A) y = r, by a factorisation; the last one is kept."""
        kept: tuple[float, Callable[[Array], Array]] | None = self.__dict__.get("_kept")
        if kept is None or kept[0] != abs(a):
            kept = self.__dict__["_kept"] = (abs(a), self._factorised(a))
        return kept[1]

    @property
    def factored(self) -> float | None:
        """|a| of the factorisation that is kept, if there is one."""
        kept = self.__dict__.get("_kept")
        return None if kept is None else float(kept[0])

    def _factorised(self, a: float) -> Callable[[Array], Array]:
        most = self.space.largest**0.2
        if 1.0 / most <= abs(a) <= most:
            return shifted_solver(self.gram(), a * a)
        aA = a * self.matrix()  # for such an a, A'A or a^2 may overflow or underflow
        return shifted_solver(aA.T @ aA, 1.0)

    def __repr__(self) -> str:
        m, n = self.shape
        return f"{type(self).__name__}({m} x {n}, {self.dtype})"


def scale_from_columns(lengths: Array, y: Array) -> float:
    """A bound on the norm of |A||y| from the norms c of the columns of A: it is at most the sum of the c_j |y_j|."""
    return UP * math.sqrt(y.shape[0]) * norm(lengths * y)


def raised_lengths(lengths: Array, n: int) -> Array:
    """Upper bounds of computed lengths of vectors of n entries, as an array of NumPy."""
    found: Array = to_host(lengths).astype(np.float64) * (1.0 + gamma(n + 4, eps_of(lengths)))
    return found
