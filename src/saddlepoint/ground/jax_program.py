"""A function of one array whose operations JAX compiles into one program, where the array is JAX's.

Without this, JAX compiles and starts each operation by itself, which takes longer than the arithmetic.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from importlib import import_module
from typing import Any

from saddlepoint.ground.arrays import Array

NOT_TRACEABLE = (TypeError, AttributeError, RuntimeError, ValueError)  # raised by code that looks at numbers


class JaxProgram:
    """The function, called as before.

    Args:
        function: x -> array. Its operations on arrays of JAX may not depend on the numbers in them; if they do, they
            are run one by one.
    """

    def __init__(self, function: Callable[[Array], Array]) -> None:
        self.function = function
        self.programs: dict[Any, Callable[[Array], Array]] = {}  # by shape, dtype and place of x

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
