"""Tensors that require gradients: they may be given, and no answer requires gradients."""

import numpy as np
import pytest

import saddlepoint as sp
from saddlepoint.ground.arrays import detached
from saddlepoint.uses.batch.batch import Batch


class Tensor:
    """Something that requires gradients, as PyTorch's tensors do."""

    requires_grad = True

    def detach(self):
        return "detached"


def test_only_what_requires_gradients_is_detached():
    plain = np.ones(3)
    assert detached(plain) is plain
    assert detached(2.0) == 2.0
    assert detached(Tensor()) == "detached"


# -- with PyTorch ----------------------------------------------------------------------------------------------------


@pytest.fixture
def torch():
    return pytest.importorskip("torch")


@pytest.fixture
def tensor(torch):
    """NumPy arrays as tensors that require gradients."""
    return lambda array: torch.tensor(np.asarray(array), dtype=torch.float64, requires_grad=True)


pytestmark = pytest.mark.filterwarnings("error")  # PyTorch warns where a number is made of what requires gradients
rng = np.random.default_rng(0)
A, D, T, B = rng.standard_normal((5, 4)), rng.standard_normal((9, 4)), rng.standard_normal(9), rng.standard_normal(5)
LABELS = np.where(T > 0.0, 1.0, -1.0)
P = np.diag([1.0, 2.0, 1.5, 1.0, 3.0])


def ready(wrap):
    return {
        "quadratic": sp.Quadratic(wrap(P), wrap(B)),
        "diagonal": sp.Quadratic(wrap(np.diag(P)), wrap(B)),
        "sum": 2.0 * sp.LogCosh(t=wrap(B), l2=0.5) + sp.Quadratic(1.0, wrap(B)),
    }


def others(wrap):
    return {
        "least squares": sp.LeastSquares(wrap(D), wrap(T), 0.3),
        "logistic": sp.Logistic(wrap(D), wrap(LABELS), 0.3),
        "log-sum-exp": sp.LogSumExp(wrap(D), wrap(T), 0.3),
    }


def check_result(torch, f, expected, **options):
    result = sp.solve(f, tol=1e-7, **options)
    assert result.solved, result
    for found, truth in ((result.x, expected.x), (result.y, expected.y)):
        assert isinstance(found, torch.Tensor)
        assert not found.requires_grad
        np.testing.assert_allclose(found.numpy(), truth, atol=2e-7)
    with pytest.raises(RuntimeError, match="does not require grad"):
        result.x.sum().backward()


@pytest.mark.parametrize("g", ["quadratic", "diagonal", "sum"])
@pytest.mark.parametrize("h", ["least squares", "logistic", "log-sum-exp"])
def test_results_of_data_that_require_gradients_are_detached(torch, tensor, g, h):
    plain = sp.Saddle(ready(np.asarray)[g], others(np.asarray)[h], A)
    given = tensor(A)
    f = sp.Saddle(ready(tensor)[g], others(tensor)[h], given)
    check_result(torch, f, sp.solve(plain, tol=1e-9), x0=tensor(np.ones(5)), y0=tensor(np.ones(4)))
    assert given.requires_grad
    assert given.grad is None
    assert sp.check(f, tensor(np.ones(5))).ok
    assert f.certificate(tensor(np.ones(5)), tensor(np.ones(4))).distance < np.inf


@pytest.mark.parametrize("method", ["auto", "lpd-gs", "dippa", "condat-vu", "krylov", "anderson-condat-vu"])
def test_every_kind_of_method_returns_detached_results(torch, tensor, method):
    plain = sp.Saddle(sp.Quadratic(P, B), sp.Quadratic(2.0), A)
    f = sp.Saddle(sp.Quadratic(tensor(P), tensor(B)), sp.Quadratic(2.0), tensor(A))
    check_result(torch, f, sp.solve(plain, tol=1e-9), method=method)


def black_box(torch, weight, **more):
    """A function whose oracles answer with tensors that require gradients."""
    return sp.Smooth(
        lambda x: weight * x + 1.0,
        mu=1.0,
        **({"L": 3.0} | more),
        value=lambda x: 0.5 * x @ (weight * x) + x.sum(),
        prox=lambda v, t: (v - t) / (1.0 + t * weight),
        hessian=lambda x: torch.diag(weight),
        quadratic=True,
    )


