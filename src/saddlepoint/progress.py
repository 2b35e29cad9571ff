"""A progress bar whose length is the certified accuracy, on a logarithmic scale."""

from __future__ import annotations

import math
import sys
import time
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

from saddlepoint.result import Record


class Progress:
    """No bar at all; the base of those that show something."""

    tick: Any = None  # called at every oracle call by the meter, where a bar wants it

    def update(self, record: Record) -> None:
        """A certificate was taken."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass


class RichProgress(Progress):
    """A bar on the terminal; it keeps moving inside long steps."""

    def __init__(self, tol: float, label: str) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

        self.tol, self.first, self.calls, self.drawn = tol, 0.0, 0, 0.0
        self.bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("certified {task.fields[distance]:.1e} -> {task.fields[tol]:.1e}"),
            TextColumn("{task.fields[calls]} calls"),
            TimeElapsedColumn(),
            console=Console(stderr=True),
        )
        self.task = self.bar.add_task(label, total=1.0, distance=math.inf, tol=tol, calls=0)
        self.tick = self._tick

    def _tick(self) -> None:
        self.calls += 1
        if self.calls & 63 == 0 and time.perf_counter() - self.drawn > 0.1:
            self.drawn = time.perf_counter()
            with suppress(OSError):  # a terminal that is gone is no reason to lose a run
                self.bar.update(self.task, calls=self.calls)

    def update(self, record: Record) -> None:
        """Move to the share of the digits that is certified."""
        self.first = self.first or record.distance
        self.calls = max(self.calls, record.grad_g + record.grad_h + record.A + record.At)  # of earlier runs too
        digits = math.log(self.first / self.tol) if self.first > self.tol else 1.0
        share = math.log(self.first / record.distance) / digits if 0.0 < record.distance < math.inf else 0.0
        done = 1.0 if record.distance <= self.tol else min(max(share, 0.0), 1.0)
        with suppress(OSError):
            self.bar.update(self.task, completed=done, distance=record.distance, calls=self.calls)

    def __enter__(self) -> Self:
        with suppress(OSError):
            self.bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with suppress(OSError):
            self.bar.stop()


class PlainProgress(Progress):
    """A line on stderr every second, where Rich is not installed."""

    def __init__(self, tol: float, label: str) -> None:
        self.tol, self.label, self.drawn = tol, label, 0.0

    def update(self, record: Record) -> None:
        """Print a line if the last one is a second old."""
        if time.perf_counter() - self.drawn > 1.0:
            self.drawn = time.perf_counter()
            with suppress(OSError):
                print(
                    f"{self.label}, step {record.iteration}: certified {record.distance:.2e} -> {self.tol:.1e}, "
                    f"{record.seconds:.1f} s",
                    file=sys.stderr,
                )


def make_progress(wanted: bool, tol: float, label: str) -> Progress:
    """The best bar that is installed, or none if none is wanted."""
    if not wanted:
        return Progress()
    try:
        return RichProgress(tol, label)
    except ImportError:
        return PlainProgress(tol, label)
