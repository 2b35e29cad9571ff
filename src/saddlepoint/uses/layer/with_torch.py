"""Layers of PyTorch: ``solve`` forwards, the adjoint system backwards, and the field differentiated by autograd."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from saddlepoint.ground.errors import ProblemError
from saddlepoint.ground.recording import recording
from saddlepoint.problems.numpy_problem import as_numpy_problem
from saddlepoint.problems.saddle import Saddle
from saddlepoint.solving.derivatives import VJP, Differentiable
from saddlepoint.solving.result import Result
from saddlepoint.solving.solve import solve
from saddlepoint.uses.layer.joined import joined

if TYPE_CHECKING:
    from saddlepoint.uses.layer.layer import Layer

torch: Any = import_module("torch")
functorch: Any = getattr(torch._C, "_functorch", None)
IN_FUNCTORCH: Callable[[Any], bool] = getattr(functorch, "is_functorch_wrapped_tensor", lambda tensor: False)


def make(layer: Layer) -> Any:
    """The function of tensors that the layer is."""

    def run(*tensors: Any) -> tuple[Any, Any]:
        dims = layer.dims(len(tensors))
        if any(torch.is_tensor(tensor) and IN_FUNCTORCH(tensor) for tensor in tensors):
            raise ProblemError(
                "a layer of PyTorch was called within torch.func (vmap, grad, jvp); use in_dims of the layer for "
                "batches and backward() or torch.autograd.grad for gradients"
            )
        arguments: tuple[Any, ...] = (layer,)
        if dims is not None:
            arguments = layer, batch_size(tensors, dims), dims
        check_closure(layer, tensors, dims)
        x, y = (Solution if dims is None else Solutions).apply(*arguments, *tensors)
        return x, y

    return run


class Solution(torch.autograd.Function):  # type: ignore[misc]
    """The saddle point of ``layer.build(*tensors)``."""

    @staticmethod
    def forward(ctx: Any, layer: Layer, *tensors: Any) -> Any:
        """Solve the problem; an error if it is not solved."""
        run, result = solved(built(layer, tensors), layer)
        keep(ctx, layer, tensors)
        ctx.run = run
        point: Any = result.x, result.y
        ctx.point = point
        return tuple(z.clone() for z in point)  # PyTorch marks what is returned; the result stays as it is

    @staticmethod
    def backward(ctx: Any, vx: Any, vy: Any) -> Any:
        """The gradients -(dF/dtheta)' u with respect to all tensors."""
        refuse_second()
        u = ctx.layer.derivative = derivative(ctx.run, vx, vy)
        return (None, *gradients(ctx, lambda tensors: [(tensors, ctx.point, (u.ux, u.uy))]))


class Solutions(torch.autograd.Function):  # type: ignore[misc]
    """The saddle points of a batch: of all problems together where they can be joined, else one after the other."""

    @staticmethod
    def forward(ctx: Any, layer: Layer, size: int, dims: Any, *tensors: Any) -> Any:
        """Solve the problems; an error if one is not solved."""
        problems = [built(layer, own) for own in each(tensors, dims, size)]
        keep(ctx, layer, tensors)
        ctx.dims, ctx.size = dims, size
        twins = [as_numpy_problem(f) for f in problems]
        whole = None if any(twin is None for twin in twins) else joined([twin for twin in twins if twin is not None])
        if whole is None:
            runs = [solved(f, layer) for f in problems]
            ctx.runs = [run for run, _ in runs]
            ctx.points = [(result.x, result.y) for _, result in runs]
        else:
            run = solve(whole, **{"history": False, **layer.options})
            layer.result = checked(run, layer)
            ctx.runs = [run]
            xs, ys = (torch.from_numpy(z.reshape(size, -1).copy()) for z in (run.x, run.y))
            ctx.points = list(zip(xs, ys, strict=True))
        return tuple(torch.stack([point[k] for point in ctx.points]) for k in range(2))

    @staticmethod
    def backward(ctx: Any, vx: Any, vy: Any) -> Any:
        """The gradients with respect to all tensors, of all problems."""
        refuse_second()
        if len(ctx.runs) < ctx.size:
            u = ctx.layer.derivative = ctx.runs[0].vjp(*(v.detach().numpy().reshape(-1) for v in (vx, vy)))
            parts = (torch.from_numpy(np.array(part)).reshape(ctx.size, -1) for part in (u.ux, u.uy))
            vectors = list(zip(*parts, strict=True))
        else:
            found = [derivative(run, vx[k], vy[k]) for k, run in enumerate(ctx.runs)]
            ctx.layer.derivative = max(found, key=lambda u: u.bound)
            vectors = [(u.ux, u.uy) for u in found]

        def parts_of(tensors: list[Any]) -> list[Any]:
            return list(zip(each(tensors, ctx.dims, ctx.size), ctx.points, vectors, strict=True))

        return (None, None, None, *gradients(ctx, parts_of, 3))


def batch_size(tensors: Sequence[Any], dims: Sequence[int | None]) -> int:
    """The number of problems of a batch."""
    shapes = [tuple(tensor.shape) for tensor, dim in zip(tensors, dims, strict=True) if dim == 0]
    sizes = {shape[0] if shape else 0 for shape in shapes}
    if len(sizes) != 1:
        raise ProblemError(f"the tensors of a batch have leading dimensions {sorted(sizes)}; expected one size")
    if sizes == {0}:
        raise ProblemError("a batch of a layer is empty or has no leading dimension; expected one problem at least")
    return int(sizes.pop())


