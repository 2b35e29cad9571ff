"""The vectors of conjugate gradients with JAX: one program for a step beside its products with A, and one wait.

The system is that of ``triton_cg``. Each operation of JAX by itself takes longer to start than to compute.
"""

from __future__ import annotations

from typing import Any

from saddlepoint.ground.arrays import Array, namespace, to_host
from saddlepoint.ground.jax_program import jitted
from saddlepoint.parts.coupling.cg_numbers import Numbers


class Vectors:
    """The vectors x, y, the residual r and the direction d.

    Args:
        a: the factor of A in the system.
        x, y, r: the start.
        origin: the point from which distances are measured.
    """

    def __init__(self, a: float, x: Array, y: Array, r: Array, origin: tuple[Array, Array]) -> None:
        self.a, self.origin, self.xp = a, origin, namespace(x)
        self.x, self.y, self.r, self.d = x, y, r, r
        self.numbers = jitted(_numbers, 0)(self.xp, 1.0, x, y, r, *origin)

    @staticmethod
    def can_hold(*vectors: Any) -> bool:
        """Whether the vectors are arrays of JAX on one device, and not symbols of a program that is compiled."""
        return all(
            hasattr(v, "block_until_ready") and hasattr(v, "sharding") and not hasattr(v.sharding, "mesh")
            for v in vectors
        )

    def step(self, t: Array, u: Array) -> None:
        """Move by a step of conjugate gradients, where t = A d and u = A't."""
        state = self.x, self.y, self.r, self.d, self.numbers
        moved = jitted(_moved, 0)(self.xp, self.a, state, t, u, self.origin)
        self.x, self.y, self.r, self.d, self.numbers = moved

    def read(self) -> Numbers:
        """Wait for the last step, and return its numbers."""
        return Numbers(*to_host(self.numbers).tolist())


def _numbers(xp: Any, curvature: Any, x: Array, y: Array, r: Array, origin_x: Array, origin_y: Array) -> Array:
    dx, dy, r = (xp.astype(v, xp.float64) for v in (x - origin_x, y - origin_y, r))
    numbers: Array = xp.stack([xp.asarray(curvature, dtype=xp.float64), r @ r, dx @ dx + dy @ dy])
    return numbers


def _moved(xp: Any, a: float, state: tuple[Array, ...], t: Array, u: Array, origin: tuple[Array, Array]) -> Any:
    x, y, r, d, numbers = state
    Md = d + (a * a) * u
    curvature = xp.astype(d, xp.float64) @ xp.astype(Md, xp.float64)
    step = xp.astype(xp.where(curvature == 0.0, 0.0, numbers[1] / curvature), x.dtype)
    x, y, r = x - (a * step) * t, y + step * d, r - step * Md
    new = _numbers(xp, curvature, x, y, r, *origin)
    share = xp.where(numbers[1] == 0.0, 0.0, new[1] / numbers[1])  # at the solution itself, there is nothing to do
    return x, y, r, r + xp.astype(share, r.dtype) * d, new
