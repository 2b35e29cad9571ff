"""The default method `auto`: its choices, its explanations, and its guarantee."""

import math

import numpy as np
import pytest
from cases import BLACK_BOX, CASES, case, stuck
from hypothesis import given
from random_problems import saddles
from reference import distance, saddle_point
from scipy.sparse import random_array
from scipy.sparse.linalg import aslinearoperator
from scipy.special import expit

import saddlepoint as sp
from saddlepoint import theory
from saddlepoint.problems.generators import chain, random_logistic, random_quadratic
from saddlepoint.problems.oracle import CallCounts
from saddlepoint.solving import factoring
from saddlepoint.solving.auto import choose
from saddlepoint.solving.schedule import RunProgress, Schedule, SwitchMethod
from saddlepoint.solving.state import ScheduleState


@pytest.mark.parametrize("problem", CASES)
def test_auto_solves_every_case(problem):
    f, xs, ys = case(problem)
    result = sp.solve(f, tol=1e-8)
    assert result.solved, result
    assert distance(result.x, result.y, xs, ys) <= result.certificate.distance
    assert f"auto chose {choose(f).methods[0].label}" in result.message


def by_hand(f):
    """The problem with functions of which only gradients are known."""
    g, h = (sp.Smooth(function.grad, mu=function.mu, L=function.L) for function in (f.g, f.h))
    return sp.Saddle(g, h, f.A)


def test_auto_chooses_by_problem_and_by_cost():
    first = lambda f, **options: choose(f, **options).methods[0].label  # noqa: E731
    assert first(random_quadratic(10, 8, 100, 50, 20)) == "direct"
    assert first(random_quadratic(200, 8, 100, 50, 2)) == "direct"  # it takes twice the calls and a sixth of the time
    assert first(random_quadratic(300, 300, 10, 10, 2)) == "krylov"
    assert first(by_hand(random_logistic(10, 8, 100, 50, 20))) == "anderson-condat-vu"
    assert first(by_hand(random_logistic(10, 8, 100, 50, 2000))) == "anderson-imex"
    f = chain(3000, 2, 2, 10)
    assert first(f) == "direct"  # a sparse matrix whose factors stay sparse
    assert first(sp.Saddle(f.g, f.h, aslinearoperator(f.A.matrix()))) == "anderson-imex"
    expensive = {"grad_g": 100.0, "grad_h": 100.0}
    assert first(random_logistic(10, 8, 100, 50, 40), costs=expensive) == "anderson-imex"
    assert first(random_logistic(10, 8, 100, 50, 1), costs=expensive) == "anderson-condat-vu"
    assert choose(random_logistic(10, 8, 100, 50, 20)).methods[-1] == sp.LPDGS()


def test_a_factorisation_that_is_a_small_share_of_the_rounds_comes_first():
    """606 columns are more calls than a step of Newton's method may count, and take a few rounds of time."""
    rng = np.random.default_rng(0)
    Q = np.linalg.qr(rng.standard_normal((606, 606)))[0]
    h = sp.Quadratic(Q * np.geomspace(1e-4, 1.0, 606) @ Q.T)
    f = sp.Saddle(sp.Quadratic(np.geomspace(1e-2, 1.0, 414)), h, 0.01 * rng.standard_normal((414, 606)))
    assert choose(f).methods[0] == sp.Direct()
    easy = sp.Saddle(sp.Quadratic(np.geomspace(0.1, 1.0, 414)), h + sp.Quadratic(0.1), f.A)
    assert choose(easy).methods[0] != sp.Direct()


def weakly_coupled_least_squares(least, rows=700):
    """384 columns of a Hessian, and a side whose Hessian is a number."""
    rng = np.random.default_rng(0)
    D = rng.standard_normal((rows, 384)) * np.geomspace(1.0, 0.05, 384)
    g = sp.LeastSquares(D, rng.standard_normal(rows), l2=least)
    return sp.Saddle(g, sp.Quadratic(1.0), 0.3 * np.eye(384, 500))


