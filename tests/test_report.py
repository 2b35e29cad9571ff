"""The HTML report: its content for every kind of result, its errors, and its behaviour in a browser."""

import csv
import io
import json
import math
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from browser import accessible
from command_line import PROBLEM

import saddlepoint as sp
from saddlepoint.commands import pages
from saddlepoint.ground.errors import ProblemError
from saddlepoint.problems.generators import random_logistic, random_quadratic
from saddlepoint.solving.result import History, Record, Status
from saddlepoint.theory.certificate import NO_CERTIFICATE, distance_bound, gap_bound
from saddlepoint.uses.pages.report import by_problem, report_page
from saddlepoint.uses.pages.report_data import MOST, as_csv, thinned, unique
from saddlepoint.uses.pages.report_sentences import proof, rounds, verdict
from saddlepoint.uses.pages.report_table import format_number

ROOT = Path(__file__).parent.parent
HOSTILE = "<script>document.title='hacked'</script>\"'><img src=x onerror=\"document.title='hacked'\">"


@pytest.fixture(scope="module")
def results():
    """Runs on one problem: two solved, one out of calls."""
    f = random_logistic(30, 20, 200.0, 20.0, 60.0)
    made = {name: sp.solve(f, method=name, tol=1e-6) for name in ("auto", "dippa")}
    return made | {"extragradient": sp.solve(f, method="extragradient", tol=1e-6, max_calls=1000)}


@pytest.fixture(scope="module")
def games():
    """Runs on an exact game, of which no distance can be proven."""
    f = sp.Saddle(sp.Simplex(), sp.Simplex(), np.random.default_rng(1).standard_normal((8, 6)))
    return {name: sp.solve(f, method=name, gap=1e-7) for name in ("auto", "halpern-pdhg")}


def test_the_words_about_runs_for_a_gap_claim_no_distance(games):
    said = "All 2 runs are solved: every answer is proven to have a duality gap of at most 1e-7."
    assert verdict(games) == said
    assert verdict({"a": games["auto"]}).startswith("Solved: the duality gap is proven to be at most ")
    text = " ".join(proof(games["auto"]))
    assert "duality gap ≤ <strong>" in text
    assert "because g and h are not strongly convex (μ = 0)" in text
    page = report_page(games)
    assert "of the saddle point" not in page
    assert "Smallest duality gap" in page
    assert "tolerance of the gap 1e-7" in page
    assert 'value="gap" checked' in page
    assert 'value="distance" checked' not in page


def test_the_distance_of_one_strongly_convex_player_is_in_the_report():
    f = sp.Saddle(sp.Quadratic(1.0), sp.Box(-1.0, 1.0), np.eye(3))
    result = sp.solve(f, np.ones(3), np.ones(3), gap=1e-6)
    assert verdict({"a": result}).startswith("Solved: the duality gap is proven to be at most ")
    assert ", and |x − x*| at most " in verdict({"a": result})
    assert "because h is not strongly convex (μ = 0)" in " ".join(proof(result))


def test_the_words_about_a_relative_distance_say_so(results):
    asked = {name: replace(r, provenance=r.provenance | {"target": "rtol"}) for name, r in results.items() if r.solved}
    assert verdict(asked).endswith("within 1e-6 times |x*| + |y*| of the saddle point.")


