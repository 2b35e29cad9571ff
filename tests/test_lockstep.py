"""Special cases in which two methods must make the same steps."""

from itertools import pairwise

import numpy as np
import pytest
from cases import case
from tiers import slow_except

import saddlepoint as sp
from saddlepoint.methods.agd import minimise
from saddlepoint.methods.resolvent import Start, by_apfb, by_cg, by_factor
from saddlepoint.parts.functions.anchored import anchored
from saddlepoint.problems.transforms import (
    balanced,
    equal_smoothness,
    equal_smoothness_keeping_norm,
    rescaled,
    smaller_mu_first,
    swapped,
)


class ExactDIPPA(sp.DIPPA):
    """DIPPA whose inner solves go to the precision of the arithmetic."""

    def init(self, f, x, y):
        return super().init(f, x, y)._replace(level=1e-28)

    def step(self, f, s):
        return super().step(f, s)._replace(level=1e-28)


def trajectory(method, f, x, y, steps):
    """The points of a run in the variables of f."""
    view = method.normal_form(f)
    state = method.init(view.problem, *view.to(x, y))
    points = []
    for _ in range(steps):
        state = method.step(view.problem, state)
        points.append(np.concatenate(view.back(state.x, state.y)))
    return np.array(points)


def start(f):
    return np.full(f.shape[0], 0.3), np.full(f.shape[1], -0.5)


@pytest.mark.slow
@pytest.mark.parametrize("coupling", slow_except(["apfb", "cg", "factor"], "factor"))
@pytest.mark.parametrize("problem", ["balanced", "mu_x < mu_y", "L_x >> L_y", "wide", "A = 0"])
def test_dippa_with_exact_inner_solves_is_dppa(problem, coupling):
    f, *_ = case(problem)
    exact = trajectory(sp.DPPA(), f, *start(f), 15)
    inexact = trajectory(ExactDIPPA("adaptive", coupling), f, *start(f), 15)
    np.testing.assert_allclose(inexact, exact, rtol=1e-9, atol=1e-9 * np.abs(exact).max())


@pytest.mark.parametrize("problem", ["balanced", "mu_x > mu_y", "L_x << L_y", "tall", "A = 0"])
def test_aipfb_tends_to_apfb_as_eps_tends_to_0(problem):
    f, *_ = case(problem)
    exact = trajectory(sp.APFB(), f, *start(f), 15)
    errors = []
    for eps in (1e-4, 1e-8, 1e-12, 1e-16, 1e-20):

        class Fixed(sp.AIPFB):
            def accuracy(self, f, s, eps=eps):
                return None, None, eps * f.mu

        errors.append(np.abs(trajectory(Fixed(), f, *start(f), 15) - exact).max())
    assert errors[-1] <= 1e-7 * np.abs(exact).max()
    assert all(b <= a for a, b in pairwise(errors) if a > 1e-9 * np.abs(exact).max())


@pytest.mark.slow
@pytest.mark.parametrize("inner", [sp.DIPPA(), sp.DIPPA("paper"), sp.AIPFB(), sp.APFB(), sp.DPPA()])
def test_catalyst_with_beta_0_is_the_plain_method(inner):
    g, h = (sp.Quadratic(np.linspace(mu, 1.0, n), np.ones(n)) for mu, n in ((0.01, 6), (0.2, 5)))
    f = sp.Saddle(g, h, np.arange(30.0).reshape(6, 5))  # L_x = L_y and mu_x < mu_y: Catalyst's own coordinates
    steps = 4 if inner == sp.DIPPA("paper") else 12  # the paper's inner solves take long
    plain = trajectory(inner, f, *start(f), steps)
    wrapped = trajectory(sp.Catalyst(inner, beta=0.0), f, *start(f), steps)
    np.testing.assert_array_equal(wrapped, plain)


