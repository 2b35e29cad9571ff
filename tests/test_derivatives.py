"""Derivatives of saddle points: against formulas and finite differences, with bounds on their errors that hold."""

import math
import pickle

import numpy as np
import pytest
from draws import SEED
from scipy.sparse import csr_array

import saddlepoint as sp
from saddlepoint.parts.functions.second_order import hessian_change, quadratic_model


def data(seed, m=7, n=5, rows=12):
    rng = np.random.default_rng(seed)
    D, E = rng.standard_normal((rows, m)), rng.standard_normal((rows, n))
    labels = np.sign(rng.standard_normal(rows))
    return rng, D, E, labels, rng.standard_normal(rows), 0.4 * rng.standard_normal((m, n))


READY = {
    "quadratic": lambda D, labels, t: sp.Quadratic(D.T @ D, D[0]),
    "least squares": lambda D, labels, t: sp.LeastSquares(D, t, 0.1),
    "logistic": lambda D, labels, t: sp.Logistic(D, labels, 0.1),
    "hinge": lambda D, labels, t: sp.SmoothedHinge(D, labels, 0.1),
    "huber": lambda D, labels, t: sp.Huber(D, t, 0.1),
    "log-cosh": lambda D, labels, t: sp.LogCosh(D, t, 0.1),
    "log-cosh of coordinates": lambda D, labels, t: sp.LogCosh(l2=0.1),
    "log-sum-exp": lambda D, labels, t: sp.LogSumExp(D, t, 0.1, tau=0.5),
    "log-sum-exp of coordinates": lambda D, labels, t: sp.LogSumExp(l2=0.1),
    "entropy": lambda D, labels, t: sp.Entropy(0.05),
    "sum": lambda D, labels, t: 2.0 * sp.Logistic(D, labels, 0.1) + sp.LogCosh(l2=0.1) + sp.Quadratic(0.5, D[0]),
    "sparse": lambda D, labels, t: sp.Logistic(csr_array(D), labels, 0.1),
}


@pytest.mark.parametrize("name", READY)
def test_second_derivatives_of_ready_functions_are_differences_of_gradients(name):
    rng, D, _, labels, t, _ = data(1)
    f = READY[name](D, labels, t)
    x, u, h = rng.uniform(0.1, 0.9, 7), rng.standard_normal(7), 1e-5
    model = quadratic_model(f, x)
    differences = (f.grad(x + h * u) - f.grad(x - h * u)) / (2.0 * h)
    assert model.grad(u) == pytest.approx(differences, rel=1e-5, abs=1e-7)
    assert model.quadratic
    assert (model.mu, model.L) == (f.mu, f.L)
    if model.hessian is not None:
        assert model.hessian(u) @ u == pytest.approx(model.grad(u), rel=1e-10, abs=1e-12)


@pytest.mark.parametrize("name", READY)
def test_changes_of_the_hessian_are_bounded(name):
    rng, D, _, labels, t, _ = data(2)
    f = READY[name](D, labels, t)
    for reach in (1e-9, 1e-4, 0.1, 3.0):
        x, u = rng.uniform(0.0, 1.0, 7), rng.standard_normal(7)
        bound = hessian_change(f, x, u, reach)
        at_x = quadratic_model(f, x).grad(u)
        for _ in range(20):
            step = rng.standard_normal(7)
            z = x + step * (reach / np.linalg.norm(step))
            assert np.linalg.norm(quadratic_model(f, z).grad(u) - at_x) <= bound + 1e-13
        assert bound < 1e3


def test_an_unknown_change_is_infinite():
    f = sp.Smooth(lambda x: x + np.tanh(x), mu=1.0, L=2.0)
    x = np.ones(3)
    assert hessian_change(f, x, x, 1e-3) == math.inf
    assert hessian_change(f + sp.Quadratic(1.0), x, x, 1e-3) == math.inf
    known = sp.Smooth(lambda x: x + np.tanh(x), mu=1.0, L=2.0, hessian_lipschitz=0.77)
    assert hessian_change(known, x, x, 1e-3) == pytest.approx(0.77e-3 * math.sqrt(3.0))
    assert hessian_change(4.0 * known + sp.Quadratic(1.0), x, x, 1e-3) == pytest.approx(4 * 0.77e-3 * math.sqrt(3.0))
    with pytest.raises(sp.ProblemError, match="hessian_lipschitz of Smooth is -1"):
        sp.Smooth(lambda x: x, mu=1.0, L=2.0, hessian_lipschitz=-1.0)


