"""The labelled equations of the paper's proofs, one by one, along runs of the methods; docs/paper.md names them."""

import numpy as np
import pytest
from reference import dense, saddle_point

import saddlepoint as sp
from saddlepoint import theory
from saddlepoint.methods.agd import minimise
from saddlepoint.parts.functions.anchored import anchored
from saddlepoint.problems.generators import random_logistic

SEEDS = range(4)


def square(v):
    return float(np.sum(v * v))


def proximal_problem(seed):
    """A problem whose functions have a cheap prox and are not quadratic, and its solution."""
    rng = np.random.default_rng(seed)
    m, n = rng.integers(2, 8, 2)
    g = sp.LogCosh(t=2.0 * rng.standard_normal(m), l2=0.2)
    h = sp.Huber(t=rng.standard_normal(n), l2=0.1 + seed, delta=0.5)
    A = rng.standard_normal((m, n)) * 10.0 ** rng.integers(-1, 2)
    f = sp.Saddle(g, h, A)
    return (f, *saddle_point(f))


def at_least(left, right):
    """Assert that left >= right, up to rounding."""
    return left >= right - 1e-9 * (1.0 + abs(left) + abs(right))


# -- Lemma `smooth:def` ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", SEEDS)
def test_smooth_1_2_3(seed):
    phi = random_logistic(6, 4, 50.0, 5.0, 1.0, seed=seed).g
    x1, x2 = np.random.default_rng(seed).standard_normal((2, 6)) * 5.0
    p1, p2 = phi.grad(x1), phi.grad(x2)

    def psi(x):
        return phi(x) - p1 @ x

    assert at_least(psi(x2) - square(p2 - p1) / (2 * phi.L), psi(x1))
    assert at_least(phi(x2) - phi(x1) - p1 @ (x2 - x1), square(p2 - p1) / (2 * phi.L))
    assert at_least(phi(x1) - phi(x2) - p2 @ (x1 - x2), square(p2 - p1) / (2 * phi.L))


# -- Theorem `apfb` ----------------------------------------------------------------------------------------------------


def apfb_steps(seed, method=None):
    """Consecutive steps of APFB (or AIPFB): x and y of steps k - 2, k - 1 and k, with the extrapolated x of k - 1."""
    f, xs, ys = proximal_problem(seed)
    method = method or sp.APFB()
    before = s = method.init(f, np.full(xs.size, 0.3), np.full(ys.size, -0.5))
    for _ in range(12):
        after = method.step(f, s)
        yield f, xs, ys, before, s, after
        before, s = s, after


def value(f, x, y):
    return f.g(x) + x @ dense(f.A) @ y - f.h(y)


@pytest.mark.parametrize("seed", SEEDS)
def test_apfb_proof_1_2_3_4_5(seed):
    for f, xs, ys, _, s, after in apfb_steps(seed):
        gamma, sigma, _ = theory.apfb_parameters(f.mu_x, f.mu_y, f.norm)
        A, x, y = dense(f.A), after.x, after.y
        start_y, start_x = square(s.y - ys) / (2 * sigma), square(s.x - xs) / (2 * gamma)
        end_y = square(y - s.y) / (2 * sigma) + (f.mu_y / 2 + 1 / (2 * sigma)) * square(y - ys)
        end_x = square(x - s.x) / (2 * gamma) + (f.mu_x / 2 + 1 / (2 * gamma)) * square(x - xs)
        assert at_least(f.h(ys) + start_y + (y - ys) @ A.T @ s.xt, f.h(y) + end_y)
        assert at_least(f.g(xs) + start_x - (x - xs) @ A @ y, f.g(x) + end_x)
        cross = (x - xs) @ A @ y - (y - ys) @ A.T @ s.xt
        assert at_least(start_x + start_y, end_x + end_y + f.g(x) + f.h(y) - f.g(xs) - f.h(ys) + cross)
        gap = value(f, x, ys) - value(f, xs, y)
        printed = f.g(x) + x @ A @ ys - f.h(ys) - f.g(xs) - xs @ A @ y + f.h(y)
        assert gap == pytest.approx(printed, abs=1e-12)
        assert at_least(start_x + start_y, end_x + end_y + gap + (x - s.xt) @ A @ (y - ys))


@pytest.mark.parametrize("seed", SEEDS)
def test_apfb_proof_6_7_8(seed):
    for k, (f, _, ys, before, s, after) in enumerate(apfb_steps(seed)):
        gamma, sigma, theta = theory.apfb_parameters(f.mu_x, f.mu_y, f.norm)
        A, x, y = dense(f.A), after.x, after.y
        back = s.x - before.x if k else 0.0 * x  # x_{-1} = x_0
        rest = -theta * back @ A @ (y - s.y)
        split = (x - s.x) @ A @ (y - ys) - theta * back @ A @ (s.y - ys) + rest
        assert (x - s.xt) @ A @ (y - ys) == pytest.approx(split, rel=1e-9, abs=1e-9)
        assert at_least(rest, -theta / (2 * gamma) * square(back) - square(y - s.y) / (2 * sigma))
        left = (x - s.x) @ A @ (y - ys)
        assert at_least(left, -square(x - s.x) / (2 * gamma) - square(y - ys) / (2 * sigma))


