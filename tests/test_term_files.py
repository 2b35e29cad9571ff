"""Simple terms in problem files: every kind, sums, the command line, and one line about what is wrong."""

import json

import numpy as np
import pytest

import saddlepoint as sp
from saddlepoint.problems.files import load_problem
from saddlepoint.problems.files.simple_terms import TERMS

TABLES = {
    "l1": ("weight = [0.5, 0.0, 1.0]", lambda: sp.L1([0.5, 0.0, 1.0])),
    "box": ("lower = -inf\nupper = [1.0, 2.0, 3.0]", lambda: sp.Box(-np.inf, [1.0, 2.0, 3.0])),
    "nonnegative": ("", lambda: sp.NonNegative()),
    "simplex": ("total = 2.0", lambda: sp.Simplex(2.0)),
    "ball": ("radius = 0.5\nnorm = 1\ncenter = [3.0, 0.0, 1.0]", lambda: sp.Ball(0.5, 1, [3.0, 0.0, 1.0])),
    "norm2": ("weight = 0.5", lambda: sp.Norm2(0.5)),
    "groups": ('groups = ["a", "b", "a"]\nweight = 0.5', lambda: sp.Groups(["a", "b", "a"], 0.5)),
    "hyperplane": ("a = [1.0, 2.0, 3.0]\nb = 4.0", lambda: sp.Hyperplane([1.0, 2.0, 3.0], 4.0)),
    "nuclear": ("shape = [1, 3]\nweight = 0.5", lambda: sp.Nuclear((1, 3), 0.5)),
    "group-balls": ("groups = [1, 2, 1]\nradius = 0.5", lambda: sp.GroupBalls([1, 2, 1], 0.5)),
    "blocks": (
        'blocks = [{start = 0, stop = 2, simple = {kind = "simplex"}}, '
        '{start = 2, simple = [{kind = "l1", weight = 0.5}, '
        '{kind = "nonnegative"}]}]',
        lambda: sp.Blocks([((0, 2), sp.Simplex()), ((2, None), sp.L1(0.5) + sp.NonNegative())]),
    ),
}
BASE = """
A = [[1.0, 0.0], [0.5, 2.0], [0.0, 1.0]]
[g]
kind = "quadratic"
P = 1.0
b = [-3.0, 2.0, -1.0]
TERM
[h]
kind = "quadratic"
P = 1.0
"""


def write(folder, term, base=BASE):
    (folder / "problem.toml").write_text(base.replace("TERM", term))
    return folder / "problem.toml"


def test_every_kind_has_a_case():
    assert set(TABLES) == set(TERMS)


@pytest.mark.parametrize("kind", TABLES)
def test_every_kind_of_term_is_read(kind, tmp_path):
    text, build = TABLES[kind]
    f, _ = load_problem(write(tmp_path, f'[g.simple]\nkind = "{kind}"\n{text}'))
    assert type(f.g.simple) is type(build())
    v = np.array([3.0, -0.2, 0.7])
    np.testing.assert_array_equal(f.g.simple.prox(v, 0.3), build().prox(v, 0.3))
    assert sp.solve(f, tol=1e-6).solved


def test_sums_of_terms_and_functions_are_read(tmp_path):
    two = '[[g.simple]]\nkind = "l1"\nweight = 0.5\n[[g.simple]]\nkind = "nonnegative"'
    f, _ = load_problem(write(tmp_path, two))
    assert repr(f.g.simple) == "L1(0.5) + NonNegative()"
    several = BASE.replace("[g]", "[[g]]").replace(
        "TERM", '[g.simple]\nkind = "l1"\nweight = 0.5\n[[g]]\nkind = "huber"'
    )
    f, _ = load_problem(write(tmp_path, "", several))
    assert repr(f.g.simple) == "L1(0.5)"
    assert f.g.L == 2.0


def test_a_player_may_have_a_term_alone_and_a_gap_may_be_the_target(tmp_path):
    text = 'A = [[1.0, -1.0], [-1.0, 1.0]]\ng.simple.kind = "simplex"\nh.simple.kind = "simplex"\nsolve.gap = 1e-5\n'
    f, settings = load_problem(write(tmp_path, "", text))
    assert f.mu_x == 0.0
    assert settings == {"gap": 1e-5}
    assert sp.solve(f, **settings).certificate.gap <= 1e-5


def test_the_command_line_solves_problems_with_terms(run, tmp_path):
    path = write(tmp_path, '[g.simple]\nkind = "l1"\nweight = 2.5')
    code, out, _ = run("solve", path, "--json", "--rtol", "1e-7", "--out", tmp_path / "out.npz")
    assert code == 0
    found = json.loads(out)
    assert found["provenance"]["simple"] == {"g": "L1(2.5)"}
    assert found["support"]["x"]["zero"] == 2
    assert found["provenance"]["target"] == "rtol"
    assert sp.load_result(tmp_path / "out.npz").support_x.tolist().count(sp.Support.ZERO) == 2
    assert "support of x proven 2 at zero" in run("solve", path)[1]
    assert run("solve", path, "--gap", "1e-9")[0] == 0
    assert run("check", path)[0] == 0


