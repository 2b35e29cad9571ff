"""Sentences of docstrings that say "never" or "always", each with what would make it false."""

from itertools import pairwise

import numpy as np
import pytest

import saddlepoint as sp
from saddlepoint.apps.equations import _not_dependent
from saddlepoint.parts.coupling import as_coupling
from saddlepoint.theory.table1 import gradient_order, scaled_gradient_order


def test_gradient_steps_in_scaled_variables_never_take_more_than_the_order_of_table_1():
    rng = np.random.default_rng(0)
    for _ in range(500):
        kx, ky, c = 10.0 ** rng.uniform((0.0, 0.0, -6.0), 8.0)
        assert scaled_gradient_order(kx, ky, c) <= gradient_order(kx, ky, c) * (1.0 + 1e-15)


@pytest.mark.parametrize("scale", [1e-150, 1.0, 1e150])
@pytest.mark.parametrize("shape", [(1, 1), (5, 3), (30, 40), (200, 2)])
def test_bounds_on_the_norm_always_hold(shape, scale):
    rng = np.random.default_rng(1)
    draws = [rng.standard_normal(shape), np.ones(shape), np.eye(*shape), rng.standard_cauchy(shape)]
    for A in draws:
        coupling = as_coupling(scale * A)
        truth = scale * np.linalg.norm(A, 2)
        assert coupling.norm_estimate.lower <= truth * (1.0 + 1e-13)
        assert coupling.norm_ceiling() >= truth * (1.0 - 1e-13)


@pytest.mark.parametrize("seed", range(5))
def test_pdhg_never_moves_away_from_the_saddle_point(seed):
    """In its own norm, |x|^2/tx - 2 <x, A y> + |y|^2/ty."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((6, 4))
    g = sp.Quadratic(np.append(0.0, rng.random(5)), rng.standard_normal(6)) + sp.Box(-1.0, 1.0)
    f = sp.Saddle(g, sp.Quadratic(0.1, rng.standard_normal(4)) + sp.L1(0.3), A)
    star = sp.solve(f, gap=1e-14)
    assert star.certificate.gap <= 1e-12
    method = sp.PDHG()
    state = method.init(f, np.zeros(6), np.zeros(4))
    steps = method.parameters(f)
    tx, ty = steps["tx"], steps["ty"]
    lengths = []
    for _ in range(200):
        x, y = state.x - star.x, state.y - star.y
        lengths.append(x @ x / tx - 2.0 * x @ A @ y + y @ y / ty)
        state = method.step(f, state)
    assert lengths[-1] < 0.5 * lengths[0]
    assert all(after <= before + 1e-7 for before, after in pairwise(lengths))


def test_a_dependent_equation_is_never_called_independent():
    rng = np.random.default_rng(2)
    for _ in range(50):
        E = rng.integers(-5, 6, (3, 6)).astype(float) * 2.0 ** rng.integers(-8, 9)
        e = rng.integers(-5, 6, 3).astype(float)
        weights = rng.integers(-3, 4, (4, 3)).astype(float)
        rows, right = np.vstack((E, weights @ E)), np.append(e, weights @ e)
        assert _not_dependent(rows, right, np.arange(3)) == ()
        right[4] += 1.0
        assert _not_dependent(rows, right, np.arange(3)) == (4,)
