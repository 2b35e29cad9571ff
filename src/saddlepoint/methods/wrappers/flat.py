"""States of methods as flat vectors: differences of two states, and a state plus such a vector."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from saddlepoint.ground.arrays import Array, concat, namespace
from saddlepoint.ground.device_mesh import split_like
from saddlepoint.ground.jax_program import in_one_program
from saddlepoint.ground.states import arrays, with_arrays


@cache
def order(weights: tuple[float, ...]) -> list[int]:
    """The places of the arrays of a state in the flat vector: first those that have a weight."""
    return sorted(range(len(weights)), key=lambda place: weights[place] == 0.0)


def difference(new: Any, old: Any, weights: tuple[float, ...]) -> tuple[Array, int]:
    """The difference of two states times the weights as one vector, and the number of entries that have a weight.

    The entries without a weight are at the end, unchanged.
    """
    new, old = tuple(arrays(new)), tuple(arrays(old))
    size = sum([array.shape[0] for array, weight in zip(new, weights, strict=True) if weight])
    if {(type(array), array.dtype) for array in (*new, *old)} == {(np.ndarray, new[0].dtype)}:
        return _difference_in_place(new, old, weights), size
    return in_one_program(namespace(new[0]), _difference, 2)(new, old, weights), size


def joined(state: Any, weights: tuple[float, ...]) -> Array:
    """The arrays of a state, of NumPy, in one vector; those that have a weight come first."""
    pieces = list(arrays(state))
    return np.concatenate([pieces[k] for k in order(weights)])


def parted(state: Any, flat: Array, weights: tuple[float, ...]) -> Any:
    """The state with the arrays that ``joined`` would put into this vector."""
    pieces, end = list(arrays(state)), 0
    for k in order(weights):
        start, end = end, end + len(pieces[k])
        pieces[k] = flat[start:end]
    return with_arrays(state, pieces)


def scale_of(state: Any, weights: tuple[float, ...]) -> Array:
    """The weights of the entries that have one, in the order of ``joined``."""
    pieces = list(arrays(state))
    return np.concatenate([np.full(len(pieces[k]), weights[k]) for k in order(weights) if weights[k]])


def _difference_in_place(new: tuple[Array, ...], old: tuple[Array, ...], weights: tuple[float, ...]) -> Array:
    """The difference of NumPy arrays of one dtype in one vector from the start, since copies of long ones take time."""
    whole, end = np.empty(sum(map(len, new)), new[0].dtype), 0
    for k in order(weights):
        start, end = end, end + len(new[k])
        piece = np.subtract(new[k], old[k], out=whole[start:end])
        if weights[k] not in (0.0, 1.0):
            piece *= weights[k]
    return whole


def _difference(new: tuple[Array, ...], old: tuple[Array, ...], weights: tuple[float, ...]) -> Array:
    pieces = [a - b for a, b in zip(new, old, strict=True)]
    for k, weight in enumerate(weights):
        if weight not in (0.0, 1.0):
            pieces[k] *= weight
    return concat(pieces[k] for k in order(weights))


def added(state: Any, step: Array, weights: tuple[float, ...]) -> Any:
    """The state plus a vector like those of ``difference``."""
    old = tuple(arrays(state))
    if type(old[0]) is np.ndarray:
        return with_arrays(state, _added(old, step, weights))
    new = in_one_program(namespace(old[0]), _added, 2)(old, step, weights)
    return with_arrays(state, (split_like(a, b) for a, b in zip(new, old, strict=True)))


def _added(arrays: tuple[Array, ...], step: Array, weights: tuple[float, ...]) -> list[Array]:
    new, end = list(arrays), 0
    for k in order(weights):
        start, end = end, end + new[k].shape[0]
        piece = step[start:end]
        if weights[k] not in (0.0, 1.0):
            piece = piece * (1.0 / weights[k])
            if type(piece) is np.ndarray and type(new[k]) is np.ndarray and piece.dtype == new[k].dtype:
                new[k] = np.add(piece, new[k], out=piece)
                continue
        new[k] = new[k] + piece
    return new
