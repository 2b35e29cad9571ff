"""Games as linear programs, solved by HiGHS."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import block_array, csr_array

from saddlepoint.apps import ExtensiveGame
from saddlepoint.ground.arrays import Array


def solve_matrix_game(A: Array) -> Any:
    """The row player's program: minimise -v subject to A'x >= v over probabilities x."""
    m, n = A.shape
    return linprog(
        np.r_[np.zeros(m), -1.0],
        A_ub=np.hstack([-A.T, np.ones((n, 1))]),
        b_ub=np.zeros(n),
        A_eq=np.r_[np.ones(m), 0.0][None, :],
        b_eq=[1.0],
        bounds=[(0, None)] * m + [(None, None)],
    )


def solve_tree(game: ExtensiveGame, method: str = "highs") -> Any:
    """The program of x and the multipliers of y's equations; its minimum is the value of the game."""
    (B, b), (C, c) = game.constraints_x, game.constraints_y
    m = game.shape[0]
    return linprog(
        np.r_[np.zeros(m), c],
        A_ub=block_array([[game.payoff.T, -C.T]], format="csr"),
        b_ub=np.zeros(game.shape[1]),
        A_eq=block_array([[B, csr_array((B.shape[0], C.shape[0]))]], format="csr"),
        b_eq=b,
        bounds=[(0, None)] * m + [(None, None)] * C.shape[0],
        method=method,
    )
