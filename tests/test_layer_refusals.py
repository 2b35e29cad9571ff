"""Layers refuse what would silently get a wrong gradient or none: changed data, numbers taken out, hidden arrays."""

import copy
import pickle

import numpy as np
import pytest
from differentiation import tensors

import saddlepoint as sp


def build(A, b):
    return sp.Saddle(sp.Quadratic(1.0, b) + sp.Box(-0.3, 0.3), sp.LogCosh(l2=1.0), A)


def numbers():
    rng = np.random.default_rng(7)
    return 0.5 * rng.standard_normal((4, 3)), 0.2 * rng.standard_normal(4)


# -- PyTorch -----------------------------------------------------------------------------------------------------------

WRITES = {
    "in place": lambda A: A.mul_(2.0),
    "past the record": lambda A: A.data.mul_(2.0),
    "by NumPy": lambda A: np.multiply(A.numpy(), 2.0, out=A.numpy()),
}


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("batch", [False, True])
def test_data_that_change_before_the_gradient_are_refused(torch, write, batch):
    A, b = numbers()
    A = torch.tensor(A)
    for layer, given in (
        (sp.layer(build, in_dims=(None, 0) if batch else None), (A,)),
        (sp.layer(lambda b: build(A, b), in_dims=0 if batch else None), ()),
    ):
        (own,) = tensors(torch, [np.stack([b, -b]) if batch else b])
        x, _ = layer(*given, own)
        WRITES[write](A)
        with pytest.raises((sp.ProblemError, RuntimeError), match=r"written into|modified by an inplace"):
            x.sum().backward()


def test_data_of_a_function_that_change_before_the_gradient_are_refused(torch):
    A, b = (torch.tensor(part) for part in numbers())
    scale = torch.ones(4)
    own = sp.layer(lambda A: sp.Saddle(sp.Smooth(lambda x: x + scale * b, mu=1.0, L=1.0), sp.Quadratic(1.0), A))
    A.requires_grad_(True)
    x, _ = own(A)
    scale *= 2.0
    with pytest.raises(sp.ProblemError, match="written into after the run"):
        x.sum().backward()


def test_a_build_that_changes_is_refused(torch):
    A, b = numbers()
    (b,), A = tensors(torch, [b]), torch.tensor(A)
    layer = sp.layer(lambda b: build(A, b + 0.1 * torch.randn(4)))
    x, _ = layer(b)
    with pytest.raises(sp.ProblemError, match="another problem for the gradient than for the solution"):
        x.sum().backward()


@pytest.mark.parametrize("convert", [lambda w: w.detach(), lambda w: torch_free(w), lambda w: 0.5])
def test_a_tensor_whose_operations_are_not_recorded_is_refused(torch, convert):
    A, b = numbers()
    (w, b), A = tensors(torch, [0.5, b]), torch.tensor(A)
    layer = sp.layer(lambda w, b: sp.Saddle(sp.Quadratic(convert(w), b), sp.Quadratic(1.0), A))
    x, _ = layer(w, b)
    with pytest.raises(sp.ProblemError, match="by operations that PyTorch records"):
        x.sum().backward()
    x, _ = layer(w.detach(), b)
    x.sum().backward()
    assert b.grad is not None


def torch_free(w):
    """The number of a tensor."""
    return float(w.detach().numpy())


def test_transformations_of_torch_func_are_refused_where_build_uses_their_tensors(torch):
    A, b = (torch.tensor(part) for part in numbers())

    def solution(t):
        return sp.layer(lambda b: build(A, t * b))(b)[0].sum()

    for transformed in (torch.func.vmap(solution), torch.func.grad(lambda t: solution(t[0]))):
        with pytest.raises(sp.ProblemError, match=r"within torch\.func"):
            transformed(torch.ones(2))


def test_problems_of_a_batch_have_one_shape(torch):
    (k, b) = tensors(torch, [[2.0, 3.0], np.ones((2, 4))])
    layer = sp.layer(
        lambda k, b: sp.Saddle(sp.Quadratic(1.0, b[: int(k)]), sp.Quadratic(1.0), torch.eye(4)[: int(k)]), in_dims=0
    )
    with pytest.raises(sp.ProblemError, match="problem 1 of the batch of a layer has 3 x 4 variables"):
        layer(k, b)


@pytest.mark.parametrize("batch", [False, True])
def test_a_build_that_writes_into_its_argument_is_refused(torch, batch):
    A, b = (torch.tensor(part) for part in numbers())

    def doubled(b):
        with torch.no_grad():
            b.mul_(2.0)
        return build(A, b)

    layer = sp.layer(doubled, in_dims=0 if batch else None)
    with pytest.raises(sp.ProblemError, match=r"build of the layer writes into its argument 0, of shape .*clone"):
        layer(torch.stack([b, b]) if batch else b)
    with torch.inference_mode():
        layer(b.clone() if not batch else torch.stack([b, b]))  # such tensors have no record of writes


def test_a_layer_may_be_called_within_the_build_of_another(torch):
    A, b = numbers()
    (b,), A = tensors(torch, [b]), torch.tensor(A)
    inner = sp.layer(lambda c: build(A, c), tol=1e-10)
    outer = sp.layer(lambda c: sp.Saddle(sp.Quadratic(1.0, inner(c)[0]), sp.LogCosh(l2=1.0), A), tol=1e-10)
    assert torch.autograd.gradcheck(lambda c: outer(c), b, rtol=1e-5)


