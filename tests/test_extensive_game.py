"""Extensive games: sequence form, best responses and exploitability against HiGHS, brute force and OpenSpiel; files."""

import itertools
import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from scipy.optimize import linprog

import saddlepoint as sp
from saddlepoint.apps import ExtensiveGame
from saddlepoint.apps.extensive_game import GAMES, SHIPPED

PAGE = (Path(__file__).parent.parent / "docs" / "game-file.md").read_text()
LEDUC_VALUE = -0.0856064244  # from the linear program, and as the literature rounds it: -0.0856


def block(language):
    (text,) = re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)
    return text


def lp(game):
    """The value by HiGHS, with optimal x and y: min c'q, C'q >= A'x, x a strategy; and the same for y."""

    def side(A, own, other):
        (E, e), (F, f) = own, other
        inequalities = sparse.hstack([A.T, -F.T])
        equations = sparse.hstack([E, sparse.csr_array((E.shape[0], F.shape[0]))])
        cost = np.concatenate([np.zeros(E.shape[1]), f])
        bounds = [(0, None)] * E.shape[1] + [(None, None)] * F.shape[0]
        result = linprog(cost, inequalities, np.zeros(F.shape[1]), equations, e, bounds, method="highs")
        assert result.status == 0
        return result.fun, result.x[: E.shape[1]]

    value, x = side(game.payoff, game.constraints_x, game.constraints_y)
    minus, y = side(-game.payoff.T, game.constraints_y, game.constraints_x)
    assert value == pytest.approx(-minus, abs=1e-8)
    return value, game.strategy("x", x), game.strategy("y", y)


def assert_equal_games(game, other, atol=0.0):
    for ours, theirs in ((game.sequences_x, other.sequences_x), (game.sequences_y, other.sequences_y)):
        assert ours.sets == theirs.sets
    assert game.payoff.nnz == other.payoff.nnz
    np.testing.assert_allclose(game.payoff.toarray(), other.payoff.toarray(), rtol=0, atol=atol)


# -- the games that are shipped ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "size", "sets", "value"), [("kuhn", 13, 6, -1 / 18), ("leduc", 337, 144, LEDUC_VALUE)]
)
def test_games_in_the_package_have_their_sizes_and_values(name, size, sets, value):
    game = ExtensiveGame.from_file(GAMES / f"{name}.json")
    assert game.shape == game.payoff.shape == (size, size)
    for (E, e), sequences in ((game.constraints_x, game.sequences_x), (game.constraints_y, game.sequences_y)):
        assert E.shape == (sets + 1, size)
        assert len(sequences.sets) == sets
        np.testing.assert_array_equal(e, np.eye(sets + 1)[0])
    found, x, y = lp(game)
    assert found == pytest.approx(value, abs=1e-8)
    assert x @ game.payoff @ y == pytest.approx(value, abs=1e-8)
    assert 0.0 <= game.exploitability(x, y) <= 1e-8
    uniform = game.strategy("x", np.zeros(size))
    assert game.exploitability(uniform, y) > 0.1
    assert uniform[0] == 1.0


@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_files_are_the_games_of_openspiel(name):
    pytest.importorskip("pyspiel")
    shipped, original = ExtensiveGame.from_file(GAMES / f"{name}.json"), ExtensiveGame.from_openspiel(SHIPPED[name])
    assert_equal_games(shipped, original, atol=1e-15)
    assert_equal_games(ExtensiveGame.load(name), original)
    assert shipped.title == original.title


def test_suits_do_not_matter():
    pytest.importorskip("pyspiel")
    game = ExtensiveGame.from_openspiel("leduc_poker")
    assert game.shape == (1093, 1093)
    assert lp(game)[0] == pytest.approx(LEDUC_VALUE, abs=1e-8)


