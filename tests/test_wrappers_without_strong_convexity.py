"""Wrappers around methods for problems that are not strongly convex: they solve them, or say what they need."""

from __future__ import annotations

import numpy as np
import pytest

import saddlepoint as sp

SOLVING = {
    "halpern": sp.Halpern(sp.PDHG()),
    "preconditioned halpern": sp.Preconditioned(sp.Halpern(sp.PDHG())),
    "preconditioned interior point": sp.Preconditioned("interior-point"),
    "anderson": sp.Anderson(sp.PDHG(), window=5),
    "proximal dippa": sp.Proximal("dippa"),
    "proximal halpern": sp.Proximal(sp.Halpern(sp.PDHG())),
    "proximal interior point": sp.Proximal("interior-point"),
    "proximal proximal": sp.Proximal(sp.Proximal(sp.LPDGS())),
}
REFUSING = {
    "restarted": sp.Restarted(sp.PDHG()),
    "catalyst": sp.Catalyst(sp.PDHG()),
    "halpern": sp.Halpern(sp.LPDGS()),
}


def game(seed: int) -> sp.Saddle:
    random = np.random.default_rng(seed)
    h = sp.Quadratic(0.0, random.standard_normal(4)) + sp.Box(-1.0, random.random(4))
    return sp.Saddle(sp.Simplex(), h, random.standard_normal((5, 4)) * np.array([1.0, 3.0, 0.3, 1.0]))


@pytest.mark.parametrize("name", SOLVING)
def test_a_wrapped_method_proves_a_gap(name: str) -> None:
    for seed in range(3):
        f = game(seed)
        result = sp.solve(f, gap=1e-5, method=SOLVING[name], max_calls=30_000)
        assert result.solved, result.message
        x, y = np.asarray(result.x), np.asarray(result.y)
        b, low, high, matrix = f.h.grad(np.zeros(4)), f.h.simple.lower, f.h.simple.upper, f.A.matrix()
        slope = matrix.T @ x - b
        best = np.maximum(slope * low.everywhere(4), slope * high.everywhere(4)).sum()
        gap = best - ((matrix @ y).min() - b @ y)
        assert gap <= result.certificate.gap + 1e-13


@pytest.mark.parametrize("name", REFUSING)
def test_a_wrapper_that_needs_strong_convexity_says_so(name: str) -> None:
    with pytest.raises(sp.ProblemError, match="needs a positive mu of g, which is 0; use a method that does without"):
        sp.solve(game(0), gap=1e-5, method=REFUSING[name])
