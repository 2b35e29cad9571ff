"""Linear equations E w = e for coefficients: checks, and reduction to independent equations."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import lstsq, qr
from scipy.sparse import issparse

from saddlepoint.ground.arrays import Array
from saddlepoint.ground.compensated import EPS
from saddlepoint.ground.definite import smallest_singular_value
from saddlepoint.ground.errors import ProblemError
from saddlepoint.ground.linalg import norm
from saddlepoint.ground.validation import as_float_array, as_vector, finite

PRIME = 2**61 - 1  # the modulus of the arithmetic in which equations are examined for dependence
MOST_WORK = 10_000_000  # multiplications that this examination may take
DEPENDENT = 1e-9  # relative distance to the span of other equations up to which an equation counts as dependent


class Equations(NamedTuple):
    """The independent equations, with rows of length one."""

    E: Array
    e: Array
    lengths: Array  # lengths of these rows as they were given
    kept: Array  # their row numbers in the given E
    given: int  # number of rows of the given E
    unsure: tuple[int, ...] = ()  # row numbers that are left out but follow from others only up to ``DEPENDENT``

    @property
    def assumes(self) -> tuple[str, ...]:
        """What a certificate about w assumes of the equations."""
        if not self.unsure:
            return ()
        rows = ", ".join(map(str, self.unsure[:5])) + (", ..." if len(self.unsure) > 5 else "")
        return (
            f"the equations {rows} of E w = e follow from the others: they do so up to a relative error of "
            f"{DEPENDENT:g}, but not exactly",
        )

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
    found = Equations(rows[kept], right[kept], lengths[kept], kept, len(e), _not_dependent(E, e, kept))
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


def _not_dependent(E: Array, e: Array, kept: Array) -> tuple[int, ...]:
    """The row numbers of equations that are not exact combinations of those that are kept.

    It is decided by elimination modulo a prime, which never calls a dependent row independent; the converse would take
    a determinant that is a multiple of the prime. Where that would take too long, all rows that are left out count as
    not dependent.
    """
    others = np.setdiff1d(np.arange(len(e)), kept)
    others = others[(E[others] != 0.0).any(axis=1) | (e[others] != 0.0)]
    if len(kept) ** 2 * E.shape[1] * max(1, len(others)) > MOST_WORK:
        return tuple(others.tolist())
    basis: list[tuple[int, Array]] = []  # a pivot's position, and a row with 1 there
    for i in kept.tolist() if others.size else ():
        row = _reduced(E[i], e[i], basis)
        pivot = int(np.flatnonzero(row)[0]) if row.any() else -1
        if pivot >= 0:
            basis.append((pivot, row * pow(int(row[pivot]), -1, PRIME) % PRIME))
    return tuple(i for i in others.tolist() if _reduced(E[i], e[i], basis).any())


def _reduced(row: Array, right: float, basis: list[tuple[int, Array]]) -> Array:
    """An equation modulo ``PRIME``, minus the multiples of rows of the basis that make its entries at pivots zero."""
    ratios = [float(entry).as_integer_ratio() for entry in (*row.tolist(), right)]
    found = np.array([top * pow(bottom, -1, PRIME) % PRIME for top, bottom in ratios], dtype=object)
    for pivot, other in basis:
        found = (found - int(found[pivot]) * other) % PRIME
    return np.asarray(found)
