"""Products in compensated arithmetic on a GPU, compared with exact rational arithmetic."""

from __future__ import annotations

import math

import numpy as np
import pytest
from draws import SEED
from test_compensated import shares

import saddlepoint as sp
from saddlepoint.parts.coupling import triton_dot2
from saddlepoint.parts.coupling.triton_launch import available, torch

gpu = pytest.mark.skipif(not available(), reason="needs PyTorch, Triton and a CUDA GPU")
SHAPES = [(1, 1), (5, 7), (300, 3), (130, 129), (9, 1000), (2, 9001), (1, 20_000)]


@pytest.mark.parametrize("by_rows", [True, False])
@pytest.mark.parametrize(("m", "n"), [*SHAPES, (40_000, 4_000), (1, 10**7), (100, 500_000)])
def test_parts_cover_all_columns_and_none_is_empty(m, n, by_rows):
    found = triton_dot2.parts(m, n, by_rows)
    assert found.columns * found.tiles * (found.number - 1) < n <= found.columns * found.tiles * found.number
    assert found.additions >= found.tiles + math.log2(found.columns) + found.number - 1


def ill_conditioned(rng, m, n, spread):
    """Rows whose sums nearly cancel, with entries of very different sizes."""
    A = rng.standard_normal((m, n)) * 10.0 ** rng.uniform(-spread, spread, (m, n))
    y = rng.standard_normal(n) * 10.0 ** rng.uniform(-spread, spread, n)
    half = n // 2
    A[:, half : 2 * half] = -A[:, :half]
    y[half : 2 * half] = y[:half] * (1.0 + 2.0**-50 * rng.integers(0, 3, half))
    return A, y


@gpu
@pytest.mark.gpu
@pytest.mark.parametrize("place", ["rows", "columns", "padded rows", "padded columns"])
@pytest.mark.parametrize("dtype", ["float64", "float32", "bfloat16"])
@pytest.mark.parametrize(("m", "n"), SHAPES)
def test_the_error_is_within_its_bound_of_exact_arithmetic(m, n, dtype, place):
    rng = np.random.default_rng(SEED)
    for spread in (0.0, 3.0, 12.0) if n < 1000 else (12.0,):
        A, y = ill_conditioned(rng, m, n, spread)
        stored = torch.asarray(A, device="cuda").to(getattr(torch, dtype))
        A = stored.double().cpu().numpy()
        if place == "columns":
            stored = stored.T.contiguous().T
        elif place == "padded rows":
            stored = torch.nn.functional.pad(stored, (0, 13))[:, :n]
        elif place == "padded columns":
            stored = torch.nn.functional.pad(stored.T, (0, 5))[:, :m].T
        found = triton_dot2.dot2(stored, torch.asarray(y, device="cuda"))
        for error, bound in shares(A, y, type(found)(*(part.cpu().numpy() for part in found))):
            assert error <= 1.0
            assert bound <= 1e-20 * max(n, 1000)


@gpu
@pytest.mark.gpu
def test_products_that_underflow_or_overflow_are_within_their_bounds():
    A = np.array([[1e-200, 3e-170, 1.0], [2.0**-1074, 2.0**-600, 0.0], [0.0, 0.0, 0.0], [1e200, 1.0, 1.0]])
    y = np.array([1e-150, 1e-160, 1e-300])
    found = triton_dot2.dot2(torch.asarray(A, device="cuda"), torch.asarray(y, device="cuda"))
    for error, _ in shares(A, y, type(found)(*(part.cpu().numpy() for part in found))):
        assert error <= 1.0
    huge = triton_dot2.dot2(torch.asarray([[1e200, 1.0]], device="cuda").double(), torch.tensor([1e200, 1.0]).cuda())
    assert not float(huge.error[0]) < math.inf  # nothing is proven about it


@gpu
@pytest.mark.gpu
@pytest.mark.parametrize("library", ["torch", "jax"])
def test_a_certificate_on_a_gpu_proves_what_one_in_numpy_proves(library):
    if library == "jax":
        pytest.importorskip("jax").config.update("jax_enable_x64", True)
    xp = pytest.importorskip("jax.numpy" if library == "jax" else library)
    rng = np.random.default_rng(SEED)
    m, n = 600, 400
    A, b, c = rng.standard_normal((m, n)), rng.standard_normal(m), rng.standard_normal(n)
    x, y = 1e6 * rng.standard_normal(m), rng.standard_normal(n)

    def certified(asarray):
        f = sp.Saddle(sp.Quadratic(2.0, asarray(b)), sp.Quadratic(3.0, asarray(c)), asarray(A))
        return f.certificate(asarray(x), asarray(y)), f.certificate(asarray(x), asarray(y), tol=0.0)

    there = certified((lambda v: xp.asarray(v, device="cuda")) if library == "torch" else xp.asarray)
    here = certified(lambda v: v)
    for on_gpu, on_cpu in zip(there, here, strict=True):
        assert on_gpu.distance == pytest.approx(on_cpu.distance, rel=1e-6)
    assert there[1].distance <= there[0].distance