def odd_ones(result):
    """Unusual results: without a certificate, with an empty or a very long history, with texts of all kinds."""
    nothing = NO_CERTIFICATE._replace(Fx=math.nan, Fy=math.nan)
    unproven = NO_CERTIFICATE._replace(Fx=1e-7, Fy=2e-7)
    first = result.history[0]
    blank = [record._replace(distance=math.inf, gap=math.nan) for record in result.history]
    unknown = {"constants": {"mu_x": math.nan, "L_x": 1.0, "mu_y": 0.1, "L_y": 1.0, "norm": None}, "tol": 1e-6}
    deep = {}
    for _ in range(200):
        deep = {"deeper": deep}
    return {
        "diverged": replace(result, status=Status.DIVERGED, certificate=nothing, history=History(blank)),
        "uncertified": replace(
            result, status=Status.UNCERTIFIED, certificate=unproven, history=History(blank), provenance=unknown
        ),
        "one record": replace(result, history=History([first])),
        "no history": replace(result, history=History()),
        "zero": replace(result, history=History([first, first._replace(iteration=1, A=1, distance=0.0, gap=0.0)])),
        "long": replace(
            result, history=History([first._replace(iteration=k, A=k, distance=1 / k) for k in range(1, 9999)])
        ),
        "no provenance": replace(result, provenance={}, parameters={}, setup_calls={}),
        "nonsense": replace(
            result,
            calls={"grad_g": "many", "A": None},
            provenance={"tol": "small", "constants": [1], "versions": deep, "citations": {"a": 3}, "shape": None},
        ),
        HOSTILE: replace(
            result, method=HOSTILE, message=HOSTILE, provenance={HOSTILE: HOSTILE, "citations": {HOSTILE: HOSTILE}}
        ),
        "\ud800": result,
    }


# -- in Python --------------------------------------------------------------------------------------------------------


def test_numbers_are_written_as_people_read_them():
    values = [0.0, 1.0, 0.25, 12345.6, 1e-6, 6.2512e-07, 123456.0, -2.5e7, math.inf, math.nan, 1234567]
    assert [format_number(value) for value in values] == [
        "0", "1", "0.25", "12346", "1e-6", "6.25e-7", "1.23e5", "-2.5e7", "∞", "–", "1234567"
    ]  # fmt: skip


def test_names_are_unique():
    assert unique(["a", "b", "a", "a (2)", "a"]) == ["a", "b", "a (2)", "a (2) (2)", "a (3)"]


def test_a_long_history_is_thinned_but_saved_whole():
    records = [Record(k, k, k, k, 2 * k, k, 0.1 * k, 1.0 + (k - 5001) ** 2, 1.0) for k in range(20_000)]
    few = thinned(History(records))
    assert len(few) <= MOST
    assert (few[0], few[-1]) == (records[0], records[-1])
    assert records[5001] in few
    assert few == sorted(few)
    assert thinned(History(records[:MOST])) == records[:MOST]
    rows = list(csv.reader(io.StringIO(as_csv(History(records)))))
    assert rows[0] == list(Record._fields)
    assert [float(cell) for cell in rows[1235]] == list(records[1234])


def test_the_proof_has_the_numbers_of_the_theory(results):
    for result in results.values():
        certificate, constants = result.certificate, result.provenance["constants"]
        at = constants["mu_x"], constants["mu_y"], certificate.Fx, certificate.Fy
        assert distance_bound(*at) <= certificate.distance <= distance_bound(*at) + 1.000001 * certificate.rounding
        assert gap_bound(*at) <= certificate.gap
        said = " ".join(proof(result))
        for value in (*certificate[:7], constants["mu_x"]):
            assert format_number(value) in said
        assert "noise" not in said


def test_the_proof_names_the_measured_noise(results):
    result = results["auto"]
    noisy = replace(result, certificate=result.certificate._replace(noise_x=0.00123))
    assert f"noise, measured as up to {format_number(0.00123)} in the gradient of g." in " ".join(proof(noisy))


def test_the_verdict_says_which_runs_are_solved(results):
    solved = {name: results[name] for name in ("auto", "dippa")}
    assert verdict(solved) == "All 2 runs are solved: every answer is proven to be within 1e-6 of the saddle point."
    assert "2 of 3 runs are solved" in verdict(results)
    assert "Not solved: extragradient (out of calls)." in verdict(results)
    assert verdict({"a": results["auto"]}).startswith("Solved: the answer is proven to be within")
    odd = odd_ones(results["auto"])
    assert verdict({"a": odd["uncertified"]}).startswith("Not solved, uncertified: no distance is certified")
    failed = {"a": odd["diverged"], "b": results["extragradient"]}
    assert "None of the 2 runs is solved. The closest is b" in verdict(failed)
    assert "the strong convexity of g is not known" in proof(odd["uncertified"])[0]
    assert "not finite" in proof(odd["diverged"])[0]


