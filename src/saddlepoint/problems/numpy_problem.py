"""A problem of PyTorch on the CPU as the same problem of NumPy, on the same memory.

PyTorch takes several times as long as NumPy to start an operation, which is most of a run on small vectors. Dense
matrices, quadratic functions and risks become those of NumPy; any other function stays as it is written, and its
arguments and answers are passed on without a copy. So the numbers and the bounds on their rounding errors are those of
the problem.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np

from saddlepoint.ground.arrays import Array, is_foreign, to_host
from saddlepoint.parts.coupling import ArrayCoupling, Coupling, DenseCoupling
from saddlepoint.parts.functions import Entropy, LogSumExp, Risk
from saddlepoint.parts.functions.accuracy import StatedBounds
from saddlepoint.parts.functions.given_constants import known
from saddlepoint.parts.functions.quadratic import Quadratic
from saddlepoint.parts.functions.second_order import proven_L_of, quadratic_model
from saddlepoint.parts.functions.smooth import Smooth
from saddlepoint.problems.saddle import Saddle

SMALL = 1000  # most variables of a function whose Hessian is made from products with all unit vectors


def as_numpy_problem(f: Saddle) -> Saddle | None:
    """The problem f of PyTorch with arrays of NumPy; None if it is on a GPU or has parts that take tensors only."""
    space = f.space
    plain = type(f) is Saddle and f.columns is None and not f.estimated and type(f.A) is ArrayCoupling
    if not (plain and space.is_torch and space.on_host and f.A.dtype == space.dtype):
        return None
    terms = [function.simple for function in (f.g, f.h)]
    if not all(term is None or term.structured for term in terms):
        return None  # a prox that the caller wrote takes tensors
    if not space.is_float64 and any(type(function) is Smooth and function.space is None for function in (f.g, f.h)):
        return None  # certificates call it in float64, and it may need the dtype of its own tensors
    g, h = (in_numpy(function, size) for function, size in zip((f.g, f.h), f.shape, strict=True))
    return Saddle(g, h, to_host(f.A.matrix()))


def in_numpy(f: Smooth, n: int) -> Smooth:
    """A function of tensors as one of arrays of NumPy.

    Args:
        f: the function.
        n: its number of variables.
    """
    if f.simple is not None and f.before_term is not None and not f.domain:
        return in_numpy(f.before_term, n) + f.simple
    bounds = getattr(f.rounding, "function", f.rounding)  # within a JaxProgram
    if type(f) is Quadratic and f.mu >= 0.0 and f.accuracy == 0.0 and getattr(bounds, "__self__", None) is f:
        P, b = (part if part is None or isinstance(part, float) else _numbers(part) for part in (f.P, f.b))
        return Quadratic(P, b, mu=f.mu, L=f.L).replace(trusted=f.trusted)
    if isinstance(f, Risk | LogSumExp | Entropy) and f.space is None:
        return f  # without data it takes arrays of any library
    if isinstance(f, Risk) and type(f.D) in (type(None), ArrayCoupling):
        return _risk(f)
    passed = _Passed(f, n)
    found = Smooth(
        passed.on(f.grad),
        mu=known(f.mu),
        L=known(f.L),
        value=passed.on(f.value),
        prox=passed.on(f.prox) if f.has_prox else None,
        dim=f.dim,
        dtype=None if f.space is None else str(f.space.dtype).rpartition(".")[2],
        quadratic=f.quadratic,
        hessian=passed.matrix if f.quadratic and n <= SMALL else None,
        hessian_lipschitz=passed.on(f.hessian_lipschitz) if callable(f.hessian_lipschitz) else f.hessian_lipschitz,
        second_order=passed.model,
        trusted=f.trusted,
        accuracy=passed.on(f.rounding.bounds) if isinstance(f.rounding, StatedBounds) else known(f.accuracy),
        rounding=None if isinstance(f.rounding, StatedBounds) else passed.on(f.rounding),
        compensated=passed.on(f.compensated),
        simple=f.simple,
        prox_of_sum=passed.on(f.prox_of_sum),
        domain=f.domain,
    )
    found._proven_L = partial(proven_L_of, f)
    return found


def _risk(f: Risk) -> Risk:
    """A risk with data of PyTorch as the same risk with arrays of NumPy; its constants are not computed again."""
    offsets = {name: to_host(t) for name in ("t", "labels") if is_foreign(t := getattr(f, name, None))}
    return f.with_data(None if f.D is None else DenseCoupling(to_host(f.D.matrix())), **offsets)


class _Passed:
    """The functions of a ``Smooth`` of tensors, called with arrays of NumPy.

    Args:
        f: the function.
        n: its number of variables.
    """

    def __init__(self, f: Smooth, n: int) -> None:
        self.f, self.n = f, n

    def on(self, function: Callable[..., Any] | None) -> Any:
        """The function with arrays in the place of tensors; None if there is none."""
        return None if function is None else partial(_passed_on, function)

    def model(self, x: Array) -> Smooth:
        """The function u -> <u, H u>/2, where H is the Hessian at x."""
        return in_numpy(quadratic_model(self.f, _tensor(x)), self.n)

    def matrix(self, x: Array) -> Array:
        """The Hessian of a quadratic function, from its products with all unit vectors."""
        rows = np.stack([_passed_on(self.f.grad, row) for row in np.eye(self.n, dtype=x.dtype)])
        H = rows - _passed_on(self.f.grad, np.zeros(self.n, dtype=x.dtype))
        return np.asarray(0.5 * (H + H.T))


def _passed_on(function: Callable[..., Any], *arguments: Any) -> Any:
    answer = function(*(_tensor(part) if isinstance(part, np.ndarray) else part for part in arguments))
    if isinstance(answer, tuple):  # with a class of its own, such as Sum
        parts = [_numbers(part) for part in answer]
        return type(answer)(*parts) if hasattr(answer, "_fields") else tuple(parts)
    return _numbers(answer)


def _tensor(x: Array) -> Any:
    """The array as a tensor on the same memory; a copy if it is read-only or reversed, which tensors are not."""
    writable = x.flags.writeable and min(x.strides, default=0) >= 0
    return import_module("torch").from_numpy(x if writable else x.copy())


def _numbers(part: Any) -> Any:
    if isinstance(part, Coupling):
        part = part.matrix()
    return to_host(part) if is_foreign(part) else part
