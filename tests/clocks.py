"""A clock for tests that nothing moves but the test itself."""

from types import SimpleNamespace

import pytest

from saddlepoint.parts.coupling import runtime
from saddlepoint.problems import first_call, oracle
from saddlepoint.solving import clock as run_clock
from saddlepoint.solving import options, solve


@pytest.fixture
def clock(monkeypatch):
    """The clock of runs shows ``clock.now`` seconds, so that no call seems slow unless the test moves the clock."""
    shown = SimpleNamespace(now=0.0)
    stand_in = SimpleNamespace(perf_counter=lambda: shown.now, time=lambda: 0.0)
    for module in (run_clock, options, oracle, runtime, solve, first_call):
        monkeypatch.setattr(module, "time", stand_in)
    return shown