def test_a_factorisation_may_take_more_calls_where_it_takes_as_many_times_less_time():
    f = weakly_coupled_least_squares(5e-4)
    assert factoring.rounds(f) < factoring.columns(f) < factoring.DIRECT_MOST_CALLS * factoring.rounds(f)
    assert factoring.newton_rounds(f) > factoring.DIRECT_ROUNDS
    assert choose(f).methods[0] == sp.Direct()
    own = sp.Smooth(f.g.grad, mu=f.mu_x, L=f.L_x, hessian=f.g.hessian, quadratic=True)
    assert choose(sp.Saddle(own, f.h, f.A)).methods[0] != sp.Direct()  # the time of its Hessian is not known
    assert choose(weakly_coupled_least_squares(0.03)).methods[0] != sp.Direct()  # few rounds are likely to suffice


def test_the_sweep_takes_turns_with_a_krylov_method_where_the_coupling_is_weak():
    """Where the Hessian of one side is nearly a number, a step of the sweep nearly eliminates that side."""
    f = weakly_coupled_least_squares(0.03)
    plan = choose(f)
    assert [method.label for method in plan.racing] == ["anderson-condat-vu", "krylov"]
    assert plan.in_order[-1] == sp.LPDGS()
    auto, krylov = (sp.solve(f, rtol=1e-6, method=method) for method in ("auto", "krylov"))
    assert auto.solved
    assert 2 * max(auto.calls.values()) < max(krylov.calls.values())
    uneven = sp.Quadratic(np.geomspace(0.1, 1.0, 500))
    assert [method.label for method in choose(sp.Saddle(f.g, uneven, f.A)).racing] == ["krylov", "anderson-condat-vu"]


def test_newton_takes_turns_where_its_steps_take_little_time():
    """300 columns of a Hessian would be 300 calls; with data at hand they take a few milliseconds."""
    rng = np.random.default_rng(0)
    D, A = rng.standard_normal((400, 300)), rng.standard_normal((500, 300))
    f = sp.Saddle(sp.Quadratic(np.geomspace(1e-3, 1.0, 500)), sp.Huber(D, rng.standard_normal(400), l2=1e-3), A)
    plan = choose(f)
    assert sp.Newton() in plan.racing
    assert 0.0 < plan.rates[sp.Newton()] < 0.5
    assert sp.Newton() not in choose(f, costs={"A": 1.0}).racing  # a caller who says what calls cost counts calls
    own = sp.Saddle(f.g, sp.Smooth(f.h.grad, mu=f.mu_y, L=f.L_y), A)
    assert sp.Newton() not in choose(own).methods


def test_newton_is_second_where_its_steps_take_few_calls_beside_those_that_the_condition_numbers_ask_for():
    rng = np.random.default_rng(0)
    A, g = rng.standard_normal((31, 145)), sp.LogCosh(t=rng.standard_normal(31), l2=1e-2)
    f = sp.Saddle(g, sp.Quadratic(np.geomspace(1e-4, 1.0, 145)), aslinearoperator(10.0 * A))
    plan = choose(f)
    assert [method.label for method in plan.racing] == ["anderson-imex", "newton", "anderson-condat-vu", "dippa"]
    assert plan.first_turn == 32.0


@pytest.mark.parametrize("seed", range(4))
def test_newton_is_the_first_where_its_step_takes_hardly_more_time_than_a_round(seed):
    """With small data at hand a solution takes a few steps, though each counts for as many calls as there are rows."""
    rng = np.random.default_rng(seed)
    D, A = rng.standard_normal((60, 20)), rng.standard_normal((20, 30))
    h = sp.Quadratic(np.diag(np.geomspace(1e-3, 1.0, 30)) + 1e-4)
    f = sp.Saddle(sp.Huber(D, 3.0 * rng.standard_normal(60), l2=1e-3), h, A)
    plan = choose(f)
    assert factoring.newton_rounds(f) < 2.3
    assert plan.methods[0] == sp.Newton()
    assert plan.first_turn == pytest.approx(12.0 * factoring.newton_rounds(f))
    result = sp.solve(f, rtol=1e-6)
    assert result.solved
    assert result.method == "newton"
    assert result.iterations <= 25
    assert choose(f, costs={"A": 1.0}).methods[0] != sp.Newton()  # a caller who says what calls cost counts calls
    assert choose(by_hand(f)).methods[0] != sp.Newton()


