"""The clock of all measurements: CPU seconds of this process.

The process runs one thread. On an idle machine these are wall-clock seconds; on a shared one other processes do not
count.
"""

from __future__ import annotations

import time
from types import SimpleNamespace

from saddlepoint.parts.coupling import runtime
from saddlepoint.problems import oracle
from saddlepoint.solving import clock as run_clock
from saddlepoint.solving import options, solve

now = time.process_time


def use_for_ours() -> None:
    """Make `solve` and its meter use the same clock; time limits are then CPU seconds as well."""
    for module in (run_clock, options, oracle, runtime, solve):
        setattr(module, "time", SimpleNamespace(perf_counter=now, time=time.time))  # noqa: B010 - they do not export it
