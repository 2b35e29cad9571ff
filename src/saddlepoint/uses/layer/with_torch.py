"""Layers of PyTorch: ``solve`` forwards, the adjoint system backwards, and the field differentiated by autograd."""

from __future__ import annotations

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

if TYPE_CHECKING:
    from saddlepoint.uses.layer.layer import Layer

torch: Any = import_module("torch")


def make(layer: Layer) -> Any:
    """The function of tensors that the layer is."""

    def run(*tensors: Any) -> tuple[Any, Any]:
        dims = layer.dims(len(tensors))
        if dims is None:
            x, y = Solution.apply(layer, *tensors)
            return x, y
        sizes = {int(tensor.shape[0]) for tensor, dim in zip(tensors, dims, strict=True) if dim == 0}
        if len(sizes) != 1:
            raise ProblemError(f"the tensors of a batch have leading dimensions {sorted(sizes)}; expected one size")
        points = []
        for k in range(sizes.pop()):
            own = [tensor if dim is None else tensor[k] for tensor, dim in zip(tensors, dims, strict=True)]
            points.append(Solution.apply(layer, *own))
        return torch.stack([x for x, _ in points]), torch.stack([y for _, y in points])

    return run


class Solution(torch.autograd.Function):  # type: ignore[misc]
    """The saddle point of ``layer.build(*tensors)``."""

    @staticmethod
    def forward(ctx: Any, layer: Layer, *tensors: Any) -> Any:
        """Solve the problem; an error if it is not solved."""
        f = built(layer, tensors)
        run, result = solved(f, layer.options)
        layer.result = result
        if not result.solved:
            error = ProblemError(f"the problem of the layer was not solved: {result.message}")
            error.add_note("saddlepoint: the best certified point is in the attribute `result` of the layer")
            raise error
        ctx.layer, ctx.run = layer, run
        ctx.save_for_backward(*(tensor for tensor in tensors if torch.is_tensor(tensor)))
        ctx.others = [None if torch.is_tensor(tensor) else (tensor,) for tensor in tensors]
        point: Any = result.x, result.y
        ctx.point = point
        return tuple(z.clone() for z in point)  # PyTorch marks what is returned; the result stays as it is

    @staticmethod
    @torch.autograd.function.once_differentiable  # type: ignore[untyped-decorator]
    def backward(ctx: Any, vx: Any, vy: Any) -> Any:
        """The gradients -(dF/dtheta)' u with respect to all tensors."""
        layer = ctx.layer
        u = layer.derivative = derivative(ctx.run, vx, vy)
        saved = iter(ctx.saved_tensors)
        needed = ctx.needs_input_grad[1:]
        tensors = []
        for other, need in zip(ctx.others, needed, strict=True):
            tensors.append(next(saved).detach().requires_grad_(need) if other is None else other[0])
        wanted = [tensor for tensor, need in zip(tensors, needed, strict=True) if need]
        field: Any
        with torch.enable_grad(), recording():
            field = built(layer, tensors).field(*ctx.point)
        parts = [(F, -v) for F, v in zip(field, (u.ux, u.uy), strict=True) if F.requires_grad]
        found = [None] * len(wanted)
        if parts and wanted:
            fields, vectors = zip(*parts, strict=True)
            found = list(torch.autograd.grad(fields, wanted, vectors, allow_unused=True))
        gradients = iter(found)
        return (None, *(next(gradients) if need else None for need in needed))


def solved(f: Saddle, options: dict[str, Any]) -> tuple[Result, Result]:
    """The result of a run on the problem, and the same with tensors; on the CPU the run is one of NumPy."""
    twin = as_numpy_problem(f)
    run = solve(twin or f, **{"history": False, **options})
    if twin is None:
        return run, run
    x, y = (f.space.cast(np.array(z)) for z in (run.x, run.y))
    return run, replace(run, x=x, y=y, _derivatives=Differentiable(f, solve))


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