def test_imex_has_a_turn_where_the_coupling_is_weak():
    g = sp.Smooth(lambda x: np.tanh(x) + 1e-3 * x, mu=1e-3, L=1.001)
    plan = choose(sp.Saddle(g, g, 0.05 * np.eye(10)))
    assert [method.label for method in plan.racing] == ["anderson-condat-vu", "anderson-imex", "lpd-gs"]


def test_costs_are_checked():
    f = BLACK_BOX()
    with pytest.raises(sp.ProblemError, match="costs names the oracle 'gradient'"):
        sp.solve(f, costs={"gradient": 3.0})
    with pytest.raises(sp.ProblemError, match="costs of A is 0"):
        sp.solve(f, costs={"A": 0})


def test_few_expensive_gradients_are_used():
    f = random_logistic(80, 70, 1e4, 1e4, 1.5e4, seed=5)
    plain = sp.solve(f, tol=1e-6)
    spared = sp.solve(f, tol=1e-6, costs={"grad_g": 100.0, "grad_h": 100.0})
    assert spared.solved
    assert "a gradient costs 100 products" in spared.message
    assert spared.calls["grad_g"] < 0.7 * plain.calls["grad_g"]


@given(saddles())
def test_never_more_than_twice_the_calls_of_lpd_gs_bound(problem):
    f, xs, ys = problem
    tol = 1e-6 * (1.0 + np.linalg.norm(xs) + np.linalg.norm(ys))
    start = f.certificate(np.zeros(f.shape[0]), np.zeros(f.shape[1]))
    result = sp.solve(f, tol=tol)
    assert result.solved
    promised = theory.lpd_gs_calls(*f.numbers, start.Fx, start.Fy, f.mu_x, f.mu_y, tol)
    # what the promise leaves out: a factorisation of a side of 64 at most, and the spacing of certificates
    assert max(result.calls.values()) <= 2.0 * promised + min(f.shape) + 16


@pytest.mark.slow
def test_a_method_that_breaks_down_is_replaced(monkeypatch):
    f = random_logistic(100, 15, 100, 50, 2000, seed=1)
    monkeypatch.setattr(sp.IMEX, "step", stuck)
    monkeypatch.setattr(sp.CondatVu, "step", stuck)
    result = sp.solve(f, tol=1e-6)
    assert result.solved
    assert "anderson-imex in turns with newton" in result.message
    assert result.method == "newton"
    monkeypatch.setattr(sp.Newton, "step", stuck)
    monkeypatch.setattr(sp.DIPPA, "step", stuck)
    result = sp.solve(f, tol=1e-2)
    assert result.solved
    assert "then lpd-gs" in result.message
    assert result.method == "lpd-gs"


def progress(proof):
    """Where a run stands that is at its best point."""
    return RunProgress(proof, proof.distance, proof.distance, 1e-6)


def test_the_limit_on_calls_holds_even_if_there_is_progress():
    f = random_logistic(20, 15, 100, 50, 20, seed=1)
    schedule, counts = Schedule(f, 1e-6, ScheduleState((sp.OGDA(), sp.LPDGS()))), CallCounts()
    start = f.certificate(np.zeros(20), np.zeros(15))
    promise = schedule.promised_calls(progress(start))
    schedule.check_progress(progress(start), counts, 16)
    counts.calls["A"] = 100
    schedule.check_progress(progress(start), counts, 120)
    assert schedule.state.budget == 2.0 * promise
    better = f.certificate(*saddle_point(f))
    assert better.distance < start.distance
    counts.calls["A"] = int(2.0 * promise)
    with pytest.raises(SwitchMethod):
        schedule.check_progress(progress(better), counts, int(2.0 * promise) + 10)
    schedule.switch("fell behind", counts, progress(better))
    assert schedule.method == sp.LPDGS()
    assert schedule.state.notes == ["ogda fell behind, then lpd-gs"]
    counts.calls["A"] = 10**9
    schedule.check_progress(progress(start), counts, 10**9)  # there is no other method to change to


