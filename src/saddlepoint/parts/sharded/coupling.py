"""The coupling A of which every shard holds some rows."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from saddlepoint.ground.arrays import Array, Space
from saddlepoint.parts.coupling.base import Coupling
from saddlepoint.parts.coupling.transpose import TransposeByProducts
from saddlepoint.parts.functions.smooth import Smooth
from saddlepoint.parts.sharded.engine import Engine
from saddlepoint.parts.sharded.functions import ShardedFunction, ShardedRisk
from saddlepoint.parts.sharded.vectors import Library, Sharded


class ShardedCoupling(Coupling):
    """A over the shards of an engine: y lives with the driver, x with the shards.

    Every product with A' is a round, in which y is sent along if the product with A is wanted too: n numbers out and n
    back for each worker. A y alone takes no round; it is noted, and made where it is next needed.

    Args:
        engine: holds the shards.
    """

    fused = True  # a shard reads its rows once, as far as their kind can
    trusted = True

    def __init__(self, engine: Engine) -> None:
        self.engine = self.runtime = engine
        self.library = Library(engine)
        self.shape, self.dtype = (engine.rows, engine.columns), engine.dtype

    @cached_property
    def space(self) -> Space:
        """NumPy's for y, that of the shards for x."""
        here = Space(np, self.dtype)
        return here._replace(sides=(self.library.space(self.dtype), here))

    def of_x(self, g: Smooth) -> Smooth:
        """g shard by shard."""
        return g if isinstance(g, ShardedFunction) else ShardedFunction(g, self.library)

    def of_rows(self, loss: Smooth, **constants: Any) -> Smooth:
        """y -> scale loss(A y) + l2/2 |y|^2."""
        return ShardedRisk(loss, self.library, **constants)

    def mul(self, y: Array) -> Any:
        """A y, noted."""
        return self._made(y, "mul", (_sent(y),))

    def tmul(self, x: Any) -> Array:
        """A'x, in a round."""
        return self.library.run([("tmul", None, (self._here(x),))])[0]

    def both(self, x: Any, y: Array) -> Any:
        """(A y, A'x), in a round."""
        t = self._made(y)
        return t, self.library.run([("both", t, (self._here(x), _sent(y)))])[0]

    def through(self, y: Array, s: float = 1.0, e: Any = None) -> Any:
        """(t, A'(s t + e)) with t = A y, in a round."""
        t = self._made(y)
        return t, self.library.run([("through", t, (_sent(y), float(s), None if e is None else self._here(e)))])[0]

    def _made(self, y: Array, op: str = "", args: tuple[Any, ...] = ()) -> Sharded:
        return Sharded(self.library, np.result_type(self.dtype, y.dtype), op, args)

    def _here(self, x: Any) -> Sharded:
        return self.library.asarray(x)

    def _transpose(self) -> Coupling:
        return ShardedTranspose(self)

    def gram(self) -> Array:
        """A'A, in a round of n x n numbers."""
        n = self.shape[1]
        return self.library.run([("gram", None, ())])[0].reshape(n, n)

    def matrix(self) -> Array:
        """A itself is not brought to the driver."""
        raise self.library.refusal("A")


class ShardedTranspose(TransposeByProducts):
    """A' of a ``ShardedCoupling``: it takes vectors of the shards and gives NumPy's."""

    fused = True


def _sent(y: Any) -> Array:
    """A vector for the broadcast; a copy, because a line of a program may wait."""
    return np.array(y)
