"""The guides: their Python code runs, links are valid, pictures can be drawn, and the map of the paper is correct."""

import ast
import importlib.util
import re
from functools import cache
from pathlib import Path

import pytest

import saddlepoint as sp
from saddlepoint.methods import registry
from saddlepoint.parts import functions, simple
from saddlepoint.parts.coupling import kinds as couplings
from saddlepoint.problems.files import problem_file
from saddlepoint.theory.table1 import THEOREMS

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
GUIDES = [
    *("start.md", "which-method.md", "simple-functions.md", "modelling.md", "derivatives.md", "paper.md", "faq.md"),
    *(
        f"theory/{name}.md"
        for name in ("index", "problem", "certificate", "dippa", "catalyst", "lower-bound", "one-pass")
    ),
    *(f"extend/{name}.md" for name in ("index", "method", "function", "backend")),
]
WITH_PYTHON = [page for page in GUIDES if page not in ("paper.md", "theory/index.md", "extend/index.md")]
NUMBER = re.compile(r"\d+(\.\d+)?(e[+-]?\d+)?")


@pytest.fixture
def as_before():
    """Restore the register after a page, which may register methods."""
    registers = (registry._REGISTER, problem_file.KINDS, couplings._KINDS)
    before = [dict(register) for register in registers]
    yield
    for register, kept in zip(registers, before, strict=True):
        register.clear()
        register.update(kept)


def run(page, capsys):
    """Run the Python blocks of a page in one namespace; a text block after one of them is what it prints."""
    space = {"__name__": "guide"}
    for language, code in re.findall(
        r"^```(python|text)\n(.*?)^```", (DOCS / page).read_text(), re.DOTALL | re.MULTILINE
    ):
        if language == "python":
            capsys.readouterr()
            exec(compile(code, page, "exec"), space)
            printed = {plain(line) for line in capsys.readouterr().out.splitlines()}
        elif not code.startswith("Row("):
            assert {plain(line) for line in code.splitlines()} <= printed, code
    return space


def plain(line):
    """A line without its numbers, which other machines round otherwise, and without double spaces."""
    return " ".join(NUMBER.sub("#", line).split())


@pytest.mark.slow
@pytest.mark.parametrize("page", WITH_PYTHON)
def test_the_python_of_a_guide_runs(page, monkeypatch, tmp_path, capsys, as_before):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    assert set(run(page, capsys)) > {"__name__", "__builtins__"}


def test_the_method_of_the_guide_may_be_symbolic(monkeypatch, tmp_path, capsys, as_before):
    pytest.importorskip("PEPit")
    from symbolic import worst_error

    monkeypatch.chdir(tmp_path)
    found, bound = worst_error(run("extend/method.md", capsys)["GDA"](), 4.0, 3.0, 1.5, 1)
    assert 0.5 * bound < found <= bound


def test_the_table_of_statuses_has_them_all():
    table = (DOCS / "start.md").read_text().partition("## If it is not solved")[2]
    for status in sp.Status:
        assert status is sp.Status.RUNNING or f"`{status}`" in table


def test_the_table_of_ready_functions_has_them_all():
    table = (DOCS / "start.md").read_text().partition("## Your g and h")[2].partition("**Sums")[0]
    for name in functions.__all__:
        assert name in ("Smooth", "Risk") or f"`sp.{name}(" in table, name


def test_the_table_of_simple_functions_has_them_all():
    table = (DOCS / "simple-functions.md").read_text().partition("## Ready-made functions")[2].partition("## Sums")[0]
    for name, thing in vars(simple).items():
        ready = isinstance(thing, type) and issubclass(thing, sp.Simple) and name not in ("Simple", "L1Box")
        assert not ready or f"`sp.{name}(" in table, name


def test_every_method_named_as_a_call_is_registered():
    names = {info.name for info in sp.methods()} | {"auto"}
    for page in GUIDES:
        text = (DOCS / page).read_text()
        for name in re.findall(r'method="([a-z-]+)"', text):
            assert name in names or (page, name) == ("extend/method.md", "gda")
        for name in re.findall(r"→ `([a-z-]+)`", text):
            assert name in names