@pytest.mark.slow
def test_auto_beats_the_single_methods_on_the_chain():
    f = chain(300, 400, 400, 20)
    rounds = {m: max(sp.solve(f, method=m, tol=1e-4).calls.values()) for m in ("auto", "lpd-gs", "lpd", "apdg", "jst")}
    assert rounds["auto"] == min(rounds.values())


# -- mu unknown -------------------------------------------------------------------------------------------------------


def unknown(n=12):
    rng = np.random.default_rng(0)
    P, Q = np.geomspace(0.02, 1.0, n), np.geomspace(0.1, 3.0, n)
    b = rng.standard_normal(n)
    g = sp.Smooth(lambda x: P * x - b, mu=None, L=1.0)
    h = sp.Smooth(lambda y: Q * y + b, mu=None, L=None)
    A = rng.standard_normal((n, n))
    return sp.Saddle(g, h, A), np.linalg.solve(np.block([[np.diag(P), A], [-A.T, np.diag(Q)]]), np.r_[b, -b])


@pytest.mark.parametrize("method", ["auto", "rapd", "agraal"])
def test_without_mu_nothing_is_certified_and_the_residual_is_reported(method):
    f, z = unknown()
    result = sp.solve(f, method=method, tol=1e-8)
    assert not result.solved
    assert result.status is sp.Status.UNCERTIFIED
    assert result.certificate.distance == math.inf
    assert result.certificate.residual <= 1e-8
    assert "no distance is certified" in result.message
    assert "residual |F|" in repr(result)
    np.testing.assert_allclose(np.r_[result.x, result.y], z, atol=1e-6)


def test_with_simple_terms_two_methods_take_turns_and_the_third_is_proven():
    f = sp.Saddle(sp.Quadratic(1.0) + sp.L1(0.1), sp.Quadratic(1.0), np.eye(3))
    plan = choose(f)
    assert [method.label for method in plan.racing] == ["anderson-condat-vu", "anderson-lpd-gs"]
    assert plan.in_order[-1].label == "lpd-gs"


def test_without_mu_the_other_methods_say_what_they_need():
    f, _ = unknown()
    others = "auto, agraal, halpern-pdhg, pdhg, preconditioned-halpern-pdhg or rapd"
    with pytest.raises(sp.ProblemError, match=f"lpd-gs needs mu of g, which is unknown; .* {others}"):
        sp.solve(f, method="lpd-gs")


def test_slow_gradients_are_timed_and_few_are_used(clock):
    f = random_logistic(80, 70, 1e4, 1e4, 1.5e4, seed=5)

    def slow(x):
        clock.now += 0.02
        return f.g.grad(x)

    g = sp.Smooth(slow, mu=f.mu_x, L=f.L_x)
    result = sp.solve(sp.Saddle(g, f.h, f.A.A), tol=1.0, max_calls=60)
    assert "anderson-imex: a gradient costs" in result.message
    assert result.setup_calls["A"] == f.A.norm_estimate.products + 1


def test_a_gradient_that_is_slow_once_is_timed_again(clock):
    """Its first call may compile something, or be interrupted by other processes."""
    f, delays = random_logistic(80, 70, 1e4, 1e4, 1.5e4, seed=5), [0.05]

    def slow_once(x):
        clock.now += delays.pop() if delays else 0.0
        return f.g.grad(x)

    runs = [sp.solve(sp.Saddle(sp.Smooth(grad, mu=f.mu_x, L=f.L_x), f.h, f.A.A), tol=1.0, max_calls=60)
            for grad in (slow_once, f.g.grad)]  # fmt: skip
    assert runs[0].message == runs[1].message
    assert runs[0].setup_calls == {name: count + 1 for name, count in runs[1].setup_calls.items()}


