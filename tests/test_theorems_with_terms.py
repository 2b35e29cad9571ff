"""Every theorem of a method that takes simple terms, checked at every step on problems with such terms."""

import math

import numpy as np
import pytest
from energies import agraal_energies, rapd_errors
from known_problems import TERMS, in_normal_form, known_point, known_problem, squared

import saddlepoint as sp
from saddlepoint import theory
from saddlepoint.methods.agd import minimise

KINDS = [("l1", "box"), ("simplex", "nonnegative")]


@pytest.mark.parametrize(
    "method",
    [sp.CondatVu(), sp.LPD(), sp.LPDGS(), sp.JST(), sp.OGDA(), sp.Extragradient(), sp.Sliding()],
    ids=lambda method: method.label,
)
@pytest.mark.parametrize(("kind_x", "kind_y"), KINDS)
def test_the_theorems_hold_at_every_step(method, kind_x, kind_y):
    """The bounds of the smooth theory hold with simple terms as they stand."""
    rng = np.random.default_rng(7)
    f, xs, ys = known_problem(kind_x, kind_y, rng)
    view = method.normal_form(f)
    problem = view.problem
    x, y = f.project(rng.standard_normal(8), rng.standard_normal(6))
    us, vs = view.to(xs, ys)

    def squared(s):
        return problem.mu_x * np.sum((s.x - us) ** 2) + problem.mu_y * np.sum((s.y - vs) ** 2)

    state = method.init(problem, *view.to(x, y))
    start = squared(state)
    for k in range(1, 200):
        state = method.step(problem, state)
        assert squared(state) <= method.bound(problem, k) * start * (1.0 + 1e-9) + 1e-24


@pytest.mark.parametrize("share", [1.0, 1e-6])
@pytest.mark.parametrize(("kind_x", "kind_y"), KINDS)
def test_the_theorem_of_lpd_slide_holds_at_every_step(kind_x, kind_y, share):
    """Its inner problems are solved to the accuracy of the theorem, or far better; both have a bound that falls."""
    f, xs, ys, x, y = in_normal_form(sp.LPDSlide(), kind_x, kind_y)
    method = sp.LPDSlide(accuracy=share * theory.lpd_slide_accuracy(f.kappa_x, f.kappa_y))
    state = method.init(f, x, y)
    start = squared(x - xs, y - ys)
    for k in range(1, 60):
        state = method.step(f, state)
        assert squared(state.x - xs, state.y - ys) <= method.bound(f, k) * start + 1e-24
    assert method.bound(f, 60) < 1e-3 * method.bound(f, 1)
    exact = theory.lpd_slide_bound(f.kappa_x, f.kappa_y, 60)
    assert method.bound(f, 60) == pytest.approx(exact, rel=1e-4) if share < 1.0 else method.bound(f, 60) > exact
    assert sp.LPDSlide().bound(f, 1) is None  # nothing is promised for the default


def reflected(f, x, y):
    """The points z* and w* of DPPA and DIPPA, for the saddle point (x, y), and their step alpha."""
    alpha = theory.dppa_alpha(f.L, f.mu)
    return x + alpha * f.g.grad(x), y + alpha * f.h.grad(y), alpha


@pytest.mark.parametrize(("kind_x", "kind_y"), KINDS)
def test_dppa_contracts_by_its_factor(kind_x, kind_y):
    method = sp.DPPA()
    f, xs, ys, x, y = in_normal_form(method, kind_x, kind_y)
    zs, ws, _ = reflected(f, xs, ys)
    state = method.init(f, x, y)
    for _ in range(60):
        before, state = squared(state.z - zs, state.w - ws), method.step(f, state)
        after = squared(state.z - zs, state.w - ws)
        assert after <= theory.dppa_contraction(f.L / f.mu) * before * (1.0 + 1e-6) + 1e-24


