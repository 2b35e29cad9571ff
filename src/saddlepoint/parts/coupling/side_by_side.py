"""Several matrices side by side as one: [A_1, A_2, ...]."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.sparse import csr_array, hstack

from saddlepoint.ground.arrays import Array, Space, common_space, concat, namespace
from saddlepoint.ground.errors import ProblemError
from saddlepoint.parts.coupling import as_coupling
from saddlepoint.parts.coupling.array import ArrayCoupling
from saddlepoint.parts.coupling.base import Coupling
from saddlepoint.parts.coupling.dense import DenseCoupling
from saddlepoint.parts.coupling.recorded import RecordedCoupling
from saddlepoint.parts.coupling.sparse import SparseCoupling
from saddlepoint.parts.coupling.transpose import TransposeByProducts


def side_by_side(parts: Sequence[Any]) -> tuple[Coupling, list[int]]:
    """The matrix [A_1, A_2, ...] of matrices with equally many rows, and the numbers of their columns.

    Example:
        >>> import numpy as np
        >>> from saddlepoint.parts.coupling.side_by_side import side_by_side
        >>> A, columns = side_by_side([np.eye(2), np.ones((2, 3))])
        >>> A.mul(np.ones(5)).tolist(), columns
        ([4.0, 4.0], [2, 3])
    """
    if not parts:
        raise ProblemError("the list of matrices A is empty; expected one for each function of the list h")
    couplings = [as_coupling(A, f"A[{i}]") for i, A in enumerate(parts)]
    rows = couplings[0].shape[0]
    for i, A in enumerate(couplings):
        if A.shape[0] != rows:
            raise ProblemError(f"A[{i}] has {A.shape[0]} rows, but A[0] has {rows}; all must have the rows of x")
    columns = [A.shape[1] for A in couplings]
    if len(couplings) == 1:
        return couplings[0], columns
    if all(type(A) is SparseCoupling for A in couplings):
        return as_coupling(csr_array(hstack([A.matrix() for A in couplings]))), columns
    if all(type(A) in (SparseCoupling, DenseCoupling) for A in couplings):
        dense = [A.matrix().toarray() if type(A) is SparseCoupling else A.matrix() for A in couplings]
        return as_coupling(np.hstack(dense)), columns
    if all(type(A) in (ArrayCoupling, RecordedCoupling) for A in couplings):
        matrices = [A.matrix() for A in couplings]
        return as_coupling(namespace(matrices[0]).concat(matrices, axis=1)), columns
    return SideBySide(couplings), columns


class SideBySide(Coupling):
    """Couplings side by side, each with its own products."""

    def __init__(self, parts: Sequence[Coupling]) -> None:
        self.parts = list(parts)
        self.ends = np.cumsum([A.shape[1] for A in parts]).tolist()
        self.shape = (parts[0].shape[0], self.ends[-1])
        self.dtype = np.result_type(*(A.dtype for A in parts))
        self.probes = sum(A.probes for A in parts)

    @property
    def space(self) -> Space:
        """The space that all parts share."""
        space = common_space({f"A[{i}]": A.space for i, A in enumerate(self.parts)})
        assert space is not None
        return space

    def mul(self, y: Array) -> Array:
        """A_1 y_1 + A_2 y_2 + ..."""
        found: Any = None
        for A, end in zip(self.parts, self.ends, strict=True):
            product = A.mul(y[end - A.shape[1] : end])
            found = product if found is None else found + product
        array: Array = found
        return array

    def tmul(self, x: Array) -> Array:
        """(A_1' x, A_2' x, ...)."""
        return concat(A.tmul(x) for A in self.parts)

    def _transpose(self) -> Coupling:
        return TransposeByProducts(self)