# -- one oracle costs far more than another ---------------------------------------------------------------------------

EXPENSIVE = {"grad_h": {"grad_h": 300.0}, "A": {"A": 100.0, "At": 100.0}}


def weighted(result, costs):
    return sum(count * costs.get(name, 1.0) for name, count in result.calls.items())


@pytest.mark.parametrize(("expensive", "kx", "ky"), [("grad_h", 1e4, 4.0), ("A", 1e4, 30.0), ("A", 30.0, 3000.0)])
@pytest.mark.slow
@pytest.mark.parametrize("seed", [11, 12])
def test_auto_takes_separated_where_that_is_cheaper(expensive, kx, ky, seed):
    f, costs = random_logistic(120, 90, kx, ky, 1.0, seed=seed), EXPENSIVE[expensive]
    tol = 1e-6 * f.certificate(np.zeros(120), np.zeros(90)).distance
    result = sp.solve(f, tol=tol, costs=costs)
    assert result.solved
    assert result.method == "separated"
    assert "auto chose separated: it calls the expensive oracles seldom" in result.message
    rivals = {name: sp.solve(f, method=name, tol=tol) for name in ("lpd-gs", "anderson-condat-vu")}
    for name, rival in rivals.items():
        assert weighted(result, costs) < weighted(rival, costs), name
    assert 5.0 * weighted(result, costs) < weighted(rivals["lpd-gs"], costs)


def test_the_problem_with_its_players_exchanged_has_the_same_method():
    f = random_logistic(50, 40, 1e4, 4.0, 1.0, seed=3)
    mirror = sp.Saddle(f.h, f.g, -f.A.A.T)
    assert choose(f, {"grad_h": 300.0}).methods[0] == choose(mirror, {"grad_g": 300.0}).methods[0] == sp.Separated()


def test_auto_leaves_separated_alone_elsewhere():
    f = random_logistic(50, 40, 1e4, 4.0, 1.0, seed=3)
    for costs in (None, {"grad_h": 2.0}, {"grad_g": 300.0}, {"grad_g": 300.0, "grad_h": 300.0}):
        assert choose(f, costs).methods[0] != sp.Separated(), costs
    strong = random_logistic(50, 40, 1e4, 4.0, 100.0, seed=3)
    assert choose(strong, {"grad_h": 300.0}).methods[0] != sp.Separated()
    quadratic = random_quadratic(600, 600, 1e4, 4.0, 1.0, seed=3)
    assert choose(quadratic, {"grad_h": 300.0}).methods[0] != sp.Separated()


def test_separated_calls_the_other_oracles_far_less_than_lpd_gs():
    f = random_quadratic(60, 50, 1e4, 4.0, 3.0, seed=3)
    few, many = (sp.solve(f, method=name, tol=1e-6).calls for name in ("separated", "lpd-gs"))
    assert 20 * few["grad_h"] < many["grad_h"]
    assert 20 * max(few["A"], few["At"]) < many["A"]
    assert few["grad_g"] < 5 * many["grad_g"]


@pytest.mark.slow
def test_a_slow_gradient_is_measured_by_itself(clock):
    """One gradient that takes 30 ms, another that takes none: the slow one is called seldom."""
    f = random_logistic(40, 30, 1e4, 2.0, 0.5, seed=5)

    def slow(y):
        clock.now += 0.03
        return f.h.grad(y)

    h = sp.Smooth(slow, mu=f.mu_y, L=f.L_y)
    result = sp.solve(sp.Saddle(f.g, h, f.A), tol=1e-2, max_seconds=30)
    assert "auto chose separated" in result.message


