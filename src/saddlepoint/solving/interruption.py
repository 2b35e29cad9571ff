"""Runs that a signal has ended, for callers that make several runs.

``solve`` does not raise an error after Ctrl-C: it returns the best point so far. A caller that would begin another run
then has to ask.
"""

from __future__ import annotations

from saddlepoint.solving.result import Result, Status


def signal_of(result: Result) -> str:
    """The signal that ended the run, "SIGINT" (Ctrl-C) or "SIGTERM"; empty if none did."""
    return str(result.provenance.get("signal") or "SIGINT") if result.status is Status.INTERRUPTED else ""


def uninterrupted(result: Result) -> Result:
    """The result itself; a KeyboardInterrupt if a signal ended the run, so that nothing else is begun."""
    if result.status is Status.INTERRUPTED:
        raise KeyboardInterrupt
    return result
