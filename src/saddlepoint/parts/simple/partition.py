"""Disjoint groups of coordinates: the norms of the groups, and values of groups at their coordinates."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from saddlepoint.ground.arrays import Array, concat, is_foreign, namespace, space_of, to_host
from saddlepoint.ground.errors import ProblemError
from saddlepoint.ground.rounding import gamma
from saddlepoint.ground.validation import as_count, short_repr
from saddlepoint.parts.simple.bounds import EPS, wide

CHUNK = 32  # numbers that are added up at a time where a bound on the rounding of the sum is needed


class Partition:
    """Disjoint groups of coordinates.

    Args:
        groups: a label for every coordinate, equal within a group; or a list of groups, each a list of coordinates.
            Coordinates that no group of the list names form one more group, the last.
        shape: instead of ``groups``, the shape of an array whose entries in C order are the coordinates.
        axis: with ``shape``, the axis along which the groups run.
        name: the function that has these groups, for errors.

    Attributes:
        dim: the number of coordinates; None if all coordinates form one group.
        count: the number of groups.
        rest: whether the last group consists of the coordinates that no group names.
    """

    def __init__(self, groups: Any = None, shape: Any = None, axis: int = 0, name: str = "Groups") -> None:
        self.name, self.rest = name, False
        self.dim: int | None = None
        self.count, self._longest = 1, 0
        self._grid: tuple[int, int, int] | None = None
        self._buckets: list[Indices] = []
        self._labels: Indices | None = None
        self.order: Array | None = None  # of the groups as ``norms`` has them, their numbers in the user's order
        if shape is not None:
            if groups is not None:
                raise ProblemError(f"{name} was given both groups and shape; expected one of them")
            self._make_grid(shape, axis)
        elif groups is not None:
            self._make_buckets(_labels_of(groups, name))

    def _make_grid(self, shape: Any, axis: int) -> None:
        sizes = [as_count(size, f"shape of {self.name}") for size in ([shape] if np.ndim(shape) == 0 else shape)]
        if not isinstance(axis, int) or not -len(sizes) <= axis < len(sizes):
            raise ProblemError(f"axis of {self.name} is {axis}; expected one of the {len(sizes)} axes of the shape")
        axis %= len(sizes)
        self._grid = math.prod(sizes[:axis]), sizes[axis], math.prod(sizes[axis + 1 :])
        self.dim, self.count, self._longest = math.prod(sizes), self._grid[0] * self._grid[2], self._grid[1]

    def _make_buckets(self, found: tuple[Array, bool]) -> None:
        """Groups of similar sizes are the rows of one matrix of indices, filled up with an index of a zero."""
        labels, self.rest = found
        n, sizes = int(labels.shape[0]), np.bincount(labels)
        self.dim, self.count, self._longest = n, int(sizes.shape[0]), int(sizes.max())
        kinds = np.frexp(sizes)[1]  # groups of one kind differ in size by a factor below two
        members, ends = np.argsort(labels, kind="stable"), np.cumsum(sizes)
        order = []
        for kind in np.unique(kinds):
            ids = np.flatnonzero(kinds == kind)
            longest = int(sizes[ids].max())
            places = (ends[ids] - sizes[ids])[:, None] + np.arange(longest)[None, :]
            inside = np.arange(longest)[None, :] < sizes[ids][:, None]
            rows = np.where(inside, members[np.minimum(places, n - 1)], n)
            self._buckets.append(Indices(rows))
            order.append(ids)
        self.order = np.concatenate(order)
        self._labels = Indices(np.argsort(self.order, kind="stable")[labels])

    def rounding(self, x: Array) -> float:
        """A bound on the relative errors of ``norms(x)``."""
        longest, levels = (int(x.shape[0]) if self.dim is None else self._longest), 1
        while CHUNK**levels < longest:
            levels += 1
        return gamma(min(longest, CHUNK * levels) + 6, EPS)

    def ordered(self, values: Array) -> Array:
        """One number for each group, from the user's order to the order of ``norms``."""
        return values if self.order is None else values[self.order]

    def sizes(self, x: Array) -> Array:
        """The Euclidean norms of the groups in float64, fast: wrong where squares overflow or underflow."""
        x = wide(x)
        if self.dim is None and isinstance(x, np.ndarray):
            return np.asarray(np.sqrt(np.atleast_1d(x.dot(x))))
        xp = namespace(x)
        parts = [xp.sqrt(xp.sum(a * a, axis=1)) for a in self._rows(x)]
        return _joined(parts)

    def norms(self, x: Array) -> Array:
        """The Euclidean norms of the groups in float64, with relative errors of at most ``rounding(x)``.

        Groups whose largest entry is subnormal have upper bounds instead.
        """
        return _joined([_scaled_norms(a) for a in self._rows(wide(x))])

    def products(self, x: Array, s: Array) -> Array:
        """The inner products of the groups of x and s in float64, fast."""
        xp = namespace(x)
        pairs = zip(self._rows(wide(x)), self._rows(wide(s)), strict=True)
        return _joined([xp.sum(a * b, axis=1) for a, b in pairs])

    def spread(self, values: Array, x: Array) -> Array:
        """For every coordinate of x, the value of its group."""
        xp = namespace(values)
        if self._labels is not None:
            spread: Array = xp.take(values, self._labels.like(x), axis=0)
            return spread
        if self._grid is None:
            return values  # it has one entry, which serves all coordinates
        outer, k, inner = self._grid
        whole: Array = xp.reshape(xp.broadcast_to(xp.reshape(values, (outer, 1, inner)), (outer, k, inner)), (-1,))
        return whole

    def scaled(self, x: Array, factors: Array) -> Array:
        """The vector x in its own dtype, with every group times its factor."""
        if self._grid is None:
            return space_of(x).cast(wide(x) * self.spread(factors, x))
        outer, _, inner = self._grid
        xp = namespace(x)
        grid = xp.reshape(wide(x), self._grid) * xp.reshape(factors, (outer, 1, inner))
        return space_of(x).cast(xp.reshape(grid, (-1,)))

    def on_coordinates(self, found: Array, n: int) -> Array:
        """What ``spread`` returns for a NumPy array of any dtype, with one entry for each of n coordinates."""
        return np.array(np.broadcast_to(self.spread(found, found), n))

    def _rows(self, x: Array) -> list[Array]:
        """Arrays whose axis 1 runs over the entries of a group."""
        xp = namespace(x)
        if self._labels is None:
            return [xp.reshape(x, self._grid or (1, -1, 1))]
        longer = concat([x, xp.zeros_like(x[:1])])
        return [xp.reshape(xp.take(longer, rows.like(x), axis=0), rows.shape) for rows in self._buckets]


