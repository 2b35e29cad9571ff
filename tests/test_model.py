"""``sp.model``: problems written with variables are those that were meant, and what is not of the class is refused."""

import numpy as np
import pytest
from scipy.optimize import minimize, minimize_scalar
from scipy.sparse import csr_array
from scipy.sparse.linalg import aslinearoperator
from scipy.special import expit

import saddlepoint as sp

m = sp.model
RNG = np.random.default_rng(5)
A = RNG.standard_normal((3, 2))
D, T = RNG.standard_normal((6, 3)), RNG.standard_normal(6)


def players(**within):
    return m.minimiser(3, "x", within.get("x")), m.maximiser(2, "y", within.get("y"))


# -- the standard form -------------------------------------------------------------------------------------------------


def test_the_standard_form_is_the_problem_that_was_written():
    x, y = players()
    f = m.Problem(m.sum_squares(D @ x - T) + x @ A @ y + y @ np.ones(2) - 2.0 * m.sum_squares(y)).saddle
    u, v = RNG.standard_normal(3), RNG.standard_normal(2)
    Fx, Fy = f.field(u, v)
    assert np.allclose(Fx, 2.0 * D.T @ (D @ u - T) + A @ v, rtol=1e-13)
    assert np.allclose(Fy, 4.0 * v - np.ones(2) - A.T @ u, rtol=1e-13)


def test_mu_is_proven_and_close():
    x, y = players()
    f = m.Problem(m.sum_squares(D @ x - T) + x @ A @ y - 2.0 * m.sum_squares(y)).saddle
    least = 2.0 * np.linalg.svd(D, compute_uv=False)[-1] ** 2
    assert 0.99 * least < f.mu_x <= least
    assert f.mu_y == 4.0
    assert f.g.trusted
    assert f.h.trusted


def test_mu_of_terms_that_are_strongly_convex_only_together():
    x, y = players()
    first, rest = D[:2], csr_array(D[2:])
    f = m.Problem(m.sum_squares(first @ x) + m.sum_squares(rest @ x) + x @ A @ y - m.sum_squares(y)).saddle
    least = 2.0 * np.linalg.svd(D, compute_uv=False)[-1] ** 2
    assert 0.99 * least < f.mu_x <= least


def test_an_answer_is_read_by_name_by_variable_and_by_tree():
    tree = m.minimiser({"weights": (2, 2), "bias": [1, 3]}, "net")
    W, (b, c) = tree["weights"], tree["bias"]
    target = np.arange(4.0).reshape(2, 2)
    answer = m.Problem(m.sum_squares(W - target) + m.sum_squares(b - 7.0) + m.sum_squares(c)).solve()
    assert np.allclose(answer["net.weights"], target)
    assert np.allclose(answer[W], target)
    found = answer[tree]
    assert np.allclose(found["weights"], target)
    assert np.allclose(found["bias"][0], 7.0)
    assert found["bias"][1].shape == (3,)
    assert answer.distance(W) <= 1e-6


def test_matrix_variables_are_multiplied_from_both_sides():
    X = m.minimiser((2, 3), "X")
    B, C = RNG.standard_normal((4, 2)), RNG.standard_normal((3, 5))
    value = RNG.standard_normal((2, 3))
    for e, truth in (
        (B @ X @ C, B @ value @ C),
        (csr_array(B) @ X, B @ value),
        (X.T, value.T),
        (X[1] - X[0], value[1] - value[0]),
        (X.sum(axis=0), value.sum(axis=0)),
        (X.sum(), value.sum()),
        (2.0 - X / 4.0, 2.0 - value / 4.0),
        (X * value, value**2),
        (X + np.ones(3), value + 1.0),
    ):
        assert e.shape == truth.shape
        assert np.allclose(e.value({X: value}), truth, rtol=1e-14)