def test_what_programs_read_is_json_where_no_distance_is_proven(run, tmp_path):
    """Without strong convexity no distance is proven; JSON has no infinity, so that it is null, with a word."""
    text = 'A = [[1.0, -1.0], [-1.0, 1.0]]\ng.simple.kind = "simplex"\nh.simple.kind = "simplex"\nsolve.gap = 1e-5\n'
    code, out, _ = run("solve", write(tmp_path, "", text), "--json")

    def refuse(constant):
        raise AssertionError(constant)

    found = json.loads(out, parse_constant=refuse)["certificate"]
    assert code == 0
    assert found["distance"] is None
    assert found["distance_is"] == "infinite"
    assert found["gap"] <= 1e-5


BAD = {
    "kind = 3": "key 'g.simple.kind' is 3; expected one of l1, box",
    'kind = "lasso"': "key 'g.simple.kind' is 'lasso'; expected one of l1",
    'kind = "l1"': "key 'g.simple.weight' is missing; l1 needs it",
    'kind = "l1"\nweight = -1.0': "key 'g.simple': weight of L1 is -1",
    'kind = "l1"\nweight = "gone.npy"': "key 'g.simple.weight': file",
    'kind = "l1"\nweight = [1.0, 2.0]': "function of 2 coordinates, but x has 3",
    'kind = "l1"\nweight = 1.0\nheight = 2': "key 'g.simple.height' is unknown; expected kind, weight",
    'kind = "box"\nlower = 2.0\nupper = 1.0': "key 'g.simple': lower = 2 and upper = 1 of Box; expected lower <= upper",
    'kind = "ball"\nradius = 1.0\nnorm = [2]': "key 'g.simple': norm of Ball is",
    'kind = "ball"\nradius = "big"': "key 'g.simple.radius' is 'big'; expected a number",
    'kind = "nuclear"\nweight = 1.0\nshape = [2]': "key 'g.simple': shape of Nuclear is [2]",
    'kind = "nuclear"\nweight = 1.0\nshape = [1e9, -3]': "key 'g.simple': shape of Nuclear is",
    'kind = "simplex"\ntotal = 0.0': "key 'g.simple': total of Simplex is 0",
    'kind = "groups"\nweight = 1.0\ngroups = [[0, 1], [2]]': "key 'g.simple.groups' has lists within it",
    'kind = "ball"\nradius = 1.0\ncenter = [1.0, 2.0]': "function of 2 coordinates, but x has 3",
    'kind = "blocks"': "key 'g.simple.blocks' is missing; blocks needs it",
    'kind = "blocks"\nblocks = 3': "key 'g.simple.blocks' is 3; expected tables [[g.simple.blocks]] with start",
    'kind = "blocks"\nblocks = [{start = 0}]': "key 'g.simple.blocks[0].simple' is missing; a block needs start",
    'kind = "blocks"\nblocks = [{start = 0.5, simple = {kind = "simplex"}}]': "(0.5, None) of Blocks is no range",
    'kind = "blocks"\nblocks = [{start = 0, end = 2}]': "key 'g.simple.blocks[0].end' is unknown; expected start, stop",
    'kind = "blocks"\nblocks = [{start = 0, simple = {kind = "l2"}}]': "key 'g.simple.blocks[0].simple.kind' is 'l2'",
    'kind = "blocks"\nblocks = [{start = 0, simple = {kind = "blocks"}}]': "key 'g.simple.blocks[0].simple' has blocks",
    'kind = "groups"\nweight = -1.0\ngroups = [1, 1, 2]': "weight of Groups",
}


@pytest.mark.parametrize("text", BAD)
def test_bad_terms_end_in_one_line(text, tmp_path):
    path = write(tmp_path, f"[g.simple]\n{text}")
    with pytest.raises(sp.ProblemError) as caught:
        load_problem(path)
    assert BAD[text] in str(caught.value)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_term_that_is_no_table_is_refused(tmp_path):
    with pytest.raises(sp.ProblemError, match=r"key 'g.simple' is 3; expected a table \[g.simple\]"):
        load_problem(write(tmp_path, "simple = 3"))
    unknown = '[[g.simple]]\nkind = "norm2"\nweight = 1.0\n[[g.simple]]\nkind = "simplex"'
    with pytest.raises(sp.ProblemError, match=r"key 'g.simple': the prox of Norm2\(1\) \+ Simplex\(\) is not known"):
        load_problem(write(tmp_path, unknown))
