"""Quadratic functions."""

from __future__ import annotations

import math
from collections.abc import Callable
from copy import copy
from functools import cached_property, partial
from typing import Any

import numpy as np
from scipy.sparse import issparse

from saddlepoint.ground.arrays import Array, common_space, eps_of, is_constant, namespace
from saddlepoint.ground.compensated import Sum
from saddlepoint.ground.diagonal import diagonal_matrix
from saddlepoint.ground.elementwise import cast_like
from saddlepoint.ground.errors import ProblemError
from saddlepoint.ground.factor import shifted_solver
from saddlepoint.ground.linalg import inner
from saddlepoint.ground.recording import is_recording
from saddlepoint.ground.validation import as_float_array, as_offset, finite
from saddlepoint.parts.coupling import Coupling, DenseCoupling, SparseCoupling, as_coupling
from saddlepoint.parts.functions.accuracy import StatedBounds, known_rounding
from saddlepoint.parts.functions.compensated import exactly, total, two_product, widened
from saddlepoint.parts.functions.constants import DENSE, eigenvalue_bounds, eigenvalue_ceiling
from saddlepoint.parts.functions.given_constants import as_nonnegative
from saddlepoint.parts.functions.product_rounding import (
    HALF,
    absolute,
    is_bounded,
    number_error,
    scaled_rounding,
)
from saddlepoint.parts.functions.rough_rounding import EPS, RoughQuadratic, gammas
from saddlepoint.parts.functions.smooth import Prox, Smooth
from saddlepoint.parts.functions.source_data import source_data
from saddlepoint.parts.simple.base import Simple
from saddlepoint.parts.simple.l1_box import L1Box

SYMMETRIC = 1e3  # largest entry of P - P' that is taken for rounding, in units of rounding of the largest entry of P


