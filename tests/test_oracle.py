"""The meter counts calls and keeps to budgets; wrong constants are detected from the gradients of a run."""

import math

import numpy as np
import pytest
from cases import CASES, case, gradient_methods
from reference import distance
from tiers import slow_except

import saddlepoint as sp
from saddlepoint.problems.generators import random_logistic, random_quadratic
from saddlepoint.problems.oracle import Meter, OutOfCalls, call_limits, metered

METHODS = gradient_methods()


def counting(f):
    """The problem with its own, independent counters in the raw functions."""
    counts = dict.fromkeys(("grad_g", "grad_h", "A", "At"), 0)

    def count(name, function):
        def called(v):
            counts[name] += 1
            return function(v)

        return called

    class A:
        shape = f.shape

        def __init__(self, mul="A"):
            self.mul = mul

        def __matmul__(self, v):
            counts[self.mul] += 1
            return f.A.mul(v) if self.mul == "A" else f.A.tmul(v)

        @property
        def T(self):
            other = A("At")
            other.shape = f.shape[::-1]
            return other

    g = sp.Smooth(count("grad_g", f.g.grad), mu=f.mu_x, L=f.L_x)
    h = sp.Smooth(count("grad_h", f.h.grad), mu=f.mu_y, L=f.L_y)
    return sp.Saddle(g, h, A()), counts


@pytest.mark.parametrize("method", slow_except(METHODS, "dippa", "aipfb", "catalyst-dippa", "lpd-gs", "anderson-dippa"))
def test_every_call_is_counted(method):
    """What the raw functions see is what the result declares: method + certificates + set-up."""
    f, counts = counting(case("logistic, mu_x < mu_y")[0])
    result = sp.solve(f, method=METHODS[method], tol=1e-5)
    for name, seen in counts.items():
        assert seen == result.calls[name] + result.monitor_calls + result.setup_calls[name], name


def test_a_second_run_does_not_compute_the_norm_again():
    f, counts = counting(case("balanced")[0])
    first = sp.solve(f, method="dippa", tol=1e-5)
    before = dict(counts)
    second = sp.solve(f, method="dippa", tol=1e-5)
    assert second.calls == first.calls
    known = f.A.norm_estimate.products + f.A.probes
    assert counts["A"] - before["A"] == second.calls["A"] + second.monitor_calls + second.setup_calls["A"] - known


def test_passes_count_reads_of_A():
    f, *_ = case("balanced")
    meter = Meter()
    seen = metered(f, meter)
    x, y = np.ones(f.shape[0]), np.ones(f.shape[1])
    seen.A.mul(y), seen.A.tmul(x), seen.A.both(x, y), seen.A.through(y)
    assert meter.counts.passes == 6  # nothing is fused yet
    assert (meter.calls["A"], meter.calls["At"]) == (3, 3)
    seen.A.A.fused = seen.A.fused = True
    try:
        seen.A.both(x, y), seen.A.through(y)
    finally:
        seen.A.A.fused = False
    assert meter.counts.passes == 8
    assert meter.calls["A"] == 5


def test_the_transpose_counts_the_other_way_round():
    f, *_ = case("tall")
    meter = Meter()
    seen = metered(f, meter)
    seen.A.T.mul(np.ones(f.shape[0]))
    assert (meter.calls["A"], meter.calls["At"]) == (0, 1)
    seen.A.normal_solver(1.0)
    n = min(f.shape)
    assert (meter.calls["A"], meter.calls["At"]) == (n, n + 1)
    seen.A.normal_solver(1.0)
    assert (meter.calls["A"], meter.calls["At"]) == (n, n + 1)  # the factor is kept


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("budget", slow_except([0, 1, 7, 100], 7))
def test_max_calls_holds_inside_nested_loops(method, budget):
    f, _ = counting(case("logistic, mu_x > mu_y")[0])
    result = sp.solve(f, method=METHODS[method], tol=1e-15, max_calls=budget)
    assert max(result.calls.values()) <= budget
    assert not result.solved
    assert result.status == "out of calls"
    assert f"the {budget} calls of" in result.message
    assert math.isfinite(result.certificate.distance)


def test_max_calls_may_name_one_oracle():
    f, *_ = case("balanced")
    result = sp.solve(f, method="dippa", tol=1e-12, max_calls={"grad_h": 50})
    assert result.calls["grad_h"] == 50
    assert "50 calls of grad_h" in result.message


