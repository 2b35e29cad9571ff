"""Simple functions of vectors over shards: sums over coordinates, of which every shard has its part."""

from __future__ import annotations

import math
from typing import Any

from saddlepoint.ground.arrays import Array
from saddlepoint.parts.sharded.vectors import Library, Sharded
from saddlepoint.parts.simple.base import Simple, on_host
from saddlepoint.parts.simple.bounds import raised


class ShardedSimple(Simple):
    """The simple function p of a vector over shards.

    Args:
        p: a sum of functions of single coordinates, which therefore has ``restrict``.
        library: the array library of the engine.
    """

    def __init__(self, p: Simple, library: Library) -> None:
        self.p, self.library = p, library
        self.structured, self.separable, self.dim = p.structured, True, p.dim
        self.accuracy = p.accuracy
        engine = library.engine
        p.restrict(engine.slice(0))  # a function that is no sum over coordinates is refused here
        self.number = engine.name()
        engine.scatter(self.number, lambda k: p.restrict(engine.slice(k)))

    def _vector(self, what: str, *vectors: Any, t: float | None = None) -> Any:
        """A vector that each shard computes with its part of p."""
        given = tuple(self.library.asarray(v) for v in vectors)
        return Sharded(self.library, given[-1].dtype, "of_term", (self.number, what, given, t))

    def _sum(self, what: str, *vectors: Any) -> float:
        """The sum of the numbers that the shards compute with their parts of p."""
        given = tuple(self.library.asarray(v) for v in vectors)
        return float(self.library.run([("sum_of_term", None, (self.number, what, given))])[0][0])

    @property
    def has_value(self) -> bool:
        """Whether p has a value."""
        return self.p.has_value

    def value(self, x: Array) -> float:
        """The sum of the values of the parts."""
        return self._sum("value", x)

    def conjugate(self, s: Array) -> float:
        """The sum of the conjugates of the parts."""
        return self._sum("conjugate", s)

    def prox(self, v: Array, t: float) -> Any:
        """The prox, part by part."""
        return self._vector("prox", v, t=float(t))

    def project(self, x: Array) -> Any:
        """The nearest point of the domain, part by part."""
        return self._vector("project", x)

    def outside(self, x: Array) -> float:
        """The length of the vector of the distances of the parts."""
        given = (self.library.asarray(x),)
        square = float(self.library.run([("squares_of_term", None, (self.number, "outside", given))])[0][0])
        return raised(math.sqrt(square), self.library.engine.shards + 4)

    def diameter_in(self, n: int | None) -> float:
        """The diameter of the domain of p."""
        return self.p.diameter_in(n)

    def validate(self, n: int, name: str = "x") -> None:
        """Raise the ProblemError of p, if it raises one."""
        self.p.validate(n, name)

    def dual_point(self, s: Array) -> Any:
        """The dual point, part by part."""
        return self._vector("dual_point", s)

    def subgradient(self, xh: Array, s: Array) -> Any:
        """The subgradient, part by part."""
        return self._vector("subgradient", xh, s)

    def fenchel_gap(self, x: Array, s: Array) -> float:
        """The sum of the gaps of the parts."""
        return raised(self._sum("fenchel_gap", x, s), self.library.engine.shards + 1)

    def bregman(self, x: Array, xh: Array, s: Array) -> float:
        """The sum of the bounds of the parts."""
        return raised(self._sum("bregman", x, xh, s), self.library.engine.shards + 1)

    def support(self, x: Array, w: Array, reach_x: float, reach_w: Any) -> Array:
        """What p proves; the vectors are fetched from the shards."""
        return self.p.support(on_host(x), on_host(w), reach_x, on_host(reach_w))

    def __repr__(self) -> str:
        return repr(self.p)
