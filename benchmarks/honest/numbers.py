"""Numbers, vectors and linear systems in decimal arithmetic of 60 digits."""

from __future__ import annotations

import decimal
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np

Array = Any  # arrays of floats
Decimals = Any  # arrays of Decimal

DIGITS = 60  # decimal digits of all numbers
decimal.setcontext(
    decimal.Context(prec=DIGITS, Emin=decimal.MIN_EMIN, Emax=decimal.MAX_EMAX, traps=[decimal.InvalidOperation])
)
ONE, TWO = Decimal(1), Decimal(2)


def decimals(array: Any) -> Decimals:
    """The numbers of an array of floats, exactly."""
    array = np.asarray(array)
    found = np.empty(array.shape, dtype=object)
    flat = found.reshape(-1)
    for i, number in enumerate(array.reshape(-1).tolist()):
        flat[i] = Decimal(number)
    return found


def length(vector: Decimals) -> Decimal:
    """The Euclidean norm."""
    return Decimal(sum((v * v for v in vector), Decimal(0))).sqrt()


def apply(function: Callable[..., Decimal], *vectors: Decimals) -> Decimals:
    """The function of each entry."""
    found = np.empty(len(vectors[0]), dtype=object)
    for i, entries in enumerate(zip(*vectors, strict=True)):
        found[i] = function(*entries)
    return found


def clip(r: Decimal, low: Decimal, high: Decimal) -> Decimal:
    """The number nearest to r between low and high."""
    return min(max(r, low), high)


def tanh(r: Decimal) -> Decimal:
    """The hyperbolic tangent, with a small relative error also near 0."""
    if abs(r) < Decimal("1e-15"):
        square = r * r
        return r * (1 - square / 3 + 2 * square * square / 15 - 17 * square**3 / 315)
    with decimal.localcontext() as context:
        context.prec = DIGITS + 20
        e = (-2 * abs(r)).exp()
        t = (1 - e) / (1 + e)
    return +t.copy_sign(r)


def sigmoid(r: Decimal) -> Decimal:
    """1/(1 + exp(-r))."""
    if r < 0:
        e = r.exp()
        return e / (1 + e)
    return 1 / (1 + (-r).exp())


def softplus(r: Decimal) -> Decimal:
    """log(1 + exp(r)), to 60 digits beside 1."""
    return max(r, Decimal(0)) + (1 + (-abs(r)).exp()).ln()


def eliminate(matrix: Decimals, right: Decimals) -> Decimals:
    """The solution of a linear system, by Gaussian elimination with pivots."""
    J, r = matrix.copy(), right.copy()
    n = len(r)
    for k in range(n):
        pivot = k + max(range(n - k), key=lambda i: abs(J[k + i, k]))
        if J[pivot, k] == 0:
            raise ArithmeticError("the matrix is singular")
        J[[k, pivot]], r[[k, pivot]] = J[[pivot, k]], r[[pivot, k]]
        for i in range(k + 1, n):
            factor = J[i, k] / J[k, k]
            if factor:
                J[i, k:] -= factor * J[k, k:]
                r[i] -= factor * r[k]
    for k in reversed(range(n)):
        r[k] = (r[k] - J[k, k + 1 :] @ r[k + 1 :] if k + 1 < n else r[k]) / J[k, k]
    return r
