"""The published examples of Disciplined Saddle Programming that are bilinear, written with ``sp.model``.

P. Schiele, E. Luxenberg and S. Boyd, Disciplined Saddle Programming, Transactions on Machine Learning Research 2024,
and the README and tests of its package. The data are drawn here; the truth is known, or computed by CVXPY after the
maximum has been taken by hand. Not bilinear, and so not of the class, are those in which a convex function of x is
multiplied by a variable of the maximiser: the bond portfolio (exponentials of yields times holdings), the fit with
squared losses times weights, the weighted norm and the weighted log-sum-exp, and quadratic forms with an uncertain
matrix, exp and log, which are not smooth, and cones of matrices. Weighted hinge losses, and the quadratic form of the
portfolio, are bilinear after one step by hand, as the tests of them say.
"""

import numpy as np
import pytest

import saddlepoint as sp

m = sp.model
GAP = 1e-7


def boxed(size, name, lower, upper, player=m.minimiser):
    return player(size, name, sp.Box(lower, upper))


@pytest.mark.parametrize("constrained", [False, True])
def test_the_matrix_game_has_its_value_and_its_strategies(constrained):
    C = np.array([[1.0, 2.0], [3.0, 1.0]])
    x, y = m.minimiser(2, "x"), m.maximiser(2, "y")
    conditions = [x >= 0, x.sum() == 1, y >= 0, y.sum() == 1]
    if not constrained:
        x, y, conditions = m.minimiser(2, "x", sp.Simplex()), m.maximiser(2, "y", sp.Simplex()), []
    answer = m.Problem(m.inner(x, C @ y), conditions).solve(gap=GAP)
    assert abs(answer.value - 5.0 / 3.0) <= GAP
    assert np.allclose(answer["x"], [2 / 3, 1 / 3], atol=1e-6)
    assert np.allclose(answer["y"], [1 / 3, 2 / 3], atol=1e-6)


def test_products_of_affine_functions_over_boxes_have_their_value():
    x, y = boxed(2, "x", -1, 1), boxed(2, "y", -1, 1, m.maximiser)
    assert abs(m.Problem(m.inner(x + 0.5, y + 0.5)).solve(gap=GAP).value) <= GAP


@pytest.mark.parametrize("shape", ["inside", "added"])
def test_a_constant_inside_or_beside_the_product_has_the_same_value(shape):
    x, y = boxed(1, "x", -1, 1), boxed(1, "y", -1.2, -0.8, m.maximiser)
    objective = m.inner(x, 1.0 + y) if shape == "inside" else x.sum() + m.inner(x, y)
    answer = m.Problem(objective).solve(gap=1e-10)
    assert abs(answer.value) <= 1e-10
    assert np.allclose(answer["y"], -1.0, atol=1e-6)


def test_a_number_of_each_player_makes_a_game():
    x, y = m.minimiser((), "x"), m.maximiser((), "y")
    for product in (m.inner(x, y), x @ y):
        answer = m.Problem(product, [x >= -1, x <= 1, y >= -1, y <= 1]).solve(gap=1e-10)
        assert abs(answer.value) <= 1e-10
        assert answer["x"].shape == ()
    with pytest.raises(sp.ProblemError, match="write x @ A @ y for a bilinear term"):
        m.Problem(x * y)


@pytest.mark.parametrize("shape", ["a maximum inside a minimum", "a minimum inside a maximum"])
def test_a_player_against_the_extremum_of_the_other_has_the_value_of_the_game(shape):
    """The value of max_y <x, C y> at its best x, and of min_x <x, C y> at its best y, is that of the game."""
    C = np.array([[1.0, 2.0], [3.0, 1.0]])
    if shape.startswith("a maximum"):
        x = m.minimiser(2, "x", sp.Simplex())
        answer = m.Problem(m.max_entry(C.T @ x)).solve(gap=GAP)
        assert np.allclose(answer["x"], [2 / 3, 1 / 3], atol=1e-6)
    else:
        y = m.maximiser(2, "y", sp.Simplex())
        answer = m.Problem(-m.max_entry(-(C @ y))).solve(gap=GAP)
        assert np.allclose(answer["y"], [1 / 3, 2 / 3], atol=1e-6)
    assert abs(answer.value - 5.0 / 3.0) <= GAP


def test_squares_without_constraints_have_their_saddle_point_at_zero():
    x, y = m.minimiser(1, "x"), m.maximiser(1, "y")
    answer = m.Problem(m.sum_squares(x) - m.sum_squares(y)).solve(tol=1e-9)
    assert abs(answer["x"][0]) + abs(answer["y"][0]) <= 1e-9