@pytest.mark.parametrize("bad", [-1, 2.5, True, "many", {"grad_q": 3}, {"A": -1}])
def test_bad_budgets_are_refused(bad):
    with pytest.raises(sp.ProblemError, match="max_calls"):
        sp.solve(case("balanced")[0], max_calls=bad)


@pytest.mark.parametrize("method", ["dippa", "aipfb", "catalyst-dippa"])
def test_max_seconds_holds_inside_nested_loops(method):
    f = random_quadratic(150, 100, 1e6, 1e6, 1e6, seed=0)
    result = sp.solve(f, method=method, tol=1e-12, max_seconds=0.2)
    assert result.status == "out of time"
    assert result.seconds < 5.0  # the limit is kept to the call, but machines pause
    assert math.isfinite(result.certificate.distance)


def test_a_meter_raises_before_the_call():
    meter = Meter(call_limits(2))
    meter.charge("A")
    meter.charge("A")
    with pytest.raises(OutOfCalls):
        meter.charge("A")
    assert meter.calls["A"] == 2


# -- wrong constants --------------------------------------------------------------------------------------------------


def with_constants(f, **constants):
    """f with other constants of g."""
    g = sp.Smooth(f.g.grad, mu=constants.get("mu", f.mu_x), L=constants.get("L", f.L_x))
    return sp.Saddle(g, f.h, f.A)


@pytest.mark.parametrize("factor", [3, 10, 100])
@pytest.mark.parametrize("make", [random_quadratic, random_logistic])
def test_a_small_L_is_detected(make, factor):
    f = make(20, 15, 100, 100, 5, seed=1)
    with pytest.raises(sp.AssumptionError, match=r"L of g is too small: L = .* two gradients show L >=") as caught:
        sp.solve(with_constants(f, L=f.L_x / factor), np.full(20, 5.0), method="dippa", tol=1e-9)
    error = caught.value
    assert (error.function, error.constant, error.given) == ("g", "L", f.L_x / factor)
    assert f.L_x / factor < error.observed <= f.L_x * (1 + 1e-9)  # what is observed is a true lower bound
    assert error.result is not None
    assert math.isfinite(error.result.certificate.distance)


def test_a_large_mu_is_detected():
    f = random_quadratic(20, 15, 100, 100, 5, seed=1)
    with pytest.raises(sp.AssumptionError, match="mu") as caught:
        sp.solve(with_constants(f, mu=0.9), method="dippa", tol=1e-9)
    assert caught.value.function == "g"


def test_a_non_convex_function_is_detected():
    g = sp.Smooth(lambda x: -x, mu=1.0, L=2.0)
    f = sp.Saddle(g, sp.Quadratic(1.0, np.ones(3)), np.eye(3))
    with pytest.raises(sp.AssumptionError, match=r"g is not convex.*check the gradient of g"):
        sp.solve(f, np.ones(3), method="dippa")


def test_a_field_that_is_no_gradient_is_detected():
    g = sp.Smooth(lambda x: np.array([2.2 * x[0], 1.4 * x[1]]) + 0.0, mu=1.0, L=2.3)
    tilted = sp.Smooth(lambda x: g.grad(x) + 0.9 * np.array([-x[1], x[0]]), mu=1.3, L=2.45)  # not a gradient at all
    with pytest.raises(sp.AssumptionError, match=r"not the gradient of any function"):
        sp.solve(sp.Saddle(tilted, sp.Quadratic(1.0, np.ones(2)), np.eye(2)), np.array([3.0, 1.0]), method="dippa")


@pytest.mark.parametrize("problem", slow_except(CASES, "balanced", "kappa = 1", "logistic"))
@pytest.mark.parametrize("method", ["dippa", "aipfb"])
def test_true_constants_are_never_refuted(problem, method):
    """Long runs far below the rounding of the gradients: rounding is not mistaken for a wrong constant."""
    f, xs, ys = case(problem)
    result = sp.solve(f, method=method, tol=1e-300, max_calls=4000)
    assert result.status in ("stalled", "out of calls")
    assert distance(result.x, result.y, xs, ys) <= result.certificate.distance < 1e-8


def test_a_gradient_that_reuses_its_buffer_is_detected():
    buffer = np.zeros(3)

    def grad(x):
        np.multiply(2.0, x, out=buffer)
        return buffer

    f = sp.Saddle(sp.Smooth(grad, mu=2.0, L=2.0), sp.Quadratic(1.0, np.ones(3)), np.eye(3))
    with pytest.raises(sp.ProblemError, match="returned the same array twice"):
        sp.solve(f, np.ones(3), method="aipfb", tol=1e-12)
