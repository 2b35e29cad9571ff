"""The inner products by which two gradients are compared, on an NVIDIA GPU: one Triton kernel, and one wait."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from saddlepoint.ground.arrays import Array
from saddlepoint.parts.coupling.triton_launch import jit, launch, torch

if TYPE_CHECKING:
    import triton.language as tl
else:
    from saddlepoint.parts.coupling.triton_launch import tl

BLOCK = 1024  # entries that a program takes at a time
PROGRAMS = 128  # most programs; each of them writes five sums, which the host adds up


def pair_products(x: Any, p: Any, x0: Any, p0: Any) -> Array | None:
    """The products dx'dx, dx'dp, dp'dp, x'x and p'p in float64, where dx = x - x0 and dp = p - p0, as a NumPy array.

    The vectors are CUDA tensors of one length. None if there is no Triton, or a vector is none that it can read.
    """
    vectors = x, p, x0, p0
    if tl is None or not all(isinstance(v, torch.Tensor) and v.is_cuda and v.is_contiguous() for v in vectors):
        return None
    if len({v.dtype for v in vectors}) > 1 or x.dtype not in (torch.float32, torch.float64):
        return None
    n = x.shape[0]
    programs = max(1, min(PROGRAMS, math.ceil(n / BLOCK)))
    sums = torch.empty((5, programs), dtype=torch.float64, device=x.device)
    launch(_products, programs, (*vectors, sums, n, programs, BLOCK))
    total: Array = sums.cpu().numpy().sum(1)
    return total


@jit
def _products(
    x: tl.tensor,
    p: tl.tensor,
    x0: tl.tensor,
    p0: tl.tensor,
    sums: tl.tensor,
    n: tl.tensor,
    programs: tl.tensor,
    BLOCK: tl.constexpr,
) -> None:
    xx = tl.zeros([BLOCK], tl.float64)
    xp = tl.zeros([BLOCK], tl.float64)
    pp = tl.zeros([BLOCK], tl.float64)
    of_x = tl.zeros([BLOCK], tl.float64)
    of_p = tl.zeros([BLOCK], tl.float64)
    for start in range(tl.program_id(0) * BLOCK, n, programs * BLOCK):
        at = start + tl.arange(0, BLOCK)
        a = tl.load(x + at, at < n, 0.0).to(tl.float64)
        b = tl.load(p + at, at < n, 0.0).to(tl.float64)
        dx = a - tl.load(x0 + at, at < n, 0.0).to(tl.float64)
        dp = b - tl.load(p0 + at, at < n, 0.0).to(tl.float64)
        xx += dx * dx
        xp += dx * dp
        pp += dp * dp
        of_x += a * a
        of_p += b * b
    place = sums + tl.program_id(0)
    tl.store(place, tl.sum(xx, 0))
    tl.store(place + programs, tl.sum(xp, 0))
    tl.store(place + 2 * programs, tl.sum(pp, 0))
    tl.store(place + 3 * programs, tl.sum(of_x, 0))
    tl.store(place + 4 * programs, tl.sum(of_p, 0))
