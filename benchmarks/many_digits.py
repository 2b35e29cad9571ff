"""Arrays of decimal numbers with 50 digits, in which the truth about derivatives is computed."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np

DIGITS = 50  # decimal digits, where `decimal.localcontext` says so
ZERO: Any = Decimal(0)
ONE: Any = Decimal(1)
number: Any = np.frompyfunc(Decimal, 1, 1)
exp: Any = np.frompyfunc(Decimal.exp, 1, 1)


def digits(array: Any) -> Any:
    """An array of floating-point numbers, exactly."""
    return number(np.asarray(array).astype(np.float64))


def tanh(x: Any) -> Any:
    """The hyperbolic tangent of the entries."""
    e = exp(2 * x)
    return (e - 1) / (e + 1)


def zeros(*shape: int) -> Any:
    """An array of zeros."""
    return number(np.zeros(shape))


def identity(n: int) -> Any:
    """The identity matrix."""
    return number(np.eye(n))


def solution(K: Any, b: Any) -> Any:
    """The solution of a system of linear equations, by elimination with pivots."""
    M, n = np.column_stack([K, b]), len(b)
    for k in range(n):
        pivot = k + max(range(n - k), key=lambda i: abs(M[k + i, k]))
        M[[k, pivot]] = M[[pivot, k]]
        for i in range(k + 1, n):
            if M[i, k] != 0:
                M[i, k:] = M[i, k:] - M[i, k] / M[k, k] * M[k, k:]
    x = zeros(n)
    for k in reversed(range(n)):
        x[k] = (M[k, n] - M[k, k + 1 : n] @ x[k + 1 :]) / M[k, k] if k + 1 < n else M[k, n] / M[k, k]
    return x


def distance(a: Any, b: Any) -> float:
    """|a - b| for an array a of floating-point numbers and an array b in many digits."""
    difference = digits(a).reshape(-1) - np.asarray(b).reshape(-1)
    return float(sum((d * d for d in difference), ZERO).sqrt())
