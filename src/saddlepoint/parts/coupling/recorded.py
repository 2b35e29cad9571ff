"""A as a tensor that is differentiated, or as a symbol that JAX traces; see ``ground.recording``."""

from __future__ import annotations

from typing import Any

from saddlepoint.ground.arrays import Array, Space, space_of
from saddlepoint.ground.elementwise import cast_like
from saddlepoint.parts.coupling.base import Coupling


class RecordedCoupling(Coupling):
    """A matrix whose products are plain ones of its library, so that they are differentiated with respect to it."""

    trusted = True
    has_entries = True

    def __init__(self, A: Any) -> None:
        self.A = A
        self.shape = (int(A.shape[0]), int(A.shape[1]))
        self.dtype = A.dtype

    @property
    def space(self) -> Space:
        """Library and dtype of A."""
        return space_of(self.A)

    def mul(self, y: Array) -> Array:
        """A y."""
        product: Array = cast_like(self.A, y) @ y
        return product

    def tmul(self, x: Array) -> Array:
        """A' x."""
        product: Array = x @ cast_like(self.A, x)
        return product

    def matrix(self) -> Any:
        """A itself."""
        return self.A

    def _transpose(self) -> Coupling:
        return RecordedCoupling(self.A.T)
