"""Gradients of functions written in PyTorch or JAX."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

from saddlepoint.ground.arrays import Array, is_foreign
from saddlepoint.ground.errors import ProblemError


class Differentiated:
    """x -> the gradient of ``fun`` at x, by the library that x belongs to."""

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