# -- links -------------------------------------------------------------------------------------------------------------


def anchors(page):
    """The headings of a page as a code host makes anchors of them."""
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    heads = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


@pytest.mark.parametrize("page", GUIDES)
def test_links_lead_somewhere(page):
    text = re.sub(r"^```.*?^```", "", (DOCS / page).read_text(), flags=re.DOTALL | re.MULTILINE)
    found = re.findall(r"\]\(([^)\s]+)\)", text)
    assert found
    for link in found:
        if "://" in link:
            continue
        name, _, anchor = link.partition("#")
        target = ((DOCS / page).parent / name).resolve() if name else DOCS / page
        assert target.exists(), link
        assert target.is_relative_to(ROOT), link
        assert not anchor or anchor in anchors(target), link


def test_files_named_in_code_exist():
    """Paths in backticks are those of the repository, of the package or of the tests."""
    rooms = [ROOT, ROOT / "src/saddlepoint", ROOT / "tests", *(ROOT / "src/saddlepoint").glob("*/")]
    for page in GUIDES:
        for name in re.findall(r"`((?:[\w-]+/)*\w+\.(?:py|md))`", (DOCS / page).read_text()):
            assert any((room / name).exists() for room in rooms), f"{page}: {name}"


def test_every_page_is_in_a_navigation():
    for room in ("theory", "extend"):
        listed = re.search(r"```{toctree}\n.*?```", (DOCS / room / "index.md").read_text(), re.DOTALL)[0].split()
        assert {path.stem for path in (DOCS / room).glob("*.md")} - {"index"} <= set(listed)


def test_formulas_fit_the_page():
    for page in GUIDES:
        text = re.sub(r"^```.*?^```", "", (DOCS / page).read_text(), flags=re.DOTALL | re.MULTILINE)
        for line in re.findall(r"^    \S.*$", text, re.MULTILINE):
            assert page in ("paper.md",) or len(line) <= 98, f"{page}: {line}"


