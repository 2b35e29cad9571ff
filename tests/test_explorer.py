"""The explorer: formulas that are translated from Python to JavaScript, and the page in a browser."""

import json
import math
import re
import shlex
from functools import lru_cache
from itertools import product

import numpy as np
import pytest
from browser import accessible

import saddlepoint as sp
from saddlepoint.ground.errors import ProblemError
from saddlepoint.methods.registry import promised_rows
from saddlepoint.solving.recommendation import recommend
from saddlepoint.theory.table1 import LOWER_BOUND, TABLE1, regime
from saddlepoint.uses.pages import explorer
from saddlepoint.uses.pages.explorer import explorer_page
from saddlepoint.uses.pages.formulas import as_html
from saddlepoint.uses.pages.javascript import TranslationError, as_function, javascript

# -- the translator ----------------------------------------------------------------------------------------------------

TEXT, LIMIT, HUGE, LIST = "a </script> `b` ${c}", 2.5, 2**60, [1.0]


def is_large(x: float) -> bool:
    return x >= LIMIT or (not x > -LIMIT)


def larger(x: float, y: float = 1.5) -> float:
    """A formula with chained comparisons, unpacking, powers and a conditional expression."""
    a, b = x + y, x - y
    a, b = b, a
    if 0.0 < a <= b < 100.0:
        total: float = -(a**2) - -b
    elif is_large(x):
        total = math.hypot(a, b) ** -0.5
    else:
        return 3 if x == 1.0 else math.inf
    return max(total, a, 1e-300) - min(a, b) / 3 + abs(x) * math.pi


def described(x: float) -> tuple[str, str, str]:
    return TEXT, f"{x:.3g} `of` ${x:g} \\ and {x:.12g}", f"<{x:.0g}>"


def everything(x: float) -> tuple[float, float, float]:
    return math.asinh(x) + math.log1p(x) + math.exp(-x), math.ceil(x) + math.floor(x), math.pow(x, 0.25) + math.log(x)


def test_a_function_is_translated_into_javascript():
    assert as_function(is_large) == ("function is_large(x) {\n  return ((x >= LIMIT) || (!(x > (-LIMIT))));\n}")


def test_what_a_function_calls_comes_along():
    code = javascript("T", larger)
    assert code.startswith("const T = (() => {")
    assert "const LIMIT = 2.5;" in code
    assert code.index("function is_large(x)") < code.index("function larger(x, y = 1.5)")
    assert "return { is_large, larger };" in code


def test_no_text_ends_the_script():
    assert "</" not in javascript("T", described)


def ran(page, call, *functions):
    return page.evaluate(f"() => {{ {javascript('T', *functions)} return {call}; }}")


def test_translated_functions_compute_the_same(page):
    points = [-3.0, -0.5, 0.0, 0.3, 1.0, 1.6, 2.0, 2.5, 40.0, 98.0, 1e10]
    found = ran(page, f"{points}.map((x) => [T.larger(x), T.larger(x, 0.25), T.is_large(x)].map(String))", larger)
    for x, (one, other, large) in zip(points, found, strict=True):
        assert float(one) == pytest.approx(larger(x), rel=1e-14)
        assert float(other) == pytest.approx(larger(x, 0.25), rel=1e-14)
        assert large == str(is_large(x)).lower()
    above = [0.01, 0.5, 1.0, 7.3, 1e6]
    np.testing.assert_allclose(
        ran(page, f"{above}.map(T.everything)", everything), [everything(x) for x in above], rtol=1e-14
    )


