"""Array libraries other than NumPy, and problems whose arrays belong to one of them."""

import importlib

import numpy as np
import pytest

import saddlepoint as sp


def jax():
    module = importlib.import_module("jax")
    module.config.update("jax_enable_x64", True)
    return importlib.import_module("jax.numpy")


def cupy():
    module = importlib.import_module("cupy")
    if module.cuda.runtime.getDeviceCount() == 0:
        raise ImportError("no GPU")
    return module


class OnGpu:
    """PyTorch whose arrays are on the GPU."""

    def __init__(self):
        self.torch = importlib.import_module("torch")
        if not self.torch.cuda.is_available():
            raise ImportError("no GPU")

    def __getattr__(self, name):
        return getattr(self.torch, name)

    def asarray(self, data, dtype=None):
        return self.torch.asarray(data, dtype=dtype, device="cuda")


class OnOtherDevice:
    """array-api-strict whose arrays are on a device that NumPy cannot read."""

    def __init__(self):
        self.strict = importlib.import_module("array_api_strict")

    def __getattr__(self, name):
        return getattr(self.strict, name)

    def asarray(self, data, dtype=None):
        return self.strict.asarray(data, dtype=dtype, device=self.strict.Device("device1"))


LIBRARIES = {  # functions that import the library, or raise if it or its device is not there
    "array-api-strict": lambda: importlib.import_module("array_api_strict"),
    "jax": jax,
    "torch": lambda: importlib.import_module("torch"),
    "torch on a GPU": OnGpu,
    "cupy": cupy,
}


TIERS = {"jax": "slow", "torch on a GPU": "gpu", "cupy": "gpu"}  # JAX compiles each operation for each shape


def load_library(name):
    """The library of this name; the test is skipped if it is not installed or has no device."""
    try:
        return LIBRARIES[name]()
    except Exception as error:
        pytest.skip(f"{name} is not available: {error}")


def marks(name):
    return [getattr(pytest.mark, TIERS[name])] if name in TIERS else []


@pytest.fixture(params=[pytest.param(name, marks=marks(name)) for name in LIBRARIES])
def xp(request):
    return load_library(request.param)


def in_every_library(name, values, few, quick=()):
    """Parametrise ``xp`` and another argument: with JAX, which compiles each operation, it takes only a few values.

    Values that are not quick are marked slow.
    """
    pairs = []
    for library in LIBRARIES:
        for value in few if library == "jax" else values:
            slow = [] if value in quick else [pytest.mark.slow]
            pairs.append(pytest.param(library, value, marks=[*marks(library), *slow]))
    return pytest.mark.parametrize(("xp", name), pairs, indirect=["xp"])


def in_library(f, xp, dtype="float64"):
    """The same problem with arrays of another library."""
    kind = getattr(xp, dtype)

    def array(a):
        return xp.asarray(np.ascontiguousarray(a).tolist(), dtype=kind)

    def function(g):
        if isinstance(g, sp.Quadratic):
            P = g.P if isinstance(g.P, float) else array(g.P.matrix() if hasattr(g.P, "matrix") else g.P)
            return sp.Quadratic(P, None if g.b is None else array(g.b))
        D = None if g.D is None else array(g.D.matrix())
        t = None if g.t is None else array(g.t)
        if isinstance(g, sp.Logistic | sp.SmoothedHinge):
            return type(g)(D, array(g.labels), g.l2)
        if isinstance(g, sp.LogSumExp):
            return sp.LogSumExp(D, t, g.l2, g.tau)
        return type(g)(D, t, g.l2, **({"delta": g.delta} if isinstance(g, sp.Huber) else {}))

    return sp.Saddle(function(f.g), function(f.h), array(f.A.matrix()))
