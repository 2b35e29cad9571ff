"""A limit on the seconds that some code may take, by SIGALRM."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class TooLongError(BaseException):
    """The code took longer than it was allowed to. It is no ``Exception``, so that the code does not catch it."""


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise TooLongError in code that takes longer, such as one that waits for a pipe."""

    def late(number: int, frame: Any) -> None:
        raise TooLongError(f"it took more than {seconds:g} seconds")

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)
