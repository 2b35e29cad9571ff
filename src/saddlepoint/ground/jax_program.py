"""Functions of arrays whose operations JAX compiles into one program.

Without this, JAX compiles and starts each operation by itself, which takes longer than the arithmetic.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from importlib import import_module
from typing import Any

from saddlepoint.ground.arrays import Array, is_jax

NOT_TRACEABLE = (TypeError, AttributeError, RuntimeError, ValueError)  # raised by code that reads numbers of an array


@cache
def jitted(function: Callable[..., Any], *static: int) -> Callable[..., Any]:
    """A function of arrays of JAX, compiled by ``jax.jit``; it is compiled once, whoever asks for it.

    The arguments at the positions ``static`` are constants of the program.
    """
    program: Callable[..., Any] = import_module("jax").jit(function, static_argnums=static)
    return program


def in_one_program(xp: Any, function: Callable[..., Any], *static: int) -> Callable[..., Any]:
    """The function as ``jitted`` compiles it, for arrays of JAX; the function itself for other libraries.

    Args:
        xp: the functions of the library of the arrays.
        function: a function of arrays.
        static: the positions of arguments that are constants of the program.
    """
    return jitted(function, *static) if is_jax(xp) else function


class JaxProgram:
    """A function of one array of any library that JAX compiles for each shape, dtype and device of its argument.

    Args:
        function: x -> array. If its operations depend on the numbers in an array of JAX, they are not compiled, but
            run one by one.
    """

    def __init__(self, function: Callable[[Array], Array]) -> None:
        self.function = function
        self.programs: dict[Any, Callable[[Array], Array]] = {}  # by shape, dtype and device of x

    def __call__(self, x: Array) -> Array:
        """The function at x."""
        if not hasattr(x, "block_until_ready") or not hasattr(x, "sharding"):  # not JAX's
            return self.function(x)
        jax: Any = import_module("jax")
        if isinstance(x, jax.core.Tracer):  # within a program already
            return self.function(x)
        key = x.shape, x.dtype, x.sharding
        if key not in self.programs:
            try:
                self.programs[key] = _program(jax, self.function, x)
            except NOT_TRACEABLE:
                self.programs[key] = self.function
        return self.programs[key](x)

    def __reduce__(self) -> Any:
        return JaxProgram, (self.function,)  # programs cannot be pickled


def _program(jax: Any, function: Callable[[Array], Array], x: Array) -> Callable[[Array], Array]:
    """The function, compiled for arrays like x."""
    # The arrays that the function refers to become arguments: as constants they would be compiled into the program.
    closed = jax.make_jaxpr(function)(x)
    as_function = import_module("jax.extend.core").jaxpr_as_fun

    def once(constants: Any, x: Array) -> Array:
        result: Array = as_function(closed.replace(consts=constants))(x)[0]
        return result

    run = jax.jit(once)
    run(closed.consts, x)  # an error shows here
    return lambda x: run(closed.consts, x)


def outside_of_programs() -> AbstractContextManager[Any]:
    """A context whose results may be kept for later calls: inside a program, JAX has only symbols for them."""
    jax: Any = sys.modules.get("jax")
    found: AbstractContextManager[Any] = nullcontext() if jax is None else jax.ensure_compile_time_eval()
    return found
