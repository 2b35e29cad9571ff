import os

import pytest
from browser import chromium, page  # noqa: F401 - fixtures for all tests, as are the next two
from command_line import run  # noqa: F401
from hypothesis import HealthCheck, settings
from libraries import xp  # noqa: F401

settings.register_profile(
    "saddlepoint",
    max_examples=int(os.environ.get("EXAMPLES", "25")),
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("saddlepoint")


# Files of which a single test takes half a minute or more. They start first, so that at the end of a parallel run no
# process waits for one of them.
LONGEST = ("test_jax_sharding", "test_site", "test_release")


@pytest.hookimpl(tryfirst=True)  # before -m chooses by markers
def pytest_collection_modifyitems(items):
    """Mark the tests that use a browser, and move the longest ones to the front."""
    for item in items:
        if "chromium" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.browser)
    items.sort(key=lambda item: item.path.stem not in LONGEST)
