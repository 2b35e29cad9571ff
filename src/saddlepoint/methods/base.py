"""What a method is, and the register of all methods.

A method is a frozen dataclass of options with two pure functions, ``init`` and ``step``. It sees a problem and a state
and knows nothing of counting, stopping or history.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, NamedTuple, TypeVar

from saddlepoint.ground.arrays import Array
from saddlepoint.ground.errors import ProblemError
from saddlepoint.ground.validation import did_you_mean, short_repr
from saddlepoint.problems.saddle import Saddle
from saddlepoint.problems.transforms import View


class State(NamedTuple):
    """The smallest state: the current point. A method with more to remember names its own NamedTuple, x and y first."""

    x: Array
    y: Array


@dataclass(frozen=True)
class Method(ABC):
    """A method: options as fields, ``init`` and ``step`` as pure functions.

    Class attributes describe it in ``sp.methods()``: ``name`` (the class name in lower case if left out), ``oracle``
    (what it calls), ``needs_mu`` (False if it can do without), ``complexity`` (its promise, without logarithms) and
    ``reference``.
    """

    name: ClassVar[str] = ""
    oracle: ClassVar[str] = "gradients"
    needs_mu: ClassVar[bool] = True
    complexity: ClassVar[str] = ""
    reference: ClassVar[str] = ""

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        if "name" not in cls.__dict__:
            cls.name = cls.__name__.lower()

    def __post_init__(self) -> None:
        for option in fields(self):
            check = option.metadata.get("check")
            if check is not None:
                check(f"{option.name} of {self.name}", getattr(self, option.name))

    @property
    def label(self) -> str:
        """The name that results and plots show; wrappers compose it."""
        return self.name

    def normal_form(self, f: Saddle) -> View:
        """The problem in the coordinates that the method's theory assumes; as given unless a method says otherwise."""
        return View(f)

    @abstractmethod
    def init(self, f: Saddle, x: Array, y: Array) -> Any:
        """The state before the first step."""

    @abstractmethod
    def step(self, f: Saddle, s: Any) -> Any:
        """The state after one step from ``s``, which is left as it was."""

    def uses_prox(self, function: str) -> bool:
        """Whether it calls the prox of ``function`` ("g" or "h")."""
        return self.oracle == "prox"

    def cost(self, f: Saddle) -> dict[str, int] | None:
        """The oracle calls of one step, where that is a fixed number; None where it depends on the run."""
        return None

    def bound(self, f: Saddle, k: int) -> float | None:
        """What theory promises after k steps: mu_x |x_k - x*|^2 + mu_y |y_k - y*|^2 is at most this times its start.

        For a problem in the method's normal form; None where theory has no such number.
        """
        return None

    def weights(self, f: Saddle) -> dict[str, float]:
        """The metric in which the steps of the state are compared: a weight for each field that counts."""
        return {"x": math.sqrt(f.mu_x), "y": math.sqrt(f.mu_y)}

    def parameters(self, f: Saddle) -> dict[str, float]:
        """The constants that theory chose for this problem (given in the method's normal form)."""
        return {}


# -- options: default, range and doc in one place ---------------------------------------------------------------------


def choice_option(default: str, doc: str, choices: Iterable[str]) -> Any:
    """An option with named choices."""
    allowed = tuple(choices)

    def check(name: str, value: object) -> None:
        if not isinstance(value, str) or value not in allowed:
            raise ProblemError(f"{name} is {short_repr(value)}; expected one of {', '.join(allowed)}")

    return field(default=default, metadata={"doc": doc, "check": check, "choices": allowed})


def float_option(default: float | None, doc: str, low: float = 0.0, high: float = math.inf) -> Any:
    """A number option with a range; None means "by theory"."""

    def check(name: str, value: object) -> None:
        if value is None and default is None:
            return
        if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
            raise ProblemError(f"{name} is {short_repr(value)}; expected a number from {low:g} to {high:g}")

    return field(default=default, metadata={"doc": doc, "check": check, "range": (low, high)})


# -- the register -----------------------------------------------------------------------------------------------------

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
    return MethodTable(MethodInfo(name, m.oracle, _COMPLEXITY[name], m.reference) for name, m in made)
