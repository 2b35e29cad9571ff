"""A limit on the seconds that some code may take, by SIGALRM or SIGPROF."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class TooLongError(BaseException):
    """The code took longer than it was allowed to. It is no ``Exception``, so that the code does not catch it."""


@contextmanager
def time_limit(seconds: float, cpu: bool = False) -> Iterator[None]:
    """Raise TooLongError in code that takes longer, such as one that waits for a pipe.

    With ``cpu`` the seconds are those of the CPU. The code is ended when it runs Python next.
    """
    number, timer = (signal.SIGPROF, signal.ITIMER_PROF) if cpu else (signal.SIGALRM, signal.ITIMER_REAL)

    def late(*_: Any) -> None:
        raise TooLongError(f"it took more than {seconds:g} seconds")

    before = signal.signal(number, late)
    signal.setitimer(timer, seconds)
    try:
        yield
    finally:
        signal.setitimer(timer, 0.0)
        signal.signal(number, before)
