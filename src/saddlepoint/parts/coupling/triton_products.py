"""Fused products with a dense A on an NVIDIA GPU by Triton kernels.

    both(A, x, y)        -> A y, A'x
    through(A, y, s, e)  -> t = A y, A'(s t + e)

A is a 2-D CUDA tensor in row-major or column-major order. The vectors and all sums are float64 if A or a vector is, and
float32 otherwise, so A may be stored in half precision. No function here waits for the GPU, and a call can be captured
in a CUDA graph.
"""

from __future__ import annotations

import math
from typing import Any

from saddlepoint.ground.errors import ProblemError
from saddlepoint.parts.coupling.triton_kernels import EMPTY, NAN, add_up, cooperative, independent, poll
from saddlepoint.parts.coupling.triton_launch import Tensor, launch, torch
from saddlepoint.parts.coupling.triton_plans import (
    Kind,
    Plan,
    ceil_power_of_two,
    is_row_major,
    plan_for,
    resources,
    tile_plan,
)


def _sum_type(*operands: Any) -> Any:
    return torch.float64 if torch.float64 in [getattr(v, "dtype", None) for v in operands] else torch.float32


def fuses(A: Tensor, kind: Kind, vectors: Any = None) -> bool:
    """Whether ``both`` or ``through`` reads A once. ``vectors`` is the dtype of x and y, by default that of A."""
    return plan(A, kind, vectors) is not None


def plan(A: Tensor, kind: Kind, vectors: Any = None) -> Plan | None:
    """The plan by which ``both`` or ``through`` reads A once; None if it does not."""
    sum_type = torch.float64 if torch.float64 in (_matrix(A).dtype, vectors) else torch.float32
    return plan_for(A, kind, sum_type, None)


def both(
    A: Tensor, x: Tensor, y: Tensor, *, out: tuple[Tensor, Tensor] | None = None, fuse: bool | None = None
) -> tuple[Tensor, Tensor]:
    """(A y, A'x), into ``out`` if given, which must not overlap x and y.

    ``fuse`` requests one pass (True) or two products (False); by default the size of A decides.
    """
    sum_type = _sum_type(_matrix(A), x, y)
    x, y = _vector(x, "x", A, 0, sum_type), _vector(y, "y", A, 1, sum_type)
    t, u = _outputs(A, out, sum_type)
    plan = plan_for(A, "both", sum_type, fuse)
    if plan is None:
        _product(A, y, t)
        _product(A.T, x, u)
    elif is_row_major(A.shape, A.stride()):
        _run_independent(A, "both", plan, y, x, 1.0, t, u)
    else:
        _run_independent(A.T, "both", plan, x, y, 1.0, u, t)
    return t, u


def through(
    A: Tensor,
    y: Tensor,
    s: float | Tensor = 1.0,
    e: Tensor | None = None,
    *,
    out: tuple[Tensor, Tensor] | None = None,
    fuse: bool | None = None,
) -> tuple[Tensor, Tensor]:
    """(t, A'(s t + e)) with t = A y; ``s`` may be a number on the GPU. ``out`` and ``fuse`` as in ``both``."""
    sum_type = _sum_type(_matrix(A), y, e)
    y = _vector(y, "y", A, 1, sum_type)
    e = None if e is None else _vector(e, "e", A, 0, sum_type)
    t, u = _outputs(A, out, sum_type)
    plan = plan_for(A, "through", sum_type, fuse)
    if plan is None:
        _product(A, y, t)
        scaled = t if not _on_gpu(s) and s == 1 else (s * t).to(sum_type)
        _product(A.T, scaled if e is None else scaled + e, u)
    elif plan.waits:
        _run_cooperative(A, plan, y, e, s, t, u)
    else:
        _run_independent(A, "through", plan, y, e, s, t, u)
    return t, u


def mul(A: Tensor, y: Tensor, *, out: Tensor | None = None) -> Tensor:
    """A y."""
    sum_type = _sum_type(_matrix(A), y)
    t = _output(out, "out", A, 0, sum_type)
    _product(A, _vector(y, "y", A, 1, sum_type), t)
    return t


