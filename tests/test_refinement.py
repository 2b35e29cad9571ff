"""Steps on a copy of A in a lower precision, and certificates that are correct all the same."""

from itertools import pairwise

import numpy as np
import pytest
from cases import case
from libraries import in_library, load_library
from reference import distance, saddle_point
from tiers import slow_except

import saddlepoint as sp
from saddlepoint.parts.coupling.low_precision import low_precision
from saddlepoint.problems.generators import random_logistic, random_quadratic
from saddlepoint.problems.oracle import Meter, metered
from saddlepoint.problems.transforms import scaled_coupling


@pytest.mark.slow
@pytest.mark.parametrize(
    "method", slow_except(["auto", "lpd-gs", "condat-vu", "dippa", "anderson-imex", "extragradient"], "auto", "lpd-gs")
)
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
def test_a_copy_in_bfloat16_is_refined(library):
    xp = load_library(library)
    f, xs, ys = case("logistic")
    result = sp.solve(in_library(f, xp), method="lpd-gs", tol=1e-6, storage="bfloat16")
    assert result.solved, result
    assert distance(np.asarray(result.x), np.asarray(result.y), xs, ys) <= 1e-6


def test_the_copy_has_rounded_entries_and_a_proven_norm():
    A = np.random.default_rng(0).standard_normal((9, 7))
    copy = low_precision(sp.as_coupling(A), "float32")
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


@pytest.mark.slow
def test_storage_is_the_short_name_of_refined():
    f = random_quadratic(30, 20, 100, 50, 30, seed=3)
    short = sp.solve(f, method="lpd-gs", tol=1e-9, storage="float32")
    long = sp.solve(f, method=sp.Refined(sp.LPDGS(), "float32"), tol=1e-9)
    assert short.x.tobytes() == long.x.tobytes()
    assert short.calls == long.calls
    assert short.method == long.method == "refined-lpd-gs"
    assert short.provenance["storage"] == long.provenance["storage"] == "float32"


def corrections(method, f, steps):
    """The starts of the corrections, and the last state, of so many steps from zero."""
    state = method.init(f, np.zeros(f.shape[0]), np.zeros(f.shape[1]))
    starts = [state]
    for _ in range(steps):
        state = method.step(f, state)
        if state.x0 is not starts[-1].x0 and not state.exact:
            starts.append(state)
    return starts, state


def test_a_correction_begins_with_products_of_A_itself_and_shrinks_the_distance():
    f = random_quadratic(30, 20, 20, 20, 5, seed=3)
    starts, state = corrections(sp.Refined(sp.CondatVu()), f, 400)
    assert len(starts) >= 4
    assert not state.exact
    xs, ys = saddle_point(f)
    for before, after in pairwise(starts):
        assert (after.Ay0 == f.A.mul(after.y0)).all()
        assert (after.Atx0 == f.A.tmul(after.x0)).all()
        assert distance(after.x0, after.y0, xs, ys) <= after.start * (1.0 + 1e-9) + 1e-13
        assert after.start <= 0.5 * before.start


def test_a_correction_ends_when_its_own_problem_is_solved():
    """A coarse copy limits what a correction gains, and the next one asks its own problem for no more."""
    f = random_quadratic(30, 20, 20, 20, 5, seed=3)
    coarse = sp.as_coupling(np.round(f.A.matrix(), 2))
    f.A.__dict__["_low_precision"] = {"float32": coarse}
    starts, _ = corrections(sp.Refined(sp.CondatVu()), f, 400)
    gains = [after.start / before.start for before, after in pairwise(starts)]
    assert len(gains) >= 4
    assert all(0.01 < after.fall == 0.5 * gain for gain, after in zip(gains, starts[1:], strict=True) if gain > 0.02)


def test_a_copy_that_gains_nothing_is_given_up_for_A_itself():
    f = random_quadratic(30, 20, 20, 20, 5, seed=3)
    f.A.__dict__["_low_precision"] = {"float32": sp.as_coupling(2.0 * f.A.matrix())}  # not a copy of A
    _, state = corrections(sp.Refined(sp.CondatVu()), f, 400)
    assert state.exact
    assert distance(state.x, state.y, *saddle_point(f)) <= 1e-6
    assert sp.Refined(sp.CondatVu()).note(state) == "A in float32 gained no more, then A itself"


@pytest.mark.slow
def test_a_copy_that_was_given_up_is_in_the_provenance():
    f = random_quadratic(12, 10, 10, 10, 1e9, seed=1)
    result = sp.solve(f, tol=1e-3, method="direct", storage="float32")
    assert "then A itself" in result.message
    assert result.provenance["storage"] == "float32"


