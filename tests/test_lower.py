"""The lower bound: its numbers, the coordinates that oracles can reach by brute force, and that no method beats it."""

import itertools
import math
from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import saddlepoint as sp
from saddlepoint import theory
from saddlepoint.methods import make_method, method_names
from saddlepoint.methods.registry import promised_rows
from saddlepoint.problems.generators import chain, chain_solution
from saddlepoint.problems.oracle import Meter, metered
from saddlepoint.uses.bench.measure import chain_length, chain_methods, forced_on_chain, hard_chain, measure

CASES = [(1000.0, 1000.0, 1.0), (4.0, 4.0, 60.0), (400.0, 400.0, 20.0), (1e4, 10.0, 42.4)]
kappas = st.floats(0.0, 12.0).map(lambda e: 10.0**e)
couplings = st.one_of(st.just(0.0), st.floats(-6.0, 12.0).map(lambda e: 10.0**e))
small_kappas = st.floats(0.0, 4.0).map(lambda e: 10.0**e)
small_couplings = st.one_of(st.just(0.0), st.floats(-2.0, 2.0).map(lambda e: 10.0**e))


# -- N, q and the rounds ----------------------------------------------------------------------------------------------


@given(kappas, kappas, couplings)
def test_chain_N_is_the_norm_of_its_matrix(kx, ky, c):
    N = theory.chain_N(kx, ky, c)
    a, b = math.sqrt(kx - 1), math.sqrt(ky - 1)
    expected = np.linalg.norm([[c, b], [a, 0.0]], 2)
    assert pytest.approx(expected, rel=1e-12) == N
    assert max(c, a, b) * (1 - 1e-14) <= N <= math.hypot(c, a, b) * (1 + 1e-14)
    assert theory.chain_N(ky, kx, c) == pytest.approx(N, rel=1e-14)


def test_chain_N_is_right_at_extreme_conditions():
    assert theory.chain_N(1, 1, 0) == 0.0
    assert theory.chain_N(1, 1, 7.0) == 7.0  # only the coupling counts
    assert theory.chain_N(10, 1, 0) == 3.0  # Nesterov's chain
    assert theory.chain_N(1e300, 1e300, 1e200) == pytest.approx(1e200, rel=1e-9)


@pytest.mark.parametrize("N", [1e-6, 0.3, 1.0, 40.0, 1e4, 1e9])
def test_q_is_computed_without_cancellation(N):
    with localcontext() as context:
        context.prec = 60
        s = 4 / Decimal(N) ** 2
        q = 1 + s / 2 - (s + s * s / 4).sqrt()
    assert theory.chain_q(N) == pytest.approx(float(q), rel=1e-15)
    assert theory.chain_q(0.0) == 0.0


def test_forced_rounds_are_the_least():
    for kx, ky, c in [*CASES, (1.0, 1.0, 30.0), (1.0, 1.0, 0.1)]:
        q = theory.chain_q(theory.chain_N(kx, ky, c))
        for reduction in (0.5, 1e-5, 1e-12):
            k = theory.forced_rounds(kx, ky, c, reduction)
            assert q**k <= reduction * (1 + 1e-9)
            assert q ** (k - 1) > reduction
    assert theory.forced_rounds(1, 1, 0, 1e-6) == 1  # one gradient determines the solution
    assert theory.forced_rounds(100, 100, 1, 1.0) == 0
    assert [theory.forced_rounds(*case, 1e-5) for case in CASES] == [185, 346, 187, 626]


# -- the chain and its solution ---------------------------------------------------------------------------------------


@given(st.integers(1, 60), kappas.filter(lambda k: k < 1e8), kappas.filter(lambda k: k < 1e8), small_couplings)
def test_the_field_vanishes_at_the_solution(n, kx, ky, c):
    f = chain(n, kx, ky, c, L_x=3.0, L_y=0.2)
    x, y = chain_solution(n, kx, ky, c, L_x=3.0, L_y=0.2)
    Fx, Fy = f.field(x, y)
    size = f.L_x * np.linalg.norm(x) + f.L_y * np.linalg.norm(y) + f.norm * np.hypot(*map(np.linalg.norm, (x, y)))
    assert np.hypot(*map(np.linalg.norm, (Fx, Fy))) <= 1e-14 * size


