"""The numbers of a linear or quadratic program, checked."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse

from saddlepoint.apps.programs.curvature import curvature
from saddlepoint.ground.arrays import Array
from saddlepoint.ground.errors import ProblemError
from saddlepoint.ground.intervals import Interval, exactly, plus, product, times, total
from saddlepoint.ground.validation import as_float_array, finite, in_floats

DENSE = 0.3  # share of entries that are not zero from which a matrix is kept as a dense one
FEW = 10_000  # entries up to which a matrix that was given as a dense one is kept as one, whatever the share


@dataclass(frozen=True, eq=False)
class Data:
    """min 1/2 x'Px + q'x subject to lower <= A x <= upper and x_lower <= x <= x_upper.

    P and A are NumPy matrices or SciPy sparse arrays in rows; P is None for a linear program. Ends may be infinite.
    """

    P: Any
    q: Array
    A: Any
    lower: Array
    upper: Array
    x_lower: Array
    x_upper: Array

    @property
    def shape(self) -> tuple[int, int]:
        """The number of rows, and of variables."""
        return self.lower.size, self.q.size

    @cached_property
    def At(self) -> Any:
        """A', in rows."""
        return csr_array(self.A.T) if issparse(self.A) else np.ascontiguousarray(self.A.T)

    @cached_property
    def rows(self) -> csr_array:
        """A as a sparse array in rows."""
        return csr_array(self.A)

    @cached_property
    def curvature(self) -> Array:
        """d such that P - diag(d) is proven to be positive semidefinite."""
        return np.zeros(self.q.size) if self.P is None else curvature(self.P)

    def gradient(self, x: Interval | Array) -> Interval:
        """P x + q."""
        q = exactly(self.q)
        return q if self.P is None else plus(product(self.P, x), q)

    def value(self, x: Interval) -> tuple[float, float]:
        """Bounds on the objective over all points of an interval."""
        slope = exactly(self.q)
        if self.P is not None:
            half = product(self.P, x)
            slope = plus(slope, Interval(0.5 * half.lo, 0.5 * half.hi))
        return total(times(slope, x))

    def estimate(self, x: Array) -> float:
        """The objective at x, as it is computed."""
        return float(self.q @ x + (0.0 if self.P is None else 0.5 * (x @ (self.P @ x))))

    def violation(self, x: Array) -> float:
        """A proven upper bound of the largest violation of a row or of a bound at x; 0 only if there is none."""
        if not np.isfinite(x).all():
            return math.inf
        inside = product(self.A, x)
        parts = []
        with np.errstate(all="ignore"):
            for lo, v, hi in (
                (self.lower, inside, self.upper),
                (self.x_lower, exactly(x), self.x_upper),
            ):
                below, above = np.nextafter(lo - v.lo, np.inf), np.nextafter(v.hi - hi, np.inf)
                parts += [np.where(v.lo >= lo, 0.0, below), np.where(v.hi <= hi, 0.0, above)]
        return float(np.max(np.concatenate(parts), initial=0.0))

    def relaxed(self, by: float) -> Data:
        """The program whose rows and bounds may be violated by so much, their ends rounded outwards."""
        lower, x_lower = (np.nextafter(v - by, -np.inf) for v in (self.lower, self.x_lower))
        upper, x_upper = (np.nextafter(v + by, np.inf) for v in (self.upper, self.x_upper))
        return Data(self.P, self.q, self.A, lower, upper, x_lower, x_upper)


