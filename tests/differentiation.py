"""Libraries that differentiate, and checks of their gradients through saddle points."""

import numpy as np
import pytest


@pytest.fixture
def torch():
    """PyTorch in float64."""
    library = pytest.importorskip("torch")
    before = library.get_default_dtype()
    library.set_default_dtype(library.float64)
    yield library
    library.set_default_dtype(before)


@pytest.fixture
def jax():
    """JAX in float64."""
    library = pytest.importorskip("jax")
    library.config.update("jax_enable_x64", True)
    return library


def tensors(torch, arrays, device="cpu"):
    """The arrays as tensors of float64 that require gradients."""
    return tuple(torch.tensor(np.asarray(a, dtype=float), device=device, requires_grad=True) for a in arrays)


def check_gradients_of_jax(jax, layer, given):
    """Gradients, and derivatives along directions, of a function of the solution, inside jit, against differences."""
    xp, h, rng = jax.numpy, 1e-5, np.random.default_rng(4)

    def loss(*arrays):
        x, y = layer(*arrays)
        return xp.sum(xp.sin(x)) + xp.sum(y * y)

    given = tuple(xp.asarray(a) for a in given)
    slopes = jax.jit(jax.grad(loss, argnums=tuple(range(len(given)))))(*given)
    along, value = jax.jit(lambda a, da: jax.jvp(loss, a, da)[1]), jax.jit(loss)
    for k, slope in enumerate(slopes):
        move = tuple(xp.asarray(rng.standard_normal(a.shape) + 0.0 if i == k else 0.0 * a) for i, a in enumerate(given))
        ends = [float(value(*(a + s * h * d for a, d in zip(given, move, strict=True)))) for s in (1.0, -1.0)]
        expected = pytest.approx((ends[0] - ends[1]) / (2.0 * h), rel=1e-5, abs=1e-6)
        assert float(xp.sum(slope * move[k])) == expected
        assert float(along(given, move)) == expected
