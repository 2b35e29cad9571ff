"""A result of which some attributes are computed when one of them is first read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any

from saddlepoint.solving.result import Result

NAMES = tuple(part.name for part in fields(Result))  # the attributes of a result


class LazyResult(Result):
    """A ``Result`` of which some attributes are computed when one of them is first read."""

    @classmethod
    def of(cls, given: dict[str, Any], later: Callable[[], dict[str, Any]]) -> LazyResult:
        """A result of the attributes that are given; ``later`` makes the others, by name."""
        self = cls.__new__(cls)
        attributes = self.__dict__  # the class is frozen, so that attributes cannot be assigned
        attributes.update(given)
        attributes["_later"] = later
        return self

    def __getattr__(self, name: str) -> Any:
        if name not in NAMES or "_later" not in self.__dict__:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        attributes = self.__dict__
        attributes.update(attributes.pop("_later")())
        return attributes[name]

    def __reduce__(self) -> Any:
        """The problem is not sent along."""
        return Result, tuple(None if name == "_derivatives" else getattr(self, name) for name in NAMES)
