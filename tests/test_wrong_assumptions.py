"""A run on a problem with wrong assumptions ends with a correct certificate, or with an error that names them."""

import math
import re

import numpy as np
import pytest
from cases import CASES, case
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import dense, distance, saddle_point
from tiers import slow_except, thinned
from wrong_assumptions import VIOLATIONS, Given, M, asymmetric, box, large_mu, noisy, one_sign, problem, wrong_gradient

import saddlepoint as sp
from saddlepoint.methods.registry import method_names
from saddlepoint.parts.functions.curvature_estimate import curvature
from saddlepoint.parts.functions.probes import Unexaminable
from saddlepoint.problems.generators import random_logistic, random_quadratic
from saddlepoint.problems.gradient_check import GradientCheck
from saddlepoint.problems.gradient_proofs import Pair
from saddlepoint.problems.refutations import L_too_small, mu_too_large

METHODS = [*method_names(), "auto"]
ORACLES = {info.name: info.oracle for info in sp.methods()}
TRUE_ANYWAY = ("L", "norm", "mu")  # a certificate may be true although these are wrong; the others move the solution
NAMES = {
    "L": "L of g is too small",
    "mu": "mu of [gh] is too large|cannot both hold|not convex",
    "norm": "|A| is too small",
    "a sign": "not the gradient of any function|g is not convex",
    "asymmetric": "not the gradient of any function",
    "slightly": "not the gradient of any function",
    "A'": "A' is not the transpose of A",
    "noise": r"the gradient of g \(about [0-9.e-]+\) seems noisy",
    "not": "g is not convex",
    "ripples": "g is not convex|mu of g is too large",
}


def plain(method):
    """Whether a method takes black boxes."""
    return ORACLES.get(method, "gradients") == "gradients" and method != "newton"


def names_the_violation(violation, message):
    words = next(NAMES[key] for key in (*violation.split()[-1:], *violation.split()[:1], violation) if key in NAMES)
    return re.search(words.replace("|A|", r"\|A\|"), message)


def outcome(f, **options):
    """The result or, if a violation was detected, the error."""
    try:
        return sp.solve(f, **options)
    except sp.AssumptionError as error:
        return error


def check_violation(violation, name, method):
    """Solve a wrong problem; check that the certificate is true, or that the error or message names what is wrong."""
    correct, xs, ys = problem(name)
    end = outcome(VIOLATIONS[violation](correct, plain(method)), method=method, tol=1e-6, max_calls=8000)
    if isinstance(end, sp.AssumptionError):
        assert names_the_violation(violation, str(end)), end
        assert end.function in ("g", "h", "A")
    elif end.solved:
        assert distance(end.x, end.y, xs, ys) <= end.certificate.distance, end
        assert violation.split()[0] in TRUE_ANYWAY, end
    else:
        assert names_the_violation(violation, end.message), end


@pytest.mark.slow
@pytest.mark.parametrize(("violation", "method"), thinned(VIOLATIONS, METHODS, ["auto"]))
def test_every_method_finds_every_violation(violation, method):
    check_violation(violation, "quadratic", method)


OTHER_RUNS = [
    (name, method) for name in ("diagonal", "logistic", "log-cosh") for method in ("auto", "lpd-gs", "anderson-imex")
]


@pytest.mark.parametrize(("violation", "run"), thinned(VIOLATIONS, OTHER_RUNS, every=2))
def test_violations_are_found_in_other_problems(violation, run):
    check_violation(violation, *run)


@pytest.mark.slow
@pytest.mark.parametrize("violation", ["mu * 10", "mu of h * 100", "a sign", "slightly asymmetric", "ripples"])
@pytest.mark.parametrize("method", ["apfb", "dppa", "krylov", "direct", "newton"])
def test_methods_that_evaluate_few_gradients_find_violations_at_the_end(violation, method):
    """Runs of these methods give few pairs of gradients to compare, so that the examination at the end decides."""
    check_violation(violation, "diagonal", method)


