"""A coupling that wraps another one."""

from __future__ import annotations

from copy import copy
from typing import Any

from saddlepoint.ground.arrays import Array, Space
from saddlepoint.ground.compensated import Sum
from saddlepoint.parts.coupling.base import NOT_PICKLED, Coupling, Norm


class ForwardingCoupling(Coupling):
    """Forwards everything to another coupling, A, except what a subclass changes.

    A subclass must define ``_transpose``, and one that changes ``mul`` must change every other product too.
    """

    def __init__(self, A: Coupling) -> None:
        self.A = A
        self.shape, self.dtype, self.trusted, self.probes = A.shape, A.dtype, A.trusted, A.probes
        self.fused, self.fused_compiled, self.runtime = A.fused, A.fused_compiled, A.runtime
        self.has_entries = A.has_entries

    def around(self, A: Coupling) -> Coupling:
        """A copy of this wrapper around another coupling of the same shape."""
        other = copy(self)
        for name in ("T", *NOT_PICKLED):
            other.__dict__.pop(name, None)
        other.A, other.trusted, other.fused_compiled = A, A.trusted, A.fused_compiled
        other.fused = A.fused if self.fused == self.A.fused else self.fused
        return other

    @property
    def space(self) -> Space:
        """The space of A."""
        return self.A.space

    def of_x(self, g: Any) -> Any:
        """The function that A makes of g."""
        return self.A.of_x(g)

    @property
    def norm_estimate(self) -> Norm:
        """The bounds of A."""
        return self.A.norm_estimate

    def mul(self, y: Array) -> Array:
        """A y."""
        return self.A.mul(y)

    def tmul(self, x: Array) -> Array:
        """A' x."""
        return self.A.tmul(x)

    def both(self, x: Array, y: Array) -> tuple[Array, Array]:
        """(A y, A' x)."""
        return self.A.both(x, y)

    def through(self, y: Array, s: float = 1.0, e: Array | None = None) -> tuple[Array, Array]:
        """(t, A'(s t + e)) with t = A y."""
        return self.A.through(y, s, e)

    @property
    def sum_length(self) -> int:
        """The number of terms in the sums of A."""
        return self.A.sum_length

    def rounding_scale(self, y: Array) -> float:
        """The scale of A."""
        return self.A.rounding_scale(y)

    def row_lengths(self) -> Array | float:
        """The lengths of the rows of A."""
        return self.A.row_lengths()

    def compensated_mul(self, y: Array) -> Sum | None:
        """A y in about twice the digits."""
        return self.A.compensated_mul(y)

    def matrix(self) -> Any:
        """A itself."""
        return self.A.matrix()

    def gram(self) -> Any:
        """A'A."""
        return self.A.gram()
