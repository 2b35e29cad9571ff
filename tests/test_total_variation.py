"""Total variation: answers against Clarabel, proven errors above the true ones, all kinds of data, invalid input."""

import cvxpy as cp
import numpy as np
import pytest
from scipy.ndimage import convolve1d
from scipy.sparse.linalg import LinearOperator

import saddlepoint as sp
from saddlepoint.apps import TotalVariation
from saddlepoint.apps.total_variation_start import one_dimension

RNG = np.random.default_rng(0)
PIECES = np.kron([[0.0, 1.0], [2.0, -1.0]], np.ones((4, 3)))
NOISY = PIECES + 0.3 * RNG.standard_normal(PIECES.shape)


def differences(x, axis):
    """The differences along one axis, with zeros at the end, as CVXPY writes them for a vector of entries."""
    index = np.arange(x.size).reshape(x.shape)
    here, there = (np.moveaxis(index, axis, 0)[part] for part in (slice(None, -1), slice(1, None)))
    K = np.zeros((x.size, x.size))
    K[here.ravel(), here.ravel()], K[here.ravel(), there.ravel()] = -1.0, 1.0
    return K


def reference(shape, weight, data, *, axes=None, isotropic=True, channels=1, extra=lambda x: 0.0, bounds=(), tol=1e-10):
    """min data(x) + weight TV(x) by Clarabel; ``shape`` has the channels first if there are any."""
    like = np.zeros(shape)
    x = cp.Variable(like.size)
    axes = range(like.ndim) if axes is None else axes
    fields = cp.vstack([differences(like, axis) @ x for axis in axes])
    if not isotropic:
        variation = cp.sum(cp.abs(fields))
    else:
        pixels = like.size // channels
        parts = [fields[i, c * pixels : (c + 1) * pixels] for i in range(len(axes)) for c in range(channels)]
        variation = cp.sum(cp.norm(cp.vstack(parts), 2, axis=0))
    problem = cp.Problem(cp.Minimize(data(x) + weight * variation + extra(x)), [bound(x) for bound in bounds])
    problem.solve(solver="CLARABEL", tol_gap_abs=tol, tol_gap_rel=tol, tol_feas=tol)
    return x.value.reshape(shape)


def assert_proven(found, exact, rms):
    """The answer is as near to the exact one as was asked for, and as it says (Clarabel is right to about 1e-7)."""
    assert found.solved, found
    error = np.sqrt(np.mean((found.image - exact) ** 2))
    assert error <= found.rms + 1e-6
    assert found.rms <= rms


def denoising(b):
    return lambda x: 0.5 * cp.sum_squares(x - b.ravel())


@pytest.mark.parametrize("isotropic", [True, False])
def test_denoising_is_the_solution_of_the_conic_program(isotropic):
    exact = reference(NOISY.shape, 0.2, denoising(NOISY), isotropic=isotropic)
    for rms in (1e-2, 1e-4):
        found = TotalVariation(NOISY, 0.2, isotropic=isotropic).solve(rms=rms)
        assert_proven(found, exact, rms)
    assert "rms error" in repr(found)


def test_volumes_are_denoised():
    b = RNG.standard_normal((4, 3, 5))
    exact = reference(b.shape, 0.2, denoising(b))
    assert_proven(TotalVariation(b, 0.2).solve(rms=1e-4), exact, 1e-4)


@pytest.mark.parametrize("axis", [0, 2, -1])
def test_channels_of_a_colour_image_share_their_edges(axis):
    b = np.stack([PIECES, 1.0 - PIECES, 0.5 * PIECES]) + 0.3 * RNG.standard_normal((3, *PIECES.shape))
    exact = reference(b.shape, 0.2, denoising(b), axes=(1, 2), channels=3, tol=1e-8)
    found = TotalVariation(np.moveaxis(b, 0, axis), 0.2, channel_axis=axis).solve(rms=1e-4)
    assert_proven(found, np.moveaxis(exact, 0, axis), 1e-4)


@pytest.mark.parametrize("seed", range(5))
def test_signals_are_solved_in_one_pass(seed):
    rng = np.random.default_rng(seed)
    b = np.repeat(rng.integers(-2, 3, 6).astype(float), 7) + 0.3 * rng.standard_normal(42)
    weight = float(10.0 ** rng.uniform(-2, 1))
    exact = reference(b.shape, weight, denoising(b))
    np.testing.assert_allclose(one_dimension(b, weight), exact, atol=1e-6)
    found = TotalVariation(b, weight).solve(rms=1e-6)
    assert_proven(found, exact, 1e-6)
    assert found.result.iterations == 0


def test_a_long_signal_has_the_optimality_conditions():
    """K'y = b - x, |y| <= weight, and y = weight sign(K x) where x jumps."""
    b = np.random.default_rng(2).standard_normal(2000).cumsum()
    x = TotalVariation(b, 3.0).solve(rms=1e-6).image
    y = np.cumsum(x - b)
    assert abs(y[-1]) <= 1e-9
    assert np.abs(y).max() <= 3.0 + 1e-9
    jump = np.abs(np.diff(x)) > 1e-9
    np.testing.assert_allclose(y[:-1][jump], 3.0 * np.sign(np.diff(x))[jump], atol=1e-8)