def test_subclasses_of_tensors_are_tensors(torch):
    class Labelled(torch.Tensor):
        pass

    A, b = numbers()
    A = torch.tensor(A)
    (plain,) = tensors(torch, [b])
    own = torch.tensor(b).as_subclass(Labelled).requires_grad_()
    layer = sp.layer(lambda b: build(A, b))
    for given in (plain, own):
        layer(given)[0].sum().backward()
    assert torch.equal(plain.grad, own.grad.as_subclass(torch.Tensor))


@pytest.mark.parametrize("pack", [dict, list, tuple])
def test_tensors_in_one_argument_are_refused(torch, pack):
    A, b = (torch.tensor(part) for part in numbers())
    given = {"A": A, "b": b} if pack is dict else pack([A, b])
    with pytest.raises(sp.ProblemError, match=f"was given a {pack.__name__}; expected tensors as separate arguments"):
        sp.layer(lambda data: build(*data))(given)


def test_copies_of_a_layer_are_new(torch):
    layer = sp.layer(build, tol=1e-9)
    A, b = tensors(torch, numbers())
    layer(A, b)[0].sum().backward()
    expected = b.grad.clone()
    for other in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        assert other.result is other.derivative is None
        b.grad = None
        other(A, b)[0].sum().backward()
        assert b.grad.tolist() == expected.tolist()
        assert other.result is not layer.result
        assert other.options == layer.options


def test_tensors_may_have_two_dtypes_and_batches_may_be_float32(torch):
    A, b = numbers()
    (wide,) = tensors(torch, [b])
    narrow = torch.tensor(A, dtype=torch.float32, requires_grad=True)
    exact = narrow.detach().double().requires_grad_(True)
    for given in (narrow, exact):
        sum(part.sum() for part in sp.layer(build, tol=1e-9)(given, wide)).backward()
    assert narrow.grad.dtype == torch.float32
    assert narrow.grad.numpy() == pytest.approx(exact.grad.numpy(), abs=1e-6)
    many = torch.tensor(np.stack([b, 2.0 * b]), dtype=torch.float32, requires_grad=True)
    layer = sp.layer(lambda b: build(narrow.detach(), b), in_dims=0, tol=1e-4)
    x, _ = layer(many)
    x.sum().backward()
    assert (x.dtype, many.grad.dtype, layer.result.x.shape) == (torch.float32, torch.float32, (8,))
    for k in range(2):
        wide.grad, wide.data = None, many.detach()[k].double()
        sp.layer(build, tol=1e-9)(exact.detach(), wide)[0].sum().backward()
        assert many.grad[k].numpy() == pytest.approx(wide.grad.numpy(), abs=1e-4)


def test_a_layer_may_have_several_maximisers(torch):
    rng = np.random.default_rng(2)
    A, B = tensors(torch, [rng.standard_normal((4, 3)), rng.standard_normal((4, 2))])
    b = torch.ones(4)
    layer = sp.layer(
        lambda A, B: sp.Saddle(
            sp.LogCosh(l2=1.0) + sp.Quadratic(1.0, b), [sp.LogCosh(l2=1.0), sp.Quadratic(1.0)], [A, B]
        ),
        tol=1e-11,
    )
    assert layer(A, B)[1].shape == (5,)
    assert torch.autograd.gradcheck(layer, (A, B), eps=1e-5, atol=1e-5, nondet_tol=1e-8, fast_mode=True)


# -- JAX ---------------------------------------------------------------------------------------------------------------


def hidden(jax, A, b):
    """A function of an array that ``build`` uses although it is no argument."""
    return lambda w: sp.layer(lambda b: sp.Saddle(sp.Quadratic(1.0, w * b), sp.Quadratic(1.0), A))(b)[0].sum()


@pytest.mark.slow
def test_arrays_that_are_no_arguments_are_refused_within_every_transformation(jax):
    A, b = map(jax.numpy.asarray, numbers())
    own, one = hidden(jax, A, b), jax.numpy.asarray(1.0)
    for transformed in (
        jax.jit(jax.grad(own)),
        jax.grad(jax.jit(own)),
        jax.jacfwd(own),
        jax.grad(jax.checkpoint(own)),
        jax.jit(jax.grad(lambda w: jax.vmap(lambda t: own(t * w))(b).sum())),
        jax.grad(lambda w: jax.lax.scan(lambda c, _: (c, own(w)), 0.0, None, length=2)[1].sum()),
        jax.jit(lambda w: jax.grad(lambda b: hidden(jax, A, b)(w))(b)),  # w is traced, and b is differentiated
    ):
        with pytest.raises(sp.ProblemError, match="is no argument of the layer; make it an argument"):
            transformed(one)
    assert float(jax.jit(own)(one)) == pytest.approx(float(own(one)))  # without derivatives nothing is lost


@pytest.mark.slow
def test_numbers_that_are_taken_out_of_arrays_are_refused(jax):
    A, b = map(jax.numpy.asarray, numbers())
    for g in (
        lambda b: sp.Quadratic(float(b[0]), b),
        lambda b: sp.Quadratic(2.0 if b[0] > 0.0 else 1.0, b),
        lambda b: sp.Smooth(lambda x: np.asarray(x) + b, mu=1.0, L=1.0),
    ):
        with pytest.raises(sp.ProblemError, match="takes numbers out of an array that JAX traces"):
            sp.layer(lambda b, g=g: sp.Saddle(g(b), sp.Quadratic(1.0), A))(b)
