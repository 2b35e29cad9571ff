"""The base class of methods that wrap another method."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from saddlepoint.methods.base import Method, Needs
from saddlepoint.methods.registry import as_method, register_wrapper
from saddlepoint.problems.saddle import Saddle
from saddlepoint.problems.transforms import View

FIRST_CHECK = 4  # step of an inner run in which its residual is checked first
GROWTH = 1.15  # factor from the step of one such check to that of the next


def next_check(k: int, growth: float = GROWTH) -> int:
    """The step in which an inner run is checked after a check in step k."""
    return max(k + 1, math.ceil(growth * k))


@dataclass(frozen=True)
class Wrapper(Method):
    """A method that wraps another one, which is given as an object or by its registered name.

    Its needs, citations, normal form and parameters are those of the inner method, unless a subclass changes them.
    """

    inner: Method | str

    own_works: ClassVar[tuple[str, ...]] = ()  # keys of the works to cite for the wrapper itself

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        register_wrapper(cls)

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "inner", as_method(self.inner))

    @property
    def method(self) -> Method:
        """The inner method."""
        assert isinstance(self.inner, Method)
        return self.inner

    @property
    def label(self) -> str:
        """The name of the wrapper and that of the inner method."""
        return f"{self.name}-{self.method.label}"

    @property
    def needs(self) -> Needs:  # type: ignore[override]
        """The needs of the inner method."""
        return self.method.needs

    @property
    def works(self) -> tuple[str, ...]:  # type: ignore[override]
        """The works to cite: those of the wrapper, then those of the inner method."""
        return tuple(dict.fromkeys((*self.own_works, *self.method.works)))

    def normal_form(self, f: Saddle) -> View:
        """The normal form of the inner method."""
        return self.method.normal_form(f)

    def within(self, vectors: int) -> Method:
        """The wrapper of the inner method with such a memory."""
        return replace(self, inner=self.method.within(vectors))

    def parameters(self, f: Saddle) -> dict[str, float]:
        """The parameters of the inner method."""
        return self.method.parameters(f)

    def inner_parameters(self, f: Saddle) -> dict[str, float]:
        """The parameters of the inner method for a subproblem f, with the prefix ``inner.``."""
        found = self.method.parameters(self.method.normal_form(f).problem)
        return {f"inner.{name}": value for name, value in found.items()}