@pytest.mark.parametrize("seed", range(6))
def test_a_strong_coupling_of_own_functions_takes_no_more_calls_than_by_name(seed):
    """Strides that were tuned on known problems made auto take hundreds of times the calls of the same method."""
    rng = np.random.default_rng(seed)
    m, n = rng.integers(10, 60, 2)
    a, b = rng.standard_normal(m), rng.standard_normal(n)
    mu_x, mu_y = 10.0 ** rng.uniform(-3.5, -1.0, 2)
    g = sp.Smooth(lambda x: np.tanh(x - a) + mu_x * x, mu=mu_x, L=1.0 + mu_x)
    h = sp.Smooth(lambda y: np.clip(y - b, -1.0, 1.0) + mu_y * y, mu=mu_y, L=1.0 + mu_y)
    A = rng.standard_normal((m, n))
    f = sp.Saddle(g, h, 10.0 ** rng.uniform(0.7, 2.0) * A / np.linalg.norm(A, 2))
    tol = 1e-6 * f.certificate(np.zeros(m), np.zeros(n)).distance
    auto, named = (sp.solve(f, tol=tol, method=method, max_calls=5000) for method in ("auto", "anderson-imex"))
    assert auto.solved
    assert named.solved
    assert max(auto.calls.values()) <= 1.5 * max(named.calls.values())


def test_dippa_has_a_turn_where_mixing_gains_little():
    """A mean of sparse logistic losses with |A|/mu = 1000: mixing alone took five times the time of DIPPA, or more."""
    rng = np.random.default_rng(2)
    m, n, mu, d = 1000, 750, 1e-3, 1e-2
    B, A = (random_array((m, k), density=10.0 / k, rng=rng, data_sampler=rng.standard_normal).tocsr() for k in (m, n))
    B, A = 2.0 * np.sqrt(m) * B / np.linalg.norm(B.toarray(), 2), A / np.linalg.norm(A.toarray(), 2)
    c = rng.standard_normal(n)
    g = sp.Smooth(lambda x: -(B.T @ expit(-(B @ x))) / m + mu * x, mu=mu, L=1.0 + mu)
    h = sp.Smooth(lambda y: mu * y - c + d * np.tanh(y), mu=mu, L=mu + d)
    auto, dippa = (
        sp.solve(sp.Saddle(g, h, A), rtol=1e-6, method=method, max_calls=20_000) for method in ("auto", "dippa")
    )
    assert auto.solved
    assert "in turns with dippa" in auto.message
    assert max(auto.calls.values()) <= 1.5 * max(dippa.calls.values())


def test_a_factorisation_that_is_small_beside_the_condition_numbers_comes_first():
    """Anderson over IMEX begins where its factorisation counts for few of the calls that the numbers suggest.

    It begins as well where the matrix is at hand and the factorisation takes the time of few rounds, unless the caller
    says what calls cost.
    """
    rng = np.random.default_rng(2)
    A, mu = rng.standard_normal((150, 120)), 1e-3
    A /= np.linalg.norm(A, 2)
    functions = [sp.Smooth(lambda v: np.tanh(v) + mu * v, mu=mu, L=1.0 + mu) for _ in range(2)]
    assert choose(sp.Saddle(*functions, 5.0 * A)).methods[0].label == "anderson-imex"
    easy = [sp.Smooth(lambda v: np.tanh(v) + v, mu=1.0, L=2.0) for _ in range(2)]
    f = sp.Saddle(*easy, 8.0 * A)
    for costly in (choose(f, costs={"A": 1.0}), choose(sp.Saddle(*easy, aslinearoperator(8.0 * A)))):
        assert costly.methods[0].label == "anderson-condat-vu"
        assert "begins with a factorisation" in costly.reason
    assert choose(f).methods[0].label == "anderson-imex"
    assert factoring.gram_work(f, timed=True) < 30.0 < factoring.gram_work(f, timed=False)