def test_terms_tie_several_variables_together():
    x, z, y = m.minimiser(3, "x"), m.minimiser(2, "z"), m.maximiser(2, "y", sp.Ball(1.0))
    E = RNG.standard_normal((6, 2))
    objective = m.sum_squares(D @ x + E @ z - T) + 0.1 * m.sum_squares(z) + z @ y
    answer = m.Problem(objective).solve(gap=1e-10)
    both = np.concatenate([answer["x"], answer["z"]])
    H = 2.0 * np.hstack([D, E]).T @ np.hstack([D, E]) + 0.2 * np.diag([0, 0, 0, 1.0, 1.0])
    b = 2.0 * np.hstack([D, E]).T @ T - np.concatenate([np.zeros(3), answer["y"]])
    assert np.linalg.norm(both - np.linalg.solve(H, b)) <= answer.distance("x") + 1e-12


def test_operators_are_terms_and_couplings():
    K = aslinearoperator(D)
    x, y = m.minimiser(3, "x"), m.maximiser(6, "y", sp.Box(-0.1, 0.1))
    operator = m.sum_squares(m.linear_map(K, x) - T) + 0.5 * m.sum_squares(x) + m.linear_map(K, x) @ y
    matrix = m.sum_squares(D @ x - T) + 0.5 * m.sum_squares(x) + (D @ x) @ y
    one, two = (m.Problem(objective).solve(gap=1e-9) for objective in (operator, matrix))
    assert np.linalg.norm(one["x"] - two["x"]) <= one.distance("x") + two.distance("x")
    huber = m.Problem(m.huber(m.linear_map(K, x) - T, 0.1) + m.sum_squares(x)).solve(gap=1e-9)
    plain = m.Problem(m.huber(D @ x - T, 0.1) + m.sum_squares(x)).solve(tol=1e-9)
    assert np.linalg.norm(huber["x"] - plain["x"]) <= huber.distance("x") + plain.distance("x")


def test_a_function_of_ones_own_is_composed_with_a_map():
    f = sp.Smooth(lambda r: r + np.tanh(r), mu=1.0, L=2.0, value=lambda r: float(r @ r / 2 + np.log(np.cosh(r)).sum()))
    x, y = players(y=sp.Box(-1.0, 1.0))
    own = m.function(f, D @ x - T) + 0.5 * m.sum_squares(x) + x @ A @ y
    ready = 0.5 * m.sum_squares(D @ x - T) + m.log_cosh(D @ x - T) + 0.5 * m.sum_squares(x) + x @ A @ y
    one, two = m.Problem(own).solve(gap=1e-9), m.Problem(ready).solve(gap=1e-9)
    assert np.linalg.norm(one["x"] - two["x"]) <= one.distance("x") + two.distance("x")
    assert abs(one.value - two.value) <= one.gap + two.gap + 1e-12


INSIDE = {"x": lambda x: x, "x - t": lambda x: x - T[:3], "D x - t": lambda x: D @ x - T}


@pytest.mark.parametrize("name", INSIDE)
def test_the_accuracy_that_is_stated_of_a_function_is_kept(name):
    """The gradient has a constant error, which is at most 1e-3 (|grad| + L |x|) everywhere."""
    x, y = players()
    answers = []
    for error in (5e-4, 0.0):
        f = sp.Smooth(lambda r, error=error: 2.0 * (r - 1.0) + error, mu=2.0, L=2.0, accuracy=2.0 * error)
        problem = m.Problem(m.function(f, INSIDE[name](x)) + m.sum_squares(x) + x @ A @ y - m.sum_squares(y))
        answers.append(problem.solve(tol=1e-9, max_calls=5000))
    wrong, right = answers
    away = np.linalg.norm(wrong["x"] - right["x"])
    assert 1e-5 < away <= wrong.distance("x") + right.distance("x")
    assert wrong.distance("x") < 0.1


def test_bounds_that_are_added_hold_at_the_solution():
    """x has curvature and no bounds, z has bounds and no curvature; the bounds of x must not move the solution."""
    x, z, y = m.minimiser(3, "x"), m.minimiser(2, "z", sp.Box(-1.0, 1.0)), m.maximiser(2, "y", sp.Simplex())
    problem = m.Problem(1e-3 * m.sum_squares(x - 50.0) + x @ A @ y + z @ y)
    f, box = problem.saddle, problem.form.minimiser.within[x]
    assert f.mu_x == 0.0
    assert box.diameter_in(3) < np.inf
    answer = problem.solve(gap=1e-8)
    assert (np.abs(answer["x"]) < box.upper.everywhere(3)).all()
    assert np.allclose(answer["x"], 50.0 - 500.0 * A @ answer["y"], atol=answer.distance("x"))


