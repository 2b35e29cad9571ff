"""A on an NVIDIA GPU: as any other array, but large products in pairs read it once (Triton)."""

from __future__ import annotations

from typing import Any

from saddlepoint.ground.arrays import Array
from saddlepoint.parts.coupling import jax_kernels
from saddlepoint.parts.coupling import triton_kernels as kernels
from saddlepoint.parts.coupling.array import ArrayCoupling

KINDS: tuple[kernels.Kind, ...] = ("both", "through")


class CudaCoupling(ArrayCoupling):
    """A dense array of PyTorch, CuPy or JAX on a GPU; those of the last two are lent to PyTorch without a copy.

    Within a compiled JAX loop the arrays are not there to be lent: jax-triton calls the kernels, or, without it,
    products are JAX's own.
    """

    def __init__(self, A: Any) -> None:
        super().__init__(A)
        self._torch = kernels.as_torch(A)
        self.fused = self.fused_compiled = all(kernels.fuses(self._torch, kind) for kind in KINDS)
        if self.space.xp.__name__.startswith("jax"):
            self.fused_compiled = all(jax_kernels.fuses(A, kind) for kind in KINDS)

    def mul(self, y: Array) -> Array:
        """A y."""
        if y.dtype == self.dtype or _traced(y):
            return super().mul(y)
        product: Array = kernels.like(kernels.mul(self._torch, kernels.as_torch(y)), y)
        return product

    def both(self, x: Array, y: Array) -> tuple[Array, Array]:
        """(A y, A' x), in one pass where that pays."""
        if not self.fused:
            return super().both(x, y)
        if _traced(y):
            fuses = self.fused_compiled and jax_kernels.fuses(self.A, "both", y.dtype)
            return jax_kernels.both(self.A, x, y) if fuses else super().both(x, y)
        Ay, Atx = kernels.both(self._torch, kernels.as_torch(x), kernels.as_torch(y))
        return kernels.like(Ay, y), kernels.like(Atx, x)

    def through(self, y: Array, s: float = 1.0, e: Array | None = None) -> tuple[Array, Array]:
        """(t, A'(s t + e)) with t = A y, in one pass where that pays."""
        if not self.fused:
            return super().through(y, s, e)
        if _traced(y):
            fuses = self.fused_compiled and jax_kernels.fuses(self.A, "through", y.dtype)
            return jax_kernels.through(self.A, y, s, e) if fuses else super().through(y, s, e)
        lent = None if e is None else kernels.as_torch(e)
        t, u = kernels.through(self._torch, kernels.as_torch(y), s, lent)
        return kernels.like(t, y), kernels.like(u, y)


def _traced(array: Any) -> bool:
    """Whether it stands for an array in a program that JAX compiles."""
    return "Tracer" in type(array).__name__
