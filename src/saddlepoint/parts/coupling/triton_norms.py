"""The Euclidean norms of the rows of a dense A on an NVIDIA GPU, by one pass over A and without a copy of it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from saddlepoint.parts.coupling.triton_dot2 import parts
from saddlepoint.parts.coupling.triton_launch import Tensor, jit, torch

if TYPE_CHECKING:
    import triton.language as tl
else:
    from saddlepoint.parts.coupling.triton_launch import tl

LEAST = 1e-280  # smaller sums of squares may have lost digits, if the entries are numbers of float64


def row_norms(A: Tensor) -> Tensor | None:
    """The norms in float64 of the rows of a 2-D CUDA tensor in rows or columns.

    None if they cannot be computed from squares without overflow or underflow. A row of zeros counts as underflow in
    float64, because it cannot be told from one whose squares underflow.
    """
    m, n = A.shape
    plan = parts(m, n, A.stride(1) <= A.stride(0))
    sums = torch.empty((plan.number, m), dtype=torch.float64, device=A.device)
    with torch.cuda.device(A.device):
        _squares[(math.ceil(m / plan.rows), plan.number)](
            A, sums, *A.stride(), m, n, plan.rows, plan.columns, plan.tiles, num_warps=4
        )
    squares = sums[0] if plan.number == 1 else sums.sum(0)
    least, most = torch.stack(torch.aminmax(squares)).tolist()
    if not most < math.inf or (A.dtype == torch.float64 and not least > LEAST):
        return None
    return torch.sqrt(squares)


@jit
def _squares(
    A: tl.tensor,
    sums: tl.tensor,
    row_stride: tl.tensor,
    column_stride: tl.tensor,
    m: tl.tensor,
    n: tl.tensor,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
    TILES: tl.constexpr,
) -> None:
    """The sums of the squares of one part of some rows."""
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    part = tl.program_id(1)
    total = tl.zeros([ROWS, COLUMNS], tl.float64)
    start = A + rows[:, None].to(tl.int64) * row_stride
    for tile in range(part * TILES, min((part + 1) * TILES, tl.cdiv(n, COLUMNS))):
        columns = tile * COLUMNS + tl.arange(0, COLUMNS)
        inside = (rows < m)[:, None] & (columns < n)[None, :]
        a = tl.load(start + columns[None, :].to(tl.int64) * column_stride, inside, 0.0).to(tl.float64)
        total += a * a
    tl.store(sums + part.to(tl.int64) * m + rows, tl.sum(total, 1), rows < m)
