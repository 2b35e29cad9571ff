"""Every method is within its own bound at every step: quadratic or not, balanced or not, well or badly scaled."""

import numpy as np
import pytest
from cases import gradient_methods, prox_methods, quadratic_methods
from hypothesis import given
from random_problems import ROUNDING, in_normal_form, saddles, weighted_error
from tiers import slow_except

import saddlepoint as sp
from saddlepoint import theory
from saddlepoint.methods.needs import missing
from saddlepoint.problems.generators import chain, chain_solution, random_quadratic

METHODS = gradient_methods() | prox_methods() | quadratic_methods()
METHODS["separated-exact"] = sp.Separated(accuracy=1e-12)
PROBE = random_quadratic(3, 2, 4.0, 4.0, 1.0)
BOUNDED = [name for name, m in METHODS.items() if m.bound(m.normal_form(PROBE).problem, 1) is not None]


def test_the_methods_with_a_theorem_say_so():
    named = {"extragradient", "ogda", "condat-vu", "lpd", "lpd-gs", "lpd-slide", "apdg", "jst", "ag-eg", "ag-og"}
    assert named | {"sliding", "imex"} <= set(BOUNDED)


@pytest.mark.parametrize("name", slow_except(BOUNDED, "lpd-gs", "condat-vu"))
@given(problem=saddles())
def test_the_bound_holds_at_every_step(name, problem):
    method = METHODS[name]
    f, xs, ys, x, y = in_normal_form(method, *problem)
    if missing(method, f):
        return
    start = weighted_error(f, x, y, xs, ys)
    state = method.init(f, x, y)
    for k in range(1, 20 if name == "separated-exact" else 200):  # exact inner solves take long
        state = method.step(f, state)
        bound = method.bound(f, k) * start
        assert weighted_error(f, state.x, state.y, xs, ys) <= bound * (1 + 1e-9) + ROUNDING**2 * start


@pytest.mark.parametrize(("kx", "ky", "c"), [(1000, 1000, 1), (4, 4, 60), (400, 400, 20), (1e4, 10, 42.4)])
def test_lpd_gs_needs_little_more_than_twice_the_rounds_that_the_chain_forces(kx, ky, c):
    n = int(12 * theory.chain_N(kx, ky, c))
    f, (xs, ys) = chain(n, kx, ky, c), chain_solution(n, kx, ky, c)
    target = 1e-5 * np.hypot(np.linalg.norm(xs), np.linalg.norm(ys))
    state, k = sp.LPDGS().init(f, np.zeros(n), np.zeros(n)), 0
    while np.hypot(np.linalg.norm(state.x - xs), np.linalg.norm(state.y - ys)) > target:
        state, k = sp.LPDGS().step(f, state), k + 1
    assert k <= 2.1 * theory.tail_rounds(xs, ys, target)


@given(saddles())
def test_lpd_gs_is_certified_within_its_bound_on_calls(problem):
    f, xs, ys = problem
    tol = 1e-5 * (1.0 + np.linalg.norm(xs) + np.linalg.norm(ys))
    start = f.certificate(np.zeros(f.shape[0]), np.zeros(f.shape[1]))
    calls = theory.lpd_gs_calls(*f.numbers, start.Fx, start.Fy, f.mu_x, f.mu_y, tol)
    result = sp.solve(f, method="lpd-gs", tol=tol)
    assert result.solved
    assert max(result.calls.values()) <= calls + 16  # the spacing of certificates


def test_the_step_of_extragradient_is_the_largest_that_its_proof_allows():
    for lipschitz in (1.0, 3.0, 1e4):
        eta = theory.extragradient_eta(lipschitz)
        assert eta**2 * lipschitz**2 + 2 * eta == pytest.approx(1.0)


def test_the_lifted_step_is_the_root_of_its_equation():
    for N in (0.5, 3.0, 1e4):
        r = theory.lifted_rho(N)
        assert r**2 * N**2 == pytest.approx(1 + r)


def test_condat_vu_keeps_to_its_condition():
    for kx, ky, c in ((1, 1, 5), (10, 3, 0.1), (1, 100, 7), (1, 1, 0)):
        rx, ry, theta_ = theory.condat_vu_steps(kx, ky, c)
        assert (1 / rx - (kx - 1)) * (1 / ry - (ky - 1)) >= theta_ * c**2 * (1 - 1e-12)
