"""The register: names, options, expressions, discovery, and the files that are generated from it."""

import subprocess
import sys
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np
import pytest
import tables
from cases import case

import saddlepoint as sp
from saddlepoint.methods import classes, registry
from saddlepoint.methods.registry import make_method, method_names, method_options, promised_rows
from saddlepoint.solving.auto import choose
from saddlepoint.uses.pages.formulas import as_markdown

ROOT = Path(__file__).parent.parent


@pytest.fixture
def as_before():
    kept = dict(registry._REGISTER)
    yield
    registry._REGISTER.clear()
    registry._REGISTER.update(kept)


# -- names ------------------------------------------------------------------------------------------------------------


def own(module, label):
    """A class of a user, defined in a module of that name."""
    kind = dataclass(frozen=True)(type("Own", (sp.OGDA,), {"name": label, "__module__": module}))
    return sp.register(kind)


def test_a_second_registration_of_a_name_is_refused(as_before):
    with pytest.raises(sp.ProblemError, match=r"the name 'lpd-gs' is taken by saddlepoint.methods.lpd_gs.LPDGS; give"):
        own("mine", "lpd-gs")
    with pytest.raises(sp.ProblemError, match=r"the name 'rapd' is taken by .*Restarted around"):
        own("mine", "rapd")
    assert type(make_method("lpd-gs")) is sp.LPDGS
    for name in ("auto", "agd"):
        with pytest.raises(sp.ProblemError, match=f"registered as '{name}', which means something else"):
            own("mine", name)


def test_the_same_definition_may_be_executed_again(as_before):
    first, second = own("notebook", "mine"), own("notebook", "mine")
    assert first is not second
    assert type(make_method("mine")) is second
    with pytest.raises(sp.ProblemError, match="the name 'mine' is taken by notebook"):
        own("elsewhere", "mine")


# -- options ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("anderson-condat-vu", "prox, window, memory"),
        ("anderson-imex", "stride, accuracy, coupling, window, memory"),
        ("catalyst-dippa", "inner, coupling, beta"),
        ("rapd", "fall"),
        ("dippa", "inner, coupling"),
        ("ogda", "eta"),
    ],
)
def test_an_unknown_option_lists_the_known_ones(name, known):
    with pytest.raises(sp.ProblemError, match=rf"method '{name}' got the options speed; it knows {known}$"):
        make_method(name, speed=3)


@pytest.mark.parametrize("name", method_names())
def test_every_listed_option_is_taken(name):
    made = make_method(name)
    for option, field in method_options(name).items():
        part = made
        while isinstance(getattr(part, "inner", None), sp.Method) and option not in {f.name for f in fields(part)[1:]}:
            part = part.inner
        value = getattr(part, option)
        assert make_method(name, **{option: value}) == made, (option, field.default)


def test_options_of_an_expression_reach_both_methods():
    made = make_method("anderson-imex", window=7, stride=3.0)
    assert made == sp.Anderson(sp.IMEX(3.0), 7)
    assert make_method("catalyst-dippa", inner="paper", beta=0.5) == sp.Catalyst(sp.DIPPA("paper"), 0.5)
    with pytest.raises(sp.ProblemError, match=r"window of anderson is 7\.5; expected a whole number from 1"):
        make_method("anderson-imex", window=7.5)


def test_wrappers_take_the_name_of_a_method():
    assert sp.Catalyst("dippa") == sp.Catalyst(sp.DIPPA())
    assert sp.Anderson("lpd-gs", window=5) == sp.Anderson(sp.LPDGS(), 5)
    assert sp.Restarted("ag-eg").label == "restarted-ag-eg"
    assert sp.Anderson("catalyst-dippa").label == "anderson-catalyst-dippa"
    with pytest.raises(sp.ProblemError, match="unknown method 'dipa'"):
        sp.Catalyst("dipa")
    with pytest.raises(sp.ProblemError, match=r"method is the class DIPPA; give an object, DIPPA\(\)"):
        sp.Catalyst(sp.DIPPA)
    with pytest.raises(sp.ProblemError, match="method is 3; expected a name or a Method object"):
        sp.Restarted(3)
    f, xs, _ = case("balanced")
    result = sp.solve(f, method=sp.Anderson("lpd-gs", window=5), tol=1e-8)
    assert result.solved
    np.testing.assert_allclose(result.x, xs, atol=1e-8)


@pytest.mark.parametrize("method", [
    sp.Anderson("pdhg"), sp.Catalyst("lpd-gs"), sp.Preconditioned(sp.Halpern("pdhg")), sp.Proximal(sp.Anderson("ogda")),
    sp.Refined("lpd-gs"), sp.Restarted("ag-eg"),
], ids=lambda method: method.label)  # fmt: skip
def test_the_name_that_a_result_shows_is_accepted(method):
    made = make_method(method.label)
    assert made == method
    assert make_method(made.label) == made


def test_every_method_that_auto_may_name_is_accepted():
    games = sp.Saddle(sp.Simplex(), sp.Simplex(), np.eye(3))
    terms = sp.Saddle(sp.Quadratic(1.0) + sp.L1(0.1), sp.Quadratic(1.0), np.eye(3))
    for f in (games, terms, case("balanced")[0], case("logistic")[0]):
        for method in choose(f).methods:
            assert type(make_method(method.label)) is type(method)
            assert make_method(method.label).label == method.label