def test_numbers_in_texts_are_pythons(page):
    rng = np.random.default_rng(0)
    ties = [1.125, 1.375, 0.5, 1.5, 2.5, 1022.5, 1e5 + 0.5, 0.0009765625, 9995.0, 9985.0, 99.95, 999.5, 99.5, 2**-20]
    some = [0.0, 1.0, 10.0, 100.0, 1e3, 1e-4, 1e-5, 123456.0, 1234567.0, 1e16, 1e22, 1e100, 1e-300, 5e-324]
    values = [*ties, *some, *(10.0 ** rng.uniform(-12, 12, 300)).tolist()]
    values += [-value for value in values]
    assert ran(page, f"{values}.map(T.described)", described) == [list(described(value)) for value in values]
    odd = ran(page, "[Infinity, -Infinity, NaN].map((x) => T.described(x)[2])", described)
    assert odd == ["<inf>", "<-inf>", "<nan>"]


def loops(x):
    while x > 1.0:
        x = x - 1.0
    return x


def counts(x):
    return [x for _ in range(3)]


def rounds_down(x):
    return x // 2.0


def remains(x):
    return x % 2.0


def counts_as_true(x):
    return 1.0 if x else 2.0


def counts_as_one(x):
    return (x or 1.0) + 1.0


def calls_by_name(x):
    return larger(x, y=2.0)


def unpacks(x):
    return max(*(x, x))


def writes_plainly(x):
    return f"{x}"


def writes_otherwise(x):
    return f"{x:>9.3g}"


def writes_itself(x):
    return f"{x!r}"


def compares_identity(x):
    return 1.0 if x is None else 2.0


def compares_tuples(x):
    return 1.0 if (x, 1.0) == (1.0, x) else 2.0


def takes_any(*x):
    return 1.0


def ends_silently(x):  # noqa: RET503
    if x > 1.0:
        return x


def returns_nothing(x):
    return


def raises(x):
    if x > 1.0:
        raise ProblemError("large")
    return x


def takes_the_largest(x):
    return max(x)


def takes_a_base(x):
    return math.log(x, 2.0)


def goes_unknown(x):
    return math.erf(x)


def calls_unknown(x):
    return float(x)


def names_unknown(x):
    return x + y_of_nowhere  # noqa: F821


def names_a_list(x):
    return LIST


def names_the_huge(x):
    return x + HUGE


def writes_the_huge(x):
    return x + 9007199254740993


def repeats(x):
    return "ab" * x


def uses_a_word(new):
    return new


def assigns_an_item(x):
    x[0] = 1.0
    return x


def adds_in_place(x):
    x += 1.0
    return x


@lru_cache
def is_decorated(x):
    return x


def closure(x):
    return lambda y: x + y


def inside():
    outer = 2.0

    def function(x):
        return x + outer

    return function


@pytest.mark.parametrize(
    ("function", "named"),
    [
        (loops, "while x > 1.0"),
        (counts, "for _ in range"),
        (rounds_down, "x // 2.0"),
        (remains, "x % 2.0"),
        (counts_as_true, "`x`"),
        (counts_as_one, "`x`"),
        (calls_by_name, "y=2.0"),
        (unpacks, "unpacks arguments"),
        (writes_plainly, "f-string"),
        (writes_otherwise, "f-string"),
        (writes_itself, "f-string"),
        (compares_identity, "x is None"),
        (compares_tuples, "=="),
        (takes_any, "arguments"),
        (ends_silently, "without `return`"),
        (returns_nothing, "`return`"),
        (raises, "raise"),
        (takes_the_largest, "single argument"),
        (takes_a_base, "base"),
        (goes_unknown, "math.erf"),
        (calls_unknown, "`float`"),
        (names_unknown, "y_of_nowhere"),
        (names_a_list, "LIST"),
        (names_the_huge, "HUGE"),
        (writes_the_huge, "9007199254740993"),
        (repeats, "'ab' * x"),
        (uses_a_word, "'new'"),
        (assigns_an_item, "x[0]"),
        (adds_in_place, "x += 1.0"),
        (is_decorated, "def"),
        (closure, "lambda"),
        (inside(), "closures"),
        (closure(1.0), "def"),
        (max, "def"),
    ],
)
def test_what_it_cannot_translate_it_refuses(function, named):
    with pytest.raises(TranslationError, match=re.escape(named)):
        javascript("T", function)


