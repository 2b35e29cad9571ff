"""Every method solves its cases, and its certificate is correct."""

import numpy as np
import pytest
from cases import BLACK_BOX, CASES, case, gradient_methods, prox_methods, quadratic_methods
from hypothesis import given
from hypothesis import strategies as st
from reference import check_solves, distance, saddle_point
from tiers import slow_except, thinned

import saddlepoint as sp
from saddlepoint.methods.needs import missing
from saddlepoint.methods.registry import method_names
from saddlepoint.problems.generators import random_quadratic
from saddlepoint.problems.oracle import Meter, metered

GRADIENT = gradient_methods()
PROX = prox_methods()
QUADRATIC = quadratic_methods()
QUICK = ("logistic",)  # the case that `make check` runs with every method


@pytest.mark.parametrize(("method", "problem"), thinned(GRADIENT, CASES, QUICK, every=4))
def test_gradient_method_solves(method, problem):
    check_solves(*case(problem), GRADIENT[method])


@pytest.mark.parametrize("problem", slow_except(CASES, *QUICK))
@pytest.mark.parametrize("method", PROX)
def test_prox_method_solves_or_says_what_it_lacks(method, problem):
    f, xs, ys = case(problem)
    made = PROX[method]
    if not missing(made, f):
        check_solves(f, xs, ys, made)
    else:
        with pytest.raises(sp.ProblemError, match=f"{made.label} needs the prox of [gh]"):
            sp.solve(f, method=made)


@pytest.mark.parametrize("problem", slow_except(CASES, *QUICK))
@pytest.mark.parametrize("method", QUADRATIC)
def test_quadratic_method_solves_or_says_what_it_lacks(method, problem):
    f, xs, ys = case(problem)
    if f.g.quadratic and f.h.quadratic:
        check_solves(f, xs, ys, QUADRATIC[method])
    else:
        with pytest.raises(sp.ProblemError, match=f"{method} needs quadratic g and h"):
            sp.solve(f, method=method)


@pytest.mark.parametrize("problem", CASES)
def test_newton_solves_with_few_factorisations(problem):
    f, xs, ys = case(problem)
    if f.g.hessian and f.h.hessian:
        assert check_solves(f, xs, ys, "newton").iterations <= 30
    else:
        with pytest.raises(sp.ProblemError, match="newton needs the Hessians of g and h"):
            sp.solve(f, method="newton")


@pytest.mark.slow
@given(st.integers(0, 10**6), st.floats(-3.0, 1.0), st.floats(-2.0, 2.0))
def test_newton_gets_over_kinks(seed, log_width, log_norm):
    """Gradients that are piecewise linear, steep and flat: plain Newton steps cycle there, and damped ones do not."""
    rng = np.random.default_rng(seed)
    A = 10.0**log_norm * rng.standard_normal((8, 6))
    g = 100.0 * sp.Huber(t=rng.standard_normal(8), l2=1e-4, delta=10.0**log_width) + sp.Quadratic(
        0.0, rng.standard_normal(8)
    )
    h = 30.0 * sp.Huber(t=rng.standard_normal(6), l2=1e-3, delta=10.0**log_width)
    f = sp.Saddle(g, h, A)
    point = sp.solve(f, method="anderson-imex", tol=1e-9, max_calls=3000)
    x0, y0 = 10.0 * rng.standard_normal(8), rng.standard_normal(6)
    result = sp.solve(f, x0, y0, method="newton", tol=1e-8, max_calls=20_000)
    assert result.solved, result
    if point.solved:
        assert distance(result.x, result.y, point.x, point.y) <= 2e-8


def test_newton_stops_where_its_first_step_ends():
    """A quadratic problem takes one step and its certificate, and a step at the solution tries no damping."""
    f = random_quadratic(8, 6, 1e3, 10.0, 30.0, seed=4)
    result = sp.solve(f, method="newton", tol=1e-6)
    assert result.solved
    assert result.iterations == 1
    meter, newton = Meter(), sp.Newton()
    counted = metered(f, meter)
    state = newton.init(counted, result.x, result.y)
    for _ in range(3):  # the first ones may still remove rounding errors
        state = newton.step(counted, state)
    before = meter.counts.calls["At"]
    newton.step(counted, state)
    assert meter.counts.calls["At"] - before <= 3


