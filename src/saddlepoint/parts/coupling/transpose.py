"""The transpose of a coupling by the products of that coupling, for an A whose transpose would be a copy."""

from __future__ import annotations

from typing import Any

from saddlepoint.ground.arrays import Array, Space
from saddlepoint.parts.coupling.base import Coupling, Norm


class TransposeByProducts(Coupling):
    """A' of a coupling ``of``. Its ``through`` takes two products, one after the other."""

    def __init__(self, of: Coupling) -> None:
        self.of: Any = of
        self.shape, self.dtype, self.trusted = (of.shape[1], of.shape[0]), of.dtype, of.trusted
        self.runtime, self.probes, self.has_entries = of.runtime, of.probes, of.has_entries

    @property
    def space(self) -> Space:
        """The space of A, with the sides of x and y exchanged."""
        space: Space = self.of.space
        return space if space.sides is None else space._replace(sides=(space.sides[1], space.sides[0]))

    def mul(self, y: Array) -> Array:
        """A' y."""
        product: Array = self.of.tmul(y)
        return product

    def tmul(self, x: Array) -> Array:
        """A x."""
        product: Array = self.of.mul(x)
        return product

    def both(self, x: Array, y: Array) -> tuple[Array, Array]:
        """(A' y, A x)."""
        Ax, Aty = self.of.both(y, x)
        return Aty, Ax

    def _transpose(self) -> Coupling:
        coupling: Coupling = self.of
        return coupling

    @property
    def norm_estimate(self) -> Norm:
        """The bounds for A, which has the same norm."""
        found: Norm = self.of.norm_estimate
        return found

    def estimated_norm(self, quick: bool = False) -> Norm:
        """New bounds for A."""
        found: Norm = self.of.estimated_norm(quick)
        return found
