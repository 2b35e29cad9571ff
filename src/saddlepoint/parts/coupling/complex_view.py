"""Complex matrices and vectors as real ones of twice the size: real parts first, then imaginary parts."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import block_array, csr_array, issparse, vstack
from scipy.sparse.linalg import LinearOperator, aslinearoperator

from saddlepoint.ground.arrays import Array
from saddlepoint.ground.errors import ProblemError
from saddlepoint.ground.validation import as_flag


def real_view(A: Any, *, real_columns: bool = False) -> Any:
    r"""A complex vector as the real vector (Re z, Im z), or a complex matrix as the real one that does the same to it.

    [Re A, -Im A; Im A, Re A] maps (Re z, Im z) to (Re A z, Im A z). Its transpose is the view of the adjoint of A, and
    the inner product of two views is the real part of the complex one.

    Args:
        A: a vector, a matrix, a SciPy sparse array, or a complex operator with matvec and rmatvec, as SciPy and PyLops
            have them.
        real_columns: whether A is applied to real vectors only; the view is then [Re A; Im A].

    Example:
        >>> import numpy as np, saddlepoint as sp
        >>> A, z = np.array([[1.0 + 2.0j]]), np.array([3.0 - 1.0j])
        >>> np.allclose(sp.real_view(A) @ sp.real_view(z), sp.real_view(A @ z))
        True
    """
    real_columns = as_flag(real_columns, "real_columns")
    if issparse(A):
        if real_columns:
            return csr_array(vstack([A.real, A.imag]))
        return csr_array(block_array([[A.real, -A.imag], [A.imag, A.real]]))
    if isinstance(A, LinearOperator) or (hasattr(A, "matvec") and hasattr(A, "rmatvec")):
        return _operator(A if isinstance(A, LinearOperator) else aslinearoperator(A), real_columns)
    array = np.asarray(A)
    if array.ndim == 1:
        return np.concatenate([array.real, array.imag])
    if array.ndim != 2:
        raise ProblemError(f"real_view was given an array of shape {array.shape}; expected a vector or a matrix")
    if real_columns:
        return np.vstack([array.real, array.imag])
    return np.block([[array.real, -array.imag], [array.imag, array.real]])


def complex_view(v: Array) -> Array:
    """The complex vector whose real and imaginary parts are the two halves of v; the inverse of ``real_view``.

    Example:
        >>> import numpy as np, saddlepoint as sp
        >>> sp.complex_view(np.array([1.0, 2.0, 3.0, 4.0])).tolist()
        [(1+3j), (2+4j)]
    """
    v = np.asarray(v)
    if v.ndim != 1 or v.shape[0] % 2:
        raise ProblemError(f"complex_view was given an array of shape {v.shape}; expected a vector of even length")
    half = v.shape[0] // 2
    return np.asarray(v[:half] + 1j * v[half:])


def _operator(A: LinearOperator, real_columns: bool) -> LinearOperator:
    m, n = A.shape

    def forward(v: Array) -> Array:
        v = np.asarray(v).ravel()
        return np.asarray(real_view(np.asarray(A.matvec(v + 0j if real_columns else complex_view(v))).ravel()))

    def backward(u: Array) -> Array:
        found = np.asarray(A.rmatvec(complex_view(np.asarray(u).ravel()))).ravel()
        return np.asarray(found.real if real_columns else real_view(found))

    return LinearOperator((2 * m, n if real_columns else 2 * n), matvec=forward, rmatvec=backward, dtype=np.float64)