@pytest.mark.parametrize(("kind_x", "kind_y"), KINDS)
@pytest.mark.parametrize("inner", ["paper", "certified"])
def test_theorem_dippa_out_holds_at_every_step(inner, kind_x, kind_y):
    method = sp.DIPPA(inner)
    f, xs, ys, x, y = in_normal_form(method, kind_x, kind_y)
    kappa, nu = f.L / f.mu, f.norm * theory.dppa_alpha(f.L, f.mu)
    state = method.init(f, x, y)
    start = squared(x - xs, y - ys)
    if inner == "certified":
        assert start <= state.C0
        start = state.C0
    for K in range(1, 4 if inner == "paper" else 40):
        state = method.step(f, state)
        assert squared(state.x - xs, state.y - ys) <= theory.dippa_bound(kappa, nu, K, start, terms=True) + 1e-24


@pytest.mark.parametrize(("kind_x", "kind_y"), KINDS)
def test_adaptive_dippa_keeps_a_proven_bound_that_falls(kind_x, kind_y):
    method = sp.DIPPA()
    f, xs, ys, x, y = in_normal_form(method, kind_x, kind_y)
    zs, ws, _ = reflected(f, xs, ys)
    state = method.init(f, x, y)
    for _ in range(40):
        assert squared(state.z - zs, state.w - ws) <= state.bound + 1e-24
        before, state = state.bound, method.step(f, state)
        assert state.bound <= (1.0 - theory.dippa_rho(f.L / f.mu)) * before * (1.0 + 1e-9)


def test_the_paper_s_rule_reaches_its_accuracy_in_the_coupling_step():
    """After K2 steps of APFB with prox the residual is what Theorem `dippa-out` needs."""
    method = sp.DIPPA("paper")
    f, xs, ys, x, y = in_normal_form(method, "l1", "box")
    alpha, kappa = theory.dppa_alpha(f.L, f.mu), f.L / f.mu
    state = method.init(f, x, y)
    for k in range(1, 4):
        p, q = (
            2.0 * f.g.without_term.prox(state.z, alpha) - state.z,
            2.0 * f.h.without_term.prox(state.w, alpha) - state.w,
        )
        _, _, rx, ry, _ = method.couple(f, p, q, state)
        level = theory.dippa_level(k, kappa, squared(x - xs, y - ys))
        assert squared(rx, ry) <= theory.dippa_residual(level, kappa)
        state = method.step(f, state)


@pytest.mark.parametrize(("kind_x", "kind_y"), KINDS)
@pytest.mark.parametrize("inner", ["paper", "certified", "adaptive"])
def test_lemma_aipfb_out_holds_at_every_step(inner, kind_x, kind_y):
    method = sp.AIPFB(inner)
    f, xs, ys, x, y = in_normal_form(method, kind_x, kind_y)
    gamma, sigma, _ = theory.apfb_parameters(f.mu_x, f.mu_y, f.norm)
    A = np.array(f.A.matrix())
    state = method.init(f, x, y)
    start = f.mu_x * np.sum((x - xs) ** 2) + f.mu_y * np.sum((y - ys) ** 2)
    if inner != "paper":
        assert start <= state.C0
        start = state.C0
    for T in range(1, 8 if inner == "paper" else 60):
        last, state = state.x, method.step(f, state)
        dx, dy, step = state.x - xs, state.y - ys, state.x - last
        error = f.mu_x * np.sum(dx**2) + f.mu_y * np.sum(dy**2)
        if inner != "adaptive" and T >= 2:
            assert error <= theory.aipfb_bound(f.coupling, T, start) + 1e-24
        if inner == "adaptive":
            lyapunov = (f.mu_x / 4 + 0.5 / gamma) * np.sum(dx**2) + (0.75 * f.mu_y + 0.5 / sigma) * np.sum(dy**2)
            assert lyapunov + np.sum(step**2) / (2 * gamma) + step @ (A @ dy) <= state.bound + 1e-24


@pytest.mark.parametrize(("kind_x", "kind_y"), [("l1", "box"), ("l1 and box", "nonnegative")])
def test_theorem_apfb_holds_at_every_step(kind_x, kind_y):
    method = sp.APFB()
    f, xs, ys, x, y = in_normal_form(method, kind_x, kind_y)
    state = method.init(f, x, y)
    start = f.mu_x * np.sum((x - xs) ** 2) + f.mu_y * np.sum((y - ys) ** 2)
    for T in range(1, 300):
        state = method.step(f, state)
        error = f.mu_x * np.sum((state.x - xs) ** 2) + f.mu_y * np.sum((state.y - ys) ** 2)
        assert error <= theory.apfb_bound(f.coupling, T, start) + 1e-22


