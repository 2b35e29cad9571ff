"""The coupling whose rows are in the shards of an engine."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

import numpy as np

from saddlepoint.ground.arrays import Array, Space
from saddlepoint.ground.compensated import Sum
from saddlepoint.ground.linalg import norm
from saddlepoint.parts.coupling.base import Coupling
from saddlepoint.parts.coupling.transpose import TransposeByProducts
from saddlepoint.parts.functions.smooth import Smooth
from saddlepoint.parts.sharded.engine import Engine
from saddlepoint.parts.sharded.functions import ShardedFunction, ShardedRisk
from saddlepoint.parts.sharded.vectors import Library, Sharded


class ShardedCoupling(Coupling):
    """A in the shards of an engine. Vectors y are NumPy arrays in this process; vectors x are over the shards.

    Every product with A' takes one round; if A y is computed too, y is sent in the same round: n numbers to each worker
    and n numbers back. A y alone takes no round: it is computed in the next round that needs it.

    Args:
        engine: the engine whose shards hold the rows of A.
    """

    fused = True  # a shard reads its rows once for two products, if the coupling of its rows can
    trusted = True
    has_entries = True

    def __init__(self, engine: Engine) -> None:
        self.engine = self.runtime = engine
        self.library = Library(engine)
        self.shape, self.dtype = (engine.rows, engine.columns), engine.dtype

    @cached_property
    def space(self) -> Space:
        """NumPy for y, and the library of the shards for x."""
        here = Space(np, self.dtype)
        return here._replace(sides=(self.library.space(self.dtype), here))

    def of_x(self, g: Smooth) -> Smooth:
        """g as a function of vectors over the shards."""
        return g if isinstance(g, ShardedFunction) else ShardedFunction(g, self.library)

    def of_rows(self, loss: Smooth, **constants: Any) -> Smooth:
        """y -> scale loss(A y) + l2/2 |y|^2."""
        return ShardedRisk(loss, self.library, **constants)

    def mul(self, y: Array) -> Any:
        """A y, computed in the next round that needs it."""
        return self._product(y, "mul", (np.array(y),))  # a copy, since the caller may change y before the round

    def tmul(self, x: Any) -> Array:
        """A'x, in one round."""
        return self.library.run([("tmul", None, (self.library.asarray(x),))])[0]

    def both(self, x: Any, y: Array) -> Any:
        """(A y, A'x), in one round."""
        t = self._product(y)
        return t, self.library.run([("both", t, (self.library.asarray(x), np.array(y)))])[0]

    def through(self, y: Array, s: float = 1.0, e: Any = None) -> Any:
        """(t, A'(s t + e)) with t = A y, in one round."""
        t, shift = self._product(y), None if e is None else self.library.asarray(e)
        return t, self.library.run([("through", t, (np.array(y), float(s), shift))])[0]

    def _product(self, y: Array, op: str = "", args: tuple[Any, ...] = ()) -> Sharded:
        return Sharded(self.library, np.result_type(self.dtype, y.dtype), op, args)

    def _transpose(self) -> Coupling:
        return ShardedTranspose(self)

    def compensated_mul(self, y: Array) -> Sum:
        """A y in about twice the digits, computed in the next round that needs it."""
        whole = Sharded(self.library, np.dtype(np.float64), "compensated_mul", (np.array(y, np.float64),))
        parts: list[Any] = [Sharded(self.library, whole.dtype, "row", (whole, k)) for k in range(3)]
        return Sum(*parts)

    def compensated_tmul(self, x: Any) -> Sum:
        """A'x in about twice the digits, in one round."""
        answer = self.library.run([("compensated_tmul", None, (self.library.asarray(x),))])[0]
        return Sum(*answer.reshape(3, -1))

    @cached_property
    def frobenius(self) -> float:
        """A bound on the Frobenius norm of A, in one round."""
        return math.sqrt(self.engine.shards) * float(self.library.run([("frobenius", None, ())])[0][0])

    def rounding_scale(self, y: Array) -> float:
        """From the Frobenius norm of A, which bounds the norm of |A|."""
        return self.frobenius * norm(y)

    def gram(self) -> Array:
        """A'A, in one round that returns n x n numbers."""
        n = self.shape[1]
        return self.library.run([("gram", None, ())])[0].reshape(n, n)

    def matrix(self) -> Array:
        """Refused: A is not collected in one process."""
        raise self.library.refusal("A")


class ShardedTranspose(TransposeByProducts):
    """The transpose of a ``ShardedCoupling``: its products take vectors over the shards and return NumPy arrays."""

    fused = True

    def rounding_scale(self, y: Array) -> float:
        """From the Frobenius norm of A, which bounds the norm of |A|."""
        scale: float = self.of.rounding_scale(y)
        return scale

    def compensated_mul(self, y: Any) -> Sum:
        """A'y in about twice the digits, in one round."""
        found: Sum = self.of.compensated_tmul(y)
        return found
