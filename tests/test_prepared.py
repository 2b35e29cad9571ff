"""prepare, update, solve: the same certified answers as fresh solves, and no claim that goes unexamined."""

import copy
import math
import pickle
from dataclasses import replace
from fractions import Fraction

import exact
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import saddlepoint as sp
from saddlepoint.ground.arrays import to_host
from saddlepoint.problems.examined_points import NEAR, Examined
from saddlepoint.theory import AffineField
from saddlepoint.uses.prepared import prepared as module

M, N = 4, 3
SHAPES = ("number", "diagonal", "matrix", "not quite symmetric", "sparse")


def hessian(kind, size, rng):
    basis, _ = np.linalg.qr(rng.standard_normal((size, size)))
    P = (basis * rng.uniform(0.3, 3.0, size)) @ basis.T
    P = np.tril(P) + np.tril(P, -1).T  # exactly symmetric
    return {
        "number": lambda: float(P[0, 0]),
        "diagonal": lambda: np.diag(P).copy(),
        "matrix": lambda: P,
        "not quite symmetric": lambda: P * (1.0 + 1e-15 * rng.standard_normal((size, size))),
        "sparse": lambda: sparse.csr_array(P),
    }[kind]()


def quadratic(rng, kind="matrix"):
    g, h = (sp.Quadratic(hessian(kind, size, rng), rng.standard_normal(size)) for size in (M, N))
    return sp.Saddle(g, h, rng.standard_normal((M, N)))


def dense(P, size):
    if isinstance(P, float):
        return P * np.eye(size)
    return np.diag(P) if isinstance(P, np.ndarray) else np.asarray(sparse.csr_array(P.matrix()).toarray())


def true_distance(f, x, y):
    """The distance of (x, y) to the saddle point of a quadratic problem, by rational arithmetic."""
    P, Q, A = (exact.exact(part) for part in (dense(f.g.P, M), dense(f.h.P, N), f.A.matrix()))
    P, Q = ([[(u + v) / 2 for u, v in zip(*rows, strict=True)]
             for rows in zip(H, exact.transposed(H), strict=True)] for H in (P, Q))  # fmt: skip
    K = [[*P[i], *A[i]] for i in range(M)] + [[*(-A[i][j] for i in range(M)), *Q[j]] for j in range(N)]
    q = [-v for v in exact.exact(np.concatenate([f.g.b, f.h.b]))]
    z = exact.solved(K, q)
    parts = zip((z[:M], z[M:]), (exact.exact(x), exact.exact(y)), strict=True)
    return sum(math.sqrt(sum((a - b) ** 2 for a, b in zip(*pair, strict=True))) for pair in parts)


# -- quadratic problems ------------------------------------------------------------------------------------------------


@pytest.mark.slow
@settings(max_examples=6)
@given(st.integers(0, 2**32), st.sampled_from(SHAPES))
def test_certified_as_by_a_fresh_solve_whatever_is_replaced(seed, kind):
    rng = np.random.default_rng(seed)
    prepared = sp.prepare(quadratic(rng, kind), tol=1e-9)
    for _ in range(4):
        new = {
            "b": lambda: rng.standard_normal(M) * 10.0 ** rng.integers(-6, 3),
            "c": lambda: rng.standard_normal(N),
            "A": lambda: rng.standard_normal((M, N)),
            "g": lambda: sp.Quadratic(hessian(kind, M, rng), rng.standard_normal(M)),
            "h": lambda: sp.Quadratic(hessian(kind, N, rng), rng.standard_normal(N)),
        }
        names = rng.choice(list(new), size=rng.integers(1, 3), replace=False)
        result = prepared.update(**{name: new[name]() for name in names}).solve()
        assert result.solved
        assert module.NOTE in result.message
        f = prepared.problem
        fresh = sp.solve(f, tol=1e-9)
        apart = np.linalg.norm(result.x - fresh.x) + np.linalg.norm(result.y - fresh.y)
        assert apart <= result.certificate.distance + fresh.certificate.distance
        assert true_distance(f, result.x, result.y) <= result.certificate.distance <= 1e-9
        assert result.certificate.assumes == f.certificate(result.x, result.y).assumes