def test_a_refusal_says_where():
    line = loops.__code__.co_firstlineno + 1
    with pytest.raises(
        TranslationError, match=rf"test_explorer\.loops, line {line}: .* cannot be translated to JavaScript"
    ):
        javascript("T", loops)


def test_one_name_means_one_thing():
    def one(x):
        return x

    first, one = one, None

    def one(x):
        return -x

    with pytest.raises(TranslationError, match="two things"):
        javascript("T", first, one)


# -- what the page computes --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    path = tmp_path_factory.mktemp("explorer") / "explorer.html"
    path.write_text(explorer_page(), encoding="utf-8")
    return path.as_uri()


@pytest.fixture
def opened(page, address):
    page.goto(address)
    return page


def settings():
    """Random arguments, and every combination of extreme ones."""
    rng = np.random.default_rng(1)
    for _ in range(150):
        kx, ky = 10.0 ** rng.uniform(0, 9, 2)
        c, tol = 10.0 ** rng.uniform(-4, 9), 10.0 ** rng.uniform(-15, -0.1)
        g, h, A = 10.0 ** rng.uniform(-2, 3, 3)
        yield kx, ky, c, tol, g, h, A
    for kx, ky, c, tol in product(
        (1.0, 1.0 + 1e-9, 7.0, 1e12), (1.0, 4.0, 1e12), (0.0, 1e-9, 1.0, 1e12), (0.999, 1e-300)
    ):
        yield kx, ky, c, tol, 1.0, 100.0, 1.0


def expected(kx, ky, c, tol, g, h, A):
    prediction = sp.predict(kx=kx, ky=ky, coupling=c, tol=tol)
    name, why = recommend(kx, ky, c, g, h, A)
    rows = {}
    for promise in prediction.rows:
        nats = math.log(1.0 / tol)
        of_g, of_h, products = nats * promise.grad_g, nats * promise.grad_h, nats * promise.products
        gradients, cost = max(of_g, of_h), of_g * g + of_h * h + products * 2 * A
        if promise.method == LOWER_BOUND:
            gradients = products = promise.calls
            cost = prediction.forced_rounds * min(g, h, A)
        rows[promise.method.replace(" ", "-")] = promise.order, gradients, products, cost
    for row in TABLE1:
        if (row.key, row.order) not in {(one.key, one.order) for one in promised_rows()}:
            order = row.order(kx, ky, c)
            calls = order * math.log(1.0 / tol)
            cost = None if row.key == LOWER_BOUND else calls * (g + h + 2 * A)
            rows[row.key.replace(" ", "-") + "-table-1"] = order, calls, calls, cost
    return (name, why, prediction.regime), (prediction.N, prediction.forced_rounds), rows


def test_every_value_is_pythons(opened):
    given = list(settings())
    keys = ("kx", "ky", "c", "tol", "g", "h", "A")
    states = [dict(zip(keys, map(float, one), strict=True)) for one in given]
    answers = opened.evaluate("(states) => states.map(computed)", states)
    for one, answer in zip(given, answers, strict=True):
        words, numbers, rows = expected(*one)
        assert (answer["method"], answer["why"], answer["regime"]) == words, one
        assert (answer["N"], answer["forced"]) == pytest.approx(numbers, rel=1e-12), one
        assert {row["id"] for row in answer["rows"]} == set(rows)
        for row in answer["rows"]:
            order, gradients, products, cost = rows[row["id"]]
            assert row["order"] == pytest.approx(order, rel=1e-12), (one, row["id"])
            assert row["gradients"] == pytest.approx(gradients, rel=1e-12), (one, row["id"])
            assert row["products"] == pytest.approx(products, rel=1e-12), (one, row["id"])
            assert row["cost"] == (cost and pytest.approx(cost, rel=1e-12)), (one, row["id"])


