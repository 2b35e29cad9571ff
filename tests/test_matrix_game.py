"""Matrix games: the row player maximises, values against HiGHS, exploitability against rational arithmetic."""

from dataclasses import replace
from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest
from draws import SEED
from hypothesis import given, settings
from hypothesis import strategies as st
from libraries import load_library
from scipy import sparse
from scipy.optimize import linprog
from scipy.sparse.linalg import aslinearoperator

import saddlepoint as sp
from saddlepoint.apps import MatrixGame, matrix_game
from saddlepoint.apps.simplex import Simplex
from saddlepoint.parts.coupling import as_coupling
from saddlepoint.solving.result import Status
from saddlepoint.theory.exploitability import product_error

ROCK_PAPER_SCISSORS = np.array([[0.0, -1.0, 1.0], [1.0, 0.0, -1.0], [-1.0, 1.0, 0.0]])
RANDOM = np.random.default_rng(3).standard_normal((8, 5))


def value_by_highs(A):
    """max v with A'x >= v over probabilities x: what the row player can be sure of."""
    m, n = A.shape
    found = linprog(
        np.r_[np.zeros(m), -1.0],
        A_ub=np.hstack([-A.T, np.ones((n, 1))]),
        b_ub=np.zeros(n),
        A_eq=np.r_[np.ones(m), 0.0][None, :],
        b_eq=[1.0],
        bounds=[(0, None)] * m + [(None, None)],
    )
    assert found.status == 0
    return -found.fun


def exact_exploitability(A, x, y):
    """The exploitability of x/sum(x) and y/sum(y) in rational numbers."""
    A = [[Fraction(float(entry)) for entry in row] for row in np.asarray(A)]
    x, y = ([Fraction(float(entry)) for entry in v] for v in (x, y))
    highest = max(sum(a * b for a, b in zip(row, y, strict=True)) for row in A) / sum(y)
    lowest = min(sum(a * b for a, b in zip(column, x, strict=True)) for column in zip(*A, strict=True)) / sum(x)
    return highest - lowest


def assert_solved(A, found, tol):
    """Probabilities whose exploitability is, in exact arithmetic, at most what was said and asked for."""
    assert found.solved, found
    assert found.exploitability <= tol
    for v, size in ((found.row, A.shape[0]), (found.column, A.shape[1])):
        assert v.shape == (size,)
        assert v.min() >= 0.0
        assert abs(sum(map(Fraction, v.tolist())) - 1) <= Fraction(size, 2**52)
    assert exact_exploitability(A, found.row, found.column) <= Fraction(found.exploitability)


# -- who maximises ----------------------------------------------------------------------------------------------------


def test_the_row_player_maximises():
    """The second row is better everywhere, and against it the first column is the worst for the row player."""
    A = np.array([[0.0, 1.0], [2.0, 3.0]])
    found = MatrixGame(A).solve()
    np.testing.assert_array_equal(found.row, [0.0, 1.0])
    np.testing.assert_array_equal(found.column, [1.0, 0.0])
    assert found.value == 2.0


def test_penalty_kicks_have_the_published_strategies():
    """Palacios-Huerta 2003: the kicker maximises the percentage of goals, and 38.54 and 41.99 percent are optimal."""
    kicks = np.array([[58.30, 94.97], [92.91, 69.92]])
    found = MatrixGame(kicks).solve(tol=1e-9)
    assert found.row[0] == pytest.approx(0.3854, abs=5e-5)
    assert found.column[0] == pytest.approx(0.4199, abs=5e-5)


def test_the_transposed_matrix_makes_the_same_constrained_game():
    """ConstrainedGame has x minimise: with the transposed matrix it is the same game."""
    game, other = MatrixGame(RANDOM).solve(tol=1e-8), sp.apps.ConstrainedGame.mixed(RANDOM.T).solve(tol=1e-8)
    assert game.value == pytest.approx(other.value, abs=2e-8)
    np.testing.assert_allclose(game.row, other.y, atol=1e-5)
    np.testing.assert_allclose(game.column, other.x, atol=1e-5)


