"""How much memory there is for A and the vectors, and what of A it is used for."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from saddlepoint.ground.errors import ProblemError
from saddlepoint.ground.validation import as_number, short_repr
from saddlepoint.parts.coupling.streamed.store import Block, Store

MEMORY_LIMIT = 2 * 10**9  # bytes, unless the caller says otherwise
BLOCK = 1 << 22  # bytes read at a time: they are still in the cache when they are multiplied
IN_FLIGHT = 2  # blocks: one is multiplied while the next is read
VECTORS = 64  # of x and y that a run may hold at once: the states of all methods, with a short memory of Anderson's,
MIXED = 160, 3_000_000  # and more of them where they are short, as `auto` does: vectors, and numbers in all
FACTOR = 2000  # the shorter side up to which methods may factorise I + a^2 A'A, for which three matrices are needed
KEPT = 0.75  # of what is left may stay in memory; the rest is for what no estimate knows


class Plan(NamedTuple):
    """The blocks of A, and which of them stay in memory."""

    limit: int
    blocks: list[Block]
    keep: frozenset[int]
    free: int  # bytes beside the vectors and the blocks in flight: those that stay, and what methods make of A


def as_bytes(value: Any, name: str = "memory_limit") -> int:
    """A number of bytes, or a text such as "2GB" or "512MiB"."""
    if isinstance(value, str):
        match = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]*)?)\s*([KMGT]?)(i?)B?\s*", value, re.IGNORECASE)
        if match is None:
            raise ProblemError(f"{name} is {short_repr(value)}; expected a size such as 2GB")
        value = float(match[1]) * (1024 if match[3] else 1000) ** " KMGT".index(match[2].upper() or " ")
    number = as_number(value, name, "a number of bytes, or a size such as 2GB")
    if not 1.0 <= number < 2.0**63:
        raise ProblemError(f"{name} is {number:.6g} bytes; expected a positive size such as 2GB")
    return int(number)


def told_bytes(count: float) -> str:
    """Bytes in words: 1.5 GB."""
    for unit, name in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if count >= 0.9995 * unit:
            return f"{count / unit:.3g} {name}"
    return f"{count:.0f} bytes"


def vector_bytes(shape: tuple[int, int]) -> int:
    """An estimate of what the vectors of a run take, in float64."""
    sides = sum(shape)
    return 8 * (VECTORS * sides + min(MIXED[0] * sides, MIXED[1]))


def factor_bytes(shape: tuple[int, int]) -> int:
    """What a factorisation takes, where methods may want one."""
    return 24 * min(shape) ** 2 if min(shape) <= FACTOR else 0


def plan(store: Store, limit: int, block: int | None = None) -> Plan:
    """Divide the memory: vectors first, then two blocks in flight; part of what is left holds blocks that stay.

    Those that stay are spread evenly among the others, so that there is something to multiply while others are read.
    """
    m, n = store.shape
    factor = factor_bytes(store.shape)
    vectors = vector_bytes(store.shape) + factor
    free = limit - vectors
    if free <= 0:
        raise ProblemError(
            f"memory_limit is {told_bytes(limit)}, and the vectors and factors of a problem of {m} x {n} alone may "
            f"take {told_bytes(vectors)}; give {told_bytes(1.25 * vectors)} or more"
        )
    size = store.expansion * (BLOCK if block is None else block)
    blocks = store.blocks(min(size, free // (2 * IN_FLIGHT)))
    largest = max(blocks, key=lambda b: b.memory)
    flight = IN_FLIGHT * largest.memory
    if flight > free:
        raise ProblemError(
            f"memory_limit is {told_bytes(limit)}, of which vectors may take {told_bytes(vectors)}; two blocks of "
            f"{store.name} being read, of {told_bytes(largest.memory)} (rows {largest.first} to {largest.last - 1}), "
            f"do not fit beside them: give {told_bytes(vectors + 1.25 * flight)} or more, or store it in smaller blocks"
        )
    room = KEPT * (free - flight)
    share = min(1.0, room / max(1, sum(b.held for b in blocks)))
    keep = set()
    for k, b in enumerate(blocks):
        if share == 1.0 or (int((k + 1) * share) > int(k * share) and b.held <= room):
            keep.add(k)
            room -= b.held
    return Plan(limit, blocks, frozenset(keep), free - flight + factor)