def tmul(A: Tensor, x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """A'x."""
    return mul(_matrix(A).T, x, out=out)


def _product(A: Tensor, y: Tensor, t: Tensor) -> None:
    """Write A y into t: by PyTorch, or by a Triton kernel if A and y have different dtypes."""
    if A.dtype == y.dtype:
        torch.mv(A, y, out=t)
        return
    by_columns = is_row_major(A.shape, A.stride()) is False
    stored = A.T if by_columns else A
    plan = tile_plan("both", *stored.shape, A.element_size(), y.element_size(), True, *resources(A.device.index))
    assert plan is not None  # independent programs can always do it
    if by_columns:
        _run_independent(stored, "tmul", plan, None, y, 1.0, t, t)
    else:
        _run_independent(stored, "mul", plan, y, None, 1.0, t, t)


def _run_independent(
    A: Tensor, kind: str, plan: Plan, y: Tensor | None, x: Tensor | None, s: float | Tensor, t: Tensor, u: Tensor
) -> None:
    m, n = A.shape
    rows, width, members, teams, stages, _ = plan
    sums = u if teams == 1 else u.new_empty((teams, n))
    dots = t if members == 1 else t.new_empty((members, m))
    number, on_gpu = _factor(s)
    arguments = (A, y, x, on_gpu, dots, sums, *A.stride(), m, n, width, number)
    arguments += (kind, x is not None, _on_gpu(s), plan.narrow, rows, plan.span, members, teams, stages)
    launch(independent, teams * members, arguments, num_warps=plan.warps)
    if kind != "tmul" and members > 1:
        _sum_rows(dots, t)
    if kind != "mul" and teams > 1:
        _sum_rows(sums, u)


def _run_cooperative(
    A: Tensor, plan: Plan, y: Tensor, e: Tensor | None, s: float | Tensor, t: Tensor, u: Tensor
) -> None:
    m, n = A.shape
    rows, width, members, teams, stages, _ = plan
    size = t.element_size()
    members_up = ceil_power_of_two(members, 1)
    pack = max(1, min(8, members_up * rows // (32 * plan.warps)))
    sums = u if teams == 1 else u.new_empty((teams, n))
    places = math.ceil(m / rows) * members * rows
    dots = torch.full((places,), EMPTY[size], dtype=torch.int64 if size == 8 else torch.int32, device=A.device)
    arguments = (A, *A.stride(), m, n, width, y, e, *_factor(s), t, dots, sums)
    arguments += (e is not None, _on_gpu(s), NAN[size], *poll(size, pack), pack)
    arguments += (rows, plan.span, members, members_up, teams, stages)
    launch(cooperative, teams * members, arguments, num_warps=plan.warps, launch_cooperative_grid=True)
    if teams > 1:
        _sum_rows(sums, u)


def _sum_rows(parts: Tensor, out: Tensor) -> None:
    count, size = parts.shape
    launch(add_up, math.ceil(size / 32), (parts, out, count, size, min(256, ceil_power_of_two(count)), 32), num_warps=8)


def _on_gpu(s: float | Tensor) -> bool:
    return isinstance(s, torch.Tensor) and s.device.type == "cuda"


def _factor(s: float | Tensor) -> tuple[float, Tensor | None]:
    return (1.0, s) if _on_gpu(s) else (float(s), None)


def _matrix(A: Tensor) -> Tensor:
    if not isinstance(A, torch.Tensor) or A.device.type != "cuda" or A.ndim != 2 or 0 in A.shape:
        raise ProblemError(f"A is {_description(A)}; expected a 2-D CUDA tensor with at least one row and one column")
    if A.dtype not in (torch.float16, torch.bfloat16, torch.float32, torch.float64):
        raise ProblemError(f"A has type {A.dtype}; expected float16, bfloat16, float32 or float64")
    return A


def _vector(v: Tensor, name: str, A: Tensor, axis: int, sum_type: Any) -> Tensor:
    if not _fits(v, A, axis) or not v.dtype.is_floating_point:
        raise ProblemError(f"{name} is {_description(v)}; expected {A.shape[axis]} real numbers on {A.device}, as A is")
    return v if v.dtype == sum_type and v.is_contiguous() else v.to(sum_type).contiguous()


def _fits(v: Any, A: Tensor, axis: int) -> bool:
    return isinstance(v, torch.Tensor) and v.ndim == 1 and v.shape[0] == A.shape[axis] and v.device == A.device


def _outputs(A: Tensor, out: tuple[Tensor, Tensor] | None, sum_type: Any) -> tuple[Tensor, Tensor]:
    first, second = (None, None) if out is None else out
    return _output(first, "out[0]", A, 0, sum_type), _output(second, "out[1]", A, 1, sum_type)


def _output(v: Tensor | None, name: str, A: Tensor, axis: int, sum_type: Any) -> Tensor:
    if v is None:
        return torch.empty(A.shape[axis], dtype=sum_type, device=A.device)
    if not _fits(v, A, axis) or v.dtype != sum_type or not v.is_contiguous():
        raise ProblemError(
            f"{name} is {_description(v)}; expected a contiguous tensor of {A.shape[axis]} {sum_type} on {A.device}"
        )
    return v


def _description(v: Any) -> str:
    if not isinstance(v, torch.Tensor):
        return f"of type {type(v).__name__}"
    return f"a tensor of shape {tuple(v.shape)} and type {v.dtype} on {v.device}"