# -- values and certificates ------------------------------------------------------------------------------------------


@pytest.mark.slow
@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 9), st.integers(1, 9), st.sampled_from([1e-9, 1.0, 1e9]), st.booleans())
def test_random_games_have_the_value_of_the_linear_program(seed, m, n, scale, whole):
    rng = np.random.default_rng(seed)
    A = rng.integers(-3, 4, (m, n)).astype(float) if whole else rng.standard_normal((m, n))
    found = MatrixGame(scale * A).solve(tol=1e-7 * scale)
    assert_solved(scale * A, found, 1e-7 * scale)
    assert abs(found.value / scale - value_by_highs(A)) <= found.exploitability / scale + 1e-9


@pytest.mark.slow
def test_a_large_game_is_solved_by_first_order_methods(monkeypatch):
    """Above the limit the augmented Lagrangian is not called."""
    A = np.random.default_rng(3).standard_normal((260, 20))
    monkeypatch.setattr(matrix_game.ConstrainedGame, "solve", None)
    found = sp.apps.MatrixGame(A).solve(tol=1e-4)
    assert found.solved
    assert float((A @ found.column).max() - (found.row @ A).min()) <= 1e-4


@given(
    st.integers(0, 10**6), st.integers(1, 30), st.integers(1, 30), st.sampled_from([0.0, 1.0, 1e9]), st.booleans()
)  # fmt: skip
def test_exploitability_is_never_too_small_and_hardly_too_large(seed, m, n, shift, few):
    rng = np.random.default_rng(seed)
    A = shift + rng.standard_normal((m, n))
    x, y = rng.dirichlet(np.ones(m)), rng.dirichlet(np.ones(n))
    if few:
        x, y = Simplex(m).pure(seed % m), Simplex(n).nearest(y - y.mean())
    bound = MatrixGame(A).exploitability(x, y)
    exact = exact_exploitability(A, x, y)
    assert exact <= Fraction(bound)
    assert float(Fraction(bound) - exact) <= 1e-14 * max(m, n)  # relative to the range, whatever the shift is


def test_without_the_allowance_for_rounding_the_exploitability_would_be_too_small():
    """The error bound is needed: plain floating-point arithmetic is below the exact number in many games."""
    rng = np.random.default_rng(0)
    short = 0
    for _ in range(50):
        A, x, y = rng.standard_normal((20, 20)), rng.dirichlet(np.ones(20)), rng.dirichlet(np.ones(20))
        short += Fraction(float((A @ y).max() - (A.T @ x).min())) < exact_exploitability(A, x, y)
    assert short > 10


@given(st.integers(0, 10**6), st.integers(1, 40), st.sampled_from([1e-300, 1e-9, 1.0, 1e300]))
def test_the_error_of_a_product_is_within_its_bound(seed, n, scale):
    rng = np.random.default_rng(seed)
    a, y = scale * rng.standard_normal(n), rng.dirichlet(np.ones(n)) * (1 + 1e-15 * rng.standard_normal())
    total = sum(map(Fraction, y.tolist()))
    exact = sum(Fraction(s) * Fraction(t) for s, t in zip(a.tolist(), y.tolist(), strict=True)) / total
    error = product_error(float(np.abs(a).max()), n, float(total), 0.0)
    assert abs(Fraction(float(a @ y)) - exact) <= Fraction(error)


# -- degenerate games -------------------------------------------------------------------------------------------------

