"""Starts of runs on small problems with simple terms: near the solution, or none."""

import numpy as np
import pytest
from draws import SEED
from scipy.sparse import block_diag, csr_array

import saddlepoint as sp
from saddlepoint.uses.layer.newton_start import newton_start

M, N = 12, 7


def data(seed, scale=1.0):
    rng = np.random.default_rng(seed)
    D, A = rng.standard_normal((20, M)), scale * rng.standard_normal((M, N))
    return D, np.sign(rng.standard_normal(20)), A, rng.standard_normal(M), rng.standard_normal(N)


PROBLEMS = {
    "box": lambda D, s, A, b, c: sp.Saddle(sp.LeastSquares(D, s, 0.5) + sp.Box(-0.1, 0.1), sp.Quadratic(1.0, c), A),
    "l1": lambda D, s, A, b, c: sp.Saddle(sp.Logistic(D, s, 0.5) + sp.L1(0.05), sp.Quadratic(2.0, c) + sp.L1(0.3), A),
    "simplices": lambda D, s, A, b, c: sp.Saddle(
        sp.Quadratic(1.0, b) + sp.Simplex(), sp.LogCosh(c[:, None].T, l2=1.0) + sp.Simplex(), A
    ),
    "spheres": lambda D, s, A, b, c: sp.Saddle(
        sp.Quadratic(1.0, b) + sp.Ball(0.5), sp.Quadratic(1.0, c) + sp.Norm2(0.2), A
    ),
    "a point": lambda D, s, A, b, c: sp.Saddle(sp.Quadratic(1.0, b) + sp.L1(20.0), sp.Quadratic(1.0, c), A),
    "two points": lambda D, s, A, b, c: sp.Saddle(
        sp.Quadratic(1.0, b) + sp.L1(20.0), sp.Quadratic(1.0, c) + sp.Box(0.1, 0.1), A
    ),
}


@pytest.mark.parametrize("name", PROBLEMS)
def test_the_start_is_at_the_solution(name):
    found = 0
    for seed in range(SEED, SEED + 6):
        f = PROBLEMS[name](*data(seed, 0.3))
        start = newton_start(f)
        if start is not None:
            assert f.certificate(*start).distance < 1e-7, seed
            found += 1
    assert found >= 4


def test_a_batch_has_one_start():
    b = np.random.default_rng(SEED).standard_normal(3 * M)
    P = csr_array(block_diag([np.eye(M) + 0.1] * 3))
    A = csr_array(block_diag([np.ones((M, 1))] * 3))
    f = sp.Saddle(sp.Quadratic(P, b) + sp.Box(-0.1, 0.1), sp.Quadratic(1.0), A)
    assert f.certificate(*newton_start(f)).distance < 1e-10


def test_problems_that_newtons_method_does_not_fit_have_no_start():
    _, _, A, b, c = data(SEED)
    h = sp.Quadratic(1.0, c)
    assert newton_start(sp.Saddle(sp.Quadratic(1.0, b), h, A)) is None  # without a term a run starts as well at zero
    own = sp.Smooth(lambda x: x + np.tanh(x), mu=1.0, L=2.0) + sp.Box(-0.1, 0.1)
    assert newton_start(sp.Saddle(own, h, A)) is None  # no Hessian
    claimed = sp.Smooth(lambda x: x, mu=1.0, L=1.0, quadratic=True, hessian=lambda x: np.eye(M)) + sp.Box(-0.1, 0.1)
    assert newton_start(sp.Saddle(claimed, h, A)) is None  # its Hessian may take many calls
    narrow = sp.Saddle(sp.Quadratic(1.0, b.astype(np.float32)) + sp.L1(0.1), sp.Quadratic(1.0), A.astype(np.float32))
    assert newton_start(narrow) is None
    assert newton_start(sp.Saddle(sp.Simplex(), sp.Simplex(), A)) is None  # not strongly convex
    large = sp.Saddle(sp.Quadratic(1.0) + sp.L1(0.1), sp.Quadratic(1.0), np.ones((400, 1)))
    assert newton_start(large) is None


def test_a_strong_coupling_has_a_start_or_none():
    """The search ends without a start where Newton's steps do not lead to one; it never returns a poor point."""
    for seed in range(SEED, SEED + 4):
        _, _, A, b, c = data(seed)
        f = sp.Saddle(sp.Quadratic(0.05, b) + sp.Box(-0.3, 0.3), sp.Quadratic(0.05, c) + sp.Box(-1.0, 1.0), A)
        start = newton_start(f)
        assert start is None or f.certificate(*start).distance < 1e-6
