r"""Rounding errors of functions and matrices that were computed from data, as a part of the certificate.

A certificate is about a function g and a matrix A. Where an application computes them from the caller's data, they
differ from those that the data define. The residual of the problem that the data define differs from the one that is
computed by at most the error of the gradient of g plus that of the product with A. The wrappers here add both to what
is known of the rounding of gradients and products, so that the certificate is about the data.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, partial
from typing import Any

import numpy as np

from saddlepoint.ground.arrays import Array
from saddlepoint.ground.compensated import EPS, Sum
from saddlepoint.ground.linalg import norm
from saddlepoint.ground.rounding import gamma
from saddlepoint.parts.coupling import Coupling
from saddlepoint.parts.coupling.forwarding import ForwardingCoupling
from saddlepoint.parts.functions.accuracy import CompensatedGradient
from saddlepoint.parts.functions.given_constants import known
from saddlepoint.parts.functions.second_order import proven_L_of
from saddlepoint.parts.functions.smooth import Smooth

UP = 1.0 + 1e-9  # factor that exceeds the relative rounding of the bounds themselves


def with_error(
    f: Smooth, error: Callable[[Array], Array], *, mu: float | None = None, L: float | None = None, growth: float = UP
) -> Smooth:
    """The function f, whose gradient at x differs from that of the function of the data by at most ``error(x)``.

    The result is a plain ``Smooth`` without ``restrict``. A ready-made function, such as ``LeastSquares``, can be made
    anew from its own numbers, for example with another l2, and the new function would lack this error.

    Args:
        f: the function as computed.
        error: x -> bounds on the differences of the entries of the gradients.
        mu, L: constants of the function of the data, if they are not those of f.
        growth: the largest curvature of the function of the data over that of f is at most this.
    """
    found = f.replace(
        mu=known(f.mu) if mu is None else mu,
        L=known(f.L) if L is None else L,
        accuracy=known(f.accuracy),
        rounding=SumOfBounds(f.rounding, error),
        compensated=None if f.compensated is None else CompensatedWithError(f.compensated, error),
        restrict=None,
        trusted=f.trusted,
    )
    found._proven_L = partial(proven_L_of, f, growth)
    return found


class SumOfBounds:
    """The sum of two functions of x that bound errors; the first may be None, which stands for zero."""

    def __init__(self, first: Callable[[Array], Array] | None, second: Callable[[Array], Array]) -> None:
        self.first, self.second = first, second

    def __call__(self, x: Array) -> Array:
        """The bounds at x."""
        return self.second(x) if self.first is None else self.first(x) + self.second(x)


class CompensatedWithError:
    """A gradient in about twice the digits, with a further error."""

    def __init__(self, compensated: CompensatedGradient, error: Callable[[Array], Array]) -> None:
        self.compensated, self.error = compensated, error

    def __call__(self, x: Array) -> tuple[Array, Array, Array]:
        """The gradient as a sum of two vectors, and bounds on its errors."""
        high, low, error = self.compensated(x)
        return high, low, error + self.error(x)


class CouplingWithError(ForwardingCoupling):
    """A matrix A of which each entry differs from that of the data by at most the entry of ``error``.

    Args:
        A: the matrix as computed.
        error: an array or a SciPy sparse array of the shape of A, without negative entries; or an object that knows
            only bounds on the products with it, such as ``ColumnErrors``.
    """

    def __init__(self, A: Coupling, error: Any) -> None:
        super().__init__(A)
        self.error = error

    @cached_property
    def error_norm(self) -> float:
        """A bound on the norm of the error of A."""
        known = getattr(self.error, "norm_of_all", None)
        return UP * (norm(np.asarray(self.error @ np.ones(self.shape[1]))) if known is None else known)

    def rounding_scale(self, y: Array) -> float:
        """The scale of A, and in the same units, which are ``gamma(sum_length)``, a bound on the error of A times y."""
        known, size = getattr(self.error, "norm_of_product", None), np.abs(y)
        off = norm(self.error @ size) if known is None else known(size)
        return self.A.rounding_scale(y) + UP * off / gamma(self.sum_length, EPS)

    def row_lengths(self) -> Array | float:
        """The lengths of the rows of A, and the sums of the rows of the error, which are at least their lengths."""
        lengths: Array = self.A.row_lengths() + UP * (self.error @ np.ones(self.shape[1]))
        return lengths

    def compensated_mul(self, y: Array) -> Sum | None:
        """A y in about twice the digits, with a bound that includes the error of A."""
        product = self.A.compensated_mul(y)
        return None if product is None else product._replace(error=product.error + UP * (self.error @ np.abs(y)))

    def _transpose(self) -> Coupling:
        return CouplingWithError(self.A.T, self.error.T)
