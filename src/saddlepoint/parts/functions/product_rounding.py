"""Bounds on the rounding errors of products D x and P x + b, entry by entry.

The computed product differs from D x by at most gamma |D| |x|, in any order of summation, where gamma is that of the
longest row (N. J. Higham, Accuracy and Stability of Numerical Algorithms, 2002, section 3.1). An ``AbsoluteMatrix``
bounds |D| w for vectors w without negative entries.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from saddlepoint.ground.arrays import Array, Space, concat, eps_of, is_array, namespace, smallest_of
from saddlepoint.ground.elementwise import choose
from saddlepoint.ground.jax_program import outside_of_programs
from saddlepoint.ground.linalg import norm, norms
from saddlepoint.ground.rounding import gamma, ones_like, underflow
from saddlepoint.parts.coupling import ArrayCoupling, Coupling, DenseCoupling, SparseCoupling, StreamedCoupling
from saddlepoint.parts.coupling.transpose import TransposeByProducts

ENTRIES = 1 << 16, 1 << 24  # entries of D that are copied at a time: on NumPy, in another library
SMALL = 1 << 14  # most entries of a NumPy array D of which |D| is kept
LARGE = 1 << 22  # entries of a NumPy array D from which the norms of its rows and columns are to be enough

HALF = 0.5625  # one half, enlarged so that it covers the rounding of a bound that is multiplied by it
NO_UNDERFLOW = 1e-30  # sums of squares above it, of numbers up to 1, have lost no digits to underflow, also in float32


class AbsoluteMatrix(ABC):
    """The matrix |D|, for bounds on products with it; D may be block-diagonal.

    Attributes:
        blocks: the number of blocks.
        length: the most entries of a row.
    """

    blocks = 1
    length: int

    @abstractmethod
    def times(self, w: Array) -> Array:
        """Bounds on the entries of |D| w, up to rounding, for a w without negative entries."""

    def errors(self, x: Array, e: Array | None = None, more: int = 0) -> Array:
        """Bounds on the errors of the entries of D x, as computed in the dtype of x.

        Args:
            x: the vector.
            e: bounds on the errors of its entries, if it has any.
            more: additions that follow.
        """
        xp, least = namespace(x), smallest_of(x)
        w = xp.abs(x)
        slack = gamma(self.length + 1 + more, eps_of(x))
        # The factor allows for the rounding of the bound itself.
        terms = (1.0 + 2.0 * slack) * self.times(slack * w if e is None else slack * w + e)
        # Underflow can change each term, and the bound too; other libraries may take subnormal operands for zero.
        if self.blocks == 1 and isinstance(x, np.ndarray):
            return terms + (self.length + 8.0) * least if w.max() > 0.0 else terms
        lost = (self.length + 8.0) * least + 0.0 * terms
        top = xp.max(xp.reshape(w, (self.blocks, -1)), axis=1, keepdims=True)
        rows = xp.reshape(lost, (self.blocks, -1))
        if not isinstance(x, np.ndarray):
            rows = rows + least * (self.length * top + xp.reshape(self.times(ones_like(w)), (self.blocks, -1)))
        lost = xp.reshape(choose(top + 0.0 * rows > 0.0, rows, 0.0 * rows), (-1,))
        bound: Array = terms + lost
        return bound


class AbsoluteArray(AbsoluteMatrix):
    """|D| of an array, or of a stack of arrays that are the blocks.

    With the largest entry c_j of each column, an entry of |D| w is a product of a row r of |D|/c with v = c w. It is at
    most |r|_2 |v|_2, |r|_1 |v|_oo and |r|_oo |v|_1 (Hoelder), so that D is read once, for the sizes of these rows.

    Args:
        A: the array.
        space: its space.
        by_columns: True for the transpose of a matrix A.
    """

    def __init__(self, A: Any, space: Space, by_columns: bool = False) -> None:
        self.blocks = int(A.shape[0]) if len(A.shape) == 3 else 1
        self.length = int(A.shape[0 if by_columns else -1])
        self._A, self._space, self._axis = A, space, 0 if by_columns else -1
        found = self._sizes_by_columns() if self._has_long_columns() else self._sizes_by_rows()
        self.columns, squares, self.one, self.most = (space.xp.reshape(each, (self.blocks, -1)) for each in found)
        # Where squares have lost digits to underflow, the largest entry of the row gives a bound.
        self.two = choose(squares > NO_UNDERFLOW, space.xp.sqrt(squares), math.sqrt(self.length) * self.most)
        del self._A

    def _has_long_columns(self) -> bool:
        """Whether the columns of D are contiguous in memory (NumPy); reading rows would be several times slower."""
        order = "F" if self._axis == -1 else "C"
        return self._space.is_numpy and self._A.ndim == 2 and bool(self._A.flags[f"{order}_CONTIGUOUS"])

    def _sizes_by_columns(self) -> tuple[Array, Array, Array, Array]:
        """The largest entry of each column of D, and of each scaled row the square of its length, sum and maximum."""
        D = self._A if self._axis == -1 else self._A.T
        rows, columns = D.shape
        largest, squares, one, most = np.zeros(columns), np.zeros(rows), np.zeros(rows), np.zeros(rows)
        step = max(1, ENTRIES[0] // max(1, rows))
        for start in range(0, columns, step):
            part = np.abs(D[:, start : start + step], dtype=np.float64)
            top = part.max(axis=0, initial=0.0)
            largest[start : start + step] = top
            part /= np.where(top > 0.0, top, 1.0)
            one += part.sum(axis=1)
            np.maximum(most, part.max(axis=1), out=most)
            part *= part
            squares += part.sum(axis=1)
        return largest, squares, one, most

    def _sizes_by_rows(self) -> tuple[Array, Array, Array, Array]:
        """The numbers of ``_sizes_by_columns``, from some rows of D at a time, which are read twice."""
        A, xp = self._A, self._space.xp
        tops = [xp.max(part, axis=-1 if self._axis == 0 else -2, keepdims=True) for part, _ in self._parts()]
        if len(A.shape) == 3:
            largest = _joined(xp, tops)
        else:
            largest = tops[0]
            for top in tops[1:]:
                largest = choose(top > largest, top, largest)
        scale = choose(largest > 0.0, largest, 0.0 * largest + 1.0)
        sizes = []
        for part, where in self._parts():
            scaled, axis = part / (scale[where, ...] if len(A.shape) == 3 else scale), self._axis
            sizes.append((xp.sum(scaled * scaled, axis=axis), xp.sum(scaled, axis=axis), xp.max(scaled, axis=axis)))
        squares, one, most = (_joined(xp, list(found)) for found in zip(*sizes, strict=True))
        return largest, squares, one, most

    def _parts(self) -> Any:
        """|D| in float64, some rows (or blocks) at a time, and which they are."""
        A, space, along = self._A, self._space, 1 if self._axis == 0 else 0
        count = int(A.shape[along])
        step = max(1, ENTRIES[not space.is_numpy] * count // max(1, math.prod(map(int, A.shape))))
        for start in range(0, count, step):
            where = slice(start, min(start + step, count))
            part = A[:, where] if along else A[where, ...]
            yield space.xp.abs(space.wide.cast(part)), where

    def times(self, w: Array) -> Array:
        """Bounds on the entries of |D| w, up to rounding."""
        xp = namespace(w)
        v = self.columns * xp.reshape(w, (self.blocks, -1))
        bound = self.two * norms(v, 1)[:, None]
        bound = _smaller(bound, self.one * xp.max(v, axis=1, keepdims=True))
        bound = _smaller(bound, self.most * xp.sum(v, axis=1, keepdims=True))
        flat: Array = xp.reshape(bound, (-1,))
        return flat


class AbsoluteSmall(AbsoluteMatrix):
    """|D| of a small NumPy array, or of a small stack of arrays that are the blocks; it is kept as a matrix."""

    def __init__(self, A: Array) -> None:
        self.blocks = int(A.shape[0]) if A.ndim == 3 else 1
        self.length = int(A.shape[-1])
        self.A = np.abs(A, dtype=np.float64)

    def times(self, w: Array) -> Array:
        """The product |D| w, as computed."""
        if self.A.ndim == 2:
            return self.A @ w
        return np.asarray(self.A @ w.reshape(self.blocks, -1, 1)).reshape(-1)


class AbsoluteSparse(AbsoluteMatrix):
    """|D| of a SciPy sparse array in compressed rows or columns, whose arrays are only read."""

    def __init__(self, A: Any) -> None:
        self.A = A
        counts = np.bincount(A.indices, minlength=A.shape[0]) if A.format == "csc" else np.diff(A.indptr)
        self.length = int(counts.max(initial=0))

    def times(self, w: Array) -> Array:
        """The product |D| w, as computed."""
        A = self.A
        return np.asarray(type(A)((np.abs(A.data), A.indices, A.indptr), shape=A.shape) @ w)


class AbsoluteByNorms(AbsoluteMatrix):
    """|D| of which the norms of the rows and of the columns are known."""

    def __init__(self, rows: Array, columns: Array) -> None:
        self.rows, self.columns, self.length = rows, columns, columns.shape[0]

    def times(self, w: Array) -> Array:
        """At most |r|_2 |w|_2 for a row r, and at most the sum of w_j times the norms of the columns."""
        bound: Array = _smaller(self.rows * norm(w), 0.0 * self.rows + np.sum(self.columns * w))
        return bound


def is_bounded(D: Any) -> bool:
    """Whether products with D can be bounded: D is None, numbers, or a coupling whose entries can be read."""
    if isinstance(D, TransposeByProducts):
        return isinstance(D.of, ArrayCoupling | StreamedCoupling)
    known = isinstance(D, DenseCoupling | SparseCoupling | ArrayCoupling | StreamedCoupling)
    return not isinstance(D, Coupling) or known or _is_stack(D)


def absolute(D: Coupling) -> AbsoluteMatrix:
    """|D| of a coupling for which ``is_bounded`` is true; the coupling keeps it for the next call."""
    kept: dict[str, Any] = D.__dict__
    if "_absolute" not in kept:
        with outside_of_programs():
            kept["_absolute"] = _absolute(D)
    found: AbsoluteMatrix = kept["_absolute"]
    return found


def _absolute(D: Any) -> AbsoluteMatrix:
    of: Any = getattr(D, "of", None)
    if isinstance(D, SparseCoupling):
        return AbsoluteSparse(D.A)
    if isinstance(D, StreamedCoupling):
        return AbsoluteByNorms(D.lengths.rows, D.lengths.columns)
    if isinstance(of, StreamedCoupling):
        return AbsoluteByNorms(of.lengths.columns, of.lengths.rows)
    if of is None and isinstance(D.A, np.ndarray) and D.A.size <= SMALL:
        return AbsoluteSmall(D.A)
    if isinstance(D, DenseCoupling) and D.A.size >= LARGE:
        # Sharper bounds would take longer than a product in about twice the digits, which has an error of its own.
        return AbsoluteByNorms(np.asarray(D.row_lengths()), np.asarray(D.T.row_lengths()))
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        return AbsoluteArray(D.A, D.space) if of is None else AbsoluteArray(of.A, of.space, by_columns=True)


def _is_stack(D: Any) -> bool:
    """Whether D is a block-diagonal matrix whose blocks are an array of three dimensions."""
    A: Any = getattr(D, "A", None)
    return is_array(A) and len(A.shape) == 3


def _joined(xp: Any, parts: list[Array]) -> Array:
    return parts[0] if len(parts) == 1 else concat(parts) if len(parts[0].shape) == 1 else xp.concat(parts, axis=0)


def _smaller(a: Array, b: Array) -> Array:
    """The smaller one of two bounds; one that is NaN, such as 0 times infinity, does not count."""
    return choose((a <= b) | (b != b), a, b)


# -- products with numbers ---------------------------------------------------------------------------------------------


def scaled_rounding(P: float | Array, b: float | Array | None, x: Array) -> Array:
    """Bounds on the errors of the entries of P x + b, for a number P or one number for each entry."""
    xp, eps, Px = namespace(x), eps_of(x), P * x
    bound = 2.0 * eps * xp.abs(Px) + underflow(x)
    sum_: Array = bound if b is None else bound + eps * xp.abs(Px + b) + number_error(b, eps)
    return sum_


def number_error(b: float | Array, eps: float) -> float:
    """A bound on the error of a number that is rounded to the dtype of a vector; 0.0 if b is a vector itself."""
    return eps * abs(b) if isinstance(b, float) else 0.0


def ridge_rounding(p: Array, l2: float | Array, x: Array) -> Array:
    """Bounds on the errors of the entries of p + l2 x beyond those of p: l2, the product and the sum are rounded."""
    xp, eps, q = namespace(x), eps_of(x), l2 * x
    bound: Array = eps * (2.0 * xp.abs(q) + xp.abs(p + q)) + underflow(x)
    return bound
