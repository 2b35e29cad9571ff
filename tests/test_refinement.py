"""Steps on a copy of A in a lower precision, and certificates that are as true as without it."""

import numpy as np
import pytest
from cases import case
from libraries import in_library, load_library
from reference import distance, saddle_point

import saddlepoint as sp
from saddlepoint.problems.generators import random_logistic, random_quadratic
from saddlepoint.solving.refinement import Stored, narrowed


@pytest.mark.parametrize("method", ["auto", "lpd-gs", "condat-vu", "dippa", "anderson-imex", "extragradient"])
@pytest.mark.parametrize("make", [random_quadratic, random_logistic])
def test_float32_storage_reaches_what_float64_reaches(method, make):
    f = make(30, 20, 100, 50, 30, seed=3)
    result = sp.solve(f, method=method, tol=1e-9, storage="float32")
    assert result.solved, result
    assert result.x.dtype == np.float64
    assert distance(result.x, result.y, *saddle_point(f)) <= result.certificate.distance <= 1e-9


def test_the_copy_alone_would_not_do():
    f = random_quadratic(30, 20, 100, 50, 30, seed=3)
    low = sp.solve(sp.Saddle(f.g, f.h, sp.as_coupling(f.A.A.astype(np.float32).astype(np.float64))), tol=1e-12)
    assert f.certificate(low.x, low.y).distance > 1e-7


@pytest.mark.slow
def test_where_low_precision_gains_nothing_the_run_switches_and_says_so():
    """At |A|/sqrt(mu_x mu_y) = 1e9 the rounding of A to float32 is no small change."""
    f = random_quadratic(12, 10, 10, 10, 1e9, seed=1)
    plain = sp.solve(f, tol=1e-3)
    result = sp.solve(f, tol=1e-3, method="direct", storage="float32")
    assert plain.solved
    assert result.solved, result
    assert "A in float32 gained no more, then A itself" in result.message


def test_a_budget_holds_across_rounds():
    f = random_logistic(30, 20, 1000, 500, 300, seed=3)
    result = sp.solve(f, method="lpd-gs", tol=1e-11, storage="float32", max_calls=300)
    assert result.status == sp.Status.OUT_OF_CALLS
    assert max(result.calls.values()) <= 300


@pytest.mark.slow
@pytest.mark.parametrize("library", ["torch", "jax"])
def test_bfloat16(library):
    xp = load_library(library)
    f, xs, ys = case("logistic")
    result = sp.solve(in_library(f, xp), method="lpd-gs", tol=1e-6, storage="bfloat16")
    assert result.solved, result
    assert distance(np.asarray(result.x), np.asarray(result.y), xs, ys) <= 1e-6


def test_the_copy():
    A = np.random.default_rng(0).standard_normal((9, 7))
    copy = narrowed(sp.as_coupling(A), "float32")
    S = A.astype(np.float32).astype(float)
    exact = np.linalg.norm(S, 2)
    assert copy.norm_estimate.lower <= exact <= copy.norm
    x, y, e = np.arange(9.0), np.arange(7.0), np.ones(9)
    for found, expected in (
        (copy.mul(y), S @ y),
        (copy.tmul(x), S.T @ x),
        (copy.both(x, y)[1], S.T @ x),
        (copy.through(y, 0.5, e)[1], S.T @ (0.5 * S @ y + e)),
        (copy.T.mul(x), S.T @ x),
    ):
        assert found.dtype == np.float64
        np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_rounds():
    f = random_quadratic(6, 5, 10, 10, 10, seed=1)
    stored = Stored(f, "float32")
    at = np.ones(6), np.zeros(5)
    stored.begin(*at)
    assert stored.own_distance(*at) > 1.0
    assert [stored.over(*at, d, 10 * k) for k, d in enumerate((1.0, 0.5, 0.2, 0.009))] == [False, False, False, True]
    assert not stored.stalled
    assert [stored.over(*at, 0.0085, calls) for calls in (100, 129, 500)] == [False, False, True]
    assert stored.stalled


def test_a_round_is_over_when_its_own_problem_is_solved():
    f = random_quadratic(6, 5, 10, 10, 10, seed=1)
    stored = Stored(f, "float32")
    stored.S = sp.as_coupling(np.round(f.A.matrix(), 2))  # a coarse copy
    stored.begin(np.zeros(6), np.zeros(5))
    own = sp.solve(stored.problem(f, stored.S), tol=1e-9)
    distance = f.certificate(own.x, own.y).distance
    assert stored.own_distance(own.x, own.y) < 0.1 * distance  # the rest is the error of the copy
    assert [stored.over(own.x, own.y, distance, calls) for calls in (0, 1)] == [True, True]


def test_what_storage_refuses():
    f = random_quadratic(6, 5, 10, 10, 10, seed=1)
    for storage, sentence in (("float16", "storage is 'float16'; expected float32 or bfloat16"),
                              ("bfloat16", "which NumPy has not; use float32")):  # fmt: skip
        with pytest.raises(sp.ProblemError, match=sentence):
            sp.solve(f, storage=storage)
    single = sp.Saddle(sp.Quadratic(1.0), sp.Quadratic(1.0), np.eye(3, dtype=np.float32))
    with pytest.raises(sp.ProblemError, match="expected a lower precision than A's"):
        sp.solve(single, storage="float32")
    from scipy.sparse.linalg import aslinearoperator

    operator = sp.Saddle(sp.Quadratic(1.0), sp.Quadratic(1.0), aslinearoperator(np.eye(3)))
    with pytest.raises(sp.ProblemError, match="storage needs the entries of A"):
        sp.solve(operator, storage="float32")
