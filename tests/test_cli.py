"""The command line: its output, its exit codes, and one line for invalid input."""

import io
import json
import subprocess
import sys

import numpy as np
import pytest
from command_line import PROBLEM

from saddlepoint.uses.bench.measure import chain_methods


def test_solve_prints_the_certificate(run):
    code, out, err = run("solve", "problem.toml")
    assert code == 0
    assert out.startswith("solved: certified distance")
    assert "certificate" in out
    assert err == ""


@pytest.mark.slow
def test_solve_prints_json_and_writes_the_answer_and_a_plot(run, tmp_path):
    words = ["--method", "dippa", "--option", "inner=certified", "--tol", "1e-9", "--json"]
    code, out, err = run("solve", "problem.toml", *words, "--out", "deep/r.npz", "--plot", "run.svg")
    assert (code, err) == (0, "")
    summary = json.loads(out)
    assert summary["solved"] is True
    assert summary["method"] == "dippa"
    assert summary["certificate"]["distance"] <= 1e-9
    with np.load(tmp_path / "deep/r.npz", allow_pickle=False) as saved:
        assert saved["x"].shape == (2,)
    assert "<svg" in (tmp_path / "run.svg").read_text()


def test_the_answer_is_written_by_the_ending_of_its_file(run, tmp_path):
    x = json.loads(run("solve", "problem.toml", "--json")[1])["x"]
    assert run("solve", "problem.toml", "--out", "r.csv")[0] == 0
    assert run("solve", "problem.toml", "--out", "r.json")[0] == 0
    head, *lines = (tmp_path / "r.csv").read_text().splitlines()
    assert head == "variable,index,value"
    assert lines[:2] == [f"x,{index},{value!r}" for index, value in enumerate(x)]
    assert json.loads((tmp_path / "r.json").read_text())["x"] == x
    code, _, err = run("solve", "problem.toml", "--out", "r.xlsx")
    assert code == 2
    assert "r.xlsx has an unknown ending; expected .npz, .json, .csv" in err


def test_a_dash_is_the_standard_input_or_output(run, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(PROBLEM.encode())))
    code, out, err = run("solve", "-", "--out", "-")
    assert code == 0
    assert [line.split(",")[:2] for line in out.splitlines()[1:]] == [["x", "0"], ["x", "1"], ["y", "0"], ["y", "1"]]
    assert err.startswith("solved: certified distance")
    assert "expected one of them" in run("solve", "problem.toml", "--out", "-", "--json")[2]


@pytest.mark.parametrize("term", ["", '[g.simple]\nkind = "l1"\nweight = 0.1\n'])
@pytest.mark.parametrize("limit", [8, 12])
def test_max_calls_counts_all_calls(run, tmp_path, limit, term):
    (tmp_path / "problem.toml").write_text(PROBLEM + term)
    summary = json.loads(run("solve", "problem.toml", "--max-calls", limit, "--tol", 1e-12, "--json")[1])
    assert summary["status"] == "out of calls"
    assert limit - 3 <= max(summary["all_calls"].values()) <= limit
    parts = [summary["calls"][name] + summary["setup_calls"][name] + summary["monitor_calls"] for name in ("A", "At")]
    assert parts == [summary["all_calls"][name] for name in ("A", "At")]


FLAT = PROBLEM.replace("l2 = 0.5", "l2 = 0.0").replace("[0.0, 1.0]", "[0.0, 0.0]")  # h is flat along a y with A y = 0
BOX = '[h.simple]\nkind = "box"\nlower = -1.0\nupper = 1.0\n'


@pytest.mark.parametrize(
    ("text", "words", "sentence"),
    [
        (FLAT, [], "for example l2 = 1e-3 in [h], or a larger P, or see to it that A and the L of g allow a proof"),
        (FLAT + BOX, [], "for example l2 = 1e-3 in [h], or a larger P, or ask for the duality gap with --gap 1e-6"),
        (FLAT, ["--gap", "1e-6"], '[h.simple] with kind = "box", lower = -1e3 and upper = 1e3'),
        (PROBLEM.replace("[1.0, 3.0]", "[[1.0, 2.0], [0.0, 1.0]]"), [], "P is not symmetric (it differs from its"),
        (PROBLEM.replace("[1.0, 3.0]", "-1.0"), [], "P is -1; expected"),
    ],
)
def test_messages_speak_of_problem_files(run, tmp_path, text, words, sentence):
    (tmp_path / "problem.toml").write_text(text)
    code, _, err = run("solve", "problem.toml", *words)
    assert code == 2
    assert sentence in err


def test_the_end_of_a_run_names_options(run):
    out = run("solve", "problem.toml", "--max-calls", 8, "--tol", 1e-12)[1]
    assert "are spent; raise --max-calls" in out
    out = run("solve", "problem.toml", "--tol", 1e-300, "--method", "dippa")[1]
    assert "raise --tol" in out


