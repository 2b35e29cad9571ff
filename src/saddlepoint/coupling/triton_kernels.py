"""One pass over a dense A on an NVIDIA GPU: the fused products as Triton kernels, and when they pay.

    both(A, x, y)        -> A y, A'x
    through(A, y, s, e)  -> t = A y, A'(s t + e)

A is a 2-D CUDA tensor, by rows or by columns. The vectors and all sums are float64 where A or a vector is, and float32
otherwise: A may be stored in half precision. Nothing here waits for the GPU; a call can be captured in a CUDA graph.

How it works. A program (one a multiprocessor) takes a tile of whole rows, forms their dot products with y, and adds
their multiples to a sum of its own while the tile is in registers; the next tiles are on their way meanwhile. A second,
small kernel adds the sums of the programs in a fixed order: same inputs, same bits.

Rows too long for the registers of one program are cut into slices, one for each member of a team. In `both` the members
need not meet. In `through` they exchange the dot products of their slices through memory, one tile behind the reading,
so that nobody waits. A dot product is its own signal: the place where it will stand holds a NaN that no arithmetic
yields. The launch is cooperative, so all members run at the same time.

Where A lies by columns, `both` is the mirror image of itself. `through` is not: a tile of whole rows is then as high as
A's columns are apart. The same teams do it, with short slices, and gain less.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from saddlepoint.errors import ProblemError

if TYPE_CHECKING:
    import triton.language as tl

__all__ = ["as_torch", "available", "both", "fuses", "like", "mul", "through", "tmul"]

Tensor = Any
Kind = Literal["both", "through"]

WARPS = 16
TILE = 64 << 10  # bytes of A in a tile
REGISTERS = 192 << 10  # bytes of registers for the tiles, the slice of y and the sum; the rest is the compiler's
SPARE = 16 << 10  # bytes of shared memory left to reductions
BY_COLUMNS = 512  # columns of a slice where A lies by columns
BUSY = 0.95  # share of the multiprocessors that teams must keep busy
# Bytes of A from which one pass is quicker than two products by the library (benchmarks/fused_gpu.py, NVIDIA H200).
PAYS = {"both": 96 << 20, "through": 96 << 20}
EMPTY = {4: 0x7FC5ADDD, 8: 0x7FF85ADDD1E90172}  # NaNs that stand for "not here yet", by bytes
NAN = {4: 0x7FC00000, 8: 0x7FF8000000000000}  # the one NaN that is ever published


def _optional(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError:
        return None


torch, triton = _optional("torch"), _optional("triton")
if not TYPE_CHECKING:
    tl = _optional("triton.language")


def available() -> bool:
    """True where PyTorch, Triton and a CUDA GPU are at hand."""
    return torch is not None and triton is not None and bool(torch.cuda.is_available())


def _jit(kernel: Callable[..., Any]) -> Any:
    return kernel if triton is None else triton.jit(kernel)


@_jit
def _tile(
    A: tl.tensor,
    rows: tl.tensor,
    columns: tl.tensor,
    row_stride: tl.tensor,
    column_stride: tl.tensor,
    m: tl.tensor,
    inside: tl.tensor,
) -> tl.tensor:
    """Rows of A within the columns of a slice, and zeros outside."""
    where = rows[:, None].to(tl.int64) * row_stride + columns[None, :].to(tl.int64) * column_stride
    return tl.load(A + where, (rows < m)[:, None] & inside[None, :], 0.0)


@_jit
def _alone(
    A: tl.tensor,
    row_stride: tl.tensor,
    column_stride: tl.tensor,
    m: tl.tensor,
    n: tl.tensor,
    width: tl.tensor,
    y: tl.tensor,
    x: tl.tensor,  # e where KIND is through
    s: tl.float64,
    gpu_s: tl.tensor,
    dots: tl.tensor,
    sums: tl.tensor,
    KIND: tl.constexpr,  # mul, tmul, both or through
    HAS_E: tl.constexpr,
    S_ON_GPU: tl.constexpr,
    ROWS: tl.constexpr,
    WIDTH: tl.constexpr,
    MEMBERS: tl.constexpr,
    TEAMS: tl.constexpr,
    STAGES: tl.constexpr,
) -> None:
    """Products by programs that need not wait for one another: all kinds, but `through` only with one member a team."""
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
    total = tl.zeros([WIDTH], SUM)
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
            total += tl.sum(tile * u[:, None], 0)
        elif KIND != "mul":
            u = tl.load(x + rows, rows < m, 0.0)
            total += tl.sum(tile * u[:, None], 0)
    if KIND != "mul":
        tl.store(sums + team.to(tl.int64) * n + columns, total, inside)


@_jit
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
    """Wait for the dot products of all members; store their sum t, and return s t + e, for the rows of a block."""
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


@_jit
def _together(
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
    """The product `through` by teams: publish the dot products of a tile, then use those of the tile before."""
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


@_jit
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


class Plan(NamedTuple):
    """How the programs share A: teams take tiles of ``rows`` in turn, and each member a slice of ``width`` columns."""

    rows: int
    width: int
    members: int
    teams: int
    stages: int  # tiles in use or on their way

    @property
    def span(self) -> int:
        """The width of a tile: a power of two."""
        return _power_of_two(self.width)


def _power_of_two(k: int, least: int = 16) -> int:
    return max(least, 1 << (k - 1).bit_length())


@cache
def _plan(
    kind: str, m: int, n: int, size: int, sum_size: int, by_rows: bool, processors: int, shared: int
) -> Plan | None:
    """A plan for an m x n matrix with entries of ``size`` bytes, or None where one pass cannot do it."""
    if by_rows:
        alone = REGISTERS // (3 * sum_size)  # a row, y and the sum
        waits = kind == "through" and n > alone
        longest = (
            REGISTERS // (2 * (size + sum_size) + 2 * sum_size) if waits else alone
        )  # two rows, and the two before
        longest = 1 << (longest.bit_length() - 1)
    else:
        waits, longest = True, BY_COLUMNS
    members = _even(math.ceil(n / longest), processors)
    if members is None:
        return None
    width = n if members == 1 else 16 * math.ceil(n / members / 16)
    span = _power_of_two(width)
    held = REGISTERS - 2 * span * sum_size
    rows = 1 << (min(TILE // (span * size), held // (span * (sum_size + waits * size))).bit_length() - 1)
    teams = processors // members
    while rows > 1 and math.ceil(m / rows) < teams:
        rows //= 2
    stages = min(4, 1 + (shared - SPARE) // (rows * span * size))
    return Plan(rows, width, members, min(teams, math.ceil(m / rows)), stages)


def _even(members: int, processors: int) -> int | None:
    """At least so many members a team that the teams keep the GPU busy."""
    busy = (k for k in range(members, processors + 1) if processors // k * k >= BUSY * processors)
    return next(busy, None)


@cache
def _resources(device: int) -> tuple[int, int]:
    """Multiprocessors, and bytes of shared memory a program can have."""
    found = torch.cuda.get_device_properties(device)
    return found.multi_processor_count, getattr(found, "shared_memory_per_block_optin", 99 << 10)


def _by_rows(A: Tensor) -> bool:
    return bool(A.stride(1) == 1 or A.shape[1] == 1)


def _by_columns(A: Tensor) -> bool:
    return bool(A.stride(0) == 1 or A.shape[0] == 1)


def _sum_type(*operands: Tensor) -> Any:
    wide = any(v is not None and v.dtype == torch.float64 for v in operands)
    return torch.float64 if wide else torch.float32


def _plan_for(A: Tensor, kind: str, sum_type: Any) -> Plan | None:
    """The plan for one pass over A, or None where it lies neither by rows nor by columns or is too wide."""
    if not (_by_rows(A) or _by_columns(A)):
        return None
    m, n = A.shape
    return _plan(kind, m, n, A.element_size(), sum_type.itemsize, _by_rows(A), *_resources(A.device.index))


def fuses(A: Tensor, kind: Kind, vectors: Any = None) -> bool:
    """True where ``both`` or ``through`` reads A once. ``vectors`` is the type of x and y, by default that of A."""
    return _chosen(A, kind, _sum_type(A) if vectors is None else torch.promote_types(_sum_type(A), vectors)) is not None


def _chosen(A: Tensor, kind: Kind, sum_type: Any) -> Plan | None:
    """The plan, unless two library products are as quick."""
    if kind == "both" and not _by_rows(A):
        A = A.T
    found = _plan_for(A, kind, sum_type)
    pays = A.dtype != sum_type or A.numel() * A.element_size() >= PAYS[kind]
    return found if pays else None


def both(
    A: Tensor, x: Tensor, y: Tensor, *, out: tuple[Tensor, Tensor] | None = None, fuse: bool | None = None
) -> tuple[Tensor, Tensor]:
    """(A y, A'x), into ``out`` if given, which must not overlap x and y.

    ``fuse`` asks for one pass, or for two products; by default the size of A decides.
    """
    if not _by_rows(_matrix(A)) and _by_columns(A):
        u, t = both(A.T, y, x, out=None if out is None else (out[1], out[0]), fuse=fuse)
        return t, u
    sum_type = _sum_type(A, x, y)
    x, y = _vector(x, "x", A, 0, sum_type), _vector(y, "y", A, 1, sum_type)
    t, u = _outputs(A, out, sum_type)
    found = _decide(A, "both", sum_type, fuse)
    if found is None:
        _product(A, y, t)
        _product(A.T, x, u)
    else:
        _run_alone(A, "both", found, y, x, 1.0, t, u)
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
    found = _decide(A, "through", sum_type, fuse)
    if found is None:
        _product(A, y, t)
        scaled = t if not _on_gpu(s) and s == 1 else (s * t).to(sum_type)
        _product(A.T, scaled if e is None else scaled + e, u)
    elif found.members == 1:
        _run_alone(A, "through", found, y, e, s, t, u)
    else:
        _run_together(A, found, y, e, s, t, u)
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


def _decide(A: Tensor, kind: Kind, sum_type: Any, fuse: bool | None) -> Plan | None:
    if fuse is None:
        return _chosen(A, kind, sum_type)
    found = _plan_for(A, kind, sum_type) if fuse else None
    if fuse and found is None:
        raise ProblemError(
            f"one pass cannot do {kind} for A of shape {tuple(A.shape)} and strides {tuple(A.stride())}; omit fuse=True"
        )
    return found


def _product(A: Tensor, y: Tensor, t: Tensor) -> None:
    """A y into t: by the library, or by a kernel here where A is narrower than y."""
    if A.dtype == y.dtype:
        torch.mv(A, y, out=t)
    elif _by_rows(A) or not _by_columns(A):
        _run_alone(A, "mul", _required(A, y.dtype), y, None, 1.0, t, t)
    else:
        _run_alone(A.T, "tmul", _required(A.T, y.dtype), None, y, 1.0, t, t)


def _required(A: Tensor, sum_type: Any) -> Plan:
    m, n = A.shape
    found = _plan("both", m, n, A.element_size(), sum_type.itemsize, True, *_resources(A.device.index))
    if found is None:
        raise ProblemError(f"A has {n} columns, too many for products in mixed precision; convert A to {sum_type}")
    return found


def _run_alone(
    A: Tensor, kind: str, plan: Plan, y: Tensor | None, x: Tensor | None, s: float | Tensor, t: Tensor, u: Tensor
) -> None:
    m, n = A.shape
    rows, width, members, teams, stages = plan
    sums = u if teams == 1 else u.new_empty((teams, n))
    dots = t if members == 1 else t.new_empty((members, m))
    _launch(
        _alone,
        teams * members,
        *(A, A.stride(0), A.stride(1), m, n, width, y, x, *_factor(s), dots, sums),
        KIND=kind,
        HAS_E=x is not None,
        S_ON_GPU=_on_gpu(s),
        ROWS=rows,
        WIDTH=plan.span,
        MEMBERS=members,
        TEAMS=teams,
        STAGES=stages,
    )
    if kind != "tmul" and members > 1:
        _sum_rows(dots, t)
    if kind != "mul" and teams > 1:
        _sum_rows(sums, u)


def _run_together(A: Tensor, plan: Plan, y: Tensor, e: Tensor | None, s: float | Tensor, t: Tensor, u: Tensor) -> None:
    m, n = A.shape
    rows, width, members, teams, stages = plan
    size = t.element_size()
    members_up = _power_of_two(members, 1)
    pack = max(1, min(8, members_up * rows // (32 * WARPS)))
    poll, constraints = _poll(size, pack)
    sums = u if teams == 1 else u.new_empty((teams, n))
    dots = torch.full(
        (math.ceil(m / rows) * members * rows,),
        EMPTY[size],
        dtype=torch.int64 if size == 8 else torch.int32,
        device=A.device,
    )
    _launch(
        _together,
        teams * members,
        *(A, A.stride(0), A.stride(1), m, n, width, y, e, *_factor(s), t, dots, sums),
        HAS_E=e is not None,
        S_ON_GPU=_on_gpu(s),
        NAN=NAN[size],
        POLL=poll,
        CONSTRAINTS=constraints,
        PACK=pack,
        ROWS=rows,
        WIDTH=plan.span,
        MEMBERS=members,
        MEMBERS_UP=members_up,
        TEAMS=teams,
        STAGES=stages,
        launch_cooperative_grid=True,
    )
    if teams > 1:
        _sum_rows(sums, u)


def _on_gpu(s: float | Tensor) -> bool:
    return isinstance(s, torch.Tensor) and s.device.type == "cuda"


def _factor(s: float | Tensor) -> tuple[float, Tensor | None]:
    return (1.0, s) if _on_gpu(s) else (float(s), None)


def _sum_rows(parts: Tensor, out: Tensor) -> None:
    count, size = parts.shape
    _launch(_add_up, math.ceil(size / 32), parts, out, count, size, COUNT=min(256, _power_of_two(count)), WIDTH=32)


def _launch(kernel: Any, programs: int, A: Tensor, *arguments: Any, **options: Any) -> None:
    """Launch on the GPU that holds the first argument."""
    if A.device.index == torch.cuda.current_device():
        kernel[(programs,)](A, *arguments, num_warps=WARPS, **options)
    else:
        with torch.cuda.device(A.device):
            kernel[(programs,)](A, *arguments, num_warps=WARPS, **options)


@cache
def _poll(size: int, pack: int) -> tuple[str, str]:
    """Assembly that reads ``pack`` places again and again until none of them is EMPTY."""
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
    fits = isinstance(v, torch.Tensor) and v.shape == A.shape[axis : axis + 1] and v.device == A.device
    if not fits or not v.dtype.is_floating_point:
        raise ProblemError(f"{name} is {_description(v)}; expected {A.shape[axis]} real numbers on {A.device}, as A is")
    return v.to(sum_type).contiguous()


def _outputs(A: Tensor, out: tuple[Tensor, Tensor] | None, sum_type: Any) -> tuple[Tensor, Tensor]:
    first, second = (None, None) if out is None else out
    return _output(first, "out[0]", A, 0, sum_type), _output(second, "out[1]", A, 1, sum_type)


def _output(v: Tensor | None, name: str, A: Tensor, axis: int, sum_type: Any) -> Tensor:
    if v is None:
        return torch.empty(A.shape[axis], dtype=sum_type, device=A.device)
    fits = isinstance(v, torch.Tensor) and v.shape == A.shape[axis : axis + 1] and v.device == A.device
    if not fits or v.dtype != sum_type or not v.is_contiguous():
        raise ProblemError(
            f"{name} is {_description(v)}; expected a contiguous tensor of {A.shape[axis]} {sum_type} on {A.device}"
        )
    return v


def _description(v: Any) -> str:
    if not isinstance(v, torch.Tensor):
        return f"of type {type(v).__name__}"
    return f"a tensor of shape {tuple(v.shape)} and type {v.dtype} on {v.device}"


def as_torch(array: Any) -> Tensor:
    """The same memory as a torch tensor: for the arrays of CuPy, JAX and all that speak DLPack.

    Work that their libraries have still to do on it is waited for by the GPU, on torch's stream, not by the host.
    """
    return array if isinstance(array, torch.Tensor) else torch.from_dlpack(array)


def like(tensor: Tensor, array: Any) -> Any:
    """The same memory as an array of the library that ``array`` is of; the stream of that library waits for torch's.

    Keep what went in by ``as_torch`` until then: its library may use the memory again once it is let go. And do not
    write into a tensor that was handed to JAX, whose arrays are taken never to change.
    """
    return tensor if isinstance(array, torch.Tensor) else array.__array_namespace__().from_dlpack(tensor)