def smooth_problem(seed, dtype=np.float64, scale=1.0):
    _, D, E, labels, t, A = data(seed)
    arrays = [np.asarray(scale * part, dtype=dtype) for part in (D, E, A)]
    g = sp.Logistic(arrays[0], labels.astype(dtype), 0.1)
    h = sp.LogCosh(arrays[1], t.astype(dtype), 0.2) + sp.LogSumExp(l2=0.1)
    return sp.Saddle(g, h, arrays[2])


def jacobian(f, x, y):
    H, K, A = (np.asarray(part, dtype=np.float64) for part in (f.g.hessian(x), f.h.hessian(y), f.A.matrix()))
    return np.block([[H, A], [-A.T, K]])


def exact(f):
    """The saddle point by Newton's method, down to rounding."""
    z = np.zeros(sum(f.shape))
    x, y = np.split(z, [f.shape[0]])
    for _ in range(12):
        step = np.linalg.solve(jacobian(f, x, y), np.concatenate(f.field(x, y)))
        x, y = x - step[: f.shape[0]], y - step[f.shape[0] :]
    return x, y


def bound_holds(seed, dtype, tol):
    """The error of a vjp against the derivative at the true solution, and its bound."""
    f = smooth_problem(seed, dtype)
    rng = np.random.default_rng(seed)
    m = f.shape[0]
    v = rng.standard_normal(sum(f.shape)).astype(dtype)
    u = sp.solve(f, tol=tol, method="lpd-gs").vjp(v[:m], v[m:])
    J = jacobian(f, *exact(f))
    true = np.linalg.solve(J.T, v.astype(np.float64))
    error = np.linalg.norm(u.ux - true[:m]) + np.linalg.norm(u.uy - true[m:])
    return error, u


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_bounds_hold_on_drawn_problems(dtype):
    for seed in range(SEED, SEED + 3):
        error, u = bound_holds(seed, dtype, 10.0 ** -np.random.default_rng(seed).uniform(0, 3))
        assert error <= u.bound < math.inf, seed
        assert u.ux.dtype == dtype
        assert not u.why


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_bounds_hold_on_many_drawn_problems(dtype):
    ratios = []
    for seed in range(SEED, SEED + 60):
        error, u = bound_holds(seed, dtype, 10.0 ** -np.random.default_rng(seed).uniform(0, 4))
        assert error <= u.bound < math.inf, seed
        ratios.append(u.bound / error)
    assert np.median(ratios) < 1e5  # the bounds are not far above the errors


def test_vjp_and_jvp_are_those_of_finite_differences():
    rng, D, E, labels, t, A = data(3)
    b, c, h = rng.standard_normal(7), rng.standard_normal(5), 1e-5

    def at(s):
        g = sp.Logistic(D, labels, 0.1) + sp.Quadratic(0.1, b + s * db)
        return sp.Saddle(g, sp.LogCosh(E, t, 0.2) + sp.Quadratic(0.1, c + s * dc), A + s * dA)

    dA, db, dc = rng.standard_normal(A.shape), rng.standard_normal(7), rng.standard_normal(5)
    result, up, down = (sp.solve(at(s), tol=1e-11) for s in (0.0, h, -h))
    moved = result.jvp(A=dA, bx=db, by=dc)
    assert moved.x == pytest.approx((up.x - down.x) / (2 * h), rel=1e-5, abs=1e-6)
    assert moved.y == pytest.approx((up.y - down.y) / (2 * h), rel=1e-5, abs=1e-6)
    vx, vy = rng.standard_normal(7), rng.standard_normal(5)
    u = result.vjp(vx, vy)
    assert np.sum(u.A * dA) + u.bx @ db + u.by @ dc == pytest.approx(vx @ moved.x + vy @ moved.y, rel=1e-8)
    by_field = result.jvp(field=(dA @ result.y + db, -dA.T @ result.x + dc))
    assert by_field.x == pytest.approx(moved.x, rel=1e-8)
    assert by_field.bound < moved.bound < 1e-7
    assert max(u.bound, u.bound_A) < 1e-7
    assert "error <=" in repr(u)
    assert "error <=" in repr(moved)


