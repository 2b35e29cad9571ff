import os
import signal

import pytest
from browser import chromium, page  # noqa: F401 - fixtures for all tests, as are the next ones
from clocks import clock  # noqa: F401
from command_line import run  # noqa: F401
from differentiation import jax, torch  # noqa: F401
from draws import SEED
from hypothesis import HealthCheck, settings
from libraries import xp  # noqa: F401
from scheduling import in_parts

# A shell that starts the tests in the background makes them ignore Ctrl-C, and the processes that they start as well.
signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile(
    "saddlepoint",
    max_examples=int(os.environ.get("EXAMPLES", "25")),
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("saddlepoint")


def pytest_report_header():
    """Say with which seed the problems are drawn."""
    return f"SEED={SEED}"


@pytest.fixture(scope="session", autouse=True)
def no_fsync():
    """Replace fsync, which waits for the disk, by nothing; tests of a write that fails replace it by a failure."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda handle: None)
        yield


@pytest.hookimpl(tryfirst=True)  # before -m chooses by markers
def pytest_collection_modifyitems(items):
    """Mark the tests that use a browser, and put the tests of a parallel run in order."""
    for item in items:
        if "chromium" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.browser)
    processes = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    if processes > 1:
        items[:] = in_parts(items, processes)