def test_catalyst_on_a_balanced_problem_is_one_plain_run():
    f, *_ = case("balanced")
    plain, wrapped = (sp.solve(f, method=name, tol=1e-8) for name in ("dippa", "catalyst-dippa"))
    assert wrapped.calls == plain.calls


SYMMETRIC = {
    "dppa": sp.DPPA(),
    "dippa-factor": sp.DIPPA("adaptive", "factor"),
    "dippa-cg": sp.DIPPA("adaptive", "cg"),
    "dippa-certified": sp.DIPPA("certified", "cg"),
    "catalyst-dippa": sp.Catalyst(sp.DIPPA("adaptive", "cg")),
    "catalyst-aipfb": sp.Catalyst(sp.AIPFB()),
}


@pytest.mark.parametrize("method", SYMMETRIC)
@pytest.mark.parametrize("problem", ["mu_x < mu_y", "mu_x > mu_y"])
def test_swapped_problem_gives_the_same_trajectory_with_roles_exchanged(problem, method):
    f, *_ = case(problem)
    n = f.shape[1]
    x, y = start(f)
    forward = trajectory(SYMMETRIC[method], f, x, y, 12)
    view = swapped(f)
    backward = trajectory(SYMMETRIC[method], view.problem, *view.to(x, y), 12)
    np.testing.assert_allclose(
        np.concatenate([backward[:, n:], backward[:, :n]], axis=1),
        forward,
        rtol=1e-7,
        atol=1e-9 * np.abs(forward).max(),
    )


EVERY = {info.name: sp.make_method(info.name) for info in sp.methods()} | {
    "dippa-certified": sp.DIPPA("certified"),
    "dippa-paper": sp.DIPPA("paper"),
    "aipfb-certified": sp.AIPFB("certified"),
}


@pytest.mark.parametrize("method", EVERY)
@pytest.mark.parametrize("problem", slow_except(["balanced", "mu_x < mu_y", "L_x >> L_y"], "L_x >> L_y"))
# Powers of two change no rounding. Other factors do, and Anderson's mixing makes the difference grow with each step.
@pytest.mark.parametrize(
    ("factors", "steps", "rtol"),
    [((8.0, 0.125), 12, 1e-10), ((7.0, 0.2), 8, 1e-6)],
    ids=["powers of two", "other factors"],
)
def test_rescaled_problem_gives_the_same_trajectory_mapped(problem, method, factors, steps, rtol):
    f, *_ = case(problem)
    x, y = start(f)
    plain = trajectory(EVERY[method], f, x, y, steps)
    view = rescaled(f, *factors)
    other = trajectory(EVERY[method], view.problem, *view.to(x, y), steps)
    m = f.shape[0]
    mapped = np.concatenate([factors[0] * other[:, :m], factors[1] * other[:, m:]], axis=1)
    np.testing.assert_allclose(mapped, plain, rtol=rtol, atol=0.01 * rtol * np.abs(plain).max())


# -- three ways to solve the coupling subproblem, against a slow reference --------------------------------------------


@pytest.mark.parametrize("problem", ["balanced", "tall", "wide", "1 x 1", "sparse A", "operator A", "A = 0"])
def test_coupling_solvers_agree_with_a_dense_solve(problem):
    f, *_ = case(problem)
    m, n = f.shape
    rng = np.random.default_rng(0)
    a, (p, q), (x, y) = 0.7, (rng.standard_normal(m), rng.standard_normal(n)), start(f)
    A = np.stack([f.A.mul(e) for e in np.eye(n)], axis=1)
    M = np.block([[np.eye(m), a * A], [-a * A.T, np.eye(n)]])
    exact = np.linalg.solve(M, np.r_[p, q])
    known = Start(x, y, a * A @ y, a * A.T @ x)
    for tol in (1e-2, 1e-6, 1e-12):
        for found in (by_cg(f.A, p, q, a, known, tol), by_apfb(f.A, p, q, a, known, tol, 100_000)):
            u = np.r_[found.x, found.y]
            residual = np.r_[found.rx * np.ones(m), found.ry * np.ones(n)]
            np.testing.assert_allclose(np.r_[p, q] - M @ u, residual, atol=1e-12)
            assert np.linalg.norm(residual) <= tol
            assert np.linalg.norm(u - exact) <= np.linalg.norm(residual) * (1 + 1e-6) + 1e-12  # |M^-1| <= 1
    for found in (by_factor(f.A, p, q, a, known)[:2], f.A.resolvent(p, q, a)):
        np.testing.assert_allclose(np.concatenate(found), exact, atol=1e-12)


