"""A Chromium browser for the tests of HTML pages."""

import shutil

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


@pytest.fixture(scope="module")  # not longer: while it runs, nothing else in the process can have an event loop
def chromium():
    executable = next(filter(None, map(shutil.which, NAMES)), None)
    if executable is None:
        pytest.skip("there is no Chromium; on Debian: apt-get install chromium")
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=executable, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def page(chromium):
    """A page. The test fails if it logs an error or a warning, or loads anything but files."""
    context = chromium.new_context(offline=True, viewport={"width": 1100, "height": 900})
    context.set_default_timeout(60_000)
    page = context.new_page()
    complaints = []
    page.on("console", lambda said: complaints.append(said.text) if said.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", lambda asked: None if asked.url.startswith("file:") else complaints.append(asked.url))
    yield page
    context.close()
    assert not complaints, complaints


def accessible(page):
    """Assert that axe-core finds no barrier for people with disabilities."""
    from axe_playwright_python.sync_playwright import Axe

    # Pages that are opened as files may not read their style sheets by a request, as axe-core would otherwise do.
    found = Axe().run(page, options={"preload": False}).response["violations"]
    assert not found, [(one["id"], one["help"], [node["html"][:200] for node in one["nodes"]]) for one in found]
