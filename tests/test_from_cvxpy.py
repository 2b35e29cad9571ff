"""``sp.from_cvxpy``: the problem is the one that CVXPY solves, and what is not of the class is named."""

import numpy as np
import pytest

import saddlepoint as sp

cp = pytest.importorskip("cvxpy")
pytestmark = pytest.mark.slow  # CVXPY takes seconds to be imported

RNG = np.random.default_rng(1)
D, T, B = RNG.standard_normal((6, 4)), RNG.standard_normal(6), RNG.standard_normal((5, 2))


def variables():
    return cp.Variable((2, 3), name="X"), cp.Variable(4, name="z", nonneg=True), cp.Variable(3, name="w", bounds=[0, 1])


def check(problem, gap=1e-7, **options):
    """Solve the problem by both, and compare values and points."""
    own = sp.from_cvxpy(problem, **options)
    answer = own.solve(gap=gap)
    problem.solve(solver=cp.CLARABEL)
    sign = -1.0 if isinstance(problem.objective, cp.Maximize) else 1.0
    violated = max([0.0, *answer.violations.values()]) * (own.multiplier_bound or 0.0)
    assert answer.solved
    assert abs(sign * answer.value - problem.value) <= answer.gap + violated + 1e-6 * max(1.0, abs(problem.value))
    for v in problem.variables():
        assert answer[v.name()].shape == v.shape
        assert np.linalg.norm(answer[v.name()] - v.value) <= answer.distance(v.name()) + 1e-3
    return answer


def test_every_kind_of_term_is_read():
    X, z, w = variables()
    smooth = cp.sum_squares(D @ z - T) + cp.sum_squares(X) / 3 + cp.sum(cp.huber(D[:3] @ z, 0.3)) + cp.log_sum_exp(z)
    smooth += (
        cp.quad_form(w, np.eye(3)) + cp.logistic(w[0] - 1) + cp.sum(2 * cp.square(w) + w) + cp.quad_over_lin(z, 2.0)
    )
    norms = (
        2 * cp.norm1(B @ X - 1) + cp.norm(X - 1, "fro") + cp.sum(cp.pos(D @ z)) + cp.max(w) + cp.sum(cp.abs(z - 0.1))
    )
    norms += 0.5 * cp.sum(cp.maximum(w, 0.3)) + cp.norm_inf(z)
    conditions = [cp.sum(w) == 1, X[0, 0] + z[1] <= 0.3, cp.norm(X, "fro") <= 2, cp.abs(z) <= 0.7]
    answer = check(cp.Problem(cp.Minimize(smooth + norms - cp.sum(z)), conditions), multiplier_bound=100.0)
    assert answer.distance("X") < 1e-2


def test_a_maximum_of_concave_terms_is_read():
    _, _, w = variables()
    check(cp.Problem(cp.Maximize(cp.sum(w) - cp.sum_squares(w[:2]) - cp.norm1(w - 0.3))))


def test_quadratic_and_linear_programs_are_read_with_or_without_a_bound_on_multipliers():
    F = RNG.standard_normal((5, 5))
    x = cp.Variable(5, name="x")
    E = RNG.standard_normal((2, 5))
    conditions = [E @ x == 1.0, x <= 2.0, x >= -2.0]
    check(cp.Problem(cp.Minimize(cp.quad_form(x, cp.psd_wrap(F @ F.T)) - cp.sum(x)), conditions), multiplier_bound=50.0)
    problem = cp.Problem(cp.Minimize(RNG.standard_normal(5) @ x + cp.norm1(x)), conditions)
    check(problem, gap=1e-5, multiplier_bound=50.0)
    program = sp.from_cvxpy(problem).solve()  # without a bound on the multipliers: a proven interval
    assert program.status == "optimal"
    assert program.lower - 1e-6 <= problem.value <= program.upper + 1e-6
    assert np.allclose(program["x"], x.value, atol=1e-4)


def test_the_variables_keep_their_values():
    X, z, _ = variables()
    X.value, z.value = np.ones((2, 3)), None
    sp.from_cvxpy(cp.Problem(cp.Minimize(cp.sum_squares(X) + cp.sum_squares(z))))
    assert X.value.tolist() == [[1.0] * 3] * 2
    assert z.value is None


@pytest.mark.parametrize(
    ("build", "sentence"),
    [
        (lambda X, z, w: cp.Minimize(cp.sum(cp.exp(w))), r"the term exp\(w\) of the objective is not of the class"),
        (lambda X, z, w: cp.Minimize(cp.sum_largest(w, 2)), r"the term sum_largest\(w, 2"),
        (lambda X, z, w: cp.Minimize(cp.mixed_norm(X, 2, 1)), "is not of the class"),
        (lambda X, z, w: cp.Minimize(-cp.sum_squares(w)), "is concave, but w belongs to the minimiser"),
        (lambda X, z, w: cp.Minimize(cp.sum(cp.Variable(2, integer=True))), "has the attribute integer"),
    ],
)
def test_terms_that_are_not_of_the_class_are_refused(build, sentence):
    with pytest.raises(sp.ProblemError, match=sentence):
        sp.from_cvxpy(cp.Problem(build(*variables())))


def test_constraints_that_are_not_of_the_class_are_refused():
    _, z, w = variables()
    for condition in (cp.exp(w) <= 1, cp.SOC(w[0], z), cp.sum(cp.square(w)) + cp.norm1(w) <= 1):
        with pytest.raises(sp.ProblemError, match="constraint"):
            sp.from_cvxpy(cp.Problem(cp.Minimize(cp.sum(w)), [condition]))
    with pytest.raises(sp.ProblemError, match=r"expected a cvxpy\.Problem"):
        sp.from_cvxpy(3)


def test_weights_and_smallest_entries_are_read():
    _, z, w = variables()
    c = np.array([0.5, 2.0, 3.0])
    terms = (
        c @ cp.square(w - 0.4) + cp.sum(cp.multiply(c, cp.abs(w - 0.2))) + cp.sum(cp.multiply(c, cp.maximum(w, 0.3)))
    )
    terms += cp.sum(cp.abs(w - 0.5) / c) - cp.min(w - c) - cp.sum(cp.multiply(-c, cp.pos(w - 0.1))) + cp.sum_squares(z)
    check(cp.Problem(cp.Minimize(terms)))
    with pytest.raises(sp.ProblemError, match=r"the term .*huber.* of the objective is not of the class"):
        sp.from_cvxpy(cp.Problem(cp.Minimize(cp.sum(cp.multiply(c, cp.huber(w))))))
    with pytest.raises(sp.ProblemError, match=r"the term .*abs.* of the objective is not of the class"):
        sp.from_cvxpy(cp.Problem(cp.Minimize(cp.sum(cp.multiply([1.0, -1.0, 1.0], cp.abs(w))))))


def test_a_number_divided_by_a_function_is_refused():
    """It is not the function divided by the number."""
    s = cp.Variable(name="s", bounds=[1, 3])
    for quotient in (2 / s, 1 / cp.square(s)):
        with pytest.raises(sp.ProblemError, match="is not of the class"):
            sp.from_cvxpy(cp.Problem(cp.Minimize(quotient)))


def test_a_parameter_without_a_value_is_named():
    _, z, _ = variables()
    weight = cp.Parameter(nonneg=True, name="weight")
    problem = cp.Problem(cp.Minimize(cp.sum_squares(z) + weight * cp.norm1(z)))
    with pytest.raises(sp.ProblemError, match="the parameter weight has no value; give it one first"):
        sp.from_cvxpy(problem)
    weight.value = 0.5
    check(problem)
