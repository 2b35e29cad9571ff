r"""A hyperplane: one linear equation.

Its support function is finite only for multiples of the normal vector, and such a multiple is hardly ever a vector of
floating-point numbers. For every point x of the plane and every multiple s, the gap of the two is zero. So ``pairing``
has no gap, and says how far x is from the plane and how far the stored s is from an exact multiple.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from saddlepoint.ground.arrays import Array, concat, eps_of, is_float64, namespace
from saddlepoint.ground.compensated import exact_product
from saddlepoint.ground.errors import ProblemError
from saddlepoint.ground.linalg import inner, norm
from saddlepoint.ground.recording import has_numbers
from saddlepoint.ground.validation import as_number, as_vector
from saddlepoint.parts.simple.base import Pairing, Structured
from saddlepoint.parts.simple.bounds import EPS, norm_bound, raised, sum_error, wide
from saddlepoint.parts.simple.coordinates import Coordinates

TINY = 1e-280  # products below it may lose digits by underflow
RANGE = 1e-100, 1e100  # largest entries of a normal vector between which squares neither overflow nor underflow
PARALLEL = 64.0  # a vector counts as a multiple of the normal if it is one up to this many roundings of its entries


class Hyperplane(Structured):
    """The constraint <a, x> = b.

    Args:
        a: the normal vector, not zero.
        b: a number.

    Example:
        >>> import numpy as np, saddlepoint as sp
        >>> p = sp.Hyperplane([1.0, 1.0], 3.0)
        >>> p.prox(np.array([0.0, 1.0]), 1.0).tolist(), p.conjugate(np.array([2.0, 2.0]))
        ([1.0, 2.0], 6.0)
    """

    def __init__(self, a: Any, b: float = 0.0) -> None:
        self.a = Coordinates(as_vector(a, "a of Hyperplane"), "a of Hyperplane")
        self.b = as_number(b, "b of Hyperplane")
        if has_numbers(b) and not abs(self.b) < math.inf:
            raise ProblemError(f"b of Hyperplane is {self.b}; expected a finite number")
        vector = np.asarray(self.a.value)
        size = float(np.abs(vector).max())
        if size == 0.0:
            raise ProblemError("a of Hyperplane is zero; expected a vector that is not, because <0, x> = b is no plane")
        if self.a.known and not RANGE[0] < size < RANGE[1]:
            raise ProblemError(f"a of Hyperplane has entries up to {size:g}; divide a and b by this number")
        self._square = float(vector @ vector)
        super().__init__(int(vector.shape[0]))

    def value(self, x: Array) -> float:
        """0.0 in the plane, infinite outside."""
        return 0.0 if self.is_inside(x) else math.inf

    def prox(self, v: Array, t: float) -> Array:
        """The nearest point of the plane, whatever t is."""
        return self.project(v)

    def project(self, x: Array) -> Array:
        """The nearest point of the plane."""
        a = self.a.like(x)
        square = self._square if self.a.live is None else a @ a
        for _ in range(2):  # the second time removes the rounding of the first
            x = x - ((a @ x - self.b) * (1.0 / square)) * a
        return x

    def conjugate(self, s: Array) -> float:
        """b times the multiple of a that s is; infinite if it is none."""
        eps, s = eps_of(s), wide(s)
        a = self.a.like(s)
        factor = inner(a, s) / self._square
        slack = PARALLEL * eps * math.sqrt(int(s.shape[0])) * norm(s)
        return factor * self.b if norm(s - factor * a) <= slack else math.inf

    def outside(self, x: Array) -> float:
        """|<a, x> - b| / |a|, rounded up."""
        x = wide(x)
        a, xp = self.a.like(x), namespace(x)
        high, low = exact_product(a, x)
        error = sum_error(concat([high, low]), self.b)
        if bool(xp.any((a != 0.0) & (x != 0.0) & (xp.abs(high) < TINY))):  # digits of such products underflow
            error += TINY * int(x.shape[0])
        return raised(error / math.sqrt(self._square), int(x.shape[0]) + 4)

    def is_inside(self, x: Array) -> bool:
        """Whether x is in the domain up to the rounding of its entries and of b."""
        size = norm(x) + abs(self.b) / math.sqrt(self._square)
        return self.outside(x) <= PARALLEL * eps_of(x) * math.sqrt(int(x.shape[0])) * size

    def diameter_in(self, n: int | None) -> float:
        """Infinite, except in one dimension, where the plane is a point."""
        return 0.0 if self.dim == 1 else math.inf

    def dual_point(self, s: Array) -> Array:
        """The multiple of a that is nearest to s, rounded; ``pairing`` says how far it is from an exact one."""
        a = self.a.like(s)
        nearest: Array = ((a @ s) * (1.0 / self._square)) * a
        return nearest

    def fenchel_gap(self, x: Array, s: Array) -> float:
        """0.0 for multiples of a, up to rounding; infinite for others."""
        return 0.0 if self.conjugate(s) < math.inf else math.inf

    def subgradient(self, xh: Array, s: Array) -> Array:
        """The vector s: ``pairing`` makes it a multiple of a."""
        return s

    def pairing(self, x: Array, s: Array) -> Pairing:
        """No gap, and the distances to the plane and to an exact multiple of a."""
        wide_s = wide(s)
        a = self.a.like(wide_s)
        factor = inner(a, wide_s) / self._square
        multiple = self.a.like(s) * factor
        rounded = 0.0 if is_float64(s) else 2.0 * eps_of(s)  # the entries of a in a smaller dtype are rounded too
        return Pairing(multiple, self.outside(x), (rounded + 2.0 * EPS) * norm_bound(wide(multiple)), 0.0, 0.0)

    def __repr__(self) -> str:
        return f"Hyperplane({self.a}, {self.b:g})"
