"""Lazy vectors over the shards of A: they are computed by the shards when a number that depends on them is needed.

A method uses only ``+ - *`` and oracle calls, so what it does with such vectors is a small program: linear combinations
of stored vectors, gradients of g, products A y. A ``Sharded`` is one step of that program. Only a result that is needed
in this process, such as A'x or an inner product, causes a round: the steps it depends on are sent with it, every shard
runs them on its own parts, and the shards keep the vectors to which references still exist.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from weakref import WeakSet

import numpy as np

from saddlepoint.ground.arrays import Array, Space
from saddlepoint.ground.errors import ProblemError
from saddlepoint.parts.sharded.engine import Engine
from saddlepoint.parts.sharded.shard_program import Answers, Program, Step
from saddlepoint.parts.sharded.stacked import Stacked

Number = int | float | np.number


class Sharded:
    """A vector of m numbers over the shards of an engine.

    Once it is computed, the shards store it under ``name``. Before that, it is a step of a program that has not been
    run: ``op`` and ``args``.
    """

    __array_ufunc__ = None  # so that np.float64(3) * x calls __rmul__
    ndim = 1

    def __init__(
        self, library: Library, dtype: Any, op: str = "", args: tuple[Any, ...] = (), name: int | None = None
    ) -> None:
        self.library, self.dtype = library, np.dtype(dtype)
        self.op, self.args, self.name = op, args, name
        self.square: float | None = None
        self.created = library.engine.rounds
        if name is None:
            library.pending.add(self)

    def __del__(self) -> None:
        if self.name is not None:
            self.library.engine.dropped.append(self.name)

    # -- attributes of an array ----------------------------------------------------------------------------------------

    @property
    def shape(self) -> tuple[int]:
        """The number of rows of A."""
        return (self.library.engine.rows,)

    @property
    def nbytes(self) -> int:
        """Bytes over all shards."""
        return int(self.shape[0] * self.dtype.itemsize)

    @property
    def device(self) -> str:
        """A description of the engine's shards; vectors of two engines cannot be combined."""
        return self.library.device

    def __array_namespace__(self, api_version: str | None = None) -> Library:
        return self.library

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return np.asarray(self.on_host(), dtype)

    def on_host(self) -> Array:
        """The whole vector as a NumPy array."""
        if self.name is None:
            self.library.run([], [self])
        assert self.name is not None
        return self.library.engine.gather(self.name)

    def prefetch_norms(self, vectors: Sequence[Sharded]) -> None:
        """Compute |v|^2 of some vectors in one round and store it with each of them, for ``linalg.prefetch_norms``."""
        self.library.dots([(v, v) for v in vectors])

    def __getitem__(self, key: Any) -> Any:
        raise self.library.refusal("single entries of x")

    def __repr__(self) -> str:
        return f"Sharded({self.shape[0]} numbers, {self.dtype}, {self.library.engine.shards} shards)"

    # -- arithmetic ----------------------------------------------------------------------------------------------------

    def _term(self) -> tuple[float, Sharded]:
        """The vector as (factor, vector). Sums have the same bits whether or not it is computed before."""
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

    def __abs__(self) -> Sharded:
        return self._made("abs", self)

    __rmul__ = __mul__

    def __rsub__(self, other: Any) -> Sharded:
        return -self._plus_zero(other)

    def __matmul__(self, other: Any) -> float:
        """The inner product, in one round."""
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
    """The part of the array API that a run needs, for the vectors of one engine.

    Args:
        engine: the engine whose shards store the vectors.
    """

    __name__ = "sharded"
    float32, float64 = np.dtype(np.float32), np.dtype(np.float64)

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.device = f"{engine.shards} shards (cpu)"
        self.pending: WeakSet[Sharded] = WeakSet()  # vectors that are not computed yet

    def __reduce__(self) -> Any:
        raise ProblemError("a problem whose A is in shards can neither be pickled nor copied")

    def space(self, dtype: Any) -> Space:
        """The space of the vectors of length m."""
        return Space(self, np.dtype(dtype), self.device)

    def refusal(self, what: str) -> ProblemError:
        """The error for an operation that vectors over shards do not have."""
        return ProblemError(
            f"this method needs {what} in one process, but x is split over {self.engine.shards} shards; use auto, "
            "lpd-gs, condat-vu or another method that uses only + - *, oracle calls and inner products"
        )

    # -- rounds --------------------------------------------------------------------------------------------------------

    def run(
        self, reductions: Sequence[tuple[str, Sharded | None, tuple[Any, ...]]], computed: Sequence[Sharded] = ()
    ) -> Answers:
        """One round: the reductions (op, the vector that it computes, arguments), and the steps they depend on.

        Vectors that were not computed in the last round are computed now too, so that no program grows without end.
        """
        builder, drop = _ProgramBuilder(self.engine), self.engine.take_dropped()
        late = [v for v in list(self.pending) if v.created < self.engine.rounds and v.name is None]
        late.sort(key=lambda v: v.created)
        for vector in (*late, *computed):
            builder.add(vector)
        for op, made, args in reductions:
            arguments = builder.arguments(args)
            if made is not None:
                made.name = self.engine.name()
                self.pending.discard(made)
            builder.steps.append(Step(op, None if made is None else made.name, arguments))
        del late, reductions
        builder.mark_computed(self.pending)
        return self.engine.run(Program(tuple(builder.steps), drop, self.engine.take_dropped()), builder.broadcast)

    def dots(self, pairs: Sequence[tuple[Sharded, Sharded]]) -> list[float]:
        """Inner products, in one round; those of a vector with itself are stored with the vector."""
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
        """A NumPy array, its parts sent to the shards; a ``Sharded`` vector itself, since these are never changed."""
        if isinstance(array, Sharded):
            return array if dtype is None else self.astype(array, dtype)
        whole = np.asarray(array, dtype)
        if whole.shape != (self.engine.rows,):
            raise self.refusal(f"a vector of shape {whole.shape}")
        name = self.engine.name()
        self.engine.scatter(name, lambda k: np.ascontiguousarray(whole[self.engine.slice(k)]))
        return Sharded(self, whole.dtype, name=name)

    def astype(self, vector: Sharded, dtype: Any, copy: bool = True) -> Sharded:
        """The vector in another dtype."""
        same = vector.dtype == np.dtype(dtype)
        return vector if same else Sharded(self, dtype, "cast", (vector, np.dtype(dtype).name))

    def full(self, n: int, value: float, dtype: Any = None, device: Any = None) -> Sharded:
        """A vector of m equal numbers."""
        if n != self.engine.rows:
            raise self.refusal(f"a vector of length {n}")
        kind = np.dtype(np.float64 if dtype is None else dtype)
        return Sharded(self, kind, "fill", (float(value), kind.name))

    def concat(self, vectors: Sequence[Any]) -> Stacked:
        """The vectors concatenated, each of which stays where it is."""
        return Stacked(tuple(vectors))

    def weighted(self, factors: Sequence[float], vectors: Sequence[Sharded]) -> Sharded:
        """The weighted sum of the vectors."""
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
        """Whether all entries, which are 0 or 1, are 1."""
        return -self.max(-vector) == 1.0

    def finfo(self, dtype: Any) -> Any:
        """The limits of a dtype, those of NumPy."""
        return np.finfo(dtype)

    def isdtype(self, dtype: Any, kind: Any) -> bool:
        """Whether a dtype is of a kind, as NumPy says."""
        return bool(np.isdtype(dtype, kind))

    def result_type(self, *dtypes: Any) -> Any:
        """The common dtype, as NumPy says."""
        return np.result_type(*dtypes)


class _ProgramBuilder:
    """The steps of a program, in the order in which they can be run."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.steps: list[Step] = []
        self.broadcast: list[Array] = []
        self.names: dict[int, tuple[int, Sharded]] = {}  # by the id of a vector that the program computes

    def add(self, vector: Sharded) -> int:
        """The name of a vector. If it is not computed yet, its step is added, and before it those it depends on."""
        if vector.name is not None:
            return vector.name
        if id(vector) not in self.names:
            arguments = self.arguments(vector.args)
            name = self.engine.name()
            self.steps.append(Step(vector.op, name, arguments))
            self.names[id(vector)] = name, vector
        return self.names[id(vector)][0]

    def arguments(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """The arguments with names instead of vectors, and positions in the broadcast instead of arrays."""
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

    def mark_computed(self, pending: WeakSet[Sharded]) -> None:
        """Mark the vectors as computed, and delete their arguments: vectors that only these refer to are dropped."""
        for name, vector in self.names.values():
            vector.name, vector.op, vector.args = name, "", ()
            pending.discard(vector)
        self.names = {}
