"""Products with a dense A in compensated arithmetic on an NVIDIA GPU, as Triton kernels.

Every product a y is replaced by the pair p = fl(a y), e = a y - p, which a fused multiply-add computes exactly; the p
are added up with the error of each addition, and all errors are added up beside them (T. Ogita, S. M. Rump and S.
Oishi, Accurate sum and dot product, SIAM J. Sci. Comput. 2005). A program takes some rows of A and a part of their
columns. Each entry of its tile has a sum of its own; in the end these sums are added up in pairs, and so are those of
the parts. Two sums are added up with the error of that addition, too.

The error. Let D be the largest number of additions that a term goes through. The partial sums are at most (1 + eps)^D
times the sum of the |p| in them, so that the errors of all additions and of all products together are at most
gamma_{D+1} times the sum of the |p|. Each of them goes through at most 2 D + 1 additions, which lose at most
gamma_{2D+1} times their sum: in all less than gamma_{2D+4}^2 times the sum of the |p|, which is computed too. The
kernels are compiled without the freedom to contract a product and a sum into one operation, and Triton computes sums
as they are written.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

from saddlepoint.ground.compensated import EPS, UP, Sum, two_sum
from saddlepoint.ground.rounding import gamma
from saddlepoint.parts.coupling.triton_launch import Tensor, jit, torch

if TYPE_CHECKING:
    import triton.language as tl
else:
    from saddlepoint.parts.coupling.triton_launch import tl

LEAST = 2.0**-1074  # smallest positive number: the most that underflow changes in one operation
PROGRAMS = 1024  # rows are cut into parts until there are about this many programs
SHORTEST = 4096  # least number of terms of a part
ALONG_ROWS = 8, 128  # rows and columns of a tile of a row-major A; the fastest on an NVIDIA H200
ALONG_COLUMNS = 32, 32  # rows and columns of a tile of a column-major A


class Parts(NamedTuple):
    """How A is divided: into tiles of so many rows and columns, and its rows into parts of so many tiles."""

    rows: int
    columns: int
    tiles: int
    number: int

    @property
    def additions(self) -> int:
        """The most additions that a term goes through, in any order: in its part, within a tile, and of all parts."""
        return self.tiles + self.columns + self.number


def parts(m: int, n: int, by_rows: bool) -> Parts:
    """The division of an m x n matrix that is stored by rows or by columns."""
    rows, columns = ALONG_ROWS if by_rows else ALONG_COLUMNS
    wanted = math.ceil(PROGRAMS / math.ceil(m / rows))
    count = max(1, min(wanted, n // SHORTEST))
    tiles = math.ceil(math.ceil(n / columns) / count)
    return Parts(rows, columns, tiles, math.ceil(n / (columns * tiles)))


def dot2(A: Tensor, y: Tensor) -> Sum:
    """A y for a 2-D CUDA tensor of any real dtype in rows or columns, and a vector of float64."""
    m, n = A.shape
    y = y.contiguous()
    plan = parts(m, n, A.stride(1) <= A.stride(0))
    sums = torch.empty((3, plan.number, m), dtype=torch.float64, device=A.device)
    with torch.cuda.device(A.device):
        _dot2[(math.ceil(m / plan.rows), plan.number)](
            A, y, sums, *A.stride(), m, n, plan.rows, plan.columns, plan.tiles, num_warps=4, enable_fp_fusion=False
        )
        if plan.number > 1:
            sums, several = torch.empty((3, 1, m), dtype=torch.float64, device=A.device), sums
            _joined[(math.ceil(m / 128),)](several, sums, m, plan.number, 128, num_warps=4, enable_fp_fusion=False)
    hi, lo, size = sums[:, 0, :]
    error = UP * gamma(2 * plan.additions + 4, EPS) ** 2 * size
    hi, lo = two_sum(hi, lo)
    return Sum(hi, lo, torch.where(size > 0.0, error + 2.0 * n * LEAST, error))  # each product can underflow


@jit
def _pair(s: tl.tensor, c: tl.tensor, w: tl.tensor, s2: tl.tensor, c2: tl.tensor, w2: tl.tensor) -> Any:
    """The sum of two sums s, with their errors c and the sums w of the absolute values."""
    t = s + s2
    z = t - s
    return t, (c + c2) + ((s - (t - z)) + (s2 - z)), w + w2


@jit
def _dot2(
    A: tl.tensor,
    y: tl.tensor,
    sums: tl.tensor,
    row_stride: tl.tensor,
    column_stride: tl.tensor,
    m: tl.tensor,
    n: tl.tensor,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
    TILES: tl.constexpr,
) -> None:
    """The sums, errors and sizes of one part of some rows."""
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    part = tl.program_id(1)
    s = tl.zeros([ROWS, COLUMNS], tl.float64)
    c = tl.zeros([ROWS, COLUMNS], tl.float64)
    w = tl.zeros([ROWS, COLUMNS], tl.float64)
    start = A + rows[:, None].to(tl.int64) * row_stride
    for tile in range(part * TILES, min((part + 1) * TILES, tl.cdiv(n, COLUMNS))):
        columns = tile * COLUMNS + tl.arange(0, COLUMNS)
        inside = (rows < m)[:, None] & (columns < n)[None, :]
        a = tl.load(start + columns[None, :].to(tl.int64) * column_stride, inside, 0.0).to(tl.float64)
        b = tl.load(y + columns, columns < n, 0.0)[None, :] + tl.zeros([ROWS, COLUMNS], tl.float64)
        p = a * b
        t = s + p
        z = t - s
        c += tl.fma(a, b, -p) + ((s - (t - z)) + (p - z))
        w += tl.abs(p)
        s = t
    s, c, w = tl.reduce((s, c, w), 1, _pair)
    count = tl.num_programs(1)
    place = sums + part.to(tl.int64) * m + rows
    tl.store(place, s, rows < m)
    tl.store(place + count.to(tl.int64) * m, c, rows < m)
    tl.store(place + 2 * count.to(tl.int64) * m, w, rows < m)


@jit
def _joined(parts: tl.tensor, sums: tl.tensor, m: tl.tensor, count: tl.tensor, ROWS: tl.constexpr) -> None:
    """The sums of all parts, one after the other."""
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    s = tl.zeros([ROWS], tl.float64)
    c = tl.zeros([ROWS], tl.float64)
    w = tl.zeros([ROWS], tl.float64)
    for part in range(count):
        place = parts + part * m + rows
        s2 = tl.load(place, rows < m, 0.0)
        c2 = tl.load(place + count * m, rows < m, 0.0)
        w2 = tl.load(place + 2 * count * m, rows < m, 0.0)
        s, c, w = _pair(s, c, w, s2, c2, w2)
    tl.store(sums + rows, s, rows < m)
    tl.store(sums + m + rows, c, rows < m)
    tl.store(sums + 2 * m + rows, w, rows < m)
