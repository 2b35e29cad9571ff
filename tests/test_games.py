"""Coupled costs, and games with constraints, against linear and conic programs."""

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.optimize import linprog, root

import saddlepoint as sp
from saddlepoint.apps import ConstrainedGame, CoupledCosts, ExtensiveGame
from saddlepoint.apps.augmented_lagrangian import Penalised
from saddlepoint.apps.constrained_game import PENALTY, PROXIMAL_WEIGHT, _Run
from saddlepoint.apps.polytope import Polytope
from saddlepoint.parts.coupling.equilibration import ruiz

rng = np.random.default_rng(1)
PAYOFF = rng.standard_normal((6, 5))

COSTS = {
    "numbers": (0.5, 2.0),
    "quadratic": (sp.Quadratic(np.linspace(1, 3, 6), np.ones(6)), sp.Quadratic(0.7)),
    "huber": (sp.Huber(l2=0.3, delta=0.2) + sp.Quadratic(0.1, np.arange(6.0)), sp.Huber(t=np.ones(5), l2=0.2)),
    "log-cosh": (sp.LogCosh(l2=0.1), sp.LogCosh(t=np.ones(5), l2=0.4)),
    "entropy": (sp.Entropy(1e-2, 2.0), 0.5 * sp.Entropy(1e-2, 1.0)),
    "log-sum-exp": (sp.LogSumExp(PAYOFF.T, np.ones(5), l2=0.3), sp.Quadratic(1.0, np.ones(5))),
}


# -- coupled costs over free vectors ----------------------------------------------------------------------------------


@pytest.mark.parametrize("costs", COSTS)
def test_coupled_costs_finds_the_equilibrium(costs):
    game = CoupledCosts(PAYOFF, *COSTS[costs])
    found = game.solve(tol=1e-9)
    assert found.solved
    exact = root(lambda z: np.concatenate(game.problem.field(z[:6], z[6:])), np.full(11, 0.1), tol=1e-13)
    xs, ys = exact.x[:6], exact.x[6:]
    assert np.linalg.norm(found.x - xs) + np.linalg.norm(found.y - ys) <= found.distance + 1e-10
    assert found.value == pytest.approx(game.value(xs, ys), abs=1e-7)


@given(st.integers(0, 10**6), st.floats(-2.0, 1.0))
def test_exploitability_of_coupled_costs_is_proven(seed, log_size):
    """With quadratic costs the best responses are known, and so is what they gain."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((4, 3))
    game = CoupledCosts(A, 0.5, 2.0)
    x, y = 10.0**log_size * rng.standard_normal(4), 10.0**log_size * rng.standard_normal(3)
    highest = 0.25 * x @ x + (A.T @ x) @ (A.T @ x) / (2 * 2.0)
    lowest = -(A @ y) @ (A @ y) / (2 * 0.5) - y @ y
    assert highest - lowest <= game.problem.certificate(x, y).gap * (1 + 1e-9)


def test_coupled_costs_needs_strongly_convex_costs():
    for cost in (0.0, -1.0, None, "entropy", True, np.inf):
        with pytest.raises(sp.ProblemError, match=r"cost_x is .*; expected a strongly convex Smooth function"):
            CoupledCosts(PAYOFF, cost, 1.0)
    with pytest.raises(sp.ProblemError, match=r"h has 6 variables but A has 5 columns"):
        CoupledCosts(PAYOFF, 1.0, sp.Quadratic(np.ones(6)))
    with pytest.raises(sp.ProblemError, match="not strongly convex"):
        CoupledCosts(PAYOFF, sp.Huber(), 1.0)
    unvalued = CoupledCosts(PAYOFF, sp.Smooth(lambda x: x, mu=1, L=1), 1.0).solve()
    assert np.isnan(unvalued.value)
    assert "exploitability" in repr(unvalued)


# -- mixed strategies and linear constraints --------------------------------------------------------------------------


def game_by_highs(A, B, b, C, c):
    """min_x max_y x'Ay over both polytopes: min over x and the prices s of y's equations of c's with C's >= A'x."""
    m, rows = A.shape[0], C.shape[0]
    found = linprog(
        np.r_[np.zeros(m), c],
        A_ub=np.hstack([A.T, -C.T]),
        b_ub=np.zeros(A.shape[1]),
        A_eq=np.hstack([B, np.zeros((B.shape[0], rows))]),
        b_eq=b,
        bounds=[(0, None)] * m + [(None, None)] * rows,
    )
    assert found.status == 0
    return found.fun


