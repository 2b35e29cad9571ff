"""Linear maps as matrices, sparse matrices or operators, and constants, checked."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse
from scipy.sparse.linalg import LinearOperator, aslinearoperator

from saddlepoint.ground.arrays import Array
from saddlepoint.ground.errors import ProblemError
from saddlepoint.ground.validation import in_floats, short_repr


def is_identity(matrix: Any) -> bool:
    """Whether the matrix is stored as a sparse identity."""
    if not issparse(matrix) or matrix.shape[0] != matrix.shape[1] or matrix.nnz != matrix.shape[0]:
        return False
    return bool((matrix.diagonal() == 1.0).all())


def times(one: Any, two: Any) -> Any:
    """The product of two maps: a matrix, sparse if both are, or an operator if one of them is."""
    if isinstance(one, LinearOperator) or isinstance(two, LinearOperator):
        return aslinearoperator(one) @ aslinearoperator(two)
    return one @ two


def plus(one: Any, two: Any) -> Any:
    """The sum of two maps."""
    if isinstance(one, LinearOperator) or isinstance(two, LinearOperator):
        return aslinearoperator(one) + aslinearoperator(two)
    total = one + two
    return csr_array(total) if issparse(total) else np.asarray(total)


def as_constant(value: Any, name: str) -> Array:
    """The value as an array of finite real numbers."""
    try:
        array = np.asarray(value.toarray() if issparse(value) else value)
        numbers = array.astype(np.float64) if array.dtype.kind in "fiubO" else None
    except (TypeError, ValueError):
        numbers = None
    if numbers is None:
        raise ProblemError(f"{name} is {short_repr(value)}; expected a number or an array of real numbers")
    if not np.isfinite(numbers).all():
        raise ProblemError(f"{name} contains nan or infinity; expected finite numbers")
    return numbers


def as_matrix(matrix: Any, beside: str) -> Any:
    """The matrix, dense or sparse, in float64; a vector becomes a row."""
    if issparse(matrix):
        found = csr_array(in_floats(matrix)).astype(np.float64)
        as_constant(found.data, f"the matrix beside {beside}")
        return found
    found = as_constant(matrix, f"the matrix beside {beside}")
    if found.ndim == 1:
        return found[None, :]
    if found.ndim != 2:
        raise ProblemError(f"the matrix beside {beside} has the shape {found.shape}; expected rows and columns")
    return found


def reciprocal(number: Any, text: str) -> Array:
    """1 divided by a number, or by each entry of an array; ``text`` is what is divided."""
    if hasattr(number, "text"):
        raise ProblemError(f"({text}) / ({number.text}) is not of the class; expressions can be divided by numbers")
    divisor = as_constant(number, f"the divisor of {text}")
    if not divisor.all():
        raise ProblemError(f"the divisor of {text} is zero; expected another number")
    return np.asarray(1.0 / divisor)
