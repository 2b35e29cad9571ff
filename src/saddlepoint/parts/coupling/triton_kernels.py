"""Fused products with a dense A on an NVIDIA GPU, as Triton kernels.

    both(A, x, y)        -> A y, A'x
    through(A, y, s, e)  -> t = A y, A'(s t + e)

A is a 2-D CUDA tensor in row-major or column-major order. The vectors and all sums are float64 if A or a vector is, and
float32 otherwise, so A may be stored in half precision. No function here waits for the GPU, and a call can be captured
in a CUDA graph.

How it works. A program (one for each multiprocessor) loads a tile of whole rows, computes their dot products with y,
and adds their multiples to its own sum while the tile is in registers; meanwhile the next tiles are loaded. A second,
small kernel adds the sums of the programs in a fixed order, so the same inputs give the same bits.

Rows that are too long for the registers of one program are cut into slices, one for each member of a team of programs.
In `both` the members are independent. In `through` they exchange the dot products of their slices through memory, one
tile later than the tile is read, so that no member waits for long. The place of a dot product holds a special NaN,
which no arithmetic produces, until the dot product is written there. The kernel is launched cooperatively, so all
members run at the same time.

For a column-major A, `both` is computed as that of the transpose. This is not possible for `through`, whose rows are
then scattered over all of A's memory. Teams with short slices can compute it too, with a smaller gain.
"""

from __future__ import annotations

import math
from functools import cache
from typing import TYPE_CHECKING, Any

from saddlepoint.ground.errors import ProblemError
from saddlepoint.parts.coupling.triton_launch import Tensor, jit, launch, torch
from saddlepoint.parts.coupling.triton_plans import (
    Kind,
    Plan,
    ceil_power_of_two,
    is_row_major,
    plan_for,
    resources,
    tile_plan,
)

if TYPE_CHECKING:
    import triton.language as tl
else:
    from saddlepoint.parts.coupling.triton_launch import tl

EMPTY = {4: 0x7FC5ADDD, 8: 0x7FF85ADDD1E90172}  # bits of the NaN that means "not written yet", by bytes of a number
NAN = {4: 0x7FC00000, 8: 0x7FF8000000000000}  # bits of the NaN that is written for a dot product that is NaN


@jit
def _tile(
    A: tl.tensor,
    rows: tl.tensor,
    columns: tl.tensor,
    row_stride: tl.tensor,
    column_stride: tl.tensor,
    m: tl.tensor,
    inside: tl.tensor,
) -> tl.tensor:
    """Rows of A within the columns of a slice, with zeros outside of A."""
    where = rows[:, None].to(tl.int64) * row_stride + columns[None, :].to(tl.int64) * column_stride
    return tl.load(A + where, (rows < m)[:, None] & inside[None, :], 0.0)


@jit
def independent(
    A: tl.tensor,
    y: tl.tensor,
    x: tl.tensor,  # e where KIND is through
    gpu_s: tl.tensor,
    dots: tl.tensor,
    sums: tl.tensor,
    row_stride: tl.tensor,
    column_stride: tl.tensor,
    m: tl.tensor,
    n: tl.tensor,
    width: tl.tensor,
    s: tl.float64,
    KIND: tl.constexpr,  # mul, tmul, both or through
    HAS_E: tl.constexpr,
    S_ON_GPU: tl.constexpr,
    NARROW: tl.constexpr,
    ROWS: tl.constexpr,
    WIDTH: tl.constexpr,
    MEMBERS: tl.constexpr,
    TEAMS: tl.constexpr,
    STAGES: tl.constexpr,
) -> None:
    """Products by programs that do not wait for one another; `through` only if each team has one member.

    If rows are NARROW, the sum of multiples is kept for each row of the tile, since several threads share a column.
    """
    SUM = sums.dtype.element_ty
    team = tl.program_id(0) // MEMBERS
    member = tl.program_id(0) % MEMBERS
    local = tl.arange(0, WIDTH)
    columns = member * width + local
    inside = (local < width) & (columns < n)
    if KIND != "tmul":
        y_slice = tl.load(y + columns, inside, 0.0)
    if KIND == "through":
        if S_ON_GPU:  # noqa: SIM108 - Triton compiles one branch
            factor = tl.load(gpu_s).to(SUM)
        else:
            factor = tl.full([1], s, SUM)
    total = tl.zeros([ROWS if NARROW else 1, WIDTH], SUM)
    for block in tl.range(team, tl.cdiv(m, ROWS), TEAMS, num_stages=STAGES):
        rows = block * ROWS + tl.arange(0, ROWS)
        tile = _tile(A, rows, columns, row_stride, column_stride, m, inside).to(SUM)
        if KIND != "tmul":
            dot = tl.sum(tile * y_slice[None, :], 1)
            tl.store(dots + member.to(tl.int64) * m + rows, dot, rows < m)
        if KIND == "through":
            u = factor * dot
            if HAS_E:
                u += tl.load(x + rows, rows < m, 0.0)
        elif KIND != "mul":
            u = tl.load(x + rows, rows < m, 0.0)
        if KIND != "mul":
            if NARROW:
                total += tile * u[:, None]
            else:
                total += tl.sum(tile * u[:, None], 0, keep_dims=True)
    if KIND != "mul":
        tl.store(sums + team.to(tl.int64) * n + columns, tl.sum(total, 0), inside)