def test_auto_cannot_be_wrapped_and_the_error_does_not_offer_it():
    for make in (sp.Catalyst, sp.Anderson, make_method):
        with pytest.raises(sp.ProblemError, match=r"auto is no single method, .* expected one of adapdm, ag-eg"):
            make("auto")


@pytest.mark.parametrize("name", ["anderson-", "anderson-nothing", "lpd-gs-pdhg", "nothing-pdhg", "-pdhg"])
def test_names_of_wrappers_around_nothing_are_refused(name):
    with pytest.raises(sp.ProblemError, match=f"unknown method '{name}'"):
        make_method(name)


@pytest.mark.parametrize(
    ("method", "option", "code", "said"),
    [
        ("anderson-condat-vu", "window=20", 0, ""),
        ("anderson-imex", "stride=2", 0, ""),
        ("dippa", "inner=paper", 0, ""),
        (
            "anderson-condat-vu",
            "window=20.5",
            2,
            "window of anderson is 20.5; expected a whole number from 1 to 1000000",
        ),
        ("anderson-condat-vu", "window=0", 2, "window of anderson is 0; expected a whole number from 1 to 1000000"),
        ("anderson-condat-vu", "window=many", 2, "window of anderson is 'many'; expected a whole number"),
        ("anderson-condat-vu", "windows=20", 2, "got the options windows; it knows prox, window"),
        ("dippa", "inner=3", 2, "inner of dippa is '3'; expected one of paper"),
        ("dippa", "inner", 2, "option 'inner'; expected name=value"),
        ("anderson-lpd", "window=5", 0, ""),
        ("nothing", "a=1", 2, "unknown method 'nothing'"),
    ],
)
def test_options_on_the_command_line_are_taken_or_refused_in_a_line(run, method, option, code, said):
    found, _, err = run("solve", "problem.toml", "--method", method, "--option", option)
    assert found == code, err
    assert len(err.strip().splitlines()) == (1 if said else 0)
    assert said in err


# -- discovery --------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_new_file_in_the_folder_is_a_method(tmp_path):
    """A copy of the package with one more file: nothing else is edited, and everything knows the method."""
    copy = tmp_path / "saddlepoint"
    subprocess.run(["cp", "-r", ROOT / "src/saddlepoint", copy], check=True)
    text = (copy / "methods/ogda.py").read_text().replace("class OGDA(", "class Brandnew(")
    (copy / "methods/brandnew.py").write_text(text)
    lines = [
        "import saddlepoint as sp",
        "assert sp.Brandnew.__module__ == 'saddlepoint.methods.brandnew'",
        "assert 'Brandnew' in sp.__all__",
        "assert 'brandnew' in {info.name for info in sp.methods()}",
        "assert 'brandnew' in {row.method for row in sp.predict(kx=10, ky=10, coupling=1).rows}",
        "f = sp.Saddle(sp.Quadratic(1.0), sp.Quadratic([1.0, 2.0]), [[1.0, 2.0]])",
        "assert 'popov1980' in sp.solve(f, method='brandnew').cite()",
        "from saddlepoint.uses.pages.explorer import explorer_page",
        "assert '\"brandnew\"' in explorer_page()",
    ]
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(lines)], env={"PYTHONPATH": str(tmp_path), "PATH": ""}, capture_output=True
    )
    assert done.returncode == 0, done.stderr.decode()


def test_every_class_is_public():
    for name in classes.__all__:
        assert getattr(sp, name) is getattr(classes, name)
        assert name in sp.__all__
    assert {"LPDGS", "DIPPA", "Catalyst", "Anderson", "Restarted", "AGEG"} <= set(classes.__all__)
    assert "Wrapper" not in classes.__all__
    assert len(set(sp.__all__)) == len(sp.__all__)


# -- files that are generated from it ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("sqrt(c max(c, sqrt(kx ky))) + 2 c", r"$\sqrt{c \max(c, \sqrt{\kappa_x \kappa_y})} + 2 c$"),
        ("gradients k, products k (1 + |A|/L)", r"gradients $k$, products $k (1 + \lVert A\rVert/L)$"),
        ("grad g: sqrt(kx), products c^(1/4)", r"$\nabla g$: $\sqrt{\kappa_x}$, products $c^{1/4}$"),
        ("1/gap; linear on sharp problems", r"$1/\mathrm{gap}$; linear on sharp problems"),
        ("a few factorisations", "a few factorisations"),
        ("N; far fewer on typical problems", "$N$; far fewer on typical problems"),
    ],
)
def test_formulas_of_the_table_are_mathematics(text, shown):
    assert as_markdown(text) == shown


def test_tables_in_pages_are_fresh():
    assert not tables.stale(), "run python tools/tables.py"


def test_a_stale_table_is_noticed(as_before, monkeypatch):
    own("mine", "mine")
    assert set(tables.stale()) == {"README.md", "docs/methods.md"}


def test_rows_of_predictions_are_those_of_the_classes():
    rows = {row.key: row for row in promised_rows()}
    assert rows["lpd-gs"].complexity is sp.LPDGS.complexity
    assert rows["sliding"].complexity.grad_g is not None
    assert "newton" not in rows
    assert [row.key for row in promised_rows()][-1] == "lower bound"