def check_closure(layer: Layer, tensors: Sequence[Any], dims: Sequence[int | None] | None) -> None:
    """Where no argument requires gradients, see that no other tensor of ``build`` does: it would get none."""
    if not torch.is_grad_enabled() or any(getattr(tensor, "requires_grad", False) for tensor in tensors):
        return  # in the second case the gradient looks at it
    own = list(tensors) if dims is None else each(tensors, dims, 1)[0]
    with recording():
        f = built(layer, own)
        device = next(tensor.device for tensor in own if torch.is_tensor(tensor))
        zero = [torch.zeros(n, dtype=f.space.dtype, device=device) for n in f.shape]
        refuse_hidden([F for F in f.field(*zero) if getattr(F, "requires_grad", False)], [*own, *zero])


def refuse_second() -> None:
    """Raise a ProblemError if the gradient is computed to be differentiated again."""
    if torch.is_grad_enabled():
        raise ProblemError(
            "the gradient of a layer was asked for with create_graph=True; second derivatives through a solution are "
            "not implemented"
        )


def refuse_hidden(fields: Sequence[Any], known: Sequence[Any]) -> None:
    """Raise a ProblemError if the field depends on a tensor that requires gradients and is no argument of the layer.

    Args:
        fields: the parts of the field, with their record.
        known: the arguments of the layer, and the points at which the field was computed.
    """
    places = {part.data_ptr() for part in known if torch.is_tensor(part)}
    nodes, seen = [F.grad_fn for F in fields], set()
    while nodes:
        node = nodes.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        nodes += [following for following, _ in node.next_functions]
        leaf = getattr(node, "variable", None)
        if leaf is not None and leaf.data_ptr() not in places:
            raise ProblemError(
                f"build of the layer uses a tensor of shape {tuple(leaf.shape)} that requires gradients and is no "
                "argument of the layer, which would return none for it; make it an argument, or detach it"
            )


def points_of(ctx: Any) -> list[Any]:
    """The solutions that a layer has saved."""
    return ctx.points if hasattr(ctx, "points") else [ctx.point]


def each(tensors: Sequence[Any], dims: Sequence[int | None], size: int) -> list[list[Any]]:
    """The tensors of each problem of a batch."""
    return [
        [tensor if dim is None else tensor[k] for tensor, dim in zip(tensors, dims, strict=True)] for k in range(size)
    ]


def keep(ctx: Any, layer: Layer, tensors: Sequence[Any]) -> None:
    """Save the arguments of a layer for its gradient."""
    ctx.layer = layer
    ctx.save_for_backward(*(tensor for tensor in tensors if torch.is_tensor(tensor)))
    ctx.others = [None if torch.is_tensor(tensor) else (tensor,) for tensor in tensors]


def gradients(ctx: Any, parts_of: Callable[[list[Any]], list[Any]], skip: int = 1) -> list[Any]:
    """The gradients -(dF/dtheta)' u with respect to the tensors that need one, summed over problems.

    Args:
        ctx: what ``keep`` has saved.
        parts_of: the tensors -> for each problem its tensors, its solution (x, y) and its adjoint vectors.
        skip: the number of arguments of the layer's function before the tensors.
    """
    saved, needed = iter(ctx.saved_tensors), ctx.needs_input_grad[skip:]
    tensors = []
    for other, need in zip(ctx.others, needed, strict=True):
        tensors.append(next(saved).detach().requires_grad_(need) if other is None else other[0])
    wanted = [tensor for tensor, need in zip(tensors, needed, strict=True) if need]
    fields, vectors = [], []
    with torch.enable_grad(), recording():
        for own, point, u in parts_of(tensors):
            for F, v in zip(built(ctx.layer, own).field(*point), u, strict=True):
                if getattr(F, "requires_grad", False):
                    fields.append(F)
                    vectors.append(-v)
    refuse_hidden(fields, [*tensors, *(z for point in points_of(ctx) for z in point)])
    found = [None] * len(wanted)
    if fields and wanted:
        found = list(torch.autograd.grad(fields, wanted, vectors, allow_unused=True))
    answers = iter(found)
    return [next(answers) if need else None for need in needed]


def solved(f: Saddle, layer: Layer) -> tuple[Result, Result]:
    """The result of a run on the problem, and the same with tensors; on the CPU the run is one of NumPy."""
    twin = as_numpy_problem(f)
    run = result = solve(twin or f, **{"history": False, **layer.options})
    if twin is not None:
        x, y = (f.space.cast(np.array(z)) for z in (run.x, run.y))
        result = replace(run, x=x, y=y, _derivatives=Differentiable(f, solve))
    layer.result = checked(result, layer)
    return run, result


def checked(result: Result, layer: Layer) -> Result:
    """The result; a ProblemError if it is not solved."""
    layer.result = result
    if not result.solved:
        error = ProblemError(f"the problem of the layer was not solved: {result.message}")
        error.add_note("saddlepoint: the best certified point is in the attribute `result` of the layer")
        raise error
    return result


def derivative(run: Result, vx: Any, vy: Any) -> VJP:
    """The adjoint vectors, as tensors."""
    if not isinstance(run.x, np.ndarray):
        return run.vjp(vx, vy)
    u = run.vjp(*(None if v is None else v.detach().numpy() for v in (vx, vy)))
    _, x, y, proof = u._data
    ux, uy, bx, by, x, y = (torch.from_numpy(np.array(part)) for part in (u.ux, u.uy, u.bx, u.by, x, y))
    return replace(u, ux=ux, uy=uy, bx=bx, by=by, _data=(run._differentiable().f, x, y, proof))


def built(layer: Layer, tensors: Any) -> Saddle:
    """The problem of these tensors."""
    f = layer.build(*tensors)
    if not isinstance(f, Saddle):
        raise ProblemError(f"build of the layer returned a {type(f).__name__}; expected a Saddle")
    return f