def test_the_bound_of_the_gradient_of_A_holds():
    f = smooth_problem(5)
    x, y = exact(f)
    result = sp.solve(f, tol=1e-2, method="lpd-gs")
    v = np.ones(7)
    u = result.vjp(v)
    true = np.linalg.solve(jacobian(f, x, y).T, np.concatenate([v, np.zeros(5)]))
    error = np.linalg.norm(u.A - (np.outer(x, true[7:]) - np.outer(true[:7], y)))
    assert 0.0 < error <= u.bound_A


def test_the_gradient_of_a_sparse_matrix_is_sparse():
    rng, D, E, labels, t, A = data(6)
    A = A * (rng.uniform(size=A.shape) < 0.4)
    g, h = sp.Logistic(D, labels, 0.1), sp.LogCosh(E, t, 0.2)
    dense, sparse = (sp.solve(sp.Saddle(g, h, M), tol=1e-11).vjp(np.ones(7)).A for M in (A, csr_array(A)))
    assert sparse.nnz == np.count_nonzero(A)
    assert sparse.toarray() == pytest.approx(np.where(A != 0.0, dense, 0.0), abs=1e-9)


SIMPLE = {
    "l1 and box": (sp.L1(0.05), sp.Box(-0.2, 0.2)),
    "simplex": (sp.Simplex(), sp.Simplex()),
    "nonnegative and hyperplane": (sp.NonNegative(), sp.Hyperplane([1.0, 2.0, 0.0, -1.0, 1.0], 0.3)),
    "blocks": (sp.Blocks({range(0, 3): sp.Simplex(), range(3, 5): sp.L1(0.1)}), sp.L1(0.03)),
    "fixed": (sp.Box(0.5, 0.5), sp.L1(0.01)),
}


@pytest.mark.parametrize("name", SIMPLE)
def test_derivatives_on_the_proven_support_are_those_of_finite_differences(name):
    p, q = SIMPLE[name]
    rng, D, E, labels, t, A = data(8)
    dA, h = rng.standard_normal(A.shape), 1e-6

    def at(s):
        return sp.Saddle(sp.Logistic(D, labels, 0.3) + p, sp.LogCosh(E, t, 0.3) + q, A + s * dA)

    result, up, down = (sp.solve(at(s), tol=1e-9, max_calls=20_000) for s in (0.0, h, -h))
    moved = result.jvp(A=dA)
    assert moved.undecided == 0
    assert moved.bound < 1e-5
    assert moved.x == pytest.approx((up.x - down.x) / (2 * h), abs=2e-2)
    assert moved.y == pytest.approx((up.y - down.y) / (2 * h), abs=2e-2)
    vx, vy = rng.standard_normal(7), rng.standard_normal(5)
    u = result.vjp(vx, vy)
    assert np.sum(u.A * dA) == pytest.approx(vx @ moved.x + vy @ moved.y, rel=1e-6)
    if name == "simplex":
        assert moved.x.sum() == pytest.approx(0.0, abs=1e-12)
    if name == "l1 and box":
        assert not moved.x[result.support_x == sp.Support.ZERO].any()


def test_a_vector_that_is_orthogonal_to_the_face_has_the_derivative_zero():
    rng, D, _, labels, _, A = data(8)
    result = sp.solve(sp.Saddle(sp.Logistic(D, labels, 0.3) + sp.Simplex(), sp.Quadratic(1.0), A), tol=1e-9)
    u = result.vjp(np.ones(7))  # the sum of x is 1, whatever the data are
    assert u.run is None
    assert u.bound < 1e-12
    assert result.vjp(rng.standard_normal(7)).ux.any()


