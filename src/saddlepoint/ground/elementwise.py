"""Elementwise functions with one name for all array libraries; NumPy arrays use the fast ones of NumPy and SciPy."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import expit

from saddlepoint.ground.arrays import Array, namespace


def choose(condition: Any, a: Any, b: Any) -> Array:
    """The entries of a where the condition holds, and those of b elsewhere."""
    array: Array = namespace(condition).where(condition, a, b)
    return array


def clip(a: Array, low: float, high: float) -> Array:
    """The entries of a, limited to the range from ``low`` to ``high``."""
    if isinstance(a, np.ndarray):
        return np.clip(a, low, high)
    array: Array = namespace(a).clip(a, low, high)
    return array


def tanh(a: Array) -> Array:
    """The hyperbolic tangent."""
    array: Array = namespace(a).tanh(a)
    return array


def log(a: Array) -> Array:
    """The natural logarithm."""
    array: Array = namespace(a).log(a)
    return array


def softplus(a: Array) -> Array:
    """log(1 + exp(a)), without overflow."""
    if isinstance(a, np.ndarray):
        return np.logaddexp(np.zeros((), a.dtype), a)
    xp = namespace(a)
    array: Array = xp.where(a > 0.0, a, 0.0 * a) + xp.log1p(xp.exp(-xp.abs(a)))
    return array


def sigmoid(a: Array) -> Array:
    """1/(1 + exp(-a)), without overflow."""
    if isinstance(a, np.ndarray):
        return np.asarray(expit(a))
    array: Array = 0.5 + 0.5 * namespace(a).tanh(0.5 * a)
    return array


def cast_like(a: float | Array, other: Array) -> Array:
    """The array a in the dtype of ``other``; a number becomes an array with the shape of ``other``."""
    if isinstance(a, float):
        filled: Array = 0.0 * other + a
        return filled
    if a.dtype == other.dtype:
        return a
    array: Array = namespace(a).astype(a, other.dtype)
    return array