def test_results_of_different_problems_are_in_groups_of_their_own(results):
    other = sp.solve(random_quadratic(5, 4, 10.0, 10.0, 3.0))
    groups = by_problem(results | {"other": other})
    assert [list(group.results) for group in groups] == [["auto", "dippa", "extragradient"], ["other"]]
    assert groups[1].heading == "Problem 2: 5 × 4"
    assert by_problem(results)[0].heading == ""


def test_whatever_a_result_holds_is_shown_and_never_executed(results):
    for name, result in odd_ones(results["auto"]).items():
        text = report_page({name: result, "another": results["auto"]}, title=HOSTILE, note=HOSTILE)
        text.encode("utf-8")
        assert "<script>document" not in text
        assert "<img" not in text


def test_the_answer_is_shown_with_what_is_proven():
    f = sp.Saddle(sp.Quadratic(1.0, [-3.0, 0.1, -0.2]) + sp.L1(0.5), sp.Quadratic(1.0), 0.1 * np.eye(3))
    found = sp.solve(f, tol=1e-9)
    text = report_page({"mine": found})
    assert "The answer: x, 3 numbers" in text
    assert f"{found.x[0]:.9g}" in text
    assert text.count("<td>it is zero</td>") == 2
    assert "it is off zero and its bounds" in text
    many = sp.solve(sp.Saddle(sp.Quadratic(1.0, np.arange(300.0)), sp.Quadratic(1.0), np.eye(300)), tol=1e-6)
    assert "The answer: x, the 200 largest of 300 numbers" in report_page({"many": many})


def test_there_must_be_a_result():
    with pytest.raises(ProblemError, match="no result"):
        report_page({})


# -- the commands -----------------------------------------------------------------------------------------------------


@pytest.fixture
def run(run, tmp_path):
    """The command line in a folder with a problem and results."""
    f = sp.Saddle(sp.Quadratic([1.0, 3.0], [1.0, 1.0]), sp.Quadratic(2.0), [[1.0, 2.0], [0.0, 1.0]])
    (tmp_path / "runs").mkdir()
    for name in ("lpd-gs", "dippa"):
        sp.solve(f, method=name).save(tmp_path / "runs" / f"{name}.npz")
    return run


def test_report_takes_files_and_folders(run, tmp_path):
    assert run("report", "runs", "runs/dippa.npz", "-o", "deep/r.html") == (0, "written: deep/r.html\n", "")
    text = (tmp_path / "deep/r.html").read_text()
    assert [f"<h3>{name}</h3>" in text for name in ("lpd-gs", "dippa", "dippa (2)")] == [True, True, True]
    assert run("report", "runs/dippa.npz", "--title", "Mine")[0] == 0
    assert "<h1>Mine</h1>" in (tmp_path / "report.html").read_text()


BAD = [
    (["report", "gone.npz"], "gone.npz is not a file"),
    (["report", "problem.toml"], "problem.toml is not a result that was saved"),
    (["report", "empty"], "the folder empty holds no .npz file"),
    (["report", "plain.npz"], "plain.npz is not a result that was saved"),
    (["report", "runs", "-o", "runs"], "runs is a folder; expected a file name"),
    (["report"], "Missing argument 'RESULT...'"),
    (["bench", "gone.toml"], "file gone.toml does not exist"),
    (["bench", "problem.toml", "--method", "simplex"], "unknown method 'simplex'"),
    (["bench", "problem.toml", "--method", "lpd", "--method", "dippa", "--tol", "-1"], "tol is -1.0"),
    (["bench", "problem.toml", "--max-seconds", "0"], "max_seconds is 0.0"),
    (["bench", "problem.toml", "--method", "krylov"], "krylov needs quadratic g and h"),
    (["bench", "problem.toml", "-o", "problem.toml/r.html"], "problem.toml is not a folder"),
]