@pytest.mark.slow
@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    st.integers(0, 10**6),
    st.sampled_from(["mu", "mu of h", "sign", "asymmetric", "noise"]),
    st.sampled_from(["auto", "lpd-gs", "anderson-condat-vu", "krylov", "apfb", "rapd"]),
    st.floats(0.3, 3.5),
    st.floats(0.0, 2.5),
)
def test_solved_is_never_false(seed, violation, method, log_kappa, log_coupling):
    """Problems, violations and tolerances at random: `solved` is never reported with a false certificate."""
    rng = np.random.default_rng(seed)
    make = random_quadratic if method in ("krylov", "apfb") or seed % 2 else random_logistic
    scale, kappa = 10.0 ** rng.uniform(-2, 2, 2), 10.0 ** np.array([log_kappa, rng.uniform(0.3, 3.0)])
    correct = make(M, 15, *kappa, 10.0**log_coupling, L_x=scale[0], L_y=scale[1], seed=seed)
    xs, ys = saddle_point(correct)
    tol = 10.0 ** rng.uniform(-8, -3) * (np.linalg.norm(xs) + np.linalg.norm(ys))
    factor = 10.0 ** rng.uniform(0.3, 3.0)
    wrong = {
        "mu": large_mu(factor),
        "mu of h": lambda f, plain: sp.Saddle(box(f.g, plain), box(f.h, plain, mu=min(f.L_y, factor * f.mu_y)), f.A),
        "sign": wrong_gradient(one_sign),
        "asymmetric": wrong_gradient(asymmetric(10.0 ** rng.uniform(-2.5, 0.0))),
        "noise": wrong_gradient(noisy("random" if seed % 3 else "", 10.0 ** rng.uniform(-9, -4))),
    }[violation](correct, plain(method))
    end = outcome(wrong, method=method, tol=tol, max_calls=3000)
    found = isinstance(end, sp.AssumptionError) or not end.solved
    assert found or distance(end.x, end.y, xs, ys) <= end.certificate.distance


# -- no false alarms --------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("method", slow_except(["auto", "lpd-gs", "anderson-condat-vu", "dippa"], "lpd-gs"))
def test_correct_black_boxes_are_solved(name, method):
    f, xs, ys = case(name)
    g, h = (sp.Smooth(q.grad, mu=q.mu, L=q.L, value=q.value) for q in (f.g, f.h))
    result = sp.solve(sp.Saddle(g, h, Given(dense(f.A))), method=method, tol=1e-8)
    assert result.solved, result
    assert distance(result.x, result.y, xs, ys) <= result.certificate.distance


def test_constants_that_are_proven_take_one_gradient(clock):
    f, *_ = problem("logistic")
    result = sp.solve(f, tol=1e-8)
    assert result.setup_calls["grad_g"] == result.setup_calls["grad_h"] == 1
    both = sp.Saddle(2.0 * f.g + sp.Quadratic(0.1), f.h, f.A)
    assert sp.solve(both, tol=1e-8).setup_calls["grad_g"] == 1


def test_claimed_constants_take_few_gradients(clock):
    f, *_ = problem("logistic")
    wrong = sp.Saddle(box(f.g, True), box(f.h, True), f.A)
    result = sp.solve(wrong, method="lpd-gs", tol=1e-8)
    assert 1 < result.setup_calls["grad_g"] <= 30 + 0.1 * result.calls["grad_g"]
    assert result.calls == sp.solve(f, method="lpd-gs", tol=1e-8).calls  # the certificates do not change the run


def test_a_gradient_that_fails_nearby_does_not_spoil_a_solved_run():
    f, *_ = problem("quadratic")
    saddle = sp.solve(f, tol=1e-10)

    def grad(x):
        if np.linalg.norm(x - saddle.x) > 1e-3 * np.linalg.norm(saddle.x):
            raise ValueError("out of its domain")
        return f.g.grad(x)

    wrong = sp.Saddle(sp.Smooth(grad, mu=f.mu_x, L=f.L_x), f.h, f.A)
    assert sp.solve(wrong, saddle.x, saddle.y, method="lpd-gs", tol=1e-8).solved