def test_fused_apfb_is_apfb_on_the_subproblem():
    f, *_ = case("balanced")
    m, n = f.shape
    rng = np.random.default_rng(0)
    a, (p, q), (x, y) = 1.3, (rng.standard_normal(m), rng.standard_normal(n)), start(f)
    sub = sp.Saddle(sp.Quadratic(1 / a, -p / a), sp.Quadratic(1 / a, -q / a), f.A)
    slow = trajectory(sp.APFB(), sub, x, y, 10)
    for k in range(1, 11):
        fast = by_apfb(f.A, p, q, a, Start(x, y, a * f.A.mul(y), a * f.A.tmul(x)), 0.0, k)
        np.testing.assert_allclose(np.r_[fast.x, fast.y], slow[k - 1], rtol=1e-10, atol=1e-12)


# -- transforms -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "transform", [balanced, equal_smoothness, equal_smoothness_keeping_norm, smaller_mu_first, swapped]
)
@pytest.mark.parametrize("problem", ["L_x >> L_y", "mu_x > mu_y", "logistic, mu_x > mu_y", "huber"])
def test_transforms_keep_the_solution_and_come_back(problem, transform):
    f, xs, ys = case(problem)
    view = transform(f)
    u, v = view.to(xs, ys)
    Fu, Fv = view.problem.field(u, v)
    scale = np.abs(view.problem.g.grad(u)).max() + np.abs(view.problem.h.grad(v)).max()
    assert max(np.abs(Fu).max(), np.abs(Fv).max()) <= 1e-7 * scale + 1e-12
    for back, original in zip(view.back(u, v), (xs, ys), strict=True):
        np.testing.assert_allclose(back, original, rtol=1e-12)
    pairs = sorted([view.problem.kappa_x, view.problem.kappa_y])
    assert pairs == pytest.approx(sorted([f.kappa_x, f.kappa_y]))
    assert view.problem.coupling == pytest.approx(f.coupling)


def test_what_each_rescaling_makes_equal():
    f, *_ = case("L_x >> L_y")
    main, appendix = equal_smoothness(f), equal_smoothness_keeping_norm(f)
    assert main.a == 1.0
    assert main.problem.L_x == pytest.approx(main.problem.L_y)
    assert appendix.problem.L_x == pytest.approx(appendix.problem.L_y)
    assert appendix.problem.norm == pytest.approx(f.norm)
    g = smaller_mu_first(f).problem
    assert g.L_x == pytest.approx(g.L_y)
    assert g.mu_x <= g.mu_y


def test_prox_and_value_pass_through_transforms():
    f, *_ = case("balanced")
    view = rescaled(f, 3.0, 0.5)
    rng = np.random.default_rng(0)
    u, v = rng.standard_normal(f.shape[0]), rng.standard_normal(f.shape[0])
    g, t, c = view.problem.g, 0.3, 0.8
    assert g(u) == pytest.approx(f.g(3.0 * u))
    w = g.prox(v, t)
    np.testing.assert_allclose(w + t * g.grad(w), v, atol=1e-12)
    h = anchored(g, c, u)
    w = h.prox(v, t)
    np.testing.assert_allclose(w + t * h.grad(w), v, atol=1e-12)
    assert h(v) == pytest.approx(g(v) + c / 2 * np.sum((v - u) ** 2))
    assert np.linalg.norm(h.grad(minimise(h, v, steps=500))) < 1e-9