@jit
def _collect(
    dots: tl.tensor,
    block: tl.tensor,
    t: tl.tensor,
    e: tl.tensor,
    factor: tl.tensor,
    m: tl.tensor,
    first_member: tl.tensor,
    HAS_E: tl.constexpr,
    POLL: tl.constexpr,
    CONSTRAINTS: tl.constexpr,
    PACK: tl.constexpr,
    ROWS: tl.constexpr,
    MEMBERS: tl.constexpr,
    MEMBERS_UP: tl.constexpr,
) -> tl.tensor:
    """Wait for the dot products of all members for a block of rows, store their sum t, and return s t + e."""
    SUM = t.dtype.element_ty
    member = tl.arange(0, MEMBERS_UP)
    place = dots + (block.to(tl.int64) * MEMBERS + tl.minimum(member, MEMBERS - 1)[:, None]) * ROWS
    place += tl.arange(0, ROWS)[None, :]
    bits = tl.inline_asm_elementwise(POLL, CONSTRAINTS, [place.to(tl.int64)], dots.dtype.element_ty, False, PACK)
    dot = tl.sum(tl.where((member < MEMBERS)[:, None], bits.to(SUM, bitcast=True), 0.0), 0)
    rows = block * ROWS + tl.arange(0, ROWS)
    tl.store(t + rows, dot, (rows < m) & first_member)
    u = factor * dot
    if HAS_E:
        u += tl.load(e + rows, rows < m, 0.0)
    return u