LACKS = dict.fromkeys(PROX, "prox") | dict.fromkeys(QUADRATIC, "quadratic") | {"newton": "Hessians"}


@pytest.mark.slow
@pytest.mark.parametrize("name", [*method_names(), "auto"])
def test_a_named_method_solves_gradients_of_ones_own_or_says_what_it_lacks(name):
    f = BLACK_BOX()
    if name in LACKS:
        with pytest.raises(sp.ProblemError, match=LACKS[name]):
            sp.solve(f, method=name)
        return
    result = sp.solve(f, method=name, tol=1e-9)
    P, Q, A = np.geomspace(0.1, 1.0, 14), np.geomspace(0.05, 1.0, 10), f.A.A
    z = np.linalg.solve(np.block([[np.diag(P), A], [-A.T, np.diag(Q)]]), np.r_[np.ones(14), -np.ones(10)])
    assert result.solved
    np.testing.assert_allclose(np.r_[result.x, result.y], z, atol=1e-9)


SINGLE = ["balanced", "L_x >> L_y", "logistic, mu_x < mu_y", "sparse A"]
PAIRS = [(m, p) for m in (*GRADIENT, *PROX) for p in SINGLE if m in GRADIENT or not p.startswith("logistic")]


@pytest.mark.slow
@pytest.mark.parametrize(("method", "problem"), slow_except(PAIRS, *((m, "balanced") for m in (*GRADIENT, *PROX))))
def test_float32_stays_float32_and_is_certified_in_float64(method, problem):
    f, xs, ys = case(problem)
    single = _single(f)
    scale = np.linalg.norm(xs) + np.linalg.norm(ys)
    result = sp.solve(single, method=(GRADIENT | PROX)[method], tol=3e-3 * scale)
    assert result.x.dtype == result.y.dtype == np.float32
    assert result.solved, result
    exact = _exact(single)
    assert distance(result.x, result.y, *exact) <= result.certificate.distance
    assert isinstance(result.certificate.distance, float)


def _single(f):
    narrow = {
        sp.Quadratic: lambda q: sp.Quadratic(
            q.P.A.astype(np.float32) if hasattr(q.P, "A") else q.P.astype(np.float32), q.b.astype(np.float32)
        ),
        sp.Logistic: lambda q: sp.Logistic(q.D.A.astype(np.float32), q.labels.astype(np.float32), q.l2),
        sp.LogCosh: lambda q: sp.LogCosh(q.D.A.astype(np.float32), q.t.astype(np.float32), q.l2),
    }
    return sp.Saddle(narrow[type(f.g)](f.g), narrow[type(f.h)](f.h), f.A.A.astype(np.float32))


def _exact(f):
    wide = sp.Saddle(f.g, f.h, f.A.A.astype(np.float64))
    return saddle_point(wide)


def _declares(method):
    f, *_ = case("balanced")
    return method.cost(method.normal_form(f).problem) is not None


@pytest.mark.parametrize("problem", ["balanced", "L_x << L_y", "mu_x > mu_y", "wide"])
@pytest.mark.parametrize("method", [name for name, method in (GRADIENT | PROX).items() if _declares(method)])
def test_declared_cost_is_the_measured_cost(method, problem):
    made = (GRADIENT | PROX)[method]
    meter = Meter()
    view = made.normal_form(metered(case(problem)[0], meter))
    cost = made.cost(view.problem)
    m, n = view.problem.shape
    state = made.init(view.problem, np.ones(m), np.ones(n))
    state = made.step(view.problem, state)  # the first step may factorise
    for _ in range(3):
        before = dict(meter.calls)
        state = made.step(view.problem, state)
        spent = {name: meter.calls[name] - before[name] for name in meter.calls}
        assert {name: count for name, count in spent.items() if count or name in cost} == cost


