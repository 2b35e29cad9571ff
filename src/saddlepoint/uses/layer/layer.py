"""``layer``: a function of tensors that builds a saddle problem, as a function of tensors that returns its solution."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

from saddlepoint.ground.arrays import is_foreign
from saddlepoint.ground.errors import ProblemError
from saddlepoint.problems.saddle import Saddle
from saddlepoint.solving.derivatives import VJP
from saddlepoint.solving.result import Result

Build = Callable[..., Saddle]


def layer(build: Build, *, in_dims: Sequence[int | None] | int | None = None, **options: Any) -> Layer:
    """A layer that solves the problem that ``build`` makes of its tensors, and that PyTorch and JAX differentiate.

    ``x, y = sp.layer(build)(*tensors)`` is the saddle point of ``build(*tensors)``. Gradients are those of the saddle
    point, by one linear system (see ``Result.vjp``), for every tensor that ``build`` used: in A, in the data of g and
    h, in gradients of one's own, and as parameters of simple terms.

    Args:
        build: (*tensors) -> ``Saddle``. It is called again to differentiate, so it should depend on nothing else that
            changes. Weights of a loss of one's own are tensors too, and must be arguments of ``build``.
        in_dims: which of the tensors have a leading dimension of a batch: 0 for those that have, None for those that
            all problems share, as in ``vmap``; 0 alone says that all of them have. Without it there is one problem.
        **options: arguments of ``solve`` such as ``tol``. With JAX they are ``tol``, 1e-6 if left out, and
            ``max_steps``.

    With PyTorch, ``solve`` is called, and a problem that is not solved is an error. With JAX the whole layer is one
    program, a compiled loop that ends when the certified distance is at most ``tol``; it works inside ``jit``,
    ``grad``, ``vmap``, ``jvp`` and ``hessian``, and if the loop ends otherwise, the numbers that it returns are NaN.

    Example:
        >>> import jax, saddlepoint as sp
        >>> from jax import numpy as jnp
        >>> jax.config.update("jax_enable_x64", True)
        >>> solution = sp.layer(lambda A, b: sp.Saddle(sp.Quadratic(2.0, b), sp.Quadratic(1.0), A), tol=1e-9)
        >>> slope = jax.jit(jax.grad(lambda b: solution(jnp.eye(2), b)[0][0]))  # x* = -b/3
        >>> slope(jnp.array([1.0, 0.0])).round(6).tolist()
        [-0.333333, -0.0]
    """
    if not callable(build):
        raise ProblemError("build of layer is not a function; expected tensors -> Saddle")
    return Layer(build, in_dims, options)


class Layer:
    """A layer, made by ``layer``.

    Attributes:
        result: the last ``Result``, with PyTorch: its certificate is about the last solution. The problems of a batch
            are solved together where that is possible; then it is about all of them, with all x and all y joined.
        derivative: the last ``VJP``, with PyTorch: its bound is about the last gradient.
    """

    result: Result | None = None
    derivative: VJP | None = None

    def __init__(self, build: Build, in_dims: Sequence[int | None] | int | None, options: dict[str, Any]) -> None:
        self.build, self.in_dims, self.options = build, in_dims, options
        self._run: Any = None  # the function of the library whose tensors were given last
        self._library = ""

    def __call__(self, *tensors: Any) -> tuple[Any, Any]:
        """The saddle point (x, y) of the problem of these tensors; of a batch, with a leading dimension."""
        library = _library(tensors)
        if library != self._library:
            module = import_module(f"saddlepoint.uses.layer.with_{library}")
            self._run, self._library = module.make(self), library
        x, y = self._run(*tensors)
        return x, y

    def dims(self, count: int) -> tuple[int | None, ...] | None:
        """``in_dims`` for so many tensors; None if there is no batch."""
        if self.in_dims is None or self.in_dims == 0:
            return None if self.in_dims is None else (0,) * count
        given = (self.in_dims,) if isinstance(self.in_dims, int) else tuple(self.in_dims)
        if len(given) != count or any(dim not in (0, None) for dim in given) or 0 not in given:
            raise ProblemError(
                f"in_dims of layer is {self.in_dims!r} for {count} tensors; expected 0 or None for each of them, and 0 "
                "at least once"
            )
        return given

    def __getstate__(self) -> dict[str, Any]:
        """What a copy is made from; the compiled function, the last result and the last derivative are not copied."""
        return {"build": self.build, "in_dims": self.in_dims, "options": self.options}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]

    def __repr__(self) -> str:
        return f"Layer({getattr(self.build, '__name__', self.build)!s})"


def _library(tensors: tuple[Any, ...]) -> str:
    """The library of the tensors, "torch" or "jax"."""
    for tensor in tensors:
        name = type(tensor).__module__.partition(".")[0]
        if name == "torch" or hasattr(tensor, "requires_grad"):
            return "torch"
        if name in ("jax", "jaxlib") and (is_foreign(tensor) or "Tracer" in type(tensor).__name__):
            return "jax"
    for given in tensors:
        if isinstance(given, dict | list | tuple):
            raise ProblemError(
                f"a layer was given a {type(given).__name__}; expected tensors as separate arguments: layer(A, b) and "
                "build(A, b) instead of one argument with both"
            )
    raise ProblemError(
        "a layer was given no tensor of PyTorch or JAX; NumPy has no gradients: use result.vjp there, or convert the "
        "arrays"
    )