# -- pictures ----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def pictures():
    pytest.importorskip("matplotlib").use("Agg")
    spec = importlib.util.spec_from_file_location("pictures", DOCS / "theory/pictures.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
def test_pictures_can_be_drawn(pictures, tmp_path):
    pictures.main(tmp_path)
    drawn = {path.name for path in tmp_path.glob("*.png")}
    assert drawn == set(pictures.PICTURES) == {path.name for path in (DOCS / "theory").glob("*.png")}
    shown = "".join(path.read_text() for path in (DOCS / "theory").glob("*.md"))
    for name in drawn:
        assert f"]({name})" in shown
        assert 10_000 < (tmp_path / name).stat().st_size < 200_000
        assert (DOCS / "theory" / name).stat().st_size < 200_000


def test_the_picture_of_bytes_shows_what_was_measured(pictures):
    for name, least in (("fused_cpu.md", 1e9), ("fused_gpu.md", 1e12)):
        rows, bandwidth = pictures.measured(name, "both")
        assert len(rows) > 10
        assert bandwidth > least
        large = [row for row in rows if row[1] > 2e8]
        assert large
        assert all(row[3] < row[2] for row in large)  # one pass takes less time than two
        assert all(row[3] > 0.5 * row[1] / bandwidth for row in large)  # it takes at least as long as reading A


# -- the paper ---------------------------------------------------------------------------------------------------------

LABELS = re.findall(
    r"\S+",
    """
    prob:bilinear fig:compare lem:smooth def:saddle eq:oracle table-comparison
    algo:agd thm:agd algo:apfb thm:apfb algo:dppa thm:dppa coro:dppa
    algo:dippa prob:sub2 thm:dippa-out lem:dippa:inner thm:dippa:0 algo:catalyst-dippa thm:dippa
    lem:smooth:def eq:smooth:1 eq:smooth:2 eq:smooth:3 lem:prox:Lipschitz
    apfb:proof:1 apfb:proof:2 apfb:proof:3 apfb:proof:4 apfb:proof:5 apfb:proof:6 apfb:proof:7 apfb:proof:8
    eq:dppa:saddle eq:dppa:prox2 eq:dppa:prox1 dppa:proof dppa:proof:2 eq:dppa:3 dippa:proof:out eq:dippa:prox2
    thm:aipfb algo:aipfb thm:aipfb-out aipfb:proof:1 aipfb:proof:2 aipfb:proof:3 aipfb:proof:4 lem:aipfb:inner
    algo:catalyst-aipfb thm:catalyst-aipfb
    """,
)  # in the order of the paper's source
SECTIONS = ("sec:preliminary", "sec:related", "sec:compnents", "sec:main", "sec:conclusion", "app:apfb", "sec:aipfb")
UNLABELLED = ("Definition 2", "span condition", "prox_f", "rescaling", "beta, q, theta", "lower bound", "three regimes")


def rows():
    """The label, the title, the code and the tests of every row of the map."""
    table = (DOCS / "paper.md").read_text().partition("| label |")[2].partition("\n\n")[0]
    for line in table.splitlines()[2:]:
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if not cells[0].startswith("**"):
            yield cells


def test_the_map_has_every_label_once():
    cells = [cells[0] for cells in rows()]
    labels = [label for cell in cells for label in re.findall(r"`([^`]+)`", cell)]
    assert sorted(labels) == sorted(LABELS)
    assert {cell for cell in cells if "`" not in cell} == set(UNLABELLED)
    text = (DOCS / "paper.md").read_text()
    assert all(f"`{section}`" in text for section in SECTIONS)


def test_theorems_have_the_numbers_of_the_paper():
    """The paper numbers theorems, lemmas and corollaries in one sequence."""
    numbered = [label for label in LABELS if label.partition(":")[0] in ("thm", "lem", "coro")]
    titles = {row[0].strip("`"): row[1] for row in rows()}
    numbers = [int(re.match(r"(?:Theorem|Lemma|Corollary) (\d+): ", titles[label])[1]) for label in numbered]
    assert numbers == list(range(1, 16))
    labels = {"dippa": "thm:dippa:0", "catalyst-dippa": "thm:dippa", "aipfb": "thm:aipfb"}
    labels["catalyst-aipfb"] = "thm:catalyst-aipfb"
    assert {name: 1 + numbered.index(label) for name, label in labels.items()} == THEOREMS


@cache
def names(path):
    """What a file defines: functions and classes, at any depth, and the names of its module."""
    tree = ast.parse(path.read_text())
    inner = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    targets = [t for node in tree.body if isinstance(node, ast.Assign) for t in node.targets]
    return inner | {target.id for target in targets if isinstance(target, ast.Name)}


def references(cell):
    """The files of a cell, each with the names in the brackets behind it."""
    found = re.findall(r"`([\w/]+\.py)` \(((?:`\w+`(?:, )?)+)\)", cell)
    assert re.sub(r"`[\w/]+\.py` \((?:`\w+`(?:, )?)+\)(?:, )?", "", cell) == "", cell
    return [(file, re.findall(r"\w+", words)) for file, words in found]


@pytest.mark.parametrize("row", list(rows()), ids=lambda row: row[0].replace("`", ""))
def test_a_row_of_the_map_is_true(row):
    _, title, code, tests = row
    assert title
    for room, cell in ((ROOT / "src/saddlepoint", code), (ROOT / "tests", tests)):
        found = references(cell)
        assert found
        for file, wanted in found:
            assert set(wanted) <= names(room / file), f"{file}: {set(wanted) - names(room / file)}"
            assert room.name != "tests" or all(name.startswith("test_") for name in wanted)


def test_the_mistakes_are_numbered_and_name_functions_that_exist():
    text = (DOCS / "paper.md").read_text().partition("## Mistakes in the text")[2].partition("\n## ")[0]
    assert [int(number) for number in re.findall(r"^(\d+)\. ", text, re.MULTILINE)] == list(range(1, 14))
    for name in re.findall(r"`((?:dippa|aipfb|catalyst|start|weighted)_\w+)`", text):
        assert hasattr(sp.theory, name)