# -- Theorems `dppa` and `dippa-out` -----------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", SEEDS)
def test_dppa_saddle_prox1_prox2_and_its_contraction(seed):
    method = sp.DPPA()
    raw, *solution = proximal_problem(seed)
    view = method.normal_form(raw)
    f, (xs, ys) = view.problem, view.to(*solution)
    A, alpha, eta = dense(f.A), theory.dppa_alpha(f.L, f.mu), theory.dppa_contraction(f.L / f.mu)
    np.testing.assert_allclose(f.g.grad(xs) + A @ ys, 0.0, atol=1e-8 * (1 + f.norm))
    np.testing.assert_allclose(f.h.grad(ys) - A.T @ xs, 0.0, atol=1e-8 * (1 + f.norm))
    zs = xs - alpha * A @ ys
    s = method.init(f, np.full(xs.size, 0.3), np.full(ys.size, -0.5))
    for _ in range(10):
        xt, yt = f.g.prox(s.z, alpha), f.h.prox(s.w, alpha)
        np.testing.assert_allclose(alpha * f.g.grad(xt) + xt - s.z, 0.0, atol=1e-9 * (1 + abs(s.z).max()))
        np.testing.assert_allclose(alpha * f.h.grad(yt) + yt - s.w, 0.0, atol=1e-9 * (1 + abs(s.w).max()))
        after = method.step(f, s)
        size = 1e-9 * (1 + abs(s.z).max() + abs(s.w).max())
        np.testing.assert_allclose(after.x - (2 * xt - s.z) + alpha * A @ after.y, 0.0, atol=size)
        np.testing.assert_allclose(after.y - (2 * yt - s.w) - alpha * A.T @ after.x, 0.0, atol=size)
        dx, dp = xt - xs, alpha * (f.g.grad(xt) - f.g.grad(xs))
        assert at_least(eta * square(dx + dp), square(dx - dp))  # dppa:proof
        assert at_least(2 * (1 + eta) * (dx @ dp), (1 - eta) * (square(dx) + square(dp)))  # dppa:proof:2
        assert at_least(eta * square(s.z - zs), square(2 * xt - s.z - 2 * xs + zs))  # eq:dppa:3, of the remark
        s = after


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("steps", [1, 3, 10])
def test_dippa_proof_out_and_prox2(seed, steps):
    """The equation holds for a proximal point that is wrong by eps, and for a coupling that is solved exactly."""
    raw, *solution = proximal_problem(seed)
    view = sp.DIPPA().normal_form(raw)
    f, (xs, ys) = view.problem, view.to(*solution)
    A, alpha, root = dense(f.A), theory.dppa_alpha(f.L, f.mu), np.sqrt(f.L / f.mu)
    zs = xs - alpha * A @ ys
    for z in np.random.default_rng(seed).standard_normal((5, xs.size)):
        G = anchored(f.g, 1 / alpha, z)
        xt = minimise(G, np.zeros(xs.size), steps=steps)
        eps = max(G(xt) - G(f.g.prox(z, alpha)), 0.0)
        moved = square(2 * xt - z - 2 * xs + zs)
        assert at_least(4 / f.mu * eps + (root - 1) / (root + 1) * square(z - zs), moved)
        p, q = 2 * xt - z, np.full(ys.size, 0.7)
        x, y = f.A.resolvent(p, q, alpha)
        np.testing.assert_allclose(x + alpha * A @ y, p, atol=1e-9)
        np.testing.assert_allclose(y - alpha * A.T @ x, q, atol=1e-9)


# -- Lemma `aipfb-out` -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("inner", ["adaptive", "certified"])
@pytest.mark.parametrize("seed", SEEDS)
def test_aipfb_proof_1_2_3_4(seed, inner):
    for f, xs, ys, _, s, after in apfb_steps(seed, sp.AIPFB(inner)):
        gamma, sigma, theta = theory.apfb_parameters(f.mu_x, f.mu_y, f.norm)
        A, x, y = dense(f.A), after.x, after.y
        w, z = s.y + sigma * A.T @ s.xt, s.x - gamma * A @ y
        H, G = anchored(f.h, 1 / sigma, w), anchored(f.g, 1 / gamma, z)
        eps = max(H(y) - H(f.h.prox(w, sigma)), G(x) - G(f.g.prox(z, gamma)), 0.0)
        slack_y, slack_x = (2 + 2 / (f.mu_y * sigma)) * eps, (2 + 2 / (f.mu_x * gamma)) * eps
        assert at_least(f.h(ys) + slack_y, f.h(y) + (y - w) @ (y - ys) / sigma + f.mu_y / 4 * square(y - ys))
        start_y, start_x = square(s.y - ys) / (2 * sigma), square(s.x - xs) / (2 * gamma)
        end_y = square(y - s.y) / (2 * sigma) + (f.mu_y / 4 + 1 / (2 * sigma)) * square(y - ys)
        end_x = square(x - s.x) / (2 * gamma) + (f.mu_x / 4 + 1 / (2 * gamma)) * square(x - xs)
        assert at_least(f.h(ys) + start_y + (y - ys) @ A.T @ s.xt + slack_y, f.h(y) + end_y)
        assert at_least(f.g(xs) + start_x - (x - xs) @ A @ y + slack_x, f.g(x) + end_x)
        cross = (x - xs) @ A @ y - (y - ys) @ A.T @ s.xt
        total = end_x + end_y + f.g(x) + f.h(y) - f.g(xs) - f.h(ys) + cross
        assert at_least(start_x + start_y + 4 / (1 - theta) * eps, total)
