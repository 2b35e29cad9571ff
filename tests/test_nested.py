"""The nested baselines: Minimax-APPA, proximal best response and RHSS."""

import math
from itertools import pairwise

import numpy as np
import pytest
from cases import CASES, case
from reference import dense, distance, hessian

import saddlepoint as sp
from saddlepoint import theory
from saddlepoint.methods.minimax_appa import stationary
from saddlepoint.methods.rhss import Pair, RHSSState, conjugate_gradients, hessian_times
from saddlepoint.parts.functions.anchored import anchored
from saddlepoint.problems.generators import random_logistic, random_quadratic
from saddlepoint.theory.rhss import PROVEN, HssGoal
from saddlepoint.uses.bench.measure import measure

KAPPAS = (1.0, 1.5, 10.0, 1e3, 1e6)
QUADRATIC = [name for name in CASES if case(name)[0].g.quadratic and case(name)[0].h.quadratic]
OTHER = [name for name in CASES if name not in QUADRATIC]


def states(method, f, steps):
    """A problem in the method's normal form, and the states of a run on it."""
    view = method.normal_form(f)
    state = method.init(view.problem, *view.to(np.full(f.shape[0], 0.3), np.full(f.shape[1], -0.5)))
    run = [state]
    for _ in range(steps):
        run.append(method.step(view.problem, run[-1]))
    return view.problem, run


def exponent(method, points, variable, tol=1e-4):
    runs = [measure(method, *point, tol) for point in points]
    assert all(run.solved for run in runs)
    return float(np.polyfit(np.log(variable), np.log([run.calls for run in runs]), 1)[0])


# -- theory -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kappa", KAPPAS)
def test_appa_momenta_are_those_of_the_paper(kappa):
    root = math.sqrt(kappa)
    assert theory.appa_theta(kappa) == pytest.approx((2 * root - 1) / (2 * root + 1))
    assert theory.appa_tau(kappa) == pytest.approx(1 / (2 * root + 4 * kappa))
    assert theory.appa_q(kappa) <= 1 / (1 + 2 * kappa)  # Catalyst's own q for the anchor 2 beta


@pytest.mark.parametrize("kappa", KAPPAS)
@pytest.mark.parametrize("with_tau", [True, False])
def test_exact_appa_contracts_at_its_rate(kappa, with_tau):
    """On a mode of curvature s >= mu an exact step multiplies by a = 2 beta/(s + 2 beta): a recursion of order two."""
    theta, tau = theory.appa_theta(kappa), theory.appa_tau(kappa) if with_tau else 0.0
    for s in np.geomspace(1.0, 1e8 * kappa, 60):
        a = 2 * kappa / (s + 2 * kappa)
        roots = np.roots([1.0, tau - (1 + theta + tau) * a, theta * a])
        assert max(abs(roots)) ** 2 <= 1 - math.sqrt(theory.appa_q(kappa)) + 1e-9


def test_minimax_appa_constants_are_those_of_the_paper():
    ell, kappa, m, L_phi = theory.minimax_appa_parameters(3.0, 3.0, 0.1, 5.0)
    assert (ell, kappa, m) == (5.0, 50.0, 10.1)
    assert L_phi == pytest.approx(3.0 + 25.0 / 10.1)
    eps, mu_y = 1e-3, 0.2
    p = theory.minimax_appa_tolerance(eps, m, mu_y, 5.0)
    assert p * p / (2 * m) <= eps / 2
    assert 5.0 * p / m <= 0.1 * math.sqrt(mu_y * eps) * (1 + 1e-12)
    assert theory.minimax_appa_tolerance(eps, m, mu_y, 0.0) == pytest.approx(math.sqrt(m * eps))


