r"""A game in sequence form as a saddle problem in boxes, for the interior-point method.

The equations of the strategies get multipliers: p for those of y, C y = c, and q for those of x, B x = b. With them

    min_x max_y x'Ay = min_{x, p} max_{y, q} x'Ay + q'(B x - b) - p'(C y - c),     x, y in [0, 1], |p|, |q| <= bound,

where the bound exceeds the values that any information set can have, so that it changes nothing.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import block_array, csr_array

from saddlepoint.apps.sequences import Sequences
from saddlepoint.ground.arrays import Array
from saddlepoint.parts.functions import Quadratic
from saddlepoint.parts.simple import Box
from saddlepoint.problems.saddle import Saddle

MARGIN = 2.0  # the bounds of the multipliers, in units of the largest value of an information set


def sequence_program(payoff: csr_array, sequences_x: Sequences, sequences_y: Sequences) -> Saddle:
    """The saddle problem of (x, p) and (y, q)."""
    (B, b), (C, c) = sequences_x.constraints, sequences_y.constraints
    bound = MARGIN * max(
        abs(sequences.best(np.asarray(weights))[0]) + 1e-300  # positive where all payoffs are 0
        for sequences, weights in (
            (sequences_x, abs(payoff).sum(axis=1)),
            (sequences_y, abs(payoff).sum(axis=0)),
        )
    )
    A = block_array([[payoff, B.T], [-C, None]], format="csr")
    return Saddle(_linear(len(c), payoff.shape[0], c, bound), _linear(len(b), payoff.shape[1], b, bound), A)


def _linear(rows: int, size: int, right: Array, bound: float) -> Any:
    """<right, multipliers> over a strategy in [0, 1] and the multipliers in their bounds."""
    lower, upper = np.r_[np.zeros(size), np.full(rows, -bound)], np.r_[np.ones(size), np.full(rows, bound)]
    return Quadratic(np.zeros(size + rows), np.r_[np.zeros(size), right], mu=0.0, L=0.0) + Box(lower, upper)
