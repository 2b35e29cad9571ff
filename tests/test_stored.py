"""Steps on a copy of A in a lower precision, and certificates that are as true as without it."""

import numpy as np
import pytest
from cases import case
from reference import distance, saddle_point
from test_arrays import LIBRARIES, moved

import saddlepoint as sp
from saddlepoint.generators import random_logistic, random_quadratic
from saddlepoint.stored import Stored, narrowed


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


def test_where_low_precision_gains_nothing_the_run_switches_and_says_so():
    """At |A|/sqrt(mu_x mu_y) = 1e9 the rounding of A to float32 is no small change."""
    f = random_quadratic(12, 10, 10, 10, 1e9, seed=1)
    plain = sp.solve(f, tol=1e-3)
    result = sp.solve(f, tol=1e-3, storage="float32")
    assert plain.solved
    assert result.solved, result
    assert "A in float32 gained no more, then A itself" in result.message


def test_a_budget_holds_across_rounds():
    f = random_logistic(30, 20, 1000, 500, 300, seed=3)
    result = sp.solve(f, method="lpd-gs", tol=1e-11, storage="float32", max_calls=300)
    assert result.status == sp.Status.OUT_OF_CALLS
    assert max(result.calls.values()) <= 300


@pytest.mark.parametrize("library", ["torch", "jax"])
def test_bfloat16(library):
    try:
        xp = LIBRARIES[library]()
    except ImportError as error:
        pytest.skip(str(error))
    f, xs, ys = case("logistic")
    result = sp.solve(moved(f, xp), method="lpd-gs", tol=1e-6, storage="bfloat16")
    assert result.solved, result
    assert distance(np.asarray(result.x), np.asarray(result.y), xs, ys) <= 1e-6


def test_norm_of_the_copy():
    A = sp.as_coupling(np.random.default_rng(0).standard_normal((9, 7)))
    exact = np.linalg.norm(narrowed(A, "float32").A.astype(float), 2)
    norm = narrowed(A, "float32").norm_estimate
    assert norm.lower <= exact <= norm.upper


def test_rounds():
    f = random_quadratic(6, 5, 10, 10, 10, seed=1)
    stored = Stored(f, "float32")
    assert [stored.over(d) for d in (1.0, 0.5, 0.2, 0.009)] == [False, False, False, True]
    assert not stored.stalled
    assert [stored.over(0.0085) for _ in range(3)] == [False, False, True]
    assert stored.stalled


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
