"""A progress bar whose length is the certified accuracy on a logarithmic scale, and the progress of reading A."""

from __future__ import annotations

import math
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import TracebackType
from typing import Any, Self

from saddlepoint.parts.coupling.streamed import Reading, format_bytes
from saddlepoint.solving.result import Record

QUIET = 5.0  # seconds between two lines about a pass over A, where there is no bar


class Progress:
    """Shows nothing; the base class of the bars that show something."""

    tick: Any = None  # called at every oracle call by the meter, where a bar wants it

    def update(self, record: Record) -> None:
        """A certificate was taken."""

    def show_method(self, label: str) -> None:
        """The method with this label continues the run."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass


class RichProgress(Progress):
    """A bar on the terminal; it keeps moving inside long steps."""

    def __init__(self, tol: float, label: str, reading: Reading | None = None) -> None:
        from rich.progress import BarColumn, TextColumn, TimeElapsedColumn

        self.tol, self.first, self.calls, self.drawn = tol, 0.0, 0, 0.0
        self.bar = _rich(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("certified {task.fields[distance]:.1e} -> {task.fields[tol]:.1e}"),
            *([TextColumn("{task.fields[calls]} calls")] if reading is None else []),  # else passes are shown
            TimeElapsedColumn(),
            reading=reading,
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

    def show_method(self, label: str) -> None:
        """Show the name of the method that goes on."""
        with suppress(OSError):
            self.bar.update(self.task, description=label)

    def __enter__(self) -> Self:
        with suppress(OSError):
            self.bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with suppress(OSError):
            self.bar.stop()


def _rich(*columns: Any, reading: Reading | None = None) -> Any:
    """A display on stderr. A thread of its own redraws it, so that it moves during a pass over A too."""
    from rich.console import Console
    from rich.progress import Progress, ProgressColumn
    from rich.text import Text

    class Pass(ProgressColumn):
        def render(self, task: Any) -> Any:
            assert reading is not None
            return Text(format_reading(reading), no_wrap=True)

    shown = columns if reading is None else (*columns, Pass())
    return Progress(*shown, console=Console(stderr=True))


def format_reading(reading: Reading) -> str:
    """The progress of reading A from disk, such as: pass 7, 35 %, 1.2 GB/s."""
    rate = f"{format_bytes(reading.rate)}/s" if reading.rate > 0.0 else "in memory"
    return f"pass {reading.passes}, {math.floor(100 * reading.share)} %, {rate}"


class PlainProgress(Progress):
    """A line on stderr every second, where Rich is not installed; within long passes over A, every QUIET seconds."""

    def __init__(self, tol: float, label: str, reading: Reading | None = None) -> None:
        self.tol, self.label, self.drawn, self.reading = tol, label, 0.0, reading
        self.over = threading.Event()

    def __enter__(self) -> Self:
        if self.reading is not None:
            threading.Thread(target=self._tell, name="saddlepoint-progress", daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.over.set()

    def _tell(self) -> None:
        assert self.reading is not None
        while not self.over.wait(QUIET):
            if self.reading.share < 1.0:
                print(f"{self.label}: {format_reading(self.reading)}", file=sys.stderr)

    def show_method(self, label: str) -> None:
        """Name this method in the lines that follow."""
        self.label = label

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


def make_progress(wanted: bool, tol: float, label: str, reading: Reading | None = None) -> Progress:
    """The best bar that is installed, or none if none is wanted."""
    if not wanted:
        return Progress()
    try:
        return RichProgress(tol, label, reading)
    except ImportError:
        return PlainProgress(tol, label, reading)


@contextmanager
def show_reading(wanted: bool, reading: Reading | None, label: str) -> Iterator[None]:
    """Show the passes that are made here, if A is on disk."""
    if not wanted or reading is None:
        yield
        return
    try:
        from rich.progress import TextColumn

        bar = _rich(TextColumn("{task.description}"), reading=reading)
        bar.add_task(label)
    except ImportError:
        bar = PlainProgress(math.nan, label, reading)
    with bar:
        yield