@pytest.mark.parametrize(("player", "sign"), [(m.minimiser, 1.0), (m.maximiser, -1.0)])
def test_one_square_alone_has_its_extremum_at_zero(player, sign):
    v = player((), "v")
    assert abs(m.Problem(sign * m.sum_squares(v)).solve(tol=1e-9)["v"]) <= 1e-9


def test_variables_may_be_given_by_equations():
    x, y1, y2 = m.minimiser(2, "x"), m.maximiser(2, "y1"), m.maximiser(1, "y2")
    answer = m.Problem(m.inner(x, y1) - m.sum_squares(y2), [x == 1.0, y1 == 1.0]).solve(gap=GAP)
    assert abs(answer.value - 2.0) <= GAP


def test_a_hinge_that_is_almost_nothing_changes_almost_nothing():
    for player, sign in ((m.minimiser, 1.0), (m.maximiser, -1.0)):
        k = boxed((), "k", -10, 10, player)
        assert abs(m.Problem(k + sign * 1e-10 * m.positive_part(k)).solve(gap=GAP).value + sign * 10.0) <= 2 * GAP


def test_a_quasidefinite_quadratic_form_has_its_saddle_point_at_zero():
    """x'Px + 2 x'Sy + y'Qy with P = S = I, Q = -I over x, y >= 0 with sums of at most 1: the saddle point is zero."""
    x, y = m.minimiser(2, "x", sp.NonNegative()), m.maximiser(2, "y", sp.NonNegative())
    form = m.quad_form(x, np.eye(2)) + 2.0 * m.inner(x, np.eye(2) @ y) - m.quad_form(y, np.eye(2))
    answer = m.Problem(form, [x.sum() <= 1.0, y.sum() <= 1.0], multiplier_bound=10.0).solve(gap=1e-10)
    assert abs(answer.value) <= 1e-10
    assert np.linalg.norm(answer["x"]) + np.linalg.norm(answer["y"]) <= answer.distance("x") + answer.distance("y")


def test_the_lagrangian_of_an_equation_has_the_value_at_its_solution():
    """min_x max_nu f(x) + nu (x - 1) is f(1), for the square and for a smooth function of one's own."""
    x, nu = m.minimiser((), "x", sp.Box(-10.0, 10.0)), m.maximiser((), "nu", sp.Box(-50.0, 50.0))
    grow = sp.Smooth(np.sinh, mu=1.0, L=np.cosh(10.0), value=lambda v: float(np.sum(np.cosh(v))))
    for term, value in ((m.sum_squares(x), 1.0), (m.function(grow, x), np.cosh(1.0))):
        answer = m.Problem(term + m.inner(x - 1.0, nu)).solve(gap=GAP)
        assert abs(answer.value - value) <= GAP
        assert abs(answer["x"] - 1.0) <= answer.distance("x")


def test_the_conjugate_of_a_square_is_minimised_where_it_is_bounded():
    """max_y x y - y^2/2 is x^2/2, whose minimum over x >= 1 is 1/2. Nothing is proven while x has no upper bound."""
    x, y = m.minimiser((), "x"), m.maximiser((), "y")
    conjugate = m.inner(x, y) - 0.5 * m.sum_squares(y)
    with pytest.raises(sp.ProblemError, match="x has no bounds and the objective is not strongly convex in it"):
        m.Problem(conjugate, [x >= 1]).solve()
    answer = m.Problem(conjugate, [x >= 1, x <= 10]).solve(gap=GAP)
    assert abs(answer.value - 0.5) <= GAP
    assert abs(answer["x"] - 1.0) <= 1e-3


@pytest.mark.parametrize("fixed", [1.0, 2.0, 3.0])
def test_concave_functions_of_a_fixed_number_have_their_value_there(fixed):
    for term, value in ((m.sum_squares, fixed**2), (m.norm1, fixed)):
        y = m.maximiser((), "y")
        answer = m.Problem(-term(y), [y == fixed]).solve()
        assert abs(answer.value + value) <= 1e-9
        assert answer["y"] == fixed


def test_a_square_between_two_bounds_has_its_minimum_at_the_nearer_one():
    x = m.minimiser((), "x")
    answer = m.Problem(m.sum_squares(x), [x >= 2, x <= 4]).solve()
    assert abs(answer.value - 4.0) <= 1e-9


