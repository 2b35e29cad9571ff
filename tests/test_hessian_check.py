"""Second derivatives of one's own functions that are wrong are refuted by gradients, or said to be doubtful."""

import math

import numpy as np
import pytest
from differentiation import tensors
from draws import SEED

import saddlepoint as sp
from saddlepoint.problems.hessian_check import is_examined

SHIFT = np.array([0.4, -1.1, 0.2, 0.9])


def gradient(x):
    return x + np.tanh(x) + SHIFT


def change(x):
    return 1.0 - np.tanh(x) ** 2


def problem(A=None, **second):
    A = 0.5 * np.random.default_rng(0).standard_normal((4, 3)) if A is None else A
    g = sp.Smooth(gradient, mu=1.0, L=2.0, **second)
    return sp.Saddle(g, sp.Quadratic(1.0, np.ones(3)), A)


RIGHT = {
    "hvp": {"hvp": lambda x, u: u + change(x) * u},
    "hessian": {"hessian": lambda x: np.diag(1.0 + change(x))},
}
WRONG = {
    "a factor": {"hvp": lambda x, u: u + 0.5 * change(x) * u},
    "a small error": {"hessian": lambda x: np.diag(1.0 + 0.999 * change(x))},
    "another point": {"hvp": lambda x, u: u + change(0.0 * x) * u},
    "not linear": {"hvp": lambda x, u: u + change(x) * u + 0.1 * u**3},
    "not symmetric": {"hvp": lambda x, u: u + change(x) * u + 0.3 * (np.roll(u, 1) - np.roll(u, -1))},
    "not quadratic": {"quadratic": True},
}


@pytest.mark.parametrize("name", RIGHT)
def test_second_derivatives_that_are_right_are_taken(name):
    f = problem(**RIGHT[name], hessian_lipschitz=0.77)
    u = sp.solve(f, tol=1e-8).vjp(np.ones(4))
    assert 0.0 < u.bound < 1e-6
    assert any("second derivatives of g are those of its gradient" in sentence for sentence in u.assumes)


@pytest.mark.parametrize("name", WRONG)
def test_second_derivatives_that_are_wrong_are_refuted(name):
    f = problem(**({"hessian_lipschitz": 0.77} if name != "not quadratic" else {}), **WRONG[name])
    result = sp.solve(f, tol=1e-8)
    with pytest.raises(sp.AssumptionError, match=r"of g|g was said to be quadratic") as error:
        result.vjp(np.arange(4.0))
    assert (error.value.function, error.value.constant) == ("g", "hessian")


@pytest.mark.parametrize("M", [0.0, 1e-9, 0.1])
def test_a_bound_on_the_changes_of_the_hessian_that_is_too_small_is_refuted(M):
    result = sp.solve(problem(**RIGHT["hvp"], hessian_lipschitz=M), tol=1e-8)
    with pytest.raises(sp.AssumptionError, match="give a larger hessian_lipschitz"):
        result.vjp(np.ones(4))


@pytest.mark.parametrize("name", ["a factor", "another point"])
def test_where_nothing_is_known_of_the_changes_doubt_is_said(name):
    u = sp.solve(problem(**WRONG[name]), tol=1e-8).vjp(np.ones(4))
    assert u.bound == math.inf
    assert "Differences of gradients disagree" in u.why
    u = sp.solve(problem(**RIGHT["hvp"]), tol=1e-8).vjp(np.ones(4))
    assert u.bound == math.inf
    assert "disagree" not in u.why


def test_bounds_and_products_that_are_no_numbers_are_refused():
    for found, words in ((-1.0, "not negative"), ("a", "not negative"), (np.ones(2), "not negative")):
        f = problem(**RIGHT["hvp"], hessian_lipschitz=lambda x, u, reach, found=found: found)
        with pytest.raises(sp.ProblemError, match=words):
            sp.solve(f, tol=1e-8).vjp(np.ones(4))
    for hessian in (lambda x: np.diag(np.nan * x), lambda x: np.diag(1.0 + change(x)).astype(complex)):
        with pytest.raises(sp.ProblemError, match="product of the Hessian of g with a vector has entries"):
            sp.solve(problem(hessian=hessian, hessian_lipschitz=0.77), tol=1e-8).vjp(np.ones(4))


