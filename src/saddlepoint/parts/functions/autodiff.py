"""Derivatives of functions written in PyTorch or JAX, and oracles whose answers require no gradients."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from functools import cached_property
from typing import TYPE_CHECKING, Any

from saddlepoint.ground.arrays import Array, detached, is_foreign
from saddlepoint.ground.errors import ProblemError
from saddlepoint.ground.recording import is_recording
from saddlepoint.parts.functions.given_constants import known
from saddlepoint.parts.simple.base import Simple
from saddlepoint.parts.simple.blocks import Blocks
from saddlepoint.parts.simple.rescaled import Rescaled

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
    return f.replace(
        grad=Detached(f.grad),
        value=_detached(f.value),
        prox=Detached(f.prox) if f.has_prox else None,
        hessian=_detached(f.hessian),
        hvp=_detached(f.hvp),
        restrict=f.restrict,
        trusted=f.trusted,
        accuracy=known(f.accuracy),
        rounding=_detached(f.rounding),
        compensated=_detached(f.compensated),
        simple=None if f.simple is None else term_without_gradients(f.simple),
        prox_of_sum=_detached(f.prox_of_sum),
    )


def term_without_gradients(p: Simple) -> Simple:
    """The simple function p whose answers do not require gradients; a ready-made one has no tensors that do."""
    if p.structured:
        return p
    other = copy(p)
    if isinstance(other, Blocks):
        other.blocks = [(start, stop, term_without_gradients(q)) for start, stop, q in other.blocks]
    elif isinstance(other, Rescaled):
        other.p = term_without_gradients(other.p)
    else:  # methods of a subclass are replaced, and the functions that were given to the class itself
        given = {name: _detached(getattr(p, name)) for name in ("_value", "_conjugate")}
        vars(other).update(given, prox=Detached(p.prox), project=Detached(p.project))
    return other


def _detached(oracle: Callable[..., Any] | None) -> Detached | None:
    return None if oracle is None else Detached(oracle)


class Differentiated:
    """The function x -> gradient of ``fun`` at x, computed by the library that x belongs to."""

    def __init__(self, fun: Callable[[Any], Any]) -> None:
        self.fun = fun

    def __call__(self, x: Array) -> Array:
        """The gradient at x."""
        if hasattr(x, "requires_grad"):
            return self._by_torch(x)
        if _is_jax(x):
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


def _is_jax(x: Any) -> bool:
    """Whether x is an array of JAX, or a symbol that it traces."""
    return is_foreign(x) and type(x).__module__.partition(".")[0] in ("jax", "jaxlib")


# Raised by gradients that PyTorch or JAX cannot differentiate, because other code computes them.
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
        if _is_jax(x):
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
            self.gradient: Any = grad.recorded(self.x) if isinstance(grad, Differentiated) else grad(self.x)
        self(0.0 * x.detach())  # an error shows here: a gradient that was computed elsewhere has no record

    def __call__(self, u: Any) -> Array:
        """H(x) u."""
        import torch

        given = u.to(self.gradient.dtype)
        (product,) = torch.autograd.grad(self.gradient, self.x, given, retain_graph=True)
        found: Any = product.detach().to(u.dtype)
        return found  # type: ignore[no-any-return]


def _jax_product(grad: Callable[[Any], Any], x: Any) -> Callable[[Array], Array]:
    import jax

    _, times = jax.linearize(grad, x)
    product: Callable[[Array], Array] = jax.jit(lambda u: times(u.astype(x.dtype)).astype(u.dtype))
    product(0.0 * x)
    return product
