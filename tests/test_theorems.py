"""Every theorem, checked at every iteration on random problems: quadratic or not, balanced or not, badly scaled."""

import numpy as np
import pytest
from energies import agraal_energies, rapd_errors
from hypothesis import given
from hypothesis import strategies as st
from random_problems import ROUNDING, in_normal_form, saddles, weighted_error
from reference import dense, squared
from tiers import slow_except

import saddlepoint as sp
from saddlepoint import theory
from saddlepoint.methods.agd import AGD, minimise
from saddlepoint.methods.dippa import DIPPAState
from saddlepoint.parts.functions.anchored import anchored
from saddlepoint.problems.generators import random_quadratic
from saddlepoint.problems.transforms import balanced, smaller_mu_first

LONG = 500  # steps of AGD that leave rounding only: its gap falls by exp(-1/8) a step where kappa <= 60


# -- Lemmas -----------------------------------------------------------------------------------------------------------


@given(saddles(), st.integers(0, 99))
def test_the_lemma_on_smooth_functions_holds(problem, seed):
    f = problem[0]
    rng = np.random.default_rng(seed)
    for phi, n in ((f.g, f.shape[0]), (f.h, f.shape[1])):
        x, y = rng.standard_normal((2, n)) * 10.0 ** rng.integers(-2, 3)
        dx, dg = x - y, phi.grad(x) - phi.grad(y)
        slack = theory.smooth_lemma(dg @ dx, dx @ dx, dg @ dg, phi.mu, phi.L)
        # A bound on the error of dg.
        error = 1e-14 * (np.linalg.norm(phi.grad(x)) + np.linalg.norm(phi.grad(y)) + phi.L * np.linalg.norm(x))
        floor = 4 * error * np.linalg.norm(dx)
        assert slack >= -floor
        # Lemma `smooth:def`: (i) Lipschitz, (ii) the quadratic upper bound, (iii) cocoercivity.
        assert np.linalg.norm(dg) <= phi.L * np.linalg.norm(dx) + error
        gap = phi(y) - phi(x) - phi.grad(x) @ (y - x)
        assert gap <= phi.L / 2 * (dx @ dx) + 1e-10 * (1 + abs(phi(x)) + abs(phi(y)))
        assert dg @ dx >= dg @ dg / phi.L - floor


@given(saddles(prox=True), st.floats(0.01, 100.0), st.integers(0, 99))
def test_lemma_prox_lipschitz(problem, t, seed):
    g = problem[0].g
    if not g.has_prox:
        return
    x, y = np.random.default_rng(seed).standard_normal((2, problem[0].shape[0]))
    u, v = g.prox(x, t / g.L), g.prox(y, t / g.L)
    np.testing.assert_allclose(u + t / g.L * g.grad(u), x, atol=1e-9)
    factor = theory.prox_lipschitz(g.mu, t / g.L)
    assert factor <= 1.0
    assert np.linalg.norm(u - v) <= factor * np.linalg.norm(x - y) * (1 + 1e-9)


# -- AGD --------------------------------------------------------------------------------------------------------------


@given(saddles(most=500.0))
def test_agd_stays_below_its_bound(problem):
    f, xs, ys = problem
    tilt = dense(f.A) @ ys
    phi = sp.Smooth(lambda x: f.g.grad(x) + tilt, mu=f.g.mu, L=f.g.L)  # its minimiser is x*
    best = f.g(xs) + tilt @ xs
    agd, s = AGD(), AGD().init(phi, np.full(xs.size, 0.5))
    start = np.sum((s.x - xs) ** 2)
    for T in range(1, 60):
        s = agd.step(phi, s)
        gap = f.g(s.x) + tilt @ s.x - best
        assert gap <= theory.agd_bound(phi.L, phi.mu, T, start) + 1e-12 * (abs(best) + phi.L * start)
        assert gap <= theory.step_gap(phi.L, phi.mu, np.linalg.norm(s.p)) + 1e-12 * (abs(best) + phi.L * start)


@given(saddles(most=500.0), st.floats(1e-9, 1e-1))
def test_minimise_stops_with_a_proof(problem, share):
    f, xs, ys = problem
    calls = []
    tilt = dense(f.A) @ ys
    phi = sp.Smooth(lambda x: calls.append(1) or f.g.grad(x) + tilt, mu=f.g.mu, L=f.g.L)
    start = np.full(xs.size, 0.5)
    first = theory.step_gap(phi.L, phi.mu, np.linalg.norm(phi.grad(start)))
    calls.clear()
    gap = max(share * first, 1e-300)
    x = minimise(phi, start, gap=gap)
    value = lambda v: f.g(v) + tilt @ v  # noqa: E731
    assert value(x) - value(xs) <= gap + 1e-12 * (1 + abs(value(xs)))
    assert len(calls) <= theory.agd_proof_steps(phi.L / phi.mu, 1 / share)


