"""The payoffs of a game, by rows and by columns, and what bounds the rounding of products with them."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from scipy.sparse import csr_array, issparse

from saddlepoint.theory.exploitability import Sizes


class Payoffs:
    """A matrix for many products with it and with its transpose; it is read-only from then on.

    Args:
        matrix: the payoffs in float64, dense or sparse; an array of its own.
    """

    def __init__(self, matrix: Any) -> None:
        if issparse(matrix):
            matrix.sum_duplicates()
            matrix.data.flags.writeable = False
        else:
            matrix.flags.writeable = False
        self.matrix = matrix

    @cached_property
    def transposed(self) -> Any:
        """The transpose, in rows: products with sparse columns take several times as long."""
        return csr_array(self.matrix.T) if issparse(self.matrix) else self.matrix.T

    @cached_property
    def sizes(self) -> tuple[Sizes, Sizes]:
        """What bounds the rounding of products with the matrix and with its transpose."""
        return Sizes.of(self.matrix), Sizes.of(self.transposed)