def test_the_page_has_every_row_of_the_table(opened):
    ids = opened.evaluate("DATA.rows.map((row) => row.id)")
    assert len(ids) == len(set(ids)) == len(explorer.explorer_rows())
    marked = opened.evaluate("DATA.rows.filter((row) => row.source === 'Table 1').map((row) => row.formula)")
    assert marked == [as_html(row.formula) for row in TABLE1]
    assert all(formula.startswith("<math>") for formula in marked)
    assert opened.locator("#table td.formula math").count() >= len(ids) - 5  # a few are words


def test_theorems_have_the_numbers_of_the_paper(opened):
    for name, number in {"dippa": 8, "catalyst-dippa": 9, "aipfb": 12, "catalyst-aipfb": 15}.items():
        assert f"Theorem {number}" in opened.locator(f"#table tr[data-id={name}] th .badge").all_inner_texts()
    badges = opened.locator("#table th .badge").all_inner_texts()
    assert sum(badge.startswith("Theorem") for badge in badges) == 4


@pytest.mark.parametrize(("kx", "ky"), [(1000.0, 30.0), (1e8, 1.0), (5.0, 7e5), (1.0, 1.0)])
def test_the_borders_are_those_of_the_regimes(kx, ky):
    weak, strong = explorer.weak_until(kx, ky), explorer.strong_from(kx, ky)
    assert regime(kx, ky, 0.999 * weak) == "weak" != regime(kx, ky, 1.001 * weak)
    assert regime(kx, ky, 1.001 * max(weak, strong)) == "strong"
    if strong > weak:
        assert regime(kx, ky, 0.999 * strong) == "intermediate"
    assert explorer.coupling_of(explorer.norm_of(weak, kx, ky), kx, ky) == pytest.approx(weak, rel=1e-15)


def test_the_page_is_small_and_whole():
    text = explorer_page()
    assert len(text.encode()) < 100_000
    assert "<!-- " not in text.split("<script")[0]
    assert not re.search(r"""(?:src|href)=["'](?!#)|https?://(?!www\.w3\.org/2000/svg)""", text)


# -- the page --------------------------------------------------------------------------------------


def displayed(page):
    """Everything on the page that a number changes: curves, table, mark, field and words."""
    return page.evaluate(
        """() => ({
            curves: [...document.querySelectorAll("#figure path[data-name]")].map((one) => one.outerHTML).join(),
            mark: document.querySelector("#figure line.mark").getAttribute("x1"),
            table: document.querySelector("#table tbody").textContent,
            setting: document.getElementById("setting").textContent,
            command: document.getElementById("by-command").textContent,
        })"""
    )


def cell(page, row, column):
    return page.inner_text(f'#table tr[data-id="{row}"] td.{column}')


def settle(page):
    """Wait until the address has followed, and return its fragment."""
    until(page, "location.hash.slice(1) === toHash()")
    return page.evaluate("location.hash")


def until(page, condition):
    """Playwright's own way to wait needs `eval`, which the page's policy forbids."""
    for _ in range(3000):
        if page.evaluate(condition):
            return
        page.wait_for_timeout(20)
    raise AssertionError(f"it never came to {condition}")


def test_it_begins_with_the_papers_figure(opened):
    lines = opened.eval_on_selector_all("#figure path[data-name]", "all => all.map((one) => one.dataset.name)")
    assert {"catalyst-dippa", "catalyst-aipfb", "lower bound"} <= set(lines)
    assert opened.eval_on_selector_all("#figure .band-name", "all => all.map((one) => one.textContent)") == [
        "weak",
        "intermediate",
        "strong",
    ]
    assert opened.inner_text("#regime") == "intermediate"
    assert opened.locator("#table tbody tr").count() == len(explorer.explorer_rows())
    assert opened.locator("#table tr.recommended").get_attribute("data-id") == opened.inner_text("#method")