# -- APFB -------------------------------------------------------------------------------------------------------------


@given(saddles(prox=True))
def test_apfb_stays_below_its_bound(problem):
    f, xs, ys = problem
    assert f.g.has_prox
    method = sp.APFB()
    f, xs, ys, x, y = in_normal_form(method, f, xs, ys)
    start, s = weighted_error(f, x, y, xs, ys), method.init(f, x, y)
    for T in range(1, 80):
        s = method.step(f, s)
        assert weighted_error(f, s.x, s.y, xs, ys) <= theory.apfb_bound(f.coupling, T, start) + ROUNDING**2 * start


# -- DPPA -------------------------------------------------------------------------------------------------------------


@given(saddles(prox=True))
def test_theorem_dppa_and_corollary(problem):
    f, xs, ys = problem
    assert f.g.has_prox
    method = sp.DPPA()
    f, xs, ys, x, y = in_normal_form(method, f, xs, ys)
    alpha, kappa = theory.dppa_alpha(f.L, f.mu), f.L / f.mu
    A = dense(f.A)
    zs, ws = xs - alpha * A @ ys, ys + alpha * A.T @ xs
    eta = theory.dppa_contraction(kappa)
    start, s = squared(x, y, xs, ys), method.init(f, x, y)
    for K in range(1, 60):
        before = squared(s.z, s.w, zs, ws)
        s = method.step(f, s)
        floor = ROUNDING**2 * (start + squared(zs, ws, 0 * zs, 0 * ws))
        assert squared(s.z, s.w, zs, ws) <= eta * (1 + 1e-9) * before + floor
        assert squared(s.x, s.y, xs, ys) <= theory.dppa_bound(kappa, alpha * f.norm, K, start) + floor


# -- DIPPA ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("coupling", slow_except(["apfb", "cg", "factor"], "apfb"))
@pytest.mark.parametrize("inner", ["paper", "certified"])
@given(problem=saddles())
def test_theorem_dippa_out(inner, coupling, problem):
    method = sp.DIPPA(inner, coupling)
    f, xs, ys, x, y = in_normal_form(method, *problem)
    kappa, nu = f.L / f.mu, f.norm * theory.dppa_alpha(f.L, f.mu)
    s = method.init(f, x, y)
    start = squared(x, y, xs, ys)
    if inner == "certified":
        assert start * (1 - 1e-9) <= s.C0
        start = s.C0
    for K in range(1, 12 if inner == "paper" else 40):
        s = method.step(f, s)
        bound = theory.dippa_bound(kappa, nu, K, start)
        assert squared(s.x, s.y, xs, ys) <= bound + ROUNDING**2 * (start + squared(xs, ys, 0, 0)) * (1 + nu * nu)


@pytest.mark.parametrize("coupling", ["apfb", "cg", "factor"])
@given(problem=saddles())
def test_adaptive_dippa_keeps_a_proven_bound_that_falls(coupling, problem):
    method = sp.DIPPA("adaptive", coupling)
    f, xs, ys, x, y = in_normal_form(method, *problem)
    alpha, kappa = theory.dppa_alpha(f.L, f.mu), f.L / f.mu
    A = dense(f.A)
    zs, ws = xs - alpha * A @ ys, ys + alpha * A.T @ xs
    s = method.init(f, x, y)
    floor = ROUNDING**2 * (squared(zs, ws, 0, 0) + squared(x, y, 0, 0)) * (1 + (alpha * f.norm) ** 2)
    for _ in range(40):
        assert squared(s.z, s.w, zs, ws) <= s.bound * (1 + 1e-9) + floor
        before = s.bound
        s = method.step(f, s)
        assert s.bound <= (1 - theory.dippa_rho(kappa)) * before * (1 + 1e-9)


@pytest.mark.slow
@given(saddles())
def test_lemma_dippa_inner(problem):
    """K1 and K2 reach eps_k and delta_k from the start that the lemma assumes, at every step of a run."""
    method = sp.DIPPA("paper", "apfb")
    f, xs, ys, x, y = in_normal_form(method, *problem)
    alpha, kappa = theory.dppa_alpha(f.L, f.mu), f.L / f.mu
    nu, A = alpha * f.norm, dense(f.A)
    M = np.block([[np.eye(x.size), alpha * A], [-alpha * A.T, np.eye(y.size)]])
    C0, s = squared(x, y, xs, ys), method.init(f, x, y)
    for k in range(1, 6):
        level = theory.dippa_level(k, kappa, C0)
        G = anchored(f.g, 1 / alpha, s.z)
        xt = minimise(G, s.x, steps=theory.dippa_K1(kappa, nu))
        exact = minimise(G, xt, steps=LONG)
        scale = abs(G(exact)) + G.L * (np.sum(exact**2) + np.sum(s.z**2))
        assert G(xt) - G(exact) <= theory.dippa_eps(level, f.mu) + 1e-12 * scale
        yt = minimise(anchored(f.h, 1 / alpha, s.w), s.y, steps=theory.dippa_K1(kappa, nu))
        exact = np.linalg.solve(M, np.r_[2 * xt - s.z, 2 * yt - s.w])
        s = method.step(f, s)
        error = np.sum((np.r_[s.x, s.y] - exact) ** 2)
        assert error <= theory.dippa_delta(level, kappa, nu) + ROUNDING**2 * np.sum(exact**2) * (1 + nu * nu)


