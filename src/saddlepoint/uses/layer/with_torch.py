"""Layers of PyTorch: ``solve`` forwards, the adjoint system backwards, and the field differentiated by autograd."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from saddlepoint.ground.arrays import EPS64, to_host
from saddlepoint.ground.errors import ProblemError
from saddlepoint.ground.linalg import norm
from saddlepoint.ground.recording import recording
from saddlepoint.parts.simple.base import Support
from saddlepoint.problems.numpy_problem import as_numpy_problem
from saddlepoint.problems.saddle import Saddle
from saddlepoint.solving.derivatives import VJP, Differentiable
from saddlepoint.solving.result import Result
from saddlepoint.solving.solve import solve
from saddlepoint.uses.layer.joined import joined
from saddlepoint.uses.layer.newton_start import newton_start
from saddlepoint.uses.layer.prox_argument import SMALL, prox_argument

if TYPE_CHECKING:
    from saddlepoint.uses.layer.layer import Layer

torch: Any = import_module("torch")
functorch: Any = getattr(torch._C, "_functorch", None)
FUNCTORCH_LEVEL: Callable[[], int | None] = getattr(functorch, "maybe_current_level", lambda: None)
OWN_START = {"x0", "y0", "method", "checkpoint"}  # options with which no start is computed before the run
IN_VMAP: Callable[[Any], bool] = getattr(functorch, "is_legacy_batchedtensor", lambda tensor: False)


def make(layer: Layer) -> Any:
    """The function of tensors that the layer is."""

    def run(*tensors: Any) -> tuple[Any, Any]:
        dims = layer.dims(len(tensors))
        if FUNCTORCH_LEVEL() is not None:
            raise ProblemError(
                "a layer of PyTorch was called within torch.func (vmap, grad, jvp); use in_dims of the layer for "
                "batches and backward() or torch.autograd.grad for gradients"
            )
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
        if whole is None:
            runs = [solved(*pair, layer) for pair in zip(problems, in_numpy, strict=True)]
            ctx.runs = [run for run, _ in runs]
            ctx.points = [(result.x, result.y) for _, result in runs]
            supports: list[Any] = [(run.support_x, run.support_y) for run, _ in runs]
        else:
            run = run_of(whole, layer)
            layer.result = checked(run, layer)
            ctx.runs = [run]
            xs, ys = (torch.from_numpy(z.reshape(size, -1).copy()) for z in (run.x, run.y))
            ctx.points = list(zip(xs, ys, strict=True))
            parts = [None if s is None else s.reshape(size, -1) for s in (run.support_x, run.support_y)]
            supports = [tuple(None if part is None else part[k] for part in parts) for k in range(size)]
        ctx.faces = [Faces.of(f, z, on) for f, z, on in zip(problems, ctx.points, supports, strict=True)]
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


def refuse_without_numbers(tensor: Any) -> None:
    """Raise a ProblemError if the tensor has no numbers, or not one for each entry."""
    if tensor.device.type == "meta":
        raise ProblemError(
            f"a layer was given a tensor of shape {tuple(tensor.shape)} on the device meta, which has no numbers; "
            "expected tensors on a CPU or a GPU"
        )
    if tensor.layout != torch.strided:
        raise ProblemError(
            f"a layer was given a tensor with the layout {tensor.layout}; expected dense tensors: give its values, and "
            "let build put them in their places"
        )


def batch_size(tensors: Sequence[Any], dims: Sequence[int | None]) -> int:
    """The number of problems of a batch."""
    shapes = [tuple(tensor.shape) for tensor, dim in zip(tensors, dims, strict=True) if dim == 0]
    sizes = {shape[0] if shape else 0 for shape in shapes}
    if len(sizes) != 1:
        raise ProblemError(f"the tensors of a batch have leading dimensions {sorted(sizes)}; expected one size")
    if sizes == {0}:
        raise ProblemError("a batch of a layer is empty or has no leading dimension; expected one problem at least")
    return int(sizes.pop())


def refuse_other_shapes(problems: Sequence[Saddle]) -> None:
    """Raise a ProblemError if the problems of a batch differ in their shapes."""
    for k, f in enumerate(problems):
        if f.shape != problems[0].shape:
            raise ProblemError(
                f"problem {k} of the batch of a layer has {f.shape[0]} x {f.shape[1]} variables, but problem 0 has "
                f"{problems[0].shape[0]} x {problems[0].shape[1]}; expected one shape, so call the layer for each shape"
            )


def check_closure(layer: Layer, tensors: Sequence[Any], dims: Sequence[int | None] | None) -> None:
    """Refuse other tensors of ``build`` that require gradients, where no argument does: they would get none."""
    if not torch.is_grad_enabled() or any(getattr(tensor, "requires_grad", False) for tensor in tensors):
        return  # in the second case the gradient makes this check
    own = list(tensors) if dims is None else each(tensors, dims, 1)[0]
    with recording():
        f = built(layer, own)
        device = next(tensor.device for tensor in own if torch.is_tensor(tensor))
        zero = [torch.zeros(n, dtype=f.space.dtype, device=device) for n in f.shape]
        refuse_hidden([F for F in f.field(*zero) if getattr(F, "requires_grad", False)], [*own, *zero])


def refuse_forward_mode(tensor: Any) -> None:
    """Raise a ProblemError if the tensor has a tangent, for derivatives forwards."""
    forward = torch.autograd.forward_ad
    if forward._current_level >= 0 and forward.unpack_dual(tensor).tangent is not None:
        raise ProblemError(
            "a layer was given a tensor with a tangent (torch.autograd.forward_ad); layers of PyTorch differentiate "
            "backwards only: use backward() or torch.autograd.grad, or result.jvp of solve"
        )


def refuse_second(vx: Any, vy: Any) -> None:
    """Raise a ProblemError if the gradient is computed to be differentiated again, or for many vectors at once."""
    if IN_VMAP(vx) or IN_VMAP(vy):
        raise ProblemError(
            "the gradient of a layer was asked for with many vectors at once (vectorize=True, is_grads_batched=True); "
            "ask for one after the other"
        )
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


def gradients(
    ctx: Any, parts_of: Callable[[list[Any]], list[Any]], adjoint: list[Any], given: list[Any], skip: int = 1
) -> list[Any]:
    """The gradients with respect to the tensors that need one, summed over problems.

    They are -(dF/dtheta)' u, and for parameters of simple terms those of ``prox_argument``.

    Args:
        ctx: what ``keep`` has saved, and the solutions.
        parts_of: the tensors -> those of each problem.
        adjoint: the adjoint vectors (ux, uy) of each problem.
        given: the vectors (vx, vy) of each problem.
        skip: the number of arguments of the layer's function before the tensors.
    """
    saved, needed = iter(ctx.saved_tensors), ctx.needs_input_grad[skip:]
    tensors = []
    for other, need in zip(ctx.others, needed, strict=True):
        tensors.append(next(saved).detach().requires_grad_(need) if other is None else other[0])
    wanted = [tensor for tensor, need in zip(tensors, needed, strict=True) if need]
    answers: list[tuple[Any, Any]] = []  # functions of the tensors, and the vectors with which they are contracted
    rebuilt: list[Any] = []
    with torch.enable_grad(), recording():
        for own, z, faces, u, v in zip(parts_of(tensors), ctx.points, ctx.faces, adjoint, given, strict=True):
            f = built(ctx.layer, own)
            fields: Any = f.field(*z)
            rebuilt.append([F.detach() for F in fields])
            answers += [(F, -part) for F, part in zip(fields, u, strict=True)]
            answers += faces.answers(f, z, rebuilt[-1], u, v)
    refuse_another_problem(ctx.runs, rebuilt)
    answers = [(value, vector) for value, vector in answers if getattr(value, "requires_grad", False)]
    refuse_hidden([value for value, _ in answers], [*tensors, *(part for z in ctx.points for part in z)])
    found = [None] * len(wanted)
    if answers and wanted:
        values, vectors = zip(*answers, strict=True)
        found = list(torch.autograd.grad(values, wanted, vectors, allow_unused=True))
    refuse_unrecorded(wanted, found)
    slopes = iter(found)
    return [next(slopes) if need else None for need in needed]


def refuse_another_problem(runs: Sequence[Result], rebuilt: Sequence[Any]) -> None:
    """Raise a ProblemError if the problems that were built again have another field than those that were solved.

    Args:
        runs: the results of the problems, or of all together.
        rebuilt: the parts of the field of each problem at its solution, as tensors.
    """
    for k in range(2):
        now = np.concatenate([to_host(fields[k]) for fields in rebuilt])
        precision = float(np.finfo(now.dtype).eps)
        then, scale = [], 0.0
        for run in runs:
            f = run.differentiable().f
            query = f.gradients_and_products(run.x, run.y)
            part, product = (query.gx, query.Ay) if k == 0 else (query.hy, -query.Atx)
            then.append(to_host(part + product))
            scale += norm(part) + norm(product) + float(f.residuals(query)[2 + k]) / EPS64
        if not norm(now - np.concatenate(then)) <= math.sqrt(precision) * scale:
            raise ProblemError(
                "build of the layer made another problem for the gradient than for the solution: a tensor that it uses "
                "was written into between the two, or build depends on something that changes, such as random numbers; "
                "make what changes an argument of the layer"
            )


def refuse_unrecorded(wanted: Sequence[Any], found: Sequence[Any]) -> None:
    """Raise a ProblemError if a tensor that requires a gradient has none: it would be missing without a word."""
    for tensor, slope in zip(wanted, found, strict=True):
        if slope is None:
            raise ProblemError(
                f"a layer was given a tensor of shape {tuple(tensor.shape)} that requires gradients, but the problem "
                "does not depend on it by operations that PyTorch records: build does not use it, or makes numbers of "
                "it by float(), item(), numpy() or detach(); use the tensor itself, or detach it before the call"
            )


class Faces(NamedTuple):
    """What is known of the simple terms at a solution.

    Attributes:
        L: the constants of smoothness of g and h.
        fixed: for each player a mask of the coordinates that are proven to be at a bound or at zero; None without a
            simple term.
    """

    L: tuple[float, float]
    fixed: tuple[Any, Any]

    @classmethod
    def of(cls, f: Saddle, point: Any, supports: Any) -> Faces:
        """The faces of a problem at its solution."""
        masks = [
            None if p is None or support is None else torch.from_numpy(np.asarray(support > Support.OFF)).to(z.device)
            for p, support, z in zip((f.g.simple, f.h.simple), supports, point, strict=True)
        ]
        sizes = [L if 0.0 < L < np.inf else 1.0 for L in (f.L_x, f.L_y)]
        return cls((sizes[0], sizes[1]), (masks[0], masks[1]))

    def answers(self, f: Saddle, z: Any, w: Any, u: Any, v: Any) -> list[tuple[Any, Any]]:
        """The prox of each simple term that has a tensor to be differentiated, and the vector lambda."""
        found: list[tuple[Any, Any]] = []
        for k, p in enumerate((f.g.simple, f.h.simple)):
            if p is None:
                continue
            t, x = SMALL / self.L[k], z[k]
            if not getattr(p.prox(x, t), "requires_grad", False):
                continue  # no tensor to be differentiated is in the term
            if self.fixed[k] is not None:
                x = torch.where(self.fixed[k], p.prox(x - w[k] / self.L[k], 1.0 / self.L[k]), x)
            value: Any = p.prox(prox_argument(p, x, w[k], t).detach(), t)
            found.append((value, u[k] / t + v[k] - transposed(f, z, u)[k]))
        return found


def transposed(f: Saddle, z: Any, u: Any) -> Any:
    """J' u, with the Jacobian of the field at z."""
    at = [part.detach().requires_grad_(True) for part in z]
    return torch.autograd.grad(f.field(*at), at, list(u), materialize_grads=True)


