"""Steps on symbolic vectors equal plain steps. On a GPU a Triton kernel evaluates them, here a slow reference."""

import numpy as np
import pytest

import saddlepoint as sp
from saddlepoint.ground.states import arrays, static_part
from saddlepoint.methods.registry import method_names
from saddlepoint.parts.coupling.triton_launch import available
from saddlepoint.solving import fused_steps
from saddlepoint.solving.compiled import _step_of_few_kernels, compiled

torch = pytest.importorskip("torch", reason="needs PyTorch")


class Twin:
    """A slow substitute of the kernel, which computes one sum after the other and counts its launches."""

    launches = 0

    def __getitem__(self, grid):
        return self.combine

    def combine(self, inputs, outputs, factors, n, block):
        self.launches += 1
        rows = factors.reshape(len(outputs), len(inputs))
        for out, row in zip(outputs, rows, strict=True):
            out.copy_(sum(c * v for c, v in zip(row, inputs, strict=True)))


TERMS = {  # simple terms of x and of y; the second pair needs vectors of the device
    "none": (None, None),
    "l1 and probabilities": (sp.L1(0.1), sp.Simplex(0.5)),
    "weights and groups": (sp.L1(np.linspace(0.0, 0.3, 7)) + sp.Box(-0.2, 0.4), sp.Groups([0, 1, 1, 0, 2], 0.1)),
    "balls": (sp.Ball(0.5, center=np.linspace(-1.0, 1.0, 7)), sp.Ball(0.4, norm=1)),
    "blocks": (sp.Blocks([((0, 3), sp.Simplex()), ((4, 7), sp.Norm2(0.1))]), sp.Hyperplane(np.arange(1.0, 6.0), 0.3)),
}


def problem(terms="none"):
    rng = np.random.default_rng(0)
    g = sp.Quadratic(0.5, torch.asarray(rng.standard_normal(7))) + 2.0 * sp.LogCosh()
    h = sp.Quadratic(0.2, torch.asarray(rng.standard_normal(5))) + sp.LogCosh()
    p, q = TERMS[terms]
    g, h = g if p is None else g + p, h if q is None else h + q
    return sp.Saddle(g, h, torch.asarray(rng.standard_normal((7, 5))))


def alike():
    """Methods from gradients whose steps are all alike."""
    made = [sp.make_method(name) for name in method_names()]
    found = [m for m in made if m.needs.oracle == "gradients" and m.cost(m.normal_form(problem()).problem) is not None]
    return [m.label for m in found if static_part(started(m)[1]) == static_part(m.step(*started(m)))]


def with_terms():
    """These methods with every pair of terms that they take."""
    pairs = [(name, terms) for name in alike() for terms in TERMS]
    return [(name, terms) for name, terms in pairs if terms == "none" or not sp.make_method(name).needs.smooth]


def started(method, terms="none"):
    """The problem in the method's coordinates, and the state before the first step."""
    f = problem(terms)
    view = method.normal_form(f)
    return view.problem, method.init(view.problem, *view.to(f.space.zeros(7) + 1.0, f.space.zeros(5)))


@pytest.fixture
def twin(monkeypatch):
    twin = Twin()
    monkeypatch.setattr(fused_steps, "_combine", twin)
    monkeypatch.setattr(fused_steps, "AVAILABLE", True)
    monkeypatch.setattr(fused_steps, "torch", torch)
    return twin


@pytest.mark.parametrize(("name", "terms"), with_terms())
def test_steps_are_the_methods_own(twin, name, terms):
    method = sp.make_method(name)
    f, state = started(method, terms)
    step = _step_of_few_kernels(method, f, state, list(arrays(state)))
    assert step is not None
    leaves = list(arrays(state))
    for _ in range(3):
        state, leaves = method.step(f, state), step(leaves)
    for plain, formed in zip(arrays(state), leaves, strict=True):
        np.testing.assert_allclose(formed.numpy(), plain.numpy(), rtol=1e-12, atol=1e-13)


@pytest.mark.gpu
@pytest.mark.skipif(not available(), reason="needs PyTorch, Triton and a CUDA GPU")
@pytest.mark.parametrize("name", alike())
@pytest.mark.parametrize("shape", [(700, 500), (600, 600)])
def test_graphs_make_the_same_steps(name, shape):
    rng = np.random.default_rng(0)
    A, b, c = (torch.asarray(rng.standard_normal(size), device="cuda") for size in (shape, shape[0], shape[1]))
    f = sp.Saddle(sp.Quadratic(0.5, b) + 2.0 * sp.LogCosh(), sp.Quadratic(0.2, c) + sp.LogCosh(), A)
    method = sp.make_method(name)
    view = method.normal_form(f)
    before = method.init(view.problem, *view.to(b, c))
    state = method.step(view.problem, before)
    many = compiled(method, view.problem, before, state)
    assert many is not None
    torch.randn(10_000_000, device="cuda")  # overwrites memory that has been freed
    found = many(state, 37)
    for _ in range(37):
        state = method.step(view.problem, state)
    for plain, formed in zip(arrays(state), arrays(found), strict=True):
        np.testing.assert_allclose(formed.cpu(), plain.cpu(), rtol=1e-9, atol=1e-9 * float(abs(plain).max()))


@pytest.mark.gpu
@pytest.mark.skipif(not available(), reason="needs PyTorch, Triton and a CUDA GPU")
@pytest.mark.parametrize("terms", [terms for terms in TERMS if terms != "none"])
@pytest.mark.parametrize("name", ["condat-vu", "lpd", "lpd-gs", "ogda", "pdhg"])
def test_graphs_make_the_same_steps_with_simple_terms(name, terms):
    rng = np.random.default_rng(0)
    A, b, c = (torch.asarray(rng.standard_normal(size), device="cuda") for size in ((7, 5), 7, 5))
    p, q = TERMS[terms]
    f = sp.Saddle(sp.Quadratic(0.5, b) + 2.0 * sp.LogCosh() + p, sp.Quadratic(0.2, c) + sp.LogCosh() + q, A)
    method = sp.make_method(name)
    view = method.normal_form(f)
    before = method.init(view.problem, *view.to(b, c))
    state = method.step(view.problem, before)
    many = compiled(method, view.problem, before, state)
    assert many is not None
    found = many(state, 37)
    for _ in range(37):
        state = method.step(view.problem, state)
    for plain, formed in zip(arrays(state), arrays(found), strict=True):
        np.testing.assert_allclose(formed.cpu(), plain.cpu(), rtol=1e-9, atol=1e-9)


def test_a_step_launches_few_kernels(twin):
    method = sp.make_method("lpd")
    f, state = started(method)
    step = _step_of_few_kernels(method, f, state, list(arrays(state)))
    twin.launches = 0
    step(list(arrays(state)))
    assert twin.launches == 4  # the points of the two gradients, and what is new of x and of y


def test_what_is_no_combination_is_refused():
    v = fused_steps.term(torch.ones(3))
    for wrong in (lambda: v * v, lambda: v + 1.0, lambda: v - torch.ones(3), lambda: v @ v):
        with pytest.raises(TypeError):
            wrong()
