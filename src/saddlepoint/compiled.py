"""Many steps at once, without a word to the host: a CUDA graph with PyTorch, one compiled loop with JAX.

It applies to methods whose steps are all alike: a fixed number of oracle calls, nothing in the state but arrays that
changes, and no number that Python looks at. Others are run step by step.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from saddlepoint.arrays import copied
from saddlepoint.methods.base import Method
from saddlepoint.problem import Saddle
from saddlepoint.states import arrays, rest, with_arrays

Steps = Callable[[Any, int], Any]  # (state, how many) -> state

WARM = 3  # steps before a graph is captured: libraries set themselves up in the first ones


def compiled(method: Method, f: Saddle, before: Any, after: Any) -> Steps | None:
    """A function that makes many steps of ``method`` on ``f``, or None where that is impossible or no gain.

    Args:
        method: the method.
        f: the problem in the method's coordinates; it is not counted.
        before, after: two states, one step apart.
    """
    if method.cost(f) is None or rest(before) != rest(after):
        return None
    library = f.space.xp.__name__
    try:
        if library.startswith("jax"):
            return _jax_loop(method, f, after)
        if library.endswith("torch") and "cuda" in str(f.space.device):
            return _cuda_graph(method, f, after)
    except _unforeseen():
        pass  # the step looks at a number, or does what cannot be recorded
    return None


def _unforeseen() -> tuple[type[BaseException], ...]:
    """What a step raises that cannot be compiled."""
    return (TypeError, RuntimeError, NotImplementedError)


def _jax_loop(method: Method, f: Saddle, state: Any) -> Steps:
    jax: Any = import_module("jax")
    as_function = import_module("jax.extend.core").jaxpr_as_fun

    def step(*leaves: Any) -> Any:
        return list(arrays(method.step(f, with_arrays(state, leaves))))

    # A, and the data of g and h, become arguments: as constants they would be compiled into the loop.
    closed = jax.make_jaxpr(step)(*arrays(state))

    def loop(constants: Any, leaves: Any, count: Any) -> Any:
        once = as_function(closed.replace(consts=constants))
        return jax.lax.fori_loop(0, count, lambda _, now: once(*now), leaves)

    run = jax.jit(loop)

    def steps(now: Any, count: int) -> Any:
        return with_arrays(now, run(closed.consts, list(arrays(now)), count))

    steps(state, 0)  # an error shows here
    return steps


def _cuda_graph(method: Method, f: Saddle, state: Any) -> Steps:
    torch: Any = import_module("torch")
    held: list[Any] = [copied(leaf) for leaf in arrays(state)]
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(WARM):
            method.step(f, with_arrays(state, held))
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for old, new in zip(held, list(arrays(method.step(f, with_arrays(state, held)))), strict=True):
            old.copy_(new)

    def steps(now: Any, count: int) -> Any:
        for old, new in zip(held, arrays(now), strict=True):
            old.copy_(new)
        for _ in range(count):
            graph.replay()
        return with_arrays(now, map(copied, held))

    return steps