def test_a_linear_model_with_an_intercept_has_bounds_for_its_weights():
    """The loss ties the weights to an intercept without curvature, and the penalty of the weights bounds them."""
    rng = np.random.default_rng(4)
    D, B = rng.standard_normal((60, 4)), rng.standard_normal((4, 2))
    t = np.where(D @ [1.0, -1.0, 0.5, 0.0] + rng.standard_normal(60) > -1.0, 1.0, -1.0)
    w, b, y = m.minimiser(4, "w"), m.minimiser(1, "b", sp.Box(-3.0, 3.0)), m.maximiser(2, "y", sp.Simplex())
    rows = t[:, None] * np.column_stack([D, np.ones(60)])
    problem = m.Problem(0.05 * m.sum_squares(w) + m.logistic(-(rows[:, :4] @ w + rows[:, 4:] @ b)) / 60 + w @ B @ y)
    answer = problem.solve(gap=1e-9)
    assert problem.saddle.mu_x == 0.0
    box = problem.form.minimiser.within[w]
    assert (np.abs(answer["w"]) < box.upper.everywhere(4)).all()

    def least(share):
        """The minimum over w and b where the maximiser has this share in the first column."""

        def cost(v):
            losses = np.logaddexp(0.0, -(rows @ v))
            slope = np.append(0.1 * v[:4] + B @ [share, 1.0 - share], 0.0) - rows.T @ expit(-(rows @ v)) / 60
            return 0.05 * v[:4] @ v[:4] + losses.mean() + v[:4] @ B @ [share, 1.0 - share], slope

        limits = [(None, None)] * 4 + [(-3.0, 3.0)]
        return minimize(cost, np.zeros(5), jac=True, bounds=limits, options={"ftol": 1e-15, "gtol": 1e-9})

    share = minimize_scalar(lambda s: -least(s).fun, bounds=(0.0, 1.0), options={"xatol": 1e-9}).x
    assert abs(answer.value - least(share).fun) <= 1e-7
    assert np.linalg.norm(answer["w"] - least(share).x[:4]) <= answer.distance("w") + 1e-4


def test_simple_constraints_become_simple_functions():
    x, y = players()
    conditions = [x >= 0.0, x.sum() == 2.0, m.norm2(y) <= 3.0]
    form = m.Problem(x @ A @ y, conditions).form
    assert form.minimiser.within[x].total == 2.0
    assert "Ball(3" in repr(form.maximiser.within[y])
    form = m.Problem(m.norm1(x) + x @ A @ y, [-2.0 * x <= 1.0, x <= 4.0, y >= -1.0, y <= 1.0]).form
    box = form.minimiser.within[x]
    assert box.weight.everywhere(3).tolist() == [1.0] * 3
    assert box.lower.everywhere(3).tolist() == [-0.5] * 3
    assert box.upper.everywhere(3).tolist() == [4.0] * 3


def test_conditions_on_entries_become_bounds():
    x, y = players()
    conditions = [x[1:] >= [1.0, -2.0], 2.0 * x[0] == 3.0, x[[2, 2]] <= [5.0, 4.0], y[0] == -1.0, y[1] <= 3.0]
    form = m.Problem(m.sum_squares(x) + x @ A @ y - m.sum_squares(y), conditions).form
    of_x, of_y = form.minimiser.within[x], form.maximiser.within[y]
    assert of_x.lower.everywhere(3).tolist() == [1.5, 1.0, -2.0]
    assert of_x.upper.everywhere(3).tolist() == [1.5, np.inf, 4.0]
    assert of_y.lower.everywhere(2).tolist() == [-1.0, -np.inf]
    assert of_y.upper.everywhere(2).tolist() == [-1.0, 3.0]
    answer = m.Problem(m.sum_squares(x - 5.0), [x[0] == 1.0, x[1] <= 2.0]).solve(tol=1e-9)
    assert answer["x"] == pytest.approx([1.0, 2.0, 5.0], abs=1e-9)
    with pytest.raises(sp.ProblemError, match="leaves no value for entry 1 of x: it would have to be at least 2"):
        m.Problem(m.sum_squares(x), [x[1] == 2.0, x <= 1.0]).solve()