def test_the_exit_code_is_1_when_not_solved(run):
    code, out, _ = run("solve", "problem.toml", "--method", "aipfb", "--max-calls", 3)
    assert code == 1
    assert out.startswith("out of calls:")
    code, out, _ = run("solve", "problem.toml", "--tol", 1e-300, "--method", "dippa")
    assert code == 1
    assert out.startswith("stalled:")


def test_settings_on_the_line_replace_those_in_the_file(run, tmp_path):
    (tmp_path / "problem.toml").write_text(PROBLEM + '\n[solve]\nmethod = "aipfb"\ntol = 1e-3\n')
    assert json.loads(run("solve", "problem.toml", "--json")[1])["method"] == "aipfb"
    summary = json.loads(run("solve", "problem.toml", "--json", "--method", "dippa", "--tol", 1e-8)[1])
    assert summary["method"] == "dippa"
    assert summary["certificate"]["distance"] <= 1e-8


def test_a_refuted_constant_is_one_line(run, tmp_path):
    (tmp_path / "problem.toml").write_text(PROBLEM.replace("b = [1.0, 1.0]", "b = [1.0, 1.0]\nL = 1.5\nmu = 1.0"))
    code, out, err = run("solve", "problem.toml", "--method", "dippa", "--out", "r.npz")
    assert (code, out) == (2, "")
    assert err.startswith("error: L of g is too small")
    assert not (tmp_path / "r.npz").exists()


BAD = [
    (["solve", "gone.toml"], "error: file gone.toml does not exist"),
    (["solve", "problem.toml", "--method", "simplex"], "error: unknown method 'simplex'; the known ones are auto"),
    (["solve", "problem.toml", "--method", "dippa", "--option", "inner"], "expected name=value"),
    (["solve", "problem.toml", "--method", "dippa", "--option", "speed=3"], "it knows inner, coupling"),
    (["solve", "problem.toml", "--method", "dippa", "--option", "inner=fast"], "inner of dippa is 'fast'"),
    (["solve", "problem.toml", "--option", "inner=paper"], "options need a method"),
    (["solve", "problem.toml", "--method", "krylov"], "not known to be quadratic; use a method that does without"),
    (["solve", "problem.toml", "--tol", "-1"], "tol is -1.0; expected a positive number"),
    (["solve", "problem.toml", "--tol", "small"], "Invalid value for '--tol'"),
    (["solve", "problem.toml", "--tol", "small"], "; 'small' was given"),
    (["predict", "problem.toml", "--kx", "3"], "problem.toml and --kx were given; expected a file, or --kx, --ky and"),
    (["certify", "problem.toml", "answer.csv"], "answer.csv is not a .npz file; expected one with x and y"),
    (["certify", "problem.toml", "."], ". is not a .npz file"),
    (["report", "problem.toml"], "expected a file of result.save or solve --out"),
    (
        ["solve", "problem.toml", "--max-calls", "-3"],
        "max_calls is -3; expected a whole number >= 0, or a table of such",
    ),
    (["solve", "problem.toml", "--max-seconds", "0"], "max_seconds is 0.0"),
    (["solve", "problem.toml", "--memory-limit", "lots"], "--memory-limit is 'lots'; expected a size such as 2GB"),
    (["solve", "problem.toml", "--out", "."], ". is a folder; expected a file name"),
    (["solve", "problem.toml", "--out", "problem.toml/r.npz"], "problem.toml is not a folder"),
    (["solve", "problem.toml", "--speed", "3"], "No such option: --speed"),
    (["solve"], "Missing argument 'FILE'"),
    (["predict", "--kx", "10"], "ky is missing"),
    (["predict", "--kx", "0.1", "--ky", "1", "--coupling", "1"], "kx is 0.1"),
    (["predict", "gone.toml"], "does not exist"),
    (["figure", "--kx", "0.5", "--points", "0"], "kx is 0.5"),
    (["table", "--method", "simplex"], "unknown method 'simplex'"),
    (["table", "--quick", "--tol", "2"], "tol is 2"),
    (["figure", "--method", "simplex", "--out", "deep/f.png"], "unknown method 'simplex'"),
    (["figure", "--points", "-1"], "Invalid value for '--points'"),
    (["nonsense"], "No such command 'nonsense'"),
]


@pytest.mark.parametrize(("words", "sentence"), BAD, ids=[" ".join(words) for words, _ in BAD])
def test_bad_input_is_one_clear_line_and_writes_nothing(run, tmp_path, words, sentence):
    before = sorted(tmp_path.rglob("*"))
    code, out, err = run(*words)
    assert code == 2
    assert out == ""
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert sentence in err
    assert sorted(tmp_path.rglob("*")) == before