# -- noise ------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["random", "", "random relative", "relative"])
@pytest.mark.parametrize("method", ["auto", "lpd-gs", "dippa"])
def test_noise_is_allowed_for_where_tol_is_above_it(kind, method):
    correct, xs, ys = problem("quadratic")
    f = wrong_gradient(noisy(kind, 1e-9))(correct, True)
    result = sp.solve(f, method=method, tol=1e-3)
    assert result.solved, result
    assert distance(result.x, result.y, xs, ys) <= result.certificate.distance


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["random", "", "random relative", "relative"])
def test_noise_is_measured(kind):
    correct, *_ = problem("quadratic")
    result = sp.solve(wrong_gradient(noisy(kind))(correct, True), tol=1e-9)
    assert result.status == "stalled"
    level = float(result.message.partition("(about ")[2].partition(")")[0])
    size = np.linalg.norm(correct.g.grad(result.x)) if "relative" in kind else np.sqrt(M)
    assert 0.2 <= level / (1e-6 * size) <= 5.0
    assert result.certificate.rounding > 1e-6  # noise is part of what the certificate allows for


def test_two_answers_at_one_point_are_not_noise():
    """A gradient that depends on how often it was called."""
    f, *_ = problem("quadratic")
    calls = [0]

    def grad(x):
        calls[0] += 1
        return f.g.grad(x) + 1e-3 * (calls[0] // 40)

    wrong = sp.Saddle(sp.Smooth(grad, mu=f.mu_x, L=f.L_x), f.h, f.A)
    end = outcome(wrong, method="lpd-gs", tol=1e-8, max_calls=3000)
    assert end.function == "g" if isinstance(end, sp.AssumptionError) else not end.solved


# -- suggested constants ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("violation", ["L / 2", "L / 100", "mu * 2", "mu * 100", "norm / 2", "norm / 100"])
def test_the_suggested_constant_solves_the_problem(violation):
    correct, xs, ys = problem("quadratic")
    f = VIOLATIONS[violation](correct, True)
    with pytest.raises(sp.AssumptionError) as caught:
        sp.solve(f, method="lpd-gs", tol=1e-8)
    error = caught.value
    true = {"L": correct.L_x, "mu": correct.mu_x, "norm": np.linalg.norm(correct.A.A, 2)}[error.constant]
    assert (error.constant, error.suggested is not None) == (violation.split()[0], True)
    assert 0.1 * true <= error.suggested <= 4.0 * true
    if error.constant != "mu":
        assert error.observed <= true * (1 + 1e-9)
        assert error.suggested >= error.observed
    result = sp.solve(f, method="lpd-gs", tol=1e-8, on_violation="adapt")
    assert result.solved
    assert distance(result.x, result.y, xs, ys) <= result.certificate.distance
    if error.constant == "mu":
        said = next(
            text
            for text in result.certificate.assumes
            if text.startswith(f"The strong convexity mu of {error.function}")
        )
        assert "refuted the larger one" in said


def test_no_constant_is_suggested_where_none_would_help():
    correct, *_ = problem("quadratic")
    for violation in ("a sign", "asymmetric", "not convex", "A' scaled"):
        with pytest.raises(sp.AssumptionError) as caught:
            sp.solve(VIOLATIONS[violation](correct, True), method="lpd-gs", on_violation="adapt")
        assert caught.value.suggested is None


def test_the_messages_of_the_errors_name_what_was_given_and_what_was_found():
    error = mu_too_large("h", 1.0, 0.5, 0.25)
    assert "mu of h is too large: mu = 1 was given, but two gradients show mu <= 0.5; give a smaller one" in str(error)
    assert "the smallest curvature found so far is 0.25, and the true mu may be smaller still" in str(error)
    assert "safe" not in str(error)
    assert error.suggested == 0.125
    error = L_too_small("g", 1.0, 2.0, 3.0)
    assert "L of g is too small: L = 1 was given, but two gradients show L >= 2; give a larger one" in str(error)
    assert "the largest curvature found so far is 3, and the true L may be larger" in str(error)
    assert error.suggested == 6.0


def test_a_value_that_belongs_to_another_gradient_is_refused():
    f, *_ = problem("quadratic")
    g = sp.Smooth(lambda x: f.g.grad(x) + 1.0, mu=f.mu_x, L=f.L_x, value=f.g.value)
    with pytest.raises(sp.AssumptionError, match="the gradient of g is not that of its value"):
        sp.solve(sp.Saddle(g, f.h, f.A))


def test_products_that_reuse_their_array_are_refused():
    f, *_ = problem("quadratic")
    buffer = np.zeros(M)

    class Reused(Given):
        def mul(self, y):
            return np.dot(self.A, y, out=buffer) if self.A.shape == (M, 18) else self.A @ y

    with pytest.raises(sp.ProblemError, match="A @ y returned the same array twice"):
        sp.solve(sp.Saddle(f.g, f.h, Reused(f.A.A)), method="lpd-gs")


@pytest.mark.parametrize("offset", [1e-2, 0.1, 1.0, 10.0])
@pytest.mark.parametrize("seed", range(5))
def test_rounding_errors_of_large_terms_are_not_called_an_asymmetric_jacobian(offset, seed):
    """Over a short length the differences of such a gradient are mostly rounding errors."""
    rng = np.random.default_rng(seed)
    P, q = np.array([[65.0, 32.0], [32.0, 32.0]]), offset * rng.standard_normal(2)
    x, length = 1e-9 * rng.standard_normal(2), 5e-9

    def grad(x):
        return (P @ x + q) - q

    def twisted(x):
        return grad(x) + np.array([x[1], -x[0]])

    right, wrong = (GradientCheck("g", 1.0, 97.0, given, lambda oracle, calls: None) for given in (grad, twisted))
    right.refuse_skew(x, grad(x), length, 0.0, curvature(grad, x, length, 12))
    assert right.noise == 0.0
    with pytest.raises(sp.AssumptionError, match="not the gradient of any function"):
        wrong.refuse_skew(x, twisted(x), 1.0, 0.0, curvature(twisted, x, 1.0, 12))


def test_curvatures_over_a_length_near_the_smallest_numbers_are_not_measured():
    with pytest.raises(Unexaminable):
        curvature(lambda x: 2.0 * x, np.zeros(3), 1e-308, 3)


def test_rounding_of_long_norms_refutes_nothing():
    """Curvatures are mu and L exactly, so that Lemma `smooth` is an equality, and norms are sums of 200 000 terms."""
    for seed in (3, 5, 7, 9):
        rng = np.random.default_rng(seed)
        q, b = 10.0 ** rng.uniform(-1, 1, 2), rng.standard_normal(2)
        x, x0 = (np.repeat(rng.standard_normal(2), 100_000) for _ in range(2))
        Q, c = np.repeat(q, 100_000), np.repeat(b, 100_000)
        check = GradientCheck("h", q.min(), q.max(), lambda y, Q=Q, c=c: Q * y + c, lambda name, calls: None)
        for scale in (1.0, 0.3, 0.03):
            check.compare(x, Q * x + c, x + scale * (x0 - x), Q * (x + scale * (x0 - x)) + c)
        assert check.seems == ""


def test_the_quick_comparison_accepts_no_gradients_that_the_full_comparison_suspects():
    """Three inner products never pass a pair of gradients that the full comparison suspects."""
    rng = np.random.default_rng(0)
    passed = suspected = 0
    for _ in range(400):
        mu, L = np.sort(10.0 ** rng.uniform(-3, 1, 2))
        check = GradientCheck("g", mu, L, lambda x: x, lambda oracle, calls: None)
        curvatures = rng.uniform(mu, L, 5) if rng.random() < 0.5 else rng.uniform(0.5 * mu, 1.5 * L, 5)
        x, x0 = 10.0 ** rng.uniform(-6, 6) * rng.standard_normal((2, 5))
        p, p0 = curvatures * x, curvatures * x0
        check.flattest = -math.inf
        agree, error = check._agree(x, p, x0, p0), Pair.of(x - x0, p - p0, mu, L).error
        passed, suspected = passed + agree, suspected + (error > 0.0)
        assert not (agree and error > 0.0)
    assert passed > 150
    assert suspected > 50
