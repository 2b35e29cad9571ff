"""Problems of PyTorch on the CPU as problems of NumPy: the same functions, the same certificates."""

import numpy as np
import pytest

import saddlepoint as sp
from saddlepoint.problems.numpy_problem import as_numpy_problem

torch = pytest.importorskip("torch")

M, N = 5, 4


def arrays(dtype):
    rng = np.random.default_rng(0)
    D, P = rng.standard_normal((7, M)), rng.standard_normal((M, M))
    return [
        np.asarray(a, dtype=dtype) for a in (D, P @ P.T + np.eye(M), rng.standard_normal((M, N)), rng.uniform(size=M))
    ]


FUNCTIONS = {
    "matrix": lambda D, P, b: sp.Quadratic(P, b),
    "diagonal and box": lambda D, P, b: sp.Quadratic(1.0 + b, b) + sp.Box(-0.1, 0.1),
    "multiple and l1": lambda D, P, b: 2.0 * sp.Quadratic(P, b) + sp.L1(0.1),
    "stated accuracy": lambda D, P, b: sp.Quadratic(P, b).replace(accuracy=1e-9),
    "logistic and simplex": lambda D, P, b: sp.Logistic(D, torch.sign(D[:, 0]), 0.1) + sp.Simplex(),
    "own": lambda D, P, b: sp.Smooth(lambda x: P @ x + torch.tanh(x) + b, mu=1.0, L=30.0),
    "value": lambda D, P, b: sp.Smooth.from_value(lambda x: 0.5 * (x @ P @ x) + b @ x, mu=1.0, L=30.0),
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_it_is_the_same_problem(name, dtype):
    D, P, A, b = (torch.tensor(a) for a in arrays(dtype))
    f = sp.Saddle(FUNCTIONS[name](D, P, b), sp.LogCosh(l2=0.5), A)
    g = as_numpy_problem(f)
    if name in ("own", "value") and dtype is np.float32:
        assert g is None  # the gradient multiplies tensors of float32
        return
    assert isinstance(g.A.matrix(), np.ndarray)
    assert (g.mu_x, g.L_x, g.mu_y, g.L_y) == (f.mu_x, f.L_x, f.mu_y, f.L_y)
    assert (g.dtype, g.g.trusted, g.assumes) == (np.dtype(dtype), f.g.trusted, f.assumes)
    x, y = (np.linspace(-0.1, 0.1, k).astype(dtype) for k in (M, N))
    x.setflags(write=False)  # as the points of results are
    of_f, of_g = f.certificate(torch.tensor(x), torch.tensor(y)), g.certificate(x, y)
    assert of_g.distance == pytest.approx(of_f.distance, rel=1e-5)
    assert g.g.grad(x[::-1]) == pytest.approx(f.g.grad(torch.tensor(x[::-1].copy())).numpy(), rel=1e-5)
    slope = [
        sp.solve(h, rtol=1e-4, max_calls=5000).vjp(v, None)
        for h, v in ((f, torch.arange(M).to(A.dtype)), (g, np.arange(M).astype(dtype)))
    ]
    assert slope[1].ux == pytest.approx(slope[0].ux.numpy(), abs=1e-2)
    assert slope[1].why == slope[0].why


def test_an_array_shares_its_memory():
    A, P = torch.eye(3), torch.eye(3)
    g = as_numpy_problem(sp.Saddle(sp.Quadratic(P), sp.Quadratic(1.0), A))
    A[0, 0], P[1, 1] = 5.0, 7.0
    assert g.A.matrix()[0, 0] == 5.0
    assert g.g.P.matrix()[1, 1] == 7.0


def test_problems_that_numpy_cannot_hold_are_left_to_pytorch():
    eye = torch.eye(3)
    own = sp.Simple(prox=lambda v, t: torch.clamp(v, 0.0, 1.0))
    assert as_numpy_problem(sp.Saddle(sp.Quadratic(1.0) + own, sp.Quadratic(1.0), eye)) is None
    assert as_numpy_problem(sp.Saddle(sp.Quadratic(1.0), sp.Quadratic(1.0), np.eye(3))) is None
    unknown = sp.Smooth(lambda x: x, mu=1.0, L=None)
    assert as_numpy_problem(sp.Saddle(unknown, sp.Quadratic(1.0), eye)) is None
