"""Data and offsets that a caller gave to a function: as a coupling, their size, and parts of them."""

from __future__ import annotations

from typing import Any

from saddlepoint.ground.arrays import Array
from saddlepoint.parts.coupling import Coupling, as_coupling


def as_data(D: Any, name: str) -> Coupling | None:
    """The data D of a function called ``name`` as a coupling; None if there are none."""
    return None if D is None else as_coupling(D, f"D of {name}")


def size_of_offset(t: float | Array | None) -> int | None:
    """The number of entries of an offset; None for a number, which fits all sizes."""
    return None if t is None or isinstance(t, float) else int(t.shape[0])


def part_of_offset(t: float | Array | None, rows: slice) -> float | Array | None:
    """Some entries of an offset; a number is the same for all."""
    return t if t is None or isinstance(t, float) else t[rows]