def test_predict_prints_a_table_and_json(run):
    words = ["predict", "--kx", "1e4", "--ky", "1e2", "--coupling", "300", "--tol", "1e-6"]
    code, out, _ = run(*words)
    assert code == 0
    for word in ("catalyst-dippa", "lpd-gs", "lower bound", "intermediate coupling", "recommended: "):
        assert word in out
    assert "N = 316.4: to shrink the distance by 1e-06, the hardest such problem forces 2186" in " ".join(out.split())
    prediction = json.loads(run(*words, "--json")[1])
    assert prediction["regime"] == "intermediate"
    assert [row["method"] for row in prediction["rows"]][-1] == "lower bound"
    assert prediction["forced_rounds"] == prediction["rows"][-1]["calls"] == 2186
    assert run("predict", "problem.toml")[0] == 0


def test_methods_are_listed(run):
    code, out, _ = run("methods")
    assert code == 0
    assert "catalyst-aipfb" in out
    table = json.loads(run("methods", "--json")[1])
    assert {"name", "oracle", "complexity", "reference"} == set(table[0])


@pytest.mark.slow
def test_the_demo_prints_certificates_and_draws(run, tmp_path):
    code, out, err = run("demo", "--tol", 1.0, "--plot", "pictures/demo.png")
    assert code == 0
    assert "certificate (" in out
    assert "proven by one query" in out
    for name in ("dippa", "catalyst-dippa", "aipfb", "catalyst-aipfb"):
        assert name in out
    assert "certified" in err  # the progress bars
    assert (tmp_path / "pictures/demo.png").stat().st_size > 10_000
    summary = json.loads(run("demo", "--tol", 1e6, "--json")[1])
    assert summary["dippa"]["solved"] is True


@pytest.mark.slow
def test_the_table_is_measured_and_printed(run):
    words = ["table", "--quick", "--tol", "1e-3", "--method", "aipfb", "--method", "dippa", "--max-seconds", "60"]
    code, out, _ = run(*words)
    assert code == 0
    for word in ("aipfb", "dippa", "lower bound", "calls per", "fitted on the same points"):
        assert word in out
    assert "extragradient" not in out
    table = json.loads(run(*words, "--json")[1])
    assert [row["method"] for row in table["rows"]] == ["aipfb", "dippa", "lower bound"]
    assert all(value is not None for row in table["rows"] for value in row["measured"])


@pytest.mark.slow
def test_every_method_has_a_row_of_the_table_when_there_is_no_time(run):
    """Every method has a row, with dashes in the place of numbers that were not measured."""
    code, out, _ = run("table", "--quick", "--methods", "all", "--max-seconds", "1e-9")
    assert code == 0
    for name in (*chain_methods(), "lower bound"):
        assert f"\n {name}" in out
    assert "– (" in out


@pytest.mark.slow
def test_the_figure_is_written(run, tmp_path):
    code, out, _ = run("figure", "--kx", 50, "--ky", 10, "--points", 2, "--tol", 1e-3)
    assert code == 0
    assert out == "written: figure1.png, figure1.svg\n"
    assert (tmp_path / "figure1.png").stat().st_size > 10_000
    svg = (tmp_path / "figure1.svg").read_text()
    words = (
        "catalyst-dippa",
        "lpd-gs",
        "lower bound, forced",
        "Wang and Li 2020",
        "intermediate",
        "strong",
        "coupling",
    )
    for word in words:
        assert word in svg
    data = json.loads(run("figure", "--points", 0, "--out", "bounds.png", "--json")[1])
    assert data["runs"] == []
    assert set(data["bounds"]) == {"Wang and Li 2020, Catalyst-AIPFB", "this paper (Catalyst-DIPPA)", "lower bound"}
    assert len(data["forced"]) == len(data["norms"])
    assert all(0 < forced < bound for forced, bound in zip(data["forced"], data["bounds"]["lower bound"], strict=True))


@pytest.mark.slow
def test_a_figure_shows_the_chosen_methods(run, tmp_path):
    words = ["figure", "--kx", 20, "--ky", 10, "--points", 2, "--tol", 1e-2, "--out", "f.svg"]
    data = json.loads(run(*words, "--json", "--method", "dippa", "--method", "aipfb")[1])
    assert [run["method"] for run in data["runs"]] == ["dippa"] * 2 + ["aipfb"] * 2
    assert all(run["calls"] >= run["forced"] / 3 for run in data["runs"])
    assert run(*words, "--methods", "all", "--max-seconds", "2")[0] == 0
    svg = (tmp_path / "f.svg").read_text()
    assert all(f">{name}" in svg for name in ("dippa", "catalyst-aipfb", "extragradient", "lpd"))