def test_games_in_the_package_need_no_openspiel(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyspiel", None)
    assert ExtensiveGame.load("leduc").shape == (337, 337)
    with pytest.raises(sp.ProblemError, match=r"needs OpenSpiel; pip install 'saddlepoint\[games\]'"):
        ExtensiveGame.from_openspiel("kuhn_poker")


@pytest.mark.slow
def test_openspiel_is_imported_only_when_needed():
    code = "import sys, saddlepoint.apps.extensive_game; sys.exit('pyspiel' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_optimal_strategies_of_kuhn_are_the_known_ones():
    """In every optimal strategy the second player passes on a bet with the lowest card and calls with the highest."""
    game = ExtensiveGame.load("kuhn")
    _, x, _ = lp(game)
    behaviour = game.behaviour("x", x)
    assert behaviour["0b"]["Pass"] == pytest.approx(1.0)
    assert behaviour["2b"]["Bet"] == pytest.approx(1.0)
    assert behaviour["1b"]["Bet"] == pytest.approx(1 / 3)
    assert behaviour["0p"]["Bet"] == pytest.approx(1 / 3)


# -- random games ------------------------------------------------------------------------------------------------------


class RandomGame:
    """A random tree of perfect recall: (kind, label, children), kind "c", 0, 1 or "t", and what leaves pay.

    Nodes of a player after the same own choices share an information set if their label, one of two, agrees.
    """

    def __init__(self, seed, depth):
        self.rng = np.random.default_rng(seed)
        self.sum = int(self.rng.integers(-1, 2))
        self.actions = {}  # (player, own choices, label) -> number of actions
        self.numbers = {}  # the same keys, counted for each player
        self.root = self.grow(depth, ((), ()))

    def grow(self, depth, history):
        kind = ["c", 0, 1, "t"][self.rng.choice(4, p=[0.2, 0.36, 0.36, 0.08])] if depth else "t"
        if kind == "t":
            return kind, float(self.rng.integers(-8, 9)) / 4, []
        if kind == "c":
            weights = self.rng.integers(1, 5, self.rng.integers(2, 4))
            return (
                kind,
                [(int(w), int(weights.sum())) for w in weights],
                [self.grow(depth - 1, history) for _ in weights],
            )
        key = (kind, history[kind], int(self.rng.integers(2)))
        count = self.actions.setdefault(key, int(self.rng.integers(1, 4)))
        self.numbers.setdefault(key, 1 + sum(other[0] == kind for other in self.numbers))
        after = [
            tuple((*own, (key, a)) if player == kind else own for player, own in enumerate(history))
            for a in range(count)
        ]
        return kind, key, [self.grow(depth - 1, own) for own in after]

    def name(self, key):
        return f"set {self.numbers[key]}"

    def expected(self, choose):
        """The first player's payoff where ``choose(player, name, action)`` is the probability of an action."""

        def value(node):
            kind, label, children = node
            if kind == "t":
                return label
            if kind == "c":
                return sum(over / under * value(child) for (over, under), child in zip(label, children, strict=True))
            name = self.name(label)
            return sum(choose(kind, name, f"a{a}") * value(child) for a, child in enumerate(children))

        return value(self.root)

    def efg(self):
        lines, events, leaves = ['EFG 2 R "random" { "1" "2" }'], itertools.count(1), itertools.count(1)

        def write(node):
            kind, label, children = node
            if kind == "t":
                lines.append(f't "" {next(leaves)} "" {{ {label!r}, {self.sum - label!r} }}')
            elif kind == "c":
                actions = " ".join(f'"{i}" {over}/{under}' for i, (over, under) in enumerate(label))
                lines.append(f'c "" {next(events)} "" {{ {actions} }} 0')
            else:
                actions = " ".join(f'"a{a}"' for a in range(len(children)))
                lines.append(f'p "" {kind + 1} {self.numbers[label]} "{self.name(label)}" {{ {actions} }} 0')
            for child in children:
                write(child)

        write(self.root)
        return "\n".join(lines)

    def read(self, folder):
        (folder / "random.efg").write_text(self.efg())
        return ExtensiveGame.from_file(folder / "random.efg")


trees = st.builds(RandomGame, st.integers(0, 10**6), st.integers(1, 5))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("games")


@given(tree=trees, seed=st.integers(0, 99))
def test_the_payoff_is_that_of_the_tree(folder, tree, seed):
    game, rng = tree.read(folder), np.random.default_rng(seed)
    v = {player: rng.random(size) for player, size in zip("xy", game.shape, strict=True)}
    x, y = (game.strategy(player, v[player]) for player in "xy")
    behaviour = {0: game.behaviour("y", v["y"]), 1: game.behaviour("x", v["x"])}
    assert x @ game.payoff @ y == pytest.approx(tree.expected(lambda p, name, a: behaviour[p][name][a]), abs=1e-12)


@given(tree=trees, seed=st.integers(0, 99))
def test_best_responses_are_optimal(folder, tree, seed):
    """Best responses agree with HiGHS for any weights, and with all pure strategies of the tree where these are few."""
    game, rng = tree.read(folder), np.random.default_rng(seed)
    for player, sign, (E, e) in (("x", 1.0, game.constraints_x), ("y", -1.0, game.constraints_y)):
        weights = rng.standard_normal(E.shape[1])
        value, pure = game.best_response(player, weights)
        assert sign * value == pytest.approx(linprog(sign * weights, A_eq=E, b_eq=e).fun, abs=1e-9)
        assert weights @ pure == pytest.approx(value, abs=1e-12)
        assert set(pure) <= {0.0, 1.0}
        np.testing.assert_array_equal(E @ pure, e)
    plans = list(itertools.product(*([(node.name, a) for a in node.actions] for node in game.sequences_y.sets)))
    if len(plans) <= 200:
        x = rng.random(game.shape[0])
        behaviour = game.behaviour("x", x)
        value, _ = game.best_response("y", game.payoff.T @ game.strategy("x", x))
        best = max(
            tree.expected(lambda p, name, a, plan=plan: behaviour[name][a] if p else float((name, a) in plan))
            for plan in plans
        )
        assert value == pytest.approx(best, abs=1e-12)


@given(tree=trees, seed=st.integers(0, 99))
def test_the_exploitability_is_the_sum_of_what_both_gain(folder, tree, seed):
    game, rng = tree.read(folder), np.random.default_rng(seed)
    value, x, y = lp(game)
    assert game.exploitability(x, y) <= 1e-8
    x, y = (game.strategy(player, rng.random(size)) for player, size in zip("xy", game.shape, strict=True))
    gain = game.exploitability(x, y)
    assert abs(x @ game.payoff @ y - value) <= gain + 1e-8
    highest, _ = game.best_response("y", game.payoff.T @ x)
    lowest, _ = game.best_response("x", game.payoff @ y)
    assert lowest - 1e-8 <= value <= highest + 1e-8
    assert gain == pytest.approx(highest - lowest, abs=1e-12)


@given(tree=trees, seed=st.integers(0, 99))
def test_strategies_are_feasible_and_stay(folder, tree, seed):
    game, rng = tree.read(folder), np.random.default_rng(seed)
    for player, (E, e) in (("x", game.constraints_x), ("y", game.constraints_y)):
        v = rng.standard_normal(E.shape[1]) * rng.integers(0, 2, E.shape[1])
        plan = game.strategy(player, v)
        assert (plan >= 0.0).all()
        np.testing.assert_allclose(E @ plan, e, rtol=0, atol=1e-15)
        np.testing.assert_allclose(game.strategy(player, plan), plan, rtol=0, atol=1e-15)
        for choices in game.behaviour(player, v).values():
            assert sum(choices.values()) == pytest.approx(1.0, abs=1e-15)


@pytest.mark.parametrize("size", [5e-324, 1e-300, 1.0, 1.7e308])
def test_strategies_depend_on_the_shares_of_their_weights_alone(size):
    game = ExtensiveGame.load("kuhn")
    np.testing.assert_array_equal(game.strategy("y", np.full(13, size)), game.strategy("y", np.zeros(13)))


@given(tree=trees)
def test_files_keep_the_game(folder, tree):
    game = tree.read(folder)
    game.to_file(folder / "again.json")
    again = ExtensiveGame.from_file(folder / "again.json")
    assert_equal_games(again, game)
    assert again.title == "random"


@given(tree=trees)
def test_openspiel_reads_the_same_game(folder, tree):
    pyspiel = pytest.importorskip("pyspiel")
    if tree.root[0] != "t":
        theirs = ExtensiveGame.from_openspiel(pyspiel.load_efg_game(tree.efg() + "\n"))
        ours = tree.read(folder)
        assert theirs.shape == ours.shape
        assert lp(theirs)[0] == pytest.approx(lp(ours)[0], abs=1e-9)


@pytest.mark.slow
def test_best_responses_are_right_for_many_choices_in_a_row_and_side_by_side():
    """The passes are right for 1000 choices one after the other and for 50 000 choices at the same depth."""
    chain = [(f"c{i}", ["stop", "go"], 2 * i) for i in range(1000)]
    fan = [(f"f{i}", ["l", "r"], 0) for i in range(50_000)]
    payoffs = (
        [(0, 2 * i + 1, i + 1.0) for i in range(1000)] + [(0, 2000, 0.0)] + [(s, 0, 0.0) for s in np.arange(1, 100_001)]
    )
    game = ExtensiveGame(chain, fan, payoffs)
    value, y = game.best_response("y", game.payoff.T @ game.strategy("x", np.zeros(100_001)))
    assert value == 1000.0
    assert y[1999] == 1.0
    weights = np.random.default_rng(0).standard_normal(100_001)
    value, x = game.best_response("x", weights)
    assert value == pytest.approx(weights[0] + np.minimum(weights[1::2], weights[2::2]).sum())
    assert game.exploitability(x, y) <= 1e-10 * 1000.0  # the sum of 50 001 terms may be wrong by that much


# -- OpenSpiel ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["kuhn_poker", "leduc_poker(suit_isomorphism=true)"])
def test_exploitability_is_the_nash_conv_of_openspiel(name):
    pyspiel = pytest.importorskip("pyspiel")
    from open_spiel.python import policy
    from open_spiel.python.algorithms import exploitability

    original = pyspiel.load_game(name)
    game, rng = ExtensiveGame.from_openspiel(original), np.random.default_rng(3)
    x, y = (game.strategy(player, rng.random(size)) for player, size in zip("xy", game.shape, strict=True))
    table = policy.TabularPolicy(original)
    for behaviour in (game.behaviour("x", x), game.behaviour("y", y)):
        for information, choices in behaviour.items():
            row = table.state_lookup[information]
            table.action_probability_array[row, table.legal_actions_mask[row] > 0] = list(choices.values())
    assert game.exploitability(x, y) == pytest.approx(exploitability.nash_conv(original, table), abs=1e-12)
    assert game.exploitability(x, y) / 2 == pytest.approx(exploitability.exploitability(original, table), abs=1e-12)


def test_a_game_with_turns_for_simultaneous_moves_has_the_same_value():
    pyspiel = pytest.importorskip("pyspiel")
    game = ExtensiveGame.from_openspiel(pyspiel.convert_to_turn_based(pyspiel.load_game("matrix_rps")))
    assert game.shape == (4, 4)
    value, x, _ = lp(game)
    assert value == pytest.approx(0.0, abs=1e-9)
    np.testing.assert_allclose(x[1:], 1 / 3, atol=1e-9)


BAD_GAMES = [
    ("chequers", "OpenSpiel has no game 'chequers'; expected a name from pyspiel.registered_names"),
    ("kuhn_poker(players=99)", r"OpenSpiel cannot load 'kuhn_poker\(players=99\)'"),
    ("kuhn_poker(players=3)", "has 3 players; expected two"),
    ("matrix_rps", "players move at the same time; expected a game in turns"),
    ("negotiation", "samples its chance events; expected explicit probabilities"),
    ("pig", "does not provide its information states"),
    ("tiny_hanabi", "state '0, 0, 0, 1': the payoffs 0 and 0 add up to 0, those of the first leaf to 20; expected a z"),
    ("liars_dice_ir(dice_sides=3)", "information set 'P1 1 1-3 2-1 2-2 2-3' of the second player is reached after"),
    ("chess", r"chess\(\) has more than 1000 nodes; raise max_nodes if that is intended"),
    (3, "the game is a int; expected a pyspiel.Game or the name of one"),
]  # fmt: skip


@pytest.mark.parametrize(("game", "sentence"), BAD_GAMES, ids=[str(g) for g, _ in BAD_GAMES])
def test_games_of_openspiel_that_are_no_such_games_are_refused(game, sentence):
    pytest.importorskip("pyspiel")
    with pytest.raises(sp.ProblemError, match=sentence) as caught:
        ExtensiveGame.from_openspiel(game, max_nodes=1000)
    assert "\n" not in str(caught.value)


# -- files -------------------------------------------------------------------------------------------------------------


def test_the_page_runs(tmp_path, monkeypatch, capsys):
    """Both files of the page hold the same game, of known value 1/3, and the program runs."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "poker.json").write_text(block("json"))
    (tmp_path / "poker.efg").write_text(block("efg"))
    game = ExtensiveGame.load("poker.json")
    assert_equal_games(game, ExtensiveGame.load(tmp_path / "poker.efg"))
    assert lp(game)[0] == pytest.approx(1 / 3, abs=1e-9)
    exec(compile(block("python"), "game-file.md", "exec"), {})
    behaviour, numbers = capsys.readouterr().out.splitlines()
    assert json.loads(behaviour.replace("'", '"'))["red"] == {"bet": 1.0, "fold": 0.0}
    np.testing.assert_allclose([float(word) for word in numbers.split()], [1 / 3, 0.0], atol=1e-13)
    game.to_file("copy.json")
    assert json.loads(Path("copy.json").read_text())["first"] == json.loads(block("json"))["first"]


def test_the_pages_command_writes_the_shipped_files(tmp_path, monkeypatch):
    pytest.importorskip("pyspiel")
    monkeypatch.setattr("saddlepoint.apps.extensive_game.GAMES", tmp_path)
    exec(block("sh").partition("'")[2].rpartition("'")[0], {})
    for name in SHIPPED:
        assert_equal_games(
            ExtensiveGame.from_file(tmp_path / f"{name}.json"), ExtensiveGame.from_file(GAMES / f"{name}.json"), 1e-15
        )


@pytest.mark.parametrize("name", ["kuhn_poker", "leduc_poker(suit_isomorphism=true)"])
def test_files_that_openspiel_exports_for_gambit_are_read(tmp_path, name):
    pyspiel = pytest.importorskip("pyspiel")
    from open_spiel.python.algorithms.gambit import export_gambit

    (tmp_path / "exported.efg").write_text(export_gambit(pyspiel.load_game(name)))
    exported, original = ExtensiveGame.from_file(tmp_path / "exported.efg"), ExtensiveGame.from_openspiel(name)
    np.testing.assert_allclose(exported.payoff.toarray(), original.payoff.toarray(), rtol=0, atol=1e-15)
    assert (exported.constraints_x[0] != original.constraints_x[0]).nnz == 0
    assert [node.name for node in exported.sequences_x.sets] == [
        str(i + 1) for i in range(len(exported.sequences_x.sets))
    ]


PENNIES = r"""EFG 2 D "matching \"pennies\"" {"hider" "seeker"} "a comment
over two lines"
p "" 1 7 "coin" {"heads" "tails"} 5 "entry fee" {-1.5e-1 .15}
p "" 2 3 "coin" {"heads" "tails"} 0
  t "" 1 "found" {-1, 1}
  t "" 2 "lost" {+1 -2/2}
p "second node" 2 3 0 t "" 2 t "" 1 "found" {-1.0 1}
"""


def test_unusual_files_of_gambit_are_read(tmp_path):
    """A file with fractions, exponents, escaped quotes, comments, inner payoffs, missing or repeated declarations."""
    (tmp_path / "pennies.efg").write_text(PENNIES)
    game = ExtensiveGame.from_file(tmp_path / "pennies.efg")
    assert game.title == 'matching "pennies"'
    assert game.shape == (3, 3)
    np.testing.assert_allclose(game.payoff.toarray()[1:, 1:], [[-1.15, 0.85], [0.85, -1.15]])
    value, x, y = lp(game)
    assert value == pytest.approx(-0.15)
    np.testing.assert_allclose([x, y], [[1, 0.5, 0.5]] * 2, atol=1e-9)


def test_a_game_without_decisions_is_a_number(tmp_path):
    game = ExtensiveGame([], [], [(0, 0, 2.5)])
    game.to_file(tmp_path / "constant.json")
    game = ExtensiveGame.from_file(tmp_path / "constant.json")
    assert game.shape == (1, 1)
    assert game.best_response("x", [3.0]) == (3.0, np.ones(1))
    assert game.exploitability(game.strategy("x", [0.0]), [1.0]) <= 1e-14
    assert game.behaviour("y", [1.0]) == {}


def test_numbers_of_numpy_are_taken(tmp_path):
    game = ExtensiveGame([("a", ("l", "r"), np.int64(0))], [], [(np.int64(0), np.int32(1), np.float32(0.5)), (0, 2, 1)])
    game.to_file(tmp_path / "small.json")
    assert_equal_games(ExtensiveGame.from_file(tmp_path / "small.json"), game)


def test_names_that_are_shared_get_numbers(tmp_path):
    text = block("efg").replace('"black" { "bet"', '"red" { "bet"')
    (tmp_path / "poker.efg").write_text(text)
    game = ExtensiveGame.from_file(tmp_path / "poker.efg")
    assert [node.name for node in game.sequences_y.sets] == ["red #1", "red #2"]
    assert [node.name for node in game.sequences_x.sets] == ["after a bet"]


GOOD = block("json")
BAD_JSON = [
    ("", "not valid JSON: Expecting value: line 1 column 1"),
    (GOOD.replace('"version": 1,', '"version": 1'), "not valid JSON: Expecting ',' delimiter: line 4"),
    ("[" * 100_000, "not valid JSON"),
    ("[" + "1" * 5000 + "]", "not valid JSON"),
    ("[]", r"the document is \[\]; expected an object with the keys format, version"),
    (GOOD.replace("saddlepoint-game", "chess-game"), "key 'format' is 'chess-game'; expected 'saddlepoint-game'"),
    (GOOD.replace('"version": 1', '"version": 2'), "key 'version' is 2; this version of saddlepoint reads 1"),
    (GOOD.replace('"version": 1', '"version": true'), "key 'version' is True; expected a whole number"),
    (GOOD.replace('"title": "One-card poker"', '"title": null'), "key 'title' is None; expected a text"),
    (GOOD.replace('"title": "One-card poker",', ""), "the document lacks the key 'title'"),
    (GOOD.replace('"title"', '"author": "me", "title"'), "the document has the unknown key 'author'; expected format"),
    (GOOD.replace('"title"', '"version": 1, "title"'), "key 'version' appears twice in {'format'"),
    (GOOD.replace('"fold": 2', '"bet": 2'), "key 'bet' appears twice in {'bet': 2}; expected distinct keys"),
    (GOOD.replace('"second": [', '"second": 3, "others": ['), "unknown key 'others'"),
    (re.sub(r'"second": \[.*?\],', '"second": 3,', GOOD, flags=re.DOTALL), "key 'second' is 3; expected a list"),
    (GOOD.replace('"name": "black"', '"names": "black"'), r"first\[1\] has the unknown key 'names'; expected name, pa"),
    (GOOD.replace('"name": "black", ', ""), r"first\[1\] lacks the key 'name'"),
    (GOOD.replace('"name": "black"', '"name": 3'), r"first\[1\].name is 3; expected a text"),
    (GOOD.replace('{"bet": 3, "fold": 4}', '["bet", "fold"]'), r"first\[1\].actions is \['bet', 'fold'\]; expected an"),
    (GOOD.replace('"bet": 3', '"bet": 5'), r"first\[1\].actions\['bet'\] is 5; expected 3, the next sequence"),
    (GOOD.replace('"bet": 3', '"bet": 3.0'), r"first\[1\].actions\['bet'\] is 3.0; expected a whole number"),
    (GOOD.replace('"parent": 0', '"parent": "red"', 1), r"first\[0\].parent is 'red'; expected a whole number"),
    (GOOD.replace('"name": "black"', '"name": "red"'), "information set 1 of the first player, 'red', has the name of"),
    (GOOD.replace('{"call": 1, "pass": 2}', "{}"), "information set 0 of the second player, 'after a bet', has no act"),
    (GOOD.replace('"black", "parent": 0', '"black", "parent": 9'), "'black', follows sequence 9; expected one listed"),
    (GOOD.replace('"black", "parent": 0', '"black", "parent": -1'), "'black', follows sequence -1; expected one liste"),
    (GOOD.replace('"red", "parent": 0', '"red", "parent": 3').replace('"black", "parent": 0', '"black", "parent": 1'),
     "'red', follows sequence 3; expected one listed before it, 0 to 0, so that there is no cycle"),
    (GOOD.replace('"red", "parent": 0', '"red", "parent": 1'), "'red', follows sequence 1; expected one listed before"),
    (GOOD.replace("[1, 1, 1.0]", "[1, 1]"), r"payoffs\[0\] is \[1, 1\]; expected \[second's sequence, first's sequenc"),
    (GOOD.replace("[1, 1, 1.0]", "[1, 1, NaN]"), r"payoffs\[0\] has the payoff nan; expected a finite number"),
    (GOOD.replace("[1, 1, 1.0]", "[1, 1, -Infinity]"), r"payoffs\[0\] has the payoff -inf; expected a finite number"),
    (GOOD.replace("[1, 1, 1.0]", "[1, 1, 1e999]"), r"payoffs\[0\] has the payoff inf; expected a finite number"),
    (GOOD.replace("[1, 1, 1.0]", f"[1, 1, {10**400}]"), r"payoffs\[0\] has the payoff 1000.*\.\.\.; expected a finite"),
    (GOOD.replace("[1, 1, 1.0]", '[1, 1, "much"]'), r"payoffs\[0\] has the payoff 'much'; expected a finite number"),
    (GOOD.replace("[1, 1, 1.0]", "[1, 1, true]"), r"payoffs\[0\] has the payoff True; expected a finite number"),
    (GOOD.replace("[1, 1, 1.0]", "[1, 1, 1e308], [1, 1, 1e308]"), "the sum of payoffs has a inf"),
    (GOOD.replace("[1, 1, 1.0]", "[1, 7, 1.0]"), "payoff 0 is one of sequence 7 of the first player; expected 0 to 4"),
    (GOOD.replace("[1, 1, 1.0]", "[3, 1, 1.0]"), "payoff 0 is one of sequence 3 of the second player; expected 0 to 2"),
    (GOOD.replace("[1, 1, 1.0]", "[-1, 1, 1.0]"), "payoff 0 is one of sequence -1 of the second player"),
    (GOOD.replace("[1, 1, 1.0]", "[1.5, 1, 1.0]"), r"payoffs\[0\]\[0\] is 1.5; expected a whole number"),
    (GOOD.replace("[0, 2, 0.5],", ""), "sequence 2 of the first player, 'fold' at 'red', reaches no payoff; expected"),
    (re.sub(r'"payoffs": \[.*\]', '"payoffs": []', GOOD, flags=re.DOTALL), "reaches no payoff; expected one"),
    (re.sub(r'"(first|second|payoffs)": \[.*?\n\]', r'"\1": []', GOOD, flags=re.DOTALL), "the empty one, reaches no"),
]  # fmt: skip

TREE = block("efg")
FORGETFUL = """EFG 2 R "forgets" { "1" "2" }
p "" 1 1 "first" { "l" "r" } 0
p "" 1 2 "again" { "l" "r" } 0
t "" 1 "a" { 1 -1 }
t "" 2 "b" { 2 -2 }

p "" 1 2 0
t "" 1
t "" 2
"""
BAD_EFG = [
    ("", 1, "found the end of the file; expected 'EFG 2 R'"),
    (TREE.replace("EFG", "NFG"), 1, "found 'NFG'; expected 'EFG 2 R'"),
    (TREE.replace("EFG 2", "EFG 3"), 1, "found '3'; expected 'EFG 2 R'"),
    (TREE.replace('"One-card poker"', "poker"), 1, "found 'poker'; expected the title"),
    (TREE.replace('"Bob"', '"Bob" "Carol"'), 1, "the game has 3 players; expected 2"),
    (TREE.replace(' { "Alice" "Bob" }', ""), 2, "found 'Myerson 1991'; expected '{'"),
    (TREE.replace("1/2", "1/3", 1), 3, "the probabilities of chance add up to 0.8333333333; expected 1"),
    (TREE.replace("1/2", "3/2", 1).replace("1/2", "-1/2", 1), 3, "chance has a probability 1.5; expected one from 0 t"),
    (TREE.replace("1/2", "1/0", 1), 3, "found '1/0'; expected a probability, a finite number"),
    (TREE.replace("1/2", "half", 1), 3, "found 'half'; expected a probability, a finite number"),
    (TREE.replace("1/2", "nan", 1), 3, "found 'nan'; expected a probability, a finite number"),
    (TREE.replace('c "" 1', 'c "" 0'), 3, "found '0'; expected the number of the event, 1 or more"),
    (TREE.replace('c "" 1', 'd "" 1'), 3, "found 'd'; expected a node: c, p or t"),
    (TREE.replace('{ "red" 1/2 "black" 1/2 }', "{ }"), 3, "the probabilities of chance add up to 0"),
    (TREE.replace('p "" 1 1', 'p "" 3 1'), 4, "the node belongs to player 3; expected 1 or 2"),
    (TREE.replace('"red" { "bet" "fold" }', '"red" { }'), 4, "information set 'red' has no actions"),
    (TREE.replace('"red" { "bet" "fold" }', '"red"'), 4, "found '0'; expected '{'"),
    (TREE.replace('p "" 1 1 "red" {', 'p 1 1 "red" {'), 4, "found '1'; expected the name of the node in quotation mar"),
    (TREE.replace("{ 2, -2 }", "{ 2 }"), 6, "outcome 'called on red' has 1 payoffs; expected 2"),
    (TREE.replace("{ 2, -2 }", "{ 1e999, -2 }"), 6, "found '1e999'; expected a payoff, a finite number"),
    (TREE.replace("{ 2, -2 }", "{ 2 -2"), 7, "found 't'; expected a payoff"),
    (TREE.replace("{ 1, -1 }", "{ 1, 1 }"), 7, "the payoffs 1 and 1 add up to 2, those of the first leaf to 0; expect"),
    (TREE.replace('"passed" { 1, -1 }', ""), 7, "outcome 2 is not declared before"),
    (TREE.replace('t "" 2\np', 't "" 2 "passed" { 2, -2 }\np'), 8, "outcome 2 is declared differently before"),
    (TREE.replace('p "" 2 1 0', 'p "" 2 1 "after a bet" { "call" "fold" } 0'), 10,
     "player 2's information set 1 is declared"),
    (TREE.replace('p "" 1 2 "black" { "bet" "fold" }', 'p "" 2 1 "after a bet" { "call" "pass" }'), 10,
     "information set 'after a bet' of the second player is reached after 'call' at 'after a bet' and before any "
     "choice; expected perfect recall"),
    (FORGETFUL, 7, "information set 'again' of the first player is reached after 'r' at 'first' and after 'l' at 'fir"),
    (TREE.replace('"folded on black" { -1, 1 }', '"folded'), 13, "the text that begins here is not closed"),
    (TREE.rpartition("t ")[0], 12, "found the end of the file; expected a node: c, p or t"),
    (TREE + 't "" 2\n', 14, "found 't'; expected the end of the file, for the tree is complete"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "sentence"), BAD_JSON, ids=[s for _, s in BAD_JSON])
def test_bad_json_is_refused_in_a_line(tmp_path, text, sentence):
    path = tmp_path / "game.json"
    path.write_text(text)
    with pytest.raises(sp.ProblemError, match=sentence) as caught:
        ExtensiveGame.from_file(path)
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize(("text", "line", "sentence"), BAD_EFG, ids=[s for *_, s in BAD_EFG])
def test_a_bad_efg_file_is_refused_in_a_line(tmp_path, text, line, sentence):
    path = tmp_path / "game.efg"
    path.write_text(text)
    with pytest.raises(sp.ProblemError, match=re.escape(sentence)) as caught:
        ExtensiveGame.from_file(path)
    assert str(caught.value).startswith(f"{path}, line {line}: ")
    assert "\n" not in str(caught.value)


@given(data=st.data())
def test_damaged_files_give_a_game_or_a_clear_error(folder, data):
    path, text = data.draw(st.sampled_from([(folder / "damaged.json", GOOD), (folder / "damaged.efg", TREE)]))
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(0, len(text)))
        stop = start + data.draw(st.integers(0, 8))
        text = text[:start] + data.draw(st.text('0123456789.-+e/"\\{}[]:, \nptcnul', max_size=4)) + text[stop:]
    path.write_text(text)
    try:
        message = f"{path}: {ExtensiveGame.from_file(path)}"
    except sp.ProblemError as error:
        message = str(error)
    assert message.startswith(str(path))
    assert "\n" not in message


def test_files_that_are_no_games_are_refused(tmp_path):
    (tmp_path / "folder.json").mkdir()
    (tmp_path / "binary.efg").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "twice.efg").write_text(TREE.replace('"bet" "fold"', '"bet" "bet"', 1))
    (tmp_path / "good.json").write_text(GOOD)
    for name, sentence in [
        ("gone.json", "file .*gone.json does not exist"),
        ("folder.json", "folder.json is not a file"),
        ("binary.efg", "is not a text file"),
        ("game.txt", r"unknown ending; expected \.json or \.efg"),
        ("twice.efg", "twice.efg: information set 0 of the first player, 'red', has the action 'bet' twice"),
    ]:
        with pytest.raises(sp.ProblemError, match=sentence):
            ExtensiveGame.from_file(tmp_path / name)
    with pytest.raises(sp.ProblemError, match=r"needs .* KiB, above the memory limit"):
        ExtensiveGame.from_file(tmp_path / "good.json", memory_limit=1000)
    with pytest.raises(
        sp.ProblemError, match="does not exist, and it is not the name of a game; expected a file or kuhn or leduc"
    ):
        ExtensiveGame.load("poker")
    game = ExtensiveGame.load(tmp_path / "good.json")
    with pytest.raises(sp.ProblemError, match=r"does not end in \.json"):
        game.to_file(tmp_path / "game.efg")
    with pytest.raises(sp.ProblemError, match="cannot be written: No such file"):
        game.to_file(tmp_path / "nowhere" / "game.json")


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda g: g.strategy("first", g.shape), "player is 'first'; expected 'x', the second player, or 'y', the fir"),
        (lambda g: g.strategy("x", [1.0]), "vector of x has 1 entries; expected 3"),
        (lambda g: g.strategy("x", [1.0, np.nan, 0.0]), "vector of x has a nan at index 1"),
        (lambda g: g.best_response("y", [[1.0]]), "weights has shape"),
        (lambda g: g.behaviour("y", "heads"), "vector of y has dtype"),
        (lambda g: g.exploitability([1, 1, 1], [1, 1, 0, 1, 0]), r"x violates its constraints by 1; .* game.strategy"),
        (lambda g: g.exploitability([1, 1, 0], [1, 2, -1, 1, 0]), "y violates its constraints by 1"),
        (lambda g: ExtensiveGame([("a", "lr", 0)], [], []), r"first player is \('a', 'lr', 0\); expected \(name, acti"),
        (lambda g: ExtensiveGame([("a", ["l"])], [], []), r"expected \(name, actions, parent\), the actions as a list"),
        (lambda g: ExtensiveGame([("a", ["l"], 0.5)], [], []), "follows sequence 0.5; expected one listed before it"),
        (lambda g: ExtensiveGame([3], [], []), r"first player is 3; expected \(name, actions, parent\)"),
        (lambda g: ExtensiveGame([("a", 2, 0)], [], []), r"first player is \('a', 2, 0\); expected \(name, actions"),
        (lambda g: ExtensiveGame([], [], [3]), r"payoff 0 is 3; expected \(second's sequence, first's sequence"),
        (lambda g: g.solve(start=3), "start is 3; expected a pair"),
        (lambda g: g.solve(tol="small"), "tol is 'small'; expected a positive number"),
        (lambda g: ExtensiveGame([], [], [(0, 0)]), r"payoff 0 is \(0, 0\); expected \(second's sequence, first's seq"),
        (lambda g: ExtensiveGame([], [], [(0.0, 0, 1.0)]), "payoff 0 is one of sequence 0.0 of the second player"),
        (lambda g: ExtensiveGame([], [], [(0, 0, np.inf)]), "the list of payoffs has a inf at index 0"),
        (lambda g: ExtensiveGame([], [], [(0, 0, "1")]), "the list of payoffs has dtype"),
    ],
)  # fmt: skip
def test_wrong_arguments_are_refused_in_a_sentence(tmp_path, call, sentence):
    (tmp_path / "poker.json").write_text(GOOD)
    with pytest.raises(sp.ProblemError, match=sentence):
        call(ExtensiveGame.from_file(tmp_path / "poker.json"))


def test_an_unknown_method_is_refused_with_the_names_of_the_methods_for_trees():
    with pytest.raises(
        sp.ProblemError, match=r"unknown method 'crf'; expected 'interior-point', 'cfr', 'auto' or .*mean 'cfr'"
    ):
        ExtensiveGame.load("kuhn").solve(method="crf")
