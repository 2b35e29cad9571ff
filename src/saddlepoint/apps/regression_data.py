"""Features and targets as they enter a regression, with bounds on what centring them rounds."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from saddlepoint.apps.centred import Centred
from saddlepoint.apps.data_errors import UP, CouplingWithError, with_error
from saddlepoint.ground.arrays import Array
from saddlepoint.ground.compensated import EPS
from saddlepoint.ground.linalg import inner, norm
from saddlepoint.ground.rounding import gamma
from saddlepoint.parts.coupling import Coupling
from saddlepoint.parts.functions import Quadratic, Smooth


class Data(NamedTuple):
    """Data as they enter a regression.

    Attributes:
        D, t: the features and targets, centred if there is an intercept.
        means, t_mean: what was subtracted, rounded to float64; zero if there is no intercept.
        features, targets: what is known of the rounding of D and t; None if they were not centred.
    """

    D: Coupling
    t: Array
    means: Array
    t_mean: float
    features: Centred | None = None
    targets: Centred | None = None

    def transposed(self) -> Coupling:
        """D', with bounds on its errors."""
        return (
            self.D.T
            if self.features is None
            else CouplingWithError(self.D.T, ColumnErrors(self.features.errors, self.D))
        )

    def linear(self) -> Smooth:
        """t'y, with bounds on the errors of t."""
        h = Quadratic(0.0, self.t)
        if self.targets is None:
            return h
        off = UP * float(self.targets.errors[0])
        return with_error(h, lambda y: np.full(y.shape, off))

    def formed_risk(self, risk: Smooth) -> Smooth:
        """The risk of D and t, with bounds that refer to the exact means.

        The gradient is D's/N for slopes s of r = D x - t, where |s| <= |r|, and slopes change no more than r does. If
        the columns of D have errors of the norms e_j, and t has one of norm e, then r has an error of at most
        e'|x| + e, and entry j of the gradient one of (e_j |r| + |D_j| (e'|x| + e))/N.
        """
        assert self.features is not None
        assert self.targets is not None
        N, n = self.D.shape
        sizes, errors = self.features.sizes, self.features.errors
        t_size, t_error = float(self.targets.sizes[0]), float(self.targets.errors[0])
        rows = columns = errors
        if risk.rounding is None:  # D is not one matrix: its products are bounded here, too
            rows, columns = errors + gamma(n + 8, EPS) * sizes, errors + gamma(N + 8, EPS) * sizes
            t_error = t_error + EPS * t_size

        def error(x: Array) -> Array:
            size = np.abs(x)
            r = t_size + inner(sizes, size)
            return np.asarray((UP / N) * (r * columns + (inner(rows, size) + t_error) * sizes))

        if risk.rounding is None:
            risk = risk.replace(accuracy=0.0, rounding=lambda x: 4.0 * EPS * np.abs(risk.grad(x)), trusted=True)
        # The singular values of D are wrong by at most the Frobenius norm of its error.
        least = max(math.sqrt(N * risk.mu) * (1.0 - 8.0 * EPS) - UP * norm(errors), 0.0)
        return with_error(risk, error, mu=least * least / N * (1.0 - 8.0 * EPS))


class ColumnErrors:
    """Bounds on the entries of an unknown error E of a matrix D, of which only the norms of the columns are bounded.

    Args:
        errors: the bounds on the norms of the columns of E.
        D: the matrix that has the error.
        transposed: whether this object stands for E', with a row for each column of D, or for E.
    """

    def __init__(self, errors: Array, D: Coupling, transposed: bool = True) -> None:
        self.errors, self.D, self.transposed = errors, D, transposed

    @property
    def T(self) -> ColumnErrors:
        """The bounds on the entries of the transpose."""
        return ColumnErrors(self.errors, self.D, not self.transposed)

    def __matmul__(self, v: Array) -> Array:
        """Bounds on the entries of the product with a vector whose entries are at most those of v."""
        if self.transposed:
            return np.asarray(self.errors * norm(v))
        return np.full(self.D.shape[0], inner(self.errors, v))