def test_quadratic_answer_equals_the_dense_solve():
    f, xs, ys = case("mu_x < mu_y")
    A, P, Q = f.A.A, f.g.P.A, f.h.P.A
    z = np.linalg.solve(np.block([[P, A], [-A.T, Q]]), -np.r_[f.g.b, f.h.b])
    np.testing.assert_allclose(np.r_[xs, ys], z, rtol=1e-9, atol=1e-12)  # the reference itself
    result = sp.solve(f, tol=1e-10)
    np.testing.assert_allclose(np.r_[result.x, result.y], z, atol=1e-10)


def test_catalyst_takes_any_method():
    @sp.register
    class Half(sp.Method):
        """A method of the user's own: plain gradient steps."""

        def init(self, f, x, y):
            return sp.State(x, y)

        def step(self, f, s):
            Fx, Fy = f.field(s.x, s.y)
            t = f.mu / (f.L + f.norm) ** 2
            return sp.State(s.x - t * Fx, s.y - t * Fy)

    try:
        f, xs, ys = case("kappa = 1")
        check_solves(f, xs, ys, "half", tol=1e-6)
        f = sp.Saddle(sp.Quadratic(np.linspace(0.5, 1, 5), np.ones(5)), sp.Quadratic(1.0, np.ones(3)), np.ones((5, 3)))
        assert sp.solve(f, method=sp.Catalyst(Half()), tol=1e-6).solved
    finally:
        from saddlepoint.methods import registry

        del registry._REGISTER["half"]


def test_options_are_checked_in_one_place():
    with pytest.raises(sp.ProblemError, match="inner of dippa is 'sloppy'; expected one of paper, certified, adaptive"):
        sp.DIPPA(inner="sloppy")
    with pytest.raises(sp.ProblemError, match="beta of catalyst is -1; expected a number from 0"):
        sp.Catalyst(sp.DIPPA(), beta=-1)
    with pytest.raises(sp.ProblemError, match=r"got the options speed; it knows inner, coupling"):
        sp.make_method("dippa", speed=3)
    with pytest.raises(sp.ProblemError, match="agd minimises one function"):
        sp.make_method("agd")
    with pytest.raises(sp.ProblemError, match="unknown method 'dipa'; the known ones are auto, adapdm"):
        sp.make_method("dipa")


def test_the_table_of_methods_prints():
    lines = repr(sp.methods()).splitlines()
    assert lines[0].split()[:2] == ["method", "oracle"]
    assert {"dippa", "catalyst-dippa", "aipfb", "catalyst-aipfb", "apfb", "dppa"} <= {line.split()[0] for line in lines}
    assert all(info.complexity and info.reference for info in sp.methods())


ONE_PASS = {"condat-vu": 1, "lpd-gs": 1, "lpd": 1, "ogda": 1, "extragradient": 2}


@pytest.mark.parametrize("method", ONE_PASS)
def test_an_iteration_is_one_pass_where_products_are_fused(method):
    f, *_ = case("logistic")
    A = sp.as_coupling(f.A.A.copy())
    A.fused = True
    result = sp.solve(sp.Saddle(f.g, f.h, A), method=method, tol=1e-6)
    assert result.solved
    started = result.passes - ONE_PASS[method] * result.iterations
    assert 0 <= started <= 1  # a product at the start
    assert result.calls["A"] >= result.passes - 1


@pytest.mark.parametrize("method", [sp.DIPPA(coupling="cg"), sp.DIPPA(coupling="apfb"), sp.LPDSlide(coupling="cg")])
def test_inner_solves_make_one_pass_for_two_products(method):
    f, *_ = case("logistic")
    A = sp.as_coupling(f.A.A.copy())
    A.fused = True
    result = sp.solve(sp.Saddle(f.g, f.h, A), method=method, tol=1e-6)
    assert result.solved
    # Each step checks or starts its inner solve with a product or two more.
    assert result.passes <= max(result.calls["A"], result.calls["At"]) + 2 * result.iterations + 2
