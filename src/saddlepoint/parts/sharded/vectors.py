"""Vectors whose parts stay with the shards of A, and which are formed only when a number is asked for.

A method's body keeps to ``+ - *`` and oracle calls, so what it writes down about such vectors is a small program:
linear combinations of vectors that the shards hold, gradients of g there, products A y. A ``Sharded`` notes its line of
that program. Only what must come to the driver, A'x or an inner product, makes a round: the lines that it depends on
are sent along, every shard runs them on its own parts, and vectors that are still referred to are kept there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from weakref import WeakSet

import numpy as np

from saddlepoint.ground.arrays import Array, Space
from saddlepoint.ground.errors import ProblemError
from saddlepoint.parts.sharded.engine import Answers, Engine, Program, Step
from saddlepoint.parts.sharded.stacked import Stacked

Number = int | float | np.number


class Sharded:
    """A vector of m numbers over the shards of an engine.

    It is formed, and then the shards hold it under ``name``; or it is a line of the program that is still to be run.
    """

    __array_ufunc__ = None  # so that np.float64(3) * x is left to __rmul__
    ndim = 1

    def __init__(
        self, library: Library, dtype: Any, op: str = "", args: tuple[Any, ...] = (), name: int | None = None
    ) -> None:
        self.library, self.dtype = library, np.dtype(dtype)
        self.op, self.args, self.name = op, args, name
        self.square: float | None = None
        self.born = library.engine.rounds
        if name is None:
            library.pending.add(self)

    def __del__(self) -> None:
        if self.name is not None:
            self.library.engine.dropped.append(self.name)

    # -- what an array of another library tells ------------------------------------------------------------------------

    @property
    def shape(self) -> tuple[int]:
        """The number of rows of A."""
        return (self.library.engine.rows,)

    @property
    def nbytes(self) -> int:
        """Over all shards."""
        return int(self.shape[0] * self.dtype.itemsize)

    @property
    def device(self) -> str:
        """The shards of one engine, which only these vectors share."""
        return self.library.device

    def __array_namespace__(self, api_version: str | None = None) -> Library:
        return self.library

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return np.asarray(self.on_host(), dtype)

    def on_host(self) -> Array:
        """The whole vector, here."""
        if self.name is None:
            self.library.run([], [self])
        assert self.name is not None
        return self.library.engine.gather(self.name)

    def squared_together(self, vectors: Sequence[Sharded]) -> None:
        """Fetch the squares |v|^2 of several vectors in one round; they are remembered."""
        self.library.dots([(v, v) for v in vectors])

    def __getitem__(self, key: Any) -> Any:
        raise self.library.refusal("single entries of x")

    def __repr__(self) -> str:
        return f"Sharded({self.shape[0]} numbers, {self.dtype}, {self.library.engine.shards} shards)"

    # -- arithmetic ----------------------------------------------------------------------------------------------------

    def _term(self) -> tuple[float, Sharded]:
        """As a multiple of a vector. Neither this nor the moment of forming changes a bit of any sum."""
        if self.op == "combine" and len(self.args[0]) == 1:
            term: tuple[float, Sharded] = self.args[0][0]
            return term
        return 1.0, self

    def __add__(self, other: Any) -> Sharded:
        if not isinstance(other, Sharded):
            return self._plus_zero(other)
        return self._made("combine", (self._term(), other._term()), other=other)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Sharded:
        if not isinstance(other, Sharded):
            return self._plus_zero(other)
        factor, vector = other._term()
        return self._made("combine", (self._term(), (-factor, vector)), other=other)

    def __mul__(self, other: Any) -> Sharded:
        if isinstance(other, Number):
            return self._made("combine", ((float(other), self),))
        if not isinstance(other, Sharded):
            raise self._refusal(other)
        return self._made("times", self, other, other=other)

    def __truediv__(self, other: Any) -> Sharded:
        if not isinstance(other, Number):
            raise self._refusal(other)
        return self._made("over", self, float(other))

    def __neg__(self) -> Sharded:
        return self * -1.0

    __rmul__ = __mul__

    def __rsub__(self, other: Any) -> Sharded:
        return -self._plus_zero(other)

    def __matmul__(self, other: Any) -> float:
        """The inner product: a round."""
        if not isinstance(other, Sharded):
            raise self._refusal(other)
        return self.library.dots([(self, other)])[0]

    def __rmatmul__(self, other: Any) -> Any:
        raise self._refusal(other)

    def _made(self, op: str, *args: Any, other: Sharded | None = None) -> Sharded:
        dtype = self.dtype if other is None else np.result_type(self.dtype, other.dtype)
        return Sharded(self.library, dtype, op, args)

    def _plus_zero(self, other: Any) -> Sharded:
        if not isinstance(other, Number) or other != 0:
            raise self._refusal(other)
        return self

    def _refusal(self, other: Any) -> ProblemError:
        return self.library.refusal(f"x together with a {type(other).__name__}")


class Library:
    """The vectors of one engine as an array library: as much of the array API as a run needs.

    Args:
        engine: holds the shards.
    """

    __name__ = "sharded"
    float32, float64 = np.dtype(np.float32), np.dtype(np.float64)

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.device = f"{engine.shards} shards (cpu)"
        self.pending: WeakSet[Sharded] = WeakSet()  # not formed yet

    def __reduce__(self) -> Any:
        raise ProblemError("a problem whose A is in shards cannot be sent to another process, nor copied")

    def space(self, dtype: Any) -> Space:
        """Where vectors of length m live."""
        return Space(self, np.dtype(dtype), self.device)

    def refusal(self, what: str) -> ProblemError:
        """The complaint of a vector that is asked for what only the driver could do."""
        return ProblemError(
            f"this method needs {what} in one place, but x is spread over {self.engine.shards} shards; use auto, "
            "lpd-gs, condat-vu or any other that keeps to + - *, oracle calls and inner products"
        )

    # -- rounds --------------------------------------------------------------------------------------------------------

    def run(
        self, reductions: Sequence[tuple[str, Sharded | None, tuple[Any, ...]]], formed: Sequence[Sharded] = ()
    ) -> Answers:
        """One round: the reductions (op, the vector that it makes, arguments), and the lines they depend on.

        What has waited for a whole round is formed too, so that no line grows without end.
        """
        lines, drop = _Lines(self.engine), self.engine.forgotten()
        late = [v for v in list(self.pending) if v.born < self.engine.rounds and v.name is None]
        late.sort(key=lambda v: v.born)
        for vector in (*late, *formed):
            lines.add(vector)
        for op, made, args in reductions:
            arguments = lines.arguments(args)
            if made is not None:
                made.name = self.engine.name()
                self.pending.discard(made)
            lines.steps.append(Step(op, None if made is None else made.name, arguments))
        del late, reductions
        lines.settle(self.pending)
        return self.engine.run(Program(tuple(lines.steps), drop, self.engine.forgotten()), lines.broadcast)

    def dots(self, pairs: Sequence[tuple[Sharded, Sharded]]) -> list[float]:
        """Inner products, in one round; those of a vector with itself are remembered."""
        new = [(a, b) for a, b in pairs if a is not b or a.square is None]
        if new:
            answers = self.run([("dot", None, pair) for pair in new])
            found = {(id(a), id(b)): float(answer[0]) for (a, b), answer in zip(new, answers, strict=True)}
            for a, b in new:
                if a is b:
                    a.square = found[id(a), id(b)]
        return [a.square if a is b and a.square is not None else found[id(a), id(b)] for a, b in pairs]

    # -- the array API -------------------------------------------------------------------------------------------------

    def asarray(self, array: Any, dtype: Any = None, device: Any = None, copy: bool | None = None) -> Sharded:
        """An array of the driver, its parts given to the shards; a vector of theirs, itself (they do not change)."""
        if isinstance(array, Sharded):
            return array if dtype is None else self.astype(array, dtype)
        whole = np.asarray(array, dtype)
        if whole.shape != (self.engine.rows,):
            raise self.refusal(f"a vector of shape {whole.shape}")
        name = self.engine.name()
        self.engine.give(name, lambda k: np.ascontiguousarray(whole[self.engine.slice(k)]))
        return Sharded(self, whole.dtype, name=name)

    def astype(self, vector: Sharded, dtype: Any, copy: bool = True) -> Sharded:
        """The vector in another dtype."""
        same = vector.dtype == np.dtype(dtype)
        return vector if same else Sharded(self, dtype, "cast", (vector, np.dtype(dtype).name))

    def full(self, n: int, value: float, dtype: Any = None, device: Any = None) -> Sharded:
        """m times the same number."""
        if n != self.engine.rows:
            raise self.refusal(f"a vector of length {n}")
        kind = np.dtype(np.float64 if dtype is None else dtype)
        return Sharded(self, kind, "fill", (float(value), kind.name))

    def concat(self, vectors: Sequence[Any]) -> Stacked:
        """Vectors one after the other, each where it is."""
        return Stacked(tuple(vectors))

    def weighted(self, factors: Sequence[float], vectors: Sequence[Sharded]) -> Sharded:
        """The sum of the vectors with these factors."""
        terms = tuple(zip(factors, vectors, strict=True))
        return Sharded(self, np.result_type(*(v.dtype for v in vectors)), "weighted", (terms,))

    def abs(self, vector: Sharded) -> Sharded:
        """The absolute values."""
        return Sharded(self, vector.dtype, "abs", (vector,))

    def max(self, vector: Sharded) -> float:
        """The largest entry."""
        return float(self.run([("max", None, (vector,))])[0][0])

    def isfinite(self, vector: Sharded) -> Sharded:
        """1 where an entry is finite, 0 elsewhere."""
        return Sharded(self, vector.dtype, "isfinite", (vector,))

    def all(self, vector: Sharded) -> bool:
        """Whether there is no 0 among entries that are 0 or 1."""
        return -self.max(-vector) == 1.0

    def finfo(self, dtype: Any) -> Any:
        """NumPy's."""
        return np.finfo(dtype)

    def isdtype(self, dtype: Any, kind: Any) -> bool:
        """NumPy's."""
        return bool(np.isdtype(dtype, kind))

    def result_type(self, *dtypes: Any) -> Any:
        """NumPy's."""
        return np.result_type(*dtypes)