def test_the_curve_passes_where_the_formula_says(opened):
    """The path of a line at the mark, in pixels, is the value in the table."""
    at_mark, value = opened.evaluate(
        """() => {
            const figure = document.getElementById("figure"), { spec } = figure.drawn;
            const axes = drawChart(figure, spec);
            const mark = Number(figure.querySelector("line.mark").getAttribute("x1"));
            const points = figure.querySelector('path[data-name="catalyst-dippa"]').getAttribute("d").slice(1)
                .split("L").map((one) => one.split(" ").map(Number));
            const k = points.findIndex(([x]) => x >= mark);
            const [[a, u], [b, v]] = [points[k - 1], points[k]];
            const row = ROWS.find((one) => one.id === "catalyst-dippa");
            return [axes.up.back(u + (v - u) * (mark - a) / (b - a)), promise(row, settled(state)).products];
        }"""
    )
    assert at_mark == pytest.approx(value, rel=2e-3)


@pytest.mark.parametrize("key", ["kx", "ky", "norm", "tol"])
def test_a_slider_moves_everything_by_keyboard(opened, key):
    before = displayed(opened)
    opened.focus(f"#{key}-slider")
    opened.keyboard.press("ArrowRight")
    after = displayed(opened)
    changes = {name for name in before if before[name] != after[name]}
    assert changes >= {"table", "setting", "command"}
    # The curves are drawn against |A|: it moves the mark on the axis, and the other sliders move the curves.
    assert ("curves" in changes) == (key != "norm")
    assert ("mark" in changes) == (key == "norm")
    assert opened.evaluate("document.activeElement.id") == f"{key}-slider"
    assert opened.get_attribute(f"#{key}-slider", "aria-valuetext") == opened.input_value(f"#{key}-field")


def test_a_slider_moves_everything_by_mouse(opened):
    before = displayed(opened)
    box = opened.locator("#kx-slider").bounding_box()
    x, y = box["x"], box["y"] + box["height"] / 2
    opened.mouse.move(x + 0.4 * box["width"], y)
    opened.mouse.down()
    opened.mouse.move(x + 0.6 * box["width"], y, steps=4)
    opened.mouse.move(x + 0.75 * box["width"], y)
    opened.mouse.up()
    after = displayed(opened)
    assert all(before[name] != after[name] for name in ("curves", "table", "mark", "setting", "command"))
    assert 1e5 < float(opened.input_value("#kx-field")) < 1e7


def test_the_coupling_slider_goes_along_the_axis(opened):
    places = []
    for _ in range(3):
        places.append((float(displayed(opened)["mark"]), float(opened.input_value("#c-field"))))
        opened.focus("#norm-slider")
        opened.keyboard.press("PageUp")
    assert places == sorted(places)
    assert places[0] < places[-1]


def test_a_click_in_the_figure_sets_the_coupling(opened):
    box = opened.locator("#figure svg.chart").bounding_box()
    opened.mouse.click(box["x"] + 0.7 * box["width"], box["y"] + 0.5 * box["height"])
    mark = opened.locator("#figure line.mark").bounding_box()
    assert mark["x"] == pytest.approx(box["x"] + 0.7 * box["width"], abs=2.0)
    assert opened.inner_text("#regime") == "strong"


def test_fields_take_exact_numbers(opened):
    opened.fill("#kx-field", "1e4")
    opened.fill("#ky-field", "100")
    opened.fill("#c-field", "300")
    opened.fill("#tol-field", "1e-8")
    assert opened.inner_text("#by-command") == "saddlepoint predict --kx 10000 --ky 100 --coupling 300 --tol 1e-8"
    assert opened.input_value("#norm-field") == "0.3"
    promised = {row.method: row.calls for row in sp.predict(kx=1e4, ky=1e2, coupling=300, tol=1e-8).rows}
    assert cell(opened, "catalyst-dippa", "products") == f"{promised['catalyst-dippa']:.0f}"
    opened.fill("#kx-field", "100")  # c was given last, and stays
    assert "--coupling 300 " in opened.inner_text("#by-command")
    assert opened.input_value("#norm-field") == "3"
    opened.fill("#norm-field", "0.5")
    opened.fill("#kx-field", "400")  # |A|/L changes with it
    assert "--coupling 100 " in opened.inner_text("#by-command")


