"""Bounds on the multipliers of inequalities that ``sp.model`` proves by itself."""

import numpy as np
import pytest
from scipy.optimize import linprog

import saddlepoint as sp
from saddlepoint.uses.model.multiplier_bounds import multiplier_bounds

m = sp.model


def bounds_of(problem):
    return multiplier_bounds(problem.objective, problem.constraints)


def game(seed, tight):
    """A matrix game with an inequality for each player; ``tight`` is how far the inequalities may be satisfied."""
    rng = np.random.default_rng(seed)
    C, e, d = rng.standard_normal((6, 5)), rng.random(6), rng.random(5)
    x, y = m.minimiser(6, "x", sp.Simplex()), m.maximiser(5, "y", sp.Simplex())
    problem = m.Problem(x @ C @ y, [e @ x <= e.min() + tight, d @ y <= d.min() + tight])
    return problem, C, e, d


def linear_program(C, e, d, tight):
    """The value of the game, and the multipliers of its two inequalities, by the program of the minimiser."""
    m_, n = C.shape  # over (x, v, w): min v + w (d.min() + tight), with C'x <= v + w d, since max_y has the dual (v, w)
    A = np.block([[C.T, -np.ones((n, 1)), -d[:, None]], [e[None, :], np.zeros((1, 2))]])
    b = np.append(np.zeros(n), e.min() + tight)
    equal = np.append(np.ones(m_), [0.0, 0.0])[None, :]
    bounds = [(0, None)] * m_ + [(None, None), (0, None)]
    found = linprog(np.append(np.zeros(m_), [1.0, d.min() + tight]), A, b, equal, [1.0], bounds)
    return found.fun, -found.ineqlin.marginals[-1], found.x[-1]


@pytest.mark.parametrize("tight", [0.5, 0.05, 0.005])
@pytest.mark.parametrize("seed", range(4))
def test_games_with_inequalities_need_no_bound(seed, tight):
    problem, C, e, d = game(seed, tight)
    value, of_x, of_y = linear_program(C, e, d, tight)
    bounds = list(bounds_of(problem).values())
    assert bounds[0] >= of_x
    assert bounds[1] >= of_y
    answer = problem.solve(gap=1e-7)
    assert answer.solved
    assert abs(answer.value - value) <= 1e-6
    assert max(answer.violations.values()) <= 1e-6
    assert not answer.certificate.assumes


@pytest.mark.parametrize("norm", [m.norm1, m.norm2, m.norm_inf])
def test_a_norm_of_a_map_may_have_a_bound(norm):
    """The projection of t onto {|K x| <= 1} and its multiplier, by the conditions of the solution."""
    rng = np.random.default_rng(3)
    K, t = rng.standard_normal((4, 3)), 3.0 * np.ones(3)
    x = m.minimiser(3, "x")
    problem = m.Problem(0.5 * m.sum_squares(x - t), [norm(K @ x) <= 1.0])
    (bound,) = bounds_of(problem).values()
    answer = problem.solve(gap=1e-9)
    assert answer.solved
    (u,) = answer.multipliers.values()
    np.testing.assert_allclose(answer["x"] + K.T @ u, t, atol=1e-3)
    assert max(answer.violations.values()) <= 1e-6
    dual = {m.norm1: np.abs(u).max(), m.norm2: np.linalg.norm(u), m.norm_inf: np.abs(u).sum()}[norm]
    assert 0.1 <= dual <= bound


def test_a_variable_may_be_in_a_constraint_alone():
    x, s = m.minimiser(2, "x"), m.minimiser((), "s", sp.Box(0.0, 1.0))
    answer = m.Problem(m.huber(x - 3.0, 0.5) + m.sum_squares(x), [x.sum() <= s]).solve(gap=1e-8)
    np.testing.assert_allclose(answer["x"], [0.25, 0.25], atol=1e-3)  # beyond 1/4 Huber's slope is 1/2 = 2 x


@pytest.mark.parametrize("rows", ["an equation", "no interior", "no solution"])
def test_without_a_strictly_feasible_point_a_bound_is_asked_for(rows):
    x = m.minimiser(3, "x", sp.Simplex())
    y = m.maximiser(2, "y", sp.Simplex())
    condition = {
        "an equation": x[0] - x[1] == 0.1,
        "no interior": x.sum() <= 1.0,
        "no solution": x[0] + x[1] <= -0.1,
    }[rows]
    with pytest.raises(sp.ProblemError, match="needs a multiplier"):
        m.Problem(x @ np.ones((3, 2)) @ y, [condition]).solve()