def test_a_variable_may_be_in_a_constraint_alone():
    """Of y only y <= z is known, and of z only z <= 1: the value of min_x max_y x y over 1 <= x <= 2 is 1."""
    x = boxed((), "x", 1, 2)
    y, z = boxed((), "y", -5, 5, m.maximiser), boxed((), "z", -5, 1, m.maximiser)
    answer = m.Problem(m.inner(x, y), [y <= z]).solve(gap=GAP)
    assert abs(answer.value - 1.0) <= 10 * GAP
    assert max(answer.violations.values()) <= 1e-5


def test_a_maximum_that_is_infinite_is_refused():
    x, y = m.minimiser(2, "x", sp.NonNegative()), m.maximiser(2, "y", sp.NonNegative())
    with pytest.raises(sp.ProblemError, match="x has no bounds"):
        m.Problem(m.inner(x, y)).solve()


def test_a_number_alone_is_no_problem():
    with pytest.raises(sp.ProblemError, match="no variables; expected one at least"):
        m.Problem(10.0)


def test_the_worst_covariance_has_a_closed_form():
    """The covariance may differ from S by half of s_i s_j. For w >= 0 the worst one is S + s s'/2, and the minimum of
    w'Sw + (s'w)^2/2 with the sum 1 is 1/(1' M^-1 1) with M = S + s s'/2, where M^-1 1 is positive.
    """
    S = np.array([[1.0, -0.3], [-0.3, 2.0]])
    s = np.sqrt(np.diag(S))
    w = m.minimiser(2, "w", sp.Simplex())
    answer = m.Problem(m.quad_form(w, S) + 0.5 * m.sum_squares(s @ w)).solve(gap=1e-10)
    v = np.linalg.solve(S + 0.5 * np.outer(s, s), np.ones(2))
    assert abs(answer.value - 1.0 / v.sum()) <= 1e-9
    assert np.allclose(answer["w"], [0.70348158, 0.29651842], atol=1e-6)


def test_players_without_a_common_term_are_solved_apart():
    x, y = boxed(1, "x", -1, 1), boxed(1, "y", -2, 2, m.maximiser)
    answer = m.Problem(x.sum() + y.sum()).solve(gap=GAP)
    assert abs(answer.value - 1.0) <= GAP


@pytest.mark.parametrize(("player", "value"), [(m.minimiser, -10.0), (m.maximiser, 10.0)])
def test_one_player_alone_reaches_its_bound(player, value):
    k = boxed(1, "k", -10, 10, player)
    assert abs(m.Problem(k.sum()).solve(gap=GAP).value - value) <= GAP


@pytest.mark.parametrize("reach", [0.1, 1.0])
def test_arbitrage_with_uncertain_prices_gains_where_all_prices_within_reach_allow_it(reach):
    """Without bounds on the holdings the problem is unbounded for small perturbations, and it is refused. With bounds,
    the value is negative exactly if the holdings gain at all prices within reach.
    """
    V = np.array([[1.5, 0.5], [0.5, 1.5]])
    prices = np.array([0.1, 1.0])
    free, p = m.minimiser(2, "x"), m.maximiser(2, "prices", sp.Box(prices - reach, prices + reach))
    with pytest.raises(sp.ProblemError, match="x has no bounds"):
        m.Problem(m.inner(free, p), [V @ free >= 0], multiplier_bound=100.0).solve()
    x = boxed(2, "x", -1, 1)
    answer = m.Problem(m.inner(x, p), [V @ x >= 0], multiplier_bound=100.0).solve(gap=1e-8)
    corners = np.array([[0.0, 0.0], [1.0, -1 / 3], [-1 / 3, 1.0], [1.0, 1.0]])  # of V x >= 0, |x_i| <= 1
    value = min(prices @ x + reach * np.abs(x).sum() for x in corners)
    assert answer.value == pytest.approx(value, abs=1e-6)
    assert bool(value < 0.0) is (reach == 0.1)


