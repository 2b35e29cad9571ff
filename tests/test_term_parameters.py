"""Layers: gradients with respect to the parameters of simple terms, against finite differences."""

import numpy as np
import pytest
from differentiation import check_gradients_of_jax, tensors

import saddlepoint as sp

GROUPS = [0, 0, 1, 1, 1, 2, 2]
CENTER = 0.05 * np.ones(7)
TERMS = {
    "l1": (sp.L1, [0.05]),
    "l1, a weight each": (sp.L1, [np.linspace(0.02, 0.1, 7)]),
    "box": (sp.Box, [-0.1, 0.1]),
    "box, bounds each": (sp.Box, [-0.1 * np.ones(7), 0.1 * np.ones(7)]),
    "half a box": (lambda b: sp.Box(-np.inf, b), [0.1]),
    "l1 and box": (lambda w, b: sp.L1(w) + sp.Box(-0.1, b), [0.02, 0.1]),
    "two boxes": (lambda a, b: sp.Box(-1.0, a) + sp.Box(-0.2, b), [0.3 * np.ones(7), 0.1]),
    "ball": (sp.Ball, [0.2]),
    "ball around a center": (lambda r, c: sp.Ball(r, center=c), [0.2, CENTER]),
    "ball around zero": (lambda r, c: sp.Ball(r, center=c), [0.2, 0.0 * CENTER]),
    "l1 ball": (lambda r, c: sp.Ball(r, 1, c), [0.3, CENTER]),
    "maximum norm": (lambda r, c: sp.Ball(r, "inf", c), [0.1, CENTER]),
    "simplex": (sp.Simplex, [0.8]),
    "hyperplane": (sp.Hyperplane, [np.linspace(-1.0, 2.0, 7), 0.8]),
    "norm": (sp.Norm2, [0.05]),
    "groups": (lambda w: sp.Groups(GROUPS, w), [np.array([0.05, 0.04, 0.08])]),
    "some groups": (lambda w: sp.Groups([[6, 1], [0, 3]], w), [np.array([0.05, 0.04])]),
    "sparse groups": (lambda w, a: sp.Groups(GROUPS, w) + sp.L1(a), [0.05, 0.01]),
    "balls of groups": (lambda r: sp.GroupBalls([[6, 1], [0, 3]], r), [np.array([0.05, 0.04])]),
    "nuclear norm": (lambda w: sp.Blocks({range(6): sp.Nuclear((2, 3), w)}), [0.06]),
    "blocks": (lambda w, r: sp.Blocks({range(3): sp.L1(w), range(4, 7): sp.Ball(r)}), [0.05, 0.1]),
}
IN_JAX = ["l1 and box", "l1 ball", "sparse groups", "nuclear norm", "blocks"]  # compiling takes long


def data(array):
    rng = np.random.default_rng(3)
    D, E, A = rng.standard_normal((12, 7)), rng.standard_normal((12, 5)), 0.4 * rng.standard_normal((7, 5))
    return [array(part) for part in (D, np.sign(rng.standard_normal(12)), E, rng.standard_normal(12), A)]


def with_term(name, array):
    D, labels, E, t, _ = data(array)
    return lambda A, *parameters: sp.Saddle(
        sp.Logistic(D, labels, 0.3) + TERMS[name][0](*parameters), sp.LogCosh(E, t, 0.3) + sp.L1(0.02), A
    )


def with_factor(array):
    D, labels, E, t, _ = data(array)
    return lambda A, s: sp.Saddle(s * (sp.Logistic(D, labels, 0.3) + sp.L1(0.1)), sp.LogCosh(E, t, 0.3), A)


# -- PyTorch -----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("name", TERMS)
def test_gradients_of_the_parameters_of_terms_pass_gradcheck(torch, name):
    layer = sp.layer(with_term(name, torch.tensor), tol=1e-10)
    given = tensors(torch, [data(np.asarray)[-1], *TERMS[name][1]])
    assert torch.autograd.gradcheck(layer, given, eps=1e-5, atol=2e-5, rtol=1e-4, nondet_tol=1e-8, fast_mode=True)
    x, _ = layer(*given)
    x.sum().backward()
    assert layer.derivative.undecided == 0
    assert layer.derivative.bound < 1e-6
    assert any(part.grad.abs().max().item() > 1e-3 for part in given[1:])


def test_a_factor_scales_the_term_too(torch):
    layer = sp.layer(with_factor(torch.tensor), tol=1e-7)
    given = tensors(torch, [data(np.asarray)[-1], 0.7])
    assert torch.autograd.gradcheck(layer, given, eps=1e-4, atol=1e-4, rtol=1e-3, nondet_tol=1e-7, fast_mode=True)