def sparse_hinge():
    """884 columns of a Hessian with data at hand: a step of Newton's method takes the time of about 60 rounds."""
    rng = np.random.default_rng(0)
    D, A = (
        rng.standard_normal((1300, 884)),
        random_array((884, 36), density=0.2, rng=rng, data_sampler=rng.standard_normal),
    )
    h = sp.SmoothedHinge(rng.standard_normal((60, 36)), np.sign(rng.standard_normal(60)), l2=1e-5)
    return sp.Saddle(sp.LogCosh(D, rng.standard_normal(1300), l2=5e-3), h, A.tocsr())


def test_newton_begins_late_where_its_columns_are_more_than_others_are_likely_to_take():
    """Two turns of it counted 884 gradients each where Anderson over IMEX ended after 180 calls."""
    f = sparse_hinge()
    plan = choose(f)
    assert sp.Newton() in plan.racing
    assert plan.late[sp.Newton()] > plan.first_turn
    auto, imex = (sp.solve(f, rtol=1e-6, method=method) for method in ("auto", "anderson-imex"))
    assert auto.solved
    assert max(auto.calls.values()) <= 2.0 * max(imex.calls.values())


def test_newton_has_no_turn_where_the_condition_numbers_ask_for_few_calls():
    rng = np.random.default_rng(0)
    D, A = rng.standard_normal((150, 95)), 0.05 * rng.standard_normal((95, 26))
    f = sp.Saddle(sp.Logistic(D, np.sign(rng.standard_normal(150)), 5e-3), sp.Quadratic(1.0), A)
    assert sp.Newton() not in choose(f).methods


def test_newton_is_the_first_where_its_step_counts_for_no_more_calls_than_the_factorisation_of_imex():
    """Its 100 columns are more than a small step has, but IMEX would begin with 100 products."""
    rng = np.random.default_rng(0)
    D, A = rng.standard_normal((200, 100)), 30.0 * rng.standard_normal((100, 900))
    g, h = sp.LogCosh(D, rng.standard_normal(200), l2=1e-2), sp.Quadratic(np.geomspace(1e-2, 1.0, 900))
    f = sp.Saddle(g, h, A)
    assert factoring.newton_calls(f) > 64
    assert [method.label for method in choose(f).racing] == ["newton", "anderson-imex", "anderson-condat-vu", "dippa"]
    auto, imex = (sp.solve(f, rtol=1e-6, method=method) for method in ("auto", "anderson-imex"))
    assert auto.solved
    assert auto.method == "newton"
    assert max(auto.calls.values()) <= 2 * max(imex.calls.values())
    narrow = sp.Saddle(g, sp.Quadratic(np.geomspace(1e-2, 1.0, 700)), A[:, :700])
    assert choose(narrow).methods[0].label == "anderson-imex"


def data_beside_a_sparse_coupling(rows):
    """A Huber risk whose gradients read so many rows of data, and a matrix with ten entries in each row."""
    rng = np.random.default_rng(0)
    A = 18.0 * random_array((400, 300), density=10.0 / 300, rng=rng, data_sampler=rng.standard_normal).tocsr()
    D = rng.standard_normal((rows, 300))
    return sp.Saddle(sp.Quadratic(1.0), sp.Huber(D, rng.standard_normal(rows), l2=0.05), A)


def test_imex_begins_with_a_factorisation_where_gradients_of_ready_functions_take_long():
    """Products with a sparse A take little time beside gradients that read a million numbers."""
    f = data_beside_a_sparse_coupling(3000)
    assert factoring.gradient_time(f) > 5.0
    assert choose(f).methods[0].label == "anderson-imex"
    plan = choose(f, costs={"A": 1.0})  # a caller who says what calls cost counts calls
    assert plan.methods[0].label == "anderson-condat-vu"
    assert "begins with a factorisation" in plan.reason
    auto, sweep = (sp.solve(f, rtol=1e-6, method=method) for method in ("auto", "anderson-condat-vu"))
    assert auto.solved
    assert 2 * auto.calls["grad_h"] < sweep.calls["grad_h"]