def test_derivatives_with_several_maximisers_solve_the_whole_system():
    _, D, E, labels, t, A = data(9)
    parts = [sp.LogCosh(E, t, 0.2), sp.LogSumExp(l2=0.3)]
    result = sp.solve(sp.Saddle(sp.Logistic(D, labels, 0.1), parts, [A, A]), tol=1e-9)
    u = result.vjp(np.ones(7))
    nothing = np.zeros((5, 10))
    J = np.block([[sp.Logistic(D, labels, 0.1).hessian(result.x), A, A], [-A.T, nothing], [-A.T, nothing]])
    J[7:12, 7:12], J[12:, 12:] = (f.hessian(y) for f, y in zip(parts, np.split(result.y, 2), strict=True))
    assert u.ux == pytest.approx(np.linalg.solve(J.T, np.append(np.ones(7), np.zeros(10)))[:7], abs=1e-7)
    assert 0.0 < u.bound < 1e-4


def test_undecided_coordinates_are_flagged():
    f = sp.Saddle(sp.Quadratic(1.0, [1.0, 3.0]) + sp.L1(1.0), sp.Quadratic(1.0), np.zeros((2, 2)))  # x* = (0, -2)
    u = sp.solve(f).vjp(vx=[1.0, 1.0])
    assert u.undecided == 1
    assert u.bound == math.inf
    assert "1 coordinates are neither proven" in u.why
    assert u.bx.tolist() in ([0.0, -1.0], [-1.0, -1.0])
    assert "undecided" in repr(u)


def own(x, u=None):
    return x + np.tanh(x) if u is None else u + (1.0 - np.tanh(x) ** 2) * u


@pytest.mark.parametrize(
    "given", [{"hvp": own}, {"hessian": lambda x: np.diag(1.0 + 1.0 - np.tanh(x) ** 2)}], ids=["hvp", "hessian"]
)
def test_the_bound_for_a_function_of_ones_own_needs_the_lipschitz_constant_of_its_hessian(given):
    A = np.array([[1.0, 0.5], [0.0, 1.0]])
    g = sp.Smooth(own, mu=1.0, L=2.0, hessian_lipschitz=0.77, **given)
    result = sp.solve(sp.Saddle(g, sp.Quadratic(1.0, [1.0, -1.0]), A), tol=1e-6)
    u = result.vjp([1.0, 0.0])
    ready = sp.Saddle(sp.LogCosh(l2=1.0), sp.Quadratic(1.0, [1.0, -1.0]), A)
    assert u.ux == pytest.approx(sp.solve(ready, tol=1e-11).vjp([1.0, 0.0]).ux, abs=u.bound)
    assert 0.0 < u.bound < 1e-5
    without = sp.Saddle(g.replace(hessian_lipschitz=None), sp.Quadratic(1.0, [1.0, -1.0]), A)
    unknown = sp.solve(without, tol=1e-6).vjp([1.0, 0.0])
    assert unknown.bound == math.inf
    assert "Lipschitz constant of the Hessian of g is not known" in unknown.why
    assert unknown.ux == pytest.approx(u.ux, abs=1e-5)


def test_what_cannot_be_differentiated_is_refused():
    A, h = np.eye(2), sp.Quadratic(1.0, [1.0, 1.0])
    black_box = sp.Smooth(lambda x: x + np.tanh(x), mu=1.0, L=2.0)
    with pytest.raises(sp.ProblemError, match=r"second derivatives of .* are not known.*hvp="):
        sp.solve(sp.Saddle(black_box, h, A)).vjp([1.0, 0.0])
    unknown = sp.Smooth(lambda x: 2.0 * x, mu=None, L=2.0)
    with pytest.raises(sp.ProblemError, match="uncertified"):
        sp.solve(sp.Saddle(unknown, h, A)).vjp([1.0, 0.0])
    flat = sp.solve(sp.Saddle(sp.Simplex(), sp.Simplex(), A), gap=1e-3)
    with pytest.raises(sp.ProblemError, match="g is not strongly convex"):
        flat.vjp([1.0, 0.0])
    result = sp.solve(sp.Saddle(sp.Quadratic(1.0), h, A))
    with pytest.raises(sp.ProblemError, match="vx has 3 entries; expected 2"):
        result.vjp([1.0, 0.0, 0.0])
    with pytest.raises(sp.ProblemError, match=r"direction of A has shape \(1, 2\)"):
        result.jvp(A=[[1.0, 2.0]])
    with pytest.raises(sp.ProblemError, match="pair of vectors"):
        result.jvp(field=3.0)
    with pytest.raises(sp.ProblemError, match="does not hold its problem"):
        pickle.loads(pickle.dumps(result)).vjp([1.0, 0.0])
    assert result.vjp().ux.tolist() == [0.0, 0.0]