def test_bad_numbers_are_answered_in_a_sentence(opened):
    kappa, cost = "a number from 1 to 1e15", "a number from 1e-9 to 1e9"
    for key, text, answer in (
        ("kx", "abc", f"“abc” is not a number; expected {kappa}, such as 1000."),
        ("kx", "0.5", f"0.5 is too small; expected {kappa}."),
        ("ky", "1e99", f"1e99 is too large; expected {kappa}."),
        ("ky", "", f"The field is empty; expected {kappa}, such as 30."),
        ("c", "-1", "-1 is too small; expected a number from 0 to 1e15."),
        ("tol", "1", "1 is too large; expected a number from 1e-300 to 0.999."),
        ("norm", "0,5", "“0,5” is not a number; expected a number from 0 to 1e15, such as 0.3."),
        ("g", "0", f"0 is too small; expected {cost}."),
        ("A", "<b>NaN</b>", f"“<b>NaN</b>” is not a number; expected {cost}, such as 1."),
    ):
        before = displayed(opened)
        opened.fill(f"#{key}-field", text)
        assert opened.inner_text(f"#{key}-wrong") == answer
        assert opened.get_attribute(f"#{key}-field", "aria-invalid") == "true"
        opened.focus("#reset")
        assert displayed(opened) == before
        assert opened.input_value(f"#{key}-field") == text  # still there to correct
        opened.fill(f"#{key}-field", "0.7" if key in ("tol", "norm", "c") else "2")
        assert not opened.locator(f"#{key}-wrong").is_visible()
        assert displayed(opened) != before
        opened.click("#reset")


def test_a_slider_answers_for_its_field(opened):
    opened.fill("#kx-field", "x")
    opened.focus("#ky-slider")
    opened.keyboard.press("ArrowRight")
    assert opened.input_value("#kx-field") == "x"
    opened.focus("#kx-slider")
    opened.keyboard.press("ArrowRight")
    assert float(opened.input_value("#kx-field")) > 1000
    assert opened.inner_text("#kx-wrong") == ""


def test_extremes_are_drawn(opened):
    for kx, ky, c in [
        ("1", "1", "0"),
        ("1e15", "1", "0"),
        ("1e15", "1e15", "1e15"),
        ("1", "1", "1e15"),
        ("1", "1e12", "1e-9"),
    ]:
        opened.fill("#kx-field", kx)
        opened.fill("#ky-field", ky)
        opened.fill("#c-field", c)
        seen = displayed(opened)
        assert seen["curves"]
        assert "NaN" not in json.dumps(seen)
        assert opened.evaluate("document.getElementById('figure').querySelectorAll('line.mark').length") == 1
        assert opened.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_costs_change_the_recommendation(opened):
    """Expensive gradients: the table's cheapest slides, the recommendation changes, and the cost is drawn."""
    assert opened.inner_text("#method") == "anderson-condat-vu"
    opened.get_by_role("radio", name="cost").check()
    before = displayed(opened)
    for key in ("g", "h"):
        opened.fill(f"#{key}-field", "100")
    after = displayed(opened)
    assert before["curves"] != after["curves"]
    assert before["table"] != after["table"]
    assert opened.inner_text("#method") == "anderson-imex"
    assert opened.inner_text("#why") == "because a gradient costs 100 products"
    least = opened.eval_on_selector_all("#table td.cost.least", "all => all.map((one) => one.parentElement.dataset.id)")
    numbers = 1000.0, 30.0, explorer.coupling_of(0.3, 1000.0, 30.0), 1e-6
    cost = {key: row[-1] for key, row in expected(*numbers, 100.0, 100.0, 1.0)[2].items()}
    best = {row.key: row.key for row in promised_rows()[:-1] if not sp.make_method(row.key).needs.quadratic}
    assert {cost[key] for key in least} == {min(cost[key] for key in best)}
    assert cost["lpd-slide"] < cost["lpd-gs"]
    assert opened.evaluate("document.querySelector('#figure figcaption').textContent").startswith("Cost")


