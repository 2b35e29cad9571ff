"""A context in which problems are built from tensors that are to be differentiated, or from JAX's symbols of arrays.

Ordinarily a problem keeps copies of its data without a record of gradients, examines their numbers, and computes
constants from them. Within ``recording()``, data are kept as they are and no number is read, so that the field of
the problem is a differentiable function of the data. Problems that are built in this context are not
meant for ``solve``.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

_RECORDING: ContextVar[bool] = ContextVar("recording", default=False)


def is_recording() -> bool:
    """Whether problems are being built for differentiation."""
    return _RECORDING.get()


@contextmanager
def recording(on: bool = True) -> Iterator[None]:
    """Build problems for differentiation within this context; with False, ordinary ones inside of such a context."""
    token = _RECORDING.set(on)
    try:
        yield
    finally:
        _RECORDING.reset(token)


def is_live(value: Any) -> bool:
    """Whether a value is a tensor that requires gradients, or a symbol that JAX traces."""
    return bool(getattr(value, "requires_grad", False)) or "Tracer" in type(value).__name__


def has_numbers(value: Any) -> bool:
    """Whether the numbers of a value can be read; a symbol that JAX traces has none."""
    return "Tracer" not in type(value).__name__
