"""Samples and targets of an estimator, checked as scikit-learn checks them.

For arrays that need no conversion, the same is done here in a tenth of the time: on a small problem, the general checks
of scikit-learn take as long as its solution.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from sklearn.utils.validation import validate_data

from saddlepoint.ground.arrays import FLOAT64, Array

CHECKS: dict[str, Any] = {"accept_sparse": "csr", "dtype": np.float64}  # options of scikit-learn's input checks
ALWAYS_FINITE = "biu"  # kinds of arrays without infinite entries


def samples(model: Any, X: Any, y: Any, *, y_numeric: bool = False) -> tuple[Any, Array]:
    """X as an array of float64 or a sparse array, and y as a vector; the model learns the number of features.

    Args:
        model: the estimator that is fitted.
        X: samples by features.
        y: a target for each sample.
        y_numeric: whether y holds numbers, and not labels.
    """
    if not (_is_plain(X) and _is_target(y, X.shape[0])):
        return tuple(validate_data(model, X, y, **CHECKS, y_numeric=y_numeric))
    model.n_features_in_ = X.shape[1]
    vars(model).pop("feature_names_in_", None)  # of an earlier fit, to data with names
    return X, y


def _is_plain(X: Any) -> bool:
    """Whether X is an array of finite float64 numbers with samples and features."""
    return type(X) is np.ndarray and X.ndim == 2 and min(X.shape) > 0 and _is_finite(X)


def _is_target(y: Any, rows: int) -> bool:
    """Whether y is a vector of this length with finite numbers or truth values."""
    if type(y) is not np.ndarray or y.shape != (rows,):
        return False
    return y.dtype.kind in ALWAYS_FINITE or _is_finite(y)


def _is_finite(a: Array) -> bool:
    """Whether an array holds float64 numbers with a finite sum, and so no infinite ones."""
    with np.errstate(all="ignore"):
        return a.dtype is FLOAT64 and math.isfinite(float(np.add.reduce(a, axis=None)))