@jit
def _cooperative(
    A: tl.tensor,
    row_stride: tl.tensor,
    column_stride: tl.tensor,
    m: tl.tensor,
    n: tl.tensor,
    width: tl.tensor,
    y: tl.tensor,
    e: tl.tensor,
    s: tl.float64,
    gpu_s: tl.tensor,
    t: tl.tensor,
    dots: tl.tensor,
    sums: tl.tensor,
    HAS_E: tl.constexpr,
    S_ON_GPU: tl.constexpr,
    NAN: tl.constexpr,
    POLL: tl.constexpr,
    CONSTRAINTS: tl.constexpr,
    PACK: tl.constexpr,
    ROWS: tl.constexpr,
    WIDTH: tl.constexpr,
    MEMBERS: tl.constexpr,
    MEMBERS_UP: tl.constexpr,
    TEAMS: tl.constexpr,
    STAGES: tl.constexpr,
) -> None:
    """The product `through` by teams: write the dot products of a tile, then use those of the tile before."""
    SUM = sums.dtype.element_ty
    BITS = dots.dtype.element_ty
    team = tl.program_id(0) // MEMBERS
    member = tl.program_id(0) % MEMBERS
    local = tl.arange(0, WIDTH)
    columns = member * width + local
    inside = (local < width) & (columns < n)
    y_slice = tl.load(y + columns, inside, 0.0)
    if S_ON_GPU:  # noqa: SIM108 - Triton compiles one branch
        factor = tl.load(gpu_s).to(SUM)
    else:
        factor = tl.full([1], s, SUM)
    total = tl.zeros([WIDTH], SUM)
    before = tl.zeros([ROWS, WIDTH], A.dtype.element_ty)
    blocks = tl.cdiv(m, ROWS)
    for block in tl.range(team, blocks, TEAMS, num_stages=STAGES):
        rows = block * ROWS + tl.arange(0, ROWS)
        tile = _tile(A, rows, columns, row_stride, column_stride, m, inside)
        dot = tl.sum(tile.to(SUM) * y_slice[None, :], 1)
        bits = tl.where(dot == dot, dot.to(BITS, bitcast=True), NAN)
        place = dots + (block.to(tl.int64) * MEMBERS + member) * ROWS + tl.arange(0, ROWS)
        tl.atomic_xchg(place, bits, sem="relaxed")
        last = tl.maximum(block - TEAMS, team)  # not carried from step to step: that would end the prefetching
        u = _collect(
            dots, last, t, e, factor, m, member == 0, HAS_E, POLL, CONSTRAINTS, PACK, ROWS, MEMBERS, MEMBERS_UP
        )
        u = tl.where(block == team, 0.0, u)  # no tile before the first
        total += tl.sum(before.to(SUM) * u[:, None], 0)
        before = tile
    last = team + (blocks - 1 - team) // TEAMS * TEAMS
    u = _collect(dots, last, t, e, factor, m, member == 0, HAS_E, POLL, CONSTRAINTS, PACK, ROWS, MEMBERS, MEMBERS_UP)
    total += tl.sum(before.to(SUM) * u[:, None], 0)
    tl.store(sums + team.to(tl.int64) * n + columns, total, inside)


@jit
def _add_up(
    parts: tl.tensor, out: tl.tensor, count: tl.tensor, size: tl.tensor, COUNT: tl.constexpr, WIDTH: tl.constexpr
) -> None:
    """The column sums of a count x size array, in a fixed order."""
    columns = tl.program_id(0) * WIDTH + tl.arange(0, WIDTH)
    total = tl.zeros([WIDTH], out.dtype.element_ty)
    for start in range(0, count, COUNT):
        rows = start + tl.arange(0, COUNT)
        where = rows[:, None].to(tl.int64) * size + columns[None, :]
        total += tl.sum(tl.load(parts + where, (rows < count)[:, None] & (columns < size)[None, :], 0.0), 0)
    tl.store(out + columns, total, columns < size)


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
    """Write A y into t: by PyTorch, or by a kernel of this module if A and y have different dtypes."""
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
    arguments += (e is not None, _on_gpu(s), NAN[size], *_poll(size, pack), pack)
    arguments += (rows, plan.span, members, members_up, teams, stages)
    launch(_cooperative, teams * members, arguments, num_warps=plan.warps, launch_cooperative_grid=True)
    if teams > 1:
        _sum_rows(sums, u)


def _sum_rows(parts: Tensor, out: Tensor) -> None:
    count, size = parts.shape
    launch(
        _add_up, math.ceil(size / 32), (parts, out, count, size, min(256, ceil_power_of_two(count)), 32), num_warps=8
    )


def _on_gpu(s: float | Tensor) -> bool:
    return isinstance(s, torch.Tensor) and s.device.type == "cuda"


def _factor(s: float | Tensor) -> tuple[float, Tensor | None]:
    return (1.0, s) if _on_gpu(s) else (float(s), None)


@cache
def _poll(size: int, pack: int) -> tuple[str, str]:
    """Assembly that reads ``pack`` places repeatedly until none of them is EMPTY."""
    kind, register = {4: ("b32", "r"), 8: ("b64", "l")}[size]
    reads = [f"ld.relaxed.gpu.global.{kind} ${i}, [${pack + i}];" for i in range(pack)]
    tests = [f"setp.eq.{kind} again, ${i}, {EMPTY[size]:#x};\n@again bra wait;" for i in range(pack)]
    lines = ["{", ".reg .pred again;", "wait:", *reads, *tests, "}"]
    return "\n".join(lines), ",".join([f"=&{register}"] * pack + ["l"] * pack)


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
