"""Inner products and norms: the operations on vectors that methods need besides ``+ - *``."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from saddlepoint.ground.arrays import FLOAT64, Array, namespace, read_numbers, space_of
from saddlepoint.ground.jax_program import in_one_program


def inner(a: Array, b: Array) -> float:
    """<a, b> as a Python float, so that arrays which are multiplied by it keep their dtype."""
    if isinstance(a, np.ndarray):
        return float(a.dot(b))  # half the overhead of a @ b on short vectors
    return float(a @ b)


def norm(a: Array) -> float:
    """|a|, the Euclidean norm; it is right even if its square overflows or underflows."""
    square = float(a.dot(a)) if type(a) is np.ndarray else inner(a, a)
    least = 1e-280 if getattr(a, "dtype", None) is FLOAT64 else 1e-30  # smaller squares may have lost digits
    return math.sqrt(square) if least < square < math.inf else _scaled_norm(a, square)


def _scaled_norm(a: Array, square: float) -> float:
    """|a|, where the computed square of it may have overflowed or lost digits to underflow."""
    if square == 0.0 and isinstance(a, np.ndarray) and not a.any():  # often the point where a run begins
        return 0.0
    space = space_of(a)
    if 1e-280 < square < math.inf and space.is_float64:
        return math.sqrt(square)
    largest = max_abs(a) if a.shape[0] else 0.0
    if largest == 0.0 or not math.isfinite(largest):
        return largest
    unit = power_of_two(largest)
    scaled = space.wide.cast(a) * (1.0 / unit)
    return unit * math.sqrt(inner(scaled, scaled))


def host_norm(a: Any) -> float:
    """|a| of a NumPy vector whose squares neither overflow nor underflow.

    It does without BLAS, whose threads take milliseconds to start while the process works for a GPU.
    """
    return math.sqrt(float(np.sum(a * a)))


def may_be_on_gpu(a: Array) -> bool:
    """Whether the array is of a library whose arrays may be on a GPU.

    There the host waits for every number that it reads, so that several numbers should be read together.
    """
    return not isinstance(a, np.ndarray) and namespace(a).__name__ not in ("sharded", "stacked")


def inners(vectors: Sequence[Array]) -> Array:
    """The inner products of some vectors of one length with one another, in float64, as a NumPy matrix.

    They are read together (see ``may_be_on_gpu``).

    Example:
        >>> import numpy as np
        >>> from saddlepoint.ground.linalg import inners
        >>> inners([np.array([1.0, 2.0]), np.array([3.0, 4.0])])
        array([[ 5., 11.],
               [11., 25.]])
    """
    first = vectors[0]
    if isinstance(first, np.ndarray):
        V = np.stack(vectors).astype(FLOAT64)
        return np.asarray(V @ V.T)
    if not may_be_on_gpu(first):
        return np.array([[inner(a, b) for b in vectors] for a in vectors])
    xp = namespace(first)
    return read_numbers(in_one_program(xp, _gram, 0)(xp, tuple(vectors)))


def lengths(vectors: Sequence[Array]) -> list[float]:
    """The norms of some vectors, which may differ in length; they are read together (see ``may_be_on_gpu``)."""
    if not may_be_on_gpu(vectors[0]):
        return list(map(norm, vectors))
    xp = namespace(vectors[0])
    alike: dict[Any, list[int]] = {}  # the places of the vectors of one size and dtype
    for k, vector in enumerate(vectors):
        alike.setdefault((vector.shape[0], vector.dtype), []).append(k)
    compute = in_one_program(xp, _lengths, 0)
    found = read_numbers(compute(xp, tuple(tuple(vectors[k] for k in places) for places in alike.values())))
    known = dict(zip((k for places in alike.values() for k in places), found.tolist(), strict=True))
    return [
        known[k] if 1e-140 < known[k] < math.inf else norm(vector)  # squares outside may have lost digits
        for k, vector in enumerate(vectors)
    ]


def numbers_of(scalars: Sequence[Any]) -> list[float]:
    """Arrays without dimensions as Python floats; they are read together (see ``may_be_on_gpu``)."""
    first = scalars[0]
    if isinstance(first, np.ndarray | np.generic) or not may_be_on_gpu(first):
        return list(map(float, scalars))
    found: list[float] = read_numbers(namespace(first).stack(list(scalars))).tolist()
    return found


def _gram(xp: Any, vectors: tuple[Array, ...]) -> Array:
    V = _wide(xp, xp.stack(vectors))
    product: Array = V @ V.T
    return product


def _lengths(xp: Any, groups: tuple[tuple[Array, ...], ...]) -> Array:
    """The norms, in float64, of some groups of vectors; those of a group have one size and dtype."""
    found = [xp.linalg.vector_norm(_wide(xp, xp.stack(vectors)), axis=1) for vectors in groups]
    joined: Array = found[0] if len(found) == 1 else xp.concat(found)
    return joined


def _wide(xp: Any, array: Array) -> Array:
    wide: Array = array if array.dtype == xp.float64 else xp.astype(array, xp.float64)
    return wide


def norms(a: Array, axis: int) -> Array:
    """The Euclidean norms of the vectors along an axis; they are right even if their squares overflow or underflow."""
    xp = namespace(a)
    info = xp.finfo(a.dtype)
    least = float(info.smallest_normal)
    largest = xp.max(xp.abs(a), axis=axis, keepdims=True)
    unit = xp.where((largest >= least) & (largest <= float(info.max)), largest, xp.full_like(largest, least))
    with np.errstate(over="ignore", invalid="ignore"):  # entries may be infinite or NaN
        scaled = a / unit
        lengths: Array = xp.squeeze(unit, axis=axis) * xp.sqrt(xp.sum(scaled * scaled, axis=axis))
    return lengths


def prefetch_norms(*vectors: Array) -> None:
    """Say that the norms of all these vectors are needed: sharded vectors compute them in one communication round."""
    prefetch = getattr(vectors[0], "prefetch_norms", None)
    if prefetch is not None:
        prefetch(vectors)


def max_abs(a: Array) -> float:
    """The largest absolute value among the entries; NaN if an entry is NaN."""
    if isinstance(a, np.ndarray):
        return float(np.maximum.reduce(np.abs(a), axis=None))
    xp = namespace(a)
    return float(xp.max(xp.abs(a)))


def power_of_two(size: float, most: int = 1000) -> float:
    """The power of two just above a positive ``size``, limited to the range from 2^-most to 2^most."""
    return 2.0 ** min(max(math.frexp(size)[1], -most), most)