@pytest.mark.parametrize(("given", "sentence"), BAD, ids=[" ".join(given) for given, _ in BAD])
def test_bad_input_is_one_clear_line_and_writes_nothing(run, tmp_path, given, sentence):
    (tmp_path / "empty").mkdir()
    np.savez(tmp_path / "plain.npz", x=np.zeros(3))
    before = sorted(tmp_path.rglob("*"))
    code, out, err = run(*given)
    assert (code, out) == (2, "")
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert sentence in err
    assert sorted(tmp_path.rglob("*")) == before


def test_bench_compares_and_leaves_out_what_cannot_run(run, tmp_path):
    code, out, err = run("bench", "problem.toml", "--tol", "1e-8")
    assert code == 0
    assert err.startswith(
        "left out: krylov needs quadratic g and h, but h (LogCosh) is not known to be quadratic; use a"
    )
    assert len(err.splitlines()) == 1
    text = (tmp_path / "report.html").read_text()
    for name in ("auto", "dippa", "apfb", "extragradient"):
        assert name in out
        assert f"<h3>{name}</h3>" in text
    assert "Left out: krylov needs" in text
    assert "proven to be within 1e-8" in text


@pytest.mark.slow
def test_bench_prints_json_and_says_by_its_exit_code_what_is_solved(run, tmp_path, monkeypatch):
    code, out, err = run("bench", "problem.toml", "--method", "dippa", "--method", "krylov", "--json", "-o", "b.html")
    summary = json.loads(out)
    assert code == 1  # krylov was asked for, and is not solved
    assert summary["runs"]["dippa"]["solved"]
    assert list(summary["left_out"]) == ["krylov"]
    assert summary["report"] == "b.html"
    assert "left out: krylov" in err
    assert run("bench", "problem.toml", "--method", "dippa", "--json")[0] == 0
    code, out, _ = run("bench", "problem.toml", "--methods", "all", "--json")
    summary = json.loads(out)
    assert code == 0  # auto is solved
    assert len(summary["runs"]) + len(summary["left_out"]) == 1 + len(sp.methods())
    assert run("bench", "problem.toml", "--max-calls", 3)[0] == 1

    solve = pages.solve
    monkeypatch.setattr(pages, "solve", lambda *a, **k: replace(solve(*a, **k), status=Status.INTERRUPTED))
    code, out, _ = run("bench", "problem.toml", "--json", "-o", "c.html")
    assert code == 130
    assert list(json.loads(out)["runs"]) == ["auto"]
    assert (tmp_path / "c.html").exists()


def test_bench_takes_the_settings_of_the_file(run, tmp_path):
    settings = '\n[solve]\nmethod = "aipfb"\noptions = { inner = "certified" }\ntol = 1e-3\n'
    (tmp_path / "problem.toml").write_text(PROBLEM + settings)
    runs = json.loads(run("bench", "problem.toml", "--json")[1])["runs"]
    assert list(runs)[:3] == ["auto", "aipfb", "dippa"]
    assert runs["aipfb"]["provenance"]["method"]["inner"] == "certified"
    assert runs["dippa"]["provenance"]["method"]["inner"] == "adaptive"
    assert {one["provenance"]["tol"] for one in runs.values()} == {1e-3}


def test_bench_with_tol_replaces_what_the_file_asks_for(run, tmp_path):
    (tmp_path / "problem.toml").write_text(PROBLEM + "\n[solve]\nrtol = 1e-9\n")
    code, out, _ = run("bench", "problem.toml", "--method", "dippa", "--tol", "1e-3", "--json")
    assert code == 0
    assert json.loads(out)["runs"]["dippa"]["provenance"]["tol"] == 1e-3


def test_bench_refuses_options_without_a_method(run, tmp_path):
    (tmp_path / "problem.toml").write_text(PROBLEM + '\n[solve]\noptions = { inner = "certified" }\n')
    code, out, err = run("bench", "problem.toml", "--method", "dippa")
    assert (code, out) == (2, "")
    assert err == "error: options need a method to belong to; add method to [solve]\n"


