"""Sums of log(1 + exp(r_i)), the logistic loss of residuals with an offset."""

from __future__ import annotations

from typing import Any

from saddlepoint.parts.functions.losses import Logistic
from saddlepoint.parts.functions.risk import Risk


class Softplus(Logistic):
    """mean_i log(1 + exp(d_i'x - t_i)), or the sum of log(1 + exp(x_i - t_i)) when D is None.

    Example:
        >>> import numpy as np
        >>> from saddlepoint.parts.functions.softplus import Softplus
        >>> Softplus(None, np.array([1.0])).grad(np.array([1.0])).tolist()
        [0.5]
    """

    def __init__(self, D: Any, t: Any) -> None:
        self.labels = -1.0  # of all rows
        Risk.__init__(self, D, t, 0.0, curvature=(0.0, 0.25))