class Quadratic(Smooth):
    """The quadratic function 1/2 x'Px + b'x.

    Args:
        P: a symmetric positive semidefinite matrix (array or SciPy sparse), a vector (a diagonal) or a number. It may
            differ from P.T by rounding: the gradient is P x + b all the same, and mu is a bound for (P + P.T)/2.
        b: a vector, or a number for all entries; zero if left out.
        mu, L: bounds on the eigenvalues of P, if known. Otherwise they are computed, and mu is proven, by Gershgorin's
            theorem or a factorisation with a bound on its rounding. It is a few per cent below the smallest
            eigenvalue at most, and slightly negative if that is zero or cannot be told from zero. If P is too large
            to be factorised, there is an error that asks for mu. L is an estimate with a margin for matrices with more
            than 1500 rows.

    Example:
        >>> import numpy as np, saddlepoint as sp
        >>> sp.Quadratic(np.array([1.0, 4.0]))
        Quadratic(n=2, mu=1, L=4)
    """

    _kept: tuple[Array, Array] | None = None  # a point x and the product P x
    _rough_kept: RoughQuadratic | None = None  # the numbers from which ``_rough`` computes its bound

    def __init__(self, P: Any, b: Any = None, *, mu: float | None = None, L: float | None = None) -> None:
        self.P = _as_hessian(P)
        self._skew: tuple[Coupling] | tuple[()] | None = None
        dim = None if _is_number(self.P) else self.P.shape[0]  # type: ignore[union-attr]
        self.b: float | Array | None = None if b is None else as_offset(b, "b of Quadratic", dim)
        if self.b is not None and not isinstance(self.b, float):
            dim = self.b.shape[0]
        trusted = mu is None and L is None
        mu = None if mu is None else as_nonnegative(mu, "mu of Quadratic")  # a negative one is computed, never given
        L = None if L is None else as_nonnegative(L, "L of Quadratic")
        if mu is None or L is None:
            mu, L = self._bounds(mu, L)
        arithmetic = self._known_rounding() if is_bounded(self.P) else {}
        self._assemble(dim, mu, L if is_recording() else max(L, mu), trusted, arithmetic)
        if trusted and not is_recording():
            self.sources = source_data("P of Quadratic", self.P)

    def _assemble(self, dim: int | None, mu: float, L: float, trusted: bool, arithmetic: dict[str, Any]) -> None:
        """Call the constructor of ``Smooth``, with methods of this object as the oracles."""
        P_space = None if _is_number(self.P) else self.P
        b_space = None if isinstance(self.b, float) else self.b
        space = common_space({"P of Quadratic": P_space, "b of Quadratic": b_space})
        super().__init__(
            self._gradient,
            mu=mu,
            L=L,
            value=self._value,
            prox=self._proximal,
            dim=dim,
            space=space,
            quadratic=True,
            hessian=self._matrix if space is None or space.is_numpy else None,
            hessian_lipschitz=0.0,
            second_order=self._quadratic_model,
            restrict=None if isinstance(self.P, Coupling) else self._restrict,
            trusted=trusted,
            **arithmetic,
        )
        self._solver: tuple[float, Callable[[Array], Array]] | None = None

    def with_linear(self, b: Array) -> Quadratic:
        """This function with another b, which is not checked; P and what was computed for it are shared.

        Example:
            >>> import numpy as np, saddlepoint as sp
            >>> sp.Quadratic(2.0, [1.0, 0.0]).with_linear(np.array([3.0, 4.0])).grad(np.ones(2))
            array([5., 6.])
        """
        other = copy(self)
        other.b = b
        is_own = self.accuracy == 0.0 and not isinstance(self.rounding, StatedBounds)
        arithmetic = other._known_rounding() if is_own else self.arithmetic
        other._assemble(b.shape[0], self.mu, self.L, self.trusted, arithmetic)
        return other

    def hessian_times(self, x: Array) -> Array:
        """The product P x."""
        return self.P.mul(x) if isinstance(self.P, Coupling) else self.P * x

    def _quadratic_model(self, x: Array) -> Quadratic:
        return self.with_linear(self._in_own_dtype(0.0 * x))

    def _in_own_dtype(self, x: Array) -> Array:
        return x if self.space is None else self.space.cast(x)

    @cached_property
    def proven_L(self) -> float | None:
        """A proven upper bound of the largest eigenvalue of P."""
        if is_recording() or not isinstance(self.P, Coupling):
            return self._bounds(0.0, None)[1]
        if self.trusted and self.P.shape[0] <= DENSE:
            return self.L
        return eigenvalue_ceiling(self.P) if is_bounded(self.P) else None

    def _matrix(self, x: Array) -> Any:
        if isinstance(self.P, Coupling):
            return self.P.matrix()
        return diagonal_matrix(np.full(x.shape[0], self.P) if isinstance(self.P, float) else self.P)

    def _restrict(self, rows: slice) -> Quadratic:
        P = self.P if isinstance(self.P, float) else self.P[rows]  # type: ignore[index]
        return Quadratic(P, self.b if self.b is None or isinstance(self.b, float) else self.b[rows])

    def _gradient(self, x: Array) -> Array:
        Px = self.hessian_times(x)
        if self.b is None:
            return Px
        if is_constant(x) and isinstance(self.P, Coupling):
            self._kept = x, Px
        return Px + self.b

    def _product(self, x: Array) -> Array:
        """The product P x, which ``_gradient`` may just have computed."""
        kept, self._kept = self._kept, None
        return kept[1] if kept is not None and kept[0] is x else self.hessian_times(x)

    def _rounding(self, x: Array) -> Array:
        """Bounds on the errors of the entries of P x + b: that of the product, and eps |P x + b| for the addition.

        A product with numbers or a diagonal has the error 2 eps |P x|, since P may be rounded to the dtype of x. If P
        is not exactly symmetric, the gradient is (P + P')/2 x, which differs from P x by (P - P')/2 x.
        """
        xp, eps = namespace(x), eps_of(x)
        if not isinstance(self.P, Coupling):
            return scaled_rounding(self.P, self.b, x)
        bound = absolute(self.P).errors(x)
        for skew in self._asymmetry():
            bound = bound + HALF * absolute(skew).times(xp.abs(x))
        return bound if self.b is None else bound + eps * xp.abs(self._product(x) + self.b) + number_error(self.b, eps)

    def _known_rounding(self) -> dict[str, Any]:
        """The arguments of ``Smooth`` about the accuracy of the gradient."""
        self._rough_kept = None
        has_norm = not isinstance(self.P, Coupling) or isinstance(self.P, DenseCoupling | SparseCoupling)
        return known_rounding(self._rounding, self._compensated, self._rough if has_norm else None)

    def _rough(self, length: float, size: float, n: int) -> float:
        """A bound on the norm of ``_rounding(x)`` for x of n entries with |x| = length and |P x + b| = size."""
        if self._rough_kept is None or self._rough_kept.rows != n:
            offset = math.sqrt(n) * abs(self.b) if isinstance(self.b, float) else 0.0
            if isinstance(self.P, Coupling):
                numbers = (
                    self.P.norm_ceiling(),
                    gammas(self.P)[0],
                    sum(skew.norm_ceiling() for skew in self._asymmetry()),
                )
            else:
                numbers = float(np.max(np.abs(self.P))), 2.0 * EPS, 0.0
            self._rough_kept = RoughQuadratic(*numbers, n, offset)
        return self._rough_kept(length, size)

    def _compensated(self, x: Array) -> Sum:
        """P x + b in about twice the digits; the ordinary gradient where there is no such product."""
        wide, P = widened(x), self.P
        product: Sum | None = None
        if wide is not None and isinstance(P, Coupling):
            product = P.compensated_mul(wide)
        elif wide is not None and not isinstance(P, Coupling):
            product = two_product(wide, P if isinstance(P, float) else cast_like(P, wide))
        if wide is None or product is None:
            return Sum(self._gradient(x), 0.0 * x, self._rounding(x))
        found = total(product, None if self.b is None else exactly(cast_like(self.b, wide)))
        for skew in self._asymmetry() if isinstance(P, Coupling) else ():
            found = found._replace(error=found.error + HALF * absolute(skew).times(abs(wide)))
        return found

    def _asymmetry(self) -> tuple[Coupling] | tuple[()]:
        """The matrix P - P', or nothing if P is symmetric."""
        if self._skew is None:
            assert isinstance(self.P, Coupling)
            entries = self.P.matrix()
            skew = as_coupling(entries - entries.T)
            self._skew = (skew,) if skew.norm_ceiling() > 0.0 else ()
        return self._skew

    def _value(self, x: Array) -> float:
        linear = 0.0 if self.b is None else inner(cast_like(self.b, x), x)
        return 0.5 * inner(x, self.hessian_times(x)) + linear

    def _proximal(self, v: Array, t: float) -> Array:
        r = v if self.b is None else v - t * self.b
        if not isinstance(self.P, Coupling):
            return r / (1.0 + t * self.P)
        kept = self._solver  # read once, because another thread may replace it
        if kept is None or kept[0] != t:
            kept = self._solver = (t, shifted_solver(self.P.matrix(), t))
        return kept[1](r)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_solver": None}  # factorisations are not pickled

    def _prox_of_sum(self, other: Smooth) -> Prox | None:
        """The prox of self + other if P is a number; it is the prox of other at a shifted and shrunk argument."""
        p, b = self.P, self.b
        if not isinstance(p, float) or not other.has_prox:
            return None
        return partial(_shrunk_prox, p, b, other.prox)

    def _prox_with(self, term: Simple) -> Prox | None:
        """The prox of self + term if P is a number, or if P is a diagonal and the prox acts on each coordinate."""
        if isinstance(self.P, Coupling) or not (isinstance(self.P, float) or isinstance(term, L1Box)):
            return None
        return partial(_shrunk_prox, self.P, self.b, term.prox)

    def _bounds(self, mu: float | None, L: float | None) -> tuple[float, float]:
        if isinstance(self.P, Coupling):
            return eigenvalue_bounds(self.P, mu, L)
        low: Any
        high: Any
        if _is_number(self.P):
            low = high = self.P
        elif is_recording():
            low, high = namespace(self.P).min(self.P), namespace(self.P).max(self.P)
        else:
            low, high = float(namespace(self.P).min(self.P)), float(namespace(self.P).max(self.P))
        return low if mu is None else mu, high if L is None else L