@pytest.mark.parametrize("betas", [theory.pbr_betas, theory.pbr_paper_betas])
@pytest.mark.parametrize("mu", [(1.0, 1.0), (1e-3, 10.0), (4.0, 1e-2)])
@pytest.mark.parametrize("norm", [0.0, 0.1, 1.0, 300.0])
def test_anchors_make_best_responses_a_contraction(betas, mu, norm):
    x, y = betas(*mu, norm)
    theta = theory.response_theta(mu[0] + 2 * x, mu[1] + 2 * y, norm)
    assert theta <= 0.5
    assert theory.response_contraction(theta) < 0.8
    assert theory.response_contraction(theta, 0.0) <= theta * math.hypot(1, theta)
    sweeps = theory.response_sweeps(theta, 1e6)
    assert theory.response_contraction(theta) ** (2 * sweeps) <= 1e-6
    assert min(x / mu[0], y / mu[1]) >= 1.0


def test_weights_of_anchors_follow_the_scale():
    a, b = 7.0, 0.3
    x, y = theory.pbr_betas(0.2, 5.0, 40.0)
    u, v = theory.pbr_betas(0.2 * a * a, 5.0 * b * b, 40.0 * a * b)
    assert (u, v) == pytest.approx((x * a * a, y * b * b))
    assert theory.pbr_betas(0.2, 0.2, 3.0) == pytest.approx(theory.pbr_paper_betas(0.2, 0.2, 3.0))


@pytest.mark.parametrize("k", [1, 2, 3, 5])
@pytest.mark.parametrize("c", [0.0, 0.4, 0.6, 1.0, 3.0, 50.0, 1e4])
def test_rhss_recursion_ends_within_k_levels(k, c):
    d, e, contractions = 0.0, 1.0, []
    for levels in range(k, -1, -1):
        contractions.append(theory.rhss_contraction(max(levels, 1), d, e, c, 1e4))
        eta, beta = theory.rhss_parameters(max(levels, 1), d + e, c)
        if eta == 0.0:
            break
        d, e = eta * (d + e + beta * d), eta * beta * e
    assert eta == 0.0  # eta = 0 is Richardson's step
    assert c <= 0.5 * (d + e)  # then Richardson's step contracts faster
    assert max(contractions) < 1.0
    for sigma in contractions:
        assert theory.rhss_inexact_contraction(sigma, PROVEN * (1 - sigma)) <= 0.5 * (1 + sigma) + 1e-12


# -- Minimax-APPA and PBR ---------------------------------------------------------------------------------------------


def test_stationary_returns_the_gradient_of_its_point():
    g = case("balanced")[0].g
    x, p = stationary(g, np.ones(14), 1e-6)
    np.testing.assert_array_equal(p, g.grad(x))
    assert np.linalg.norm(p) <= 1e-6
    x, p = stationary(g, np.ones(14), 0.0)  # a gradient of 0 cannot be reached, and the run ends all the same
    assert np.linalg.norm(p) <= 1e-10


def exact_appa(f, x, y, beta, tau, steps):
    """The accelerated proximal point method on Phi(x) = max_y f(x, y) for quadratics, by dense solves."""
    P, Q, A = hessian(f.g, x), hessian(f.h, y), dense(f.A)
    g0, h0 = f.g.grad(np.zeros_like(x)), f.h.grad(np.zeros_like(y))
    H, b = P + A @ np.linalg.solve(Q, A.T), g0 - A @ np.linalg.solve(Q, h0)
    theta, anchor, last, points = theory.appa_theta(beta / f.mu_x), x, x, []
    for _ in range(steps):
        x = np.linalg.solve(H + 2 * beta * np.eye(x.size), 2 * beta * anchor - b)
        anchor, last = x + theta * (x - last) + tau * (x - anchor), x
        points.append(x)
    return np.array(points)


def with_exact_inner_solves(method):
    """A problem, a start, and the ends of the first six outer steps of a method whose inner solves are exact."""
    f, x, y = random_quadratic(6, 5, 20, 30, 8, seed=0), np.full(6, 0.3), np.full(5, -0.5)
    state = method.init(f, x, y)._replace(gap=1e-20)
    ends = []
    while len(ends) < 6:
        new = method.step(f, state)
        ends += [new.x] if new.k > state.k else []
        state = new
    return f, x, y, np.array(ends)


