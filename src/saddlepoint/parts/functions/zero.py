"""The function that is zero everywhere: the smooth part of a simple function that stands alone."""

from __future__ import annotations

from typing import Any

import numpy as np

from saddlepoint.ground.arrays import Array
from saddlepoint.ground.diagonal import diagonal_matrix
from saddlepoint.parts.functions.smooth import Smooth


class Zero(Smooth):
    """The function 0, whose gradient is exact.

    Example:
        >>> from saddlepoint.parts.functions.zero import Zero
        >>> Zero()
        Zero(mu=0, L=0)
    """

    def __init__(self) -> None:
        super().__init__(
            _zeros,
            mu=0.0,
            L=0.0,
            value=_zero,
            prox=_same,
            hessian=_zero_matrix,
            quadratic=True,
            hessian_lipschitz=0.0,
            second_order=_model,
            trusted=True,
            accuracy=0.0,
            rounding=_zeros,
        )

    @property
    def proven_L(self) -> float:
        """The smoothness, 0."""
        return 0.0


def _zeros(x: Array) -> Array:
    """The gradient, and the bounds on its errors."""
    return 0.0 * x


def _model(x: Array) -> Zero:
    return Zero()


def _zero(x: Array) -> float:
    return 0.0


def _same(v: Array, t: Any) -> Array:
    return v


def _zero_matrix(x: Array) -> Any:
    """The Hessian."""
    return diagonal_matrix(np.zeros(int(x.shape[0])))
