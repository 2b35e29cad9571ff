"""Couplings: the matrix A of a saddle problem, for all the ways in which it can be stored."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import issparse

from saddlepoint.ground.arrays import is_foreign
from saddlepoint.ground.errors import ProblemError
from saddlepoint.ground.recording import is_recording
from saddlepoint.ground.validation import as_float_array, finite, short_repr
from saddlepoint.parts.coupling.array import ArrayCoupling
from saddlepoint.parts.coupling.base import Coupling, Norm
from saddlepoint.parts.coupling.dense import DenseCoupling
from saddlepoint.parts.coupling.device import array_coupling
from saddlepoint.parts.coupling.kinds import find_kind, register_coupling
from saddlepoint.parts.coupling.operator import OperatorCoupling
from saddlepoint.parts.coupling.recorded import RecordedCoupling
from saddlepoint.parts.coupling.sparse import SparseCoupling, own_rows
from saddlepoint.parts.coupling.streamed import MEMORY_LIMIT, StreamedCoupling, streamed_map

__all__ = [
    "ArrayCoupling",
    "Coupling",
    "DenseCoupling",
    "Norm",
    "OperatorCoupling",
    "SparseCoupling",
    "StreamedCoupling",
    "as_coupling",
    "register_coupling",
]


def as_coupling(A: Any, name: str = "A", least: int | None = None) -> Coupling:
    """``A`` as a coupling, an object with the products A y and A' x, the norm of A and its transpose.

    Args:
        A: an array of any supported library, a SciPy sparse array, a LinearOperator, anything with ``@`` and ``.T``, or
            an object of a registered kind (see ``register_coupling``), such as a Dask array. A ``np.memmap`` of more
            than MEMORY_LIMIT bytes stays on disk (see ``sp.stream``).
        name: what A is called in an error.
        least: bytes of a dense array from which it is read once for two products (see ``DenseCoupling``).

    Example:
        >>> import numpy as np, saddlepoint as sp
        >>> A = sp.as_coupling(np.array([[3.0, 0.0], [0.0, 1.0]]))
        >>> A.mul(np.ones(2)).tolist(), round(A.norm, 6)
        ([3.0, 1.0], 3.0)
    """
    if isinstance(A, Coupling):
        return A
    if is_recording() and is_foreign(A):
        _check_shape(A.shape, name)
        return RecordedCoupling(A)
    kind = find_kind(A)
    if kind is not None:
        return kind.build(A, name)
    if isinstance(A, np.memmap) and A.nbytes > MEMORY_LIMIT:
        on_disk = streamed_map(A, name)
        if on_disk is not None:
            return on_disk
    if issparse(A):
        _check_shape(A.shape, name)
        csr = own_rows(A, name)
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
    return DenseCoupling(finite(array, name), least)


def _is_opaque(A: Any) -> bool:
    """Whether NumPy cannot read the entries, as it can for the arrays of most libraries."""
    return not (hasattr(A, "__array__") or hasattr(A, "__array_interface__"))


def _check_shape(shape: Any, name: str) -> None:
    sides = shape if isinstance(shape, tuple) else ()
    if len(sides) != 2 or not all(isinstance(side, int | np.integer) and side > 0 for side in sides):
        raise ProblemError(
            f"{name} has shape {short_repr(shape)}; expected a matrix with at least one row and one column"
        )