DEGENERATE = {
    "one by one": [[5.0]],
    "one row": [[1.0, 2.0, 3.0]],
    "one column": [[1.0], [2.0], [3.0]],
    "constant": np.full((4, 3), 7.3),
    "zero": np.zeros((3, 2)),
    "equal rows": np.vstack([RANDOM, RANDOM, RANDOM]),
    "equal columns": np.hstack([RANDOM, RANDOM]),
    "rock, paper, scissors": ROCK_PAPER_SCISSORS,
    "dominated strategies": [[3.0, 2.0, 4.0], [1.0, 0.0, 1.0], [2.0, 3.0, 0.0]],
    "many equilibria": [[0.0, 0.0, 1.0], [0.0, 0.0, -1.0], [-1.0, 1.0, 0.0]],
    "wide": np.random.default_rng(4).standard_normal((2, 40)),
    "tall": np.random.default_rng(5).standard_normal((40, 2)),
    "far from zero": 1e9 + np.array([[2.0, -1.0], [-1.0, 1.0]]),
    "1e-300": 1e-300 * RANDOM,
    "1e300": 1e300 * RANDOM,
    "largest numbers": 1.79e308 * (RANDOM / np.abs(RANDOM).max()),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", DEGENERATE)
def test_degenerate_games_are_solved(name):
    A = np.asarray(DEGENERATE[name])
    half_range = 0.5 * A.max() - 0.5 * A.min()
    found = MatrixGame(A).solve()
    assert_solved(A, found, 1e-6 * half_range)
    if half_range:
        middle = 0.5 * A.max() + 0.5 * A.min()
        exact = value_by_highs((A - middle) / half_range)
        assert abs((found.value - middle) / half_range - exact) <= 1.1e-6


@pytest.mark.parametrize("name", ["one by one", "constant", "zero"])
def test_equal_payoffs_have_no_exploitability(name):
    found = MatrixGame(DEGENERATE[name]).solve(tol=1e-300)
    assert found.solved
    assert found.exploitability == 0.0


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e9])
def test_exploitability_is_in_units_of_the_payoff(scale):
    """An absolute tolerance is met as it is, and the same point has the same exploitability in units of the payoff."""
    x, y = np.full(8, 1 / 8), np.full(5, 1 / 5)
    assert MatrixGame(scale * RANDOM).exploitability(x, y) / scale == pytest.approx(
        MatrixGame(RANDOM).exploitability(x, y), rel=1e-9
    )
    found = MatrixGame(scale * RANDOM).solve(tol=1e-10 * scale)
    assert_solved(scale * RANDOM, found, 1e-10 * scale)


@pytest.mark.slow
def test_a_tolerance_below_rounding_is_not_called_solved():
    found = MatrixGame([[2.0, -1.0], [-1.0, 1.0]]).solve(tol=1e-30)
    assert not found.solved
    assert 0.0 < found.exploitability <= 1e-14
    assert "rounding alone can make" in found.message
    assert repr(found).startswith("not solved: exploitability")


def test_a_run_that_is_cut_short_says_so():
    found = MatrixGame(RANDOM).solve(tol=1e-9, max_seconds=1e-9)
    assert not found.solved
    assert found.exploitability > 1e-9
    assert "raise tol, or max_seconds if it ended the run" in found.message
    assert exact_exploitability(RANDOM, found.row, found.column) <= Fraction(found.exploitability)
    assert found.to_dict()["solved"] is False


# -- costs ------------------------------------------------------------------------------------------------------------


def equilibrium_with_costs(A, P, b, Q, c):
    """The equilibrium with quadratic costs of both players, in exact numbers, found from its support by brute force."""
    m, n = A.shape
    supports = [[list(s) for k in range(1, size + 1) for s in combinations(range(size), k)] for size in (m, n)]
    for rows, columns in product(*supports):
        B, k, size = A[np.ix_(rows, columns)], len(rows), len(rows) + len(columns)
        K, right = np.zeros((size + 2, size + 2)), np.r_[-b[rows], -c[columns], 1.0, 1.0]
        K[:k, :k], K[:k, k:size], K[:k, -2], K[-2, :k] = np.diag(P[rows]), -B, 1.0, 1.0
        K[k:size, :k], K[k:size, k:size], K[k:size, -1], K[-1, k:size] = B.T, np.diag(Q[columns]), 1.0, 1.0
        z = np.linalg.solve(K, right)
        x, y = np.zeros(m), np.zeros(n)
        x[rows], y[columns] = z[:k], z[k:size]
        slack_x, slack_y = A @ y - P * x - b - z[-2], -(A.T @ x) - Q * y - c - z[-1]
        if min(x.min(), y.min()) >= -1e-12 and max(slack_x.max(), slack_y.max()) <= 1e-12:
            return x, y
    raise AssertionError("no support fits")


