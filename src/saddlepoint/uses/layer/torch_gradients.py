"""The gradients of layers of PyTorch: the adjoint vectors, and the field of the problem differentiated by autograd."""

from __future__ import annotations

import math
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
from saddlepoint.problems.saddle import Saddle
from saddlepoint.solving.derivatives import VJP
from saddlepoint.solving.result import Result
from saddlepoint.uses.layer.prox_argument import SMALL, prox_argument
from saddlepoint.uses.layer.torch_build import built
from saddlepoint.uses.layer.torch_refusals import refuse_hidden, refuse_unrecorded

if TYPE_CHECKING:
    from saddlepoint.uses.layer.layer import Layer

torch: Any = import_module("torch")


def keep(ctx: Any, layer: Layer, tensors: Sequence[Any]) -> None:
    """Save the arguments of a layer for its gradient."""
    ctx.layer = layer
    ctx.save_for_backward(*(tensor for tensor in tensors if torch.is_tensor(tensor)))
    ctx.others = [None if torch.is_tensor(tensor) else (tensor,) for tensor in tensors]


def derivative(run: Result, vx: Any, vy: Any) -> VJP:
    """The adjoint vectors, as tensors."""
    if not isinstance(run.x, np.ndarray):
        return run.vjp(vx, vy)
    u = run.vjp(*(None if v is None else v.detach().numpy() for v in (vx, vy)))
    _, x, y, proof = u.problem_and_point
    ux, uy, bx, by, x, y = (torch.from_numpy(np.array(part)) for part in (u.ux, u.uy, u.bx, u.by, x, y))
    return replace(u, ux=ux, uy=uy, bx=bx, by=by, problem_and_point=(run.differentiable().f, x, y, proof))


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