@pytest.mark.parametrize(("norm", "order"), [(m.norm1, 1), (m.norm2, 2), (m.norm_inf, np.inf)])
def test_a_norm_around_a_point_is_a_ball(norm, order):
    x = m.minimiser(3, "x")
    centre = np.array([3.0, 0.0, -1.0])
    problem = m.Problem(m.sum_squares(x), [norm(x - centre) <= 2.0])
    assert problem.saddle.shape == (3, 1)  # no multiplier
    found = problem.solve(tol=1e-9)["x"]
    nearest = {1: [1.5, 0.0, -0.5], 2: centre * (1.0 - 2.0 / np.sqrt(10.0)), np.inf: [1.0, 0.0, 0.0]}[order]
    assert np.linalg.norm(found - centre, order) <= 2.0 + 1e-9
    if order != 1:
        assert found == pytest.approx(nearest, abs=1e-8)
    assert found @ found <= np.asarray(nearest) @ nearest + 1e-8


def test_constraints_of_the_maximiser_have_multipliers_too():
    x, y = players(x=sp.Simplex(), y=sp.NonNegative())
    answer = m.Problem(x @ A @ y - m.sum_squares(y), [y.sum() == 1.0], multiplier_bound=50.0).solve(gap=1e-8)
    direct = m.Problem(x @ A @ y - m.sum_squares(y), [y.sum() == 1.0, y >= 0.0], multiplier_bound=50.0)
    assert direct.form.maximiser.within[y].total == 1.0
    truth = direct.solve(gap=1e-10)
    assert np.linalg.norm(answer["y"] - truth["y"]) <= answer.distance("y") + truth.distance("y")
    assert any("multipliers" in sentence for sentence in answer.certificate.assumes) is (answer.multipliers != {})


def test_a_start_is_used_and_checked():
    x, y = players(y=sp.Simplex())
    problem = m.Problem(m.sum_squares(x - 1.0) + x @ A @ y)
    first = problem.solve(gap=1e-8)
    again = problem.solve(first.values, gap=1e-8)
    assert again.result.iterations < first.result.iterations
    with pytest.raises(sp.ProblemError, match="'w' is no variable of the problem; expected one of x, y"):
        problem.solve({"w": [1.0]})
    with pytest.raises(sp.ProblemError, match=r"the value of x has the shape \(2,\); expected \(3,\)"):
        problem.solve({"x": [1.0, 2.0]})


@pytest.mark.parametrize("within", [sp.L1(0.3), sp.Norm2(0.4), sp.Nuclear((3, 2), 0.5), sp.L1(0.3) + sp.Box(-1, 0.2)])
@pytest.mark.parametrize("player", ["minimiser", "maximiser"])
def test_the_value_counts_the_functions_of_the_variables(within, player):
    """The value at the answer is within the certified gap of the one with the same function as a term."""
    target = np.array([[1.0, -2.0], [0.1, 0.5], [0.0, 3.0]])
    variable = getattr(m, player)((3, 2), "X", within)
    sign = 1.0 if player == "minimiser" else -1.0
    problem = m.Problem(sign * 0.5 * m.sum_squares(variable - target))
    answer = problem.solve(gap=1e-10)
    best = within.prox(target.ravel(), 1.0)  # the minimiser of the same sum
    value = sign * (0.5 * np.sum((best - target.ravel()) ** 2) + within(best))
    assert abs(answer.value - value) <= answer.gap + 1e-12
    assert abs(problem.value({"X": best.reshape(3, 2)}) - value) <= 1e-12


# -- refusals ----------------------------------------------------------------------------------------------------------


