"""Gradients of functions written in PyTorch or JAX, and oracles whose answers require no gradients."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any

from saddlepoint.ground.arrays import Array, detached, is_foreign
from saddlepoint.ground.errors import ProblemError

if TYPE_CHECKING:
    from saddlepoint.parts.functions.smooth import Smooth


class Detached:
    """An oracle whose answers do not require gradients."""

    def __init__(self, oracle: Callable[..., Any]) -> None:
        self.oracle = oracle

    def __call__(self, *arguments: Any) -> Any:
        """The answer of the oracle, detached; of several arrays, each of them."""
        answer = self.oracle(*arguments)
        return tuple(map(detached, answer)) if isinstance(answer, tuple) else detached(answer)


def without_gradients(f: Smooth) -> Smooth:
    """The function f with oracles whose answers do not require gradients, also if its PyTorch tensors do."""
    value, hessian = f.value, f.hessian
    return f.replace(
        grad=Detached(f.grad),
        value=None if value is None else Detached(value),
        prox=Detached(f.prox) if f.has_prox else None,
        hessian=None if hessian is None else Detached(hessian),
        trusted=f.trusted,
        accuracy=None if math.isnan(f.accuracy) else f.accuracy,
        rounding=None if f.rounding is None else Detached(f.rounding),
        careful=None if f.careful is None else Detached(f.careful),
    )


class Differentiated:
    """The function x -> gradient of ``fun`` at x, computed by the library that x belongs to."""

    def __init__(self, fun: Callable[[Any], Any]) -> None:
        self.fun = fun

    def __call__(self, x: Array) -> Array:
        """The gradient at x."""
        if hasattr(x, "requires_grad"):
            return self._by_torch(x)
        if is_foreign(x) and type(x).__module__.partition(".")[0] in ("jax", "jaxlib"):
            gradient: Array = self._by_jax(x)
            return gradient
        raise ProblemError(
            f"from_value differentiates functions of PyTorch tensors or JAX arrays, and x is a {type(x).__name__}; "
            "give A as one of these, or the gradient to Smooth"
        )

    def _by_torch(self, x: Any) -> Array:
        import torch

        with torch.enable_grad():
            point = x.detach().requires_grad_(True)
            (gradient,) = torch.autograd.grad(self.fun(point), point)
        found: Array = gradient
        return found

    @cached_property
    def _by_jax(self) -> Any:
        import jax

        return jax.jit(jax.grad(self.fun))