def random_game(seed, m, n, scale=1.0):
    """Simplices cut by further equations that a random interior point satisfies."""
    rng = np.random.default_rng(seed)
    A = scale * rng.standard_normal((m, n))
    sides = []
    for size in (m, n):
        extra = rng.standard_normal((size // 3, size))
        inside = rng.dirichlet(np.ones(size))
        E = np.vstack([np.ones(size), extra])
        sides.append((E, E @ inside))
    return A, *sides


@pytest.mark.slow
@settings(max_examples=12, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 9), st.integers(1, 9), st.sampled_from([1e-3, 1.0, 1e3]))
def test_constrained_games_have_the_value_of_the_linear_program(seed, m, n, scale):
    A, (B, b), (C, c) = random_game(seed, m, n, scale)
    found = ConstrainedGame(A, (B, b), (C, c)).solve(tol=1e-7 * scale)
    assert found.exploitability <= 1e-7 * scale, found
    assert found.infeasibility <= 1e-6
    # At points that violate constraints by e the value may be off by e times the prices.
    slack = 1e-7 * scale + found.infeasibility * sum(
        np.abs(p).sum() for p in (*found.multipliers_x, *found.multipliers_y)
    )
    assert abs(found.value - game_by_highs(A, B, b, C, c)) <= slack


@pytest.mark.slow
@settings(max_examples=5, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([None, "auto", "anderson-condat-vu"]))
def test_multipliers_prove_the_equilibrium(seed, method):
    """The prices are feasible for the dual programs of both players and attain their values."""
    A, (B, b), (C, c) = random_game(seed, 7, 6)
    game = ConstrainedGame(A, (B, b), (C, c))
    found = game.solve(tol=1e-7, method=method)
    assert found.solved, found
    multiplier_x, bound_multiplier_x = found.multipliers_x
    multiplier_y, bound_multiplier_y = found.multipliers_y
    assert min(bound_multiplier_x.min(), bound_multiplier_y.min()) >= 0.0
    np.testing.assert_allclose(A @ found.y + B.T @ multiplier_x - bound_multiplier_x, 0.0, atol=1e-6)
    np.testing.assert_allclose(-A.T @ found.x + C.T @ multiplier_y - bound_multiplier_y, 0.0, atol=1e-6)
    assert found.stationarity <= 1e-7
    assert c @ multiplier_y == pytest.approx(found.value, abs=1e-5)
    assert -b @ multiplier_x == pytest.approx(found.value, abs=1e-5)
    assert abs(bound_multiplier_x @ found.x) + abs(bound_multiplier_y @ found.y) <= 1e-5


@pytest.mark.slow
@pytest.mark.parametrize("method", [None, "auto"])
def test_games_with_badly_scaled_constraints_have_the_value_of_highs(method):
    A, (B, b), (C, c) = random_game(5, 8, 6)
    rows, columns = 10.0 ** rng.uniform(-3, 3, B.shape[0]), 10.0 ** rng.uniform(-2, 2, 8)
    game = ConstrainedGame(columns[:, None] * A, (rows[:, None] * B * columns, rows * b), (1e3 * C, 1e6 * c))
    found = game.solve(tol=1e-3, method=method)  # a value of about 1e3
    exact = game_by_highs(columns[:, None] * A, rows[:, None] * B * columns, rows * b, 1e3 * C, 1e6 * c)
    assert found.solved, found
    assert found.value == pytest.approx(exact, abs=1.0)


def test_costs_in_mixed_strategies_agree_with_clarabel():
    """Quadratic and entropy costs on the simplex, against Clarabel."""
    p, q = sp.Quadratic(np.linspace(0.5, 2, 6), np.linspace(0, 1, 6)), sp.Entropy(1e-3, 1.0)
    found = ConstrainedGame.mixed(PAYOFF, p, 0.3 * q).solve(tol=1e-11)
    assert found.solved, found
    # max_y (A'x)'y - 0.3 sum y log y over the simplex is 0.3 log sum exp(A'x/0.3), where all y are above 1e-3
    assert found.y.min() > 1e-3
    x = cp.Variable(6)
    cost = 0.5 * cp.sum(cp.multiply(p.P, x**2)) + p.b @ x
    problem = cp.Problem(cp.Minimize(cost + 0.3 * cp.log_sum_exp(PAYOFF.T @ x / 0.3)), [cp.sum(x) == 1, x >= 0])
    problem.solve(solver="CLARABEL", tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11)
    np.testing.assert_allclose(found.x, x.value, atol=1e-5)
    assert found.value == pytest.approx(problem.value, abs=1e-6)


def test_rock_paper_scissors_is_played_with_equal_probabilities():
    found = ConstrainedGame.mixed([[0, 1, -1], [-1, 0, 1], [1, -1, 0]]).solve(tol=1e-10)
    np.testing.assert_allclose(found.x, np.full(3, 1 / 3), atol=1e-9)
    assert abs(found.value) <= 1e-10
    assert "exploitability" in repr(found)


def test_infeasible_constraints_are_recognised_and_proven():
    B, b = np.array([[1.0, 1.0, 1.0], [1.0, 2.0, 3.0]]), np.array([1.0, 4.0])
    game = ConstrainedGame(np.eye(3), (B, b), (np.ones((1, 3)), [1.0]))
    with pytest.raises(
        sp.InfeasibleError, match=r"B x = b, x >= 0 has no solution: every v >= 0 violates the equations by"
    ) as caught:
        game.solve()
    w = caught.value.certificate
    assert (B.T @ w <= 1e-12).all()
    assert b @ w > 0.1
    with pytest.raises(sp.InfeasibleError, match="C y = c, y >= 0 has no solution"):
        ConstrainedGame(np.eye(3), (np.ones((1, 3)), [1.0]), (np.ones((1, 3)), [-1.0])).solve()


SIMPLEX = (np.ones((1, 3)), [1.0])
BAD = [
    (lambda: ConstrainedGame(np.eye(3), (np.ones((1, 2)), [1.0]), SIMPLEX), "has 2 columns; expected 3"),
    (lambda: ConstrainedGame(np.eye(3), (np.ones((1, 3)), [1.0, 2.0]), SIMPLEX), "has 2 entries; expected 1"),
    (lambda: ConstrainedGame(np.eye(3), np.ones((1, 3)), SIMPLEX), "expected a pair of matrix and vector"),
    (lambda: ConstrainedGame(np.full((3, 3), np.nan), SIMPLEX, SIMPLEX), "payoff has a nan"),
    (lambda: ConstrainedGame(np.eye(3), (np.full((1, 3), np.inf), [1.0]), SIMPLEX), "B x = b, x >= 0 has a inf"),
    (lambda: ConstrainedGame(np.eye(3), SIMPLEX, SIMPLEX, cost_x=1.0), "cost_x is a float; expected a Smooth"),
    (lambda: ConstrainedGame(np.eye(3), SIMPLEX, SIMPLEX, cost_y=sp.Quadratic(np.ones(2))), "cost_y has 2 variables"),
    (lambda: ConstrainedGame.mixed(np.eye(3), sp.Smooth(np.sin, mu=None, L=1)), "cost_x has an unknown mu or L"),
    (lambda: ConstrainedGame.mixed(np.eye(3)).solve(tol=0.0), "tol is 0.0; expected a positive number"),
    (lambda: ConstrainedGame.mixed(np.eye(3)).solve(tol="small"), "tol is 'small'; expected a positive number"),
    (lambda: ConstrainedGame.mixed(np.eye(3)).solve(max_steps=-1), "max_steps is -1; expected a whole number from 0"),
    (lambda: ConstrainedGame.mixed(np.eye(3)).solve(max_calls=0.5), "max_calls is 0.5; expected a whole number from 0"),
    (lambda: ConstrainedGame.mixed(np.eye(3)).solve(max_seconds="soon"), "max_seconds is 'soon'; expected a"),
    (lambda: ConstrainedGame.mixed(np.eye(3)).exploitability([1.0], [1, 0, 0]), r"x has shape \(1,\); expected 3"),
    (lambda: ConstrainedGame.mixed(np.eye(3)).solve(method="newtn"), "unknown method 'newtn'"),
    (lambda: ConstrainedGame(sp.as_coupling(np.eye(3)).T, SIMPLEX, ExtensiveGame.load("kuhn").sequences_x), "expected"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "sentence"), BAD)
def test_a_constrained_game_refuses_invalid_input_in_a_sentence(call, sentence):
    with pytest.raises(sp.ProblemError, match=sentence):
        call()


def test_a_run_can_be_watched_and_stopped():
    seen = []

    def watch(equilibrium):
        seen.append(equilibrium.exploitability)
        if len(seen) == 3:
            raise StopIteration

    game = ExtensiveGame.load("kuhn")
    found = game.solve(tol=1e-12, method="newton", callback=watch)
    assert len(seen) == 3
    assert not found.solved
    assert found.message.startswith("stopped by the callback at exploitability")
    assert [step.step for step in found.history] == [1, 2, 3]
    assert found.exploitability == min(seen)
    for method in (None, "newton"):
        short = game.solve(tol=1e-12, method=method, max_steps=2)
        assert "1e-12 was asked for" in short.message
        assert game.solve(tol=1e-12, method=method, max_seconds=1e-9).steps == 0


def test_ctrl_c_ends_a_game_with_costs():
    """It does not end one method only, so that the next one begins."""
    calls = []

    def interrupted(x):
        calls.append(x)
        if len(calls) == 5:
            raise KeyboardInterrupt
        return x

    found = ConstrainedGame.mixed(PAYOFF, sp.Smooth(interrupted, mu=1, L=1), sp.Quadratic(1.0)).solve(tol=1e-12)
    assert len(calls) <= 10  # those after the fifth one evaluate the best strategies
    assert not found.solved
    assert found.interrupted == found.to_dict()["interrupted"] == "SIGINT"


# -- the subproblems --------------------------------------------------------------------------------------------------


def random_side(seed):
    A, (B, b), (C, c) = random_game(seed, 7, 6)
    run = _Run(ConstrainedGame(A, (B, b), (C, c), sp.Huber(l2=0.1), 0.5 * sp.Entropy(0.1)), 1e-6, 1e-6, "auto")
    rng = np.random.default_rng(seed)
    run.x.multiplier, run.x.bound_multiplier = (
        rng.standard_normal(run.x.multiplier.shape),
        rng.random(run.x.bound_multiplier.shape),
    )
    return run.x, rng


@pytest.mark.slow
@given(st.integers(0, 10**6), st.sampled_from([0.3, 3.0, 300.0]), st.sampled_from([1e-3, 0.03]))
def test_the_hessian_of_a_subproblem_is_that_of_its_gradient_and_mu_and_L_bound_it(seed, r, a):
    side, rng = random_side(seed)
    g = Penalised(side, r, a)
    v, d = rng.standard_normal((2, 7))
    H = g.hessian(v).toarray()
    values = np.linalg.eigvalsh(H)
    assert g.mu <= values[0] * (1 + 1e-9)
    assert values[-1] <= g.L * (1 + 1e-9)
    d *= 1e-6
    if np.abs(g.hessian(v + d) - g.hessian(v - d)).max() == 0.0:
        np.testing.assert_allclose(H @ d, (g.grad(v + d) - g.grad(v - d)) / 2, atol=1e-6 * np.abs(H @ d).max())
        assert (g(v + d) - g(v - d)) / 2 == pytest.approx(g.grad(v) @ d, rel=1e-4, abs=1e-9 * abs(g(v)))


@given(st.integers(0, 10**6))
def test_equilibration_brings_the_largest_entries_near_one(seed):
    rng = np.random.default_rng(seed)
    E = sparse.csr_array(10.0 ** rng.uniform(-4, 4, (4, 6)) * (rng.random((4, 6)) < 0.6))
    w, d = ruiz(abs(E))
    scaled = np.abs(w[:, None] * E.toarray() * d)
    for axis in (0, 1):
        largest = scaled.max(axis=axis)
        assert ((largest == 0.0) | ((largest > 0.5) & (largest < 2.0))).all()


@pytest.mark.slow
@pytest.mark.parametrize("method", ["dippa", "catalyst-dippa", "lpd-gs", "extragradient", "auto", "newton"])
def test_every_method_can_solve_a_subproblem(method):
    """The subproblem has the paper's form: gradients only, mu and L known, and no assumption is found to be wrong."""
    f = ConstrainedGame(PAYOFF, (np.ones((1, 6)), [1.0]), (np.ones((1, 5)), [1.0])).subproblem()
    assert f.mu_x == pytest.approx(PROXIMAL_WEIGHT)
    assert f.L_x == pytest.approx(PROXIMAL_WEIGHT + PENALTY * 7, rel=0.06)
    result = sp.solve(f, method=method, tol=1e-6)
    assert result.solved
    exact = sp.solve(f, method="newton", tol=1e-10)
    assert np.linalg.norm(result.x - exact.x) + np.linalg.norm(result.y - exact.y) <= 1e-6 + 1e-10


def test_best_responses_of_a_polytope_may_be_unbounded():
    polytope = Polytope([[1.0, 1.0, -1.0]], [1.0], "E v = e, v >= 0", 3)
    assert polytope.best(np.array([1.0, 2.0, -3.0]))[0] == pytest.approx(2.0)
    assert polytope.best(np.array([1.0, 2.0, 0.0]))[0] == np.inf
    assert polytope.violation(polytope.start) <= 1e-12


# -- poker ------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("method", [None, "auto", "anderson-condat-vu", "dippa", "lpd-gs"])
def test_kuhn_poker_is_solved(method):
    game = ExtensiveGame.load("kuhn")
    found = game.solve(tol=1e-6, method=method)
    assert found.solved, found
    assert found.exploitability <= 1e-6
    assert found.value == pytest.approx(-1 / 18, abs=1e-6)
    assert game.exploitability(found.x, found.y) == pytest.approx(found.exploitability, abs=1e-15)
    # The second player has one optimal strategy: to bluff and to call every third time with the right card.
    second = game.behaviour("x", found.x)
    assert second["2b"]["Bet"] == pytest.approx(1.0, abs=1e-4)
    assert second["0p"]["Bet"] == pytest.approx(1 / 3, abs=1e-4)
    assert second["1b"]["Bet"] == pytest.approx(1 / 3, abs=1e-4)


@pytest.mark.slow
def test_leduc_poker_is_solved():
    game = ExtensiveGame.load("leduc")
    found = game.solve(tol=1e-6)
    assert game.shape == (337, 337)
    assert found.solved, found
    (B, b), (C, c) = ((E.toarray(), e) for E, e in (game.constraints_x, game.constraints_y))
    exact = game_by_highs(game.payoff.toarray(), B, b, C, c)
    assert exact == pytest.approx(-0.0856, abs=1e-4)
    assert abs(found.value - exact) <= found.exploitability + 1e-9
