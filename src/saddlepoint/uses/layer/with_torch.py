"""Layers of PyTorch: ``solve`` forwards, the adjoint system backwards, and the field differentiated by autograd."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from saddlepoint.ground.errors import ProblemError
from saddlepoint.ground.recording import recording
from saddlepoint.problems.numpy_problem import as_numpy_problem
from saddlepoint.problems.saddle import Saddle
from saddlepoint.solving.derivatives import Differentiable
from saddlepoint.solving.result import Result
from saddlepoint.solving.solve import solve
from saddlepoint.uses.layer.joined import joined
from saddlepoint.uses.layer.newton_start import newton_start
from saddlepoint.uses.layer.torch_build import batch_size, built, each, refuse_other_shapes
from saddlepoint.uses.layer.torch_gradients import Faces, derivative, gradients, keep
from saddlepoint.uses.layer.torch_refusals import (
    check_closure,
    refuse_forward_mode,
    refuse_functorch,
    refuse_second,
    refuse_without_numbers,
)

if TYPE_CHECKING:
    from saddlepoint.uses.layer.layer import Layer

torch: Any = import_module("torch")
OWN_START = {"x0", "y0", "method", "checkpoint"}  # options with which no start is computed before the run


def make(layer: Layer) -> Any:
    """The function of tensors that the layer is."""

    def run(*tensors: Any) -> tuple[Any, Any]:
        dims = layer.dims(len(tensors))
        refuse_functorch()
        for tensor in filter(torch.is_tensor, tensors):
            refuse_without_numbers(tensor)
            refuse_forward_mode(tensor)
        tensors = tuple(tensor.as_subclass(torch.Tensor) if torch.is_tensor(tensor) else tensor for tensor in tensors)
        arguments: tuple[Any, ...] = (layer,)
        if dims is not None:
            arguments = layer, batch_size(tensors, dims), dims
        with recording(False):  # another layer may call this one while it builds its problem
            check_closure(layer, tensors, dims)
            x, y = (Solution if dims is None else Solutions).apply(*arguments, *tensors)
        return x, y

    return uncompiled(run)


def uncompiled(run: Callable[..., Any]) -> Callable[..., Any]:
    """The function, which ``torch.compile`` calls as it is: a run takes arrays of NumPy, and branches on numbers."""
    plain: list[Callable[..., Any]] = []

    def call(*tensors: Any) -> Any:
        if "torch._dynamo" not in sys.modules:  # nobody compiles, and to import it takes long
            return run(*tensors)
        if not plain:
            plain.append(torch.compiler.disable(run))
        return plain[0](*tensors)

    return call


class Solution(torch.autograd.Function):  # type: ignore[misc]
    """The saddle point of ``layer.build(*tensors)``."""

    @staticmethod
    def forward(ctx: Any, layer: Layer, *tensors: Any) -> Any:
        """Solve the problem; an error if it is not solved."""
        f = built(layer, tensors)
        run, result = solved(f, as_numpy_problem(f), layer)
        keep(ctx, layer, tensors)
        ctx.runs = [run]
        point: Any = result.x, result.y
        ctx.points, ctx.faces = [point], [Faces.of(f, point, (run.support_x, run.support_y))]
        return tuple(z.clone() for z in point)  # PyTorch marks what is returned; the result stays as it is

    @staticmethod
    def backward(ctx: Any, vx: Any, vy: Any) -> Any:
        """The gradients -(dF/dtheta)' u with respect to all tensors."""
        refuse_second(vx, vy)
        u = ctx.layer.derivative = derivative(ctx.runs[0], vx, vy)
        return (None, *gradients(ctx, lambda tensors: [tensors], [(u.ux, u.uy)], [(vx, vy)]))


