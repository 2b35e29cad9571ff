"""The time that a call takes, by the two clocks of this process."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import NamedTuple, TypeVar

Answer = TypeVar("Answer")


class Seconds(NamedTuple):
    """Wall-clock and CPU seconds."""

    wall: float
    cpu: float


def once(call: Callable[[], Answer]) -> tuple[Seconds, Answer]:
    """The time of a call, and what it returns."""
    wall, cpu = time.perf_counter(), time.process_time()
    answer = call()
    return Seconds(time.perf_counter() - wall, time.process_time() - cpu), answer


def fastest(call: Callable[[], Answer], runs: int = 3, long: float = math.inf) -> tuple[Seconds, Answer]:
    """The least time of some runs by each clock, and what the last one returns.

    A run of more than ``long`` seconds of CPU time is not repeated.
    """
    best, answer = once(call)
    for _ in range(runs - 1):
        if best.cpu > long:
            break
        found, answer = once(call)
        best = Seconds(min(best.wall, found.wall), min(best.cpu, found.cpu))
    return best, answer


def cpu_seconds(call: Callable[[], Answer], runs: int = 3, long: float = 5.0) -> tuple[float, Answer]:
    """The CPU seconds of ``fastest``."""
    best, answer = fastest(call, runs, long)
    return best.cpu, answer
