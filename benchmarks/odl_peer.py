"""Total variation by ODL's primal-dual method, for ``benchmarks/nonsmooth.py``."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

Array = np.ndarray


def odl_solver(b: Array, weight: float, blur: Any = None, ridge: float = 0.0) -> Callable[[float], Array]:
    """ODL's primal-dual method with the steps of its examples; its tolerance is the number of steps.

    Without ``blur`` it denoises; the data term is one of x then, and otherwise one of blur x.
    """
    odl, terms = import_module("odl"), import_module("odl.functionals")
    space = odl.uniform_discr([0, 0], b.shape, b.shape)
    gradient = odl.Gradient(space, method="forward", pad_mode="symmetric")
    data = 0.5 * terms.L2NormSquared(space).translated(space.element(b))
    norms = weight * terms.GroupL1Norm(gradient.range, 2)

    def solve(steps: float) -> Array:
        x = space.zero()
        if blur is None:
            odl.solvers.pdhg(x, data, norms, gradient, niter=int(steps), tau=0.35, sigma=0.35)
            return np.asarray(x.data)
        both = odl.BroadcastOperator(blurring(odl, space, blur), gradient)
        small = 0.5 * ridge * terms.L2NormSquared(space)
        odl.solvers.pdhg(x, small, terms.SeparableSum(data, norms), both, niter=int(steps), tau=0.33, sigma=0.33)
        return np.asarray(x.data)

    return solve


def blurring(odl: Any, space: Any, blur: Any) -> Any:
    """A symmetric linear operator of pixels as one of ODL."""

    class Blurring(odl.Operator):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__(space, space, linear=True)

        def _call(self, x: Any) -> Any:
            return space.element((blur @ x.data.ravel()).reshape(space.shape))

        @property
        def adjoint(self) -> Any:
            return self

    return Blurring()