# -- in the browser ---------------------------------------------------------------------------------------------------


@pytest.fixture
def opened(page, results, tmp_path):
    """The report of `results` in a browser."""
    return opened_in(page, report_page(results), tmp_path)


def opened_in(page, text, folder):
    target = folder / "report.html"
    target.write_text(text, encoding="utf-8")
    page.goto(target.as_uri())
    return page


DRAWN = """() => {
    const picture = document.querySelector("figure.screen svg.chart");
    const ticks = (anchor, place) => [...picture.querySelectorAll(`text.tick[text-anchor=${anchor}]`)]
        .map((tick) => [Number(tick.getAttribute(place)), Number(tick.textContent)]);
    const curves = [...picture.querySelectorAll("path.curve[data-name]")]
        .map((curve) => [curve.dataset.name, curve.getAttribute("d")]);
    return {across: ticks("middle", "x"), up: ticks("end", "y"), curves};
}"""


def drawn(page):
    """The lines, read from pixels by the labels of the axes, of which the upright one is logarithmic: (n, 2) arrays."""
    seen = page.evaluate(DRAWN)
    (left, low), (right, high) = seen["across"][0], seen["across"][-1]
    (bottom, least), (top, most) = ((pixel - 4, math.log10(label)) for pixel, label in (seen["up"][0], seen["up"][-1]))
    lines = {}
    for name, path in seen["curves"]:
        x, y = np.array([list(map(float, point.split())) for point in path[1:].split("L")]).T
        powers = least + (y - bottom) / (top - bottom) * (most - least)
        lines[name] = np.column_stack([low + (x - left) / (right - left) * (high - low), 10.0**powers])
    return lines


COUNTS = {
    "rounds": lambda h: np.max([h.column(name) for name in ("grad_g", "grad_h", "A", "At")], axis=0),
    "gradients": lambda h: h.column("grad_g") + h.column("grad_h"),
    "products": lambda h: h.column("A") + h.column("At"),
    "passes": lambda h: h.column("passes"),
    "seconds": lambda h: h.column("seconds"),
}


def test_the_charts_show_the_histories_and_the_keyboard_chooses(opened, results):
    opened.locator(".log input").evaluate("box => { if (box.checked) box.click(); }")
    opened.locator("input[name=across-0]").first.focus()
    for k, (unit, count) in enumerate(COUNTS.items()):
        if k:
            opened.keyboard.press("ArrowRight")
            if opened.locator(".log input").is_checked():
                opened.locator(".log input").click()
                opened.locator(f"input[name=across-0][value={unit}]").focus()
        lines = drawn(opened)
        assert list(lines) == [*results, "tolerance 1.00e-6"]
        assert lines["tolerance 1.00e-6"][:, 1] == pytest.approx([1e-6, 1e-6], rel=0.02)
        assert unit in opened.locator("figure.screen figcaption").text_content()
        for name, result in results.items():
            truth = count(result.history)
            assert lines[name][:, 0] == pytest.approx(truth, abs=0.001 * max(truth.max(), 1e-3) + 2e-3)
            assert lines[name][:, 1] == pytest.approx(result.history.column("distance"), rel=0.02)
    opened.locator("input[name=of-0]").first.focus()
    opened.keyboard.press("ArrowRight")
    assert drawn(opened)["auto"][:, 1] == pytest.approx(results["auto"].history.column("gap"), rel=0.05)


def test_the_chart_reads_out_values_and_hides_lines(opened):
    opened.locator("figure.screen svg.chart").focus()
    opened.keyboard.press("ArrowLeft")
    assert "extragradient" in opened.locator("figure.screen .readout").text_content()
    opened.locator("figure.screen .legend button", has_text="extragradient").press("Enter")
    assert "extragradient" not in drawn(opened)


