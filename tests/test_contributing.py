"""What contributors rely on: the worked example, the commands that pages name, the issue templates."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import yaml
from cases import CASES, case
from hypothesis import given
from random_problems import ROUNDING, in_normal_form, saddles, weighted_error
from reference import check_solves
from tiers import slow_except

import saddlepoint as sp
from saddlepoint.methods import registry
from saddlepoint.problems.oracle import Meter, metered

ROOT = Path(__file__).parent.parent
FORMS = sorted((ROOT / ".github/ISSUE_TEMPLATE").glob("[0-9]*.yml"))


def example():
    """The Python block of CONTRIBUTING."""
    (block,) = re.findall(r"```python\n(.*?)```", (ROOT / "CONTRIBUTING.md").read_text(), re.DOTALL)
    return block


@pytest.fixture(scope="module")
def reflected():
    """The class that this block defines; the register of methods is restored afterwards."""
    kept = dict(registry._REGISTER)
    space = {"__name__": "reflected"}
    exec(compile(example(), "CONTRIBUTING.md", "exec"), space)
    assert "reflected" in registry.method_names()
    yield space["Reflected"]
    registry._REGISTER.clear()
    registry._REGISTER.update(kept)


# -- the worked example -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("problem", slow_except(CASES, "balanced", "logistic"))
def test_the_example_solves_every_case(reflected, problem):
    check_solves(*case(problem), reflected())


@given(problem=saddles())
def test_the_example_stays_under_its_theorem(reflected, problem):
    f, xs, ys, x, y = in_normal_form(reflected(), *problem)
    start, state = weighted_error(f, x, y, xs, ys), reflected().init(f, x, y)
    for k in range(1, 200):
        state = reflected().step(f, state)
        bound = reflected().bound(f, k) * start
        assert weighted_error(f, state.x, state.y, xs, ys) <= bound * (1 + 1e-9) + ROUNDING**2 * start


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # cvxpy and its solvers warn
@pytest.mark.parametrize(("numbers", "steps"), [((4.0, 3.0, 1.5), 2), ((1.01, 1.01, 5.0), 1), ((10.0, 10.0, 0.1), 3)])
def test_the_worst_case_of_the_example_is_close_to_its_theorem(reflected, numbers, steps):
    pytest.importorskip("PEPit")
    from symbolic import worst_error

    found, bound = worst_error(reflected(), *numbers, steps)
    assert 0.7 * bound < found <= bound


def test_the_example_costs_what_it_says(reflected):
    meter = Meter()
    f = metered(case("balanced")[0], meter)
    state = reflected().init(f, np.ones(f.shape[0]), np.ones(f.shape[1]))
    assert not any(meter.calls.values())
    reflected().step(f, state)
    assert {name: count for name, count in meter.calls.items() if count} == reflected().cost(f)


def test_the_reflections_follow_the_recursion_of_ogda(reflected):
    f = case("logistic")[0]
    made = reflected(eta=0.01)
    first = made.step(f, made.init(f, np.zeros(f.shape[0]), np.zeros(f.shape[1])))
    second = made.step(f, first)
    Fx, Fy = f.field(np.zeros(f.shape[0]), np.zeros(f.shape[1]))  # OGDA keeps the field of the step before
    state = sp.OGDA(eta=0.01).init(f, first.xr, first.yr)._replace(Fx=Fx, Fy=Fy)
    twin = sp.OGDA(eta=0.01).step(f, state)
    np.testing.assert_allclose(twin.x, second.xr, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(twin.y, second.yr, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("command", [["check"], ["format", "--check"]])
def test_the_example_is_as_tidy_as_the_library(command):
    ruff = Path(sys.executable).with_name("ruff")
    if not ruff.exists():
        pytest.skip("there is no ruff beside this Python")
    words = [ruff, *command, "--no-cache", "--stdin-filename", "src/saddlepoint/methods/reflected.py", "-"]
    done = subprocess.run(words, input=example(), capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr


# -- commands and files that the pages name ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "page", ["CONTRIBUTING.md", "RELEASING.md", "ARCHITECTURE.md", ".github/PULL_REQUEST_TEMPLATE.md"]
)
def test_targets_and_files_that_pages_name_are_there(page):
    text = (ROOT / page).read_text()
    makefile = (ROOT / "Makefile").read_text()
    for target in set(re.findall(r"`make (\w+)`", text)):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
    for link in re.findall(r"\]\(([\w./-]+)\)", text):
        assert (ROOT / page).parent.joinpath(link).exists(), link
    for name in re.findall(r"`((?:tests|tools|benchmarks|docs|examples|src)/[\w./-]+)`", text):
        if name != "src/saddlepoint/methods/reflected.py":
            assert (ROOT / name).exists(), name


def test_the_tests_that_contributing_lists_are_there():
    rows = re.findall(r"^\| `(test_\w+)`(.*?) \|", (ROOT / "CONTRIBUTING.md").read_text(), re.MULTILINE)
    assert rows
    for first, more in rows:
        for name in (first, *(f"test{rest}" for rest in re.findall(r"`(_\w+)`", more))):
            assert (ROOT / "tests" / f"{name}.py").exists(), name


def test_the_year_of_the_citation_is_that_of_the_release():
    from saddlepoint.solving.citations import YEAR

    head = (ROOT / "CHANGELOG.md").read_text().split("\n## ")[1].splitlines()[0]
    assert "unreleased" in head or f"({YEAR}-" in head


# -- issue templates --------------------------------------------------------------------------------------------------

KEYS = {  # keys of each element of a form: required ones, optional ones
    "markdown": ({"value"}, set()),
    "input": ({"label"}, {"description", "placeholder", "value"}),
    "textarea": ({"label"}, {"description", "placeholder", "value", "render"}),
    "dropdown": ({"label", "options"}, {"description"}),
    "checkboxes": ({"label", "options"}, {"description"}),
}


def test_there_is_a_form_for_each_kind():
    assert [form.stem[2:] for form in FORMS] == ["wrong-certificate", "bug", "method", "performance", "question"]


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.stem)
def test_a_form_is_one_that_github_takes(form):
    text = yaml.safe_load(form.read_text())
    assert {"name", "description", "body"} <= set(text) <= {"name", "description", "body", "title", "labels"}
    assert all(isinstance(text[key], str) and text[key].strip() for key in ("name", "description"))
    assert all(isinstance(label, str) for label in text["labels"])
    elements = text["body"]
    for element in elements:
        assert {"type", "attributes"} <= set(element) <= {"type", "id", "attributes", "validations"}
        must, may = KEYS[element["type"]]
        attributes = element["attributes"]
        assert must <= set(attributes) <= must | may, attributes
        assert all(
            isinstance(attributes[key], str) for key in attributes if key not in ("options", "multiple", "default")
        )
        if element["type"] == "markdown":
            assert "id" not in element
            continue
        assert re.fullmatch(r"[A-Za-z0-9_-]+", element["id"])
        assert element.get("validations", {"required": True}) == {"required": True}
        options = attributes.get("options", [])
        names = [option["label"] for option in options] if element["type"] == "checkboxes" else options
        assert all(isinstance(name, str) for name in names)
        assert len(set(names)) == len(names)
    asked = [element for element in elements if element["type"] != "markdown"]
    assert any("validations" in element for element in asked)
    for unique in ([one["id"] for one in asked], [one["attributes"]["label"] for one in asked]):
        assert len(set(unique)) == len(unique)


@pytest.mark.parametrize("form", FORMS[:2] + FORMS[3:4], ids=lambda form: form.stem)
def test_reports_ask_for_provenance(form):
    assert "result.provenance" in form.read_text()


def test_what_forms_ask_for_exists():
    f = case("balanced")[0]
    result = sp.solve(f)
    text = "\n".join(form.read_text() for form in FORMS)
    for name in set(re.findall(r"result\.(\w+)", text)):
        assert getattr(result, name) is not None
    for name in set(re.findall(r"\bf\.(\w+)", text)):
        assert hasattr(f, name)
    for name in set(re.findall(r"\bsp\.(\w+)", text)):
        assert hasattr(sp, name)
    assert set(yaml.safe_load((ROOT / ".github/ISSUE_TEMPLATE/config.yml").read_text())) <= {
        "blank_issues_enabled",
        "contact_links",
    }