def read_program(P: Any, q: Any, A: Any, lower: Any, upper: Any, x_lower: Any, x_upper: Any) -> Data:
    """The checked data; a ProblemError says what is wrong."""
    n = _size(P, q, A)
    P = _as_matrix(P, "P", (n, n))
    if P is not None and abs(P).max() == 0.0:
        P = None
    if P is not None:
        skew = (P != P.T).nnz > 0 if issparse(P) else not np.array_equal(P, P.T)
        if skew:
            raise ProblemError("P is not symmetric; expected a symmetric matrix: give (P + P.T)/2")
    A = _as_matrix(A, "A", (None, n))
    A = np.zeros((0, n)) if A is None else A
    m = A.shape[0]
    q = np.zeros(n) if q is None else finite(_ends(q, "q", n, 0.0), "q")
    ends = (
        _ends(lower, "lower", m, -math.inf),
        _ends(upper, "upper", m, math.inf),
        _ends(x_lower, "x_lower", n, -math.inf),
        _ends(x_upper, "x_upper", n, math.inf),
    )
    for low, high, names in ((*ends[:2], ("lower", "upper")), (*ends[2:], ("x_lower", "x_upper"))):
        if (low == math.inf).any() or (high == -math.inf).any():
            raise ProblemError(
                f"{names[0]} holds inf or {names[1]} holds -inf, between which there is no number; expected numbers, "
                "-inf for no lower end, and inf for no upper one"
            )
        if (low > high).any():
            i = int(np.argmax(low > high))
            raise ProblemError(
                f"{names[0]} = {low[i]:g} and {names[1]} = {high[i]:g} at index {i}; expected {names[0]} <= "
                f"{names[1]}: no number is between them"
            )
    data = Data(P, q, A, *ends)
    data.curvature  # noqa: B018 - raises a ProblemError if P is not positive semidefinite
    return data


def _size(P: Any, q: Any, A: Any) -> int:
    """The number of variables."""
    for name, given, axis in (("q", q, 0), ("A", A, 1), ("P", P, 0)):
        if given is not None:
            shape = np.shape(given) if not hasattr(given, "shape") else given.shape
            if len(shape) > axis and shape[axis] > 0:
                return int(shape[axis])
            kind = "a vector" if name == "q" else "a matrix"
            raise ProblemError(f"{name} has the shape {tuple(shape)}; expected {kind}, for one variable at least")
    raise ProblemError("P, q and A are all missing; expected one of them at least")


def _as_matrix(value: Any, name: str, shape: tuple[int | None, int]) -> Any:
    if value is None:
        return None
    if issparse(value):
        if value.dtype.kind not in "fiub":
            raise ProblemError(f"{name} has dtype {value.dtype}; expected real numbers")
        as_float_array(value.tocoo().data, name)  # refuses integers that float64 would round
        matrix = csr_array(in_floats(value), dtype=np.float64, copy=True)
        matrix.sum_duplicates()
        matrix.eliminate_zeros()
        finite(matrix.data, name)
    else:
        matrix = finite(as_float_array(value, name), name)
        if not isinstance(matrix, np.ndarray):
            raise ProblemError(f"{name} is a {type(value).__name__}; expected a NumPy array or a SciPy sparse array")
        matrix = matrix.astype(np.float64)
    if matrix.ndim != 2 or matrix.shape[1] != shape[1] or shape[0] not in (None, matrix.shape[0]):
        rows = "some rows" if shape[0] is None else str(shape[0])
        raise ProblemError(f"{name} has the shape {matrix.shape}; expected {rows} x {shape[1]}")
    if matrix.size == 0:
        return np.zeros(matrix.shape)
    filled = matrix.nnz if issparse(matrix) else np.count_nonzero(matrix)
    full = filled > DENSE * matrix.shape[0] * matrix.shape[1]
    if issparse(matrix):
        return matrix.toarray() if full else matrix
    return matrix if full or matrix.size < FEW else csr_array(matrix)


def _ends(value: Any, name: str, size: int, missing: float) -> Array:
    vector = as_float_array(missing if value is None else value, name)
    if vector.ndim > 1 or vector.shape not in ((), (size,)):
        raise ProblemError(f"{name} has the shape {vector.shape}; expected {size} entries, or one number for all")
    if np.isnan(vector).any():
        raise ProblemError(f"{name} holds a NaN; expected numbers, or inf and -inf where there is no bound")
    return np.broadcast_to(vector, (size,)).astype(np.float64)