def test_the_axis_can_be_logarithmic(opened):
    opened.locator(".log input").check()
    assert [label for _, label in opened.evaluate(DRAWN)["across"]][:2] == [1, 10]
    opened.locator(".log input").uncheck()
    assert opened.evaluate(DRAWN)["across"][0][1] == 0


def column(table, k):
    return table.locator(f"tbody tr > :nth-child({k + 1})").all_text_contents()


def test_tables_sort_numbers_as_numbers(opened, results):
    table = opened.locator("table.sortable").first
    heads = table.locator("thead th").all_text_contents()
    calls = [str(rounds(result)) for result in results.values()]
    assert sorted(calls) != sorted(calls, key=int)  # otherwise the test of the order could not fail
    head = table.locator("thead th").nth(heads.index("rounds"))
    head.locator("button").click()
    assert column(table, heads.index("rounds")) == sorted(calls, key=int)
    assert head.get_attribute("aria-sort") == "ascending"
    opened.keyboard.press("Enter")
    assert column(table, heads.index("rounds")) == sorted(calls, key=int, reverse=True)
    assert head.get_attribute("aria-sort") == "descending"
    table.locator("thead th button").nth(heads.index("distance")).click()
    closest = sorted(results, key=lambda name: results[name].certificate.distance)
    assert column(table, 0) == closest
    assert [repr(results[name].certificate.distance) for name in closest] != sorted(
        repr(result.certificate.distance) for result in results.values()
    )
    table.locator("thead th button").first.press("Space")
    assert column(table, 0) == ["auto", "dippa", "extragradient"]
    assert head.get_attribute("aria-sort") is None


def test_what_is_missing_comes_last_both_ways(page, results, tmp_path):
    opened_in(page, report_page({"bad": odd_ones(results["auto"])["diverged"]} | results), tmp_path)
    table = page.locator("table.sortable").first
    heads = table.locator("thead th").all_text_contents()
    for _ in range(2):
        table.locator("thead th button").nth(heads.index("distance")).click()
        assert column(table, heads.index("distance"))[-1] == "none"


def test_details_open_by_link_and_by_key_and_hold_everything(opened, results):
    second = opened.locator("#run-2")
    assert not second.locator("pre").is_visible()
    opened.locator("table a", has_text="dippa").click()
    assert second.locator("pre").is_visible()
    said = second.text_content()
    result = results["dippa"]
    for word in (result.message, format_number(result.certificate.distance), np.__version__, "adaptive", "xie2021"):
        assert word in said
    assert second.locator("pre").text_content() == result.cite()
    second.locator(".history summary").press("Enter")
    assert second.locator(".history tbody tr").count() == len(result.history)
    opened.locator("#run-1 > summary").press("Enter")
    assert opened.locator("#run-1 pre").is_visible()


def test_citations_are_copied_and_histories_are_saved(opened, results):
    opened.context.grant_permissions(["clipboard-read", "clipboard-write"])
    opened.locator("#run-1 > summary").click()
    opened.locator("#run-1 button.copy").click()
    opened.locator("#run-1 .said", has_text="copied").wait_for()
    assert opened.evaluate("navigator.clipboard.readText()") == results["auto"].cite()
    with opened.expect_download() as waiting:
        opened.locator("#run-1 button.save").click()
    assert waiting.value.suggested_filename == "auto.csv"
    saved = np.loadtxt(waiting.value.path(), delimiter=",", skiprows=1)
    assert np.array_equal(saved, results["auto"].history.array)


def test_the_button_changes_the_colours(opened):
    background = "getComputedStyle(document.body).backgroundColor"
    button = opened.locator("button.theme")
    for name, colour in (("light", "rgb(255, 255, 255)"), ("dark", "rgb(20, 23, 28)")):
        button.press("Enter")
        assert button.text_content() == f"Colours: {name}"
        assert opened.evaluate(background) == colour


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_core_finds_no_barriers(opened, scheme):
    opened.emulate_media(color_scheme=scheme)
    opened.evaluate("document.querySelectorAll('details.run, #run-1 details').forEach((one) => { one.open = true; })")
    accessible(opened)