def _refusals():
    x, y = players()
    X = m.minimiser((2, 3), "X")
    return [
        (lambda: m.Problem(-m.sum_squares(x)), r"-sum_squares\(x\) is concave, but x belongs to the minimiser"),
        (
            lambda: m.Problem(2.0 * m.norm1(A @ y)),
            r"2 \* norm1\(matrix @ y\) is convex, but y belongs to the maximiser",
        ),
        (lambda: m.Problem(m.entropy(x)), r"term entropy\(x\) is concave, but x belongs to the minimiser"),
        (lambda: m.Problem(m.norm2(A.T @ x + y)), "mixes variables of both players: x belongs to the minimiser"),
        (lambda: x @ x, "no bilinear term of the two players: x belongs to the minimiser. Expected"),
        (lambda: x * y, "product of two expressions"),
        (lambda: (x @ A @ y) @ x, "product of more than two expressions"),
        (lambda: max(x, 0.0), r"Python's max and min compare as well: write max_entry\(x\), or positive_part"),
        (lambda: x * m.norm1(x), "product of two expressions"),
        (lambda: m.norm1(m.sum_squares(x)), "norm1 was given sum_squares"),
        (lambda: m.Problem(x), r"x has the shape \(3,\), but an objective is one number"),
        (lambda: m.Problem("x"), "the objective is 'x'"),
        (lambda: y @ A, "cannot be multiplied by a 3 x 2"),
        (lambda: A @ x, "a 3 x 2 matrix cannot be multiplied by x"),
        (lambda: x + np.ones(4), "have the shapes"),
        (lambda: x @ np.ones(4), "expected a vector of 3 numbers"),
        (lambda: m.inner(X, x), "expected expressions of one shape"),
        (lambda: m.inner(X, m.maximiser((3, 2), "Y")), r"\(2, 3\) and \(3, 2\); expected expressions of one shape"),
        (lambda: X @ m.maximiser((3, 2), "Y"), r"write inner\(X, Y\) for the sum of the products"),
        (lambda: x @ m.maximiser((3, 1), "Y"), "two matrices of variables is a matrix of bilinear terms"),
        (lambda: m.quad_form(x, np.eye(4)), r"P of quad_form has the shape \(4, 4\)"),
        (lambda: x[5], "x has the shape"),
        (lambda: x * np.nan, "finite numbers"),
        (lambda: x < 1.0, "x was compared by < or >; expected <=, >= or =="),
        (lambda: 2.0 * x > 1.0, r"2 \* x was compared by < or >"),
        (lambda: abs(x - 1.0), r"write norm1\(x - 1\) for the sum"),
        (lambda: x**2, r"\(x\) \*\* 2 is not affine; write sum_squares"),
        (lambda: np.dot(np.ones((2, 3)), x), "numpy.dot was given x, an expression; write D @ x"),
        (lambda: np.sum(x), r"numpy.sum was given x, .*x.sum\(\) for a sum"),
        (lambda: m.Problem(m.sum_squares(x)).certify({}), "no values to certify"),
        (lambda: m.Problem(m.sum_squares(x)).certify({"x": [1.0, np.nan, 0.0]}), "the value of x contains nan"),
        (lambda: m.minimiser(0, "x"), "the shape of x is 0"),
        (lambda: m.minimiser(3, ""), "the name of a variable"),
        (lambda: m.minimiser(3, "x", "simplex"), "within of x is 'simplex'"),
        (lambda: m.norm1(x) >= 1.0, "at least a number makes no convex set"),
        (lambda: m.logistic(x) <= 1.0, "no constraint of the class"),
        (lambda: m.norm1(x) <= -1.0, "at most one point"),
        (lambda: m.Problem(m.sum_squares(x), [True]), "constraint 0 is True"),
        (lambda: m.Problem(m.sum_squares(x), [A.T @ x == y]), "mixes variables of both players"),
        (lambda: m.Problem(m.sum_squares(x), x >= 0.0), "expected a list of constraints"),
        (lambda: m.Problem(m.sum_squares(x) + m.sum_squares(m.minimiser(2, "x"))), "two variables are called 'x'"),
        (lambda: bool(x <= 1.0), "neither true nor false"),
        (lambda: m.Problem(3.0), "no variables"),
        (lambda: m.Problem(m.sum_squares(x), multiplier_bound=-1.0), "multiplier_bound"),
        (lambda: m.function(np.tanh, x), "expected sp.Smooth"),
        (lambda: np.exp(x), "numpy.exp was given x, an expression; write"),
        (lambda: np.maximum(x, 0.0), "numpy.maximum was given x"),
        (lambda: np.abs(A.T @ x), "numpy.absolute was given matrix @ x"),
        (lambda: sum(x), r"x is no sequence; write x\[i\] for a part, and .sum"),
        (lambda: 1.0 / x, r"1.0 / \(x\) is not affine"),
        (lambda: x / 0.0, "the divisor of x is zero"),
        (lambda: x / x, r"\(x\) / \(x\) is not of the class"),
        (lambda: m.norm1(x) / 0, r"the divisor of norm1\(x\) is zero"),
        (lambda: m.norm1(x) / x, r"\(norm1\(x\)\) / \(x\) is not of the class"),
        (lambda: 1.0 / m.norm1(x), r"1.0 / \(norm1\(x\)\) is not of the class"),
        (lambda: m.norm2(x) ** 2, r"the square of a norm is sum_squares"),
        (lambda: "2" * m.norm1(x), r"the factor of norm1\(x\) is '2'"),
        (lambda: x + np.array([1j, 0.0, 0.0]), "expected a number or an array of real numbers"),
        (lambda: 1j * m.norm1(x), r"the factor of norm1\(x\) is 1j"),
        (lambda: m.norm2(x) == 1.0, r"norm2\(x\) == 1.0: a function that is equal to a number makes no convex set"),
        (lambda: x[0] == m.norm2(x), "a function that is equal to a number makes no convex set"),
        (lambda: m.norm2(x) < 1.0, "was compared by < or >; expected <="),
        (lambda: 0.0 <= x <= 1.0, "write 0 <= x <= 1 as two constraints"),
        (lambda: m.norm1(x) <= np.ones(3), "no constraint of the class"),
        (
            lambda: m.Problem(m.huber(x), [x[0] == x[1]]).solve(multiplier_bound=3.0),
            r"write Problem\(objective, constraints, multiplier_bound=M\).solve",
        ),
    ]


