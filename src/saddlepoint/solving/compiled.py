"""Many steps in one call, without communication with the host: a CUDA graph with PyTorch, a compiled loop with JAX.

This applies to methods whose steps are all alike: a fixed number of oracle calls, nothing in the state but arrays that
changes, and no number on which Python decides anything. Others are run step by step.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

from saddlepoint.ground.arrays import copied
from saddlepoint.ground.states import arrays, static_part, with_arrays
from saddlepoint.methods.base import Method
from saddlepoint.problems.saddle import Saddle

Leaves = Callable[[list[Any]], list[Any]]  # one step, on the arrays of a state
Steps = Callable[[Any, int], Any]  # (state, how many) -> state

UNROLLED = 4  # steps of one graph: more of them take longer to capture, and fewer copy the state more often
UNFORESEEN = (TypeError, AttributeError, RuntimeError)  # what a step raises that cannot be compiled
WARM = 2  # steps before a graph is captured: libraries set themselves up in the first ones


class Loops(dict[Any, Steps]):
    """The compiled loops of a problem. They are kept with it, but not pickled with it."""

    def __reduce__(self) -> tuple[type[Loops], tuple[()]]:
        return Loops, ()


def compiled(method: Method, f: Saddle, before: Any, after: Any, loops: Loops | None = None) -> Steps | None:
    """A function that takes many steps of ``method``, or None where that is impossible or gains nothing.

    Args:
        method: the method.
        f: the problem in the method's normal form, not counted.
        before, after: two states, one step apart.
        loops: where a compiled loop of JAX is kept for the next run on the same problem.
    """
    if method.cost(f) is None or static_part(before) != static_part(after):
        return None
    try:
        if f.space.is_jax:
            kept = Loops() if loops is None else loops
            key = (method, f.mu_x, f.L_x, f.mu_y, f.L_y, f.norm)
            if key not in kept:
                kept[key] = JaxLoop(method, f, after)
            return kept[key]
        if f.space.is_cuda:
            return _CudaGraph(method, f, after)
    except UNFORESEEN:
        pass  # the step decides by a number, or does what cannot be recorded
    return None


class JaxLoop:
    """Steps as one loop that JAX compiles."""

    def __init__(self, method: Method, f: Saddle, state: Any) -> None:
        jax: Any = import_module("jax")
        as_function = import_module("jax.extend.core").jaxpr_as_fun

        def step(*leaves: Any) -> Any:
            return list(arrays(method.step(f, with_arrays(state, leaves))))

        # A, and the data of g and h, become arguments: as constants they would be compiled into the loop.
        closed = jax.make_jaxpr(step)(*arrays(state))

        def loop(constants: Any, leaves: Any, count: Any) -> Any:
            once = as_function(closed.replace(consts=constants))
            return jax.lax.fori_loop(0, count, lambda _, now: once(*now), leaves)

        self.constants = closed.consts
        leaves: list[Any] = list(arrays(state))
        where = {"out_shardings": [leaf.sharding for leaf in leaves]} if f.space.sides else {}  # on a mesh, as before
        self.run = jax.jit(loop, **where)
        self(state, 0)  # an error shows here

    def __call__(self, state: Any, count: int) -> Any:
        """The state after so many steps."""
        return with_arrays(state, self.run(self.constants, list(arrays(state)), count))

    def program(self, state: Any) -> str:
        """The program that XLA compiled, as text; the collectives of one step are in the body of its ``while``."""
        text: str = self.run.lower(self.constants, list(arrays(state)), 1).compile().as_text()
        return text


def _plain_step(method: Method, f: Saddle, state: Any) -> Leaves:
    return lambda leaves: list(arrays(method.step(f, with_arrays(state, leaves))))


def _step_of_few_kernels(method: Method, f: Saddle, state: Any, leaves: list[Any]) -> Leaves | None:
    """The step with fused sums, where Triton is installed and the step only sums vectors and calls oracles."""
    from saddlepoint.solving.fused_steps import AVAILABLE, Evaluator, SideStreams

    if not AVAILABLE:
        return None
    form = Evaluator(SideStreams() if f.space.is_cuda else None)
    symbolic = form.problem(f)

    def of_symbols(symbols: Any) -> Any:
        return list(arrays(method.step(symbolic, with_arrays(state, symbols))))

    try:
        form.step(of_symbols, leaves)
    except UNFORESEEN:
        return None
    return partial(form.step, of_symbols)


class _CudaGraph:
    """Steps as CUDA graphs, of many steps and of one. The graphs read and write arrays at fixed places."""

    def __init__(self, method: Method, f: Saddle, state: Any) -> None:
        self.torch: Any = import_module("torch")
        self.held: list[Any] = [copied(leaf) for leaf in arrays(state)]
        # The step is kept: what it refers to must stay in its place.
        self.step = _step_of_few_kernels(method, f, state, self.held) or _plain_step(method, f, state)
        cuda = self.torch.cuda
        stream = cuda.Stream()
        stream.wait_stream(cuda.current_stream())
        with cuda.stream(stream):
            now = self.held
            for _ in range(WARM):
                now = self.step(now)
        cuda.current_stream().wait_stream(stream)
        self.many, self.one = self.captured(UNROLLED), self.captured(1)

    def captured(self, count: int) -> Any:
        """A graph of so many steps, from the arrays that are held to new values of the same arrays."""
        graph, own = self.torch.cuda.CUDAGraph(), {leaf.data_ptr() for leaf in self.held}
        # What other threads do meanwhile, such as JAX's, is not recorded and need not fail.
        with self.torch.cuda.graph(graph, capture_error_mode="thread_local"):
            now = self.held
            for _ in range(count):
                now = self.step(now)
            found = [copied(leaf) if leaf.data_ptr() in own else leaf for leaf in now]
            for old, new in zip(self.held, found, strict=True):
                old.copy_(new)
        return graph

    def __call__(self, state: Any, count: int) -> Any:
        for old, new in zip(self.held, arrays(state), strict=True):
            old.copy_(new)
        for _ in range(count // UNROLLED):
            self.many.replay()
        for _ in range(count % UNROLLED):
            self.one.replay()
        return with_arrays(state, map(copied, self.held))