@given(st.integers(0, 2**32), st.integers(-150, 150), st.booleans())
def test_the_residual_of_an_affine_field_is_bounded(seed, exponent, off):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((5, 5)) * 10.0 ** rng.integers(-5, 5, (5, 5)) * 10.0**exponent
    z, q = rng.standard_normal((2, 5)) * 10.0 ** rng.integers(-3, 3)
    q *= 10.0**exponent
    if off:
        q = -(A @ z)  # a residual of nothing but rounding
    error = np.abs(A) * 1e-16
    field = AffineField(A, 2, error if off else None)
    Rx, Ry, error_x, error_y = field.lengths(z, q)
    moved = exact.exact(A + error * rng.choice([-1.0, 1.0], (5, 5))) if off else exact.exact(A)
    r = [u + v for u, v in zip(exact.times(moved, exact.exact(z)), exact.exact(q), strict=True)]
    for length, slack, part in ((Rx, error_x, r[:2]), (Ry, error_y, r[2:])):
        square = sum((v * v for v in part), Fraction(0))
        assert square <= (Fraction(length) + Fraction(slack)) ** 2
        assert max(length - slack, 0.0) ** 2 <= square * (1 + Fraction(1, 10**12)) or length <= slack
    assert field.lengths(0.0 * z, 0.0 * q) == (0.0, 0.0, 0.0, 0.0)


def test_what_is_left_out_stays_and_a_new_function_brings_its_own_linear_term():
    rng = np.random.default_rng(0)
    f = quadratic(rng)
    b, c = rng.standard_normal(M), rng.standard_normal(N)
    prepared = sp.prepare(f).update(b=b, c=c)
    np.testing.assert_array_equal(prepared.problem.g.b, b)
    prepared.update(A=2.0 * f.A.A)
    np.testing.assert_array_equal(prepared.problem.g.b, b)
    np.testing.assert_array_equal(prepared.problem.A.A, 2.0 * f.A.A)
    prepared.update(g=sp.Quadratic(1.0, np.ones(M)))
    np.testing.assert_array_equal(prepared.problem.g.b, np.ones(M))
    np.testing.assert_array_equal(prepared.problem.h.b, c)


def test_the_factors_are_kept_for_other_linear_terms_only(monkeypatch):
    made = []
    before = module.KeptFactors.__init__
    monkeypatch.setattr(module.KeptFactors, "__init__", lambda self, f: (made.append(f), before(self, f))[1])
    rng = np.random.default_rng(1)
    f = quadratic(rng)
    prepared = sp.prepare(f)
    first = prepared.solve()
    second = prepared.update(b=np.ones(M), c=np.ones(N)).solve()
    assert len(made) == 1
    assert first.calls == {"grad_g": M + 1, "grad_h": N + 1, "A": N + 1, "At": 1}
    assert second.calls == {"grad_g": 1, "grad_h": 1, "A": 1, "At": 1}
    prepared.update(A=rng.standard_normal((M, N))).solve()
    prepared.update(h=sp.Quadratic(2.0)).solve()
    assert len(made) == 3


@pytest.mark.parametrize("tol", [1e-15, 1e-20])
def test_where_the_factors_do_not_reach_the_tolerance_a_run_does_its_best(tol):
    f = quadratic(np.random.default_rng(2))
    result, fresh = sp.prepare(f, tol=tol).solve(), sp.solve(f, tol=tol)
    assert module.NOTE not in result.message
    assert result.solved == fresh.solved
    assert result.certificate.distance <= 2.0 * fresh.certificate.distance


def test_singular_matrices_and_limits_are_left_to_a_run():
    f = quadratic(np.random.default_rng(3))
    assert sp.prepare(f, max_calls=1).solve().status is sp.Status.OUT_OF_CALLS
    assert sp.prepare(f, method="krylov").solve().method == "krylov"
    tiny = sp.Saddle(sp.Quadratic([1e-300, 1.0]), sp.Quadratic(1e-300), np.zeros((2, 1)))
    with pytest.raises(sp.ProblemError, match="no method can do anything"):
        sp.prepare(tiny, method="direct").update(b=[1.0, 1.0]).solve()


@pytest.mark.parametrize("kind", SHAPES)
def test_a_quadratic_with_another_linear_term_is_the_one_made_with_it(kind):
    rng = np.random.default_rng(4)
    g = sp.Quadratic(hessian(kind, M, rng), rng.standard_normal(M))
    before = g.b.copy()
    b, x = rng.standard_normal((2, M))
    expected = sp.Quadratic(hessian(kind, M, np.random.default_rng(4)), b)
    for other in (g.with_linear(b), g.replace(mu=0.01).with_linear(b), copy.copy(g).with_linear(b)):
        np.testing.assert_array_equal(other.grad(x), expected.grad(x))
        np.testing.assert_array_equal(other.rounding(x), expected.rounding(x))
        np.testing.assert_array_equal(other.compensated(x).hi, expected.compensated(x).hi)
        np.testing.assert_allclose(other.prox(x, 0.3), expected.prox(x, 0.3), rtol=1e-12)
        assert other(x) == pytest.approx(expected(x), rel=1e-12)
    np.testing.assert_array_equal(g.b, before)


# -- functions of one's own --------------------------------------------------------------------------------------------


def own(mu=0.5, centre=0.0):
    """The gradient of log cosh(x - centre) + 0.25 |x|^2; its mu is 0.5, or what is claimed."""
    return sp.Smooth(lambda x: np.tanh(x - centre) + 0.5 * x, mu=mu, L=1.5)