@pytest.mark.parametrize(("kind_x", "kind_y"), KINDS)
def test_the_energy_of_agraal_falls_by_its_theorem_at_every_step(kind_x, kind_y):
    energies = list(agraal_energies(*in_normal_form(sp.AGRAAL(), kind_x, kind_y), steps=300))
    assert all(after <= bound * (1.0 + 1e-9) + 1e-22 for after, bound in energies)
    assert energies[-1][0] <= 1e-6 * energies[0][0]


@pytest.mark.parametrize(("kind_x", "kind_y"), KINDS)
def test_rapd_is_below_the_bound_of_its_epoch_at_every_step(kind_x, kind_y):
    method = sp.Restarted(sp.APD())
    errors = list(rapd_errors(*in_normal_form(method, kind_x, kind_y), steps=400))
    assert all(error <= bound * (1.0 + 1e-9) + 1e-24 for error, bound, _ in errors)
    epochs = [epoch for _, _, epoch in errors if epoch is not None]
    assert len(epochs) >= 10
    assert all(after <= method.fall * before for before, after in epochs)


@pytest.mark.parametrize(("kind_x", "kind_y"), KINDS)
@pytest.mark.parametrize("inner", [sp.DIPPA(), sp.AIPFB()], ids=["dippa", "aipfb"])
def test_catalyst_is_below_its_outer_bound_at_every_outer_step(inner, kind_x, kind_y):
    method = sp.Catalyst(inner)
    f, xs, _, x, y = in_normal_form(method, kind_x, kind_y)
    q = theory.catalyst_q(f.mu_x, method.weight(f))
    assert q < 1.0
    state, outer = method.init(f, x, y), 0
    for _ in range(200):
        k, state = state.k, method.step(f, state)
        if state.k > k:
            outer += 1
            bound = theory.catalyst_bound(k, q, state.gap)
            assert f.mu_x / 2 * np.sum((state.last - xs) ** 2) <= bound * (1.0 + 1e-9) + 1e-24
    assert outer >= 10


@pytest.mark.parametrize("kind", TERMS)
def test_agd_with_a_term_proves_its_gap(kind):
    rng = np.random.default_rng(11)
    x, s = known_point(kind, 8, rng)
    P = rng.integers(1, 60, 8).astype(float)
    phi = sp.Quadratic(P, -(P * x + s)) + TERMS[kind]()
    for gap in (1e-2, 1e-8):
        u = minimise(phi, 3.0 * rng.standard_normal(8), gap=gap)
        d = u - x
        assert 0.5 * d @ (P * d) + phi.simple.bregman(u, x, s) <= gap * (1.0 + 1e-6)
    with_steps = minimise(phi, x + 1.0, steps=5) - x
    value = 0.5 * with_steps @ (P * with_steps) + phi.simple.bregman(with_steps + x, x, s)
    assert value <= theory.agd_bound(phi.L, phi.mu, 5, 8.0)


def test_halpern_keeps_its_bound_within_an_epoch():
    """The residual of PDHG's step in its own norm is at most |z_0 - z*|/(k + 1), for linear g and h."""
    A = np.random.default_rng(4).standard_normal((7, 5))
    f = sp.Saddle(sp.Simplex(), sp.Simplex(), A)
    best = sp.solve(f, gap=1e-12)
    method = sp.Halpern(sp.PDHG(weight=1.0), enough=0.0, some=0.0, longest=1.0, weighting="fixed")
    tx, ty = theory.pdhg_steps(0.0, 0.0, f.norm, 1.0)

    def length(dx, dy):
        return math.sqrt(dx @ dx / tx - 2.0 * (dx @ (A @ dy)) + dy @ dy / ty)

    state = method.init(f, np.eye(7)[0], np.eye(5)[0])
    start = length(state.x - best.x, state.y - best.y)
    for k in range(300):
        z, state = state.inner, method.step(f, state)
        assert length(state.x - z.x, state.y - z.y) <= theory.halpern_bound(k) * start * (1.0 + 1e-6)
    assert state.k == 300