class Solutions(torch.autograd.Function):  # type: ignore[misc]
    """The saddle points of a batch: of all problems together where they can be joined, else one after the other."""

    @staticmethod
    def forward(ctx: Any, layer: Layer, size: int, dims: Any, *tensors: Any) -> Any:
        """Solve the problems; an error if one is not solved."""
        problems = [built(layer, own) for own in each(tensors, dims, size)]
        keep(ctx, layer, tensors)
        ctx.dims, ctx.size = dims, size
        refuse_other_shapes(problems)
        in_numpy = [as_numpy_problem(f) for f in problems]
        whole = None if any(f is None for f in in_numpy) else joined([f for f in in_numpy if f is not None])
        found = solved_apart(problems, in_numpy, layer) if whole is None else solved_together(whole, size, layer)
        ctx.runs, ctx.points = found.runs, found.points
        ctx.faces = [Faces.of(*of) for of in zip(problems, found.points, found.supports, strict=True)]
        return tuple(torch.stack([point[k] for point in ctx.points]) for k in range(2))

    @staticmethod
    def backward(ctx: Any, vx: Any, vy: Any) -> Any:
        """The gradients with respect to all tensors, of all problems."""
        refuse_second(vx, vy)
        if len(ctx.runs) < ctx.size:
            u = ctx.layer.derivative = ctx.runs[0].vjp(*(v.detach().numpy().reshape(-1) for v in (vx, vy)))
            parts = (torch.from_numpy(np.array(part)).reshape(ctx.size, -1) for part in (u.ux, u.uy))
            vectors = list(zip(*parts, strict=True))
        else:
            found = [derivative(run, vx[k], vy[k]) for k, run in enumerate(ctx.runs)]
            ctx.layer.derivative = max(found, key=lambda u: u.bound)
            vectors = [(u.ux, u.uy) for u in found]

        def parts_of(tensors: list[Any]) -> list[Any]:
            return each(tensors, ctx.dims, ctx.size)

        return (None, None, None, *gradients(ctx, parts_of, vectors, list(zip(vx, vy, strict=True)), 3))


class Solved(NamedTuple):
    """The solutions of a batch.

    Attributes:
        runs: the results: one of all problems together, or one of each.
        points: the solutions (x, y) of the problems, as tensors.
        supports: what is proven about their coordinates.
    """

    runs: list[Result]
    points: list[Any]
    supports: list[Any]


def solved_apart(problems: Sequence[Saddle], in_numpy: Sequence[Saddle | None], layer: Layer) -> Solved:
    """The problems of a batch, solved one after the other."""
    pairs = [solved(*pair, layer) for pair in zip(problems, in_numpy, strict=True)]
    runs = [run for run, _ in pairs]
    points = [(result.x, result.y) for _, result in pairs]
    return Solved(runs, points, [(run.support_x, run.support_y) for run in runs])


def solved_together(whole: Saddle, size: int, layer: Layer) -> Solved:
    """The problems of a batch, solved as one problem of NumPy."""
    run = checked(run_of(whole, layer), layer)
    xs, ys = (torch.from_numpy(z.reshape(size, -1).copy()) for z in (run.x, run.y))
    parts = [None if s is None else s.reshape(size, -1) for s in (run.support_x, run.support_y)]
    supports = [tuple(None if part is None else part[k] for part in parts) for k in range(size)]
    return Solved([run], list(zip(xs, ys, strict=True)), supports)


def solved(f: Saddle, in_numpy: Saddle | None, layer: Layer) -> tuple[Result, Result]:
    """The result of a run, on the same problem of NumPy if there is one; and the same result with tensors."""
    run = result = run_of(in_numpy or f, layer)
    if in_numpy is not None:
        x, y = (f.space.cast(np.array(z)) for z in (run.x, run.y))
        result = replace(run, x=x, y=y, _derivatives=Differentiable(f, solve))
    return run, checked(result, layer)


def run_of(f: Saddle, layer: Layer) -> Result:
    """The result of a run with the options of the layer, from a good start if they leave that open."""
    start = None if OWN_START & set(layer.options) else newton_start(f)
    options = {"history": False, **layer.options}
    return solve(f, **options) if start is None else solve(f, *start, **options)


def checked(result: Result, layer: Layer) -> Result:
    """The result, which the layer keeps; a ProblemError if it is not solved."""
    layer.result = result
    if not result.solved:
        error = ProblemError(f"the problem of the layer was not solved: {result.message}")
        error.add_note("saddlepoint: the best certified point is in the attribute `result` of the layer")
        raise error
    return result