def own_problem(mu=0.5):
    rng = np.random.default_rng(5)
    return sp.Saddle(own(mu), sp.Quadratic(1.0, rng.standard_normal(N)), rng.standard_normal((M, N)) / 4)


@settings(max_examples=2)
@given(st.integers(0, 2**32))
def test_own_functions_are_certified_as_by_a_fresh_solve(seed):
    rng = np.random.default_rng(seed)
    f = own_problem()
    prepared = sp.prepare(f, tol=1e-8)
    total = 0.0
    for size in (0.01, 0.01, 3.0):
        total = total + size * rng.standard_normal(M)
        result = prepared.update(b=total).solve()
        fresh = sp.solve(sp.Saddle(f.g + sp.Quadratic(0.0, total), f.h, f.A), tol=1e-8)
        assert result.solved
        apart = np.linalg.norm(result.x - fresh.x) + np.linalg.norm(result.y - fresh.y)
        assert apart <= result.certificate.distance + fresh.certificate.distance
        assert any("agree with it" in sentence for sentence in result.certificate.assumes)


def test_what_was_examined_is_not_examined_again_while_the_answer_stays_near(clock):
    prepared = sp.prepare(own_problem(), tol=1e-8)
    first = prepared.update(b=np.full(M, 2.0)).solve()
    near = prepared.update(b=np.full(M, 2.001)).solve()
    other_A = prepared.update(A=1.001 * prepared.problem.A.A).solve()
    far = prepared.update(b=np.full(M, -2.0)).solve()
    assert first.setup_calls["grad_g"] > 10
    assert near.setup_calls["grad_g"] == other_A.setup_calls["grad_g"] == 1
    assert far.setup_calls["grad_g"] > 10
    assert near.calls["grad_g"] < first.calls["grad_g"]
    assert near.solved
    assert far.solved


def test_a_new_function_is_examined_even_at_the_same_answer(clock):
    prepared = sp.prepare(own_problem(), tol=1e-8)
    prepared.solve()
    assert prepared.solve().setup_calls["grad_g"] == 1
    assert prepared.update(g=own()).solve().setup_calls["grad_g"] > 10


@pytest.mark.parametrize("steps", [0, 1])
def test_a_wrong_mu_of_a_new_function_is_found(steps):
    prepared = sp.prepare(own_problem(), tol=1e-8)
    for _ in range(steps):
        prepared.solve()
    flat = sp.Smooth(lambda x: 0.5 * x, mu=1.0, L=2.0)
    with pytest.raises(sp.AssumptionError, match="mu"):
        prepared.update(g=flat).solve()
    assert prepared.update(g=own()).solve().solved


def test_a_mu_that_is_wrong_elsewhere_is_found_when_the_answer_moves_there():
    # Curvature 1.5 around 0 and 0.5 from 3 on: the claim mu = 1.4 holds at the first answer only.
    g = sp.Smooth(lambda x: 0.5 * x + np.clip(x, -3.0, 3.0), mu=1.4, L=1.5)
    prepared = sp.prepare(sp.Saddle(g, sp.Quadratic(1.0), 0.1 * np.eye(2)), tol=1e-8)
    assert prepared.update(b=[0.1, 0.1]).solve().solved
    with pytest.raises(sp.AssumptionError, match="mu"):
        prepared.update(b=[-40.0, -40.0]).solve()


def test_noise_that_was_measured_stays_in_the_certificates(clock):
    def noisy(x):
        return 0.5 * x + np.tanh(x.astype(np.float32)).astype(np.float64)

    f = sp.Saddle(sp.Smooth(noisy, mu=0.5, L=1.5), sp.Quadratic(1.0, np.ones(2)), np.eye(2))
    prepared = sp.prepare(f, tol=1e-4)
    first = prepared.update(b=[3.0, 1.0]).solve()
    second = prepared.update(b=[3.001, 1.0]).solve()
    assert second.setup_calls["grad_g"] == 1
    assert second.certificate.noise_x >= first.certificate.noise_x > 1e-9


def test_examined_points_cover_what_is_near_them():
    memory = Examined()
    memory.add(np.array([3.0, 4.0]), 5.0, 1e-9, True)
    assert memory.covers(np.array([3.0, 4.0 + 4.99 * NEAR]))
    assert not memory.covers(np.array([3.0, 4.0 + 5.01 * NEAR]))
    assert not memory.covers(np.array([3.0, math.nan]))
    assert (memory.noise, memory.is_noisy) == (1e-9, True)