WIDTHS = "[document.documentElement.scrollWidth, document.documentElement.clientWidth]"


def test_on_a_phone_only_tables_scroll(opened):
    opened.set_viewport_size({"width": 390, "height": 800})
    opened.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    wide, there = opened.evaluate(WIDTHS)
    assert wide <= there == 390
    assert opened.locator("figure.screen svg.chart").bounding_box()["width"] <= 390
    box = "document.querySelector('.scroll:has(.sortable)')"
    assert opened.evaluate(f"{box}.scrollWidth > {box}.clientWidth")


def test_on_paper_everything_is_open(opened, results):
    opened.emulate_media(media="print", color_scheme="dark")
    assert opened.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    for k in range(1, len(results) + 1):
        opened.locator(f"#run-{k} pre").wait_for(state="visible")
    assert opened.locator(".paper figure svg.chart:visible").count() == len(COUNTS)
    assert opened.locator(".controls:visible").count() == 0
    assert opened.locator("table.sortable").first.is_visible()
    assert len(opened.pdf()) > 10_000
    opened.emulate_media(media="screen")
    opened.locator("#run-1 pre").wait_for(state="hidden")


def test_unusual_results_are_shown_and_never_executed(page, results, tmp_path):
    odd = odd_ones(results["auto"])
    long = odd.pop("long")
    opened_in(page, report_page(odd, title="All of them"), tmp_path)
    assert page.title() == "All of them"  # nothing was executed
    assert "diverged" in page.locator(".none").first.text_content()
    page.evaluate("document.querySelectorAll('details.run').forEach((one) => { one.open = true; })")
    assert page.locator("h3", has_text="<script>").count() == 1
    accessible(page)
    for name in ("no history", "diverged"):
        opened_in(page, report_page({name: odd[name]}), tmp_path)
        assert page.locator("h1").text_content() == f"Report on {name}"
        assert page.locator("figure.screen svg").count() == 0
    opened_in(page, report_page({"long": long}), tmp_path)
    assert len(drawn(page)["long"]) <= MOST
    assert page.locator(".history summary").text_content() == f"History, {MOST - 1} of 9998 records"


# -- the page of the benchmarks ---------------------------------------------------------------------------------------

MEASURED = [*(ROOT / "benchmarks" / "results").glob("*.md"), ROOT / "benchmarks" / "peers" / "RESULTS.md"]


@pytest.mark.parametrize("source", MEASURED, ids=lambda path: path.stem)
def test_a_measured_page_names_the_command_that_made_it(source):
    assert "\n\nBy `python " in source.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def bench_html(tmp_path_factory):
    target = tmp_path_factory.mktemp("bench") / "bench.html"
    command = [sys.executable, str(ROOT / "benchmarks" / "report.py"), str(target), "--quick"]
    subprocess.run(command, check=True, capture_output=True)
    return target


def test_the_page_of_the_benchmarks_has_every_measured_table(bench_html, page):
    page.goto(bench_html.as_uri())
    measured = page.locator("details.measured")
    assert measured.count() == len(MEASURED)
    page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    for k in range(len(MEASURED)):
        assert measured.nth(k).locator("p").first.text_content().startswith("By python ")
    lines = [line for source in MEASURED for line in source.read_text().splitlines() if line.startswith("|")]
    rules = [line for line in lines if set(line) <= set("|-: ")]
    assert page.locator(".measured table.sortable tbody tr").count() == len(lines) - 2 * len(rules)
    table1 = measured.filter(has=page.locator("h3", has_text="Table 1, measured"))
    table1.locator("thead button").nth(1).click()
    numbers = [float(cell.split()[0]) for cell in column(table1, 1) if cell[0] in "-.0123456789"]
    assert numbers == sorted(numbers)
    assert len(numbers) > 10
    page.set_viewport_size({"width": 390, "height": 800})
    wide, there = page.evaluate(WIDTHS)
    assert wide <= there