def test_minimax_appa_with_exact_inner_solves_is_appa():
    f, x, y, ends = with_exact_inner_solves(sp.MinimaxAPPA())
    ell = theory.minimax_appa_parameters(f.L_x, f.L_y, f.mu_x, f.norm).ell
    np.testing.assert_allclose(ends, exact_appa(f, x, y, ell, 0.0, 6), atol=1e-7)


def test_pbr_with_exact_inner_solves_is_appa():
    method = sp.PBR("paper")  # with these weights the method does not change coordinates
    f, x, y, ends = with_exact_inner_solves(method)
    beta = method.anchors(f).x
    np.testing.assert_allclose(ends, exact_appa(f, x, y, beta, theory.appa_tau(beta / f.mu_x), 6), atol=1e-7)


@pytest.mark.parametrize("problem", ["balanced", "mu_x < mu_y", "L_x >> L_y", "logistic", "kappa = 1", "A = 0"])
def test_minimax_appa_stays_under_the_theorem_of_catalyst(problem):
    f, xs, ys = case(problem)
    f, run = states(sp.MinimaxAPPA(), f, 400)
    us, _ = sp.MinimaxAPPA().normal_form(case(problem)[0]).to(xs, ys)
    q = theory.appa_q(theory.minimax_appa_parameters(f.L_x, f.L_y, f.mu_x, f.norm).kappa)
    ends = [(before.k, after) for before, after in pairwise(run) if after.k > before.k]
    assert len(ends) >= 3
    for k, after in ends:
        error = 0.5 * f.mu_x * np.sum((after.x - us) ** 2)
        assert error <= theory.catalyst_bound(k, q, after.gap) * (1 + 1e-9) + 1e-14 * run[0].gap


@pytest.mark.parametrize("problem", ["balanced", "L_x >> L_y", "logistic, mu_x < mu_y"])
@pytest.mark.parametrize("betas", ["scaled", "paper"])
def test_pbr_proves_its_gaps_and_its_best_responses_contract(problem, betas):
    method = sp.PBR(betas)
    f, run = states(method, case(problem)[0], 200)
    beta = method.anchors(f)
    theta = theory.response_theta(f.mu_x + 2 * beta.x, f.mu_y + 2 * beta.y, f.norm)
    for before, after in pairwise(run):
        g, h = anchored(f.g, 2 * beta.x, after.xh), anchored(f.h, 2 * beta.y, after.yh)
        Fx, Fy = g.grad(after.x) + f.A.mul(after.y), h.grad(after.y) - f.A.tmul(after.x)
        gap = theory.gap_bound(g.mu, h.mu, np.linalg.norm(Fx), np.linalg.norm(Fy))
        assert after.now == pytest.approx(gap, rel=1e-5, abs=1e-18 * run[0].gap)
        if (after.k, after.j) == (before.k, before.j):
            assert after.now <= theory.response_contraction(theta) ** 2 * before.now


