"""The same method files on arrays of other libraries: array-api-strict, JAX and, where installed, PyTorch and CuPy."""

import pickle

import numpy as np
import pytest
from cases import CASES, case, gradient_methods
from libraries import OnOtherDevice, in_every_library, in_library, jax, load_library

import saddlepoint as sp
from saddlepoint.ground.arrays import Space, common_space, is_foreign, space_of, to_host
from saddlepoint.parts.coupling import ArrayCoupling
from saddlepoint.solving.compiled import compiled

EVERYDAY = ["balanced", "logistic", "huber", "log-sum-exp", "L_x >> L_y"]
METHODS = sorted({info.name for info in sp.methods()} - {"direct", "interior-point", "newton", "rhss"} | {"auto"})


@pytest.mark.slow
@in_every_library("method", METHODS, ["auto", "dippa", "krylov", "adapdm"], ["auto", "lpd-gs", "krylov"])
def test_every_method_gives_the_same_answer_in_every_library(method, xp):
    f, xs, ys = case("balanced")
    result = sp.solve(in_library(f, xp), method=method, tol=1e-3)
    assert result.solved, result
    for array in (result.x, result.y):
        assert is_foreign(array)
        assert space_of(array).xp is space_of(xp.asarray([1.0])).xp
    error = np.linalg.norm(to_host(result.x) - xs) + np.linalg.norm(to_host(result.y) - ys)
    assert error <= result.certificate.distance
    assert "solved" in repr(result)


@in_every_library("problem", EVERYDAY, ["logistic", "log-sum-exp"], ["balanced", "huber"])
def test_every_function_gives_the_same_answer_in_every_library(problem, xp):
    f, xs, ys = case(problem)
    g = in_library(f, xp)
    for mine, theirs in ((f.g, g.g), (f.h, g.h)):
        assert theirs.mu == pytest.approx(mine.mu, rel=1e-9)
        assert pytest.approx(mine.L, rel=0.06) == theirs.L
        point = np.linspace(-2, 3, f.shape[0] if mine is f.g else f.shape[1])
        there = xp.asarray(point.tolist(), dtype=xp.float64)
        np.testing.assert_allclose(to_host(theirs.grad(there)), mine.grad(point), rtol=1e-12, atol=1e-14)
        assert theirs(there) == pytest.approx(mine(point), rel=1e-12)
        if mine.has_prox:
            np.testing.assert_allclose(to_host(theirs.prox(there, 0.7)), mine.prox(point, 0.7), rtol=1e-10, atol=1e-12)
    result = sp.solve(g, method="lpd-gs", tol=1e-6)
    assert result.solved, result
    assert (
        np.linalg.norm(to_host(result.x) - xs) + np.linalg.norm(to_host(result.y) - ys) <= result.certificate.distance
    )


@pytest.mark.slow
@in_every_library("method", ["condat-vu", "lpd-gs", "dippa", "auto"], ["lpd-gs"], ["lpd-gs", "auto"])
def test_float32_stays_float32_and_is_certified_in_float64(method, xp):
    f, xs, ys = case("logistic")
    scale = np.linalg.norm(xs) + np.linalg.norm(ys)
    result = sp.solve(in_library(f, xp, "float32"), method=method, tol=3e-3 * scale)
    assert result.solved, result
    assert result.x.dtype == xp.float32
    assert isinstance(result.certificate.distance, float)


def test_products_of_a_coupling_are_those_of_numpy(xp):
    rng = np.random.default_rng(0)
    A, x, y, e = (rng.standard_normal(shape) for shape in ((7, 5), 7, 5, 7))
    coupling = sp.as_coupling(xp.asarray(A.tolist(), dtype=xp.float64))
    assert isinstance(coupling, ArrayCoupling)
    X, Y, E = (xp.asarray(v.tolist(), dtype=xp.float64) for v in (x, y, e))
    for found, expected in (
        (coupling.mul(Y), A @ y),
        (coupling.tmul(X), A.T @ x),
        (coupling.both(X, Y)[1], A.T @ x),
        (coupling.through(Y, 0.5, E)[1], A.T @ (0.5 * (A @ y) + e)),
        (coupling.T.through(X)[1], A @ (A.T @ x)),
        (coupling.resolvent(X, Y, 0.7)[0], np.linalg.solve(np.eye(7) + 0.49 * A @ A.T, x - 0.7 * A @ y)),
    ):
        np.testing.assert_allclose(to_host(found), expected, rtol=1e-10)
    exact = np.linalg.norm(A, 2)
    assert coupling.norm_estimate.lower <= exact * (1 + 1e-12) <= coupling.norm * (1 + 1e-12) <= 1.06 * exact
    narrow = sp.as_coupling(xp.asarray(A.tolist(), dtype=xp.float32))
    np.testing.assert_allclose(to_host(narrow.mul(Y)), A.astype(np.float32).astype(float) @ y, rtol=1e-14)


