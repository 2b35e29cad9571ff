"""Different simple functions for different coordinates."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from saddlepoint.ground.arrays import Array, concat, namespace
from saddlepoint.ground.errors import ProblemError
from saddlepoint.ground.validation import short_repr
from saddlepoint.parts.simple.base import Pairing, Simple, on_host
from saddlepoint.parts.simple.bounds import not_nan, raised
from saddlepoint.parts.simple.l1_box import L1Box


class Blocks(Simple):
    """A sum of simple functions of disjoint ranges of coordinates. Coordinates that no range names are free.

    Args:
        blocks: a dictionary, or a list of pairs, of ranges and simple functions. A range is ``range(2, 5)``,
            ``slice(2, 5)``, ``slice(5, None)`` for all that follow, or a pair (2, 5). In Python 3.11 a slice cannot be
            a key of a dictionary; use ``range`` or a list of pairs there.

    Example:
        >>> import numpy as np, saddlepoint as sp
        >>> p = sp.Blocks({range(0, 2): sp.Simplex(), range(3, 5): sp.L1(0.5)})
        >>> p.prox(np.array([4.0, 0.0, 7.0, 2.0, -0.1]), 1.0).tolist()
        [1.0, 0.0, 7.0, 1.5, 0.0]
    """

    def __init__(self, blocks: Mapping[Any, Simple] | Iterable[tuple[Any, Simple]]) -> None:
        pairs = list(blocks.items()) if isinstance(blocks, Mapping) else _as_pairs(blocks)
        if not pairs:
            raise ProblemError("Blocks is empty; expected one range with a simple function at least")
        self.blocks = sorted((_as_block(key, p) for key, p in pairs), key=lambda block: block[0])
        for (start, stop, p), (next_start, _, q) in zip(self.blocks, self.blocks[1:], strict=False):
            if stop is None or next_start < stop:
                raise ProblemError(
                    f"{p!r} at {_range(start, stop)} and {q!r} from {next_start} on overlap in Blocks; expected ranges "
                    "without common coordinates. If the prox of their sum is known, write it as one block: p + q"
                )
        self.structured = all(p.structured for _, _, p in self.blocks)
        self.separable = all(p.separable for _, _, p in self.blocks)
        self.accuracy = max(
            (p.accuracy for _, _, p in self.blocks if not p.structured), key=_unknown_first, default=math.nan
        )
        self.dim = None

    @property
    def has_value(self) -> bool:
        """Whether all blocks have values."""
        return all(p.has_value for _, _, p in self.blocks)

    def parts(self, n: int) -> list[tuple[slice, Simple]]:
        """All ranges of n coordinates in their order, with their functions; free coordinates have ``FREE``."""
        parts: list[tuple[slice, Simple]] = []
        end = 0
        for start, stop, p in self.blocks:
            if start > end:
                parts.append((slice(end, start), FREE))
            end = n if stop is None else stop
            parts.append((slice(start, end), p))
        return [*parts, (slice(end, n), FREE)] if end < n else parts

    def _on(self, *vectors: Array) -> list[tuple[Any, ...]]:
        """The function of each block, and its parts of the vectors."""
        return [(p, *(v[rows] for v in vectors)) for rows, p in self.parts(int(vectors[0].shape[0]))]

    def value(self, x: Array) -> float:
        """The sum of the values."""
        return math.fsum(p.value(part) for p, part in self._on(x))

    def prox(self, v: Array, t: float) -> Array:
        """The prox of each block."""
        return concat(p.prox(part, t) for p, part in self._on(v))

    def conjugate(self, s: Array) -> float:
        """The sum of the conjugates."""
        return math.fsum(p.conjugate(part) for p, part in self._on(s))

    def project(self, x: Array) -> Array:
        """The projection of each block."""
        return concat(p.project(part) for p, part in self._on(x))

    def outside(self, x: Array) -> float:
        """The length of the vector of the distances of all blocks."""
        return _length(p.outside(part) for p, part in self._on(x))

    def is_inside(self, x: Array) -> bool:
        """Whether x, or each block of it, is in the domain up to rounding."""
        return super().is_inside(x) or all(p.is_inside(part) for p, part in self._on(x))

    def diameter_in(self, n: int | None) -> float:
        """The length of the vector of the diameters of all blocks; infinite if there are free coordinates."""
        if n is None:
            return math.inf
        return _length(p.diameter_in(rows.stop - rows.start) for rows, p in self.parts(n))

    def validate(self, n: int, name: str = "x") -> None:
        """Raise a ProblemError if a range reaches beyond n coordinates, or if a function does not fit its range."""
        for start, stop, p in self.blocks:
            end = n if stop is None else stop
            if end > n or start >= n:
                raise ProblemError(
                    f"{p!r} of Blocks is for the coordinates {_range(start, stop)}, but {name} has {n}; expected "
                    f"ranges within 0 to {n}"
                )
            p.validate(end - start, f"{name}[{start}:{end}]")

    def restrict(self, rows: slice) -> Simple:
        """The function of some coordinates, if all blocks are sums over coordinates."""
        if not self.separable:
            return super().restrict(rows)
        found: list[tuple[Any, Simple]] = []
        for start, stop, p in self.blocks:
            first, last = max(start, rows.start), rows.stop if stop is None else min(stop, rows.stop)
            if first < last:
                part = p.restrict(slice(first - start, last - start))
                found.append((range(first - rows.start, last - rows.start), part))
        return Blocks(found) if found else FREE

    def dual_point(self, s: Array) -> Array:
        """The dual points of the blocks; zero where the coordinates are free."""
        return concat(p.dual_point(part) for p, part in self._on(s))

    def subgradient(self, xh: Array, s: Array) -> Array:
        """The subgradients of the blocks."""
        return concat(p.subgradient(*parts) for p, *parts in self._on(xh, s))

    def fenchel_gap(self, x: Array, s: Array) -> float:
        """The sum of the gaps."""
        return _sum(p.fenchel_gap(*parts) for p, *parts in self._on(x, s))

    def bregman(self, x: Array, xh: Array, s: Array) -> float:
        """The sum of the bounds of the blocks."""
        return _sum(p.bregman(*parts) for p, *parts in self._on(x, xh, s))

    def pairing(self, x: Array, s: Array) -> Pairing:
        """The proofs of the blocks, joined."""
        return _joined([p.pairing(*parts) for p, *parts in self._on(x, s)])

    def pairing_at(self, x: Array, xh: Array, s: Array) -> Pairing:
        """The proofs of the blocks with their subgradients at xh, joined."""
        return _joined([p.pairing_at(*parts) for p, *parts in self._on(x, xh, s)])

    def faces(self, x: Array) -> Array:
        """The numbers of the blocks."""
        return concat(p.faces(part) for p, part in self._on(x))

    def along_face(self, x: Array, moves: Array) -> Array:
        """The moves that leave each block on its kinks and bounds."""
        parts = [p.along_face(x[rows], moves[..., rows]) for rows, p in self.parts(int(x.shape[0]))]
        found: Array = namespace(moves).concat(parts, axis=-1)
        return found

    def support(self, x: Array, w: Array, reach_x: float, reach_w: Any) -> Array:
        """What is proven about the coordinates of each block."""
        reach = np.broadcast_to(on_host(reach_w), int(x.shape[0]))
        return np.concatenate([p.support(a, b, reach_x, c) for p, a, b, c in self._on(x, w, reach)])

    def _times(self, c: float) -> Simple:
        return Blocks([((start, stop), c * p) for start, stop, p in self.blocks])

    def __repr__(self) -> str:
        return "Blocks(" + ", ".join(f"{_range(start, stop)}: {p!r}" for start, stop, p in self.blocks) + ")"


FREE = L1Box()  # zero everywhere, for coordinates without a block


def _as_pairs(blocks: Any) -> list[tuple[Any, Simple]]:
    try:
        return [(key, p) for key, p in blocks]
    except (TypeError, ValueError):
        raise ProblemError(
            f"Blocks was given {short_repr(blocks)}; expected a dictionary or a list of pairs of ranges and functions"
        ) from None


def _as_block(key: Any, p: Any) -> tuple[int, int | None, Simple]:
    if not isinstance(p, Simple):
        raise ProblemError(
            f"{short_repr(p)} of Blocks is no simple function; expected sp.L1, sp.Simplex or another one"
        )
    if isinstance(key, slice | range):
        start, stop, step = key.start or 0, key.stop, key.step
    elif isinstance(key, tuple) and len(key) == 2:
        (start, stop), step = key, None
    else:
        start = stop = step = None
    numbers = [start, 1 if stop is None else stop]
    whole = all(isinstance(number, int | np.integer) and number >= 0 for number in numbers)
    if not whole or step not in (None, 1) or (stop is not None and stop <= start):
        raise ProblemError(
            f"{short_repr(key)} of Blocks is no range; expected range(start, stop), slice(start, stop) or a pair, with "
            "0 <= start < stop"
        )
    return int(start), None if stop is None else int(stop), p


def _range(start: int, stop: int | None) -> str:
    return f"{start}:{'' if stop is None else stop}"


def _joined(pairs: list[Pairing]) -> Pairing:
    """The proofs of all blocks as one."""
    offs = (_length(pair.off_x for pair in pairs), _length(pair.off_s for pair in pairs))
    gaps = (_sum(pair.gap for pair in pairs), _sum(pair.gap_at_x for pair in pairs))
    return Pairing(concat(pair.s for pair in pairs), *offs, *gaps)


def _sum(bounds: Iterable[float]) -> float:
    found = list(bounds)
    return raised(sum(found), len(found) + 1)


def _length(bounds: Iterable[float]) -> float:
    found = list(bounds)
    return not_nan(raised(math.hypot(*found), len(found) + 4))


def _unknown_first(accuracy: float) -> float:
    """The accuracy as a key by which one that was not said is the largest."""
    return math.inf if math.isnan(accuracy) else accuracy
