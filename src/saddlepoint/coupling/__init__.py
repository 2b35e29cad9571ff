"""Couplings: the matrix A of a saddle problem, however it is stored."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import issparse

from saddlepoint.arrays import is_foreign
from saddlepoint.coupling.array import ArrayCoupling, array_coupling
from saddlepoint.coupling.base import Coupling, Norm
from saddlepoint.coupling.dense import DenseCoupling
from saddlepoint.coupling.operator import OperatorCoupling
from saddlepoint.coupling.sparse import SparseCoupling
from saddlepoint.errors import ProblemError
from saddlepoint.vectors import as_float_array, finite, shown

__all__ = ["ArrayCoupling", "Coupling", "DenseCoupling", "Norm", "OperatorCoupling", "SparseCoupling", "as_coupling"]


def as_coupling(A: Any, name: str = "A") -> Coupling:
    """``A`` as a coupling.

    ``A`` may be an array of any supported library, a SciPy sparse array, a LinearOperator, or anything with ``@`` and
    ``.T``.
    """
    if isinstance(A, Coupling):
        return A
    if issparse(A):
        _check_shape(A.shape, name)
        csr = A.tocsr()
        _check_indices(csr, name)
        data = finite(as_float_array(csr.data, f"the data of {name}"), f"the data of {name}")
        return SparseCoupling(csr if data.dtype == csr.dtype else csr.astype(data.dtype))
    if is_foreign(A):
        array = as_float_array(A, name)
        _check_shape(array.shape, name)
        return array_coupling(finite(array, name))
    if not isinstance(A, np.ndarray) and all(hasattr(A, a) for a in ("__matmul__", "T", "shape")) and _is_opaque(A):
        _check_shape(A.shape, name)
        operator = OperatorCoupling(A)
        with np.errstate(all="ignore"):
            operator.probe()
        return operator
    array = as_float_array(A, name)
    _check_shape(array.shape, name)
    return DenseCoupling(finite(array, name))


def _is_opaque(A: Any) -> bool:
    """True unless NumPy can read the entries (as it can for the arrays of most libraries)."""
    return not (hasattr(A, "__array__") or hasattr(A, "__array_interface__"))


def _check_shape(shape: Any, name: str) -> None:
    sides = shape if isinstance(shape, tuple) else ()
    if len(sides) != 2 or not all(isinstance(side, int | np.integer) and side > 0 for side in sides):
        raise ProblemError(f"{name} has shape {shown(shape)}; expected a matrix with at least one row and one column")


def _check_indices(A: Any, name: str) -> None:
    """Indices beyond the shape would have the products read and write anywhere in memory."""
    try:
        A.check_format(full_check=True)
    except ValueError as error:
        raise ProblemError(f"{name} is a damaged sparse array: {error}; expected indices within its shape") from None