@pytest.mark.slow
def test_a_start_and_a_gradient_of_ones_own_may_be_of_any_library(xp):
    f, xs, _ = case("balanced")
    g = in_library(f, xp)
    box = sp.Smooth(g.g.grad, mu=g.g.mu, L=None)
    start = xp.asarray(xs.tolist(), dtype=xp.float64)
    result = sp.solve(sp.Saddle(box, g.h, g.A), x0=start, method="lpd-gs", tol=1e-6)
    assert result.solved
    np.testing.assert_array_equal(to_host(start), xs)


def test_mixed_libraries_are_refused_in_a_sentence(xp):
    f, *_ = case("balanced")
    g = in_library(f, xp)
    with pytest.raises(sp.ProblemError, match=r"A is numpy float64 and g is .*; expected arrays of one library"):
        sp.Saddle(g.g, f.h, f.A)
    with pytest.raises(sp.ProblemError, match=r"the problem is .* and x0 is numpy float64; expected arrays of one"):
        sp.solve(g, x0=np.zeros(f.shape[0]))
    with pytest.raises(sp.ProblemError, match=r"the problem is .* and the gradient of g is numpy float64"):
        sp.solve(sp.Saddle(sp.Smooth(lambda x: np.ones(f.shape[0]), mu=1, L=1), g.h, g.A))
    for method in ("direct", "interior-point", "newton"):
        with pytest.raises(sp.ProblemError, match=f"{method} needs A as one NumPy or SciPy matrix"):
            sp.solve(g, method=method)
    with pytest.raises(sp.ProblemError, match=r"A has dtype .*; expected float32 or float64"):
        sp.as_coupling(xp.asarray([[1, 2], [3, 4]]))
    with pytest.raises(sp.ProblemError, match="A has a NaN or an infinity"):
        sp.as_coupling(xp.asarray([[1.0, float("nan")]], dtype=xp.float64))


ALONE = [
    "condat-vu",
    "lpd-gs",
    "lpd",
    "extragradient",
    "ogda",
    "dippa",
    "catalyst-dippa",
    "krylov",
    "agraal",
    "sliding",
]


@pytest.mark.slow
@pytest.mark.parametrize("method", ALONE)
def test_only_single_numbers_are_copied_to_the_host(method):
    xp = OnOtherDevice()
    with pytest.raises(RuntimeError, match="device to a NumPy array"):
        np.asarray(xp.asarray([1.0, 2.0]))
    f, *_ = case("logistic")
    if method == "krylov":  # for quadratics; a matrix would be copied to the host once, to prove its mu
        m, n = f.shape
        f = sp.Saddle(sp.Quadratic(np.linspace(1.0, 3.0, m), np.ones(m)), sp.Quadratic(2.0, np.ones(n)), f.A)
    result = sp.solve(in_library(f, xp), method=method, tol=1e-3)
    assert result.solved, result
    assert str(space_of(result.x).device) == str(xp.strict.Device("device1"))


def test_results_are_saved_as_numpy(xp, tmp_path):
    f, *_ = case("balanced")
    result = sp.solve(in_library(f, xp), tol=1e-3)
    result.save(tmp_path / "r.npz")
    with np.load(tmp_path / "r.npz", allow_pickle=False) as saved:
        np.testing.assert_array_equal(saved["x"], to_host(result.x))
    assert result.to_dict(arrays=True)["y"] == to_host(result.y).tolist()


def test_group_huber_asks_for_arrays_of_numpy(xp):
    A = xp.asarray([[1.0, 2.0], [0.0, 1.0], [3.0, 0.0]], dtype=xp.float64)
    for g in (sp.GroupHuber([0, 0, 1], l2=1.0), sp.GroupHuber(l2=1.0).conjugate()):
        with pytest.raises(sp.ProblemError, match=r"GroupHuber was given a .*; expected a NumPy array"):
            sp.solve(sp.Saddle(g, sp.Quadratic(1.0), A))


def test_spaces_are_compared_widened_and_named():
    numpy32, numpy64 = Space(np, np.dtype(np.float32)), Space(np, np.dtype(np.float64))
    assert common_space({"a": None, "b": numpy32, "c": np.zeros(1)}) == numpy64
    assert common_space({"a": None}) is None
    assert numpy32.wide == numpy64
    assert str(numpy32) == "numpy float32"
    assert numpy32.on_host


def test_the_lists_of_cases_and_methods_are_not_empty():
    assert set(EVERYDAY) <= set(CASES)
    assert gradient_methods()


# -- many steps in one compiled call ----------------------------------------------------------------------------------

ALIKE = ["extragradient", "ogda", "condat-vu", "lpd", "lpd-gs", "apdg"]