@pytest.mark.slow
@given(saddles(most=6.0))
def test_the_predicted_outer_steps_give_definition_2(problem):
    method, eps = sp.DIPPA("paper", "cg"), 1e-4
    f, xs, ys, x, y = in_normal_form(method, *problem)
    kappa, nu = f.L / f.mu, f.norm * theory.dppa_alpha(f.L, f.mu)
    s = method.init(f, x, y)
    for _ in range(theory.dippa_K(kappa, nu, squared(x, y, xs, ys), eps)):
        s = method.step(f, s)
    assert np.linalg.norm(s.x - xs) + np.linalg.norm(s.y - ys) <= eps


# -- AIPFB ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("inner", ["paper", "certified"])
@given(problem=saddles())
def test_lemma_aipfb_out(inner, problem):
    method = sp.AIPFB(inner)
    f, xs, ys, x, y = in_normal_form(method, *problem)
    s = method.init(f, x, y)
    start = weighted_error(f, x, y, xs, ys)
    if inner == "certified":
        assert start * (1 - 1e-9) <= s.C0
        start = s.C0
    for T in range(1, 25):
        s = method.step(f, s)
        if T >= 2:
            rounding = ROUNDING**2 * (start + weighted_error(f, 0 * x, 0 * y, xs, ys))
            assert weighted_error(f, s.x, s.y, xs, ys) <= theory.aipfb_bound(f.coupling, T, start) + rounding


@given(saddles())
def test_adaptive_aipfb_keeps_a_proven_bound_that_falls(problem):
    method = sp.AIPFB("adaptive")
    f, xs, ys, x, y = in_normal_form(method, *problem)
    gamma, sigma, _ = theory.apfb_parameters(f.mu_x, f.mu_y, f.norm)
    A, rho = dense(f.A), theory.aipfb_rho(f.coupling)
    s, x_before = method.init(f, x, y), x
    for _ in range(40):
        dx, dy, step = s.x - xs, s.y - ys, s.x - x_before
        lyapunov = (
            (f.mu_x / 4 + 1 / (2 * gamma)) * (dx @ dx)
            + (3 * f.mu_y / 4 + 1 / (2 * sigma)) * (dy @ dy)
            + (step @ step) / (2 * gamma)
            + step @ (A @ dy)
        )
        floor = ROUNDING**2 * (f.mu_x / gamma + 1) * (f.mu_x * xs @ xs + f.mu_y * ys @ ys + f.mu_x * x @ x) * 1e3
        assert lyapunov <= s.bound * (1 + 1e-9) + floor
        before, x_before = s.bound, s.x
        s = method.step(f, s)
        assert s.bound <= (1 - rho) * before * (1 + 1e-9)


@pytest.mark.slow
@given(saddles())
def test_lemma_aipfb_inner(problem):
    """K1 (for y, first) and K2 (for x) reach eps_k, at every step of a run."""
    method = sp.AIPFB("paper")
    f, xs, ys, x, y = in_normal_form(method, *problem)
    gamma, sigma, _ = theory.apfb_parameters(f.mu_x, f.mu_y, f.norm)
    A = dense(f.A)
    C0, s = weighted_error(f, x, y, xs, ys), method.init(f, x, y)
    for k in range(1, 6):
        eps = theory.aipfb_eps(k, f.coupling, C0)
        after = method.step(f, s)
        h = anchored(f.h, 1 / sigma, s.y + sigma * A.T @ s.xt)
        g = anchored(f.g, 1 / gamma, s.x - gamma * A @ after.y)
        for phi, point in ((h, after.y), (g, after.x)):
            exact = minimise(phi, point, steps=LONG)
            scale = abs(phi(exact)) + phi.L * np.sum(exact**2)
            assert phi(point) - phi(exact) <= eps + 1e-12 * scale
        s = after


# -- aGRAAL and rAPD --------------------------------------------------------------------------------------------------