def test_the_solution_is_that_of_elimination():
    """[(bx S + mu_x)(by S + mu_y) + |A|^2/4 S] x* = (by S + mu_y) e_1, and y* from it."""
    n, kx, ky, c, L_x, L_y = 40, 30.0, 7.0, 5.0, 2.0, 0.5
    mu_x, mu_y = L_x / kx, L_y / ky
    norm = c * math.sqrt(mu_x * mu_y)
    D, one = np.eye(n) - np.eye(n, k=-1), np.eye(n)
    S, bx, by = D @ D.T, (L_x - mu_x) / 4, (L_y - mu_y) / 4
    P, Q = bx * S + mu_x * one, by * S + mu_y * one
    x = np.linalg.solve(P @ Q + norm**2 / 4 * S, Q[:, 0])
    y = norm / 2 * np.linalg.solve(by * D.T @ D + mu_y * one, D.T @ x)
    found = chain_solution(n, kx, ky, c, L_x=L_x, L_y=L_y)
    np.testing.assert_allclose(found[0], x, rtol=1e-9)
    np.testing.assert_allclose(found[1], y, rtol=1e-9)


@pytest.mark.parametrize(("kx", "ky", "c"), [(4, 4, 60), (400, 400, 20), (1e4, 10, 42.4), (1, 1, 30), (200, 1, 3)])
def test_the_solution_decays_like_q(kx, ky, c):
    N = theory.chain_N(kx, ky, c)
    n = math.ceil(12 * N)
    x, y = chain_solution(n, kx, ky, c)
    q = theory.chain_q(N)
    for z in (x, y):
        middle = np.abs(z[n // 2 : 2 * n // 3])
        assert (middle[-1] / middle[0]) ** (1 / (middle.size - 1)) == pytest.approx(q, rel=1e-5)


def test_the_chain_keeps_its_constants():
    f = chain(200, 100, 50, 20, L_x=5.0, L_y=0.1)
    assert (f.kappa_x, f.kappa_y, f.L_x, f.L_y) == pytest.approx((100, 50, 5.0, 0.1))
    for function in (f.g, f.h):
        low, high = np.linalg.eigvalsh(function.P.A.toarray())[[0, -1]]
        assert function.mu <= low * (1 + 1e-12)
        assert high <= function.L
    assert np.linalg.norm(f.A.A.toarray(), 2) <= 20 * math.sqrt(f.mu_x * f.mu_y)
    assert chain(1, 10, 5, 3).shape == (1, 1)


# -- the coordinates that queries can reach ---------------------------------------------------------------------------

ORACLES = ("grad_g", "grad_h", "A", "At")


def support(v):
    """The last coordinate that differs from zero, counted from 1; 0 if none does."""
    return int(np.flatnonzero(v)[-1]) + 1 if v.any() else 0


class Reach:
    """What the span of all answers can look like: generic x and y on the coordinates reached so far."""

    def __init__(self, f):
        self.f, self.rng = f, np.random.default_rng(0)

    def ask(self, oracle, a, b):
        """(a, b) after the oracle was asked at a generic point of the span."""
        x, y = np.zeros(self.f.shape[0]), np.zeros(self.f.shape[1])
        x[:a], y[:b] = self.rng.standard_normal(a), self.rng.standard_normal(b)
        if oracle == "grad_g":
            return max(a, support(self.f.g.grad(x))), b
        if oracle == "grad_h":
            return a, max(b, support(self.f.h.grad(y)))
        if oracle == "A":
            return max(a, support(self.f.A.mul(y))), b
        return a, max(b, support(self.f.A.tmul(x)))


def simultaneous(f, rounds):
    reach, a, b = Reach(f), 0, 0
    for _ in range(rounds):
        answers = [reach.ask(oracle, a, b) for oracle in ORACLES]
        a, b = max(p for p, _ in answers), max(q for _, q in answers)
        yield a, b


def test_simultaneous_rounds_reach_one_coordinate_more():
    for kx, ky in ((9.0, 5.0), (9.0, 1.0)):
        found = list(simultaneous(chain(30, kx, ky, 2.0), 12))
        assert found == [theory.rounds_reach(k) for k in range(1, 13)]
    assert theory.rounds_reach(0) == (0, 0)


def test_without_the_gradient_of_g_the_reach_is_shorter():
    for ky, last in ((5.0, (11, 11)), (1.0, (6, 6))):
        found = list(simultaneous(chain(30, 1.0, ky, 2.0), 12))
        assert all(a <= k and b <= max(k - 1, 0) for k, (a, b) in enumerate(found, 1))
        assert found[-1] == last


def test_a_round_in_sequence_reaches_three_coordinates_more_and_no_order_does_better():
    reach = Reach(chain(30, 9.0, 5.0, 2.0))
    states = {(0, 0)}
    for k in range(1, 5):
        after = set()
        for start, order in itertools.product(states, itertools.permutations(ORACLES)):
            a, b = start
            for oracle in order:
                a, b = reach.ask(oracle, a, b)
            after.add((a, b))
        states = after
        assert max(a for a, _ in states) == 3 * k == theory.calls_reach(k, k, k)
        assert max(b for _, b in states) == 3 * k - 1
    a = b = 0
    for oracle in ("grad_g", "At", "grad_h", "A"):
        a, b = reach.ask(oracle, a, b)
    assert (a, b) == (3, 2)


@given(st.lists(st.sampled_from(ORACLES), max_size=25))
def test_calls_in_any_order_stay_within_their_reach(calls):
    reach = Reach(chain(30, 9.0, 5.0, 2.0))
    a = b = 0
    for i, oracle in enumerate(calls, 1):
        a, b = reach.ask(oracle, a, b)
        done = calls[:i]
        assert max(a, b) <= theory.calls_reach(done.count("grad_g"), done.count("grad_h"), done.count("A"))


# -- the distance of the remaining coordinates ------------------------------------------------------------------------


@given(st.integers(1, 12), st.floats(0.0, 3.0), st.integers(0, 2**32 - 1))
def test_tail_rounds_are_those_of_the_definition(n, tol, seed):
    x, y = np.random.default_rng(seed).standard_normal((2, n))
    for k in itertools.count():
        a, b = theory.rounds_reach(k)
        if math.hypot(np.linalg.norm(x[a:]), np.linalg.norm(y[b:])) <= tol:
            break
    assert theory.tail_rounds(x, y, tol) == k


@given(small_kappas, small_kappas, small_couplings, st.floats(-8.0, -1.0))
def test_forced_rounds_agree_with_the_tail_of_a_long_chain(k1, k2, c, exponent):
    """Both counts agree up to a number of rounds that does not grow with the accuracy."""
    kx, ky, reduction = max(k1, k2), min(k1, k2), 10.0**exponent
    forced = theory.forced_rounds(kx, ky, c, reduction)
    N = theory.chain_N(kx, ky, c)
    assert abs(forced - forced_on_chain(kx, ky, c, reduction)) <= 1 + N / 6
    assert chain_length(kx, ky, c, reduction) >= 1.5 * forced


def test_the_tail_at_the_four_problems_is_the_recorded_one():
    found = []
    for kx, ky, c in CASES:
        n = math.ceil(12 * theory.chain_N(kx, ky, c))
        x, y = chain_solution(n, kx, ky, c)
        found.append(theory.tail_rounds(x, y, 1e-5 * math.hypot(np.linalg.norm(x), np.linalg.norm(y))))
    assert found == [183, 347, 184, 626]


def test_a_chain_that_is_too_long_to_solve_counts_as_infinite():
    assert forced_on_chain(1e10, 1e10, 1.0, 1e-6) == theory.forced_rounds(1e10, 1e10, 1.0, 1e-6)


# -- the theorem, checked on runs -------------------------------------------------------------------------------------


def steps(name, f, limit):
    """The points of a method from zero, with the calls made so far, until these could reach the far end."""
    meter = Meter()
    method = make_method(name)
    view = method.normal_form(metered(f, meter))
    state = method.init(view.problem, *view.to(np.zeros(f.shape[0]), np.zeros(f.shape[1])))
    for _ in range(limit):
        calls = meter.calls
        if theory.calls_reach(calls["grad_g"], calls["grad_h"], calls["A"]) >= f.shape[0]:
            break
        yield (*view.back(state.x, state.y), dict(calls))
        state = method.step(view.problem, state)


@pytest.mark.slow
@pytest.mark.parametrize("name", chain_methods())
def test_no_method_goes_beyond_the_reach(name):
    """No method is closer to the solution than the coordinates that it cannot have reached."""
    n, kx, ky, c = 800, 50.0, 20.0, 8.0
    f = chain(n, kx, ky, c)
    solution = chain_solution(n, kx, ky, c)
    for x, y, calls in steps(name, f, 40):
        reach = theory.calls_reach(calls["grad_g"], calls["grad_h"], calls["A"])
        assert max(support(x), support(y)) <= reach
        beyond = math.hypot(*(np.linalg.norm(z[reach:]) for z in solution))
        distance = math.hypot(*(np.linalg.norm(p - z) for p, z in zip((x, y), solution, strict=True)))
        assert distance >= beyond * (1 - 1e-12)


@pytest.mark.parametrize("name", [name for name in ("extragradient", "ogda", "krylov") if name in method_names()])
def test_methods_that_evaluate_the_field_are_bound_by_rounds(name):
    for x, y, calls in steps(name, chain(400, 50.0, 20.0, 8.0), 40):
        a, b = theory.rounds_reach(max(calls.values()))
        assert support(x) <= a
        assert support(y) <= b


def test_a_method_that_interleaves_its_oracles_reaches_further_than_rounds_allow():
    """The bound in rounds is therefore one for simultaneous calls, and a third of it holds for all calls."""
    *_, (x, _, calls) = steps("aipfb", chain(800, 50.0, 20.0, 8.0), 40)
    assert max(calls.values()) < support(x) <= 3 * max(calls.values())


@pytest.mark.slow
@pytest.mark.parametrize("case", [(100.0, 100.0, 1.0), (30.0, 30.0, 60.0), (300.0, 10.0, 8.0)])
@pytest.mark.parametrize(("name", "most"), [("lpd-gs", 2.3), ("krylov", 1.7), ("dippa", 20.0)])
def test_the_best_methods_are_close_to_the_lower_bound(name, most, case):
    if name not in method_names():
        pytest.skip(f"{name} is not there")
    run = measure(name, *case, 1e-6)
    assert run.solved
    assert run.forced <= run.calls <= most * run.forced


def test_a_measurement_ends_at_the_true_distance():
    problem = hard_chain(50.0, 20.0, 8.0, 1e-4)
    Fx, Fy = problem.f.field(problem.x, problem.y)
    assert max(abs(Fx).max(), abs(Fy).max()) < 1e-13
    run = measure("dippa", 50.0, 20.0, 8.0, 1e-4)
    certified = sp.solve(problem.f, method="dippa", tol=1e-4 * problem.norm)
    assert run.solved
    assert run.calls < max(certified.calls.values())
    assert not measure("dippa", 50.0, 20.0, 8.0, 1e-4, max_seconds=1e-9).solved


# -- predictions ------------------------------------------------------------------------------------------------------


def test_the_prediction_has_N_and_the_forced_rounds():
    p = sp.predict(kx=1e4, ky=10.0, coupling=42.4, tol=1e-5)
    assert pytest.approx(108.62, abs=0.01) == p.N
    assert p.forced_rounds == theory.forced_rounds(1e4, 10.0, 42.4, 1e-5) == 626
    low = p.rows[-1]
    assert (low.method, low.calls) == ("lower bound", 626.0)
    assert low.order == pytest.approx(p.N / 2)
    assert "N = 108.6: the hardest such problem forces 626 rounds" in repr(p)
    assert p.to_dict()["N"] == p.N
    assert p.to_dict()["forced_rounds"] == 626


@given(kappas, kappas, couplings, st.floats(-12.0, -0.1))
def test_every_prediction_is_finite_and_no_order_is_below_the_lower_bound(kx, ky, c, exponent):
    p = sp.predict(kx=kx, ky=ky, coupling=c, tol=10.0**exponent)
    assert p.forced_rounds >= 1
    for row in p.rows:
        assert math.isfinite(row.calls)
        assert row.order == max(row.grad_g, row.grad_h, row.products) >= 0.999 * p.N / 2
        assert row.calls > 0.0


def test_every_gradient_method_has_a_row():
    keys = [row.key for row in promised_rows()]
    assert set(chain_methods()) <= set(keys)
    assert len(set(keys)) == len(keys)