def test_missing_pixels_are_filled_in():
    mask = RNG.random(NOISY.shape) < 0.7
    mean = NOISY[mask].mean()
    exact = reference(
        NOISY.shape,
        0.2,
        lambda x: 0.5 * cp.sum_squares(cp.multiply(mask.ravel(), x - NOISY.ravel())) + 0.05 * cp.sum_squares(x - mean),
    )
    for unknown in (1e6, np.nan):
        damaged = np.where(mask, NOISY, unknown)
        assert_proven(TotalVariation(damaged, 0.2, mask=mask, ridge=0.1).solve(rms=1e-3), exact, 1e-3)
        default = TotalVariation(damaged, 0.2, mask=mask, ridge=0.1).solve()
        assert_proven(default, exact, 1e-3 * np.ptp(NOISY[mask]))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["array", "operator"])
def test_blurred_images_are_sharpened(kind):
    """The operator blurs the columns and leaves some of them out."""
    kernel, kept = np.array([0.25, 0.5, 0.25]), np.array([0, 1, 2, 4])

    def blur(x):
        return convolve1d(x.reshape(NOISY.shape), kernel, axis=0, mode="constant")[:, kept].ravel()

    def transposed(z):
        whole = np.zeros(NOISY.shape)
        whole[:, kept] = z.reshape(len(NOISY), len(kept))
        return convolve1d(whole, kernel, axis=0, mode="constant").ravel()

    B = np.column_stack([blur(e) for e in np.eye(NOISY.size)])
    operator = B if kind == "array" else LinearOperator(B.shape, matvec=blur, rmatvec=transposed, dtype=float)
    b = blur(NOISY).reshape(len(NOISY), len(kept))
    exact = reference(NOISY.shape, 0.1, lambda x: 0.5 * cp.sum_squares(B @ x - b.ravel()) + 0.025 * cp.sum_squares(x))
    found = TotalVariation(b, 0.1, operator=operator, ridge=0.05, shape=NOISY.shape).solve(rms=1e-3)
    assert_proven(found, exact, 1e-3)


def test_the_sparse_fused_lasso_with_bounds_is_that_of_cvxpy():
    b = np.repeat([0.0, 1.0, -1.0, 0.1], 6) + 0.2 * RNG.standard_normal(24)
    exact = reference(
        b.shape, 0.3, denoising(b), extra=lambda x: 0.2 * cp.norm1(x), bounds=[lambda x: x >= -0.4, lambda x: x <= 0.6]
    )
    found = TotalVariation(b, 0.3, l1=0.2, lower=-0.4, upper=0.6).solve(rms=1e-5)
    assert_proven(found, exact, 1e-5)
    assert found.image.min() >= -0.4
    assert (found.image == 0.0).any()


def test_without_a_start_the_methods_find_the_same_image():
    tv = TotalVariation(NOISY, 0.2)
    started = tv.solve(rms=1e-4)
    tv._known = None  # as for an operator
    assert_proven(tv.solve(rms=1e-4), started.image, 2e-4)


def test_a_run_that_is_cut_short_says_so():
    found = TotalVariation(NOISY, 0.2).solve(rms=1e-12, max_seconds=0.05)
    assert not found.solved
    assert found.rms > 1e-12
    assert "proven root mean square error" in found.message
    assert found.image.shape == NOISY.shape


BAD = [
    (lambda: TotalVariation(NOISY, 0.0), "weight is 0.0; expected a positive number"),
    (lambda: TotalVariation(1j * NOISY, 1.0), "image has dtype complex128; expected real numbers"),
    (lambda: TotalVariation(np.full((2, 2), np.nan), 1.0), "image holds numbers that are not finite"),
    (lambda: TotalVariation(np.zeros((0, 2)), 1.0), r"image has shape \(0, 2\); expected at least one pixel"),
    (lambda: TotalVariation(np.zeros((1, 1)), 1.0), "expected two pixels or more in one direction"),
    (lambda: TotalVariation(NOISY, 1.0, mask=NOISY > 0), "ridge is missing; with an operator or a mask"),
    (lambda: TotalVariation(NOISY, 1.0, mask=NOISY > 99, ridge=1.0), "mask is False everywhere"),
    (lambda: TotalVariation(NOISY, 1.0, mask=[True] * 5, ridge=1.0), r"mask has shape \(5,\); expected that of"),
    (lambda: TotalVariation(NOISY, 1.0, mask="all", ridge=1.0), "mask has dtype <U3; expected real numbers"),
    (lambda: TotalVariation([[1.0, 2.0], [3.0]], 1.0), "image is not an array of numbers"),
    (lambda: TotalVariation(NOISY, 1.0, channel_axis=2), "channel_axis is 2; expected an axis of the image, from -2"),
    (lambda: TotalVariation(NOISY, 1.0, channel_axis="first"), "channel_axis is 'first'; expected an axis"),
    (lambda: TotalVariation(NOISY, 1.0, operator=np.eye(48), ridge=1.0, shape=48), "shape is 48; expected a tuple"),
    (lambda: TotalVariation(NOISY, 1.0, operator=np.eye(48), ridge=1.0, shape=(-6, -8)), r"shape\[0\] is -6; expected"),
    (lambda: TotalVariation(NOISY, 1.0, ridge=1.0), "ridge is given for denoising; expected None"),
    (lambda: TotalVariation(NOISY, 1.0, operator=np.eye(3), ridge=1.0), r"operator has the shape \(3, 3\); expected 4"),
    (lambda: TotalVariation(NOISY, 1.0, operator=np.eye(48), mask=NOISY > 0), "both operator and mask are given"),
    (lambda: TotalVariation(NOISY, 1.0, shape=(48,)), "shape is given without an operator"),
    (lambda: TotalVariation(NOISY, 1.0).solve(rms=-1.0), "rms is -1.0; expected a positive number"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "sentence"), BAD)
def test_total_variation_refuses_invalid_input_in_a_sentence(call, sentence):
    with pytest.raises(sp.ProblemError, match=sentence):
        call()