@pytest.mark.parametrize(("build", "sentence"), _refusals())
def test_what_is_not_of_the_class_is_refused_by_name(build, sentence):
    with pytest.raises(sp.ProblemError, match=sentence):
        build()


@pytest.mark.parametrize(
    ("build", "sentence"),
    [
        (
            lambda x, y: m.Problem(x @ A @ y - m.sum_squares(y)),
            "x has no bounds and the objective is not strongly convex",
        ),
        (
            lambda x, y: m.Problem(m.sum_squares(x) + x @ A @ y),
            "y has no bounds and the objective is not strongly conc",
        ),
        (
            lambda x, y: m.Problem(m.quad_form(x, -np.eye(3))),
            r"the term quad_form\(x\) is not of the class: P is not pos",
        ),
        (lambda x, y: m.Problem(m.huber(x), [A.T @ x == 1.0]), "matrix @ x == 1 needs a multiplier"),
        (lambda x, y: m.Problem(m.sum_squares(x), [x >= 1.0, x <= 0.0]), "x <= 0 leaves no value for entry 0 of x"),
        (lambda x, y: m.Problem(m.sum_squares(x) + m.entropy(2.0 * y)), "the entropy is taken of whole variables"),
    ],
)
def test_problems_about_which_nothing_can_be_proven_are_refused(build, sentence):
    with pytest.raises(sp.ProblemError, match=sentence):
        build(*players()).solve()


@pytest.mark.parametrize(
    ("name", "instead"),
    [
        ("sum", r"x.sum\(\)"),
        ("minimizer", "minimiser"),
        ("norm", "norm2"),
        ("sum_square", "did you mean 'sum_squares'"),
        ("power", r"sum_squares\(x\) for squares"),
        ("saddle_max", r"maximiser\(shape, name\) for the variables of the maximum"),
        ("weighted_norm2", "with weights that are variables it is not bilinear"),
    ],
)
def test_names_of_other_libraries_are_answered_by_ours(name, instead):
    with pytest.raises(AttributeError, match=f"sp.model has no '{name}'.*{instead}"):
        getattr(m, name)


