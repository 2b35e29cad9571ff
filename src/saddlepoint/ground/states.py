"""Take the arrays out of a method's state, and put other arrays in their places."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from saddlepoint.ground.arrays import Array, is_array


def arrays(state: Any) -> Iterator[Array]:
    """All arrays of a state, including those of nested states."""
    if is_array(state):
        yield state
    elif isinstance(state, tuple):
        for field in state:
            yield from arrays(field)


def with_arrays(state: Any, new: Iterable[Array]) -> Any:
    """The state with other arrays in the same places and everything else unchanged."""
    return _rebuilt(state, iter(new))


def _rebuilt(part: Any, supply: Iterator[Array]) -> Any:
    # A nested function that calls itself would keep the arrays until the garbage collector finds the cycle.
    if is_array(part):
        return next(supply)
    if isinstance(part, tuple):
        fields = (_rebuilt(field, supply) for field in part)
        return type(part)(*fields) if hasattr(part, "_fields") else tuple(fields)
    return part


def static_part(state: Any) -> Any:
    """The state with None in the place of every array."""
    return with_arrays(state, (None for _ in arrays(state)))  # type: ignore[misc]