@pytest.mark.slow
@pytest.mark.parametrize("method", ALIKE)
def test_jax_runs_the_steps_between_two_certificates_in_one_loop(method):
    xp = jax()
    f, xs, ys = case("logistic")
    g = in_library(f, xp)
    seen = []

    def grad(x):
        seen.append(1)
        return g.g.grad(x)

    counted = sp.Saddle(sp.Smooth(grad, mu=g.g.mu, L=g.g.L), g.h, g.A)
    result = sp.solve(counted, method=method, tol=1e-9)
    plain = sp.solve(f, method=method, tol=1e-9)
    assert result.solved
    assert (
        np.linalg.norm(to_host(result.x) - xs) + np.linalg.norm(to_host(result.y) - ys) <= result.certificate.distance
    )
    # Checks between compiled steps may come a little later than between single ones.
    assert abs(result.iterations - plain.iterations) <= 0.1 * plain.iterations + 4
    calls = result.calls["grad_g"]
    assert calls % result.iterations == plain.calls["grad_g"] % plain.iterations
    # Python calls the function in the examination, at certificates, in one step after each, and to compile the loop.
    a_step = -(-calls // result.iterations)
    assert len(seen) <= result.setup_calls["grad_g"] + (1 + a_step) * result.monitor_calls + 3 * a_step
    assert calls > 2 * len(seen)


@pytest.mark.slow
def test_a_budget_holds_within_compiled_steps():
    f, *_ = case("logistic")
    result = sp.solve(in_library(f, jax()), method="lpd-gs", tol=1e-12, max_calls={"grad_g": 77})
    assert result.status == sp.Status.OUT_OF_CALLS
    assert result.calls["grad_g"] == 77


@pytest.mark.slow
def test_a_compiled_loop_is_kept_with_the_problem_and_not_saved_with_it():
    f, *_ = case("balanced")
    g = in_library(f, jax())
    sp.solve(g, method="lpd-gs", tol=1e-6)
    (loop,) = g._loops.values()
    sp.solve(g, method="lpd-gs", tol=1e-8)
    assert list(g._loops.values()) == [loop]
    sp.solve(g, method="ogda", tol=1e-3)
    assert len(g._loops) == 2
    assert len(pickle.loads(pickle.dumps(g._loops))) == 0


@pytest.mark.slow
def test_a_compiled_loop_is_kept_for_its_own_units_only():
    """A start far away is computed in other units, where mu, L and |A| can be the same numbers."""
    xp = load_library("jax")
    d, b = xp.asarray([0.3, 0.5, 0.9]), xp.asarray([1.0, 2.0, 1.5])

    def problem():
        g = sp.Smooth(lambda x: d * x + b, mu=0.3, L=0.95)
        h = sp.Smooth(lambda y: d * y - b, mu=0.3, L=0.95)
        return sp.Saddle(g, h, xp.asarray([[0.1, 0.2, 0.0], [0.0, -0.2, 0.1], [0.3, 0.0, 0.2]]))

    far = xp.full(3, 1e70)
    f = problem()
    assert sp.solve(f, method="lpd-gs", max_calls=2000).solved
    again = sp.solve(f, far, method="lpd-gs", max_calls=2000)
    fresh = sp.solve(problem(), far, method="lpd-gs", max_calls=2000)
    assert again.solved
    assert again.iterations == fresh.iterations
    assert again.certificate == fresh.certificate


@pytest.mark.slow
@pytest.mark.parametrize("method", ["dippa", "anderson-condat-vu", "krylov", "imex"])
def test_steps_that_differ_are_not_compiled(method):
    f, *_ = case("balanced")
    g = in_library(f, jax())
    made = sp.make_method(method)
    view = made.normal_form(g)
    before = made.init(view.problem, *view.to(g.space.zeros(f.shape[0]), g.space.zeros(f.shape[1])))
    after = made.step(view.problem, before)
    assert compiled(made, view.problem, before, after) is None


# -- values instead of gradients --------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("library", ["jax", "torch"])
def test_a_function_is_differentiated_by_its_library(library):
    xp = load_library(library)
    f, xs, _ = case("logistic")
    g = in_library(f, xp)
    D, s, l2 = g.g.D.A, g.g.labels, g.g.l2

    def value(x):
        return xp.mean(xp.log1p(xp.exp(-s * (D @ x)))) + 0.5 * l2 * (x @ x)

    smooth = sp.Smooth.from_value(value, mu=g.g.mu, L=g.g.L)
    point = xp.asarray(np.linspace(-1, 1, f.shape[0]).tolist(), dtype=xp.float64)
    np.testing.assert_allclose(to_host(smooth.grad(point)), to_host(g.g.grad(point)), rtol=1e-12, atol=1e-15)
    assert smooth(point) == pytest.approx(g.g(point))
    result = sp.solve(sp.Saddle(smooth, g.h, g.A), method="lpd-gs", tol=1e-6)
    assert result.solved
    assert np.linalg.norm(to_host(result.x) - xs) <= 1e-6


def test_values_of_numpy_arrays_cannot_be_differentiated():
    smooth = sp.Smooth.from_value(lambda x: x @ x, mu=2, L=2)
    with pytest.raises(sp.ProblemError, match="from_value differentiates functions of PyTorch tensors or JAX arrays"):
        sp.solve(sp.Saddle(smooth, sp.Quadratic(1.0), np.eye(2)))
