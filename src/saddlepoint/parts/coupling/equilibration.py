r"""Diagonal scalings R A C of a matrix whose rows and columns then have about the same size.

Ruiz' iteration divides every row and column by the root of its largest entry until all largest entries are 1. Then one
step of Pock and Chambolle divides them by the roots of their sums. At the end R and C are divided by their geometric
means, so that the size of A stays what it was, and rounded to powers of two, so that multiplying by them causes no
rounding.

References: D. Ruiz, A scaling algorithm to equilibrate both rows and columns norms in matrices, RAL-TR-2001-034; T.
Pock and A. Chambolle, Diagonal preconditioning for first order primal-dual algorithms in convex optimization, ICCV
2011; D. Applegate et al., Practical large-scale linear programming using primal-dual hybrid gradient, NeurIPS 2021.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array, diags_array, issparse

from saddlepoint.ground.arrays import Array, namespace, space_of, to_host
from saddlepoint.parts.coupling.base import Coupling, Norm
from saddlepoint.parts.coupling.forwarding import ForwardingCoupling

ROUNDS = 10  # steps of Ruiz' iteration
LIMIT = 40.0  # scales are between 2^-40 and 2^40


class Scales(NamedTuple):
    """The scales of the rows and of the columns, as vectors of NumPy."""

    rows: Array
    columns: Array


def original(A: Coupling) -> Coupling:
    """The coupling inside all those that only forward its products, count them, or multiply them by a number."""
    while isinstance(A, ForwardingCoupling):
        A = A.A
    return A


def has_entries(A: Coupling) -> bool:
    """Whether the entries of A are in memory, so that ``equilibrated`` can read them."""
    A = original(A)
    return A.has_entries and not A.space.is_sharded and hasattr(getattr(A, "A", None), "shape")


def equilibrated(matrix: Any, same_rows: bool = False, same_columns: bool = False) -> Scales:
    """Scales for a matrix: an array of any library, or a sparse array.

    Args:
        matrix: the entries.
        same_rows, same_columns: whether all rows, or all columns, are to have one scale.
    """
    size = abs(csr_array(matrix)) if issparse(matrix) else namespace(matrix).abs(matrix)
    scales = Scales(np.ones(matrix.shape[0]), np.ones(matrix.shape[1]))
    for k in range(ROUNDS + 1):
        rows, columns = _step(size, scales, _sums if k == ROUNDS else _largest)
        scales = Scales(scales.rows if same_rows else rows, scales.columns if same_columns else columns)
    return Scales(_rounded(scales.rows), _rounded(scales.columns))


def ruiz(size: Any) -> Scales:
    """Scales that bring the largest entry of every row and column near 1, by Ruiz' iteration alone, without rounding.

    Args:
        size: the absolute values of the entries, as an array or a sparse array.
    """
    scales = Scales(np.ones(size.shape[0]), np.ones(size.shape[1]))
    for _ in range(ROUNDS):
        scales = _step(size, scales, _largest)
    return scales


def _step(size: Any, scales: Scales, measure: Callable[[Any, int], Array]) -> Scales:
    """The scales divided by the roots of what is measured of the scaled rows and columns."""
    scaled = _scaled(size, *scales)
    rows, columns = (np.sqrt(np.where(v > 0.0, v, 1.0)) for v in (measure(scaled, 1), measure(scaled, 0)))
    return Scales(scales.rows / rows, scales.columns / columns)


def _rounded(scales: Array) -> Array:
    """The scales over their geometric mean, as powers of two; with one scale for all, this is 1."""
    bits = np.log2(scales)
    return np.asarray(np.exp2(np.round(np.clip(bits - bits.mean(), -LIMIT, LIMIT))))


def _largest(scaled: Any, axis: int) -> Array:
    """The largest entry of every row (axis 1) or column (axis 0)."""
    return _vector(scaled.max(axis=axis) if issparse(scaled) else namespace(scaled).max(scaled, axis=axis))


def _sums(scaled: Any, axis: int) -> Array:
    """The sum of every row (axis 1) or column (axis 0)."""
    return _vector(scaled.sum(axis=axis) if issparse(scaled) else namespace(scaled).sum(scaled, axis=axis))


def _scaled(size: Any, r: Array, c: Array) -> Any:
    if issparse(size):
        return (diags_array(r) @ size @ diags_array(c)).tocsr()
    if isinstance(size, np.ndarray):
        return r[:, None] * size * c
    space = space_of(size)
    return space.cast(r)[:, None] * size * space.cast(c)[None, :]


def _vector(v: Any) -> Array:
    return np.asarray(v.toarray() if issparse(v) else to_host(v), dtype=np.float64).ravel()


class DiagonalCoupling(ForwardingCoupling):
    """The coupling R A C with diagonal R and C, whose products are those of A.

    Args:
        A: the coupling.
        rows, columns: the diagonals, in the library of the vectors x and y.
        norm: bounds on the norm of R A C.
    """

    def __init__(self, A: Coupling, rows: Array, columns: Array, norm: Norm) -> None:
        super().__init__(A)
        self.rows, self.columns, self._norm = rows, columns, norm
        self.fused = self.fused_compiled = False

    @property
    def norm_estimate(self) -> Norm:
        """The bounds that were given."""
        return self._norm

    def mul(self, y: Array) -> Array:
        """The product R A C y."""
        return self.rows * self.A.mul(self.columns * y)

    def tmul(self, x: Array) -> Array:
        """The product C A' R x."""
        return self.columns * self.A.tmul(self.rows * x)

    def both(self, x: Array, y: Array) -> tuple[Array, Array]:
        """The products (R A C y, C A' R x)."""
        Ay, Atx = self.A.both(self.rows * x, self.columns * y)
        return self.rows * Ay, self.columns * Atx

    def through(self, y: Array, s: float = 1.0, e: Array | None = None) -> tuple[Array, Array]:
        """(t, (R A C)'(s t + e)) with t = R A C y, by two products."""
        return Coupling.through(self, y, s, e)

    def matrix(self) -> Any:
        """The matrix R A C."""
        A = self.A.matrix()
        return (diags_array(self.rows) @ A @ diags_array(self.columns)) if issparse(A) else self._dense(A)

    def _dense(self, A: Any) -> Any:
        return self.rows[:, None] * A * self.columns[None, :]

    def gram(self) -> Any:
        """The matrix C A' R R A C."""
        matrix = self.matrix()
        return matrix.T @ matrix

    def compensated_mul(self, y: Array) -> None:
        """None: certificates are taken in the problem's own variables."""

    def rounding_scale(self, y: Array) -> float:
        """A bound by the norm."""
        return Coupling.rounding_scale(self, y)

    def row_lengths(self) -> Array | float:
        """A bound by the norm."""
        return self.norm

    def _transpose(self) -> Coupling:
        return DiagonalCoupling(self.A.T, self.columns, self.rows, self._norm)
