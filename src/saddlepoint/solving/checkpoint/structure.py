"""Whether a value that was read from a file is built as the one of a run is: the same types, names and shapes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from saddlepoint.ground.arrays import Array, is_array
from saddlepoint.ground.errors import ProblemError
from saddlepoint.ground.rows import Rows

Parts = list[tuple[str, Any, Any]]  # the names of parts, the parts of the value that was read, and those of a run


def check_structure(value: Any, like: Any, sizes: tuple[int, ...], where: str) -> None:
    """Raise a ProblemError unless ``value``, read from a file, is built as ``like`` is.

    The types are the same, and so are the shapes of arrays; a matrix may have grown. What is None in one may be there
    in the other. Arrays without a counterpart are vectors of one of the ``sizes``, or square matrices.
    """
    parts = _parts(value, like, sizes)
    if parts is None:
        raise ProblemError(f"{where} does not fit this run")
    for name, item, other in parts:
        check_structure(item, other, sizes, f"{where}{name}")


def _parts(value: Any, like: Any, sizes: tuple[int, ...]) -> Parts | None:
    """The parts that have to be built alike too; None if the two values themselves are not."""
    if like is None:
        fits = all(_is_vector(array, sizes) or array.shape == 2 * array.shape[:1] for array in _arrays(value))
    elif value is None:
        fits = is_array(like) or hasattr(like, "_fields")
    elif is_dataclass(like) or hasattr(like, "_fields"):
        return _fields_of(value, like) if type(value) is type(like) else None
    elif isinstance(like, dict):
        fits = isinstance(value, dict) and all(_is_vector(array, sizes) for array in _arrays(value))
        return [(f"[{key!r}]", value.get(key), like[key]) for key in like] if fits else None
    elif isinstance(like, tuple) and any(map(is_array, like)):
        fits = isinstance(value, tuple) and len(value) == len(like)
        return [(f"[{k}]", *pair) for k, pair in enumerate(zip(value, like, strict=True))] if fits else None
    else:
        fits = _is_alike(value, like)
    return [] if fits else None


def _fields_of(value: Any, like: Any) -> Parts:
    """The fields of two NamedTuples or dataclasses of one type."""
    names = like._fields if hasattr(like, "_fields") else [part.name for part in fields(like)]
    return [(f".{name}", getattr(value, name), getattr(like, name)) for name in names]


def _is_alike(value: Any, like: Any) -> bool:
    """Whether two values without parts are built alike."""
    if is_array(like) and is_array(value):
        are_matrices = len(value.shape) == len(like.shape) == 2
        return (tuple(value.shape) == tuple(like.shape) or are_matrices) and _has_same_dtype(value, like)
    if isinstance(like, Rows) and isinstance(value, Rows):
        same_shape = tuple(value.buffer.shape) == tuple(like.buffer.shape)
        return same_shape and _has_same_dtype(value.buffer, like.buffer)
    if isinstance(like, float):
        return type(value) in (float, int)
    return callable(value) if callable(like) else type(value) is type(like)


def _has_same_dtype(value: Array, like: Array) -> bool:
    """Whether two arrays have the same dtype and library; one of NumPy can be moved to the library of the other."""
    same = type(value) is type(like) or isinstance(value, np.ndarray)
    return bool(same and getattr(value, "dtype", None) == getattr(like, "dtype", None))  # a buffer over shards has none


def _is_vector(array: Array, sizes: tuple[int, ...]) -> bool:
    return len(array.shape) == 1 and array.shape[0] in sizes


def _arrays(value: Any) -> Iterator[Array]:
    """The arrays in tuples, lists and dicts."""
    if is_array(value):
        yield value
    elif isinstance(value, tuple | list | dict):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _arrays(item)
