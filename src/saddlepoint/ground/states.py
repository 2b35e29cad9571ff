"""Take the arrays out of a method's state, and put other arrays in their places."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from saddlepoint.ground.arrays import Array, is_array


def arrays(state: Any) -> Iterator[Array]:
    """All arrays of a state, including those of nested states."""
    if isinstance(state, tuple):
        for field in state:
            if type(field) is np.ndarray:  # by far the most frequent case
                yield field
            else:
                yield from arrays(field)
    elif is_array(state):
        yield state


def with_arrays(state: Any, new: Iterable[Array]) -> Any:
    """The state with other arrays in the same places and everything else unchanged."""
    return _rebuilt(state, iter(new))


def _rebuilt(part: Any, supply: Iterator[Array]) -> Any:
    # A nested function that calls itself would keep the arrays until the garbage collector finds the cycle.
    if isinstance(part, tuple):
        fields = [next(supply) if type(field) is np.ndarray else _rebuilt(field, supply) for field in part]
        return type(part)(*fields) if hasattr(part, "_fields") else tuple(fields)
    return next(supply) if is_array(part) else part


def static_part(state: Any) -> Any:
    """The state with None in the place of every array."""
    return with_arrays(state, (None for _ in arrays(state)))  # type: ignore[misc]