@given(saddles())
def test_the_energy_of_agraal_falls_by_its_theorem(problem):
    f, xs, ys, x, y = in_normal_form(sp.AGRAAL(), *problem)
    floor = (
        ROUNDING**2
        * f.kappa_x
        * f.kappa_y
        * weighted_error(f, np.abs(x) + 1.0, np.abs(y) + 1.0, -np.abs(xs), -np.abs(ys))
    )
    for after, bound in agraal_energies(f, xs, ys, x, y, steps=60):
        assert after <= bound * (1 + 1e-9) + floor


@given(saddles())
def test_rapd_is_below_the_bound_of_its_epoch(problem):
    f, xs, ys, x, y = in_normal_form(sp.Restarted(sp.APD()), *problem)
    floor = ROUNDING**2 * weighted_error(f, np.abs(x) + 1.0, np.abs(y) + 1.0, -np.abs(xs), -np.abs(ys))
    for error, bound, epoch in rapd_errors(f, xs, ys, x, y, steps=60):
        assert error <= bound * (1 + 1e-9) + floor
        assert epoch is None or epoch[1] <= 0.3 * epoch[0]


# -- Catalyst ---------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("inner", [sp.DIPPA(), sp.AIPFB()], ids=["dippa", "aipfb"])
@given(problem=saddles())
def test_catalyst_outer_bound(inner, problem):
    method = sp.Catalyst(inner)
    f, xs, _, x, y = in_normal_form(method, *problem)
    assert f.mu_x <= f.mu_y * (1 + 1e-9)
    assert f.L_x == pytest.approx(f.L_y)
    beta = method.weight(f)
    if beta == 0.0:
        return
    q = theory.catalyst_q(f.mu_x, beta)
    s = method.init(f, x, y)
    for _ in range(300):
        k = s.k
        s = method.step(f, s)
        if s.k > k:  # x_k is the solution of f_k to eps_k
            gap = f.mu_x / 2 * np.sum((s.last - xs) ** 2)
            bound, rounding = theory.catalyst_bound(k, q, s.gap), ROUNDING**2 * (s.gap + f.L * np.sum(xs**2))
            assert gap <= bound + rounding
            if bound < 1e-2 * rounding:
                return  # below this, rounding is larger than the bound of the theorem


def test_anchoring_balances_the_problem():
    view = smaller_mu_first(random_quadratic(4, 3, 100, 5, 2, L_x=7.0, seed=1))
    f = view.problem
    beta = theory.catalyst_beta(f.L, f.mu_x, f.mu_y)
    assert (f.L_x + beta) / (f.mu_x + beta) == pytest.approx(f.kappa_y)


# -- Certificates -----------------------------------------------------------------------------------------------------


@given(saddles(), st.integers(0, 99), st.sampled_from([1e-12, 1e-6, 1.0, 1e4]))
def test_certificate_is_true(problem, seed, spread):
    f, xs, ys = problem
    rng = np.random.default_rng(seed)
    x, y = xs + spread * rng.standard_normal(xs.size), ys + spread * rng.standard_normal(ys.size)
    certificate = f.certificate(x, y)
    assert np.linalg.norm(x - xs) + np.linalg.norm(y - ys) <= certificate.distance
    Fx, Fy = (np.linalg.norm(part) for part in f.field(x, y))
    assert certificate.distance == pytest.approx(theory.distance_bound(f.mu_x, f.mu_y, Fx, Fy), rel=1e-3, abs=1e-6)
    assert squared(x, y, xs, ys) <= theory.start_bound(f.mu_x, f.mu_y, Fx, Fy) * (1 + 1e-6) + 1e-20
    if spread >= 1.0:  # the gap is a difference of large values below that
        assert _duality_gap(f, x, y) <= certificate.gap * (1 + 1e-6) + 1e-9


def _duality_gap(f, x, y):
    """max_y f(x, .) - min_x f(., y) by two long runs of AGD."""
    A = dense(f.A)
    g = sp.Smooth(lambda u: f.g.grad(u) + A @ y, mu=f.g.mu, L=f.g.L)
    h = sp.Smooth(lambda v: f.h.grad(v) - A.T @ x, mu=f.h.mu, L=f.h.L)
    u, v = minimise(g, x, steps=LONG), minimise(h, y, steps=LONG)
    return (f.g(x) + x @ A @ v - f.h(v)) - (f.g(u) + u @ A @ y - f.h(y))


def test_balanced_form_has_the_smallest_condition_number():
    f = random_quadratic(4, 3, 100, 5, 2, L_x=7.0, L_y=0.1, seed=1)
    b = balanced(f).problem
    assert b.L / b.mu == pytest.approx(max(f.kappa_x, f.kappa_y))
    assert b.L_x * b.mu_x == pytest.approx(b.L_y * b.mu_y)
    assert b.norm == pytest.approx(f.norm)
    assert DIPPAState._fields[:2] == ("x", "y")