@pytest.mark.parametrize("more", [{}, {"L": None}, {"trusted": True}])
@pytest.mark.parametrize("method", ["auto", "lpd-gs", "dippa"])
def test_gradients_of_ones_own_that_require_gradients_are_detached(torch, tensor, method, more):
    weight = tensor(np.diag(P))
    g = black_box(torch, weight, **more)
    assert g.grad(tensor(np.ones(5))).requires_grad
    plain = sp.Saddle(sp.Quadratic(np.diag(P), np.ones(5)), sp.Quadratic(2.0), A)
    f = sp.Saddle(g, sp.Quadratic(2.0), torch.tensor(A))
    check_result(torch, f, sp.solve(plain, tol=1e-9), method=method)
    ones = torch.ones(5, dtype=torch.float64)
    for answer in (f.g.grad(ones), f.g.prox(ones, 1.0), f.g.hessian(ones), f.g(ones)):
        assert not answer.requires_grad
    assert sp.check(f).ok
    combined = sp.Saddle(2.0 * g + g, sp.Quadratic(2.0), torch.tensor(A))
    assert not sp.solve(combined).x.requires_grad


def own_norm(torch, weight):
    """The weighted l1 norm, whose oracles answer with tensors that require gradients."""
    return sp.Simple(
        lambda v, t: torch.sign(v) * torch.relu(abs(v) - t * weight), value=lambda x: (weight * abs(x)).sum()
    )


TERMS = {
    "term": lambda g, p, whole: g + p,
    "block": lambda g, p, whole: g + sp.Blocks({range(0, 5): p}),
    "multiple": lambda g, p, whole: 2.0 * (0.5 * g + 0.5 * (sp.Quadratic(0.0) + p)),
    "prox of the sum": lambda g, p, whole: g.replace(simple=sp.L1(0.3), prox_of_sum=whole),
}


@pytest.mark.parametrize("name", TERMS)
def test_terms_of_ones_own_that_require_gradients_are_detached(torch, tensor, name):
    weight = tensor(np.full(5, 0.3))
    p, g = own_norm(torch, weight), sp.Smooth(lambda x: x + 1.0, mu=1.0, L=1.0)
    own = TERMS[name](g, p, lambda v, t: p.prox(v - t, t) / (1.0 + t))
    f = sp.Saddle(own, sp.Quadratic(2.0), torch.tensor(A))
    plain = sp.Saddle(sp.Quadratic(1.0, np.ones(5)) + sp.L1(0.3), sp.Quadratic(2.0), A)
    method = "apfb" if name == "prox of the sum" else "lpd-gs"
    check_result(torch, f, sp.solve(plain, tol=1e-9), method=method)
    answer = f.g.simple_prox(torch.ones(5, dtype=torch.float64), 1.0)
    assert not answer.requires_grad


def test_functions_made_from_a_value_are_detached(torch, tensor):
    weight = tensor(np.diag(P))
    g = sp.Smooth.from_value(lambda x: 0.5 * (weight * x * x).sum() + x.sum(), mu=1.0, L=3.0)
    plain = sp.Saddle(sp.Quadratic(np.diag(P), np.ones(5)), sp.Quadratic(2.0), A)
    f = sp.Saddle(g, sp.Quadratic(2.0), torch.tensor(A))
    check_result(torch, f, sp.solve(plain, tol=1e-9))
    assert isinstance(f.g(torch.ones(5, dtype=torch.float64)), float)


def test_results_of_batches_are_detached(torch, tensor):
    As = rng.standard_normal((3, 5, 4))
    problems = [sp.Saddle(sp.Quadratic(tensor(P), tensor(B)), sp.Quadratic(2.0), tensor(A)) for A in As]
    batch = Batch(sp.Quadratic(1.0, tensor(np.ones(15))), sp.Quadratic(2.0), tensor(As))
    for result in (*sp.solve_many(problems), *sp.solve_many(batch)):
        assert result.solved
        assert not result.x.requires_grad
        assert not result.y.requires_grad


def test_tensors_with_one_entry_are_taken_as_numbers(torch, tensor):
    g = sp.Quadratic(tensor(2.0))
    assert g.P == 2.0
    assert sp.Huber(l2=tensor(0.5)).mu == 0.5