def _is_number(P: Any) -> bool:
    """Whether P is a number; within ``recording()`` it may be a tensor without dimensions."""
    return isinstance(P, float) or not P.shape


def _as_hessian(P: Any) -> float | Array | Coupling:
    if isinstance(P, int | float | np.number):
        return as_nonnegative(P, "P of Quadratic")
    if not issparse(P):
        P = as_float_array(P, "P of Quadratic")
        if P.ndim == 0:
            return as_nonnegative(P, "P of Quadratic")
        if P.ndim == 1:
            if is_recording():
                return P  # type: ignore[no-any-return]
            if P.shape[0] == 0 or bool(namespace(P).any(finite(P, "P of Quadratic") < 0.0)):
                raise ProblemError("P of Quadratic is an empty diagonal or has a negative entry; expected numbers >= 0")
            diagonal: Array = P
            return diagonal
    if len(P.shape) != 2 or P.shape[0] != P.shape[1]:
        raise ProblemError(f"P of Quadratic has shape {tuple(P.shape)}; expected a square matrix, a vector or a number")
    matrix = as_coupling(P, "P of Quadratic")
    if is_recording():
        return matrix
    entries = matrix.matrix()
    skew, size = (
        float(abs(part).max() if issparse(part) else namespace(part).max(abs(part)))
        for part in (entries - entries.T, entries)
    )
    if skew > SYMMETRIC * matrix.space.eps * size:
        raise ProblemError(f"P of Quadratic is not symmetric (it differs from P.T by {skew:.3g}); use (P + P.T)/2")
    return matrix


def _shrunk_prox(p: float | Array, b: float | Array | None, prox: Prox, v: Array, t: float) -> Array:
    """The prox of p/2 |x|^2 + b'x + f, from that of f; if p is a diagonal, f is a sum over coordinates."""
    shrink: Any = 1.0 / (1.0 + t * p)
    return prox(shrink * (v if b is None else v - t * b), shrink * t)