def test_help_lists_the_commands_and_the_version_is_printed(run):
    assert run("--version")[1].startswith("saddlepoint 0.")
    code, out, _ = run("--help")
    assert code == 0
    for command in ("demo", "solve", "predict", "methods", "table", "figure"):
        assert command in out
        assert run(command, "--help")[0] == 0


@pytest.mark.slow
def test_python_m_saddlepoint_is_the_command_line(tmp_path):
    (tmp_path / "problem.toml").write_text(PROBLEM)
    command = [sys.executable, "-m", "saddlepoint"]
    done = subprocess.run([*command, "check", "problem.toml"], cwd=tmp_path, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    done = subprocess.run([*command, "check", "gone.toml"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (2, "error: file gone.toml does not exist\n")


@pytest.mark.slow
def test_the_installed_program_solves_a_file_and_ends_with_its_exit_code(tmp_path):
    (tmp_path / "problem.toml").write_text(PROBLEM)
    command = [sys.executable, "-c", "from saddlepoint.commands import main; main()"]
    done = subprocess.run(
        [*command, "solve", "problem.toml"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    done = subprocess.run([*command, "solve", "gone.toml"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == "error: file gone.toml does not exist\n"


def test_without_the_extra_it_says_how_to_get_it(monkeypatch, capsys):
    import saddlepoint.commands as package

    monkeypatch.setitem(sys.modules, "typer", None)
    for name in ("app", "run"):
        monkeypatch.delitem(sys.modules, f"saddlepoint.commands.{name}")
    with pytest.raises(SystemExit) as end:
        package.main()
    assert end.value.code == 2
    assert "pip install 'saddlepoint[cli]'" in capsys.readouterr().err


@pytest.mark.slow
def test_game_reports_value_and_exploitability(run, tmp_path):
    code, out, err = run("game", "kuhn", "--json", "--strategies", "--plot", "kuhn.png")
    assert (code, err) == (0, "")
    summary = json.loads(out)
    assert summary["solved"] is True
    assert summary["shape"] == [13, 13]
    assert summary["value"] == pytest.approx(-1 / 18, abs=1e-6)
    assert summary["exploitability"] <= 1e-6
    assert len(summary["first"]) == len(summary["second"]) == 6
    assert (tmp_path / "kuhn.png").read_bytes().startswith(b"\x89PNG")
    code, out, err = run("game", "kuhn", "--method", "anderson-condat-vu", "--strategies", "--progress")
    assert code == 0
    assert "second player" in out
    assert "exploitability" in err  # the bar


def test_a_game_goes_on_from_its_checkpoint(run):
    words = ("game", "kuhn", "--method", "cfr", "--tol", "1e-3", "--checkpoint", "run.ckpt")
    code, _, err = run(*words, "--max-steps", "20")
    assert code == 1
    assert "the same command with --resume goes on from there" in err
    code, _, err = run(*words)
    assert code == 2
    assert "run.ckpt exists already; add --resume" in err
    code, out, _ = run(*words, "--resume", "--json")
    assert code == 0
    assert json.loads(out)["steps"] > 20


@pytest.mark.parametrize("method", [None, "cfr", "interior-point", "anderson-condat-vu"])
@pytest.mark.parametrize("most", [0, 1, 7, 40])
def test_a_game_keeps_to_its_calls(run, method, most):
    chosen = () if method is None else ("--method", method)
    code, out, _ = run("game", "kuhn", "--tol", "1e-13", "--max-calls", most, "--json", *chosen)
    found = json.loads(out)
    assert code == (0 if found["solved"] else 1)
    assert max(found["calls"].values(), default=0) <= most
    assert found["solved"] or "raise the limits" in found["message"]


def test_game_reads_a_file_and_refuses_wrong_input(run, tmp_path):
    from saddlepoint.apps import ExtensiveGame

    ExtensiveGame.load("kuhn").to_file(tmp_path / "mine.json")
    assert run("game", "mine.json", "--tol", "1e-3")[0] == 0
    (tmp_path / "bad.json").write_text("[]")
    for words, sentence in (
        (("nosuch",), "file nosuch does not exist, and it is not the name of a game; expected a file or kuhn or leduc"),
        (("bad.json",), "bad.json"),
        (("kuhn", "--method", "magic"), "unknown method 'magic'"),
        (("kuhn", "--tol", "-1"), "tol is -1.0; expected a positive number"),
        (("kuhn", "--max-calls", "-1"), "max_calls is -1; expected a whole number from 0"),
        (("kuhn", "--max-seconds", "-1"), "max_seconds is -1.0; expected a positive number"),
    ):
        code, out, err = run("game", *words)
        assert code == 2
        assert out == ""
        assert sentence in err
        assert len(err.splitlines()) == 1
    code, out, _ = run("game", "kuhn", "--tol", "1e-300", "--max-seconds", "0.2", "--json")
    assert code == 1
    assert json.loads(out)["solved"] is False