@pytest.mark.slow
def test_a_robust_portfolio_agrees_with_cvxpy():
    """Expected returns within a box, and a covariance whose entries are within eta of the given ones. With w >= 0 the
    worst covariance is the largest one, S + eta s s' with s the standard deviations, which is positive semidefinite.
    """
    cp = pytest.importorskip("cvxpy")
    rng = np.random.default_rng(3)
    returns = rng.standard_normal((60, 6)) @ np.diag(rng.uniform(0.5, 2.0, 6)) + 0.2
    mean, S = returns.mean(axis=0), np.cov(returns, rowvar=False)
    rho, eta, gamma, s = 0.2, 0.2, 1.0, np.sqrt(np.diag(S))
    w, delta = m.minimiser(6, "w", sp.Simplex()), m.maximiser(6, "delta", sp.Box(-rho, rho))
    risk = gamma * m.quad_form(w, S) + gamma * eta * m.sum_squares(s @ w)
    answer = m.Problem(risk - w @ mean - w @ delta).solve(gap=1e-9)
    v = cp.Variable(6, nonneg=True)
    theirs = gamma * (cp.quad_form(v, S) + eta * cp.square(s @ v)) - mean @ v + rho * cp.norm1(v)
    truth = cp.Problem(cp.Minimize(theirs), [cp.sum(v) == 1])
    truth.solve(solver=cp.CLARABEL)
    assert abs(answer.value - truth.value) < 1e-7
    assert np.linalg.norm(answer["w"] - v.value) <= answer.distance("w") + 1e-5


@pytest.mark.slow
def test_a_classifier_with_uncertain_weights_agrees_with_cvxpy():
    """Hinge losses of two groups with uncertain weights: w_i max(0, l_i) = max u_i l_i over 0 <= u_i <= w_i."""
    cp = pytest.importorskip("cvxpy")
    rng = np.random.default_rng(4)
    n, k, eta = 16, 3, 0.05
    D, group = rng.standard_normal((n, k)), rng.random(n) < 0.4
    labels = np.where(D @ np.ones(k) + rng.standard_normal(n) > 0.0, 1.0, -1.0)
    members = np.stack([~group, group]).astype(float)  # one row a group
    theta, bias = m.minimiser(k, "theta"), m.minimiser(1, "bias", sp.Box(-5.0, 5.0))
    u = m.maximiser(n, "u", sp.Box(0.0, 1.0))
    weights = m.maximiser(2, "weights", sp.Box(0.0, 1.0))
    loss = 1.0 - labels * (D @ theta + bias)
    share = members.sum(axis=1) * np.array([0.0, 1.0])
    conditions = [
        u <= members.T @ weights,
        weights @ members.sum(axis=1) == 1.0,
        weights @ share <= 0.458,
        weights @ share >= 0.358,
    ]
    problem = m.Problem(u @ loss + eta * m.sum_squares(theta), conditions, multiplier_bound=20.0)
    answer = problem.solve(gap=1e-4)
    # At the extreme shares of the second group the maximum over the weights is attained.
    t, b = cp.Variable(k), cp.Variable()
    hinge = cp.pos(1.0 - cp.multiply(labels, D @ t + b))
    sums = [cp.sum(cp.multiply(members[i], hinge)) / members[i].sum() for i in range(2)]
    worst = cp.maximum(*[(1.0 - q) * sums[0] + q * sums[1] for q in (0.358, 0.458)])
    truth = cp.Problem(cp.Minimize(worst + eta * cp.sum_squares(t)), [cp.abs(b) <= 5.0])
    truth.solve(solver=cp.CLARABEL)
    assert answer.solved
    assert np.linalg.norm(answer["theta"] - t.value) <= answer.distance("theta") + 1e-4
    assert answer.distance("theta") < 0.1
    assert abs(answer.value - truth.value) < 1e-3


@pytest.mark.slow
def test_production_with_worst_case_prices_agrees_with_cvxpy():
    """Maximise the worst profit <p, q> - |q|^2/2 over prices p = F f + c with factors f of a ball."""
    cp = pytest.importorskip("cvxpy")
    rng = np.random.default_rng(5)
    F, R = rng.uniform(0.5, 1.5, (5, 2)), rng.random((3, 5))
    nominal = 3.0 * np.ones(5)
    q, f = m.maximiser(5, "q", sp.Box(0.0, 10.0)), m.minimiser(2, "f", sp.Ball(1.0))
    problem = m.Problem(q @ (F @ f + nominal) - 0.5 * m.sum_squares(q), [R @ q <= 1.0], multiplier_bound=50.0)
    answer = problem.solve(gap=1e-8)
    v = cp.Variable(5, nonneg=True)
    profit = nominal @ v - cp.norm(F.T @ v) - 0.5 * cp.sum_squares(v)
    truth = cp.Problem(cp.Maximize(profit), [R @ v <= 1.0])
    truth.solve(solver=cp.CLARABEL)
    assert abs(answer.value - truth.value) < 1e-6
    assert np.linalg.norm(answer["q"] - v.value) <= answer.distance("q") + 1e-5