AT_THE_EDGE = {
    "l1": (sp.L1, 0.0),
    "norm": (sp.Norm2, 0.0),
    "groups": (lambda w: sp.Groups(GROUPS, w), 0.0),
    "nuclear norm": (lambda w: sp.Blocks({range(6): sp.Nuclear((2, 3), w)}), 0.0),
    "a point": (lambda b: sp.Box(b, b), 0.1),
}


def slope_at_the_edge(name, array, differentiate):
    """The derivative of a function of the solution, and a difference quotient to the right."""
    D, labels, E, t, A = data(array)
    term, start = AT_THE_EDGE[name]

    def build(w):
        return sp.Saddle(sp.Logistic(D, labels, 0.3) + term(w), sp.LogCosh(E, t, 0.3), A)

    layer, ramp = sp.layer(build, tol=1e-10), array(np.arange(1.0, 8.0))

    def value(w):
        return (layer(w)[0] * ramp).sum()

    ends = [float(value(array(np.array(start + h)))) for h in (0.0, 1e-6)]
    return float(differentiate(value, start)), (ends[1] - ends[0]) / 1e-6


@pytest.mark.parametrize("name", AT_THE_EDGE)
def test_slopes_are_right_where_weights_are_zero_and_bounds_are_equal(torch, name):
    def differentiate(value, start):
        (w,) = tensors(torch, [start])
        return torch.autograd.grad(value(w), w)[0]

    found, quotient = slope_at_the_edge(name, torch.tensor, differentiate)
    assert abs(found) > 0.1
    assert found == pytest.approx(quotient, rel=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["l1", "a point"])
def test_slopes_are_right_where_weights_are_zero_and_bounds_are_equal_in_jax(jax, name):
    found, quotient = slope_at_the_edge(name, jax.numpy.asarray, lambda value, start: jax.grad(value)(start))
    assert found == pytest.approx(quotient, rel=1e-4)


def test_parameters_of_terms_in_a_batch_have_the_gradients_of_single_problems(torch):
    D, labels, *_ = data(torch.tensor)

    def build(w, r):
        return sp.Saddle(sp.Logistic(D, labels, 0.3) + sp.L1(w), sp.Quadratic(1.0) + sp.Ball(r), torch.eye(7))

    layer = sp.layer(build, in_dims=(0, None), tol=1e-9)
    w, r = tensors(torch, [[0.01, 0.05], 0.1])
    x, y = layer(w, r)
    assert layer.result.x.shape == (14,)  # solved together
    (x.sum() + (y * y).sum()).backward()
    slopes = []
    for k in range(2):
        one, two = tensors(torch, [w[k].item(), r.item()])
        x, y = sp.layer(build, tol=1e-9)(one, two)
        (x.sum() + (y * y).sum()).backward()
        assert w.grad[k].item() == pytest.approx(one.grad.item(), rel=1e-6)
        slopes.append(two.grad.item())
    assert r.grad.item() == pytest.approx(sum(slopes), rel=1e-6)


def test_wrong_parameters_are_refused_as_in_solve(torch):
    with pytest.raises(sp.ProblemError, match="weight of L1 is -1"):
        sp.layer(lambda w: sp.Saddle(sp.Quadratic(1.0) + sp.L1(w), sp.Quadratic(1.0), torch.eye(2)))(
            *tensors(torch, [-1.0])
        )
    with pytest.raises(sp.ProblemError, match=r"radius of Ball is .*; expected a positive number"):
        sp.layer(lambda r: sp.Saddle(sp.Quadratic(1.0) + sp.Ball(r), sp.Quadratic(1.0), torch.eye(2)))(
            *tensors(torch, [[1.0, 2.0]])
        )


# -- JAX ---------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("name", IN_JAX)
def test_gradients_of_the_parameters_of_terms_are_right_in_jax(jax, name):
    layer = sp.layer(with_term(name, jax.numpy.asarray), tol=1e-10)
    check_gradients_of_jax(jax, layer, [data(np.asarray)[-1], *TERMS[name][1]])


@pytest.mark.slow
def test_a_factor_scales_the_term_in_jax(jax):
    check_gradients_of_jax(jax, sp.layer(with_factor(jax.numpy.asarray), tol=1e-10), [data(np.asarray)[-1], 0.7])


@pytest.mark.slow
def test_second_derivatives_are_right_in_jax(jax):
    """The nearest point to -b in the ball of radius r is -r b/|b|."""
    xp = jax.numpy
    layer = sp.layer(
        lambda b, r: sp.Saddle(sp.Quadratic(1.0, b) + sp.Ball(r), sp.Quadratic(1.0), xp.zeros((2, 1))), tol=1e-10
    )
    b, r = xp.asarray([3.0, 4.0]), xp.asarray(2.0)
    found = jax.jit(jax.hessian(lambda b: layer(b, r)[0][0]))(b)
    expected = jax.hessian(lambda b: -r * b[0] / xp.sqrt(b @ b))(b)
    assert np.asarray(found) == pytest.approx(np.asarray(expected), abs=1e-8)