@pytest.mark.parametrize("seed", range(4))
def test_costs_on_probabilities_have_the_equilibrium_of_its_support(seed):
    """Row and column have different costs, so that a player with the wrong sign or matrix would be found."""
    rng = np.random.default_rng(seed)
    A, P, Q = rng.standard_normal((4, 3)), rng.uniform(0.1, 0.5, 4), rng.uniform(0.5, 1.0, 3)
    b, c = 0.3 * rng.standard_normal(4), 0.3 * rng.standard_normal(3)
    x, y = equilibrium_with_costs(A, P, b, Q, c)
    game = MatrixGame(A, sp.Quadratic(P, b), sp.Quadratic(Q, c))
    found = game.solve(tol=1e-16)
    assert found.solved, found
    assert np.linalg.norm(found.row - x) + np.linalg.norm(found.column - y) <= found.distance + 1e-14
    assert found.distance <= 1e-7
    assert found.value == pytest.approx(x @ A @ y - (P / 2 * x + b) @ x + (Q / 2 * y + c) @ y, abs=1e-8)
    assert game.exploitability(found.row, found.column) <= 1e-6
    rough = game.solve(tol=1e-3)
    assert rough.solved
    assert np.linalg.norm(rough.row - x) + np.linalg.norm(rough.column - y) <= rough.distance
    assert found.column @ game.problem.A.matrix() @ found.row == pytest.approx(found.row @ A @ found.column)


@pytest.mark.slow
def test_a_cost_of_one_player_is_enough():
    """Without strong convexity on both sides there is no distance, but the exploitability is proven."""
    found = MatrixGame(RANDOM, cost_row=0.5).solve(tol=1e-5)
    assert found.solved, found
    assert found.distance == np.inf
    both = MatrixGame(RANDOM, cost_row=0.5, cost_column=1e-4).solve(tol=1e-7)
    np.testing.assert_allclose(found.row, both.row, atol=1e-3)
    assert "distance" in repr(both)
    assert "distance" not in repr(found)


@settings(max_examples=10)
@given(st.integers(0, 10**6))
def test_the_exploitability_with_costs_is_not_below_what_best_responses_gain(seed):
    """The best response to quadratic costs c/2 |x|^2 is the nearest probability vector to the payoffs divided by c."""
    rng = np.random.default_rng(seed)
    A, c, d = rng.standard_normal((5, 4)), *rng.uniform(0.1, 2.0, 2)
    game = MatrixGame(A, c, d)
    found = game.solve(tol=float(10.0 ** rng.uniform(-9, -1)))
    x, y = found.row, found.column
    u, v = sp.Simplex().project(A @ y / c), sp.Simplex().project(-(A.T @ x) / d)
    gain = (u @ A @ y - c / 2 * u @ u) - (x @ A @ v + d / 2 * v @ v) + d / 2 * y @ y + c / 2 * x @ x
    assert gain <= found.exploitability + 1e-13
    assert found.exploitability <= game.exploitability(x, y) + 1e-13


@pytest.mark.parametrize("kind", [int, np.int64, np.float32])
def test_numbers_of_any_kind_are_costs(kind):
    found = MatrixGame(RANDOM, cost_row=kind(1), cost_column=kind(2)).solve(tol=1e-8)
    np.testing.assert_array_equal(found.row, MatrixGame(RANDOM, 1.0, 2.0).solve(tol=1e-8).row)


def test_ctrl_c_ends_a_small_game(monkeypatch):
    """The augmented Lagrangian, which takes over where the first run was too short, is not tried."""
    solve = matrix_game.solve
    monkeypatch.setattr(matrix_game, "CALLS", 10)
    monkeypatch.setattr(matrix_game, "solve", lambda *a, **k: replace(solve(*a, **k), status=Status.INTERRUPTED))
    monkeypatch.setattr(matrix_game.ConstrainedGame, "solve", None)
    found = MatrixGame(RANDOM).solve(tol=1e-9)
    assert found.interrupted == "SIGINT"
    assert found.message == f"interrupted at exploitability {found.exploitability:.3g} > tol 1e-09"


