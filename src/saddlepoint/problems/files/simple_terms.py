"""The kinds of simple terms in problem files, the tables [g.simple] and [h.simple]."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from saddlepoint.parts.simple import (
    L1,
    Ball,
    Blocks,
    Box,
    GroupBalls,
    Groups,
    Hyperplane,
    NonNegative,
    Norm2,
    Nuclear,
    Simple,
    Simplex,
)


class TermKind(NamedTuple):
    """The keys that a table of one kind may have."""

    build: Callable[..., Simple]
    arrays: tuple[str, ...] = ()  # keys that name or hold arrays, or one number
    numbers: tuple[str, ...] = ()  # keys that hold one number
    words: tuple[str, ...] = ()  # keys whose value is passed on unchanged
    blocks: tuple[str, ...] = ()  # keys that hold tables with start, stop and a simple term
    required: tuple[str, ...] = ()


TERMS: dict[str, TermKind] = {
    "l1": TermKind(L1, arrays=("weight",), required=("weight",)),
    "box": TermKind(Box, arrays=("lower", "upper")),
    "nonnegative": TermKind(NonNegative),
    "simplex": TermKind(Simplex, numbers=("total",)),
    "ball": TermKind(Ball, arrays=("center",), numbers=("radius",), words=("norm",), required=("radius",)),
    "norm2": TermKind(Norm2, numbers=("weight",), required=("weight",)),
    "groups": TermKind(Groups, arrays=("groups", "weight"), required=("groups", "weight")),
    "hyperplane": TermKind(Hyperplane, arrays=("a",), numbers=("b",), required=("a", "b")),
    "nuclear": TermKind(Nuclear, numbers=("weight",), words=("shape",), required=("shape", "weight")),
    "group-balls": TermKind(GroupBalls, arrays=("groups", "radius"), required=("groups", "radius")),
    "blocks": TermKind(Blocks, blocks=("blocks",), required=("blocks",)),
}


def is_label_list(value: Any) -> bool:
    """Whether a value of the key groups can be one label for each coordinate."""
    return not isinstance(value, list) or not any(isinstance(label, list | dict) for label in value)
