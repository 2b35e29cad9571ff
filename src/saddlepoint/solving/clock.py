"""The time of a run: wall-clock time since the call, and the part of it that the method's steps took."""

from __future__ import annotations

import time

from saddlepoint.solving.state import RunState


class RunClock:
    """Measures a run. As a context, it says that what happens in it is not a step of the method.

    Args:
        state: the run; what earlier sessions took is in it.
        began: time.perf_counter() at which the call of ``solve`` began. Nothing until now was a step.
    """

    def __init__(self, state: RunState, began: float) -> None:
        self.state = state.monitor
        self.started = began - state.session.elapsed
        self.depth = 0  # contexts within each other count once
        self.left = began
        self.state.seconds += time.perf_counter() - began

    @property
    def seconds(self) -> float:
        """Wall-clock time of the run, from the beginning of the call on, with that of earlier sessions."""
        return time.perf_counter() - self.started

    @property
    def method_seconds(self) -> float:
        """The part of it that the method's own steps took."""
        return self.seconds - self.state.seconds

    def __enter__(self) -> None:
        if self.depth == 0:
            self.left = time.perf_counter()
        self.depth += 1

    def __exit__(self, *error: object) -> None:
        self.depth -= 1
        if self.depth == 0:
            self.state.seconds += time.perf_counter() - self.left