class _Lines:
    """The lines of a program in the order in which they can be run."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.steps: list[Step] = []
        self.broadcast: list[Array] = []
        self.names: dict[int, tuple[int, Sharded]] = {}  # by the id of a vector that is made here

    def add(self, vector: Sharded) -> int:
        """The name of a vector; its line, and those before it, are added if it is not formed yet."""
        if vector.name is not None:
            return vector.name
        if id(vector) not in self.names:
            arguments = self.arguments(vector.args)
            name = self.engine.name()
            self.steps.append(Step(vector.op, name, arguments))
            self.names[id(vector)] = name, vector
        return self.names[id(vector)][0]

    def arguments(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """With names in the place of vectors, and indices in that of arrays to be sent."""
        return tuple(self._argument(arg) for arg in args)

    def _argument(self, arg: Any) -> Any:
        if isinstance(arg, Sharded):
            return self.add(arg)
        if isinstance(arg, np.ndarray):
            known = [i for i, array in enumerate(self.broadcast) if array is arg]
            if not known:
                self.broadcast.append(arg)
            return known[0] if known else len(self.broadcast) - 1
        return self.arguments(arg) if isinstance(arg, tuple) else arg

    def settle(self, pending: WeakSet[Sharded]) -> None:
        """These vectors are formed now, for all that the driver knows; what only their lines referred to is gone."""
        for name, vector in self.names.values():
            vector.name, vector.op, vector.args = name, "", ()
            pending.discard(vector)
        self.names = {}