def solved(f: Saddle, in_numpy: Saddle | None, layer: Layer) -> tuple[Result, Result]:
    """The result of a run, on the same problem of NumPy if there is one; and the same result with tensors."""
    run = result = run_of(in_numpy or f, layer)
    if in_numpy is not None:
        x, y = (f.space.cast(np.array(z)) for z in (run.x, run.y))
        result = replace(run, x=x, y=y, _derivatives=Differentiable(f, solve))
    layer.result = checked(result, layer)
    return run, result


def run_of(f: Saddle, layer: Layer) -> Result:
    """The result of a run with the options of the layer, from a good start if they leave that open."""
    start = None if OWN_START & set(layer.options) else newton_start(f)
    options = {"history": False, **layer.options}
    return solve(f, **options) if start is None else solve(f, *start, **options)


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
    _, x, y, proof = u.problem_and_point
    ux, uy, bx, by, x, y = (torch.from_numpy(np.array(part)) for part in (u.ux, u.uy, u.bx, u.by, x, y))
    return replace(u, ux=ux, uy=uy, bx=bx, by=by, problem_and_point=(run.differentiable().f, x, y, proof))


def built(layer: Layer, tensors: Any) -> Saddle:
    """The problem of these tensors."""
    versions = [version(tensor) for tensor in tensors]
    f = layer.build(*tensors)
    for k, (tensor, before) in enumerate(zip(tensors, versions, strict=True)):
        if version(tensor) != before:
            raise ProblemError(
                f"build of the layer writes into its argument {k}, of shape {tuple(tensor.shape)}; the layer calls "
                "build more than once, so that each call would make another problem: write into a clone() of it"
            )
    if not isinstance(f, Saddle):
        raise ProblemError(f"build of the layer returned a {type(f).__name__}; expected a Saddle")
    return f


def version(tensor: Any) -> int:
    """How often a tensor was written into; 0 for what has no such count."""
    return 0 if not torch.is_tensor(tensor) or tensor.is_inference() else int(tensor._version)