def test_lines_are_chosen(opened):
    shown = "#figure path[data-name]"
    count = opened.locator(shown).count()
    opened.locator(".chips label", has_text="lpd-gs").first.click()
    assert opened.locator(shown).count() == count - 1
    opened.click(".chips summary")
    opened.focus("#show-imex")
    opened.keyboard.press("Space")
    assert opened.locator('#figure path[data-name="imex"]').count() == 1
    assert "show=" in settle(opened)


def test_the_table_sorts_and_stays_sorted(opened):
    ids = "all => all.map((one) => one.dataset.id)"
    paper = opened.eval_on_selector_all("#table tbody tr", ids)
    assert paper[:3] == ["extragradient-table-1", "ogda-table-1", "minimax-appa"]
    head = opened.locator('#table th[data-key="products"]')
    head.locator("button").click()
    assert head.get_attribute("aria-sort") == "ascending"

    def values():
        return opened.evaluate(
            "() => [...document.querySelectorAll('#table tbody tr')].map((line) => "
            "computed(settled(state)).rows.find((row) => row.id === line.dataset.id).products)"
        )

    assert values() == sorted(values())
    opened.focus("#norm-slider")
    opened.keyboard.press("End")
    assert values() == sorted(values())
    head.locator("button").focus()
    opened.keyboard.press("Enter")
    assert head.get_attribute("aria-sort") == "descending"
    assert values() == sorted(values(), reverse=True)
    opened.click('#table th[data-key="cost"] button')
    assert opened.eval_on_selector_all("#table tbody tr", ids)[-1] == "lower-bound-table-1"  # no cost: last
    opened.click('#table th[data-key="name"] button')
    assert opened.eval_on_selector_all("#table tbody tr", ids)[0] == "ag-eg"


def test_a_link_restores_all_settings(opened, chromium, address):
    opened.fill("#kx-field", "12345.678")
    opened.fill("#c-field", "17.5")
    opened.fill("#tol-field", "3e-9")
    opened.fill("#g-field", "20")
    opened.get_by_role("radio", name="cost").check()
    opened.locator(".chips label", has_text="dippa").first.click()
    seen = displayed(opened)
    fragment = settle(opened)
    assert "kx=12345.678" in fragment
    context = chromium.new_context(viewport={"width": 1100, "height": 900})
    other = context.new_page()
    other.goto(address + fragment)
    assert displayed(other) == seen
    assert other.inner_text("#by-auto") == opened.inner_text("#by-auto")
    context.close()
    opened.click("#reset")
    assert opened.input_value("#kx-field") == "1000"
    assert settle(opened) != fragment
    opened.evaluate("(fragment) => { location.hash = fragment; }", fragment)
    until(opened, "document.getElementById('kx-field').value === '12345.678'")
    assert displayed(opened) == seen


def test_a_broken_link_is_reported(page, address):
    page.goto(address + "#kx=many&ky=50&c=&view=sideways&show=dippa,nothing&x=%3Cb%3E")
    said = page.inner_text("#hash-wrong")
    assert "kx: “many” is not a number" in said
    assert "view=sideways" in said
    assert "x=<b>" in said
    assert page.input_value("#kx-field") == "1000"
    assert page.input_value("#ky-field") == "50"
    assert page.locator("#figure path[data-name]").count() == 1
    page.click("#reset")
    assert page.inner_text("#hash-wrong") == ""


def copied(page, name):
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    button = page.get_by_role("button", name=f"Copy: {name}")
    button.click()
    button.get_by_text("Copied").wait_for()
    return page.evaluate("navigator.clipboard.readText()")