# -- what the caller holds ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [lambda: quadratic(np.random.default_rng(6)), own_problem])
def test_nothing_that_the_caller_holds_is_changed(make):
    f = make()
    A, held = f.A.A.copy(), dict(vars(f.g))
    b, c = np.arange(1.0, M + 1), np.arange(1.0, N + 1)
    prepared = sp.prepare(f, np.ones(M), np.ones(N), tol=1e-9)
    result = prepared.update(b=b, c=c).solve()
    x = result.x.copy()
    result.x[:] = math.nan  # nor does what the caller does to a result change the next one
    b[:] = math.nan
    again = prepared.solve()
    np.testing.assert_allclose(again.x, x, atol=2e-9)
    np.testing.assert_array_equal(f.A.A, A)
    np.testing.assert_array_equal(c, np.arange(1.0, N + 1))
    assert vars(f.g).keys() == held.keys()
    assert all(vars(f.g)[name] is value for name, value in held.items())
    assert f.g.examined is None


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"b": [1.0]}, "b has 1 entries; expected 4"),
        ({"b": [1.0, 2.0, math.nan, 4.0]}, "b has a nan at index 2"),
        ({"c": np.ones((N, 1))}, "c has shape"),
        ({"A": np.ones((N, M))}, r"A has shape \(3, 4\); expected \(4, 3\)"),
        ({"g": 3.0}, "g is a float; expected a Smooth"),
        ({"h": sp.Quadratic(1.0, np.ones(M))}, "h has 4 variables but A has 3 columns"),
        ({"c": np.ones(N), "g": sp.Quadratic(0.0)}, "g is not strongly convex"),
    ],
)
def test_wrong_data_are_refused_and_replace_nothing(wrong, words):
    f = quadratic(np.random.default_rng(7))
    prepared = sp.prepare(f)
    with pytest.raises(sp.ProblemError, match=words):
        prepared.update(**wrong)
    for name in ("g", "h"):
        np.testing.assert_array_equal(getattr(prepared.problem, name).b, getattr(f, name).b)
    assert prepared.problem.A is f.A
    with pytest.raises(sp.ProblemError, match="f is a int"):
        sp.prepare(3)
    with pytest.raises(sp.ProblemError, match="tol"):
        sp.prepare(f, tol=-1.0)


def test_prepared_problems_stay_in_float32():
    g = sp.Quadratic(np.float32([1, 2]), np.float32([1, 1]))
    low = sp.Saddle(g, sp.Quadratic(1.0), np.eye(2, dtype=np.float32))
    result = sp.prepare(low, tol=1e-4).update(b=[1.0, 3.0]).solve()
    assert result.solved
    assert result.x.dtype == np.float32
    with pytest.raises(sp.ProblemError, match="expected numpy float32, as before"):
        sp.prepare(low).update(A=np.eye(2))


def test_prepared_problems_stay_in_their_library():
    xp = pytest.importorskip("array_api_strict")
    parts = sp.Quadratic(1.0, xp.asarray([1.0, 2.0])), sp.Quadratic(1.0), xp.asarray([[1.0, 0.0], [0.0, 1.0]])
    prepared = sp.prepare(sp.Saddle(*parts), tol=1e-8)
    result = prepared.update(b=xp.asarray([2.0, 2.0])).solve()
    assert result.solved
    np.testing.assert_allclose(to_host(result.x), [-1.0, -1.0], atol=1e-8)


# -- results -----------------------------------------------------------------------------------------------------------


def test_a_result_is_complete_though_it_is_made_in_parts(tmp_path):
    f = quadratic(np.random.default_rng(9))
    fresh = sp.solve(f, tol=1e-9, method="direct")
    prepared = sp.prepare(f, tol=1e-9)
    result = prepared.solve()
    assert prepared.result is result
    assert result.to_dict().keys() == fresh.to_dict().keys()
    assert result.provenance.keys() == fresh.provenance.keys()
    assert result.provenance["method"] == fresh.provenance["method"]
    assert len(result.history) == 1
    assert result.history[0].distance == result.certificate.distance
    assert len(sp.prepare(f, history=False).solve().history) == 0
    assert "certified distance" in repr(prepared.solve())
    assert result.cite() == fresh.cite()
    copies = [pickle.loads(pickle.dumps(prepared.solve())), copy.copy(prepared.solve()), replace(prepared.solve())]
    for other in (*copies, copy.deepcopy(prepared.solve())):
        assert other.solved
        assert module.NOTE in other.message
        np.testing.assert_allclose(other.x, result.x, atol=2e-9)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = prepared.solve().nothing
    with pytest.raises(AttributeError):
        prepared.solve().x = 3
    prepared.solve().save(tmp_path / "run.npz")
    assert sp.load_result(tmp_path / "run.npz").solved


def test_what_is_kept_is_said():
    assert "factors" in repr(sp.prepare(quadratic(np.random.default_rng(10))))
    assert "last answer" in repr(sp.prepare(own_problem()))
