"""Derivatives of functions written in PyTorch or JAX, and oracles whose answers require no gradients."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any

from saddlepoint.ground.arrays import Array, detached, is_foreign
from saddlepoint.ground.errors import ProblemError
from saddlepoint.ground.recording import is_recording

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
        hvp=None if f.hvp is None else Detached(f.hvp),
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
            return self.recorded(x.detach().requires_grad_(True), create_graph=is_recording())

    def recorded(self, point: Any, create_graph: bool = True) -> Array:
        """The gradient at a tensor of PyTorch that requires gradients, so that it can be differentiated again."""
        import torch

        (gradient,) = torch.autograd.grad(self.fun(point), point, create_graph=create_graph)
        found: Array = gradient
        return found

    @cached_property
    def _by_jax(self) -> Any:
        import jax

        return jax.jit(jax.grad(self.fun))


NOT_DIFFERENTIABLE = (TypeError, AttributeError, RuntimeError, ValueError, NotImplementedError)


def differentiated_gradient(grad: Callable[[Any], Any], x: Array) -> Callable[[Array], Array] | None:
    """The function u -> H(x) u, by automatic differentiation of the gradient; None if that is impossible.

    Args:
        grad: the gradient, a function of PyTorch tensors or JAX arrays.
        x: the point.
    """
    while isinstance(grad, Detached):
        grad = grad.oracle
    try:
        if hasattr(x, "requires_grad"):
            return TorchProduct(grad, x)
        if is_foreign(x) and type(x).__module__.partition(".")[0] in ("jax", "jaxlib"):
            return _jax_product(grad, x)
    except NOT_DIFFERENTIABLE:  # the gradient was not computed by the library's own operations
        pass
    return None


class TorchProduct:
    """The function u -> H(x) u; the gradient at x is computed once."""

    def __init__(self, grad: Callable[[Any], Any], x: Any) -> None:
        import torch

        with torch.enable_grad():
            self.x = x.detach().requires_grad_(True)
            self.gradient = grad.recorded(self.x) if isinstance(grad, Differentiated) else grad(self.x)
        self(0.0 * x.detach())  # an error shows here: a gradient that was computed elsewhere has no record

    def __call__(self, u: Any) -> Array:
        """H(x) u."""
        import torch

        given = u.to(self.gradient.dtype)
        (product,) = torch.autograd.grad(self.gradient, self.x, given, retain_graph=True)
        found: Array = product.detach().to(u.dtype)
        return found


def _jax_product(grad: Callable[[Any], Any], x: Any) -> Callable[[Array], Array]:
    import jax

    _, times = jax.linearize(grad, x)
    product: Callable[[Array], Array] = jax.jit(lambda u: times(u.astype(x.dtype)).astype(u.dtype))
    product(0.0 * x)
    return product
