"""The base class of methods, what a method may need of a problem, and options with ranges.

A method is a frozen dataclass of options with two pure functions, ``init`` and ``step``, of a problem and a state.
Counting calls, stopping and recording are done elsewhere.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, NamedTuple

from saddlepoint.ground.arrays import Array
from saddlepoint.ground.errors import ProblemError
from saddlepoint.ground.validation import short_repr
from saddlepoint.problems.saddle import Saddle
from saddlepoint.problems.transforms import View
from saddlepoint.theory.complexity import Complexity


class State(NamedTuple):
    """The smallest state: the current point. A method that keeps more has a NamedTuple of its own, x and y first."""

    x: Array
    y: Array


class InnerRun(NamedTuple):
    """Identical steps, which can be compiled: those of a method, or of the method inside a wrapper."""

    method: Method
    problem: Saddle
    state: Any
    steps: float  # number of such steps until the outer method does something else
    rebuild: Callable[[Any, int], Any]  # (inner state after count steps, count) -> outer state
    origin: Any = None  # identifies ``problem``: another object whenever the problem is another one


@dataclass(frozen=True)
class Needs:
    """What a method asks of a problem besides the gradients of g and h and the products with A and A'.

    ``methods.needs`` compares it with a problem.
    """

    prox_g: bool = False  # the prox of g, together with its simple term if there is one
    prox_h: bool = False  # the prox of h, together with its simple term if there is one
    prox_apart: bool = False  # whether these two are meant without the simple terms
    quadratic: bool = False  # g and h are known to be quadratic
    hessians: bool = False  # the Hessians of g and h
    matrix: bool = False  # A as one NumPy or SciPy matrix, because the method factorises it
    mu: bool = True  # mu of g and of h
    strong: bool = True  # if they are known, both are above 0
    smooth: bool = True  # g and h without simple terms
    barrier: bool = False  # simple terms that are simplices or boxes, if there are any

    @property
    def oracle(self) -> str:
        """The needs in one word, as ``sp.methods()`` shows them."""
        if self.quadratic:
            return "matrices" if self.hessians else "quadratic"
        if self.hessians:
            return "Hessians"
        if self.prox_g and self.prox_h:
            return "prox"
        if self.prox_g or self.prox_h:
            return f"prox of {'g' if self.prox_g else 'h'}"
        return "gradients"


@dataclass(frozen=True)
class Method(ABC):
    """A method: options as fields, ``init`` and ``step`` as pure functions.

    Class attributes describe it in ``sp.methods()``: ``name`` (the class name in lower case if left out), ``needs``
    (what it asks of a problem), ``complexity`` (the calls that theory promises) and ``works`` (what to cite: keys of
    ``references.bib``, or words). The table, ``sp.predict``, the figures and ``result.cite()`` are made from them.
    """

    name: ClassVar[str] = ""
    needs: ClassVar[Needs] = Needs()
    complexity: ClassVar[Complexity] = Complexity("")
    works: ClassVar[tuple[str, ...]] = ()

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
        """The name that results and plots show; a wrapper adds that of the inner method."""
        return self.name

    def normal_form(self, f: Saddle) -> View:
        """The problem in the coordinates that the method's theory assumes; by default as given."""
        return View(f)

    @abstractmethod
    def init(self, f: Saddle, x: Array, y: Array) -> Any:
        """The state before the first step."""

    @abstractmethod
    def step(self, f: Saddle, s: Any) -> Any:
        """The state after one step from ``s``, which is not changed."""

    def cost(self, f: Saddle) -> dict[str, int] | None:
        """The oracle calls of one step, where that is a fixed number; None where it depends on the run."""
        return None

    def bound(self, f: Saddle, k: int) -> float | None:
        """A factor: mu_x |x_k - x*|^2 + mu_y |y_k - y*|^2 is at most this times its value at the start.

        The problem is in the method's normal form. None where theory has no such bound.
        """
        return None

    def weights(self, f: Saddle) -> dict[str, float]:
        """The weights by which differences of states are measured, by field; fields without one are ignored."""
        return {"x": math.sqrt(f.mu_x), "y": math.sqrt(f.mu_y)}

    def within(self, vectors: int) -> Method:
        """The method with a memory of past steps of at most this many vectors like (x, y); itself if it has none."""
        return self

    def inner_run(self, f: Saddle, s: Any) -> InnerRun:
        """The identical steps that follow the state ``s``; of a wrapper, those of the inner method."""
        return InnerRun(self, f, s, math.inf, lambda state, count: state)

    def note(self, s: Any) -> str:
        """A remark for the result about the state ``s`` in which the run ended; empty for most methods."""
        return ""

    def state_residual(self, s: Any) -> float:
        """A number in the state ``s`` that falls as its distance from the saddle point does; infinite without one."""
        return math.inf

    def parameters(self, f: Saddle) -> dict[str, float]:
        """The constants that theory chose for this problem (given in the method's normal form)."""
        return {}


# -- options: default, range and doc in one place ---------------------------------------------------------------------

SMALLEST, LARGEST = 1e-100, 1e100  # range of positive options: with 0, infinity and their likes no step is a number


def choice_option(default: str, doc: str, choices: Iterable[str]) -> Any:
    """An option with named choices."""
    allowed = tuple(choices)

    def check(name: str, value: object) -> None:
        if not isinstance(value, str) or value not in allowed:
            raise ProblemError(f"{name} is {short_repr(value)}; expected one of {', '.join(allowed)}")

    return field(default=default, metadata={"doc": doc, "check": check, "choices": allowed})


def int_option(default: int, doc: str, low: int = 0, high: int = 1_000_000) -> Any:
    """A whole-number option with a range."""

    def check(name: str, value: object) -> None:
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise ProblemError(f"{name} is {short_repr(value)}; expected a whole number from {low} to {high}")

    return field(default=default, metadata={"doc": doc, "check": check})


def float_option(default: float | None, doc: str, low: float = SMALLEST, high: float = LARGEST) -> Any:
    """A number option with a range; None means "by theory"."""

    def check(name: str, value: object) -> None:
        if value is None and default is None:
            return
        if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
            raise ProblemError(f"{name} is {short_repr(value)}; expected a number from {low:g} to {high:g}")

    return field(default=default, metadata={"doc": doc, "check": check})
