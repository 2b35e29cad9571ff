"""The methods of a run, in the order in which they are tried, and how many steps their mixing remembers."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from saddlepoint.methods import Method
from saddlepoint.problems.saddle import Saddle
from saddlepoint.solving.factoring import MIXED, STEP, entries
from saddlepoint.solving.race import FIRST_TURN

MEMORY = 3_000_000  # numbers that Anderson may remember
LEAST = 20  # steps that Anderson remembers, at least, if they take no more than MEMORY
FEW = 10  # steps that Anderson remembers, at least, if LEAST take more: reading them takes longer than the products


class Plan(NamedTuple):
    """Methods in the order in which they are tried, and the reason for the first in words."""

    methods: tuple[Method, ...]
    reason: str
    turns: int = 1  # how many of the first methods take turns
    prices: Mapping[str, float] = MappingProxyType({})  # what calls cost, by oracle
    rates: Mapping[Method, float] = MappingProxyType({})  # work of a method for one round of calls, where it is not 1
    first_turn: float = FIRST_TURN  # work after which the first turn of the first method may end
    late: Mapping[Method, float] = MappingProxyType({})  # work of the others before the first turn of a method

    @property
    def racing(self) -> tuple[Method, ...]:
        """The methods that take turns; none if there is only one."""
        return self.methods[: self.turns] if self.turns > 1 else ()

    @property
    def in_order(self) -> tuple[Method, ...]:
        """The first method, and those that follow when no method takes turns any more."""
        return (self.methods[0], *self.methods[max(self.turns, 1) :])

    @property
    def message(self) -> str:
        """The choice in a sentence."""
        return f"auto chose {self.methods[0].label}: {self.reason}" if self.reason else ""


def mixed_steps(f: Saddle, products: float = 1.0) -> int:
    """How many steps Anderson remembers: fewer where memory is short, or where products take less time than mixing.

    A step of the mixing reads the memory about three times, and on average half of it is filled. The step of the method
    takes this many ``products`` with A and as many with A'.
    """
    size = sum(f.shape)
    traffic = 2.0 * products * (STEP + 2.0 * entries(f.A)) / (MIXED * size)
    least = LEAST if 2 * LEAST * size <= MEMORY else FEW
    return int(min(100.0, max(least, min(traffic, MEMORY / (2 * size)))))


def has_room_for_two(f: Saddle) -> bool:
    """Whether two methods with Anderson's mixing may remember LEAST steps each."""
    return 2 * LEAST * sum(f.shape) <= MEMORY
