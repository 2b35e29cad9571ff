"""The site, built with warnings as errors: every link and anchor is valid, and everything public is documented.

The gallery's scripts are not run here (`make docs` and `tests/test_examples.py` do that).
"""

import fcntl
import os
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag

import pytest
from browser import accessible

import saddlepoint as sp
from saddlepoint.commands.app import app as cli
from saddlepoint.problems import generators

ROOT = Path(__file__).parent.parent
typer = pytest.importorskip("typer")
pytest.importorskip("sphinx_gallery")
pytest.importorskip("pydata_sphinx_theme")

pytestmark = pytest.mark.slow
MADE = shutil.ignore_patterns("repository", "gallery", "generated", "__pycache__")


def build(folder):
    """Build a copy of the site, because a build writes into docs/."""
    repo = folder / "repo"
    repo.mkdir(parents=True)
    for name in ("docs", "examples"):
        shutil.copytree(ROOT / name, repo / name, ignore=MADE)
    for path in ROOT.iterdir():
        if path.name in ("src", "tests", "benchmarks", "tools") or path.is_file():
            (repo / path.name).symlink_to(path)
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html", "-D", "plot_gallery=0"]
    done = subprocess.run([*command, "docs", str(folder / "html")], cwd=repo, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder / "html"


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The site, which is built once, however many processes run the tests."""
    base = tmp_path_factory.getbasetemp()
    base = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    with open(base / "site.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        folder, done = base / "site", base / "site" / "done"
        if not done.exists():
            shutil.rmtree(folder, ignore_errors=True)
            build(folder)
            done.touch()
    return folder / "html"


class Page(HTMLParser):
    """What a page links to, loads, names and says."""

    def __init__(self, path):
        super().__init__()
        self.links, self.loaded, self.ids, self.words = [], [], set(), []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.ids |= {given[name] for name in ("id", "name") if given.get(name)}
        if tag == "a" and given.get("href"):
            self.links.append(given["href"])
        elif (tag == "link" and given.get("href")) or given.get("src"):
            self.loaded.append(given.get("src") or given["href"])

    def handle_data(self, data):
        self.words.append(data)

    @property
    def text(self):
        return " ".join("".join(self.words).split())


@pytest.fixture(scope="module")
def pages(site):
    found = {path.relative_to(site).as_posix(): path for path in sorted(site.rglob("*.html"))}
    return {name: Page(path) for name, path in found.items() if not name.startswith("_static/")}


def test_every_link_and_anchor_leads_somewhere(site, pages):
    broken = []
    for name, one in pages.items():
        for link in [*one.links, *one.loaded]:
            if re.match(r"(https?|data|mailto):", link):
                continue
            target, anchor = urldefrag(unquote(link))
            path = (site / name).parent / target.partition("?")[0] if target else site / name
            path = Path(os.path.normpath(path))
            if not path.is_file():
                broken.append(f"{name}: {link}")
            elif anchor and path.suffix == ".html" and anchor not in pages[path.relative_to(site).as_posix()].ids:
                broken.append(f"{name}: {link} (no such anchor)")
    assert not broken


def test_nothing_is_loaded_from_a_network(site, pages):
    assert not [(name, url) for name, one in pages.items() for url in one.loaded if re.match(r"(https?:)?//", url)]
    for sheet in site.rglob("*.css"):
        assert not re.search(r"(url\(|@import)\s*['\"]?(https?:)?//", sheet.read_text(encoding="utf-8")), sheet


def test_every_public_name_has_an_entry(pages):
    ids = set().union(*(one.ids for name, one in pages.items() if name.startswith("api/")))
    homes = {"saddlepoint": sp.__all__, "saddlepoint.theory": sp.theory.__all__, "saddlepoint.apps": sp.apps.__all__}
    homes["saddlepoint.problems.generators"] = [
        name for name, thing in vars(generators).items() if getattr(thing, "__module__", "") == generators.__name__
    ]
    names = {f"{home}.{name}" for home, public in homes.items() for name in public if not name.startswith("_")}
    assert len(names) > 150
    assert not {name for name in names if name not in ids and f"module-{name}" not in ids}


def test_every_method_has_its_page_of_the_paper(pages):
    table = pages["api/methods.html"]
    for info in sp.methods():
        assert info.name in table.text
        kind = type(sp.make_method(info.name)).__name__
        shown = pages[f"api/generated/saddlepoint.{kind}.html"].text
        assert info.name in shown
        assert "Recursion:" in shown
        assert "Reference:" in shown


def test_every_command_and_option_has_its_place(pages):
    shown = pages["command-line.html"]
    commands = typer.main.get_command(cli).commands
    assert {"solve", "explorer", "report"} <= set(commands)
    for name, command in commands.items():
        assert f"saddlepoint-{name}" in shown.ids
        for param in command.params:
            for option in param.opts if param.param_type_name == "option" else []:
                assert option in shown.text, f"{name} {option}"


def test_measurements_are_pages_and_the_front_page_shows_a_run(site, pages):
    for path in (ROOT / "benchmarks/results").glob("*.md"):
        assert f"repository/benchmarks/results/{path.stem}.html" in pages
    front = pages["index.html"].text
    assert "solved: certified distance" in front  # printed when the page was built
    assert "saddlepoint" in (site / "explorer-page.html").read_text(encoding="utf-8")


def test_formulas_are_drawn_by_the_browser(site, pages):
    """Formulas are MathML. No LaTeX is left in the text, and nothing has to be loaded to draw them."""
    assert (site / "theory/certificate.html").read_text(encoding="utf-8").count("<math") > 40
    for name, one in pages.items():
        if not name.startswith(("gallery/", "repository/")):
            assert not re.search(r"\\[lr]Vert|\\frac|\$\$", one.text), name


def test_bars_keep_the_height_of_a_letter(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "docs/_ext"))
    from mathml import corrected

    for formula in (r"\lvert w\rvert", "|w|", r"\lVert w\rVert"):
        bars = re.findall(r"<mo([^>]*)>[|‖]</mo>", corrected(formula))
        assert len(bars) == 2
        assert all('stretchy="false"' in bar for bar in bars), formula


def test_formulas_of_docstrings_are_mathematics(site, pages):
    """No formula of the reference is in a code box; the pages of methods have theirs as mathematics too."""
    for path in (site / "api").rglob("*.html"):
        assert "highlight-text" not in path.read_text(encoding="utf-8"), path.name
    assert (site / "api/generated/saddlepoint.DIPPA.html").read_text(encoding="utf-8").count("<math") > 20
    assert "sqrt(" not in pages["explorer-page.html"].text.partition("What the numbers mean")[0]


def test_an_index_stands_beside_a_letter_with_a_tilde(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "docs/_ext"))
    from mathml import corrected

    for formula in (r"\tilde{x}_{k+1}", r"\bar{x}_k", r"\hat{x}_k^2"):
        text = corrected(formula)
        assert "munder" not in text
        assert re.search(r"<msub><mover[^>]*><mi>x</mi>", text), formula


def test_pages_fit_a_phone(site, page):
    """No page is wider than a phone, long formulas scroll in boxes of their own, and no name in code is broken."""
    page.set_viewport_size({"width": 390, "height": 844})
    made = ("repository", "gallery", "generated")
    written = [p for p in (ROOT / "docs").rglob("*.md") if not set(made) & set(p.relative_to(ROOT / "docs").parts)]
    names = [p.relative_to(ROOT / "docs").with_suffix("").as_posix() for p in written]
    names += ["genindex", "py-modindex", "api/theory", "api/generated/saddlepoint.AdaPDM"]
    assert len(names) > 50
    for name in names:
        page.goto((site / f"{name}.html").as_uri())
        assert page.evaluate("document.documentElement.scrollWidth") <= 390, name
        broken = page.locator("article code:not(pre code) .pre:not(.long)").evaluate_all(
            "all => all.filter(one => one.getClientRects().length > 1).map(one => one.textContent)"
        )
        assert not broken, (name, broken)
        assert page.locator("article h1").evaluate("h => h.scrollWidth <= h.clientWidth + 24"), name
        outside = page.locator("article :is(p, li, dd, td) math").evaluate_all(
            """all => all.filter(one => !one.closest('div.math, .math-box, .pst-scrollable-table-container'))
            .filter(one => one.getBoundingClientRect().right > 391).map(one => one.textContent)"""
        )
        assert not outside, (name, outside)
        starts = page.locator("div.math > div").evaluate_all("all => all.map(m => m.getBoundingClientRect().left)")
        assert all(start >= 0 for start in starts), name  # a long formula scrolls, and begins at its left end
        hints = page.locator("div.math").evaluate_all(
            "all => all.map(m => [m.scrollWidth > m.clientWidth + 1, m.matches(':has(+ .scroll-hint)')])"
        )
        assert all(wide == said for wide, said in hints), name  # a line below it says so


def test_tall_tables_that_scroll_say_so_above(site, page):
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto((site / "methods.html").as_uri())
    table = page.locator(".pst-scrollable-table-container").first
    assert table.evaluate("t => t.clientHeight > innerHeight && t.previousElementSibling.matches('.scroll-hint')")
    assert table.evaluate("t => t.nextElementSibling.matches('.scroll-hint')")


def test_no_line_begins_with_the_comma_of_a_formula(site, page):
    page.goto((site / "derivatives.html").as_uri())
    beside = page.locator("article math").evaluate_all(
        "all => all.map(m => m.nextSibling).filter(n => n && n.nodeType === 3 && /^[.,;:)]/.test(n.textContent)).map("
        "n => n.parentElement.matches('.unbroken'))"
    )
    assert len(beside) > 20
    assert all(beside)


def test_only_long_words_of_tables_may_break(site, page):
    page.goto((site / "which-method.html").as_uri())
    words = page.locator("article td > p:has(wbr)").evaluate_all(
        """all => all.flatMap(one => {
            const copy = one.cloneNode(true);
            for (const gap of copy.querySelectorAll("wbr")) gap.replaceWith("|");
            return copy.textContent.split(/\\s/).filter(word => word.includes("|"));
        })"""
    )
    assert words
    assert all(len(word.replace("|", "")) > 20 for word in words), words


def test_names_in_code_type_are_links(pages):
    assert "repository/src/saddlepoint/problems/saddle.py.html" in pages["paper.html"].links
    assert any(link.endswith("saddlepoint.LPDGS.html#saddlepoint.LPDGS") for link in pages["methods.html"].links)
    assert "command-line.html" in pages["explorer.html"].links


def test_the_search_works_from_a_file(site, page):
    page.goto(f"{(site / 'search.html').as_uri()}?q=certificate")
    page.wait_for_selector("#search-results li")
    assert page.locator("#search-results li").count() > 5
    page.locator("#search-results li a").first.click()
    assert "certificate" in page.locator("article").inner_text().lower()


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 1280), ("light", 390)])
def test_pages_have_no_barriers(site, page, scheme, width):
    """One page of each kind, in both colour schemes and on a phone; the explorer in its frame has a test of its own."""
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size({"width": width, "height": 844})
    kinds = ("index", "my-problem", "methods", "theory/certificate", "api/apps", "api/generated/saddlepoint.LPDGS")
    kinds += ("applications/regression", "applications/programs", "api/generators")
    for name in (*kinds, "gallery/index", "gallery/ideas/certificate", "explorer-page", "measured", "command-line"):
        page.goto((site / f"{name}.html").as_uri())
        assert page.evaluate("document.documentElement.dataset.theme") in (scheme, None), name
        accessible(page)


def test_thumbnails_of_the_gallery_fill_a_phone(site, page):
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto((site / "gallery/index.html").as_uri())
    widths = page.locator(".sphx-glr-thumbcontainer img").evaluate_all("all => all.map(one => one.clientWidth)")
    assert len(widths) > 20
    assert min(widths) > 300
