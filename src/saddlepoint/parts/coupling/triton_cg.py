"""The vectors of conjugate gradients on an NVIDIA GPU, as Triton kernels: three for a step, and one wait.

The system is (I + a^2 A'A) y = q + a A'p with x = p - a A y, as in ``methods.resolvent``. Between two products with A,
a step forms three inner products and four sums of vectors. As operations of PyTorch these are about twenty kernels and
four waits, which take longer than reading A. All inner products are summed up in float64 and in a fixed order, so the
same inputs give the same bits.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from saddlepoint.parts.coupling.cg_numbers import Numbers
from saddlepoint.parts.coupling.triton_launch import Tensor, jit, launch, torch

if TYPE_CHECKING:
    import triton.language as tl
else:
    from saddlepoint.parts.coupling.triton_launch import tl

BLOCK = 1024  # entries of a program
PARTS = 64  # most programs whose sums another program adds up at a time


class Vectors:
    """The vectors x, y, the residual r and the direction d, which are changed in place.

    Args:
        a: the factor of A in the system.
        x, y, r: the start; x and r are overwritten.
        origin: the point from which distances are measured.
    """

    def __init__(self, a: float, x: Tensor, y: Tensor, r: Tensor, origin: tuple[Tensor, Tensor]) -> None:
        self.a = a
        self.x, self.y, self.r, self.d = x, y.clone(), r, torch.empty_like(r)
        self.origin = origin[0].contiguous(), origin[1].contiguous()
        self.sizes = x.shape[0], y.shape[0]
        self.blocks = math.ceil(max(self.sizes) / BLOCK)
        self.sums = torch.empty((4, self.blocks), dtype=torch.float64, device=x.device)
        numbers = torch.empty((2, 4), dtype=torch.float64, device=x.device)
        self.numbers = numbers[0], numbers[1]  # of this step and of the last one, or the other way round
        self.count = 0
        self._update(None, None)

    @staticmethod
    def can_hold(*vectors: Any) -> bool:
        """Whether the vectors are CUDA tensors of one dtype, float32 or float64, and Triton is installed."""
        if torch is None or tl is None or not all(isinstance(v, torch.Tensor) and v.is_cuda for v in vectors):
            return False
        return len({v.dtype for v in vectors}) == 1 and vectors[0].dtype in (torch.float32, torch.float64)

    def step(self, t: Tensor, u: Tensor) -> None:
        """Move by a step of conjugate gradients, where t = A d and u = A't."""
        u = u.contiguous()
        launch(_curvature, self.blocks, (self.d, u, self.sums, self.sizes[1], self.a * self.a, self.blocks, BLOCK))
        self._update(t.contiguous(), u)

    def _update(self, t: Tensor | None, u: Tensor | None) -> None:
        """Move x, y and r if t and u are given; then the direction follows."""
        m, n = self.sizes
        old, new = self.numbers[self.count % 2], self.numbers[1 - self.count % 2]
        moves = t is not None
        products = (t, u) if moves else (self.x, self.r)
        vectors = (self.x, self.y, self.r, self.d, *products, *self.origin)
        launch(_moved, self.blocks, (*vectors, self.sums, old, m, n, self.a, self.blocks, BLOCK, PARTS, moves))
        launch(_direction, self.blocks, (self.r, self.d, self.sums, old, new, n, self.blocks, BLOCK, PARTS, moves))
        self.count += 1

    def read(self) -> Numbers:
        """Wait for the last step, and return its numbers."""
        return Numbers(*self.numbers[self.count % 2].tolist()[:3])


@jit
def _added_up(sums: tl.tensor, count: tl.tensor, PARTS: tl.constexpr) -> tl.tensor:
    """The sum of ``count`` numbers, in a fixed order."""
    total = tl.zeros([PARTS], tl.float64)
    for start in range(0, count, PARTS):
        at = start + tl.arange(0, PARTS)
        total += tl.load(sums + at, at < count, 0.0)
    return tl.sum(total, 0)


