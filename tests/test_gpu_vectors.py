"""Vectors on a GPU: conjugate gradients and norms by Triton kernels give the answers of NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from draws import SEED

from saddlepoint.methods.resolvent import Start, by_cg
from saddlepoint.parts.coupling import as_coupling, triton_norms
from saddlepoint.parts.coupling.array import ArrayCoupling
from saddlepoint.parts.coupling.triton_launch import available, torch

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not available(), reason="needs PyTorch, Triton and a CUDA GPU"),
]


class Counted(ArrayCoupling):
    """A coupling that counts its calls of ``through``."""

    calls = 0

    def through(self, y, s=1.0, e=None):
        self.calls += 1
        return super().through(y, s, e)


def solved(asarray, A, start, a, accuracy):
    p, q, x, y = map(asarray, start)
    coupling = as_coupling(asarray(A))
    aAy, aAtx = (a * product for product in coupling.both(x, y))
    return by_cg(coupling, p, q, a, Start(x, y, aAy, aAtx), relative=accuracy, origin=(x, y))


@pytest.mark.parametrize("shape", [(1, 1), (70, 30), (30, 70), (3000, 1500), (5, 200_000)])
@pytest.mark.parametrize(("dtype", "error"), [("float64", 1e-9), ("float32", 1e-3)])
def test_conjugate_gradients_are_those_of_numpy(shape, dtype, error):
    rng = np.random.default_rng(SEED)
    m, n = shape
    A = rng.standard_normal(shape) / np.sqrt(m + n)
    start = [rng.standard_normal(k) for k in (m, n, m, n)]
    here = solved(np.asarray, A, start, 2.0, 0.01)
    there = solved(lambda v: torch.asarray(v, device="cuda").to(getattr(torch, dtype)), A, start, 2.0, 0.01)
    for mine, other in zip(here[:2], there[:2], strict=True):
        assert other.dtype == getattr(torch, dtype)
        assert np.linalg.norm(other.double().cpu().numpy() - mine) <= error * np.linalg.norm(mine)


def test_conjugate_gradients_leave_their_arguments_alone_and_are_the_same_twice():
    rng = np.random.default_rng(SEED)
    A = torch.asarray(rng.standard_normal((400, 300)), device="cuda")
    p, q, x, y = (torch.asarray(rng.standard_normal(k), device="cuda") for k in (400, 300, 400, 300))
    given = [v.clone() for v in (p, q, x, y)]
    coupling = as_coupling(A)
    aAy, aAtx = coupling.both(x, y)
    found = [by_cg(coupling, p, q, 1.0, Start(x, y, aAy, aAtx), relative=0.1, origin=(x, y)) for _ in range(2)]
    assert all(torch.equal(v, w) for v, w in zip((p, q, x, y), given, strict=True))
    assert all(torch.equal(v, w) for v, w in zip(found[0][:2], found[1][:2], strict=True))


def test_conjugate_gradients_at_the_solution_and_with_nan_end_at_once():
    A = Counted(torch.eye(5, dtype=torch.float64, device="cuda"))
    zero = torch.zeros(5, dtype=torch.float64, device="cuda")
    assert A.norm > 0.0  # its estimate is kept
    A.calls = 0
    for p in (zero, zero + float("nan")):
        by_cg(A, p, zero, 1.0, Start(zero, zero, zero, zero), relative=0.3, origin=(zero, zero))
    assert A.calls == 0


@pytest.mark.parametrize("dtype", ["float64", "float32", "bfloat16"])
@pytest.mark.parametrize("shape", [(1, 1), (257, 1031), (3, 30_000), (30_000, 3)])
def test_norms_of_rows_and_columns_are_those_of_numpy(shape, dtype):
    A = torch.asarray(np.random.default_rng(SEED).standard_normal(shape), device="cuda").to(getattr(torch, dtype))
    exact = np.linalg.norm(A.double().cpu().numpy(), axis=1)
    for stored in (A, A.T.contiguous().T):
        assert np.allclose(triton_norms.row_norms(stored).cpu().numpy(), exact, rtol=1e-13)


@pytest.mark.parametrize("scale", [1e200, 1e-200, 0.0])
def test_norms_whose_squares_overflow_or_underflow_are_left_to_plain_code(scale):
    A = scale * torch.asarray(np.random.default_rng(SEED).standard_normal((30, 20)), device="cuda")
    assert triton_norms.row_norms(A) is None
    exact = scale * np.linalg.norm((A / scale if scale else A).cpu().numpy(), axis=0)
    assert np.allclose(as_coupling(A).column_norms.cpu().numpy(), exact, rtol=1e-13)
