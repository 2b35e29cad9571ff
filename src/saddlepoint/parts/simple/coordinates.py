"""One number for each coordinate, or one for all, returned in the library and dtype of the arrays it is used with."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from saddlepoint.ground.arrays import Array, is_float64, namespace, space_of, to_host
from saddlepoint.ground.errors import ProblemError
from saddlepoint.ground.recording import has_numbers, is_live, is_recording
from saddlepoint.ground.validation import as_float_array, as_number, positive


class Coordinates:
    """One number for every coordinate, or the same number for all of them, in float64.

    Args:
        value: a number, or a vector of any library.
        name: what it is called in an error.

    Attributes:
        value: the numbers; NaN where they are symbols that JAX traces.
        live: the tensor itself, if it is to be differentiated (see ``ground.recording``); else None.
    """

    def __init__(self, value: Any, name: str) -> None:
        self.name = name
        self.live: Any = value if is_recording() and is_live(value) else None
        self.value: float | Array = _as_numbers(value, name) if has_numbers(value) else _unknown(value)
        self._placed: dict[Any, Array] = {}

    @property
    def raw(self) -> Any:
        """The tensor to be differentiated, or the numbers if there is none, to make other ``Coordinates`` of."""
        return self.value if self.live is None else self.live

    @property
    def known(self) -> bool:
        """Whether there are numbers, which can be checked."""
        return self.live is None or has_numbers(self.live)

    @property
    def size(self) -> int | None:
        """The number of coordinates, if it is fixed."""
        return None if isinstance(self.value, float) else int(self.value.shape[0])

    @property
    def least(self) -> float:
        """The smallest of the numbers."""
        return self.value if isinstance(self.value, float) else float(self.value.min())

    @property
    def most(self) -> float:
        """The largest of the numbers."""
        return self.value if isinstance(self.value, float) else float(self.value.max())

    def everywhere(self, n: int) -> Array:
        """A NumPy vector of n numbers."""
        return np.full(n, self.value) if isinstance(self.value, float) else self.value

    def like(self, x: Array, towards: float | None = None) -> Any:
        """The numbers in the dtype of x: a number, or a vector of the library and on the device of x.

        Args:
            x: the array.
            towards: -inf, inf or 0 for numbers that are rounded in this direction if the dtype cannot hold them; None
                for the nearest ones.
        """
        if self.live is not None:
            return namespace(x).astype(self.live, x.dtype)
        if isinstance(self.value, float):
            return self.value if is_float64(x) else float(_in_float32(np.array(self.value), towards))
        if isinstance(x, np.ndarray):
            return self.value if x.dtype == np.float64 else self._kept(("numpy", towards), x, towards)
        space = space_of(x)
        if space.is_jax:  # an array that is made while JAX traces a program must not be kept
            return self._made(x, towards)
        return self._kept((space.xp.__name__, str(x.dtype), str(space.device), towards), x, towards)

    def _kept(self, key: Any, x: Array, towards: float | None) -> Array:
        if key not in self._placed:
            self._placed[key] = self._made(x, towards)
        return self._placed[key]

    def _made(self, x: Array, towards: float | None) -> Array:
        numbers = self.value if is_float64(x) else _in_float32(np.asarray(self.value), towards)
        made = space_of(x).cast(np.array(numbers))  # a copy: PyTorch warns of arrays that are read-only
        return made.to(x.device) if is_recording() and hasattr(made, "requires_grad") else made  # type: ignore[attr-defined]

    def __getitem__(self, rows: slice) -> float | Array:
        return self.value if isinstance(self.value, float) else self.value[rows]

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_placed": {}}

    def __str__(self) -> str:
        return f"{self.value:g}" if isinstance(self.value, float) else f"{self.value.shape[0]} numbers"


def common_size(name: str, *parts: Coordinates) -> int | None:
    """The number of coordinates that the parts agree on; None if none of them fixes it."""
    sizes = {part.name: part.size for part in parts if part.size is not None}
    if len(set(sizes.values())) > 1:
        given = " and ".join(f"{part} has {size}" for part, size in sizes.items())
        raise ProblemError(f"{given} entries; expected as many for every part of {name}")
    return next(iter(sizes.values()), None)


def as_pair(a: Coordinates, b: Coordinates) -> tuple[Any, Any]:
    """The numbers of both, or tensors of one library if one of them is to be differentiated."""
    live = a.live if a.live is not None else b.live
    if live is None:
        return a.value, b.value
    space = space_of(live)
    one, two = (part.live if part.live is not None else space.cast(np.array(part.value)) for part in (a, b))
    return one, two


def positive_or_live(value: Any, name: str) -> float:
    """``value`` as a finite number above 0, or the tensor itself if it is to be differentiated."""
    if not (is_recording() and is_live(value)):
        return positive(value, name)
    if value.shape:
        raise ProblemError(f"{name} has shape {tuple(value.shape)}; expected a number")
    if has_numbers(value):
        positive(value.detach(), name)
    return value  # type: ignore[no-any-return]


def _unknown(value: Any) -> float | Array:
    """NaN in the shape of a symbol."""
    return math.nan if not value.shape else np.full(value.shape, math.nan)


def _as_numbers(value: Any, name: str) -> float | Array:
    value = value.detach() if is_live(value) else value
    if np.ndim(value) == 0 and not getattr(value, "shape", ()):
        number = as_number(value, name)
        if math.isnan(number):
            raise ProblemError(f"{name} is NaN; expected a number")
        return number
    vector = np.asarray(to_host(as_float_array(value, name)), dtype=np.float64)
    if vector.ndim != 1:
        raise ProblemError(f"{name} has shape {vector.shape}; expected a number or a vector (one dimension)")
    if vector.shape[0] == 0:
        raise ProblemError(f"{name} is empty; expected one entry at least")
    if np.isnan(vector).any():
        raise ProblemError(f"{name} has a NaN at index {int(np.argmax(np.isnan(vector)))}; expected numbers")
    frozen = vector.copy()
    frozen.setflags(write=False)
    return frozen


def _in_float32(numbers: Array, towards: float | None) -> Array:
    """The numbers in float32, rounded in a direction."""
    with np.errstate(over="ignore", under="ignore"):
        near = numbers.astype(np.float32)
        if towards is None:
            return near
        goal = np.float32(towards)
        if towards == 0.0:
            wrong = np.abs(near.astype(np.float64)) > np.abs(numbers)
        elif towards > 0.0:
            wrong = near.astype(np.float64) < numbers
        else:
            wrong = near.astype(np.float64) > numbers
        return np.asarray(np.where(wrong, np.nextafter(near, goal), near))
