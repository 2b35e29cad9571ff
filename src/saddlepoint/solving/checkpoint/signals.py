"""SIGTERM as an exception, for the time of a run."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from saddlepoint.ground.errors import Terminated


@contextmanager
def sigterm_raises(wanted: bool) -> Iterator[None]:
    """Raise ``Terminated`` at the first SIGTERM, and ignore more of them: the run is about to end.

    Only the main thread may do that; the handler there was before is put back.
    """
    before = signal.getsignal(signal.SIGTERM)
    if not wanted or before is None or threading.current_thread() is not threading.main_thread():
        yield
        return
    came = False

    def raise_once(number: int, frame: FrameType | None) -> None:
        nonlocal came
        if not came:
            came = True
            raise Terminated

    signal.signal(signal.SIGTERM, raise_once)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
