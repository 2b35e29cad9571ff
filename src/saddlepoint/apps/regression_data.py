"""Features and targets as they enter a regression, with bounds on what centring them rounds."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from saddlepoint.apps.centred import RELATIVE, Centred
from saddlepoint.apps.data_errors import UP, CouplingWithError, with_error
from saddlepoint.ground.arrays import Array, dense
from saddlepoint.ground.compensated import EPS
from saddlepoint.ground.linalg import inner, norm
from saddlepoint.ground.rounding import gamma
from saddlepoint.parts.coupling import Coupling, DenseCoupling
from saddlepoint.parts.functions import Quadratic, Smooth
from saddlepoint.parts.functions.second_order import steepness


class Data(NamedTuple):
    """Data as they enter a regression.

    Attributes:
        D, t: the features and targets, centred if there is an intercept.
        means, t_mean: what was subtracted, rounded to float64; zero if there is no intercept.
        features, targets: what is known of the rounding of D and t; None if they were not centred.
        given: the features and targets as the caller gave them; None if they were not centred.
    """

    D: Coupling
    t: Array
    means: Array
    t_mean: float
    features: Centred | None = None
    targets: Centred | None = None
    given: tuple[Any, Array] | None = None

    def transposed(self) -> Coupling:
        """D', with bounds on its errors."""
        return (
            self.D.T
            if self.features is None
            else CouplingWithError(self.D.T, ColumnErrors(self.features, self.D, self.given))
        )

    def linear(self) -> Smooth:
        """t'y, with bounds on the errors of t."""
        h = Quadratic(0.0, self.t)
        if self.targets is None:
            return h
        off = UP * (RELATIVE * np.abs(self.t) + self.targets.shifts[0])
        return with_error(h, lambda y: off)

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
        least_L = min(risk.L, steepness(risk))
        growth = UP * (1.0 + UP * norm(errors) / math.sqrt(N * least_L)) ** 2 if least_L > 0.0 else math.inf
        return with_error(risk, error, mu=least * least / N * (1.0 - 8.0 * EPS), growth=growth)


class ColumnErrors:
    """Bounds on the products with an unknown error E of a matrix D, of which only some sizes are bounded.

    Args:
        of: what is known of E.
        D: the matrix that has the error.
        given: the features and targets before they were centred.
        transposed: whether this object stands for E', with a row for each column of D, or for E.
    """

    def __init__(self, of: Centred, D: Coupling, given: tuple[Any, Array] | None, transposed: bool = True) -> None:
        self.of, self.errors, self.D, self.given, self.transposed = of, of.errors, D, given, transposed

    @property
    def T(self) -> ColumnErrors:
        """The bounds for the transpose."""
        return ColumnErrors(self.of, self.D, self.given, not self.transposed)

    def __matmul__(self, v: Array) -> Array:
        """Bounds on the entries of the product with a vector whose entries are at most those of v."""
        if self.transposed:
            return np.asarray(self.errors * norm(v))
        by_columns = np.full(self.D.shape[0], inner(self.errors, v))
        if not isinstance(self.D, DenseCoupling):
            return by_columns
        by_rows = RELATIVE * norm(v) * self.D.row_lengths() + inner(self.of.shifts, v)
        return np.asarray(np.minimum(by_rows, by_columns))

    def norm_of_product(self, v: Array) -> float:
        """A bound on the norm of the product with such a vector."""
        return norm(self.errors) * norm(v) if self.transposed else inner(self.errors, v)

    @property
    def norm_of_all(self) -> float:
        """A bound on the norm of the matrix: its Frobenius norm."""
        return norm(self.errors)

    def exact_rows(self, samples: Array, weights: Array) -> Array | None:
        """A matrix whose rows depend on each other exactly as those samples of the centred data with their targets do.

        Where a combination of rows (x_i, 1, t_i) is zero, the means drop out of the same combination of centred rows.

        Args:
            samples: the numbers of the samples.
            weights: the numbers of the features; the last one is that of the constant.
        """
        if self.given is None:
            return None
        X, t = self.given
        features = weights[weights < X.shape[1]]
        chosen = X[samples][:, features]
        return np.column_stack((dense(chosen), np.ones(samples.size), t[samples]))
