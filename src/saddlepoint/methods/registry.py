"""The register of methods: from a name to a method, and the table of them all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any, NamedTuple, TypeVar

from saddlepoint.ground.errors import ProblemError
from saddlepoint.ground.validation import did_you_mean, short_repr
from saddlepoint.methods.base import Method

_REGISTER: dict[str, Callable[..., Method]] = {}
_COMPLEXITY: dict[str, str] = {}

M = TypeVar("M", bound=type[Method])


def register(method: M) -> M:
    """Class decorator: make the method known by its name."""
    _REGISTER[method.name] = method
    _COMPLEXITY[method.name] = method.complexity
    return method


def register_as(name: str, complexity: str) -> Callable[[Callable[..., Method]], Callable[..., Method]]:
    """Decorator of a function that builds a method: make the expression known by a name of its own."""

    def note(build: Callable[..., Method]) -> Callable[..., Method]:
        _REGISTER[name] = build
        _COMPLEXITY[name] = complexity
        return build

    return note


def method_names() -> list[str]:
    """All registered names, sorted."""
    return sorted(_REGISTER)


def make_method(name: str, **options: Any) -> Method:
    """The registered method of that name, with its options."""
    if not isinstance(name, str):
        raise ProblemError(f"the name of a method is {short_repr(name)}; expected a text")
    if name == "agd":
        raise ProblemError("agd minimises one function and is no saddle method; use the component saddlepoint.AGD")
    if name not in _REGISTER:
        names = ["auto", *method_names()]
        raise ProblemError(f"unknown method {name!r}; the known ones are {', '.join(names)}{did_you_mean(name, names)}")
    try:
        return _REGISTER[name](**options)
    except TypeError:
        known = [option.name for option in fields(_REGISTER[name]())]
        raise ProblemError(
            f"method {name!r} got the options {', '.join(options)}; it knows {', '.join(known) or 'none'}"
        ) from None


class MethodInfo(NamedTuple):
    """One line of the table of methods."""

    name: str
    oracle: str
    complexity: str
    reference: str


class MethodTable(tuple[MethodInfo, ...]):
    """The table of methods; printed, it is aligned."""

    def __repr__(self) -> str:
        rows = [MethodInfo("method", "oracle", "complexity (without logarithms)", "reference"), *self]
        widths = [max(len(row[i]) for row in rows) for i in range(3)]
        return "\n".join(
            "  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row.reference])
            for row in rows
        )


def methods() -> MethodTable:
    """Every registered method: its name, the oracle it needs, its complexity and its reference."""
    made = [(name, _REGISTER[name]()) for name in method_names()]
    return MethodTable(MethodInfo(name, m.needs.oracle, _COMPLEXITY[name], m.reference) for name, m in made)