# -- kinds of matrices ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "given_as",
    [
        sparse.csr_array, sparse.coo_matrix, np.asfortranarray, np.ndarray.tolist,
        lambda A: A.astype(np.float32), lambda A: sp.as_coupling(A), lambda A: A.astype(int),
    ],
)  # fmt: skip
def test_payoffs_of_any_kind_are_taken(given_as):
    A = np.round(3 * RANDOM)
    found = MatrixGame(given_as(A)).solve(tol=1e-8)
    assert_solved(A, found, 1e-8)
    assert found.value == pytest.approx(value_by_highs(A), abs=2e-8)


def test_a_sparse_matrix_with_zeros_remains_sparse():
    A = sparse.random_array((30, 20), density=0.2, rng=1)
    game = MatrixGame(A)
    assert sparse.issparse(game.payoff)
    assert game.payoff.nnz == A.nnz
    found = game.solve(tol=1e-8)
    assert_solved(A.toarray(), found, 1e-8)
    full = sparse.csr_array(RANDOM + 10.0)
    assert_solved(full.toarray(), MatrixGame(full).solve(tol=1e-8), 1e-8)


def test_results_belong_to_the_caller():
    """Writing into a result changes no other result of the game."""
    game = MatrixGame(ROCK_PAPER_SCISSORS)
    first, second = game.solve(), game.solve()
    first.row[:] = 0.0
    np.testing.assert_allclose(second.row, 1 / 3)


def test_the_given_matrix_is_not_altered():
    A = RANDOM + 10.0
    before = A.copy()
    MatrixGame(A).solve()
    np.testing.assert_array_equal(A, before)


BAD = [
    (lambda: MatrixGame(aslinearoperator(RANDOM)), r"payoff is a .*LinearOperator; expected a NumPy array or a SciPy"),
    (lambda: MatrixGame(np.full((2, 2), np.nan)), "payoff has a nan at index"),
    (lambda: MatrixGame([1.0, 2.0]), r"payoff has shape \(2,\); expected a matrix"),
    (lambda: MatrixGame(np.zeros((0, 3))), "expected a matrix with at least one row and one column"),
    (lambda: MatrixGame(1j * RANDOM), "payoff has dtype complex128; expected real numbers"),
    (lambda: MatrixGame(RANDOM, cost_row=-1.0), "cost_row is -1.0; expected a convex Smooth function, or a positive"),
    (lambda: MatrixGame(RANDOM, cost_column=sp.Quadratic(np.ones(8))), "cost_column has 8 variables; expected 5"),
    (lambda: MatrixGame(RANDOM, 1.0).problem, "problem needs costs of both players"),
    (lambda: MatrixGame(RANDOM).solve(tol=0.0), "tol is 0.0; expected a positive number"),
    (lambda: MatrixGame(RANDOM).solve(max_seconds=-1), "max_seconds is -1.0; expected a positive number"),
    (lambda: MatrixGame(RANDOM).solve(start=3), "start is 3; expected a pair"),
    (lambda: MatrixGame(RANDOM, sp.Quadratic(1.0) + sp.Box(0, 1)), r"cost_row has the simple term Box\(0, 1\)"),
    (lambda: MatrixGame(RANDOM, 1, sp.Smooth(np.sin, mu=None, L=1)), "cost_column has an unknown mu or L; give both"),
    (lambda: MatrixGame(RANDOM).exploitability(np.ones(8), np.full(5, 0.2)), "row sums to 8; expected probabilities"),
    (lambda: MatrixGame(RANDOM).exploitability(np.full(8, 1 / 8), [1, 1, -1, 0, 0]), "column has a negative entry, -1"),
    (lambda: MatrixGame(RANDOM).value(np.full(5, 0.2), np.full(5, 0.2)), "row has 5 entries; expected 8"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "sentence"), BAD)