def test_errors_of_the_run_on_the_linear_system_say_so():
    result = sp.solve(problem(**RIGHT["hvp"], hessian_lipschitz=0.77), tol=1e-8)
    with pytest.raises(sp.ProblemError, match=r"in the linear system of the derivative.*unknown method 'none'"):
        result.vjp(np.ones(4), method="none")


def test_right_second_derivatives_are_never_refuted():
    """Functions of one's own with kinks, noise, low precision, extreme scales and domains."""
    for seed in range(SEED, SEED + 40):
        rng = np.random.default_rng(seed)
        n, scale, noise = int(rng.integers(1, 6)), 10.0 ** rng.uniform(-4, 4), rng.choice([0.0, 1e-9])
        dtype = rng.choice([np.float64, np.float32])
        P = (scale * np.diag(rng.uniform(0.5, 2.0, n))).astype(dtype)
        b, t = (scale * rng.standard_normal(n)).astype(dtype), rng.standard_normal(n)

        def grad(x, P=P, b=b, t=t, scale=scale, noise=noise):
            return P @ x + b + scale * np.clip(x - t, -0.5, 0.5) + scale * noise * np.sin(1e9 * x)

        def product(x, u, P=P, t=t, scale=scale):
            return P @ u + scale * (np.abs(x - t) < 0.5) * u

        g = sp.Smooth(grad, mu=0.49 * scale, L=3.1 * scale, hvp=product, hessian_lipschitz=kinks(t, scale))
        g = g if rng.random() < 0.5 else g + sp.Box(-1.0, 1.0)
        f = sp.Saddle(g, sp.Quadratic(scale), (scale * rng.standard_normal((n, 2))).astype(dtype))
        result = sp.solve(f, rtol=1e-3 if noise or dtype is np.float32 else 1e-8, max_calls=5000)
        if result.certificate.distance < math.inf:
            assert "Differences of gradients disagree" not in result.vjp(rng.standard_normal(n).astype(dtype)).why


def kinks(t, scale):
    """A bound on the change of the Hessian of ``test_right_second_derivatives_are_never_refuted``."""

    def bound(x, u, reach):
        return scale * float(np.linalg.norm(u[np.abs(np.abs(x - t) - 0.5) <= reach + 1e-9]))

    return bound


def test_ready_functions_are_not_examined():
    rng = np.random.default_rng(0)
    D, t = rng.standard_normal((5, 3)), rng.standard_normal(5)
    assert not is_examined(sp.LogCosh(D, t, 0.1) + sp.L1(0.1))
    assert not is_examined(sp.Quadratic(2.0, mu=1.0) + sp.Box(0.0, 1.0))  # its mu is a claim, its Hessian is not
    assert is_examined(sp.Quadratic(2.0) + sp.Smooth(lambda x: x, mu=1.0, L=1.0))


def test_a_part_of_a_gradient_that_is_not_differentiated_is_seen(torch):
    A, b = tensors(torch, (0.5 * np.eye(4, 3), SHIFT))

    def solution(known):
        g = sp.Smooth(lambda x: x + torch.tanh(x).detach() + b.detach(), mu=1.0, L=2.0, hessian_lipschitz=known)
        return sp.solve(sp.Saddle(g, sp.Quadratic(1.0, torch.ones(3)), A.detach()), tol=1e-8)

    with pytest.raises(sp.AssumptionError, match="by differentiation"):
        solution(0.77).vjp(torch.ones(4))
    assert "parts of the gradient that are not differentiated" in solution(None).vjp(torch.ones(4)).why