@pytest.mark.parametrize("changed", ["A", "b", "c", "t", "x"])
def test_a_result_whose_data_were_written_into_is_refused(changed):
    rng, D, _, _, t, A = data(4)
    b, c = rng.standard_normal(7), rng.standard_normal(5)
    g = sp.LogCosh(D, t, 0.1) + sp.Smooth(lambda x: x + b, mu=1.0, L=1.0, hvp=lambda x, u: u)
    result = sp.solve(sp.Saddle(g, sp.Smooth(lambda y: y + c, mu=1.0, L=1.0, quadratic=True), A), tol=1e-9)
    assert np.isfinite(result.vjp(np.ones(7)).ux).all()
    {"A": A, "b": b, "c": c, "t": t, "x": result.x}[changed][...] *= 2.0
    with pytest.raises(sp.ProblemError, match="written into after"):
        result.vjp(np.ones(7))
    with pytest.raises(sp.ProblemError, match="written into after"):
        result.jvp(bx=np.ones(7))


@pytest.fixture(params=["jax", "torch"])
def other(request):
    """A library of arrays other than NumPy, in float64."""
    found = pytest.importorskip(request.param if request.param == "torch" else "jax.numpy")
    if request.param == "jax":
        import jax

        jax.config.update("jax_enable_x64", True)
    return found


@pytest.mark.slow
def test_other_libraries_have_the_same_derivatives_with_a_term_on_either_side(other):
    A = np.array([[1.0, 0.5, 0.2], [0.0, 1.0, -0.7]])

    def solution(array):
        g = sp.Quadratic(1.0, array([1.0, -0.01])) + sp.L1(0.1)
        return sp.solve(sp.Saddle(g, sp.Quadratic(array([1.0, 2.0, 3.0])) + sp.Simplex(), array(A)), tol=1e-9)

    expected = solution(np.asarray).vjp([1.0, 0.5], [0.2, 0.0, 1.0])
    result = solution(lambda a: other.asarray(np.asarray(a)))
    u = result.vjp(*(other.asarray(np.array(v)) for v in ([1.0, 0.5], [0.2, 0.0, 1.0])))
    assert max(u.bound, expected.bound) < 1e-6
    assert np.asarray(u.ux) == pytest.approx(expected.ux, abs=u.bound + expected.bound)
    assert np.asarray(u.uy) == pytest.approx(expected.uy, abs=u.bound + expected.bound)


@pytest.mark.slow
def test_other_libraries_have_the_same_derivatives(other):
    xp, array = other, other.asarray
    A = np.array([[1.0, 0.5], [0.0, 1.0]])

    def solution(given, g):
        return sp.solve(sp.Saddle(g, sp.Quadratic(1.0, given([1.0, -1.0])), given(A)), tol=1e-8)

    expected = solution(np.asarray, sp.LogCosh(l2=1.0)).vjp([1.0, 0.0])
    with_gradient = sp.Smooth(lambda x: x + xp.tanh(x), mu=1.0, L=2.0, hessian_lipschitz=0.77)
    with_value = sp.Smooth.from_value(lambda x: xp.sum(0.5 * x * x + xp.log(xp.cosh(x))), mu=1.0, L=2.0)
    u = solution(lambda a: array(np.asarray(a)), with_gradient).vjp(array(np.array([1.0, 0.0])))
    assert u.bound < 1e-6
    assert type(u.ux) is type(array(A))
    assert np.asarray(u.ux) == pytest.approx(expected.ux, abs=u.bound + expected.bound)
    assert np.asarray(u.A) == pytest.approx(expected.A, abs=u.bound_A + expected.bound_A)
    v = solution(lambda a: array(np.asarray(a)), with_value).vjp(array(np.array([1.0, 0.0])))
    assert np.asarray(v.ux) == pytest.approx(expected.ux, abs=1e-6)