def test_both_weights_are_one_where_mu_x_is_mu_y():
    f, *_ = case("balanced")
    view = sp.PBR().normal_form(f)
    scaled, paper = (states(sp.PBR(betas), f, 60)[1] for betas in ("scaled", "paper"))
    for a, b in zip(scaled, paper, strict=True):
        np.testing.assert_allclose(view.back(a.x, a.y)[0], b.x, rtol=1e-6, atol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("problem", [name for name in CASES if name != "L_x << L_y"])
def test_pbr_with_the_papers_weights_solves(problem):
    f, xs, ys = case(problem)
    result = sp.solve(f, method=sp.PBR("paper"), tol=1e-8)
    assert result.solved
    assert distance(result.x, result.y, xs, ys) <= result.certificate.distance


@pytest.mark.slow
def test_the_papers_weights_depend_on_the_scale():
    """The weights of the paper take three times the calls here, which is why they are not the default."""
    f, *_ = case("L_x >> L_y")
    scaled, paper = (sp.solve(f, method=sp.PBR(betas), tol=1e-4) for betas in ("scaled", "paper"))
    assert scaled.solved
    assert paper.solved
    assert sum(paper.calls.values()) > 3 * sum(scaled.calls.values())


@pytest.mark.parametrize("method", ["minimax-appa", "pbr", "rhss"])
def test_a_step_is_pure(method):
    made = sp.make_method(method)
    f, run = states(made, case("mu_x < mu_y")[0], 8)
    again = made.step(f, run[-2])
    for old, new in zip(run[-1], again, strict=True):
        if isinstance(old, np.ndarray):
            np.testing.assert_array_equal(old, new)
        elif not isinstance(old, Pair):
            assert old == new


@pytest.mark.parametrize("method", ["minimax-appa", "pbr", "rhss"])
def test_a_start_at_the_solution_stays_there(method):
    f = sp.Saddle(sp.Quadratic([1.0, 2.0]), sp.Quadratic([1.0, 5.0]), [[1.0, 2.0], [0.0, 3.0]])
    made = sp.make_method(method)
    state = made.init(f, np.zeros(2), np.zeros(2))
    for _ in range(30):
        state = made.step(f, state)
        assert not state.x.any()
        assert not state.y.any()


# -- RHSS -------------------------------------------------------------------------------------------------------------


def blocks(f, k, d, e):
    """H, S and P of one step as dense matrices, with eta."""
    m, n = f.shape
    A = dense(f.A)
    G = np.block([[hessian(f.g, np.zeros(m)), np.zeros((m, n))], [np.zeros((n, m)), hessian(f.h, np.zeros(n))]])
    S = np.block([[np.zeros((m, m)), A], [-A.T, np.zeros((n, n))]])
    H = d * np.eye(m + n) + e * G
    eta, beta = theory.rhss_parameters(k, d + e, f.coupling)
    return H, S, (d + e) * np.eye(m + n) + beta * H, eta


def unit(kx, ky, c, seed):
    """A random quadratic problem with mu_x = mu_y = 1, whose functions are Quadratic."""
    f = random_quadratic(5, 4, kx, ky, c, L_x=kx, L_y=ky, seed=seed)
    return sp.Saddle(sp.Quadratic(f.g.P.A, f.g.b, mu=1.0, L=kx), sp.Quadratic(f.h.P.A, f.h.b, mu=1.0, L=ky), f.A)


def exactly(f, x, y):
    """A state of RHSS whose inner solves are nearly exact."""
    return RHSSState(x, y, Pair(f.g.grad(0 * x), f.h.grad(0 * y)), math.inf, 1e-7)


@pytest.mark.parametrize("k", [1, 2, 3])
@pytest.mark.parametrize(("d", "e"), [(0.0, 1.0), (2.0, 0.3)])
@pytest.mark.parametrize("c", [0.7, 4.0, 40.0])
def test_hss_contraction_bounds_the_spectral_radius(k, d, e, c):
    for seed, (kx, ky) in enumerate([(30.0, 30.0), (1.001, 200.0), (100.0, 3.0)]):
        f = unit(kx, ky, c, seed)
        H, S, P, eta = blocks(f, k, d, e)
        if eta == 0.0:  # Richardson
            T = np.linalg.solve(H, -S)
        else:
            T = np.linalg.solve(eta * P + S, eta * P - H) @ np.linalg.solve(eta * P + H, eta * P - S)
        radius = max(abs(np.linalg.eigvals(T)))
        assert radius <= theory.rhss_contraction(k, d, e, f.coupling, max(kx, ky)) + 1e-9


@pytest.mark.slow
@pytest.mark.parametrize("k", [1, 2, 3])
@pytest.mark.parametrize("c", [0.3, 0.8, 5.0])
def test_rhss_with_exact_solves_is_the_dense_iteration(k, c):
    f = unit(20.0, 40.0, c, seed=1)
    method, z = sp.RHSS(k), np.concatenate((np.full(5, 0.3), np.full(4, -0.5)))
    H, S, P, eta = blocks(f, k, 0.0, 1.0)
    r = -np.concatenate((f.g.b, f.h.b))
    for _ in range(4):
        x, y = z[:5], z[5:]
        state = method.step(f, exactly(f, x, y))
        z = z + np.linalg.solve(eta * P + H if eta else H, r - (H + S) @ z)
        if eta:  # for eta = 0 the step is Richardson's
            z = z + np.linalg.solve(eta * P + S, r - (H + S) @ z)
        np.testing.assert_allclose(np.concatenate((state.x, state.y)), z, atol=1e-4 * np.linalg.norm(z))


def test_rhss_at_weak_coupling_is_richardson_with_cg():
    f = unit(50.0, 20.0, 0.45, seed=2)
    runs = [states(sp.RHSS(k), f, 6)[1] for k in (1, 2, 4)]
    for one, two, four in zip(*runs, strict=True):  # the levels do not matter
        np.testing.assert_array_equal(one.x, two.x)
        np.testing.assert_array_equal(one.x, four.x)
    weights = [state.weight for state in runs[0][1:]]
    assert all(b <= theory.rhss_inexact_contraction(0.45, 0.5 * 0.55) * a for a, b in pairwise(weights))


@pytest.mark.slow
@pytest.mark.parametrize("k", [1, 2, 3])
@pytest.mark.parametrize("problem", ["balanced", "mu_x > mu_y", "wide", "kappa_x = 1"])
def test_rhss_with_the_proven_share_contracts_as_proven(k, problem):
    f, run = states(sp.RHSS(k), case(problem)[0], 0)
    method, state = sp.RHSS(k), run[0]
    sigma = method.contraction(f, k, 0.0, 1.0)
    rate = theory.rhss_inexact_contraction(sigma, PROVEN * (1 - sigma))
    weights = []
    for _ in range(8):
        state = method.step(f, state._replace(slack=PROVEN))
        weights.append(state.weight)
    # |P^1/2 z| of the inexact z stands for that of the exact one, within 1 -+ tol.
    tol = PROVEN * (1 - sigma)
    assert all(b <= rate * a * (1 + tol) / (1 - tol) for a, b in pairwise(weights))


def test_the_goal_of_the_inner_solves_measures_what_it_says():
    f = unit(20.0, 40.0, 3.0, seed=0)
    H, _, P, eta = blocks(f, 2, 0.5, 0.7)
    goal = theory.rhss_goal(2, 0.5, 0.7, f.coupling, 40.0, 0.5)
    scale = 1.0 + goal.eta * goal.beta
    r, b = np.arange(5.0), f.g.grad(np.zeros(5))
    z, q = conjugate_gradients(f.g, b, eta * goal.m + scale * 0.5, scale * 0.7, r, goal)
    Mx, Px = (eta * P + H)[:5, :5], P[:5, :5]
    np.testing.assert_allclose(Mx @ z, r - q, atol=1e-10)
    assert goal.weight(z @ z, z @ r) == pytest.approx(math.sqrt(z @ Px @ z))
    assert np.linalg.norm(q) <= goal.size(z @ z, z @ r)
    assert math.sqrt(q @ np.linalg.solve(Px, q)) <= goal.tol * eta * math.sqrt(z @ Px @ z)
    richardson = HssGoal(1.2, 0.0, 0.0, 0.1)
    z, q = conjugate_gradients(f.g, b, 0.5, 0.7, r, richardson)
    assert richardson.weight(z @ z, z @ r) == pytest.approx(math.sqrt(z @ H[:5, :5] @ z))
    assert np.linalg.norm(q) <= richardson.size(z @ z, z @ r)


def test_hessian_products_are_accurate_beside_a_large_gradient_at_zero():
    q = sp.Quadratic(np.array([1.0, 3.0]), np.array([1e6, -2e6]))
    for v in (np.array([1e-9, 2e-9]), np.array([1.0, 0.0]), np.zeros(2)):
        np.testing.assert_allclose(hessian_times(q, q.grad(np.zeros(2)), v), q.P * v, rtol=1e-14)


FEW = ["balanced", "mu_x > mu_y", "L_x << L_y", "kappa = 1", "A = 0", "1 x 1", "tiny A", "badly scaled A"]


@pytest.mark.slow
@pytest.mark.parametrize(("k", "problem"), [(2, p) for p in QUADRATIC] + [(k, p) for k in (1, 3) for p in FEW])
def test_rhss_solves_quadratic_problems(k, problem):
    f, xs, ys = case(problem)
    result = sp.solve(f, np.full(f.shape[0], 0.1), np.full(f.shape[1], -0.2), method=sp.RHSS(k), tol=1e-8)
    assert result.solved
    assert distance(result.x, result.y, xs, ys) <= result.certificate.distance


def test_rhss_solves_in_single_precision_and_for_sums():
    f, *_ = case("balanced")
    P, Q = (sp.Quadratic(q.P.A.astype(np.float32), q.b.astype(np.float32)) for q in (f.g, f.h))
    result = sp.solve(sp.Saddle(P, Q, f.A.A.astype(np.float32)), method="rhss", tol=1e-2)
    assert result.solved
    assert result.x.dtype == np.float32
    g = sp.LeastSquares(np.eye(14)[:7], np.ones(7), l2=0.1) + 2.0 * sp.Quadratic(1.0)
    assert sp.solve(sp.Saddle(g, f.h, f.A), method="rhss", tol=1e-8).solved


@pytest.mark.parametrize("problem", OTHER)
def test_rhss_refuses_what_is_not_quadratic(problem):
    f, *_ = case(problem)
    with pytest.raises(
        sp.ProblemError, match=r"rhss needs quadratic g and h, but g .* is not known .* use a method .* dippa"
    ):
        sp.solve(f, method="rhss")


def test_rhss_levels_are_whole_numbers():
    with pytest.raises(sp.ProblemError, match=r"k of rhss is 2.5; expected a whole number"):
        sp.RHSS(2.5)
    with pytest.raises(sp.ProblemError, match="k of rhss is 0; expected a whole number from 1 to 20"):
        sp.RHSS(0)


# -- measured growth of the calls -------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_calls_of_minimax_appa_grow_with_the_product_of_the_condition_numbers():
    """sqrt(kx ky) by theory; less on the chain, where the first guesses are good, but more than the sqrt of others."""
    k = (50.0, 200.0, 800.0)
    assert 0.6 <= exponent("minimax-appa", [(v, v, 1.0) for v in k], k) <= 1.05
    assert exponent("pbr", [(v, v, 1.0) for v in k], k) <= 0.6


@pytest.mark.slow
def test_pbr_grows_with_the_power_three_halves_where_kappa_is_the_coupling_squared():
    c = (4.0, 8.0, 16.0, 32.0)
    assert 1.2 <= exponent("pbr", [(v * v, v * v, v) for v in c], c) <= 1.65


@pytest.mark.slow
def test_rhss_comes_closer_to_the_lower_bound_with_more_levels():
    c = (4.0, 8.0, 16.0, 32.0)
    one, two = (exponent(sp.RHSS(k), [(v * v, v * v, v) for v in c], c) for k in (1, 2))
    assert 1.0 <= one <= 1.65  # sqrt(k c) by theory
    assert 0.8 <= two <= 1.4  # sqrt(k sqrt(c))
    assert two < one


def test_rhss_is_conjugate_gradients_where_the_coupling_is_weak():
    rhss, aipfb = (measure(name, 400.0, 400.0, 0.4, 1e-6).calls for name in ("rhss", "aipfb"))
    assert rhss < aipfb


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_nested_methods_find_the_same_point(seed):
    f = random_quadratic(8, 6, 30, 10, 5, L_x=4.0, seed=seed)
    answers = [sp.solve(f, method=name, tol=1e-9) for name in ("minimax-appa", "pbr", "rhss", "aipfb")]
    for answer in answers:
        assert distance(answer.x, answer.y, answers[-1].x, answers[-1].y) <= 2e-9
    g = random_logistic(8, 6, 30, 10, 5, L_x=4.0, seed=seed)
    one, two = (sp.solve(g, method=name, tol=1e-9) for name in ("minimax-appa", "pbr"))
    assert distance(one.x, one.y, two.x, two.y) <= 2e-9
