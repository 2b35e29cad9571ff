"""The division of the memory limit among vectors, blocks that are being read, and blocks that stay in memory."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from saddlepoint.ground.errors import ProblemError
from saddlepoint.ground.validation import as_number, short_repr
from saddlepoint.parts.coupling.streamed.store import Block, Store

MEMORY_LIMIT = 2 * 10**9  # bytes, unless the caller gives another limit
BLOCK = 1 << 22  # bytes read at a time, so few that they are still in the cache when they are multiplied
IN_FLIGHT = 2  # blocks in memory at once: one is multiplied while the next is read
VECTORS = 64  # estimated number of vectors x and y in a run: the states of all methods, and a short Anderson memory
MIXED = 160, 3_000_000  # further vectors that `auto` stores for Anderson: most vectors, and most numbers in all of them
FACTOR = 2000  # length of the shorter side up to which methods may factorise I + a^2 A'A, which takes three matrices
KEPT = 0.75  # share of the remaining memory for blocks that stay; the rest is a reserve


class Plan(NamedTuple):
    """The blocks of A, and which of them stay in memory."""

    limit: int
    blocks: list[Block]
    keep: frozenset[int]
    free: int  # bytes for blocks that stay and for matrices of the methods


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


def format_bytes(count: float) -> str:
    """A number of bytes as a text, such as 1.5 GB."""
    for unit, name in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if count >= 0.9995 * unit:
            return f"{count / unit:.3g} {name}"
    return f"{count:.0f} bytes"


def vector_bytes(shape: tuple[int, int]) -> int:
    """An estimate of the bytes of all vectors of a run, in float64."""
    sides = sum(shape)
    return 8 * (VECTORS * sides + min(MIXED[0] * sides, MIXED[1]))


def factor_bytes(shape: tuple[int, int]) -> int:
    """The bytes of a factorisation, if methods may make one."""
    return 24 * min(shape) ** 2 if min(shape) <= FACTOR else 0


def plan(store: Store, limit: int) -> Plan:
    """Divide the memory: first the vectors, then two blocks in flight, then as many blocks that stay as possible.

    The blocks that stay are distributed evenly among the others, so that one can be multiplied while others are read.
    """
    m, n = store.shape
    factor = factor_bytes(store.shape)
    vectors = vector_bytes(store.shape) + factor
    free = limit - vectors
    if free <= 0:
        raise ProblemError(
            f"memory_limit is {format_bytes(limit)}, and the vectors and factors of a problem of {m} x {n} alone may "
            f"take {format_bytes(vectors)}; give {format_bytes(1.25 * vectors)} or more"
        )
    blocks = store.blocks(min(store.expansion * BLOCK, free // (2 * IN_FLIGHT)))
    largest = max(blocks, key=lambda b: b.memory)
    flight = IN_FLIGHT * largest.memory
    if flight > free:
        raise ProblemError(
            f"memory_limit is {format_bytes(limit)}, of which vectors may take {format_bytes(vectors)}; two blocks of "
            f"{store.name} being read, of {format_bytes(largest.memory)} (rows {largest.first} to {largest.last - 1}), "
            f"do not fit beside them: give {format_bytes(vectors + 1.25 * flight)} or more, or store smaller blocks"
        )
    room = KEPT * (free - flight)
    share = min(1.0, room / max(1, sum(b.held for b in blocks)))
    keep = set()
    for k, b in enumerate(blocks):
        if share == 1.0 or (int((k + 1) * share) > int(k * share) and b.held <= room):
            keep.add(k)
            room -= b.held
    return Plan(limit, blocks, frozenset(keep), free - flight + factor)