def test_products_have_the_shapes_of_numpy():
    X, value = m.minimiser((2, 3), "X"), np.arange(6.0).reshape(2, 3)
    for left, right in ((None, np.ones(3)), (np.ones(2), None), (np.ones((4, 2)), None), (None, np.ones((3, 1)))):
        product = X @ right if left is None else left @ X
        expected = value @ right if left is None else left @ value
        assert product.shape == expected.shape
        np.testing.assert_array_equal(product.value({X: value}), expected)
    assert (np.ones(3) @ m.minimiser(3, "x")).shape == ()


def test_numbers_are_spread_over_arrays_of_factors():
    t, x = m.minimiser((), "t"), m.minimiser(2, "x")
    factors = np.arange(6.0).reshape(3, 2)
    for product, value in (
        (factors * t, 2.0 * factors),
        (factors * x, factors * [1.0, -1.0]),
        (t / [2.0, 4.0], [1, 0.5]),
    ):
        np.testing.assert_allclose(product.value({t: 2.0, x: [1.0, -1.0]}), value)
    with pytest.raises(sp.ProblemError, match=r"the factor of x has the shape \(4,\); expected \(2,\)"):
        np.ones(4) * x


def test_expressions_and_numbers_are_joined_to_one_vector():
    t, X = m.minimiser((), "t"), m.minimiser((2, 2), "X")
    e = m.concatenate([t, 3.0, 2.0 * X, X[0] - t])
    assert e.shape == (8,)
    np.testing.assert_array_equal(e.value({t: 5.0, X: [[1.0, 2.0], [3.0, 4.0]]}), [5, 3, 2, 4, 6, 8, -4, -3])
    for wrong, sentence in ((t, "expected a list"), ([], "no expressions"), ([m.norm1(X)], "no affine expression")):
        with pytest.raises(sp.ProblemError, match=sentence):
            m.concatenate(wrong)


def test_series_of_pandas_are_constants():
    pandas = pytest.importorskip("pandas")
    x, _ = players()
    series, value = pandas.Series([1.0, 2.0, 3.0]), {x: np.array([0.5, -1.0, 4.0])}
    for e, expected in (
        (series - x, series - value[x]),
        (x * series, series * value[x]),
        (series + x, series + value[x]),
    ):
        np.testing.assert_array_equal(e.value(value), expected)
    assert (series >= x).text == "x <= array"


def test_arrays_of_numpy_stand_on_either_side():
    """NumPy hands its operations over; each gives what the operation the other way round gives."""
    x, _ = players()
    c, value = np.array([1.0, 2.0, 3.0]), {x: np.array([0.5, -1.0, 4.0])}
    for one, two in ((c + x, x + c), (c - x, -(x - c)), (c * x, x * c), (np.float64(2.0) * x, x * 2.0)):
        np.testing.assert_array_equal(one.value(value), two.value(value))
    for one, two in ((c <= x, x >= c), (c >= x, x <= c), (c == x, x == c)):
        assert one.kind == two.kind
        np.testing.assert_array_equal(np.abs(one.of.value(value)), np.abs(two.of.value(value)))
    assert (c @ x).value(value) == c @ value[x]
    assert (m.norm1(x) - m.norm2(x)).text == "norm1(x) - norm2(x)"


# -- other people's answers --------------------------------------------------------------------------------------------


def test_anyones_values_are_certified():
    x, y = players()
    problem = m.Problem(m.sum_squares(D @ x - T) + x @ A @ y - m.sum_squares(y))
    truth = problem.solve(tol=1e-10)
    off = {"x": truth["x"] + [0.01, 0.0, 0.0], "y": truth["y"]}
    proof = problem.certify(off)
    assert 0.01 - 1e-9 <= proof.distance("x") < 1.0
    assert proof.answer is None
    half = problem.certify({"x": off["x"]}, tol=1e-9)
    assert abs(half.distance("x") - 0.01) < 1e-8
    assert half.answer is not None
    lifted = m.Problem(m.sum_squares(x) + m.norm1(D @ x - T)).certify({"x": np.zeros(3)}, gap=1e-9)
    assert lifted.answer is not None
    assert lifted.distance("x") >= np.linalg.norm(lifted.answer["x"])
    with pytest.raises(sp.ProblemError, match="'y' is no variable of the problem; expected one of x"):
        half.distance("y")


