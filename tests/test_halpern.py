"""Halpern's iteration with restarts stays under its bound on sharp problems."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.linalg import sqrtm

import saddlepoint as sp
from saddlepoint import theory
from saddlepoint.parts.functions.zero import Zero


@pytest.mark.parametrize("share", [0.2, 0.5])
@pytest.mark.parametrize("seed", [0, 1])
def test_restarts_make_the_residual_fall_linearly_on_a_sharp_problem(seed: int, share: float) -> None:
    """min_x max_y x'Ay with an invertible A: one step is linear, and its sharpness is a smallest singular value."""
    n = 6
    A = np.random.default_rng(seed).standard_normal((n, n)) + 2.0 * np.eye(n)
    f = sp.Saddle(Zero(), Zero(), A)
    method = sp.Halpern(sp.PDHG(weight=1.0), enough=share, some=0.0, longest=1.0, weighting="fixed")
    tx, ty = theory.pdhg_steps(0.0, 0.0, f.norm, 1.0)
    M = np.block([[np.eye(n) / tx, -A], [-A.T, np.eye(n) / ty]])  # the norm in which steps are nonexpansive

    def step(z: np.ndarray) -> np.ndarray:
        inner = method.method.init(f, z[:n], z[n:])
        after = method.method.step(f, inner)
        return np.concatenate((after.x, after.y))

    T = np.stack([step(e) for e in np.eye(2 * n)], axis=1)
    root = np.real(sqrtm(M + 1e-9 * np.eye(2 * n)))
    sharpness = float(np.linalg.svd(root @ (T - np.eye(2 * n)) @ np.linalg.inv(root), compute_uv=False)[-1])
    state = method.init(f, np.ones(n), np.ones(n))
    state = method.step(f, state)
    first, reduction = state.first, 1e-8
    promised = theory.restarted_halpern_steps(sharpness, share, reduction)
    # The residual of the wrapper is measured with the weights alone; the two norms differ by this factor at most.
    factor = math.sqrt(np.linalg.cond(root @ np.diag(np.repeat((tx, ty), n)) @ root))
    promised = math.ceil(promised * (1.0 + math.log(factor) / -math.log(share)))
    for _ in range(promised):
        state = method.step(f, state)
        if state.last <= reduction * first:
            break
    assert state.last <= reduction * first
    still = sp.Halpern(sp.PDHG(weight=1.0), enough=0.0, some=0.0, longest=1.0, weighting="fixed")
    alone = still.init(f, np.ones(n), np.ones(n))
    for _ in range(state.total):
        alone = still.step(f, alone)
    assert alone.last > 100.0 * state.last  # without restarts the residual falls as 1/k


def test_steps_of_restarts_grow_with_the_logarithm_of_the_accuracy() -> None:
    one, two = (theory.restarted_halpern_steps(0.01, 0.2, reduction) for reduction in (1e-4, 1e-8))
    assert two == 2 * one
    assert theory.restarted_halpern_steps(0.01, 0.2, 1.0) == 0
