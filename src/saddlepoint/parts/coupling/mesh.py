"""A as a JAX array that is split over a mesh of devices: the sharding of A decides how x and y are split.

If A is split by rows, x is split in the same way and every device has a copy of y. Each device computes the products
with its own rows, and one sum over all devices (an all-reduce of n numbers) completes A' x; x itself is never sent. If
A is split by columns, x and y change roles. If A is split both ways, its blocks form a grid, and each product has a sum
of its own, over the rows or the columns of the grid.

Products in about twice the digits are rare. They are computed by NumPy: each block of A is copied to the host in turn.
"""

from __future__ import annotations

from functools import cache, cached_property
from importlib import import_module
from typing import Any, NamedTuple

from saddlepoint.ground.arrays import Array, Space
from saddlepoint.ground.compensated import Sum, mesh_product
from saddlepoint.ground.device_mesh import split_sides
from saddlepoint.ground.linalg import norms
from saddlepoint.parts.coupling.array import BLOCK, ArrayCoupling


class MeshCoupling(ArrayCoupling):
    """A dense JAX array with a NamedSharding, by rows, by columns, or by both."""

    def __init__(self, A: Any) -> None:
        super().__init__(A)
        found = split_sides(A)
        assert found is not None
        self._space = Space(self._space.xp, self.dtype, *found)
        self._products = _products(*self._space.sides or ())

    def mul(self, y: Array) -> Array:
        """A y."""
        product: Array = self._products.mul(self.A, y)
        return product

    def tmul(self, x: Array) -> Array:
        """A' x."""
        product: Array = self._products.tmul(self.A, x)
        return product

    def both(self, x: Array, y: Array) -> tuple[Array, Array]:
        """(A y, A' x), with one sum over the devices."""
        products: tuple[Array, Array] = self._products.both(self.A, x, y)
        return products

    @cached_property
    def column_norms(self) -> Array:
        """The Euclidean norms of the columns of A."""
        return norms(self.space.xp.astype(self.A, self.space.wide.dtype), axis=0)

    @cached_property
    def row_norms(self) -> Array:
        """The Euclidean norms of the rows of A."""
        return norms(self.space.xp.astype(self.A, self.space.wide.dtype), axis=1)

    def through(self, y: Array, s: float = 1.0, e: Array | None = None) -> tuple[Array, Array]:
        """(t, A'(s t + e)) with t = A y, with one sum over the devices."""
        products: tuple[Array, Array] = self._products.through(self.A, y, s, e)
        return products

    def compensated_mul(self, y: Array) -> Sum | None:
        """A y in about twice the digits; None where other processes have blocks of A."""
        return mesh_product(self.A, y) if self.A.is_fully_addressable else None

    def compensated_tmul(self, x: Array) -> Sum | None:
        """A' x in about twice the digits; None where other processes have blocks of A."""
        return mesh_product(self.A, x, transposed=True) if self.A.is_fully_addressable else None

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in super().__getstate__().items() if name != "_products"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__ |= state
        self._products = _products(*self._space.sides or ())


class _Products(NamedTuple):
    """Compiled products of matrices with one kind of sharding."""

    mul: Any
    tmul: Any
    both: Any
    through: Any


@cache
def _products(x: Any, y: Any) -> _Products:
    """Products with matrices whose rows have the sharding of ``x`` and whose columns have that of ``y``."""
    jax: Any = import_module("jax")
    along_rows, along_columns = x.spec[0], y.spec[0]
    A, t, u = jax.sharding.PartitionSpec(along_rows, along_columns), x.spec, y.spec

    def mul(A: Any, y: Any) -> Any:
        parts = [part @ y for part in _parts(A, y.dtype)]
        t = parts[0] if len(parts) == 1 else jax.numpy.concat(parts)
        return t if along_columns is None else jax.lax.psum(t, along_columns)

    def tmul(A: Any, x: Any) -> Any:
        parts = _parts(A, x.dtype)
        if len(parts) == 1:
            u = x @ parts[0]
        else:
            rows = parts[0].shape[0]
            u = sum(x[i * rows : (i + 1) * rows] @ part for i, part in enumerate(parts))
        return u if along_rows is None else jax.lax.psum(u, along_rows)

    def both(A: Any, x: Any, y: Any) -> Any:
        return mul(A, y), tmul(A, x)

    def through(A: Any, y: Any, s: Any, e: Any) -> Any:
        t = mul(A, y)
        st = s * t
        return t, tmul(A, st if e is None else st + e)

    def split(function: Any, given: Any, found: Any) -> Any:
        return jax.jit(jax.shard_map(function, mesh=x.mesh, in_specs=given, out_specs=found))

    copies = jax.sharding.PartitionSpec()
    return _Products(
        split(mul, (A, u), t),
        split(tmul, (A, t), u),
        split(both, (A, t, u), (t, u)),
        split(through, (A, u, copies, t), (t, u)),
    )


def _parts(A: Any, dtype: Any) -> list[Any]:
    """[A]; or, if the vector has another dtype, blocks of rows of A in that dtype."""
    if A.dtype == dtype:
        return [A]
    m, n = A.shape
    rows = max(1, BLOCK // n)
    return [A[start : start + rows].astype(dtype) for start in range(0, m, rows)]
