"""What a coupling offers: products with A and A', two fused products, the norm, and the resolvent."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from saddlepoint.arrays import Space
from saddlepoint.errors import ProblemError
from saddlepoint.factor import shifted_solver
from saddlepoint.spectrum import largest_eigenvalue
from saddlepoint.vectors import Array, norm


class Norm(NamedTuple):
    """Bounds on |A|: ``lower`` always holds, ``upper`` with probability at least ``1 - failure``."""

    lower: float
    upper: float
    failure: float
    products: int  # products with A, and as many with A', that the estimate took


class Coupling(ABC):
    """The linear map y -> A y of an m x n matrix, with its transpose.

    A new kind defines ``mul``, ``tmul`` and ``_transpose``; the rest has plain fallbacks that it may improve on.
    """

    shape: tuple[int, int]
    dtype: np.dtype[Any]
    fused: bool = False  # True where `both` and `through` read A once
    probes = 0  # products each way that were spent on examining A at the door

    @property
    def space(self) -> Space:
        """Library, dtype and device of the vectors that A takes and gives."""
        return Space(np, self.dtype)

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
        """(t, A'(s t + e)) with t = A y. Its mirror is ``A.T.through(x, s, e)``."""
        t = self.mul(y)
        u = t if s == 1.0 else s * t
        return t, self.tmul(u if e is None else u + e)

    @cached_property
    def norm_estimate(self) -> Norm:
        """Bounds on |A| by Lanczos on the smaller Gram matrix, sharpened by a certain bound where one is cheap."""
        if "norm_estimate" in self.T.__dict__:
            return self.T.norm_estimate
        small = self if self.shape[1] <= self.shape[0] else self.T
        found = largest_eigenvalue(lambda v: small.through(v)[1], small.shape[1], space=self.space)
        if math.isnan(found.lower):
            raise ProblemError("products with A are not finite; check the entries (or the operator) of A")
        upper, failure = math.sqrt(found.upper), found.failure
        ceiling = self._norm_ceiling()
        if ceiling <= upper:
            upper, failure = ceiling, 0.0
        return Norm(min(math.sqrt(found.lower), upper), upper, failure, found.products)

    @property
    def norm(self) -> float:
        """An upper bound on |A|, the largest singular value (see ``norm_estimate``); computed once."""
        return self.norm_estimate.upper

    def _norm_ceiling(self) -> float:
        """A bound on |A| that holds for certain; infinite where none is cheap."""
        return math.inf

    def rounding_scale(self, y: Array) -> float:
        """The size of the terms that A y sums up: times a few units of rounding, the error of the product.

        It can be far above |A y|, and far below |A| |y| when A is badly scaled.
        """
        return self.norm * norm(y)

    def resolvent(self, p: Array, q: Array, a: float) -> tuple[Array, Array]:
        """The (x, y) with x + a A y = p and y - a A' x = q, by a factorisation that is kept for later calls.

        The factor knows A squared; a second solve, for the residual of the first, regains what that loses.
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
        return np.stack([self.mul(column) for column in np.eye(self.shape[1], dtype=self.dtype)], axis=1)

    def gram(self) -> Any:
        """A'A as a dense or sparse matrix."""
        identity = np.eye(self.shape[1], dtype=self.dtype)
        return np.stack([self.through(column)[1] for column in identity], axis=1)

    def normal_solver(self, a: float) -> Callable[[Array], Array]:
        """r -> y with (I + a^2 A'A) y = r, by a factorisation; the last one is kept."""
        kept: tuple[float, Callable[[Array], Array]] | None = self.__dict__.get("_kept")
        if kept is None or kept[0] != a * a:
            kept = self.__dict__["_kept"] = (a * a, shifted_solver(self.gram(), a * a))
        return kept[1]

    def __repr__(self) -> str:
        m, n = self.shape
        return f"{type(self).__name__}({m} x {n}, {self.dtype})"
