"""Linear equations E w = e for coefficients: checks, and reduction to independent equations."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import lstsq, qr
from scipy.sparse import issparse

from saddlepoint.ground.arrays import Array
from saddlepoint.ground.definite import smallest_singular_value
from saddlepoint.ground.errors import ProblemError
from saddlepoint.ground.linalg import norm
from saddlepoint.ground.validation import as_float_array, as_vector, finite

EPS = float(np.finfo(np.float64).eps)  # twice the largest relative error of one operation
DEPENDENT = 1e-9  # relative distance to the span of other equations up to which an equation counts as dependent


class Equations(NamedTuple):
    """The independent equations, with rows of length one."""

    E: Array
    e: Array
    lengths: Array  # lengths of these rows as they were given
    kept: Array  # their row numbers in the given E
    given: int  # number of rows of the given E

    @property
    def sigma(self) -> float:
        """A proven lower bound of the smallest singular value of the given rows, divided by their lengths.

        The rows of E are rounded, by half a unit in each entry.
        """
        return max(0.0, smallest_singular_value(self.E) - EPS * math.sqrt(self.kept.size)) if self.kept.size else 1.0

    def nearest(self, w: Array) -> Array:
        """The point nearest to w where the equations hold."""
        return w - lstsq(self.E, self.E @ w - self.e)[0] if self.kept.size else w

    def multipliers(self, y: Array) -> Array:
        """The multipliers of the given equations; zero for those that follow from others."""
        full = np.zeros(self.given)
        full[self.kept] = y / self.lengths
        return full


def read_equations(constraints: Any, features: int) -> Equations:
    """The independent ones of the equations (E, e); None stands for no equations."""
    if constraints is None:
        return Equations(np.zeros((0, features)), np.zeros(0), np.zeros(0), np.arange(0), 0)
    E, e = _as_pair(constraints, features)
    lengths = np.sqrt(np.einsum("ij,ij->i", E, E))
    lengths[lengths == 0.0] = 1.0
    rows, right = E / lengths[:, None], e / lengths
    R, order = qr(rows.T, mode="r", pivoting=True)
    kept = order[: min(R.shape)][np.abs(np.diag(R)) > DEPENDENT]
    found = Equations(rows[kept], right[kept], lengths[kept], kept, len(e))
    w = found.nearest(np.zeros(features))
    if (np.abs(rows @ w - right) > DEPENDENT * (norm(w) + np.abs(right))).any():
        off = E @ lstsq(E, e)[0] - e
        worst = int(np.abs(off).argmax())
        raise ProblemError(
            f"the constraints E w = e contradict each other: no w brings |E w - e| below {norm(off):.3g}, and the w "
            f"that comes closest misses equation {worst} by {abs(off[worst]):.3g}; correct or drop an equation"
        )
    return found


def _as_pair(constraints: Any, features: int) -> tuple[Array, Array]:
    try:
        E, e = constraints
    except (TypeError, ValueError):
        raise ProblemError(f"constraints is a {type(constraints).__name__}; expected a pair (E, e), or None") from None
    E = finite(as_float_array(E.toarray() if issparse(E) else E, "E of constraints"), "E of constraints")
    if E.ndim != 2 or E.shape[0] == 0 or E.shape[1] != features:
        raise ProblemError(
            f"E of constraints has shape {E.shape}; expected a row for each equation and {features} columns, one for "
            "each feature"
        )
    return E.astype(np.float64), as_vector(e, "e of constraints", E.shape[0]).astype(np.float64)
