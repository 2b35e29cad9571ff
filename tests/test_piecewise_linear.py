"""Starts of problems that are piecewise linear in y: they are solutions, for small and awkward problems too."""

import numpy as np
import pytest
from draws import SEED

import saddlepoint as sp
from saddlepoint.apps.piecewise_linear import PiecewiseLinear


def drawn(seed, with_term):
    """A few samples on all scales; with a term, the slope along a step of Newton's method has large jumps."""
    rng = np.random.default_rng([SEED, seed])
    n, N, rho = int(rng.integers(1, 4)), int(rng.integers(2, 7)), 10.0 ** rng.uniform(-3, 1)
    D = np.round(rng.standard_normal((N, n)) * rng.choice([1, 3]), 1)
    y = np.where(rng.random(N) < 0.5, rng.random(N), rng.integers(0, 2, N).astype(float))
    spare = 10.0 ** rng.uniform(-4, 0) * rng.random(N)
    r = np.select([y == 1.0, y == 0.0], [spare, -spare], spare * rng.choice([-1.0, 1.0], N))
    c, g = r + D @ (y @ D) / rho, sp.Quadratic(rho)
    g = g + sp.L1(float(rng.uniform(0.0, 2.0))) if with_term else g
    return sp.Saddle(g, sp.Quadratic(0.0, -c) + sp.Box(0.0, 1.0), D.T), rho


@pytest.mark.parametrize("with_term", [False, True])
def test_starts_of_a_few_samples_are_solutions(with_term):
    for seed in range(400):
        f, rho = drawn(seed, with_term)
        x, y = PiecewiseLinear(f, rho).start(1e-10)
        size = 1.0 + np.abs(f.h.grad(np.zeros(f.shape[1]))).sum()
        assert f.certificate(x, y).gap < 1e-9 * size, seed


def test_few_steps_are_enough(monkeypatch):
    """About 24 for each problem, in which half of the samples are near the kink at first."""
    taken = []
    solve = PiecewiseLinear._solve
    monkeypatch.setattr(PiecewiseLinear, "_solve", lambda self, *given: taken.append(1) or solve(self, *given))
    for seed in range(5):
        rng = np.random.default_rng([SEED, 18, seed])
        D = rng.standard_normal((500, 20))
        signs = np.where(D @ rng.standard_normal(20) + 3.0 * rng.standard_normal(500) > 0.0, 1.0, -1.0)
        h = sp.Quadratic(0.0, signs) + sp.Box(np.minimum(-signs, 0.0), np.maximum(-signs, 0.0))
        f = sp.Saddle(sp.Quadratic(5.0), h, D.T)
        x, y = PiecewiseLinear(f, 5.0).start(1e-7)
        assert f.certificate(x, y).gap < 1e-8
    assert len(taken) < 150
