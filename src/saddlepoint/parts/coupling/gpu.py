"""A on an NVIDIA GPU: pairs of products read a large A once, by Triton kernels."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from saddlepoint.ground.arrays import Array
from saddlepoint.ground.compensated import Sum
from saddlepoint.parts.coupling import jax_kernels, triton_dot2, triton_norms, triton_products
from saddlepoint.parts.coupling.array import ArrayCoupling
from saddlepoint.parts.coupling.triton_launch import as_torch, like, torch
from saddlepoint.parts.coupling.triton_plans import Kind

KINDS: tuple[Kind, ...] = ("both", "through")


class CudaCoupling(ArrayCoupling):
    """A dense array of PyTorch, CuPy or JAX on a GPU; arrays of CuPy and JAX are passed to PyTorch without a copy.

    Inside a compiled JAX loop there are no arrays to pass: there jax-triton calls the kernels, and without it the
    products are those of JAX.
    """

    def __init__(self, A: Any) -> None:
        super().__init__(A)
        self._torch = as_torch(A)
        self.fused = self.fused_compiled = all(triton_products.fuses(self._torch, kind) for kind in KINDS)
        if self.space.is_jax:
            self.fused_compiled = all(jax_kernels.fuses(A, kind) for kind in KINDS)

    def mul(self, y: Array) -> Array:
        """A y."""
        if y.dtype == self.dtype or _traced(y):
            return super().mul(y)
        product: Array = like(triton_products.mul(self._torch, as_torch(y)), y)
        return product

    def both(self, x: Array, y: Array) -> tuple[Array, Array]:
        """(A y, A' x), in one pass where that is faster."""
        if not self.fused:
            return super().both(x, y)
        if _traced(y):
            fuses = self.fused_compiled and jax_kernels.fuses(self.A, "both", y.dtype)
            return jax_kernels.both(self.A, x, y) if fuses else super().both(x, y)
        Ay, Atx = triton_products.both(self._torch, as_torch(x), as_torch(y))
        return like(Ay, y), like(Atx, x)

    def through(self, y: Array, s: float = 1.0, e: Array | None = None) -> tuple[Array, Array]:
        """(t, A'(s t + e)) with t = A y, in one pass where that is faster."""
        if not self.fused:
            return super().through(y, s, e)
        if _traced(y):
            fuses = self.fused_compiled and jax_kernels.fuses(self.A, "through", y.dtype)
            return jax_kernels.through(self.A, y, s, e) if fuses else super().through(y, s, e)
        shift = None if e is None else as_torch(e)
        t, u = triton_products.through(self._torch, as_torch(y), s, shift)
        return like(t, y), like(u, y)

    @cached_property
    def column_norms(self) -> Array:
        """The Euclidean norms of the columns of A."""
        found = triton_norms.row_norms(self._torch.T)
        return super().column_norms if found is None else self._like_A(found)

    @cached_property
    def row_norms(self) -> Array:
        """The Euclidean norms of the rows of A."""
        found = triton_norms.row_norms(self._torch)
        return super().row_norms if found is None else self._like_A(found)

    def _like_A(self, tensor: Any) -> Array:
        array: Array = like(tensor, self.A)
        return array

    def compensated_mul(self, y: Array) -> Sum | None:
        """A y in about twice the digits."""
        return self._dot2(self._torch, y) or super().compensated_mul(y)

    def compensated_tmul(self, x: Array) -> Sum | None:
        """A' x in about twice the digits."""
        return self._dot2(self._torch.T, x) or super().compensated_tmul(x)

    def _dot2(self, A: Any, y: Array) -> Sum | None:
        """A y by one pass over A; None if y is not a vector of float64."""
        vector = as_torch(y)
        if vector.dtype != torch.float64:
            return None
        return Sum(*(like(part, y) for part in triton_dot2.dot2(A, vector)))


def _traced(array: Any) -> bool:
    """Whether it is a placeholder of an array in a program that JAX compiles."""
    return "Tracer" in type(array).__name__