def test_programs_without_a_bound_on_multipliers_have_a_proven_interval():
    x = m.minimiser(3, "x")
    E = np.array([[1.0, 1.0, 1.0]])
    answer = m.Problem(m.sum_squares(x - 1.0) + 2.0, [E @ x == 1.5], multiplier_bound=None).solve(gap=1e-9)
    assert answer.lower <= 2.75 <= answer.upper <= answer.lower + 2e-9
    assert np.allclose(answer["x"], 0.5, atol=1e-4)
    assert np.allclose(answer.multipliers["matrix @ x == 1.5"], 1.0, atol=1e-3)
    assert max(answer.violations.values()) < 1e-9
    kinks = m.norm1(x - [1.0, 2.0, 3.0]) + m.norm_inf(x) + m.max_entry(-1.0 * x) + m.positive_part(x - 1.5)
    with_bound = m.Problem(kinks, [E @ x <= 4.0, x >= -9.0, x <= 9.0], multiplier_bound=50.0).solve(gap=1e-7)
    answer = m.Problem(kinks, [E @ x <= 4.0]).solve(gap=1e-7)
    assert answer.status == "optimal"
    assert answer.lower - 1e-6 <= with_bound.value <= answer.upper + 1e-6
    assert m.Problem(x.sum(), [E @ x <= 4.0]).solve().status == "unbounded"
    assert m.Problem(x.sum(), [x >= 0.0, E @ x <= -1.0]).solve().status == "infeasible"
    with pytest.raises(sp.ProblemError, match="tol cannot be asked of a program that has no bound"):
        m.Problem(x.sum(), [E @ x == 4.0]).solve(tol=1e-6)


def test_equations_that_contradict_each_other_by_rounding_say_what_to_do():
    """Five sums of 0.2 and four of 0.25 have different totals, so that no matrix has them all."""
    X = m.minimiser((4, 5), "X")
    sums = [X >= 0, X @ np.ones(5) == np.full(4, 0.25), np.ones(4) @ X == np.full(5, 0.2)]
    problem = m.Problem(m.inner(RNG.random((4, 5)), X), sums)
    assert "allow it by feasibility=" in repr(problem.solve())
    assert "optimal" in repr(problem.solve(feasibility=1e-9))


@pytest.mark.parametrize(
    ("constant", "value"),
    [
        (m.norm1([1.0, -2.0]), 3.0),
        (-2.0 * m.norm_inf([1.0, -2.0]), -4.0),
        (m.max_entry([-5.0, -3.0]), -3.0),
        (3.0 * m.positive_part([1.0, -2.0]), 3.0),
        (m.sum_squares([1.0, -2.0]), 5.0),
        (m.quad_form([1.0, -2.0], np.array([[2.0, 1.0], [1.0, 3.0]])), 10.0),
    ],
)
def test_terms_of_constants_count_in_the_interval_of_a_program(constant, value):
    x = m.minimiser(2, "x")
    answer = m.Problem(m.sum_squares(x) + constant, [x[0] + x[1] == 1.0]).solve(gap=1e-9)
    assert answer.lower <= 0.5 + value <= answer.upper
    assert answer.upper - answer.lower < 1e-8


def test_values_of_programs_without_a_solution_are_infinite():
    x = m.minimiser(2, "x")
    none = m.Problem(x.sum() + 3.0, [x >= 0.0, x.sum() <= -1.0]).solve()
    assert (none.status, none.lower, none.value, none.upper) == ("infeasible", np.inf, np.inf, np.inf)
    endless = m.Problem(x.sum() + 3.0, [x <= 0.0, x[0] - x[1] <= 1.0]).solve()
    assert (endless.status, endless.lower, endless.value, endless.upper) == ("unbounded", -np.inf, -np.inf, -np.inf)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_random_models_agree_with_cvxpy(seed):
    pytest.importorskip("cvxpy")
    from random_models import random_model

    problem, value, x = random_model(seed)
    answer = problem.solve(gap=1e-6)
    violated = max([0.0, *answer.violations.values()])
    assert answer.solved
    assert abs(answer.value - value) <= answer.gap + 200.0 * violated + 1e-6 * max(1.0, abs(value))
    assert np.linalg.norm(answer["x"] - x) <= answer.distance("x") + 1e-3
