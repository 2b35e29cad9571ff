"""A limit on the seconds of a call that consists of several runs."""

from __future__ import annotations

import time
from typing import Any

from saddlepoint.ground.validation import positive

LEAST = 1e-9  # limit in seconds of a run that comes after the time is used up: its start is certified


class TimeLimit:
    """Seconds that a call may take, counted from where this object is made.

    Args:
        seconds: a positive number, or None for no limit.
        name: what it is called in errors.
        before: seconds that earlier sessions of the same run took.
    """

    def __init__(self, seconds: Any, name: str = "max_seconds", before: float = 0.0) -> None:
        self.seconds = None if seconds is None else positive(seconds, name)
        self.began = time.monotonic() - before

    @property
    def spent(self) -> float:
        """The seconds since the beginning, with those of earlier sessions."""
        return time.monotonic() - self.began

    @property
    def left(self) -> float | None:
        """The limit of a run that begins now, a positive number; None without a limit."""
        return None if self.seconds is None else max(self.seconds - self.spent, LEAST)

    @property
    def is_over(self) -> bool:
        """Whether the time is used up."""
        return self.seconds is not None and self.spent >= self.seconds