def test_one_copy_serves_all_views_of_a_coupling():
    f = random_quadratic(9, 7, 10, 10, 10, seed=1)
    once = low_precision(f.A, "float32")
    assert low_precision(f.A, "float32") is once
    meter = Meter()
    counted = low_precision(scaled_coupling(metered(f, meter).A, 3.0), "float32")
    np.testing.assert_allclose(counted.mul(np.ones(7)), 3.0 * once.mul(np.ones(7)))
    assert meter.calls["A"] == 1
    assert meter.counts.passes == 1


@pytest.mark.slow
@pytest.mark.parametrize("cut", [20, 90, 200])
def test_a_refined_run_goes_on_from_a_checkpoint(tmp_path, cut):
    f = random_logistic(30, 20, 100, 50, 30, seed=3)
    options = {"method": "lpd-gs", "tol": 1e-9, "storage": "float32"}
    whole = sp.solve(f, **options)
    sp.solve(f, max_calls=cut, checkpoint=tmp_path / "run", **options)
    again = sp.solve(f, checkpoint=tmp_path / "run", **options)
    assert again.provenance["resumed"] == 1
    assert again.x.tobytes() == whole.x.tobytes()
    assert again.calls == whole.calls


def test_storage_refuses_invalid_input_in_a_sentence():
    f = random_quadratic(6, 5, 10, 10, 10, seed=1)
    for storage, sentence in (("float16", "storage is 'float16'; expected float32 or bfloat16"),
                              ("bfloat16", "which NumPy does not have; use float32")):  # fmt: skip
        with pytest.raises(sp.ProblemError, match=sentence):
            sp.solve(f, storage=storage)
    single = sp.Saddle(sp.Quadratic(1.0), sp.Quadratic(1.0), np.eye(3, dtype=np.float32))
    with pytest.raises(sp.ProblemError, match="expected a lower precision than A's"):
        sp.solve(single, storage="float32")
    from scipy.sparse.linalg import aslinearoperator

    operator = sp.Saddle(sp.Quadratic(1.0), sp.Quadratic(1.0), aslinearoperator(np.eye(3)))
    with pytest.raises(sp.ProblemError, match="storage needs the entries of A"):
        sp.solve(operator, storage="float32")


@pytest.mark.parametrize("exponent", [-450, -200, 150, 450])
@pytest.mark.parametrize("method", ["lpd-gs", "direct"])
def test_copies_of_matrices_of_extreme_scale_are_scaled(exponent, method):
    """Entries near 1e-140 or 1e140 are no numbers of float32; the copy is divided by a power of two."""
    rng = np.random.default_rng(0)
    s = 2.0**exponent
    g, h = sp.Quadratic(s * np.ones(4), s * np.ones(4)), sp.Quadratic(s * np.ones(3), s * np.ones(3))
    A = rng.standard_normal((4, 3))
    result = sp.solve(sp.Saddle(g, h, s * A), tol=1e-8, method=method, storage="float32")
    plain = sp.solve(sp.Saddle(sp.Quadratic(1.0, np.ones(4)), sp.Quadratic(1.0, np.ones(3)), A), tol=1e-10)
    assert result.solved, result
    np.testing.assert_allclose(result.x, plain.x, atol=2e-8)


@pytest.mark.parametrize("calls", [0, 1, 2])
def test_a_run_that_ends_before_its_first_step_is_reported(calls):
    result = sp.solve(random_quadratic(5, 4, 10.0, 10.0, 5.0), method="lpd-gs", storage="float32", max_calls=calls)
    assert result.status == sp.Status.OUT_OF_CALLS


@pytest.mark.parametrize("scale", [2.0**150, 2.0**450])
def test_vectors_that_overflow_in_the_copy_are_left_to_A_itself(scale):
    rng = np.random.default_rng(0)
    b, d, A = scale * rng.standard_normal(4), scale * rng.standard_normal(3), rng.standard_normal((4, 3))
    f = sp.Saddle(sp.Quadratic(np.ones(4), b), sp.Quadratic(np.ones(3), d), A)
    for method in ("lpd-gs", "condat-vu", "auto"):
        result = sp.solve(f, method=method, tol=1e-8 * scale, storage="float32")
        assert result.solved, result


def test_variables_of_different_scale_that_overflow_in_the_copy_end_the_correction_alone():
    """x is in units of 2^150, y in units of 2^-150: a gradient that is not finite ends the correction, not the run."""
    s, A = 2.0**150, np.random.default_rng(0).standard_normal((4, 3))
    f = sp.Saddle(sp.Quadratic(s**-2 * np.ones(4), np.ones(4) / s), sp.Quadratic(s**2 * np.ones(3), np.full(3, s)), A)
    tol = 1e-8 * f.certificate(np.zeros(4), np.zeros(3)).distance
    assert sp.solve(f, tol=tol, method="lpd-gs", storage="float32").solved
