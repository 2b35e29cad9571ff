"""The clock of all measurements: CPU seconds of this process, or the wall clock.

The process runs one thread. On an idle machine its CPU seconds are wall-clock seconds; on a shared one other processes
do not count in them.
"""

from __future__ import annotations

import time
from types import SimpleNamespace

from saddlepoint.parts.coupling import runtime
from saddlepoint.problems import oracle
from saddlepoint.solving import clock as run_clock
from saddlepoint.solving import options, solve

CLOCKS = {"cpu": time.process_time, "wall": time.perf_counter}
chosen = "cpu"


def now() -> float:
    """The seconds that the chosen clock shows."""
    return CLOCKS[chosen]()


def choose(name: str) -> None:
    """Read another clock from now on."""
    global chosen
    chosen = name


def use_for_ours() -> None:
    """Make `solve` and its meter use the same clock; time limits are then CPU seconds as well."""
    for module in (run_clock, options, oracle, runtime, solve):
        setattr(module, "time", SimpleNamespace(perf_counter=now, time=time.time))  # noqa: B010 - they do not export it