class Indices:
    """Indices of coordinates, returned in the library and on the device of the arrays they are applied to."""

    def __init__(self, indices: Array) -> None:
        self.shape = (*indices.shape, 1) if indices.ndim == 2 else indices.shape
        self.flat = indices.reshape(-1).astype(np.int64)
        self._placed: dict[Any, Array] = {}

    def like(self, x: Array) -> Array:
        """The indices as one vector."""
        if isinstance(x, np.ndarray):
            return self.flat
        space = space_of(x)
        key = space.xp.__name__, str(space.device)
        if key not in self._placed:
            where = {} if space.device is None else {"device": space.device}
            made: Array = space.xp.asarray(self.flat, **where)
            if space.is_jax:  # it may be made while JAX traces a program, and must not be kept
                return made
            self._placed[key] = made
        return self._placed[key]

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_placed": {}}


def _joined(parts: list[Array]) -> Array:
    flat = [namespace(part).reshape(part, (-1,)) for part in parts]
    return flat[0] if len(flat) == 1 else concat(flat)


def _scaled_norms(a: Array) -> Array:
    """The norms along axis 1 of an array of float64 of three axes, for squares that overflow or underflow too.

    Sums run over at most ``CHUNK`` numbers at a time, which keeps the bound on their rounding small.
    """
    xp = namespace(a)
    info = xp.finfo(a.dtype)
    least = float(info.smallest_normal)
    largest = xp.max(xp.abs(a), axis=1, keepdims=True)
    unit = xp.where((largest >= least) & (largest <= float(info.max)), largest, xp.full_like(largest, least))
    with np.errstate(over="ignore", invalid="ignore"):
        scaled = a / unit
        squares = scaled * scaled
    while int(squares.shape[1]) > 1:
        outer, k, inner = (int(size) for size in squares.shape)
        chunks = -(-k // CHUNK)
        if chunks == 1:
            squares = xp.sum(squares, axis=1, keepdims=True)
            break
        if chunks * CHUNK > k:
            squares = xp.concat([squares, xp.zeros_like(squares[:, : chunks * CHUNK - k, :])], axis=1)
        squares = xp.sum(xp.reshape(squares, (outer, chunks, CHUNK, inner)), axis=2)
    with np.errstate(over="ignore", invalid="ignore"):
        lengths = unit * xp.sqrt(squares)
    bound: Array = xp.where((largest > 0.0) & (largest < least), lengths + least * math.sqrt(a.shape[1]), lengths)
    return bound


def _labels_of(groups: Any, name: str) -> tuple[Array, bool]:
    """A number from 0 on for every coordinate, and whether the last one stands for coordinates without a group."""
    if isinstance(groups, Sequence) and not isinstance(groups, str) and any(_is_group(part) for part in groups):
        return _labels_of_lists(groups, name)
    labels = np.asarray(to_host(groups)) if is_foreign(groups) else np.asarray(groups)
    if labels.ndim != 1 or labels.dtype.kind not in "iubfUS":
        raise ProblemError(
            f"groups of {name} is {short_repr(groups)}; expected a label for every coordinate, or a list of lists of "
            "coordinates"
        )
    if labels.shape[0] == 0:
        raise ProblemError(f"groups of {name} is empty; expected a label for every coordinate")
    return np.unique(labels, return_inverse=True)[1].astype(np.int64), False


def _is_group(part: Any) -> bool:
    return isinstance(part, slice | list | tuple | range) or np.ndim(part) > 0


def _labels_of_lists(groups: Sequence[Any], name: str) -> tuple[Array, bool]:
    members = [_members(part, i, name) for i, part in enumerate(groups)]
    n = 1 + max(int(part.max()) for part in members)
    labels = np.full(n, -1, dtype=np.int64)
    for i, part in enumerate(members):
        taken = part[labels[part] >= 0]
        if taken.shape[0] or np.unique(part).shape[0] < part.shape[0]:
            j = int(taken[0]) if taken.shape[0] else int(part[0])
            both = f"groups {labels[j]} and {i}" if taken.shape[0] else f"group {i} more than once"
            raise ProblemError(
                f"coordinate {j} is in {both} of {name}; expected groups without common coordinates, because the prox "
                "of overlapping groups is not known. Copy the coordinates by rows of A instead, so that the groups are "
                "separate on the side of y"
            )
        labels[part] = i
    rest = labels < 0
    labels[rest] = len(members)
    return labels, bool(rest.any())


def _members(part: Any, i: int, name: str) -> Array:
    if isinstance(part, slice):
        if part.stop is None or part.stop < 0 or (part.start or 0) < 0:
            raise ProblemError(f"group {i} of {name} is {part}; expected a slice with a start and an end from 0 on")
        part = range(part.stop)[part]
    try:
        found = np.asarray(to_host(part)) if is_foreign(part) else np.asarray(part)
    except ValueError:  # lists of different lengths
        found = np.zeros(0)
    if found.ndim != 1 or found.dtype.kind not in "iu" or found.shape[0] == 0 or found.min() < 0:
        raise ProblemError(f"group {i} of {name} is {short_repr(part)}; expected a list of coordinates from 0 on")
    return found.astype(np.int64)