def test_a_matrix_game_refuses_invalid_input_in_a_sentence(call, sentence):
    with pytest.raises(sp.ProblemError, match=sentence):
        call()


@given(st.integers(0, 10**6), st.integers(1, 20))
def test_the_simplex_answers_as_the_polytope_does(seed, n):
    """``Simplex`` answers as the polytope {v >= 0 : 1'v = 1} does, without linear programs."""
    rng = np.random.default_rng(seed)
    simplex, weights = Simplex(n), rng.standard_normal(n)
    value, v = simplex.best(weights)
    assert value == weights.max() == weights @ v
    for point in (weights, -np.ones(n), 1e-320 * np.ones(n), 1e300 * np.ones(n)):
        near = simplex.nearest(point)
        assert near.min() >= 0.0
        assert simplex.violation(near) <= n * 2.0**-52
    assert simplex.violation(simplex.start) <= n * 2.0**-52
    assert simplex.violation(np.full(n, 2.0 / n)) == pytest.approx(1.0)


def test_a_game_goes_on_from_strategies_and_from_a_checkpoint(tmp_path):
    A = np.random.default_rng(5).standard_normal((30, 20))
    game = MatrixGame(A)
    first = game.solve(tol=1e-6)
    assert first.solved
    again = game.solve(tol=first.exploitability, start=(first.row, first.column))
    assert again.solved
    assert again.row.tolist() == first.row.tolist()  # which suffices, so that nothing is solved again
    cut = game.solve(tol=1e-9, max_seconds=1e-3, checkpoint=tmp_path / "game")
    assert not cut.solved
    done = game.solve(tol=1e-9, checkpoint=tmp_path / "game")
    assert done.solved
    assert done.value == pytest.approx(first.value, abs=1e-6)


def test_starts_of_games_are_checked():
    game = MatrixGame(ROCK_PAPER_SCISSORS)
    with pytest.raises(sp.ProblemError, match=r"start\[0\] sums to 1.5; expected probabilities"):
        game.solve(start=([0.5, 0.5, 0.5], [1.0, 0.0, 0.0]))
    with_costs = MatrixGame(ROCK_PAPER_SCISSORS, cost_row=sp.Quadratic(1.0), cost_column=sp.Quadratic(1.0))
    with pytest.raises(sp.ProblemError, match="are for games without costs"):
        with_costs.solve(checkpoint="game")


@pytest.mark.parametrize("library", ["array-api-strict", "torch"])
def test_what_is_proven_of_strategies_in_float32_is_what_best_responses_show(library):
    xp = load_library(library)
    rng = np.random.default_rng(SEED)
    A = rng.uniform(-1.0, 1.0, (400, 300)).astype(np.float32)
    f = sp.Saddle(sp.Simplex(), sp.Simplex(), xp.asarray(A))
    found = sp.solve(f, gap=1e-12, max_calls=200)
    x, y = (np.asarray(z, dtype=np.float64) for z in (found.x, found.y))
    x, y = x / x.sum(), y / y.sum()
    shown = float(np.max(x @ A.astype(np.float64)) - np.min(A.astype(np.float64) @ y))
    assert 0.999 * shown <= found.certificate.gap <= 1.01 * shown + 1e-6


@given(seed=st.integers(0, 2**32), m=st.integers(1, 30), n=st.integers(1, 30), sparse=st.booleans())
def test_a_product_is_bounded_by_the_sum_of_what_is_multiplied(seed, m, n, sparse):
    rng = np.random.default_rng(seed)
    A, d = rng.standard_normal((m, n)), rng.standard_normal(n) * (rng.random(n) < 0.3 if sparse else 1.0)
    strict = load_library("array-api-strict")
    for coupling in (as_coupling(A), as_coupling(A.T.copy()).T, as_coupling(strict.asarray(A))):
        bound = coupling.bound_from_sum(float(np.abs(d).sum()))
        assert np.linalg.norm(A @ d) <= bound * (1.0 + 1e-15)
        assert bound <= 1.00001 * np.linalg.norm(A, axis=0).max() * np.abs(d).sum() + 1e-300
