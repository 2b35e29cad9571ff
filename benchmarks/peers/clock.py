"""One clock for everyone: CPU seconds of this process.

It runs one thread, so on a quiet machine these are wall seconds, and on a shared one the neighbours do not count.
"""

from __future__ import annotations

import time
from types import SimpleNamespace

from saddlepoint.parts.coupling import runtime
from saddlepoint.problems import oracle
from saddlepoint.solving import loop, monitor, solve

now = time.process_time


def use_for_ours() -> None:
    """Let the driver and its meter read the same clock; the limits of time are CPU seconds then as well."""
    for module in (loop, monitor, oracle, runtime, solve):
        setattr(module, "time", SimpleNamespace(perf_counter=now, time=time.time))  # noqa: B010 - they do not export it
