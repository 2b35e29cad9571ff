"""Triton kernels of the fused products with a dense A on an NVIDIA GPU.

A program (one for each multiprocessor) loads a tile of whole rows, computes their dot products with y,
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

from functools import cache
from typing import TYPE_CHECKING

from saddlepoint.parts.coupling.triton_launch import jit

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
def cooperative(
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
def add_up(
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


@cache
def poll(size: int, pack: int) -> tuple[str, str]:
    """Assembly that reads ``pack`` places repeatedly until none of them is EMPTY."""
    kind, register = {4: ("b32", "r"), 8: ("b64", "l")}[size]
    reads = [f"ld.relaxed.gpu.global.{kind} ${i}, [${pack + i}];" for i in range(pack)]
    tests = [f"setp.eq.{kind} again, ${i}, {EMPTY[size]:#x};\n@again bra wait;" for i in range(pack)]
    lines = ["{", ".reg .pred again;", "wait:", *reads, *tests, "}"]
    return "\n".join(lines), ",".join([f"=&{register}"] * pack + ["l"] * pack)