def test_the_code_that_is_copied_can_be_run(opened):
    opened.fill("#tol-field", "1e-7")
    opened.fill("#norm-field", "5")
    opened.fill("#g-field", "12.5")
    line, auto, command = (copied(opened, name) for name in ("Python, by name", "Python, by auto", "Command"))
    assert line == 'result = sp.solve(sp.Saddle(g, h, A), method="anderson-imex", tol=1e-7)'
    assert 'costs={"grad_g": 12.5, "grad_h": 1, "A": 1, "At": 1}' in auto
    rng = np.random.default_rng(0)
    room = {"sp": sp, "A": rng.standard_normal((6, 4)), "g": sp.LogCosh(rng.standard_normal((9, 6)), l2=0.5)}
    room["h"] = sp.Huber(l2=0.3) + sp.Quadratic(1.0, b=np.ones(4))
    for text in (line, auto):
        exec(text, room)
        assert room.pop("result").solved
    testing = pytest.importorskip("typer.testing")
    from saddlepoint.commands.app import app

    program, *words = shlex.split(command)
    assert program == "saddlepoint"
    answer = testing.CliRunner().invoke(app, [*words, "--json"])
    assert answer.exit_code == 0
    found = json.loads(answer.output)
    assert found["recommended"] == "anderson-imex"
    assert cell(opened, "lower-bound", "products") == str(found["forced_rounds"])


def test_the_link_is_copied_too(opened, address):
    opened.context.grant_permissions(["clipboard-read", "clipboard-write"])
    opened.fill("#ky-field", "77")
    opened.click("#link")
    until(opened, "document.querySelector('.said').textContent === 'Copied'")
    assert opened.evaluate("navigator.clipboard.readText()") == address + settle(opened)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_core_finds_no_barriers(opened, scheme):
    opened.emulate_media(color_scheme=scheme)
    opened.click(".chips summary")
    opened.fill("#kx-field", "bad")
    opened.click('#table th[data-key="cost"] button')
    accessible(opened)


def test_colours_follow_the_button(opened):
    opened.emulate_media(color_scheme="light")
    paper = "getComputedStyle(document.body).backgroundColor"
    assert opened.evaluate(paper) == "rgb(255, 255, 255)"
    opened.click("button.theme")
    opened.click("button.theme")
    assert opened.evaluate(paper) != "rgb(255, 255, 255)"


def test_it_fits_a_phone(opened):
    opened.set_viewport_size({"width": 390, "height": 844})
    until(opened, "document.querySelector('#figure svg').viewBox.baseVal.width < 400")
    opened.click(".chips summary")
    for key, text in (("kx", "123456789012345"), ("c", "123456789012345"), ("tol", "1e-300")):
        opened.fill(f"#{key}-field", text)
        assert opened.evaluate("[document.documentElement.scrollWidth, innerWidth]") == [390, 390]
    opened.fill("#kx-field", "not a number at all")
    assert opened.evaluate("document.documentElement.scrollWidth") == 390
    accessible(opened)


def test_a_printed_page_says_what_was_set(opened):
    opened.emulate_media(media="print")
    assert not opened.locator("#controls").is_visible()
    assert opened.inner_text("#setting").startswith("kx = 1000, ky = 30, |A|/L = 0.3, c = 51.96, tol = 1e-6")
    assert opened.locator("#figure svg.chart").is_visible()
    assert not opened.locator(".code button").first.is_visible()
    assert opened.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_the_command_writes_it(tmp_path):
    testing = pytest.importorskip("typer.testing")
    from saddlepoint.commands.app import app

    path = tmp_path / "new" / "explorer.html"
    answer = testing.CliRunner().invoke(app, ["explorer", "-o", str(path)])
    assert answer.exit_code == 0
    assert path.read_text(encoding="utf-8") == explorer_page()