@jit
def _curvature(
    d: tl.tensor, u: tl.tensor, sums: tl.tensor, n: tl.tensor, aa: tl.float64, count: tl.tensor, BLOCK: tl.constexpr
) -> None:
    """Sums of the products of d and M d = d + a^2 u."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    direction = tl.load(d + at, at < n, 0.0).to(tl.float64)
    Md = direction + aa * tl.load(u + at, at < n, 0.0).to(tl.float64)
    tl.store(sums + tl.program_id(0), tl.sum(direction * Md, 0))


@jit
def _moved(
    x: tl.tensor,
    y: tl.tensor,
    r: tl.tensor,
    d: tl.tensor,
    t: tl.tensor,
    u: tl.tensor,
    origin_x: tl.tensor,
    origin_y: tl.tensor,
    sums: tl.tensor,
    old: tl.tensor,
    m: tl.tensor,
    n: tl.tensor,
    a: tl.float64,
    count: tl.tensor,
    BLOCK: tl.constexpr,
    PARTS: tl.constexpr,
    MOVES: tl.constexpr,
) -> None:
    """x, y and r after a step, and sums of the squares of r and of the distances of x and y from the origin."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x_now = tl.load(x + at, at < m, 0.0).to(tl.float64)
    y_now = tl.load(y + at, at < n, 0.0).to(tl.float64)
    r_now = tl.load(r + at, at < n, 0.0).to(tl.float64)
    if MOVES:
        curvature = _added_up(sums, count, PARTS)
        step = tl.where(curvature == 0.0, 0.0, tl.load(old + 1) / curvature)
        direction = tl.load(d + at, at < n, 0.0).to(tl.float64)
        x_now -= (a * step) * tl.load(t + at, at < m, 0.0).to(tl.float64)
        y_now += step * direction
        r_now -= step * (direction + (a * a) * tl.load(u + at, at < n, 0.0).to(tl.float64))
        tl.store(x + at, x_now.to(x.dtype.element_ty), at < m)
        tl.store(y + at, y_now.to(y.dtype.element_ty), at < n)
        tl.store(r + at, r_now.to(r.dtype.element_ty), at < n)
    dx = x_now - tl.load(origin_x + at, at < m, 0.0).to(tl.float64)
    dy = y_now - tl.load(origin_y + at, at < n, 0.0).to(tl.float64)
    place = sums + count + tl.program_id(0)
    tl.store(place, tl.sum(r_now * r_now, 0))
    tl.store(place + count, tl.sum(dx * dx, 0))
    tl.store(place + 2 * count, tl.sum(dy * dy, 0))


@jit
def _direction(
    r: tl.tensor,
    d: tl.tensor,
    sums: tl.tensor,
    old: tl.tensor,
    new: tl.tensor,
    n: tl.tensor,
    count: tl.tensor,
    BLOCK: tl.constexpr,
    PARTS: tl.constexpr,
    MOVES: tl.constexpr,
) -> None:
    """d = r + (|r|^2 / its old value) d, and the numbers of the step; at the start d = r."""
    rr = _added_up(sums + count, count, PARTS)
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    direction = tl.load(r + at, at < n, 0.0).to(tl.float64)
    if MOVES:
        before = tl.load(old + 1)
        share = tl.where(before == 0.0, 0.0, rr / before)  # at the solution itself, there is nothing to do
        direction += share * tl.load(d + at, at < n, 0.0).to(tl.float64)
    tl.store(d + at, direction.to(d.dtype.element_ty), at < n)
    if tl.program_id(0) == 0:
        if MOVES:
            tl.store(new, _added_up(sums, count, PARTS))
        else:
            tl.store(new, 1.0)
        tl.store(new + 1, rr)
        tl.store(new + 2, _added_up(sums + 2 * count, count, PARTS) + _added_up(sums + 3 * count, count, PARTS))
